"""The command `ginrummy`. `ginrummy --help` lists what it does.

Whatever needs numba or torch is imported by the command that uses it, so that help comes at once and a match needs no
torch.
"""

import dataclasses
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.fuzz import FuzzResult
    from gin_env.record import Record

RECIPES = Path(__file__).parent / "recipes"
DEFAULT_RECIPE = "quick"
DEFAULT_RULES = {"gin": "cardpuzzle", "rummy40": "rummy40"}
DEFAULT_RECIPES = {"ppo": DEFAULT_RECIPE, "dqn": "dqn", "imitate": "imitate"}
# Where a game needs another.
GAME_RECIPES = {("ppo", "rummy40"): "rummy40-quick"}
TRACEBACK = "GINRUMMY_TRACEBACK"

# The extra of gin-env that brings each package.
EXTRAS = {
    "torch": "train",
    "tensorboard": "train",
    "safetensors": "train",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "matplotlib": "plots",
    "sb3_contrib": "sb3",
    "stable_baselines3": "sb3",
    "choix": "tournament",
    "ray": "ray",
}

HELP = f"""\
usage: ginrummy COMMAND ...

Trains bots that play gin rummy, exports them, and measures players and the engine.

commands:
  train ppo       train a network by self-play, from a recipe
  train dqn       the same by Q-learning with a replay
  train imitate   train a network to play like another player, as a start for more
  runs            list training runs, or compare some of them
  ablate          train variants of a recipe for the same time, and see what each part of it is worth
  export          turn a training run into a bundle that plays without torch
  match           play two players against each other, every deal twice
  tournament      play every player against every other on the same deals; ratings and a report
  sprt            play until it is decided whether one player is better than another
  play            play against a player yourself, at the terminal
  replay          show recorded hands and matches move by move
  analyse         judge recorded hands move by move: what a player would have played, and what each move lost
  agents          list the players
  exploit         how much an opponent who knows a player wins from it: exact on small games, else at least
  calibrate       how well a network guesses the opponent's hand, turn by turn
  rules           print the rules of a preset, or of your own
  docs            print the reference pages in docs/
  fit strategist  fit the weights of the player `strategist`, or measure what each of its terms is worth
  bench engine    measure decisions per second, side by side with other libraries
  bench train     measure how fast training is, side by side with sb3-contrib's
  bench search    measure how strong the player `search` is with so much time for a decision
  fuzz            play random rules at random and check every invariant of the engine

`ginrummy COMMAND --help` tells the options of each. For example:
  ginrummy train ppo --recipe quick --run runs/quick
  ginrummy export runs/quick --out bots/quick
  ginrummy match bots/quick greedy --deals 5000
  ginrummy play bots/quick
  ginrummy match greedy random --deals 5 --records hands.txt
  ginrummy replay hands.txt --line 1
  ginrummy analyse hands.txt --worst 10
  ginrummy tournament greedy gin-only early-knock random --deals 10000 --workers 2

An error is one line, and the exit status 2. With {TRACEBACK}=1 in the environment it comes with its traceback.
"""


