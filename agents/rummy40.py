"""Scripted players of Rummy40: random, greedy and patient. Compiled, batched; they see a view, as those of gin do.

    >>> import agents
    >>> agents.make("patient:near=3", game="rummy40").name
    'patient:near=3'

Greedy and patient share one *plan*: the melds to lay in this turn that leave the fewest points in hand.
"""

import numpy as np

from agents.base import register
from agents.baselines import RandomAgent
from gin_env._compile import borrow_row, count, kernel, lowest
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.melds import INT_POINTS, bit
from gin_env.rummy40.actions import (
    ADD_HIGH,
    ADD_LOW,
    ADD_SET,
    DISCARD,
    DRAW,
    JOKER_HIGH,
    JOKER_LOW,
    JOKER_SET,
    LAY,
    MELD_JOKERS,
    MELD_POINTS,
    MELD_REAL,
    MELD_SIZE,
    NUM_MELDS,
    PLACE,
    STEAL_RUN,
    STEAL_SET,
    TAKE,
)
from gin_env.rummy40.cards import JOKER
from gin_env.rummy40.melds import in_melds, in_pairs, is_real, list_melds, may_throw_last, points_of, without
from gin_env.rummy40.rules import MAX_DRAW_CAP
from gin_env.rummy40.tables import DRAW_ANY
from gin_env.rummy40.view import OWN, View

_U0 = np.uint64(0)
_U1 = np.uint64(1)
MOST_MELDS = 3  # that fit into eleven cards, with one to throw


@register("random", game="rummy40")
class Random40(RandomAgent):
    """Plays every legal action with the same probability."""

    game = "rummy40"


# --------------------------------------------------------------------------------------------------------------- plans


@kernel
def _left(have, twice, jokers, adds, joker_place, joker_points):
    """What is left in hand of some cards once all that fit the table lie there and the highest other card is thrown.

    Args:
        have: Mask of the cards held.
        twice: Mask of those held twice.
        jokers: Jokers held.
        adds: Mask of the cards that can be added to melds on the table.
        joker_place: Whether a joker can.
        joker_points: Points of a joker.

    Returns:
        Points that are left, and cards that are left before the throw.
    """
    have &= ~adds
    if joker_place and jokers > 0:
        jokers -= 1
    highest = 0
    cards = have | twice
    while cards != _U0:
        highest = max(highest, INT_POINTS[lowest(cards)])
        cards &= cards - _U1
    points = points_of(have) + points_of(twice) + jokers * joker_points - highest
    return points, count(have) + count(twice) + jokers


@kernel
def find_plan(v, have, twice, jokers, need, opened, banned, lists, melds):
    """Finds the melds to lay in this turn that leave the fewest points in hand (`_left`), of equals the fewest cards.

    Args:
        v: Row of a view.
        have: Mask of the cards held.
        twice: Mask of those held twice.
        jokers: Jokers held.
        need: Points that the melds must reach; 0 or less for none.
        opened: Whether cards may be added without a meld.
        banned: Card that may not be thrown, or NO_CARD.
        lists: (MOST_MELDS, NUM_MELDS) int64, scratch.
        melds: (MOST_MELDS,) int64, written: numbers of the melds, then -1. All -1 where laying none is best.

    Returns:
        Points and cards that are left, as `_left` counts them.
    """
    rules = v.rules
    adds = v.fits[ADD_SET] | v.fits[ADD_LOW] | v.fits[ADD_HIGH]
    joker_place = (v.fits[JOKER_SET] | v.fits[JOKER_LOW] | v.fits[JOKER_HIGH]) != _U0
    joker_points = np.int64(rules.joker_points)
    haves = np.empty(MOST_MELDS, dtype=np.uint64)
    twices = np.empty(MOST_MELDS, dtype=np.uint64)
    # Of what is still to be shared out, by depth: jokers, cards, points laid, place in the list, its length.
    state = np.empty((MOST_MELDS, 5), dtype=np.int64)
    chosen = np.empty(MOST_MELDS, dtype=np.int64)
    for k in range(MOST_MELDS):
        melds[k] = -1
    size = count(have) + count(twice) + jokers
    if opened:
        best, best_cards = _left(have, twice, jokers, adds, joker_place, joker_points)
    else:
        best, best_cards = _left(have, twice, jokers, _U0, False, joker_points)
    total = list_melds(have, jokers, rules.pack, np.int64(rules.suits), size - 1, borrow_row(lists, 0))
    haves[0], twices[0] = have, twice
    state[0, 0], state[0, 1], state[0, 2], state[0, 3], state[0, 4] = jokers, size, 0, 0, total
    depth = 0
    while depth >= 0:
        if state[depth, 3] == state[depth, 4]:
            depth -= 1
            continue
        at = state[depth, 3]
        state[depth, 3] += 1
        number = lists[depth, at]
        chosen[depth] = number
        h, w = without(haves[depth], twices[depth], MELD_REAL[number])
        j = state[depth, 0] - MELD_JOKERS[number]
        cards = state[depth, 1] - MELD_SIZE[number]
        points = state[depth, 2] + MELD_POINTS[number]
        used = _U0
        for k in range(depth + 1):
            used |= MELD_REAL[chosen[k]]
        if points >= need and (cards > 1 or cards == 1 and may_throw_last(used, j, banned)):
            left, left_cards = _left(h, w, j, adds, joker_place, joker_points)
            if left < best or left == best and left_cards < best_cards:
                best, best_cards = left, left_cards
                for k in range(MOST_MELDS):
                    melds[k] = chosen[k] if k <= depth else -1
        if depth + 1 < MOST_MELDS and cards > 3:
            size = 0
            for k in range(at, state[depth, 4]):
                other = lists[depth, k]
                real = MELD_REAL[other]
                if (real & h) == real and MELD_JOKERS[other] <= j and MELD_SIZE[other] < cards:
                    lists[depth + 1, size] = other
                    size += 1
            depth += 1
            haves[depth], twices[depth] = h, w
            state[depth, 0], state[depth, 1], state[depth, 2] = j, cards, points
            state[depth, 3], state[depth, 4] = 0, size
    return best, best_cards


