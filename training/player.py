"""A learner that plays: its tables, its opponents, and its own past among them."""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from agents.neural import NeuralAgent
from gin_env.rules import as_rules, automatic
from training.checkpoint import load_network
from training.config import RunConfig
from training.rollout import Collector
from training.run import Learner, crossed


class Player(Learner):
    """What algorithms that play have in common. They call `sit_down` once their networks are there.

    Args:
        config: What to train.

    Attributes:
        collector: The tables and opponents.
        forward: The network's `outputs`, compiled if the config says so.
    """

    past_samples: ClassVar[bool] = True  # whether past states draw from their policy, or play its likeliest action

    collector: Collector

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.forward: Any = torch.compile(self.network.outputs) if config.compile else self.network.outputs

    def sit_down(self, horizon: int = 0, hidden: bool = False) -> None:
        """Deals the tables and seats the opponents (see `Collector`)."""
        config = self.config
        self.collector = Collector(
            self.rules,
            self.world.share(config.tables, "tables"),
            horizon,
            config.opponents,
            self.games_seed,
            config.points_scale,
            matches=config.matches,
            match_rules=automatic(as_rules(config.match_rules)) if config.matches else None,
            past_size=config.past_size,
            hidden=hidden,
            game=self.game,
        )
        if self.collector.opponents.need_past:
            self.keep_past()

    def keep_past(self) -> None:
        """Adds the network as it is to the past states among the opponents."""
        frozen = copy.deepcopy(self.network).requires_grad_(False)
        agent = NeuralAgent(frozen, "past", sample=self.past_samples, device=str(self.device), game=self.game)
        self.collector.opponents.past.append(agent)

    def to_device(self, *arrays: np.ndarray) -> list[Tensor]:
        """The arrays as tensors where the network is."""
        return [torch.from_numpy(array).to(self.device) for array in arrays]

    def game_scalars(self, before: int) -> dict[str, float]:
        """Ends an update that began at the step ``before``: keeps a past state if it is time; how hands ended."""
        if self.collector.opponents.need_past and crossed(before, self.step, self.config.past_every):
            self.keep_past()
        return {f"game/{name}": value for name, value in self.collector.statistics().items()}

    # ------------------------------------------------------------------------------------------------ checkpoints

    def modules(self) -> Mapping[str, torch.nn.Module]:
        """See `Learner.modules`: the past states."""
        modules: dict[str, torch.nn.Module] = {}
        for number, past in enumerate(self.collector.opponents.past):
            assert isinstance(past, NeuralAgent)
            modules[f"past{number}"] = past.network
        return modules

    def tensors(self) -> dict[str, Tensor]:
        """See `Learner.tensors`: the tables, of all processes."""
        tables = self.world.gather(self.collector.tables.view(np.uint8))
        return {"tables": torch.from_numpy(tables.copy())}

    def header(self) -> dict[str, Any]:
        """See `Learner.header`."""
        return {"past": len(self.collector.opponents.past)}

    def load(self, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
        """See `Learner.load`."""
        past = self.collector.opponents.past
        while len(past) < header["past"]:
            self.keep_past()
        for number, agent in enumerate(past):
            assert isinstance(agent, NeuralAgent)
            load_network(agent.network, tensors, f"past{number}")
        # Copied as bytes: a copy of records leaves the bytes between their fields to chance, and with them the next
        # checkpoint's.
        kind = self.game.tables.TABLE_DTYPE
        size, rank, width = self.collector.tables.size, self.world.rank, kind.itemsize
        kept = tensors["tables"].numpy()
        if kept.size != size * self.world.size * width:
            raise ValueError(f"it holds {kept.size // width} tables; expected {size * self.world.size}")
        self.collector.tables = kept[rank * size * width : (rank + 1) * size * width].copy().view(kind)