class _Failure(Exception):
    """Ends the command with one line on stderr.

    Args:
        line: What went wrong.
        status: The exit status.
    """

    def __init__(self, line: str, status: int = 2) -> None:
        super().__init__(line)
        self.status = status


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        args: The words after ``ginrummy``; by default those the process was started with.

    Returns:
        The exit status: 0, 1 if `fuzz` found something, 2 after an error, or 130 after Ctrl-C.

    Raises:
        SystemExit: From an option that is wrong (status 2), or after a help text (0).
    """
    words = list(sys.argv[1:] if args is None else args)
    try:
        _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _end("interrupted", 130)
    except BrokenPipeError:
        # The reader of the output has gone (as `head` does). Python flushes stdout once more at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        failure = _expected(error)
        if failure is None:
            raise
        return _end(*failure)
    return 0


def _end(line: str, status: int) -> int:
    print("ginrummy: " + " ".join(line.split()), file=sys.stderr)
    return status


def _expected(error: Exception) -> tuple[str, int] | None:
    """Returns the line and status for an error that a user can cause, or None for a fault of ours."""
    if isinstance(error, _Failure):
        return str(error), error.status
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package in EXTRAS:
            return f'this needs {package}, which is not installed: pip install "gin-env[{EXTRAS[package]}]"', 2
        return None
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}", 2
    # BundleError is looked up where it was loaded: nobody can raise it before.
    bundle = sys.modules.get("agents.bundle")
    expected = (ValueError, OSError, *([bundle.BundleError] if bundle else []))
    return (str(error) or type(error).__name__, 2) if isinstance(error, expected) else None


def _dispatch(words: list[str]) -> None:
    for name, command in COMMANDS.items():
        length = len(name.split())
        if words[:length] == name.split():
            command(words[length:])
            return
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        if not words:
            raise _Failure("a command is missing; see ginrummy --help")
        return
    longer = [name for name in COMMANDS if name.startswith(words[0] + " ")]
    if longer and set(words[1:]) & {"-h", "--help"}:
        print(HELP, end="")
        return
    if longer:
        raise _Failure(f"{' '.join(words[:2])!r} is no command; expected {' or '.join(longer)}")
    raise _Failure(f"{words[0]!r} is no command; expected {', '.join(COMMANDS)} (see ginrummy --help)")


def _tyro(function: Callable[..., Any], name: str, words: Sequence[str], **options: Any) -> Any:
    import tyro

    return tyro.cli(function, prog=f"ginrummy {name}", args=words, config=(tyro.conf.FlagCreatePairsOff,), **options)


# ------------------------------------------------------------------------------------------------------------ train


def train_ppo(words: list[str]) -> None:
    """Trains by PPO."""
    _train("ppo", words, "Train a network by self-play with PPO.")


def train_dqn(words: list[str]) -> None:
    """Trains by DQN."""
    _train("dqn", words, "Train a network by self-play with DQN: double, dueling, n-step, prioritised replay.")


def train_imitate(words: list[str]) -> None:
    """Trains by imitation."""
    about = (
        "Train a network to play like another player, as a start for more: "
        "ginrummy train imitate --teacher greedy --run runs/x, then ginrummy train ppo --start-from runs/x."
    )
    _train("imitate", words, about)


def _train(algorithm: str, words: list[str], about: str) -> None:
    """Trains. The recipe's values are the defaults of the options."""
    from dataclasses import make_dataclass

    import tyro

    from training.config import CONFIGS, load_recipe

    # The recipe first: what it says is what the other options default to, and what the help shows.
    usual = GAME_RECIPES.get((algorithm, _option(words, "--game") or "gin"), DEFAULT_RECIPES[algorithm])
    recipe = _option(words, "--recipe") or usual
    path = find_recipe(recipe)
    kind = CONFIGS[algorithm]
    fields: list[tuple[str, Any]] = [
        ("config", Annotated[kind, tyro.conf.arg(name="")]),
        (
            "recipe",
            Annotated[
                str,
                tyro.conf.arg(
                    metavar="NAME|FILE",
                    help="A recipe of this package, or a TOML file of one's own. It sets the defaults below.",
                ),
            ],
        ),
        (
            "run",
            Annotated[
                Path,
                tyro.conf.arg(
                    metavar="DIR",
                    help="Folder of the run. An unfinished run there with the same settings goes on.",
                ),
            ],
        ),
        ("overwrite", Annotated[bool, tyro.conf.arg(help="Start afresh in a folder that holds a run.")]),
    ]
    options = make_dataclass("Options", fields, frozen=True)
    default = options(load_recipe(path, kind), recipe, Path("runs") / path.stem, False)
    description = (
        f"{about} Ctrl-C stops after the update in progress and leaves a checkpoint, from which the same command goes "
        f"on. Recipes of this package: {', '.join(recipe_names(algorithm))}."
    )
    wanted = _tyro(options, f"train {algorithm}", words, default=default, description=description)

    from importlib import import_module

    with _stoppable():
        import_module(f"training.{algorithm}").train(wanted.config, wanted.run, overwrite=wanted.overwrite)
    print(f"{wanted.run} is trained; next: ginrummy export {wanted.run} --out bots/{wanted.run.name}")


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ends the command with one line where a training run within was stopped."""
    from training.run import Interrupted

    try:
        yield
    except Interrupted as stop:
        raise _Failure(str(stop), 130) from None


def recipe_names(algorithm: str | None = None) -> list[str]:
    """The names of the recipes that come with this package, all or those for an algorithm."""
    return sorted(path.stem for path in RECIPES.glob("*.toml") if algorithm in (None, recipe_algorithm(path)))


def recipe_algorithm(path: Path) -> str:
    """The algorithm that a recipe is for: ppo, unless it names another."""
    import tomllib

    return str(tomllib.loads(path.read_text(encoding="utf-8")).get("algorithm", "ppo"))


def find_recipe(recipe: str) -> Path:
    """Returns the file of a recipe, given as a name or a path.

    Raises:
        ValueError: If there is none.
    """
    if recipe in recipe_names():
        return RECIPES / f"{recipe}.toml"
    path = Path(recipe)
    if path.is_file():
        return path
    raise ValueError(f"there is no recipe {recipe!r}: expected {', '.join([*recipe_names(), 'or a TOML file'])}")


def _option(words: Sequence[str], name: str) -> str | None:
    """Returns the value of an option among the words, the last one counts; None where it is not given."""
    value = None
    for place, word in enumerate(words):
        if word == name and place + 1 < len(words):
            value = words[place + 1]
        elif word.startswith(name + "="):
            value = word[len(name) + 1 :]
    return value


def ablate(words: list[str]) -> None:
    """Measures what the parts of the training are worth."""
    import tyro

    def arguments(
        names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="[NAME ...]")] = (),
        recipe: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")] = DEFAULT_RECIPE,
        minutes: float = 3.0,
        seeds: tuple[int, ...] = (1,),
        deals: int = 2000,
        runs: Path = Path("runs/ablation"),
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
        plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Train variants of a recipe, each for the same processor time, and play them against scripted players.

        Runs that are finished are not trained again, so that an interrupted command can be given once more.

        Args:
            names: Variants (experiments/ablation.py); all by default.
            recipe: The recipe that they vary.
            minutes: Processor time of each training.
            seeds: Every variant is trained with each.
            deals: Deals against each opponent, each played twice.
            runs: Folder of the runs.
            json: Print one JSON object instead of the table.
            out: Also write the JSON object to this file.
            plot: Draw the curves into this file (png, svg or pdf).
        """
        return locals()

    wanted = _tyro(arguments, "ablate", words)

    from experiments import ablation
    from experiments.report import ablation_table
    from training.config import PPOConfig, load_recipe

    result = ablation.ablate(
        load_recipe(find_recipe(wanted["recipe"]), PPOConfig),
        names=wanted["names"] or tuple(ablation.VARIANTS),
        seeds=wanted["seeds"],
        minutes=wanted["minutes"],
        deals=wanted["deals"],
        folder=wanted["runs"],
        progress=lambda line: print(line, file=sys.stderr),
    )
    if wanted["plot"] is not None:
        ablation.plot(result, wanted["plot"])
    result["command"] = "ginrummy ablate " + " ".join(words)
    _tell(result, wanted["json"], wanted["out"], lambda console: console.print(ablation_table(result)))


