"""Exact melds: least deadwood, knock discards, the knocker's arrangement, the defence.

The ideas that make it exact and fast:

- A suit is a 13-bit mask. Every card of three or more neighbours belongs in a run, for its points can only count
  less there, so the loose cards of a suit are read from a table of 8,192 entries.
- Only ranks held three or four times can form sets, and a hand of eleven has at most three of them. So the best
  arrangement is a minimum over a few *set choices* (which of those ranks form a set, and of which suits), each costing
  four table look-ups for the runs of the cards that are left.
- Layoffs on runs join the two hands: in the union of a defender's suit and the knocker's runs there, every defender's
  card that touches a run, directly or through others, is free. That is the same table on the union.
  A layoff on a set of three is one card that is there or not.

All functions take hands as uint64 bitmasks (see `gin_env.cards`) of at most eleven cards.
"""

from typing import NamedTuple

import numpy as np

from gin_env._compile import count, kernel, lowest
from gin_env.actions import MAX_MELDS
from gin_env.cards import CARD_POINTS, NUM_CARDS, NUM_RANKS

FULL_PACK = np.uint64((1 << NUM_CARDS) - 1)
SUIT_MASK = (1 << NUM_RANKS) - 1


def _suit_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    runs = np.zeros(SUIT_MASK + 1, dtype=np.uint16)
    loose = np.zeros(SUIT_MASK + 1, dtype=np.uint8)
    top = np.zeros(SUIT_MASK + 1, dtype=np.uint8)
    for mask in range(SUIT_MASK + 1):
        # A card is in a run if it is the first, second or third of three neighbours.
        third = mask & (mask << 1) & (mask << 2) & SUIT_MASK
        run = third | third >> 1 | third >> 2
        runs[mask] = run
        loose[mask] = sum(int(CARD_POINTS[rank]) for rank in range(NUM_RANKS) if (mask & ~run) >> rank & 1)
        top[mask] = CARD_POINTS[mask.bit_length() - 1] if mask else 0
    return runs, loose, top


# Indexed by a suit's mask. RUNS (8192,) uint16: its cards that lie in runs. LOOSE (8192,) uint8: points of the others.
# TOP (8192,) uint8: points of its dearest card.
RUNS, LOOSE, TOP = _suit_tables()

# Points of each card in the types that kernels compute with.
INT_POINTS = CARD_POINTS.astype(np.int64)
FLOAT_POINTS = CARD_POINTS.astype(np.float32)

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_SUIT = np.uint64(SUIT_MASK)
# Suits removed by each choice for a rank held four times: none, the four sets of three, the set of four.
_FOUR = np.array([0, 7, 11, 13, 14, 15], dtype=np.int64)

# (16,) uint64: for a 4-bit mask of suits, the aces of those suits.
_SPREAD = np.array(
    [sum(1 << 13 * suit for suit in range(4) if suits >> suit & 1) for suits in range(16)], dtype=np.uint64
)


class Arrangement(NamedTuple):
    """How N knockers lay their hands."""

    deadwood: np.ndarray  # (N,) int16, points
    melds: np.ndarray  # (N, 3) uint64, sets then runs, each by rising mask, 0 where unused


class Defence(NamedTuple):
    """How N defenders answer a knock."""

    deadwood: np.ndarray  # (N,) int16, points left after own melds and layoffs
    melds: np.ndarray  # (N, 3) uint64, the defender's own melds, as in Arrangement
    layoffs: np.ndarray  # (N, 3) uint64, cards laid off on each of the knocker's melds


# ---------------------------------------------------------------------------------------------------- typed helpers


@kernel
def bit(card):
    """The mask of one card."""
    return _U1 << np.uint64(card)


@kernel
def rank_cards(rank):
    """The mask of the four cards of a rank."""
    return _SPREAD[15] << np.uint64(rank)


@kernel
def suit_of(hand, suit):
    """The 13-bit mask of one suit (0 to 3) of a hand."""
    return np.int64((hand >> np.uint64(NUM_RANKS * suit)) & _SUIT)


