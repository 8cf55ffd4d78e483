"""What duplicate matches of all games have in common: dealing and batching, who is asked, and what is written down.

`agents.match` and `agents.match40` keep the books of theirs.
"""

import hashlib
import importlib.metadata
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from agents.base import Agent
from agents.games import GIN, AnyRules, Game, game_of_rules
from gin_env.engine import EPISODE_ENDED, GOING_ON, HAND_ENDED, NO_ACTION
from gin_env.keys import mix_keys

# Tables of any game.
Tables = Any

# The agents' random stream of a seed. Far from the numbers of tables, whose hashes are the keys of the deals.
AGENT_STREAM = 1 << 63
HAND_SHIFT = np.uint64(44)  # where the number of the hand stands in the number of a key
# Hands after which a match is drawn: two players who never knock would go on for ever.
MAX_HANDS = 1000
# Deals that are hashed at once.
HASH_CHUNK = 4096


class AgentError(ValueError):
    """An agent returned something that is no legal action."""


def check_match(game: Game, rules: AnyRules | str, match: bool, deals: int, seed: int, batch: int) -> AnyRules:
    """Returns the rules, once it is sure that the arguments of a match can be played.

    Raises:
        ValueError: If one cannot.
    """
    rules = game.as_rules(rules)
    if deals < 1:
        raise ValueError(f"deals is {deals}; expected at least 1")
    if batch < 1:
        raise ValueError(f"batch is {batch}; expected at least 1 game")
    mix_keys(seed, np.zeros(1, dtype=np.uint64))  # raises if the seed is out of range
    if match and getattr(rules, game.match_end) is None:
        raise ValueError(
            f"rules {rules.text!r} have no {game.match_end}: a match of one hand is played with match=False"
        )
    return rules


def identify(a: Agent, b: Agent, *, rules: AnyRules, match: bool, seed: int, deals: int) -> dict[str, object]:
    """Returns the fields of a game's `MatchResult` that say what was played by whom."""
    return {
        "a": a.name,
        "b": b.name,
        "versions": (agent_version(a), agent_version(b)),
        "rules": rules.text if rules.name in game_of_rules(rules).rules.PRESETS else rules.name,
        "fingerprint": rules.fingerprint,
        "match": match,
        "seed": int(seed),
        "deck_hash": deck_hash(rules, seed, deals),
    }


def deck_hash(rules: AnyRules, seed: int, deals: int, first: int = 0) -> str:
    """SHA-256 over deals in order: of each, one byte for the dealer and one for each card of the deck.

    Of matches it is that of their first hands; the rest follows from the same key.
    """
    digest = hashlib.sha256()
    new_tables = game_of_rules(rules).engine.new_tables
    for start in range(first, first + deals, HASH_CHUNK):
        tables = new_tables(rules, min(HASH_CHUNK, first + deals - start), seed=seed, first=start)
        digest.update(np.column_stack([tables["dealer"], tables["deck"][:, : rules.deck_size]]).tobytes())
    return digest.hexdigest()


def agent_version(agent: Agent) -> str:
    """Returns an agent's own ``version`` where it has one, otherwise that of gin-env."""
    version = getattr(agent, "version", None)
    if version is not None:
        return str(version)
    try:
        return "gin-env " + importlib.metadata.version("gin-env")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "gin-env"