# ------------------------------------------------------------------------------------------------------------- runs


def runs(words: list[str]) -> None:
    """Lists or compares training runs."""
    import tyro

    def arguments(
        folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER...")] = (
            Path("runs"),
        ),
        against: Annotated[str, tyro.conf.arg(metavar="AGENT")] = "greedy",
        plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """List the training runs in a folder: how far they are and how they play. Several folders are compared.

        Args:
            folders: Folders of runs, or folders that hold some.
            against: The player whose evaluations count, one of the run's eval_against.
            plot: Also draw points by decisions and by minutes into this picture (.png, .svg or .pdf).
            json: Print one JSON object instead of the tables.
            out: Also write the JSON object to this file.
        """
        return locals()

    wanted = _tyro(arguments, "runs", words)

    from experiments.runs import plot_runs, print_runs, read_runs, runs_to_json

    folders, against = wanted["folders"], wanted["against"]
    found = read_runs(folders, against)
    if wanted["plot"] is not None:
        plot_runs(found, against, wanted["plot"])
    _tell(
        runs_to_json(found, against),
        wanted["json"],
        wanted["out"],
        lambda console: print_runs(found, against, console, compare=len(folders) > 1),
    )


# -------------------------------------------------------------------------------------------------------------- fit


def fit_strategist(words: list[str]) -> None:
    """Fits the weights of `agents.strategist`."""
    import tyro

    def arguments(
        generations: int = 200,
        population: int = 24,
        deals: int = 400,
        seed: int = 20210,
        rules: Annotated[str, tyro.conf.arg(metavar="RULES")] = "cardpuzzle",
        check_deals: int = 10_000,
        ablate: bool = False,
        overwrite: bool = False,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Fit the weights of the player `strategist` by playing (experiments/fit.py), and play the result on new deals.

        Ctrl-C stops after the last full generation; the same command goes on from there. What the player plays by are
        the constants in agents/strategist.py, which a fit does not change.

        Args:
            generations: How often the weights move.
            population: Sets of weights that are tried in each generation.
            deals: Deals of a generation against each opponent, each played twice.
            seed: Of the deals and of the weights tried. The check is on the deals of the next seed.
            rules: What to play: a preset, with or without changes, or a TOML file.
            check_deals: Deals of the check, or of --ablate, against each opponent, each played twice.
            ablate: Fit nothing: measure what each term is worth to the player, the points it loses without it.
            overwrite: Replace a result that is there, and an unfinished fit beside it.
            json: Print one JSON object instead of the table.
            out: File of the result; by default strategist-fit.json in experiments/results, or strategist-terms.json.
        """
        return locals()

    wanted = _tyro(arguments, "fit strategist", words)
    ablate, overwrite, as_json, out = (wanted.pop(name) for name in ("ablate", "overwrite", "json", "out"))

    from experiments import fit
    from experiments.report import fit_table, terms_table

    settings = fit.Settings(**wanted)
    out = out or Path(__file__).parent / "results" / f"strategist-{'terms' if ablate else 'fit'}.json"
    if ablate:
        with _games_bar() as progress:
            result = fit.ablate(settings, progress)
        _tell(result, as_json, out, lambda console: console.print(terms_table(result)))
        return
    try:
        with _games_bar() as progress:
            result = fit.fit(settings, out, overwrite=overwrite, progress=progress)
    except fit.Interrupted as stop:
        raise _Failure(str(stop), 130) from None
    _tell(result, as_json, None, lambda console: console.print(fit_table(result)))


# ----------------------------------------------------------------------------------------------------------- export


def export(words: list[str]) -> None:
    """Exports a run."""
    import tyro

    def arguments(
        run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
        out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    ) -> tuple[Path, Path]:
        """Turn a training run into a bundle: a folder that plays through onnxruntime, without torch.

        Args:
            run: Folder of the run.
            out: Folder of the bundle; by default bots/ and the run's name.
        """
        return run, Path("bots") / run.name if out is None else out

    run, out = _tyro(arguments, "export", words)
    if not run.is_dir():
        raise ValueError(f"there is no run {run}")

    from training.export import export as write_bundle

    write_bundle(run, out)
    print(f"{run} is exported to {out}; next: ginrummy match {out} greedy")


# ------------------------------------------------------------------------------------------------------------ match


def match(words: list[str]) -> None:
    """Plays a duplicate match."""
    import tyro

    def arguments(
        a: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="A")],
        b: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="B")],
        deals: int = 1000,
        seed: int = 0,
        rules: Annotated[str | None, tyro.conf.arg(metavar="RULES")] = None,
        match: bool = False,
        batch: int = 2048,
        workers: int = 1,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
        records: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
        luck: bool = False,
        game: Literal["gin", "rummy40"] = "gin",
    ) -> dict[str, Any]:
        """Play two players against each other. Every deal is played twice, with the seats exchanged and the same deck.

        Rummy40 with four players plays every deal eight times: either player alone against three of the other, in each
        of the seats.

        A player is a name that `ginrummy agents` lists, with or without options (greedy:knock=5); the folder of an
        exported bundle or of a training run (runs/quick:sample=1); or a program of your own (external:COMMAND).

        Args:
            a: The one player; results are told from its side.
            b: The other.
            deals: Deals to play, each twice.
            seed: Decides the decks and the players' random choices.
            rules: A preset, with or without changes, or a TOML file; by default cardpuzzle, or rummy40. See
                `ginrummy rules`.
            match: Play whole matches to the rules' target instead of single hands, each twice.
            batch: Games to play at once. It changes the speed, never the result.
            workers: Processes that play. It changes the speed, never the result.
            json: Print one JSON object instead of the table.
            out: Also write the JSON object to this file.
            records: Also write every game to this file, one line each (gin_env/record.py), for ginrummy replay.
            luck: Also tell the result without the luck of the draws (experiments/luck.py); of gin only.
            game: Which game the players play and the rules are of.
        """
        return locals()

    wanted = _tyro(arguments, "match", words)
    game = wanted["game"]
    wanted["rules"] = _rules_of(game, wanted["rules"])
    if wanted["luck"] and game != "gin":
        raise _Failure(f"--luck is told of gin only, not of {game}")

    import agents
    from experiments.files import writing
    from experiments.luck import Luck, luck_line
    from experiments.report import print_incidents, print_match
    from experiments.workers import matches_of, play_match_by

    play_match = matches_of(game).play_match
    how = {key: wanted[key] for key in ("deals", "seed", "rules", "match", "batch")}
    luck = Luck.of_match(wanted["rules"], wanted["deals"]) if wanted["luck"] else None
    with ExitStack() as files, _games_bar() as progress:
        record = line = None
        if wanted["records"] is not None:
            file = files.enter_context(writing(wanted["records"]))

            def line(text: str) -> None:
                file.write(text + "\n")

            def record(one: Any) -> None:
                line(one.line())

        players: tuple[Any, ...] = ()
        if wanted["workers"] == 1:
            players = agents.make(wanted["a"], game), agents.make(wanted["b"], game)
            if luck is not None:
                how["ended"] = luck.ended
            result = play_match(*players, **how, forfeits=True, progress=progress, record=record)
        else:
            by = {"workers": wanted["workers"], "progress": progress, "record": line, "luck": luck, "game": game}
            result, counts = play_match_by(wanted["a"], wanted["b"], **how, **by)
            if any(counts):
                names = (result.a, result.b)
                players = tuple(SimpleNamespace(name=n, incidents=c) for n, c in zip(names, counts, strict=True))
    told = result.to_json()
    reduced = None
    if luck is not None:
        reduced = luck.reduce(result)
        told["luck"] = reduced.to_json()
    if any(hasattr(player, "incidents") for player in players):
        told["incidents"] = {
            side: dict(getattr(player, "incidents", {})) for side, player in zip("ab", players, strict=True)
        }

    def show(console: "Console") -> None:
        print_match(result, console)
        if reduced is not None:
            console.print(luck_line(result, reduced), highlight=False, markup=False, soft_wrap=True)
        for player in players:
            print_incidents(player, console)

    _tell(told, wanted["json"], wanted["out"], show)


def _rules_of(game: str, rules: str | None) -> str:
    """Returns the text of the rules that are asked for, or of a game's usual ones."""
    if rules is None:
        return DEFAULT_RULES[game]
    if game == "gin" and rules.partition(":")[0] == "rummy40":
        raise _Failure(f"the rules {rules!r} are not of gin: add --game rummy40")
    return rules


@contextmanager
def _games_bar() -> Iterator[Callable[[int, int], None]]:
    """The progress bar of games; yields the callback of `play_games`."""
    with _bar("playing") as show:
        yield lambda finished, games: show(finished, games, f"{finished:,} of {games:,} games")


@contextmanager
def _bar(doing: str) -> Iterator[Callable[[float, float, str], None]]:
    """A progress bar on stderr, where that is a terminal; yields what moves it: how far, of how much, and a text."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("getting ready (the first time on a machine it compiles)", total=None, text="")

        def show(done: float, total: float, text: str) -> None:
            speed = bar.tasks[0].speed
            if speed and doing in ("playing", "judging"):
                text += f", {speed:,.{0 if speed >= 10 else 1}f} a second"
            bar.update(task, description=doing, completed=done, total=total, text=text)

        yield show


# ------------------------------------------------------------------------------------------------------------- sprt


def sprt(words: list[str]) -> None:
    """Plays a sequential test."""
    import tyro

    def arguments(
        a: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="A")],
        b: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="B")],
        null: float = 0.0,
        margin: float = 0.5,
        alpha: float = 0.05,
        beta: float = 0.05,
        max_deals: int = 100_000,
        chunk: int = 100,
        seed: int = 0,
        rules: Annotated[str, tyro.conf.arg(metavar="RULES")] = "cardpuzzle",
        batch: int = 2048,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Play duplicate deals until it is decided whether player A is better than player B.

        It takes about half the deals of a match of a fixed length with the same errors, and far fewer where the
        difference is large. experiments/sprt.py tells the test.

        Args:
            a: The player in question, as for `ginrummy match`.
            b: The other.
            null: A is not better where it wins so many points a hand, or fewer.
            margin: A is better where it wins so many points a hand, or more.
            alpha: Probability of deciding "better" where it is not.
            beta: Probability of deciding "not better" where it is.
            max_deals: Deals after which to give up.
            chunk: Deals between two looks at the result.
            seed: Decides the decks and the players' random choices.
            rules: A preset, with or without changes, or a TOML file; see `ginrummy rules`.
            batch: Games to play at once. It changes the speed, never the result.
            json: Print one JSON object instead of the table.
            out: Also write the JSON object to this file.
        """
        return locals()

    wanted = _tyro(arguments, "sprt", words)

    import agents
    from experiments.sprt import llr_bounds, print_sprt
    from experiments.sprt import sprt as test

    as_json, out = wanted.pop("json"), wanted.pop("out")
    players = agents.make(wanted.pop("a")), agents.make(wanted.pop("b"))
    with _bar("testing") as show:
        low, high = llr_bounds(wanted["alpha"], wanted["beta"])

        def progress(deals: int, llr: float) -> None:
            show(deals, wanted["max_deals"], f"{deals:,} deals, {llr:+.2f} ({low:+.2f} to {high:+.2f})")

        result = test(*players, **wanted, progress=progress)
    _tell(result.to_json(), as_json, out, lambda console: print_sprt(result, console))


# ------------------------------------------------------------------------------------------------------- tournament


def tournament(words: list[str]) -> None:
    """Plays a round robin."""
    import shlex

    import tyro

    def arguments(
        agents: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="AGENT...")],
        deals: int = 1000,
        seed: int = 0,
        rules: Annotated[str | None, tyro.conf.arg(metavar="RULES")] = None,
        match: bool = False,
        batch: int = 2048,
        workers: int = 1,
        ray: Annotated[str | None, tyro.conf.arg(metavar="[ADDRESS]")] = None,
        piece: int = 250,
        anchor: Annotated[str | None, tyro.conf.arg(metavar="AGENT")] = None,
        resamples: int = 1000,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
        game: Literal["gin", "rummy40"] = "gin",
    ) -> dict[str, Any]:
        """Play every player against every other, all pairings on the same deals, each deal twice (as `match` does).

        What has been played is kept in the folder of the tournament, with the report (report.html, report.md,
        result.json) at the end. The same command goes on where it was interrupted, and with more deals it adds them.

        Args:
            agents: Players, as `ginrummy agents` lists them, or folders of exported bots. Their order changes nothing.
            deals: Deals that every pairing plays, each twice.
            seed: Decides the decks and the players' random choices.
            rules: A preset, with or without changes, or a TOML file; by default cardpuzzle, or rummy40. See
                `ginrummy rules`.
            match: Play whole matches to the rules' target instead of single hands, each twice.
            batch: Games that a worker plays at once. It changes the speed, never the result.
            workers: Processes that play. It changes the speed, never the result.
            ray: Play on a Ray cluster: its address, "auto", or "local" for one on this machine only. Without an
                address: the one that Ray finds.
            piece: Deals that are played in one go, and lost if it is interrupted.
            anchor: The player whose rating is 0; by default the mean is.
            resamples: How often the deals are drawn anew for the intervals of the ratings.
            json: Print one JSON object instead of the tables.
            out: Folder of the tournament; by default one in tournaments/ that belongs to these players, rules and seed.
            game: Which game the players play and the rules are of.
        """
        return locals()

    wanted = _tyro(arguments, "tournament", _with_address(words))
    wanted["rules"] = _rules_of(wanted["game"], wanted["rules"])

    import choix  # noqa: F401  (missing: say so before the games)

    from experiments.page import NO_PLOTS, PAGE, write_report
    from experiments.sheets import print_tournament
    from experiments.tournament import Interrupted, make_plan, play_tournament

    how = {key: wanted[key] for key in ("seed", "rules", "match", "game")}
    folder = wanted["out"] or Path("tournaments") / make_plan(wanted["agents"], **how).digest

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    try:
        with _games_bar() as progress:
            result = play_tournament(
                wanted["agents"],
                **how,
                **{key: wanted[key] for key in ("deals", "batch", "workers", "ray", "piece", "anchor", "resamples")},
                folder=folder,
                progress=progress,
                say=say,
            )
    except Interrupted as stop:
        raise _Failure(str(stop), 130) from None
    command = ["ginrummy", "tournament", *sorted(wanted["agents"]), "--deals", str(wanted["deals"])]
    command += ["--seed", str(wanted["seed"]), "--rules", wanted["rules"], *(["--match"] if wanted["match"] else [])]
    command += [] if wanted["game"] == "gin" else ["--game", wanted["game"]]
    command += [] if wanted["anchor"] is None else ["--anchor", wanted["anchor"]]
    if not write_report(result, folder, shlex.join(command)):
        say(NO_PLOTS)
    say(f"the report is in {folder / PAGE}")
    _tell(result.to_json(), wanted["json"], None, lambda console: print_tournament(result, console))


