"""Ratings: fitted to all games at once, with intervals over the deals."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

pytest.importorskip("choix")

from experiments.ratings import ELO, PRIOR, bradley_terry, rate

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "data" / "cases.json").read_text())}


def expected(elo: np.ndarray) -> np.ndarray:
    """How likely each wins against each."""
    return 1 / (1 + 10 ** ((elo[None, :] - elo[:, None]) / 400))


def fit_slowly(wins: np.ndarray) -> np.ndarray:
    """Bradley-Terry by a general optimiser."""

    def loss(strength: np.ndarray) -> float:
        odds = strength[:, None] - strength[None, :]
        return float((wins * np.logaddexp(0, -odds)).sum()) + strength.mean() ** 2

    found = optimize.minimize(loss, np.zeros(len(wins)), method="BFGS", options={"gtol": 1e-9})
    return ELO * (found.x - found.x.mean())


# --------------------------------------------------------------------------------------------------------------- fit


def test_two_players_by_hand() -> None:
    elo = bradley_terry(np.array([[0, 3 - PRIOR], [1 - PRIOR, 0]]))  # three to one, with the prior
    assert elo == pytest.approx([200 * np.log10(3), -200 * np.log10(3)])


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_everybody_wins_as_often_as_expected(players: int, seed: int) -> None:
    """What the likeliest ratings must satisfy, and nothing else does."""
    wins = np.random.default_rng(seed).integers(0, 50, size=(players, players)).astype(float)
    np.fill_diagonal(wins, 0)
    elo = bradley_terry(wins, prior=0.5)
    counted = np.where(wins + wins.T > 0, wins + 0.5, 0)
    games = counted + counted.T
    assert (games * expected(elo)).sum(axis=1) == pytest.approx(counted.sum(axis=1), abs=1e-3)
    assert elo.mean() == pytest.approx(0, abs=1e-6)


def test_who_has_won_everything_is_rated_finite() -> None:
    won = {(0, 1): np.full((1000, 1), 2), (0, 2): np.full((1000, 1), 2), (1, 2): np.full((1000, 1), 1)}
    ratings = rate(won, resamples=20)
    assert np.isfinite(ratings.elo).all()
    assert ratings.elo[0] > 600
    assert ratings.elo[1] == pytest.approx(ratings.elo[2])
    assert ratings.first.tolist() == [1, 0, 0]


def test_draws_count_half() -> None:
    drawn = rate({(0, 1): np.array([[2], [1], [1], [1]])}, resamples=1)
    split = rate({(0, 1): np.array([[2], [2], [0], [1]])}, resamples=1)
    assert drawn.elo == pytest.approx(split.elo)


# ------------------------------------------------------------------------------------------------------------- order


def test_no_order_of_the_games_changes_a_rating_d02() -> None:
    case = CASES["D02"]
    start, k, games = case["input"]["start"], case["input"]["k"], case["input"]["games_between_A_and_B"]

    def one_by_one(results: list[int]) -> list[float]:
        a = b = float(start)
        for result in results:
            change = k * (result - 1 / (1 + 10 ** ((b - a) / 400)))
            a, b = a + change, b - change
        return [round(a, 2), round(b, 2)]

    # The trap is one.
    assert one_by_one(games) == case["expected"]["sequential_win_then_loss"]
    assert one_by_one(games[::-1]) == case["expected"]["sequential_loss_then_win"]
    for order in (games, games[::-1]):
        ratings = rate({(0, 1): 2 * np.array(order)[:, None]}, resamples=1)
        assert (start + ratings.elo).tolist() == pytest.approx(case["expected"]["required"], abs=1e-9)

    rng = np.random.default_rng(2)
    won = {pair: rng.integers(0, 3, size=(40, 2)) for pair in combinations(range(4), 2)}
    elo = rate(won, resamples=1).elo
    for _ in range(5):
        deals = rng.permutation(40)
        pairs = [list(won)[place] for place in rng.permutation(len(won))]
        shuffled = rate({pair: won[pair][deals] for pair in pairs}, resamples=1)
        assert (shuffled.elo == elo).all()


# --------------------------------------------------------------------------------------------------------- intervals


def test_bootstrap_against_a_plain_restatement() -> None:
    """Deals are drawn one by one, for all pairings alike, and each draw is fitted by a general optimiser."""
    rng = np.random.default_rng(3)
    deals, players, resamples = 12, 3, 40
    won = {pair: rng.integers(0, 3, size=(deals, 2)) for pair in combinations(range(players), 2)}
    ratings = rate(won, resamples=resamples, seed=8, anchor=1)

    stream = np.random.default_rng(8)
    draws = [stream.integers(deals, size=deals) for _ in range(resamples)]
    priors = stream.gamma(PRIOR, size=(resamples, players, players))
    found = []
    for drawn, prior in zip(draws, priors, strict=True):
        wins = prior * (1 - np.eye(players))
        for (i, j), results in won.items():
            for deal in drawn:
                for result in results[deal]:
                    wins[i, j] += result / 2
                    wins[j, i] += 1 - result / 2
        elo = fit_slowly(wins)
        found.append(elo - elo[1])
    assert ratings.ci95 == pytest.approx(np.percentile(found, [2.5, 97.5], axis=0).T, abs=0.05)
    assert ratings.first == pytest.approx(np.bincount(np.argmax(found, axis=1), minlength=players) / resamples)
    assert ratings.elo[1] == 0
    assert ratings.ci95[1].tolist() == [0, 0]


@pytest.mark.parametrize("deals", [2, 100])
def test_who_won_everything_has_the_interval_of_a_beta_distribution(deals: int) -> None:
    ratings = rate({(0, 1): np.full((deals, 1), 2)}, resamples=1000)
    share = stats.beta(deals + PRIOR, PRIOR).ppf([0.2, 0.5, 0.8])
    odds = ELO * np.log(share / (1 - share)) / 2
    assert odds[0] < ratings.elo[0] < odds[2]
    low, high = stats.beta(deals + PRIOR, PRIOR).ppf([0.025, 0.975])
    exact = [ELO * np.log(bound / (1 - bound)) / 2 for bound in (low, high)]
    assert ratings.ci95[0] == pytest.approx(exact, abs=0.2 * (exact[1] - exact[0]))


def test_luck_of_the_deal_is_common_to_all_pairings() -> None:
    """Player 0 wins a deal against all or against none: two pairings on it are no more than one."""
    luck = np.random.default_rng(4).integers(0, 2, size=(300, 1)) * 2
    own = np.random.default_rng(5).integers(0, 2, size=(300, 1)) * 2
    common = rate({(0, 1): luck, (0, 2): luck, (1, 2): own}, resamples=300)
    apart = rate({(0, 1): luck, (0, 2): np.random.default_rng(7).permutation(luck), (1, 2): own}, resamples=300)
    assert np.ptp(common.ci95[0]) > 1.2 * np.ptp(apart.ci95[0])


def test_interval_covers_the_truth() -> None:
    rng = np.random.default_rng(6)
    truth = np.array([60.0, 0.0, -60.0])
    covered = []
    for _ in range(24):
        won = {(i, j): 2 * (rng.random((150, 1)) < expected(truth)[i, j]) for i, j in combinations(range(3), 2)}
        ci95 = rate({pair: results.astype(int) for pair, results in won.items()}, resamples=50).ci95
        covered += ((ci95[:, 0] <= truth) & (truth <= ci95[:, 1])).tolist()
    assert 0.85 < np.mean(covered) < 1


def test_one_deal_says_nothing() -> None:
    ratings = rate({(0, 1): np.array([[2, 2]])})
    assert ratings.elo[0] > 0
    assert np.isinf(ratings.ci95).all()


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="different numbers of deals"):
        rate({(0, 1): np.ones((2, 1)), (0, 2): np.ones((3, 1)), (1, 2): np.ones((2, 1))})
    with pytest.raises(ValueError, match="resamples is 0"):
        rate({(0, 1): np.ones((2, 1))}, resamples=0)
