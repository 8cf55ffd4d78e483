"""The environments for RLlib, with observations as its action-masking module asks for them.

RLlib makes an environment from a class or a function and a dictionary of arguments:

>>> from gin_env.adapters.rllib import SeatEnv
>>> config = PPOConfig().environment(SeatEnv, env_config={"opponent": "agents:random"})  # doctest: +SKIP
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import BaseWrapper

from gin_env import aec
from gin_env.adapters.masked import MaskedObservation
from gin_env.seat import GinRummyEnv

try:
    from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
except ImportError as error:
    raise ImportError(
        f'gin_env.adapters.rllib needs RLlib: pip install "gin-env[rllib]" ({error})', name=error.name
    ) from error


class SeatEnv(MaskedObservation):
    """One seat against a player: observations are ``{"observations": (D,) float32, "action_mask": (A,) int8}``.

    Args:
        config: The arguments of `gin_env.seat.GinRummyEnv`.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(GinRummyEnv(**dict(config or {})))


class _RenamedObservation(BaseWrapper):
    """Observes ``observations`` where the environment observes ``observation``."""

    def __init__(self, env: AECEnv) -> None:
        super().__init__(env)
        self._spaces = {agent: self._rename(env.observation_space(agent)) for agent in env.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space:
        return self._spaces[agent]

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        seen = self.env.observe(agent)
        return {"observations": seen["observation"], "action_mask": seen["action_mask"]}

    @staticmethod
    def _rename(space: spaces.Dict) -> spaces.Dict:
        return spaces.Dict({"observations": space["observation"], "action_mask": space["action_mask"]})


class BothSeatsEnv(PettingZooEnv):
    """Both seats, "seat_0" and "seat_1", as a multi-agent environment of RLlib with observations as in `SeatEnv`.

    Args:
        config: The arguments of `gin_env.aec.GinRummyAEC`.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(_RenamedObservation(aec.env(**dict(config or {}))))