def _with_address(words: Sequence[str]) -> list[str]:
    """Gives an option --ray that has no address an empty one."""
    full: list[str] = []
    for place, word in enumerate(words):
        full.append(word)
        following = words[place + 1] if place + 1 < len(words) else ""
        if word == "--ray" and not re.fullmatch(r"auto|local|(ray://)?[\w.-]+:\d+", following):
            full.append("")
    return full


# ------------------------------------------------------------------------------------------------------------- play


def play(words: list[str]) -> None:
    """Plays at the terminal."""
    import tyro

    def arguments(
        agent: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="AGENT")],
        rules: Annotated[str, tyro.conf.arg(metavar="RULES")] = "cardpuzzle",
        match: bool = False,
        hands: int | None = None,
        seed: int | None = None,
        seat: Literal["0", "1"] = "0",
        practice: bool = False,
        hints: Annotated[str | None, tyro.conf.arg(metavar="AGENT")] = None,
        record: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Play against a player yourself, at the terminal. Type ? there for help.

        Args:
            agent: The opponent, as for `ginrummy match`.
            rules: A preset, with or without changes, or a TOML file; see `ginrummy rules`.
            match: Play a match to the rules' target instead of single hands.
            hands: Hands to play; by default you are asked after each.
            seed: Decides the cards and the opponent's random choices; by default a new one each time.
            seat: Yours. Who deals the rules say, most often chance.
            practice: Allow to take moves back and to see the opponent's cards.
            hints: Who gives hints; by default the opponent.
            record: Append the games to this file (gin_env/record.py), for ginrummy replay; by default games/ and the
                date.
        """
        return locals()

    wanted = _tyro(arguments, "play", words)

    import secrets

    from rich.console import Console

    from experiments.play import play as play_games
    from experiments.prompt import coloured
    from gin_env.rules import as_rules

    console = Console()

    def ask(prompt: str) -> str:
        line = console.input(coloured(prompt))
        if not sys.stdin.isatty():
            console.print(line, markup=False, highlight=False)  # a transcript then reads like a session
        return line

    play_games(
        wanted["agent"],
        rules=as_rules(wanted["rules"]),
        match=wanted["match"],
        hands=wanted["hands"],
        seed=secrets.randbits(32) if wanted["seed"] is None else wanted["seed"],
        seat=int(wanted["seat"]),
        practice=wanted["practice"],
        adviser=wanted["hints"],
        record=wanted["record"],
        console=console,
        ask=ask,
    )


# ----------------------------------------------------------------------------------------------------------- replay


def replay(words: list[str]) -> None:
    """Shows records."""
    import tyro

    def arguments(
        file: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")],
        seat: Literal["both", "0", "1"] = "both",
        line: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
        json: bool = False,
    ) -> dict[str, Any]:
        """Show recorded hands and matches move by move.

        A file has one record on each line (gin_env/record.py says what it looks like); empty lines and those that start
        with # are skipped.

        Args:
            file: A file of records, or - for the standard input.
            seat: Whose cards are shown: as they are on the table, or as this seat sees it.
            line: Show only the record on this line of the file, counted from 1.
            json: Print one JSON object for each record, on one line.
        """
        return locals()

    wanted = _tyro(arguments, "replay", words)

    from rich.console import Console

    from experiments.replay import print_story, tell

    console = Console()
    for number, record in _records(wanted["file"], wanted["line"]):
        with _blaming(wanted["file"], number):
            story = {"line": number} | tell(record, _seats(wanted["seat"]))
        if wanted["json"]:
            print(json.dumps(story, allow_nan=False))
        else:
            print_story(story, console)


def analyse(words: list[str]) -> None:
    """Judges records."""
    import tyro

    def arguments(
        file: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")],
        agent: Annotated[str, tyro.conf.arg(metavar="AGENT")] = "best",
        seat: Literal["both", "0", "1"] = "both",
        line: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
        hand: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
        against: Literal["agent", "best"] = "agent",
        worlds: int = 2000,
        seed: int = 0,
        worst: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
        json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Judge recorded hands move by move: what a player would have played, and what each move lost in points.

        Both are played out from what the seat knew, in the same sampled worlds, by simple rules. A positive loss says
        that the player's choice did better there; its standard error is beside it (experiments/analyse.py).

        Args:
            file: A file of records, or - for the standard input, as for `ginrummy replay`.
            agent: Whose choices the moves are compared with, as for `ginrummy match`.
            seat: Whose moves are judged, and whose cards are shown.
            line: Only the record on this line of the file, counted from 1.
            hand: Only this hand of each record, counted from 1.
            against: What a loss is counted from: the agent's choice, or the best action found, which half of the worlds
                choose and the others measure.
            worlds: Worlds for each decision.
            seed: Decides them.
            worst: Show only so many of the dearest moves.
            json: Also write everything to this file.
        """
        return locals()

    wanted = _tyro(arguments, "analyse", words)

    from rich.console import Console

    import agents
    from experiments import analyse as analysis
    from experiments.files import write_json
    from gin_env import engine

    file, worst = wanted["file"], wanted["worst"]
    if worst is not None and worst < 1:
        raise ValueError(f"worst is {worst}; expected at least 1")
    how = {name: wanted[name] for name in ("worlds", "seed", "hand", "against")}
    settings = analysis.Settings(**how, seats=_seats(wanted["seat"]))
    agent = agents.make(wanted["agent"])
    records = list(_records(file, wanted["line"]))
    # What is wrong with the last line should not come out after all others have been judged.
    for number, record in records:
        with _blaming(file, number):
            for _ in engine.replay(record):
                pass
    with _bar("judging") as show:
        result = analysis.analyse(
            records, agent, settings, lambda seen, moves: show(seen, moves, f"{seen:,} of {moves:,} moves")
        )
    if wanted["json"] is not None:
        write_json(wanted["json"], {"file": _name(file)} | result)
    analysis.print_analysis(result, Console(), worst)


