"""What one seat of Rummy40 may know, and its encoding as an observation vector, as `gin_env.view` for gin.

Seats are told as they sit from the one that looks: 0 is itself, 1 the player after it, and so on. Nothing that the seat
has not seen is in a view: shuffle the hidden cards and not a bit changes (a test does).
"""

import numpy as np
from numpy.typing import ArrayLike

from gin_env._compile import borrow_row, kernel, write_cards
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.melds import bit
from gin_env.rummy40.actions import (
    ADD_HIGH,
    ADD_LOW,
    ADD_SET,
    JOKER_HIGH,
    JOKER_LOW,
    JOKER_SET,
    NUM_MELDS,
    NUM_PLACES,
    STEAL_LOW,
    STEAL_RUN,
    STEAL_SET,
)
from gin_env.rummy40.board import adds_at, steals_at
from gin_env.rummy40.cards import JOKER
from gin_env.rummy40.engine import num_actions, num_seats
from gin_env.rummy40.melds import in_melds, in_pairs, points_of
from gin_env.rummy40.rules import CODES, MAX_DECK, MAX_SEATS, RULES_DTYPE, Rummy40Rules
from gin_env.rummy40.tables import DRAW_ANY, MAX_MELDS, NOBODY, OVER, PLAY, PLAYING, Tables, output
from gin_env.rummy40.turn import write_legal

# Who threw a card of the discard pile or owns a meld, as one seat sees it; the players after it are 1, 2 and 3.
OWN, DEALT = 0, -1

# (name, type, shape in each row, meaning). Masks are card sets, cards are ids or -1; by seat: from oneself on round.
VIEW_FIELDS = (
    ("rules", RULES_DTYPE, (), "the rules played"),
    ("seat", np.int8, (), "whose view this is"),
    ("to_move", np.bool_, (), "whether that seat is to move"),
    ("attempted", np.bool_, (), "whether the mover has taken melds back in this turn"),
    ("phase", np.int8, (), "gin_env.rummy40.tables.DRAW_ANY to OVER"),
    ("mover", np.int8, (), "who is to move, by seat"),
    ("dealer", np.int8, (), "who deals, by seat"),
    ("upcard", np.int8, (), "top of the discard pile; 52 is a joker"),
    ("taken", np.int8, (), "card that the mover took from the pile in this turn"),
    ("drawn", np.int8, (), "card that this seat drew from the stock in this turn"),
    ("attempt", np.int8, (), "melds that the mover has laid in this turn while the minimum is not reached"),
    ("owed", np.int8, (), "jokers that the mover has stolen in this turn and not placed yet"),
    ("jokers", np.int8, (), "own jokers"),
    ("num_melds", np.int8, (), "melds on the table"),
    ("attempt_points", np.int16, (), "points of the attempt"),
    ("draws", np.int16, (), "cards drawn in this hand by all"),
    ("stock", np.int16, (), "cards left in the stock"),
    ("pile_size", np.int16, (), "cards in the discard pile"),
    ("hand", np.uint64, (2,), "own cards, and those held twice; jokers aside"),
    ("opened", np.int8, (MAX_SEATS,), "by seat, 1 for those who have opened"),
    ("num_cards", np.int8, (MAX_SEATS,), "by seat, cards in hand"),
    ("known", np.uint64, (MAX_SEATS, 2), "by seat, cards in its hand that all others have seen; all once it is shown"),
    ("known_jokers", np.int8, (MAX_SEATS,), "the same for jokers"),
    ("booked", np.int32, (MAX_SEATS,), "by seat, points for melds taken back in this hand"),
    ("scores", np.int32, (MAX_SEATS,), "by seat, match points, which are penalties"),
    ("limit", np.int32, (), "points that end the match; 0 where one hand decides"),
    ("fits", np.uint64, (NUM_PLACES,), "cards that have a place of each kind in melds to which this seat may go"),
    ("feeds", np.uint64, (), "cards that another player could add to the melds on the table"),
    ("meld_cards", np.uint64, (MAX_MELDS,), "melds in the order laid: the cards that are no jokers"),
    ("meld_stands", np.uint64, (MAX_MELDS,), "cards that the meld's joker may stand for; 0 without one"),
    ("meld_low", np.int8, (MAX_MELDS,), "lowest card of a run, the joker's included; -1 for a set"),
    ("meld_high", np.int8, (MAX_MELDS,), "highest card of a run; -1 for a set"),
    ("meld_owner", np.int8, (MAX_MELDS,), "by seat, who laid the meld"),
    ("pile", np.int8, (MAX_DECK,), "discard pile from the bottom, -1 above its top"),
    ("pile_by", np.int8, (MAX_DECK,), "by seat, who threw each; DEALT for the card turned up"),
    # Once the hand is over; until then PLAYING, 0 and -1.
    ("ending", np.int8, (), "gin_env.rummy40.tables.PLAYING to TRUNCATED"),
    ("out", np.int8, (), "who went out, by seat, or -1"),
    ("penalties", np.int32, (MAX_SEATS,), "points of this hand by seat"),
)
VIEW_DTYPE = np.dtype([(name, kind, shape) for name, kind, shape, _ in VIEW_FIELDS], align=True)

