"""The frame of the console in a browser."""

from __future__ import annotations

import pytest
from browsing import Tab

pytestmark = pytest.mark.long


def test_home(tab: Tab) -> None:
    tab.heading("Home")
    assert "key" not in tab.page.url