def _seats(seat: str) -> tuple[int, ...]:
    return (0, 1) if seat == "both" else (int(seat),)


def _records(file: str, line: int | None) -> Iterator[tuple[int, "Record"]]:
    """Yields the records of a file, or the one on a line, with the numbers of their lines; at least one."""
    from gin_env.record import is_record, parse_record

    shown = False
    for number, text in enumerate(_lines(file), 1):
        if is_record(text) and line in (None, number):
            with _blaming(file, number):
                record = parse_record(text)
            yield number, record
            shown = True
    if not shown:
        where = "" if line is None else f" on line {line}"
        raise _Failure(f"{_name(file)}: there is no record{where}")


@contextmanager
def _blaming(file: str, line: int) -> Iterator[None]:
    """Says where the record is that something is wrong with."""
    from gin_env.record import RecordError

    try:
        yield
    except RecordError as error:
        raise _Failure(f"{_name(file)}, line {line}: {error}") from None


def _name(file: str) -> str:
    return "standard input" if file == "-" else file


def _lines(file: str) -> Iterator[str]:
    """Yields the lines of a text file, or of the standard input for ``-``."""
    try:
        if file == "-":
            yield from sys.stdin
        else:
            with open(file, encoding="utf-8") as lines:
                yield from lines
    except UnicodeDecodeError as error:
        raise _Failure(f"{file}: this is no text: {error}") from None


