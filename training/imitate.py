"""Imitation of any agent: a warm start (Ross et al. 2011, "DAgger").

The learner plays, and at some tables the teacher; the teacher says at every position that comes up what it would do
there. The network learns to do the same, and what the hand brought as its value. So it learns on the positions that
its own mistakes lead to, which a record of the teacher's games would not show.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gin_env.keys import mix_keys
from training import losses, run
from training.advantages import estimates
from training.config import ImitateConfig
from training.metrics import Stopwatch
from training.player import Player
from training.replay import Positions
from training.rollout import sample
from training.run import Interrupted, Summary, TrainingError


class Trainer(Player):
    """Imitation in progress.

    Args:
        config: What to train.
    """

    algorithm = "imitate"

    def __init__(self, config: ImitateConfig) -> None:
        super().__init__(config)
        self.teacher = self.game.make(config.teacher)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, eps=1e-5)
        self.batch = config.tables * config.horizon
        # A ring of whole batches.
        self.memory = max(config.memory // self.batch, 1) * self.batch
        self.positions = Positions(self.memory, self.game, self.rules)
        self.labels = np.zeros(
            (self.memory, self.game.num_actions(self.rules)), dtype=np.float16
        )  # the teacher's probabilities
        self.returns = np.zeros(self.memory, dtype=np.float32)  # what the hand brought the mover, units of reward
        # Tables where the teacher plays, spread evenly, for opponents and matches have neighbouring ones.
        places = np.arange(config.tables + 1) * config.teacher_share
        self.taught = np.diff(np.floor(places + 1e-9)) > 0
        streams = mix_keys(self.games_seed, np.arange(5, 7))
        self.sample_seed, self.teacher_seed = (int(stream) for stream in streams)
        self.views = np.zeros(config.tables, dtype=self.game.view.VIEW_DTYPE)
        self.sit_down()

    # ------------------------------------------------------------------------------------------------- one update

    def update(self, watch: Stopwatch) -> dict[str, float]:
        """Labels a batch of positions, and learns from what is in the memory."""
        before = self.step
        self.renew_past()
        with watch.part("rollout"):
            self.play()
        with watch.part("learn"):
            scalars = self.learn()
        return scalars | self.game_scalars(before)

    @torch.inference_mode()
    def play(self) -> None:
        """Plays a batch and keeps its positions, labels and returns in place of the oldest."""
        config, tables = self.config, self.config.tables
        engine, observe, encode = self.game.engine, self.game.view.observe, self.game.view.encode
        self.collector.start()
        shape = (config.horizon, tables)
        rewards, values = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
        seats, cuts = np.empty(shape, dtype=np.int8), np.empty(shape, dtype=np.int8)
        won = np.empty((*shape, self.game.seats(self.rules)), dtype=np.float32)
        first = self.step % self.memory
        for t in range(config.horizon):
            game = self.collector.tables
            views, masks = observe(game, out=self.views), engine.legal(game)
            logits, worth = self.network(*self.to_device(encode(views), masks))
            labels = self.ask(views, masks, engine.decision_keys(self.teacher_seed, game))
            policy = logits.cpu().numpy()
            with np.errstate(divide="ignore"):
                policy[self.taught] = np.maximum(np.log(labels[self.taught]), -1e30)
            actions, _ = sample(policy, masks, engine.decision_keys(self.sample_seed, game))
            place = first + t * tables
            self.positions.put(place, views, masks)
            self.labels[place : place + tables] = labels
            values[t], seats[t] = worth.cpu().numpy(), game["mover"]
            self.collector.advance(actions, seats[t], rewards[t], cuts[t], won[t])
        game = self.collector.tables
        _, last = self.network(*self.to_device(encode(observe(game, out=self.views)), engine.legal(game)))
        last_seats = game["mover"].astype(np.int8)
        # With a decay of 1 an advantage and its value add up to what the hand brought; the value stands for the rest of
        # a hand that goes on.
        advantages = estimates(rewards, won, values, seats, cuts, last.cpu().numpy(), last_seats, 1.0)
        self.returns[first : first + self.batch] = (advantages + values).ravel()
        self.step += self.batch

    def ask(self, views: np.ndarray, masks: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The teacher's probabilities for each position: (N, A) float32."""
        if hasattr(self.teacher, "probabilities"):
            return np.asarray(self.teacher.probabilities(views, masks), dtype=np.float32)
        labels = np.zeros(masks.shape, dtype=np.float32)
        labels[np.arange(views.size), self.teacher.act(views, masks, keys)] = 1
        return labels

    def learn(self) -> dict[str, float]:
        """Takes the gradient steps of one update and returns the mean of each figure."""
        config = self.config
        rate = self.set_learning_rate()
        kept = min(self.step, self.memory)
        sums: dict[str, float] = {}
        # Whole passes over what is kept, as far as they reach: each position comes as often as any other.
        wanted = self.batch * config.epochs
        order = [torch.randperm(kept, generator=self.shuffle) for _ in range(-(-wanted // kept))]
        parts = torch.cat(order)[:wanted].split(config.minibatch)
        for part in parts:
            rows = part.numpy()
            seen, legal = self.to_device(*self.positions.get(rows))
            labels, returns = self.to_device(self.labels[rows].astype(np.float32), self.returns[rows])
            # Half precision rounds; what is left over is spread.
            labels = labels / labels.sum(dim=1, keepdim=True)
            uniform = (legal != 0) / (legal != 0).sum(dim=1, keepdim=True)
            goal = (1 - config.smoothing) * labels + config.smoothing * uniform
            logits, values, _ = self.forward(seen, legal)
            imitation = losses.imitation_loss(losses.log_probabilities(logits), goal, legal)
            fit = losses.value_loss(values, returns)
            loss = imitation + config.value_weight * fit
            self.check(loss, {"imitation_loss": imitation, "value_loss": fit})
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = self.clip_gradients(self.network)
            self.optimizer.step()
            chosen = labels.gather(1, logits.argmax(dim=1, keepdim=True)).squeeze(1)
            figures = {
                "imitation_loss": imitation.item(),
                "value_loss": fit.item(),
                "agreement": (chosen == labels.amax(dim=1)).float().mean().item(),
                "explained_variance": losses.explained_variance(values.detach(), returns),
                "grad_norm": norm.item(),
            }
            for name, figure in figures.items():
                sums[name] = sums.get(name, 0.0) + figure
        scalars = {f"losses/{name}": total / len(parts) for name, total in sums.items()}
        scalars["losses/gradient_steps"] = float(len(parts))
        scalars["charts/learning_rate"] = rate
        return scalars

    # ------------------------------------------------------------------------------------------------ checkpoints

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """See `Learner.optimizers`."""
        return {"optimizer": self.optimizer}

    def _memory(self) -> dict[str, np.ndarray]:
        arrays = (self.positions.views, self.positions.masks, self.labels, self.returns)
        return dict(zip(("views", "masks", "labels", "returns"), arrays, strict=True))

    def tensors(self) -> dict[str, Tensor]:
        """See `Learner.tensors`: the tables, and what is remembered."""
        if self.memory == self.batch:  # the next update begins with another
            return super().tensors()
        kept = min(self.step, self.memory)
        memory = {f"memory.{name}": torch.from_numpy(array[:kept]) for name, array in self._memory().items()}
        return {**super().tensors(), **memory}

    def load(self, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
        """See `Learner.load`."""
        super().load(tensors, header)
        if self.memory > self.batch:
            kept = min(header["step"], self.memory)
            for name, array in self._memory().items():
                array[:kept] = tensors[f"memory.{name}"].numpy()


def train(config: ImitateConfig, folder: Path | str, *, overwrite: bool = False) -> Summary:
    """Trains by imitation: see `training.run.train`."""
    return run.train(Trainer, config, folder, overwrite=overwrite)


__all__ = ["Interrupted", "Summary", "Trainer", "TrainingError", "train"]
