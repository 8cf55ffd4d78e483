"""`ginrummy fuzz`: random rules that can be played, trials that come again, and what is told of a failure."""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from experiments import fuzz
from experiments.cli import main
from experiments.fuzz import AnyRules, Failure, random_rules, trial
from gin_env import Rules, engine, preset
from gin_env.rules import as_rules
from gin_env.testing import Report

ROOT = Path(__file__).resolve().parent.parent


# ------------------------------------------------------------------------------------------------------------- trials


def test_random_rules_are_all_that_can_be_played() -> None:
    """Every field has many values, every word and None occurs, and packs go down to the smallest."""
    drawn = [random_rules(Random(seed)) for seed in range(3000)]
    values: dict[str, set[Any]] = {}
    for rules in drawn:
        assert as_rules(rules.text).fingerprint == rules.fingerprint
        for field, value in rules.to_dict().items():
            values.setdefault(field, set()).add(value)
    assert len({rules.fingerprint for rules in drawn}) > 2500
    for field, expected in {
        "name": {"cardpuzzle", "luciano", "plus20", "rummyplus", "openspiel", "eaai"},
        "ranks": set(range(3, 14)),
        "suits": {1, 2, 3, 4},
        "hand_size": set(range(2, 11)),
        "oklahoma": {True, False},
        "double_spades": {"no", "deadwood", "all"},
        "tie": {"undercut", "nothing"},
        "rediscard": {True, False},
        "first_dealer": {"random", 0, 1},
        "next_dealer": {"alternate", "winner", "same"},
        "stock_floor": set(range(11)),
        "wall": {"dead", "knock"},
        "knocker_melds": {"auto", "manual"},
        "layoffs": {"best", "ascending", "manual"},
        "defender_melds": {"auto", "manual"},
        "knock_limit": {0, 10, 100},
        "big_gin_bonus": {None, 0, 31, 1000},
        "swap_cap": {None, 1, 2},
        "take_cap": {None, 1, 50},
        "draw_cap": {1, 200},
        "target": {None, 1, 100, 1_000_000},
    }.items():
        assert expected <= values[field], field
    assert min(rules.deck_size for rules in drawn) == 6
    ways = Counter((rules.knocker_melds, rules.layoffs, rules.defender_melds) for rules in drawn)
    assert len(ways) == 10  # all combinations but those of "best" and melds by hand
    assert min(ways.values()) > 30


def test_a_trial_is_a_function_of_its_seed() -> None:
    rules, report = trial(12)
    assert (rules, report) == trial(12)
    assert isinstance(report, Report)
    assert report.hands >= fuzz.LEAST_HANDS
    again, same = trial(12, as_rules(rules.text))
    assert again.fingerprint == rules.fingerprint
    assert same == report
    assert trial(13)[0] != rules


def test_trials_go_on_until_the_time_is_over() -> None:
    told: list[fuzz.FuzzResult] = []
    result = fuzz.fuzz(1e-9, 5, progress=told.append)
    assert told == [result]
    assert (result.trials, result.rule_sets, result.failure, result.interrupted) == (1, 1, None, False)
    start = time.perf_counter()
    result = fuzz.fuzz(1 / 60, 5, preset("plus20"))
    assert 1 <= result.seconds <= time.perf_counter() - start
    assert result.rule_sets == 1
    expected = [trial(5 + number, preset("plus20"))[1] for number in range(result.trials)]
    assert result.report.hands == sum(report.hands for report in expected if isinstance(report, Report))
    assert result.hands_per_second == result.report.hands / result.seconds


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("nan"), float("inf")])
def test_times_that_do_not_end_or_begin(minutes: float) -> None:
    with pytest.raises(ValueError, match="minutes is"):
        fuzz.fuzz(minutes, 0)


@pytest.mark.parametrize("seed", [-1, 1 << 62])
def test_seeds_out_of_range(seed: int) -> None:
    with pytest.raises(ValueError, match=r"seed is .*; expected 0 to 2\*\*62 - 1"):
        fuzz.fuzz(1.0, seed)


# ------------------------------------------------------------------------------------------------------- the command


