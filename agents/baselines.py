"""Scripted players: random, greedy, and greedy with other rules for knocking. Compiled, batched."""

import numpy as np

from agents.base import register
from agents.laying import lay_action
from gin_env._compile import borrow_row, count, kernel, lowest, read_flags
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE
from gin_env.cards import NO_CARD, NUM_CARDS, NUM_RANKS
from gin_env.melds import INT_POINTS, bit, deadwood_without, least_after_discard, least_deadwood
from gin_env.tables import DECLARE, DRAW_ANY, DRAW_STOCK, THROW, WALL, WALL_THROW
from gin_env.view import View

_U0 = np.uint64(0)
_U1 = np.uint64(1)


@kernel
def nth_bit(mask, place):
    """Position of the bit of a uint64 with ``place`` set bits below it.

    By halves: clearing the lower bits one by one is a loop of random length, which processors guess wrong.
    """
    first = _U0
    width = 32
    while width:
        below = count((mask >> first) & ((_U1 << np.uint64(width)) - _U1))
        if place >= below:
            place -= below
            first += np.uint64(width)
        width >>= 1
    return np.int64(first)


@kernel
def _random(mask, rng, out):
    size = mask.shape[1]
    for i in range(mask.shape[0]):
        row = borrow_row(mask, i)
        legal = 0
        for start in range(0, size, 64):
            legal += count(_flags(row, start, size))
        # The key is random already: its upper half, scaled to the number of legal actions.
        place = np.int64(((rng[i] >> np.uint64(32)) * np.uint64(legal)) >> np.uint64(32))
        start = 0
        flags = _flags(row, start, size)
        while place >= count(flags):
            place -= count(flags)
            start += 64
            flags = _flags(row, start, size)
        out[i] = start + nth_bit(flags, place)


@kernel
def _flags(row, start, size):
    """The flags ``row[start:start + 64]`` as bits, where the row ends before that the rest of it."""
    if start + 64 <= size:
        return read_flags(row, start)
    return read_flags(row, size - 64) >> np.uint64(start + 64 - size)


@register("random")
class RandomAgent:
    """Plays every legal action with the same probability."""

    name = "random"

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(mask.shape[0], dtype=np.int64)
        _random(np.ascontiguousarray(mask, dtype=np.int8), rng, out)
        return out

    def probabilities(self, view: View, mask: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent`."""
        legal = mask != 0
        return legal / legal.sum(axis=1, keepdims=True)


@kernel
def greedy_throw(hand, banned, after):
    """The card whose throw leaves the least deadwood, of equals the highest rank, then the last suit.

    Args:
        hand: Eleven cards.
        banned: A card that may not be thrown, or NO_CARD.
        after: (52,) int64, written: the deadwood that is left without each card of the hand, points.

    Returns:
        The card.
    """
    least = deadwood_without(hand, banned, INT_POINTS, 1, after)
    best = -1
    cards = hand
    while cards != _U0:
        card = lowest(cards)
        cards &= cards - _U1
        if card != banned and after[card] == least and (best < 0 or card % NUM_RANKS >= best % NUM_RANKS):
            best = card
    return best


@kernel
def own_draws(v):
    """Draws of the seat to move in this hand, the one it is about to make or has made in this turn included."""
    # Draws alternate: with the one in hand or the next one.
    return (v.draws + 1 + (v.phase == WALL)) // 2


@kernel
def greedy_row(v, mask, early, late, early_draws, after):
    """What `GreedyAgent` plays in a row of a view.

    Args:
        v: The row.
        mask: (A,) int8.
        early: Most deadwood to knock with during the first ``early_draws`` own draws, points.
        late: The same from then on.
        early_draws: Own draws.
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
    if phase == WALL:
        least = least_after_discard(v.hand | bit(v.upcard), np.int64(v.upcard))
        return TAKE if mask[TAKE] and least <= threshold else PASS
    if phase != THROW and phase != WALL_THROW:
        keeps = least_after_discard(v.hand | bit(v.upcard), np.int64(v.upcard))
        if keeps < least_deadwood(v.hand):
            return TAKE
        return DRAW if phase == DRAW_ANY else PASS
    if mask[BIG_GIN]:
        return BIG_GIN
    banned = np.int64(NO_CARD) if v.rules.rediscard else np.int64(v.taken)
    best = greedy_throw(v.hand, banned, after)
    knocks = phase == WALL_THROW or (after[best] <= threshold and mask[KNOCK + best])
    return KNOCK + best if knocks else DISCARD + best


@kernel
def _greedy(views, mask, early, late, early_draws, out):
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    for i in range(views.size):
        out[i] = greedy_row(views[i], borrow_row(mask, i), early, late, early_draws, after)


@register("greedy")
class GreedyAgent:
    """Least deadwood now.

    Takes the upcard or discard if that lowers the best deadwood it can keep after throwing another card, otherwise
    draws from the stock. Throws what leaves the least deadwood, the highest rank among equals (then the last suit of
    S H D C). Knocks as soon as it may with that throw and at most ``knock`` deadwood, also at the wall; declares gin
    and big gin. Lays and lays off as the engine would (`agents.laying`).

    Args:
        knock: Most deadwood to knock with, points.
        early_draws: Own draws in a hand during which ``knock`` holds.
        late_knock: Most deadwood to knock with from then on, points.
    """

    def __init__(self, knock: int = 100, early_draws: int = 1000, late_knock: int = 0) -> None:
        """Checks and keeps the knock rule."""
        for option, value in (("knock", knock), ("early_draws", early_draws), ("late_knock", late_knock)):
            if type(value) is not int or value < 0:
                raise ValueError(f"agent 'greedy': {option} is {value}; expected a whole number, 0 or more")
        self.knock, self.early_draws, self.late_knock = knock, early_draws, late_knock
        options = f"knock={knock}" if knock != 100 else ""
        if early_draws != 1000:
            options = f"knock={knock},early_draws={early_draws},late_knock={late_knock}"
        self.name = "greedy" + (":" + options if options else "")

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(view.size, dtype=np.int64)
        mask = np.ascontiguousarray(mask, dtype=np.int8)
        _greedy(np.ascontiguousarray(view), mask, self.knock, self.late_knock, self.early_draws, out)
        return out


@register("gin-only")
def gin_only() -> GreedyAgent:
    """Greedy that never knocks short of gin: ``greedy:knock=0``."""
    agent = GreedyAgent(knock=0)
    agent.name = "gin-only"
    return agent


@register("early-knock")
def early_knock() -> GreedyAgent:
    """Greedy that knocks as soon as it may during its first five draws and later only goes gin.

    It is ``greedy:knock=100,early_draws=5,late_knock=0``.
    """
    agent = GreedyAgent(knock=100, early_draws=5, late_knock=0)
    agent.name = "early-knock"
    return agent
