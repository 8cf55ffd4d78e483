"""Masked double dueling DQN with prioritised replay (Hessel et al. 2018), read from top to bottom.

One network plays both seats, or one seat against the agents of `training.config.RunConfig.opponents`; a random legal
action now and then. Every decision goes into the replay (`training.replay`), and from there gradient steps are taken
all along, on n-step returns that change their sign where the other seat decides.

The network is the one that PPO trains. Its logits are read as points (`training.losses.dueling_values`), so that the
likeliest action is the best one: what plays networks or exports them need not know how they were trained.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gin_env.keys import mix_keys
from training import losses, run
from training.config import DQNConfig
from training.metrics import Stopwatch
from training.player import Player
from training.replay import Draw, Replay
from training.rollout import sample
from training.run import Interrupted, Summary, TrainingError


class Trainer(Player):
    """DQN in progress.

    Args:
        config: What to train.

    Attributes:
        target: The network as it was some gradient steps ago; it says what the next positions are worth.
        gradient_steps: So many were taken.
    """

    algorithm = "dqn"
    past_samples: ClassVar[bool] = False

    def __init__(self, config: DQNConfig) -> None:
        super().__init__(config)
        if self.game.seats(self.rules) != 2:
            raise ValueError(f"rules {config.rules!r}: dqn trains games of 2 players; expected ppo or imitate")
        self.target = copy.deepcopy(self.network).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, eps=1e-5)
        self.replay = Replay(
            config.replay_size, config.tables, config.n_step, config.discount, config.priority, self.game, self.rules
        )
        self.gradient_steps = 0
        streams = mix_keys(self.games_seed, np.arange(3, 5))
        self.explore_seed, self.draw_seed = (int(stream) for stream in streams)
        self.views = np.zeros(config.tables, dtype=self.game.view.VIEW_DTYPE)
        self.sit_down()

    # ------------------------------------------------------------------------------------------------- one update

    def update(self, watch: Stopwatch) -> dict[str, float]:
        """Some decisions at each table, and the gradient steps that are due."""
        config = self.config
        before = self.step
        self.set_learning_rate()
        self.renew_past()
        self.collector.start()
        sums: dict[str, float] = {}
        first = self.gradient_steps
        for _ in range(config.horizon):
            with watch.part("rollout"):
                self.play()
            with watch.part("learn"):
                while self.gradient_steps < self.due:
                    for name, figure in self.learn().items():
                        sums[name] = sums.get(name, 0.0) + figure
        steps = self.gradient_steps - first
        scalars = {f"losses/{name}": total / steps for name, total in sums.items()}
        scalars["losses/gradient_steps"] = float(steps)
        scalars["charts/learning_rate"] = self.optimizer.param_groups[0]["lr"]
        scalars["charts/epsilon"] = self.epsilon
        scalars["charts/importance"] = self.importance
        scalars["charts/replay"] = float(self.replay.filled)
        return scalars | self.game_scalars(before)

    @property
    def due(self) -> int:
        """Gradient steps that belong to the decisions made so far."""
        config = self.config
        return int(max(self.step - config.learn_from, 0) * config.replay_ratio / config.minibatch)

    @property
    def epsilon(self) -> float:
        """The share of random decisions now."""
        config = self.config
        return float(config.epsilon * (config.epsilon_end + (1 - config.epsilon_end) * self.remaining))

    @property
    def importance(self) -> float:
        """The exponent of the importance weights now."""
        return float(1 - (1 - self.config.importance) * self.remaining)

    @torch.inference_mode()
    def play(self) -> None:
        """Plays one decision at each table and keeps it."""
        tables = self.collector.tables
        engine, observe, encode = self.game.engine, self.game.view.observe, self.game.view.encode
        views, masks, seats = observe(tables, out=self.views), engine.legal(tables), tables["mover"].copy()
        logits, _, _ = self.forward(*self.to_device(encode(views), masks))
        # The likeliest action is the best one, as `dueling_values` reads them.
        chances = losses.epsilon_greedy(logits.cpu(), torch.from_numpy(masks), self.epsilon, self.config.temperature)
        keys = engine.decision_keys(self.explore_seed, tables)
        actions, _ = sample(chances.log().clamp(min=-1e30).numpy(), masks, keys)
        rewards, cuts = np.empty(tables.size, dtype=np.float32), np.empty(tables.size, dtype=np.int8)
        self.collector.advance(actions, seats, rewards, cuts)
        self.replay.add(views, masks, actions, rewards, seats, cuts)
        self.step += tables.size

    def learn(self) -> dict[str, float]:
        """Takes one gradient step and returns its figures."""
        config = self.config
        seed = int(mix_keys(self.draw_seed, np.array([self.gradient_steps]))[0])
        draw = self.replay.draw(config.minibatch, seed, self.importance)
        seen, legal = self.to_device(*self.replay.positions.get(draw.rows))
        actions, weights = self.to_device(draw.actions, draw.weights)
        targets = self.targets(draw)
        logits, values, _ = self.forward(seen, legal)
        every = losses.dueling_values(logits, values, config.points_scale)
        chosen = every.gather(1, actions.unsqueeze(1)).squeeze(1)
        errors = targets - chosen
        loss = 0.5 * (weights * errors.square()).mean()
        self.check(loss, {"q_loss": loss})
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = self.clip_gradients(self.network)
        self.optimizer.step()
        self.replay.set_errors(draw.rows, errors.detach().cpu().numpy())
        self.gradient_steps += 1
        if self.gradient_steps % config.target_every == 0:
            self.target.load_state_dict(self.network.state_dict())
        return {
            "q_loss": loss.item(),
            "td_error": errors.detach().abs().mean().item(),
            "q_value": chosen.detach().mean().item(),
            "explained_variance": losses.explained_variance(chosen.detach(), targets),
            "grad_norm": norm.item(),
        }

    @torch.no_grad()
    def targets(self, draw: Draw) -> Tensor:
        """What the drawn decisions are worth, as far as is known now: (K,)."""
        returns, factors = self.to_device(draw.returns, draw.factors)
        # Many hands end within n decisions: nothing is to be computed for those.
        rows = np.flatnonzero(draw.factors)
        if not rows.size:
            return returns
        seen, legal = self.to_device(*self.replay.positions.get(draw.follow[rows]))
        worth = []
        for network in (self.network, self.target):
            logits, values = network(seen, legal)
            worth.append(losses.dueling_values(logits, values, self.config.points_scale))
        (places,) = self.to_device(rows)
        online, target = worth
        followed = losses.double_dqn_targets(returns[places], factors[places], online, target, legal)
        return returns.index_copy(0, places, followed)

    # ------------------------------------------------------------------------------------------------ checkpoints

    def modules(self) -> Mapping[str, torch.nn.Module]:
        """See `Learner.modules`: the target network, and the past states."""
        return {**super().modules(), "target": self.target}

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """See `Learner.optimizers`."""
        return {"optimizer": self.optimizer}

    def tensors(self) -> dict[str, Tensor]:
        """See `Learner.tensors`: the tables, and the whole replay."""
        replay = {f"replay.{name}": torch.from_numpy(array) for name, array in self.replay.arrays().items()}
        return {**super().tensors(), **replay}

    def header(self) -> dict[str, Any]:
        """See `Learner.header`."""
        replay = {"kept": self.replay.kept, "highest": self.replay.highest}
        return {**super().header(), "gradient_steps": self.gradient_steps, "replay": replay}

    def load(self, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
        """See `Learner.load`."""
        super().load(tensors, header)
        self.gradient_steps = header["gradient_steps"]
        prefix = "replay."
        arrays = {
            name.removeprefix(prefix): tensor.numpy() for name, tensor in tensors.items() if name.startswith(prefix)
        }
        self.replay.load(arrays, **header["replay"])


def train(config: DQNConfig, folder: Path | str, *, overwrite: bool = False) -> Summary:
    """Trains by DQN: see `training.run.train`."""
    return run.train(Trainer, config, folder, overwrite=overwrite)


__all__ = ["Interrupted", "Summary", "Trainer", "TrainingError", "train"]
