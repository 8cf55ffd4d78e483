"""The benchmark runs and adds up. No test says how fast anything is."""

import json
from pathlib import Path

import numpy as np
import pytest

from experiments import bench
from experiments.report import bench_table, plot_bench
from gin_env.rules import preset


def check(part: dict[str, object], rounds: int) -> None:
    rates = part["rounds"]
    assert isinstance(rates, list)
    assert len(rates) == rounds
    assert min(rates) > 0
    assert part["decisions_per_second"] == np.median(rates)
    assert part["best"] == max(rates)
    assert part["per_core_second"] > 0  # type: ignore[operator]
    assert 0 < part["cpu_share"] <= 1  # type: ignore[operator]


def test_engine_alone() -> None:
    lines: list[str] = []
    result = bench.bench_engine(tables=4, seconds=0.01, rounds=3, peers=False, progress=lines.append)
    entries = result["entries"]
    assert [(entry["rules"], entry["threads"]) for entry in entries] == [
        (bench.RULES[0], 1),
        (bench.RULES[0], 2),
        *((rules, 1) for rules in bench.RULES[1:]),
    ]
    for entry in entries:
        check(entry, 3)
        if entry["threads"] == 1:
            assert set(entry["kernels"]) == set(bench.KERNELS)
            assert sum(part["share"] for part in entry["kernels"].values()) == pytest.approx(1)
    assert result["ratios"] == {}
    assert result["cpu"]
    assert result["versions"]["numba"]
    assert len(lines) == 4
    json.dumps(result, allow_nan=False)
    assert bench_table(result).row_count == len(bench.RULES) + 1
    assert list(bench_table(result).columns[0].cells)[:3] == [
        "cardpuzzle",
        "cardpuzzle, 2 threads",
        "cardpuzzle, manual",
    ]


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = bench.bench_engine(tables=2, seconds=0.01, rounds=1, rules=["plus20"], threads=1, peers=False)
    plot_bench(result, tmp_path / "deep" / "speed.svg")
    assert "gin_env plus20" in (tmp_path / "deep" / "speed.svg").read_text()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["speed.svg"]
    with pytest.raises(ValueError, match="xyz"):
        plot_bench(result, tmp_path / "speed.xyz")
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


@pytest.mark.interop
@pytest.mark.parametrize(("package", "name"), [("pyspiel", "OpenSpiel"), ("rlcard", "RLCard")])
def test_beside_a_peer(package: str, name: str) -> None:
    pytest.importorskip(package)
    result = bench.bench_engine(tables=4, seconds=0.01, rounds=2, rules=["cardpuzzle"], threads=1)
    entry = next(entry for entry in result["entries"] if entry["library"] == name)
    check(entry, 2)
    assert result["ratios"][name] == (result["entries"][0]["decisions_per_second"] / entry["decisions_per_second"])


def test_the_loop_plays_hand_after_hand() -> None:
    loop = bench.EngineLoop(preset("cardpuzzle"), tables=16, seed=3)
    played = [loop.run(1e-9) for _ in range(300)]
    assert all(one.decisions == 16 for one in played)  # at least a step
    assert (loop.tables["hand_number"] >= 1).all()
    assert loop.observations.any(axis=1).all()
    assert loop.masks.any(axis=1).all()


@pytest.mark.parametrize(("name", "value"), [("tables", 0), ("rounds", 0), ("seconds", 0.0), ("threads", 0)])
def test_bad_arguments(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is"):
        bench.bench_engine(**{name: value})  # type: ignore[arg-type]
