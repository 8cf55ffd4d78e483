"""How fast the engine is: decisions per second for every preset, side by side with the other gin rummy libraries.

All loops do what a trainer needs of an environment: for every decision they write the observation and the mask of
legal actions as numpy arrays and play a uniformly random legal action, and they deal the next hand when one ends.

- gin_env: N tables; `gin_env.view.look`, the random agent's kernel, `gin_env.engine.step` with redealing.
- OpenSpiel: the fastest way found from Python. One root state is cloned for each hand (making a new state costs far
  more), its observer writes into one numpy array in place, the mask is filled from the list of legal actions, chance
  nodes are sampled. It has one game at a time, for it has no batches in Python.
- RLCard: its environment's own loop, `reset` and `step`, which make observations and legal actions by themselves.

The machine may be busy with other work. So all are measured in short rounds that take turns, the median of the
rounds counts, and the share of the time for which the threads had a core is reported beside it.
"""

import contextlib
import importlib.metadata
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np

import agents
from gin_env import engine, view
from gin_env.rules import Rules, as_rules
from gin_env.rummy40 import engine as rummy40_engine
from gin_env.rummy40 import view as rummy40_view
from gin_env.rummy40.rules import PRESETS as RUMMY40_PRESETS
from gin_env.rummy40.rules import Rummy40Rules
from gin_env.rummy40.rules import as_rules as rummy40_rules

KERNELS = ("look", "choose", "step")  # observation and mask; random legal action; play and deal
MANUAL = "cardpuzzle:knocker_melds=manual,layoffs=manual"
RULES = ("cardpuzzle", MANUAL, "luciano", "plus20", "rummyplus", "openspiel", "eaai")
RUMMY40_RULES = ("rummy40", "rummy40:opening=0", "rummy40:seats=4", "rummy40:seats=4,opening=0")
# With more tables for each call, threads wait less for each other between the calls, where only one can run.
THREAD_BATCH = 16


class Round(NamedTuple):
    """One measurement."""

    decisions: int
    seconds: float  # by the clock
    cpu_seconds: float  # for which this process had a core, all threads together
    parts: tuple[float, ...] = ()  # seconds in each of KERNELS


class Loop(Protocol):
    """What is measured."""

    def run(self, seconds: float) -> Round:
        """Plays for about so many seconds."""
        ...


class EngineLoop:
    """Uniformly random play on N tables.

    Args:
        rules: What to play.
        tables: Number of tables.
        seed: Of the deals and the choices.
    """

    def __init__(self, rules: Rules | Rummy40Rules, tables: int, seed: int = 0) -> None:
        self.engine: Any = rummy40_engine if isinstance(rules, Rummy40Rules) else engine
        self.view: Any = rummy40_view if isinstance(rules, Rummy40Rules) else view
        self.tables = self.engine.new_tables(rules, tables, seed=seed)
        self.agent = agents.make("random")
        self.stream = seed + 1  # a stream apart from the deals'
        self.numbers = np.arange(tables, dtype=np.uint64)
        self.observations = np.empty((tables, self.view.observation_size(rules)), dtype=np.float32)
        self.masks = np.empty((tables, rules.num_actions), dtype=np.int8)
        self.points = self.engine.step(self.tables, np.full(tables, engine.NO_ACTION))[0]
        self.over = np.empty(tables, dtype=np.int8)
        self.no_view = np.empty(0, dtype=view.VIEW_DTYPE)  # the random agent reads the mask alone

    def run(self, seconds: float) -> Round:
        """Plays for about so many seconds, at least one step."""
        size = self.numbers.size
        decisions, parts = 0, [0.0, 0.0, 0.0]
        cpu = time.process_time()
        start = now = time.perf_counter()
        while not decisions or now - start < seconds:
            self.view.look(self.tables, None, self.observations, self.masks)
            looked = time.perf_counter()
            keys = engine.mix_keys(self.stream, self.numbers)
            actions = self.agent.act(self.no_view, self.masks, keys)
            chosen = time.perf_counter()
            self.engine.step(self.tables, actions, redeal=True, points=self.points, over=self.over)
            self.numbers += np.uint64(size)
            parts[0] += looked - now
            parts[1] += chosen - looked
            now = time.perf_counter()
            parts[2] += now - chosen
            decisions += size
        return Round(decisions, now - start, time.process_time() - cpu, tuple(parts))


