"""Rummy40: jokers, melds on the table, two or four players. Laid out as the floor of gin is.

>>> from gin_env import rummy40
>>> tables = rummy40.engine.new_tables("rummy40:seats=4", 2, seed=7)
>>> tables["num_cards"].tolist()
[[10, 10, 10, 10], [10, 10, 10, 10]]
"""

import importlib
from typing import TYPE_CHECKING

from gin_env.rummy40.rules import PRESETS, Rummy40Rules, as_rules, load_rules, preset

__all__ = [
    "PRESETS",
    "IllegalAction",
    "Rummy40Rules",
    "aec",
    "as_rules",
    "engine",
    "load_rules",
    "preset",
    "tables",
    "view",
]

if TYPE_CHECKING:
    from gin_env.rummy40 import aec, engine, tables, view
    from gin_env.rummy40.engine import IllegalAction
else:
    # What needs numba is loaded when it is first asked for, as in `gin_env`.
    def __getattr__(name: str) -> object:
        if name == "IllegalAction":
            return importlib.import_module("gin_env.rummy40.engine").IllegalAction
        if name in ("aec", "engine", "tables", "view"):
            return importlib.import_module(f"gin_env.rummy40.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
