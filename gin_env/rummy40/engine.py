"""The engine of Rummy40: deal, legal, step, over N tables at once, compiled, in place, as `gin_env.engine` for gin.

>>> from gin_env.rummy40 import engine
>>> tables = engine.new_tables("rummy40:seats=4", 2, seed=7)
>>> engine.legal(tables)[:, :3].tolist()     # draw, take, take back
[[1, 1, 0], [1, 1, 0]]
>>> points, over = engine.step(tables, [0, 0])
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gin_env._compile import borrow_row, kernel
from gin_env.keys import mix, mix_keys
from gin_env.rummy40.actions import NUM_ACTIONS, NUM_MELDS, NUM_TWO_PACK_ACTIONS, action_name
from gin_env.rummy40.cards import cards_text, held
from gin_env.rummy40.dealing import deal_next, start_hand
from gin_env.rummy40.record import Record, RecordError, move_text, outcome, parse_record, table_record
from gin_env.rummy40.rules import Rummy40Rules, as_rules
from gin_env.rummy40.tables import (
    ENDINGS,
    EPISODE_ENDED,
    GOING_ON,
    HAND_ENDED,
    NOBODY,
    PHASES,
    PLAYING,
    Tables,
    empty_tables,
    output,
)
from gin_env.rummy40.turn import is_legal, play, write_legal, write_points

__all__ = [
    "EPISODE_ENDED",
    "GOING_ON",
    "HAND_ENDED",
    "NO_ACTION",
    "IllegalAction",
    "Result",
    "deal",
    "decision_keys",
    "legal",
    "legal_actions",
    "mix_keys",
    "new_tables",
    "num_actions",
    "num_seats",
    "refusal",
    "replay",
    "result",
    "step",
]

NO_ACTION = -1  # leaves a table as it is


class IllegalAction(ValueError):
    """An action that the rules do not allow now. Nothing has changed.

    Attributes:
        table: Row of the table.
        seat: Seat to move, or -1 when the hand is over.
        action: The refused action's id.
        legal: Ids of the legal actions.
        phase: One of `gin_env.rummy40.tables.PHASES`.
        record: The line that `replay` makes the table from, which ends the message; "" where nothing has been dealt.
    """

    def __init__(self, table: int, seat: int, action: int, legal: Sequence[int], phase: str, record: str = "") -> None:
        """Composes the message from what was asked and what is legal."""
        self.table, self.seat, self.action, self.legal, self.phase = table, seat, action, tuple(legal), phase
        self.record = record
        known = 0 <= action < NUM_TWO_PACK_ACTIONS
        asked = f"{action_name(action)!r} (action {action})" if known else f"action {action}, which does not exist,"
        if seat == NOBODY:
            message = f"table {table}: {asked} is illegal: the hand is over; deal or reset first"
        else:
            names = ", ".join(action_name(a) for a in self.legal)
            message = f"table {table}: seat {seat} may not play {asked} in phase {phase!r}; legal: {names}"
        if record:
            message += f"\nto reproduce: {record}"
        super().__init__(message)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Pickles what was asked, for errors that cross to another process."""
        return type(self), (self.table, self.seat, self.action, self.legal, self.phase, self.record)


# ------------------------------------------------------------------------------------------------- batched kernels


@kernel
def _decision_keys(seed, t, out):
    for i in range(t.size):
        out[i] = mix(mix(seed ^ t[i].key, np.uint64(t[i].hand_number)), np.uint64(t[i].num_moves))


@kernel
def _deal(t, rows):
    for row in rows:
        deal_next(t[row])


@kernel
def _deal_decks(t, rows, decks, dealers):
    for k in range(rows.size):
        row = rows[k]
        # The match's bookkeeping first, then the given deck over the shuffled one.
        deal_next(t[row])
        t[row].deck[: decks.shape[1]] = decks[k]
        start_hand(t[row], np.int64(t[row].dealer if dealers[k] < 0 else dealers[k]))