@kernel
def set_ranks(hand):
    """Ranks held three or four times, as a 13-bit mask."""
    s, h, d, c = suit_of(hand, 0), suit_of(hand, 1), suit_of(hand, 2), suit_of(hand, 3)
    return (s & h & (d | c)) | (d & c & (s | h))


@kernel
def suits_held(hand, rank):
    """Suits of one rank in a hand, as a 4-bit mask."""
    column = (hand >> np.uint64(rank)) & _SPREAD[15]
    # Bits 0, 13, 26 and 39 move to 0, 1, 2 and 3.
    moved = column | column >> np.uint64(12) | column >> np.uint64(24) | column >> np.uint64(36)
    return np.int64(moved & np.uint64(15))


@kernel
def num_set_choices(hand, ranks):
    """Number of ways to form sets of the given ranks (none included)."""
    total = 1
    while ranks:
        total *= 6 if suits_held(hand, lowest(np.uint64(ranks))) == 15 else 2
        ranks &= ranks - 1
    return total


@kernel
def set_choice(hand, ranks, choice):
    """The cards in sets under one choice; 0 is no sets at all."""
    cards = _U0
    while ranks:
        rank = lowest(np.uint64(ranks))
        ranks &= ranks - 1
        held = suits_held(hand, rank)
        if held == 15:
            suits = _FOUR[choice % 6]
            choice //= 6
        else:
            suits = held if choice % 2 else 0
            choice //= 2
        cards |= _SPREAD[suits] << np.uint64(rank)
    return cards


@kernel
def run_loose(hand):
    """Points of the cards that are in no run."""
    return (
        np.int64(LOOSE[suit_of(hand, 0)])
        + np.int64(LOOSE[suit_of(hand, 1)])
        + np.int64(LOOSE[suit_of(hand, 2)])
        + np.int64(LOOSE[suit_of(hand, 3)])
    )


@kernel
def thrown_loose(hand, card):
    """How much throwing ``card`` changes `run_loose`: less its points, more if it broke a run."""
    suit = card // NUM_RANKS
    mask = suit_of(hand, suit)
    return np.int64(LOOSE[mask ^ (1 << (card - suit * NUM_RANKS))]) - np.int64(LOOSE[mask])


@kernel
def least_deadwood(hand):
    """Least deadwood of one hand, in points."""
    best = run_loose(hand)
    ranks = set_ranks(hand)
    if ranks:
        for choice in range(1, num_set_choices(hand, ranks)):
            best = min(best, run_loose(hand & ~set_choice(hand, ranks, choice)))
    return best


@kernel
def run_cards(hand):
    """The cards of a hand that lie in runs."""
    return (
        np.uint64(RUNS[suit_of(hand, 0)])
        | np.uint64(RUNS[suit_of(hand, 1)]) << np.uint64(NUM_RANKS)
        | np.uint64(RUNS[suit_of(hand, 2)]) << np.uint64(2 * NUM_RANKS)
        | np.uint64(RUNS[suit_of(hand, 3)]) << np.uint64(3 * NUM_RANKS)
    )


@kernel
def most_points(cards):
    """Points of the dearest of some cards, 0 for none."""
    return np.int64(TOP[suit_of(cards, 0) | suit_of(cards, 1) | suit_of(cards, 2) | suit_of(cards, 3)])


@kernel
def deadwood_without(hand, banned, points, scale, out):
    """Writes ``scale`` times the least deadwood after throwing each held card into ``out`` (52,).

    The places of cards that are not held are filled with numbers that mean nothing: to write all of them is faster.
    ``points`` is INT_POINTS or, for an ``out`` of float32, FLOAT_POINTS.

    Returns the least deadwood after throwing a card other than ``banned`` (-1 for none), in points.
    """
    # Without sets: throwing a loose card saves its points, throwing one of a run may loosen others.
    total = run_loose(hand)
    for card in range(NUM_CARDS):
        out[card] = scale * (points.dtype.type(total) - points[card])
    runs = run_cards(hand)
    allowed = hand if banned < 0 else hand & ~bit(banned)
    best = total - most_points(allowed & ~runs) if allowed & ~runs else np.int64(10_000)
    while runs != _U0:
        card = lowest(runs)
        runs &= runs - _U1
        left = total + thrown_loose(hand, card)
        out[card] = scale * out.dtype.type(left)
        if card != banned:
            best = min(best, left)
    ranks = set_ranks(hand)
    if not ranks:
        return best
    for choice in range(1, num_set_choices(hand, ranks)):
        # A card of this choice's sets is thrown under another choice, one without it.
        rest = hand & ~set_choice(hand, ranks, choice)
        total = run_loose(rest)
        for suit in range(4):
            mask = suit_of(rest, suit)
            others = total - np.int64(LOOSE[mask])
            ranks_left = mask
            while ranks_left:
                one = ranks_left & -ranks_left
                ranks_left ^= one
                card = suit * NUM_RANKS + lowest(np.uint64(one))
                left = others + np.int64(LOOSE[mask ^ one])
                scaled = scale * out.dtype.type(left)
                if scaled < out[card]:
                    out[card] = scaled
                if card != banned:
                    best = min(best, left)
    return best


