"""The policy networks (torch).

A network maps observations (`gin_env.view`) and masks to logits over the 108 actions and a value. What a `SuitNet`
plays at step 0 is arithmetic: throw what leaves the least deadwood, take what saves deadwood, wait for gin until the
last turn. It learns the rest. A `FlatNet` starts from noise.
"""

import inspect
from collections.abc import Mapping
from itertools import chain, pairwise
from typing import Any

import torch
from torch import Tensor, nn

from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, NUM_ACTIONS, PASS, TAKE
from gin_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from gin_env.view import NUM_PLANES, NUM_SCALARS, OBSERVATION_SIZE, PLANE, SCALAR

# Stands for "never" in a softmax. Finite, so that 0 times it is 0 and not NaN, and inside the range of float16.
MASKED = -30_000.0


def masked_logits(logits: Tensor, mask: Tensor) -> Tensor:
    """Returns the logits with `MASKED` in place of illegal actions. Both (N, 108); mask any number or bool type."""
    return logits.masked_fill(mask == 0, MASKED)


class SuitNet(nn.Module):
    """One token for each suit, weights shared: renaming the suits of a position renames the answer.

    The game is the same under all 24 permutations of the suits, and so is this network, exactly. Each suit's token
    reads its own planes, the mean of all suits' planes and the scalars; twice it mixes in the mean over the tokens. A
    suit's token emits the logits of its 13 discards and 13 knocks; the other four actions and the value read the mean.

    Args:
        width: Units of each layer.
        layers: Mixing layers after the first.
        knock_bias: Initial logit of a knock short of gin; below zero it waits for gin.
    """

    def __init__(self, width: int = 64, layers: int = 2, knock_bias: float = -3.0) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"width": width, "layers": layers, "knock_bias": knock_bias}
        plane_inputs = NUM_PLANES * NUM_RANKS
        self.suit_in = nn.Linear(plane_inputs, width)
        self.shared_in = nn.Linear(plane_inputs + NUM_SCALARS, width, bias=False)
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.mean = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.card_out = nn.Linear(width, 2 * NUM_RANKS)
        self.plain_out = nn.Linear(width, 4)
        self.value_out = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        # Logits begin as arithmetic alone, and the value as zero.
        value_head = self.value_out[2]
        assert isinstance(value_head, nn.Linear)
        for head in (self.card_out, self.plain_out, value_head):
            nn.init.normal_(head.weight, std=0.01)
            nn.init.zeros_(head.bias)
        # Logits for each ten points of deadwood, the price of knocking before gin, and how the end of the stock lowers
        # it. Learned.
        self.deadwood_scale = nn.Parameter(torch.tensor(10.0))
        self.knock_bias = nn.Parameter(torch.tensor(float(knock_bias)))
        self.end_bias = nn.Parameter(torch.tensor(6.0))

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the policy and the value.

        Args:
            observation: (N, OBSERVATION_SIZE) float32.
            mask: (N, 108) int8 or bool, 1 for legal actions. A row without any gives `MASKED` everywhere.

        Returns:
            Logits (N, 108), `MASKED` where illegal, and values (N,), in the trainer's units of points.
        """
        planes = observation[:, : NUM_PLANES * NUM_CARDS].reshape(-1, NUM_PLANES, NUM_SUITS, NUM_RANKS)
        scalars = observation[:, NUM_PLANES * NUM_CARDS :]
        tokens = planes.transpose(1, 2).reshape(-1, NUM_SUITS, NUM_PLANES * NUM_RANKS)
        shared = self.shared_in(torch.cat([tokens.mean(dim=1), scalars], dim=1))
        x = torch.relu(self.suit_in(tokens) + shared.unsqueeze(1))
        for own, mean in zip(self.own, self.mean, strict=True):
            x = torch.relu(own(x) + mean(x.mean(dim=1)).unsqueeze(1))
        pooled = x.mean(dim=1)

        after = observation[:, PLANE["deadwood_after"] : PLANE["deadwood_after"] + NUM_CARDS]
        saves = observation[:, SCALAR["take_saves"] : SCALAR["take_saves"] + 1]
        cards = self.card_out(x)
        discards = cards[:, :, :NUM_RANKS].reshape(-1, NUM_CARDS) - self.deadwood_scale * after
        knocks = cards[:, :, NUM_RANKS:].reshape(-1, NUM_CARDS) - self.deadwood_scale * after
        # Gin is better than throwing the same card and going on. Short of gin it waits, but not for a dead hand.
        end_near = observation[:, SCALAR["end_near"] : SCALAR["end_near"] + 1]
        # 1 in the last turn, also where the opponent still has one card to draw; then 2/3, 1/2, 2/5 ...
        last_turn = (2 * end_near).clamp(max=1)
        knocks = knocks + torch.where(after > 0, self.knock_bias + self.end_bias * last_turn, 3.0)
        plain = self.plain_out(pooled)
        # Taking must save something: without that it only shows a card.
        take = plain[:, TAKE : TAKE + 1] + self.deadwood_scale * saves - 1
        big_gin = plain[:, 3:4] + 3
        logits = torch.cat([plain[:, PASS : DRAW + 1], take, discards, knocks, big_gin], dim=1)
        return masked_logits(logits, mask), self.value_out(pooled).squeeze(1)


# The order in which `SuitNet.forward` puts its parts together.
assert (PASS, DRAW, TAKE, DISCARD, KNOCK, BIG_GIN) == (0, 1, 2, 3, 3 + NUM_CARDS, 3 + 2 * NUM_CARDS)
assert BIG_GIN + 1 == NUM_ACTIONS


class FlatNet(nn.Module):
    """Two plain multilayer perceptrons, one for the policy and one for the value, that start from noise.

    It knows neither suits nor arithmetic, and is there to compare with: layer by layer it is what other libraries train
    by default, such as Stable-Baselines3's ``MlpPolicy``.

    Args:
        width: Units of each hidden layer.
        layers: Hidden layers.
    """

    def __init__(self, width: int = 256, layers: int = 2) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"width": width, "layers": layers}
        self.policy = self._tower(width, layers, NUM_ACTIONS)
        self.value = self._tower(width, layers, 1)

    @staticmethod
    def _tower(width: int, layers: int, outputs: int) -> nn.Sequential:
        sizes = [OBSERVATION_SIZE, *[width] * layers]
        hidden = [(nn.Linear(*pair), nn.ReLU(inplace=True)) for pair in pairwise(sizes)]
        head = nn.Linear(sizes[-1], outputs)
        # All legal actions are about as likely at the start, and the value is zero.
        nn.init.normal_(head.weight, std=0.01)
        nn.init.zeros_(head.bias)
        return nn.Sequential(*chain.from_iterable(hidden), head)

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Computes the policy and the value: see `SuitNet.forward`."""
        return masked_logits(self.policy(observation), mask), self.value(observation).squeeze(1)


