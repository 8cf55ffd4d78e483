"""Gin rummy on decks so small that the whole game fits into memory, in sequence form.

The tree is grown from the engine itself, so what is solved is what is played (`experiments.exploit` solves it).

Terms (von Stengel 1996, "Efficient computation of behavior strategies"):

- An information set is what a seat knows when it moves: its hand as dealt, the upcard, every action of both seats and
  the cards that it drew itself. A seat forgets nothing (perfect recall).
- A sequence is one action at one information set of a seat, and with it all that the seat did before. Sequence 0 is
  empty: the seat has not moved yet.
- A strategy gives each sequence the probability of its action at its information set. Its plan gives each sequence the
  product of the probabilities of all its actions up to there.
- An end is a way through the tree, from a deal to the end of the hand.

The plans of both seats and chance decide how likely each end is. So the tree need not be kept: the information sets of
each seat do, and for each end the last sequence of each seat, the probability of chance's part, and the points. All
arrays are worked on level by level, a level being the number of actions played since the deal.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gin_env import engine
from gin_env.actions import DRAW
from gin_env.cards import NO_CARD, from_mask
from gin_env.rules import Rules, as_rules
from gin_env.tables import ENDINGS, OVER, Tables
from gin_env.view import View, observe

# The bonuses are in proportion to the points of so few cards. Seat 0 deals, so that each seat has a game of its own.
_SHARED: dict[str, Any] = {
    "gin_bonus": 4, "big_gin_bonus": 6, "undercut_bonus": 4, "stock_floor": 0, "first_dealer": 0,
}  # fmt: skip
MINIATURES = {
    rules.name: rules
    for rules in (
        # Two cards make no meld: knocks, undercuts, big gin of three. Solved in a blink.
        Rules(name="tiny", ranks=3, suits=2, hand_size=2, knock_limit=3, draw_cap=3, **_SHARED),
        # Runs of three and four; every ending but a tie. Seconds.
        Rules(name="small", ranks=4, suits=2, hand_size=3, knock_limit=6, draw_cap=3, **_SHARED),
        # A knocker can lay a run and hold deadwood, so there are layoffs. Seconds.
        Rules(name="layoffs", ranks=5, suits=2, hand_size=4, knock_limit=5, draw_cap=2, **_SHARED),
        # Sets beside runs, two cards in the stock. Half a minute and 3 GB, by CFR.
        Rules(name="sets", ranks=3, suits=3, hand_size=3, knock_limit=4, draw_cap=3, **_SHARED),
    )
}

# Nodes of a tree, unless the caller says otherwise; a million takes 2 seconds and half a gigabyte.
MAX_NODES = 8_000_000
# Children that are played at once. Most end the hand; only the others are kept.
_BATCH = 1 << 16

Strategy = np.ndarray  # (S,) float64, the probability of each sequence's action; 1 for the empty sequence
Strategies = tuple[Strategy, Strategy]  # by seat


def as_miniature(rules: Rules | str) -> Rules:
    """Returns rules given as an object, as a miniature's name, or as the text of small rules.

    Raises:
        ValueError: If no miniature has this name, and the text names no rules.
    """
    if isinstance(rules, str) and rules in MINIATURES:
        return MINIATURES[rules]
    try:
        return as_rules(rules)
    except ValueError as error:
        names = ", ".join(MINIATURES)
        raise ValueError(f"{rules!r} is no miniature ({names}), and not the text of rules: {error}") from None


# ---------------------------------------------------------------------------------------------------- sequence form


@dataclass(frozen=True)
class Seat:
    """The I information sets and S sequences of one seat.

    Information sets are numbered level by level; their sequences in the same order, without gaps, by action.

    Attributes:
        before: (I,) the seat's sequence that leads to each information set.
        views: (I,) what the seat sees there.
        masks: (I, 108) int8, 1 for each action that is legal there.
        levels: First and last (exclusive) information set of each level that has any.
    """

    before: np.ndarray
    views: View
    masks: np.ndarray
    levels: tuple[tuple[int, int], ...]

    @cached_property
    def choices(self) -> np.ndarray:
        """(I,) number of actions at each information set."""
        return self.masks.sum(axis=1, dtype=np.int64)

    @cached_property
    def first(self) -> np.ndarray:
        """(I + 1,) first sequence of each information set; its last is the one before the next one's first."""
        return np.concatenate([[1], 1 + np.cumsum(self.choices)])

    @cached_property
    def num_sequences(self) -> int:
        """S, the empty sequence included."""
        return int(self.first[-1])

    @cached_property
    def choice(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each sequence but the empty one (S - 1,): its information set, and its action's id."""
        infosets, actions = np.nonzero(self.masks)
        return infosets, actions

    def normalise(self, weights: np.ndarray) -> Strategy:
        """Returns the strategy in proportion to weights (S,) >= 0; uniform where those of a set are all zero."""
        total = np.add.reduceat(weights, self.first[:-1])
        strategy = np.ones(self.num_sequences)
        strategy[1:] = np.repeat(1 / self.choices, self.choices)
        np.divide(
            weights[1:], np.repeat(total, self.choices), out=strategy[1:], where=np.repeat(total > 0, self.choices)
        )
        return strategy

    def plan(self, strategy: Strategy) -> np.ndarray:
        """Returns the plan (S,) of a strategy."""
        plan = strategy.copy()
        for low, high in self.levels:
            start, stop = self.first[low], self.first[high]
            plan[start:stop] *= np.repeat(plan[self.before[low:high]], self.choices[low:high])
        return plan

    def backward(self, payoffs: np.ndarray, strategy: Strategy | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Carries payoffs from the ends of the game back to its beginning.

        Args:
            payoffs: (S,) what `Game.payoffs` says.
            strategy: How the seat plays at each information set; by default as well as possible.

        Returns:
            What each sequence (S,) is worth with all that follows on it, the whole game at 0, and what each
            information set (I,) is worth.
        """
        values = payoffs.copy()
        worth = np.empty(self.before.size)
        for low, high in reversed(self.levels):
            start, stop = self.first[low], self.first[high]
            part, places = values[start:stop], self.first[low:high] - start
            if strategy is None:
                worth[low:high] = np.maximum.reduceat(part, places)
            else:
                worth[low:high] = np.add.reduceat(part * strategy[start:stop], places)
            np.add.at(values, self.before[low:high], worth[low:high])
        return values, worth


class Ends(NamedTuple):
    """M ends of the game."""

    sequences: np.ndarray  # (M, 2) last sequence of each seat
    chance: np.ndarray  # (M,) probability of chance's part: the deal and the cards drawn
    points: np.ndarray  # (M,) int32, won by seat 0
    ending: np.ndarray  # (M,) int8, gin_env.tables.KNOCKED to TRUNCATED


@dataclass(frozen=True)
class Game:
    """A whole game in sequence form.

    Attributes:
        rules: What is played.
        seats: The information sets and sequences of both seats.
        ends: All ends.
        deals: Number of deals (two hands and the upcard), equally likely.
        nodes: Number of nodes of the tree, ends included; those of chance are not counted.
    """

    rules: Rules
    seats: tuple[Seat, Seat]
    ends: Ends
    deals: int
    nodes: int

    @cached_property
    def scored(self) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """The sequences of seat 0 and of seat 1 at all ends that score, and points times chance."""
        scored = np.flatnonzero(self.ends.points)
        first, second = np.ascontiguousarray(self.ends.sequences[scored].T)
        return (first, second), self.ends.points[scored] * self.ends.chance[scored]

    def payoffs(self, seat: int, plan: np.ndarray) -> np.ndarray:
        """Returns the points (S,) of a seat at the ends that follow on each of its sequences without another.

        Args:
            seat: 0 or 1.
            plan: Of the other seat.
        """
        sequences, points = self.scored
        signed = points if seat == 0 else -points
        size = self.seats[seat].num_sequences
        return np.bincount(sequences[seat], weights=signed * plan[sequences[1 - seat]], minlength=size)

    def best_response(self, seat: int, opponent: Strategy) -> float:
        """Returns the points that a seat wins if it plays as well as possible against a strategy of the other."""
        payoffs = self.payoffs(seat, self.seats[1 - seat].plan(opponent))
        return float(self.seats[seat].backward(payoffs)[0][0])

    def reach(self, strategies: Strategies) -> np.ndarray:
        """Returns the probability (M,) of each end."""
        plans = [seat.plan(strategy) for seat, strategy in zip(self.seats, strategies, strict=True)]
        return self.ends.chance * plans[0][self.ends.sequences[:, 0]] * plans[1][self.ends.sequences[:, 1]]

    def expected(self, strategies: Strategies) -> float:
        """Returns the points that seat 0 wins if both play these strategies."""
        return float(self.reach(strategies) @ self.ends.points)

    def endings(self, strategies: Strategies) -> dict[str, float]:
        """Returns how hands end if both play these strategies: shares by name, as `gin_env.tables.ENDINGS`."""
        shares = np.bincount(self.ends.ending, weights=self.reach(strategies), minlength=len(ENDINGS))
        return {name: float(share) for name, share in zip(ENDINGS[1:], shares[1:], strict=True)}

    def size(self) -> dict[str, Any]:
        """Returns how large the game is, as plain values; information sets and sequences by seat."""
        return {
            "deals": self.deals,
            "nodes": self.nodes,
            "ends": self.ends.chance.size,
            "information_sets": [seat.before.size for seat in self.seats],
            "sequences": [seat.num_sequences for seat in self.seats],
        }


# ---------------------------------------------------------------------------------------------------------- the tree


class Infosets(NamedTuple):
    """The information sets of one seat in one level; the fields are those of `Seat`."""

    before: np.ndarray
    views: View
    masks: np.ndarray


class Level(NamedTuple):
    """One level: N nodes at which a seat moves."""

    tables: Tables  # (N,)
    infosets: np.ndarray  # (N,) the mover's, numbered as in `Seat`
    sequences: np.ndarray  # (N, 2) last sequence of each seat
    chance: np.ndarray  # (N,) probability of chance's part
    new: tuple[Infosets, Infosets]  # those of this level, by seat
    ends: Ends  # to which this level's actions lead


def build_game(rules: Rules | str, max_nodes: int = MAX_NODES) -> Game:
    """Grows the tree of a game and returns its sequence form.

    Args:
        rules: Rules, or the name of a miniature.
        max_nodes: Most nodes that the tree may have.

    Raises:
        ValueError: If the tree would have more nodes, there is no such miniature, or the engine does not play these
            rules.
    """
    rules = as_miniature(rules)
    new: list[tuple[Infosets, Infosets]] = []
    ends: list[Ends] = []
    nodes = 0
    for level in levels(rules, max_nodes):
        new.append(level.new)
        ends.append(level.ends)
        nodes += level.tables.size + level.ends.chance.size
    seats = []
    for seat in range(2):
        parts = [both[seat] for both in new]
        bounds = np.cumsum([0] + [part.before.size for part in parts]).tolist()
        joined = Infosets(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        seats.append(Seat(*joined, tuple((low, high) for low, high in itertools.pairwise(bounds) if low < high)))
    all_ends = Ends(*(np.concatenate(columns) for columns in zip(*ends, strict=True)))
    return Game(rules, (seats[0], seats[1]), all_ends, count_deals(rules), nodes)


def count_deals(rules: Rules) -> int:
    """Returns the number of deals: two hands, the upcard, and the dealer where chance chooses it."""
    size = rules.hand_size
    hands = math.comb(rules.deck_size, size) * math.comb(rules.deck_size - size, size)
    return hands * (rules.deck_size - 2 * size) * len(_dealers(rules))


def _dealers(rules: Rules) -> list[int]:
    return [0, 1] if rules.first_dealer == "random" else [rules.first_dealer]


def _deal_all(rules: Rules) -> Tables:
    """Returns a table for each deal; the cards of each hand, and those of the stock, are dealt in ascending order."""
    pack, size = from_mask(rules.pack), rules.hand_size
    decks = []
    for first in itertools.combinations(pack, size):
        others = [card for card in pack if card not in first]
        for second in itertools.combinations(others, size):
            dealt = [card for pair in zip(first, second, strict=True) for card in pair]
            rest = [card for card in others if card not in second]
            decks += [[*dealt, upcard, *(card for card in rest if card != upcard)] for upcard in rest]
    dealers = _dealers(rules)
    tables = engine.new_tables(rules, 1).take(np.zeros(len(decks) * len(dealers), dtype=np.int64))
    engine.deal(tables, decks=np.tile(decks, (len(dealers), 1)), dealers=np.repeat(dealers, len(decks)))
    return tables


def levels(rules: Rules, max_nodes: int = MAX_NODES) -> Iterator[Level]:
    """Grows the tree of a game, one level after another.

    The stock has no order: at a draw each card left in it comes with the same probability. That is the same game with
    far fewer nodes.

    Args:
        rules: What is played.
        max_nodes: Most nodes that the tree may have.

    Raises:
        ValueError: If the tree has more nodes, or the engine does not play these rules.
    """
    nodes = count_deals(rules)
    # Before anything is dealt: the nodes up to the first throw, where the stock may be drawn from once.
    size, stock = rules.hand_size, rules.deck_size - 2 * rules.hand_size - 1
    _check_size(rules, nodes * (5 + 2 * size + stock * (size + 2)), max_nodes)
    tables = _deal_all(rules)
    chance = np.full(nodes, 1 / nodes)
    sequences = np.zeros((nodes, 2), dtype=np.int64)
    # A number for all that each seat knows: (N, 2).
    public = tables["dealer"].astype(np.int64) * 64 + tables["pile"][:, 0]
    hands = tables["hands"].astype(np.int64)
    known = np.column_stack([_number(np.column_stack([public, hands[:, seat]])) for seat in range(2)])
    num_infosets, num_sequences = [0, 0], [1, 1]

    while tables.size:
        masks = engine.legal(tables)
        movers = tables["mover"].astype(np.int64)
        infosets, first = np.empty((2, tables.size), dtype=np.int64)
        new = []
        for seat in range(2):
            mine = np.flatnonzero(movers == seat)
            # Any table of an information set stands for all of them: the seat cannot tell them apart.
            _, one, which = np.unique(known[mine, seat], return_index=True, return_inverse=True)
            one = mine[one]
            new.append(Infosets(sequences[one, seat], observe(tables.take(one), seat), masks[one]))
            starts = num_sequences[seat] + np.concatenate([[0], np.cumsum(masks[one].sum(axis=1, dtype=np.int64))])
            infosets[mine] = num_infosets[seat] + which
            first[mine] = starts[which]
            num_infosets[seat] += one.size
            num_sequences[seat] = int(starts[-1])

        children = _Children(tables, masks)
        nodes += children.rows.size
        _check_size(rules, nodes, max_nodes)
        children.play()
        rows = children.rows
        child_sequences = sequences[rows]
        child_sequences[np.arange(rows.size), movers[rows]] = first[rows] + children.choice
        child_chance = chance[rows] / children.ways
        over, goes_on = np.flatnonzero(children.over), np.flatnonzero(~children.over)
        ends = Ends(child_sequences[over], child_chance[over], children.points[over], children.ending[over])
        yield Level(tables, infosets, sequences, chance, (new[0], new[1]), ends)

        # Everyone sees the action; which card came from the stock only its drawer.
        rows, actions, drawn = rows[goes_on], children.actions[goes_on], children.drawn[goes_on]
        seen = (actions * 64 + np.where(movers[rows] == seat, drawn, NO_CARD) + 1 for seat in range(2))
        known = np.column_stack([_number(known[rows, seat] << 13 | event) for seat, event in enumerate(seen)])
        tables, sequences, chance = children.tables, child_sequences[goes_on], child_chance[goes_on]


class _Children:
    """All K children of some tables: a child for each legal action, at a draw for each card left in the stock.

    Attributes:
        rows: (K,) the table of each, ascending.
        actions: (K,) the action played.
        choice: (K,) its place among the table's legal actions.
        ways: (K,) number of children that share its action, equally likely.
        drawn: (K,) the card drawn from the stock, or -1.
        over, points, ending: (K,) how each stands, and what seat 0 won.
        tables: Those at which the hand goes on, in order.
    """

    def __init__(self, tables: Tables, masks: np.ndarray) -> None:
        rows, actions = np.nonzero(masks)
        choices = masks.sum(axis=1, dtype=np.int64)
        choice = np.arange(rows.size) - (np.cumsum(choices) - choices)[rows]
        left = tables["rules"]["deck_size"] - tables["stock_at"]
        ways = np.where(actions == DRAW, left[rows], 1).astype(np.int64)
        self.rows, self.actions, self.choice, self.ways = (
            np.repeat(array, ways) for array in (rows, actions, choice, ways)
        )
        # Places from the top of the stock of the card that is drawn.
        self._place = np.arange(self.rows.size) - np.repeat(np.cumsum(ways) - ways, ways)
        self._parents = tables

    def play(self) -> None:
        """Plays them on the engine."""
        size = self.rows.size
        self.drawn = np.full(size, NO_CARD, dtype=np.int64)
        self.over = np.empty(size, dtype=bool)
        self.points = np.empty(size, dtype=np.int32)
        self.ending = np.empty(size, dtype=np.int8)
        kept = []
        for start in range(0, size, _BATCH):
            part = slice(start, start + _BATCH)
            tables = self._parents.take(self.rows[part])  # an index on records is far slower
            draws = np.flatnonzero(self.actions[part] == DRAW)
            top = tables["stock_at"][draws]
            place = top + self._place[part][draws]
            deck = tables["deck"]
            self.drawn[start + draws] = deck[draws, place]
            deck[draws, place], deck[draws, top] = deck[draws, top], deck[draws, place]
            won, _ = engine.step(tables, self.actions[part])
            self.over[part] = tables["phase"] == OVER
            self.points[part], self.ending[part] = won[:, 0], tables["ending"]
            kept.append(tables.take(np.flatnonzero(tables["phase"] != OVER)))
        self.tables = np.concatenate(kept)


def _number(keys: np.ndarray) -> np.ndarray:
    """Returns for each key (N,), or row of keys (N, K), a number below N that equal keys share."""
    return np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)


def _check_size(rules: Rules, nodes: int, most: int) -> None:
    if nodes > most:
        raise ValueError(
            f"rules {rules.name!r} are no miniature: the tree of the game has {nodes:,} nodes or more, and max_nodes "
            f"is {most:,}; fewer ranks, suits, cards in a hand or draws (draw_cap) make it smaller"
        )
