"""A training run: the loop around any algorithm, its checkpoints, evaluations and what ends it."""

import dataclasses
import json
import math
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from agents.games import find_game
from agents.networks import Network, build_network, network_settings
from agents.neural import NeuralAgent
from gin_env.keys import mix_keys
from training.checkpoint import (
    load_checkpoint,
    load_network,
    load_optimizer,
    load_weights,
    network_tensors,
    optimizer_tensors,
    save_checkpoint,
)
from training.config import RunConfig
from training.distributed import World
from training.folder import BEST, CHECKPOINT, CONFIG, CheckpointError, load_config, locked, write_json
from training.metrics import Display, Log, Stopwatch

# Fields that may differ when a run is resumed: they do not change what is computed before the step they stop at.
FREE_ON_RESUME = ("eval_every", "eval_deals", "eval_against", "checkpoint_every")


class TrainingError(ValueError):
    """A run that cannot go on; the message says why."""


class Interrupted(Exception):
    """Ctrl-C or a termination request: the run stopped after an update and left a checkpoint."""


class Learner:
    """An algorithm in progress: everything that a checkpoint holds. Algorithms derive from it.

    Args:
        config: What to train.

    Attributes:
        game: What is played.
        network: What plays, and is exported.
        step: Decisions of the learner so far.
        evaluation: The figures of the last evaluation.
        best: The best evaluation so far and its step.
        notes: Sentences to tell at the start.
    """

    algorithm: ClassVar[str]
    parallel: ClassVar[bool] = False  # whether several processes may share a run

    def __init__(self, config: RunConfig) -> None:
        self.config: Any = config
        self.game = find_game(config.game)
        try:
            self.rules = self.game.as_rules(config.rules)
        except ValueError as error:
            raise ValueError(f"config: rules for game {config.game!r}: {error}") from None
        self.game.check_trainable(self.rules, config.rules)
        if config.matches and not self.game.has_matches:
            raise ValueError(f"config: matches is {config.matches}; {self.game.title} is trained by single hands: 0")
        torch.set_num_threads(config.threads)
        try:
            self.device = torch.device(config.device)
            torch.empty(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"config: device {config.device!r} cannot be used: {str(error).splitlines()[0]}") from None
        self.world = World(self.device)
        if self.world.size > 1 and not self.parallel:
            raise ValueError(f"{self.algorithm} trains in one process; there are {self.world.size}")
        weights, games, order = (int(key) for key in mix_keys(config.seed, np.arange(3)))
        # Each process deals for itself.
        self.games_seed = int(mix_keys(games, np.array([self.world.rank]))[0]) if self.world.rank else games
        torch.manual_seed(weights % 2**63)
        self.network = self.build()
        self.shuffle = torch.Generator().manual_seed(order % 2**63)
        self.step = 0
        self.evaluation: dict[str, float] = {}
        self.best: dict[str, float] = {}
        self.notes: list[str] = []

    def build(self) -> Network:
        """Returns the network at the start: a new one, or that of the run or bundle it starts from."""
        config = self.config
        settings = network_settings(config.network, self.network_options(), self.game.name)
        network = build_network(config.network, settings, self.game.name)
        if config.start_from:
            tensors = load_weights(Path(config.start_from))
            # The guess at the opponent's hand may be there in only one of them: not every algorithm trains it.
            own = {name: tensor for name, tensor in network_tensors(network).items() if ".hand_out." in name}
            tensors = own | {name: tensors[name] for name in tensors if own or ".hand_out." not in name}
            load_network(network, tensors, grow=True)
        return network.to(self.device)

    def network_options(self) -> dict[str, Any]:
        """The settings of networks that the config and the rules give."""
        names = ("width", "layers", "knock_bias", "cards", "card_layers", "skip")
        return {name: getattr(self.config, name) for name in names} | self.game.network_options(self.rules)

    @property
    def remaining(self) -> float:
        """The share of the run that lies ahead."""
        return max(1 - self.step / self.config.total_steps, 0.0)

    def update(self, watch: Stopwatch) -> dict[str, float]:
        """Plays, learns, and advances `step`. Returns scalars (`training.metrics.GLOSSARY`)."""
        raise NotImplementedError

    def modules(self) -> Mapping[str, torch.nn.Module]:
        """Further modules that learn, by name."""
        return {}

    def optimizers(self) -> Mapping[str, torch.optim.Optimizer]:
        """The optimizers, by name."""
        raise NotImplementedError

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint holds beyond networks and optimizers."""
        return {}

    def header(self) -> dict[str, Any]:
        """Plain values that a checkpoint holds beyond those of every run."""
        return {}

    def load(self, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
        """Puts back what `tensors` and `header` gave."""

    def set_learning_rate(self) -> float:
        """Sets and returns the step of this moment: it falls linearly."""
        end = self.config.learning_rate_end
        rate: float = self.config.learning_rate * (end + (1 - end) * self.remaining)
        for optimizer in self.optimizers().values():
            for group in optimizer.param_groups:
                group["lr"] = rate
        return rate

    def check(self, loss: Tensor, parts: Mapping[str, Tensor]) -> None:
        """Ends the run if a loss is no number.

        Raises:
            TrainingError: If so.
        """
        if not torch.isfinite(loss):
            told = ", ".join(f"{name} {part.item()}" for name, part in parts.items())
            raise TrainingError(
                f"the loss became {loss.item()} at step {self.step:,} ({told}); the last checkpoint is whole. Try a "
                "lower learning_rate"
            )

    def clip_gradients(self, module: torch.nn.Module) -> Tensor:
        """Averages the gradient of a module over the processes, bounds it and returns its norm before.

        Raises:
            TrainingError: If it is no number.
        """
        self.world.average_gradients(module.parameters())
        norm = torch.nn.utils.clip_grad_norm_(module.parameters(), self.config.max_grad_norm)
        if not torch.isfinite(norm):
            raise TrainingError(
                f"the gradient became {norm.item()} at step {self.step:,}; the last checkpoint is whole. Try a lower "
                "learning_rate"
            )
        return norm

    # ------------------------------------------------------------------------------------------------- evaluation

    def agent(self) -> NeuralAgent:
        """The network as it is, playing its likeliest actions."""
        return NeuralAgent(self.network, device=str(self.device), game=self.game)

    def evaluate(self) -> dict[str, float]:
        """Plays against the agents of the config, on deals that no training table sees."""
        scalars: dict[str, float] = {}
        means = []
        agent = self.agent()
        for place, name in enumerate(self.config.eval_against):
            result = self.game.play_match(
                agent,
                self.game.make(name),
                deals=self.config.eval_deals,
                seed=self.config.seed + 1_000_003,
                rules=self.rules,
            )
            means.append(result.points_per_hand)
            figures = {
                "points_per_hand": result.points_per_hand,
                "ci95_low": result.ci95[0],
                "ci95_high": result.ci95[1],
                "win_rate": result.hands_won / result.hands,
            }
            if place == 0:
                self.evaluation = figures
                scalars |= {f"eval/{figure}": value for figure, value in figures.items()}
            else:
                scalars[f"eval/against_{name.replace(':', '_')}"] = result.points_per_hand
        scalars["eval/mean"] = sum(means) / len(means)
        return scalars

    # ------------------------------------------------------------------------------------------------ checkpoints

    def save(self, run: Path) -> None:
        """Writes the run's checkpoint. All processes take part, the first one writes."""
        tensors = {**network_tensors(self.network), "shuffle": self.shuffle.get_state()}
        for name, module in self.modules().items():
            tensors |= network_tensors(module, name)
        for name, optimizer in self.optimizers().items():
            tensors |= optimizer_tensors(optimizer, name)
        tensors |= self.tensors()
        if self.world.leads:
            save_checkpoint(run / CHECKPOINT, tensors, {**self._header(), **self.header()})

    def save_best(self, run: Path, mean: float) -> None:
        """Keeps the network as it is beside the checkpoint, if it is the best so far."""
        if mean > self.best.get("mean", -math.inf):
            self.best = {"mean": mean, "step": self.step}
            save_checkpoint(run / BEST, network_tensors(self.network), {**self._header(), "best": self.best})

    def _header(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "step": self.step,
            "game": self.game.name,
            "tables": str(self.game.tables.TABLE_DTYPE.descr),
            "evaluation": self.evaluation,
            "rules": self.rules.to_dict(),
            "network": {"name": self.config.network, "settings": self.network.settings},
        }

    def restore(self, run: Path) -> None:
        """Puts back the run's checkpoint.

        Raises:
            CheckpointError: If it is damaged or is not of this run.
        """
        path = run / CHECKPOINT
        tensors, header = load_checkpoint(path)
        load_network(self.network, tensors)
        try:
            for name, module in self.modules().items():
                load_network(module, tensors, name)
            for name, optimizer in self.optimizers().items():
                load_optimizer(optimizer, tensors, name)
            self.shuffle.set_state(tensors["shuffle"])
            if header["tables"] != str(self.game.tables.TABLE_DTYPE.descr):
                raise CheckpointError(f"checkpoint {path} holds tables of another version of the engine")
            # The config names the rules; a file of that name may have changed since.
            if self.game.rules_of(header["rules"]).fingerprint != self.rules.fingerprint:
                raise CheckpointError(
                    f"checkpoint {path} was trained by other rules than {self.config.rules!r} are now"
                )
            self.load(tensors, header)
            self.evaluation = header["evaluation"]
            self.step = header["step"]
            best = load_checkpoint(run / BEST)[1]["best"] if (run / BEST).exists() else {}
            # One of later updates, which are to be done again, does not count.
            self.best = best if best.get("step", 0) <= self.step else {}
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


