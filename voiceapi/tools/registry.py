"""The tools that can be run, by the category of their records."""

from __future__ import annotations

from collections.abc import Mapping

from .calculator import Calculator
from .end_call import EndCall
from .http_api import HttpApi
from .tool import RunnableTool
from .transfer_call import TransferCall

CATEGORIES: Mapping[str, type[RunnableTool]] = {
    "http_api": HttpApi,
    "end_call": EndCall,
    "transfer_call": TransferCall,
    "calculator": Calculator,
}
