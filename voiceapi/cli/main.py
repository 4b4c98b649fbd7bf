"""The commands: `voiceapi`, and `flask voiceapi` in a host app.

Exit codes: 0 good, 1 findings, 2 usage.
"""

from __future__ import annotations

import json

import click

from .. import __version__
from .api_keys import keys_group
from .base import CommandGroup
from .call import call_agent
from .campaigns import campaign_group, dial
from .chat import chat, validate
from .completion import completion
from .console import console
from .demo import demo
from .doctor import doctor
from .graph import graph
from .insights import insights
from .lint import lint
from .rehearse import rehearse
from .replays import replay
from .runs import run_group
from .serve import serve
from .testing import test
from .trust import forget_number, secret_group
from .upkeep import backup, compact, copy, restore
from .workflows import workflow_group


@click.group(
    "voiceapi",
    cls=CommandGroup,
    commands=[
        backup,
        call_agent,
        campaign_group,
        chat,
        completion,
        compact,
        console,
        copy,
        demo,
        dial,
        doctor,
        forget_number,
        graph,
        insights,
        keys_group,
        lint,
        rehearse,
        replay,
        restore,
        run_group,
        secret_group,
        serve,
        test,
        validate,
        workflow_group,
    ],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="voiceapi")
def group() -> None:
    """Run voice agents defined as workflows: over the phone, by text, or simulated."""


@group.command("openapi", with_appcontext=False)
def write_openapi() -> None:
    """Write the OpenAPI document to standard output. No database is needed."""
    from ..api.openapi import document

    click.echo(json.dumps(document(), indent=2, ensure_ascii=False))
