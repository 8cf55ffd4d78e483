"""What a run tells: TensorBoard scalars, the same as JSON lines, a progress bar, and where the time goes."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from training.folder import METRICS as METRICS
from training.folder import load_metrics, write_atomically

# Every scalar of a run, by group; the docs print this table.
GLOSSARY = {
    "charts/SPS": "the learner's decisions per second since the last entry",
    "charts/learning_rate": "Adam's step",
    "charts/entropy_weight": "weight of the entropy in the loss",
    "charts/epsilon": "DQN: share of random decisions",
    "charts/importance": "DQN: exponent of the importance weights",
    "charts/replay": "DQN: decisions in the replay",
    "losses/policy_loss": "PPO's clipped surrogate, to be minimised",
    "losses/value_loss": "half the mean squared error of the value, in units of reward",
    "losses/critic_loss": "the same of the critic that sees all cards, where there is one",
    "losses/hand_nats": "cross-entropy of the guess at the opponent's hand, nats per unseen card, where it guesses",
    "losses/gradient_steps": "gradient steps of the update; PPO: fewer than planned if kl_stop ended it",
    "losses/entropy": "mean entropy of the policy over legal actions, nats",
    "losses/approx_kl": "mean of (ratio - 1) - log ratio: how far the policy moved in the update, nats",
    "losses/clipfrac": "share of decisions whose ratio left the clip range",
    "losses/explained_variance": "share of the returns' variance that the value explains; DQN: of the targets'",
    "losses/q_loss": "DQN: half the squared error of the decisions drawn, weighted, in units of reward",
    "losses/td_error": "DQN: mean distance of a decision's value from its target, in units of reward",
    "losses/q_value": "DQN: mean value of the decisions drawn, in units of reward",
    "losses/imitation_loss": "imitation: cross-entropy on the teacher's choice, nats; its own entropy at best",
    "losses/agreement": "imitation: share of positions where the likeliest action is the teacher's likeliest",
    "losses/grad_norm": "mean norm of the gradient before clipping",
    "game/knock_rate": "share of hands that ended with a knock that won",
    "game/gin_rate": "share of hands that ended with gin",
    "game/big_gin_rate": "share of hands that ended with big gin",
    "game/undercut_rate": "share of hands whose knocker was undercut",
    "game/tie_rate": "share of hands tied at equal deadwood, where that scores nothing",
    "game/dead_rate": "share of hands that ran out of stock",
    "game/out_rate": "Rummy40: share of hands in which somebody went out",
    "game/stock_rate": "Rummy40: share of hands that ran out of stock",
    "game/truncated_rate": "share of hands that reached the cap on draws",
    "game/points": "mean points won by the winner (of Rummy40, by the seat that won most), dead hands as 0",
    "game/turns": "mean draws in a hand",
    "game/hands": "hands that ended since the last entry",
    "eval/points_per_hand": "points a hand against the first of eval_against, likeliest action, duplicate deals",
    "eval/against_...": "the same against each of the others",
    "eval/mean": "mean of these; the best state is the one with the highest",
    "eval/ci95_low": "lower end of its 95 % interval",
    "eval/ci95_high": "upper end of its 95 % interval",
    "eval/win_rate": "share of hands won in that evaluation",
    "time/rollout": "share of the time spent playing, network included",
    "time/learn": "share of the time spent on gradients",
    "time/evaluate": "share of the time spent on evaluation",
    "time/seconds": "seconds of training since the run began, evaluations included, pauses between sessions left out",
}


class Stopwatch:
    """Adds up the seconds spent in named parts of a loop."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Times the body of a with statement."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def shares(self) -> dict[str, float]:
        """The share of each part, 0 to 1."""
        total = sum(self.seconds.values()) or 1.0
        return {name: seconds / total for name, seconds in self.seconds.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name} {share:.0%}" for name, share in self.shares().items())


class Log:
    """Writes a run's scalars to TensorBoard and to metrics.jsonl in its folder.

    Args:
        run: The run's folder.
        step: Step from which the run goes on; later entries of an interrupted run are dropped, and at 0 all of them.

    Attributes:
        seconds: Seconds of training up to that step.

    Raises:
        OSError: If the folder cannot be written.
    """

    def __init__(self, run: Path, step: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.path = run / METRICS
        self.seconds = 0.0
        if step:
            kept = [entry for entry in load_metrics(run) if entry["step"] <= step]
            write_atomically(self.path, "".join(json.dumps(entry) + "\n" for entry in kept).encode())
            self.seconds = next((entry["time/seconds"] for entry in reversed(kept) if "time/seconds" in entry), 0.0)
        else:
            for old in (self.path, *run.glob("events.out.tfevents.*")):
                old.unlink(missing_ok=True)
        self.file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115 (closed by close)
        # TensorBoard drops what was written from the purge step on, and the entry at `step` is to stay.
        self.board = SummaryWriter(str(run), purge_step=step + 1 if step else None)

    def write(self, step: int, scalars: Mapping[str, float]) -> None:
        """Writes scalars at a step (decisions of the learner)."""
        for name, value in scalars.items():
            self.board.add_scalar(name, value, step)
        line = {"step": step, **{name: round(float(value), 6) for name, value in scalars.items()}}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        # After an error it may not be possible to write the rest, and the error is what counts.
        with suppress(OSError) if kind else nullcontext():
            self.file.close()
            self.board.close()


class Display:
    """The progress bar of a run, on stderr; plain lines where that is no terminal.

    Args:
        total: Decisions of the whole run.
        done: Decisions so far.
        quiet: Whether to show nothing.
    """

    def __init__(self, total: int, done: int, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet)
        self.progress = Progress(
            TextColumn("[bold]train"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f} %  {task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.progress.add_task("train", total=total, completed=done, rate="", note="")

    def __enter__(self) -> "Display":
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def update(self, step: int, rate: float, note: str) -> None:
        """Shows the step, the rate (decisions per second) and a note."""
        self.progress.update(self.task, completed=step, rate=f"{rate:,.0f} decisions/s", note=note)

    def line(self, text: str) -> None:
        """Prints a line that stays."""
        self.console.print(text, highlight=False, soft_wrap=True)