@kernel
def least_after_discard(hand, banned):
    """Least deadwood after throwing one card other than ``banned`` (-1 for none)."""
    ranks = set_ranks(hand)
    choices = num_set_choices(hand, ranks) if ranks else 1
    best = np.int64(10_000)
    for choice in range(choices):
        rest = hand & ~set_choice(hand, ranks, choice) if choice else hand
        total = run_loose(rest)
        allowed = rest if banned < 0 else rest & ~bit(banned)
        runs = run_cards(rest)
        if allowed & ~runs:
            best = min(best, total - most_points(allowed & ~runs))
        runs &= allowed
        while runs != _U0:
            best = min(best, total + thrown_loose(rest, lowest(runs)))
            runs &= runs - _U1
    return best


@kernel
def write_melds(hand, sets, out):
    """Writes the sets in ``sets`` and the runs of the other cards into ``out`` (3,), sets first, by rising mask.

    Returns the number of sets.
    """
    out[:] = _U0
    size = 0
    left = sets
    while left != _U0:
        meld = sets & rank_cards(lowest(left) % NUM_RANKS)
        left &= ~meld
        out[size] = meld
        size += 1
    num_sets = size
    # By rising mask. They came by their lowest card, which is not always the same order.
    for i in range(num_sets):
        for j in range(i + 1, num_sets):
            if out[j] < out[i]:
                out[i], out[j] = out[j], out[i]
    rest = hand & ~sets
    for suit in range(4):
        runs = np.int64(RUNS[suit_of(rest, suit)])
        rank = 0
        while runs >> rank:
            if runs >> rank & 1:
                meld = _U0
                while runs >> rank & 1:
                    meld |= bit(suit * NUM_RANKS + rank)
                    rank += 1
                out[size] = meld
                size += 1
            rank += 1
    return num_sets


@kernel
def is_run(meld):
    """Whether a meld is a run: all its cards are of one suit."""
    suit = lowest(meld) // NUM_RANKS
    return meld == meld & (_SUIT << np.uint64(NUM_RANKS * suit))


@kernel
def open_places(melds, hand, pack):
    """Counts the places where a card of the pack outside ``hand`` could be laid off directly.

    Returns:
        The number of places and the sum of their cards' points. A card that fits two melds counts as two places.
    """
    places = 0
    points = 0
    outside = pack & ~hand
    for i in range(MAX_MELDS):
        meld = melds[i]
        if meld == _U0:
            continue
        low = lowest(meld)
        if is_run(meld):
            high = low + count(meld) - 1
            if low % NUM_RANKS > 0 and outside & bit(low - 1):
                places += 1
                points += INT_POINTS[low - 1]
            if high % NUM_RANKS < NUM_RANKS - 1 and outside & bit(high + 1):
                places += 1
                points += INT_POINTS[high + 1]
        else:
            for suit in range(4):
                card = suit * NUM_RANKS + low % NUM_RANKS
                if not meld & bit(card) and outside & bit(card):
                    places += 1
                    points += INT_POINTS[card]
    return places, points


