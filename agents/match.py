"""Duplicate matches: every deal is played twice, with the seats exchanged and the same deck and dealer.

Luck of the cards then falls on both players alike, and what is left between them is play. Two copies of a player that
makes no random choices score exactly zero in every pair.

    >>> import agents
    >>> from agents.match import play_match
    >>> result = play_match(agents.make("greedy"), agents.make("random"), deals=100)
    >>> result.points_per_hand > 40
    True
"""

import hashlib
import importlib.metadata
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from agents.base import Agent
from gin_env import engine
from gin_env.actions import DRAW, TAKE, action_name
from gin_env.record import Record, hand_record
from gin_env.rules import PRESETS, Rules, as_rules
from gin_env.tables import BIG_GINNED, DEAD, GINNED, KNOCKED, NOBODY, TIED, TRUNCATED, UNDERCUT, Tables
from gin_env.view import observe

# The agents' random stream of a seed. Far from the numbers of tables, whose hashes are the keys of the deals.
AGENT_STREAM = 1 << 63
# Decisions that the keys of one game leave room for; a hand has fewer than half of it (`gin_env.tables.MAX_MOVES`).
GAME_DECISIONS = 1024
NORMAL_95 = 1.959963984540054


class AgentError(ValueError):
    """An agent returned something that is no legal action."""


@dataclass(frozen=True)
class Behaviour:
    """How one side played.

    Attributes:
        knock: Share of hands that it ended by a knock short of gin, those that were undercut included.
        gin: Share of hands that it ended by gin.
        big_gin: Share of hands that it ended by big gin.
        undercut_made: Share of hands in which it undercut the other side's knock.
        undercut_suffered: Share of hands in which its own knock was undercut.
        knock_deadwood: Mean deadwood when it knocked short of gin, points; None if it never did.
        turns: Its own draws per hand.
        takes: Share of its draws that were taken from the discard pile; None if it never drew.
    """

    knock: float
    gin: float
    big_gin: float
    undercut_made: float
    undercut_suffered: float
    knock_deadwood: float | None
    turns: float
    takes: float | None


@dataclass(frozen=True)
class Speed:
    """How fast one side chose its actions, the engine's time left out.

    Attributes:
        decisions: Number of decisions.
        per_second: Decisions per second; None if it was called only once. The first call is not timed, for it may
            compile or load.
        milliseconds: Time of one decision, milliseconds; None likewise.
    """

    decisions: int
    per_second: float | None
    milliseconds: float | None


