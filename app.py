"""Serves voiceapi: `python app.py`."""

from voiceapi.__main__ import main

if __name__ == "__main__":
    main(["serve"])