@kernel
def arrange_hand(hand, pack, out):
    """Writes the knocker's melds into ``out`` (3,) and returns the deadwood. See `arrange` for the rule."""
    ranks = set_ranks(hand)
    if not ranks:
        write_melds(hand, _U0, out)
        return run_loose(hand)
    trial = np.zeros(MAX_MELDS, dtype=np.uint64)
    deadwood = least_deadwood(hand)
    best_places, best_points, best_sets = 10_000, 0, 0
    for choice in range(num_set_choices(hand, ranks)):
        sets = set_choice(hand, ranks, choice)
        if run_loose(hand & ~sets) > deadwood:
            continue
        num_sets = write_melds(hand, sets, trial)
        places, points = open_places(trial, hand, pack)
        better = 0  # 1 if the trial is better, -1 if worse
        for difference in (best_places - places, best_points - points, num_sets - best_sets):
            if better == 0 and difference != 0:
                better = 1 if difference > 0 else -1
        for i in range(MAX_MELDS):
            if better == 0 and trial[i] != out[i]:
                better = 1 if trial[i] < out[i] else -1
        if better == 1:
            best_places, best_points, best_sets = places, points, num_sets
            out[:] = trial
    return deadwood


@kernel
def defend_hand(hand, knocker, gin, melds, layoffs):
    """Writes the defender's melds and layoffs (3,) each and returns the deadwood. See `defend`."""
    runs = _U0  # the knocker's runs
    spare = np.zeros(MAX_MELDS, dtype=np.uint64)  # the defender's card that fits each of the knocker's sets
    if not gin:
        for i in range(MAX_MELDS):
            meld = knocker[i]
            if meld == _U0:
                continue
            if is_run(meld):
                runs |= meld
            else:
                rank = lowest(meld) % NUM_RANKS
                spare[i] = hand & ~meld & rank_cards(rank)
    ranks = set_ranks(hand)
    best, best_laid = 10_000, 0
    best_sets, best_on_sets = _U0, _U0
    for choice in range(num_set_choices(hand, ranks)):
        sets = set_choice(hand, ranks, choice)
        for subset in range(1 << MAX_MELDS):
            on_sets = _U0
            possible = True
            for i in range(MAX_MELDS):
                if subset >> i & 1:
                    possible = possible and spare[i] != _U0 and not spare[i] & sets
                    on_sets |= spare[i]
            if not possible:
                continue
            rest = hand & ~sets & ~on_sets
            left = run_loose(rest | runs)
            if left > best:
                continue
            laid = count(on_sets)
            for suit in range(4):
                own = suit_of(rest, suit)
                free = np.int64(RUNS[own | suit_of(runs, suit)]) & own
                laid += count(np.uint64(free & ~np.int64(RUNS[own])))
            if left < best or laid < best_laid:
                best, best_laid, best_sets, best_on_sets = left, laid, sets, on_sets
    rest = hand & ~best_sets & ~best_on_sets
    write_melds(hand & ~best_on_sets, best_sets, melds)
    layoffs[:] = _U0
    open_cards = rest & ~best_sets
    for suit in range(4):
        own = suit_of(rest, suit)
        open_cards &= ~(np.uint64(np.int64(RUNS[own])) << np.uint64(NUM_RANKS * suit))
    for i in range(MAX_MELDS):
        meld = knocker[i]
        if gin or meld == _U0:
            continue
        if is_run(meld):
            low = lowest(meld)
            high = low + count(meld) - 1
            while low % NUM_RANKS > 0 and open_cards & bit(low - 1):
                low -= 1
                layoffs[i] |= bit(low)
            while high % NUM_RANKS < NUM_RANKS - 1 and open_cards & bit(high + 1):
                high += 1
                layoffs[i] |= bit(high)
            # Between two runs the lower one takes the cards.
            open_cards &= ~layoffs[i]
        else:
            layoffs[i] = spare[i] & best_on_sets
    return best


# -------------------------------------------------------------------------------------------------- batched kernels


@kernel
def _deadwood(hands, out):
    for i in range(hands.size):
        out[i] = least_deadwood(hands[i])


@kernel
def _deadwood_after(hands, out):
    for i in range(hands.size):
        deadwood_without(hands[i], -1, INT_POINTS, 1, out[i])
        for card in range(NUM_CARDS):
            if not hands[i] & bit(card):
                out[i, card] = -1


