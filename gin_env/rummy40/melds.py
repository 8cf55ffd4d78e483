"""Melds in the hand: which can be laid, with which a player can open, and whether owed jokers find a place.

A hand is a multiset: ``have``, the mask of the cards held at least once, ``twice``, the mask of those held twice (two
packs), and the number of jokers. Runs are found in all suits at once: the mask of their lowest cards is the *and* of
the hand shifted by 0, 1, 2... A hand without a joker holds few melds, one with a joker some dozens.

Two questions are more than a look at the hand, and their answers keep a turn from getting stuck. A turn ends with a
discard, so every move must leave a card that may be thrown.

- *Opening.* Melds may be laid as long as melds for the minimum can be laid in this turn, with a card to throw left. A
  hand of eleven holds at most three melds, so that is a search for one to three of them that fit together; a bound
  refuses most hands before it.
- *Owed jokers.* A stolen joker must find a place before the discard. A meld on the table that takes a joker needs no
  card of the hand, so those are used first; each joker beyond needs two cards that make a meld of three with it. More
  cards in a meld, further steals and further additions never help: they cost cards and make no room.

All helpers take hands of at most eleven cards.
"""

import numpy as np

from gin_env._compile import kernel, lowest
from gin_env.cards import CARD_POINTS, NUM_CARDS, NUM_RANKS, NUM_SUITS
from gin_env.melds import SUIT_MASK, bit, set_ranks, suit_of, suits_held
from gin_env.rummy40.actions import (
    FIRST_RUN,
    MELD_JOKERS,
    MELD_POINTS,
    MELD_REAL,
    MELD_SIZE,
    MELDS,
    NUM_MELDS,
    RUN_SHAPES,
    SETS_PER_RANK,
)
from gin_env.rummy40.rules import MAX_JOKERS

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U2 = np.uint64(2)
_MOST_POINTS = int(MELD_POINTS.max())

# By shape: length, place of the joker (-1 for none), and number in MELDS less the lowest card's place in the block.
_LENGTH = np.array([length for length, _ in RUN_SHAPES], dtype=np.int64)
_JOKER_PLACE = np.array([joker for _, joker in RUN_SHAPES], dtype=np.int64)
_BLOCK = FIRST_RUN + np.cumsum([0] + [NUM_SUITS * (NUM_RANKS - length + 1) for length, _ in RUN_SHAPES])[:-1]
NUM_SHAPES = len(RUN_SHAPES)
# By length: the cards that can be the lowest of a run.
_LOWS = np.array(
    [
        sum(((1 << max(NUM_RANKS - length + 1, 0)) - 1) << NUM_RANKS * suit for suit in range(NUM_SUITS))
        for length in range(6)
    ],
    dtype=np.uint64,
)
# (8192,) points of all cards of a suit's mask.
SUIT_POINTS = np.array(
    [sum(int(CARD_POINTS[r]) for r in range(NUM_RANKS) if mask >> r & 1) for mask in range(SUIT_MASK + 1)],
    dtype=np.int64,
)


def _set_choices() -> np.ndarray:
    """Which of the 15 sets of a rank can be laid: by suits in the pack, whether a joker is held, suits held."""
    table = np.zeros((NUM_SUITS + 1, 2, 16), dtype=np.int64)
    for suits in range(NUM_SUITS + 1):
        for joker in range(2):
            for held in range(16):
                for number, meld in enumerate(MELDS[:SETS_PER_RANK]):
                    # The sets of aces: bit 13 * suit of their masks is the suit.
                    real = sum(1 << suit for suit in range(NUM_SUITS) if meld.real >> NUM_RANKS * suit & 1)
                    stands = sum(1 << suit for suit in range(suits) if meld.stands >> NUM_RANKS * suit & 1)
                    if real & held == real and (not meld.stands or joker and stands):
                        table[suits, joker, held] |= 1 << number
    return table


_SET_CHOICES = _set_choices()


# ------------------------------------------------------------------------------------------------------ small helpers