# ----------------------------------------------------------------------------------------------------------- others


def list_agents(words: list[str]) -> None:
    """Lists the players."""

    def arguments(game: Literal["gin", "rummy40"] = "gin") -> dict[str, Any]:
        """List the players that a match and a training run know by name.

        Args:
            game: Which game they play.
        """
        return locals()

    game = _tyro(arguments, "agents", words)["game"]

    from agents import names
    from agents.base import describe

    width = max(len(name) for name in names(game))
    for name in names(game):
        print(f"{name:{width}}  {describe(name, game)}")
    print(f"{'DIR':{width}}  An exported bot, or a training run: the folder that `ginrummy export` or `train` wrote.")


def exploit(words: list[str]) -> None:
    """Measures exploitability."""
    import tyro

    def arguments(
        agents: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="AGENT...")],
        rules: Annotated[str, tyro.conf.arg(metavar="RULES")] = "cardpuzzle",
        method: Literal["auto", "train", "lp", "cfr"] = "auto",
        steps: int | None = None,
        minutes: float | None = None,
        seeds: tuple[int, ...] = (1,),
        deals: int = 10_000,
        recipe: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")] = "exploit",
        run: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("runs/exploit"),
        overwrite: bool = False,
        samples: int = 256,
        seed: int = 0,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Say how much an opponent who knows how a player plays wins from it.

        A small game (--rules small) is solved, and the answer exact. On the full game responders are trained against
        the player, and the answer is what the best of them and of the scripted players wins: a lower bound. Ctrl-C
        leaves a checkpoint, from which the same command goes on.

        Args:
            agents: Players, as `ginrummy agents` lists them, or folders of exported bots.
            rules: A preset, alone or with changes, or a TOML file; small games: tiny, small, layoffs or sets, or rules
                of your own, as "preset:field=value,...".
            method: "auto" solves games of fewer than 52 cards and trains on others; "train" trains; "lp" is exact and
                needs scipy; "cfr" comes close in less memory.
            steps: Trained: decisions of each responder; by default the recipe's. 0 tries scripted players only.
            minutes: Trained: time for each responder in this call.
            seeds: Trained: a responder for each.
            deals: Trained: deals against the best responder; a fifth of them more to choose it.
            recipe: Trained: how, as for `ginrummy train ppo`.
            run: Trained: folder of the runs.
            overwrite: Trained: start afresh.
            samples: Solved: choices to watch at each decision, of players that do not tell their probabilities.
            seed: Of the players' random choices and, where responders play, of the deals.
            json: Print one JSON object instead of the table.
            out: Also write the JSON object to this file.
        """
        return locals()

    wanted = _tyro(arguments, "exploit", words)

    from experiments.miniature import as_miniature

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    rules = as_miniature(wanted["rules"])
    method = wanted["method"]
    if method in ("lp", "cfr") or (method == "auto" and rules.deck_size < 52):
        from experiments.exploit import exploit_report, exploit_table

        options = {name: wanted[name] for name in ("samples", "seed", "method")}
        solved = exploit_report(wanted["agents"], rules, **options, progress=say)
        _tell(solved, wanted["json"], wanted["out"], lambda console: console.print(exploit_table(solved)))
        return

    from experiments.responders import respond_line, respond_report, respond_table

    options = {name: wanted[name] for name in ("steps", "seeds", "overwrite", "deals", "seed")}
    seconds = None if wanted["minutes"] is None else 60 * wanted["minutes"]
    path = find_recipe(wanted["recipe"])
    # Scripted responders do without torch.
    with nullcontext() if wanted["steps"] == 0 else _stoppable():
        result = respond_report(
            wanted["agents"], rules, **options, recipe=path, folder=wanted["run"], seconds=seconds, progress=say
        )

    def show(console: "Console") -> None:
        for one in result["agents"]:
            console.print(respond_table(one, result["rules"]["text"]))
            console.print(respond_line(one), style="bold", highlight=False, markup=False, soft_wrap=True)

    _tell(result, wanted["json"], wanted["out"], show)


def calibrate(words: list[str]) -> None:
    """Measures guesses."""
    import tyro

    def arguments(
        agent: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR")] = "best",
        against: Annotated[str, tyro.conf.arg(metavar="AGENT")] = "",
        deals: int = 2000,
        rules: Annotated[str, tyro.conf.arg(metavar="RULES")] = "cardpuzzle",
        seed: int = 0,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
        plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Say how well a network guesses the opponent's hand while it plays, turn by turn, and how honest it is.

        Args:
            agent: "best", an exported bot or a training run; it must have been trained with hand_weight above 0.
            against: Whose hand it guesses; by default its own kind's.
            deals: Hands to play.
            rules: A preset, alone or with changes, or a TOML file.
            seed: Of the deals and the players.
            json: Print one JSON object instead of the tables.
            out: Also write the JSON object to this file.
            plot: Also draw it into this picture (.png, .svg or .pdf).
        """
        return locals()

    wanted = _tyro(arguments, "calibrate", words)

    from experiments import calibration

    if wanted["plot"] is not None:
        import matplotlib  # noqa: F401  (missing: say so before the measurement)
    options = {name: wanted[name] for name in ("deals", "rules", "seed")}
    result = calibration.calibrate(wanted["agent"], wanted["against"], **options)
    if wanted["plot"] is not None:
        calibration.plot_calibration(result, wanted["plot"])
    _tell(result, wanted["json"], wanted["out"], lambda console: calibration.print_calibration(result, console))


