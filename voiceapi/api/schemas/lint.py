"""Schemas of lint: a definition that isn't stored, and the findings about one."""

from __future__ import annotations

from ...engine.validation.lint_rules import RULES, SEVERITIES
from .base import QuerySchema, ResponseSchema
from .definitions import DefinitionSchema
from .fields import Choice, Flag, Integer, Items, Length, Model, Object, Range, Text
from .workflows import MOST_TOOLS, ComingToolSchema, FindingSchema


class LintSchema(DefinitionSchema):
    template_context_variables = Object(
        load_default=None, allow_none=True, metadata={"description": "the stored ones when absent"}
    )
    tools = Items(
        Model(ComingToolSchema),
        load_default=list,
        validate=Length(max=MOST_TOOLS),
        metadata={"description": "tools that come with the definition, as when it is created with them"},
    )


class LintQuerySchema(QuerySchema):
    version = Integer(
        load_default=None, validate=Range(min=1), metadata={"description": "the number of a version; else the draft"}
    )


class LintFindingSchema(FindingSchema):
    code = Text(required=True, validate=Choice(tuple(RULES)))
    severity = Text(required=True, validate=Choice(SEVERITIES))
    suppressible = Flag(required=True, metadata={"description": "lint_ignore may name the code"})
    docs = Text(required=True, metadata={"description": "the page about the rule, in the documentation's folder"})


class LintAnswerSchema(ResponseSchema):
    findings = Items(Model(LintFindingSchema), required=True)
    errors = Integer(required=True, metadata={"description": "how many of the findings are errors"})
    warnings = Integer(required=True)
    notes = Integer(required=True)
    suppressed = Integer(required=True, metadata={"description": "how many more lint_ignore leaves out"})
