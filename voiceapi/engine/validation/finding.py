"""One finding about a workflow definition."""

from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True)
class Item:
    """What is wrong and where: `field` is the path inside the node, the edge or the workflow, from its top.

    `id` is that of the node or edge; None for the workflow and for an item that has no readable id.
    """

    kind: Literal["node", "edge", "workflow"]
    id: str | None
    field: str | None
    message: str

    def as_dict(self) -> dict[str, str | None]:
        """Return the finding as answers carry it."""
        return asdict(self)
