"""Reports for people (sentences and rich tables) and for programs (JSON files)."""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from agents.match import Behaviour, MatchResult


def headline(result: MatchResult) -> str:
    """Says in one sentence how a match ended, for example "greedy beats random by 48.6 points a hand (95 % ...)"."""
    a, b = side_names(result)
    mean = result.points_per_hand
    played = f"{result.deals:,} {'deal' if result.deals == 1 else 'deals'} played twice"
    low, high = result.ci95
    if not math.isfinite(low):
        verb = "beats" if mean > 0 else "loses to" if mean < 0 else "is level with"
        return f"{a} {verb} {b} by {abs(mean):.1f} points a hand; one deal played twice says nothing of the margin"
    digits = 1 if high - low >= 0.2 else 2
    if low == high == 0:
        return f"{a} and {b} are level: every pair of games came out at exactly 0, {played}"
    if low <= 0 <= high:
        return (
            f"{a} and {b} cannot be told apart: {mean:+z.{digits}f} points a hand for {a} "
            f"(95 % interval {low:+z.{digits}f} to {high:+z.{digits}f}), {played}"
        )
    if mean < 0:  # told from the winner's side
        a, b, mean, low, high = b, a, -mean, -high, -low
    return (
        f"{a} beats {b} by {mean:.{digits}f} points a hand "
        f"(95 % interval {low:.{digits}f} to {high:.{digits}f}), {played}"
    )


def side_names(result: MatchResult) -> tuple[str, str]:
    """Returns what to call the two sides, told apart where both have one name."""
    if result.a == result.b:
        return f"{result.a} (1)", f"{result.b} (2)"
    return result.a, result.b


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _number(value: float | None, form: str = ".1f") -> str:
    return "-" if value is None else format(value, form)


# What is shown of each side's behaviour.
_BEHAVIOUR: tuple[tuple[str, Callable[[Behaviour], str]], ...] = (
    ("knocks", lambda side: _percent(side.knock)),
    ("gin", lambda side: _percent(side.gin)),
    ("big gin", lambda side: _percent(side.big_gin)),
    ("undercuts the other", lambda side: _percent(side.undercut_made)),
    ("is undercut", lambda side: _percent(side.undercut_suffered)),
    ("deadwood when knocking", lambda side: _number(side.knock_deadwood)),
    ("own turns in a hand", lambda side: _number(side.turns)),
    ("draws from the pile", lambda side: _percent(side.takes)),
)


def match_table(result: MatchResult) -> Table:
    """Returns the table of a match: results, seats, behaviour and speed, a column for each side."""
    table = Table(title=f"{result.rules}, seed {result.seed}, {2 * result.deals:,} hands", title_justify="left")
    table.add_column("")
    for name in side_names(result):
        table.add_column(name, justify="right")
    mean = result.points_per_hand
    table.add_row("points a hand", f"{mean:+z.2f}", f"{-mean:+z.2f}")
    # The other side is the dealer where a is not.
    table.add_row("  as non-dealer", f"{result.as_non_dealer:+z.2f}", f"{-result.as_dealer:+z.2f}")
    table.add_row("  as dealer", f"{result.as_dealer:+z.2f}", f"{-result.as_non_dealer:+z.2f}")
    hands = 2 * result.deals
    table.add_row("hands won", _percent(result.hands_won / hands), _percent(result.hands_lost / hands))
    table.add_section()
    for label, show in _BEHAVIOUR:
        table.add_row(label, *(show(side) for side in result.behaviour))
    table.add_section()
    for label, share in (("dead hands", result.dead), ("ties", result.tied), ("hands truncated", result.truncated)):
        table.add_row(label, _percent(share), _percent(share))
    table.add_section()
    table.add_row("decisions a second", *(_number(side.per_second, ",.0f") for side in result.speed))
    table.add_row("milliseconds a decision", *(_number(side.milliseconds, ".4g") for side in result.speed))
    return table


def print_match(result: MatchResult, console: Console) -> None:
    """Prints a match: its table, what identifies it, and the sentence that sums it up."""
    console.print(match_table(result))
    console.print(f"rules {result.fingerprint}, decks {result.deck_hash[:16]}", style="dim", highlight=False)
    console.print(headline(result), style="bold", highlight=False, markup=False, soft_wrap=True)


_KERNELS = {
    "look": "observation and mask",
    "choose": "a random legal action",
    "step": "play it, deal the next hand",
}


def bench_table(bench: Mapping[str, Any]) -> Table:
    """Returns the table of decisions per second of `experiments.bench.bench_engine`."""
    title = f"decisions a second on one thread, {len(bench['gin_env']['rounds'])} rounds of {bench['seconds']:g} s"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in ("median", "best", "worst", "per core-second"):
        table.add_column(name, justify="right")
    for label, key in ((f"gin_env, {bench['tables']:,} tables", "gin_env"), ("OpenSpiel", "openspiel")):
        part = bench[key]
        if part is not None:
            rates = (part["decisions_per_second"], part["best"], min(part["rounds"]), part["per_core_second"])
            table.add_row(label, *(f"{rate:,.0f}" for rate in rates))
    return table


def kernel_table(bench: Mapping[str, Any]) -> Table:
    """Returns the table of where gin_env's time went."""
    table = Table(title="where the time of gin_env goes", title_justify="left")
    table.add_column("")
    table.add_column("ns a decision", justify="right")
    table.add_column("share", justify="right")
    for name, part in bench["gin_env"]["kernels"].items():
        table.add_row(f"{name}: {_KERNELS[name]}", f"{part['nanoseconds']:.0f}", _percent(part["share"]))
    return table


def print_bench(bench: Mapping[str, Any], console: Console) -> None:
    """Prints a benchmark: its tables, the machine, and the sentence that sums it up."""
    console.print(bench_table(bench))
    console.print(kernel_table(bench))
    versions = ", ".join(f"{name} {version}" for name, version in bench["versions"].items() if version)
    console.print(f"{bench['cpu']}; {versions}", style="dim", highlight=False, soft_wrap=True)
    busy = min(part["cpu_share"] for key in ("gin_env", "openspiel") if (part := bench[key]) is not None)
    if busy < 0.95:
        console.print(
            f"The machine was busy: the thread had a core for only {100 * busy:.0f} % of a measurement.", style="yellow"
        )
    rate = f"gin_env plays {bench['gin_env']['decisions_per_second']:,.0f} decisions a second on one thread"
    if bench["ratio"] is None:
        rate += " (OpenSpiel is not installed: no comparison)"
    else:
        rate += f", {bench['ratio']:.0f} times OpenSpiel's {bench['openspiel']['decisions_per_second']:,.0f}"
    console.print(rate, style="bold", highlight=False, soft_wrap=True)


@contextmanager
def writing(path: str | Path) -> Iterator[TextIO]:
    """Opens a text file for writing. It is written beside and renamed at the end: the path never holds half a file.

    Args:
        path: The file; its folder is made if need be. After an error within the block it is as it was.

    Raises:
        OSError: If the file cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_json(path: str | Path, data: Mapping[str, Any]) -> None:
    """Writes a JSON file, or none (`writing`).

    Args:
        path: The file; its folder is made if need be.
        data: Plain values; numbers must be finite.

    Raises:
        ValueError: If a number is not finite.
        OSError: If the file cannot be written.
    """
    text = json.dumps(data, indent=2, allow_nan=False) + "\n"
    with writing(path) as file:
        file.write(text)
