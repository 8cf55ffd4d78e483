"""Training Rummy40: its network, rollouts told again by plain replay, runs that go on to the bit, bundles."""

import dataclasses
import json
import os
import signal
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

import torch

import agents
import training.dqn
import training.imitate
from agents.games import GIN, find_game
from agents.match40 import play_match
from agents.networks import MASKED, MeldNet, build_network, count_parameters, network_settings
from agents.neural import NeuralAgent
from gin_env.cards import NUM_CARDS
from gin_env.rummy40 import engine, preset
from gin_env.rummy40.actions import DISCARD, LAY, NUM_ACTIONS, PLACE, STEAL_SET, TAKE, action_name, parse_action
from gin_env.rummy40.cards import JOKER
from gin_env.rummy40.rules import Rummy40Rules
from gin_env.rummy40.tables import DRAW_ANY, TRUNCATED, Tables
from gin_env.rummy40.view import look, observe, planes
from tests.test_agents import keys
from training.advantages import CUT_ENDED, CUT_NONE, CUT_TRUNCATED
from training.checkpoint import CHECKPOINT, CheckpointError, load_checkpoint
from training.config import DQNConfig, ImitateConfig, PPOConfig
from training.ppo import Interrupted, Trainer, train
from training.rollout import Batch, Collector

GAME = find_game("rummy40")
TWO, FOUR = preset("rummy40"), preset("rummy40", seats=4)
# Hands of some twenty draws, of which many are cut off.
SHORT = preset("rummy40", hand_size=5, jokers=2, opening=0, draw_cap=24)
SHORT_FOUR = dataclasses.replace(SHORT, seats=4, draw_cap=24)
SCALE = 20.0

TINY = PPOConfig(
    game="rummy40",
    total_steps=1536,
    tables=16,
    horizon=24,
    opponents={"greedy": 0.25, "past": 0.25},
    past_every=500,
    width=8,
    layers=1,
    cards=2,
    minibatch=100,
    learning_rate=1e-2,
    threads=1,
    eval_every=10**9,
    eval_deals=2,
    eval_against=("random",),
    checkpoint_every=10**9,
)
UPDATE = TINY.tables * TINY.horizon


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def network(rules: Rummy40Rules, noise: float = 0.0, **settings: Any) -> MeldNet:
    """Returns a network as training starts with it, or one whose weights have learned something arbitrary."""
    torch.manual_seed(0)
    options = {"width": 16, "layers": 1, **GAME.network_options(rules), **settings}
    net = build_network("suits", options, "rummy40")
    assert isinstance(net, MeldNet)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += noise * torch.randn(parameter.shape)
    return net


def positions(rules: Rummy40Rules, size: int = 128, moves: int = 60) -> Tables:
    """Tables at different depths of greedy play."""
    tables = engine.new_tables(rules, size, seed=3)
    player = agents.make("greedy", game="rummy40")
    for move in range(moves):
        actions = player.act(observe(tables), engine.legal(tables), keys(size, seed=move))
        actions[move >= np.arange(size) % moves] = engine.NO_ACTION
        engine.step(tables, actions, redeal=True)
    return tables


# --------------------------------------------------------------------------------------------------------- network


