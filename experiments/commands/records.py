"""The commands that read recorded games: `replay` and `analyse`."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from experiments.commands.console import Failure, parse, progress_bar

if TYPE_CHECKING:
    from gin_env.record import Record


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

    wanted = parse(arguments, "replay", words)

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

    wanted = parse(arguments, "analyse", words)

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
    with progress_bar("judging") as show:
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
        raise Failure(f"{_name(file)}: there is no record{where}")


@contextmanager
def _blaming(file: str, line: int) -> Iterator[None]:
    """Says where the record is that something is wrong with."""
    from gin_env.record import RecordError

    try:
        yield
    except RecordError as error:
        raise Failure(f"{_name(file)}, line {line}: {error}") from None


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
        raise Failure(f"{file}: this is no text: {error}") from None
