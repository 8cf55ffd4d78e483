"""Duplicate matches of Rummy40: every deal is played in several seatings, so that luck of the cards falls on all alike.

With two players a deal is played twice, with the seats exchanged. With four it is played eight times: a alone against
three of b, in each of the four seats, and b alone against three of a, in each of the four seats. Both then have held
every hand of the deal equally often, in each company, and told from the other side the result is the mirror image.
(Four *different* players at one table need only the four rotations: each then has held each hand once. Which of them
sits next to which would be a question of its own, and no match asks it.)

Two copies of a player that makes no random choices score exactly zero on every deal.

    >>> import agents
    >>> from agents.match40 import play_match
    >>> players = (agents.make(name, game="rummy40") for name in ("greedy", "random"))
    >>> result = play_match(*players, deals=100)
    >>> result.points_per_hand > 30
    True
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np

from agents import duplicate
from agents.base import Agent, game_of
from agents.duplicate import AgentError, Book, deck_hash, identify, play_deals
from agents.games import find_game
from agents.result import Games as GinGames
from agents.result import Speed, pair_interval, plain_interval, speed_of
from gin_env.cards import CARD_POINTS
from gin_env.rummy40.cards import JOKER, held
from gin_env.rummy40.record import Record
from gin_env.rummy40.rules import MAX_SEATS, Rummy40Rules
from gin_env.rummy40.tables import MAX_MOVES, OUT, STOCK_OUT, TRUNCATED, Tables

__all__ = [
    "AgentError",
    "Behaviour",
    "Games",
    "MatchResult",
    "check_match",
    "contests",
    "deck_hash",
    "games_of_deal",
    "identify",
    "play_games",
    "play_match",
    "sides_of",
    "summarise",
]

RUMMY40 = find_game("rummy40")
SHARE = 12  # a win is shared in twelfths: among two, three or four

# What is counted of each side, over all its seats.
SIDE_COUNTS = (
    "seats",  # hands times seats that it had in them
    "won",  # twelfths of hands: the fewest points, shared among equals
    "opened",  # of its seats, hands in which it had opened at the end
    "outs",  # hands in which one of its seats went out
    "left",  # points that its seats were left with
    "penalties",  # of them those for melds taken back
    *(f"seats_{place}" for place in range(1, MAX_SEATS + 1)),  # by the place after the dealer
    *(f"points_{place}" for place in range(1, MAX_SEATS + 1)),  # that those seats won, times the number of others
    "draws",  # from the stock
    "takes",  # from the pile
    "decisions",
    "timed",  # decisions that were timed
    "forfeits",  # games
)
# What is counted of all hands.
HAND_COUNTS = ("hands", "stock", "truncated")


def games_of_deal(seats: int) -> int:
    """Returns how often a deal is played: 2 with two players, 8 with four."""
    return 2 if seats == 2 else 2 * seats


def sides_of(numbers: np.ndarray, seats: int) -> np.ndarray:
    """Returns who has each seat in some games: (N, seats) int64, 0 for a and 1 for b.

    In the first games of a deal a is alone, in seat 0, 1, ...; in the others, of which there are none with two players,
    b is.
    """
    places = np.asarray(numbers) % games_of_deal(seats)
    alone = (places // seats)[:, None]
    there = np.arange(seats) == (places % seats)[:, None]
    sides: np.ndarray = np.where(there, alone, 1 - alone)
    return sides


@dataclass(frozen=True)
class Games(GinGames):
    """The games of some deals, from side a's point of view. Those of neighbouring deals can be joined.

    G is the number of games of a deal (`games_of_deal`).

    Attributes:
        first: Number of the first deal.
        points: (deals, G) int32, won by the player who sits alone, with the sign turned where that is b; times the
            number of other players, which makes them whole.
        hands: (deals, G) int32, hands in each game.
        won: (deals, G) int8, twelfths of the game that a's seats won: all 12, or its share where others won it too.
        sides: (2, len(SIDE_COUNTS)) int64, of a and b.
        counts: (len(HAND_COUNTS),) int64.
        seconds: (2,) float64, that a and b took for their timed decisions.
        WIN: What a game that a won counts in ``won``.
    """

    WIN: ClassVar[int] = SHARE

    @property
    def units(self) -> int:
        """What one point counts in ``points``: the number of other players."""
        return self.seats - 1

    @classmethod
    def empty(cls, first: int, deals: int, seats: int = 2) -> "Games":
        """Returns games of which nothing has been played yet."""
        shape = deals, games_of_deal(seats)
        return cls(
            first=first,
            points=np.zeros(shape, dtype=np.int32),
            hands=np.zeros(shape, dtype=np.int32),
            won=np.zeros(shape, dtype=np.int8),
            sides=np.zeros((2, len(SIDE_COUNTS)), dtype=np.int64),
            counts=np.zeros(len(HAND_COUNTS), dtype=np.int64),
            seconds=np.zeros(2),
        )

    @property
    def seats(self) -> int:
        """Players at a table."""
        return 2 if self.points.shape[1] == 2 else self.points.shape[1] // 2

    def mirrored(self) -> "Games":
        """Returns the same games told from side b's point of view."""
        half = self.points.shape[1] // 2
        # The games in which b is alone come first then; with two players both are, and the seats change.
        order = np.roll(np.arange(2 * half), half)
        return Games(
            first=self.first,
            points=-self.points[:, order],
            hands=self.hands[:, order],
            won=SHARE - self.won[:, order],
            sides=self.sides[::-1],
            counts=self.counts,
            seconds=self.seconds[::-1],
        )

    def side(self, number: int) -> dict[str, int]:
        """Returns what was counted of a (0) or b (1), by name."""
        return dict(zip(SIDE_COUNTS, self.sides[number].tolist(), strict=True))


