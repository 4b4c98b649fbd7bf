"""From the address that the start prints to the run of a call, in the browser."""

from __future__ import annotations

import pytest
from asking import Serve
from browsing import Open
from steps import walk

pytestmark = pytest.mark.long


def test_from_the_printed_address_to_a_run(serve: Serve, open_tab: Open) -> None:
    tab = open_tab(serve().printed_address(), saves_itself=True)
    walk(tab)
