"""The commands that play: `match`, `sprt`, `tournament` and `play`."""

import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from experiments.commands.console import Failure, games_bar, parse, progress_bar, tell

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_RULES = {"gin": "cardpuzzle", "rummy40": "rummy40"}


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

    wanted = parse(arguments, "match", words)
    game = wanted["game"]
    wanted["rules"] = _rules_of(game, wanted["rules"])
    if wanted["luck"] and game != "gin":
        raise Failure(f"--luck is told of gin only, not of {game}")

    import agents
    from experiments.files import writing
    from experiments.luck import Luck, luck_line
    from experiments.report import print_incidents, print_match
    from experiments.workers import matches_of, play_match_by

    play_match = matches_of(game).play_match
    how = {key: wanted[key] for key in ("deals", "seed", "rules", "match", "batch")}
    luck = Luck.of_match(wanted["rules"], wanted["deals"]) if wanted["luck"] else None
    with ExitStack() as files, games_bar() as progress:
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

    tell(told, wanted["json"], wanted["out"], show)


def _rules_of(game: str, rules: str | None) -> str:
    """Returns the text of the rules that are asked for, or of a game's usual ones."""
    if rules is None:
        return DEFAULT_RULES[game]
    if game == "gin" and rules.partition(":")[0] == "rummy40":
        raise Failure(f"the rules {rules!r} are not of gin: add --game rummy40")
    return rules


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

    wanted = parse(arguments, "sprt", words)

    import agents
    from experiments.sprt import llr_bounds, print_sprt
    from experiments.sprt import sprt as test

    as_json, out = wanted.pop("json"), wanted.pop("out")
    players = agents.make(wanted.pop("a")), agents.make(wanted.pop("b"))
    with progress_bar("testing") as show:
        low, high = llr_bounds(wanted["alpha"], wanted["beta"])

        def progress(deals: int, llr: float) -> None:
            show(deals, wanted["max_deals"], f"{deals:,} deals, {llr:+.2f} ({low:+.2f} to {high:+.2f})")

        result = test(*players, **wanted, progress=progress)
    tell(result.to_json(), as_json, out, lambda console: print_sprt(result, console))


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

    wanted = parse(arguments, "tournament", _with_address(words))
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
        with games_bar() as progress:
            result = play_tournament(
                wanted["agents"],
                **how,
                **{key: wanted[key] for key in ("deals", "batch", "workers", "ray", "piece", "anchor", "resamples")},
                folder=folder,
                progress=progress,
                say=say,
            )
    except Interrupted as stop:
        raise Failure(str(stop), 130) from None
    command = ["ginrummy", "tournament", *sorted(wanted["agents"]), "--deals", str(wanted["deals"])]
    command += ["--seed", str(wanted["seed"]), "--rules", wanted["rules"], *(["--match"] if wanted["match"] else [])]
    command += [] if wanted["game"] == "gin" else ["--game", wanted["game"]]
    command += [] if wanted["anchor"] is None else ["--anchor", wanted["anchor"]]
    if not write_report(result, folder, shlex.join(command)):
        say(NO_PLOTS)
    say(f"the report is in {folder / PAGE}")
    tell(result.to_json(), wanted["json"], None, lambda console: print_tournament(result, console))


def _with_address(words: Sequence[str]) -> list[str]:
    """Gives an option --ray that has no address an empty one."""
    full: list[str] = []
    for place, word in enumerate(words):
        full.append(word)
        following = words[place + 1] if place + 1 < len(words) else ""
        if word == "--ray" and not re.fullmatch(r"auto|local|(ray://)?[\w.-]+:\d+", following):
            full.append("")
    return full


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

    wanted = parse(arguments, "play", words)

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
