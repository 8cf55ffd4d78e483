"""Spaces that the environments share: observations, action masks, and actions whose samples are legal."""

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from gymnasium import spaces

from gin_env import engine
from gin_env.actions import TAKE
from gin_env.cards import NUM_CARDS
from gin_env.rules import Rules
from gin_env.tables import Tables
from gin_env.view import MANUAL_SCALAR, PLANE, SCALAR, observation_size

_MOST_DEADWOOD = 110  # points of eleven cards


def observation_space(rules: Rules) -> spaces.Box:
    """Returns the space of one observation, with bounds that hold for any position under the rules."""
    size = observation_size(rules)
    low = np.zeros(size, dtype=np.float32)
    high = np.ones(size, dtype=np.float32)
    tens = _MOST_DEADWOOD / 10
    after = PLANE["deadwood_after"]
    high[after : after + NUM_CARDS] = tens
    bonus = max(rules.gin_bonus, rules.big_gin_bonus or 0, rules.undercut_bonus)
    # The last hand of a match may start one point short of the target, and spades may double it.
    target = rules.target or 1
    most_score = (target + 2 * (_MOST_DEADWOOD + bonus)) / target
    for name, bound in (
        ("limit", tens),
        ("stock", 2),
        ("draws", 7),
        ("deadwood", tens),
        ("take_saves", tens),
        ("opponent_known_count", 2),
        ("returned", 13),
        ("own_score", most_score),
        ("opponent_score", most_score),
    ):
        high[SCALAR[name]] = bound
    low[SCALAR["take_saves"]] = -tens
    if rules.manual:
        high[[MANUAL_SCALAR["knocker_deadwood"], MANUAL_SCALAR["unlaid"]]] = tens
    return spaces.Box(low, high, dtype=np.float32)


def state_space(rules: Rules) -> spaces.Box:
    """Returns the space of the hidden state (`gin_env.view.state`), the same under all rules."""
    return spaces.Box(0, 1, shape=(3 * NUM_CARDS,), dtype=np.float32)


def mask_space(num_actions: int) -> spaces.Box:
    """Returns the space of one action mask: (A,) int8, 1 for each legal action."""
    return spaces.Box(0, 1, shape=(num_actions,), dtype=np.int8)


def opening_mask(rules: Rules) -> np.ndarray:
    """Returns what is legal whatever the deal when an episode starts: the upcard or first discard may be taken."""
    mask = np.zeros(rules.num_actions, dtype=np.int8)
    mask[TAKE] = 1
    return mask


def check_illegal(illegal: str, penalty: float) -> tuple[str, float]:
    """Returns what an illegal action does, and its penalty in points, once they are seen to be possible.

    Raises:
        ValueError: If they are not.
    """
    if illegal not in ("raise", "terminate"):
        raise ValueError(f"illegal is {illegal!r}; expected 'raise' or 'terminate'")
    if not 0 <= penalty < float("inf"):
        raise ValueError(f"illegal_penalty is {penalty}; expected points, 0 or more")
    return illegal, float(penalty)


def as_action(action: Any) -> int:
    """Returns an action as a plain integer.

    Raises:
        TypeError: If it is not an integer.
    """
    try:
        return operator.index(action)
    except TypeError:
        raise TypeError(f"action is {action!r}; expected an integer, the id of an action") from None


def refuse_waiting(
    tables: Tables,
    rows: Iterable[int],
    actions: np.ndarray,
    refusal: Callable[[Tables, int, int], Exception] = engine.refusal,
) -> None:
    """Raises if a player who is to move chose a negative action: the engine would take -1 for waiting.

    Args:
        tables: N tables.
        rows: Those at which the player is to move.
        actions: (N,) integers.
        refusal: The engine's function of this name.

    Raises:
        IllegalAction: As the engine does for other actions.
    """
    for row in rows:
        if actions[row] < 0:
            raise refusal(tables, row, int(actions[row]))


class _LegalSamples:
    """Keeps the mask that samples are drawn from, on behalf of the environment that owns the space."""

    def _start(self, opening: np.ndarray) -> None:
        self._opening = opening
        self._legal = opening
        self._at_opening = True

    @property
    def legal(self) -> np.ndarray:
        """What is legal now, int8: (A,), or (N, A) for a batch."""
        return self._legal.copy()

    def show(self, mask: np.ndarray, at_opening: bool) -> None:
        """Tells the space what is legal now, and whether an episode has just begun."""
        self._legal = np.array(mask, dtype=np.int8)
        self._at_opening = at_opening

    def seed(self, seed: Any = None) -> Any:
        """Seeds the samples.

        Gymnasium's checker seeds, samples, and only then resets and plays the sample. So a space that is seeded in the
        middle of an episode samples an opening action, until the environment's next step or reset.
        """
        # Without a seed it is the space itself that asks, at its first sample.
        if seed is not None and not self._at_opening:
            self._legal = self._opening
        return super().seed(seed)  # type: ignore[misc]


class LegalActions(_LegalSamples, spaces.Discrete):
    """``Discrete`` over the action table whose plain ``sample()`` draws among the actions that are legal now.

    So the usual loop ``env.step(env.action_space.sample())`` plays. A sample with a mask or with probabilities of its
    own is drawn as in any ``Discrete``. Every action id is contained, legal or not.

    Args:
        opening: (A,) int8, what is legal whatever the deal when an episode starts (`opening_mask`).
        seed: Of the samples.
    """

    def __init__(self, opening: np.ndarray, seed: int | None = None) -> None:
        self._start(opening)
        super().__init__(opening.size, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draws one action id; by default a legal one (0 when the episode is over, where none is)."""
        if mask is None and probability is None:
            mask = self._legal
        return super().sample(mask, probability)


class BatchedLegalActions(_LegalSamples, spaces.MultiDiscrete):
    """``MultiDiscrete`` over the action table at N tables; its plain ``sample()`` draws legal actions only.

    Args:
        opening: (A,) int8, as for `LegalActions`.
        num_envs: N.
        seed: Of the samples.
    """

    def __init__(self, opening: np.ndarray, num_envs: int, seed: int | None = None) -> None:
        self._start(np.tile(opening, (num_envs, 1)))
        super().__init__([opening.size] * num_envs, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.ndarray:
        """Draws (N,) int64 action ids; by default legal ones (0 where an episode is over)."""
        if mask is not None or probability is not None:
            return super().sample(mask, probability)
        # The largest of independent uniform numbers is at each place with the same probability.
        return np.where(self._legal == 1, self.np_random.random(self._legal.shape), -1.0).argmax(axis=1)