def rules(words: list[str]) -> None:
    """Prints rules."""
    import tyro

    def arguments(
        rules: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="RULES")] = None,
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Print what is played, point by point, and whose decision each point is: the rule page's, ours or yours.

        Args:
            rules: A preset, a preset with changes (plus20:target=50,oklahoma=true), or a TOML file of house rules, for
                which experiments/rules/house.toml is an example. Left out: a list of the presets.
            json: Print one JSON object instead of the table.
            out: Also write the JSON object to this file.
        """
        return locals()

    wanted = _tyro(arguments, "rules", words)

    from experiments.report import preset_table, print_rules
    from gin_env.rulebook import SOURCES, to_json
    from gin_env.rules import as_rules

    if wanted["rules"] is None:
        presets = {"presets": [to_json(name) for name in SOURCES]}
        _tell(presets, wanted["json"], wanted["out"], lambda console: console.print(preset_table()))
        return
    played = as_rules(wanted["rules"])
    _tell(to_json(played), wanted["json"], wanted["out"], lambda console: print_rules(played, console))


def docs(words: list[str]) -> None:
    """Prints the reference pages."""
    import tyro

    def arguments(out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("docs")) -> Path:
        """Print the reference pages from the code: actions, observations, rules.

        Args:
            out: Folder of the pages. Other files in it stay.
        """
        return out

    out = _tyro(arguments, "docs", words)

    from experiments.docs import write_docs

    for path in write_docs(out):
        print(path)


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

    wanted = _tyro(arguments, "bench engine", words)

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
    _tell(result, wanted["json"], wanted["out"], lambda console: print_bench(result, console))


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
        threads: int = 1,
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
            recipe: Measure this recipe instead. Of the options down to opponent only epochs then counts.
            tables: Tables of each.
            horizon: Decisions at each table between two updates; tables x horizon is the batch.
            minibatch: Decisions in each gradient step.
            epochs: Passes over each batch; 1, or as the recipe says.
            width: Units of each hidden layer.
            layers: Hidden layers.
            threads: Threads of torch.
            opponent: Who sits opposite the learner.
            seconds: Least length of a round; it ends with an update.
            rounds: Rounds of each; the median counts.
            json: Print one JSON object instead of the table.
            out: Also write the JSON object to this file.
        """
        return locals()

    wanted = _tyro(arguments, "bench train", words)

    from experiments import bench_train
    from experiments.report import print_bench_train

    as_json, out, recipe, epochs = (wanted.pop(name) for name in ("json", "out", "recipe", "epochs"))

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    if recipe is not None:
        from training.config import PPOConfig, load_recipe

        config = load_recipe(find_recipe(recipe), PPOConfig)
        if epochs is not None:
            config = dataclasses.replace(config, epochs=epochs)
        options = {name: wanted[name] for name in ("seconds", "rounds")}
        result = bench_train.bench_recipe(config, recipe, **options, progress=say)
    else:
        result = bench_train.bench_train(**wanted, epochs=1 if epochs is None else epochs, progress=say)
    _tell(result, as_json, out, lambda console: print_bench_train(result, console))


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

    wanted = _tyro(arguments, "bench search", words)
    as_json, out, plot = (wanted.pop(name) for name in ("json", "out", "plot"))

    from experiments import bench_search as benchmark
    from experiments.report import check_picture, plot_bench_search, print_bench_search

    if plot is not None:
        check_picture(plot)
    with _bar("playing") as show:

        def progress(finished: int, games: int, name: str) -> None:
            show(finished, games, f"{name}: {finished:,} of {games:,} games")

        result = benchmark.bench_search(**wanted, progress=progress)
    if plot is not None:
        plot_bench_search(result, plot)
    _tell(result, as_json, out, lambda console: print_bench_search(result, console))


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

    wanted = _tyro(arguments, "fuzz", words)

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
        raise _Failure(f"a check failed; see it again with: {result.failure.command}", 1)
    if result.interrupted:
        raise _Failure("interrupted", 130)