@kernel
def points_of(cards):
    """Points of the cards of a mask."""
    return (
        SUIT_POINTS[suit_of(cards, 0)]
        + SUIT_POINTS[suit_of(cards, 1)]
        + SUIT_POINTS[suit_of(cards, 2)]
        + SUIT_POINTS[suit_of(cards, 3)]
    )


@kernel
def without(have, twice, cards):
    """The multiset less one of each of the cards, those it lacks aside, as (have, twice)."""
    return have & ~(cards & ~twice), twice & ~cards


@kernel
def is_real(card):
    """Whether this is a card, and no joker and not NO_CARD."""
    return 0 <= card < NUM_CARDS


@kernel
def pair_ranks(have):
    """Ranks held in two suits or more, as a 13-bit mask."""
    s, h, d, c = suit_of(have, 0), suit_of(have, 1), suit_of(have, 2), suit_of(have, 3)
    return (s & h) | (d & c) | ((s | h) & (d | c))


@kernel
def run_lows(have, pack, shape):
    """The lowest cards of the runs of a shape (`RUN_SHAPES`) that the cards make, in all suits."""
    length = _LENGTH[shape]
    joker = _JOKER_PLACE[shape]
    lows = _LOWS[length]
    for k in range(length):
        lows &= (pack if k == joker else have) >> np.uint64(k)
    return lows


@kernel
def run_number(shape, low):
    """Number in `MELDS` of the run of a shape with this lowest card."""
    return _BLOCK[shape] + low // NUM_RANKS * (NUM_RANKS + 1 - _LENGTH[shape]) + low % NUM_RANKS


@kernel
def in_melds(have):
    """The cards that are in some set or run without a joker."""
    lows = run_lows(have, _U0, 0)
    cards = lows | lows << _U1 | lows << _U2
    ranks = set_ranks(have)
    if ranks:
        r = np.uint64(ranks)
        cards |= have & (r | r << np.uint64(13) | r << np.uint64(26) | r << np.uint64(39))
    return cards


@kernel
def in_pairs(have, pack, suits):
    """The cards of which one card more, or a joker, makes a set or run."""
    inner = run_lows(have, pack, 2)
    cards = inner | inner << _U2
    upper = run_lows(have, pack, 1)
    cards |= upper << _U1 | upper << _U2
    lower = run_lows(have, pack, 3)
    cards |= lower | lower << _U1
    r = np.uint64(pair_ranks(have)) if suits > 2 else _U0
    return cards | have & (r | r << np.uint64(13) | r << np.uint64(26) | r << np.uint64(39))


@kernel
def list_melds(have, jokers, pack, suits, longest, found):
    """Writes the numbers of the melds of the hand into ``found`` (787,), and returns how many there are.

    Args:
        have: Mask of the cards held.
        jokers: Jokers held.
        pack: Mask of the cards in play.
        suits: Suits in play.
        longest: Most cards of a meld that is wanted.
        found: int64, written.
    """
    size = 0
    joker = 1 if jokers > 0 else 0
    ranks = pair_ranks(have) if joker else set_ranks(have)
    while ranks:
        rank = lowest(np.uint64(ranks))
        ranks &= ranks - 1
        choices = np.uint64(_SET_CHOICES[suits, joker, suits_held(have, rank)])
        while choices != _U0:
            number = rank * SETS_PER_RANK + lowest(choices)
            choices &= choices - _U1
            if MELD_SIZE[number] <= longest:
                found[size] = number
                size += 1
    for shape in range(NUM_SHAPES):
        if _LENGTH[shape] > longest or not joker and _JOKER_PLACE[shape] >= 0:
            continue
        lows = run_lows(have, pack, shape)
        while lows != _U0:
            found[size] = run_number(shape, lowest(lows))
            size += 1
            lows &= lows - _U1
    return size