# ------------------------------------------------------------------------------------------------------------- choices


@kernel
def _takes(v, need, lists, melds):
    """Whether the top of the pile leaves no more points in hand than there would be without it.

    As long as the minimum is out of reach, melds count as if there were none.
    """
    card = np.int64(v.upcard)
    if card == JOKER:
        return True
    have, twice, jokers = v.hand[0], v.hand[1], np.int64(v.jokers)
    opened = v.opened[OWN] > 0
    banned = np.int64(NO_CARD) if v.rules.rediscard else card
    more_twice = twice | have & bit(card)
    more = have | bit(card)
    if need > 0:
        find_plan(v, more, more_twice, jokers, need, False, banned, lists, melds)
        if melds[0] < 0:
            need = 0
    with_it, _ = find_plan(v, more, more_twice, jokers, need, opened, banned, lists, melds)
    without_it, _ = find_plan(v, have, twice, jokers, need, opened, np.int64(NO_CARD), lists, melds)
    return with_it <= without_it


@kernel
def _best_place(v, mask, first, last):
    """The legal action on a place of a kind, first to last, with the card of the most points; -1 if there is none."""
    best = -1
    most = -1
    for place in range(first, last + 1):
        cards = v.fits[place]
        while cards != _U0:
            card = lowest(cards)
            cards &= cards - _U1
            action = PLACE + place * NUM_CARDS + card
            if mask[action] and INT_POINTS[card] > most:
                best, most = action, INT_POINTS[card]
    return best


@kernel
def _throw(v, mask):
    """What to throw: the card that helps least, of equals the one of the most points, then of the highest number.

    Of rising help: cards that help nothing, those of which one card more makes a meld, those that fit a meld on the
    table, those in a meld. One of two cards that look alike helps nothing.
    """
    rules = v.rules
    have, twice = v.hand[0], v.hand[1]
    melds = in_melds(have)
    pairs = in_pairs(have, rules.pack, np.int64(rules.suits))
    fits = v.feeds | v.fits[ADD_SET] | v.fits[ADD_LOW] | v.fits[ADD_HIGH]
    best = -1
    least = most = 0
    cards = have
    while cards != _U0:
        card = lowest(cards)
        cards &= cards - _U1
        if not mask[DISCARD + card]:
            continue
        one = bit(card)
        helps = 0
        if (one & fits) != _U0:
            helps = 2
        if (one & twice) == _U0:
            if (one & pairs) != _U0:
                helps = max(helps, 1)
            if (one & melds) != _U0:
                helps = 3
        if best < 0 or helps < least or helps == least and INT_POINTS[card] >= most:
            best, least, most = card, helps, INT_POINTS[card]
    if best < 0 and mask[DISCARD + JOKER]:
        best = JOKER
    return -1 if best < 0 else DISCARD + best


