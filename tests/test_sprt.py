"""The sequential test: its errors are what it says, and it decides in the same place however the games are played."""

import json
import math

import numpy as np
import pytest
from rich.console import Console

import agents
from agents.match import play_games
from experiments.cli import main
from experiments.sprt import (
    anytime_half_width,
    fixed_deals,
    llr_bounds,
    log_likelihood_ratio,
    print_sprt,
    sprt,
    sprt_line,
)

ALPHA = BETA = 0.05
LOW, HIGH = llr_bounds(ALPHA, BETA)
CHUNK, LOOKS, RUNS = 100, 100, 2000
CHUNKS = 4000  # different ones


def pair_points(a: str, b: str) -> np.ndarray:
    return play_games(agents.make(a), agents.make(b), deals=1500, seed=3).points.mean(axis=1)


def simulate(points: np.ndarray, mean: float, margin: float, seed: int) -> dict[str, float]:
    """Runs the test many times on deals drawn from some points, moved so that their mean is known."""
    rng = np.random.default_rng(seed)
    points = points - points.mean() + mean
    chunks = points[rng.integers(0, points.size, (CHUNKS, CHUNK))]
    chunks += mean - chunks.mean()
    drawn = rng.integers(0, CHUNKS, (RUNS, LOOKS))
    deals = CHUNK * np.arange(1, LOOKS + 1)
    total, squares = (sums[drawn].cumsum(axis=1) for sums in (chunks.sum(axis=1), (chunks**2).sum(axis=1)))
    llr = log_likelihood_ratio(deals, total, squares, 0, margin)
    crossed = (llr <= LOW) | (llr >= HIGH)
    stop = np.where(crossed.any(axis=1), crossed.argmax(axis=1), LOOKS - 1)
    rows = np.arange(RUNS)
    means = total[rows, stop] / deals[stop]
    sd = np.sqrt(squares[rows, stop] / deals[stop] - means**2)
    return {
        "better": float((llr[rows, stop] >= HIGH).mean()),
        "not better": float((llr[rows, stop] <= LOW).mean()),
        "deals": float(deals[stop].mean()),
        "fixed": fixed_deals(float(points.std()), 0, margin, ALPHA, BETA),
        "bias": float(means.mean() - mean),
        "covered": float((np.abs(means - mean) <= anytime_half_width(deals[stop], sd, CHUNK)).mean()),
        "covered by the plain interval": float((np.abs(means - mean) <= 1.96 * sd / np.sqrt(deals[stop])).mean()),
    }


# Real deals: two styles, one threshold apart (most deals level), and a margin that takes long.
@pytest.mark.parametrize(
    ("a", "b", "margin"), [("greedy", "early-knock", 1.0), ("greedy", "greedy:knock=9", 0.5), ("greedy", "random", 1.0)]
)
def test_errors_are_what_was_asked(a: str, b: str, margin: float) -> None:
    points = pair_points(a, b)
    above = 3 * math.sqrt(ALPHA * (1 - ALPHA) / RUNS)
    level, ahead = simulate(points, 0, margin, 1), simulate(points, margin, margin, 2)
    assert level["better"] <= ALPHA + above
    assert ahead["not better"] <= BETA + above
    assert level["better"] + level["not better"] > 0.98  # it decides
    # Where nobody can be wrong by much it is shorter, and beyond the claims it errs less.
    assert max(level["deals"], ahead["deals"]) < 0.8 * level["fixed"]
    assert simulate(points, -margin, margin, 3)["better"] < 0.01


def test_it_can_tell_error_rates_apart() -> None:
    """Half the claimed distance is too hard for the bounds: the simulation would notice wrong ones."""
    points = pair_points("greedy", "early-knock")
    assert 0.3 < simulate(points, 0.5, 1.0, 4)["better"] < 0.7


def test_the_interval_holds_where_it_stops_and_the_mean_is_biased() -> None:
    points = pair_points("greedy", "early-knock")
    level = simulate(points, 0, 0.5, 5)
    assert level["covered"] > 0.95
    assert level["covered by the plain interval"] < 0.945
    assert level["bias"] < -0.05
    assert simulate(points, 0.5, 0.5, 6)["bias"] > 0.05


