"""Worlds: what the cards that a player does not see may be, sampled from its view alone. Compiled.

A world is a table that looks to one seat exactly as its own table does: the cards that nobody has shown are dealt out
anew, some into the opponent's hand, the others into the stock. How likely a hand is of the opponent is judged by what
the opponent has thrown, declined and taken so far (`belief`).
"""

import numpy as np
from numpy.typing import ArrayLike

from agents.lookahead import unseen_cards
from gin_env._compile import count, kernel, lowest
from gin_env.cards import CARD_POINTS, NO_CARD, NUM_CARDS
from gin_env.engine import mix_keys
from gin_env.keys import below, mix
from gin_env.melds import bit, least_after_discard, least_deadwood
from gin_env.rules import CODES
from gin_env.tables import NOBODY, PLAYING, TABLE_DTYPE, Tables
from gin_env.view import DEALT, OPPONENT, OWN, View

__all__ = ["Tables", "belief", "next_hand", "sample_worlds", "set_up", "fill_stock"]

# Points of regret that make an action of the opponent e times less likely. Measured on hands of `strategist`,
# `lookahead` and `best`: with these the opponent's cards are guessed best (see tests/test_worlds.py).
THROW_SCALE = 4.0
DECLINE_SCALE = 5.0
# Nats against a hand that could have knocked and did not, and against one that was gin.
WAITED = 1.0
GIN = 8.0
# Nats against each card that was taken from the pile and stands in no meld.
TAKEN_LOOSE = 1.5
# How much less each throw says than the one after it: the hand has changed since.
FADING = 0.8
# Steps of the walk from one world's hand to the next one's, and to the first one's.
STEPS = 12
FIRST_STEPS = 60

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_AUTO, _BEST = CODES["auto"], CODES["best"]


@kernel
def set_up(v, t):
    """Writes what a row of a view tells into a table: all but the opponent's hidden cards and the stock's.

    Melds and layoffs become automatic: in a world they only decide how a hand that is over counts.
    """
    seat = np.int64(v.seat)
    other = 1 - seat
    t.rules = v.rules
    if t.rules.manual:
        t.rules.manual = 0
        t.rules.knocker_melds = _AUTO
        t.rules.layoffs = _BEST
        t.rules.defender_melds = _AUTO
    t.to_target = False
    t.phase = v.phase
    t.mover = seat if v.to_move else other
    t.dealer = seat if v.is_dealer else other
    t.doubled = v.doubled
    t.limit = v.limit
    t.draws = v.draws
    t.takes = 0
    t.swaps = 0
    t.stock_at = v.rules.deck_size - v.stock
    t.pile_size = v.pile_size
    t.taken = v.taken
    t.drawn = v.drawn
    t.num_moves = 0
    t.scores[seat] = v.own_score
    t.scores[other] = v.opponent_score
    t.hands[seat] = v.hand
    t.hands[other] = v.opponent_known
    t.known[seat] = v.own_known
    t.known[other] = v.opponent_known
    t.thrown[seat] = v.own_thrown
    t.thrown[other] = v.opponent_thrown
    t.declined[seat] = v.own_declined
    t.declined[other] = v.opponent_declined
    for k in range(NUM_CARDS):
        t.pile[k] = v.pile[k]
        by = v.pile_by[k]
        t.pile_by[k] = DEALT if by == DEALT else (seat if by == OWN else other)
        t.deck[k] = NO_CARD
    t.hand_number = 0
    t.match_winner = NOBODY
    t.knocking = NOBODY
    t.knocked_with = -1
    t.ending = PLAYING
    t.knocker = NOBODY
    t.winner = NOBODY
    t.points = 0


@kernel
def belief(v, hand):
    """How likely a hand of the opponent is, given what it has done: the logarithm, up to a constant.

    Every throw, refusal and capture is held against the hand as it is now, the older the less. A throw counts by the
    points of deadwood that another one would have saved, a refusal by those that taking would have saved.

    Args:
        v: A row of a view.
        hand: The opponent's cards.

    Returns:
        Nats.
    """
    deadwood = least_deadwood(hand)
    total = 0.0
    weight = 1.0
    throws = 0
    for place in range(np.int64(v.pile_size) - 1, -1, -1):
        if v.pile_by[place] != OPPONENT:
            continue
        card = np.int64(v.pile[place])
        total -= weight * (deadwood - least_after_discard(hand | bit(card), np.int64(NO_CARD))) / THROW_SCALE
        weight *= FADING
        throws += 1
    # The order of refusals is not in a view; together they fade as much as the throws.
    declined = v.opponent_declined & ~hand
    fade = (1 - weight) / (throws * (1 - FADING)) if throws else 1.0
    while declined != _U0:
        card = lowest(declined)
        declined &= declined - _U1
        saved = deadwood - least_after_discard(hand | bit(card), card)
        if saved > 0:
            total -= fade * saved / DECLINE_SCALE
    if throws:
        if deadwood == 0:
            total -= GIN
        elif deadwood <= v.limit:
            total -= WAITED
    known = v.opponent_known
    while known != _U0:
        card = lowest(known)
        known &= known - _U1
        if deadwood >= least_deadwood(hand & ~bit(card)) + CARD_POINTS[card]:
            total -= TAKEN_LOOSE
    return total


