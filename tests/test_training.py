"""Training runs: config, recipes, exact repeats, checkpoints, resuming, and what ends a run."""

import dataclasses
import json
import os
import signal
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

import torch
from safetensors.torch import load_file, save_file

import agents
import training.checkpoint
import training.ppo
from agents.bundle import WEIGHTS
from agents.games import find_game
from agents.networks import build_network, network_settings
from agents.neural import NeuralAgent
from gin_env import engine
from gin_env.actions import TAKE
from gin_env.rules import preset
from gin_env.tables import OVER
from gin_env.view import observe
from training import losses
from training.advantages import CUT_ENDED
from training.checkpoint import (
    BEST,
    CHECKPOINT,
    CONFIG,
    CheckpointError,
    load_checkpoint,
    load_config,
    load_network,
    save_checkpoint,
)
from training.config import CONFIGS, PAST, PPOConfig, load_recipe
from training.metrics import GLOSSARY, METRICS, Stopwatch
from training.ppo import Interrupted, Trainer, TrainingError, train

ROOT = Path(__file__).resolve().parent.parent
RECIPES = sorted((ROOT / "experiments" / "recipes").glob("*.toml"))

# Six updates of 512 decisions, some hundredths of a second each.
TINY = PPOConfig(
    total_steps=3072,
    tables=32,
    horizon=16,
    opponents={"greedy": 0.25, "random": 0.125},
    width=16,
    layers=1,
    epochs=2,
    minibatch=200,
    learning_rate=1e-2,
    threads=1,
    eval_every=10**9,
    eval_deals=4,
    checkpoint_every=10**9,
)
UPDATE = TINY.tables * TINY.horizon


def changed(**fields: Any) -> PPOConfig:
    return dataclasses.replace(TINY, **fields)


def checkpoint_bytes(run: Path) -> bytes:
    return (run / CHECKPOINT).read_bytes()


def metrics(run: Path) -> list[dict[str, float]]:
    """Returns a run's entries without what depends on the clock."""
    entries = [json.loads(line) for line in (run / METRICS).read_text().splitlines()]
    return [
        {name: value for name, value in entry.items() if name != "charts/SPS" and not name.startswith("time/")}
        for entry in entries
    ]


def at_update(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[Trainer], None]) -> None:
    """Does something to the trainer before it learns from its batch of that number (the first is 1)."""
    learn = Trainer.learn

    def watched(self: Trainer, batch: Any) -> dict[str, float]:
        if self.step == (number - 1) * UPDATE:
            act(self)
        return learn(self, batch)

    monkeypatch.setattr(Trainer, "learn", watched)


def interrupt(trainer: Trainer) -> None:
    os.kill(os.getpid(), signal.SIGINT)


class Crash(Exception):
    """Stands for whatever kills a process."""


