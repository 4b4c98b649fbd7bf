"""Serves voiceapi: `python app.py`."""

from voiceapi.cli.main import main

if __name__ == "__main__":
    main(["serve"])
