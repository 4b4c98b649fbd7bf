"""One finding about a workflow definition: an error or a warning."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """What is wrong and where: `field` is a path inside the node or edge, or inside the definition for "workflow".

    `id` is that of the node or edge; None for "workflow", and for a node or edge without a readable id.
    """

    kind: Literal["node", "edge", "workflow"]
    id: str | None
    field: str | None
    message: str

    def as_dict(self) -> dict[str, str | None]:
        """Return the finding as the API answers it."""
        return {"kind": self.kind, "id": self.id, "field": self.field, "message": self.message}