@kernel
def choose_row(v, mask, near, turns, lists, melds):
    """What `Patient40` plays in a row of a view, and `Greedy40`, which never waits.

    Args:
        v: The row.
        mask: (A,) int8.
        near: Cards; a player with at most so many is near going out.
        turns: Own turns in a hand during which it waits.
        lists: (MOST_MELDS, NUM_MELDS) int64, scratch.
        melds: (MOST_MELDS,) int64, scratch.

    Returns:
        An action id.
    """
    opened = v.opened[OWN] > 0
    need = 0 if opened else np.int64(v.rules.opening) - v.attempt_points
    if v.phase == DRAW_ANY:
        return TAKE if mask[TAKE] and _takes(v, need, lists, melds) else DRAW
    if opened:
        action = _best_place(v, mask, STEAL_SET, STEAL_RUN)
        if action >= 0:
            return action
    banned = np.int64(v.taken)
    if v.rules.rediscard or not is_real(banned) or (v.hand[0] & bit(banned)) == _U0:
        banned = np.int64(NO_CARD)
    _, cards = find_plan(v, v.hand[0], v.hand[1], np.int64(v.jokers), need, opened, banned, lists, melds)
    waits = not opened and v.attempt == 0 and cards > 1 and v.draws <= turns * v.rules.seats
    for k in range(1, np.int64(v.rules.seats)):
        waits = waits and v.num_cards[k] > near
    if not waits:
        for k in range(MOST_MELDS):
            if melds[k] >= 0 and mask[LAY + melds[k]]:
                return LAY + melds[k]
    if opened:
        action = _best_place(v, mask, ADD_SET, ADD_HIGH)
        if action < 0:
            action = _best_place(v, mask, JOKER_SET, JOKER_HIGH)
        if action >= 0:
            return action
    action = _throw(v, mask)
    if action >= 0:
        return action
    # A stolen joker, or melds below the minimum, for which the plan has no place: any move ends the turn in time.
    for action in range(mask.size - 1, -1, -1):
        if mask[action]:
            return action
    return -1


@kernel
def _choose(views, mask, near, turns, out):
    lists = np.empty((MOST_MELDS, NUM_MELDS), dtype=np.int64)
    melds = np.empty(MOST_MELDS, dtype=np.int64)
    for i in range(views.size):
        out[i] = choose_row(views[i], borrow_row(mask, i), near, turns, lists, melds)


class _Planner:
    """What greedy and patient share."""

    game = "rummy40"
    name: str
    near: int
    turns: int

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(view.size, dtype=np.int64)
        mask = np.ascontiguousarray(mask, dtype=np.int8)
        _choose(np.ascontiguousarray(view), mask, self.near, self.turns, out)
        return out


@register("greedy", game="rummy40")
class Greedy40(_Planner):
    """Fewest points in hand now; opens as soon as it may.

    The *points left* of a hand are those of its cards and jokers once it has laid the melds, at most three, that make
    them fewest, has added what fits the table (if it has opened, or opens with those melds), and has thrown the
    highest card that remains. Among equals it lays what leaves the fewest cards, then what comes first in the order of
    the action table. Until it has opened, the melds must reach the minimum; where none do, it lays none.

    - Draws the top of the pile if that is a joker, or if it leaves no more points than the hand has without it (melds
      below the minimum counting, while it is out of reach); otherwise from the stock.
    - Steals every joker that it may, the one for the highest card first.
    - Lays those melds, then adds what it may, the highest card first, then its jokers.
    - Throws the card that helps least: one that helps nothing; then one of two or more that lack a single card to a
      meld; then one that it or another player could add to a meld on the table; then one of a meld. Among equals the
      highest. One of two cards that look alike helps nothing unless it fits the table. It throws a joker only if it
      may throw nothing else.
    """

    name = "greedy"
    near = turns = 0  # it never waits


@register("patient", game="rummy40")
class Patient40(_Planner):
    """Greedy that holds back its first melds for some turns, unless it can go out in one.

    It plays as `Greedy40` but for one thing: in its first ``turns`` turns of a hand, until it has opened, it lays
    nothing as long as each other player has more than ``near`` cards and it cannot lay and add all but one card in this
    turn. What it holds nobody can add to or steal jokers from; what it risks is to be caught with it.

    Args:
        near: Cards; another player with at most so many is near going out.
        turns: Own turns in a hand; after them it plays as greedy.
    """

    def __init__(self, near: int = 5, turns: int = 3) -> None:
        """Checks and keeps the numbers."""
        for option, value in (("near", near), ("turns", turns)):
            if type(value) is not int or not 0 <= value <= MAX_DRAW_CAP:
                raise ValueError(f"agent 'patient': {option} is {value}; expected a whole number, 0 to {MAX_DRAW_CAP}")
        self.near, self.turns = near, turns
        changed = [f"{key}={value}" for key, value, usual in (("near", near, 5), ("turns", turns, 3)) if value != usual]
        self.name = "patient" + (":" + ",".join(changed) if changed else "")
