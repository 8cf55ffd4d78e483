"""The commands that measure players, `exploit` and `calibrate`, or fit them, `fit strategist` and `fit belief`."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from experiments.commands.console import Failure, games_bar, parse, progress_bar, tell
from experiments.commands.train import find_recipe, stoppable

if TYPE_CHECKING:
    from rich.console import Console


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

    wanted = parse(arguments, "exploit", words)

    from experiments.miniature import as_miniature

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    rules = as_miniature(wanted["rules"])
    method = wanted["method"]
    if method in ("lp", "cfr") or (method == "auto" and rules.deck_size < 52):
        from experiments.exploit import exploit_report, exploit_table

        options = {name: wanted[name] for name in ("samples", "seed", "method")}
        solved = exploit_report(wanted["agents"], rules, **options, progress=say)
        tell(solved, wanted["json"], wanted["out"], lambda console: console.print(exploit_table(solved)))
        return

    from experiments.responders import respond_line, respond_report, respond_table

    options = {name: wanted[name] for name in ("steps", "seeds", "overwrite", "deals", "seed")}
    seconds = None if wanted["minutes"] is None else 60 * wanted["minutes"]
    path = find_recipe(wanted["recipe"])
    # Scripted responders do without torch.
    with nullcontext() if wanted["steps"] == 0 else stoppable():
        result = respond_report(
            wanted["agents"], rules, **options, recipe=path, folder=wanted["run"], seconds=seconds, progress=say
        )

    def show(console: "Console") -> None:
        for one in result["agents"]:
            console.print(respond_table(one, result["rules"]["text"]))
            console.print(respond_line(one), style="bold", highlight=False, markup=False, soft_wrap=True)

    tell(result, wanted["json"], wanted["out"], show)


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

    wanted = parse(arguments, "calibrate", words)

    from experiments import calibration

    if wanted["plot"] is not None:
        import matplotlib  # noqa: F401  (missing: say so before the measurement)
    options = {name: wanted[name] for name in ("deals", "rules", "seed")}
    result = calibration.calibrate(wanted["agent"], wanted["against"], **options)
    if wanted["plot"] is not None:
        calibration.plot_calibration(result, wanted["plot"])
    tell(result, wanted["json"], wanted["out"], lambda console: calibration.print_calibration(result, console))


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

    wanted = parse(arguments, "fit strategist", words)
    ablate, overwrite, as_json, out = (wanted.pop(name) for name in ("ablate", "overwrite", "json", "out"))

    from experiments import fit
    from experiments.report import fit_table, terms_table

    settings = fit.Settings(**wanted)
    out = out or Path(__file__).parent.parent / "results" / f"strategist-{'terms' if ablate else 'fit'}.json"
    if ablate:
        with games_bar() as progress:
            result = fit.ablate(settings, progress)
        tell(result, as_json, out, lambda console: console.print(terms_table(result)))
        return
    try:
        with games_bar() as progress:
            result = fit.fit(settings, out, overwrite=overwrite, progress=progress)
    except fit.Interrupted as stop:
        raise Failure(str(stop), 130) from None
    tell(result, as_json, None, lambda console: console.print(fit_table(result)))


def fit_belief(words: list[str]) -> None:
    """Fits `agents.worlds.WEIGHTS`."""
    import tyro

    from experiments.belief import PLAYERS

    def arguments(
        players: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="AGENT...")] = PLAYERS,
        positions: int = 2000,
        samples: int = 200,
        seed: int = 0,
        rules: Annotated[str, tyro.conf.arg(metavar="RULES")] = "cardpuzzle",
        json: bool = False,
        out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    ) -> dict[str, Any]:
        """Fit what `search` believes about the opponent's hand to hands of players, and say how well it guesses now.

        What it plays by are the constants in agents/worlds.py, which a fit does not change.

        Args:
            players: Whose hands are learned from, each against itself.
            positions: Decisions of each.
            samples: Hands that are drawn beside the true one at each decision.
            seed: Of deals, choices and drawn hands.
            rules: A preset, alone or with changes, or a TOML file.
            json: Print one JSON object instead of the tables.
            out: Also write the JSON object to this file.
        """
        return locals()

    wanted = parse(arguments, "fit belief", words)

    from experiments import belief

    options = {name: wanted[name] for name in ("positions", "samples", "seed", "rules")}
    with progress_bar("judging") as show:
        result = belief.fit_belief(
            wanted["players"],
            **options,
            progress=lambda finished, whole: show(finished, whole, f"{finished:,} of {whole:,} decisions"),
        )
    tell(result, wanted["json"], wanted["out"], lambda console: console.print(belief.belief_table(result)))
