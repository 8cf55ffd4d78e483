"""DQN: its pieces by hand, its targets told again, and whole runs."""

import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

import torch
from scipy import stats

import agents
import training.ppo
from agents.match import play_match
from agents.networks import MASKED, build_network, masked_logits
from agents.neural import NeuralAgent
from gin_env.actions import NUM_ACTIONS, TAKE
from training import losses
from training.advantages import CUT_ENDED, CUT_NONE, CUT_TRUNCATED
from training.checkpoint import CHECKPOINT, load_checkpoint, load_network, save_checkpoint
from training.config import DQNConfig, PPOConfig
from training.dqn import Interrupted, Trainer, TrainingError, train
from training.folder import CheckpointError, load_metrics
from training.metrics import GLOSSARY, Stopwatch

# Four updates of 256 decisions and 8 gradient steps.
TINY = DQNConfig(
    total_steps=1024, tables=16, horizon=16, opponents={"greedy": 0.25}, width=16, layers=1, minibatch=64,
    replay_size=512, replay_ratio=2.0, learn_from=128, n_step=3, target_every=5, learning_rate=3e-3, threads=1,
    eval_every=10**9, eval_deals=4, checkpoint_every=10**9,
)  # fmt: skip


def changed(**fields: Any) -> DQNConfig:
    return dataclasses.replace(TINY, **fields)


def timeless(run: Path) -> list[dict[str, float]]:
    return [
        {name: value for name, value in entry.items() if name != "charts/SPS" and not name.startswith("time/")}
        for entry in load_metrics(run)
    ]


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny run that nothing disturbed."""
    run = tmp_path_factory.mktemp("runs") / "straight"
    train(TINY, run)
    return run


# ------------------------------------------------------------------------------------------------ epsilon and masks


def test_t04_epsilon_greedy_over_legal_actions() -> None:
    q, mask = torch.tensor([[2.0, 1.0, 1.0], [2.0, 1.0, 0.5]]), torch.tensor([[0, 1, 1], [0, 1, 1]])
    got = losses.epsilon_greedy(q, mask, 0.1)
    assert got[0].tolist() == pytest.approx([0, 0.5, 0.5])
    assert got[1].tolist() == pytest.approx([0, 0.95, 0.05])


def test_epsilon_of_nothing_and_of_all() -> None:
    q, mask = torch.tensor([[5.0, 1.0, 3.0, 2.0]]), torch.tensor([[0, 1, 1, 1]])
    assert losses.epsilon_greedy(q, mask, 0.0)[0].tolist() == [0, 0, 1, 0]
    assert losses.epsilon_greedy(q, mask, 1.0)[0].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    # One legal action, however bad.
    assert losses.epsilon_greedy(q - 100, torch.tensor([[0, 1, 0, 0]]), 0.3)[0].tolist() == [0, 1, 0, 0]


def test_a_temperature_lets_near_ties_share() -> None:
    q, mask = torch.tensor([[9.0, 5.0, 4.0, -90.0]]), torch.tensor([[0, 1, 1, 1]])
    e = float(np.e)
    assert losses.epsilon_greedy(q, mask, 0.0, 1.0)[0].tolist() == pytest.approx([0, e / (e + 1), 1 / (e + 1), 0])
    assert losses.epsilon_greedy(q, mask, 0.3, 1e-3)[0].tolist() == pytest.approx([0, 0.8, 0.1, 0.1])
    two = losses.epsilon_greedy(q, mask, 0.3, 2.0)[0].tolist()
    assert two == pytest.approx([0, 0.1 + 0.7 * e**0.5 / (e**0.5 + 1), 0.1 + 0.7 / (e**0.5 + 1), 0.1])


def test_play_explores_by_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is played is drawn from those probabilities: counted over many first decisions."""
    trainer = Trainer(
        changed(tables=4000, replay_size=4000 * 8, learn_from=4000 * 8, epsilon=0.4, temperature=0, opponents={})
    )
    logits = torch.zeros(NUM_ACTIONS)
    logits[TAKE] = 3.0
    monkeypatch.setattr(
        trainer, "forward", lambda seen, legal: (masked_logits(logits.expand(4000, -1), legal), 0, None)
    )
    trainer.play()
    takes = int((trainer.replay.actions[:4000] == TAKE).sum())
    # Pass or take in the upcard offer.
    assert stats.binomtest(takes, 4000, 0.6 + 0.2).pvalue > 1e-3


