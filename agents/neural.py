"""A torch network as an agent; a checkpoint of a training run as an agent."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from agents.base import CHECKPOINT, gumbel
from agents.bundle import other_rules
from agents.games import GIN, Game, find_game
from agents.networks import Network, SuitAverage, build_network
from gin_env.view import View

FORMAT = 1  # of checkpoints


class NeuralAgent:
    """Plays a network: the likeliest action, or a sample. Where rules are manual it lays by `agents.laying`.

    Args:
        network: Any network of `agents.networks`.
        name: What results call it.
        sample: Whether to draw from the policy instead of taking its likeliest action.
        device: Where the network runs.
        game: The game it plays.
    """

    def __init__(
        self, network: Network, name: str = "network", sample: bool = False, device: str = "cpu", game: Game = GIN
    ) -> None:
        self.network, self.name, self.sample, self.device, self.plays = network, name, sample, device, game
        self.game = game.name

    def _logits(self, view: View, mask: np.ndarray) -> np.ndarray:
        seen, legal = self.plays.network_inputs(view, mask)
        with torch.inference_mode():
            logits, _ = self.network(torch.from_numpy(seen).to(self.device), torch.from_numpy(legal).to(self.device))
        return logits.cpu().numpy()

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        scores = self._logits(view, mask)
        if self.sample:
            scores = scores + gumbel(rng, scores.shape[1])
        return self.plays.finish(view, scores.argmax(axis=1))

    def probabilities(self, view: View, mask: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent`."""
        return self.plays.policy(self._logits(view, mask), view, mask, self.sample)


class CheckpointAgent(NeuralAgent):
    """Plays the network of a training run, as it was at a checkpoint.

    Args:
        path: The run's folder, whose last checkpoint counts, or a checkpoint file in it.
        sample: Whether to draw from the policy instead of taking its likeliest action (any number but 0).
        any_rules: Whether it may play rules that it was not trained for (any number but 0).
        average: In how many of the 24 ways to name the suits it looks at a position, to play by the mean
            (`agents.networks.SuitAverage`).

    Attributes:
        rules: The rules it was trained for.
        name: The run's, and the number of decisions that it had learned from.
        version: Says which checkpoint it is: a hash of its file.

    Raises:
        ValueError: If there is no checkpoint, or it is damaged or cannot be played.
    """

    def __init__(self, path: str | Path, sample: int = 0, any_rules: int = 0, average: int = 1) -> None:
        path = Path(path)
        self.any_rules = bool(any_rules)
        file = path / CHECKPOINT if path.is_dir() else path
        weights, header = _read_checkpoint(file)
        try:
            game = find_game(header.get("game", "gin"))
            self.rules = game.rules_of(header["rules"])
            step = int(header["step"])
            network: Any = build_network(header["network"]["name"], header["network"]["settings"], game.name)
            network.load_state_dict(weights)
            if average != 1:
                if game is not GIN:
                    raise ValueError(f"averaging over suits is for gin, and this plays {game.title}")
                network = SuitAverage(network, average)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            what = f"it lacks {error}" if isinstance(error, KeyError) else str(error).splitlines()[-1].strip()
            raise ValueError(f"checkpoint {file} cannot be played: {what}") from None
        self.version = "checkpoint " + hashlib.sha256(file.read_bytes()).hexdigest()[:12]
        self._record = self.rules.record()[0]
        super().__init__(network.eval(), f"{file.absolute().parent.name}@{step}", bool(sample), game=game)

    def _logits(self, view: View, mask: np.ndarray) -> np.ndarray:
        difference = "" if self.any_rules else other_rules(self._record, view, self.plays.free_rules)
        if difference:
            raise ValueError(
                f"run {self.name} was trained for rules {self.rules.name!r} with {difference}; with the option "
                "any_rules=1 it plays all the same"
            )
        return super()._logits(view, mask)


def _read_checkpoint(file: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Returns the weights of a checkpoint's network, by name, and its header."""
    from safetensors import SafetensorError, safe_open  # not needed by networks that come without a file

    if not file.is_file():
        raise ValueError(f"there is no checkpoint {file}")
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            if "header" not in metadata:
                raise ValueError(f"{file} is no checkpoint of a training run")
            header = json.loads(metadata["header"])
            weights = {
                name.removeprefix("network."): opened.get_tensor(name)
                for name in opened.keys()  # noqa: SIM118 (not a dict)
                if name.startswith("network.")
            }
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        raise ValueError(f"checkpoint {file} is damaged: {error}") from None
    if header.get("format") != FORMAT:
        raise ValueError(f"checkpoint {file} has format {header.get('format')}; expected {FORMAT}")
    return weights, header