@kernel
def _legal(t, out):
    found = np.empty(NUM_MELDS, dtype=np.int64)
    for i in range(t.size):
        write_legal(t[i], found, borrow_row(out, i))


@kernel
def _step(t, actions, redeal, points, over):
    """Plays all actions, or none: returns the row of the first illegal one, or -1."""
    found = np.empty(NUM_MELDS, dtype=np.int64)
    for i in range(actions.size):
        if actions[i] != NO_ACTION and not is_legal(t[i], actions[i], found):
            return i
    for i in range(actions.size):
        for seat in range(points.shape[1]):
            points[i, seat] = 0
        over[i] = GOING_ON
        if actions[i] == NO_ACTION:
            continue
        over[i] = play(t[i], np.int64(actions[i]))
        if over[i] != GOING_ON:
            write_points(t[i], borrow_row(points, i))
            if redeal:
                deal_next(t[i])
    return -1


# -------------------------------------------------------------------------------------------------- public functions


def decision_keys(seed: int, tables: Tables) -> np.ndarray:
    """Returns a random key for the decision that each table is at: (N,) uint64, as `gin_env.engine.decision_keys`.

    Args:
        seed: Of a stream of its own, 0 to 2**64 - 1; not that of the deals.
        tables: N tables.
    """
    out = np.empty(tables.size, dtype=np.uint64)
    _decision_keys(np.uint64(seed), tables, out)
    return out


def new_tables(rules: Rummy40Rules | str, size: int, *, seed: int = 0, first: int = 0, match: bool = False) -> Tables:
    """Deals ``size`` tables: those numbered ``first`` to ``first + size - 1`` of the seed.

    Args:
        rules: Rules, or text as for `gin_env.rummy40.rules.as_rules`.
        size: Number of tables.
        seed: Decides every deck of every table, whatever the batch size.
        first: Number of the first table.
        match: Whether hands go on to the rules' limit; otherwise a hand is an episode.

    Raises:
        ValueError: If the seed or size is out of range, or there are no such rules.
    """
    rules = as_rules(rules)
    if size < 1:
        raise ValueError(f"size is {size}; expected at least 1 table")
    if not 0 <= first <= (1 << 63) - size:
        raise ValueError(f"first is {first}; expected a table number of 0 to 2**63 - size")
    tables = empty_tables(rules, size, match)
    tables["key"][:] = mix_keys(seed, np.arange(first, first + size, dtype=np.uint64))
    deal(tables)
    return tables


def deal(
    tables: Tables,
    rows: ArrayLike | None = None,
    decks: ArrayLike | None = None,
    dealers: ArrayLike | None = None,
) -> None:
    """Deals the next hand at some tables, of the running match or of a new episode.

    Args:
        tables: Changed in place.
        rows: (K,) table rows; all by default.
        decks: (K, cards in play) card orders in place of shuffled ones: one card each in turn from the player after the
            dealer on, then the card turned up, then the stock from its top. Jokers are card 52.
        dealers: (K,) seats; only with ``decks``. By default the rules decide.

    Raises:
        ValueError: If a deck is not an order of the cards in play, or a row or dealer does not exist.
    """
    size = tables.size
    rows = np.arange(size) if rows is None else np.atleast_1d(np.asarray(rows))
    # Numbers only: a mask of rows would be read as the rows 0 and 1.
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(f"rows are {rows.dtype} of shape {rows.shape}; expected integers of shape (K,)")
    rows = rows.astype(np.int64)
    if rows.size and not (0 <= rows.min() and rows.max() < size):
        raise ValueError(f"rows {rows.min()} to {rows.max()} do not fit; expected 0 to {size - 1}")
    if decks is None:
        if dealers is not None:
            raise ValueError("dealers are given without decks")
        _deal(tables, rows)
        return
    decks = np.atleast_2d(np.asarray(decks))
    rules = Rummy40Rules.from_row(tables["rules"][0])
    fits = decks.shape == (rows.size, rules.deck_size) and decks.dtype.kind in "iu"
    if not (fits and (np.sort(decks, axis=1) == rules.deck).all()):
        raise ValueError(
            f"decks ({decks.dtype} of shape {decks.shape}) are not {rows.size} orders of the {rules.deck_size} cards "
            "in play"
        )
    seats = np.full(rows.size, -1) if dealers is None else np.atleast_1d(np.asarray(dealers))
    if dealers is not None and (seats.shape != rows.shape or not np.isin(seats, range(rules.seats)).all()):
        raise ValueError(f"dealers are {seats.tolist()}; expected {rows.size} seats of 0 to {rules.seats - 1}")
    _deal_decks(tables, rows, np.ascontiguousarray(decks, dtype=np.int8), seats.astype(np.int64))