def test_dueling_values_by_hand() -> None:
    logits = masked_logits(torch.tensor([[3.0, 9.0, 1.0, 7.0]]), torch.tensor([[1, 0, 1, 1]])).requires_grad_()
    values = torch.tensor([0.5], requires_grad=True)
    got = losses.dueling_values(logits, values, 20.0)[0]
    # The best legal action is worth the value, the others less by their distance in points.
    assert got[[0, 2, 3]].tolist() == pytest.approx([0.5 - 4 / 20, 0.5 - 6 / 20, 0.5])
    assert got[1] < MASKED / 30
    assert got.argmax() == logits.argmax()
    got[0].backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1]
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([1 / 20, 0, 0, -1 / 20])


# ---------------------------------------------------------------------------------------------------------- targets


def test_t05_the_next_positions_legal_actions() -> None:
    online, target = torch.tensor([[5.0, 9.0, -2.0]]), torch.tensor([[3.0, 8.0, 4.0]])
    mask_next, mask_now = torch.tensor([[1, 0, 1]]), torch.tensor([[0, 1, 1]])
    r, gamma = torch.tensor([1.0]), torch.tensor([0.9])
    assert losses.double_dqn_targets(r, gamma, online, target, mask_next).tolist() == pytest.approx([3.7])
    # Both from the target network it is the plain maximum.
    assert losses.double_dqn_targets(r, gamma, target, target, mask_next).tolist() == pytest.approx([4.6])
    # What it would be with no mask, or the wrong one.
    assert losses.double_dqn_targets(r, gamma, target, target, torch.ones(1, 3)).tolist() == pytest.approx([8.2])
    assert losses.double_dqn_targets(r, gamma, online, target, mask_now).tolist() == pytest.approx([8.2])


def test_t05_nothing_follows_the_end() -> None:
    q = torch.tensor([[5.0, 9.0, -2.0]])
    for values in (q, torch.full((1, 3), MASKED), torch.full((1, 3), torch.inf)):
        got = losses.double_dqn_targets(torch.tensor([-33.0]), torch.zeros(1), values, values, torch.zeros(1, 3))
        assert got.tolist() == [-33]


def test_the_other_seats_value_counts_with_a_minus() -> None:
    online, target = torch.tensor([[1.0, 2.0]]), torch.tensor([[7.0, 4.0]])
    got = losses.double_dqn_targets(torch.tensor([1.0]), torch.tensor([-0.5]), online, target, torch.ones(1, 2))
    assert got.tolist() == [1 - 0.5 * 4]


@pytest.mark.parametrize("rules", ["cardpuzzle", "cardpuzzle:draw_cap=6"])
def test_targets_told_again(rules: str) -> None:
    """Walks every drawn decision's chain by hand, and asks both networks one position at a time."""
    trainer = Trainer(changed(rules=rules, learn_from=10**6, discount=0.9, points_scale=10.0))
    trainer.update(Stopwatch())
    trainer.update(Stopwatch())
    with torch.no_grad():
        for weight in trainer.target.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)))
    replay, size = trainer.replay, TINY.tables
    draw = replay.draw(300, 1, 0.4)
    got = trainer.targets(draw)

    def value(row: int) -> float:
        seen, legal = (torch.from_numpy(array) for array in replay.positions.get(np.array([row])))
        with torch.no_grad():
            (online, _), (logits, base) = trainer.network(seen, legal), trainer.target(seen, legal)
        best = int(online[0].argmax())
        assert legal[0, best]
        return float(base[0] + (logits[0, best] - logits[0].max()) / 10)

    kinds = set()
    for row, target in zip(draw.rows, got, strict=True):
        total, weight, place, seat, again = 0.0, 1.0, int(row), replay.seats[row], 0
        while again < 3:
            if replay.cuts[place] == CUT_TRUNCATED:
                break
            total += weight * float(replay.rewards[place]) * (1 if replay.seats[place] == seat else -1)
            if replay.cuts[place] == CUT_ENDED:
                weight = 0
                break
            weight, place = 0.9 * weight, (place + size) % replay.cuts.size
            again += replay.seats[place] == seat
        own = replay.seats[place] == seat
        kinds.add((weight > 0, bool(own), int(replay.cuts[place])))
        wanted = total + (weight * value(place) * (1 if own else -1) if weight else 0)
        assert target.item() == pytest.approx(wanted, abs=1e-4)
    # Hands go on and end; the other seat's position never stands for the rest, unless they are cut off there.
    assert {(True, True, CUT_NONE), (False, True, CUT_ENDED)} <= kinds
    assert (True, False, CUT_NONE) not in kinds
    assert ((True, False, CUT_TRUNCATED) in kinds) == ("draw_cap" in rules)


