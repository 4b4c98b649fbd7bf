"""Which module speaks a carrier's dialect. A carrier that isn't here is stored, but can't be called through."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .carrier import Account, Carrier

# By the names in `providers`. The simulator isn't a dialect: it lives on the service's own threads.
CARRIERS: Mapping[str, Callable[[Account], Carrier]] = {}