def test_log_likelihood_ratio_is_that_of_normal_data() -> None:
    points = np.random.default_rng(7).normal(0.3, 4, 500)
    variance = points.var()
    told = log_likelihood_ratio(points.size, points.sum(), (points**2).sum(), 0.1, 0.6)
    by_density = (((points - 0.1) ** 2 - (points - 0.6) ** 2) / (2 * variance)).sum()
    assert told == pytest.approx(by_density)


def test_a_fixed_test_of_that_size_has_these_errors() -> None:
    deals = fixed_deals(8, 0, 0.5, 0.05, 0.05)
    # The edges are 2 * 1.645 standard errors apart.
    assert 0.5 / (8 / math.sqrt(deals)) == pytest.approx(2 * 1.6449, abs=1e-3)
    assert fixed_deals(8, 0, 1, 0.05, 0.05) == pytest.approx(deals / 4, abs=1)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("gin-only", "greedy", "better"), ("greedy", "gin-only", "not better"), ("early-knock", "gin-only", "better")],
)
def test_decisions(a: str, b: str, expected: str) -> None:
    players = agents.make(a), agents.make(b)
    result = sprt(*players, seed=1)
    assert result.decision == expected
    assert result == sprt(*players, seed=1, batch=64)
    assert result.saved == result.fixed_deals - result.deals > 0
    # The same from the games of all these deals at once: no chunk before the last one decides.
    sums = play_games(*players, deals=result.deals, seed=1).points.mean(axis=1)
    assert result.points_per_hand == pytest.approx(sums.mean())
    assert result.sd == pytest.approx(sums.std(ddof=1))
    ends = np.arange(result.chunk, result.deals + 1, result.chunk)
    llr = [log_likelihood_ratio(end, sums[:end].sum(), (sums[:end] ** 2).sum(), 0, 0.5) for end in ends]
    assert result.llr == pytest.approx(llr[-1])
    assert all(LOW < one < HIGH for one in llr[:-1])
    assert result.llr >= HIGH if expected == "better" else result.llr <= LOW
    assert result.ci95[0] < result.points_per_hand < result.ci95[1]


def test_a_player_is_not_better_than_itself() -> None:
    result = sprt(agents.make("greedy"), agents.make("greedy"))
    assert (result.decision, result.deals, result.llr) == ("not better", 100, -math.inf)
    assert result.to_json()["llr"] is None


def test_it_gives_up() -> None:
    seen = []
    result = sprt(
        agents.make("early-knock"),
        agents.make("gin-only"),
        margin=0.01,
        max_deals=120,
        progress=lambda deals, llr: seen.append(deals),
    )
    assert (result.decision, result.deals, result.saved) == (None, 120, None)
    assert seen == [100, 120]
    assert "undecided" in sprt_line(result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0.0}, "margin is 0.0"),
        ({"margin": math.nan}, "margin is nan"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"beta": 0.5}, "beta is 0.5"),
        ({"chunk": 10}, "chunk is 10"),
        ({"max_deals": 99}, "max_deals is 99"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_arguments(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sprt(agents.make("greedy"), agents.make("random"), **options)


def test_command(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    path = tmp_path / "sprt.json"
    assert main(["sprt", "gin-only", "greedy", "--seed", "1", "--json", "--out", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(path.read_text())
    assert told["decision"] == "better"
    assert main(["sprt", "gin-only", "greedy", "--seed", "1"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("gin-only is better than greedy (more than 0 points a hand, error at most 5%)")
    assert f"decided after {told['deals']:,} deals" in last
    assert main(["sprt", "greedy", "greedy", "--margin", "0"]) == 2


def test_print_of_forfeits() -> None:
    class Stuck:
        name = "stuck"

        def act(self, view, mask, rng):
            return np.full(view.size, -1)

    result = sprt(Stuck(), agents.make("greedy"), max_deals=100)
    assert result.forfeits == (200, 0)
    console = Console(record=True, width=120)
    print_sprt(result, console)
    assert "200 and 0" in console.export_text()
