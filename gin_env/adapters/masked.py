"""The mask of legal actions inside the observation, for libraries that look for it there and not in the infos.

>>> import gymnasium, gin_env
>>> from gin_env.adapters.masked import MaskedObservation
>>> env = MaskedObservation(gymnasium.make("gin_env/GinRummy-v0"), observation="obs", mask="mask")
>>> observation, info = env.reset(seed=1)
>>> sorted(observation)
['mask', 'obs']
"""

from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs


class MaskedObservation(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Observes ``{observation: what env observes, mask: info["action_mask"]}``.

    Libraries differ in the names: RLlib's action-masking module asks for ``observations`` and ``action_mask``, Tianshou
    for ``obs`` and ``mask``.

    Args:
        env: An environment that gives ``action_mask`` in its infos: `gin_env.seat.GinRummyEnv`, wrapped or not.
        observation: Key of the observation.
        mask: Key of the mask.
        infos: Whether the infos are passed on. Without them each step's info is empty, for libraries that ask for the
            same keys in every step: Tianshou stores infos, and trains on nothing once one has what another lacks.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        observation: str = "observations",
        mask: str = "action_mask",
        infos: bool = True,
    ) -> None:
        RecordConstructorArgs.__init__(self, observation=observation, mask=mask, infos=infos)
        super().__init__(env)
        if not isinstance(env.action_space, spaces.Discrete):
            raise ValueError(f"the action space is {env.action_space}; expected Discrete")
        self._names = (observation, mask)
        self._infos = infos
        space = spaces.Box(0, 1, shape=(int(env.action_space.n),), dtype=np.int8)
        self.observation_space = spaces.Dict({observation: env.observation_space, mask: space})

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Starts an episode, as the environment does."""
        return self._join(*self.env.reset(seed=seed, options=options))

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], SupportsFloat, bool, bool, dict[str, Any]]:
        """Plays an action, as the environment does."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        joined, info = self._join(observation, info)
        return joined, reward, terminated, truncated, info

    def _join(self, observation: np.ndarray, info: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        joined = dict(zip(self._names, (observation, info["action_mask"]), strict=True))
        return joined, info if self._infos else {}