def crash(trainer: Trainer) -> None:
    raise Crash


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run that nothing disturbed."""
    run = tmp_path_factory.mktemp("runs") / "straight"
    summary = train(TINY, run)
    assert (summary.run, summary.step) == (run, TINY.total_steps)
    assert summary.evaluation.keys() == {"points_per_hand", "ci95_low", "ci95_high", "win_rate"}
    return run


# ---------------------------------------------------------------------------------------------------------- config


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"tables": 0}, "config: tables is 0; expected at least 1"),
        ({"total_steps": -5}, "config: total_steps is -5; expected at least 1"),
        ({"horizon": 0}, "config: horizon is 0; expected at least 1"),
        ({"threads": 0}, "config: threads is 0; expected at least 1"),
        ({"eval_deals": 1}, "config: eval_deals is 1; expected at least 2, for an interval"),
        ({"learning_rate": 0.0}, "config: learning_rate is 0.0; expected more than 0"),
        ({"learning_rate": float("nan")}, "config: learning_rate is nan; expected more than 0"),
        ({"clip": -0.1}, "config: clip is -0.1; expected more than 0"),
        ({"points_scale": 0}, "config: points_scale is 0.0; expected more than 0"),
        ({"seed": -1}, "config: seed is -1; expected 0 or more"),
        ({"entropy": -0.5}, "config: entropy is -0.5; expected 0 or more"),
        ({"gae_lambda": 1.5}, "config: gae_lambda is 1.5; expected 0 to 1"),
        (
            {"tables": 8, "horizon": 8, "minibatch": 65},
            "minibatch is 65; expected at most the batch, tables x horizon = 64",
        ),
        ({"tables": 8.0}, "config: tables is 8.0; expected int"),
        ({"tables": "8"}, "config: tables is '8'; expected int"),
        ({"tables": True}, "config: tables is True; expected int"),
        ({"rules": 3}, "config: rules is 3; expected str"),
        ({"clip": "high"}, "config: clip is 'high'; expected float"),
        ({"opponents": ["greedy"]}, r"config: opponents is \['greedy'\]; expected a table of agent = share"),
        ({"opponents": {"greedy": 0.7, "random": 0.4}}, "config: opponents is .*; expected shares above 0"),
        ({"opponents": {"greedy": 0.0}}, "config: opponents is .*; expected shares above 0"),
        ({"speed": 3}, "config: unknown field 'speed'; expected some of seed, game, rules, matches"),
    ],
)
def test_config_says_what_is_wrong(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PPOConfig.from_dict(fields)


def test_config_and_back() -> None:
    assert PPOConfig.from_dict(json.loads(json.dumps(TINY.to_dict()))) == TINY
    assert PPOConfig(clip=1).clip == 1.0
    assert type(PPOConfig(clip=1).clip) is float
    assert PPOConfig.from_dict({}) == PPOConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        PPOConfig().seed = 2


def test_every_field_is_described() -> None:
    """Each field has a docstring, of which the command line makes its help."""
    source = (ROOT / "training" / "config.py").read_text()
    for field in dataclasses.fields(PPOConfig):
        declared = source.index(f"    {field.name}: ")
        assert source[declared:].split("\n", 2)[1].lstrip().startswith('"""'), field.name


