"""What one seat may know, and its encoding as an observation vector.

`View` is the only door between a game and a player. `observe` opens it for one seat of each table, `encode` writes it
as numbers for a network. Both are free of anything the seat has not seen: shuffle the hidden cards and not a bit
changes (a test does).
"""

import numpy as np
from numpy.typing import ArrayLike

from gin_env._compile import borrow_row, count, kernel, write_cards
from gin_env.actions import MAX_MELDS
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.engine import num_actions, write_legal
from gin_env.melds import FLOAT_POINTS, bit, deadwood_without, least_after_discard, least_deadwood
from gin_env.rules import RULES_DTYPE, Rules
from gin_env.showdown import card_points
from gin_env.tables import (
    DECLARE,
    DRAW_STOCK,
    NOBODY,
    OVER,
    PLAYING,
    THROW,
    WALL,
    WALL_THROW,
    Tables,
    output,
)

# Who threw a card of the discard pile, as one seat sees it.
OWN, OPPONENT, DEALT = 0, 1, -1


# (name, type, shape in each row, meaning). Masks are card sets, cards are ids or -1.
VIEW_FIELDS = (
    ("rules", RULES_DTYPE, (), "the rules played"),
    ("seat", np.int8, (), "whose view this is"),
    ("to_move", np.bool_, (), "whether that seat is to move"),
    ("is_dealer", np.bool_, (), "whether that seat is the dealer"),
    ("doubled", np.bool_, (), "whether a spade upcard doubles this hand"),
    ("phase", np.int8, (), "gin_env.tables.OFFER to OVER"),
    ("opponent_cards", np.int8, (), "number of cards in the opponent's hand"),
    ("upcard", np.int8, (), "top of the discard pile"),
    ("taken", np.int8, (), "card that the mover took from the pile in this turn"),
    ("drawn", np.int8, (), "card that this seat drew from the stock in this turn"),
    ("limit", np.int16, (), "most deadwood to knock with in this hand, points"),
    ("draws", np.int16, (), "cards drawn in this hand by both"),
    ("stock", np.int16, (), "cards left in the stock"),
    ("pile_size", np.int16, (), "cards in the discard pile"),
    ("hand", np.uint64, (), "own cards, those laid down and laid off included"),
    ("own_known", np.uint64, (), "own cards that the opponent has seen being taken or laid"),
    ("opponent_known", np.uint64, (), "cards known to be in the opponent's hand; all of it once it is shown"),
    ("own_thrown", np.uint64, (), "cards thrown by oneself in this hand, also those taken up since"),
    ("opponent_thrown", np.uint64, (), "the same for the opponent"),
    ("own_declined", np.uint64, (), "cards of the pile that one could have taken and did not"),
    ("opponent_declined", np.uint64, (), "the same for the opponent"),
    ("pile", np.int8, (NUM_CARDS,), "discard pile from the bottom, -1 above its top"),
    ("pile_by", np.int8, (NUM_CARDS,), "who threw each: OWN, OPPONENT, or DEALT for the first upcard"),
    ("own_score", np.int32, (), "match points"),
    ("opponent_score", np.int32, (), "match points"),
    ("target", np.int32, (), "points that win the match; 0 where one hand decides"),
    # Once the hand is over; until then PLAYING and 0.
    ("ending", np.int8, (), "gin_env.tables.PLAYING to TRUNCATED"),
    ("own_points", np.int32, (), "points won (negative: lost) in this hand"),
    # From the knock on, as far as it is on the table; until then -1 and no cards.
    ("knocker", np.int8, (), "who knocked: OWN, OPPONENT, or -1 for nobody"),
    ("own_deadwood", np.int16, (), "the knocker's once its melds are laid, both when the hand is over; otherwise -1"),
    ("opponent_deadwood", np.int16, (), "the same for the opponent"),
    ("own_melds", np.uint64, (MAX_MELDS,), "as laid down"),
    ("opponent_melds", np.uint64, (MAX_MELDS,), "as laid down"),
    ("layoffs", np.uint64, (MAX_MELDS,), "the defender's cards on each of the knocker's melds"),
)
VIEW_DTYPE = np.dtype([(name, kind, shape) for name, kind, shape, _ in VIEW_FIELDS], align=True)

View = np.ndarray  # (N,) VIEW_DTYPE

# In place of seats, to kernels: each table's mover.
_MOVERS = np.empty(0, dtype=np.int8)