@dataclass(frozen=True)
class Behaviour:
    """How one side played. A side's hands are all hands of all seats that it had.

    Attributes:
        opened: Share of its hands in which it opened.
        out: Share of its hands in which it went out.
        left: Mean points that it was left with, penalties for melds taken back included.
        penalties: Mean points for melds taken back.
        turns: Its draws per hand.
        takes: Share of its draws that were taken from the discard pile; None if it never drew.
        places: Points that it won per hand by its place after the dealer: the first of them starts.
    """

    opened: float
    out: float
    left: float
    penalties: float
    turns: float
    takes: float | None
    places: tuple[float, ...]


@dataclass(frozen=True)
class MatchResult:
    """The result of a match, from side ``a``'s point of view.

    A game is one hand, or with ``match`` a match to the rules' limit.

    Attributes:
        a: Name of the one agent.
        b: Name of the other.
        versions: Of a and b: their own ``version`` where they have one, otherwise that of gin-env.
        rules: Name of the rules, and what differs from the preset of that name.
        fingerprint: Of the rules (`gin_env.rummy40.Rummy40Rules.fingerprint`).
        seats: Players at a table.
        match: Whether a game was a match to the limit.
        seed: Of the deals and the agents' random choices.
        deals: Number of deals, each played in all seatings (`games_of_deal`).
        deck_hash: SHA-256 over all deals in order (`deck_hash`).
        hands: Hands played.
        points_per_hand: Points that a wins per hand where it sits alone, and that b, where it sits alone, does not: the
            mean of the others' penalties less its own.
        ci95: Interval of 95 % confidence for ``points_per_hand``, over deals (all games of a deal give one number) by
            the normal approximation; infinite for a single deal.
        hands_won: Hands that a's seats won: with the fewest points, shared among equals. Over all seatings a and b have
            the same number of seats.
        hands_lost: Hands that b's seats won.
        games_won: Games that a's seats won, in the same way.
        games_lost: Games that b's seats won.
        win_rate: Share of games that a's seats won: a half for equals, whatever the number of seats.
        win_ci95: Interval of 95 % confidence for ``win_rate``, like ``ci95``.
        stock: Share of hands that ended because the stock ran out.
        truncated: Share of hands that ended at the cap on draws.
        forfeits: Games that a and b lost by a forfeit (`play_games`).
        behaviour: Of a and b.
        speed: Of a and b. It alone differs from run to run, and is left out of comparisons.
        games: (deals, G) float64, what ``points_per_hand`` is made of: the points of each game.
    """

    a: str
    b: str
    versions: tuple[str, str]
    rules: str
    fingerprint: str
    seats: int
    match: bool
    seed: int
    deals: int
    deck_hash: str
    hands: int
    points_per_hand: float
    ci95: tuple[float, float]
    hands_won: float
    hands_lost: float
    games_won: float
    games_lost: float
    win_rate: float
    win_ci95: tuple[float, float]
    stock: float
    truncated: float
    forfeits: tuple[int, int]
    behaviour: tuple[Behaviour, Behaviour]
    speed: tuple[Speed, Speed] = field(compare=False)
    games: np.ndarray = field(compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values, everything but ``games``; the bounds of an infinite interval are None."""
        sides = ("a", "b")
        return {
            "game": "rummy40",
            "a": self.a,
            "b": self.b,
            "versions": dict(zip(sides, self.versions, strict=True)),
            "rules": {"name": self.rules, "fingerprint": self.fingerprint},
            "seats": self.seats,
            "match": self.match,
            "seed": self.seed,
            "deals": self.deals,
            "hands": self.hands,
            "deck_hash": self.deck_hash,
            "points_per_hand": self.points_per_hand,
            "ci95": plain_interval(self.ci95),
            "hands_won": self.hands_won,
            "hands_lost": self.hands_lost,
            "games_won": self.games_won,
            "games_lost": self.games_lost,
            "win_rate": self.win_rate,
            "win_ci95": plain_interval(self.win_ci95),
            "endings": {"stock": self.stock, "truncated": self.truncated},
            "forfeits": dict(zip(sides, self.forfeits, strict=True)),
            "behaviour": {side: asdict(part) for side, part in zip(sides, self.behaviour, strict=True)},
            "speed": {side: asdict(part) for side, part in zip(sides, self.speed, strict=True)},
        }


# --------------------------------------------------------------------------------------------------------------- play


def play_match(
    a: Agent,
    b: Agent,
    *,
    deals: int,
    seed: int = 0,
    rules: Rummy40Rules | str = "rummy40",
    match: bool = False,
    batch: int = 2048,
    forfeits: bool = False,
    progress: Callable[[int, int], None] | None = None,
    record: Callable[[Record], None] | None = None,
) -> MatchResult:
    """Plays a duplicate match: see `play_games` for the arguments.

    Raises:
        ValueError: If an argument is out of range, or an agent plays another game.
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
    )
    return summarise(games, **identify(a, b, rules=rules, match=match, seed=seed, deals=deals))