def train(
    kind: type[Learner],
    config: RunConfig,
    run: Path | str,
    *,
    overwrite: bool = False,
    seconds: float | None = None,
) -> Summary:
    """Trains to ``config.total_steps``, from the run's checkpoint where there is one.

    Args:
        kind: The algorithm.
        config: What to train.
        run: The run's folder: config, checkpoints, metrics.
        overwrite: Whether to start afresh in a folder that holds a run.
        seconds: Time after which this call leaves a checkpoint and returns; None for no limit.

    Raises:
        CheckpointError: If the folder holds another run, or a damaged one, or another process trains in it.
        TrainingError: If the loss stops being a number, or the folder cannot be written. The last checkpoint is whole.
        Interrupted: After Ctrl-C; a checkpoint is written.
        ValueError: If the config names rules or agents that do not exist.
    """
    run = Path(run)
    learner = kind(config)  # says what is wrong with the config before anything is written
    world = learner.world
    with ExitStack() as stack:
        stack.callback(world.leave)
        resume = False
        if world.leads:
            with _writing(run):
                run.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(run))
                resume = _prepare(config, run, overwrite)
        resume = world.any(resume)
        if resume:
            learner.restore(run)
        log = None
        if world.leads:
            with _writing(run):
                if not resume:
                    write_json(run / CONFIG, {"algorithm": kind.algorithm, **config.to_dict()})
                log = stack.enter_context(Log(run, learner.step))
        display = stack.enter_context(Display(config.total_steps, learner.step, quiet=not world.leads))
        interrupted = stack.enter_context(_interruptible())
        for note in learner.notes:
            display.line(note)
        if resume:
            display.line(f"going on with {run} at step {learner.step:,}")
        start, first_step, watch = time.perf_counter(), learner.step, Stopwatch()
        while learner.step < config.total_steps:
            before, tick = learner.step, time.perf_counter()
            scalars = learner.update(watch)
            rate = (learner.step - before) / (time.perf_counter() - tick)
            scalars["charts/SPS"] = rate
            last = learner.step >= config.total_steps
            broken_off = world.any(bool(interrupted))
            late = world.any(seconds is not None and time.perf_counter() - start >= seconds)
            stop = last or broken_off or late
            evaluates = world.leads and (last or crossed(before, learner.step, config.eval_every))
            if evaluates:
                with watch.part("evaluate"):
                    scalars |= learner.evaluate()
                display.line(_evaluation_line(learner, rate, scalars["eval/mean"]))
            scalars |= {f"time/{name}": share for name, share in watch.shares().items()}
            with _writing(run):
                if evaluates:
                    learner.save_best(run, scalars["eval/mean"])
                if log is not None:
                    scalars["time/seconds"] = log.seconds + time.perf_counter() - start
                    log.write(learner.step, scalars)
                if stop or crossed(before, learner.step, config.checkpoint_every):
                    learner.save(run)
            points = learner.evaluation.get("points_per_hand", math.nan)
            display.update(learner.step, rate, f"{points:+.2f} v {config.eval_against[0]}; {watch}")
            if broken_off and not last:
                raise Interrupted(
                    f"stopped at step {learner.step:,} of {config.total_steps:,}; the checkpoint is "
                    f"{run / CHECKPOINT}, and the same command goes on from it"
                )
            if late:
                break
        took = time.perf_counter() - start
        done = learner.step - first_step
        if done:
            display.line(f"{done:,} decisions in {took:,.0f} s ({done / took:,.0f} a second; {watch})")
        else:
            display.line(f"{run} has already reached its {config.total_steps:,} steps")
    return Summary(run, learner.step, took, learner.evaluation)


