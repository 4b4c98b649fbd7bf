"""One finding about a workflow definition: which rule it breaks, and where."""

import dataclasses
from dataclasses import dataclass
from typing import Literal

from .lint_rules import RULES, Severity


@dataclass(frozen=True)
class Finding:
    """What is wrong and where: `field` is a path inside the node or edge, or inside the definition for "workflow".

    `id` is that of the node or edge; None for "workflow", and for a node or edge without a readable id. `code` is the
    rule's, a key of RULES.
    """

    kind: Literal["node", "edge", "workflow"]
    id: str | None
    field: str | None
    message: str
    code: str = dataclasses.field(default="", compare=False)

    @property
    def severity(self) -> Severity:
        """How severe it is, as its rule says."""
        return RULES[self.code].severity

    def as_dict(self) -> dict[str, str | None]:
        """Return the finding as validation answers it."""
        return {"kind": self.kind, "id": self.id, "field": self.field, "message": self.message}
