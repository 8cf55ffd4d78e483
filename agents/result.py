"""What a duplicate match came to: counts that can be added up, and the figures made of them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np

NORMAL_95 = 1.959963984540054

# What is counted of each side.
SIDE_COUNTS = (
    "won",  # hands
    "knocks",  # short of gin, those that were undercut or tied included
    "gins",
    "big_gins",
    "undercuts",  # own knocks that were undercut
    "knock_deadwood",  # points, summed over its knocks short of gin
    "draws",  # from the stock
    "takes",  # from the pile
    "decisions",
    "timed",  # decisions that were timed
    "forfeits",  # games
)
# What is counted of all hands.
HAND_COUNTS = (
    "hands",
    "dead",
    "truncated",
    "tied",
    "a_deals",  # hands in which a was the dealer
    "a_dealer_points",  # what a won in them
)


@dataclass(frozen=True)
class Games:
    """The games of some deals, from side a's point of view. Those of neighbouring deals can be joined.

    Attributes:
        first: Number of the first deal.
        points: (deals, 2) int32, won by a in both games of each deal; of a match, in all its hands.
        hands: (deals, 2) int32, hands in each game.
        won: (deals, 2) int8, 2 where a won the game, 1 where nobody did, 0 where b did.
        sides: (2, len(SIDE_COUNTS)) int64, of a and b.
        counts: (len(HAND_COUNTS),) int64.
        seconds: (2,) float64, that a and b took for their timed decisions.
        WIN: What a game that a won counts in ``won``.
    """

    WIN: ClassVar[int] = 2

    first: int
    points: np.ndarray
    hands: np.ndarray
    won: np.ndarray
    sides: np.ndarray
    counts: np.ndarray
    seconds: np.ndarray

    @property
    def units(self) -> int:
        """What one point counts in ``points``."""
        return 1

    @classmethod
    def empty(cls, first: int, deals: int) -> "Games":
        """Returns games of which nothing has been played yet."""
        return cls(
            first=first,
            points=np.zeros((deals, 2), dtype=np.int32),
            hands=np.zeros((deals, 2), dtype=np.int32),
            won=np.ones((deals, 2), dtype=np.int8),
            sides=np.zeros((2, len(SIDE_COUNTS)), dtype=np.int64),
            counts=np.zeros(len(HAND_COUNTS), dtype=np.int64),
            seconds=np.zeros(2),
        )

    @classmethod
    def join(cls, parts: Sequence["Games"]) -> "Games":
        """Puts the games of consecutive deals together, in any order given.

        Raises:
            ValueError: If deals are missing between them, or there are none.
        """
        parts = sorted(parts, key=lambda part: part.first)
        if not parts:
            raise ValueError("there are no games to join")
        expected = parts[0].first
        for part in parts:
            if part.first != expected:
                raise ValueError(f"games of deal {part.first} follow; expected those of deal {expected}")
            expected += part.points.shape[0]
        return cls(
            first=parts[0].first,
            points=np.concatenate([part.points for part in parts]),
            hands=np.concatenate([part.hands for part in parts]),
            won=np.concatenate([part.won for part in parts]),
            sides=np.sum([part.sides for part in parts], axis=0),
            counts=np.sum([part.counts for part in parts], axis=0),
            seconds=np.sum([part.seconds for part in parts], axis=0),
        )

    def mirrored(self) -> "Games":
        """Returns the same games told from side b's point of view: column s has those in which b sits in seat s."""
        counts = dict(zip(HAND_COUNTS, self.counts.tolist(), strict=True))
        counts["a_deals"] = counts["hands"] - counts["a_deals"]
        counts["a_dealer_points"] -= int(self.points.sum())  # b wins what a does not
        return Games(
            first=self.first,
            points=-self.points[:, ::-1],
            hands=self.hands[:, ::-1],
            won=2 - self.won[:, ::-1],
            sides=self.sides[::-1],
            counts=np.array(list(counts.values()), dtype=np.int64),
            seconds=self.seconds[::-1],
        )

    def side(self, number: int) -> dict[str, int]:
        """Returns what was counted of a (0) or b (1), by name."""
        return dict(zip(SIDE_COUNTS, self.sides[number].tolist(), strict=True))


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

    A game is one hand, or with ``match`` a match to the rules' target.

    Attributes:
        a: Name of the one agent.
        b: Name of the other.
        versions: Of a and b: their own ``version`` where they have one, otherwise that of gin-env.
        rules: Name of the rules, and what differs from the preset of that name.
        fingerprint: Of the rules (`gin_env.Rules.fingerprint`).
        match: Whether a game was a match to the target.
        seed: Of the deals and the agents' random choices.
        deals: Number of deals, each played twice.
        deck_hash: SHA-256 over all deals in order (`agents.match.deck_hash`).
        hands: Hands played.
        points_per_hand: Points that a wins per hand; negative if it loses.
        ci95: Interval of 95 % confidence for ``points_per_hand``, over deals (the two games of a deal give one number)
            by the normal approximation; infinite for a single deal.
        hands_won: Hands that a won.
        hands_lost: Hands that b won.
        hands_drawn: Hands that nobody won.
        games_won: Games that a won.
        games_lost: Games that b won.
        games_drawn: Games that nobody won.
        win_rate: Share of games that a won, draws counting half.
        win_ci95: Interval of 95 % confidence for ``win_rate``, like ``ci95``.
        as_non_dealer: Points per hand that a won as the non-dealer, who plays first.
        as_dealer: Points per hand that a won as the dealer.
        dead: Share of hands that ended because the stock ran out.
        truncated: Share of hands that ended at the cap on draws.
        tied: Share of hands that ended in equal deadwood.
        forfeits: Games that a and b lost by a forfeit (`agents.match.play_games`).
        behaviour: Of a and b.
        speed: Of a and b. It alone differs from run to run, and is left out of comparisons.
        games: (deals, 2) int32, the points that a won in the two games of each deal.
    """

    a: str
    b: str
    versions: tuple[str, str]
    rules: str
    fingerprint: str
    match: bool
    seed: int
    deals: int
    deck_hash: str
    hands: int
    points_per_hand: float
    ci95: tuple[float, float]
    hands_won: int
    hands_lost: int
    hands_drawn: int
    games_won: int
    games_lost: int
    games_drawn: int
    win_rate: float
    win_ci95: tuple[float, float]
    as_non_dealer: float
    as_dealer: float
    dead: float
    truncated: float
    tied: float
    forfeits: tuple[int, int]
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
            "match": self.match,
            "seed": self.seed,
            "deals": self.deals,
            "hands": self.hands,
            "deck_hash": self.deck_hash,
            "points_per_hand": self.points_per_hand,
            "ci95": plain_interval(self.ci95),
            "hands_won": self.hands_won,
            "hands_lost": self.hands_lost,
            "hands_drawn": self.hands_drawn,
            "games_won": self.games_won,
            "games_lost": self.games_lost,
            "games_drawn": self.games_drawn,
            "win_rate": self.win_rate,
            "win_ci95": plain_interval(self.win_ci95),
            "seats": {"non_dealer": self.as_non_dealer, "dealer": self.as_dealer},
            "endings": {"dead": self.dead, "truncated": self.truncated, "tied": self.tied},
            "forfeits": dict(zip(sides, self.forfeits, strict=True)),
            "behaviour": {side: asdict(part) for side, part in zip(sides, self.behaviour, strict=True)},
            "speed": {side: asdict(part) for side, part in zip(sides, self.speed, strict=True)},
        }


def plain_interval(interval: tuple[float, float]) -> list[float | None]:
    """Returns an interval as JSON can hold it: an infinite bound as None."""
    return [bound if math.isfinite(bound) else None for bound in interval]


def pair_interval(points: np.ndarray, hands: np.ndarray | None = None) -> tuple[float, tuple[float, float]]:
    """Returns the mean points per hand of a duplicate match and its interval of 95 % confidence.

    The sums are exact, so that the same match told from the other side gives exactly the mirrored numbers.

    Args:
        points: (deals, G) integers, the points won in the G games of each deal: two of gin.
        hands: (deals, G) integers, the hands in each game; one each by default.

    Returns:
        The mean, and the interval by the normal approximation over the deals (infinite for a single deal). Where games
        differ in hands it is that of a ratio of means (Cochran 1977, 2.11).
    """
    sums = points.astype(np.int64).sum(axis=1)
    played = (
        np.full(sums.size, points.shape[1], dtype=np.int64) if hands is None else hands.astype(np.int64).sum(axis=1)
    )
    deals, total, count = sums.size, int(sums.sum()), int(played.sum())
    if not count:  # all forfeited before a hand ended
        return 0.0, (-math.inf, math.inf)
    mean = total / count
    if deals < 2:
        return mean, (-math.inf, math.inf)
    # Squares of (sum - mean * hands), times count squared, in whole numbers (of Python: they outgrow 64 bits).
    squares, cross, lengths = (int((x * y).sum()) for x, y in ((sums, sums), (sums, played), (played, played)))
    spread = (count * count * squares - 2 * count * total * cross + total * total * lengths) / (count * count)
    half = NORMAL_95 * math.sqrt(max(spread, 0) * deals / (deals - 1)) / count
    return mean, (mean - half, mean + half)


def summarise(games: Games, **known: Any) -> MatchResult:
    """Makes the result of counted games.

    Args:
        games: All games of the match.
        known: The fields of `MatchResult` that the games do not tell: a, b, versions, rules, fingerprint, match, seed,
            deck_hash.
    """
    sides = games.side(0), games.side(1)
    counts = dict(zip(HAND_COUNTS, games.counts.tolist(), strict=True))
    hands = counts["hands"]
    mean, interval = pair_interval(games.points, games.hands)
    # In halves, so that the sums are exact.
    win_rate, win_interval = pair_interval(games.won)
    total = int(games.points.sum())
    return MatchResult(
        **known,
        deals=games.points.shape[0],
        hands=hands,
        points_per_hand=mean,
        ci95=interval,
        hands_won=sides[0]["won"],
        hands_lost=sides[1]["won"],
        hands_drawn=hands - sides[0]["won"] - sides[1]["won"],
        games_won=int((games.won == 2).sum()),
        games_lost=int((games.won == 0).sum()),
        games_drawn=int((games.won == 1).sum()),
        win_rate=win_rate / 2,
        win_ci95=(win_interval[0] / 2, win_interval[1] / 2),
        as_non_dealer=(total - counts["a_dealer_points"]) / max(hands - counts["a_deals"], 1),
        as_dealer=counts["a_dealer_points"] / max(counts["a_deals"], 1),
        dead=counts["dead"] / max(hands, 1),
        truncated=counts["truncated"] / max(hands, 1),
        tied=counts["tied"] / max(hands, 1),
        forfeits=(sides[0]["forfeits"], sides[1]["forfeits"]),
        behaviour=(_behaviour(sides[0], sides[1], hands), _behaviour(sides[1], sides[0], hands)),
        speed=(speed_of(sides[0], games.seconds[0]), speed_of(sides[1], games.seconds[1])),
        games=games.points,
    )


def _behaviour(side: dict[str, int], other: dict[str, int], hands: int) -> Behaviour:
    drawn = side["draws"] + side["takes"]
    hands = max(hands, 1)
    return Behaviour(
        knock=side["knocks"] / hands,
        gin=side["gins"] / hands,
        big_gin=side["big_gins"] / hands,
        undercut_made=other["undercuts"] / hands,
        undercut_suffered=side["undercuts"] / hands,
        knock_deadwood=side["knock_deadwood"] / side["knocks"] if side["knocks"] else None,
        turns=drawn / hands,
        takes=side["takes"] / drawn if drawn else None,
    )


def speed_of(side: dict[str, int], seconds: float) -> Speed:
    """Returns how fast a side was, of what was counted of it and the seconds that its timed decisions took."""
    if not side["timed"] or seconds == 0:
        return Speed(side["decisions"], None, None)
    return Speed(side["decisions"], float(side["timed"] / seconds), float(1000 * seconds / side["timed"]))
