"""The benchmark of training runs and adds up. No test says how fast anything is."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

import torch

from experiments import bench_train
from experiments.bench_train import bench_train as bench
from experiments.cli import main
from experiments.report import bench_train_table

TINY: dict[str, Any] = {"tables": 4, "horizon": 8, "minibatch": 16, "width": 8, "layers": 1, "seconds": 1e-9}
WORDS = ["bench", "train", *(word for name, value in TINY.items() for word in (f"--{name}", str(value)))]


def check(result: dict[str, Any], rounds: int) -> None:
    for entry in result["entries"]:
        assert len(entry["rounds"]) == rounds
        assert min(entry["rounds"]) > 0
        assert entry["decisions_per_second"] == np.median(entry["rounds"])
        assert entry["per_core_second"] > 0
        assert 0.9 < sum(entry["parts"].values()) < 1.1 or rounds > 1
    assert result["settings"]["minibatch"] == 16
    json.dumps(result, allow_nan=False)
    assert bench_train_table(result).row_count == len(result["entries"])


def without_sb3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sb3_contrib", None)


def test_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    without_sb3(monkeypatch)
    before = torch.get_num_threads()
    lines: list[str] = []
    result = bench(**TINY, rounds=2, progress=lines.append)
    assert torch.get_num_threads() == before
    assert [(entry["library"], entry["opponent"]) for entry in result["entries"]] == [
        ("gin_env", "random"),
        ("gin_env", "self-play"),
    ]
    check(result, 2)
    assert result["ratio"] is result["ratio_per_core"] is None
    assert result["missing"] in lines
    assert 'pip install "gin-env[sb3]"' in result["missing"]
    assert main([*WORDS, "--rounds", "1"]) == 0
    assert 'MaskablePPO is not measured: pip install "gin-env[sb3]"' in capsys.readouterr().out


@pytest.mark.interop
def test_beside_sb3(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sb3_contrib")
    assert main([*WORDS, "--rounds", "1", "--opponent", "greedy", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    check(result, 1)
    ours, peer, self_play = result["entries"]
    assert [entry["library"] for entry in result["entries"]] == ["gin_env", "MaskablePPO", "gin_env"]
    assert (ours["opponent"], peer["opponent"], self_play["opponent"]) == ("greedy", "greedy", "self-play")
    assert ours["parameters"] == peer["parameters"]  # the same network
    assert result["ratio"] == ours["decisions_per_second"] / peer["decisions_per_second"]
    assert result["missing"] is None
    assert main([*WORDS, "--rounds", "1"]) == 0
    assert "times MaskablePPO" in capsys.readouterr().out


def test_a_round_is_whole_updates() -> None:
    config = bench_train.PPOConfig(tables=4, horizon=8, minibatch=16, width=8, layers=1, network="mlp", threads=1)
    loop = bench_train.TrainerLoop(config)
    assert loop.run(1e-9).decisions == loop.trainer.step == 32
    played = loop.run(0.05)
    assert played.decisions % 32 == 0
    assert played.decisions == loop.trainer.step - 32


@pytest.mark.parametrize(
    ("name", "value"), [("tables", 0), ("rounds", 0), ("seconds", 0.0), ("threads", 0), ("minibatch", 1000)]
)
def test_bad_arguments(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is"):
        bench(**TINY | {name: value})


def test_an_unknown_opponent() -> None:
    with pytest.raises(ValueError, match="'nobody' is no agent"):
        bench(**TINY, opponent="nobody")


def test_a_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(
        "tables = 8\nhorizon = 8\nminibatch = 16\nwidth = 8\nlayers = 1\nthreads = 1\n[opponents]\ngreedy = 0.5\n"
    )
    words = ["bench", "train", "--recipe", str(recipe), "--seconds", "1e-9", "--rounds", "2"]
    assert main([*words, "--epochs", "3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    (entry,) = result["entries"]
    assert set(entry["parts"]) == {"network", "opponents", "engine", "learn"}
    assert min(entry["parts"].values()) > 0
    assert result["settings"]["epochs"] == 3
    assert result["settings"]["tables"] == 8
    assert main(words) == 0
    assert f"by the recipe {recipe}" in " ".join(capsys.readouterr().out.split())
    assert main(["bench", "train", "--recipe", "nothing"]) == 2
    assert "there is no recipe 'nothing'" in capsys.readouterr().err


def test_a_recipe_that_overlaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text("tables = 8\nhorizon = 8\nminibatch = 16\nwidth = 8\nlayers = 1\nthreads = 1\noverlap = true\n")
    words = ["bench", "train", "--recipe", str(recipe), "--seconds", "0.05", "--rounds", "2"]
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    (entry,) = result["entries"]
    assert set(entry["parts"]) == {"rollout", "learn"}
    assert 0.3 < sum(entry["parts"].values()) <= 1.001
    assert entry["decisions_per_second"] > 0
    assert result["settings"]["overlap"]


def test_the_parts_of_a_recipe_add_up() -> None:
    config = bench_train.PPOConfig(
        tables=8, horizon=8, minibatch=16, width=8, layers=1, threads=1, opponents={"greedy": 0.5}
    )
    loop = bench_train.RecipeLoop(config)
    loop.run(1e-9)
    played = loop.run(0.05)
    assert sum(played.parts) == pytest.approx(played.seconds, rel=0.2)
    assert min(played.parts) > 0
