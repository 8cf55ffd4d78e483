"""A player that follows the strategy advice of the rule pages. Compiled, batched.

Each piece of advice is a term: something that is counted, times a weight. `StrategistAgent` lists them all.

    >>> import agents
    >>> agents.make("strategist:outs=0,feed=0.5").name  # one piece of advice switched off, one weighed otherwise
    'strategist:outs=0,feed=0.5'
"""

import inspect
import math

import numpy as np
from numpy.typing import ArrayLike

from agents.base import register
from agents.baselines import own_draws
from agents.laying import lay_action
from gin_env._compile import borrow_row, count, kernel, lowest
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, MAX_MELDS, PASS, TAKE
from gin_env.cards import CARD_POINTS, NO_CARD, NUM_CARDS, NUM_RANKS, to_mask
from gin_env.melds import (
    FULL_PACK,
    INT_POINTS,
    arrange_hand,
    bit,
    deadwood_without,
    least_after_discard,
    least_deadwood,
    num_set_choices,
    open_places,
    rank_cards,
    run_cards,
    run_loose,
    set_choice,
    set_ranks,
    suit_of,
)
from gin_env.tables import DECLARE, DRAW_ANY, DRAW_STOCK, THROW, WALL, WALL_THROW
from gin_env.view import View

REACH = 10  # points of deadwood: throws that leave more than the best one and this are not considered
CLOSE = 10  # points of deadwood above the limit that are close to a knock
THIN = 8  # cards: a stock with fewer left to draw is thin

_U0 = np.uint64(0)
_U1 = np.uint64(1)


def _of_ranks(*ranks: int) -> np.uint64:
    return np.uint64(to_mask(card for card in range(NUM_CARDS) if card % NUM_RANKS in ranks))


_ACES = _of_ranks(0)
_LOW = _of_ranks(0, 1, 2)
_NOT_ACES = FULL_PACK ^ _ACES
_NOT_KINGS = FULL_PACK ^ _of_ranks(NUM_RANKS - 1)
# For each binary digit of a card's points the cards that have it.
_ONES, _TWOS, _FOURS, _EIGHTS = (
    np.uint64(to_mask(card for card in range(NUM_CARDS) if CARD_POINTS[card] & digit)) for digit in (1, 2, 4, 8)
)


# ------------------------------------------------------------------------------------------------------------- cards


@kernel
def above(cards):
    """The cards one rank above some cards, in their suits."""
    return (cards << _U1) & _NOT_ACES


@kernel
def below(cards):
    """The cards one rank below some cards, in their suits."""
    return (cards >> _U1) & _NOT_KINGS


@kernel
def total_points(cards):
    """Points of all the cards of a mask, without a loop over them."""
    return count(cards & _ONES) + 2 * count(cards & _TWOS) + 4 * count(cards & _FOURS) + 8 * count(cards & _EIGHTS)


@kernel
def ranks_of(cards):
    """All four cards of each rank that is among the cards."""
    return np.uint64(suit_of(cards, 0) | suit_of(cards, 1) | suit_of(cards, 2) | suit_of(cards, 3)) * _ACES


@kernel
def pairs(cards):
    """All four cards of each rank that is among the cards twice or more."""
    s, h, d, c = suit_of(cards, 0), suit_of(cards, 1), suit_of(cards, 2), suit_of(cards, 3)
    return np.uint64((s & h) | (d & c) | ((s | h) & (d | c))) * _ACES


@kernel
def company(cards):
    """All four cards of each rank that is among the cards, and those next to them in their suits."""
    return ranks_of(cards) | above(cards) | below(cards)


@kernel
def completing(cards):
    """The cards outside ``cards`` that make a meld with some of them."""
    up, down = above(cards), below(cards)
    return (pairs(cards) | (up & above(up)) | (up & down) | (down & below(down))) & ~cards


@kernel
def loose_cards(hand):
    """The cards outside the melds, arranged for the least deadwood, of equals the first by `set_choice`."""
    ranks = set_ranks(hand)
    sets = _U0
    if ranks:
        least = run_loose(hand)
        for choice in range(1, num_set_choices(hand, ranks)):
            trial = set_choice(hand, ranks, choice)
            left = run_loose(hand & ~trial)
            if left < least:
                least, sets = left, trial
    rest = hand & ~sets
    return rest & ~run_cards(rest)