@contextmanager
def _time_bar(seconds: float) -> Iterator[Callable[["FuzzResult"], None]]:
    """The progress bar of a time; yields the callback of `experiments.fuzz.fuzz`."""
    with _bar("fuzzing") as show:

        def progress(result: "FuzzResult") -> None:
            rate = f"{result.hands_per_second:,.0f} hands a second"
            text = f"{result.report.hands:,} hands, {result.rule_sets:,} rule sets, {rate}"
            show(min(result.seconds, seconds), seconds, text)

        yield progress


def _tell(data: dict[str, Any], as_json: bool, out: Path | None, show: Callable[["Console"], None]) -> None:
    """Prints a result as JSON or for people, and writes it to a file if one is named."""
    from rich.console import Console

    from experiments.files import write_json

    if out is not None:
        write_json(out, data)
    if as_json:
        print(json.dumps(data, indent=2, allow_nan=False))
    else:
        show(Console())


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "train ppo": train_ppo,
    "train dqn": train_dqn,
    "train imitate": train_imitate,
    "runs": runs,
    "ablate": ablate,
    "export": export,
    "match": match,
    "sprt": sprt,
    "tournament": tournament,
    "play": play,
    "replay": replay,
    "analyse": analyse,
    "agents": list_agents,
    "exploit": exploit,
    "calibrate": calibrate,
    "rules": rules,
    "docs": docs,
    "fit strategist": fit_strategist,
    "bench engine": bench_engine,
    "bench train": bench_train,
    "bench search": bench_search,
    "fuzz": fuzz,
}

if __name__ == "__main__":
    sys.exit(main())