@kernel
def nth_card(cards, place):
    """The card of a mask with ``place`` cards below it."""
    for _ in range(place):
        cards &= cards - _U1
    return lowest(cards)


@kernel
def _uniform(key, number):
    return np.float64(mix(key, number) >> np.uint64(11)) * 2.0**-53


@kernel
def first_hand(v, unseen, key):
    """A hand of the opponent in which each unseen card is equally likely."""
    hand = v.opponent_known
    left = count(unseen)
    for k in range(np.int64(v.opponent_cards) - count(v.opponent_known)):
        card = nth_card(unseen, below(key, np.uint64(k), left - k))
        unseen &= ~bit(card)
        hand |= bit(card)
    return hand


@kernel
def next_hand(v, unseen, hand, steps, key):
    """Walks from one hand of the opponent to another, in the long run to each as often as it is likely by `belief`.

    Each step exchanges a hidden card of the hand with another unseen one, and is taken back with the probability that
    makes it so (Metropolis et al. 1953).

    Args:
        v: A row of a view.
        unseen: The cards that the seat does not see (`agents.lookahead.unseen_cards`).
        hand: The hand to start from.
        steps: Number of steps.
        key: Decides the walk.

    Returns:
        The hand at its end.
    """
    hidden = hand & ~v.opponent_known
    rest = unseen & ~hidden
    size, others = count(hidden), count(rest)
    if not size or not others:
        return hand
    log = belief(v, hand)
    for step in range(steps):
        number = np.uint64(3 * step)
        gives = nth_card(hidden, below(key, number, size))
        gets = nth_card(rest, below(key, number + _U1, others))
        trial = (hand & ~bit(gives)) | bit(gets)
        new = belief(v, trial)
        if new >= log or _uniform(key, number + np.uint64(2)) < np.exp(new - log):
            hand, log = trial, new
            hidden = (hidden & ~bit(gives)) | bit(gets)
            rest = (rest & ~bit(gets)) | bit(gives)
    return hand


@kernel
def fill_stock(t, cards, key):
    """Lays cards into the stock of a table, in an order that the key decides."""
    size = count(cards)
    first = np.int64(t.stock_at)
    for k in range(size):
        t.deck[first + k] = lowest(cards)
        cards &= cards - _U1
    for k in range(size - 1, 0, -1):
        other = below(key, np.uint64(k), k + 1)
        card = t.deck[first + k]
        t.deck[first + k] = t.deck[first + other]
        t.deck[first + other] = card


@kernel
def _sample_worlds(v, keys, out):
    unseen = unseen_cards(v)
    hand = _U0
    for i in range(keys.size):
        key = mix(keys[i], np.uint64(0))
        hand = first_hand(v, unseen, key)
        hand = next_hand(v, unseen, hand, FIRST_STEPS, mix(keys[i], _U1))
        set_up(v, out[i])
        out[i].hands[1 - v.seat] = hand
        fill_stock(out[i], unseen & ~hand, mix(keys[i], np.uint64(2)))


def sample_worlds(view: View, size: int, seed: int = 0, row: int = 0) -> Tables:
    """Returns tables that one row of a view may belong to, each from a walk of its own.

        >>> from gin_env import engine
        >>> from gin_env.view import observe
        >>> tables = engine.new_tables("cardpuzzle", 1, seed=7)
        >>> worlds = sample_worlds(observe(tables), 100)
        >>> (observe(worlds)["hand"] == observe(tables)["hand"]).all()
        np.True_

    Args:
        view: Views.
        size: Number of worlds.
        seed: Decides them.
        row: The row of the view.

    Returns:
        (size,) tables on which the same seat is to move. They are good for playing on, not for records: they do not
        know the moves that led to them.
    """
    out = np.zeros(size, dtype=TABLE_DTYPE)
    _sample_worlds(np.ascontiguousarray(view)[row], mix_keys(seed, np.arange(size)), out)
    return out


@kernel
def _belief(v, hands, out):
    for i in range(hands.size):
        out[i] = belief(v, hands[i])


def beliefs(view: View, hands: ArrayLike, row: int = 0) -> np.ndarray:
    """Returns how likely hands of the opponent are by `belief`: (N,) float64, nats up to a constant.

    Args:
        view: Views.
        hands: (N,) masks.
        row: The row of the view.
    """
    hands = np.ascontiguousarray(hands, dtype=np.uint64)
    out = np.empty(hands.shape)
    _belief(np.ascontiguousarray(view)[row], hands, out)
    return out