@dataclass(frozen=True)
class MatchResult:
    """The result of a match, from side ``a``'s point of view.

    Attributes:
        a: Name of the one agent.
        b: Name of the other.
        versions: Of a and b: their own ``version`` where they have one, otherwise that of gin-env.
        rules: Name of the rules, and what differs from the preset of that name.
        fingerprint: Of the rules (`gin_env.Rules.fingerprint`).
        seed: Of the deals and the agents' random choices.
        deals: Number of deals, each played twice.
        deck_hash: SHA-256 over all deals in order: of each, one byte for the dealer and one for each card of the deck.
        points_per_hand: Points that a wins per hand; negative if it loses.
        ci95: Interval of 95 % confidence for ``points_per_hand``, from the deals' means (the two games of a deal give
            one number) by the normal approximation; infinite for a single deal.
        hands_won: Hands that a won.
        hands_lost: Hands that b won.
        hands_drawn: Hands that nobody won.
        as_non_dealer: Points per hand that a won as the non-dealer, who plays first.
        as_dealer: Points per hand that a won as the dealer.
        dead: Share of hands that ended because the stock ran out.
        truncated: Share of hands that ended at the cap on draws.
        tied: Share of hands that ended in a tie without points.
        behaviour: Of a and b.
        speed: Of a and b. It is no part of comparisons between results.
        games: (deals, 2) int32, the points that a won in each game: first in seat 0, then in seat 1. Neither printed
            nor part of comparisons.
    """

    a: str
    b: str
    versions: tuple[str, str]
    rules: str
    fingerprint: str
    seed: int
    deals: int
    deck_hash: str
    points_per_hand: float
    ci95: tuple[float, float]
    hands_won: int
    hands_lost: int
    hands_drawn: int
    as_non_dealer: float
    as_dealer: float
    dead: float
    truncated: float
    tied: float
    behaviour: tuple[Behaviour, Behaviour]
    speed: tuple[Speed, Speed] = field(compare=False)
    games: np.ndarray = field(compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values, everything but ``games``; the bounds of an infinite interval are None."""
        sides = ("a", "b")
        return {
            "a": self.a,
            "b": self.b,
            "versions": dict(zip(sides, self.versions, strict=True)),
            "rules": {"name": self.rules, "fingerprint": self.fingerprint},
            "seed": self.seed,
            "deals": self.deals,
            "hands": 2 * self.deals,
            "deck_hash": self.deck_hash,
            "points_per_hand": self.points_per_hand,
            "ci95": [bound if math.isfinite(bound) else None for bound in self.ci95],
            "hands_won": self.hands_won,
            "hands_lost": self.hands_lost,
            "hands_drawn": self.hands_drawn,
            "seats": {"non_dealer": self.as_non_dealer, "dealer": self.as_dealer},
            "endings": {"dead": self.dead, "truncated": self.truncated, "tied": self.tied},
            "behaviour": {side: asdict(part) for side, part in zip(sides, self.behaviour, strict=True)},
            "speed": {side: asdict(part) for side, part in zip(sides, self.speed, strict=True)},
        }


def play_match(
    a: Agent,
    b: Agent,
    *,
    deals: int,
    seed: int = 0,
    rules: Rules | str = "cardpuzzle",
    batch: int = 2048,
    progress: Callable[[int, int], None] | None = None,
    record: Callable[[Record], None] | None = None,
) -> MatchResult:
    """Plays a duplicate match of single hands.

    Args:
        a: The agent from whose side the result is told.
        b: The other agent.
        deals: Number of deals, each played twice.
        seed: Decides all decks, and all keys of the agents.
        rules: Rules, or text that names them (`gin_env.rules.as_rules`).
        batch: Most games to play at once. It changes the speed, never the result.
        progress: Called with the number of games that are over and of all games, whenever some have ended.
        record: Called with the record of each game, in the order of the deals; its comment says the number of the deal
            and who had which seat. The result is the same without.

    Raises:
        ValueError: If an argument is out of range.
        AgentError: If an agent plays an illegal action.
    """
    rules = as_rules(rules)
    if deals < 1:
        raise ValueError(f"deals is {deals}; expected at least 1")
    if batch < 1:
        raise ValueError(f"batch is {batch}; expected at least 1 game")

    sides = (_Side(a), _Side(b))
    root = int(engine.mix_keys(seed, np.array([AGENT_STREAM], dtype=np.uint64))[0])
    games = 2 * deals  # game 2 * d is deal d with a in seat 0, game 2 * d + 1 the same with a in seat 1
    book = _Book(games)
    scribe = None if record is None else _Scribe(record, rules, (a.name, b.name))
    decks = hashlib.sha256()

    def deal(first: int, stop: int) -> tuple[np.ndarray, Tables]:
        numbers = np.arange(first, stop)
        pairs = engine.new_tables(rules, (stop + 1) // 2 - first // 2, seed=seed, first=first // 2)
        fresh = pairs.take(numbers // 2 - first // 2)  # an index on records is far slower
        # Games are dealt in order, so that each deal is hashed once and in its place.
        even = fresh[numbers % 2 == 0]
        decks.update(np.column_stack([even["dealer"], even["deck"][:, : rules.deck_size]]).tobytes())
        return numbers, fresh

    dealt = min(batch, games)
    finished = 0
    numbers, tables = deal(0, dealt)
    while numbers.size:
        seat_of_a = numbers % 2
        views, masks = observe(tables), engine.legal(tables)
        keys = engine.mix_keys(root, numbers * GAME_DECISIONS + tables["num_moves"])
        actions = np.empty(numbers.size, dtype=np.int64)
        a_moves = tables["mover"] == seat_of_a
        for side, moves in zip(sides, (a_moves, ~a_moves), strict=True):
            rows = np.flatnonzero(moves)
            if rows.size:
                actions[rows] = side.act(views.take(rows), masks[rows], keys[rows], numbers[rows])
        _, over = engine.step(tables, actions)
        done = np.flatnonzero(over)
        if not done.size:
            continue

        ended = tables.take(done)
        book.enter(numbers[done], ended)
        if scribe is not None:
            scribe.enter(numbers[done], ended)
        finished += done.size
        if progress is not None:
            progress(finished, games)
        # Refill the rows that came free, and drop those for which no game is left.
        refill = min(done.size, games - dealt)
        if refill:
            numbers[done[:refill]], tables[done[:refill]] = deal(dealt, dealt + refill)
            dealt += refill
        if refill < done.size:
            keep = np.delete(np.arange(numbers.size), done[refill:])
            numbers, tables = numbers[keep], tables.take(keep)

    points = book.points.reshape(deals, 2)
    mean, interval = pair_interval(points)
    a_deals = book.a_deals
    return MatchResult(
        a=a.name,
        b=b.name,
        versions=(_version(a), _version(b)),
        rules=rules.text if rules.name in PRESETS else rules.name,
        fingerprint=rules.fingerprint,
        seed=int(seed),
        deals=deals,
        deck_hash=decks.hexdigest(),
        points_per_hand=mean,
        ci95=interval,
        hands_won=int((book.winner == 0).sum()),
        hands_lost=int((book.winner == 1).sum()),
        hands_drawn=int((book.winner == NOBODY).sum()),
        # In each deal a is the dealer once.
        as_non_dealer=int(book.points[~a_deals].sum()) / deals,
        as_dealer=int(book.points[a_deals].sum()) / deals,
        dead=float((book.ending == DEAD).mean()),
        truncated=float((book.ending == TRUNCATED).mean()),
        tied=float((book.ending == TIED).mean()),
        behaviour=(book.behaviour(0, sides[0]), book.behaviour(1, sides[1])),
        speed=(sides[0].speed(), sides[1].speed()),
        games=points,
    )


def pair_interval(points: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Returns the mean points per hand of a duplicate match and its interval of 95 % confidence.

    The sums are exact, so that the same match told from the other side gives exactly the mirrored numbers.

    Args:
        points: (deals, 2) integers, the points won in both games of each deal.

    Returns:
        The mean, and the interval by the normal approximation over the deals' means (infinite for a single deal).
    """
    sums = points.astype(np.int64).sum(axis=1)
    deals, total, squares = sums.size, int(sums.sum()), int((sums * sums).sum())
    mean = total / (2 * deals)
    if deals < 2:
        return mean, (-math.inf, math.inf)
    # The variance of a deal's mean, which is half the sum of its games.
    variance = (deals * squares - total * total) / (4 * deals * (deals - 1))
    half = NORMAL_95 * math.sqrt(variance / deals)
    return mean, (mean - half, mean + half)


def _version(agent: Agent) -> str:
    version = getattr(agent, "version", None)
    if version is not None:
        return str(version)
    try:
        return "gin-env " + importlib.metadata.version("gin-env")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "gin-env"


class _Side:
    """One agent in a match: calls it, checks what it plays, and counts."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.calls = self.decisions = self.timed = 0
        self.seconds = 0.0
        self.draws = self.takes = 0

    def act(self, views: np.ndarray, masks: np.ndarray, keys: np.ndarray, games: np.ndarray) -> np.ndarray:
        rows = views.size
        start = time.perf_counter()
        actions = np.asarray(self.agent.act(views, masks.copy(), keys))
        if self.calls:  # the first may compile
            self.seconds += time.perf_counter() - start
            self.timed += rows
        self.calls += 1
        self.decisions += rows
        if actions.shape != (rows,) or actions.dtype.kind not in "iu":
            raise AgentError(
                f"agent {self.agent.name!r} returned {actions.dtype} of shape {actions.shape}; "
                f"expected integers of shape ({rows},)"
            )
        exists = (actions >= 0) & (actions < masks.shape[1])
        legal = exists & (masks[np.arange(rows), np.where(exists, actions, 0)] != 0)
        if not legal.all():
            row = int(np.argmin(legal))
            played = action_name(int(actions[row])) if exists[row] else "an action that does not exist"
            allowed = ", ".join(action_name(int(action)) for action in np.flatnonzero(masks[row]))
            raise AgentError(
                f"agent {self.agent.name!r} played {played!r} (action {int(actions[row])}) in game "
                f"{int(games[row]) % 2 + 1} of deal {int(games[row]) // 2}, which is illegal there; legal: {allowed}"
            )
        self.draws += int((actions == DRAW).sum())
        self.takes += int((actions == TAKE).sum())
        return actions

    def speed(self) -> Speed:
        if not self.timed or self.seconds == 0:
            return Speed(self.decisions, None, None)
        return Speed(self.decisions, self.timed / self.seconds, 1000 * self.seconds / self.timed)


class _Scribe:
    """Hands on the record of each game, in the order of their numbers. It keeps those that ended before their turn."""

    def __init__(self, record: Callable[[Record], None], rules: Rules, names: tuple[str, str]) -> None:
        self.record = record
        self.rules = rules
        self.names = tuple(" ".join(name.split()) for name in names)
        self.next = 0
        self.waiting: dict[int, Record] = {}

    def enter(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters games whose hand has ended."""
        for row, number in enumerate(numbers.tolist()):
            deal, seat_of_a = divmod(number, 2)
            first, second = self.names if seat_of_a == 0 else self.names[::-1]
            comment = f"deal {deal}: seat 0 {first}, seat 1 {second}"
            self.waiting[number] = Record(self.rules, False, (hand_record(tables, row),), comment)
        while self.next in self.waiting:
            self.record(self.waiting.pop(self.next))
            self.next += 1


class _Book:
    """What is kept of each game, by its number. Sides: 0 is a, 1 is b, NOBODY."""

    def __init__(self, games: int) -> None:
        self.points = np.zeros(games, dtype=np.int32)  # won by a
        self.winner = np.zeros(games, dtype=np.int8)  # side
        self.a_deals = np.zeros(games, dtype=bool)
        self.ending = np.zeros(games, dtype=np.int8)
        self.knocker = np.zeros(games, dtype=np.int8)  # side
        self.deadwood = np.zeros(games, dtype=np.int16)  # the knocker's

    def enter(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters games whose hand has ended."""
        seat_of_a = numbers % 2

        def side(seats: np.ndarray) -> np.ndarray:
            return np.where(seats == NOBODY, NOBODY, seats ^ seat_of_a)

        winner = side(tables["winner"])
        sign = np.where(winner == NOBODY, 0, 1 - 2 * winner)
        self.points[numbers] = sign * tables["points"]
        self.winner[numbers] = winner
        self.a_deals[numbers] = tables["dealer"] == seat_of_a
        self.ending[numbers] = tables["ending"]
        self.knocker[numbers] = side(tables["knocker"])
        self.deadwood[numbers] = tables["deadwood"][np.arange(tables.size), np.maximum(tables["knocker"], 0)]

    def behaviour(self, number: int, side: _Side) -> Behaviour:
        """Sums up how a side (0 or 1) played."""
        mine, theirs = self.knocker == number, self.knocker == 1 - number
        undercut = self.ending == UNDERCUT
        knocked = mine & np.isin(self.ending, (KNOCKED, UNDERCUT, TIED))
        drawn = side.draws + side.takes
        return Behaviour(
            knock=float(knocked.mean()),
            gin=float((mine & (self.ending == GINNED)).mean()),
            big_gin=float((mine & (self.ending == BIG_GINNED)).mean()),
            undercut_made=float((theirs & undercut).mean()),
            undercut_suffered=float((mine & undercut).mean()),
            knock_deadwood=float(self.deadwood[knocked].mean()) if knocked.any() else None,
            turns=drawn / self.ending.size,
            takes=side.takes / drawn if drawn else None,
        )
