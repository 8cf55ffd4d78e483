"""Ablations: variants of a recipe and what is told of them."""

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

from experiments import ablation
from experiments.report import ablation_table
from training import ppo
from training.config import PPOConfig
from training.folder import load_config

BASE = PPOConfig(
    tables=32, horizon=16, minibatch=256, width=16, layers=1, cards=4, threads=1, opponents={"greedy": 0.25}
)


@pytest.mark.parametrize("name", ablation.VARIANTS)
def test_a_variant_differs_from_the_recipe_in_what_it_says(name: str) -> None:
    config = ablation.variant(BASE, name)
    differing = {field.name for field in dataclasses.fields(config)} - {
        field.name for field in dataclasses.fields(config) if getattr(config, field.name) == getattr(BASE, field.name)
    }
    changes = ablation.VARIANTS[name]
    expected = {"opponents" if change == "past" else change for change in changes} - {"imitate"}
    # A variant may say what the recipe has already.
    assert differing <= expected
    assert differing or not changes or name == "deeper card head"
    if name == "past opponents":
        assert config.opponents == {"greedy": 0.25, "past": 0.2}


def test_unknown_variants_are_refused() -> None:
    with pytest.raises(ValueError, match="'wings' is no variant; expected some of recipe, no card head"):
        ablation.variant(BASE, "wings")


def test_a_small_ablation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "cost", lambda config: 1e-4 if config.cards else 5e-5)
    lines: list[str] = []

    def run() -> dict[str, object]:
        return ablation.ablate(
            BASE,
            names=("recipe", "no card head"),
            seeds=(1, 2),
            minutes=512 * 8 * 1e-4 / 60,
            deals=10,
            folder=tmp_path / "runs",
            progress=lines.append,
        )

    result = run()
    runs = result["runs"]
    assert isinstance(runs, list)
    # Half the price, twice the decisions.
    assert [one["steps"] for one in runs] == [4096, 4096, 8192, 8192]
    assert [one["seed"] for one in runs] == [1, 2, 1, 2]
    assert len(lines) == 4
    for one in runs:
        assert set(one["matches"]) == set(ablation.OPPONENTS)
        assert one["curve"][-1]["step"] == one["steps"]
        assert one["curve"][-1]["minutes"] == pytest.approx(result["minutes"])
    assert runs[0]["mean"] != runs[1]["mean"]
    assert json.loads(json.dumps(result, allow_nan=False))

    # What is there is not trained again.
    monkeypatch.setattr(ppo, "train", None)
    assert run() == result
    assert ablation_table(result).row_count == 2
    ablation.plot(result, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("means", "minutes"),
    [
        ([1, 2, 3], 1.0),
        ([-1, 1, 2], 1.5),
        ([1, -2, 4], 2 + 1 / 3),
        ([-3, -2, 0], 3.0),
        ([1, 2, -0.1], None),
        ([-1, -1, -1], None),
    ],
)
def test_when_a_run_is_level(means: list[float], minutes: float | None) -> None:
    curve = [{"minutes": place + 1.0, "mean": mean} for place, mean in enumerate(means)]
    assert ablation.level(curve) == (minutes if minutes is None else pytest.approx(minutes))


def test_the_cost_of_a_decision() -> None:
    assert 1e-6 < ablation.cost(BASE) < 1e-2


def test_imitation_takes_its_decisions_from_the_same_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "cost", lambda config: 1e-4)
    result = ablation.ablate(
        dataclasses.replace(BASE, minibatch=512),
        names=("imitation instead",),
        seeds=(3,),
        minutes=512 * 8 * 1e-4 / 60,
        deals=5,
        folder=tmp_path,
        progress=lambda line: None,
    )
    (run,) = result["runs"]
    assert run["steps"] == 512 * 8
    assert load_config(tmp_path / "imitation-instead-3-before")["total_steps"] == 512 * 2
    config = load_config(tmp_path / "imitation-instead-3")
    assert config["total_steps"] == 512 * 6
    assert config["start_from"] == str(tmp_path / "imitation-instead-3-before")
    assert run["curve"][-1]["step"] == run["steps"]
