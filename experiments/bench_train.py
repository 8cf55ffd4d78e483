"""How fast training is: decisions per second of this project's PPO and of sb3-contrib's MaskablePPO, side by side.

Both train multilayer perceptrons of the same sizes (`agents.networks.FlatNet`; `MlpPolicy`, which has as many weights),
with as many tables, decisions between two updates, passes, decisions in a gradient step and threads, and the same
opponent. MaskablePPO plays on `gin_env.adapters.sb3.GinRummyVecEnv`. So what differs is the trainer.

What is counted is a decision of the learner that enters the gradient: tables x horizon for each update of either
library, however many passes are made. The opponent's decisions are not counted, nor are those that a network makes only
to bootstrap a value. In self-play the learner decides in both seats, and all decisions count; MaskablePPO has no
self-play, so that line has nothing beside it.

Large networks spend nearly all the time in the same matrix products, whichever library asks for them, and so do many
passes: both bring the two closer together. Width 64 is what ``MlpPolicy`` has by default.

A round is whole updates, rollout and gradient steps, without evaluations or checkpoints. The rounds take turns, and
their median counts, as in `experiments.bench`.

`bench_recipe` measures a recipe alone, with its own network and opponents, and takes the rollout's time apart.
"""

import dataclasses
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import torch
from torch import nn

from agents.networks import count_parameters
from experiments.bench import Loop, Round, cpu_name, summary, version
from training.config import PPOConfig
from training.metrics import Stopwatch
from training.ppo import Trainer

OURS, PEER = "gin_env", "MaskablePPO"
SELF_PLAY = "self-play"
PARTS = ("rollout", "learn")
RECIPE_PARTS = ("network", "opponents", "engine", "learn")
LIBRARIES = ("gin-env", "torch", "numpy", "numba", "stable-baselines3", "sb3-contrib")


class TrainerLoop:
    """This project's PPO.

    Args:
        config: What is trained.
    """

    def __init__(self, config: PPOConfig) -> None:
        self.trainer = Trainer(config)
        self.parameters = count_parameters(self.trainer.network)

    def run(self, seconds: float) -> Round:
        """Trains for about so many seconds, at least one update."""
        trainer, first, watch = self.trainer, self.trainer.step, Stopwatch()
        cpu = time.process_time()
        start = time.perf_counter()
        while trainer.step == first or time.perf_counter() - start < seconds:
            trainer.update(watch)
        took = time.perf_counter() - start
        parts = tuple(watch.seconds[part] for part in PARTS)
        return Round(trainer.step - first, took, time.process_time() - cpu, parts)


class RecipeLoop(TrainerLoop):
    """This project's PPO, with the rollout's time taken apart.

    Args:
        config: What is trained.
    """

    def __init__(self, config: PPOConfig) -> None:
        super().__init__(config)
        self.spent = dict.fromkeys(("network", "opponents"), 0.0)
        collector = self.trainer.collector
        self.trainer.policy = self._timed("network", self.trainer.policy)  # type: ignore[assignment]
        collector.opponents.act = self._timed("opponents", collector.opponents.act)  # type: ignore[method-assign]

    def _timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args)
            finally:
                self.spent[part] += time.perf_counter() - start

        return timed

    def run(self, seconds: float) -> Round:
        """Trains for about so many seconds, at least one update. Its parts are those of `RECIPE_PARTS`."""
        before = dict(self.spent)
        round_ = super().run(seconds)
        rollout, learn = round_.parts
        network, opponents = (self.spent[part] - before[part] for part in ("network", "opponents"))
        return round_._replace(parts=(network, opponents, rollout - network - opponents, learn))