@kernel
def may_throw_last(used, jokers_left, banned):
    """Whether the one card that is left of a hand may be thrown, once the cards of ``used`` are laid.

    It may not if it is a joker, nor if it is the card just taken from the pile. Of two cards that look alike one laid
    is the one taken.

    Args:
        used: Mask of the real cards laid since the card was taken.
        jokers_left: Jokers left in hand: 0 or 1.
        banned: Card that may not be thrown, or NO_CARD.
    """
    if jokers_left:
        return False
    if not is_real(banned):
        return True
    return (used & bit(banned)) != _U0


# -------------------------------------------------------------------------------------------------------- owed jokers


@kernel
def can_finish(have, twice, jokers, size, owed, room, banned, pack, suits):
    """Whether a player who has opened can still end its turn.

    Args:
        have: Mask of the cards held.
        twice: Mask of those held twice.
        jokers: Jokers held.
        size: Cards held, jokers included.
        owed: Stolen jokers among them that have found no place yet.
        room: Melds on the table to which the player may add a joker.
        banned: Card just taken from the pile, which may not be thrown, or NO_CARD.
        pack: Mask of the cards in play.
        suits: Suits in play.
    """
    wanted = max(owed - room, 0)  # jokers that need two cards of the hand
    left = size - owed - 2 * wanted
    if left <= 0:
        return False
    # Of two cards left at most one is the one just taken, and a joker may be thrown where it is not the last card.
    jokers_left = jokers - owed
    if wanted == 0:
        return left > 1 or may_throw_last(~have, jokers_left, banned)
    if left == 1 and jokers_left:
        return False
    return _find_pairs(have, twice, wanted, left, banned, pack, suits)


@kernel
def _find_pairs(have, twice, wanted, left, banned, pack, suits):
    """Whether so many melds of three with a joker fit into the cards, with a card left that may be thrown."""
    found = np.empty(NUM_MELDS, dtype=np.int64)
    size = 0
    for k in range(list_melds(have, 1, pack, suits, 3, found)):
        if MELD_JOKERS[found[k]]:
            found[size] = found[k]
            size += 1
    chosen = np.zeros(MAX_JOKERS, dtype=np.int64)
    haves = np.empty(MAX_JOKERS + 1, dtype=np.uint64)
    twices = np.empty(MAX_JOKERS + 1, dtype=np.uint64)
    haves[0], twices[0] = have, twice
    depth = 0
    while depth >= 0:
        if chosen[depth] == size:
            depth -= 1
            if depth >= 0:
                chosen[depth] += 1
            continue
        real = MELD_REAL[found[chosen[depth]]]
        if (real & haves[depth]) == real:
            haves[depth + 1], twices[depth + 1] = without(haves[depth], twices[depth], real)
            if depth + 1 < wanted:
                depth += 1
                chosen[depth] = chosen[depth - 1]
                continue
            # What is left and was not laid: the banned card is, if it is still there as often as before.
            if left > 1 or not is_real(banned):
                return True
            if haves[depth + 1] != bit(banned) or (twice & bit(banned)) != _U0:
                return True
        chosen[depth] += 1
    return False


# ------------------------------------------------------------------------------------------------------------ opening


@kernel
def _together(twice, jokers, first, second):
    """Whether two melds fit into a hand that holds each."""
    shared = MELD_REAL[first] & MELD_REAL[second]
    return (shared & ~twice) == _U0 and MELD_JOKERS[first] + MELD_JOKERS[second] <= jokers


@kernel
def _three_together(twice, jokers, first, second, third):
    """Whether three melds, of which the first two fit, fit into a hand that holds each."""
    a, b, c = MELD_REAL[first], MELD_REAL[second], MELD_REAL[third]
    if ((c & (a | b)) & ~twice) != _U0 or (a & b & c) != _U0:
        return False
    return MELD_JOKERS[first] + MELD_JOKERS[second] + MELD_JOKERS[third] <= jokers


