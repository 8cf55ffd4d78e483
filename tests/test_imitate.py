"""Imitation: whose choices are played and learned, what hands bring, memory, whole runs, and going on with PPO."""

import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

import torch

import agents
import training.ppo
from agents import base
from gin_env import engine
from gin_env.actions import DRAW, NUM_ACTIONS, TAKE
from gin_env.view import VIEW_DTYPE
from training import losses
from training.checkpoint import CHECKPOINT, load_checkpoint
from training.config import ImitateConfig, PPOConfig
from training.folder import load_metrics
from training.imitate import Interrupted, Trainer, train
from training.metrics import GLOSSARY, Stopwatch

# Four updates of 256 positions.
TINY = ImitateConfig(
    total_steps=1024, tables=16, horizon=16, network="mlp", width=16, layers=1, minibatch=64, teacher_share=0.25,
    learning_rate=3e-3, threads=1, eval_every=10**9, eval_deals=4, checkpoint_every=10**9,
)  # fmt: skip


def changed(**fields: Any) -> ImitateConfig:
    return dataclasses.replace(TINY, **fields)


def kept(trainer: Trainer) -> tuple[np.ndarray, np.ndarray]:
    """The views and masks in the memory."""
    views = trainer.positions.views.view(VIEW_DTYPE).reshape(-1)
    return views, trainer.positions.get(np.arange(views.size))[1]


class Doubtful:
    """A teacher that tells probabilities: mostly the stock, sometimes the pile, otherwise all alike."""

    name = "doubtful"

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        raise AssertionError("it is not asked for a choice")

    def probabilities(self, view: np.ndarray, mask: np.ndarray) -> np.ndarray:
        out = mask / mask.sum(axis=1, keepdims=True)
        both = (mask[:, DRAW] == 1) & (mask[:, TAKE] == 1)
        out[both] = 0
        out[both, DRAW], out[both, TAKE] = 0.75, 0.25
        return out


@pytest.fixture
def doubtful() -> Iterator[str]:
    base.register("doubtful")(Doubtful)
    yield "doubtful"
    del base._FACTORIES["gin"]["doubtful"]


# ----------------------------------------------------------------------------------------------------------- labels


def test_the_teacher_labels_every_position() -> None:
    trainer = Trainer(changed(teacher="early-knock"))
    for _ in range(3):
        trainer.play()
        views, masks = kept(trainer)
        wanted = agents.make("early-knock").act(views, masks, np.zeros(views.size, dtype=np.uint64))
        assert trainer.labels.sum() == views.size
        assert (trainer.labels[np.arange(views.size), wanted] == 1).all()
    assert trainer.step == 3 * 256


def test_a_teachers_probabilities_are_the_labels(doubtful: str) -> None:
    trainer = Trainer(changed(teacher=doubtful, teacher_share=1.0))
    for _ in range(3):
        trainer.play()
    views, masks = kept(trainer)
    np.testing.assert_allclose(trainer.labels, Doubtful().probabilities(views, masks), atol=1e-3)
    both = (masks[:, DRAW] == 1) & (masks[:, TAKE] == 1)
    assert both.sum() > 20