@kernel
def observe_row(t, seat, v):
    """Writes what ``seat`` of a table may know into a row of the view."""
    other = 1 - seat
    v.rules = t.rules
    over = t.phase == OVER
    moves = not over and t.mover == seat
    v.seat = seat
    v.to_move = moves
    v.is_dealer = t.dealer == seat
    v.phase = t.phase
    v.limit = t.limit
    v.doubled = t.doubled
    v.draws = t.draws
    v.stock = t.rules.deck_size - t.stock_at
    v.hand = t.hands[seat]
    v.own_known = t.known[seat]
    v.opponent_known = t.hands[other] if over else t.known[other]
    v.opponent_cards = count(t.hands[other])
    v.own_thrown = t.thrown[seat]
    v.opponent_thrown = t.thrown[other]
    v.own_declined = t.declined[seat]
    v.opponent_declined = t.declined[other]
    size = t.pile_size
    exchanged = np.int8(seat)
    # Loops on purpose, here and below: on arrays this small an assignment to a slice costs three times as much.
    for k in range(NUM_CARDS):
        v.pile[k] = t.pile[k]
        # Seats become OWN and OPPONENT: the same numbers from seat 0, exchanged from seat 1.
        by = t.pile_by[k]
        v.pile_by[k] = by ^ exchanged if by >= 0 else np.int8(DEALT)
    v.pile_size = size
    v.upcard = t.pile[size - 1] if size > 0 else NO_CARD
    v.taken = t.taken
    v.drawn = t.drawn if moves else NO_CARD
    v.own_score = t.scores[seat]
    v.opponent_score = t.scores[other]
    v.target = max(t.rules.target, 0) if t.to_target else 0
    v.ending = PLAYING
    v.knocker = NOBODY
    v.own_points = 0
    v.own_deadwood = -1
    v.opponent_deadwood = -1
    for k in range(MAX_MELDS):
        v.own_melds[k] = _U0
        v.opponent_melds[k] = _U0
        v.layoffs[k] = _U0
    if over:
        v.ending = t.ending
        if t.knocker != NOBODY:
            v.knocker = OWN if t.knocker == seat else OPPONENT
        if t.winner != NOBODY:
            v.own_points = t.points if t.winner == seat else -t.points
        v.own_deadwood = t.deadwood[seat]
        v.opponent_deadwood = t.deadwood[other]
        v.own_melds[:] = t.melds[seat]
        v.opponent_melds[:] = t.melds[other]
        v.layoffs[:] = t.layoffs
    elif t.phase >= DECLARE:
        # What lies on the table. The defender's other cards stay hidden.
        if t.knocking == seat:
            v.knocker = OWN
            v.own_deadwood = t.knocked_with
        else:
            v.knocker = OPPONENT
            v.opponent_deadwood = t.knocked_with
        v.own_melds[:] = t.laid[seat]
        v.opponent_melds[:] = t.laid[other]
        v.layoffs[:] = t.laid_off


@kernel
def _observe(t, seats, v):
    for i in range(t.size):
        observe_row(t[i], np.int64(seats[i]) if seats.size else np.int64(t[i].mover), v[i])


def observe(tables: Tables, seats: ArrayLike | None = None, out: View | None = None) -> View:
    """Returns the view of one seat at each table.

    Args:
        tables: N tables.
        seats: (N,) seats, or one seat for all; by default each table's mover.
        out: A view of N rows to write into.

    Raises:
        ValueError: If a seat is not 0 or 1.
    """
    out = output("out", out, (tables.size,), VIEW_DTYPE)
    _observe(tables, _as_seats(tables, seats), out)
    return out


def _as_seats(tables: Tables, seats: ArrayLike | None) -> np.ndarray:
    if seats is None:
        return _MOVERS
    seats = np.ascontiguousarray(np.broadcast_to(np.asarray(seats, dtype=np.int8), tables.shape))
    if not ((seats == 0) | (seats == 1)).all():
        raise ValueError(f"seats are {np.unique(seats).tolist()}; expected 0 or 1")
    return seats


# ------------------------------------------------------------------------------------------------------- observation

OBSERVATION_VERSION = 1

