"""The networks: symmetry, what is played before training, masks, and a network as an agent."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("torch")

import torch
from torch import nn

import agents
from agents.networks import (
    CRITIC_SIZE,
    HIDDEN_SIZE,
    MASKED,
    NETWORKS,
    WINDOW,
    Critic,
    FlatNet,
    Network,
    SuitAverage,
    SuitNet,
    build_network,
    count_parameters,
    network_settings,
    window_weights,
)
from agents.neural import NeuralAgent
from gin_env import engine
from gin_env.actions import BIG_GIN, DISCARD, KNOCK, NUM_ACTIONS, PASS, TAKE
from gin_env.tables import OVER, THROW
from gin_env.view import NUM_PLANES, OBSERVATION_SIZE, PLANE, SCALAR, View, look, observe
from tests.test_agents import keys, played

CARDS = NUM_PLANES * 52


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def network(seed: int = 0, noise: float = 0.0, name: str = "suits", **settings: float) -> Network:
    """Returns a network as training starts with it, or one whose heads have learned something arbitrary."""
    torch.manual_seed(seed)
    net = build_network(name, {"width": 32, **settings})
    if noise:
        with torch.no_grad():
            for parameter in net.parameters():
                parameter += noise * torch.randn(parameter.shape)
    return net


@pytest.fixture(scope="module")
def positions() -> tuple[np.ndarray, np.ndarray]:
    """Observations and masks of some thousand positions of all phases."""
    rows = [look(played("cardpuzzle", 256, steps, seed=steps)) for steps in (0, 1, 2, 3, 9, 14, 21, 28, 33, 36, 41, 48)]
    observations, masks = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return observations, masks


@torch.inference_mode()
def answers(net: Network, observations: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    logits, values = net(torch.from_numpy(observations), torch.from_numpy(masks))
    return logits.numpy(), values.numpy()


# -------------------------------------------------------------------------------------------------------- symmetry


def renamed(observations: np.ndarray, masks: np.ndarray, order: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the positions with their suits in another order."""
    observations = observations.copy()
    planes = observations[:, :CARDS].reshape(-1, NUM_PLANES, 4, 13)
    planes[:] = planes[:, :, list(order)]
    return observations, renamed_actions(masks, order)