class OpenSpielLoop:
    """Uniformly random play of OpenSpiel's gin rummy, one game after another.

    Args:
        seed: Of the deals and the choices.

    Raises:
        ImportError: If OpenSpiel is not installed.
    """

    def __init__(self, seed: int = 0) -> None:
        import pyspiel
        from open_spiel.python.observation import make_observation

        game = pyspiel.load_game("gin_rummy")
        self.root = game.new_initial_state()
        self.observation = make_observation(game)
        self.mask = np.zeros(game.num_distinct_actions(), dtype=np.int8)
        self.random = random.Random(seed).random

    def run(self, seconds: float) -> Round:
        """Plays for about so many seconds, at least one hand."""
        uniform, observation, mask = self.random, self.observation, self.mask
        decisions = 0
        cpu = time.process_time()
        start = now = time.perf_counter()
        while not decisions or now - start < seconds:
            state = self.root.clone()
            while not state.is_terminal():
                # At a chance node these are the cards that may come, all equally likely.
                actions = state.legal_actions()
                if not state.is_chance_node():
                    observation.set_from(state, state.current_player())
                    mask[:] = 0
                    mask[actions] = 1
                    decisions += 1
                state.apply_action(actions[int(uniform() * len(actions))])
            now = time.perf_counter()
        return Round(decisions, now - start, time.process_time() - cpu)


class RLCardLoop:
    """Uniformly random play of RLCard's gin rummy.

    Args:
        seed: Of the deals and the choices.

    Raises:
        ImportError: If RLCard is not installed.
    """

    def __init__(self, seed: int = 0) -> None:
        import rlcard

        self.env = rlcard.make("gin-rummy", config={"seed": seed})
        self.mask = np.zeros(self.env.num_actions, dtype=np.int8)
        self.random = random.Random(seed).random

    def run(self, seconds: float) -> Round:
        """Plays for about so many seconds, at least one hand."""
        env, mask, uniform = self.env, self.mask, self.random
        decisions = 0
        cpu = time.process_time()
        start = now = time.perf_counter()
        while not decisions or now - start < seconds:
            state, _ = env.reset()
            while not env.is_over():
                actions = list(state["legal_actions"])
                mask[:] = 0
                mask[actions] = 1
                decisions += 1
                state, _ = env.step(actions[int(uniform() * len(actions))])
            now = time.perf_counter()
        return Round(decisions, now - start, time.process_time() - cpu)


class ThreadedLoops:
    """Several loops at once, a thread for each: the kernels do not hold the interpreter's lock.

    Args:
        loops: Loops with tables of their own.
    """

    def __init__(self, loops: Sequence[EngineLoop]) -> None:
        self.loops = loops

    def run(self, seconds: float) -> Round:
        """Plays for about so many seconds in each thread."""
        cpu = time.process_time()
        start = time.perf_counter()
        with ThreadPoolExecutor(len(self.loops)) as pool:
            rounds = list(pool.map(lambda loop: loop.run(seconds), self.loops))
        elapsed = time.perf_counter() - start
        return Round(sum(one.decisions for one in rounds), elapsed, time.process_time() - cpu)


class Entry(NamedTuple):
    """A line of the benchmark."""

    library: str
    label: str  # of the rules, for people
    rules: str
    threads: int
    tables: int
    loop: Loop


