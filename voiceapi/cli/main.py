"""The commands: `voiceapi`, and `flask voiceapi` in a host app.

Exit codes: 0 good, 1 findings, 2 usage.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .. import __version__
from ..config import PREFIX
from ..conversations.conversation import Conversation
from ..conversations.local import LocalConversation
from ..engine.validation.check import check
from ..engine.validation.finding import Finding
from ..engine.validation.lint import lint
from ..engine.validation.outline import Outline
from ..errors import InvalidFields
from ..llm import selection
from ..llm.model_needs import model_needs
from ..organizations import api_keys
from ..store.base import find, require
from ..store.organizations import Organization
from ..store.workflows import Workflow
from ..strict_json import parse
from ..tools import offered
from ..workflows import node_types, versions
from .base import (
    ID,
    JSON,
    TEXT,
    CommandGroup,
    current_service,
    with_session,
)
from .campaigns import campaign_group, dial
from .runs import run_group
from .serve import serve
from .trust import forget_number, secret_group


@click.group(
    "voiceapi",
    cls=CommandGroup,
    commands=[campaign_group, dial, forget_number, run_group, secret_group, serve],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="voiceapi")
def group() -> None:
    """Run voice agents defined as workflows: over the phone, by text, or simulated."""


@group.command()
@click.argument("workflow")
@click.option(
    "--set", "variables", type=TEXT, multiple=True, metavar="NAME=VALUE", help="A variable of the initial context."
)
@JSON
@with_session
def chat(workflow: str, variables: tuple[str, ...], as_json: bool) -> None:
    """Talk to WORKFLOW, a definition's file or a stored workflow's id, by text.

    What you type is what the caller says; an empty line is silence, the end of the input hangs up. What fails, such as
    the language model, is written to standard error with its reason. A definition in a file uses the tools, documents
    and language model of the default organization.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    definition, configurations, stored = _definition(workflow)
    outline = Outline.of(definition)
    findings = check(outline, node_types.rules())
    if findings:
        raise click.ClickException(f"{workflow} can't be run: {findings[0].message} Try `voiceapi validate`.")
    context = dict(_pair(pair) for pair in variables)
    if stored is None:
        default = find(Organization, name=api_keys.DEFAULT_ORGANIZATION)
        organization, workflow_id = (None if default is None else default.id), None
    else:
        organization, workflow_id = stored.organization_id, stored.id
    service = current_service()
    if selection.is_scripted(selection.choose(service, organization, configurations)):
        usable = offered.usable_without_model(offered.attached(organization, outline))
        _show("warning", model_needs(outline, usable), err=True)
    conversation = LocalConversation(
        Conversation.from_definition(service, definition, configurations, context, organization, workflow_id),
        on_error=lambda error: click.echo(f"error: {error['processor']}: {error['error']}", err=True),
    )
    say = click.echo if not as_json else (lambda *_args, **_kwargs: None)
    for line in conversation.start():
        say(f"agent: {line}")
    while not conversation.is_over:
        try:
            text = input("you: " if sys.stdin.isatty() and not as_json else "")
        except (EOFError, KeyboardInterrupt):
            conversation.hang_up()
            break
        for line in conversation.say(text):
            say(f"agent: {line}")
    outcome = conversation.outcome()
    if as_json:
        found = {"transcript": conversation.transcript, **outcome, "errors": conversation.errors}
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        click.echo(f"-- {outcome['disposition']}; gathered: {json.dumps(outcome['gathered'], ensure_ascii=False)}")


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.UsageError(f"--set takes NAME=VALUE, not {text!r}.")
    return name, value


def _definition(workflow: str) -> tuple[Any, dict[str, Any], Workflow | None]:
    """The definition and configurations of a file or of a stored workflow, and which one that is."""
    if re.fullmatch("[0-9]{1,18}", workflow) and not Path(workflow).exists():
        record = require(Workflow, f"There is no workflow with id {workflow}.", id=int(workflow))
        version = versions.current(record)
        return version.definition, version.configurations, record
    return _read_file(workflow), {}, None


