"""A player that looks one card ahead: what the next card may save, and what a throw may give. Compiled, batched."""

import math

import numpy as np

from agents.base import register
from agents.baselines import greedy_throw, own_draws
from agents.laying import lay_action
from gin_env._compile import borrow_row, count, kernel, lowest
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, MELDS, PASS, TAKE
from gin_env.cards import CARD_POINTS, NO_CARD, NUM_CARDS, NUM_RANKS, NUM_SUITS, to_mask
from gin_env.melds import bit, least_after_discard, least_deadwood, suit_of
from gin_env.tables import DECLARE, DRAW_ANY, DRAW_STOCK, THROW, WALL, WALL_THROW
from gin_env.view import View

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_ACES = np.uint64(to_mask(NUM_RANKS * suit for suit in range(NUM_SUITS)))
_KINGS = _ACES << np.uint64(NUM_RANKS - 1)
_MOST_POINTS = int(CARD_POINTS.max())
# (11,) uint64: the cards of each number of points.
OF_POINTS = np.array([to_mask(np.flatnonzero(CARD_POINTS == points)) for points in range(_MOST_POINTS + 1)], np.uint64)
_PAIRS = 6


def _pairs() -> tuple[np.ndarray, np.ndarray]:
    """Returns the pairs that make a meld with each card, and the other cards that do so with each pair."""
    pairs = np.zeros((NUM_CARDS, _PAIRS), dtype=np.uint64)
    others = np.zeros((NUM_CARDS, _PAIRS), dtype=np.uint64)
    threes = [meld for meld in MELDS.tolist() if meld.bit_count() == 3]
    for card in range(NUM_CARDS):
        own = [meld ^ 1 << card for meld in threes if meld >> card & 1]
        for k, pair in enumerate(own):
            pairs[card, k] = pair
            others[card, k] = sum(meld ^ pair for meld in threes if meld & pair == pair and not meld >> card & 1)
    return pairs, others


# Both (52, 6) uint64, masks, 0 where unused.
_PAIR, _OTHERS = _pairs()


@kernel
def completing(hand):
    """The cards outside a hand that make a meld with two cards of it."""
    up = (hand & ~_KINGS) << _U1
    two_up = (up & ~_KINGS) << _U1
    down = (hand & ~_ACES) >> _U1
    two_down = (down & ~_ACES) >> _U1
    s, h, d, c = suit_of(hand, 0), suit_of(hand, 1), suit_of(hand, 2), suit_of(hand, 3)
    twice = np.uint64((s & h) | (d & c) | ((s | h) & (d | c)))  # ranks held at least twice
    return ((up & two_up) | (up & down) | (down & two_down) | twice * _ACES) & ~hand


@kernel
def total_saving(hand, deadwood, unseen):
    """How many points each of some cards would save if it came next, summed over them.

    Args:
        hand: Ten cards.
        deadwood: The least that they leave, points.
        unseen: Cards outside the hand.

    Returns:
        The sum of the deadwood less what is left once the card has come and the best of the eleven is thrown.
    """
    total = 0
    useful = completing(hand) & unseen
    if deadwood:
        # A card that completes no meld of the hand can only take the place of a loose one.
        others = unseen & ~useful
        least = least_after_discard(hand, -1)
        for points in range(1, min(deadwood - least, _MOST_POINTS + 1)):
            total += (deadwood - least - points) * count(others & OF_POINTS[points])
    while useful != _U0:
        card = lowest(useful)
        useful &= useful - _U1
        left = least_after_discard(hand | bit(card), card)
        if left < deadwood:
            total += deadwood - left
    return total


@kernel
def total_feeding(card, known, unseen, hidden, spurned):
    """How many melds the opponent is expected to make with a card, times n (n - 1) for n unseen cards.

    Args:
        card: The card.
        known: Cards known to be in the opponent's hand.
        unseen: Cards that may be.
        hidden: Number of cards in its hand that are not known.
        spurned: Cards that the opponent has thrown or declined.
    """
    n = count(unseen)
    total = 0
    for k in range(_PAIRS):
        pair = _PAIR[card, k]
        if pair == _U0 or pair & ~(known | unseen) != _U0:
            continue
        seen = count(pair & known)
        if seen == 2:
            total += n * (n - 1)
        elif not _OTHERS[card, k] & spurned:
            total += hidden * (n - 1 if seen == 1 else hidden - 1)
    return total


@kernel
def unseen_cards(v):
    """The cards of a row of a view that may be in the stock or, unknown, in the opponent's hand."""
    seen = v.hand | v.opponent_known
    for k in range(v.pile_size):
        seen |= bit(v.pile[k])
    return v.rules.pack & ~seen


@kernel
def lookahead_throw(v, banned, saving, feeding, after):
    """The card whose throw `LookaheadAgent` finds best, of equals the highest rank, then the last suit.

    Args:
        v: A row of a view, with eleven cards in hand.
        banned: A card that may not be thrown, or NO_CARD.
        saving: Weight of what the next card is expected to save.
        feeding: Points for each meld that the opponent is expected to make.
        after: (52,) int64, the deadwood that is left without each card of the hand, points.

    Returns:
        The card.
    """
    unseen = unseen_cards(v)
    hidden = v.opponent_cards - count(v.opponent_known)
    spurned = v.opponent_thrown | v.opponent_declined
    # Everything is counted in whole numbers first, so that cards that are alike get the same value to the last bit.
    n = count(unseen)
    draws, pairs = max(n, 1), max(n * (n - 1), 1)
    least = np.inf
    best = -1
    cards = v.hand
    while cards != _U0:
        card = lowest(cards)
        cards &= cards - _U1
        if card == banned:
            continue
        value = np.float64(after[card])
        if saving:
            value -= saving * (total_saving(v.hand & ~bit(card), after[card], unseen) / draws)
        if feeding:
            value += feeding * (total_feeding(card, v.opponent_known, unseen, hidden, spurned) / pairs)
        if best < 0 or value < least or (value == least and card % NUM_RANKS >= best % NUM_RANKS):
            least, best = value, card
    return best


