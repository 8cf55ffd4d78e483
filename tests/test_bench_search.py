"""The curve of the search runs and adds up. No test says how strong or fast anything is."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import agents
from agents.match import play_match
from experiments.bench_search import bench_search
from experiments.cli import main
from experiments.report import bench_search_table, plot_bench_search, print_bench_search

RULES = "cardpuzzle:ranks=8,hand_size=8,knock_limit=6"


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return bench_search(budgets=[0.1], worlds=[4, 16], deals=2, seed=3, rules=RULES)


def test_entries(told: dict[str, Any]) -> None:
    assert [(one["agent"], one["kind"], one["budget"]) for one in told["entries"]] == [
        ("search:ms=0.1:greedy", "ms", 0.1),
        ("search:worlds=4:greedy", "worlds", 4),
        ("search:worlds=16:greedy", "worlds", 16),
    ]
    for one in told["entries"]:
        assert 0 < one["searched"] <= 1
        assert one["ci95"][0] <= one["points_per_hand"] <= one["ci95"][1]
        assert one["milliseconds"] * one["searched"] == pytest.approx(one["milliseconds_per_decision"])
        assert 0 < one["cpu_share"] <= 1
    few, many = told["entries"][1:]
    assert 4 <= few["worlds"] < many["worlds"]
    json.dumps(told, allow_nan=False)


def test_it_is_the_match(told: dict[str, Any]) -> None:
    """A budget in worlds plays as in a match of one's own."""
    players = agents.make("search:worlds=16:greedy"), agents.make("greedy")
    result = play_match(*players, deals=2, seed=3, rules=RULES)
    entry = told["entries"][2]
    assert (entry["points_per_hand"], tuple(entry["ci95"])) == (result.points_per_hand, result.ci95)
    assert (told["base"], told["deck_hash"], told["deals"]) == ("greedy", result.deck_hash, 2)
    assert entry["decisions"] == result.speed[0].decisions


def test_pages(told: dict[str, Any], tmp_path: Path) -> None:
    table = bench_search_table(told)
    assert list(table.columns[0].cells) == ["0.1 ms", "4 worlds", "16 worlds"]
    console = Console(width=100)
    with console.capture() as said:
        print_bench_search(told, console)
    best = max(told["entries"], key=lambda one: one["points_per_hand"])
    assert f"the most: {best['agent']} with {best['points_per_hand']:+z.2f} points a hand" in said.get()
    pytest.importorskip("matplotlib")
    plot_bench_search(told, tmp_path / "deep" / "curve.svg")
    assert "so many worlds" in (tmp_path / "deep" / "curve.svg").read_text()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["curve.svg"]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "search.json"
    words = "bench search --worlds 4 --deals 2 --json --budgets 0.1 --rules " + RULES
    assert main([*words.split(), "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(out.read_text())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--budgets 0", "a budget is 0 ms; expected more than 0"),
        ("--worlds 1", "worlds is 1; expected a whole number, 2 or more"),
        ("--base nobody", "'nobody' is no agent"),
        ("--base search:greedy", "cannot be searched from"),
        ("--deals 1", "deals is 1; expected at least 2"),
        ("--rules whist", "'whist' is no preset"),
        ("--plot curve.xyz", "curve.xyz is no name of a picture; expected one that ends in .png"),
    ],
)
def test_errors(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = ["--deals", "2"] if "--deals" not in words else []
    assert (
        main(["bench", "search", *words.split(), *tiny, *(["--budgets", "0.1"] if "budgets" not in words else [])]) == 2
    )
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert says in said.err
