"""The app to compare with: one Flask route with a small JSON answer, served by waitress like the service."""

from __future__ import annotations

import sys

import waitress
from flask import Flask


def make_app() -> Flask:
    app = Flask("bare")

    @app.get("/")
    def small() -> dict[str, object]:
        return {"status": "ok", "version": "1", "enabled": False, "nothing": None}

    return app


if __name__ == "__main__":
    server = waitress.create_server(make_app(), host="127.0.0.1", port=0, threads=int(sys.argv[1]))
    print(f"bare listens on http://127.0.0.1:{server.effective_port}", file=sys.stderr, flush=True)
    server.run()