@kernel
def chance_of(card, unseen, known, chance):
    """How likely the opponent holds a card: its mask, or none, for which it is 0."""
    return 1.0 if card & known else (chance if card & unseen else 0.0)


# ------------------------------------------------------------------------------------------------------------- costs


@kernel
def kept_cost(hand, unseen, known, limit, w):
    """The cost of a hand of ten: the terms from ``loose`` to ``held``."""
    loose = loose_cards(hand)
    points = total_points(loose)
    outs = completing(loose) & unseen
    extending = completing(hand) & unseen & ~outs
    live = loose | unseen
    up, down = above(live), below(live)
    windows = count(loose & up & above(up)) + count(loose & up & down) + count(loose & down & below(down))
    wanted = company(known)
    cost = w.loose * count(loose) + w.high * points - w.outs * count(outs) - w.extend * count(extending)
    cost += w.gone * count(loose & pairs(loose) & ~ranks_of(unseen)) - w.windows * windows
    cost += w.held * count((outs | extending) & wanted)
    if points <= limit + CLOSE:
        cost -= w.low * count(loose & _LOW)
    return cost


@kernel
def thrown_cost(card, unseen, known, thrown, declined, chance, w):
    """The cost of what a card gives the opponent: the terms from ``feed`` to ``declined``."""
    one = bit(card)
    mates = rank_cards(card % NUM_RANKS) & ~one
    up, down = above(one), below(one)
    two_up, two_down = above(up), below(down)
    sure, likely = count(mates & known), chance * count(mates & unseen)
    # Pairs of mates: both known, one of them, neither (of n unseen cards n (n - 1) / 2 pairs).
    melds = 0.5 * sure * (sure - 1) + sure * likely + 0.5 * likely * (likely - chance)
    high, low = chance_of(up, unseen, known, chance), chance_of(down, unseen, known, chance)
    melds += high * chance_of(two_up, unseen, known, chance) + high * low
    melds += low * chance_of(two_down, unseen, known, chance)
    near = mates | up | down
    cost = w.feed * melds + w.hold * count((near | two_up | two_down) & known)
    return cost - w.safe * count(near & thrown) - w.declined * count(near & declined)


@kernel
def knock_threshold(v, hand, unseen, chance, melds, w):
    """Most deadwood to knock with, keeping these ten cards, points: the terms from ``knock`` to ``thin``."""
    arrange_hand(hand, v.rules.pack, melds)
    open_points = open_places(melds, hand, v.opponent_known)[1] + chance * open_places(melds, hand, unseen)[1]
    outs = completing(hand) & unseen
    gins = 0
    while outs != _U0:
        gins += least_after_discard(hand | bit(lowest(outs)), NO_CARD) == 0
        outs &= outs - _U1
    left = np.int64(v.stock) - v.rules.stock_floor
    threshold = max(w.knock - w.care * own_draws(v), 0.0) + w.far * count(loose_cards(hand))
    return threshold - w.layoffs * open_points - w.gin * gins + w.thin * max(THIN - left, 0)


# ------------------------------------------------------------------------------------------------------------ player


