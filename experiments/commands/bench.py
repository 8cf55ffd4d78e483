"""The commands that measure and check the machinery: `bench engine`, `bench train`, `bench search` and `fuzz`."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from experiments.commands.console import Failure, parse, progress_bar, tell
from experiments.commands.train import find_recipe

if TYPE_CHECKING:
    from experiments.fuzz import FuzzResult


def bench_engine(words: list[str]) -> None:
    """Measures the engine."""
    import tyro

    def arguments(
        tables: int = 256,
        seconds: float = 1.0,
        rounds: int = 5,
        rules: Annotated[tuple[str, ...], tyro.conf.arg(metavar="RULES...")] = (),
        game: Literal["gin", "rummy40"] = "gin",
        threads: int = 2,
        no_peers: bool = False,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
        plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Measure decisions per second, with observation and mask written, in uniformly random play.

        Where OpenSpiel and RLCard are installed they are measured too, in rounds that take turns with gin_env's.

        Args:
            tables: Tables that gin_env plays at once. Their observations should fit into the processor's cache.
            seconds: Length of a round.
            rounds: Rounds of each; the median counts.
            rules: Presets of either game, "preset:field=value,..." or .toml files; by default all presets of the game,
                and manual play.
            game: Whose presets; the other libraries are measured beside gin only.
            threads: Play the first of the rules on so many threads too.
            no_peers: Leave the other libraries out.
            json: Print one JSON object instead of the tables.
            out: Also write the JSON object to this file.
            plot: Also draw it into this picture (.png, .svg or .pdf).
        """
        return locals()

    wanted = parse(arguments, "bench engine", words)

    from experiments import bench
    from experiments.report import plot_bench, print_bench

    if wanted["plot"] is not None:
        import matplotlib  # noqa: F401  (missing: say so before the measurement)
    result = bench.bench_engine(
        tables=wanted["tables"],
        seconds=wanted["seconds"],
        rounds=wanted["rounds"],
        rules=wanted["rules"] or (bench.RULES if wanted["game"] == "gin" else bench.RUMMY40_RULES),
        threads=wanted["threads"],
        peers=wanted["game"] == "gin" and not wanted["no_peers"],
        progress=lambda line: print(line, file=sys.stderr),
    )
    if wanted["plot"] is not None:
        plot_bench(result, wanted["plot"])
    tell(result, wanted["json"], wanted["out"], lambda console: print_bench(result, console))


