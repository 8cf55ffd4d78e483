"""A player that thinks ahead: it plays its choices out in worlds as they may well be, and leaves its base on evidence."""

from typing import NamedTuple

import numpy as np

from agents.base import Agent
from agents.beliefs import Particles, believe, deal_evenly, particles, unseen_cards
from agents.playouts import GREEDY, lay_by_itself, play_out
from agents.worlds import fill_in, set_up
from gin_env._compile import borrow_row, kernel, lowest
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.keys import mix
from gin_env.melds import INT_POINTS, deadwood_without
from gin_env.tables import DECLARE, TABLE_DTYPE, THROW, WALL_THROW
from gin_env.view import View

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_STREAM = np.uint64(0x5EA7C4)  # apart from what a base makes of the same keys

# Knocks as soon as it may, never short of gin, or only before its sixth draw; takes what lowers its deadwood, or only
# what completes a meld. The first is greedy, the second gin-only, the third early-knock.
STYLES = np.array(
    [
        [GREEDY, early, late, draws, melds_only]
        for melds_only in (0, 1)
        for early, late, draws in ((100, 0, 1000), (0, 0, 0), (100, 0, 5))
    ],
    dtype=np.int64,
)

DEFAULT_WORLDS = 512
MAX_WORLDS = 1 << 20
OPPONENTS = 1024  # of the filter; two for a world where that is more
STEPS = 20  # from each opponent that is taken
WORTH_A_LOOK = 12  # points above the least that a discard may leave
LOST = 2.0  # standard errors
_MAX_ARMS = 2 * NUM_CARDS + 1


class Scratch(NamedTuple):
    """What a search writes into."""

    particles: Particles
    hidden: np.ndarray  # (W,) uint64, the opponent's unseen cards in each world
    style: np.ndarray  # (W,) int64, how it plays there
    table: np.ndarray  # (1,) tables
    played: np.ndarray  # (1,) tables
    arms: np.ndarray  # (_MAX_ARMS,) int64, actions
    alive: np.ndarray  # (_MAX_ARMS,) int64, numbers of arms
    mean: np.ndarray  # (_MAX_ARMS,) points more than the base's choice
    error: np.ndarray  # (_MAX_ARMS,) standard error of it
    values: np.ndarray  # (_MAX_ARMS, W) float32, points in each world
    after: np.ndarray  # (52,) int64


def _scratch(worlds: int) -> Scratch:
    return Scratch(
        particles(max(OPPONENTS, 2 * worlds)),
        np.zeros(worlds, dtype=np.uint64),
        np.zeros(worlds, dtype=np.int64),
        np.zeros(1, dtype=TABLE_DTYPE),
        np.zeros(1, dtype=TABLE_DTYPE),
        np.zeros(_MAX_ARMS, dtype=np.int64),
        np.zeros(_MAX_ARMS, dtype=np.int64),
        np.zeros(_MAX_ARMS),
        np.zeros(_MAX_ARMS),
        np.zeros((_MAX_ARMS, worlds), dtype=np.float32),
        np.zeros(NUM_CARDS, dtype=np.int64),
    )


@kernel
def list_arms(v, mask, base, arms, after):
    """Lists the actions that are worth a look, the base's choice first.

    Args:
        v: A row of a view, before any knock.
        mask: (A,) int8.
        base: The base's choice.
        arms: (_MAX_ARMS,) int64, written.
        after: (52,) int64, scratch.

    Returns:
        The number of actions.
    """
    arms[0] = base
    number = 1
    if v.phase != THROW and v.phase != WALL_THROW:
        for action in (PASS, DRAW, TAKE):
            if mask[action] and action != base:
                arms[number] = action
                number += 1
        return number
    banned = np.int64(NO_CARD) if v.rules.rediscard else np.int64(v.taken)
    least = deadwood_without(v.hand, banned, INT_POINTS, 1, after)
    if base == BIG_GIN or (base >= KNOCK and after[base - KNOCK] == 0):
        return number  # there is nothing better than gin
    cards = v.hand
    while cards != _U0:
        card = lowest(cards)
        cards &= cards - _U1
        if mask[DISCARD + card] and after[card] <= least + WORTH_A_LOOK and DISCARD + card != base:
            arms[number] = DISCARD + card
            number += 1
        if mask[KNOCK + card] and after[card] == least and KNOCK + card != base:
            arms[number] = KNOCK + card
            number += 1
    if mask[BIG_GIN]:
        arms[number] = BIG_GIN
        number += 1
    return number