@kernel
def strategist_row(v, mask, w, after, melds):
    """What `StrategistAgent` plays in a row of a view.

    Args:
        v: The row.
        mask: (A,) int8.
        w: A record of `WEIGHTS_DTYPE`.
        after: (52,) int64, scratch.
        melds: (3,) uint64, scratch.

    Returns:
        An action id.
    """
    phase = v.phase
    if phase >= DECLARE:
        return lay_action(v)
    if phase == DRAW_STOCK:
        return DRAW
    throws = phase == THROW or phase == WALL_THROW
    if throws and mask[BIG_GIN]:
        return BIG_GIN
    hand, known = v.hand, v.opponent_known
    # What lies in the pile: all that was thrown, and the first upcard, unless somebody has taken it up.
    pile = v.own_thrown | v.opponent_thrown
    if v.pile_size:
        pile |= bit(v.pile[0])
    pile &= ~(hand | known)
    unseen = v.rules.pack & ~(hand | known | pile)
    chance = (v.opponent_cards - count(known)) / max(count(unseen), 1)
    thrown, declined = v.opponent_thrown & pile, v.opponent_declined & pile

    cards = hand if throws else hand | bit(v.upcard)
    banned = np.int64(v.upcard)
    if throws:
        banned = np.int64(NO_CARD) if v.rules.rediscard else np.int64(v.taken)
    least = deadwood_without(cards, banned, INT_POINTS, 1, after)
    best, knocker = -1, -1
    best_cost, knocker_cost = np.inf, np.inf
    rest = cards
    while rest != _U0:
        card = lowest(rest)
        rest &= rest - _U1
        if card == banned or after[card] > least + REACH:
            continue
        cost = kept_cost(cards & ~bit(card), unseen, known, v.limit, w)
        cost += thrown_cost(card, unseen, known, thrown, declined, chance, w)
        if cost < best_cost:
            best, best_cost = card, cost
        if after[card] == least and cost < knocker_cost:
            knocker, knocker_cost = card, cost
    knocks = least == 0
    if 0 < least <= v.limit:
        knocks = least <= knock_threshold(v, cards & ~bit(knocker), unseen, chance, melds, w)

    if throws:
        return KNOCK + knocker if phase == WALL_THROW or knocks else DISCARD + best
    if knocks and mask[TAKE]:
        return TAKE
    if phase == WALL:
        return PASS
    gain = kept_cost(hand, unseen, known, v.limit, w) - best_cost
    saved = least_deadwood(hand) - after[best]
    fits = completing(hand)
    if saved > 0:
        gain += w.lower * saved * own_draws(v) / 10
        if fits & bit(v.upcard):
            gain += w.meld
    if gain > w.stock + w.hope * count(fits & unseen):
        return TAKE
    return DRAW if phase == DRAW_ANY else PASS


@kernel
def _strategist(views, mask, weights, out):
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    melds = np.zeros(MAX_MELDS, dtype=np.uint64)
    for i in range(views.size):
        out[i] = strategist_row(views[i], borrow_row(mask, i), weights[0], after, melds)


