"""Gin rummy for reinforcement learning: exact rules on a batched, compiled engine.

>>> import gymnasium, gin_env
>>> env = gymnasium.make("gin_env/GinRummy-v0")
>>> observation, info = env.reset(seed=1)
"""

import gymnasium

from gin_env.engine import IllegalAction
from gin_env.rules import PRESETS, Rules, preset

__all__ = ["PRESETS", "IllegalAction", "Rules", "preset"]

# By name, so that neither environment is imported before it is made. A module that is reloaded is registered once.
if "gin_env/GinRummy-v0" not in gymnasium.registry:
    gymnasium.register(
        id="gin_env/GinRummy-v0",
        entry_point="gin_env.seat:GinRummyEnv",
        vector_entry_point="gin_env.vector:GinRummyVectorEnv",
    )
