"""The subject of a rehearsal: a workflow's definition with all that its conversations depend on, loaded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..engine.actions import Function, LanguageModel
from ..engine.graph import Graph
from ..engine.validation.outline import Outline
from ..llm import selection
from ..service import Service
from ..store.tools import Tool
from ..tools import catalog
from ..tools.knowledge import documents
from ..tools.tool import RunnableTool


@dataclass(frozen=True)
class Subject:
    """A workflow to be rehearsed; it needs no database.

    :param functions: the functions of each node besides its edges, by node id.
    :param tools: those that can be run, by uuid.
    :param model: the configured language model; None where there is none to ask.
    """

    definition: Mapping[str, Any]
    graph: Graph
    configurations: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, tuple[Function, ...]] = field(default_factory=dict)
    tools: Mapping[str, RunnableTool] = field(default_factory=dict)
    model: LanguageModel | None = None

    def offered(self, id: str) -> tuple[Function, ...]:
        """What the model is offered at a node besides its edges."""
        return tuple(each for each in self.functions.get(id, ()) if not each.on_entry)

    @classmethod
    def of_definition(
        cls,
        definition: Mapping[str, Any],
        configurations: Mapping[str, Any] | None = None,
        tools: Iterable[Tool] = (),
        model: LanguageModel | None = None,
    ) -> Subject:
        """A definition that isn't stored, with the tools that it attaches.

        :param definition: one without errors (see `engine.validation.graph_rules.check`).
        :param tools: records of tools, which needn't be stored.
        :raises GraphError: for a definition that can't be run.
        """
        graph = Graph.read(definition)
        found = catalog.ready(tools)
        functions = catalog.offers(graph, found, documents.lookups(graph, {}))
        return cls(definition, graph, configurations or {}, functions, found, model)

    @classmethod
    def of_organization(
        cls, service: Service, organization: int, definition: Mapping[str, Any], configurations: Mapping[str, Any]
    ) -> Subject:
        """A definition with an organization's tools and documents, and the language model configured for it.

        :raises GraphError: for a definition that can't be run.
        """
        graph = Graph.read(definition)
        found = catalog.ready(catalog.attached(organization, Outline.of(definition)))
        functions = catalog.offers(graph, found, documents.lookups_for(organization, graph))
        model = selection.choose(service, organization, configurations)
        asked = None if selection.is_scripted(model) else model
        return cls(definition, graph, configurations, functions, found, asked)