def test_summary(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "new" / "summary.json"
    assert main(["fuzz", "--minutes", "0.001", "--seed", "8", "--json", str(path)]) == 0
    told = capsys.readouterr().out
    data = json.loads(path.read_text())
    assert data["seed"] == 8
    assert data["hands"] == sum(data["endings"].values()) > 0
    assert data["decisions"] == sum(data["phases"].values())
    assert (data["failure"], data["interrupted"]) == (None, False)
    assert told.startswith(f"{data['hands']:,} hands ({data['decisions']:,} decisions), {data['rule_sets']} rule sets")
    assert told.endswith("nothing was wrong\n")
    assert [file.name for file in path.parent.iterdir()] == ["summary.json"]


def test_rules_are_those_given(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[int, Rules | None]] = []

    def note(seed: int, rules: Rules | None = None, game: str = "gin") -> tuple[AnyRules, Report | Failure]:
        played.append((seed, rules))
        return trial(seed, rules)

    monkeypatch.setattr(fuzz, "trial", note)
    assert main(["fuzz", "--minutes", "0.0001", "--seed", "3", "--rules", "plus20:target=none"]) == 0
    assert played[0] == (3, preset("plus20", target=None))
    assert main(["fuzz", "--minutes", "0.0001"]) == 0
    assert main(["fuzz", "--minutes", "0.0001"]) == 0
    (first, none), (second, _) = played[-2:]
    assert none is None
    assert first != second  # without a seed a new one each time
    assert main(["fuzz", "--rules", "poker"]) == 2
    assert "'poker' is no preset" in capsys.readouterr().err


def underpay(tables: Any, actions: Any, **options: Any) -> Any:
    """A step that gives a point too few for a knock."""
    points, over = true_step(tables, actions, **options)
    points -= (points > 0).astype(points.dtype)
    return points, over


true_step = engine.step


def test_failure(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Status 1, and the command that is told fails at once in the same way."""
    path = tmp_path / "summary.json"
    monkeypatch.setattr(engine, "step", underpay)
    assert main(["fuzz", "--minutes", "5", "--seed", "2", "--json", str(path)]) == 1
    told = capsys.readouterr()
    failure = json.loads(path.read_text())["failure"]
    assert set(failure) == {"rules", "seed", "check", "message", "command", "game"}
    assert failure["check"] == "zero sum"
    assert f"FAILED under {failure['rules']} with seed {failure['seed']}\nzero sum: the points" in told.out
    assert told.err.endswith(f"a check failed; see it again with: {failure['command']}\n")
    program, command, *words = shlex.split(failure["command"])
    assert (program, command) == ("ginrummy", "fuzz")
    assert main([command, *words, "--json", str(path)]) == 1
    again = json.loads(path.read_text())
    assert again["trials"] == 1
    assert again["failure"]["check"] == failure["check"]
    first = failure["message"].split("\nrecord: ")[0]
    assert again["failure"]["message"].startswith(first)


def test_a_crash_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def crash(*_: Any, **__: Any) -> None:
        raise IndexError("no such card")

    monkeypatch.setattr(engine, "legal", crash)
    assert main(["fuzz", "--seed", "2"]) == 1
    told = capsys.readouterr()
    assert "IndexError: no such card" in told.out
    assert "Traceback" in told.out
    assert "ginrummy fuzz --rules " in told.err


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Status 130, and the summary of what was done."""
    path = tmp_path / "summary.json"
    expected = trial(2)[1]

    def stop_at_second(seed: int, rules: Rules | None = None, game: str = "gin") -> tuple[AnyRules, Report | Failure]:
        if seed == 3:
            raise KeyboardInterrupt
        return trial(seed, rules)

    monkeypatch.setattr(fuzz, "trial", stop_at_second)
    assert main(["fuzz", "--minutes", "5", "--seed", "2", "--json", str(path)]) == 130
    told = capsys.readouterr()
    assert told.out.endswith("interrupted; nothing was wrong so far\n")
    assert told.err == "ginrummy: interrupted\n"
    data = json.loads(path.read_text())
    assert isinstance(expected, Report)
    assert (data["interrupted"], data["trials"], data["hands"]) == (True, 1, expected.hands)


def test_ctrl_c_inside_a_kernel_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(*args: object, **options: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setitem(fuzz.GAMES, "gin", fuzz.GAMES["gin"]._replace(check_rules=check))
    with pytest.raises(KeyboardInterrupt):
        fuzz.trial(1)


def test_ctrl_c_stops_a_process(tmp_path: Path) -> None:
    """At any moment once trials have begun: here after the first, which a file tells."""
    begun = tmp_path / "begun"
    program = (
        "import sys, pathlib\nfrom experiments import fuzz\nfrom experiments.cli import main\ntrue = fuzz.trial\n"
        "def trial(*args):\n    result = true(*args)\n    pathlib.Path(sys.argv[1]).touch()\n"
        "    return result\nfuzz.trial = trial\nsys.exit(main(['fuzz', '--minutes', '9']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(begun)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where the tests run in the background of a script they have inherited that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        for _ in range(3000):
            if begun.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        # Once more if it comes where Python cannot raise it (in a callback), as a person would.
        for _ in range(12):
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=5)
                break
            except subprocess.TimeoutExpired:
                continue
    finally:
        process.kill()
        out, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert out.endswith("interrupted; nothing was wrong so far\n")
