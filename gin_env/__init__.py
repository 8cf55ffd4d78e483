"""Gin rummy for reinforcement learning: exact rules on a batched, compiled engine.

    >>> import gymnasium, gin_env
    >>> env = gymnasium.make("gin_env/GinRummy-v0")
    >>> observation, info = env.reset(seed=1)
"""

from gin_env.engine import IllegalAction
from gin_env.rules import PRESETS, Rules, preset

__all__ = ["PRESETS", "IllegalAction", "Rules", "preset"]