Network = SuitNet | FlatNet

NETWORKS: dict[str, type[SuitNet] | type[FlatNet]] = {"suits": SuitNet, "mlp": FlatNet}


def network_settings(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those of the options that the network of this name has.

    Raises:
        ValueError: If there is no such network.
    """
    known = inspect.signature(_network(name)).parameters
    return {option: value for option, value in options.items() if option in known}


def build_network(name: str, settings: Mapping[str, Any]) -> Network:
    """Returns a new network.

    Raises:
        ValueError: If there is no such network or a setting does not fit it.
    """
    try:
        return _network(name)(**settings)
    except TypeError as error:
        raise ValueError(f"network {name!r}: {error}") from None


def _network(name: str) -> type[SuitNet] | type[FlatNet]:
    if name not in NETWORKS:
        raise ValueError(f"{name!r} is no network; expected one of {', '.join(NETWORKS)}")
    return NETWORKS[name]


def count_parameters(network: nn.Module) -> int:
    """Number of weights."""
    return sum(parameter.numel() for parameter in network.parameters())


__all__ = [
    "MASKED",
    "NETWORKS",
    "OBSERVATION_SIZE",
    "FlatNet",
    "Network",
    "SuitNet",
    "build_network",
    "count_parameters",
    "masked_logits",
    "network_settings",
]
