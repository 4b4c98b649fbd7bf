"""Stored workflows with their conversation cases, and the language model that is configured for those in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click
from flask.cli import with_appcontext

from ..engine.ports import LanguageModel
from ..llm import selection
from ..organizations import api_keys
from ..rehearsal import testing
from ..rehearsal.cases import ModelKind
from ..rehearsal.subject import Subject
from ..service import Service
from ..store.base import find, require
from ..store.organizations import Organization
from ..store.workflows import Workflow
from ..workflows import versions
from .base import current_service, with_session
from .case_sets import CaseSet
from .definitions import UNKNOWN


@with_appcontext
@with_session
def stored_set(id: int, override: ModelKind | None = None) -> CaseSet:
    """The enabled cases of a stored workflow, with its draft or else its released version.

    :param override: what speaks in cases that aren't played.
    :raises click.UsageError: when it has none.
    :raises InvalidInput: when the version can't be run.
    """
    workflow = require(Workflow, UNKNOWN.format(id), id=id)
    version = versions.current(workflow)
    versions.load_graph(workflow, version)
    cases = tuple(
        replace(case, context={**version.template_context_variables, **case.context}).spoken_by(override)
        for case in testing.read(testing.stored(workflow))
    )
    if not cases:
        raise click.UsageError(f"Workflow {id} has no conversation cases that are enabled.")
    subject = Subject.of_organization(
        current_service(), workflow.organization_id, version.definition, version.configurations
    )
    name = f"workflow {id}"
    return CaseSet(name, name, workflow.name, subject, cases)


@with_appcontext
def configured_model(configurations: Mapping[str, Any]) -> LanguageModel | None:
    """The language model of `model_for`, in the command's service."""
    return model_for(current_service(), configurations)


def model_for(service: Service, configurations: Mapping[str, Any]) -> LanguageModel | None:
    """The language model that the default organization's agents ask; None when it is the scripted one."""
    with service.store.session():
        default = find(Organization, name=api_keys.DEFAULT_ORGANIZATION)
        model = selection.choose(service, None if default is None else default.id, configurations)
    return None if selection.is_scripted(model) else model
