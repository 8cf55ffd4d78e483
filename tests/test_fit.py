"""The fit of the strategist: its games are those of matches, it can be repeated and resumed, and it improves."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.match import play_match
from agents.strategist import DEFAULTS, TERMS
from experiments import fit
from experiments.cli import main
from gin_env.engine import new_tables

SMALL = {"generations": 4, "population": 4, "deals": 3, "seed": 5, "rules": "cardpuzzle", "check_deals": 8}
FITTED = np.array(list(DEFAULTS.values()))


def small(**changes: Any) -> fit.Settings:
    return fit.Settings(**SMALL | changes)


# -------------------------------------------------------------------------------------------------------------- games


@pytest.mark.parametrize("rules", ["cardpuzzle", "eaai"])
def test_its_games_are_those_of_matches(rules: str) -> None:
    opponents = ("greedy", "gin-only", "early-knock", "greedy:knock=5")
    odd = np.where(np.arange(len(TERMS)) % 2, FITTED, FITTED / 2)
    options = ",".join(f"{term}={weight!r}" for term, weight in zip(TERMS, odd.tolist(), strict=True))
    points = fit.play_weights(np.stack([FITTED, odd]), new_tables(rules, 12, seed=3), opponents, rival=odd)
    for row, player in zip(points, ("strategist", f"strategist:{options}"), strict=True):
        for games, opponent in zip(row, (*opponents, f"strategist:{options}"), strict=True):
            match = play_match(agents.make(player), agents.make(opponent), deals=12, seed=3, rules=rules)
            assert (games == match.games).all()


def test_opponents_are_greedy_ones() -> None:
    with pytest.raises(ValueError, match="opponent 'random' is not the greedy player"):
        fit.play_weights(FITTED[None], new_tables("cardpuzzle", 1), ("random",))


# ------------------------------------------------------------------------------------------------------------- search


def stretched(points: np.ndarray) -> np.ndarray:
    """A function with its top, 0, at (1, 2, ..., n), a thousand times steeper along the last axis than the first."""
    n = points.shape[1]
    return -(np.logspace(0, 3, n) * (points - np.arange(1, n + 1)) ** 2).sum(axis=1)


def climb(search: fit.Search, generations: int) -> fit.Search:
    for _ in range(generations):
        points = search.ask(12, np.random.default_rng([1, search.generation]))
        search.tell(points, stretched(points))
    return search


def test_the_search_finds_the_top() -> None:
    search = climb(fit.Search.around(6), 250)
    assert search.mean == pytest.approx(np.arange(1, 7), abs=1e-3)
    assert search.spread < 1e-2
    # It has learned how steep each axis is.
    spreads = np.sqrt(np.diag(search.shape))
    assert 10 < spreads[0] / spreads[-1] < 100


def test_a_written_search_goes_on_as_before() -> None:
    written = json.loads(json.dumps(climb(fit.Search.around(4), 7).to_json()))
    further, straight = climb(fit.Search.from_json(written), 5), climb(fit.Search.around(4), 12)
    assert (further.mean == straight.mean).all()
    assert further.to_json() == straight.to_json()


# ---------------------------------------------------------------------------------------------------------------- fit


def test_a_fit_repeats_itself_and_resumes(tmp_path: Path) -> None:
    straight = fit.fit(small(), tmp_path / "straight.json")
    steps: list[tuple[int, int]] = []

    def stop(finished: int, games: int) -> None:
        steps.append((finished, games))
        if len(steps) == 2:
            raise KeyboardInterrupt

    out = tmp_path / "halves.json"
    with pytest.raises(fit.Interrupted, match="stopped after 2 of 4 generations; the same command goes on"):
        fit.fit(small(), out, progress=stop)
    assert not out.exists()
    halves = fit.fit(small(), out, progress=stop)
    games = 4 * 4 * 3 * 2
    assert steps == [(number * games, 4 * games) for number in (1, 2, 3, 4)]
    assert halves == straight
    assert out.read_bytes() == (tmp_path / "straight.json").read_bytes()
    assert json.loads(out.read_text()) == straight
    assert sorted(path.name for path in tmp_path.iterdir()) == ["halves.json", "straight.json"]


def test_what_a_fit_tells(tmp_path: Path) -> None:
    result = fit.fit(small(), tmp_path / "fit.json")
    assert list(result["weights"]) == list(TERMS)
    assert result["weights"]["loose"] == fit.START["loose"][0]
    moved = [term for term in TERMS if result["weights"][term] != fit.START[term][0]]
    assert moved == [term for term in TERMS if term != "loose"]
    assert [entry["generation"] for entry in result["history"]] == [1, 2, 3, 4]
    assert set(result["history"][0]["points_per_hand"]) == {*fit.OPPONENTS, fit.ITSELF}
    # The check is an ordinary match on the next seed.
    options = ",".join(f"{term}={weight!r}" for term, weight in result["weights"].items())
    match = play_match(agents.make(f"strategist:{options}"), agents.make("early-knock"), deals=8, seed=6)
    told = result["check"]["against"]["early-knock"]
    assert (told["points_per_hand"], tuple(told["ci95"])) == (match.points_per_hand, match.ci95)
    other = fit.fit(small(seed=6), tmp_path / "other.json")
    assert other["weights"] != result["weights"]


def test_a_fit_of_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "fit.json"

    def stop(finished: int, games: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(fit.Interrupted):
        fit.fit(small(), out, progress=stop)
    with pytest.raises(ValueError, match=r"fit.part.json holds an unfinished fit whose deals is 3, here it is 4"):
        fit.fit(small(deals=4), out)
    with monkeypatch.context() as patch:
        patch.setattr(fit, "source_stamp", lambda: "another")
        with pytest.raises(ValueError, match="whose source is .*, here it is another"):
            fit.fit(small(), out)
    longer = fit.fit(small(generations=5, check_deals=9), out)
    assert longer == fit.fit(small(generations=5, check_deals=9), tmp_path / "straight.json")
    with pytest.raises(ValueError, match="fit.json holds a fit; --overwrite"):
        fit.fit(small(), out)
    assert fit.fit(small(deals=4), out, overwrite=True)["deals"] == 4


@pytest.mark.parametrize(("field", "value"), [("generations", 0), ("population", 3), ("deals", 0), ("seed", -1)])
def test_wrong_settings(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{field} is {value}; expected at least"):
        small(**{field: value})


# -------------------------------------------------------------------------------------------------------------- terms


def test_an_ablation_is_a_difference_of_matches() -> None:
    result = fit.ablate(small(check_deals=20))
    assert list(result["terms"]) == list(TERMS)
    assert result["terms"]["loose"]["lost"]["points_per_hand"] > 0
    for term in ("outs", "feed"):
        told = result["terms"][term]
        assert (told["weight"], told["set_to"]) == (DEFAULTS[term], 0)
        lost = {}
        for opponent in fit.OPPONENTS:
            whole, without = (
                play_match(agents.make(name), agents.make(opponent), deals=20, seed=6).points_per_hand
                for name in ("strategist", f"strategist:{term}=0")
            )
            lost[opponent] = whole - without
            assert told["against"][opponent]["points_per_hand"] == pytest.approx(lost[opponent])
        assert told["lost"]["points_per_hand"] == pytest.approx(np.mean(list(lost.values())))
        low, high = told["lost"]["ci95"]
        assert low < told["lost"]["points_per_hand"] < high


def test_a_term_of_weight_0_is_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "StrategistAgent", lambda: agents.make("strategist:outs=0"))
    told = fit.ablate(small(check_deals=2))["terms"]["outs"]
    assert (told["weight"], told["set_to"]) == (0, fit.START["outs"][0])


# ------------------------------------------------------------------------------------------------------------ command


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fit.json"
    words = ["fit", "strategist", "--generations", "1", "--population", "4", "--deals", "2", "--check-deals", "4"]
    assert main([*words, "--out", str(out)]) == 0
    assert "against early-knock" in capsys.readouterr().out
    command = json.loads(out.read_text())["command"]
    assert command.startswith("ginrummy fit strategist --generations 1 --population 4 --deals 2 --seed ")
    assert main([*words, "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    terms = tmp_path / "terms.json"
    assert main(["fit", "strategist", "--ablate", "--check-deals", "4", "--json", "--out", str(terms)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(terms.read_text())
    assert main(["fit", "strategist", "--population", "1", "--out", str(tmp_path / "none.json")]) == 2
    assert not (tmp_path / "none.json").exists()


def test_ctrl_c_at_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "play_weights", pressed)
    assert main(["fit", "strategist", "--out", str(tmp_path / "fit.json")]) == 130
    assert "stopped after 0 of" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