View = np.ndarray  # (N,) VIEW_DTYPE

# In place of seats, to kernels: each table's mover.
_MOVERS = np.empty(0, dtype=np.int8)

_U0 = np.uint64(0)
_ANY, _NO = CODES["any"], CODES["no"]


@kernel
def _round(who, seat, seats):
    """A seat as another one tells it: how many places after it; -1 for nobody."""
    return (who - seat + seats) % seats if who >= 0 else NOBODY


@kernel
def observe_row(t, seat, v):
    """Writes what ``seat`` of a table may know into a row of the view."""
    v.rules = t.rules
    rules = t.rules
    seats = np.int64(rules.seats)
    over = t.phase == OVER
    moves = not over and t.mover == seat
    v.seat = seat
    v.to_move = moves
    v.attempted = t.attempted
    v.phase = t.phase
    v.mover = _round(np.int64(t.mover), seat, seats)
    v.dealer = _round(np.int64(t.dealer), seat, seats)
    v.taken = t.taken
    v.drawn = t.drawn if moves else NO_CARD
    v.attempt = t.attempt
    v.attempt_points = t.attempt_points
    v.owed = t.owed
    v.draws = t.draws
    v.stock = rules.deck_size - t.stock_at
    v.limit = max(rules.limit, 0) if t.to_limit else 0
    v.jokers = t.jokers[seat]
    v.hand[0] = t.hands[seat, 0]
    v.hand[1] = t.hands[seat, 1]
    feeds = _U0
    adds = adds_at(rules, seat)
    for k in range(MAX_SEATS):
        who = (seat + k) % seats
        there = k < seats
        shown = over and k != OWN
        v.opened[k] = t.opened[who] if there else 0
        v.num_cards[k] = t.num_cards[who] if there else 0
        v.booked[k] = t.booked[who] if there else 0
        v.scores[k] = t.scores[who] if there else 0
        v.penalties[k] = t.penalties[who] if there and over else 0
        v.known_jokers[k] = (t.jokers[who] if shown else t.known_jokers[who]) if there else 0
        for n in range(2):
            v.known[k, n] = (t.hands[who, n] if shown else t.known[who, n]) if there else _U0
        if k > 0 and there and t.opened[who] > 0:
            row = adds_at(rules, who)
            feeds |= t.fits[row, ADD_SET, 0] | t.fits[row, ADD_LOW, 0] | t.fits[row, ADD_HIGH, 0]
    v.feeds = feeds
    steals = steals_at(rules, seat)
    for place in range(NUM_PLACES):
        v.fits[place] = t.fits[adds if place < STEAL_SET else steals, place, 0]
    # Loops on purpose, here and below: on arrays this small an assignment to a slice costs three times as much.
    melds = np.int64(t.num_melds)
    v.num_melds = melds
    for k in range(MAX_MELDS):
        v.meld_cards[k] = t.meld_cards[k]
        v.meld_stands[k] = t.meld_stands[k]
        v.meld_low[k] = t.meld_low[k]
        v.meld_high[k] = t.meld_high[k]
        v.meld_owner[k] = NOBODY
    for k in range(melds):
        v.meld_owner[k] = _round(np.int64(t.meld_owner[k]), seat, seats)
    size = np.int64(t.pile_size)
    for k in range(MAX_DECK):
        v.pile[k] = t.pile[k]
        v.pile_by[k] = NOBODY
    for k in range(size):
        v.pile_by[k] = _round(np.int64(t.pile_by[k]), seat, seats)
    v.pile_size = size
    v.upcard = t.pile[size - 1] if size > 0 else NO_CARD
    v.ending = t.ending if over else PLAYING
    v.out = _round(np.int64(t.out), seat, seats) if over else NOBODY


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
        ValueError: If there is no such seat.
    """
    out = output("out", out, (tables.size,), VIEW_DTYPE)
    _observe(tables, _as_seats(tables, seats), out)
    return out


def _as_seats(tables: Tables, seats: ArrayLike | None) -> np.ndarray:
    if seats is None:
        return _MOVERS
    seats = np.ascontiguousarray(np.broadcast_to(np.asarray(seats, dtype=np.int8), tables.shape))
    if not ((seats >= 0) & (seats < tables["rules"]["seats"])).all():
        raise ValueError(f"seats are {np.unique(seats).tolist()}; expected 0 to {num_seats(tables) - 1}")
    return seats


# ------------------------------------------------------------------------------------------------------- observation

OBSERVATION_VERSION = 1


def planes(seats: int) -> tuple[tuple[str, str], ...]:
    """Returns (name, meaning) of the planes of 52 numbers, which come first, in the order of the vector."""
    others = range(1, seats)
    return (
        ("hand", "own cards: 1, or 2 for a card held twice"),
        ("own_known", "of them those that the others have seen, in the same way"),
        *((f"known_{k}", f"the same for cards known to be in the hand of player {k} after oneself") for k in others),
        ("unseen", "how often each card may be in the stock or in another hand unseen: 1 or 2"),
        ("own_pile", "cards of the pile thrown by oneself: 1 for the top of the pile, 1/128 less for each card above"),
        *((f"pile_{k}", f"the same for player {k} after oneself") for k in others),
        ("upcard", "1 for the top of the discard pile"),
        ("own_melds", "cards in own melds: 1 or 2"),
        ("other_melds", "cards in the melds of others: 1 or 2"),
        ("own_jokers", "1 for each card that a joker in own melds may stand for"),
        ("other_jokers", "1 for each card that a joker in the melds of others may stand for"),
        ("takes", "1 for each card that may be added to melds on the table, once one has opened"),
        ("takes_joker", "1 for each card as which a joker may be added, once one has opened"),
        ("frees_joker", "1 for each card for which a joker may be stolen, once one has opened"),
        ("feeds", "1 for each card that another player who has opened may add"),
        ("melds", "1 for each own card that is in some meld of own cards without a joker"),
        ("pairs", "1 for each own card that one card more, or a joker, makes a meld with another"),
    )


def scalars(seats: int) -> tuple[tuple[str, str], ...]:
    """Returns (name, meaning) of the single numbers, which follow the planes, in the order of the vector."""
    others = range(1, seats)
    return (
        ("draw", "1 when a card must be drawn"),
        ("play", "1 when cards may be laid and one must be thrown"),
        ("to_move", "1 when this seat is to move"),
        ("is_dealer", "1 for the dealer"),
        ("own_opened", "1 once this seat has opened"),
        *((f"opened_{k}", f"the same for player {k} after oneself") for k in others),
        ("own_cards", "cards in hand, of 10"),
        *((f"cards_{k}", f"the same for player {k} after oneself") for k in others),
        ("own_joker_count", "own jokers"),
        *((f"joker_count_{k}", f"jokers known to be in the hand of player {k} after oneself") for k in others),
        ("unseen_jokers", "jokers that may be in the stock or in another hand unseen"),
        ("upcard_joker", "1 when the top of the discard pile is a joker"),
        ("points", "tens of points in hand"),
        ("need", "tens of points missing to the opening minimum; 0 once opened"),
        ("attempt", "tens of points that the mover has laid below the minimum"),
        ("attempted", "1 when the mover has taken melds back in this turn"),
        ("owed", "stolen jokers of the mover without a place"),
        ("stock", "cards left in the stock, of 64"),
        ("end_near", "1 / (1 + cards left in the stock)"),
        ("draws", "cards drawn in this hand, of 64"),
        ("own_booked", "tens of points for own melds taken back"),
        *((f"booked_{k}", f"the same for player {k} after oneself") for k in others),
        ("own_score", "own match score, of the limit"),
        *((f"score_{k}", f"the same for player {k} after oneself") for k in others),
        ("match", "1 when hands go on to a limit"),
    )


# By number of seats.
OBSERVATION_SIZE = {seats: len(planes(seats)) * NUM_CARDS + len(scalars(seats)) for seats in (2, 4)}

# Recency of the k-th card from the top of the pile.
_RECENCY = 1 - np.arange(MAX_DECK, dtype=np.float32) / 128
# 1 / (1 + n) for n cards.
_INVERSE = 1 / np.arange(1, MAX_DECK + 1, dtype=np.float32)


@kernel
def _add(once, twice, cards):
    """A multiset and one of each of the cards more, as (once, twice)."""
    return once | cards, twice | (once & cards)


@kernel
def _write_counts(out, at, once, twice):
    """Writes a multiset as a plane: how often each card is there."""
    write_cards(out, at, once)
    if twice != _U0:
        for card in range(NUM_CARDS):
            if twice & bit(card) != _U0:
                out[at + card] = np.float32(2)


@kernel
def encode_row(v, out):
    """Writes a row of a view into ``out``, float32 (`OBSERVATION_SIZE` of the number of seats)."""
    rules = v.rules
    seats = np.int64(rules.seats)
    have, twice = v.hand[0], v.hand[1]
    # What has been seen of the pack, and of the jokers.
    seen, seen_twice = _add(have, twice, _U0)
    jokers = np.int64(v.jokers)
    at = 0
    _write_counts(out, at, have, twice)
    for k in range(seats):
        at += NUM_CARDS
        _write_counts(out, at, v.known[k, 0], v.known[k, 1])
        if k > 0:
            seen, seen_twice = _add(seen, seen_twice, v.known[k, 0])
            seen, seen_twice = _add(seen, seen_twice, v.known[k, 1])
            jokers += v.known_jokers[k]
    at += NUM_CARDS
    unseen = at
    at += NUM_CARDS
    pile = at
    for k in range(pile, pile + seats * NUM_CARDS):
        out[k] = np.float32(0)
    size = np.int64(v.pile_size)
    for k in range(size):
        card = np.int64(v.pile[k])
        if card == JOKER:
            jokers += 1
            continue
        seen, seen_twice = _add(seen, seen_twice, bit(card))
        if v.pile_by[k] != DEALT:
            # Of two cards that look alike the one nearer to the top counts.
            out[pile + v.pile_by[k] * NUM_CARDS + card] = _RECENCY[size - 1 - k]
    at += seats * NUM_CARDS
    write_cards(out, at, bit(v.upcard) if v.upcard != NO_CARD and v.upcard != JOKER else _U0)
    at += NUM_CARDS

    own = own_twice = own_stands = _U0
    other = other_twice = other_stands = _U0
    for k in range(v.num_melds):
        cards, stands = v.meld_cards[k], v.meld_stands[k]
        if stands != _U0:
            jokers += 1
        if v.meld_owner[k] == OWN:
            own, own_twice = _add(own, own_twice, cards)
            own_stands |= stands
        else:
            other, other_twice = _add(other, other_twice, cards)
            other_stands |= stands
    for cards in (own, own_twice, other, other_twice):
        seen, seen_twice = _add(seen, seen_twice, cards)
    _write_counts(out, at, own, own_twice)
    _write_counts(out, at + NUM_CARDS, other, other_twice)
    write_cards(out, at + 2 * NUM_CARDS, own_stands)
    write_cards(out, at + 3 * NUM_CARDS, other_stands)
    at += 4 * NUM_CARDS
    if rules.packs > 1:
        _write_counts(out, unseen, rules.pack & ~seen_twice, rules.pack & ~seen)
    else:
        write_cards(out, unseen, rules.pack & ~seen)

    write_cards(out, at, v.fits[ADD_SET] | v.fits[ADD_LOW] | v.fits[ADD_HIGH])
    write_cards(out, at + NUM_CARDS, v.fits[JOKER_SET] | v.fits[JOKER_LOW] | v.fits[JOKER_HIGH])
    write_cards(out, at + 2 * NUM_CARDS, v.fits[STEAL_SET] | v.fits[STEAL_LOW] | v.fits[STEAL_RUN])
    write_cards(out, at + 3 * NUM_CARDS, v.feeds)
    write_cards(out, at + 4 * NUM_CARDS, in_melds(have))
    write_cards(out, at + 5 * NUM_CARDS, in_pairs(have, rules.pack, np.int64(rules.suits)))
    at += 6 * NUM_CARDS

    ten = np.float32(0.1)
    out[at] = np.float32(v.phase == DRAW_ANY)
    out[at + 1] = np.float32(v.phase == PLAY)
    out[at + 2] = np.float32(v.to_move)
    out[at + 3] = np.float32(v.dealer == OWN)
    at += 4
    for k in range(seats):
        out[at + k] = np.float32(v.opened[k])
        out[at + seats + k] = ten * np.float32(v.num_cards[k])
        out[at + 2 * seats + k] = np.float32(v.jokers if k == OWN else v.known_jokers[k])
    at += 3 * seats
    points = points_of(have) + points_of(twice) + v.jokers * rules.joker_points
    need = 0 if v.opened[OWN] else np.int64(rules.opening)
    if v.mover == OWN:
        need -= v.attempt_points
    out[at] = np.float32(rules.jokers - jokers)
    out[at + 1] = np.float32(v.upcard == JOKER)
    out[at + 2] = ten * np.float32(points)
    out[at + 3] = ten * np.float32(need)
    out[at + 4] = ten * np.float32(v.attempt_points)
    out[at + 5] = np.float32(v.attempted)
    out[at + 6] = np.float32(v.owed)
    out[at + 7] = np.float32(v.stock) * np.float32(1 / 64)
    out[at + 8] = _INVERSE[v.stock]
    out[at + 9] = np.float32(v.draws) * np.float32(1 / 64)
    at += 10
    limit = np.float32(v.limit)
    for k in range(seats):
        out[at + k] = ten * np.float32(v.booked[k])
        out[at + seats + k] = np.float32(v.scores[k]) / limit if v.limit > 0 else np.float32(0)
    out[at + 2 * seats] = np.float32(v.limit > 0)


@kernel
def _encode(v, out):
    for i in range(v.size):
        encode_row(v[i], borrow_row(out, i))


def observation_size(rows: Tables | View | Rummy40Rules) -> int:
    """Returns how many numbers an observation has under the rules of tables, of a view or given."""
    seats = rows.seats if isinstance(rows, Rummy40Rules) else int(rows["rules"]["seats"][0]) if rows.size else 2
    return OBSERVATION_SIZE[seats]


def encode(view: View, out: np.ndarray | None = None) -> np.ndarray:
    """Encodes views as observation vectors.

    Args:
        view: N rows.
        out: Array of the result's shape and type to write into.

    Returns:
        (N, `observation_size`) float32; the fields are those of `planes` (52 numbers each) and `scalars`.
    """
    out = output("out", out, (view.size, observation_size(view)), np.float32)
    _encode(view, out)
    return out


@kernel
def _look(t, seats, observations, masks):
    # Made here: from Python an array of records takes longer than ten looks. A record does not keep its array in
    # memory, so the array itself is used in every pass.
    views = np.empty(1, dtype=VIEW_DTYPE)
    found = np.empty(NUM_MELDS, dtype=np.int64)
    for i in range(t.size):
        v = views[0]
        seat = np.int64(seats[i]) if seats.size else np.int64(t[i].mover)
        observe_row(t[i], seat, v)
        encode_row(v, borrow_row(observations, i))
        mask = borrow_row(masks, i)
        if v.to_move:
            write_legal(t[i], found, mask)
        else:
            for action in range(mask.size):
                mask[action] = 0


def look(
    tables: Tables,
    seats: ArrayLike | None = None,
    observations: np.ndarray | None = None,
    masks: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns observations and action masks in one pass: `encode` of `observe`, and `gin_env.rummy40.engine.legal`.

    Args:
        tables: N tables.
        seats: (N,) seats, or one seat for all; by default each table's mover.
        observations: (N, `observation_size`) float32 to write into.
        masks: (N, A) int8 to write into, A being 1311, or 1987 with two packs; all zero where the seat is not to move.

    Raises:
        ValueError: If there is no such seat.
    """
    observations = output("observations", observations, (tables.size, observation_size(tables)), np.float32)
    masks = output("masks", masks, (tables.size, num_actions(tables)), np.int8)
    _look(tables, _as_seats(tables, seats), observations, masks)
    return observations, masks


