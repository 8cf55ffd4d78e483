"""The commands that print what there is: `agents`, `rules` and `docs`."""

from pathlib import Path
from typing import Annotated, Any, Literal

from experiments.commands.console import parse, tell


def list_agents(words: list[str]) -> None:
    """Lists the players."""

    def arguments(game: Literal["gin", "rummy40"] = "gin") -> dict[str, Any]:
        """List the players that a match and a training run know by name.

        Args:
            game: Which game they play.
        """
        return locals()

    game = parse(arguments, "agents", words)["game"]

    from agents import names
    from agents.base import describe

    width = max(len(name) for name in names(game))
    for name in names(game):
        print(f"{name:{width}}  {describe(name, game)}")
    print(f"{'DIR':{width}}  An exported bot, or a training run: the folder that `ginrummy export` or `train` wrote.")


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

    wanted = parse(arguments, "rules", words)

    from experiments.report import preset_table, print_rules
    from gin_env.rulebook import SOURCES, to_json
    from gin_env.rules import as_rules

    if wanted["rules"] is None:
        presets = {"presets": [to_json(name) for name in SOURCES]}
        tell(presets, wanted["json"], wanted["out"], lambda console: console.print(preset_table()))
        return
    played = as_rules(wanted["rules"])
    tell(to_json(played), wanted["json"], wanted["out"], lambda console: print_rules(played, console))


def docs(words: list[str]) -> None:
    """Prints the reference pages."""
    import tyro

    def arguments(out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("docs")) -> Path:
        """Print the reference pages from the code: actions, observations, rules.

        Args:
            out: Folder of the pages. Other files in it stay.
        """
        return out

    out = parse(arguments, "docs", words)

    from experiments.docs import write_docs

    for path in write_docs(out):
        print(path)
