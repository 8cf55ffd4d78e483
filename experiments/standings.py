"""The result of a round robin: standings and pairings, as plain values and as tables for the terminal."""

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import match, match40
from agents.result import Games, pair_interval, plain_interval
from experiments.ratings import RESAMPLES, Ratings, rate
from experiments.workers import AnyResult, matches_of

if TYPE_CHECKING:
    from experiments.tournament import Entry, Plan

LIBRARIES = ("gin-env", "numpy", "numba", "onnxruntime", "torch", "choix")


@dataclass(frozen=True)
class Standing:
    """A player at the end.

    Attributes:
        entry: The player.
        elo: Bradley-Terry rating by `contests` won, on the Elo scale.
        elo_ci95: Its interval of 95 % confidence.
        first: The share of redrawn sets of deals in which it is rated highest.
        field: Its games against all others together, as one match. The intervals know that all are on the same deals.
        incidents: What went wrong with it, how often, if it counts that (`agents.external`).
    """

    entry: "Entry"
    elo: float
    elo_ci95: tuple[float, float]
    first: float
    field: AnyResult
    incidents: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Returns the standing as plain values."""
        field = self.field.to_json()
        kept = ("hands", "points_per_hand", "ci95", "games_won", "games_lost", "games_drawn", "win_rate", "win_ci95")
        return (
            vars(self.entry)
            | {"elo": self.elo, "elo_ci95": plain_interval(self.elo_ci95), "first": self.first}
            | {key: field[key] for key in kept if key in field}
            | {"hands_won": self.field.hands_won / max(self.field.hands, 1), "seats": field["seats"]}
            | {key: field[key]["a"] for key in ("forfeits", "behaviour", "speed")}
            | {"incidents": dict(sorted(self.incidents.items()))}
        )


@dataclass(frozen=True)
class TournamentResult:
    """The result of a tournament.

    Attributes:
        plan: What was played.
        deals: Deals that every pairing played in all seatings.
        deck_hash: SHA-256 over all deals in order (`agents.match.deck_hash`).
        anchor: The player whose rating is 0, None for the mean.
        standings: The players, the best rating first.
        pairings: The match of players i and j of the plan, i < j, from the side of i.
        versions: Of Python and libraries, where the result was made. Left out of comparisons.
    """

    plan: "Plan"
    deals: int
    deck_hash: str
    anchor: str | None
    standings: tuple[Standing, ...]
    pairings: Mapping[tuple[int, int], AnyResult]
    versions: Mapping[str, str] = field(compare=False)

    @classmethod
    def of(
        cls,
        plan: "Plan",
        deck_hash: str,
        games: Mapping[tuple[int, int], Games],
        incidents: Sequence[Mapping[str, int]] = (),
        *,
        anchor: str | None = None,
        resamples: int = RESAMPLES,
    ) -> "TournamentResult":
        """Makes the result of counted games.

        Args:
            plan: What was played.
            deck_hash: Of all deals.
            games: All games of players i and j of the plan, for all i < j.
            incidents: What went wrong with each player.
            anchor: The player whose rating is 0.
            resamples: How often the deals are drawn for the intervals of the ratings.
        """
        specs = [entry.spec for entry in plan.entries]
        ratings = rate(
            {pair: contests(some, plan.match) for pair, some in games.items()},
            anchor=None if anchor is None else specs.index(anchor),
            resamples=resamples,
            seed=plan.seed,
        )
        known = {
            "rules": plan.rules_name,
            "fingerprint": plan.rules.fingerprint,
            "match": plan.match,
            "seed": plan.seed,
            "deck_hash": deck_hash,
        }
        pairings = {
            (i, j): matches_of(plan.game).summarise(
                some,
                a=specs[i],
                b=specs[j],
                versions=(plan.entries[i].version, plan.entries[j].version),
                **known,
            )
            for (i, j), some in games.items()
        }
        standings = [
            _standing(number, entry, ratings, games, dict(incidents[number]) if incidents else {}, known)
            for number, entry in enumerate(plan.entries)
        ]
        standings.sort(key=lambda standing: (-standing.elo, standing.entry.spec))
        deals = next(iter(pairings.values())).deals
        return cls(plan, deals, deck_hash, anchor, tuple(standings), pairings, versions())

    def margin(self, one: Standing, other: Standing) -> tuple[float, tuple[float, float]]:
        """Returns by how much one player beat another, and the interval of 95 % confidence.

        That is in points a hand; of whole matches it is the share that it won, less a half.
        """
        i, j = self.plan.entries.index(one.entry), self.plan.entries.index(other.entry)
        pairing = self.pairings[min(i, j), max(i, j)]
        mean, (low, high) = pairing.points_per_hand, pairing.ci95
        if self.plan.match:
            mean, low, high = (share - 0.5 for share in (pairing.win_rate, *pairing.win_ci95))
        return (mean, (low, high)) if i < j else (-mean, (-high, -low))

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values. Only ``versions`` and what is in ``speed`` differ from run to run."""
        return self.plan.to_json() | {
            "deals": self.deals,
            "deck_hash": self.deck_hash,
            "anchor": self.anchor,
            "versions": dict(self.versions),
            "standings": [standing.to_json() for standing in self.standings],
            "pairings": [pairing.to_json() for pairing in self.pairings.values()],
        }


def contests(games: Games, match: bool) -> np.ndarray:
    """Returns what ratings are made of: 2 where a won, 1 where nobody did, 0 where b did.

    These are the matches, (deals, 2). Of single hands they are the deals, (deals, 1), each won by who took more points
    in its two games: to win more hands than the other, by less, is not to play better.

    Of Rummy40: see `agents.match40.contests`.
    """
    if isinstance(games, match40.Games):
        return match40.contests(games, match)
    return games.won if match else np.sign(games.points.sum(axis=1, keepdims=True)) + 1


def _standing(
    number: int,
    entry: "Entry",
    ratings: Ratings,
    games: Mapping[tuple[int, int], Games],
    incidents: Mapping[str, int],
    known: Mapping[str, Any],
) -> Standing:
    """Adds up a player's games against all others."""
    mine = [some if i == number else some.mirrored() for (i, j), some in games.items() if number in (i, j)]
    pooled = type(mine[0])(
        first=mine[0].first,
        points=np.concatenate([some.points for some in mine]),
        hands=np.concatenate([some.hands for some in mine]),
        won=np.concatenate([some.won for some in mine]),
        sides=np.sum([some.sides for some in mine], axis=0),
        counts=np.sum([some.counts for some in mine], axis=0),
        seconds=np.sum([some.seconds for some in mine], axis=0),
    )
    module = match40 if isinstance(pooled, match40.Games) else match
    field: AnyResult = module.summarise(pooled, a=entry.spec, b="field", versions=(entry.version, ""), **known)
    # All that was played on one deal is one observation.
    points, hands, won = (
        np.stack([getattr(some, name) for some in mine]).sum(axis=0, dtype=np.int64)
        for name in ("points", "hands", "won")
    )
    _, interval = pair_interval(points, hands)
    _, win_interval = pair_interval(won, np.full(won.shape, len(mine)))
    units, win = pooled.units, pooled.WIN
    field = replace(
        field,
        deals=won.shape[0],
        ci95=(interval[0] / units, interval[1] / units),
        win_ci95=(win_interval[0] / win, win_interval[1] / win),
    )
    elo, first = float(ratings.elo[number]), float(ratings.first[number])
    elo_low, elo_high = ratings.ci95[number].tolist()
    return Standing(entry, elo, (elo_low, elo_high), first, field, incidents)


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that players run on, "-" for those not installed."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            found[library] = "-"
    return found
