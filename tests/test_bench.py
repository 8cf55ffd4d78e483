"""The benchmark runs and adds up. No test says how fast anything is."""

import json

import numpy as np
import pytest

from experiments import bench
from experiments.report import bench_table, kernel_table
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
    result = bench.bench_engine(tables=4, seconds=0.01, rounds=3, openspiel=False, progress=lines.append)
    check(result["gin_env"], 3)
    assert result["openspiel"] is None
    assert result["ratio"] is None
    assert set(result["gin_env"]["kernels"]) == set(bench.KERNELS)
    assert sum(part["share"] for part in result["gin_env"]["kernels"].values()) == pytest.approx(1)
    assert result["threads"] == 1
    assert result["cpu"]
    assert result["versions"]["numba"]
    assert len(lines) == 4
    json.dumps(result, allow_nan=False)
    assert bench_table(result).row_count == 1
    assert kernel_table(result).row_count == 3


@pytest.mark.interop
def test_beside_openspiel() -> None:
    pytest.importorskip("pyspiel")
    result = bench.bench_engine(tables=4, seconds=0.01, rounds=2)
    check(result["gin_env"], 2)
    check(result["openspiel"], 2)
    assert result["ratio"] == (result["gin_env"]["decisions_per_second"] / result["openspiel"]["decisions_per_second"])
    assert bench_table(result).row_count == 2


def test_the_loop_plays_hand_after_hand() -> None:
    loop = bench.EngineLoop(preset("cardpuzzle"), tables=16, seed=3)
    played = [loop.run(1e-9) for _ in range(300)]
    assert all(one.decisions == 16 for one in played)  # at least a step
    assert (loop.tables["hand_number"] >= 1).all()
    assert loop.observations.any(axis=1).all()
    assert loop.masks.any(axis=1).all()


@pytest.mark.parametrize(("name", "value"), [("tables", 0), ("rounds", 0), ("seconds", 0.0)])
def test_bad_arguments(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is"):
        bench.bench_engine(**{name: value})  # type: ignore[arg-type]
