"""Fuzzes the readers of what comes from outside, each in a process of its own: a crash is a broken promise.

    python tests/trust/fuzzing.py [--seconds N] [--corpus FOLDER] [TARGET ...]

Without targets it fuzzes all, one after the other, each for so many seconds; the exit code is 1 if one found something.
The input that did it is written beside the others of `fuzz/cases`, where the everyday tests replay it.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CASES = HERE / "fuzz/cases"
TARGETS = tuple(sorted(path.stem for path in (HERE / "fuzz").glob("[a-z]*.py") if path.stem != "draws"))
# A single input may take so many seconds, and the process so many MB.
LONGEST_SECONDS, MOST_MEGABYTES = 10, 1024
LONGEST_INPUT = 4096

sys.path[:0] = [str(ROOT), str(HERE), str(ROOT / "tests/telephony")]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the readers of what comes from outside.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (all)")
    parser.add_argument("--seconds", type=int, default=60, help="how long to fuzz each target (60)")
    parser.add_argument("--corpus", type=Path, help="a folder to keep the inputs in that reached new code")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if wrong := set(options.targets) - set(TARGETS):
        parser.error(f"There is no target {', '.join(sorted(wrong))}; there are {', '.join(TARGETS)}.")
    if options.here:
        fuzz(options.targets[0], options.seconds, options.corpus)
    found = []
    with tempfile.TemporaryDirectory(prefix="voiceapi-fuzz-") as folder:
        for target in options.targets or TARGETS:
            corpus = options.corpus or Path(folder)
            command = [sys.executable, __file__, "--here", target, f"--seconds={options.seconds}", f"--corpus={corpus}"]
            begun = time.monotonic()
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
            print(f"{target:<16} {_executions(done.stderr):>9} inputs in {time.monotonic() - begun:.0f} s", flush=True)
            if done.returncode:
                found.append(target)
                told = [line for line in done.stderr.splitlines() if not line.startswith(("#", "INFO", "WARNING"))]
                print("\n".join(told[-60:]), file=sys.stderr, flush=True)
    return 1 if found else 0


def _executions(log: str) -> str:
    """How many inputs the log of a fuzzer counts."""
    counted = [line.split()[1] for line in log.splitlines() if line.startswith("Done ")]
    return counted[-1] if counted else "?"


def fuzz(target: str, seconds: int, corpus: Path) -> None:
    """Fuzz one target; ends the process."""
    import atheris

    with atheris.instrument_imports(include=["voiceapi"]):
        module: Any = importlib.import_module(f"fuzz.{target}")
    inputs, cases = corpus / target, CASES / target
    for folder in (inputs, cases):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(module.SEEDS):
        (inputs / f"seed-{number}").write_bytes(seed)
    arguments = {
        "max_total_time": seconds,
        "max_len": LONGEST_INPUT,
        "timeout": LONGEST_SECONDS,
        "rss_limit_mb": MOST_MEGABYTES,
        "artifact_prefix": f"{cases}/",
        "print_final_stats": 0,
    }

    def check(data: bytes) -> None:
        try:
            module.check(data)
        except BaseException:
            (cases / f"found-{zlib.crc32(data):08x}").write_bytes(data)
            raise

    given = [f"-{name}={value}" for name, value in arguments.items()]
    atheris.Setup([sys.argv[0], *given, str(inputs), str(cases)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
