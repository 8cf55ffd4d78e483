"""Stable-Baselines3: the vector environment as a ``VecEnv``, for MaskablePPO of sb3-contrib.

>>> from sb3_contrib import MaskablePPO
>>> from gin_env.adapters.sb3 import GinRummyVecEnv
>>> model = MaskablePPO("MlpPolicy", GinRummyVecEnv(256, opponent="agents:random", reward_scale=0.05))
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from gin_env.rules import Rules
from gin_env.vector import GinRummyVectorEnv, Opponent, as_opponent

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError(
        f'gin_env.adapters.sb3 needs stable-baselines3: pip install "gin-env[sb3]" ({error})', name=error.name
    ) from error

# What `get_attr` gives: the same for every table. The others are of the batch, and no table's own.
_SHARED = ("rules", "match", "opponent", "reward_scale", "render_mode", "observation_space", "action_space")

# What an info says of a hand that has ended.
_HAND = (
    "ending",
    "winner",
    "points",
    "own_deadwood",
    "opponent_deadwood",
    "turns",
    "own_score",
    "opponent_score",
    "match_winner",
)

Indices = int | Sequence[int] | None


class GinRummyVecEnv(VecEnv):
    """N tables of gin rummy for Stable-Baselines3, straight on `gin_env.vector.GinRummyVectorEnv`.

    There is no object for each table, so hundreds of them cost little more than one. Observations, opponents and how
    episodes end are described there. Illegal actions raise `gin_env.IllegalAction`: train with masks.

    The masks are in `action_masks`, which MaskablePPO finds by itself, and not in the infos. An info is empty except at
    the end of a hand, where it says how the hand ended (``ending``, ``winner``, ``points`` and so on), and of an
    episode, where it also has ``terminal_observation``, ``TimeLimit.truncated`` and ``episode``: what ``VecMonitor``
    counts, so that the trainer's log shows it without that wrapper (``r`` sum of the rewards, ``l`` decisions, ``t``
    seconds).

    Seeds are Stable-Baselines3's: `seed` gives table i the seed ``seed + i``, with which it plays as
    ``gin_env/GinRummy-v0`` does with that seed. Keep the seeds of training and of an evaluation apart by more than the
    number of tables.

    ``set_attr("opponent", ...)`` replaces the opponent, for example by an earlier copy of the learner.

    Args:
        num_envs: Number of tables.
        rules: Rules, or the name of a preset.
        match: Whether an episode is a match to the rules' target instead of one hand.
        opponent: ``"module:spec"`` or an object, as for `gin_env.vector.GinRummyVectorEnv`.
        reward_scale: Reward for each point; 0.05 makes 20 points one unit.
        seed: For the first reset. None draws one.
        render_mode: None, ``"ansi"``, or ``"rgb_array"``, which needs Pillow.

    Raises:
        ValueError: If an argument is unknown, out of range or not played by the engine.
    """

    def __init__(
        self,
        num_envs: int = 1,
        rules: Rules | str = "cardpuzzle",
        match: bool = False,
        opponent: str | Opponent = "agents:greedy",
        reward_scale: float = 1.0,
        seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._check_scale(reward_scale)
        # Each call must return new arrays: the trainer stores an observation after it has made the next step.
        self.tables = GinRummyVectorEnv(
            num_envs,
            rules=rules,
            match=match,
            opponent=opponent,
            autoreset_mode=AutoresetMode.SAME_STEP,
            render_mode=render_mode,
        )
        self.rules, self.match, self.reward_scale = self.tables.rules, match, reward_scale
        self.render_mode = render_mode  # the base class asks for it by get_attr
        self._masks = np.zeros((num_envs, self.rules.num_actions), dtype=np.int8)
        self._actions: np.ndarray | None = None
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._start = time.perf_counter()
        # A plain Discrete: what a model saves of it loads without this package.
        super().__init__(num_envs, self.tables.single_observation_space, spaces.Discrete(self.rules.num_actions))
        if seed is not None:
            self.seed(seed)

    @property
    def opponent(self) -> Opponent:
        """Who has the other seat at every table."""
        return self.tables.opponent

    # ------------------------------------------------------------------------------------------------------- playing

    def reset(self) -> np.ndarray:
        """Starts new episodes at all tables and returns observations, (N, D) float32.

        Seeds given before are used once. Of options (``set_options``) ``deck`` and ``dealer`` count, which give a deal
        as in `gin_env.seat.GinRummyEnv.reset`.

        Raises:
            ValueError: If some tables are given a deck or dealer and others are not.
        """
        options: dict[str, Any] = {}
        for name in ("deck", "dealer"):
            given = [table[name] for table in self._options if name in table]
            if given and len(given) < self.num_envs:
                raise ValueError(f"{len(given)} of {self.num_envs} tables are given a {name}; expected all or none")
            if given:
                options[name + "s"] = given
        seeds = None if all(seed is None for seed in self._seeds) else self._seeds
        observations, infos = self.tables.reset(seed=seeds, options=options)
        self._reset_seeds()
        self._reset_options()
        self._masks = infos["action_mask"]
        self._returns[:] = 0
        self._lengths[:] = 0
        self.reset_infos = self._infos(infos, np.zeros(self.num_envs, dtype=np.bool_))
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Keeps (N,) actions for `step_wait`."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Plays the actions, and the opponent's until the learner is to move again.

        Returns:
            Observations (N, D) float32, rewards (N,) float32, dones (N,) bool, and an info for each table.

        Raises:
            IllegalAction: If an action is illegal; nothing has changed.
        """
        if self._actions is None:
            raise RuntimeError("step_wait() needs a step_async() before it")
        actions, self._actions = self._actions, None
        observations, points, terminated, truncated, batch = self.tables.step(actions)
        self._masks = batch["action_mask"]
        rewards = (points * self.reward_scale).astype(np.float32)
        dones = terminated | truncated
        self._returns += rewards
        self._lengths += 1
        infos = self._infos(batch, dones)
        seconds = round(time.perf_counter() - self._start, 6)
        for row in np.flatnonzero(dones).tolist():
            infos[row] |= {
                "terminal_observation": batch["final_obs"][row],
                "TimeLimit.truncated": bool(truncated[row]),
                "episode": {"r": float(self._returns[row]), "l": int(self._lengths[row]), "t": seconds},
            }
        self._returns[dones] = 0
        self._lengths[dones] = 0
        return observations, rewards, dones, infos

    def _infos(self, batch: dict[str, Any], dones: np.ndarray) -> list[dict[str, Any]]:
        """Returns an info for each table: how its hand ended, where one has."""
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        # Of a table whose episode is over the batch's own infos are of the next episode.
        for source, wanted in ((batch, ~dones), (batch.get("final_info", {}), dones)):
            rows = np.flatnonzero(source["_ending"] & wanted).tolist() if "_ending" in source else []
            names = [name for name in source if name in _HAND] if rows else []
            for name in names:
                for row, value in zip(rows, source[name][rows].tolist(), strict=True):
                    infos[row][name] = value
        return infos

    # --------------------------------------------------------------------------------------------------------- masks

    def action_masks(self) -> np.ndarray:
        """Returns (N, A) int8, 1 for each legal action."""
        return self._masks.copy()

    def _action_mask(self, table: int) -> np.ndarray:
        return self._masks[table].copy()

    # --------------------------------------------------------------------------------- Stable-Baselines3's other doors

    def close(self) -> None:
        """Does what Gymnasium's close does: nothing is held."""
        self.tables.close()

    def has_attr(self, attr_name: str) -> bool:
        """Says whether `get_attr` has it."""
        return attr_name in _SHARED or attr_name == "action_masks"

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Returns an attribute of each table.

        Raises:
            AttributeError: If tables have no such attribute.
        """
        rows = list(self._get_indices(indices))
        if attr_name == "action_masks":
            return [partial(self._action_mask, row) for row in rows]
        if attr_name not in _SHARED:
            raise AttributeError(f"tables have no attribute {attr_name!r}; expected one of {', '.join(_SHARED)}")
        return [getattr(self, attr_name)] * len(rows)

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Sets ``opponent`` or ``reward_scale``, for all tables.

        Raises:
            AttributeError: If the attribute cannot be set.
            ValueError: If only some tables are named, or the value does not fit.
        """
        if attr_name not in ("opponent", "reward_scale"):
            raise AttributeError(f"attribute {attr_name!r} cannot be set; expected opponent or reward_scale")
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ValueError(f"{attr_name} is the same at all tables, and only {indices!r} are named")
        if attr_name == "opponent":
            self.tables.opponent = as_opponent(value)
        else:
            self._check_scale(value)
            self.reward_scale = value

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls ``action_masks`` or ``render`` of each table.

        Raises:
            AttributeError: If tables have no such method.
        """
        methods: dict[str, Callable[..., Any]] = {"action_masks": self.action_masks, "render": self._draw}
        if method_name not in methods:
            raise AttributeError(f"tables have no method {method_name!r}; expected one of {', '.join(methods)}")
        results = methods[method_name](*method_args, **method_kwargs)
        return [results[row] for row in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Returns False for each table: there are no wrappers inside."""
        return [False for _ in self._get_indices(indices)]

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the seeds of the next reset, ``seed + i`` for table i, and returns them; None draws a seed.

        Raises:
            ValueError: If a seed is out of range.
        """
        if seed is not None and not 0 <= seed <= (1 << 64) - self.num_envs:
            raise ValueError(f"seed is {seed}; expected 0 to 2**64 - {self.num_envs}")
        return super().seed(seed)

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Returns a picture of each table; `render` tiles them."""
        return self._draw()

    def render(self, mode: str | None = None) -> Any:
        """Returns all tables as the learner sees them: a text in mode "ansi", one tiled picture in "rgb_array"."""
        if self.render_mode == "ansi" and mode in (None, "ansi"):
            return "\n".join(self._draw())
        return super().render(mode)

    def _draw(self) -> tuple[Any, ...]:
        drawn = self.tables.render()
        return (None,) * self.num_envs if drawn is None else drawn

    @staticmethod
    def _check_scale(scale: float) -> None:
        if not 0 < scale < float("inf"):
            raise ValueError(f"reward_scale is {scale}; expected more than 0 and finite")