class Book:
    """What is kept of the games, by their numbers. Each game derives its own. Sides: 0 is a, 1 is b.

    Args:
        games: Games of which nothing has been played yet.
        seats: Players at a table.

    Attributes:
        game: Which game.
        hand_decisions: Decisions that the keys of one hand leave room for.
        side_counts: Names of what is counted of each side.
        hand_counts: Names of what is counted of all hands.
        games_of_deal: How often a deal is played.
        start: Number of the first game.
    """

    game: ClassVar[Game]
    hand_decisions: ClassVar[int]
    side_counts: ClassVar[tuple[str, ...]]
    hand_counts: ClassVar[tuple[str, ...]]

    def __init__(self, games: Any, seats: int) -> None:
        self.games, self.seats = games, seats
        self.games_of_deal = games.points.shape[1]
        self.start = self.games_of_deal * games.first
        # The same memory, a row for each game.
        self.points, self.hands, self.won = (array.reshape(-1) for array in (games.points, games.hands, games.won))

    def side_of(self, numbers: np.ndarray, seats: np.ndarray) -> np.ndarray:
        """Returns which side has a seat of each game."""
        raise NotImplementedError

    def enter(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters hands that have ended, at most one of each game."""
        raise NotImplementedError

    def finish(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters who won games that are over, and were not forfeited."""
        raise NotImplementedError

    def forfeit(self, number: int, table: np.void) -> None:
        """Enters a game that the mover has lost by a forfeit."""
        raise NotImplementedError

    def count(self, side: int, **counts: int) -> None:
        """Adds to what is counted of a side."""
        for name, number in counts.items():
            self.games.sides[side, self.side_counts.index(name)] += number

    def count_hands(self, **counts: int) -> None:
        """Adds to what is counted of all hands."""
        for name, number in counts.items():
            self.games.counts[self.hand_counts.index(name)] += number

    def hands_of(self, numbers: np.ndarray) -> np.ndarray:
        """Hands that have ended in some games so far."""
        hands: np.ndarray = self.hands[numbers - self.start]
        return hands

    def tell(self, side: "Side") -> None:
        """Enters what a side itself has counted."""
        self.count(side.number, draws=side.draws, takes=side.takes, decisions=side.decisions, timed=side.timed)
        self.games.seconds[side.number] = side.seconds


def play_deals(
    a: Agent,
    b: Agent,
    book: Book,
    *,
    deals: int,
    seed: int,
    rules: AnyRules,
    match: bool,
    batch: int,
    forfeits: bool,
    progress: Callable[[int, int], None] | None,
    record: Callable[[Any], None] | None,
    ended: Callable[[np.ndarray, Tables], None] | None = None,
) -> None:
    """Plays the games of a book that is empty yet, and enters them: see `agents.match.play_games` for the arguments.

    Raises:
        AgentError: If an agent plays an illegal action and ``forfeits`` is False.
    """
    game, each = book.game, book.games_of_deal
    engine = game.engine
    sides = (Side(a, 0, forfeits, book), Side(b, 1, forfeits, book))
    root = int(mix_keys(seed, np.array([AGENT_STREAM], dtype=np.uint64))[0])
    scribe = None if record is None else Scribe(record, rules, match, (a.name, b.name), book)
    batch = min(batch, *(getattr(agent, "max_games", batch) for agent in (a, b)))
    start, stop = book.start, book.start + each * deals

    def deal(low: int, high: int) -> tuple[np.ndarray, Tables]:
        numbers = np.arange(low, high)
        count = (high - 1) // each - low // each + 1
        dealt = engine.new_tables(rules, count, seed=seed, first=low // each, match=match)
        return numbers, dealt.take(numbers // each - low // each)  # an index on records is far slower

    dealt = min(start + batch, stop)
    finished = 0
    numbers, tables = deal(start, dealt)
    for side in sides:
        side.follow(tables, numbers, np.full(numbers.size, NO_ACTION))
    while numbers.size:
        views, masks = game.view.observe(tables), engine.legal(tables)
        places = numbers * book.hand_decisions + tables["num_moves"]
        keys = mix_keys(root, places.astype(np.uint64) + (tables["hand_number"].astype(np.uint64) << HAND_SHIFT))
        actions = np.empty(numbers.size, dtype=np.int64)
        mover = book.side_of(numbers, tables["mover"])
        for side in sides:
            rows = np.flatnonzero(mover == side.number)
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
            book.forfeit(int(numbers[row]), tables[row])
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
            whole = done if not lost.size else done[actions[done] != NO_ACTION]
            book.finish(numbers[whole], tables.take(whole))
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

    for side in sides:
        book.tell(side)


class Side:
    """One agent in a match: calls it, checks what it plays, and counts."""

    def __init__(self, agent: Agent, number: int, forfeits: bool, book: "Book") -> None:
        self.agent, self.number, self.forfeits, self.book = agent, number, forfeits, book
        self.calls = self.decisions = self.timed = 0
        self.seconds = 0.0
        self.draws = self.takes = 0
        # A side of Rummy40 may have several seats at a table.
        self._follow = getattr(agent, "follow", None) if book.game is GIN else None

    def follow(self, tables: Tables, numbers: np.ndarray, actions: np.ndarray) -> None:
        """Tells the agent what was played, if it wants to know."""
        if self._follow is not None and tables.size:
            self._follow(GIN.view.observe(tables, (numbers % 2) ^ self.number), numbers, actions)

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
            say = self.book.game.actions.action_name
            played = say(int(actions[row])) if exists[row] else "an action that does not exist"
            allowed = ", ".join(say(int(action)) for action in np.flatnonzero(masks[row]))
            deal, game = divmod(int(games[row]), self.book.games_of_deal)
            raise AgentError(
                f"agent {self.agent.name!r} played {played!r} (action {int(actions[row])}) in game {game + 1} of deal "
                f"{deal}, which is illegal there; legal: {allowed}"
            )
        self.draws += int((actions == self.book.game.actions.DRAW).sum())
        self.takes += int((actions == self.book.game.actions.TAKE).sum())
        return actions


class Scribe:
    """Hands on the record of each game, in the order of their numbers. It keeps those that ended before their turn."""

    def __init__(
        self, record: Callable[[Any], None], rules: Any, match: bool, names: tuple[str, str], book: "Book"
    ) -> None:
        self.record, self.rules, self.match, self.book = record, rules, match, book
        self.names = tuple(" ".join(name.split()) for name in names)
        self.next = book.start
        self.running: dict[int, list[Any]] = {}
        self.waiting: dict[int, Any] = {}

    def enter(self, numbers: np.ndarray, tables: Tables, over: np.ndarray, lost: np.ndarray) -> None:
        """Enters hands that have ended, and games that are over."""
        forfeited = set(lost.tolist())
        for row in np.flatnonzero(over != GOING_ON).tolist():
            number = int(numbers[row])
            hands = self.running.setdefault(number, [])
            if row not in forfeited:
                hands.append(self.book.game.record.hand_record(tables, row))
            if over[row] == EPISODE_ENDED:
                del self.running[number]
                sides = self.book.side_of(np.array(number), np.arange(self.book.seats)).tolist()
                seats = ", ".join(f"seat {seat} {self.names[side]}" for seat, side in enumerate(sides))
                comment = f"deal {number // self.book.games_of_deal}: {seats}"
                self.waiting[number] = None
                if row not in forfeited:
                    self.waiting[number] = self.book.game.record.Record(self.rules, self.match, tuple(hands), comment)
        while self.next in self.waiting:
            one = self.waiting.pop(self.next)
            if one is not None:
                self.record(one)
            self.next += 1
