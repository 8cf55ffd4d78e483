"""The vector environment of Rummy40: one learner at N tables against batched players, straight on the engine.

>>> import gymnasium, gin_env
>>> envs = gymnasium.make_vec("gin_env/Rummy40-v0", num_envs=64, rules="rummy40:seats=4")
>>> observations, infos = envs.reset(seed=1)
>>> observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())
"""

from collections.abc import Sequence

import numpy as np
from gymnasium.vector import AutoresetMode

from gin_env.rummy40.game import RUMMY40
from gin_env.rummy40.rules import Rummy40Rules
from gin_env.rummy40.tables import ENDINGS
from gin_env.vector import LearnerVectorEnv, Opponent, OpponentFunction, as_opponent

OneOpponent = str | Opponent | OpponentFunction


def as_opponents(opponents: OneOpponent | Sequence[OneOpponent], count: int) -> list[Opponent]:
    """Returns who has the other seats, from seat 1 on.

    Args:
        opponents: One for all the other seats, or a list of one for each; each as for `gin_env.vector.as_opponent`.
        count: Number of other seats.

    Raises:
        ValueError: If there are fewer or more, or one is no opponent.
    """
    if not isinstance(opponents, list | tuple):
        return [as_opponent(opponents, RUMMY40.name)] * count  # type: ignore[arg-type]
    if len(opponents) != count:
        raise ValueError(
            f"{len(opponents)} opponents are given; expected one for all, or one for each of {count} other seats"
        )
    return [as_opponent(opponent, RUMMY40.name) for opponent in opponents]


class Rummy40VectorEnv(LearnerVectorEnv):
    """N tables of Rummy40. The learner has seat 0 at each, its opponents the others.

    The environment moves the opponents until the learner is to move. Who deals first is drawn by the rules (by default
    at random), so the seats are alike. An episode is a hand, or with ``match=True`` a match.

    Observations are ``(N, D)`` float32 (`gin_env.rummy40.view.encode`) and actions ``(N,)`` ids of the action table
    (`gin_env.rummy40.actions`), which has A: D and A are 909 and 1311 with two players, 1127 and 1987 with four. A turn
    is several actions: a draw, what is laid, a discard. Rewards are the points that the learner wins in a hand, paid in
    the step in which it ends, whoever ends it: the mean of the others' penalties less its own. A hand that was counted
    terminates, one that reached the cap on draws is truncated; a match only ever terminates.
    ``action_space.sample()`` draws legal actions.

    The mask keeps to the opening minimum: what cannot reach it is not legal. With the rules
    ``rummy40:wrong_opening=penalty`` it does not, and a player that lays too little has to take it back, at the price
    of 20 points (``opening_penalty``).

    ``infos["action_mask"]`` is (N, A) int8, 1 for each legal action; all zero at a table whose episode is over. Where
    a hand ended in the step (``infos["_ending"]`` says where):

    - ``ending``: one of `gin_env.rummy40.tables.ENDINGS`, as text,
    - ``out``: the seat that went out, -1 for nobody,
    - ``penalties``: (N, seats), points by seat, those for melds taken back included,
    - ``turns``: draws in the hand,
    - in matches also ``scores``, (N, seats), and ``match_winners``, (N, seats), 1 for each seat that has won it.

    Autoreset follows Gymnasium, and a hand that ends before the learner had anything to decide is none, as with
    `gin_env.vector.GinRummyVectorEnv`.

    Args:
        num_envs: Number of tables.
        rules: Rules, or the name of a preset, alone or with changes; they say how many play.
        match: Whether an episode is a match to the rules' limit instead of one hand.
        opponents: One for all other seats, or a list of one for each, from the player after the learner on. Each is
            ``"module:spec"``, imported when the environment is made (where ``make`` takes a ``game`` it is told
            "rummy40"); or an object with a method ``act(view, mask, rng)`` as in `agents.base.Agent`; or a function of
            the same arguments.
        autoreset_mode: What happens after the end of an episode.
        copy: Whether each call returns new arrays. Otherwise the next call overwrites observations and masks.
        render_mode: None; ``"ansi"`` for a text of each table as the learner sees it; or ``"rgb_array"`` for a picture,
            (640, 960, 3) uint8, which needs Pillow.

    Raises:
        ValueError: If an argument is unknown, out of range or not played by the engine.
    """

    game = RUMMY40

    def __init__(
        self,
        num_envs: int = 1,
        *,
        rules: Rummy40Rules | str = "rummy40",
        match: bool = False,
        opponents: OneOpponent | Sequence[OneOpponent] = "agents:greedy",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        rules = RUMMY40.as_rules(rules)
        others = as_opponents(opponents, RUMMY40.num_seats(rules) - 1)
        super().__init__(num_envs, rules, match, others, autoreset_mode, copy, render_mode)

    def _hand_columns(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        tables, seats = self.tables, len(self.opponents) + 1
        columns: dict[str, np.ndarray] = {
            "ending": np.array(ENDINGS, dtype=object)[tables["ending"][rows]],
            "out": tables["out"][rows],
            "penalties": tables["penalties"][rows, :seats],
            "turns": tables["num_turns"][rows],
        }
        if self.match:
            columns["scores"] = tables["scores"][rows, :seats]
            columns["match_winners"] = tables["match_winners"][rows, :seats]
        return columns
