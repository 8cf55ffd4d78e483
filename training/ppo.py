"""Masked PPO by self-play (Schulman et al. 2017), read from top to bottom.

One network plays both seats, or one seat against the agents of `PPOConfig.opponents`. An update is: T decisions at
each of N tables, seat-signed advantages (`training.advantages`), a few passes of clipped gradient steps.
"""

import dataclasses
import json
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import agents
from agents.match import play_match
from agents.networks import Network, build_network, network_settings
from agents.neural import NeuralAgent
from gin_env.engine import mix_keys
from gin_env.rules import Rules, as_rules, automatic
from gin_env.tables import TABLE_DTYPE
from training import losses
from training.advantages import signed_gae
from training.checkpoint import (
    CHECKPOINT,
    CONFIG,
    CheckpointError,
    load_checkpoint,
    load_config,
    load_network,
    load_optimizer,
    network_tensors,
    optimizer_tensors,
    save_checkpoint,
    write_json,
)
from training.config import PPOConfig
from training.metrics import Display, Log, Stopwatch
from training.rollout import Batch, Collector

# Fields that may differ when a run is resumed: they do not change what is computed before the step they stop at.
FREE_ON_RESUME = ("eval_every", "eval_deals", "checkpoint_every")


class TrainingError(ValueError):
    """A run that cannot go on; the message says why."""


class Interrupted(Exception):
    """Ctrl-C or a termination request: the run stopped after an update and left a checkpoint."""


