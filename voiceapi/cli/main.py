"""The commands: `voiceapi`, and `flask voiceapi` in a host app.

Exit codes: 0 good, 1 findings, 2 usage.
"""

from __future__ import annotations

import json
from importlib import import_module

import click

from .. import __version__
from .base import CommandGroup
from .loading import loading

# The module of this package that has a command, and the command's name there.
COMMANDS = {
    "backup": ("upkeep", "backup"),
    "call": ("call", "call_agent"),
    "campaign": ("campaigns", "campaign_group"),
    "chat": ("chat", "chat"),
    "compact": ("upkeep", "compact"),
    "connect": ("connect", "connect_number"),
    "console": ("console", "console"),
    "copy": ("upkeep", "copy"),
    "demo": ("demo", "demo"),
    "dial": ("campaigns", "dial"),
    "doctor": ("upkeep", "doctor"),
    "forget": ("upkeep", "forget_number"),
    "graph": ("graph", "graph"),
    "insights": ("insights", "insights"),
    "keys": ("api_keys", "keys_group"),
    "lint": ("lint", "lint"),
    "rehearse": ("rehearse", "rehearse"),
    "relay": ("serve", "relay"),
    "replay": ("replays", "replay"),
    "restore": ("upkeep", "restore"),
    "run": ("runs", "run_group"),
    "secret": ("upkeep", "secret_group"),
    "serve": ("serve", "serve"),
    "test": ("testing", "test"),
    "validate": ("chat", "validate"),
    "workflow": ("workflows", "workflow_group"),
}


class LazyGroup(CommandGroup):
    """Imports a command of COMMANDS when it is asked for, because all of them take a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, name = COMMANDS[cmd_name]
            with loading():
                found: click.Command = getattr(import_module(f".{module}", __package__), name)
            self.add_command(found)
        return super().get_command(ctx, cmd_name)


@click.group("voiceapi", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="voiceapi")
def group() -> None:
    """Run voice agents defined as workflows: over the phone, by text, or simulated."""


@group.command("openapi", with_appcontext=False)
def write_openapi() -> None:
    """Write the OpenAPI document to standard output. No database is needed."""
    from ..api.openapi import document

    click.echo(json.dumps(document(), indent=2, ensure_ascii=False))
