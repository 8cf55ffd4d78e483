"""The commands that make a bot: `train`, `runs`, `ablate` and `export`; and where recipes are found."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from experiments.commands.console import Failure, parse, tell

RECIPES = Path(__file__).parent.parent / "recipes"
DEFAULT_RECIPE = "quick"
DEFAULT_RECIPES = {"ppo": DEFAULT_RECIPE, "dqn": "dqn", "imitate": "imitate"}
# Where a game needs another.
GAME_RECIPES = {("ppo", "rummy40"): "rummy40-quick"}


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

    from training.config import CONFIGS, DEFAULT_RULES, load_recipe

    # The recipe first: what it says is what the other options default to, and what the help shows. The game comes with
    # it, since the default of the rules depends on it.
    game = _option(words, "--game")
    usual = GAME_RECIPES.get((algorithm, game or "gin"), DEFAULT_RECIPES[algorithm])
    recipe = _option(words, "--recipe") or usual
    changes = {"game": game} if game in DEFAULT_RULES else {}
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
    default = options(load_recipe(path, kind, **changes), recipe, Path("runs") / path.stem, False)
    description = (
        f"{about} Ctrl-C stops after the update in progress and leaves a checkpoint, from which the same command goes "
        f"on. Recipes of this package: {', '.join(recipe_names(algorithm))}."
    )
    wanted = parse(options, f"train {algorithm}", words, default=default, description=description)

    from importlib import import_module

    with stoppable():
        import_module(f"training.{algorithm}").train(wanted.config, wanted.run, overwrite=wanted.overwrite)
    print(f"{wanted.run} is trained; next: ginrummy export {wanted.run} --out bots/{wanted.run.name}")


@contextmanager
def stoppable() -> Iterator[None]:
    """Ends the command with one line where a training run within was stopped."""
    from training.run import Interrupted

    try:
        yield
    except Interrupted as stop:
        raise Failure(str(stop), 130) from None


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

    wanted = parse(arguments, "runs", words)

    from experiments.runs import plot_runs, print_runs, read_runs, runs_to_json

    folders, against = wanted["folders"], wanted["against"]
    found = read_runs(folders, against)
    if wanted["plot"] is not None:
        plot_runs(found, against, wanted["plot"])
    tell(
        runs_to_json(found, against),
        wanted["json"],
        wanted["out"],
        lambda console: print_runs(found, against, console, compare=len(folders) > 1),
    )


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

    wanted = parse(arguments, "ablate", words)

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
    result["command"] = "ginrummy ablate " + shlex.join(words)
    tell(result, wanted["json"], wanted["out"], lambda console: console.print(ablation_table(result)))


def export(words: list[str]) -> None:
    """Exports a run."""
    import tyro

    def arguments(
        run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
        out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
        deals: int = 1000,
    ) -> tuple[Path, Path, int]:
        """Turn a training run into a bundle: a folder that plays through onnxruntime, without torch.

        Args:
            run: Folder of the run.
            out: Folder of the bundle; by default bots/ and the run's name.
            deals: Deals against each opponent of the model card, each played in all seatings.
        """
        return run, Path("bots") / run.name if out is None else out, deals

    run, out, deals = parse(arguments, "export", words)
    if not run.is_dir():
        raise ValueError(f"there is no run {run}")

    from training.export import export as write_bundle

    write_bundle(run, out, deals=deals)
    print(f"{run} is exported to {out}; next: ginrummy match {out} greedy")
