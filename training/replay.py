"""What was played, kept in numpy arrays: positions, and decisions drawn by priority with their n-step returns.

A position is kept as the mover's view (`gin_env.view.VIEW_DTYPE`, 344 bytes) and its mask as 108 bits, and is encoded
again when it is drawn: exact, and a fifth of the 2 KB of its observation. A million decisions take 0.4 GB.
"""

from typing import Any, NamedTuple

import numpy as np

from agents.games import GIN, Game
from gin_env._compile import kernel
from gin_env.keys import mix_keys
from gin_env.view import View
from training.advantages import CUT_ENDED, CUT_TRUNCATED


class Positions:
    """Views and masks of so many positions, in little space.

    Args:
        size: Positions.
        game: Whose views these are.
        rules: What is played; of gin it does not matter.
    """

    def __init__(self, size: int, game: Game = GIN, rules: Any = None) -> None:
        self._view, self._num_actions = game.view, game.num_actions(rules)
        # As bytes: a copy of records leaves the bytes between their fields to chance, and with them a checkpoint's.
        self.views = np.zeros((size, self._view.VIEW_DTYPE.itemsize), dtype=np.uint8)
        self.masks = np.zeros((size, (self._num_actions + 7) // 8), dtype=np.uint8)

    def put(self, first: int, views: View, masks: np.ndarray) -> None:
        """Keeps positions from place ``first`` on: views (N,) and masks (N, A) int8."""
        places = slice(first, first + views.size)
        self.views[places] = views.view(np.uint8).reshape(views.size, -1)
        self.masks[places] = np.packbits(masks, axis=1)

    def get(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the observations (K, D) float32 and masks (K, A) uint8 at some places."""
        views = self.views[rows].view(self._view.VIEW_DTYPE).reshape(-1)
        return self._view.encode(views), np.unpackbits(self.masks[rows], axis=1, count=self._num_actions)


# --------------------------------------------------------------------------------------------------------- sum tree


@kernel
def _set_leaves(tree, rows, priorities):
    leaves = tree.size // 2
    for k in range(rows.size):
        node = leaves + rows[k]
        tree[node] = priorities[k]
        while node > 1:
            node //= 2
            # Added anew each time, so that a sum depends on its leaves alone and nothing drifts.
            tree[node] = tree[2 * node] + tree[2 * node + 1]


@kernel
def _find_leaves(tree, places, rows):
    leaves = tree.size // 2
    for k in range(places.size):
        place = places[k]
        node = 1
        while node < leaves:
            node *= 2
            # Rounding may lead past the last leaf that has any priority.
            if place >= tree[node] and tree[node + 1] > 0:
                place -= tree[node]
                node += 1
        rows[k] = node - leaves


class SumTree:
    """Numbers from 0 up, one for each row, and the row at any place of their sum: both in log time.

    Args:
        size: Rows.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._leaves = 1 << max(size - 1, 1).bit_length()
        # Node k has the children 2k and 2k + 1; the leaves are the second half.
        self._tree = np.zeros(2 * self._leaves)

    @property
    def total(self) -> float:
        """The sum."""
        return float(self._tree[1])

    @property
    def priorities(self) -> np.ndarray:
        """The numbers (size,) float64; to be changed by `set` alone."""
        return self._tree[self._leaves : self._leaves + self.size]

    def set(self, rows: np.ndarray, priorities: np.ndarray) -> None:
        """Sets the numbers (K,) of rows (K,); of a row that comes twice the last counts."""
        _set_leaves(self._tree, rows, np.ascontiguousarray(priorities, dtype=np.float64))

    def find(self, places: np.ndarray) -> np.ndarray:
        """Returns for places (K,) in [0, total) the rows (K,) int64 whose part of the sum they lie in."""
        rows = np.empty(places.size, dtype=np.int64)
        _find_leaves(self._tree, places, rows)
        return rows


# ---------------------------------------------------------------------------------------------------------- returns


@kernel
def _returns(rows, rewards, seats, cuts, tables, steps, discount, returns, follow, factors):
    size = rewards.size
    for k in range(rows.size):
        place = rows[k]
        seat = seats[place]
        total = np.float32(0)
        weight = np.float32(1)
        own = 0
        for _ in range(reach(steps)):
            sign = np.float32(1) if seats[place] == seat else np.float32(-1)
            if cuts[place] == CUT_TRUNCATED:
                break  # the value stands as it was here
            total += weight * sign * rewards[place]
            if cuts[place] == CUT_ENDED:
                weight = np.float32(0)
                break
            weight *= discount
            place += tables
            if place >= size:
                place -= size
            own += seats[place] == seat
            if own == steps:
                break
        returns[k] = total
        follow[k] = place
        factors[k] = weight if seats[place] == seat else -weight


@kernel
def reach(steps):
    """Decisions of a table after which a seat has decided so many times again.

    A turn is two decisions, so from a throw on one's n-th decision comes n + 2, n + 2, n + 4, n + 4 ... later.
    """
    return steps + 2 * ((steps + 1) // 2)


def n_step_returns(
    rows: np.ndarray,
    rewards: np.ndarray,
    seats: np.ndarray,
    cuts: np.ndarray,
    tables: int,
    steps: int,
    discount: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What some decisions brought until their seat had decided n times again, and where their value goes on.

    A table's decisions are walked in order, those of both seats, from decision t to decision u, the n-th of the same
    seat after it. With s[k] = 1 where that seat decides at k and -1 where the other one does, the target is

        sum of discount^(k - t) s[k] reward[k] for t <= k < u, plus discount^(u - t) V[u]

    V being the value to the seat that decides there. It is always a position of the same seat: the other one does not
    see the hand, so that its value says nothing of how good that is. A hand's end cuts the chain: nothing follows. At a
    decision that was truncated it stops before the reward, for nobody knows what would have come, and the value of that
    position stands for the rest, with a minus if it is the other seat's.

    Args:
        rows: (K,) int64, the decisions.
        rewards: (S * N,) float32, a ring: S decisions at each of N tables, row t * N + i being the t-th at table i;
            after the last row comes the first. Each is what the seat deciding won before the table's next decision.
        seats: (S * N,) int8, who decides.
        cuts: (S * N,) int8, see training.advantages.
        tables: N.
        steps: n; `reach` of it is less than S.
        discount: What a reward is worth one decision later.

    Returns:
        The rewards' sums (K,) float32; the rows (K,) int64 whose value follows; and what it is multiplied with (K,)
        float32: 0 where nothing follows.
    """
    returns = np.empty(rows.size, dtype=np.float32)
    follow = np.empty(rows.size, dtype=np.int64)
    factors = np.empty(rows.size, dtype=np.float32)
    _returns(rows, rewards, seats, cuts, tables, steps, np.float32(discount), returns, follow, factors)
    return returns, follow, factors


class Draw(NamedTuple):
    """Decisions drawn from the replay."""

    rows: np.ndarray  # (K,) int64, where they are kept
    weights: np.ndarray  # (K,) float32, importance weights, at most 1
    actions: np.ndarray  # (K,) int64
    returns: np.ndarray  # (K,) float32, rewards within n decisions
    follow: np.ndarray  # (K,) int64, the rows whose value goes on
    factors: np.ndarray  # (K,) float32, what that is multiplied with


class Replay:
    """A ring of the last decisions at N tables, drawn by priority (Schaul et al. 2016, proportional).

    A decision can be drawn once its seat's next n have been kept (`reach`), at first with the highest priority given so
    far. One that was truncated never is: it has no return.

    Args:
        size: Decisions to keep; rounded down to a whole number for each table.
        tables: N.
        steps: n of the returns (`n_step_returns`).
        discount: What a reward is worth one decision later.
        exponent: Of the priorities: 0 draws all alike.
        game: Whose positions are kept.
        rules: What is played; of gin it does not matter.

    Raises:
        ValueError: If too few decisions fit for each table.
    """

    def __init__(
        self,
        size: int,
        tables: int,
        steps: int,
        discount: float = 1.0,
        exponent: float = 0.5,
        game: Game = GIN,
        rules: Any = None,
    ) -> None:
        self.slots, self.wait = size // tables, reach(steps)
        if self.slots <= self.wait:
            raise ValueError(
                f"a replay of {size} decisions is too small for returns of {steps} steps at {tables} tables"
            )
        self.tables, self.steps, self.discount, self.exponent = tables, steps, discount, exponent
        rows = self.slots * tables
        self.positions = Positions(rows, game, rules)
        self.actions = np.zeros(rows, dtype=np.int16)
        self.rewards = np.zeros(rows, dtype=np.float32)
        self.seats = np.zeros(rows, dtype=np.int8)
        self.cuts = np.zeros(rows, dtype=np.int8)
        self.tree = SumTree(rows)
        self.kept = 0  # decisions kept so far at each table, those overwritten included
        self.highest = 1.0  # priority, before the exponent

    @property
    def filled(self) -> int:
        """Rows that hold a decision."""
        return min(self.kept, self.slots) * self.tables

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.tree._tree.nbytes + sum(array.nbytes for array in self._arrays().values())

    def add(
        self,
        views: View,
        masks: np.ndarray,
        actions: np.ndarray,
        rewards: np.ndarray,
        seats: np.ndarray,
        cuts: np.ndarray,
    ) -> None:
        """Keeps the next decision at each table: (N,) each, masks (N, A). The oldest make room."""
        rows = self._rows(self.kept)
        places = slice(rows[0], rows[0] + self.tables)
        self.positions.put(int(rows[0]), views, masks)
        self.actions[places] = actions
        self.rewards[places] = rewards
        self.seats[places] = seats
        self.cuts[places] = cuts
        self.tree.set(rows, np.zeros(self.tables))
        if self.kept >= self.wait:
            ready = self._rows(self.kept - self.wait)
            self.tree.set(ready, np.where(self.cuts[ready] == CUT_TRUNCATED, 0.0, self.highest**self.exponent))
        self.kept += 1

    def _rows(self, number: int) -> np.ndarray:
        """The rows of the decisions of that number."""
        return number % self.slots * self.tables + np.arange(self.tables)

    def draw(self, count: int, seed: int, importance: float) -> Draw:
        """Draws decisions, each with a probability in proportion to its priority.

        The sum of the priorities is divided into ``count`` equal parts and a decision drawn from each.

        Args:
            count: K.
            seed: Decides what is drawn.
            importance: How far the weights make up for the unequal chances: 0 not at all, 1 in full.

        Raises:
            ValueError: If no decision can be drawn yet.
        """
        if not self.tree.total > 0:
            raise ValueError("the replay has no decision to draw yet")
        uniform = (mix_keys(seed, np.arange(count)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        rows = self.tree.find((np.arange(count) + uniform) * (self.tree.total / count))
        priorities = self.tree.priorities[rows]
        weights = (priorities / priorities.min()) ** -importance
        returns, follow, factors = n_step_returns(
            rows, self.rewards, self.seats, self.cuts, self.tables, self.steps, self.discount
        )
        return Draw(rows, weights.astype(np.float32), self.actions[rows].astype(np.int64), returns, follow, factors)

    def set_errors(self, rows: np.ndarray, errors: np.ndarray) -> None:
        """Sets priorities by the sizes (K,) of the errors at those rows."""
        # A little more than 0: what was right once is looked at again some day.
        sizes = np.abs(errors.astype(np.float64)) + 1e-3
        self.highest = max(self.highest, float(sizes.max(initial=0)))
        self.tree.set(rows, sizes**self.exponent)

    # ------------------------------------------------------------------------------------------------ checkpoints

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "views": self.positions.views,
            "masks": self.positions.masks,
            "actions": self.actions,
            "rewards": self.rewards,
            "seats": self.seats,
            "cuts": self.cuts,
            "priorities": self.tree.priorities,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that is kept, by name, for `load`; `kept` and `highest` go with it."""
        return {name: array[: self.filled] for name, array in self._arrays().items()}

    def load(self, arrays: dict[str, np.ndarray], kept: int, highest: float) -> None:
        """Puts back what `arrays` gave.

        Raises:
            ValueError: If it does not fit.
        """
        self.kept, self.highest = kept, highest
        for name, array in self._arrays().items():
            given = arrays[name]
            if given.shape != (self.filled, *array.shape[1:]) or given.dtype != array.dtype:
                raise ValueError(f"the replay's {name} are {given.dtype} of shape {given.shape}")
            if name == "priorities":
                self.tree.set(np.arange(self.filled), given)
            else:
                array[: self.filled] = given
