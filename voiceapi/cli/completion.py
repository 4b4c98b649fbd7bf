"""The command `completion`: what a shell needs to complete the commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

NAME = "voiceapi"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Write the script that lets SHELL complete commands and options of `voiceapi`.

    For bash, put `eval "$(voiceapi completion bash)"` into ~/.bashrc; for zsh, put `eval "$(voiceapi completion zsh)"`
    into ~/.zshrc, below the line with compinit.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"The library click doesn't know {shell}.")
    click.echo(found(context.find_root().command, {}, NAME, f"_{NAME.upper()}_COMPLETE").source())