def renamed_actions(rows: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    rows = rows.copy()
    cards = rows[:, DISCARD:BIG_GIN].reshape(-1, 2, 4, 13)
    cards[:] = cards[:, :, list(order)]
    return rows


@pytest.mark.parametrize("settings", [{"layers": 1}, {"layers": 2}, {"cards": 6}, {"cards": 4, "card_layers": 0}])
def test_renaming_the_suits_renames_the_answer(
    positions: tuple[np.ndarray, np.ndarray], settings: dict[str, int]
) -> None:
    observations, masks = positions[0][::16], positions[1][::16]
    net = network(noise=0.3, **settings).double()
    logits, values = answers(net, observations.astype(np.float64), masks)
    assert logits[masks == 1].std() > 1
    assert len(list(permutations(range(4)))) == 24
    for order in permutations(range(4)):
        other, mask = renamed(observations, masks, order)
        got, got_values = answers(net, other.astype(np.float64), mask)
        # In exact arithmetic they are equal; here the mean over the suits adds them in another order.
        np.testing.assert_allclose(got, renamed_actions(logits, order), rtol=0, atol=1e-10)
        np.testing.assert_allclose(got_values, values, rtol=0, atol=1e-10)


def test_the_answer_tells_suits_apart(positions: tuple[np.ndarray, np.ndarray]) -> None:
    """The symmetry is not bought by being blind: to rename the suits of the hand alone changes what is played."""
    observations, masks = positions[0][::16].copy(), positions[1][::16]
    net = network(noise=0.3)
    before = answers(net, observations, masks)[1]
    hand = observations[:, :52].reshape(-1, 4, 13)
    hand[:] = hand[:, [1, 0, 2, 3]]
    assert (abs(answers(net, observations, masks)[1] - before) > 1e-4).mean() > 0.5


# ---------------------------------------------------------------------------------------------------------- step 0


@pytest.mark.parametrize("seed", range(3))
def test_what_it_plays_at_step_0(positions: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    observations, masks = positions
    logits, values = answers(network(seed, width=64), observations, masks)
    chosen = logits.argmax(axis=1)
    rows = np.arange(chosen.size)
    assert masks[rows, chosen].all()
    assert abs(values).max() < 0.2

    # Before the throw: takes what saves two points or more, leaves what saves nothing. One point is a matter of noise.
    saves = np.rint(10 * observations[:, SCALAR["take_saves"]])
    offered = (masks[:, TAKE] == 1) & (saves != 1)
    assert ((chosen == TAKE) == (saves > 1))[offered].all()
    assert 0.2 < (chosen == TAKE)[offered].mean() < 0.8

    # The throw: what leaves the least deadwood among all cards that may be thrown.
    throws = (observations[:, SCALAR["throw"]] == 1) & (masks[:, BIG_GIN] == 0)
    after = np.rint(10 * observations[:, PLANE["deadwood_after"] : PLANE["deadwood_after"] + 52])
    least = np.where(masks[:, DISCARD:KNOCK] == 1, after, 999).min(axis=1)
    card = (chosen - DISCARD) % 52
    assert throws.sum() > 1000
    assert (after[rows, card] == least)[throws].all()

    # It waits for gin: no knock short of it, though many were possible. But not in its last turn.
    short = throws & (least > 0)
    end_near = observations[:, SCALAR["end_near"]]
    waits = short & (end_near < 1 / 4)
    assert (masks[waits, KNOCK:BIG_GIN].any(axis=1)).sum() > 50
    assert (chosen[waits] < KNOCK).all()
    last_turn = short & (end_near >= 1 / 2)
    assert ((chosen >= KNOCK) == masks[rows, KNOCK + card].astype(bool))[last_turn].all()
    assert (chosen[masks[:, BIG_GIN] == 1] == BIG_GIN).all()


def test_it_goes_gin_at_step_0() -> None:
    player = agents.make("gin-only")
    t = engine.new_tables("cardpuzzle", 256, seed=1)
    chosen = []
    for _ in range(60):
        views, masks = observe(t), engine.legal(t)
        actions = player.act(views, masks, keys(256))
        gins = actions >= KNOCK
        if gins.any():
            chosen += [NeuralAgent(network(seed)).act(views[gins], masks[gins], keys(gins.sum())) for seed in range(3)]
        engine.step(t, actions, redeal=True)
    assert np.concatenate(chosen).size > 300
    assert (np.concatenate(chosen) >= KNOCK).all()


def test_a_knock_bias_of_zero_does_not_wait(positions: tuple[np.ndarray, np.ndarray]) -> None:
    observations, masks = positions
    may_knock = masks[:, KNOCK:BIG_GIN].any(axis=1)
    knocks = []
    for bias in (-3.0, 0.0):
        logits, _ = answers(network(1, knock_bias=bias), observations[may_knock], masks[may_knock])
        knocks.append((logits.argmax(axis=1) >= KNOCK).mean())
    assert knocks[0] < 0.1
    assert knocks[1] > 0.9


# ----------------------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize("name", NETWORKS)
def test_masked_actions(positions: tuple[np.ndarray, np.ndarray], name: str) -> None:
    observations, masks = positions
    for net in (network(name=name), network(noise=0.5, name=name)):
        logits, values = answers(net, observations, masks)
        assert logits.shape == (len(masks), NUM_ACTIONS)
        assert values.shape == (len(masks),)
        assert logits.dtype == values.dtype == np.float32
        assert (logits[masks == 0] == MASKED).all()
        assert (logits[masks == 1] > MASKED / 10).all()
        assert masks[np.arange(len(masks)), logits.argmax(axis=1)].all()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_row_without_a_legal_action_is_masked_everywhere(positions: tuple[np.ndarray, np.ndarray], name: str) -> None:
    observations, masks = positions[0][:5], positions[1][:5].copy()
    masks[2] = 0
    logits, values = answers(network(noise=0.5, name=name), observations, masks)
    assert (logits[2] == MASKED).all()
    assert np.isfinite(values).all()
    # The others do not mind.
    whole = answers(network(noise=0.5, name=name), observations, positions[1][:5])
    assert (logits[[0, 1, 3, 4]] == whole[0][[0, 1, 3, 4]]).all()
    assert (values == whole[1]).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_mask_of_bools_says_the_same(positions: tuple[np.ndarray, np.ndarray], name: str) -> None:
    observations, masks = positions[0][:64], positions[1][:64]
    one, other = (
        answers(network(name=name), observations, masks),
        answers(network(name=name), observations, masks.astype(bool)),
    )
    assert (one[0] == other[0]).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_row_does_not_depend_on_the_batch(positions: tuple[np.ndarray, np.ndarray], name: str) -> None:
    observations, masks = positions[0][::64], positions[1][::64]
    net = network(noise=0.3, name=name)
    logits, values = answers(net, observations, masks)
    order = np.random.default_rng(0).permutation(len(masks))
    shuffled = answers(net, observations[order], masks[order])
    np.testing.assert_allclose(shuffled[0], logits[order], atol=1e-4)
    np.testing.assert_allclose(shuffled[1], values[order], atol=1e-4)
    for i in range(len(masks)):
        alone = answers(net, observations[i : i + 1], masks[i : i + 1])
        np.testing.assert_allclose(alone[0][0], logits[i], atol=1e-4)
        np.testing.assert_allclose(alone[1][0], values[i], atol=1e-4)


# -------------------------------------------------------------------------------------------------------- building


@pytest.mark.parametrize(
    ("name", "settings"), [("suits", {}), ("mlp", {}), ("suits", {"cards": 4, "card_layers": 2, "hand": True})]
)
def test_every_weight_learns(name: str, settings: dict[str, Any]) -> None:
    """No layer is forgotten by the forward pass."""
    observations, masks = look(played("cardpuzzle", 256, 15))
    net = network(noise=0.1, name=name, **settings)
    logits, values, hand = net.outputs(torch.from_numpy(observations), torch.from_numpy(masks))
    loss = torch.log_softmax(logits, dim=1)[:, [TAKE, DISCARD, KNOCK]].sum() + values.sum()
    (loss if hand is None else loss + hand.sum()).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_build_network() -> None:
    net = build_network("suits", {"width": 16, "layers": 1, "knock_bias": -2.0})
    assert isinstance(net, SuitNet)
    assert net.settings.items() >= {"width": 16, "layers": 1, "knock_bias": -2.0}.items()
    assert build_network("suits", net.settings).settings == net.settings
    assert net.knock_bias.item() == -2
    inputs = (OBSERVATION_SIZE - CARDS) + NUM_PLANES * 13
    tokens = (NUM_PLANES * 13 * 16 + 16) + inputs * 16 + (16 * 16 + 16) + 16 * 16
    heads = (16 * 26 + 26) + (16 * 4 + 4) + (16 * 16 + 16) + (16 + 1)
    assert count_parameters(net) == tokens + heads + 3
    with pytest.raises(ValueError, match="'lstm' is no network; expected one of suits, mlp"):
        build_network("lstm", {})
    with pytest.raises(ValueError, match="network 'suits':.*depth"):
        build_network("suits", {"depth": 3})


def test_the_card_head_is_a_convolution(positions: tuple[np.ndarray, np.ndarray]) -> None:
    """The product with a matrix of repeated weights is what torch's own convolution computes."""
    net = network(cards=5)
    assert isinstance(net, SuitNet)
    rows = torch.randn(7, 4, 3 * 13)
    window = window_weights(3, 5)
    got = net._by_rank(rows @ net._sliding(window))
    weight = window.reshape(3, WINDOW, 5).permute(2, 0, 1)
    wanted = torch.nn.functional.conv1d(rows.reshape(28, 3, 13), weight, padding=WINDOW // 2)
    torch.testing.assert_close(got, wanted.reshape(7, 4, 5, 13).transpose(2, 3), rtol=0, atol=1e-5)


def test_the_card_head_sees_each_suit_beside_the_mean_of_all() -> None:
    net = network(cards=5)
    assert isinstance(net, SuitNet)
    suits = torch.randn(7, 4, NUM_PLANES * 13)
    x = torch.randn(7, 4, net.settings["width"])
    both = torch.cat([suits, suits.mean(dim=1, keepdim=True).expand_as(suits)], dim=2)
    first = torch.relu(net._by_rank(both @ net._sliding(net.windows[0])) + net.from_suit(x).unsqueeze(2))
    near = net._by_rank(first.transpose(2, 3).flatten(2) @ net._sliding(net.windows[1]))
    wanted = torch.relu(first + near + net.across[0](first.mean(dim=1)).unsqueeze(1))
    torch.testing.assert_close(net.around(suits, x), wanted, rtol=0, atol=1e-5)


def test_the_guess_at_the_hand_begins_by_counting(positions: tuple[np.ndarray, np.ndarray]) -> None:
    observations, masks = (torch.from_numpy(rows[:512]) for rows in positions)
    net = network(hand=True)
    hand = net.outputs(observations, masks)[2]
    assert hand is not None
    unseen = observations[:, PLANE["unseen"] : PLANE["unseen"] + 52] == 1
    known = 10 * observations[:, SCALAR["opponent_known_count"]]
    share = (10 - known) / unseen.sum(dim=1)
    off = (torch.sigmoid(hand) - share[:, None])[unseen]
    assert off.abs().max() < 0.05
    assert network().outputs(observations, masks)[2] is None


def test_the_critic_sees_all_cards(positions: tuple[np.ndarray, np.ndarray]) -> None:
    observations = torch.from_numpy(positions[0][:64])
    torch.manual_seed(1)
    critic = Critic(width=16, layers=1)
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    hidden = torch.rand(64, CRITIC_SIZE)
    values = critic(observations, hidden)
    assert values.shape == (64,)
    for part in (slice(0, 52), slice(52, 104), *range(104, CRITIC_SIZE)):
        other_cards = hidden.clone()
        other_cards[:, part] = 1 - other_cards[:, part]
        assert (critic(observations, other_cards) != values).any()
    renaming = [2, 0, 3, 1]
    other, _ = renamed(observations.numpy(), np.zeros((64, NUM_ACTIONS)), tuple(renaming))
    moved = hidden.clone()
    moved[:, :HIDDEN_SIZE] = hidden[:, :HIDDEN_SIZE].reshape(64, 2, 4, 13)[:, :, renaming].reshape(64, -1)
    torch.testing.assert_close(critic(torch.from_numpy(other), moved), values, rtol=0, atol=1e-4)


def test_without_the_skip_it_starts_as_noise(positions: tuple[np.ndarray, np.ndarray]) -> None:
    observations, masks = positions
    logits, _ = answers(network(skip=False), observations, masks)
    assert abs(logits[masks == 1]).max() < 0.5


def test_build_a_flat_network() -> None:
    net = build_network("mlp", {"width": 16, "layers": 2})
    assert isinstance(net, FlatNet)
    assert net.settings == {"width": 16, "layers": 2}
    hidden = (OBSERVATION_SIZE * 16 + 16) + (16 * 16 + 16)
    assert count_parameters(net) == 2 * hidden + (16 * NUM_ACTIONS + NUM_ACTIONS) + (16 + 1)
    assert count_parameters(build_network("mlp", {"layers": 0})) == (OBSERVATION_SIZE + 1) * (NUM_ACTIONS + 1)


def test_a_flat_network_starts_without_a_preference(positions: tuple[np.ndarray, np.ndarray]) -> None:
    observations, masks = positions
    logits, values = answers(network(name="mlp", width=256), observations, masks)
    assert abs(logits[masks == 1]).max() < 0.5
    assert abs(values).max() < 0.5


def test_settings_of_a_network() -> None:
    options = {"width": 8, "layers": 1, "knock_bias": -2.0}
    assert network_settings("suits", options) == options
    assert network_settings("mlp", options) == {"width": 8, "layers": 1}
    with pytest.raises(ValueError, match="'lstm' is no network"):
        network_settings("lstm", options)


def test_the_seed_makes_the_weights() -> None:
    one, again, other = (network(seed).state_dict() for seed in (4, 4, 5))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["suit_in.weight"], other["suit_in.weight"])


# ----------------------------------------------------------------------------------------------- network as an agent


class Fixed(torch.nn.Module):
    """Says the same logits of every row."""

    def __init__(self, logits: np.ndarray) -> None:
        super().__init__()
        self.logits = torch.from_numpy(logits)

    def forward(self, observation: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits = torch.where(mask.to(torch.bool), self.logits, torch.tensor(MASKED))
        return logits, torch.zeros(len(observation))


def repeated(count: int) -> tuple[View, np.ndarray]:
    """Returns one position in which cards are thrown, many times, and its masks."""
    t = played("cardpuzzle", 64, 21)
    t = t[t["phase"] == THROW][:1]
    return np.repeat(observe(t), count), np.repeat(engine.legal(t), count, axis=0)


def test_the_agent_is_an_agent() -> None:
    assert isinstance(NeuralAgent(network(), name="mine"), agents.Agent)
    assert NeuralAgent(network(), name="mine").name == "mine"


def test_the_likeliest_action() -> None:
    views, masks = repeated(50)
    logits = np.random.default_rng(0).normal(size=NUM_ACTIONS).astype(np.float32)
    logits[[PASS, BIG_GIN]] = 90  # illegal, whatever the network says
    legal = np.flatnonzero(masks[0])
    chosen = NeuralAgent(Fixed(logits)).act(views, masks, keys(50))
    assert chosen.dtype == np.int64
    assert chosen.tolist() == [legal[logits[legal].argmax()]] * 50


def test_sampled_actions_follow_the_policy() -> None:
    count = 40_000
    views, masks = repeated(count)
    logits = np.random.default_rng(1).normal(size=NUM_ACTIONS).astype(np.float32)
    logits[[PASS, BIG_GIN]] = 90
    legal = np.flatnonzero(masks[0])
    agent = NeuralAgent(Fixed(logits), sample=True)
    chosen = agent.act(views, masks, keys(count, seed=5))
    wanted = np.exp(logits[legal].astype(np.float64))
    counts = np.bincount(chosen, minlength=NUM_ACTIONS)
    assert counts[legal].sum() == count
    assert stats.chisquare(counts[legal], count * wanted / wanted.sum()).pvalue > 1e-4
    # A choice comes from its own key.
    assert (agent.act(views[:9], masks[:9], keys(count, seed=5)[31:40]) == chosen[31:40]).all()


@pytest.mark.parametrize("sample", [False, True], ids=["likeliest", "sampled"])
@pytest.mark.parametrize("noise", [0.0, 0.5], ids=["arithmetic", "noise"])
@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20"])
def test_t14_a_thousand_hands_without_an_illegal_action(sample: bool, noise: float, rules: str) -> None:
    agent = NeuralAgent(network(2, noise, width=16), sample=sample)
    hands = 250
    t = engine.new_tables(rules, hands, seed=12)
    greedy = agents.make("greedy")
    for move in range(500):
        playing = np.flatnonzero(t["phase"] != OVER)
        if not playing.size:
            break
        some = t[playing]
        views, masks, rng = observe(some), engine.legal(some), keys(playing.size, seed=move)
        # Half of the tables have greedy in seat 1, so that not all hands run out of stock.
        mine = (playing % 2 == 0) | (some["mover"] == 0)
        actions = np.where(mine, agent.act(views, masks, rng), greedy.act(views, masks, rng))
        assert masks[np.arange(playing.size), actions].all()
        everywhere = np.full(hands, engine.NO_ACTION)
        everywhere[playing] = actions
        engine.step(t, everywhere)
    assert (t["phase"] == OVER).all()


def test_t14_an_agent_needs_a_mask() -> None:
    views, _ = repeated(2)
    with pytest.raises(TypeError, match="mask"):
        NeuralAgent(network()).act(views, rng=keys(2))


@pytest.mark.parametrize(
    "larger",
    [
        {"cards": 6},
        {"card_layers": 3},
        {"cards": 7, "card_layers": 2},
        {"width": 24},
        {"layers": 4},
        {"width": 20, "layers": 3, "cards": 5, "card_layers": 2},
    ],
    ids=lambda larger: " ".join(f"{name}={size}" for name, size in larger.items()),
)
def test_a_network_grows_without_a_change_of_what_it_computes(larger: dict[str, int]) -> None:
    torch.manual_seed(1)
    settings = {"width": 16, "layers": 2, "cards": 4, "card_layers": 1}
    small = SuitNet(**settings, hand=True)
    for parameter in small.parameters():
        nn.init.normal_(parameter, std=0.3)
    large = SuitNet(**(settings | larger), hand=True)
    large.load_state_dict(large.grown(small.state_dict()))
    observation, mask = (torch.from_numpy(array) for array in look(played("cardpuzzle", 32, 9)))
    before, after = small.outputs(observation, mask), large.outputs(observation, mask)
    for old, new in zip(before, after, strict=True):
        torch.testing.assert_close(old, new)
    with pytest.raises(RuntimeError, match="size mismatch|Unexpected key"):
        small.load_state_dict(small.grown(large.state_dict()))
    # What is new learns: a step moves what the network computes, by way of the new weights alone too.
    loss = torch.logsumexp(after[0], dim=1).sum() + after[1].square().sum()
    loss.backward()
    if "card_layers" in larger:
        assert large.windows[larger["card_layers"]].grad.abs().sum() > 0
    if "cards" in larger:
        assert large.window_out.weight.grad[:, 4:].abs().sum() > 0
        assert large.held_plain.weight.grad.unflatten(1, (2, -1))[:, :, 4:].abs().sum() > 0
    if "width" in larger:
        assert large.card_out.weight.grad[:, 16:].abs().sum() > 0
        assert large.value_out[2].weight.grad[:, 16:].abs().sum() > 0
    if "layers" in larger:
        assert large.own[larger["layers"] - 1].weight.grad.abs().sum() > 0


def test_a_card_head_is_added_without_a_change_of_what_the_network_computes() -> None:
    torch.manual_seed(1)
    small, large = SuitNet(width=16), SuitNet(width=16, cards=4)
    large.load_state_dict(large.grown(small.state_dict()))
    observation, mask = (torch.from_numpy(array) for array in look(played("cardpuzzle", 32, 9)))
    for old, new in zip(small(observation, mask), large(observation, mask), strict=True):
        torch.testing.assert_close(old, new)
    torch.logsumexp(large(observation, mask)[0], dim=1).sum().backward()
    assert large.window_out.weight.grad.abs().sum() > 0


def test_averaging_over_suits() -> None:
    """A flat network becomes blind to the names of suits; one that is already stays what it was."""
    torch.manual_seed(4)
    observation, mask = (torch.from_numpy(array) for array in look(played("cardpuzzle", 24, 9)))
    flat = FlatNet(width=16, layers=1)
    for parameter in flat.parameters():
        nn.init.normal_(parameter, std=0.5)
    renamed = SuitAverage(flat, 24)
    for size, same in ((24, True), (4, False)):
        network = SuitAverage(flat, size)
        assert network.seen.shape[0] == size
        before = network(observation, mask)
        for way in (5, 16):
            seen, played_, back = renamed.seen[way], renamed.played[way], renamed.back[way]
            logits, value = network(observation[:, seen], mask[:, played_])
            logits = logits[:, back]
            assert torch.allclose(logits, before[0], atol=1e-4) == same
            assert torch.allclose(value, before[1], atol=1e-4) == same
    # The mean of the policies, by hand, for one row.
    row = [
        torch.softmax(flat(observation[:1, s], mask[:1, p])[0], dim=1)[:, b]
        for s, p, b in zip(renamed.seen, renamed.played, renamed.back, strict=True)
    ]
    logits, _ = renamed(observation[:1], mask[:1])
    assert torch.allclose(torch.softmax(logits, dim=1), torch.stack(row).mean(dim=0), atol=1e-6)
    suits = SuitNet(width=16, cards=4)
    for parameter in suits.parameters():
        nn.init.normal_(parameter, std=0.3)
    alone, averaged = suits(observation, mask), SuitAverage(suits)(observation, mask)
    chances = [torch.softmax(one[0], dim=1) for one in (alone, averaged)]
    assert torch.allclose(*chances, atol=1e-5)
    assert torch.allclose(alone[1], averaged[1], atol=1e-4)
    for size in (0, 25):
        with pytest.raises(ValueError, match=f"averaged in {size} ways; expected 1 to 24"):
            SuitAverage(flat, size)
