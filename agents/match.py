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
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.base import Agent
from agents.result import HAND_COUNTS, SIDE_COUNTS, Behaviour, Games, MatchResult, Speed, pair_interval, summarise
from gin_env import engine
from gin_env.actions import DRAW, TAKE, action_name
from gin_env.engine import EPISODE_ENDED, GOING_ON, HAND_ENDED, NO_ACTION
from gin_env.melds import deadwood
from gin_env.record import Record, hand_record
from gin_env.rules import PRESETS, Rules, as_rules
from gin_env.tables import BIG_GINNED, DEAD, GINNED, KNOCKED, NOBODY, TIED, TRUNCATED, UNDERCUT, Tables
from gin_env.view import observe

__all__ = [
    "AGENT_STREAM",
    "AgentError",
    "Behaviour",
    "Games",
    "MatchResult",
    "Speed",
    "agent_version",
    "check_match",
    "deck_hash",
    "identify",
    "pair_interval",
    "play_games",
    "play_match",
    "summarise",
]

# The agents' random stream of a seed. Far from the numbers of tables, whose hashes are the keys of the deals.
AGENT_STREAM = 1 << 63
# Decisions that the keys of one hand leave room for; a hand has fewer than half of it (`gin_env.tables.MAX_MOVES`).
HAND_DECISIONS = 1024
HAND_SHIFT = np.uint64(44)  # where the number of the hand stands in the number of a key
# Hands after which a match is drawn: two players who never knock would go on for ever.
MAX_HANDS = 1000
# Deals that are hashed at once.
HASH_CHUNK = 4096


class Dialect(NamedTuple):
    """What differs from game to game for those who only call the players and write down what was played."""

    draw: int  # action
    take: int  # action
    action_name: Callable[[int], str]
    hand_record: Callable[[Tables, int], Any]
    record: Callable[..., Any]  # of rules, match, hands and comment


GIN = Dialect(DRAW, TAKE, action_name, hand_record, Record)


class AgentError(ValueError):
    """An agent returned something that is no legal action."""


def play_match(
    a: Agent,
    b: Agent,
    *,
    deals: int,
    seed: int = 0,
    rules: Rules | str = "cardpuzzle",
    match: bool = False,
    batch: int = 2048,
    forfeits: bool = False,
    progress: Callable[[int, int], None] | None = None,
    record: Callable[[Record], None] | None = None,
    ended: Callable[[np.ndarray, Tables], None] | None = None,
) -> MatchResult:
    """Plays a duplicate match: see `play_games` for the arguments.

    Raises:
        ValueError: If an argument is out of range.
        AgentError: If an agent plays an illegal action and ``forfeits`` is False.
    """
    rules = check_match(rules, match, deals, seed, batch)
    games = play_games(
        a,
        b,
        deals=deals,
        seed=seed,
        rules=rules,
        match=match,
        batch=batch,
        forfeits=forfeits,
        progress=progress,
        record=record,
        ended=ended,
    )
    return summarise(games, **identify(a, b, rules=rules, match=match, seed=seed, deals=deals))


def check_match(rules: Rules | str, match: bool, deals: int, seed: int, batch: int = 1) -> Rules:
    """Returns the rules, once it is sure that the arguments of a match can be played.

    Raises:
        ValueError: If one cannot.
    """
    rules = as_rules(rules)
    if deals < 1:
        raise ValueError(f"deals is {deals}; expected at least 1")
    if batch < 1:
        raise ValueError(f"batch is {batch}; expected at least 1 game")
    engine.mix_keys(seed, np.zeros(1, dtype=np.uint64))  # raises if the seed is out of range
    if match and rules.target is None:
        raise ValueError(f"rules {rules.text!r} have no target: a match of one hand is played with match=False")
    return rules


