"""A player that searches: it plays its choices out in worlds that it may be in. Compiled.

>>> import agents
>>> agents.make("search:worlds=64:greedy").name
'search:worlds=64:greedy'
"""

import math
import time
from typing import NamedTuple

import numpy as np

from agents.base import Agent, make, parse_options, register
from agents.lookahead import unseen_cards
from agents.playouts import advised_play_out, play_out, won_by
from agents.strategist import StrategistAgent
from agents.worlds import FIRST_STEPS, STEPS, fill_stock, first_hand, next_hand, set_up
from gin_env._compile import kernel, lowest
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, MAX_MELDS, NUM_ACTIONS, PASS, TAKE
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.engine import GOING_ON, play
from gin_env.keys import mix
from gin_env.melds import INT_POINTS, deadwood_without
from gin_env.tables import DECLARE, DRAW_STOCK, TABLE_DTYPE, THROW, WALL_THROW
from gin_env.view import VIEW_DTYPE, View

MAX_CANDIDATES = 16
REACH = 10  # points of deadwood: throws that leave more than the best one and this are not looked at
ROUND = 16  # worlds between two looks at the clock
FIRST_LOOK = 64  # worlds before a candidate may be given up
GIVE_UP = 3.0  # standard errors by which it must be behind
DOUBT = 20.0  # points: a difference that is counted as seen once more, where errors are estimated
# Draws during which a player of a play-out knocks: itself, and the opponent in one world after the other, as nobody
# knows how that plays. They are the rules of early-knock, gin-only and greedy.
OWN_DRAWS = 5
OTHER_DRAWS = np.array([0, 5, 100])

_STRATEGIST = StrategistAgent().weights
_U0 = np.uint64(0)
_U1 = np.uint64(1)


@kernel
def list_candidates(v, mask, chosen, throws, out):
    """Lists what is worth a look in a row of a view, the base's choice first.

    Args:
        v: The row.
        mask: (A,) int8.
        chosen: What the base plays.
        throws: Whether only throws are looked at that do not knock.
        out: (MAX_CANDIDATES,) int64, written.

    Returns:
        Their number; 1 where there is nothing to choose.
    """
    out[0] = chosen
    size = 1
    if v.phase >= DECLARE or v.phase == DRAW_STOCK or chosen == BIG_GIN:
        return size
    if throws and (v.phase != THROW or chosen >= KNOCK):
        return size
    if v.phase != THROW and v.phase != WALL_THROW:
        for action in (PASS, DRAW, TAKE):
            if mask[action] and action != chosen:
                out[size] = action
                size += 1
        return size
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    banned = np.int64(NO_CARD) if v.rules.rediscard else np.int64(v.taken)
    least = deadwood_without(v.hand, banned, INT_POINTS, 1, after)
    if least == 0 and chosen >= KNOCK:
        return size  # gin
    # In the order of the deadwood they leave, as there may be more than there is room for.
    for points in range(least, least + REACH + 1):
        cards = v.hand
        while cards != _U0:
            card = lowest(cards)
            cards &= cards - _U1
            if card == banned or after[card] != points:
                continue
            for action in (KNOCK + card, DISCARD + card):
                # Whoever knocks does it with the least deadwood.
                wanted = action < KNOCK or (points == least and not throws)
                if wanted and mask[action] and action != chosen and size < MAX_CANDIDATES:
                    out[size] = action
                    size += 1
    return size


