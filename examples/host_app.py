"""A workshop whose agent calls customers when their order is ready. docs/embedding.md begins with it.

.venv/bin/flask --app examples/host_app.py run
curl -X POST http://127.0.0.1:5000/orders/7/call
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from flask import Flask

from voiceapi import Run, VoiceAPI, VoiceAPIError

app = Flask(__name__)
voice = VoiceAPI(app, url_prefix="/voice")
ORDERS = Path(app.instance_path, "orders.db")


def query(statement: str, *values: object) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(ORDERS, timeout=30)) as database, database:
        return database.execute(statement, values).fetchall()


with app.app_context():
    ORDERS.parent.mkdir(parents=True, exist_ok=True)
    query("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer, what, phone, result)")
    query("INSERT OR IGNORE INTO orders VALUES (7, 'Ada', 'bicycle', '+12025550123', NULL)")
    voice.publish(Path(__file__).parent / "with_app" / "order-ready.json")


@app.post("/orders/<int:order>/call")
def call_customer(order: int) -> tuple[dict[str, object], int]:
    for (phone,) in query("SELECT phone FROM orders WHERE id = ?", order):
        try:
            run = voice.call("order-ready", phone, context={"order": order}, key=f"order {order}")
        except VoiceAPIError as error:
            return {"error": error.detail}, error.status
        return {"run": run.id, "state": run.state}, 202
    return {"error": "There is no such order."}, 404


@voice.tool
def look_up(order: int) -> dict[str, str]:
    """Look up whose order it is, and what was ordered."""
    for customer, what in query("SELECT customer, what FROM orders WHERE id = ?", order):
        return {"customer": customer, "what": what}
    raise LookupError("There is no such order.")


@voice.on_run_completed
def note_result(run: Run) -> None:
    found = run.gathered.get("extracted_variables", {}).get("today")
    result = {True: "collected today", False: "collected later"}.get(found, run.disposition)
    query("UPDATE orders SET result = ? WHERE id = ?", result, run.context.get("order"))
