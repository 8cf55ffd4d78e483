"""The deal: a deck from a key, hands and upcard from a deck, one hand after another. Helpers of `gin_env.engine`.

The order of a deck is a pure function of (the table's key, hand number), so it is the same on 1 table or 4,096; nothing
else in the engine is random.
"""

import numpy as np

from gin_env._compile import kernel
from gin_env.actions import MAX_MELDS
from gin_env.cards import NO_CARD, NUM_CARDS, NUM_RANKS
from gin_env.keys import below, mix
from gin_env.melds import INT_POINTS, bit
from gin_env.rules import CODES
from gin_env.showdown import episode_over
from gin_env.tables import DEAD, NOBODY, OFFER, TRUNCATED

_U0 = np.uint64(0)
_RANDOM_DEALER = CODES["random"]
_SAME, _WINNER = CODES["same"], CODES["winner"]


@kernel
def shuffle_deck(t, key):
    """Writes the deck of one hand: a Fisher-Yates shuffle driven by the hash of its key."""
    rules = t.rules
    deck = t.deck
    size = 0
    for suit in range(rules.suits):
        for rank in range(rules.ranks):
            deck[size] = suit * NUM_RANKS + rank
            size += 1
    for last in range(size - 1, 0, -1):
        other = below(key, np.uint64(last), last + 1)
        deck[last], deck[other] = deck[other], deck[last]


@kernel
def start_hand(t, dealer):
    """Deals the deck of the table: one card each in turn, the non-dealer first, then the upcard."""
    rules = t.rules
    t.dealer = dealer
    t.mover = 1 - dealer
    t.phase = OFFER
    for seat in range(2):
        t.hands[seat] = _U0
        t.known[seat] = _U0
        t.thrown[seat] = _U0
        t.declined[seat] = _U0
    for place in range(2 * rules.hand_size):
        seat = 1 - dealer if place % 2 == 0 else dealer
        t.hands[seat] |= bit(t.deck[place])
    upcard = np.int64(t.deck[2 * rules.hand_size])
    t.pile[:] = NO_CARD
    t.pile_by[:] = NOBODY
    t.pile[0] = upcard
    t.pile_size = 1
    t.stock_at = 2 * rules.hand_size + 1
    t.taken = NO_CARD
    t.drawn = NO_CARD
    t.draws = 0
    t.takes = 0
    t.swaps = 0
    t.knocking = NOBODY
    t.knocked_with = -1
    for k in range(MAX_MELDS):
        t.laid[0, k] = _U0
        t.laid[1, k] = _U0
        t.laid_off[k] = _U0
    t.num_moves = 0
    t.limit = rules.knock_limit
    t.doubled = False
    if rules.oklahoma:
        t.limit = 0 if upcard % NUM_RANKS == 0 else INT_POINTS[upcard]
        t.doubled = rules.double_spades != 0 and upcard < NUM_RANKS


@kernel
def deal_next(t):
    """Deals the table's next hand: of the running match, or the first of a new episode."""
    rules = t.rules
    last_dealer = np.int64(t.dealer)
    first = t.hand_number < 0 or episode_over(t)
    t.hand_number += 1
    key = mix(t.key, np.uint64(t.hand_number))
    shuffle_deck(t, key)
    if first:
        t.scores[0] = 0
        t.scores[1] = 0
        t.match_winner = NOBODY
        dealer = np.int64(rules.first_dealer)
        if dealer == _RANDOM_DEALER:
            # A number that the shuffle of 52 cards does not use.
            dealer = below(key, np.uint64(NUM_CARDS), 2)
    elif t.ending == DEAD or t.ending == TRUNCATED or rules.next_dealer == _SAME:
        dealer = last_dealer
    elif rules.next_dealer == _WINNER:
        dealer = np.int64(t.winner) if t.winner != NOBODY else last_dealer
    else:
        dealer = 1 - last_dealer
    start_hand(t, dealer)
