"""Duplicate matches: every deal is played twice, with the seats exchanged and the same deck and dealer.

Luck of the cards then falls on both players alike, and what is left between them is play. Two copies of a player that
makes no random choices score exactly zero in every pair.

    >>> import agents
    >>> from agents.match import play_match
    >>> result = play_match(agents.make("greedy"), agents.make("random"), deals=100)
    >>> result.points_per_hand > 40
    True
"""

from collections.abc import Callable

import numpy as np

from agents import duplicate
from agents.base import Agent
from agents.duplicate import AGENT_STREAM, AgentError, Book, agent_version, deck_hash, identify, play_deals
from agents.games import GIN
from agents.result import HAND_COUNTS, SIDE_COUNTS, Behaviour, Games, MatchResult, Speed, pair_interval, summarise
from gin_env.melds import deadwood
from gin_env.record import Record
from gin_env.rules import Rules
from gin_env.tables import BIG_GINNED, DEAD, GINNED, KNOCKED, NOBODY, TIED, TRUNCATED, UNDERCUT, Tables

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
    checked: Rules = duplicate.check_match(GIN, rules, match, deals, seed, batch)
    return checked


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
    book = _Book(first, deals, rules, match)
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
        ended=ended,
    )
    games: Games = book.games
    return games


class _Book(Book):
    """The book of gin. A side may also be NOBODY."""

    game = GIN
    hand_decisions = 1024  # a hand has fewer than half of it (`gin_env.tables.MAX_MOVES`)
    side_counts, hand_counts = SIDE_COUNTS, HAND_COUNTS

    def __init__(self, first: int, deals: int, rules: Rules, match: bool) -> None:
        super().__init__(Games.empty(first, deals), seats=2)
        self.rules, self.match = rules, match

    def side_of(self, numbers: np.ndarray, seats: np.ndarray) -> np.ndarray:
        """See `Book.side_of`."""
        sides: np.ndarray = seats ^ numbers % 2
        return sides

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

    def finish(self, numbers: np.ndarray, tables: Tables) -> None:
        """Enters who won games that are over: the winner of the match, or of the hand."""
        places = numbers - self.start
        if self.match:
            winner = tables["match_winner"]
            self.won[places] = np.where(winner == NOBODY, 1, 2 * (winner == numbers % 2))
        else:
            self.won[places] = np.sign(self.points[places]) + 1

    def forfeit(self, number: int, table: np.void) -> None:
        """Enters a game that the mover has lost by a forfeit."""
        seat_of_a = number % 2
        side = int(table["mover"]) ^ seat_of_a
        hand = table["hands"][table["mover"]]
        lost = self.rules.gin_bonus + int(deadwood(np.array([hand], dtype=np.uint64))[0])
        points = lost if side == 1 else -lost
        self.points[number - self.start] += points
        self.hands[number - self.start] += 1
        self.won[number - self.start] = 2 * side
        a_deals = int(table["dealer"]) == seat_of_a
        self.count_hands(hands=1, a_deals=int(a_deals), a_dealer_points=points if a_deals else 0)
        self.count(side, forfeits=1)
        self.count(1 - side, won=1)