class Trainer:
    """A run in progress: everything that a checkpoint holds.

    Args:
        config: What to train.
    """

    def __init__(self, config: PPOConfig) -> None:
        self.config = config
        self.rules = as_rules(config.rules)
        if self.rules.manual:
            raise ValueError(
                f"rules {config.rules!r} are manual, and this trains with automatic melds and layoffs: "
                f"expected {automatic(self.rules).text!r}; what it trains plays the manual rules too"
            )
        torch.set_num_threads(config.threads)
        weights, games, order = (int(key) for key in mix_keys(config.seed, np.arange(3)))
        torch.manual_seed(weights % 2**63)
        options = {"width": config.width, "layers": config.layers, "knock_bias": config.knock_bias}
        self.network: Network = build_network(config.network, network_settings(config.network, options))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, eps=1e-5)
        self.collector = Collector(
            self.rules, config.tables, config.horizon, config.opponents, games, config.points_scale
        )
        self.shuffle = torch.Generator().manual_seed(order % 2**63)
        self.step = 0
        self.evaluation: dict[str, float] = {}

    # ------------------------------------------------------------------------------------------------- one update

    @torch.inference_mode()
    def policy(self, observations: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logits and values as the collector asks for them."""
        logits, values = self.network(torch.from_numpy(observations), torch.from_numpy(masks))
        return logits.numpy(), values.numpy()

    def learn(self, batch: Batch) -> dict[str, float]:
        """Takes the gradient steps of one batch and returns the mean of each figure."""
        config = self.config
        remaining = 1 - self.step / config.total_steps
        decay = 0.1 + 0.9 * max(remaining, 0.0)
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * decay
        entropy_weight = config.entropy * decay

        advantages = signed_gae(
            batch.rewards,
            batch.values,
            batch.seats,
            batch.cuts,
            batch.last_values,
            batch.last_seats,
            config.gae_lambda,
            config.discount,
        )
        observations, masks, actions, old, values, advantage = (
            torch.from_numpy(array.reshape(-1, *array.shape[2:]))
            for array in (batch.observations, batch.masks, batch.actions, batch.log_probs, batch.values, advantages)
        )
        targets = advantage + values
        sums: dict[str, float] = {}
        steps = 0
        for _ in range(config.epochs):
            for rows in torch.randperm(actions.numel(), generator=self.shuffle).split(config.minibatch):
                # index_select copies whole rows, which is much faster than what [rows] does.
                legal = masks.index_select(0, rows)
                logits, new_values = self.network(observations.index_select(0, rows), legal)
                log_probs = losses.log_probabilities(logits)
                new = log_probs.gather(1, actions[rows].unsqueeze(1)).squeeze(1)
                part = advantage[rows]
                part = (part - part.mean()) / (part.std(correction=0) + 1e-8)
                policy_loss = losses.clipped_policy_loss(new, old[rows], part, config.clip)
                fit = losses.value_loss(new_values, targets[rows])
                entropy = losses.masked_entropy(log_probs, legal).mean()
                loss = policy_loss + config.value_weight * fit - entropy_weight * entropy
                if not torch.isfinite(loss):
                    raise TrainingError(
                        f"the loss became {loss.item()} at step {self.step:,} (policy {policy_loss.item()}, value "
                        f"{fit.item()}, entropy {entropy.item()}); the last checkpoint is whole. Try a lower "
                        "learning_rate"
                    )
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), config.max_grad_norm)
                if not torch.isfinite(norm):
                    raise TrainingError(
                        f"the gradient became {norm.item()} at step {self.step:,}; the last checkpoint is whole. Try a "
                        "lower learning_rate"
                    )
                self.optimizer.step()
                with torch.no_grad():
                    log_ratio = new - old[rows]
                    ratio = log_ratio.exp()
                    figures: dict[str, Tensor] = {
                        "policy_loss": policy_loss,
                        "value_loss": fit,
                        "entropy": entropy,
                        "approx_kl": (ratio - 1 - log_ratio).mean(),
                        "clipfrac": ((ratio - 1).abs() > config.clip).float().mean(),
                        "grad_norm": norm,
                    }
                for name, figure in figures.items():
                    sums[name] = sums.get(name, 0.0) + figure.item()
                steps += 1
        self.step += actions.numel()
        scalars = {f"losses/{name}": total / steps for name, total in sums.items()}
        scalars["losses/explained_variance"] = losses.explained_variance(values, targets)
        scalars["charts/learning_rate"] = config.learning_rate * decay
        scalars["charts/entropy_weight"] = entropy_weight
        return scalars

    def evaluate(self) -> dict[str, float]:
        """Plays the likeliest actions against greedy, on deals that no training table sees."""
        agent = NeuralAgent(self.network)
        result = play_match(
            agent,
            agents.make("greedy"),
            deals=self.config.eval_deals,
            seed=self.config.seed + 1_000_003,
            rules=self.rules,
        )
        self.evaluation = {
            "points_per_hand": result.points_per_hand,
            "ci95_low": result.ci95[0],
            "ci95_high": result.ci95[1],
            "win_rate": result.hands_won / (2 * result.deals),
        }
        return {f"eval/{name}": value for name, value in self.evaluation.items()}

    # ------------------------------------------------------------------------------------------------ checkpoints

    def save(self, run: Path) -> None:
        """Writes the run's checkpoint."""
        tensors = {
            **network_tensors(self.network),
            **optimizer_tensors(self.optimizer),
            "tables": torch.from_numpy(self.collector.tables.view(np.uint8).copy()),
            "shuffle": self.shuffle.get_state(),
        }
        header = {
            "step": self.step,
            "tables": str(TABLE_DTYPE.descr),
            "evaluation": self.evaluation,
            "rules": self.rules.to_dict(),
            "network": {"name": self.config.network, "settings": self.network.settings},
        }
        save_checkpoint(run / CHECKPOINT, tensors, header)

    def restore(self, run: Path) -> None:
        """Puts back the run's checkpoint.

        Raises:
            CheckpointError: If it is damaged or is not of this run.
        """
        path = run / CHECKPOINT
        tensors, header = load_checkpoint(path)
        load_network(self.network, tensors)
        try:
            load_optimizer(self.optimizer, tensors)
            self.shuffle.set_state(tensors["shuffle"])
            if header["tables"] != str(TABLE_DTYPE.descr):
                raise CheckpointError(f"checkpoint {path} holds tables of another version of the engine")
            # The config names the rules; a file of that name may have changed since.
            if Rules.from_dict(header["rules"]).fingerprint != self.rules.fingerprint:
                raise CheckpointError(
                    f"checkpoint {path} was trained by other rules than {self.config.rules!r} are now"
                )
            # Copied as bytes: a copy of records leaves the bytes between their fields to chance, and with them the
            # next checkpoint's.
            self.collector.tables = tensors["tables"].numpy().copy().view(TABLE_DTYPE)
            self.evaluation = header["evaluation"]
            self.step = header["step"]
        except CheckpointError:
            raise
        except (KeyError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"checkpoint {path} is damaged: {error}") from None


# ------------------------------------------------------------------------------------------------------------ a run


@dataclasses.dataclass(frozen=True)
class Summary:
    """How a run ended."""

    run: Path
    step: int
    seconds: float
    evaluation: dict[str, float]


def train(config: PPOConfig, run: Path | str, *, overwrite: bool = False) -> Summary:
    """Trains to ``config.total_steps``, from the run's checkpoint where there is one.

    Args:
        config: What to train.
        run: The run's folder: config, checkpoint, metrics.
        overwrite: Whether to start afresh in a folder that holds a run.

    Raises:
        CheckpointError: If the folder holds another run, or a damaged one.
        TrainingError: If the loss stops being a number.
        Interrupted: After Ctrl-C; a checkpoint is written.
        ValueError: If the config names rules or agents that do not exist.
    """
    run = Path(run)
    resume = _prepare(config, run, overwrite)
    trainer = Trainer(config)
    if resume:
        trainer.restore(run)
    else:
        run.mkdir(parents=True, exist_ok=True)
        write_json(run / CONFIG, config.to_dict())
    start = time.perf_counter()
    first_step = trainer.step
    watch = Stopwatch()
    log = Log(run, trainer.step)
    try:
        with Display(config.total_steps, trainer.step) as display, _interruptible() as interrupted:
            if resume:
                display.line(f"going on with {run} at step {trainer.step:,}")
            while trainer.step < config.total_steps:
                before, tick = trainer.step, time.perf_counter()
                with watch.part("rollout"):
                    batch = trainer.collector.collect(trainer.policy)
                with watch.part("learn"):
                    scalars = trainer.learn(batch)
                rate = (trainer.step - before) / (time.perf_counter() - tick)
                scalars["charts/SPS"] = rate
                scalars |= {f"game/{name}": value for name, value in trainer.collector.statistics().items()}
                last = trainer.step >= config.total_steps
                stop = last or bool(interrupted)
                if last or _crossed(before, trainer.step, config.eval_every):
                    with watch.part("evaluate"):
                        scalars |= trainer.evaluate()
                    display.line(_evaluation_line(trainer, rate))
                scalars |= {f"time/{name}": share for name, share in watch.shares().items()}
                log.write(trainer.step, scalars)
                if stop or _crossed(before, trainer.step, config.checkpoint_every):
                    trainer.save(run)
                points = trainer.evaluation.get("points_per_hand", math.nan)
                display.update(trainer.step, rate, f"{points:+.2f} v greedy; {watch}")
                if stop and not last:
                    raise Interrupted(
                        f"stopped at step {trainer.step:,} of {config.total_steps:,}; the checkpoint is "
                        f"{run / CHECKPOINT}, and the same command goes on from it"
                    )
            seconds = time.perf_counter() - start
            done = trainer.step - first_step
            if done:
                display.line(f"{done:,} decisions in {seconds:,.0f} s ({done / seconds:,.0f} a second; {watch})")
            else:
                display.line(f"{run} has already reached its {config.total_steps:,} steps")
    finally:
        log.close()
    return Summary(run, trainer.step, seconds, trainer.evaluation)


def _prepare(config: PPOConfig, run: Path, overwrite: bool) -> bool:
    """Says whether a run is to be resumed, and refuses to mix two runs."""
    if overwrite:
        for name in (CONFIG, CHECKPOINT):
            (run / name).unlink(missing_ok=True)
        return False
    if not (run / CONFIG).exists():
        return False
    there, wanted = load_config(run), json.loads(json.dumps(config.to_dict()))
    differing = [name for name in wanted if name not in FREE_ON_RESUME and there.get(name) != wanted[name]]
    if differing:
        name = differing[0]
        raise CheckpointError(
            f"{run} holds a run with other settings ({name} is {there.get(name)!r} there and {wanted[name]!r} here); "
            "choose another --run, or pass --overwrite"
        )
    return (run / CHECKPOINT).exists()


def _crossed(before: int, after: int, every: int) -> bool:
    return before // every != after // every


def _evaluation_line(trainer: Trainer, rate: float) -> str:
    figures = trainer.evaluation
    return (
        f"step {trainer.step:>12,}  {figures['points_per_hand']:+6.2f} points a hand v greedy "
        f"({figures['ci95_low']:+.2f} to {figures['ci95_high']:+.2f}), wins {figures['win_rate']:.0%}, "
        f"{rate:,.0f} decisions/s"
    )


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Collects the first SIGINT or SIGTERM in a list; a second one interrupts at once."""
    seen: list[int] = []

    def note(number: int, frame: Any) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    try:
        old = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:
        # Signals reach the main thread only; elsewhere the run cannot be interrupted.
        yield seen
        return
    try:
        yield seen
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
