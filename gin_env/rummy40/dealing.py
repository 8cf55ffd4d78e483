"""The deal of Rummy40: a deck from a key, hands and the card turned up from a deck, one hand after another.

As in gin the order of a deck is a pure function of (the table's key, hand number). The player after the dealer is dealt
to first and starts; the deal goes round. A joker that is turned up stays.
"""

import numpy as np

from gin_env._compile import kernel
from gin_env.cards import NO_CARD, NUM_RANKS
from gin_env.keys import below, mix
from gin_env.melds import bit
from gin_env.rummy40.board import refresh
from gin_env.rummy40.cards import JOKER
from gin_env.rummy40.rules import CODES, MAX_DECK, MAX_SEATS
from gin_env.rummy40.tables import DRAW_ANY, MAX_MELDS, NOBODY, TRUNCATED
from gin_env.rummy40.turn import receive

_U0 = np.uint64(0)
_RANDOM_DEALER = CODES["random"]


@kernel
def shuffle_deck(t, key):
    """Writes the deck of one hand: a Fisher-Yates shuffle driven by the hash of its key."""
    rules = t.rules
    deck = t.deck
    size = 0
    for _ in range(rules.packs):
        for suit in range(rules.suits):
            for rank in range(rules.ranks):
                deck[size] = suit * NUM_RANKS + rank
                size += 1
    for _ in range(rules.jokers):
        deck[size] = JOKER
        size += 1
    for last in range(size - 1, 0, -1):
        other = below(key, np.uint64(last), last + 1)
        deck[last], deck[other] = deck[other], deck[last]


@kernel
def start_hand(t, dealer):
    """Deals the deck of the table: one card each in turn, the player after the dealer first, then one is turned up."""
    rules = t.rules
    seats = np.int64(rules.seats)
    t.dealer = dealer
    t.mover = (dealer + 1) % seats
    t.phase = DRAW_ANY
    t.draws = 0
    t.taken = NO_CARD
    t.banned = NO_CARD
    t.drawn = NO_CARD
    t.num_moves = 0
    t.attempt = 0
    t.attempt_points = 0
    t.attempted = False
    t.owed = 0
    for seat in range(MAX_SEATS):
        t.opened[seat] = 0
        t.num_cards[seat] = 0
        t.jokers[seat] = 0
        t.known_jokers[seat] = 0
        t.booked[seat] = 0
        for k in range(2):
            t.hands[seat, k] = _U0
            t.known[seat, k] = _U0
    t.num_melds = 0
    for k in range(MAX_MELDS):
        t.meld_cards[k] = _U0
        t.meld_stands[k] = _U0
        t.meld_low[k] = NO_CARD
        t.meld_high[k] = NO_CARD
        t.meld_owner[k] = NOBODY
    refresh(t)
    for place in range(seats * rules.hand_size):
        card = np.int64(t.deck[place])
        seat = (dealer + 1 + place) % seats
        if card == JOKER:
            receive(t, seat, _U0, 1, False)
        else:
            receive(t, seat, bit(card), 0, False)
    for k in range(MAX_DECK):
        t.pile[k] = NO_CARD
        t.pile_by[k] = NOBODY
    t.pile[0] = t.deck[seats * rules.hand_size]
    t.pile_size = 1
    t.stock_at = seats * rules.hand_size + 1


@kernel
def deal_next(t):
    """Deals the table's next hand: of the running match, or the first of a new episode."""
    rules = t.rules
    first = t.hand_number < 0 or not t.to_limit or t.match_over
    t.hand_number += 1
    key = mix(t.key, np.uint64(t.hand_number))
    shuffle_deck(t, key)
    if first:
        t.match_over = False
        for seat in range(MAX_SEATS):
            t.scores[seat] = 0
            t.match_winners[seat] = 0
        dealer = np.int64(rules.first_dealer)
        if dealer == _RANDOM_DEALER:
            # A number that the shuffle of no deck uses.
            dealer = below(key, np.uint64(MAX_DECK), np.int64(rules.seats))
    elif t.ending == TRUNCATED:
        dealer = np.int64(t.dealer)
    else:
        dealer = (np.int64(t.dealer) + 1) % np.int64(rules.seats)
    start_hand(t, dealer)