@kernel
def list_openings(have, twice, jokers, size, banned, need, pack, suits, found):
    """Writes the melds into ``found`` with which the minimum can be reached in this turn, and returns how many.

    Args:
        have: Mask of the cards held.
        twice: Mask of those held twice.
        jokers: Jokers held.
        size: Cards held, jokers included.
        banned: Card just taken from the pile, which may not be thrown, or NO_CARD.
        need: Points that are missing to the minimum, at least 1.
        pack: Mask of the cards in play.
        suits: Suits in play.
        found: (787,) int64, written.
    """
    if size < 4:
        return 0
    total = list_melds(have, jokers, pack, suits, size - 1, found)
    if total == 0:
        return 0
    # No hand can do better than all its plain melds, and for each joker its best meld with one.
    best = 0
    for k in range(total):
        if MELD_JOKERS[found[k]]:
            best = max(best, MELD_POINTS[found[k]])
    plain = in_melds(have)
    if points_of(plain) + points_of(plain & twice) + jokers * best < need:
        return 0
    return _search_openings(twice, jokers, size, banned, need, found, total)


@kernel
def _leaves_one(size, used, cards, jokers_left, banned):
    """Whether laying ``used`` cards, of which the real ones are ``cards``, leaves a card that may be thrown."""
    return size - used > 1 or size - used == 1 and may_throw_last(cards, jokers_left, banned)


@kernel
def _search_openings(twice, jokers, size, banned, need, found, total):
    """Keeps those of the melds in ``found`` that belong to one, two or three that reach what is needed."""
    # By falling points, so that a search can stop early.
    counts = np.zeros(_MOST_POINTS + 2, dtype=np.int64)
    for k in range(total):
        counts[_MOST_POINTS - MELD_POINTS[found[k]] + 1] += 1
    for points in range(1, _MOST_POINTS + 2):
        counts[points] += counts[points - 1]
    melds = np.empty(total, dtype=np.int64)
    for k in range(total):
        place = _MOST_POINTS - MELD_POINTS[found[k]]
        melds[counts[place]] = found[k]
        counts[place] += 1
    plain = np.empty(total, dtype=np.int64)
    num_plain = 0
    for k in range(total):
        if not MELD_JOKERS[melds[k]]:
            plain[num_plain] = melds[k]
            num_plain += 1
    marked = np.zeros(NUM_MELDS, dtype=np.bool_)
    most = MELD_POINTS[melds[0]]

    for k in range(total):
        first = melds[k]
        points = MELD_POINTS[first]
        used = MELD_SIZE[first]
        spare = jokers - MELD_JOKERS[first]
        if marked[first] or points + 2 * most < need:
            continue
        if points >= need:
            marked[first] = _leaves_one(size, used, MELD_REAL[first], spare, banned)
            continue
        # Without a joker to spare only plain melds can go with it.
        seconds = melds if spare else plain
        num_seconds = total if spare else num_plain
        for n in range(num_seconds):
            second = seconds[n]
            if points + MELD_POINTS[second] < need:
                break
            if _together(twice, jokers, first, second) and _leaves_one(
                size,
                used + MELD_SIZE[second],
                MELD_REAL[first] | MELD_REAL[second],
                spare - MELD_JOKERS[second],
                banned,
            ):
                marked[first] = True
                marked[second] = True
                break
        if marked[first] or size < used + 7:
            continue
        for n in range(num_seconds):
            second = seconds[n]
            both = points + MELD_POINTS[second]
            left = spare - MELD_JOKERS[second]
            if both + most < need:
                break
            if left < 0 or not left and not num_plain or not _together(twice, jokers, first, second):
                continue
            thirds = melds if left else plain
            for m in range(total if left else num_plain):
                third = thirds[m]
                if both + MELD_POINTS[third] < need:
                    break
                if _three_together(twice, jokers, first, second, third) and _leaves_one(
                    size,
                    used + MELD_SIZE[second] + MELD_SIZE[third],
                    MELD_REAL[first] | MELD_REAL[second] | MELD_REAL[third],
                    left - MELD_JOKERS[third],
                    banned,
                ):
                    marked[first] = True
                    marked[second] = True
                    marked[third] = True
                    break
            if marked[first]:
                break
    kept = 0
    for k in range(total):
        if marked[found[k]]:
            found[kept] = found[k]
            kept += 1
    return kept