@kernel
def search_row(v, mask, base, own, styles, caution, weigh, key, s):
    """What `SearchAgent` plays in a row of a view.

    Args:
        v: The row.
        mask: (A,) int8.
        base: The base's choice.
        own: The style in which the seat plays on.
        styles: (S, 5) int64, those that the opponent may have.
        caution: Standard errors.
        weigh: Whether worlds are weighed by what the opponent has done.
        key: Random.
        s: `Scratch`.

    Returns:
        An action id.
    """
    if v.phase >= DECLARE:
        return base
    number = list_arms(v, mask, base, s.arms, s.after)
    if number == 1:
        return base
    worlds = s.hidden.size
    if weigh:
        believe(v, styles, STEPS, key, s.particles, s.hidden, s.style)
    else:
        deal_evenly(v, styles, key, s.hidden, s.style)
    table = s.table[0]
    set_up(v, table)
    table.to_target = False
    lay_by_itself(table)
    unseen = unseen_cards(v)
    for a in range(number):
        s.alive[a] = a
    left = number
    done = 0
    while True:
        upto = min(max(2 * done, (worlds + 3) // 4), worlds)
        for w in range(done, upto):
            fill_in(table, s.hidden[w], unseen, mix(key, np.uint64(w)))
            for a in range(left):
                s.played[0] = s.table[0]
                arm = s.alive[a]
                s.values[arm, w] = play_out(s.played[0], s.arms[arm], own, styles[s.style[w]], s.after)
        done = upto
        # The base's choice is always the first of those left.
        keep = 1
        best = 0
        for a in range(1, left):
            arm = s.alive[a]
            _compare(s.values, arm, done, s.mean, s.error)
            if s.mean[arm] + LOST * s.error[arm] > 0:
                s.alive[keep] = arm
                keep += 1
                if best == 0 or s.mean[arm] > s.mean[best]:
                    best = arm
        if best == 0:
            return base
        if done == worlds:
            return s.arms[best] if s.mean[best] > caution * s.error[best] else base
        left = 1 + min(keep - 1, (left + 1) // 2)
        _best_first(s.alive, keep, s.mean)


@kernel
def _compare(values, arm, worlds, mean, error):
    """Writes by how much an arm is better than the base's choice in the same worlds, and the standard error of it."""
    total = 0.0
    squares = 0.0
    for w in range(worlds):
        difference = np.float64(values[arm, w]) - np.float64(values[0, w])
        total += difference
        squares += difference * difference
    mean[arm] = total / worlds
    error[arm] = np.sqrt(max(squares / worlds - mean[arm] * mean[arm], 0.0) / worlds)


@kernel
def _best_first(alive, size, mean):
    """Sorts the arms after the base's choice by what they are worth (insertion: they are few)."""
    for a in range(2, size):
        arm = alive[a]
        place = a
        while place > 1 and mean[alive[place - 1]] < mean[arm]:
            alive[place] = alive[place - 1]
            place -= 1
        alive[place] = arm


@kernel
def _search(views, mask, base, own, styles, caution, weigh, keys, s, out):
    for i in range(views.size):
        key = mix(keys[i], _STREAM)
        out[i] = search_row(views[i], borrow_row(mask, i), base[i], own, styles, caution, weigh, key, s)


class SearchAgent:
    """Search."""

    def __init__(
        self,
        base: Agent,
        worlds: int | None = None,
        ms: float | None = None,
        caution: float = 0.75,
        weigh: int = 1,
        own=None,
        styles=None,
    ) -> None:
        self.base = base
        self.worlds = DEFAULT_WORLDS if worlds is None else worlds
        self.caution, self.weigh = caution, bool(weigh)
        self.name = f"search:{base.name}"
        self.own = STYLES[0] if own is None else own
        self.styles = STYLES if styles is None else styles

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.array(self.base.act(view, mask, rng), dtype=np.int64)
        mask = np.ascontiguousarray(mask, dtype=np.int8)
        _search(
            np.ascontiguousarray(view),
            mask,
            out.copy(),
            self.own,
            self.styles,
            self.caution,
            self.weigh,
            np.ascontiguousarray(rng),
            _scratch(self.worlds),
            out,
        )
        return out