# (name, meaning) in the order of the vector. The planes of 52 numbers come first, so that the head of the vector
# reshapes to (planes, 4, 13).
PLANES = (
    ("hand", "1 for each own card"),
    ("own_known", "1 for each own card that the opponent has seen being taken"),
    ("opponent_known", "1 for each card known to be in the opponent's hand"),
    ("unseen", "1 for each card that may be in the stock or in the opponent's hand unseen"),
    ("own_pile", "cards of the pile thrown by oneself: 1 for the top of the pile, 1/64 less for each card above"),
    ("opponent_pile", "the same for the opponent"),
    ("opponent_declined", "1 for each card that the opponent could have taken from the pile and did not"),
    ("upcard", "1 for the top of the discard pile"),
    ("deadwood_after", "when a card must be thrown: tens of points left after throwing this one"),
)
SCALARS = (
    ("offer", "1 in the non-dealer's upcard offer"),
    ("offer_dealer", "1 in the dealer's upcard offer"),
    ("draw_stock", "1 when only the stock may be drawn"),
    ("draw", "1 when stock or top discard may be drawn"),
    ("throw", "1 when a card must be thrown; all five 0 at the wall and once the hand is knocked"),
    ("to_move", "1 when this seat is to move"),
    ("is_dealer", "1 for the dealer"),
    ("doubled", "1 when a spade upcard doubles the hand"),
    ("limit", "knock limit, tens of points"),
    ("stock", "cards left in the stock, of 32"),
    ("end_near", "1 / (1 + cards that can still be drawn): 1 when a throw that does not knock ends the hand"),
    ("draws", "cards drawn in this hand, of 32"),
    ("deadwood", "tens of points: least deadwood of the hand now, of eleven cards after the best discard"),
    ("take_saves", "tens of points by which taking the upcard and throwing another card lowers the deadwood"),
    ("opponent_known_count", "known cards in the opponent's hand, of 10"),
    ("returned", "cards that both have thrown in this hand, of 4: taken up and thrown back"),
    ("own_score", "own match score, of the target"),
    ("opponent_score", "opponent's match score, of the target"),
    ("match", "1 when hands go on to a target"),
)
# What follows where the rules are manual.
MANUAL_PLANES = (
    ("meld_1", "1 for each card on the knocker's first meld, laid off cards included"),
    ("meld_2", "the same for the second"),
    ("meld_3", "the same for the third"),
    ("laid_off", "1 for each card laid off"),
    ("defender_melds", "1 for each card in the defender's own melds"),
)
MANUAL_SCALARS = (
    ("declare", "1 while the knocker lays melds"),
    ("lay_off", "1 while the defender lays off"),
    ("defend", "1 while the defender lays melds"),
    ("knocker", "1 for the knocker, from the knock on"),
    ("knocker_deadwood", "tens of points: left to the knocker, once its melds are laid"),
    ("unlaid", "tens of points: own cards that are neither in melds nor laid off, from the knock on"),
)
NUM_PLANES = len(PLANES)
NUM_SCALARS = len(SCALARS)
OBSERVATION_SIZE = NUM_PLANES * NUM_CARDS + NUM_SCALARS
MANUAL_OBSERVATION_SIZE = OBSERVATION_SIZE + len(MANUAL_PLANES) * NUM_CARDS + len(MANUAL_SCALARS)
# Where each field begins in the vector.
PLANE = {name: index * NUM_CARDS for index, (name, _) in enumerate(PLANES)}
SCALAR = {name: NUM_PLANES * NUM_CARDS + index for index, (name, _) in enumerate(SCALARS)}
MANUAL_PLANE = {name: OBSERVATION_SIZE + index * NUM_CARDS for index, (name, _) in enumerate(MANUAL_PLANES)}
MANUAL_SCALAR = {
    name: OBSERVATION_SIZE + len(MANUAL_PLANES) * NUM_CARDS + index for index, (name, _) in enumerate(MANUAL_SCALARS)
}

_U0 = np.uint64(0)
_HAND, _OWN_KNOWN, _OPPONENT_KNOWN, _UNSEEN = (
    PLANE[name] for name in ("hand", "own_known", "opponent_known", "unseen")
)
_PILE = (PLANE["own_pile"], PLANE["opponent_pile"])
_DECLINED, _UPCARD, _AFTER = (PLANE[name] for name in ("opponent_declined", "upcard", "deadwood_after"))
_FIRST_SCALAR = NUM_PLANES * NUM_CARDS
_FIRST_MANUAL_SCALAR = MANUAL_SCALAR["declare"]


# Recency of the k-th card from the top of the pile.
_RECENCY = 1 - np.arange(NUM_CARDS, dtype=np.float32) / 64
# 1 / (1 + n) for n cards that can still be drawn.
_INVERSE = 1 / np.arange(1, NUM_CARDS + 1, dtype=np.float32)


