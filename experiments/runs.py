"""Training runs side by side: how far they are, how they play, and which settings differ. No torch is needed."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from experiments.files import replacing
from training.folder import CHECKPOINT, CONFIG, CheckpointError, Holder, holder, load_config, load_metrics


class Point(NamedTuple):
    """An evaluation."""

    step: int  # decisions of the learner so far
    seconds: float | None  # of training so far; None where the run does not tell
    mean: float  # points a hand
    low: float | None  # its 95 % interval, where the log has it
    high: float | None


@dataclass(frozen=True)
class Run:
    """A training run, as its folder tells.

    Attributes:
        folder: The folder.
        config: Algorithm and settings.
        step: Decisions of the learner at the last entry of the log.
        seconds: Seconds of training up to there; None where the run does not tell.
        checkpoint: Step of the last checkpoint; None without one.
        rate: Decisions per second at the last entry.
        curve: Its evaluations against one player.
        holder: The process that trains in it now, if any.
    """

    folder: Path
    config: dict[str, Any]
    step: int
    seconds: float | None
    checkpoint: int | None
    rate: float | None
    curve: tuple[Point, ...]
    holder: Holder | None

    @property
    def total(self) -> int:
        """Decisions that it is to reach."""
        return int(self.config["total_steps"])

    @property
    def best(self) -> Point | None:
        """Its best evaluation."""
        return max(self.curve, key=lambda point: point.mean, default=None)

    @property
    def last(self) -> Point | None:
        """Its last evaluation."""
        return self.curve[-1] if self.curve else None

    @property
    def level(self) -> Point | None:
        """The first evaluation from which on it was never behind: how long it takes to reach the player."""
        reached = None
        for point in reversed(self.curve):
            if point.mean < 0:
                break
            reached = point
        return reached

    @property
    def state(self) -> str:
        """``training``, ``finished`` or ``stopped``."""
        if self.holder is not None:
            return "training"
        return "finished" if (self.checkpoint or 0) >= self.total else "stopped"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "run": str(self.folder),
            "algorithm": self.config["algorithm"],
            "state": self.state,
            "pid": self.holder.pid if self.holder else None,
            "step": self.step,
            "total_steps": self.total,
            "checkpoint_step": self.checkpoint,
            "seconds": self.seconds,
            "decisions_per_second": self.rate,
            "last": self.last._asdict() if self.last else None,
            "best": self.best._asdict() if self.best else None,
            "level": self.level._asdict() if self.level else None,
            "curve": [point._asdict() for point in self.curve],
            "config": self.config,
        }


def read_run(folder: Path, against: str = "greedy") -> Run:
    """Reads a run's folder.

    Args:
        folder: The folder.
        against: The player whose evaluations count.

    Raises:
        CheckpointError: If it holds no run, or a damaged one.
    """
    config = load_config(folder)
    if not isinstance(config.get("algorithm"), str) or not isinstance(config.get("total_steps"), int):
        raise CheckpointError(f"{folder} holds no run: its {CONFIG} names no algorithm and steps")
    entries = load_metrics(folder)
    last: dict[str, float] = entries[-1] if entries else {"step": 0}
    return Run(
        folder,
        config,
        int(last["step"]),
        last.get("time/seconds"),
        _checkpoint_step(folder / CHECKPOINT),
        last.get("charts/SPS"),
        tuple(_curve(config, entries, against)),
        holder(folder),
    )


def _curve(config: dict[str, Any], entries: list[dict[str, float]], against: str) -> list[Point]:
    opponents = config.get("eval_against") or [None]
    first = opponents[0] == against
    name = "eval/points_per_hand" if first else f"eval/against_{against.replace(':', '_')}"
    return [
        Point(
            int(entry["step"]),
            entry.get("time/seconds"),
            entry[name],
            entry.get("eval/ci95_low") if first else None,
            entry.get("eval/ci95_high") if first else None,
        )
        for entry in entries
        if name in entry
    ]


def _checkpoint_step(path: Path) -> int | None:
    """The step in a checkpoint's header: eight bytes say how long that is, and it is JSON."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, 1 << 24)))["__metadata__"]["header"]
            return int(json.loads(header)["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_runs(folder: Path) -> list[Path]:
    """Returns the folders of runs in a folder and below it, the folder itself included.

    Raises:
        ValueError: If there is no such folder, or no run in it.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    found = [path.parent for path in sorted(folder.rglob(CONFIG)) if _is_run(path.parent)]
    if not found:
        raise ValueError(f"{folder} holds no run; train one with: ginrummy train ppo --run {folder / 'mine'}")
    return found


def _is_run(folder: Path) -> bool:
    """Whether it is a run's folder; a bundle has a file of that name, too."""
    try:
        return "algorithm" in load_config(folder)
    except CheckpointError:
        return True  # damaged: whoever reads it says so


def read_runs(folders: Sequence[Path], against: str = "greedy") -> list[Run]:
    """Reads the runs in some folders; of a folder that holds damaged runs among others the others only.

    Raises:
        ValueError: If one of the folders holds no run, or is itself a damaged one.
    """
    runs = []
    for folder in folders:
        for path in find_runs(folder):
            try:
                runs.append(read_run(path, against))
            except CheckpointError:
                if path == folder:
                    raise
    return runs


def differences(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Returns the settings that all of the runs have and that differ: the values, in the order of the runs."""
    shared = [name for name in runs[0].config if all(name in run.config for run in runs)]
    values = {name: [run.config[name] for run in runs] for name in shared}
    return {name: row for name, row in values.items() if any(value != row[0] for value in row)}


def runs_to_json(runs: Sequence[Run], against: str) -> dict[str, Any]:
    """Returns a comparison as plain values."""
    return {
        "against": against,
        "runs": [run.to_json() for run in runs],
        "differences": differences(runs) if len(runs) > 1 else {},
    }


# ----------------------------------------------------------------------------------------------------------- tables


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _short(step: int) -> str:
    return f"{step / 1e6:.3g} M" if step >= 1e6 else f"{step / 1e3:.3g} k"


def names(runs: Sequence[Run]) -> list[str]:
    """Returns what to call each run: its folder, from where their paths part."""
    parents = [str(run.folder.absolute().parent) for run in runs]
    base = Path(os.path.commonpath(parents))
    return [str(run.folder.absolute().relative_to(base)) for run in runs]


def runs_table(runs: Sequence[Run], against: str) -> Table:
    """Returns the table of some runs, a line for each."""
    caption = (
        f"last, best: points a hand v {against}, likeliest action (±: 95 % interval); level: when it was first "
        "evaluated as not behind, for good"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    table.add_column("run", overflow="fold", min_width=8)
    table.add_column("", no_wrap=True)
    for column in ("decisions", "time", "last", "best", "at", "level"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for run, name in zip(runs, names(runs), strict=True):
        table.add_row(
            name,
            run.config["algorithm"],
            _short(run.step),
            _duration(run.seconds),
            f"{run.last.mean:+.2f}{_spread(run.last)}" if run.last else "-",
            f"{run.best.mean:+.2f}" if run.best else "-",
            _short(run.best.step) if run.best else "-",
            _duration(run.level.seconds) if run.level else "-",
            run.state + ("" if run.state == "finished" else f" {100 * run.step / run.total:.0f} %"),
            style={"training": "bold", "stopped": "dim"}.get(run.state),
        )
    return table


def _spread(point: Point) -> str:
    return "" if point.low is None or point.high is None else f" ±{(point.high - point.low) / 2:.1f}"


def differences_table(runs: Sequence[Run]) -> Table:
    """Returns the table of the settings that differ, a column for each run."""
    table = Table(title="settings that differ", title_justify="left")
    table.add_column("setting")
    for name in names(runs):
        table.add_column(name, overflow="fold")
    for name, values in differences(runs).items():
        table.add_row(name, *(_value(value) for value in values))
    return table


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {share:g}" for name, share in value.items()) or "-"
    return ", ".join(value) if isinstance(value, list) else str(value)


def print_runs(runs: Sequence[Run], against: str, console: Console, compare: bool) -> None:
    """Prints runs: their table, and if they are compared the settings that differ."""
    console.print(runs_table(runs, against), markup=False)
    if compare and len(runs) > 1:
        if differences(runs):
            console.print(differences_table(runs), markup=False)
        else:
            console.print("All settings that they share are the same.")


# ------------------------------------------------------------------------------------------------------------- plot


def plot_runs(runs: Sequence[Run], against: str, path: str | Path) -> None:
    """Draws points a hand by decisions and by minutes into a picture (png, svg or pdf by its name).

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If no run has been evaluated against the player, or the name ends in no format of pictures.
        OSError: If the file cannot be written.
    """
    from matplotlib.figure import Figure

    if not any(run.curve for run in runs):
        raise ValueError(f"none of the runs has been evaluated against {against!r}: there is nothing to draw")
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for number, (run, name) in enumerate(zip(runs, names(runs), strict=True)):
        timed = [point for point in run.curve if point.seconds is not None]
        _draw(left, name, [point.step / 1e6 for point in run.curve], run.curve, number)
        _draw(right, name, [(point.seconds or 0) / 60 for point in timed], timed, number)
    left.set_xlabel("million decisions")
    right.set_xlabel("minutes")
    left.set_ylabel(f"points a hand v {against}")
    for axes in (left, right):
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.grid(alpha=0.3)
        axes.set_xlim(left=0)
    left.legend(fontsize=8)
    with replacing(path) as beside:
        figure.savefig(beside)


def _draw(axes: Any, name: str, places: list[float], points: Sequence[Point], number: int) -> None:
    color = f"C{number % 10}"
    axes.plot(places, [point.mean for point in points], color=color, marker=".", label=name)
    bounds = [(place, point.low, point.high) for place, point in zip(places, points, strict=True)]
    known = [(place, low, high) for place, low, high in bounds if low is not None and high is not None]
    if known:
        axes.fill_between(*zip(*known, strict=True), color=color, alpha=0.15, linewidth=0)