def bench_engine(
    *,
    tables: int = 256,
    seconds: float = 1.0,
    rounds: int = 5,
    rules: Sequence[Rules | Rummy40Rules | str] = RULES,
    threads: int = 2,
    peers: bool = True,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measures decisions per second, side by side.

    Args:
        tables: Tables that gin_env plays at once. Their observations should fit into the processor's cache.
        seconds: Length of a round.
        rounds: Rounds of each; all take turns.
        rules: Rules of either game, or their text, for gin_env on one thread.
        threads: The first of the rules is also played on so many threads, each with `THREAD_BATCH` times as many
            tables; 1 for not.
        peers: Whether to measure OpenSpiel and RLCard too, where they are installed.
        progress: Called with a line of text before each measurement.

    Returns:
        Plain values. ``entries`` is a list; each entry has ``library``, ``label``, ``rules``, ``threads``, ``tables``,
        ``decisions_per_second`` (the median of the rounds, by the clock), ``best``, ``rounds`` (all of them),
        ``per_core_second`` (the same median for the seconds in which the threads had a core), ``cpu_share`` (their
        least share of a round) and, for gin_env on one thread, ``kernels``: nanoseconds for a decision and share of the
        time.
        ``ratios`` holds the first entry's decisions per second over each peer's. Then what was run on what.

    Raises:
        ValueError: If an argument is out of range.
    """
    if not rules:
        raise ValueError("rules are empty; expected at least one")
    played = [_as_rules(one) for one in rules]
    for name, value in (("tables", tables), ("rounds", rounds), ("threads", threads)):
        if value < 1:
            raise ValueError(f"{name} is {value}; expected at least 1")
    if not seconds > 0:
        raise ValueError(f"seconds is {seconds}; expected more than 0")
    say = progress or (lambda line: None)

    # The kernels are compiled without parallel loops; this says so to those that may be one day.
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        say("getting ready (the first run on a machine compiles)")
        entries = [Entry("gin_env", _label(one), one.text, 1, tables, EngineLoop(one, tables)) for one in played]
        if threads > 1:
            many = THREAD_BATCH * tables
            loops = [EngineLoop(played[0], many, seed=number) for number in range(threads)]
            entries.insert(1, entries[0]._replace(threads=threads, tables=many, loop=ThreadedLoops(loops)))
        if peers:
            entries += _peers()
        for entry in entries:
            entry.loop.run(min(seconds, 0.2))  # compiles, and fills the caches
        measured: list[list[Round]] = [[] for _ in entries]
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for entry, runs in zip(entries, measured, strict=True):
                runs.append(entry.loop.run(seconds))
    finally:
        numba.set_num_threads(before)

    lines = []
    for entry, runs in zip(entries, measured, strict=True):
        line = {name: getattr(entry, name) for name in Entry._fields if name != "loop"} | summary(runs, entry.threads)
        if runs[0].parts:
            line["kernels"] = _kernels(runs)
        lines.append(line)
    first = lines[0]["decisions_per_second"]
    return {
        "entries": lines,
        "ratios": {
            line["library"]: first / line["decisions_per_second"] for line in lines if line["library"] != "gin_env"
        },
        "seconds": seconds,
        "cpu": cpu_name(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("gin-env", "numpy", "numba", "open-spiel", "rlcard")},
        },
    }


def _as_rules(rules: Rules | Rummy40Rules | str) -> Rules | Rummy40Rules:
    if isinstance(rules, Rummy40Rules) or isinstance(rules, str) and rules.partition(":")[0] in RUMMY40_PRESETS:
        return rummy40_rules(rules)
    return as_rules(rules)


def _label(rules: Rules | Rummy40Rules) -> str:
    if isinstance(rules, Rummy40Rules):
        return rules.text
    return rules.name + (", manual" if rules.manual and ":" in rules.text else "")


def _peers() -> list[Entry]:
    entries = []
    loops: tuple[tuple[str, Callable[[], Loop]], ...] = (("OpenSpiel", OpenSpielLoop), ("RLCard", RLCardLoop))
    for name, make in loops:
        with contextlib.suppress(ImportError):
            entries.append(Entry(name, "its own", "its own", 1, 1, make()))
    return entries


def summary(rounds: Sequence[Round], threads: int) -> dict[str, Any]:
    """Returns the rates of some rounds, by the clock and for the time that the threads had a core."""
    rates = [one.decisions / one.seconds for one in rounds]
    return {
        "decisions_per_second": statistics.median(rates),
        "best": max(rates),
        "rounds": rates,
        "per_core_second": statistics.median(one.decisions / one.cpu_seconds for one in rounds),
        "cpu_share": min(min(one.cpu_seconds / one.seconds / threads, 1.0) for one in rounds),
    }


def _kernels(rounds: list[Round]) -> dict[str, dict[str, float]]:
    """Returns the median over the rounds of each kernel's time for a decision, and its share of their sum."""
    times = {
        name: statistics.median(1e9 * one.parts[index] / one.decisions for one in rounds)
        for index, name in enumerate(KERNELS)
    }
    total = sum(times.values())
    return {name: {"nanoseconds": time, "share": time / total} for name, time in times.items()}


def cpu_name() -> str:
    """Returns the processor's name as the system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def version(name: str) -> str | None:
    """Returns the version of an installed package, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