@kernel
def encode_row(v, out):
    """Writes a row of a view into ``out``, float32: (OBSERVATION_SIZE,), or more where the rules are manual.

    Returns the field deadwood, in points.
    """
    hand = v.hand
    pile_cards = _U0
    for k in range(_PILE[0], _PILE[1] + NUM_CARDS):
        out[k] = np.float32(0)
    size = np.int64(v.pile_size)
    for k in range(size):
        card = np.int64(v.pile[k])
        pile_cards |= bit(card)
        if v.pile_by[k] != DEALT:
            out[(_PILE[0] if v.pile_by[k] == OWN else _PILE[1]) + card] = _RECENCY[size - 1 - k]
    write_cards(out, _HAND, hand)
    write_cards(out, _OWN_KNOWN, v.own_known)
    write_cards(out, _OPPONENT_KNOWN, v.opponent_known)
    write_cards(out, _UNSEEN, v.rules.pack & ~(hand | v.opponent_known | pile_cards))
    write_cards(out, _DECLINED, v.opponent_declined)
    write_cards(out, _UPCARD, bit(v.upcard) if v.upcard != NO_CARD else _U0)

    # Arithmetic: what each throw would leave, and what the upcard would save.
    phase = v.phase
    ten = np.float32(0.1)
    saves = np.float32(0)
    after = out[_AFTER : _AFTER + NUM_CARDS]
    throws = phase == THROW or phase == WALL_THROW
    if throws and v.to_move:
        banned = np.int64(NO_CARD) if v.rules.rediscard else np.int64(v.taken)
        deadwood = deadwood_without(hand, banned, FLOAT_POINTS, ten, after)
        for card in range(NUM_CARDS):
            # Held places only: times the 1 or 0 of the hand's plane.
            after[card] *= out[_HAND + card]
    else:
        for card in range(NUM_CARDS):
            after[card] = np.float32(0)
        deadwood = least_deadwood(hand)
        if (phase < THROW and phase != DRAW_STOCK or phase == WALL) and v.upcard != NO_CARD:
            saves = ten * np.float32(deadwood - least_after_discard(hand | bit(v.upcard), np.int64(v.upcard)))

    at = _FIRST_SCALAR
    for k in range(4):
        out[at + k] = np.float32(phase == k)
    out[at + 4] = np.float32(throws)
    out[at + 5] = np.float32(v.to_move)
    out[at + 6] = np.float32(v.is_dealer)
    out[at + 7] = np.float32(v.doubled)
    out[at + 8] = ten * np.float32(v.limit)
    out[at + 9] = np.float32(v.stock) * np.float32(1 / 32)
    out[at + 10] = _INVERSE[max(v.stock - v.rules.stock_floor, 0)]
    out[at + 11] = np.float32(v.draws) * np.float32(1 / 32)
    out[at + 12] = ten * np.float32(deadwood)
    out[at + 13] = saves
    out[at + 14] = ten * np.float32(count(v.opponent_known))
    target = v.target
    out[at + 15] = np.float32(0.25) * np.float32(count(v.own_thrown & v.opponent_thrown))
    if target > 0:
        out[at + 16] = np.float32(v.own_score) / np.float32(target)
        out[at + 17] = np.float32(v.opponent_score) / np.float32(target)
    else:
        out[at + 16] = np.float32(0)
        out[at + 17] = np.float32(0)
    out[at + 18] = np.float32(target > 0)
    if out.size > OBSERVATION_SIZE:  # the rules are manual
        encode_showdown(v, out)
    return deadwood


@kernel
def encode_showdown(v, out):
    """Writes what follows where the rules are manual: `MANUAL_PLANES` and `MANUAL_SCALARS`."""
    at = OBSERVATION_SIZE
    scalars = _FIRST_MANUAL_SCALAR
    for k in range(at, MANUAL_OBSERVATION_SIZE):
        out[k] = np.float32(0)
    if v.phase < DECLARE or v.knocker == NOBODY:
        return
    own = _U0
    laid_off = _U0
    defence = _U0
    ten = np.float32(0.1)
    for k in range(MAX_MELDS):
        meld = v.own_melds[k] if v.knocker == OWN else v.opponent_melds[k]
        write_cards(out, at + k * NUM_CARDS, meld | v.layoffs[k])
        laid_off |= v.layoffs[k]
        own |= v.own_melds[k]
        defence |= v.opponent_melds[k] if v.knocker == OWN else v.own_melds[k]
    write_cards(out, at + MAX_MELDS * NUM_CARDS, laid_off)
    write_cards(out, at + (MAX_MELDS + 1) * NUM_CARDS, defence)
    for k in range(3):
        out[scalars + k] = np.float32(v.phase == DECLARE + k)
    out[scalars + 3] = np.float32(v.knocker == OWN)
    left = np.int64(v.own_deadwood if v.knocker == OWN else v.opponent_deadwood)
    out[scalars + 4] = ten * np.float32(max(left, 0))
    out[scalars + 5] = ten * np.float32(card_points(v.hand & ~(own | laid_off)))