def _read_file(name: str) -> Any:
    """The definition in a JSON file, alone or as the body of a request to create it."""
    shown = click.format_filename(name)
    try:
        found = parse(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise click.UsageError(f"{shown} can't be read: {error.strerror}.") from None
    except UnicodeError:
        raise click.UsageError(f"{shown} is not text in UTF-8.") from None
    except InvalidFields as invalid:
        first = invalid.errors[0]
        place = ".".join(str(part) for part in first.path)
        prefix = "Value error, " if first.type == "value_error" else ""
        text = f"{shown} is not JSON that can be used: {prefix}{first.message}, at {place or 'its top'}."
        raise click.UsageError(text) from None
    return found.get("workflow_definition", found) if isinstance(found, dict) else found


@group.command(with_appcontext=False)
@click.argument("file")
@JSON
def validate(file: str, as_json: bool) -> None:
    """Check the workflow definition in FILE. Exit code 1 when it isn't valid."""
    outline = Outline.of(_read_file(file))
    errors = check(outline, node_types.rules())
    warnings = lint(outline, node_types.rules())
    if not os.environ.get(f"{PREFIX}LLM_URL"):
        warnings += model_needs(outline)
    if as_json:
        found = {"is_valid": not errors, "errors": errors, "warnings": warnings}
        click.echo(json.dumps(found, default=lambda item: item.as_dict(), ensure_ascii=False, indent=2))
    else:
        _show("error", errors)
        _show("warning", warnings)
        click.echo(f"{click.format_filename(file)} is {'not valid' if errors else 'valid'}.")
    sys.exit(1 if errors else 0)


def _show(kind: str, findings: Iterable[Finding], *, err: bool = False) -> None:
    """Write a line for each finding."""
    for item in findings:
        place = " ".join(part for part in (item.kind, item.id, item.field) if part)
        click.echo(f"{kind}: {place}: {item.message}", err=err)


@group.group("keys", cls=CommandGroup)
def keys_group() -> None:
    """API keys: create, list, archive, reactivate."""


@keys_group.command("create")
@click.argument("name", type=TEXT)
@click.option(
    "--organization", type=TEXT, default=api_keys.DEFAULT_ORGANIZATION, show_default=True, help="Made when it is new."
)
@with_session
def create_key(name: str, organization: str) -> None:
    """Make a key called NAME; it is written to standard output, alone, and stored nowhere."""
    owner = api_keys.get_or_create_organization(current_service(), organization)
    click.echo(api_keys.create(owner.id, name)[1])


@keys_group.command("list")
@click.option("--organization", type=TEXT, default=api_keys.DEFAULT_ORGANIZATION, show_default=True)
@JSON
@with_session
def list_keys(organization: str, as_json: bool) -> None:
    """List the keys of an organization, archived ones too."""
    records = api_keys.listed(api_keys.require_organization(organization).id, include_archived=True)
    rows = [
        {
            "id": record.id,
            "name": record.name,
            "key_prefix": record.key_prefix,
            "is_active": record.is_active,
            "last_used_at": record.last_used_at and record.last_used_at.isoformat(),
        }
        for record in records
    ]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        state = "active" if row["is_active"] else "archived"
        click.echo(f"{row['id']:>4}  {row['key_prefix']}...  {state:<8}  {row['name']}")


@keys_group.command("archive")
@click.argument("key_id", type=ID)
@click.option("--organization", type=TEXT, default=api_keys.DEFAULT_ORGANIZATION, show_default=True)
@with_session
def archive_key(key_id: int, organization: str) -> None:
    """Refuse the key with id KEY_ID from now on."""
    api_keys.archive(api_keys.require_organization(organization).id, key_id)
    click.echo(f"Key {key_id} is archived.")


@keys_group.command("reactivate")
@click.argument("key_id", type=ID)
@click.option("--organization", type=TEXT, default=api_keys.DEFAULT_ORGANIZATION, show_default=True)
@with_session
def reactivate_key(key_id: int, organization: str) -> None:
    """Accept the key with id KEY_ID again."""
    api_keys.reactivate(api_keys.require_organization(organization).id, key_id)
    click.echo(f"Key {key_id} is active.")


@group.command("openapi", with_appcontext=False)
def write_openapi() -> None:
    """Write the OpenAPI document to standard output. No database is needed."""
    from ..api.openapi import document

    click.echo(json.dumps(document(), indent=2, ensure_ascii=False))


@group.command()
@JSON
@with_session
def doctor(as_json: bool) -> None:
    """Check the public address, the language models and every carrier. Exit code 1 when something is wrong."""
    from ..calls.doctor import examine

    findings = list(examine(current_service()))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            click.echo(f"{finding.subject}: {finding.sentence}")
    sys.exit(1 if any(finding.wrong for finding in findings) else 0)
