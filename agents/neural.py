"""A torch network as an agent."""

import numpy as np
import torch

from agents.base import gumbel
from agents.laying import lay, policy
from agents.networks import Network
from gin_env.actions import NUM_ACTIONS
from gin_env.view import OBSERVATION_SIZE, View, encode


class NeuralAgent:
    """Plays a network: the likeliest action, or a sample. Where rules are manual it lays by `agents.laying`.

    Args:
        network: Any network of `agents.networks`.
        name: What results call it.
        sample: Whether to draw from the policy instead of taking its likeliest action.
        device: Where the network runs.
    """

    def __init__(self, network: Network, name: str = "network", sample: bool = False, device: str = "cpu") -> None:
        self.network, self.name, self.sample, self.device = network, name, sample, device

    def _logits(self, view: View, mask: np.ndarray) -> np.ndarray:
        # What manual rules add is left to `agents.laying`.
        observation = torch.from_numpy(encode(view)[:, :OBSERVATION_SIZE]).to(self.device)
        with torch.inference_mode():
            logits, _ = self.network(observation, torch.from_numpy(mask[:, :NUM_ACTIONS]).to(self.device))
        return logits.cpu().numpy()

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        scores = self._logits(view, mask)
        if self.sample:
            scores = scores + gumbel(rng, scores.shape[1])
        return lay(view, scores.argmax(axis=1))

    def probabilities(self, view: View, mask: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent`."""
        return policy(self._logits(view, mask), view, mask, self.sample)
