"""Ratings of players who all met on the same deals.

Bradley-Terry: player i wins against j with probability 1 / (1 + 10 ** ((r_j - r_i) / 400)), the scale of Elo, and the
ratings are those under which the results are likeliest. They are fitted to all games at once, so the order of the games
does not matter, as it does where ratings are updated game by game.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

RESAMPLES = 1000
# Points of the Elo scale for one unit of the logarithm of the odds.
ELO = 400 / np.log(10)
# Half a win for either side is added to each pairing that has met (Jeffreys's prior). Without it a player who never
# lost would be rated infinite.
PRIOR = 0.5
_AT_ONCE = 100  # resamples


@dataclass(frozen=True)
class Ratings:
    """Ratings on the Elo scale.

    Attributes:
        elo: (K,) float64, the anchor at 0, or the mean where there is none.
        ci95: (K, 2) float64, their intervals of 95 % confidence; infinite where there is one deal only.
        first: (K,) float64, the share of the resamples in which each was rated highest.
    """

    elo: np.ndarray
    ci95: np.ndarray
    first: np.ndarray


def bradley_terry(wins: np.ndarray, prior: float | np.ndarray = PRIOR) -> np.ndarray:
    """Fits ratings to results, by choix's iterative spectral ranking (Maystre and Grossglauser 2015).

    Args:
        wins: (K, K), the games that player i won against j, draws counting half. Every two players must have met, or
            be linked by a chain of others.
        prior: Wins that are added for both sides of each pairing that has met; or (K, K), for each.

    Returns:
        (K,) float64, on the Elo scale, mean 0.

    Raises:
        ImportError: If choix is not installed.
    """
    from choix import ilsr_pairwise_dense

    met = wins + wins.T > 0
    ratings: np.ndarray = ELO * ilsr_pairwise_dense(np.where(met, wins + prior, 0))
    return ratings


def rate(
    won: Mapping[tuple[int, int], np.ndarray],
    *,
    anchor: int | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Ratings:
    """Rates the players of a round robin on common deals.

    The intervals are percentiles over resampled deals. A deal is drawn with the games of all pairings on it, for they
    share its luck, and both its games in each.

    Args:
        won: For each pairing (i, j) of the players 0 to K - 1: (deals, G), what came of the G contests on each deal: 2
            where i won, 1 where nobody did, 0 where j did.
        anchor: The player whose rating is 0; by default the mean is.
        resamples: How often the deals are drawn.
        seed: Of the resampling.

    Raises:
        ValueError: If the pairings have different numbers of deals, or resamples is below 1.
        ImportError: If choix is not installed.
    """
    pairings = sorted(won)
    players = 1 + max(max(pairing) for pairing in pairings)
    if len({won[pairing].shape for pairing in pairings}) != 1:
        raise ValueError("the pairings have different numbers of deals; expected the same deals for all")
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; expected at least 1")
    # In half contests, whole numbers, so that no sum depends on its order.
    halves = np.stack([won[pairing].astype(np.int64).sum(axis=1) for pairing in pairings], axis=1)
    deals = halves.shape[0]
    games = won[pairings[0]].size

    def fit(totals: np.ndarray, prior: float | np.ndarray) -> np.ndarray:
        wins = np.zeros((players, players))
        for (i, j), total in zip(pairings, totals, strict=True):
            wins[i, j], wins[j, i] = total / 2, games - total / 2
        elo = bradley_terry(wins, prior)
        return elo if anchor is None else elo - elo[anchor]

    elo = fit(halves.sum(axis=0), PRIOR)
    if deals < 2:
        return Ratings(elo, np.tile([-np.inf, np.inf], (players, 1)), np.full(players, 1 / players))
    rng = np.random.default_rng(seed)
    drawn = np.empty((resamples, players))
    for start in range(0, resamples, _AT_ONCE):
        rows = min(_AT_ONCE, resamples - start)
        # How often each deal was drawn; as floats the product is exact and fast.
        times = np.stack([np.bincount(rng.integers(deals, size=deals), minlength=deals) for _ in range(rows)])
        priors = rng.gamma(PRIOR, size=(rows, players, players))
        totals = times.astype(np.float64) @ halves.astype(np.float64)
        drawn[start : start + rows] = [fit(*one) for one in zip(totals, priors, strict=True)]
    first = np.bincount(drawn.argmax(axis=1), minlength=players) / resamples
    return Ratings(elo, np.percentile(drawn, [2.5, 97.5], axis=0).T, first)