def renamed(card: int, suits: tuple[int, ...]) -> int:
    return card if card == JOKER else suits[card // 13] * 13 + card % 13


def renamed_action(action: int, suits: tuple[int, ...]) -> int:
    """The same action after the suits have been renamed."""
    if DISCARD <= action < LAY:
        return DISCARD + renamed(action - DISCARD, suits)
    if action >= PLACE:
        block, card = divmod(action - PLACE, NUM_CARDS)
        return PLACE + block * NUM_CARDS + renamed(card, suits)
    if action < DISCARD:
        return action
    names = {suit: "SHDC"[suits["SHDC".index(suit)]] for suit in "SHDC"}
    cards = [card if card == "JK" else card[:-1] + names[card[-1]] for card in action_name(action).split()[1:]]
    return parse_action(f"lay {' '.join(cards)}")


@pytest.mark.parametrize("rules", [TWO, FOUR], ids=lambda rules: rules.text)
@pytest.mark.parametrize("cards", [0, 3])
def test_suits_are_alike(rules: Rummy40Rules, cards: int) -> None:
    net = network(rules, noise=0.3, cards=cards)
    observations, masks = look(positions(rules, 48))
    logits, values = (part.detach().numpy() for part in net(torch.from_numpy(observations), torch.from_numpy(masks)))
    count = len(planes(rules.seats))
    for suits in list(permutations(range(4)))[1::7]:
        moved = observations.copy()
        shape = (-1, count, 4, 13)
        moved[:, : count * NUM_CARDS].reshape(shape)[:, :, list(suits)] = observations[:, : count * NUM_CARDS].reshape(
            shape
        )
        actions = np.array([renamed_action(action, suits) for action in range(masks.shape[1])])
        assert (np.sort(actions) == np.arange(masks.shape[1])).all()
        legal = np.zeros_like(masks)
        legal[:, actions] = masks
        theirs, worth = (part.detach().numpy() for part in net(torch.from_numpy(moved), torch.from_numpy(legal)))
        np.testing.assert_allclose(theirs[:, actions], logits, atol=2e-4)
        np.testing.assert_allclose(worth, values, atol=2e-4)


@pytest.mark.parametrize("rules", [TWO, FOUR], ids=lambda rules: rules.text)
def test_shapes_and_masks(rules: Rummy40Rules) -> None:
    net = network(rules, noise=0.1, cards=2)
    observations, masks = look(positions(rules, 32))
    masks[3] = 0
    logits, values = net(torch.from_numpy(observations), torch.from_numpy(masks))
    assert logits.shape == (32, rules.num_actions) == masks.shape
    assert values.shape == (32,)
    assert ((logits == MASKED).numpy() == (masks == 0)).all()
    assert torch.isfinite(logits).all()
    assert build_network("suits", net.settings, "rummy40").settings == net.settings


def test_it_begins_by_laying_and_by_taking_what_makes_a_meld() -> None:
    tables = positions(TWO, 256)
    views, masks = observe(tables), engine.legal(tables)
    actions = NeuralAgent(network(TWO), game=GAME).act(views, masks, keys(256))
    assert masks[np.arange(256), actions].all()
    can_lay = (masks[:, LAY : PLACE + STEAL_SET * NUM_CARDS] != 0).any(axis=1)
    assert can_lay.sum() > 10
    assert (actions[can_lay] >= LAY).all()
    drawing = views["phase"] == DRAW_ANY
    upcards = views["upcard"][drawing]
    takes = actions[drawing] == TAKE
    hands = [{card for card in range(NUM_CARDS) if int(hand) >> card & 1} for hand in views["hand"][drawing, 0]]
    fits = views["fits"][drawing]
    assert 5 < takes.sum() < takes.size
    for upcard, take, hand, places in zip(upcards.tolist(), takes, hands, fits, strict=True):
        if upcard == JOKER:
            continue
        ranks = sum(card % 13 == upcard % 13 for card in hand)
        near = [
            upcard + step in hand and (upcard + step) // 13 == upcard // 13 and upcard + step >= 0
            for step in (-2, -1, 1, 2)
        ]
        melds = ranks >= 2 or (near[0] and near[1]) or (near[1] and near[2]) or (near[2] and near[3])
        added = any(int(place) >> upcard & 1 for place in places[:3])
        assert take == (melds or added), upcard


def test_networks_of_each_game() -> None:
    options = {"width": 8, "layers": 1, "seats": 4, "packs": 2, "knock_bias": -1.0}
    assert network_settings("suits", options, "rummy40") == {"width": 8, "layers": 1, "seats": 4, "packs": 2}
    assert network_settings("suits", options) == {"width": 8, "layers": 1, "knock_bias": -1.0}
    with pytest.raises(ValueError, match="'mlp' is no network of rummy40; expected one of suits"):
        build_network("mlp", {}, "rummy40")
    assert count_parameters(network(FOUR)) > count_parameters(network(TWO))
    with pytest.raises(ValueError, match="'chess' is no game; expected one of gin, rummy40"):
        find_game("chess")


# -------------------------------------------------------------------------------------------------------- rollouts


def lively(observations: np.ndarray, masks: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A policy that lays what it can and otherwise does anything. Each row by itself, to the bit."""
    logits = np.zeros(masks.shape, dtype=np.float32)
    logits[:, LAY:] = 3
    logits[:, DISCARD:LAY] = np.arange(LAY - DISCARD) % 5
    return logits, observations[:, :NUM_CARDS].sum(axis=1, dtype=np.float32)


@pytest.mark.parametrize("shares", [{}, {"greedy": 0.5}], ids=["self-play", "opponents"])
@pytest.mark.parametrize("rules", [TWO, FOUR, SHORT, SHORT_FOUR], ids=lambda rules: rules.text)
def test_rollouts_replayed(rules: Rummy40Rules, shares: dict[str, float]) -> None:
    """Plays the collector's tables again, one at a time; each hand is owed to the decision of the learner before it."""
    size, horizon = 12, 120
    collector = Collector(rules, size, horizon, shares, seed=5, points_scale=SCALE, game=GAME)
    greedy = agents.make("greedy", game="rummy40")
    start = collector.tables.copy()
    batch = Batch(*(array.copy() for array in collector.collect(lively)))
    assert batch.won.shape == (horizon, size, rules.seats)
    cuts_seen = set()
    for i in range(size):
        table = start[i : i + 1].copy()
        meets_greedy = bool(shares) and i < size // 2
        for t in range(horizon):
            observation, mask = look(table)
            assert (batch.observations[t, i] == observation[0]).all()
            assert (batch.masks[t, i] == mask[0]).all()
            seat = int(table["mover"][0])
            assert batch.seats[t, i] == seat
            assert not meets_greedy or seat == 0
            won, cut = np.zeros(rules.seats), CUT_NONE
            action = int(batch.actions[t, i])
            while True:
                points, over = engine.step(table, [action], redeal=True)
                if over[0] and cut == CUT_NONE:
                    cut = CUT_TRUNCATED if table["ending"][0] == TRUNCATED else CUT_ENDED
                    won = points[0] / SCALE
                if not meets_greedy or table["mover"][0] == 0:
                    break
                action = int(greedy.act(observe(table), engine.legal(table), keys(1))[0])
            assert batch.won[t, i] == pytest.approx(won, abs=1e-6)
            assert batch.rewards[t, i] == batch.won[t, i, seat]
            assert batch.cuts[t, i] == cut
            cuts_seen.add(cut)
        assert (table == collector.tables[i : i + 1]).all()
    assert cuts_seen >= {CUT_NONE, CUT_TRUNCATED if rules in (SHORT, SHORT_FOUR) else CUT_ENDED}
    assert np.abs(batch.won.sum(axis=2)).max() < 1e-5
    assert set(np.unique(batch.seats)) == set(range(rules.seats))
    rates = collector.statistics()
    assert rates["out_rate"] + rates["stock_rate"] + rates["truncated_rate"] == pytest.approx(1)


# ------------------------------------------------------------------------------------------------------------ runs


def config(rules: Rummy40Rules, **fields: Any) -> PPOConfig:
    return dataclasses.replace(TINY, rules=rules.text, **fields)


@pytest.mark.parametrize("rules", [TWO, FOUR], ids=lambda rules: rules.text)
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(
    rules: Rummy40Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(config(rules), tmp_path / "straight")
    learn = Trainer.learn

    def interrupting(self: Trainer, batch: Any) -> dict[str, float]:
        if self.step == 2 * UPDATE:
            os.kill(os.getpid(), signal.SIGINT)
        return learn(self, batch)

    monkeypatch.setattr(Trainer, "learn", interrupting)
    with pytest.raises(Interrupted, match="stopped at step 1,152 of 1,536"):
        train(config(rules), tmp_path / "broken")
    monkeypatch.setattr(Trainer, "learn", learn)
    train(config(rules), tmp_path / "broken")
    assert (tmp_path / "broken" / CHECKPOINT).read_bytes() == (tmp_path / "straight" / CHECKPOINT).read_bytes()
    tensors, header = load_checkpoint(tmp_path / "straight" / CHECKPOINT)
    # The fourth is due when the next update begins.
    assert (header["game"], header["past"], header["past_due"]) == ("rummy40", 3, True)
    fresh = Trainer(config(rules)).network.state_dict()
    same = [name for name, weight in fresh.items() if (tensors[f"network.{name}"] == weight).all()]
    assert not [name for name in same if not name.startswith("arithmetic")]

    agent = agents.make(str(tmp_path / "straight"), game="rummy40")
    assert (agent.game, agent.rules) == ("rummy40", rules)  # type: ignore[attr-defined]
    assert play_match(agent, agent, deals=2, rules=rules).points_per_hand == 0
    with pytest.raises(ValueError, match="plays rummy40; expected one that plays gin"):
        agents.make(str(tmp_path / "straight"))
    other = SHORT if rules is TWO else SHORT_FOUR
    with pytest.raises(ValueError, match="was trained for rules 'rummy40' with"):
        play_match(agent, agents.make("random", game="rummy40"), deals=2, rules=other)
    with pytest.raises(CheckpointError, match=r"other settings \(game is 'rummy40' there and 'gin' here\)"):
        train(PPOConfig(total_steps=512, tables=8, horizon=8, minibatch=64), tmp_path / "straight")


@pytest.mark.parametrize("rules", [TWO, FOUR], ids=lambda rules: rules.text)
def test_imitation(rules: Rummy40Rules, tmp_path: Path) -> None:
    names = ("game", "tables", "width", "layers", "threads", "eval_every", "eval_deals", "eval_against")
    told = {name: getattr(TINY, name) for name in names}
    how = ImitateConfig(
        rules=rules.text, total_steps=3072, horizon=24, minibatch=96, learning_rate=1e-2, epochs=2, **told
    )
    summary = training.imitate.train(how, tmp_path / "run")
    assert summary.step == 3072
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["losses/agreement"] > lines[0]["losses/agreement"]


def test_dqn_trains_two_seats(tmp_path: Path) -> None:
    how = DQNConfig(
        game="rummy40", total_steps=1024, tables=8, horizon=16, minibatch=32, replay_size=1024, learn_from=256, width=8,
        threads=1, eval_every=10**9, eval_deals=2, eval_against=("random",),
    )  # fmt: skip
    assert training.dqn.train(how, tmp_path / "run").step == 1024
    with pytest.raises(ValueError, match="dqn trains games of 2 players"):
        training.dqn.Trainer(dataclasses.replace(how, rules="rummy40:seats=4"))


def test_config_of_rummy40() -> None:
    assert PPOConfig(game="rummy40").rules == "rummy40"
    assert PPOConfig().rules == PPOConfig(rules="").to_dict()["rules"] == "cardpuzzle"
    # The other game's rules are refused, its default ones too.
    for rules in ("cardpuzzle", "luciano"):
        with pytest.raises(
            ValueError, match=f"rules for game 'rummy40': '{rules}' is no preset; expected one of rummy40"
        ):
            Trainer(dataclasses.replace(TINY, rules=rules))
    with pytest.raises(ValueError, match="rules for game 'gin': 'rummy40' is no preset"):
        Trainer(PPOConfig(rules="rummy40"))
    with pytest.raises(ValueError, match=r"matches is 0\.5; Rummy40 is trained by single hands: 0"):
        Trainer(config(TWO, matches=0.5))
    with pytest.raises(ValueError, match="critic is 'all'; for Rummy40 there is only 'own'"):
        Trainer(config(TWO, critic="all"))
    with pytest.raises(ValueError, match="'gin-only' is no agent of rummy40"):
        Trainer(config(TWO, opponents={"gin-only": 0.5}))
    with pytest.raises(ValueError, match="config: game is 'chess'; expected 'gin' or 'rummy40'"):
        PPOConfig(game="chess")  # type: ignore[arg-type]


def test_games_say_their_sizes() -> None:
    for rules in (TWO, FOUR):
        tables = engine.new_tables(rules, 2)
        observations, masks = look(tables)
        assert observations.shape == (2, GAME.observation_size(rules)) == (2, GAME.schema(rules)["size"])
        assert masks.shape == (2, GAME.num_actions(rules)) == (2, len(GAME.action_names(rules)))
        assert GAME.seats(rules) == rules.seats
    assert (GIN.seats(None), GIN.num_actions(None)) == (2, 108)
    assert NUM_ACTIONS == GAME.num_actions(TWO)


# --------------------------------------------------------------------------------------------------------- bundles


@pytest.mark.parametrize("rules", [TWO, FOUR], ids=lambda rules: rules.text)
def test_a_bundle_plays_as_its_network_does(rules: Rummy40Rules, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    from agents.bundle import CONFIG, read_config
    from training.export import export

    train(config(rules, total_steps=UPDATE, opponents={}), tmp_path / "run")
    evaluation = export(tmp_path / "run", tmp_path / "bot", deals=2)
    assert set(evaluation["matches"]) == {"random", "greedy"}
    assert f"--game rummy40 --deals 2 --seed 7000003 --rules {rules.text}" in evaluation["matches"]["greedy"]["command"]
    told = read_config(tmp_path / "bot")
    assert (told["game"], told["observation"]["size"]) == ("rummy40", GAME.observation_size(rules))
    assert told["actions"]["names"][56] == action_name(56)
    card = (tmp_path / "bot" / "README.md").read_text()
    assert card.startswith("# bot: a Rummy40 player")
    assert f"`mask` (N, {rules.num_actions}) int8" in card

    bot, run = (agents.make(str(tmp_path / name), game="rummy40") for name in ("bot", "run"))
    views, masks = (part(positions(rules, 64)) for part in (observe, engine.legal))
    assert (bot.act(views, masks, keys(64)) == run.act(views, masks, keys(64))).all()
    chances = agents.make(f"{tmp_path / 'bot'}:sample=1", game="rummy40").probabilities(views, masks)  # type: ignore
    assert chances.sum(axis=1) == pytest.approx(np.ones(64))
    assert (chances[masks == 0] == 0).all()
    with pytest.raises(ValueError, match="plays rummy40; expected one that plays gin"):
        agents.make(str(tmp_path / "bot"))

    # A file of another game's rules is no bundle.
    changed = json.loads((tmp_path / "bot" / CONFIG).read_text()) | {"game": "gin"}
    (tmp_path / "bot" / CONFIG).write_text(json.dumps(changed))
    with pytest.raises(ValueError, match="is damaged"):
        read_config(tmp_path / "bot")