@kernel
def _arrange(hands, pack, deadwood, melds):
    for i in range(hands.size):
        deadwood[i] = arrange_hand(hands[i], pack, melds[i])


@kernel
def _defend(hands, knocker, gin, deadwood, melds, layoffs):
    for i in range(hands.size):
        deadwood[i] = defend_hand(hands[i], knocker[i], gin[i], melds[i], layoffs[i])


# --------------------------------------------------------------------------------------------------- public functions


def _as_hands(hands: np.ndarray) -> np.ndarray:
    hands = np.ascontiguousarray(hands, dtype=np.uint64)
    if hands.ndim != 1:
        raise ValueError(f"hands have shape {hands.shape}; expected (N,)")
    sizes = np.bitwise_count(hands)
    if hands.size and sizes.max() > 11:
        raise ValueError(f"a hand has {sizes.max()} cards; expected at most 11")
    return hands


def deadwood(hands: np.ndarray) -> np.ndarray:
    """Least deadwood of each hand.

    Args:
        hands: (N,) uint64.

    Returns:
        (N,) int16, points.

    Raises:
        ValueError: If ``hands`` is not one-dimensional or a hand has more than eleven cards.
    """
    hands = _as_hands(hands)
    out = np.empty(hands.size, dtype=np.int16)
    _deadwood(hands, out)
    return out


def deadwood_after(hands: np.ndarray) -> np.ndarray:
    """Least deadwood left after discarding each held card.

    Args:
        hands: (N,) uint64.

    Returns:
        (N, 52) int16, points; -1 where the card is not held.

    Raises:
        ValueError: As for `deadwood`.
    """
    hands = _as_hands(hands)
    out = np.empty((hands.size, NUM_CARDS), dtype=np.int16)
    _deadwood_after(hands, out)
    return out


def arrange(hands: np.ndarray, pack: int = int(FULL_PACK)) -> Arrangement:
    """Arranges each hand as a knocker lays it.

    The rule: least deadwood; among equals the fewest places where a card outside the hand could be laid off (a card
    that fits two melds counts twice), then the lowest sum of those cards' points, then the most sets, then card order:
    the melds, sets first, each group by rising mask, compared from the first. Neighbouring runs are one meld. It never
    looks at the defender's hand.

    Args:
        hands: (N,) uint64.
        pack: Mask of the cards that are in play.

    Raises:
        ValueError: As for `deadwood`.
    """
    hands = _as_hands(hands)
    points = np.empty(hands.size, dtype=np.int16)
    melds = np.zeros((hands.size, MAX_MELDS), dtype=np.uint64)
    _arrange(hands, np.uint64(pack), points, melds)
    return Arrangement(points, melds)


def defend(hands: np.ndarray, knocker_melds: np.ndarray, gin: np.ndarray) -> Defence:
    """The best answer to a knock: own melds and layoffs chosen together for the least deadwood.

    Among equals the one with the fewest layoffs. Against gin (or big gin) nothing is laid off.

    Args:
        hands: (N,) uint64, the defenders' hands.
        knocker_melds: (N, 3) uint64, 0 where unused.
        gin: (N,) bool.

    Raises:
        ValueError: As for `deadwood`, or if the shapes do not match.
    """
    hands = _as_hands(hands)
    knocker_melds = np.ascontiguousarray(knocker_melds, dtype=np.uint64)
    gin = np.ascontiguousarray(gin, dtype=np.bool_)
    if knocker_melds.shape != (hands.size, MAX_MELDS) or gin.shape != hands.shape:
        raise ValueError(
            f"melds {knocker_melds.shape} and gin {gin.shape} do not fit {hands.size} hands; "
            f"expected ({hands.size}, {MAX_MELDS}) and ({hands.size},)"
        )
    points = np.empty(hands.size, dtype=np.int16)
    melds = np.zeros((hands.size, MAX_MELDS), dtype=np.uint64)
    layoffs = np.zeros((hands.size, MAX_MELDS), dtype=np.uint64)
    _defend(hands, knocker_melds, gin, points, melds, layoffs)
    return Defence(points, melds, layoffs)