@pytest.mark.parametrize(("share", "tables"), [(0.0, []), (0.25, [3, 7, 11, 15]), (0.5, list(range(1, 16, 2)))])
def test_whose_choice_is_played(share: float, tables: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(changed(teacher="greedy", teacher_share=share))
    assert np.flatnonzero(trainer.taught).tolist() == tables
    played = []
    advance = trainer.collector.advance

    def watched(actions: np.ndarray, *others: np.ndarray) -> None:
        played.append(actions.copy())
        advance(actions, *others)

    monkeypatch.setattr(trainer.collector, "advance", watched)
    trainer.play()
    labels = trainer.labels.argmax(axis=1).reshape(16, 16)
    same = (np.array(played) == labels).mean(axis=0)
    assert (same[tables] == 1).all()
    # A new network does not play like greedy.
    assert (np.delete(same, tables) < 1).all()


def test_all_tables_of_a_teacher() -> None:
    assert Trainer(changed(teacher_share=1.0)).taught.all()


def test_returns_are_what_hands_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a hand ended within the batch: the points that the mover's seat won."""
    trainer = Trainer(changed(horizon=120, teacher_share=1.0, points_scale=10.0))
    ends = []
    advance = trainer.collector.advance

    def watched(actions: np.ndarray, *others: np.ndarray) -> None:
        before = trainer.collector.tables["hand_number"].copy()
        advance(actions, *others)
        tables = trainer.collector.tables
        won = np.where(tables["winner"] == 0, tables["points"], -tables["points"])
        ends.append(np.where(tables["hand_number"] > before, np.where(tables["winner"] < 0, 0, won), 10**6))

    monkeypatch.setattr(trainer.collector, "advance", watched)
    trainer.play()
    views, _ = kept(trainer)
    seats, returns = views["seat"].reshape(120, 16), trainer.returns.reshape(120, 16)
    checked = 0
    for table in range(16):
        won = None
        for t in reversed(range(120)):
            if ends[t][table] != 10**6:
                won = ends[t][table]
            if won is not None:
                sign = 1 if seats[t, table] == 0 else -1
                assert returns[t, table] == pytest.approx(sign * won / 10, abs=1e-4)
                checked += 1
    assert checked > 1000
    assert len(set(returns.ravel().tolist())) > 20


# ----------------------------------------------------------------------------------------------------------- losses


def test_imitation_loss_by_hand() -> None:
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    log_probs = torch.tensor([[0.25, 0.75, 1e-30], [1.0, 1e-30, 1e-30]]).log()
    labels = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    wanted = -(0.5 * np.log(0.25) + 0.5 * np.log(0.75)) / 2
    assert losses.imitation_loss(log_probs, labels, mask).item() == pytest.approx(wanted)


def test_probabilities_are_learned(doubtful: str) -> None:
    trainer = Trainer(changed(teacher=doubtful, learning_rate=3e-2, teacher_share=1.0, epochs=8, total_steps=10**6))
    for _ in range(8):
        figures = trainer.update(Stopwatch())
    views, masks = kept(trainer)
    seen, legal = (torch.from_numpy(array) for array in trainer.positions.get(np.arange(views.size)))
    with torch.no_grad():
        policy = trainer.network(seen, legal)[0].softmax(dim=1).numpy()
    both = (masks[:, DRAW] == 1) & (masks[:, TAKE] == 1)
    assert policy[both, DRAW].mean() == pytest.approx(0.75, abs=0.05)
    # No more can be learned than the teacher's own doubt.
    label = trainer.labels.astype(np.float64)
    doubt = -(label * np.log(np.maximum(label, 1e-9))).sum(axis=1).mean()
    assert figures["losses/imitation_loss"] == pytest.approx(doubt, abs=0.1)


def test_smoothing_leaves_some_doubt() -> None:
    mass = []
    for smoothing in (0.0, 0.5):
        trainer = Trainer(
            changed(teacher="greedy", smoothing=smoothing, learning_rate=1e-2, epochs=20, total_steps=10**6)
        )
        for _ in range(3):
            trainer.update(Stopwatch())
        seen, legal = (torch.from_numpy(array) for array in trainer.positions.get(np.arange(256)))
        several = (legal.sum(dim=1) > 2).numpy()
        with torch.no_grad():
            mass.append(trainer.network(seen, legal)[0].softmax(dim=1).amax(dim=1).numpy()[several].mean())
    assert mass[0] > mass[1] + 0.1
    assert mass[1] < 0.7


def test_the_network_learns_to_agree() -> None:
    trainer = Trainer(changed(network="suits", skip=False, teacher="early-knock", epochs=8, total_steps=10**6))
    figures = [trainer.update(Stopwatch()) for _ in range(8)]
    assert figures[-1]["losses/agreement"] > figures[0]["losses/agreement"] + 0.1
    assert figures[-1]["losses/imitation_loss"] < figures[0]["losses/imitation_loss"]


# ----------------------------------------------------------------------------------------------------------- memory


def test_memory_keeps_whole_batches() -> None:
    trainer = Trainer(changed(memory=800, teacher="greedy"))
    assert trainer.memory == 768
    seen = []
    for number in range(5):
        trainer.play()
        place = number % 3 * 256
        seen.append(trainer.positions.views[place : place + 256].copy())
        held = [trainer.positions.views[first : first + 256] for first in range(0, 768, 256)]
        for batch in range(max(number - 2, 0), number + 1):
            assert (held[batch % 3] == seen[batch]).all()


def test_an_update_learns_from_all_that_is_kept_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(changed(memory=768, epochs=2))
    drawn: list[np.ndarray] = []
    get = trainer.positions.get
    monkeypatch.setattr(trainer.positions, "get", lambda rows: (drawn.append(rows), get(rows))[1])
    for updates in range(1, 6):
        drawn.clear()
        trainer.update(Stopwatch())
        counts = np.bincount(np.concatenate(drawn), minlength=min(updates, 3) * 256)
        assert counts.sum() == 512
        assert counts.max() - counts.min() <= 1


# ------------------------------------------------------------------------------------------------------------- runs


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run that nothing disturbed."""
    run = tmp_path_factory.mktemp("runs") / "straight"
    train(TINY, run)
    return run


def timeless(run: Path) -> list[dict[str, float]]:
    return [
        {name: value for name, value in entry.items() if name != "charts/SPS" and not name.startswith("time/")}
        for entry in load_metrics(run)
    ]


def test_metrics(straight: Path) -> None:
    entries = load_metrics(straight)
    assert [entry["step"] for entry in entries] == [256, 512, 768, 1024]
    names = set().union(*entries) - {"step"}
    assert names <= set(GLOSSARY)
    assert {name for name, meaning in GLOSSARY.items() if meaning.startswith("imitation: ")} <= names
    assert all(np.isfinite(list(entry.values())).all() for entry in entries)


@pytest.mark.parametrize(
    "config",
    [
        TINY,
        # Everything that a checkpoint may hold, and a teacher whose choices are random.
        changed(memory=512, epochs=2, opponents={"greedy": 0.25, "past": 0.25}, past_every=300, teacher="random"),
    ],
    ids=["tiny", "full"],
)
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: ImitateConfig
) -> None:
    train(config, tmp_path / "straight")
    update = Trainer.update

    def interrupted(self: Trainer, watch: Stopwatch) -> dict[str, float]:
        if self.step == 512:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, watch)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", interrupted)
        with pytest.raises(Interrupted):
            train(config, run)
    train(config, run)
    assert (run / CHECKPOINT).read_bytes() == (tmp_path / "straight" / CHECKPOINT).read_bytes()
    assert timeless(run) == timeless(tmp_path / "straight")


def test_ppo_goes_on_from_it(straight: Path) -> None:
    tensors, header = load_checkpoint(straight / CHECKPOINT)
    assert header["algorithm"] == "imitate"
    config = PPOConfig(
        tables=4, horizon=4, minibatch=16, network="mlp", width=16, layers=1, threads=1, start_from=str(straight)
    )
    trainer = training.ppo.Trainer(config)
    for name, weight in trainer.network.state_dict().items():
        assert torch.equal(weight, tensors[f"network.{name}"]), name
    trainer.update(Stopwatch())


# ----------------------------------------------------------------------------------------------------------- config


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"teacher_share": 2.0}, "config: teacher_share is 2.0; expected 0 to 1"),
        ({"smoothing": -0.1}, "config: smoothing is -0.1; expected 0 to 1"),
        ({"memory": 100}, "config: memory is 100; expected 0, or at least tables x horizon = 256"),
        ({"minibatch": 257}, "config: minibatch is 257; expected at most tables x horizon x epochs = 256"),
        ({"teacher": 3}, "config: teacher is 3; expected str"),
    ],
)
def test_config_says_what_is_wrong(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ImitateConfig.from_dict({**TINY.to_dict(), **fields})


def test_a_teacher_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'nobody' is no agent"):
        train(changed(teacher="nobody"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_small_batches_for_slow_teachers() -> None:
    trainer = Trainer(changed(tables=2, horizon=1, minibatch=2, memory=64, epochs=8))
    figures = trainer.update(Stopwatch())
    assert (trainer.step, figures["losses/gradient_steps"]) == (2, 8)
    assert engine.legal(trainer.collector.tables).shape == (2, NUM_ACTIONS)
