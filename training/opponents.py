"""Who sits opposite the learner at each table."""

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from agents.base import Agent
from agents.games import GIN, Game
from gin_env.tables import Tables
from training.config import PAST

BOTH = -1  # the learner plays all seats


class Opponents:
    """Gives some tables to other agents and plays their seats: all but one of each table.

    Args:
        shares: Share of the tables for each agent, by its name; `PAST` stands for the agents in `past`. The other
            tables are self-play.
        groups: Numbers of neighbouring tables that play the same; each group is shared out alike.
        seed: Decides the agents' random keys.
        past_size: Most agents in `past`.
        game: What is played.

    Attributes:
        learner_seat: (N,) int8, the learner's seat, or BOTH.
        who: (N,) int64, place of the opponent among ``shares``, or -1.
        past: Earlier states of the learner, the oldest first; it must not be empty when a table of theirs is played.
    """

    def __init__(
        self, shares: Mapping[str, float], groups: Sequence[int], seed: int, past_size: int = 1, game: Game = GIN
    ) -> None:
        self.game = game
        self.agents: list[Agent | None] = [None if name == PAST else game.make(name) for name in shares]
        self.past: deque[Agent] = deque(maxlen=past_size)
        self.who = np.full(sum(groups), -1, dtype=np.int64)
        self.seed = seed
        start = 0
        for size in groups:
            first = 0.0
            for place, share in enumerate(shares.values()):
                self.who[start + round(first * size) : start + round((first + share) * size)] = place
                first += share
            start += size
        # Seats are alike (the dealer is random), so the learner may keep one.
        self.learner_seat = np.where(self.who >= 0, 0, BOTH).astype(np.int8)

    @property
    def need_past(self) -> bool:
        """Whether any table is for past states."""
        return None in self.agents

    def waiting(self, tables: Tables) -> np.ndarray:
        """Rows of the tables where an opponent is to move."""
        return np.flatnonzero((self.learner_seat != BOTH) & (tables["mover"] != self.learner_seat))

    def act(self, tables: Tables, rows: np.ndarray) -> np.ndarray:
        """Returns an action for each table: (N,) int64, -1 for those not in ``rows``.

        Args:
            tables: All tables.
            rows: Those where an opponent is to move.
        """
        actions = np.full(tables.size, self.game.engine.NO_ACTION, dtype=np.int64)
        for place, agent in enumerate(self.agents):
            mine = rows[self.who[rows] == place]
            if agent is not None:
                self._play(agent, tables, mine, actions)
                continue
            # Each hand is played by one of them to its end.
            which = (tables["hand_number"][mine] + mine) % len(self.past) if mine.size else mine
            for number, past in enumerate(self.past):
                self._play(past, tables, mine[which == number], actions)
        return actions

    def _play(self, agent: Agent, tables: Tables, rows: np.ndarray, actions: np.ndarray) -> None:
        if rows.size:
            some = tables.take(rows)  # an index on records is far slower
            keys = self.game.engine.decision_keys(self.seed, some)
            actions[rows] = agent.act(self.game.view.observe(some), self.game.engine.legal(some), keys)
