"""Masked PPO by self-play (Schulman et al. 2017), read from top to bottom.

One network plays all seats, or one seat against the agents of `training.config.RunConfig.opponents`. An update is: T
decisions at each of N tables, advantages along them (`training.advantages`), a few passes of clipped gradient steps.
"""

import copy
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agents.networks import CRITIC_SIZE, HIDDEN_SIZE, Critic, Network
from training import losses, run
from training.advantages import estimates
from training.config import PPOConfig
from training.metrics import Stopwatch
from training.player import Player
from training.rollout import Batch
from training.run import Interrupted, Summary, TrainingError


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device computes in bfloat16 itself. A processor that does not is many times slower than in float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or not hasattr(torch.cpu, "get_capabilities"):  # it came with torch 2.8
        return True
    able = torch.cpu.get_capabilities()
    return any(able.get(name, False) for name in ("amx_bf16", "avx512_bf16", "avx_ne_convert", "bf16"))


class Actor:
    """What the learner plays: a network's logits, and its values or those of a critic.

    Args:
        network: The network.
        critic: Whose values count in place of the network's, if there is one.
        device: Where they are.
    """

    def __init__(self, network: Network, critic: Critic | None, device: torch.device) -> None:
        self.network, self.critic, self.device = network, critic, device

    @torch.inference_mode()
    def __call__(
        self, observations: np.ndarray, masks: np.ndarray, hidden: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Logits and values as the collector asks for them."""
        seen = torch.from_numpy(observations).to(self.device)
        logits, values = self.network(seen, torch.from_numpy(masks).to(self.device))
        if self.critic is not None:
            values = self.critic(seen, torch.from_numpy(hidden).to(self.device))
        return logits.cpu().numpy(), values.cpu().numpy()

    def modules(self) -> list[nn.Module]:
        """The network and, where there is one, the critic."""
        return [self.network] if self.critic is None else [self.network, self.critic]

    def copied(self) -> "Actor":
        """Returns an actor of its own that plays the same."""
        return Actor(copy.deepcopy(self.network), copy.deepcopy(self.critic), self.device)

    def follow(self, other: "Actor") -> None:
        """Takes over the other's weights."""
        for own, its in zip(self.modules(), other.modules(), strict=True):
            own.load_state_dict(its.state_dict())


class Trainer(Player):
    """PPO in progress.

    Args:
        config: What to train.

    Attributes:
        policy: What plays, as it is now.
        ahead: With ``overlap``, the next batch, which is there already.
    """

    algorithm = "ppo"
    parallel = True

    def __init__(self, config: PPOConfig) -> None:
        super().__init__(config)
        self.critic: Critic | None = None
        parameters = list(self.network.parameters())
        if config.critic == "all" and not self.game.has_critic:
            raise ValueError(f"config: critic is 'all'; for {self.game.title} there is only 'own'")
        if config.critic == "all":
            self.critic = Critic(config.width, config.layers).to(self.device)
            parameters += self.critic.parameters()
        self.optimizer = torch.optim.Adam(parameters, lr=config.learning_rate, eps=1e-5)
        self.sees_hand = "hand" in self.network.settings and bool(self.network.settings["hand"])
        self.sit_down(config.horizon, CRITIC_SIZE if self.critic is not None else HIDDEN_SIZE if self.sees_hand else 0)
        self.bf16 = config.bf16 and has_bfloat16(self.device)
        if config.bf16 and not self.bf16:
            self.notes.append("bf16 is left off: this device has no instructions for bfloat16, float32 is faster")
        self.policy = Actor(self.network, self.critic, self.device)
        self.ahead: Batch | None = None
        if config.overlap:
            # What plays beside the learning: the weights of the moment when it began, and the tables as they were then.
            self.acting = self.policy.copied()
            self.dealt = self.collector.tables.view(np.uint8)  # as bytes: see `load`
            self.repeats = False  # whether the next batch is to be played again, after a checkpoint was read
            self.place = 0  # of the batch that was played last

    def network_options(self) -> dict[str, Any]:
        """See `Learner.network_options`."""
        return {**super().network_options(), "hand": self.config.hand_weight > 0}

    # ------------------------------------------------------------------------------------------------- one update

    def update(self, watch: Stopwatch) -> dict[str, float]:
        """One batch and its gradient steps."""
        before = self.step
        if self.config.overlap:
            scalars = self.update_beside(watch)
        else:
            self.renew_past()
            with watch.part("rollout"):
                batch = self.collector.collect(self.policy)
            with watch.part("learn"):
                scalars = self.learn(batch)
        return scalars | self.game_scalars(before)

    def update_beside(self, watch: Stopwatch) -> dict[str, float]:
        """The gradient steps of a batch, while the next one is played by the network as it was before them."""
        with watch.part("rollout"):
            batch = self.ahead or self.play_ahead(self.acting if self.repeats else self.policy)
            if self.repeats:  # its hands were counted when they were first played
                self.collector.statistics()
                self.repeats = False
            self.renew_past()
            self.acting.follow(self.policy)
            self.dealt = self.collector.tables.view(np.uint8).copy()
        # A new thread computes on all cores unless it is told itself.
        with ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(self.config.threads,)) as beside:
            following = beside.submit(self.play_ahead, self.acting)
            with watch.part("learn"):
                scalars = self.learn(batch)
            with watch.part("rollout"):
                self.ahead = following.result()
        return scalars

    def play_ahead(self, actor: Actor) -> Batch:
        """Plays a batch into the other half of the collector's memory."""
        self.place = 1 - self.place
        return self.collector.collect(actor, self.place)

    def learn(self, batch: Batch) -> dict[str, float]:
        """Takes the gradient steps of one batch and returns the mean of each figure."""
        config = self.config
        rate = self.set_learning_rate()
        entropy_weight = config.entropy * (config.entropy_end + (1 - config.entropy_end) * self.remaining)

        advantages = estimates(
            batch.rewards,
            batch.won,
            batch.values,
            batch.seats,
            batch.cuts,
            batch.last_values,
            batch.last_seats,
            config.gae_lambda,
            config.discount,
        )
        arrays = (
            batch.observations, batch.masks, batch.actions, batch.log_probs, batch.values, advantages, batch.hidden
        )  # fmt: skip
        observations, masks, actions, old, values, advantage, hidden = (
            torch.from_numpy(array.reshape(batch.actions.size, *array.shape[2:])).to(self.device) for array in arrays
        )
        targets = advantage + values
        sums: dict[str, float] = {}
        steps = 0
        stopped = False
        minibatch = self.world.share(config.minibatch, "minibatch")
        for _ in range(config.epochs):
            if stopped:
                break
            for rows in torch.randperm(actions.numel(), generator=self.shuffle).to(self.device).split(minibatch):
                # index_select copies whole rows, which is much faster than what [rows] does.
                seen, legal = observations.index_select(0, rows), masks.index_select(0, rows)
                target = targets[rows]
                with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                    logits, new_values, guess = self.forward(seen, legal)
                    if self.critic is not None:
                        base = self.critic(seen, hidden.index_select(0, rows))
                log_probs = losses.log_probabilities(logits)
                new = log_probs.gather(1, actions[rows].unsqueeze(1)).squeeze(1)
                part = advantage[rows]
                part = (part - part.mean()) / (part.std(correction=0) + 1e-8)
                policy_loss = losses.clipped_policy_loss(new, old[rows], part, config.clip)
                fit = losses.value_loss(new_values.float(), target)
                entropy = losses.masked_entropy(log_probs, legal).mean()
                parts = {"policy_loss": policy_loss, "value_loss": fit, "entropy": entropy}
                loss = policy_loss + config.value_weight * fit - entropy_weight * entropy
                if self.critic is not None:
                    parts["critic_loss"] = losses.value_loss(base.float(), target)
                    loss = loss + config.value_weight * parts["critic_loss"]
                if guess is not None:
                    parts["hand_nats"] = losses.hand_loss(guess.float(), hidden.index_select(0, rows), seen)
                    loss = loss + config.hand_weight * parts["hand_nats"]
                self.check(loss, parts)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                norm = self.clip_gradients(self.network)
                if self.critic is not None:
                    self.clip_gradients(self.critic)
                self.optimizer.step()
                with torch.no_grad():
                    log_ratio = new - old[rows]
                    ratio = log_ratio.exp()
                    kl = (ratio - 1 - log_ratio).mean()
                    figures: dict[str, Tensor] = {
                        **parts,
                        "approx_kl": kl,
                        "clipfrac": ((ratio - 1).abs() > config.clip).float().mean(),
                        "grad_norm": norm,
                    }
                for name, figure in figures.items():
                    sums[name] = sums.get(name, 0.0) + figure.item()
                steps += 1
                if config.kl_stop and self.world.mean(kl).item() > config.kl_stop:
                    stopped = True
                    break
        self.step += actions.numel() * self.world.size
        scalars = {f"losses/{name}": total / steps for name, total in sums.items()}
        scalars["losses/explained_variance"] = losses.explained_variance(values, targets)
        scalars["losses/gradient_steps"] = float(steps)
        scalars["charts/learning_rate"] = rate
        scalars["charts/entropy_weight"] = entropy_weight
        return scalars

    # ------------------------------------------------------------------------------------------------ checkpoints

    def modules(self) -> Mapping[str, torch.nn.Module]:
        """See `Learner.modules`: the critic, and the past states."""
        modules = dict(super().modules())
        if self.critic is not None:
            modules["critic"] = self.critic
        if self.config.overlap:
            modules |= {f"acting{number}": module for number, module in enumerate(self.acting.modules())}
        return modules

    def tensors(self) -> dict[str, Tensor]:
        """See `Learner.tensors`: where a batch is there already, the tables from which it can be played again."""
        return super().tensors() if self.ahead is None else self.table_tensors(self.dealt)

    def load(self, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
        """See `Learner.load`."""
        super().load(tensors, header)
        if self.config.overlap:
            self.repeats = True

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """See `Learner.optimizers`."""
        return {"optimizer": self.optimizer}


def train(config: PPOConfig, folder: Path | str, *, overwrite: bool = False, seconds: float | None = None) -> Summary:
    """Trains by PPO: see `training.run.train`."""
    return run.train(Trainer, config, folder, overwrite=overwrite, seconds=seconds)


__all__ = ["Interrupted", "Summary", "Trainer", "TrainingError", "train"]