def test_a_run_needs_rules_and_agents_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'canasta' is no preset"):
        train(changed(rules="canasta"), tmp_path / "run")
    with pytest.raises(ValueError, match="'openspiel' are manual.*expected 'openspiel:.*layoffs=best"):
        train(changed(rules="openspiel"), tmp_path / "run")
    with pytest.raises(ValueError, match="'nobody' is no agent"):
        train(changed(opponents={"nobody": 0.5}), tmp_path / "run")
    with pytest.raises(ValueError, match="'lstm' is no network"):
        train(changed(network="lstm"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --------------------------------------------------------------------------------------------------------- recipes


def test_there_are_recipes() -> None:
    assert "smoke.toml" in [path.name for path in RECIPES]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_can_be_trained_with(path: Path) -> None:
    config = load_recipe(path, CONFIGS[tomllib.loads(path.read_text()).get("algorithm", "ppo")])
    game = find_game(config.game)
    rules = game.as_rules(config.rules)
    for name in config.opponents:
        assert name == PAST or game.make(name).name
    told = {name: getattr(config, name) for name in ("width", "layers", "knock_bias")}
    settings = network_settings(config.network, told | game.network_options(rules), game.name)
    build_network(config.network, settings, game.name)
    # For people: a recipe begins by saying what it is for.
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, r"recipe .*mine\.toml: No such file"),
        ("seed = \n", r"recipe .*mine\.toml is no TOML"),
        ("speed = 3\n", r"recipe .*mine\.toml: config: unknown field 'speed'"),
        ("clip = 0\n", r"recipe .*mine\.toml: config: clip is 0\.0; expected more than 0"),
        ("[opponents]\ngreedy = 2.0\n", r"recipe .*mine\.toml: config: opponents"),
    ],
)
def test_a_recipe_says_what_is_wrong(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "mine.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=says):
        load_recipe(path, PPOConfig)


# --------------------------------------------------------------------------------------------------------- a run


def test_two_runs_are_the_same_to_the_bit(straight: Path, tmp_path: Path) -> None:
    train(TINY, tmp_path / "again")
    assert checkpoint_bytes(tmp_path / "again") == checkpoint_bytes(straight)
    assert metrics(tmp_path / "again") == metrics(straight)


def test_the_seed_changes_the_run(straight: Path, tmp_path: Path) -> None:
    train(changed(seed=2, total_steps=UPDATE), tmp_path / "other")
    assert metrics(tmp_path / "other")[0] != metrics(straight)[0]


def test_a_run_changes_every_weight(straight: Path) -> None:
    tensors, header = load_checkpoint(straight / CHECKPOINT)
    assert header["step"] == TINY.total_steps
    start = dict(Trainer(TINY).network.named_parameters())
    for name, weight in start.items():
        assert not torch.equal(weight, tensors[f"network.{name}"]), name
        assert tensors[f"network.{name}"].isfinite().all()


def test_metrics(straight: Path) -> None:
    entries = metrics(straight)
    assert [entry["step"] for entry in entries] == [UPDATE * number for number in range(1, 7)]
    whole = [json.loads(line) for line in (straight / METRICS).read_text().splitlines()]
    optional = {"losses/critic_loss", "losses/hand_nats", "eval/against_..."}
    others = {name for name, meaning in GLOSSARY.items() if meaning.startswith(("DQN: ", "imitation: ", "Rummy40: "))}
    assert set().union(*whole) - {"step"} == set(GLOSSARY) - optional - others
    assert all(np.isfinite(list(entry.values())).all() for entry in whole)
    seconds = [entry.pop("time/seconds") for entry in whole]
    assert seconds == sorted(seconds)
    assert all(sum(share for name, share in entry.items() if name.startswith("time/")) == pytest.approx(1, abs=1e-4)
               for entry in whole)  # fmt: skip
    for number, entry in enumerate(entries):
        decay = 0.1 + 0.9 * (1 - number / 6)
        assert entry["charts/learning_rate"] == pytest.approx(1e-2 * decay, abs=1e-6)
        assert entry["charts/entropy_weight"] == pytest.approx(0.01 * decay, abs=1e-6)
        assert 0.1 < entry["losses/entropy"] < 2
    # Evaluated once, at the end.
    assert [index for index, entry in enumerate(entries) if "eval/win_rate" in entry] == [5]


def test_evaluations_and_checkpoints_come_when_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    save = Trainer.save
    monkeypatch.setattr(Trainer, "save", lambda self, run: (saved.append(self.step), save(self, run)))
    train(changed(eval_every=2 * UPDATE, checkpoint_every=1500), tmp_path / "run")
    evaluated = [entry["step"] for entry in metrics(tmp_path / "run") if "eval/win_rate" in entry]
    assert evaluated == [2 * UPDATE, 4 * UPDATE, 6 * UPDATE]
    # The first updates at or past 1,500 and 3,000 decisions.
    assert saved == [3 * UPDATE, 6 * UPDATE]


def test_evaluation_and_logging_leave_training_alone(straight: Path, tmp_path: Path) -> None:
    train(changed(eval_every=UPDATE, checkpoint_every=UPDATE), tmp_path / "run")
    assert checkpoint_bytes(tmp_path / "run") == checkpoint_bytes(straight)


def test_the_policy_that_learns_is_the_one_that_played() -> None:
    """Before any gradient the ratio of each decision's probability to the one it was taken with is 1."""
    trainer = Trainer(changed(learning_rate=1e-20, epochs=1))
    figures = trainer.learn(trainer.collector.collect(trainer.policy))
    assert figures["losses/approx_kl"] == pytest.approx(0, abs=1e-6)
    assert figures["losses/clipfrac"] == 0
    # Advantages are centred in each minibatch.
    assert figures["losses/policy_loss"] == pytest.approx(0, abs=1e-5)


def lesson(reward: Callable[[np.ndarray], np.ndarray], **fields: Any) -> tuple[float, float, float]:
    """Lets a new network learn from one batch in which each decision is the whole hand and is paid for itself.

    Args:
        reward: Of the batch's actions.
        fields: Of the config.

    Returns:
        The change of the mean probability of taking a card where that is possible, of the mean value, and of the
        probability of the likeliest action.
    """
    trainer = Trainer(changed(epochs=4, learning_rate=3e-3, **fields))
    batch = trainer.collector.collect(trainer.policy)
    batch.rewards[:] = reward(batch.actions)
    batch.values[:] = 0
    batch.cuts[:] = CUT_ENDED
    observations, masks = (rows.reshape(UPDATE, -1).copy() for rows in (batch.observations, batch.masks))
    offered = masks[:, TAKE] == 1
    assert offered.sum() > 100

    def figures() -> np.ndarray:
        logits, values = trainer.policy(observations, masks, batch.hidden[0])
        policy = np.exp(logits - logits.max(axis=1, keepdims=True))
        policy /= policy.sum(axis=1, keepdims=True)
        return np.array([policy[offered, TAKE].mean(), values.mean(), policy.max(axis=1).mean()])

    before = figures()
    trainer.learn(batch)
    take, value, likeliest = figures() - before
    return float(take), float(value), float(likeliest)


def test_what_pays_becomes_likelier() -> None:
    assert lesson(lambda actions: np.where(actions == TAKE, 1.0, -1.0))[0] > 0.02
    assert lesson(lambda actions: np.where(actions == TAKE, -1.0, 1.0))[0] < -0.02


def test_the_value_moves_to_what_was_won() -> None:
    assert lesson(np.ones_like)[1] > 0.05
    assert lesson(lambda actions: -np.ones_like(actions))[1] < -0.05


def test_entropy_is_rewarded() -> None:
    """Where all actions pay the same, only its weight moves the policy."""
    assert lesson(np.zeros_like, entropy=1.0)[2] < lesson(np.zeros_like, entropy=0.0)[2] - 0.005


@pytest.mark.parametrize("minibatch", [UPDATE - 1, 511, 1])
def test_a_minibatch_of_one_decision(minibatch: int) -> None:
    """What is left over of a batch may be a single decision, whose advantage has no spread."""
    trainer = Trainer(changed(minibatch=minibatch, epochs=1))
    figures = trainer.learn(trainer.collector.collect(trainer.policy))
    assert np.isfinite(list(figures.values())).all()
    assert trainer.step == UPDATE


@pytest.mark.parametrize("rules", ["plus20", "luciano", "rummyplus"])
def test_other_rules_train(tmp_path: Path, rules: str) -> None:
    train(changed(rules=rules, total_steps=2 * UPDATE), tmp_path / "run")
    header = load_checkpoint(tmp_path / "run" / CHECKPOINT)[1]
    assert header["rules"] == preset(rules).to_dict()


@pytest.mark.parametrize("sample", [False, True], ids=["likeliest", "sampled"])
def test_t14_a_loaded_checkpoint_plays_a_thousand_hands(straight: Path, sample: bool) -> None:
    tensors, header = load_checkpoint(straight / CHECKPOINT)
    network = build_network(header["network"]["name"], header["network"]["settings"])
    load_network(network, tensors)
    agent, greedy = NeuralAgent(network, sample=sample), agents.make("greedy")
    t = engine.new_tables("cardpuzzle", 1000, seed=77)
    learner = np.arange(1000) % 2
    for move in range(500):
        rows = np.flatnonzero(t["phase"] != OVER)
        if not rows.size:
            break
        some = t[rows]
        views, masks, keys = observe(some), engine.legal(some), engine.mix_keys(move, rows)
        chosen = agent.act(views, masks, keys)
        assert masks[np.arange(rows.size), chosen].all()
        actions = np.full(1000, engine.NO_ACTION)
        actions[rows] = np.where(some["mover"] == learner[rows], chosen, greedy.act(views, masks, keys))
        engine.step(t, actions)
    assert (t["phase"] == OVER).all()


# -------------------------------------------------------------------------------------------------------- resuming


def test_overlapped_the_first_batch_is_the_same_and_the_next_is_played_by_the_network_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, overlapped = Trainer(TINY), Trainer(changed(overlap=True))
    start = overlapped.policy.copied()
    first = plain.update(Stopwatch())
    assert overlapped.update(Stopwatch()) == {**first, **{name: ANY for name in first if name.startswith("game/")}}
    # Its probabilities are those of the weights before the first update.
    ahead = overlapped.ahead
    assert ahead is not None
    for actor, same in ((start, True), (overlapped.policy, False)):
        logits, _ = actor(ahead.observations[3], ahead.masks[3], ahead.hidden[3])
        log_probs = losses.log_probabilities(torch.from_numpy(logits))
        played = log_probs.gather(1, torch.from_numpy(ahead.actions[3]).unsqueeze(1)).squeeze(1).numpy()
        assert np.allclose(played, ahead.log_probs[3], atol=1e-5) == same


def test_what_is_played_beside_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Trainer(changed(overlap=True))
    trainer.update(Stopwatch())
    monkeypatch.setattr(trainer.collector, "collect", lambda *_: crash(trainer))
    with pytest.raises(Crash):
        trainer.update(Stopwatch())


@pytest.mark.parametrize("number", [1, 2, 5])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    run = tmp_path / "run"
    handlers = [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)]
    with monkeypatch.context() as patch:
        at_update(patch, number, interrupt)
        with pytest.raises(Interrupted, match=f"stopped at step {number * UPDATE:,} of 3,072"):
            train(TINY, run)
    assert [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)] == handlers
    # The update in hand was finished, and what it gave is kept whole.
    assert load_checkpoint(run / CHECKPOINT)[1]["step"] == number * UPDATE
    Trainer(TINY).restore(run)

    summary = train(TINY, run)
    assert summary.step == TINY.total_steps
    assert checkpoint_bytes(run) == checkpoint_bytes(straight)
    assert metrics(run) == metrics(straight)