def bench_train(words: list[str]) -> None:
    """Measures training."""
    import tyro

    def arguments(
        recipe: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None,
        tables: int = 1024,
        horizon: int = 64,
        minibatch: int = 4096,
        epochs: int | None = None,
        width: int = 64,
        layers: int = 2,
        threads: int | None = None,
        opponent: Annotated[str, tyro.conf.arg(metavar="AGENT")] = "random",
        seconds: float = 1.0,
        rounds: int = 5,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Measure decisions per second of our PPO and, where it is installed, of sb3-contrib's MaskablePPO.

        Both train perceptrons of the same sizes with the same batches against the same player, in rounds that take
        turns. A decision of the learner that enters the gradient counts, once however many passes are made. A recipe is
        measured alone, with its own network and opponents, and the time of its rollouts is taken apart.

        Args:
            recipe: Measure this recipe instead. Of the options down to opponent only epochs and threads then
                count.
            tables: Tables of each.
            horizon: Decisions at each table between two updates; tables x horizon is the batch.
            minibatch: Decisions in each gradient step.
            epochs: Passes over each batch; 1, or as the recipe says.
            width: Units of each hidden layer.
            layers: Hidden layers.
            threads: Threads of torch; 1, or as the recipe says.
            opponent: Who sits opposite the learner.
            seconds: Least length of a round; it ends with an update.
            rounds: Rounds of each; the median counts.
            json: Print one JSON object instead of the table.
            out: Also write the JSON object to this file.
        """
        return locals()

    wanted = parse(arguments, "bench train", words)

    from experiments import bench_train
    from experiments.report import print_bench_train

    as_json, out, recipe = (wanted.pop(name) for name in ("json", "out", "recipe"))
    given = {name: value for name in ("epochs", "threads") if (value := wanted.pop(name)) is not None}

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    if recipe is not None:
        from training.config import PPOConfig, load_recipe

        config = dataclasses.replace(load_recipe(find_recipe(recipe), PPOConfig), **given)
        options = {name: wanted[name] for name in ("seconds", "rounds")}
        result = bench_train.bench_recipe(config, recipe, **options, progress=say)
    else:
        result = bench_train.bench_train(**wanted, **given, progress=say)
    tell(result, as_json, out, lambda console: print_bench_train(result, console))


def bench_search(words: list[str]) -> None:
    """Measures the search."""
    import tyro

    def arguments(
        base: Annotated[str, tyro.conf.arg(metavar="AGENT")] = "greedy",
        budgets: Annotated[tuple[float, ...], tyro.conf.arg(metavar="MS...")] = (5, 10, 20, 50),
        worlds: Annotated[tuple[int, ...], tyro.conf.arg(metavar="N...")] = (),
        deals: int = 500,
        seed: int = 0,
        rules: Annotated[str, tyro.conf.arg(metavar="RULES")] = "cardpuzzle",
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
        plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Measure how strong the player `search` is by its budget: points a hand against the base it searches from.

        It takes as long as the games: some ten searched decisions a hand, of the milliseconds of each budget.

        Args:
            base: The player that it searches from, as for `ginrummy match`.
            budgets: Milliseconds for a decision, a match for each.
            worlds: Worlds for each candidate, a match for each; these do not depend on the machine.
            deals: Deals of each match, each played twice; all matches are on the same.
            seed: Decides the decks and the players' random choices.
            rules: A preset, with or without changes, or a TOML file; see `ginrummy rules`.
            json: Print one JSON object instead of the table.
            out: Also write the JSON object to this file.
            plot: Also draw the curve into this picture (.png, .svg or .pdf).
        """
        return locals()

    wanted = parse(arguments, "bench search", words)
    as_json, out, plot = (wanted.pop(name) for name in ("json", "out", "plot"))

    from experiments import bench_search as benchmark
    from experiments.report import check_picture, plot_bench_search, print_bench_search

    if plot is not None:
        check_picture(plot)
    with progress_bar("playing") as show:

        def progress(finished: int, games: int, name: str) -> None:
            show(finished, games, f"{name}: {finished:,} of {games:,} games")

        result = benchmark.bench_search(**wanted, progress=progress)
    if plot is not None:
        plot_bench_search(result, plot)
    tell(result, as_json, out, lambda console: print_bench_search(result, console))


def fuzz(words: list[str]) -> None:
    """Plays random rules."""
    import tyro

    def arguments(
        minutes: float = 1.0,
        seed: int | None = None,
        rules: Annotated[str | None, tyro.conf.arg(metavar="RULES")] = None,
        game: Literal["gin", "rummy40"] = "gin",
        json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Play random rules at random, and check every invariant of the engine at every step.

        Each trial draws rules, table sizes, deals and choices from its seed; the next trial has the next seed. The
        first check that fails ends it with exit status 1 and the command that shows it again. Ctrl-C ends it with the
        summary so far.

        Args:
            minutes: For how long. The trial in progress is finished.
            seed: Of the first trial; by default a new one each time.
            rules: What to play in each trial: a preset, alone or with changes (plus20:oklahoma=true,target=50), or a
                TOML file. By default random rules.
            game: Which game's engine.
            json: Write a summary to this file.
        """
        return locals()

    wanted = parse(arguments, "fuzz", words)

    import secrets

    from rich.console import Console

    from experiments import fuzz as fuzzing
    from experiments.files import write_json

    seed = secrets.randbits(32) if wanted["seed"] is None else wanted["seed"]
    rules = None if wanted["rules"] is None else fuzzing.GAMES[wanted["game"]].as_rules(wanted["rules"])
    with _time_bar(60 * wanted["minutes"]) as progress:
        result = fuzzing.fuzz(wanted["minutes"], seed, rules, progress, wanted["game"])
    if wanted["json"] is not None:
        write_json(wanted["json"], result.to_json())
    Console().print(result.summary(), highlight=False, markup=False, soft_wrap=True)
    if result.failure is not None:
        raise Failure(f"a check failed; see it again with: {result.failure.command}", 1)
    if result.interrupted:
        raise Failure("interrupted", 130)


@contextmanager
def _time_bar(seconds: float) -> Iterator[Callable[["FuzzResult"], None]]:
    """The progress bar of a time; yields the callback of `experiments.fuzz.fuzz`."""
    with progress_bar("fuzzing") as show:

        def progress(result: "FuzzResult") -> None:
            rate = f"{result.hands_per_second:,.0f} hands a second"
            text = f"{result.report.hands:,} hands, {result.rule_sets:,} rule sets, {rate}"
            show(min(result.seconds, seconds), seconds, text)

        yield progress
