"""The command `voiceapi`, with a stop that waits for a second only.

python short_stop.py ARGUMENT ...
"""

from __future__ import annotations

from voiceapi.__main__ import main
from voiceapi.cli import serve

if __name__ == "__main__":
    serve.STOP_SECONDS = 1.0
    main()
