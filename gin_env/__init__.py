"""Gin rummy for reinforcement learning: exact rules on a batched, compiled engine.

>>> import gymnasium, gin_env
>>> env = gymnasium.make("gin_env/GinRummy-v0")
>>> observation, info = env.reset(seed=1)
"""

import importlib
from typing import TYPE_CHECKING

import gymnasium

from gin_env.rules import PRESETS, Rules, as_rules, load_rules, preset

__all__ = [
    "PRESETS",
    "IllegalAction",
    "Rules",
    "aec",
    "as_rules",
    "engine",
    "load_rules",
    "preset",
    "tables",
    "view",
]

if TYPE_CHECKING:
    from gin_env import aec, engine, tables, view
    from gin_env.engine import IllegalAction
else:
    # What needs numba is loaded when it is first asked for: numba takes longer than all the rest, and rules and help
    # texts do without it. Hidden from type checkers, which would take any name for an attribute of the module.
    def __getattr__(name: str) -> object:
        if name == "IllegalAction":
            return importlib.import_module("gin_env.engine").IllegalAction
        if name in ("aec", "engine", "tables", "view"):
            return importlib.import_module(f"gin_env.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


# By name, so that no environment is imported before it is made. A module that is reloaded is registered once.
for _id, _folder, _name in (
    ("gin_env/GinRummy-v0", "gin_env", "GinRummy"),
    ("gin_env/Rummy40-v0", "gin_env.rummy40", "Rummy40"),
):
    if _id not in gymnasium.registry:
        gymnasium.register(
            id=_id,
            entry_point=f"{_folder}.seat:{_name}Env",
            vector_entry_point=f"{_folder}.vector:{_name}VectorEnv",
        )