def schema(seats: int = 2) -> dict[str, object]:
    """The observation's fields and version, as exported policies carry them."""
    return {
        "version": OBSERVATION_VERSION,
        "size": OBSERVATION_SIZE[seats],
        "planes": [name for name, _ in planes(seats)],
        "scalars": [name for name, _ in scalars(seats)],
    }


def state_size(seats: int) -> int:
    """Returns how many numbers `state` has for each table."""
    return (seats + 2) * (NUM_CARDS + 1) + 2


def state(tables: Tables, out: np.ndarray | None = None) -> np.ndarray:
    """The hidden state, for a centralised critic: all hands and the order of the stock.

    Never part of an observation.

    Returns:
        (N, `state_size`) float32. For each seat how often it has each card, then its jokers. Then for each card of the
        stock 1 for the next to be drawn, 1/128 less for each card above it: 52 numbers, 52 for the second of two that
        look alike, and four for jokers.
    """
    out = output("out", out, (tables.size, state_size(num_seats(tables))), np.float32)
    _state(tables, out)
    return out


@kernel
def _state(t, out):
    for i in range(t.size):
        row = borrow_row(out, i)
        seats = np.int64(t[i].rules.seats)
        for seat in range(seats):
            at = seat * (NUM_CARDS + 1)
            _write_counts(row, at, t[i].hands[seat, 0], t[i].hands[seat, 1])
            row[at + NUM_CARDS] = np.float32(t[i].jokers[seat])
        at = seats * (NUM_CARDS + 1)
        for k in range(at, row.size):
            row[k] = np.float32(0)
        jokers = at + 2 * NUM_CARDS
        for place in range(t[i].stock_at, t[i].rules.deck_size):
            depth = _RECENCY[place - t[i].stock_at]
            card = np.int64(t[i].deck[place])
            if card == JOKER:
                row[jokers] = depth
                jokers += 1
            elif row[at + card] == 0:
                row[at + card] = depth
            else:
                row[at + NUM_CARDS + card] = depth