def test_rewards_of_a_hand_reach_both_seats() -> None:
    """In a full replay of self-play with long returns each decision of a finished hand returns what its seat won."""
    trainer = Trainer(changed(opponents={}, n_step=40, replay_size=16 * 120, learn_from=10**6, points_scale=1.0))
    for _ in range(6):
        trainer.update(Stopwatch())
    replay = trainer.replay
    draw = replay.draw(400, 3, 0.0)
    ended = draw.factors == 0
    assert ended.sum() > 50
    for row, follow, won in zip(draw.rows[ended], draw.follow[ended], draw.returns[ended], strict=True):
        sign = 1 if replay.seats[row] == replay.seats[follow] else -1
        assert won == sign * replay.rewards[follow]
    assert len({int(np.sign(won)) for won in draw.returns[ended]}) == 3 or (draw.returns[ended] != 0).any()


# --------------------------------------------------------------------------------------------------------- learning


def lesson(pays: float) -> float:
    """Learns from decisions that are each a whole hand and paid for taking; returns by how much more it is liked."""
    trainer = Trainer(changed(epsilon=0.5, learn_from=256, opponents={}))
    for _ in range(16):
        trainer.play()
    replay = trainer.replay
    replay.rewards[:] = np.where(replay.actions == TAKE, pays, -pays)
    replay.cuts[:] = CUT_ENDED
    seen, legal = (torch.from_numpy(array) for array in replay.positions.get(np.arange(replay.filled)))
    offered = legal[:, TAKE] == 1

    def liking() -> float:
        with torch.no_grad():
            logits, _ = trainer.network(seen, legal)
        others = logits.clone()
        others[:, TAKE] = MASKED
        return float((logits[:, TAKE] - others.amax(dim=1))[offered].mean())

    before = liking()
    for _ in range(40):
        trainer.learn()
    return liking() - before


def test_what_pays_becomes_better() -> None:
    assert lesson(1.0) > 0.5
    assert lesson(-1.0) < -0.5


def test_errors_become_priorities_and_the_loss_falls() -> None:
    trainer = Trainer(changed(opponents={}, learn_from=256))
    for _ in range(16):
        trainer.play()
    # What is to be learned stands still: everybody wins at once.
    trainer.replay.cuts[:] = CUT_ENDED
    trainer.replay.rewards[:] = 1
    first = [trainer.learn()["td_error"] for _ in range(3)]
    assert len(set(trainer.replay.tree.priorities.tolist())) > 50
    for _ in range(60):
        last = trainer.learn()
    assert np.mean(first) > 0.8
    assert last["td_error"] < 0.5


def test_the_target_network_follows() -> None:
    trainer = Trainer(changed(learn_from=128, target_every=3))
    for _ in range(16):
        trainer.play()
    alike = []
    for _ in range(7):
        trainer.learn()
        pairs = zip(trainer.network.parameters(), trainer.target.parameters(), strict=True)
        alike.append(all(torch.equal(a, b) for a, b in pairs))
    assert alike == [False, False, True, False, False, True, False]


def test_gradient_steps_keep_the_ratio() -> None:
    trainer = Trainer(TINY)
    taken = []
    for _ in range(4):
        figures = trainer.update(Stopwatch())
        taken.append(figures["losses/gradient_steps"])
    # Two decisions drawn for each made after the first 128, 64 at a time.
    assert taken == [4, 8, 8, 8]
    assert trainer.gradient_steps == 28
    assert figures["charts/replay"] == 512


# ------------------------------------------------------------------------------------------------------------- runs


def test_metrics(straight: Path) -> None:
    entries = load_metrics(straight)
    assert [entry["step"] for entry in entries] == [256, 512, 768, 1024]
    names = set().union(*entries) - {"step"}
    assert names <= set(GLOSSARY)
    assert {name for name, meaning in GLOSSARY.items() if meaning.startswith("DQN: ")} <= names
    assert all(np.isfinite(list(entry.values())).all() for entry in entries)
    assert [entry["charts/epsilon"] for entry in entries] == pytest.approx([0.0775, 0.055, 0.0325, 0.01])
    assert entries[-1]["charts/importance"] == 1
    assert "eval/points_per_hand" in entries[-1]