@kernel
def lookahead_row(v, mask, early, late, early_draws, saving, feeding, after):
    """What `LookaheadAgent` plays in a row of a view.

    Args:
        v: The row.
        mask: (A,) int8.
        early: Most deadwood to knock with during the first ``early_draws`` own draws, points.
        late: The same from then on.
        early_draws: Own draws.
        saving: Weight of what the next card is expected to save.
        feeding: Points for each meld that the opponent is expected to make.
        after: (52,) int64, scratch.

    Returns:
        An action id.
    """
    phase = v.phase
    threshold = early if own_draws(v) <= early_draws else late
    if phase >= DECLARE:
        return lay_action(v)
    if phase == DRAW_STOCK:
        return DRAW
    if phase != THROW and phase != WALL_THROW:
        left = least_after_discard(v.hand | bit(v.upcard), np.int64(v.upcard))
        if phase == WALL:
            return TAKE if mask[TAKE] and left <= threshold else PASS
        deadwood = least_deadwood(v.hand)
        unseen = unseen_cards(v)
        if (deadwood - left) * count(unseen) > total_saving(v.hand, deadwood, unseen):
            return TAKE
        return DRAW if phase == DRAW_ANY else PASS
    if mask[BIG_GIN]:
        return BIG_GIN
    banned = np.int64(NO_CARD) if v.rules.rediscard else np.int64(v.taken)
    best = greedy_throw(v.hand, banned, after)
    if phase == WALL_THROW or (after[best] <= threshold and mask[KNOCK + best]):
        return KNOCK + best
    return DISCARD + lookahead_throw(v, banned, saving, feeding, after)


@kernel
def _lookahead(views, mask, early, late, early_draws, saving, feeding, out):
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    for i in range(views.size):
        out[i] = lookahead_row(views[i], borrow_row(mask, i), early, late, early_draws, saving, feeding, after)


@register("lookahead")
class LookaheadAgent:
    """Least deadwood, less what the next card may save, plus what the throw may give.

    Throws the card with the least value, the highest rank among equals (then the last suit of S H D C), where

        value = deadwood left - saving * points saved + feeding * melds fed

    - Deadwood left: the least that the ten other cards leave.
    - Points saved: how many points of that the next card saves, on average over all unseen cards. It saves the
      difference to the least deadwood once it has come and the best of the eleven is thrown.
    - Melds fed: the expected number of melds of three that the card makes with two cards of the opponent. They are
      counted over the pairs of cards that make a meld with it. A pair that is known to be in the opponent's hand counts
      1; one of which a card is in the own hand or the pile counts 0, and so does one, not wholly known, that makes a
      meld with another card which the opponent has thrown or declined. Any other pair counts as how likely the opponent
      holds its unseen cards, all unseen cards being equally likely.
    - Unseen: neither in the own hand nor in the pile nor known to be in the opponent's hand.

    Takes the upcard or discard if that lowers the best deadwood it can keep after throwing another card by more points
    than the next card is expected to save, otherwise draws from the stock. Knocks as soon as it may with at most
    ``knock`` deadwood, and then throws what leaves the least deadwood (the highest rank among equals, then the last
    suit), also at the wall; declares gin and big gin. Lays and lays off as the engine would (`agents.laying`).

    The knock rule is that of ``early-knock`` unless options say otherwise; with ``knock=0`` it only goes gin.

    Args:
        knock: Most deadwood to knock with, points.
        early_draws: Own draws in a hand during which ``knock`` holds.
        late_knock: Most deadwood to knock with from then on, points.
        saving: Weight of the points saved.
        feeding: Points for a meld fed.
    """

    def __init__(
        self,
        knock: int = 100,
        early_draws: int = 5,
        late_knock: int = 0,
        saving: float = 1.3,
        feeding: float = 2.0,
    ) -> None:
        """Checks and keeps the options."""
        options: dict[str, float] = {"knock": knock, "early_draws": early_draws, "late_knock": late_knock}
        for option, value in options.items():
            if type(value) is not int or value < 0:
                raise ValueError(f"agent 'lookahead': {option} is {value}; expected a whole number, 0 or more")
        for option, value in (("saving", saving), ("feeding", feeding)):
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"agent 'lookahead': {option} is {value}; expected a number, 0 or more")
        self.knock, self.early_draws, self.late_knock = knock, early_draws, late_knock
        self.saving, self.feeding = float(saving), float(feeding)
        defaults = {"knock": 100, "early_draws": 5, "late_knock": 0, "saving": 1.3, "feeding": 2.0}
        options |= {"saving": saving, "feeding": feeding}
        changes = [f"{option}={value}" for option, value in options.items() if value != defaults[option]]
        self.name = "lookahead" + (":" + ",".join(changes) if changes else "")

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(view.size, dtype=np.int64)
        mask = np.ascontiguousarray(mask, dtype=np.int8)
        knocks = self.knock, self.late_knock, self.early_draws
        _lookahead(np.ascontiguousarray(view), mask, *knocks, self.saving, self.feeding, out)
        return out
