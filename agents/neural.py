"""A torch network as an agent."""

import numpy as np
import torch

from agents.networks import SuitNet
from gin_env.engine import mix_keys
from gin_env.view import View, encode


def gumbel(rng: np.ndarray, size: int) -> np.ndarray:
    """Standard Gumbel noise from random keys: the argmax of logits plus noise is a sample of their softmax.

    Args:
        rng: (N,) uint64 keys, one for each row.
        size: Numbers for each row.

    Returns:
        (N, size) float64.
    """
    bits = mix_keys_each(rng, size)
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    return -np.log(-np.log(uniform))


def mix_keys_each(rng: np.ndarray, size: int) -> np.ndarray:
    """Returns ``size`` 64-bit hashes of each key: (N, size) uint64, each a pure function of (key, place)."""
    with np.errstate(over="ignore"):
        numbers = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return mix_keys(0, rng[:, None] + numbers[None, :])


class NeuralAgent:
    """Plays a network: the likeliest action, or a sample.

    Args:
        network: Any network of `agents.networks`.
        name: What results call it.
        sample: Whether to draw from the policy instead of taking its likeliest action.
        device: Where the network runs.
    """

    def __init__(self, network: SuitNet, name: str = "network", sample: bool = False, device: str = "cpu") -> None:
        self.network, self.name, self.sample, self.device = network, name, sample, device

    @torch.inference_mode()
    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        observation = torch.from_numpy(encode(view)).to(self.device)
        logits, _ = self.network(observation, torch.from_numpy(mask).to(self.device))
        scores = logits.cpu().numpy()
        if self.sample:
            scores = scores + gumbel(rng, scores.shape[1])
        return scores.argmax(axis=1)