@kernel
def race(v, candidates, alive, first, worlds, key, advised, weights, tables, hand, count, total, gain, square):
    """Plays candidates out in the same worlds.

    Args:
        v: A row of a view.
        candidates: (n,) int64, actions; gains are counted against the first.
        alive: (n,) bool, which of them are played; the first always is.
        first: Number of the first world.
        worlds: Number of worlds.
        key: Decides the worlds, together with their numbers.
        advised: In the last of so many worlds both players finish as `agents.strategist` would; 0 for none.
        weights: (1,) records, of that player.
        tables: (2,) tables, scratch.
        hand: (1,) uint64, the opponent's hand in the world before; 0 where there was none.
        count: (n,) int64, worlds so far; advanced, as are
        total: (n,) float64, points won,
        gain: (n,) float64, points won more than by the first candidate,
        square: (n,) float64, the squares of those.
    """
    seat = np.int64(v.seat)
    unseen = unseen_cards(v)
    set_up(v, tables[0])
    views = np.empty(1, dtype=VIEW_DTYPE)
    mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    melds = np.zeros(MAX_MELDS, dtype=np.uint64)
    for world in range(first, first + worlds):
        one = mix(key, np.uint64(world))
        if hand[0] == _U0:
            hand[0] = next_hand(v, unseen, first_hand(v, unseen, key), FIRST_STEPS, one)
        else:
            hand[0] = next_hand(v, unseen, hand[0], STEPS, one)
        tables[0].hands[1 - seat] = hand[0]
        fill_stock(tables[0], unseen & ~hand[0], mix(one, _U1))
        other_draws = OTHER_DRAWS[world % OTHER_DRAWS.size]
        base = 0
        for k in range(candidates.size):
            if not alive[k]:
                continue
            tables[1] = tables[0]
            t = tables[1]
            if play(t, np.int64(candidates[k])) != GOING_ON:
                points = won_by(t, seat)
            elif advised and (world + 1) % advised == 0:
                points = advised_play_out(t, seat, weights[0], views[0], mask, after, melds)
            else:
                points = play_out(t, seat, OWN_DRAWS, other_draws)
            if k == 0:
                base = points
            count[k] += 1
            total[k] += points
            gain[k] += points - base
            square[k] += (points - base) ** 2


class Candidate(NamedTuple):
    """What a search has found out about an action.

    Attributes:
        action: Its id.
        worlds: Worlds in which it was played out.
        points: Mean of the points won there.
        gain: Mean of the points won there more than by the action that it is compared with.
        error: Standard error of the gain, a little enlarged; infinite where there were fewer than two worlds.
    """

    action: int
    worlds: int
    points: float
    gain: float
    error: float