def test_two_runs_are_the_same_to_the_bit(straight: Path, tmp_path: Path) -> None:
    train(TINY, tmp_path / "again")
    assert (tmp_path / "again" / CHECKPOINT).read_bytes() == (straight / CHECKPOINT).read_bytes()
    assert timeless(tmp_path / "again") == timeless(straight)


# Everything that a checkpoint may hold.
FULL = changed(opponents={"greedy": 0.25, "past": 0.25}, past_every=300, past_size=2, matches=0.25)


@pytest.mark.parametrize("config", [TINY, FULL], ids=["tiny", "full"])
@pytest.mark.parametrize("number", [1, 3])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: DQNConfig, number: int
) -> None:
    if config is FULL:
        straight = tmp_path / "straight"
        train(config, straight)
    update = Trainer.update

    def interrupted(self: Trainer, watch: Stopwatch) -> dict[str, float]:
        if self.step == (number - 1) * 256:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, watch)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", interrupted)
        with pytest.raises(Interrupted):
            train(config, run)
    train(config, run)
    assert (run / CHECKPOINT).read_bytes() == (straight / CHECKPOINT).read_bytes()
    assert timeless(run) == timeless(straight)


@pytest.mark.parametrize("missing", ["replay.views", "replay.priorities", "target.suit_in.weight", "tables"])
def test_a_checkpoint_that_lacks_a_tensor(straight: Path, tmp_path: Path, missing: str) -> None:
    tensors, header = load_checkpoint(straight / CHECKPOINT)
    del tensors[missing]
    save_checkpoint(tmp_path / CHECKPOINT, tensors, header)
    with pytest.raises(CheckpointError, match="is damaged|do not fit"):
        Trainer(TINY).restore(tmp_path)


def test_a_run_plays_and_is_started_from(straight: Path, tmp_path: Path) -> None:
    tensors, header = load_checkpoint(straight / CHECKPOINT)
    assert header["algorithm"] == "dqn"
    network = build_network(header["network"]["name"], header["network"]["settings"])
    load_network(network, tensors)
    result = play_match(NeuralAgent(network), agents.make("random"), deals=50, seed=3)
    assert result.points_per_hand > 10
    ppo = training.ppo.Trainer(
        PPOConfig(tables=4, horizon=4, minibatch=16, width=16, layers=1, threads=1, start_from=str(straight))
    )
    assert torch.equal(ppo.network.suit_in.weight, tensors["network.suit_in.weight"])


def test_an_exported_run_plays_the_same(straight: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    from training.export import export

    export(straight, tmp_path / "bot", deals=2)
    provenance = json.loads((tmp_path / "bot" / "provenance.json").read_text())
    assert provenance["algorithm"] == "dqn"
    network = Trainer(changed(start_from=str(straight))).network
    result = play_match(agents.make(str(tmp_path / "bot")), NeuralAgent(network), deals=30, seed=1)
    assert result.points_per_hand == 0


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Trainer.play

    def spoil(self: Trainer) -> None:
        play(self)
        if self.step == 320:
            self.replay.rewards[:] = np.nan

    monkeypatch.setattr(Trainer, "play", spoil)
    with pytest.raises(TrainingError, match=r"the loss became nan at step 320 .*Try a lower learning_rate"):
        train(changed(checkpoint_every=256), tmp_path / "run")
    assert load_checkpoint(tmp_path / "run" / CHECKPOINT)[1]["step"] == 256


# ----------------------------------------------------------------------------------------------------------- config


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"n_step": 0}, "config: n_step is 0; expected at least 1"),
        ({"epsilon": 1.5}, "config: epsilon is 1.5; expected 0 to 1"),
        ({"replay_ratio": 0}, "config: replay_ratio is 0.0; expected more than 0"),
        ({"priority": -1.0}, "config: priority is -1.0; expected 0 or more"),
        ({"replay_size": 127}, r"config: replay_size is 127; expected at least \(2 n_step \+ 2\) x tables = 128"),
        ({"learn_from": 127}, r"config: learn_from is 127; expected at least \(2 n_step \+ 2\) x tables = 128"),
        ({"clip": 0.1}, "config: unknown field 'clip'"),
    ],
)
def test_config_says_what_is_wrong(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DQNConfig.from_dict({**TINY.to_dict(), **fields})
