"""The melds on the table: what can be added to them, which jokers can be stolen. Compiled helpers of the engine.

A meld is the mask of its cards, the mask of what its joker may stand for, and for a run its lowest and highest card.
The joker of a run stands for one card for good. That of a set of three stands for either suit that is missing: whoever
has one of the two may take the joker for it, or add it to the set, after which the joker stands for the other.
"""

import numpy as np

from gin_env._compile import count, kernel, lowest
from gin_env.cards import NO_CARD, NUM_RANKS
from gin_env.melds import bit, rank_cards
from gin_env.rummy40.actions import (
    ADD_HIGH,
    ADD_LOW,
    ADD_SET,
    JOKER_HIGH,
    JOKER_LOW,
    JOKER_SET,
    MELD_LOW,
    MELD_REAL,
    MELD_SIZE,
    MELD_STANDS,
    MOST_ALIKE,
    NUM_PLACES,
    STEAL_LOW,
    STEAL_SET,
)
from gin_env.rummy40.rules import CODES, MAX_SEATS

_U0 = np.uint64(0)
_ANY = CODES["any"]
_NO = CODES["no"]


@kernel
def adds_at(rules, seat):
    """The row of a table's ``fits`` and ``room`` with the melds to which a seat may add."""
    return 0 if rules.adding == _ANY else seat


@kernel
def steals_at(rules, seat):
    """The row of a table's ``fits`` with the melds from which a seat may steal."""
    return 0 if rules.stealing == _ANY else seat


@kernel
def _set_takes(rules, cards, stands):
    """The cards that are missing in a set and may be added to it: none to one of four, or of all suits."""
    if count(cards) + (stands != _U0) >= rules.suits:
        return _U0
    return rank_cards(lowest(cards) % NUM_RANKS) & rules.pack & ~cards


@kernel
def _low_takes(low):
    return bit(low - 1) if low % NUM_RANKS > 0 else _U0


@kernel
def _high_takes(rules, high):
    return bit(high + 1) if high % NUM_RANKS < rules.ranks - 1 else _U0


@kernel
def meld_takes(t, k, place):
    """The cards that have a place of the given kind in the k-th meld on the table."""
    cards = t.meld_cards[k]
    stands = t.meld_stands[k]
    low, high = np.int64(t.meld_low[k]), np.int64(t.meld_high[k])
    if low < 0:
        if place == ADD_SET or place == JOKER_SET and stands == _U0:
            return _set_takes(t.rules, cards, stands)
        return stands if place == STEAL_SET else _U0
    if place == ADD_LOW or place == JOKER_LOW and stands == _U0:
        return _low_takes(low)
    if place == ADD_HIGH or place == JOKER_HIGH and stands == _U0:
        return _high_takes(t.rules, high)
    if place > STEAL_SET and stands != _U0:
        return stands if (stands == bit(low)) == (place == STEAL_LOW) else _U0
    return _U0


@kernel
def takes_joker(t, k):
    """Whether a joker can be added to the k-th meld on the table."""
    return (meld_takes(t, k, JOKER_SET) | meld_takes(t, k, JOKER_LOW) | meld_takes(t, k, JOKER_HIGH)) != _U0


@kernel
def refresh(t):
    """Writes what can be done to the melds on the table: ``fits`` and ``room``."""
    for row in range(MAX_SEATS):
        t.room[row] = 0
        for place in range(NUM_PLACES):
            for n in range(MOST_ALIKE):
                t.fits[row, place, n] = _U0
    for k in range(t.num_melds):
        owner = np.int64(t.meld_owner[k])
        adds, steals = adds_at(t.rules, owner), steals_at(t.rules, owner)
        t.room[adds] += takes_joker(t, k)
        for place in range(NUM_PLACES):
            if place >= STEAL_SET and t.rules.stealing == _NO:
                break
            row = adds if place < STEAL_SET else steals
            cards = meld_takes(t, k, place)
            for n in range(MOST_ALIKE):
                more = cards & t.fits[row, place, n]
                t.fits[row, place, n] |= cards
                cards = more


@kernel
def find_meld(t, seat, place, card, which):
    """The meld on the table that has a place for the card: the first (0), second or third to which the seat may go."""
    row = adds_at(t.rules, seat) if place < STEAL_SET else steals_at(t.rules, seat)
    for k in range(t.num_melds):
        owner = np.int64(t.meld_owner[k])
        mine = adds_at(t.rules, owner) if place < STEAL_SET else steals_at(t.rules, owner)
        if mine == row and (meld_takes(t, k, place) & bit(card)) != _U0:
            if which == 0:
                return k
            which -= 1
    return NO_CARD


@kernel
def put_meld(t, seat, number):
    """Puts a meld of `gin_env.rummy40.actions.MELDS` on the table."""
    k = np.int64(t.num_melds)
    low = MELD_LOW[number]
    t.meld_cards[k] = MELD_REAL[number]
    t.meld_stands[k] = MELD_STANDS[number] & t.rules.pack
    t.meld_low[k] = low
    t.meld_high[k] = low if low < 0 else low + MELD_SIZE[number] - 1
    t.meld_owner[k] = seat
    t.num_melds = k + 1
    refresh(t)


@kernel
def put_card(t, k, place, card):
    """Puts a card, or a joker as the card, into its place in the k-th meld; a joker that stood there is taken out."""
    if place == JOKER_SET or place == JOKER_LOW or place == JOKER_HIGH:
        t.meld_stands[k] = bit(card)
    else:
        t.meld_cards[k] |= bit(card)
    if place == ADD_LOW or place == JOKER_LOW:
        t.meld_low[k] = card
    elif place == ADD_HIGH or place == JOKER_HIGH:
        t.meld_high[k] = card
    elif place == ADD_SET and t.meld_stands[k] != _U0:
        t.meld_stands[k] = rank_cards(card % NUM_RANKS) & t.rules.pack & ~t.meld_cards[k]
    elif place >= STEAL_SET:
        t.meld_stands[k] = _U0
    refresh(t)