@kernel
def _encode(v, out):
    for i in range(v.size):
        encode_row(v[i], borrow_row(out, i))


def observation_size(rows: Tables | View | Rules) -> int:
    """Returns how many numbers an observation has under the rules of tables, of a view or given."""
    manual = rows.manual if isinstance(rows, Rules) else bool(rows.size and rows["rules"]["manual"][0])
    return MANUAL_OBSERVATION_SIZE if manual else OBSERVATION_SIZE


def encode(view: View, out: np.ndarray | None = None) -> np.ndarray:
    """Encodes views as observation vectors.

    Args:
        view: N rows.
        out: Array of the result's shape and type to write into.

    Returns:
        (N, OBSERVATION_SIZE) float32; the fields are those of `PLANES` (52 numbers each) and `SCALARS`. Where the rules
        are manual (N, MANUAL_OBSERVATION_SIZE): those of `MANUAL_PLANES` and `MANUAL_SCALARS` follow.
    """
    out = output("out", out, (view.size, observation_size(view)), np.float32)
    _encode(view, out)
    return out


@kernel
def _look(t, seats, observations, masks):
    # Made here: from Python an array of records takes longer than ten looks. A record does not keep its array in
    # memory, so the array itself is used in every pass.
    views = np.empty(1, dtype=VIEW_DTYPE)
    for i in range(t.size):
        v = views[0]
        seat = np.int64(seats[i]) if seats.size else np.int64(t[i].mover)
        observe_row(t[i], seat, v)
        deadwood = encode_row(v, borrow_row(observations, i))
        if v.to_move:
            write_legal(t[i], deadwood <= v.limit, borrow_row(masks, i))
        else:
            masks[i, :] = 0


def look(
    tables: Tables,
    seats: ArrayLike | None = None,
    observations: np.ndarray | None = None,
    masks: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns observations and action masks in one pass: `encode` of `observe`, and `gin_env.engine.legal`.

    Args:
        tables: N tables.
        seats: (N,) seats, or one seat for all; by default each table's mover.
        observations: (N, `observation_size`) float32 to write into.
        masks: (N, A) int8 to write into, A being 108, or 449 where the rules are manual; all zero where the seat is not
            to move.

    Raises:
        ValueError: If a seat is not 0 or 1.
    """
    observations = output("observations", observations, (tables.size, observation_size(tables)), np.float32)
    masks = output("masks", masks, (tables.size, num_actions(tables)), np.int8)
    _look(tables, _as_seats(tables, seats), observations, masks)
    return observations, masks


def schema() -> dict[str, object]:
    """The observation's fields and version, as exported policies carry them."""
    return {
        "version": OBSERVATION_VERSION,
        "size": OBSERVATION_SIZE,
        "planes": [name for name, _ in PLANES],
        "scalars": [name for name, _ in SCALARS],
    }


def state(tables: Tables, out: np.ndarray | None = None) -> np.ndarray:
    """The hidden state, for a centralised critic: both hands and the order of the stock.

    Never part of an observation.

    Returns:
        (N, 156) float32: seat 0's cards, seat 1's cards, and for each card of the stock 1 for the next to be drawn,
        1/32 less for each card above it.
    """
    out = output("out", out, (tables.size, 3 * NUM_CARDS), np.float32)
    _state(tables, out)
    return out


@kernel
def _state(t, out):
    for i in range(t.size):
        row = borrow_row(out, i)
        write_cards(row, 0, t[i].hands[0])
        write_cards(row, NUM_CARDS, t[i].hands[1])
        row[2 * NUM_CARDS :] = 0
        for place in range(t[i].stock_at, t[i].rules.deck_size):
            depth = np.float32(place - t[i].stock_at) / np.float32(32)
            row[2 * NUM_CARDS + t[i].deck[place]] = np.float32(1) - depth
