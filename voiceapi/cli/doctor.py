"""The command `doctor`: what prevents calls from being placed or answered."""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import chain

import click
from flask.cli import with_appcontext

from ..store import probe
from .base import JSON, current_service, with_session
from .output import printable, progress, show_json


@click.command()
@JSON
@with_appcontext
@with_session
def doctor(as_json: bool) -> None:
    """Check the public address, the language models and every carrier. Exit code 1 when something is wrong."""
    from ..calls.doctor import Finding, examine

    findings = []
    service = current_service()
    database = f"database {service.store.name}"
    advice = (Finding(database, note=f"advice: {text}") for text in probe.dangers(service.store))
    with progress("Asking models and carriers") as state:
        for finding in chain(advice, examine(service)):
            findings.append(finding)
            if not as_json:
                state.write(printable(f"{finding.subject}: {finding.sentence}"))
    if as_json:
        show_json([asdict(finding) for finding in findings])
    sys.exit(1 if any(finding.wrong for finding in findings) else 0)