@contextmanager
def _writing(run: Path) -> Iterator[None]:
    """Says in one sentence that a run's folder cannot be written, and what is left."""
    try:
        yield
    except OSError as error:
        whole = os.path.exists(run / CHECKPOINT)
        left = (
            "the last checkpoint is whole, and the same command goes on from it" if whole else "there is no checkpoint"
        )
        raise TrainingError(f"cannot write {error.filename or run}: {error.strerror or error}; {left}") from None


def _prepare(config: RunConfig, run: Path, overwrite: bool) -> bool:
    """Says whether a run is to be resumed, and refuses to mix two runs."""
    if overwrite:
        for name in (CONFIG, CHECKPOINT, BEST):
            (run / name).unlink(missing_ok=True)
        return False
    if not (run / CONFIG).exists():
        return False
    # A run of an older version lacks what it did not know: the game, which was gin.
    there = {"game": "gin", **load_config(run)}
    wanted = {"algorithm": config.algorithm, **json.loads(json.dumps(config.to_dict()))}
    differing = [name for name in wanted if name not in FREE_ON_RESUME and there.get(name) != wanted[name]]
    if differing:
        name = differing[0]
        raise CheckpointError(
            f"{run} holds a run with other settings ({name} is {there.get(name)!r} there and {wanted[name]!r} here); "
            "choose another --run, or pass --overwrite"
        )
    return (run / CHECKPOINT).exists()


def crossed(before: int, after: int, every: int) -> bool:
    """Whether a multiple of ``every`` lies in (before, after]."""
    return before // every != after // every


def _evaluation_line(learner: Learner, rate: float, mean: float) -> str:
    figures, names = learner.evaluation, learner.config.eval_against
    others = f", {mean:+.2f} on average v {', '.join(names)}" if len(names) > 1 else ""
    return (
        f"step {learner.step:>12,}  {figures['points_per_hand']:+6.2f} points a hand v {names[0]} "
        f"({figures['ci95_low']:+.2f} to {figures['ci95_high']:+.2f}), wins {figures['win_rate']:.0%}{others}, "
        f"{rate:,.0f} decisions/s"
    )


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Collects the first SIGINT or SIGTERM in a list; a second one interrupts at once."""
    seen: list[int] = []

    def note(number: int, frame: Any) -> None:
        if seen:
            before = old[signal.Signals(number)]
            if callable(before):
                before(number, frame)  # whoever started the run may want to know
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