# All that a checkpoint may hold beyond that.
FULL = dataclasses.replace(
    TINY,
    opponents={"greedy": 0.25, "past": 0.25},
    past_every=1200,
    past_size=2,
    matches=0.25,
    cards=4,
    hand_weight=0.1,
    critic="all",
    kl_stop=0.02,
    eval_every=UPDATE,
    eval_against=("greedy", "gin-only"),
)


@pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "overlapped"])
@pytest.mark.parametrize("number", [1, 4])
def test_a_run_with_everything_goes_on_as_if_it_had_not_been_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, overlap: bool
) -> None:
    full = dataclasses.replace(FULL, overlap=overlap)
    train(full, tmp_path / "straight")
    with monkeypatch.context() as patch:
        at_update(patch, number, interrupt)
        with pytest.raises(Interrupted):
            train(full, tmp_path / "run")
    train(full, tmp_path / "run")
    assert checkpoint_bytes(tmp_path / "run") == checkpoint_bytes(tmp_path / "straight")
    assert metrics(tmp_path / "run") == metrics(tmp_path / "straight")
    entry = metrics(tmp_path / "run")[-1]
    assert {"losses/critic_loss", "losses/hand_nats", "eval/against_gin-only", "eval/mean"} <= set(entry)
    assert 0.4 < entry["losses/hand_nats"] < 0.8
    tensors, header = load_checkpoint(tmp_path / "run" / CHECKPOINT)
    assert header["past"] == 2
    # The past states differ from each other and from the present one.
    weights = [tensors[f"{name}.suit_in.weight"] for name in ("network", "past0", "past1")]
    assert not any(torch.equal(weights[a], weights[b]) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_the_best_state_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    means = iter([1.0, 3.0, 2.0, -1.0, 3.0, 0.0])
    weights: list[torch.Tensor] = []

    def evaluate(self: Trainer) -> dict[str, float]:
        weights.append(self.network.suit_in.weight.clone())
        self.evaluation = {"points_per_hand": 0.0, "ci95_low": 0.0, "ci95_high": 0.0, "win_rate": 0.5}
        return {"eval/mean": next(means)}

    monkeypatch.setattr(Trainer, "evaluate", evaluate)
    train(changed(eval_every=UPDATE), tmp_path / "run")
    tensors, header = load_checkpoint(tmp_path / "run" / BEST)
    assert header["best"] == {"mean": 3.0, "step": 2 * UPDATE}
    assert torch.equal(tensors["network.suit_in.weight"], weights[1])


def test_a_run_may_start_from_another(straight: Path, tmp_path: Path) -> None:
    trainer = Trainer(changed(start_from=str(straight)))
    tensors, _ = load_checkpoint(straight / CHECKPOINT)
    for name, weight in trainer.network.state_dict().items():
        assert torch.equal(weight, tensors[f"network.{name}"]), name
    assert trainer.step == 0
    # The head that guesses the hand is the only one that may be new, or be left behind.
    guessing = Trainer(changed(start_from=str(straight), hand_weight=0.1))
    assert torch.equal(guessing.network.suit_in.weight, tensors["network.suit_in.weight"])
    train(changed(hand_weight=0.1, total_steps=UPDATE), tmp_path / "guessing")
    assert not hasattr(Trainer(changed(start_from=str(tmp_path / "guessing"))).network, "hand_out")
    with pytest.raises(CheckpointError, match="weights do not fit the network"):
        Trainer(changed(start_from=str(straight), width=8))
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        Trainer(changed(start_from=str(tmp_path)))
    # Of an exported bundle the weights alone count.
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    save_file(dict(trainer.network.state_dict()), bundle / WEIGHTS)
    exported = Trainer(changed(start_from=str(bundle), seed=9)).network
    for name, weight in exported.state_dict().items():
        assert torch.equal(weight, tensors[f"network.{name}"]), name
    (bundle / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(CheckpointError, match="is damaged"):
        Trainer(changed(start_from=str(bundle)))


def test_kl_stop_ends_the_passes_early() -> None:
    for stop, steps in ((0.0, 6), (1e-9, 2), (100.0, 6)):
        trainer = Trainer(changed(kl_stop=stop))
        figures = trainer.learn(trainer.collector.collect(trainer.policy))
        # Before the first step there is no distance; after it there is some.
        assert figures["losses/gradient_steps"] == steps


def test_bfloat16_trains_about_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training.ppo, "has_bfloat16", lambda device: True)
    whole, half = (Trainer(changed(bf16=half)) for half in (False, True))
    figures = [trainer.learn(trainer.collector.collect(trainer.policy)) for trainer in (whole, half)]
    assert figures[0]["losses/value_loss"] == pytest.approx(figures[1]["losses/value_loss"], rel=0.05)
    assert figures[0] != figures[1]


def test_bfloat16_is_left_off_where_it_would_crawl(
    straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    train(changed(bf16=True), tmp_path / "run")
    assert "bf16 is left off" in " ".join(capsys.readouterr().err.split())
    assert metrics(tmp_path / "run") == metrics(straight)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    assert Trainer(changed(bf16=True)).bf16
    assert not Trainer(TINY).bf16


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="config: device 'warp' cannot be used"):
        Trainer(changed(device="warp"))


def test_sigterm_stops_a_run_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_update(monkeypatch, 2, lambda trainer: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Interrupted):
        train(TINY, tmp_path / "run")
    assert load_checkpoint(tmp_path / "run" / CHECKPOINT)[1]["step"] == 2 * UPDATE


def test_interrupted_twice_a_run_stops_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(trainer: Trainer) -> None:
        interrupt(trainer)
        interrupt(trainer)

    at_update(monkeypatch, 2, twice)
    with pytest.raises(KeyboardInterrupt):
        train(TINY, tmp_path / "run")
    assert not (tmp_path / "run" / CHECKPOINT).exists()


def test_interrupted_in_the_last_update_a_run_is_done(
    straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_update(monkeypatch, 6, interrupt)
    assert train(TINY, tmp_path / "run").step == TINY.total_steps
    assert checkpoint_bytes(tmp_path / "run") == checkpoint_bytes(straight)


def test_a_run_that_died_goes_on_from_its_checkpoint(
    straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        at_update(patch, 6, crash)
        with pytest.raises(Crash):
            train(changed(checkpoint_every=3 * UPDATE), run)
    # Three updates are lost, and so are their entries; the last line was being written.
    assert load_checkpoint(run / CHECKPOINT)[1]["step"] == 3 * UPDATE
    assert len(metrics(run)) == 5
    with (run / METRICS).open("a") as file:
        file.write('{"step": 1536, "losses/pol')
    train(TINY, run)
    assert checkpoint_bytes(run) == checkpoint_bytes(straight)
    assert metrics(run) == metrics(straight)
    assert _board_steps(run) == [UPDATE * number for number in range(1, 7)]


def _board_steps(run: Path) -> list[int]:
    """Returns the steps that TensorBoard shows."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(run))
    accumulator.Reload()
    return [event.step for event in accumulator.Scalars("losses/entropy")]


def test_a_run_that_died_before_its_first_checkpoint_starts_afresh(
    straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        at_update(patch, 3, crash)
        with pytest.raises(Crash):
            train(TINY, tmp_path / "run")
    train(TINY, tmp_path / "run")
    assert checkpoint_bytes(tmp_path / "run") == checkpoint_bytes(straight)
    assert metrics(tmp_path / "run") == metrics(straight)


def test_a_finished_run_is_left_as_it_is(straight: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = checkpoint_bytes(straight), metrics(straight)
    summary = train(TINY, straight)
    assert summary.step == TINY.total_steps
    assert summary.evaluation == load_checkpoint(straight / CHECKPOINT)[1]["evaluation"]
    assert (checkpoint_bytes(straight), metrics(straight)) == before
    assert "has already reached its 3,072 steps" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"learning_rate": 1e-3}, "learning_rate is 0.01 there and 0.001 here"),
        ({"seed": 9}, "seed is 1 there and 9 here"),
        ({"total_steps": 4096}, "total_steps is 3072 there and 4096 here"),
        ({"opponents": {"greedy": 0.25}}, "opponents is .* there and {'greedy': 0.25} here"),
        ({"rules": "plus20"}, "rules is 'cardpuzzle' there and 'plus20' here"),
    ],
)
def test_another_run_in_the_same_folder_is_refused(straight: Path, fields: dict[str, Any], name: str) -> None:
    before = checkpoint_bytes(straight), metrics(straight)
    with pytest.raises(CheckpointError, match=name):
        train(changed(**fields), straight)
    assert (checkpoint_bytes(straight), metrics(straight)) == before
    assert load_config(straight) == {"algorithm": "ppo", **json.loads(json.dumps(TINY.to_dict()))}


def test_rules_given_as_text_and_as_a_file(tmp_path: Path) -> None:
    train(changed(rules="plus20:oklahoma=true", total_steps=UPDATE), tmp_path / "text")
    header = load_checkpoint(tmp_path / "text" / CHECKPOINT)[1]
    assert header["rules"] == preset("plus20", oklahoma=True).to_dict()
    path, run = tmp_path / "house.toml", tmp_path / "file"
    path.write_text("gin_bonus = 20\n")
    for _ in range(2):  # the second time goes on from the checkpoint
        train(changed(rules=str(path), total_steps=UPDATE), run)
    path.write_text("gin_bonus = 30\n")
    with pytest.raises(CheckpointError, match=r"was trained by other rules than '.*house\.toml' are now"):
        train(changed(rules=str(path), total_steps=UPDATE), run)


def test_overwrite_starts_afresh(straight: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(changed(seed=5, total_steps=8 * UPDATE), run)
    train(TINY, run, overwrite=True)
    assert _board_steps(run) == [UPDATE * number for number in range(1, 7)]
    assert checkpoint_bytes(run) == checkpoint_bytes(straight)
    assert metrics(run) == metrics(straight)
    assert load_config(run) == load_config(straight)


# ------------------------------------------------------------------------------------------------- damage and faults


@pytest.fixture
def run(straight: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be damaged."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in (CONFIG, CHECKPOINT, METRICS):
        (copy / name).write_bytes((straight / name).read_bytes())
    return copy


def refused(run: Path, says: str) -> None:
    """Both readers of a checkpoint refuse it, in one line that names the file."""
    for read in (lambda: train(TINY, run), lambda: Trainer(TINY).restore(run)):
        with pytest.raises(CheckpointError, match=says) as caught:
            read()
        assert "\n" not in str(caught.value)
        assert str(run / CHECKPOINT) in str(caught.value)


@pytest.mark.parametrize("kept", [0, 4, 100, 5000, -1])
def test_a_checkpoint_that_was_cut_off(run: Path, kept: int) -> None:
    (run / CHECKPOINT).write_bytes(checkpoint_bytes(run)[:kept])
    refused(run, "is damaged: ")


def test_a_checkpoint_of_noise(run: Path) -> None:
    (run / CHECKPOINT).write_bytes(np.random.default_rng(0).bytes(4000))
    refused(run, "is damaged: ")


@pytest.mark.parametrize("missing", ["tables", "shuffle"])
def test_a_checkpoint_that_lacks_a_tensor(run: Path, missing: str) -> None:
    tensors, header = load_checkpoint(run / CHECKPOINT)
    del tensors[missing]
    save_checkpoint(run / CHECKPOINT, tensors, header)
    refused(run, f"is damaged: .*{missing}")


@pytest.mark.parametrize("missing", ["step", "tables", "evaluation"])
def test_a_checkpoint_that_lacks_a_number(run: Path, missing: str) -> None:
    tensors, header = load_checkpoint(run / CHECKPOINT)
    del header[missing]
    save_checkpoint(run / CHECKPOINT, tensors, header)
    refused(run, f"is damaged: .*{missing}")


def test_tables_of_another_size(run: Path) -> None:
    tensors, header = load_checkpoint(run / CHECKPOINT)
    tensors["tables"] = tensors["tables"][:-3]
    save_checkpoint(run / CHECKPOINT, tensors, header)
    refused(run, "is damaged: ")


def test_weights_of_another_network(run: Path) -> None:
    tensors, header = load_checkpoint(run / CHECKPOINT)
    tensors["network.suit_in.weight"] = torch.zeros(3, 4)
    save_checkpoint(run / CHECKPOINT, tensors, header)
    with pytest.raises(CheckpointError, match=r"weights do not fit the network: .*suit_in\.weight") as caught:
        train(TINY, run)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_another_format(run: Path) -> None:
    tensors, header = load_checkpoint(run / CHECKPOINT)
    save_checkpoint(run / CHECKPOINT, tensors, {**header, "format": 99})
    refused(run, "has format 99; expected 1")


def test_a_safetensors_file_of_something_else(run: Path) -> None:
    save_file({"a": torch.zeros(3)}, run / CHECKPOINT)
    refused(run, "is damaged: 'header'")


def test_a_missing_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no checkpoint .*checkpoint\.safetensors"):
        Trainer(TINY).restore(tmp_path)
    with pytest.raises(CheckpointError, match=r"holds no run: there is no .*config\.json"):
        load_config(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '"run"', "\xff"])
def test_a_damaged_config(run: Path, text: str) -> None:
    (run / CONFIG).write_bytes(text.encode("latin-1"))
    with pytest.raises(CheckpointError, match=r"config .*config\.json is damaged: ") as caught:
        train(TINY, run)
    assert "\n" not in str(caught.value)


def test_checkpoints_hold_no_pickle(straight: Path) -> None:
    """Eight bytes that say how long the header is, the header as JSON, then numbers."""
    data = checkpoint_bytes(straight)
    length = int.from_bytes(data[:8], "little")
    names = json.loads(data[8 : 8 + length])
    assert {"network.suit_in.weight", "optimizer.0.exp_avg", "tables", "shuffle"} <= set(names)
    assert len(load_file(straight / CHECKPOINT)) == len(names) - 1


@pytest.mark.parametrize("fails", ["save_file", "fsync", "replace"])
def test_an_interrupted_write_leaves_the_old_checkpoint(run: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    before = checkpoint_bytes(run)
    trainer = Trainer(TINY)
    trainer.restore(run)
    trainer.step = 1

    def half(tensors: Any, path: Path, metadata: Any = None) -> None:
        Path(path).write_bytes(before[: len(before) // 2])
        raise OSError(28, "No space left on device")

    def fail(*args: Any) -> None:
        raise OSError(5, "Input/output error")

    if fails == "save_file":
        monkeypatch.setattr(training.checkpoint, "save_file", half)
    else:
        monkeypatch.setattr(training.checkpoint.os, fails, fail)
    with pytest.raises(OSError, match=r"\[Errno"):
        trainer.save(run)
    monkeypatch.undo()
    assert checkpoint_bytes(run) == before
    Trainer(TINY).restore(run)
    # What is left beside it is in nobody's way.
    trainer.save(run)
    assert load_checkpoint(run / CHECKPOINT)[1]["step"] == 1
    assert sorted(path.name for path in run.iterdir()) == sorted([CONFIG, CHECKPOINT, METRICS])


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"

    def spoil(trainer: Trainer) -> None:
        with torch.no_grad():
            trainer.network.value_out[2].bias.fill_(float("nan"))

    at_update(monkeypatch, 3, spoil)
    with pytest.raises(TrainingError, match=r"the loss became nan at step 1,024 .*the last checkpoint is whole"):
        train(changed(checkpoint_every=UPDATE), run)
    tensors, header = load_checkpoint(run / CHECKPOINT)
    assert header["step"] == 2 * UPDATE
    assert all(tensor.isfinite().all() for name, tensor in tensors.items() if name.startswith("network."))


def test_a_gradient_that_is_no_number_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a checkpoint full of NaN could be written before the next loss tells."""
    run = tmp_path / "run"

    def spoil(trainer: Trainer) -> None:
        trainer.network.knock_bias.register_hook(lambda gradient: gradient * float("nan"))

    at_update(monkeypatch, 2, spoil)
    with pytest.raises(TrainingError, match="the gradient became nan at step 512; the last checkpoint is whole"):
        train(changed(checkpoint_every=UPDATE), run)
    assert load_checkpoint(run / CHECKPOINT)[1]["step"] == UPDATE


def test_a_learning_rate_far_too_high_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="Try a lower learning_rate"):
        train(changed(learning_rate=1e30), tmp_path / "run")
