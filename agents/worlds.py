"""Worlds: what the cards that a player does not see may be, sampled from its view alone. Compiled.

A world is a table that looks to one seat exactly as its own table does: the cards that nobody has shown are dealt out
anew, some into the opponent's hand, the others into the stock. How likely a hand is of the opponent is judged by what
the opponent has thrown, declined and taken so far, and by how far players have come after so many draws (`belief`).
"""

import numpy as np
from numpy.typing import ArrayLike

from agents.lookahead import unseen_cards
from agents.strategist import company, completing, loose_cards, total_points
from gin_env._compile import borrow_row, count, kernel, lowest
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.engine import mix_keys
from gin_env.keys import below, mix
from gin_env.melds import bit, least_after_discard
from gin_env.rules import CODES
from gin_env.tables import NOBODY, PLAYING, TABLE_DTYPE, Tables
from gin_env.view import DEALT, OPPONENT, OWN, View

__all__ = ["TERMS", "Tables", "WEIGHTS", "belief", "next_hand", "sample_worlds", "set_up", "fill_stock"]

# What speaks for a hand of the opponent: (name, nats for each, what is counted). The weights are those of the greatest
# likelihood for hands of six players, found by `ginrummy fit belief` (`experiments.belief`). Turns are the draws so far
# by half, the company of cards is what has their rank or is next to one of them in its suit, and cards are loose that
# stand outside the melds.
BELIEF = (
    ("points", -0.0142, "points of deadwood, times turns"),
    ("outs", 0.050, "unseen cards that make a meld with two loose ones, times turns"),
    ("thrown", -1.19, "loose cards in the company of what the opponent has thrown"),
    ("declined", -0.78, "cards in the company of what it has declined, and has not thrown"),
    ("taken", 0.19, "hidden cards in the company of those that it is known to hold"),
    ("idle", -0.64, "cards that it is known to hold and that are loose"),
    (
        "regret",
        -0.57,
        "points that another card than its last throw would have saved; of the two before a half, a quarter",
    ),
    ("waited", -0.55, "1 if it could have knocked and has not"),
)
TERMS = tuple(name for name, _, _ in BELIEF)
WEIGHTS = np.array([weight for _, weight, _ in BELIEF])
THROWS = 3  # that are looked at
GIN = 8.0  # nats against a hand that is gin, after a throw: there is hardly any such hand to learn from
# Steps of the walk from one world's hand to the next one's, and to the first one's.
STEPS = 12
FIRST_STEPS = 200

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
def write_terms(v, unseen, hand, out):
    """Writes what speaks for a hand of the opponent, in the order of `TERMS`, and returns whether it is gin.

    Args:
        v: A row of a view.
        unseen: The cards that the seat does not see (`agents.lookahead.unseen_cards`).
        hand: The opponent's cards.
        out: (T,) float64.
    """
    turns = v.draws / 2
    thrown, declined, known = v.opponent_thrown, v.opponent_declined, v.opponent_known
    loose = loose_cards(hand)
    points = total_points(loose)
    regret = 0.0
    weight = 1.0
    left = THROWS
    for place in range(np.int64(v.pile_size) - 1, -1, -1):
        if v.pile_by[place] != OPPONENT:
            continue
        card = np.int64(v.pile[place])
        regret += weight * (points - least_after_discard(hand | bit(card), np.int64(NO_CARD)))
        weight /= 2
        left -= 1
        if not left:
            break
    out[0] = turns * points
    out[1] = turns * count(completing(loose) & unseen & ~hand)
    out[2] = count(loose & company(thrown))
    out[3] = count(hand & company(declined & ~thrown))
    out[4] = count(hand & ~known & company(known))
    out[5] = count(known & loose)
    out[6] = regret
    out[7] = thrown != _U0 and 0 < points <= v.limit
    return thrown != _U0 and points == 0


@kernel
def belief(v, unseen, hand, terms):
    """How likely a hand of the opponent is, given what it has done: the logarithm, up to a constant.

    Args:
        v: A row of a view.
        unseen: The cards that the seat does not see (`agents.lookahead.unseen_cards`).
        hand: The opponent's cards.
        terms: (T,) float64, scratch.

    Returns:
        Nats.
    """
    total = -GIN if write_terms(v, unseen, hand, terms) else 0.0
    for k in range(terms.size):
        total += WEIGHTS[k] * terms[k]
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
    terms = np.empty(WEIGHTS.size)
    log = belief(v, unseen, hand, terms)
    for step in range(steps):
        number = np.uint64(3 * step)
        gives = nth_card(hidden, below(key, number, size))
        gets = nth_card(rest, below(key, number + _U1, others))
        trial = (hand & ~bit(gives)) | bit(gets)
        new = belief(v, unseen, trial, terms)
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
def _sample_hands(v, key, out):
    unseen = unseen_cards(v)
    hand = first_hand(v, unseen, key)
    for i in range(out.size):
        hand = next_hand(v, unseen, hand, STEPS if i else FIRST_STEPS, mix(key, np.uint64(i)))
        out[i] = hand


def sample_hands(view: View, size: int, seed: int = 0, row: int = 0) -> np.ndarray:
    """Returns hands that the opponent may have, from one walk, as the search goes through them: (size,) masks.

    Args:
        view: Views.
        size: Number of hands. Each is like the one before it by a few cards.
        seed: Decides them.
        row: The row of the view.
    """
    out = np.zeros(size, dtype=np.uint64)
    _sample_hands(np.ascontiguousarray(view)[row], mix_keys(seed, np.arange(1))[0], out)
    return out


@kernel
def _belief(v, hands, out):
    unseen = unseen_cards(v)
    terms = np.empty(WEIGHTS.size)
    for i in range(hands.size):
        out[i] = belief(v, unseen, hands[i], terms)


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


@kernel
def _write_terms(v, hands, out, gin):
    unseen = unseen_cards(v)
    for i in range(hands.size):
        gin[i] = write_terms(v, unseen, hands[i], borrow_row(out, i))


def terms(view: View, hands: ArrayLike, row: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns what speaks for hands of the opponent: (N, T) float64 in the order of `TERMS`, and (N,) bool, gin.

    Args:
        view: Views.
        hands: (N,) masks.
        row: The row of the view.
    """
    hands = np.ascontiguousarray(hands, dtype=np.uint64)
    out, gin = np.empty((hands.size, WEIGHTS.size)), np.empty(hands.size, dtype=np.bool_)
    _write_terms(np.ascontiguousarray(view)[row], hands, out, gin)
    return out, gin
