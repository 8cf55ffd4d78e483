"""Who sits opposite the learner at each table."""

from collections.abc import Mapping

import numpy as np

import agents
from gin_env import engine
from gin_env.tables import Tables
from gin_env.view import observe

BOTH = -1  # the learner plays both seats


class Opponents:
    """Gives some tables to other agents and plays their seats.

    Args:
        shares: Share of the tables for each agent, by its name; the other tables are self-play.
        size: Number of tables.
        seed: Decides the agents' random keys.

    Attributes:
        learner_seat: (N,) int8, the learner's seat, or BOTH.
        who: (N,) int64, place of the opponent in `agents`, or -1.
    """

    def __init__(self, shares: Mapping[str, float], size: int, seed: int) -> None:
        self.agents = [agents.make(name) for name in shares]
        self.who = np.full(size, -1, dtype=np.int64)
        self.learner_seat = np.full(size, BOTH, dtype=np.int8)
        self.seed = seed
        first = 0.0
        for place, share in enumerate(shares.values()):
            rows = slice(round(first * size), round((first + share) * size))
            self.who[rows] = place
            first += share
        taken = self.who >= 0
        # Seats are alike (the dealer is random), so the learner may keep one.
        self.learner_seat[taken] = 0

    def waiting(self, tables: Tables) -> np.ndarray:
        """Rows of the tables where an opponent is to move."""
        return np.flatnonzero((self.learner_seat != BOTH) & (tables["mover"] != self.learner_seat))

    def act(self, tables: Tables, rows: np.ndarray) -> np.ndarray:
        """Returns an action for each table: (N,) int64, -1 for those not in ``rows``.

        Args:
            tables: All tables.
            rows: Those where an opponent is to move.
        """
        actions = np.full(tables.size, engine.NO_ACTION, dtype=np.int64)
        for place, agent in enumerate(self.agents):
            mine = rows[self.who[rows] == place]
            if mine.size:
                some = tables.take(mine)  # an index on records is far slower
                keys = engine.decision_keys(self.seed, some)
                actions[mine] = agent.act(observe(some), engine.legal(some), keys)
        return actions
