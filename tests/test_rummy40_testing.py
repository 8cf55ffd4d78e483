"""Conformance checks and fuzzing of Rummy40: what is right passes, what is broken on purpose fails."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from experiments import bench, fuzz
from experiments.cli import main
from gin_env.rummy40 import Rummy40Rules, as_rules, engine, testing, view
from gin_env.rummy40.actions import DISCARD, PLACE
from gin_env.rummy40.engine import IllegalAction
from gin_env.rummy40.spaces import observation_space
from gin_env.rummy40.tables import OVER, PLAY, Tables
from gin_env.rummy40.testing import ConformanceError, Report, check_rules
from tests.test_rummy40_engine import SETTINGS

true_step, true_legal, true_observe = engine.step, engine.legal, view.observe


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_conform(name: str) -> None:
    report = check_rules(SETTINGS[name], hands=30, seed=3, tables=15)
    assert report.hands >= 30
    assert sum(report.endings.values()) == report.hands
    assert sum(report.phases.values()) == report.decisions
    assert set(report.phases) >= {"draw", "take", "discard", "lay", "add"}
    assert ("take-back" in report.phases) == ("penalty" in name)


def test_jokers_of_many_points_conform() -> None:
    assert check_rules("rummy40:joker_points=1000,opening=0", hands=30, tables=15).hands >= 30


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_many_hands_conform(name: str) -> None:
    assert check_rules(SETTINGS[name], hands=20_000, seed=9, tables=2048).decisions > 1_000_000


def after_step(change: Callable[[Tables, np.ndarray, np.ndarray], None]) -> Callable[..., Any]:
    """Returns a step after which something is changed that should not be."""

    def step(tables: Tables, actions: Any, **options: Any) -> Any:
        points, over = true_step(tables, actions, **options)
        change(tables, points, over)
        return points, over

    return step


def lose_a_card(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    tables["hands"][:, 0, 0] &= tables["hands"][:, 0, 0] - np.uint64(1)


def count_wrong(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    tables["num_cards"][tables["draws"] == 9, 0] += 1


def know_too_much(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    tables["known"][tables["draws"] == 9, 0, 0] = np.uint64((1 << 52) - 1)


def stretch_a_meld(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    tables["meld_high"][:, 0] += (tables["meld_low"][:, 0] >= 0) & (
        tables["meld_high"][:, 0] - tables["meld_low"][:, 0] == 2
    )


def forget_places(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    tables["fits"] = 0


def open_early(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    tables["opened"][:, 0] = 1


def pay_too_much(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    points[:, 0] += over > 0


def pay_early(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    points[tables["draws"] == 9] = [1, -1]


def forget_jokers(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    tables["penalties"] -= 25 * tables["final_jokers"]


def win_for_all(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    tables["match_winners"][tables["match_over"], :2] = 1


def never_end(tables: Tables, points: np.ndarray, over: np.ndarray) -> None:
    over[:] = 0


@pytest.mark.parametrize(
    ("change", "check", "message"),
    [
        (lose_a_card, "cards", "are not the cards in play"),
        (count_wrong, "cards", "a hand is not as large as its number says"),
        (know_too_much, "cards", "or known and not held"),
        (stretch_a_meld, "melds", "a meld on the table is none"),
        (forget_places, "melds", "what can be done to the melds is not what they show"),
        (open_early, "melds", "somebody has opened without a meld"),
        (pay_too_much, "results", "the points are not those of the penalties"),
        (pay_early, "moves", "points are won before the hand is over"),
        (forget_jokers, "results", "the penalties are not what is in hand and booked"),
        (win_for_all, "results", "others have won the match"),
        (never_end, "moves", "step and phase disagree"),
    ],
)
def test_broken_steps(monkeypatch: pytest.MonkeyPatch, change: Callable[..., None], check: str, message: str) -> None:
    monkeypatch.setattr(engine, "step", after_step(change))
    with pytest.raises(ConformanceError) as caught:
        check_rules("rummy40:opening=0,limit=100", hands=200, seed=1, tables=16)
    assert (caught.value.check, message in caught.value.problem) == (check, True), str(caught.value)
    assert "check_rules('rummy40:opening=0', hands=200, seed=1, tables=16)" in str(caught.value)


def test_broken_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(tables: Tables, out: np.ndarray | None = None) -> np.ndarray:
        mask = true_legal(tables, out)
        mask[tables["draws"] == 5] = 0
        return mask

    def any_card(tables: Tables, out: np.ndarray | None = None) -> np.ndarray:
        mask = true_legal(tables, out)
        mask[tables["phase"] == PLAY, DISCARD : DISCARD + 53] = 1
        return mask

    def before_opening(tables: Tables, out: np.ndarray | None = None) -> np.ndarray:
        mask = true_legal(tables, out)
        mask[tables["phase"] == PLAY, PLACE] = 1
        return mask

    for broken, message in (
        (none, "the player to move has no legal action"),
        (any_card, "a card that is not held, or the one just taken, may be thrown"),
        (before_opening, "cards may be added before opening"),
    ):
        monkeypatch.setattr(engine, "legal", broken)
        with pytest.raises(ConformanceError, match=message):
            check_rules("rummy40", hands=50)


def test_a_mask_that_is_not_what_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(tables: Tables, out: np.ndarray | None = None) -> np.ndarray:
        mask = true_legal(tables, out)
        mask[:, 1] = 0
        return mask

    monkeypatch.setattr(engine, "legal", some)
    with pytest.raises(ConformanceError) as caught:
        check_rules("rummy40", hands=50)
    assert caught.value.check in ("legal actions", "illegal actions", "views")


def test_illegal_actions_that_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(tables: Tables, actions: Any, **options: Any) -> Any:
        try:
            return true_step(tables, actions, **options)
        except IllegalAction:
            return true_step(tables, np.full(tables.size, -1), **options)

    monkeypatch.setattr(engine, "step", lenient)
    with pytest.raises(ConformanceError, match=r"action -?\d+ is accepted, and the mask forbids it"):
        check_rules("rummy40", hands=50)


def test_views_that_tell_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def peek(tables: Tables, seats: Any = None, out: Any = None) -> Any:
        seen = true_observe(tables, seats, out)
        seen["known"][:, 1] = tables["hands"][np.arange(tables.size), 1 - seen["seat"]]
        return seen

    monkeypatch.setattr(view, "observe", peek)
    with pytest.raises(ConformanceError) as caught:
        check_rules("rummy40", hands=50)
    assert caught.value.check in ("views", "hidden cards")


def test_observations_out_of_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(rules: Rummy40Rules) -> Any:
        space = observation_space(rules)
        space.high[-scalars:] = 0.99
        return space

    scalars = len(view.scalars(2))
    monkeypatch.setattr(testing, "observation_space", narrow)
    with pytest.raises(ConformanceError, match=r"number \d+ of seat \d is 1.0; expected 0.0 to 0.99") as caught:
        check_rules("rummy40", hands=50)
    assert caught.value.check == "observation space"


def test_a_check_comes_again() -> None:
    assert check_rules("rummy40", hands=20, seed=3) == check_rules(as_rules("rummy40"), hands=20, seed=3)
    assert check_rules("rummy40", hands=20, seed=3) != check_rules("rummy40", hands=20, seed=4)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="hands is 0; expected at least 1"):
        check_rules("rummy40", hands=0)
    with pytest.raises(ValueError, match="'gin' is no preset"):
        check_rules("gin")


# ------------------------------------------------------------------------------------------------------------ fuzzing


def test_random_rules_are_all_that_can_be_played() -> None:
    drawn = [fuzz.random_rummy40_rules(Random(seed)) for seed in range(1500)]
    values: dict[str, set[Any]] = {}
    for rules in drawn:
        assert as_rules(rules.text).fingerprint == rules.fingerprint
        for field, value in rules.to_dict().items():
            values.setdefault(field, set()).add(value)
    assert len({rules.fingerprint for rules in drawn}) > 1000
    for field, expected in {
        "seats": {2, 4}, "packs": {None, 1, 2}, "jokers": {None, 0, 1, 2, 3, 4}, "ranks": set(range(3, 14)),
        "suits": {1, 2, 3, 4}, "hand_size": set(range(2, 11)), "opening": {0, 40, 50}, "adding": {None, "own", "any"},
        "wrong_opening": {"masked", "penalty"}, "stealing": {"any", "own", "no"}, "pile": {"anyone", "opened"},
        "rediscard": {True, False}, "first_dealer": {"random", 0, 1}, "limit": {None, 1, 100, 1_000_000},
        "draw_cap": {1, 200}, "joker_points": {0, 25, 1000}, "opening_penalty": {0, 20, 1000},
    }.items():  # fmt: skip
        assert expected <= values[field], field
    assert set(values) == {*Rummy40Rules().to_dict()}


def test_trials_come_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rules, report = fuzz.trial(4, game="rummy40")
    assert (rules, report) == fuzz.trial(4, game="rummy40")
    assert isinstance(report, Report)
    path = tmp_path / "summary.json"
    assert main(["fuzz", "--game", "rummy40", "--minutes", "1e-9", "--seed", "4", "--json", str(path)]) == 0
    data = json.loads(path.read_text())
    assert (data["hands"], data["failure"]) == (report.hands, None)
    assert "decisions: discard" in capsys.readouterr().out


def test_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(engine, "step", after_step(lose_a_card))
    assert main(["fuzz", "--game", "rummy40", "--rules", "rummy40:opening=0", "--seed", "2"]) == 1
    told = capsys.readouterr()
    assert "see it again with: ginrummy fuzz --game rummy40 --rules rummy40:opening=0 --seed 2" in told.err
    assert "record: rummy1 rummy40:opening=0" in told.out


def test_bench() -> None:
    result = bench.bench_engine(tables=4, seconds=0.01, rounds=1, rules=bench.RUMMY40_RULES, threads=1, peers=False)
    labels = [entry["label"] for entry in result["entries"]]
    assert labels == list(bench.RUMMY40_RULES)
    assert all(entry["decisions_per_second"] > 0 for entry in result["entries"])


def test_random_play_comes_to_every_kind_of_move_and_end() -> None:
    total = Counter[str]()
    for text in ("rummy40:opening=0", "rummy40:wrong_opening=penalty,draw_cap=60"):
        report = check_rules(text, hands=100, tables=32)
        total += report.phases + report.endings
    assert set(total) == {*testing.KINDS, "out", "stock", "truncated"}
    assert OVER == 2
