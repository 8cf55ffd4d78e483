"""Both seats of many tables, for people who write their own training loop.

>>> from gin_env.selfplay import SelfPlay
>>> game = SelfPlay(num_tables=256, rules="cardpuzzle", seed=1)
>>> turn = game.reset()
>>> turn = game.step(turn.masks.argmax(axis=1))     # your policy here
>>> turn.observations.shape, turn.movers.shape, turn.rewards.shape
((256, 487), (256,), (256, 2))

Nothing is copied: the arrays of a `Turn` are the same at every call and are written anew by the next `step`, so
``torch.from_numpy`` makes tensors of them once and for all. What is to be kept must be copied by the caller, straight
to where it is kept.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gin_env import engine
from gin_env.engine import EPISODE_ENDED
from gin_env.rules import Rules, as_rules
from gin_env.spaces import refuse_waiting
from gin_env.tables import TRUNCATED
from gin_env.view import look, observation_size


class Turn(NamedTuple):
    """What the movers of N tables see, and what the last actions brought.

    D is 487 and A is 108, or 753 and 449 where the rules are manual (`gin_env.view`, `gin_env.actions`).
    """

    observations: np.ndarray  # (N, D) float32, of the seat to move
    masks: np.ndarray  # (N, A) int8, 1 for each legal action, at least one in each row
    movers: np.ndarray  # (N,) int8, the seat to move
    rewards: np.ndarray  # (N, 2) int32, points that each seat won by the last action, zero-sum
    ended: np.ndarray  # (N,) bool, whether it ended an episode; the observation is the next one's then
    truncated: np.ndarray  # (N,) bool, those of them that were broken off at the cap on draws


class SelfPlay:
    """N tables at which the caller moves both seats. A hand that ends is followed by the next at once.

    Args:
        num_tables: Number of tables.
        rules: Rules, or text that names them (`gin_env.rules.as_rules`).
        match: Whether an episode is a match to the rules' target instead of one hand.
        seed: Decides every deal; table i gets the same cards whatever the number of tables.

    Attributes:
        tables: The tables themselves (`gin_env.tables`), for results and for `gin_env.view.state`. They are the
            engine's own: change them only if you mean it.
        rules: What is played.

    Raises:
        ValueError: If an argument is unknown or out of range.
    """

    def __init__(
        self, num_tables: int, *, rules: Rules | str = "cardpuzzle", match: bool = False, seed: int = 0
    ) -> None:
        self.rules = as_rules(rules)
        self.match = match
        self.seed = seed
        self.tables = engine.new_tables(self.rules, num_tables, seed=seed, match=match)
        self._turn = Turn(
            observations=np.empty((num_tables, observation_size(self.rules)), dtype=np.float32),
            masks=np.empty((num_tables, self.rules.num_actions), dtype=np.int8),
            movers=np.empty(num_tables, dtype=np.int8),
            rewards=np.zeros((num_tables, 2), dtype=np.int32),
            ended=np.zeros(num_tables, dtype=np.bool_),
            truncated=np.zeros(num_tables, dtype=np.bool_),
        )
        self._over = np.zeros(num_tables, dtype=np.int8)

    def reset(self, seed: int | None = None) -> Turn:
        """Deals every table anew.

        Args:
            seed: Decides every deal from here on; None takes the last seed again.

        Raises:
            ValueError: If the seed is out of range.
        """
        seed = self.seed if seed is None else seed
        self.tables[:] = engine.new_tables(self.rules, self.tables.size, seed=seed, match=self.match)
        self.seed = seed
        self._turn.rewards[:] = 0
        self._turn.ended[:] = False
        self._turn.truncated[:] = False
        return self._look()

    def step(self, actions: ArrayLike) -> Turn:
        """Plays one action of the mover at every table.

        Args:
            actions: (N,) integers.

        Raises:
            IllegalAction: If an action is illegal; nothing has changed.
            ValueError: If the actions do not fit the tables.
        """
        chosen = np.asarray(actions)
        if chosen.dtype.kind in "iu" and chosen.shape == self.tables.shape:
            refuse_waiting(self.tables, np.flatnonzero(chosen < 0).tolist(), chosen)
        turn = self._turn
        engine.step(self.tables, chosen, redeal=True, points=turn.rewards, over=self._over)
        np.equal(self._over, EPISODE_ENDED, out=turn.ended)
        np.logical_and(turn.ended, self.tables["ending"] == TRUNCATED, out=turn.truncated)
        return self._look()

    def _look(self) -> Turn:
        look(self.tables, None, self._turn.observations, self._turn.masks)
        self._turn.movers[:] = self.tables["mover"]
        return self._turn