class Race:
    """The candidates of one decision and how they stand.

    Args:
        view: A row of a view.
        candidates: (n,) actions; gains are counted against the first, which is never given up.
        key: Decides the worlds.
        margin: Points that a candidate must gain to win.
        advised: In the last of so many worlds both players finish as `agents.strategist` would; 0 for none.

    Attributes:
        alive: (n,) bool, the candidates that are left.
        worlds: Worlds so far.
    """

    def __init__(
        self, view: np.record, candidates: np.ndarray, key: int, margin: float = 0.0, advised: int = 0
    ) -> None:
        self.view, self.candidates, self.key, self.margin = view, candidates, np.uint64(key), margin
        self.advised = advised
        size = candidates.size
        self.alive = np.ones(size, dtype=np.bool_)
        self.worlds = 0
        self._tables = np.zeros(2, dtype=TABLE_DTYPE)
        self._hand = np.zeros(1, dtype=np.uint64)
        self._count = np.zeros(size, dtype=np.int64)
        self._total, self._gain, self._square = np.zeros((3, size))

    def run(self, worlds: int) -> None:
        """Plays the candidates that are left in some more worlds."""
        race(
            self.view, self.candidates, self.alive, self.worlds, worlds, self.key, self.advised, _STRATEGIST,
            self._tables, self._hand, self._count, self._total, self._gain, self._square,
        )  # fmt: skip
        self.worlds += worlds

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean gain of each candidate and its standard error, (n,) float64 each."""
        count = np.maximum(self._count, 1)
        gain = self._gain / count
        # A few worlds may by chance all show the same gain, which proves nothing.
        squares = np.maximum(self._square - count * gain**2, 0) + DOUBT**2
        error = np.where(self._count > 1, np.sqrt(squares / (count * np.maximum(count - 1, 1))), np.inf)
        error[0] = 0
        return gain, error

    def standing(self) -> list[Candidate]:
        """What is known of each candidate."""
        gain, error = self.gains()
        points = self._total / np.maximum(self._count, 1)
        rows = zip(self.candidates, self._count, points, gain, error, strict=True)
        return [Candidate(int(action), int(worlds), *map(float, rest)) for action, worlds, *rest in rows]

    def give_up(self) -> bool:
        """Gives up what is far behind. Returns whether it is still open who wins."""
        if self.worlds < FIRST_LOOK:
            return True
        gain, error = self.gains()
        ahead = gain - self.margin
        self.alive[1:] &= ahead[1:] >= -GIVE_UP * error[1:]
        rivals = np.flatnonzero(self.alive[1:]) + 1
        if rivals.size == 1:  # it may be far ahead as well
            return bool(ahead[rivals[0]] <= GIVE_UP * error[rivals[0]])
        return bool(rivals.size)

    def halve(self) -> None:
        """Gives up the worse half of what is left, the first candidate apart."""
        gain, _ = self.gains()
        rivals = np.flatnonzero(self.alive[1:]) + 1
        order = rivals[np.argsort(-gain[rivals], kind="stable")]
        self.alive[order[(rivals.size + 1) // 2 :]] = False


def search(race: Race, *, ms: float = 0.0, worlds: int = 0, evidence: float = 0.0) -> int:
    """Races the candidates by sequential halving (Karnin et al. 2013) and returns the action that wins.

    In each of log2(n) stages the candidates that are left are played out for an equal share of the budget, and then
    the worse half of them is given up; so is, at any time, what is three standard errors behind the first. The race
    ends early when nothing is left to decide.

    Args:
        race: The candidates, those of the first stage alive.
        ms: Milliseconds of processor time, so that other work on the machine costs no strength; if 0, ``worlds``
            counts.
        worlds: Worlds for each candidate, if all were played out in the same number.
        evidence: Standard errors by which a candidate must gain more than the race's margin to win.
    """
    size = race.candidates.size
    stages = max(math.ceil(math.log2(size)), 1)
    start = time.thread_time()
    for stage in range(stages):
        left = math.inf if ms else worlds * size // (stages * int(race.alive.sum()))
        until = start + ms / 1000 * (stage + 1) / stages if ms else math.inf
        while left > 0 and time.thread_time() < until:
            race.run(int(min(left, ROUND)))
            left -= ROUND
            if not race.give_up():
                return _winner(race, evidence)
        if stage + 1 < stages:
            race.halve()
    return _winner(race, evidence)


def _winner(race: Race, evidence: float) -> int:
    gain, error = race.gains()
    gain = np.where(race.alive, gain, -np.inf)
    best = int(gain.argmax())
    return int(race.candidates[best if gain[best] > race.margin + evidence * error[best] else 0])


@register("search", raw=True)
class SearchAgent:
    """Plays its choices out in worlds that it may be in, and leaves its base's choice only on evidence.

    ``search:BASE``, ``search:ms=20:BASE`` or ``search:worlds=500,evidence=2:BASE``, where BASE is any other agent.

    - Candidates: what the base plays; taking and drawing; throws that leave at most 10 points more than the best one;
      knocks that leave the least. Gin, big gin, melds and layoffs are left to the base.
    - Worlds: the opponent's hidden cards and the order of the stock, each hand as often as it is likely by what the
      opponent has thrown, declined and taken, and after so many draws (`agents.worlds.belief`). They are the same for
      all candidates.
    - Play-outs: both players throw what leaves the least deadwood (of equals the card with the fewest loose cards near
      it), take only what makes a meld, and go gin; itself it also knocks during its first 5 draws, the opponent in one
      world never, in the next during its first 5 draws, in the third always (`agents.playouts`). Or both play as
      `strategist`.
    - Choice: a race by sequential halving (`search`). The base's choice is left only for a candidate whose mean gain is
      ``evidence`` standard errors above ``margin`` points.

    - ``ms``: milliseconds of one core for a decision, 50 unless it is said; ``worlds`` in its place: worlds for each
      candidate, if all were played out equally often. With ``ms`` choices depend on the speed of the machine, with
      ``worlds`` on the seed alone.
    - ``evidence``: 1 unless it is said.
    - ``margin``: 0 unless it is said, 1 if the base is a network: what play-outs say of its choices is off by more than
      chance.
    - ``throws``: 1 to look at throws only and leave draws and knocks to the base, 0 for all. It is 1 if the base is a
      network, which gains nothing by the others.
    - ``advised``: in the last of so many worlds both players finish the hand as `strategist`; 0 for none. It is 2 if
      the base is a network, which strong play-outs judge better, and 0 otherwise, as they take several times as long.

    It plays for the points of the hand, also in a match. `ginrummy match search:best best --deals 2000` gives +1.5
    points a hand (95 % interval 0.9 to 2.2).
    """

    def __init__(self, options: str = "") -> None:
        """Reads the options."""
        head, colon, rest = options.partition(":")
        given, base = (head, rest) if "=" in head and not head.startswith(("/", ".")) else ("", options)
        spec = f"search:{options}"
        if not base:
            raise ValueError(f"agent {spec!r} has no base; expected search:BASE or search:ms=20:BASE, for instance "
                             "search:greedy")  # fmt: skip
        parsed = parse_options(spec, given)
        unknown = sorted(set(parsed) - {"ms", "worlds", "evidence", "margin", "throws", "advised"})
        if unknown:
            raise ValueError(
                f"agent {spec!r}: unknown option {unknown[0]!r}; "
                "expected ms, worlds, evidence, margin, throws or advised"
            )
        if "ms" in parsed and "worlds" in parsed:
            raise ValueError(f"agent {spec!r}: expected ms or worlds, not both")
        self.ms = float(parsed.get("ms", 0.0 if "worlds" in parsed else 50.0))
        self.worlds = parsed.get("worlds", 0)
        if "worlds" in parsed and (type(self.worlds) is not int or self.worlds < 2):
            raise ValueError(f"agent {spec!r}: worlds is {self.worlds}; expected a whole number, 2 or more")
        if "worlds" not in parsed and not self.ms > 0:
            raise ValueError(f"agent {spec!r}: ms is {self.ms:g}; expected more than 0")
        self.base: Agent = make(base)
        trained = hasattr(self.base, "rules")
        self.throws = bool(parsed.get("throws", trained))
        self.advised = parsed.get("advised", 2 if trained else 0)
        if type(self.advised) is not int or self.advised < 0:
            raise ValueError(f"agent {spec!r}: advised is {self.advised}; expected a whole number, 0 or more")
        self.evidence = float(parsed.get("evidence", 1.0))
        self.margin = float(parsed.get("margin", 1.0 if trained else 0.0))
        for option, number in (("evidence", self.evidence), ("margin", self.margin)):
            if number < 0:
                raise ValueError(f"agent {spec!r}: {option} is {number:g}; expected 0 or more")
        if isinstance(self.base, SearchAgent) or hasattr(self.base, "follow"):
            raise ValueError(f"agent {spec!r}: {base!r} cannot be searched from; expected a plain agent")
        # For benchmarks: decisions that were played out so far, and worlds in which, all of them together.
        self.searched = self.seen = 0
        self.name = "search:" + (f"{given}:" if given else "") + self.base.name

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        view = np.ascontiguousarray(view)
        actions = np.array(self.base.act(view, mask, rng))
        candidates = np.empty(MAX_CANDIDATES, dtype=np.int64)
        for row in range(view.size):
            size = list_candidates(view[row], mask[row], actions[row], self.throws, candidates)
            if size > 1:
                one = Race(view[row], candidates[:size].copy(), int(rng[row]), self.margin, self.advised)
                actions[row] = search(one, ms=self.ms, worlds=self.worlds, evidence=self.evidence)
                self.searched += 1
                self.seen += one.worlds
        return actions


def weigh(view: View, mask: np.ndarray, played: int, *, worlds: int, seed: int = 0, row: int = 0) -> list[Candidate]:
    """Plays every legal action of one decision out in the same worlds.

    Args:
        view: Views.
        mask: (N, A) int8.
        played: The action that the others are compared with.
        worlds: Number of worlds.
        seed: Decides them.
        row: The row of the view and of the mask.

    Returns:
        What is known of each action, ``played`` first, then in the order of their ids. Of a decision about melds and
        layoffs, of which no world knows anything, ``played`` alone, in no world.

    Raises:
        ValueError: If ``played`` is not legal.
    """
    legal = np.flatnonzero(mask[row])
    if played not in legal:
        raise ValueError(f"action {played} is not legal there; legal: {legal.tolist()}")
    candidates = np.concatenate([[played], legal[legal != played]]).astype(np.int64)
    if view["phase"][row] >= DECLARE:
        return [Candidate(played, 0, 0.0, 0.0, math.inf)]
    one = Race(np.ascontiguousarray(view)[row], candidates, seed)
    one.run(worlds)
    return one.standing()


__all__ = ["Candidate", "Race", "SearchAgent", "list_candidates", "search", "weigh"]
