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
    past_due: bool = False  # whether the next update begins by keeping a past state

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self.forward: Any = torch.compile(self.network.outputs) if config.compile else self.network.outputs

    def sit_down(self, horizon: int = 0, hidden: int = 0) -> None:
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

    def renew_past(self) -> None:
        """Keeps a past state if it is time; an update calls it before it plays."""
        if self.past_due:
            self.keep_past()
            self.past_due = False

    def keep_past(self) -> None:
        """Adds the network as it is to the past states among the opponents."""
        frozen = copy.deepcopy(self.network).requires_grad_(False)
        agent = NeuralAgent(frozen, "past", sample=self.past_samples, device=str(self.device), game=self.game)
        self.collector.opponents.past.append(agent)

    def to_device(self, *arrays: np.ndarray) -> list[Tensor]:
        """The arrays as tensors where the network is."""
        return [torch.from_numpy(array).to(self.device) for array in arrays]

    def game_scalars(self, before: int) -> dict[str, float]:
        """Ends an update that began at the step ``before``: whether it is time for a past state; how hands ended."""
        every = self.config.past_every
        self.past_due = self.collector.opponents.need_past and crossed(before, self.step, every)
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
        return self.table_tensors(self.collector.tables.view(np.uint8))

    def table_tensors(self, tables: np.ndarray) -> dict[str, Tensor]:
        """The bytes of these tables, and of the other processes' ones, as `load` takes them."""
        rows = self.world.gather(tables)
        return {"tables": torch.from_numpy(rows.copy())}

    def header(self) -> dict[str, Any]:
        """See `Learner.header`."""
        return {"past": len(self.collector.opponents.past), "past_due": self.past_due}

    def load(self, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
        """See `Learner.load`."""
        self.past_due = header.get("past_due", False)
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
