"""The engine: deal, legal, step, over N tables at once, compiled, in place.

The order of a deck is a pure function of (seed, table, hand number), so it is the same on 1 table or 4,096; nothing
else here is random. An illegal action raises `IllegalAction` before any table has changed.

    >>> from gin_env import engine
    >>> tables = engine.new_tables("cardpuzzle", 2, seed=7)
    >>> engine.legal(tables)[:, :3].tolist()     # pass, draw, take
    [[1, 0, 1], [1, 0, 1]]
    >>> points, over = engine.step(tables, [0, 0])
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gin_env._compile import borrow_row, kernel, lowest, write_cards
from gin_env.actions import (
    BIG_GIN,
    DISCARD,
    DRAW,
    KNOCK,
    NUM_ACTIONS,
    NUM_MANUAL_ACTIONS,
    PASS,
    TAKE,
    action_name,
)
from gin_env.cards import NO_CARD, cards_text, from_mask
from gin_env.dealing import deal_next, start_hand
from gin_env.keys import mix, mix_keys
from gin_env.melds import (
    bit,
    least_deadwood,
    num_set_choices,
    run_loose,
    set_choice,
    set_ranks,
    thrown_loose,
)
from gin_env.record import Record, RecordError, move_text, outcome, parse_record, table_record
from gin_env.rules import CODES, MAX_HAND_SIZE, Rules, as_rules
from gin_env.showdown import (
    end_unscored,
    is_legal_in_showdown,
    knock,
    play_in_showdown,
    score,
    write_legal_in_showdown,
)
from gin_env.tables import (
    DEAD,
    DECLARE,
    DRAW_ANY,
    DRAW_STOCK,
    ENDINGS,
    EPISODE_ENDED,
    GOING_ON,
    HAND_ENDED,
    NOBODY,
    OFFER,
    OFFER_DEALER,
    OVER,
    PHASES,
    PLAYING,
    THROW,
    TRUNCATED,
    WALL,
    WALL_THROW,
    Tables,
    empty_tables,
    output,
)

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
    "refusal",
    "replay",
    "result",
    "score",
    "step",
]

NO_ACTION = -1  # leaves a table as it is

_U0 = np.uint64(0)
_U1 = np.uint64(1)
# For each phase, which of pass, draw and take are legal, as bits; more at the wall and in the showdown.
_PLAIN = np.zeros(len(PHASES), dtype=np.int64)
_PLAIN[OFFER] = _PLAIN[OFFER_DEALER] = 1 << PASS | 1 << TAKE
_PLAIN[DRAW_STOCK] = 1 << DRAW
_PLAIN[DRAW_ANY] = 1 << DRAW | 1 << TAKE
_PLAIN[WALL] = 1 << PASS
_WALL_KNOCK = CODES["knock"]


class IllegalAction(ValueError):
    """An action that the rules do not allow now. Nothing has changed.

    Attributes:
        table: Row of the table.
        seat: Seat to move, or -1 when the hand is over.
        action: The refused action's id.
        legal: Ids of the legal actions.
        phase: One of `gin_env.tables.PHASES`.
        record: The line that `replay` makes the table from, which ends the message; "" where nothing has been dealt.
    """

    def __init__(self, table: int, seat: int, action: int, legal: Sequence[int], phase: str, record: str = "") -> None:
        """Composes the message from what was asked and what is legal."""
        self.table, self.seat, self.action, self.legal, self.phase = table, seat, action, tuple(legal), phase
        self.record = record
        known = 0 <= action < NUM_MANUAL_ACTIONS
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


# ----------------------------------------------------------------------------------------------------------- legal


@kernel
def knock_discards(hand, limit, allowed):
    """The cards of ``allowed`` that leave at most ``limit`` deadwood when thrown, as a mask."""
    knocks = _U0
    ranks = set_ranks(hand)
    choices = num_set_choices(hand, ranks) if ranks else 1
    for choice in range(choices):
        rest = hand & ~set_choice(hand, ranks, choice) if choice else hand
        total = run_loose(rest)
        # Throwing a card saves at most its ten points.
        if total - 10 <= limit:
            cards = rest & allowed
            while cards != _U0:
                card = lowest(cards)
                cards &= cards - _U1
                if total + thrown_loose(rest, card) <= limit:
                    knocks |= bit(card)
    return knocks


@kernel
def throwable(t):
    """The cards that the mover may throw in this turn."""
    hand = t.hands[t.mover]
    if t.taken != NO_CARD and not t.rules.rediscard:
        return hand & ~bit(t.taken)
    return hand


@kernel
def may_big_gin(t):
    """Whether the mover, with a card too many in hand, may declare big gin."""
    return t.rules.big_gin_bonus >= 0 and least_deadwood(t.hands[t.mover]) == 0


@kernel
def may_take_at_wall(t):
    """Whether the mover at the wall may take the top discard: if that lets it knock."""
    top = bit(t.pile[t.pile_size - 1])
    hand = t.hands[t.mover] | top
    allowed = hand if t.rules.rediscard else hand & ~top
    return knock_discards(hand, np.int64(t.limit), allowed) != _U0 or (
        t.rules.big_gin_bonus >= 0 and least_deadwood(hand) == 0
    )


@kernel
def is_legal(t, action):
    """Whether the mover of the table may play ``action``."""
    if t.phase >= DECLARE:
        return t.phase != OVER and is_legal_in_showdown(t, action)
    if action < DISCARD:
        if t.phase == WALL and action == TAKE:
            return may_take_at_wall(t)
        return action >= 0 and _PLAIN[t.phase] >> action & 1 != 0
    if t.phase != THROW and t.phase != WALL_THROW:
        return False
    if action < KNOCK:
        return t.phase == THROW and (throwable(t) & bit(action - DISCARD)) != _U0
    if action < BIG_GIN:
        thrown = bit(action - KNOCK) & throwable(t)
        return thrown != _U0 and least_deadwood(t.hands[t.mover] & ~thrown) <= t.limit
    return action == BIG_GIN and may_big_gin(t)


@kernel
def write_legal(t, worth_a_look, out):
    """Writes the mask of legal actions of the table's mover into ``out`` (108,), or (449,) where rules are manual.

    ``worth_a_look`` may be False where the caller knows that no throw leaves little enough to knock.
    """
    plain = _PLAIN[t.phase]
    out[PASS] = plain >> PASS & 1
    out[DRAW] = plain >> DRAW & 1
    out[TAKE] = plain >> TAKE & 1
    cards = _U0
    knocks = _U0
    throws = t.phase == THROW or t.phase == WALL_THROW
    if throws:
        cards = throwable(t)
        if worth_a_look:
            knocks = knock_discards(t.hands[t.mover], np.int64(t.limit), cards)
        if t.phase == WALL_THROW:
            cards = _U0
    write_cards(out, DISCARD, cards)
    write_cards(out, KNOCK, knocks)
    # Eleven cards in melds hold a meld of four, so a knock is legal too. Smaller hands may be melded in threes only.
    out[BIG_GIN] = throws and (knocks != _U0 or t.rules.hand_size < MAX_HAND_SIZE) and may_big_gin(t)
    if t.phase == WALL:
        out[TAKE] = may_take_at_wall(t)
    if out.size > NUM_ACTIONS:  # the rules are manual
        for action in range(NUM_ACTIONS, NUM_MANUAL_ACTIONS):
            out[action] = 0
        if t.phase >= DECLARE and t.phase != OVER:
            write_legal_in_showdown(t, out)


# ------------------------------------------------------------------------------------------------------------ step


@kernel
def play(t, action):
    """Plays a legal action and says how the table stands: GOING_ON, HAND_ENDED or EPISODE_ENDED."""
    mover = np.int64(t.mover)
    t.moves[t.num_moves] = action
    t.num_moves += 1
    if t.phase >= DECLARE:
        return play_in_showdown(t, action)
    if action == PASS:
        if t.phase == WALL:
            return end_unscored(t, DEAD)
        t.declined[mover] |= bit(t.pile[0])
        t.phase = OFFER_DEALER if t.phase == OFFER else DRAW_STOCK
        t.mover = 1 - mover
        return GOING_ON
    if action < DISCARD:
        taking = action == TAKE
        size = np.int64(t.pile_size)
        top = np.int64(t.pile[size - 1]) if size else np.int64(NO_CARD)
        if taking:
            card = top
            t.pile_size = size - 1
            t.pile[size - 1] = NO_CARD
            t.pile_by[size - 1] = NOBODY
            t.known[mover] |= bit(card)
            t.taken = card
        else:
            if t.phase == DRAW_ANY and size:
                t.declined[mover] |= bit(top)
            card = np.int64(t.deck[t.stock_at])
            t.stock_at += 1
            t.drawn = card
        t.hands[mover] |= bit(card)
        t.draws += 1
        if taking and t.phase == DRAW_ANY:
            t.takes += 1
            if t.takes == t.rules.take_cap:
                return end_unscored(t, DEAD)
        t.phase = WALL_THROW if t.phase == WALL else THROW
        return GOING_ON
    if action == BIG_GIN:
        return knock(t, True)
    card = action - KNOCK if action >= KNOCK else action - DISCARD
    t.hands[mover] &= ~bit(card)
    t.known[mover] &= ~bit(card)
    t.thrown[mover] |= bit(card)
    t.pile[t.pile_size] = card
    t.pile_by[t.pile_size] = mover
    t.pile_size += 1
    t.swaps = t.swaps + 1 if card == t.taken else 0
    t.taken = NO_CARD
    t.drawn = NO_CARD
    if action >= KNOCK:
        return knock(t, False)
    rules = t.rules
    if t.swaps == rules.swap_cap:
        return end_unscored(t, DEAD)
    if rules.deck_size - t.stock_at <= rules.stock_floor:
        if rules.wall == _WALL_KNOCK:
            t.phase = WALL
            t.mover = 1 - mover
            return GOING_ON
        return end_unscored(t, DEAD)
    if t.draws >= rules.draw_cap:
        return end_unscored(t, TRUNCATED)
    t.phase = DRAW_ANY
    t.mover = 1 - mover
    return GOING_ON


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
    for i in range(t.size):
        write_legal(t[i], True, borrow_row(out, i))


@kernel
def _step(t, actions, redeal, points, over):
    """Plays all actions, or none: returns the row of the first illegal one, or -1."""
    for i in range(actions.size):
        if actions[i] != NO_ACTION and not is_legal(t[i], actions[i]):
            return i
    for i in range(actions.size):
        points[i, 0] = 0
        points[i, 1] = 0
        over[i] = GOING_ON
        if actions[i] == NO_ACTION:
            continue
        over[i] = play(t[i], np.int64(actions[i]))
        if over[i] != GOING_ON:
            winner = np.int64(t[i].winner)
            if winner != NOBODY:
                points[i, winner] = t[i].points
                points[i, 1 - winner] = -t[i].points
            if redeal:
                deal_next(t[i])
    return -1


# -------------------------------------------------------------------------------------------------- public functions


def decision_keys(seed: int, tables: Tables) -> np.ndarray:
    """Returns a random key for the decision that each table is at: (N,) uint64.

    A pure function of (seed, the table's key, hand, moves played), so no table's choices depend on another's.

    Args:
        seed: Of a stream of its own, 0 to 2**64 - 1; not that of the deals.
        tables: N tables.
    """
    out = np.empty(tables.size, dtype=np.uint64)
    _decision_keys(np.uint64(seed), tables, out)
    return out


def new_tables(rules: Rules | str, size: int, *, seed: int = 0, first: int = 0, match: bool = False) -> Tables:
    """Deals ``size`` tables: those numbered ``first`` to ``first + size - 1`` of the seed.

    Args:
        rules: Rules, or the name of a preset.
        size: Number of tables.
        seed: Decides every deck of every table, whatever the batch size.
        first: Number of the first table.
        match: Whether hands go on to the rules' target; otherwise a hand is an episode.

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
        decks: (K, cards in the pack) card orders in place of shuffled ones: alternately to the non-dealer and the
            dealer, then the upcard, then the stock from its top.
        dealers: (K,) seats; only with ``decks``. By default the rules decide.

    Raises:
        ValueError: If a deck is not an order of the pack, or a row or dealer does not exist.
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
    pack = from_mask(tables["rules"]["pack"][0])
    fits = decks.shape == (rows.size, len(pack)) and decks.dtype.kind in "iu"
    if not (fits and (np.sort(decks, axis=1) == pack).all()):
        raise ValueError(
            f"decks ({decks.dtype} of shape {decks.shape}) are not {rows.size} orders of the pack's {len(pack)} cards"
        )
    seats = np.full(rows.size, -1) if dealers is None else np.atleast_1d(np.asarray(dealers))
    if dealers is not None and (seats.shape != rows.shape or not np.isin(seats, (0, 1)).all()):
        raise ValueError(f"dealers are {seats.tolist()}; expected {rows.size} seats of 0 or 1")
    _deal_decks(tables, rows, np.ascontiguousarray(decks, dtype=np.int8), seats.astype(np.int64))


def num_actions(tables: Tables) -> int:
    """Returns the size of the tables' action table (`gin_env.rules.Rules.num_actions`): that of the first of them."""
    return NUM_MANUAL_ACTIONS if tables.size and tables["rules"]["manual"][0] else NUM_ACTIONS


def legal(tables: Tables, out: np.ndarray | None = None) -> np.ndarray:
    """Returns the mask of each mover's legal actions, all zero where the hand is over.

    Args:
        tables: N tables.
        out: (N, A) int8 to write into; A is 108, or 449 where the rules are manual.
    """
    out = output("out", out, (tables.size, num_actions(tables)), np.int8)
    _legal(tables, out)
    return out


def legal_actions(tables: Tables, row: int = 0) -> list[int]:
    """Returns the ids of the legal actions at one table."""
    out = np.empty(num_actions(tables), dtype=np.int8)
    write_legal(tables[row], True, out)
    return np.flatnonzero(out).tolist()


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
        points: (N, 2) int32 to write into.
        over: (N,) int8 to write into.

    Returns:
        The points of each seat from hands that ended in this step, (N, 2) int32, zero-sum; and how each table stands,
        (N,) int8: GOING_ON, HAND_ENDED (the match goes on) or EPISODE_ENDED.

    Raises:
        IllegalAction: If an action is illegal; then no table has changed.
        ValueError: If the actions do not fit the tables.
    """
    size = tables.size
    chosen = np.ascontiguousarray(actions)
    if chosen.shape != (size,) or chosen.dtype.kind not in "iu":
        raise ValueError(f"actions are {chosen.dtype} of shape {chosen.shape}; expected integers of shape ({size},)")
    if chosen.dtype == np.uint64 and chosen.size and chosen.max() >= NUM_MANUAL_ACTIONS:
        chosen = np.minimum(chosen, np.uint64(NUM_MANUAL_ACTIONS))  # illegal all the same; as int64 it might be the -1
    points = output("points", points, (size, 2), np.int32)
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
    """Plays what was recorded, move by move.

        >>> for tables in replay(line):  # doctest: +SKIP
        ...     pass
        >>> legal_actions(tables)  # where the record stops  # doctest: +SKIP

    Args:
        record: A record, or its line (`gin_env.record`).

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
                tables["scores"][0] = hand.scores
            first, second = tables["scores"][0].tolist()
            if hand.scores != (first, second):
                raise RecordError(
                    f"hand {number}: scores are {hand.scores[0]}-{hand.scores[1]}; the hands before lead to "
                    f"{first}-{second}"
                )
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
            reached = outcome(tables)
            assert reached is not None  # a hand has ended
            if hand.result != reached:
                raise RecordError(
                    f"hand {number}: its result is {hand.result.text()!r}; the moves lead to {reached.text()!r}"
                )


class Result(NamedTuple):
    """How the last hand of a table ended, for people and logs."""

    ending: str  # one of gin_env.tables.ENDINGS
    knocker: int | None  # seat
    winner: int | None  # seat
    points: int
    deadwood: tuple[int, int]  # by seat, after layoffs
    melds: tuple[tuple[str, ...], tuple[str, ...]]  # by seat, cards as text
    layoffs: tuple[str, ...]  # the defender's cards on each of the knocker's melds, as text
    turns: int


def result(tables: Tables, row: int = 0) -> Result | None:
    """Returns how the last hand that ended at a table went, or None before the first."""
    ending = int(tables["ending"][row])
    if ending == PLAYING:
        return None
    knocker, winner = int(tables["knocker"][row]), int(tables["winner"][row])
    melds = [tuple(cards_text(int(meld)) for meld in tables["melds"][row, seat] if meld) for seat in range(2)]
    count_melds = len(melds[knocker]) if knocker != NOBODY else 0
    return Result(
        ending=ENDINGS[ending],
        knocker=None if knocker == NOBODY else knocker,
        winner=None if winner == NOBODY else winner,
        points=int(tables["points"][row]),
        deadwood=(int(tables["deadwood"][row, 0]), int(tables["deadwood"][row, 1])),
        melds=(melds[0], melds[1]),
        layoffs=tuple(cards_text(int(cards)) for cards in tables["layoffs"][row, :count_melds]),
        turns=int(tables["num_turns"][row]),
    )