@register("strategist")
class StrategistAgent:
    """The strategy advice of the rule pages, each piece of it a term with a weight.

    A term is what its line in the table below counts, times its weight; the weight 0 switches it off. The weights have
    been fitted in play by `ginrummy fit strategist` (`experiments.fit`). A negative one says that the contrary of the
    advice paid against the opponents there.

    Throw: the card with the least cost, of equals the lowest id, where

        cost of the ten cards kept = loose + high - outs - extend - windows - low + gone + held
        cost of the card thrown    = feed + hold - safe - declined

    Cards that leave over 10 points more deadwood than the best throw are not considered.

    Knock: gin and big gin at once. Otherwise it looks at the throw with the least deadwood, of equals the one with the
    least cost, and knocks with it if the deadwood is within the limit and at most

        max(knock - care, 0) + far - layoffs - gin + thin

    Draw: takes the upcard or discard if it can then knock by this rule. It also takes it if the cost, first of the ten
    cards as they are, then of the best throw once it is taken (not of that card itself), falls by more than

        stock + hope - meld - lower

    Otherwise it passes or draws from the stock. At the wall it takes the card only to knock. Lays and lays off as the
    engine would (`agents.laying`).

    - Loose cards: those outside the melds, arranged for the least deadwood.
    - Unseen cards: neither in the own hand nor in the pile nor known to be in the opponent's hand. Any of them is as
      likely as any other to be in the opponent's hand.
    - Near a card: of its rank, or next to it in its suit.

    Args:
        loose: Cost of each loose card; the measure of all costs, not fitted. Meld what you can.
        high: Cost of each point of the loose cards. High cards out early.
        outs: Gain for each unseen card that completes a meld of loose cards. Count the outs.
        extend: Gain for each other unseen card that makes a meld with the hand. Count the outs.
        windows: Gain for each loose card and run of three with it, all loose or unseen. A seven has more than a king.
        low: Gain for each loose ace, two or three, if at most limit + 10 points are loose. Keep A-2-3 when close.
        gone: Cost of each loose card of a rank loose twice or more, none unseen. Drop pairs whose mates are gone.
        held: Cost of each card of outs and extend near a known card of the opponent, who may want it. Count live outs.
        feed: Cost of each meld expected of the card with two cards of the opponent. Do not feed it.
        hold: Cost of each known card of the opponent of its rank or within two in suit. Hold back what goes with them.
        safe: Gain for each card near it in the pile that the opponent threw. Throw near what it threw.
        declined: Gain for each card near it in the pile that the opponent declined. Throw near what it declined.
        meld: Gain, in cost, if the taken card makes a meld and lowers the deadwood. Take a discard only for a meld.
        lower: Gain for each point of deadwood saved by taking, times own draws / 10. The exception: late, to pay less.
        stock: Cost that a card from the stock is expected to save. Take a discard only for a meld.
        hope: The same for each unseen card that makes a meld with the hand. Take a discard only for a meld.
        knock: Points of deadwood to knock with before the first draw. Knock early at once.
        care: Points less for each own draw. Knock late with care.
        far: Points more for each loose card left. Far from gin there is little to wait for.
        layoffs: Points less for each point that the opponent may lay off, expected. Knock lower with open melds.
        gin: Points less for each unseen card that would make gin. At two or three points wait if there are several.
        thin: Points more for each card that fewer than eight are left to draw. Knock when the stock thins.
    """

    def __init__(
        self,
        loose: float = 10.0,
        high: float = 0.447,
        outs: float = 3.074,
        extend: float = 0.754,
        windows: float = 0.412,
        low: float = -0.023,
        gone: float = -0.08,
        held: float = 1.271,
        feed: float = 10.138,
        hold: float = 1.632,
        safe: float = 0.858,
        declined: float = 0.425,
        meld: float = 5.905,
        lower: float = 0.276,
        stock: float = 3.204,
        hope: float = 0.268,
        knock: float = 46.425,
        care: float = 5.53,
        far: float = 1.719,
        layoffs: float = 1.836,
        gin: float = 5.459,
        thin: float = 0.222,
    ) -> None:
        """Checks and keeps the weights."""
        given = {term: value for term, value in locals().items() if term in TERMS}
        for term, weight in given.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
                raise ValueError(f"agent 'strategist': {term} is {weight!r}; expected a finite number")
        self.weights: np.ndarray = np.array([tuple(given.values())], dtype=WEIGHTS_DTYPE)
        changes = [f"{term}={weight:g}" for term, weight in given.items() if weight != DEFAULTS[term]]
        self.name = "strategist" + (":" + ",".join(changes) if changes else "")

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(view.size, dtype=np.int64)
        mask = np.ascontiguousarray(mask, dtype=np.int8)
        _strategist(np.ascontiguousarray(view), mask, self.weights, out)
        return out


DEFAULTS = {name: one.default for name, one in inspect.signature(StrategistAgent).parameters.items()}
TERMS = tuple(DEFAULTS)
# What kernels take the weights as: a record with a field for each term.
WEIGHTS_DTYPE = np.dtype([(term, np.float64) for term in TERMS])


# -------------------------------------------------------------------------------------------------------------- outs


@kernel
def _outs(hands, unseen, out):
    for i in range(hands.size):
        out[i] = completing(hands[i]) & unseen[i]


def outs(hand: ArrayLike, unseen: ArrayLike) -> np.ndarray:
    """Returns the outs of some cards: the unseen cards that complete a meld with them, or extend one.

        >>> from gin_env.cards import cards_text, parse_cards, to_mask
        >>> cards_text(outs(to_mask(parse_cards("7H 7S 8H")), FULL_PACK))
        '7D 7C 6H 9H'

    Args:
        hand: Masks of the cards, of any shape.
        unseen: Masks of the cards that may still come; those in the hand are no outs. One for all, or of that shape.

    Returns:
        Masks of the outs: uint64 of the common shape.
    """
    hands, others = np.broadcast_arrays(np.asarray(hand, dtype=np.uint64), np.asarray(unseen, dtype=np.uint64))
    out = np.empty(hands.shape, dtype=np.uint64)
    _outs(hands.ravel(), others.ravel(), out.reshape(-1))
    return out[()]
