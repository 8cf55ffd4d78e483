"""Checkpoints of training runs as agents."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

import torch
from safetensors.torch import load_file, save_file

import agents
import training.checkpoint
from agents import base, neural
from agents.match import play_match
from agents.neural import CheckpointAgent, NeuralAgent
from experiments.cli import main
from gin_env import engine
from gin_env.rules import preset
from gin_env.view import observe
from tests.test_agents import keys, played
from tests.test_cli import NO_TORCH
from tests.test_cli import run as run_command
from tests.test_training import changed
from training.checkpoint import BEST, CHECKPOINT, load_checkpoint, load_network, save_checkpoint
from training.ppo import train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that has learned a little."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    train(changed(total_steps=1024), folder)
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in run.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    return folder


def positions(rules: str = "cardpuzzle") -> tuple[np.ndarray, np.ndarray]:
    t = played(rules, 64, 23)
    return observe(t), engine.legal(t)


def test_names_of_files_are_those_of_training() -> None:
    assert (base.CHECKPOINT, neural.FORMAT) == (training.checkpoint.CHECKPOINT, training.checkpoint.FORMAT)


def test_its_version_says_which_checkpoint_it_is(run: Path, copy: Path) -> None:
    version = agents.make(str(run)).version  # type: ignore[attr-defined]
    assert version.startswith("checkpoint ")
    assert CheckpointAgent(copy).version == version
    tensors = load_file(copy / CHECKPOINT)
    _, header = load_checkpoint(copy / CHECKPOINT)
    save_file({name: tensor + 1 for name, tensor in tensors.items()}, copy / CHECKPOINT, {"header": json.dumps(header)})
    assert CheckpointAgent(copy).version != version


def test_a_run_plays_its_last_checkpoint(run: Path) -> None:
    agent = agents.make(str(run))
    assert isinstance(agent, CheckpointAgent)
    assert isinstance(agent, agents.Agent)
    assert agent.name == "tiny@1024"
    assert agent.rules == preset("cardpuzzle")
    assert not agent.sample
    tensors, header = load_checkpoint(run / CHECKPOINT)
    network = neural.build_network(header["network"]["name"], header["network"]["settings"])
    load_network(network, tensors)
    for rules in ("cardpuzzle", "cardpuzzle:layoffs=manual,defender_melds=manual,target=50"):
        views, masks = positions(rules)
        chosen = agent.act(views, masks, keys(64))
        assert (chosen == NeuralAgent(network).act(views, masks, keys(64))).all()
        assert masks[np.arange(64), chosen].all()
        assert (agent.probabilities(views, masks).argmax(axis=1) == chosen).all()


def test_options(run: Path) -> None:
    views, masks = positions()
    one = np.repeat(views[:1], 400), np.repeat(masks[:1], 400, axis=0)
    sampled = agents.make(f"{run}:sample=1").act(*one, keys(400))
    assert len(set(sampled.tolist())) > 1
    assert len(set(agents.make(f"{run}:sample=0").act(*one, keys(400)).tolist())) == 1
    with pytest.raises(ValueError, match=f"agent '{run}:threads=2': .*threads"):
        agents.make(f"{run}:threads=2")


def test_any_checkpoint_file_plays(copy: Path) -> None:
    tensors, header = load_checkpoint(copy / CHECKPOINT)
    weights = {name: tensor + 0.1 for name, tensor in tensors.items() if name.startswith("network.")}
    save_checkpoint(copy / BEST, weights, header | {"step": 512})
    best = agents.make(f"{copy / BEST}:sample=1")
    assert best.name == "copy@512"
    assert isinstance(best, CheckpointAgent)
    assert best.sample
    last = agents.make(str(copy / CHECKPOINT))
    assert isinstance(last, CheckpointAgent)
    assert last.name == "copy@1024"
    pairs = zip(best.network.parameters(), last.network.parameters(), strict=True)
    assert all(torch.allclose(one, other + 0.1) for one, other in pairs)


def test_a_copy_keeps_its_weights(copy: Path) -> None:
    agent: Any = agents.make(str(copy))
    data = pickle.dumps(agent)
    (copy / CHECKPOINT).unlink()  # the run goes on, say
    again = pickle.loads(data)
    views, masks = positions()
    assert (again.act(views, masks, keys(64)) == agent.act(views, masks, keys(64))).all()


def test_it_plays_in_matches(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = play_match(agents.make(str(run)), agents.make("greedy"), deals=4, rules="cardpuzzle:target=50", match=True)
    assert result.hands >= 8
    assert main(["match", str(run), "random", "--deals", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a"] == "tiny@1024"


def test_other_rules_are_refused(run: Path) -> None:
    says = (
        "run tiny@1024 was trained for rules 'cardpuzzle' with big_gin_bonus=31, and this table plays big_gin_bonus=-1"
    )
    views, masks = positions("luciano")
    with pytest.raises(ValueError, match=says):
        agents.make(str(run)).act(views, masks, keys(64))


# ------------------------------------------------------------------------------------------------------------- errors


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    tensors, header = load_checkpoint(folder / CHECKPOINT)
    change(header)
    save_file(tensors, folder / CHECKPOINT, metadata={"header": json.dumps(header)})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda h: h.update(format=2), "has format 2; expected 1"),
        (lambda h: h.pop("network"), "cannot be played: it lacks 'network'"),
        (lambda h: h["network"].update(name="oracle"), "cannot be played: 'oracle' is no network; expected"),
        (lambda h: h["network"]["settings"].update(depth=3), "cannot be played: network 'suits': .*depth"),
        (lambda h: h["network"]["settings"].update(width=8), "cannot be played: size mismatch"),
        (lambda h: h.update(network=7), "cannot be played: "),
        (lambda h: h.update(step="many"), "cannot be played: invalid literal"),
        (lambda h: h["rules"].update(colour=1), "cannot be played: rules: unknown field 'colour'"),
    ],
)  # fmt: skip
def test_a_checkpoint_that_cannot_be_played(copy: Path, change: Callable[[dict[str, Any]], object], says: str) -> None:
    rewrite(copy, change)
    with pytest.raises(ValueError, match=says) as caught:
        agents.make(str(copy))
    assert str(copy / CHECKPOINT) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", ["cut", "noise", "header"])
def test_a_damaged_checkpoint(copy: Path, damage: str) -> None:
    path = copy / CHECKPOINT
    data = path.read_bytes()
    if damage == "header":
        save_file(load_file(path), path, metadata={"header": "{"})
    else:
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"\xff" * 1000)
    with pytest.raises(ValueError, match=f"checkpoint {path} is damaged: "):
        agents.make(str(copy))


def test_what_is_no_checkpoint(copy: Path, tmp_path: Path) -> None:
    other = tmp_path / "policy.safetensors"
    save_file({"weight": torch.zeros(3)}, other)
    with pytest.raises(ValueError, match="policy.safetensors is no checkpoint of a training run"):
        agents.make(str(other))
    (copy / CHECKPOINT).unlink()
    with pytest.raises(ValueError, match=f"run {copy} has no checkpoint yet"):
        agents.make(str(copy))
    with pytest.raises(ValueError, match="there is no checkpoint"):
        CheckpointAgent(copy)
    with pytest.raises(ValueError, match="is no agent: expected .*, or the folder of .* a training run"):
        agents.make(str(copy / "nothing.safetensors"))


@pytest.mark.parametrize("package", ["torch", "safetensors"])
def test_without_torch_it_says_which_extra(run: Path, package: str) -> None:
    done = run_command("match", str(run), "greedy", code=NO_TORCH.replace("torch", package))
    assert (done.returncode, done.stdout) == (2, "")
    needs = f"playing run {run} needs {package}; install it with: pip install 'gin-env[train]'"
    assert done.stderr == f"ginrummy: {needs}\n"


def test_averaging_over_suits(run: Path) -> None:
    plain, averaged = CheckpointAgent(run), agents.make(f"{run}:average=6")
    views, masks = positions()
    # The network of the run knows suits: nothing changes.
    assert np.allclose(plain.probabilities(views, masks), averaged.probabilities(views, masks), atol=1e-5)
    with pytest.raises(ValueError, match="averaged in 30 ways; expected 1 to 24"):
        agents.make(f"{run}:average=30")