def bench_recipe(
    config: PPOConfig,
    name: str,
    *,
    seconds: float = 1.0,
    rounds: int = 5,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measures how fast a recipe trains, and where the time goes.

    Args:
        config: The recipe.
        name: What to call it.
        seconds: Least length of a round; it ends with an update.
        rounds: Rounds.
        progress: Called with a line of text before each measurement.

    Returns:
        Plain values: one entry as those of `bench_train`, whose ``parts`` are the shares of the network and of the
        opponents in rollouts, of the engine with all else that a rollout does, and of learning. Of a recipe with
        ``overlap`` they are the shares of learning and of waiting for the rollout beside it.

    Raises:
        ValueError: If an argument is out of range.
    """
    _check(seconds, rounds)
    say = progress or (lambda line: None)
    threads_before, kernels_before = torch.get_num_threads(), numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        say("getting ready (the first run on a machine compiles)")
        # The rates do not depend on how far the learning is, but a decaying learning rate should never reach its end.
        kind, parts = (TrainerLoop, PARTS) if config.overlap else (RecipeLoop, RECIPE_PARTS)
        loop = kind(dataclasses.replace(config, total_steps=10**12))
        torch.set_num_threads(config.threads)
        took = loop.run(1e-9).seconds
        say(f"an update took {took:,.1f} s; {rounds} rounds of at least one, and of {seconds:g} s")
        runs = []
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            runs.append(loop.run(seconds))
    finally:
        torch.set_num_threads(threads_before)
        numba.set_num_threads(kernels_before)
    line = {"library": OURS, "opponent": f"recipe {name}", "parameters": loop.parameters}
    settings = (
        "tables",
        "horizon",
        "minibatch",
        "epochs",
        "width",
        "layers",
        "cards",
        "card_layers",
        "threads",
        "overlap",
    )
    return {
        "entries": [line | summary(runs, config.threads + config.overlap) | {"parts": _parts(runs, parts)}],
        "settings": {field: getattr(config, field) for field in settings},
        **_machine(seconds),
    }


class MaskablePPOLoop:
    """MaskablePPO with the same settings, as far as it has them.

    Args:
        config: What is trained; its one opponent has all tables.

    Raises:
        ImportError: If sb3-contrib is not installed.
    """

    def __init__(self, config: PPOConfig) -> None:
        from sb3_contrib import MaskablePPO
        from stable_baselines3.common.callbacks import BaseCallback

        from gin_env.adapters.sb3 import GinRummyVecEnv

        class Watch(BaseCallback):
            """Notes when a rollout ended."""

            def _on_step(self) -> bool:
                return True

            def _on_rollout_end(self) -> None:
                self.ended = time.perf_counter()

        (opponent,) = config.opponents
        env = GinRummyVecEnv(
            config.tables, config.rules, opponent=f"agents:{opponent}", reward_scale=1 / config.points_scale
        )
        self.batch = config.tables * config.horizon
        self.watch = Watch()
        self.model = MaskablePPO(
            "MlpPolicy",
            env,
            learning_rate=config.learning_rate,
            n_steps=config.horizon,
            batch_size=config.minibatch,
            n_epochs=config.epochs,
            gamma=config.discount,
            gae_lambda=config.gae_lambda,
            clip_range=config.clip,
            ent_coef=config.entropy,
            vf_coef=config.value_weight / 2,  # its squared error is not halved
            max_grad_norm=config.max_grad_norm,
            policy_kwargs={"net_arch": [config.width] * config.layers, "activation_fn": nn.ReLU},
            seed=config.seed,
            device="cpu",
        )
        self.parameters = count_parameters(self.model.policy)

    def run(self, seconds: float) -> Round:
        """Trains for about so many seconds, at least one update."""
        decisions, parts = 0, [0.0, 0.0]
        cpu = time.process_time()
        start = now = time.perf_counter()
        while not decisions or now - start < seconds:
            self.model.learn(self.batch, callback=self.watch, reset_num_timesteps=False, log_interval=None)
            parts[0] += self.watch.ended - now
            now = time.perf_counter()
            parts[1] += now - self.watch.ended
            decisions += self.batch
        return Round(decisions, now - start, time.process_time() - cpu, tuple(parts))


class Entry(NamedTuple):
    """A line of the benchmark."""

    library: str
    opponent: str
    loop: Loop
    parameters: int


def bench_train(
    *,
    tables: int = 1024,
    horizon: int = 64,
    minibatch: int = 4096,
    epochs: int = 1,
    width: int = 64,
    layers: int = 2,
    threads: int = 1,
    opponent: str = "random",
    seconds: float = 1.0,
    rounds: int = 5,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measures decisions per second, side by side.

    Args:
        tables: Tables of each.
        horizon: Decisions at each table between two updates.
        minibatch: Decisions in each gradient step.
        epochs: Passes over each batch.
        width: Units of each hidden layer.
        layers: Hidden layers.
        threads: Threads of torch.
        opponent: Who sits opposite the learner, by its name; both play against it.
        seconds: Least length of a round; it ends with an update.
        rounds: Rounds of each; all take turns.
        progress: Called with a line of text before each measurement.

    Returns:
        Plain values. ``entries`` is a list; each entry has ``library``, ``opponent`` (or "self-play"), ``parameters``
        of the network, ``decisions_per_second`` (the median of the rounds, by the clock), ``best``, ``rounds`` (all of
        them), ``per_core_second`` (the same median for the seconds in which the threads had a core), ``cpu_share`` and
        ``parts``: the share of the time for rollouts and for gradient steps. ``ratio`` is that of the two medians
        against the opponent, ``ratio_per_core`` the same for ``per_core_second``; both None where sb3-contrib is not
        installed, and ``missing`` then says what to install. Then what was run on what.

    Raises:
        ValueError: If an argument is out of range.
    """
    _check(seconds, rounds)
    settings: dict[str, Any] = {
        "tables": tables,
        "horizon": horizon,
        "minibatch": minibatch,
        "epochs": epochs,
        "width": width,
        "layers": layers,
        "threads": threads,
    }
    # The rates do not depend on how far the learning is, but a decaying learning rate should never reach its end.
    alone = PPOConfig(**settings, network="mlp", total_steps=10**12)
    against = PPOConfig(**alone.to_dict() | {"opponents": {opponent: 1.0}})
    say = progress or (lambda line: None)
    missing = None
    threads_before, kernels_before = torch.get_num_threads(), numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        say("getting ready (the first run on a machine compiles)")
        entries = []
        for config, label in ((against, opponent), (alone, SELF_PLAY)):
            ours = TrainerLoop(config)
            entries.append(Entry(OURS, label, ours, ours.parameters))
        try:
            peer = MaskablePPOLoop(against)
            entries.insert(1, Entry(PEER, opponent, peer, peer.parameters))
        except ImportError as error:
            missing = f'{PEER} is not measured: pip install "gin-env[sb3]" ({error})'
            say(missing)
        torch.set_num_threads(threads)
        for entry in entries:
            entry.loop.run(1e-9)  # compiles, and fills the caches
        measured: list[list[Round]] = [[] for _ in entries]
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for entry, runs in zip(entries, measured, strict=True):
                runs.append(entry.loop.run(seconds))
    finally:
        torch.set_num_threads(threads_before)
        numba.set_num_threads(kernels_before)

    lines: list[dict[str, Any]] = []
    for entry, runs in zip(entries, measured, strict=True):
        line = {"library": entry.library, "opponent": entry.opponent, "parameters": entry.parameters}
        lines.append(line | summary(runs, threads) | {"parts": _parts(runs)})

    def ratio(name: str) -> float | None:
        return None if missing else lines[0][name] / lines[1][name]

    return {
        "entries": lines,
        "ratio": ratio("decisions_per_second"),
        "ratio_per_core": ratio("per_core_second"),
        "missing": missing,
        "settings": settings,
        **_machine(seconds),
    }


def _check(seconds: float, rounds: int) -> None:
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}; expected at least 1")
    if not seconds > 0:
        raise ValueError(f"seconds is {seconds}; expected more than 0")


def _machine(seconds: float) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "cpu": cpu_name(),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES},
    }


def _parts(rounds: list[Round], names: tuple[str, ...] = PARTS) -> dict[str, float]:
    """Returns the median over the rounds of each part's share of the time."""
    return {
        name: statistics.median(one.parts[place] / one.seconds for one in rounds) for place, name in enumerate(names)
    }
