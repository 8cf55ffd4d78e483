"""The tables of a tournament, made once and shown on the terminal, in Markdown and in HTML."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agents.result import NORMAL_95, MatchResult
from experiments.report import behaviour_rows, number, percent, times_played
from experiments.standings import Standing, TournamentResult

# How many standard errors from zero a level of significance asks for: 95 and 99.9 % confidence.
LEVELS = (NORMAL_95, 3.2905267314919255)
_STYLES = {-2: "bold white on dark_red", -1: "red", 0: "dim", 1: "green", 2: "bold white on dark_green"}


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        text: What it says.
        small: What it adds in smaller letters.
        level: How sure the sign of the number is: 0 if it is not, 1 at 95 %, 2 at 99.9 % confidence; with that sign.
        heat: The number for a colour, from -1 to 1; None for a cell without one.
        words: Whether it holds words, which stand at the left, or numbers.
    """

    text: str
    small: str = ""
    level: int = 0
    heat: float | None = None
    words: bool = False


@dataclass(frozen=True)
class Sheet:
    """One table.

    Attributes:
        title: What stands above it.
        head: The heads of its columns.
        rows: A cell for each column.
        note: What stands below it.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str

    @property
    def shaded(self) -> bool:
        """Whether cells have levels of significance."""
        return any(cell.heat is not None for row in self.rows for cell in row)


def sheets(result: TournamentResult) -> Iterator[Sheet]:
    """Yields the tables of a tournament: standings, cross-table, behaviour."""
    yield _standings(result)
    yield _cross_table(result)
    yield _behaviour(result)


def significance(mean: float, interval: tuple[float, float]) -> int:
    """Returns the level of a number with its interval of 95 % confidence (see `Cell`)."""
    half = (interval[1] - interval[0]) / 2
    if not math.isfinite(half) or mean == 0:
        return 0
    level = sum(abs(mean) > half * errors / NORMAL_95 for errors in LEVELS)
    return level if mean > 0 else -level


def headline(result: TournamentResult) -> str:
    """Says in one sentence how a tournament ended."""
    first, second = result.standings[:2]
    name, other = first.entry.spec, second.entry.spec
    mean, interval = result.margin(first, second)
    level = significance(mean, interval)
    if result.plan.match:
        by, whole = f"in {percent(0.5 + abs(mean))} of matches", f"{percent(0.5 + mean)} of matches won"
    else:
        by, whole = f"by {abs(mean):.1f} points a hand", f"{mean:+z.1f} points a hand"
    if level > 0:
        told = f"and beats {other}, the second, {by}"
    elif level < 0:
        told = f"although {other}, the second, beats it {by}"
    else:
        sure = _half(interval, result.plan.match)
        told = f"and cannot be told apart from {other}, the second, by their own games ({whole} {sure})"
    return f"{name} is first with a rating of {first.elo:.0f} ({_interval(first.elo_ci95, '.0f')}), {told}"


def size(result: TournamentResult) -> str:
    """Says how much was played."""
    players, deals = len(result.standings), result.deals
    times = times_played(result.standings[0].field)
    return f"{players} players, {deals:,} {'deal' if deals == 1 else 'deals'}, each played {times} by every two of them"


def _interval(interval: tuple[float, float], form: str) -> str:
    low, high = interval
    return f"{low:{form}} to {high:{form}}" if math.isfinite(low) else "unknown"


def _half(interval: tuple[float, float], share: bool = False) -> str:
    half = (interval[1] - interval[0]) / 2
    if not math.isfinite(half):
        return "±?"
    return f"±{100 * half:.1f} %" if share else f"±{half:.2f}"


def _names(result: TournamentResult) -> list[tuple[str, Standing]]:
    return [(f"{place}. {one.entry.spec}", one) for place, one in enumerate(result.standings, 1)]


def _standings(result: TournamentResult) -> Sheet:
    matches = result.plan.match
    share = "matches won" if matches else "hands won"
    rows = []
    for name, one in _names(result):
        field = one.field
        won = field.win_rate if matches else field.hands_won / max(field.hands, 1)
        rows.append(
            (
                Cell(name, words=True),
                Cell(f"{one.elo:.0f}", _interval(one.elo_ci95, ".0f")),
                Cell(f"{100 * one.first:.0f} %"),
                Cell(f"{field.points_per_hand:+z.2f}", _half(field.ci95)),
                Cell(percent(won)),
                Cell(f"{field.forfeits[0]:,}", ", ".join(f"{count:,} {kind}" for kind, count in one.incidents.items())),
                Cell(_milliseconds(field.speed[0].milliseconds)),
            )
        )
    head = ("player", "rating", "rated first", "points a hand", share, "forfeits", "ms a decision")
    if result.plan.game == "gin":
        unit = "matches" if matches else "deals (who took more points in both games)"
    else:
        unit = f"deals (who {'won more matches' if matches else 'took more points'} in all games)"
    zero = "the mean is 0" if result.anchor is None else f"{result.anchor} is 0"
    note = (
        f"Rating: Bradley-Terry over {unit}, scale of Elo, {zero}. Rated first: the share of redrawn sets of deals in "
        "which that is so. Points: against all others. Small: 95 % confidence."
    )
    return Sheet("Standings", head, tuple(rows), note)


def _milliseconds(value: float | None) -> str:
    return number(value, ".2g" if value is not None and value < 99 else ",.0f")


def _cross_table(result: TournamentResult) -> Sheet:
    matches = result.plan.match
    margins = {
        (one, other): result.margin(result.standings[one], result.standings[other])
        for one, other in permutations(range(len(result.standings)), 2)
    }
    most = max(abs(mean) for mean, _ in margins.values()) or 1
    rows = []
    for one, (name, _) in enumerate(_names(result)):
        cells = [Cell(name, words=True)]
        for other in range(len(result.standings)):
            if one == other:
                cells.append(Cell(""))
                continue
            mean, interval = margins[one, other]
            text = percent(0.5 + mean) if matches else f"{mean:+z.2f}"
            # The root, so that a player far behind does not leave all others pale.
            heat = math.copysign(math.sqrt(abs(mean) / most), mean)
            cells.append(Cell(text, _half(interval, matches), significance(mean, interval), heat))
        rows.append(tuple(cells))
    head = ("matches won against" if matches else "points a hand against", *_places(result))
    note = (
        f"{'The share of matches that' if matches else 'What'} the player of the row wins "
        f"{'against' if matches else 'a hand from'} the one of the column, with the half width of the interval of 95 % "
        "confidence. Of twenty pairings of equals, one seems sure at 95 % by chance."
    )
    return Sheet("Cross-table", head, tuple(rows), note)


def _places(result: TournamentResult) -> Iterator[str]:
    return (f"{place}." for place in range(1, len(result.standings) + 1))


def _behaviour(result: TournamentResult) -> Sheet:
    fields = [one.field for one in result.standings]
    sides: Any = [field.behaviour[0] for field in fields]
    lines = behaviour_rows(sides)
    ours = [field for field in fields if isinstance(field, MatchResult)]  # all, or none
    if ours:
        lines.append(("points as non-dealer", [f"{field.as_non_dealer:+z.2f}" for field in ours]))
        lines.append(("points as dealer", [f"{field.as_dealer:+z.2f}" for field in ours]))
    rows = [(Cell(label, words=True), *(Cell(text) for text in texts)) for label, texts in lines]
    head = ("", *_places(result))
    return Sheet("Behaviour", head, tuple(rows), "Shares are of all hands; points are those a hand.")


def rich_table(sheet: Sheet) -> Table:
    """Returns a table for the terminal."""
    table = Table(title=sheet.title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for place, head in enumerate(sheet.head):
        words = sheet.rows[0][place].words
        least = min(24, max(len(row[place].text) for row in sheet.rows)) if words else 0
        text = Text(head if words else head.replace(" ", "\n", 1))
        justify: Literal["left", "right"] = "left" if words else "right"
        table.add_column(text, justify=justify, overflow="fold", min_width=least, no_wrap=not words)
    for row in sheet.rows:
        table.add_row(*(_rich_cell(cell) for cell in row))
    return table


def _rich_cell(cell: Cell) -> Text:
    style = "" if cell.heat is None else _STYLES[cell.level]
    text = Text(cell.text, style=style)
    if cell.small:
        text.append(f"\n{cell.small}", style=style or "dim")
    return text


def print_tournament(result: TournamentResult, console: Console) -> None:
    """Prints a tournament: its tables, what identifies it, and the sentence that sums it up."""
    for sheet in sheets(result):
        table = rich_table(sheet)
        # A file has no edge.
        width = None if console.is_terminal else max(80, console.measure(table).maximum)
        console.print(table, width=width, crop=False)
        legend = " Coloured: sure at 95 %; bold: at 99.9 %." if sheet.shaded else ""
        console.print(f"{sheet.note}{legend}\n", style="dim", highlight=False, markup=False, soft_wrap=True)
    about = (
        f"{size(result)}; {result.plan.rules_name}, {'matches' if result.plan.match else 'hands'}, seed "
        f"{result.plan.seed}; rules {result.plan.rules.fingerprint}, decks {result.deck_hash[:16]}"
    )
    console.print(about, style="dim", highlight=False, markup=False, soft_wrap=True)
    console.print(headline(result), style="bold", highlight=False, markup=False, soft_wrap=True)