def num_actions(tables: Tables) -> int:
    """Returns the size of the tables' action table (`Rummy40Rules.num_actions`): that of the first of them."""
    return NUM_TWO_PACK_ACTIONS if tables.size and tables["rules"]["packs"][0] > 1 else NUM_ACTIONS


def num_seats(tables: Tables) -> int:
    """Returns how many players the tables have: as many as the first of them."""
    return int(tables["rules"]["seats"][0])


def legal(tables: Tables, out: np.ndarray | None = None) -> np.ndarray:
    """Returns the mask of each mover's legal actions, all zero where the hand is over.

    Args:
        tables: N tables.
        out: (N, A) int8 to write into; A is 1311, or 1987 with two packs.
    """
    out = output("out", out, (tables.size, num_actions(tables)), np.int8)
    _legal(tables, out)
    return out


def legal_actions(tables: Tables, row: int = 0) -> list[int]:
    """Returns the ids of the legal actions at one table."""
    return np.flatnonzero(legal(tables[row : row + 1])[0]).tolist()


def step(
    tables: Tables,
    actions: ArrayLike,
    *,
    redeal: bool = False,
    points: np.ndarray | None = None,
    over: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Plays one action at each table.

    Args:
        tables: Changed in place.
        actions: (N,) integers; -1 leaves a table as it is.
        redeal: Whether to deal the next hand at once where one has ended; its result stays in the result fields.
        points: (N, seats) float64 to write into.
        over: (N,) int8 to write into.

    Returns:
        The points of each seat from hands that ended in this step, (N, seats) float64: the mean of the others'
        penalties less its own, so they sum to zero (the penalties themselves are the tables' ``penalties``); and how
        each table stands, (N,) int8: GOING_ON, HAND_ENDED (the match goes on) or EPISODE_ENDED.

    Raises:
        IllegalAction: If an action is illegal; then no table has changed.
        ValueError: If the actions do not fit the tables.
    """
    size = tables.size
    chosen = np.ascontiguousarray(actions)
    if chosen.shape != (size,) or chosen.dtype.kind not in "iu":
        raise ValueError(f"actions are {chosen.dtype} of shape {chosen.shape}; expected integers of shape ({size},)")
    if chosen.dtype == np.uint64 and chosen.size and chosen.max() >= NUM_TWO_PACK_ACTIONS:
        chosen = np.minimum(chosen, np.uint64(NUM_TWO_PACK_ACTIONS))  # illegal all the same; as int64 it might be -1
    points = output("points", points, (size, num_seats(tables) if size else 0), np.float64)
    over = output("over", over, (size,), np.int8)
    bad = _step(tables, chosen.astype(np.int64, copy=False), redeal, points, over)
    if bad >= 0:
        raise refusal(tables, bad, int(chosen[bad]))
    return points, over


def refusal(tables: Tables, row: int, action: int) -> IllegalAction:
    """Returns the error that refuses an action at one table, for the caller to raise."""
    phase = PHASES[tables["phase"][row]]
    seat = NOBODY if phase == "over" else int(tables["mover"][row])
    try:
        record = table_record(tables, row).line()
    except ValueError:  # nothing was dealt, or someone wrote into the table what no record holds
        record = ""
    return IllegalAction(row, seat, action, legal_actions(tables, row), phase, record)


def replay(record: Record | str) -> Iterator[Tables]:
    """Plays what was recorded, move by move, as `gin_env.engine.replay` does for gin.

    Args:
        record: A record, or its line (`gin_env.rummy40.record`).

    Yields:
        The table, after each deal (``num_moves`` is 0 then) and after each move. It is the same array each time, which
        the next move changes: copy what is to be kept.

    Raises:
        RecordError: If the line cannot be read; or, when it comes to that, if a move is illegal, a dealer or scores are
            not what the rules say, a hand begins before the last one or after the match has ended, or a result is not
            what the moves lead to. Says in which hand and at which move.
    """
    if isinstance(record, str):
        record = parse_record(record)
    tables = empty_tables(record.rules, 1, record.match)
    seats = record.rules.seats
    over = EPISODE_ENDED
    for number, hand in enumerate(record.hands, 1):
        if number > 1 and over != HAND_ENDED:
            ended = "not ended" if over == GOING_ON else "ended the match"
            raise RecordError(f"hand {number}: the hand before has {ended}")
        # Anyone may deal a single hand, and whether it is the first of its match nobody can tell from one with scores.
        by_rules = record.match and hand.scores is None and record.rules.first_dealer != "random" or number > 1
        deal(tables, decks=[hand.deck], dealers=None if by_rules else [hand.dealer])
        dealer = int(tables["dealer"][0])
        if dealer != hand.dealer:
            raise RecordError(f"hand {number}: dealer is {hand.dealer}; by the rules it is {dealer}")
        if hand.scores is not None:
            if number == 1:
                tables["scores"][0, :seats] = hand.scores
            scores = tuple(tables["scores"][0, :seats].tolist())
            if hand.scores != scores:
                given, reached = ("-".join(map(str, some)) for some in (hand.scores, scores))
                raise RecordError(f"hand {number}: scores are {given}; the hands before lead to {reached}")
        yield tables
        over = GOING_ON
        for place, move in enumerate(hand.moves, 1):
            try:
                over = int(step(tables, [move])[1][0])
            except IllegalAction as error:
                legal = ", ".join(move_text(action) for action in error.legal)
                reason = f"seat {error.seat} may not play it in phase {error.phase!r}; legal: {legal}"
                if error.seat == NOBODY:
                    reason = "the hand has ended before"
                raise RecordError(f"hand {number}, move {place}, {move_text(move)!r}: {reason}") from None
            yield tables
        if hand.result is not None:
            if over == GOING_ON:
                raise RecordError(f"hand {number}: it has a result, but the moves stop before its end")
            ended_as = outcome(tables)
            assert ended_as is not None  # a hand has ended
            if hand.result != ended_as:
                raise RecordError(
                    f"hand {number}: its result is {hand.result.text()!r}; the moves lead to {ended_as.text()!r}"
                )


class Result(NamedTuple):
    """How the last hand of a table ended, for people and logs."""

    ending: str  # one of gin_env.rummy40.tables.ENDINGS
    out: int | None  # seat that went out
    penalties: tuple[int, ...]  # points by seat: left in hand, and for melds taken back
    hands: tuple[str, ...]  # by seat, cards left in hand as text
    turns: int


def result(tables: Tables, row: int = 0) -> Result | None:
    """Returns how the last hand that ended at a table went, or None before the first."""
    t = tables[row]
    ending = int(t["ending"])
    if ending == PLAYING:
        return None
    seats = int(t["rules"]["seats"])
    return Result(
        ending=ENDINGS[ending],
        out=None if t["out"] == NOBODY else int(t["out"]),
        penalties=tuple(t["penalties"][:seats].tolist()),
        hands=tuple(cards_text(held(t["final_hands"][seat], t["final_jokers"][seat])) for seat in range(seats)),
        turns=int(t["num_turns"]),
    )