def check_match(rules: Rummy40Rules | str, match: bool, deals: int, seed: int, batch: int = 1) -> Rummy40Rules:
    """Returns the rules, once it is sure that the arguments of a match can be played.

    Raises:
        ValueError: If one cannot.
    """
    checked: Rummy40Rules = duplicate.check_match(RUMMY40, rules, match, deals, seed, batch)
    return checked


def play_games(
    a: Agent,
    b: Agent,
    *,
    deals: int,
    first: int = 0,
    seed: int = 0,
    rules: Rummy40Rules | str = "rummy40",
    match: bool = False,
    batch: int = 2048,
    forfeits: bool = False,
    progress: Callable[[int, int], None] | None = None,
    record: Callable[[Record], None] | None = None,
) -> Games:
    """Plays the games of some deals: of deal d the games G * d to G * d + G - 1 (`games_of_deal`, `sides_of`).

    A game is the same whatever else is played: the deals may be split among processes, and `Games.join` puts the parts
    together.

    Args:
        a: The agent from whose side the result is told.
        b: The other agent.
        deals: Number of deals, each played in all seatings.
        first: Number of the first deal.
        seed: Decides all decks, and all keys of the agents.
        rules: Rules, or text that names them (`gin_env.rummy40.as_rules`).
        match: Whether a game is a match to the rules' limit instead of one hand. After 1,000 hands it is drawn: a win
            that all seats share.
        batch: Most games to play at once. It changes the speed, never the result.
        forfeits: What happens if an agent plays an illegal action or raises an error. If true, that seat loses the
            game: it alone counts what it has in hand, and the others share the win, in a match that of the match.
            Otherwise that is an error.
        progress: Called with the number of games that are over and of all games, whenever some have ended.
        record: Called with the record of each game, in the order of the deals; its comment says the number of the deal
            and who had which seat. The result is the same without. A forfeited game has no record.

    Raises:
        ValueError: If an argument is out of range, or an agent plays another game.
        AgentError: If an agent plays an illegal action and ``forfeits`` is False.
    """
    rules = check_match(rules, match, deals, seed, batch)
    for agent in (a, b):
        if game_of(agent) != "rummy40":
            raise ValueError(f"agent {agent.name!r} plays {game_of(agent)}; expected one that plays rummy40")
    book = _Book(first, deals, rules.seats, match)
    play_deals(
        a,
        b,
        book,
        deals=deals,
        seed=seed,
        rules=rules,
        match=match,
        batch=batch,
        forfeits=forfeits,
        progress=progress,
        record=record,
    )
    games: Games = book.games
    return games


