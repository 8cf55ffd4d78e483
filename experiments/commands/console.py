"""What the commands share: options, failures, progress bars, and the telling of a result."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class Failure(Exception):
    """Ends the command with one line on stderr.

    Args:
        line: What went wrong.
        status: The exit status.
    """

    def __init__(self, line: str, status: int = 2) -> None:
        super().__init__(line)
        self.status = status


def parse(function: Callable[..., Any], name: str, words: Sequence[str], **options: Any) -> Any:
    """Reads the words after a command as the arguments of a function, and returns what it returns."""
    import tyro

    return tyro.cli(function, prog=f"ginrummy {name}", args=words, config=(tyro.conf.FlagCreatePairsOff,), **options)


@contextmanager
def games_bar() -> Iterator[Callable[[int, int], None]]:
    """The progress bar of games; yields the callback of `play_games`."""
    with progress_bar("playing") as show:
        yield lambda finished, games: show(finished, games, f"{finished:,} of {games:,} games")


@contextmanager
def progress_bar(doing: str) -> Iterator[Callable[[float, float, str], None]]:
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


def tell(data: dict[str, Any], as_json: bool, out: Path | None, show: Callable[["Console"], None]) -> None:
    """Prints a result as JSON or for people, and writes it to a file if one is named."""
    from rich.console import Console

    from experiments.files import write_json

    if out is not None:
        write_json(out, data)
    if as_json:
        print(json.dumps(data, indent=2, allow_nan=False))
    else:
        show(Console())