def identify(a: Agent, b: Agent, *, rules: Rules, match: bool, seed: int, deals: int) -> dict[str, object]:
    """Returns the fields of `MatchResult` that say what was played by whom."""
    return {
        "a": a.name,
        "b": b.name,
        "versions": (agent_version(a), agent_version(b)),
        "rules": rules.text if rules.name in PRESETS else rules.name,
        "fingerprint": rules.fingerprint,
        "match": match,
        "seed": int(seed),
        "deck_hash": deck_hash(rules, seed, deals),
    }


def deck_hash(rules: Rules, seed: int, deals: int, first: int = 0) -> str:
    """SHA-256 over deals in order: of each, one byte for the dealer and one for each card of the deck.

    Of matches it is that of their first hands; the rest follows from the same key.
    """
    digest = hashlib.sha256()
    for start in range(first, first + deals, HASH_CHUNK):
        tables = engine.new_tables(rules, min(HASH_CHUNK, first + deals - start), seed=seed, first=start)
        digest.update(np.column_stack([tables["dealer"], tables["deck"][:, : rules.deck_size]]).tobytes())
    return digest.hexdigest()


def play_games(
    a: Agent,
    b: Agent,
    *,
    deals: int,
    first: int = 0,
    seed: int = 0,
    rules: Rules | str = "cardpuzzle",
    match: bool = False,
    batch: int = 2048,
    forfeits: bool = False,
    progress: Callable[[int, int], None] | None = None,
    record: Callable[[Record], None] | None = None,
    ended: Callable[[np.ndarray, Tables], None] | None = None,
) -> Games:
    """Plays the games of some deals. Game 2d is deal d with a in seat 0, game 2d + 1 the same with a in seat 1.

    A game is the same whatever else is played: the deals may be split among processes, and `Games.join` puts the parts
    together.

    An agent may have an attribute ``max_games``, the most games that it can play at once, and a method
    ``follow(views, games, actions)``, which is told of everything that happens in its games whether or not it moves:
    the views of its seat, the numbers of the games, and the action just played there by either seat (-1 where a hand
    has just been dealt). What `Agent.act` sees are the rows of the same games, in the same order, where it is to move.

    Args:
        a: The agent from whose side the result is told.
        b: The other agent.
        deals: Number of deals, each played twice.
        first: Number of the first deal.
        seed: Decides all decks, and all keys of the agents.
        rules: Rules, or text that names them (`gin_env.rules.as_rules`).
        match: Whether a game is a match to the rules' target instead of one hand. After 1,000 hands it is drawn.
        batch: Most games to play at once. It changes the speed, never the result.
        forfeits: What happens if an agent plays an illegal action or raises an error. If true, it loses the game: the
            hand as if the other had gone gin at that moment, in a match the match as well. Otherwise that is an error.
        progress: Called with the number of games that are over and of all games, whenever some have ended.
        record: Called with the record of each game, in the order of the deals; its comment says the number of the deal
            and who had which seat. The result is the same without. A forfeited game has no record.
        ended: Called with the numbers of games in which a hand has ended, and their tables, before the next is dealt.

    Raises:
        ValueError: If an argument is out of range.
        AgentError: If an agent plays an illegal action and ``forfeits`` is False.
    """
    rules = check_match(rules, match, deals, seed, batch)
    sides = (Side(a, 0, forfeits), Side(b, 1, forfeits))
    root = int(engine.mix_keys(seed, np.array([AGENT_STREAM], dtype=np.uint64))[0])
    book = _Book(first, deals)
    scribe = None if record is None else Scribe(record, rules, match, (a.name, b.name), 2 * first)
    batch = min(batch, *(getattr(agent, "max_games", batch) for agent in (a, b)))
    start, stop = 2 * first, 2 * (first + deals)

    def deal(low: int, high: int) -> tuple[np.ndarray, Tables]:
        numbers = np.arange(low, high)
        pairs = engine.new_tables(rules, (high + 1) // 2 - low // 2, seed=seed, first=low // 2, match=match)
        return numbers, pairs.take(numbers // 2 - low // 2)  # an index on records is far slower

    dealt = min(start + batch, stop)
    finished = 0
    numbers, tables = deal(start, dealt)
    for side in sides:
        side.follow(tables, numbers, np.full(numbers.size, NO_ACTION))
    while numbers.size:
        seat_of_a = numbers % 2
        views, masks = observe(tables), engine.legal(tables)
        places = numbers * HAND_DECISIONS + tables["num_moves"]
        keys = engine.mix_keys(root, places.astype(np.uint64) + (tables["hand_number"].astype(np.uint64) << HAND_SHIFT))
        actions = np.empty(numbers.size, dtype=np.int64)
        a_moves = tables["mover"] == seat_of_a
        for side, moves in zip(sides, (a_moves, ~a_moves), strict=True):
            rows = np.flatnonzero(moves)
            if rows.size:
                actions[rows] = side.act(views.take(rows), masks[rows], keys[rows], numbers[rows])
        _, over = engine.step(tables, actions)
        for side in sides:
            side.follow(tables, numbers, actions)
        lost = np.flatnonzero(actions == NO_ACTION)
        over[lost] = EPISODE_ENDED
        rows = np.flatnonzero(over)
        if not rows.size:
            continue

        played = rows if not lost.size else rows[actions[rows] != NO_ACTION]
        book.enter(numbers[played], tables.take(played))
        for row in lost:
            book.forfeit(int(numbers[row]), tables[row], rules, match)
        if ended is not None:
            ended(numbers[played], tables.take(played))
        if match:
            over[rows[book.hands_of(numbers[rows]) >= MAX_HANDS]] = EPISODE_ENDED
        if scribe is not None:
            scribe.enter(numbers, tables, over, lost)
        going_on = np.flatnonzero(over == HAND_ENDED)
        if going_on.size:
            engine.deal(tables, going_on)
        done = np.flatnonzero(over == EPISODE_ENDED)
        if done.size:
            book.finish(numbers[done], tables["match_winner"][done] if match else None)
        finished += done.size
        if progress is not None and done.size:
            progress(finished, stop - start)
        # Refill the rows that came free, and drop those for which no game is left.
        refill = min(done.size, stop - dealt)
        if refill:
            numbers[done[:refill]], tables[done[:refill]] = deal(dealt, dealt + refill)
            dealt += refill
        fresh = np.concatenate([going_on, done[:refill]])
        if fresh.size:
            some = tables.take(fresh)
            for side in sides:
                side.follow(some, numbers[fresh], np.full(fresh.size, NO_ACTION))
        if refill < done.size:
            keep = np.delete(np.arange(numbers.size), done[refill:])
            numbers, tables = numbers[keep], tables.take(keep)

    for number, side in enumerate(sides):
        book.tell(number, side)
    return book.games


def agent_version(agent: Agent) -> str:
    """Returns an agent's own ``version`` where it has one, otherwise that of gin-env."""
    version = getattr(agent, "version", None)
    if version is not None:
        return str(version)
    try:
        return "gin-env " + importlib.metadata.version("gin-env")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "gin-env"


class Side:
    """One agent in a match: calls it, checks what it plays, and counts."""

    def __init__(
        self, agent: Agent, number: int, forfeits: bool, dialect: Dialect = GIN, games_of_deal: int = 2
    ) -> None:
        self.agent, self.number, self.forfeits = agent, number, forfeits
        self.dialect, self.games_of_deal = dialect, games_of_deal
        self.calls = self.decisions = self.timed = 0
        self.seconds = 0.0
        self.draws = self.takes = 0
        self._follow = getattr(agent, "follow", None)

    def follow(self, tables: Tables, numbers: np.ndarray, actions: np.ndarray) -> None:
        """Tells the agent what was played, if it wants to know."""
        if self._follow is not None and tables.size:
            self._follow(observe(tables, (numbers % 2) ^ self.number), numbers, actions)

    def act(self, views: np.ndarray, masks: np.ndarray, keys: np.ndarray, games: np.ndarray) -> np.ndarray:
        """Returns the agent's actions, NO_ACTION where it forfeits the game."""
        rows = views.size
        start = time.perf_counter()
        try:
            actions = np.asarray(self.agent.act(views, masks.copy(), keys))
        except Exception:
            if not self.forfeits:
                raise
            return np.full(rows, NO_ACTION, dtype=np.int64)
        if self.calls:  # the first may compile
            self.seconds += time.perf_counter() - start
            self.timed += rows
        self.calls += 1
        self.decisions += rows
        if actions.shape != (rows,) or actions.dtype.kind not in "iu":
            if self.forfeits:
                return np.full(rows, NO_ACTION, dtype=np.int64)
            raise AgentError(
                f"agent {self.agent.name!r} returned {actions.dtype} of shape {actions.shape}; "
                f"expected integers of shape ({rows},)"
            )
        exists = (actions >= 0) & (actions < masks.shape[1])
        legal = exists & (masks[np.arange(rows), np.where(exists, actions, 0)] != 0)
        if self.forfeits:
            actions = np.where(legal, actions, NO_ACTION).astype(np.int64)
        elif not legal.all():
            row = int(np.argmin(legal))
            say = self.dialect.action_name
            played = say(int(actions[row])) if exists[row] else "an action that does not exist"
            allowed = ", ".join(say(int(action)) for action in np.flatnonzero(masks[row]))
            deal, game = divmod(int(games[row]), self.games_of_deal)
            raise AgentError(
                f"agent {self.agent.name!r} played {played!r} (action {int(actions[row])}) in game {game + 1} of deal "
                f"{deal}, which is illegal there; legal: {allowed}"
            )
        self.draws += int((actions == self.dialect.draw).sum())
        self.takes += int((actions == self.dialect.take).sum())
        return actions


class Scribe:
    """Hands on the record of each game, in the order of their numbers. It keeps those that ended before their turn."""

    def __init__(
        self,
        record: Callable[[Any], None],
        rules: Any,
        match: bool,
        names: tuple[str, str],
        first: int,
        dialect: Dialect = GIN,
        sides: Callable[[int], Sequence[int]] = lambda number: (number % 2, 1 - number % 2),
        games_of_deal: int = 2,
    ) -> None:
        """Keeps what it needs; ``sides`` tells which side has each seat of a game."""
        self.record, self.rules, self.match, self.dialect = record, rules, match, dialect
        self.sides, self.games_of_deal = sides, games_of_deal
        self.names = tuple(" ".join(name.split()) for name in names)
        self.next = first
        self.running: dict[int, list[Any]] = {}
        self.waiting: dict[int, Any] = {}

    def enter(self, numbers: np.ndarray, tables: Tables, over: np.ndarray, lost: np.ndarray) -> None:
        """Enters hands that have ended, and games that are over."""
        forfeited = set(lost.tolist())
        for row in np.flatnonzero(over != GOING_ON).tolist():
            number = int(numbers[row])
            hands = self.running.setdefault(number, [])
            if row not in forfeited:
                hands.append(self.dialect.hand_record(tables, row))
            if over[row] == EPISODE_ENDED:
                del self.running[number]
                seats = ", ".join(f"seat {seat} {self.names[side]}" for seat, side in enumerate(self.sides(number)))
                comment = f"deal {number // self.games_of_deal}: {seats}"
                self.waiting[number] = None
                if row not in forfeited:
                    self.waiting[number] = self.dialect.record(self.rules, self.match, tuple(hands), comment)
        while self.next in self.waiting:
            one = self.waiting.pop(self.next)
            if one is not None:
                self.record(one)
            self.next += 1


class _Book:
    """What is kept of the games, by their numbers. Sides: 0 is a, 1 is b, NOBODY."""

    def __init__(self, first: int, deals: int) -> None:
        self.games = Games.empty(first, deals)
        self.start = 2 * first
        # The same memory, a row for each game.
        self.points, self.hands, self.won = (
            array.reshape(-1) for array in (self.games.points, self.games.hands, self.games.won)
        )

    def count(self, side: int, **counts: int) -> None:
        """Adds to what is counted of a side."""
        for name, number in counts.items():
            self.games.sides[side, SIDE_COUNTS.index(name)] += number

    def count_hands(self, **counts: int) -> None:
        """Adds to what is counted of all hands."""
        for name, number in counts.items():
            self.games.counts[HAND_COUNTS.index(name)] += number

    def enter(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters hands that have ended, at most one of each game."""
        seat_of_a = numbers % 2

        def side(seats: np.ndarray) -> np.ndarray:
            return np.where(seats == NOBODY, NOBODY, seats ^ seat_of_a)

        winner, knocker, ending = side(tables["winner"]), side(tables["knocker"]), tables["ending"]
        points = np.where(winner == NOBODY, 0, 1 - 2 * winner) * tables["points"]
        self.points[numbers - self.start] += points
        self.hands[numbers - self.start] += 1
        a_deals = tables["dealer"] == seat_of_a
        self.count_hands(
            hands=numbers.size,
            dead=(ending == DEAD).sum(),
            truncated=(ending == TRUNCATED).sum(),
            tied=(ending == TIED).sum(),
            a_deals=a_deals.sum(),
            a_dealer_points=points[a_deals].sum(),
        )
        left = tables["deadwood"][np.arange(tables.size), np.maximum(tables["knocker"], 0)]
        for number in (0, 1):
            mine = knocker == number
            knocked = mine & np.isin(ending, (KNOCKED, UNDERCUT, TIED))
            self.count(
                number,
                won=(winner == number).sum(),
                knocks=knocked.sum(),
                gins=(mine & (ending == GINNED)).sum(),
                big_gins=(mine & (ending == BIG_GINNED)).sum(),
                undercuts=(mine & (ending == UNDERCUT)).sum(),
                knock_deadwood=left[knocked].sum(),
            )

    def hands_of(self, numbers: np.ndarray) -> np.ndarray:
        """Hands that have ended in some games so far."""
        return self.hands[numbers - self.start]

    def finish(self, numbers: np.ndarray, match_winner: np.ndarray | None) -> None:
        """Enters who won games that are over: the winner of the match, or of the hand. Forfeits stand."""
        places = numbers - self.start
        if match_winner is None:
            won = np.sign(self.points[places]) + 1
        else:
            won = np.where(match_winner == NOBODY, 1, 2 * (match_winner == numbers % 2))
        self.won[places] = np.where(self.won[places] == 1, won, self.won[places])

    def forfeit(self, number: int, table: np.void, rules: Rules, match: bool) -> None:
        """Enters a game that the mover has lost by a forfeit."""
        seat_of_a = number % 2
        side = int(table["mover"]) ^ seat_of_a
        hand = table["hands"][table["mover"]]
        lost = rules.gin_bonus + int(deadwood(np.array([hand], dtype=np.uint64))[0])
        points = lost if side == 1 else -lost
        self.points[number - self.start] += points
        self.hands[number - self.start] += 1
        self.won[number - self.start] = 2 * side
        a_deals = int(table["dealer"]) == seat_of_a
        self.count_hands(hands=1, a_deals=int(a_deals), a_dealer_points=points if a_deals else 0)
        self.count(side, forfeits=1)
        self.count(1 - side, won=1)

    def tell(self, number: int, side: Side) -> None:
        """Enters what a side itself has counted."""
        self.count(number, draws=side.draws, takes=side.takes, decisions=side.decisions, timed=side.timed)
        self.games.seconds[number] = side.seconds