class _Book(Book):
    """The book of Rummy40."""

    game = RUMMY40
    hand_decisions = 2048
    assert hand_decisions > MAX_MOVES
    side_counts, hand_counts = SIDE_COUNTS, HAND_COUNTS

    def __init__(self, first: int, deals: int, seats: int, match: bool) -> None:
        super().__init__(Games.empty(first, deals, seats), seats)
        self.match = match

    def side_of(self, numbers: np.ndarray, seats: np.ndarray) -> np.ndarray:
        """See `Book.side_of`."""
        places = numbers % self.games_of_deal
        alone = places // self.seats
        sides: np.ndarray = np.where(seats == places % self.seats, alone, 1 - alone)
        return sides

    def enter(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters hands that have ended, at most one of each game."""
        seats = self.seats
        penalties = tables["penalties"][:, :seats].astype(np.int64)
        out = np.where(tables["ending"] == OUT, tables["out"], -1)
        self._enter(
            numbers,
            penalties,
            tables["opened"][:, :seats] > 0,
            np.arange(seats) == out[:, None],
            np.where((tables["ending"] == TRUNCATED)[:, None], 0, tables["booked"][:, :seats]),
            tables["dealer"],
        )
        self.count_hands(
            hands=numbers.size,
            stock=(tables["ending"] == STOCK_OUT).sum(),
            truncated=(tables["ending"] == TRUNCATED).sum(),
        )

    def _enter(
        self,
        numbers: np.ndarray,
        penalties: np.ndarray,
        opened: np.ndarray,
        out: np.ndarray,
        booked: np.ndarray,
        dealer: np.ndarray,
    ) -> None:
        """Enters hands by their results for each seat, (N, seats)."""
        seats = self.seats
        sides = sides_of(numbers, seats)
        points = penalties.sum(axis=1, keepdims=True) - seats * penalties
        alone, seat = numbers % games_of_deal(seats) // seats, numbers % games_of_deal(seats) % seats
        self.points[numbers - self.start] += (1 - 2 * alone) * points[np.arange(numbers.size), seat]
        self.hands[numbers - self.start] += 1
        shares = _shares(penalties == penalties.min(axis=1, keepdims=True))
        place = (np.arange(seats) - dealer[:, None] - 1) % seats
        for side in (0, 1):
            mine = sides == side
            self.count(
                side,
                seats=mine.sum(),
                won=shares[mine].sum(),
                opened=opened[mine].sum(),
                outs=out[mine].sum(),
                left=penalties[mine].sum(),
                penalties=booked[mine].sum(),
                **{f"seats_{k + 1}": (mine & (place == k)).sum() for k in range(seats)},
                **{f"points_{k + 1}": points[mine & (place == k)].sum() for k in range(seats)},
            )

    def finish(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters who won games that are over: the match, or the hand. A match that was not decided is shared by all."""
        penalties = tables["penalties"][:, : self.seats]
        winners = penalties == penalties.min(axis=1, keepdims=True)
        if self.match:
            winners = (tables["match_winners"][:, : self.seats] > 0) | ~tables["match_over"][:, None]
        self._finish(numbers, winners)

    def _finish(self, numbers: np.ndarray, winners: np.ndarray) -> None:
        mine = sides_of(numbers, self.seats) == 0
        self.won[numbers - self.start] = (_shares(winners) * mine).sum(axis=1)

    def forfeit(self, number: int, table: np.void) -> None:
        """Enters a game that the mover has lost by a forfeit."""
        seat = int(table["mover"])
        lost = np.arange(self.seats) == seat
        cards = held(table["hands"][seat], table["jokers"][seat])
        left = sum(int(table["rules"]["joker_points"] if card == JOKER else CARD_POINTS[card]) for card in cards)
        penalties = np.where(lost, left + int(table["booked"][seat]), 0)
        one = np.array([number])
        nothing = np.zeros((1, self.seats), dtype=np.int64)
        self._enter(
            one, penalties[None, :], table["opened"][None, : self.seats] > 0, nothing, nothing, table["dealer"][None]
        )
        self._finish(one, ~lost[None, :])
        self.count_hands(hands=1)
        self.count(int(sides_of(one, self.seats)[0, seat]), forfeits=1)


def _shares(winners: np.ndarray) -> np.ndarray:
    """Returns the twelfths of a win that each seat has: of (N, seats) flags."""
    shares: np.ndarray = np.where(winners, SHARE // winners.sum(axis=1, keepdims=True), 0)
    return shares


# ------------------------------------------------------------------------------------------------------------- result


def contests(games: Games, match: bool) -> np.ndarray:
    """Returns what ratings are made of, (deals, 1): 2 where a won the deal, 1 where nobody did, 0 where b did.

    A deal is won by who took more points in all its games; of matches, by who won more of them.
    """
    more = games.won.sum(axis=1, keepdims=True, dtype=np.int64) - SHARE * games.won.shape[1] // 2
    decided: np.ndarray = np.sign(more if match else games.points.sum(axis=1, keepdims=True, dtype=np.int64)) + 1
    return decided


def summarise(games: Games, **known: Any) -> MatchResult:
    """Makes the result of counted games.

    Args:
        games: All games of the match.
        known: The fields of `MatchResult` that the games do not tell: a, b, versions, rules, fingerprint, match, seed,
            deck_hash.
    """
    sides = games.side(0), games.side(1)
    counts = dict(zip(HAND_COUNTS, games.counts.tolist(), strict=True))
    hands, others = counts["hands"], games.units
    mean, (low, high) = pair_interval(games.points, games.hands)
    win_rate, win_interval = pair_interval(games.won)
    won = int(games.won.sum(dtype=np.int64))
    return MatchResult(
        **known,
        seats=games.seats,
        deals=games.points.shape[0],
        hands=hands,
        points_per_hand=mean / others,
        ci95=(low / others, high / others),
        hands_won=sides[0]["won"] / SHARE,
        hands_lost=sides[1]["won"] / SHARE,
        games_won=won / SHARE,
        games_lost=games.won.size - won / SHARE,
        win_rate=win_rate / SHARE,
        win_ci95=(win_interval[0] / SHARE, win_interval[1] / SHARE),
        stock=counts["stock"] / max(hands, 1),
        truncated=counts["truncated"] / max(hands, 1),
        forfeits=(sides[0]["forfeits"], sides[1]["forfeits"]),
        behaviour=(_behaviour(sides[0], games.seats), _behaviour(sides[1], games.seats)),
        speed=(speed_of(sides[0], games.seconds[0]), speed_of(sides[1], games.seconds[1])),
        games=games.points / others,
    )


def _behaviour(side: dict[str, int], seats: int) -> Behaviour:
    drawn = side["draws"] + side["takes"]
    hands = max(side["seats"], 1)
    return Behaviour(
        opened=side["opened"] / hands,
        out=side["outs"] / hands,
        left=side["left"] / hands,
        penalties=side["penalties"] / hands,
        turns=drawn / hands,
        takes=side["takes"] / drawn if drawn else None,
        places=tuple(
            side[f"points_{place}"] / (seats - 1) / max(side[f"seats_{place}"], 1) for place in range(1, seats + 1)
        ),
    )
