"""What can go wrong around a training run: crashes at any write, full disks, folders in use or not to be written."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tensorboard")

import training.checkpoint
from training.checkpoint import load_checkpoint
from training.config import PPOConfig
from training.folder import CHECKPOINT, LOCK, METRICS, CheckpointError, holder, load_metrics, locked
from training.metrics import Log
from training.ppo import Interrupted, Trainer, TrainingError, train

ROOT = Path(__file__).resolve().parent.parent

# Three updates, with a checkpoint after each and an evaluation at the end.
TINY = PPOConfig(
    total_steps=192, tables=8, horizon=8, network="mlp", width=8, layers=1, minibatch=64, threads=1,
    eval_every=10**9, eval_deals=2, checkpoint_every=64,
)  # fmt: skip


class Crash(BaseException):
    """Stands for what kills a process: no handler of errors sees it."""


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing disturbed."""
    run = tmp_path_factory.mktemp("runs") / "straight"
    train(TINY, run)
    return run


def same(run: Path, straight: Path) -> bool:
    """Whether two runs ended alike, to the bit, but for what depends on the clock."""

    def entries(folder: Path) -> list[dict[str, float]]:
        timeless = ("charts/SPS", "time/")
        return [{k: v for k, v in entry.items() if not k.startswith(timeless)} for entry in load_metrics(folder)]

    return (run / CHECKPOINT).read_bytes() == (straight / CHECKPOINT).read_bytes() and entries(run) == entries(straight)


def stop_after(monkeypatch: pytest.MonkeyPatch, update: int) -> None:
    """Interrupts a run in the update of that number, the first being 1."""
    learn = Trainer.learn

    def watched(self: Trainer, batch: Any) -> dict[str, float]:
        if self.step == (update - 1) * 64:
            os.kill(os.getpid(), signal.SIGINT)
        return learn(self, batch)

    monkeypatch.setattr(Trainer, "learn", watched)


# ---------------------------------------------------------------------------------------------------------- crashes


def writes(monkeypatch: pytest.MonkeyPatch, at: Callable[[], None]) -> None:
    """Calls ``at`` before each step of each write of a run."""
    for owner, name in (
        (os, "fsync"),
        (os, "replace"),
        (training.checkpoint, "save_file"),
        (Log, "write"),
    ):
        real = getattr(owner, name)

        def watched(*args: Any, real: Callable[..., Any] = real, **options: Any) -> Any:
            at()
            return real(*args, **options)

        monkeypatch.setattr(owner, name, watched)


# Config 2; log 1 and checkpoint 3 in each of three updates; the best network 3.
WRITES = 2 + 3 * 4 + 3


def test_all_writes_are_known(tmp_path: Path, straight: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    writes(monkeypatch, lambda: seen.append(1))
    train(TINY, tmp_path / "run")
    assert len(seen) == WRITES


@pytest.mark.parametrize("fatal", range(WRITES))
def test_a_crash_at_any_write_loses_one_interval_at_most(
    straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: int
) -> None:
    run, seen, steps = tmp_path / "run", [0], [0]

    def die() -> None:
        seen[0] += 1
        if seen[0] == fatal + 1:
            raise Crash

    with monkeypatch.context() as patch:
        learn = Trainer.learn
        patch.setattr(Trainer, "learn", lambda self, batch: (learn(self, batch), steps.append(self.step))[0])
        writes(patch, die)
        with pytest.raises(Crash):
            train(TINY, run)
    kept = load_checkpoint(run / CHECKPOINT)[1]["step"] if (run / CHECKPOINT).exists() else 0
    assert kept >= steps[-1] - 64
    assert holder(run) is None

    train(TINY, run)
    assert same(run, straight)
    assert sorted(path.name for path in run.iterdir() if path.name.startswith(".")) == []


def test_killed_and_the_folder_in_use(tmp_path: Path) -> None:
    run = tmp_path / "run"
    endless = {**TINY.to_dict(), "total_steps": 10**9}
    code = f"from training.ppo import *; from training.config import *; train(PPOConfig(**{endless}), {str(run)!r})"
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        while not (run / CHECKPOINT).exists():
            assert child.poll() is None
            time.sleep(0.02)
        with pytest.raises(CheckpointError, match=rf"run is being trained by process {child.pid} on .*another --run"):
            train(PPOConfig(**endless), run)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    # What it wrote into the lock is still there, and means nothing.
    assert (run / LOCK).read_text().startswith(f"{child.pid} ")
    assert holder(run) is None
    kept = load_checkpoint(run / CHECKPOINT)[1]["step"]
    done = load_metrics(run)[-1]["step"]
    assert done - 64 <= kept <= done
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, kept // 64 + 2)
        with pytest.raises(Interrupted):
            train(PPOConfig(**endless), run)
    assert load_checkpoint(run / CHECKPOINT)[1]["step"] == kept + 128
    assert [entry["step"] for entry in load_metrics(run)] == list(range(64, kept + 129, 64))


# ------------------------------------------------------------------------------------------------------------- lock


def test_the_lock(tmp_path: Path) -> None:
    assert holder(tmp_path) is None
    (tmp_path / LOCK).write_text("1 elsewhere\n")
    assert holder(tmp_path) is None
    with locked(tmp_path):
        held = holder(tmp_path)
        assert held is not None
        assert held.pid == os.getpid()
        with pytest.raises(CheckpointError, match=f"is being trained by process {os.getpid()} on"), locked(tmp_path):
            pass
        # Whoever was refused has changed nothing.
        assert holder(tmp_path) == held
    assert holder(tmp_path) is None
    assert (tmp_path / LOCK).read_text() == ""
    with locked(tmp_path):
        pass


def test_a_folder_in_use_is_left_alone(straight: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(straight, run)
    with locked(run):
        before = {path.name: path.read_bytes() for path in run.iterdir()}
        for overwrite in (False, True):
            with pytest.raises(CheckpointError, match="is being trained"):
                train(TINY, run, overwrite=overwrite)
        assert {path.name: path.read_bytes() for path in run.iterdir()} == before


# --------------------------------------------------------------------------------------- what cannot be written


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Lets no file grow beyond so many bytes: what the system then says is what it says of a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("size", "name"), [(60_000, CHECKPOINT), (100, "run")], ids=["checkpoint", "log"])
def test_a_full_disk(straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, name: str) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(Interrupted):
            train(TINY, run)
    before = (run / CHECKPOINT).read_bytes()
    assert len(before) > 60_000
    says = rf"cannot write .*{name}.*: File too large; the last checkpoint is whole, and the same command goes on"
    with room_for(size), pytest.raises(TrainingError, match=says) as caught:
        train(TINY, run)
    assert "\n" not in str(caught.value)
    assert (run / CHECKPOINT).read_bytes() == before
    # No half of a file is left in the way.
    assert [path for path in run.iterdir() if path.name.endswith(".part")] == []
    train(TINY, run)
    assert same(run, straight)


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    with room_for(10), pytest.raises(TrainingError, match=r"cannot write .*: File too large; there is no checkpoint"):
        train(TINY, tmp_path / "run")


@contextmanager
def nobody() -> Iterator[None]:
    """Acts without the rights of root, if it has them."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_no_write_permission(straight: Path) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        run = folder / "old"
        shutil.copytree(straight, run)
        before = {path.name: path.read_bytes() for path in run.iterdir()}
        for path in (*run.iterdir(), run, folder):
            path.chmod(0o555)
        with nobody():
            with pytest.raises(TrainingError, match=r"cannot write .*new: Permission denied; there is no checkpoint"):
                train(TINY, folder / "new")
            with pytest.raises(
                TrainingError, match=r"cannot write .*: Permission denied; the last checkpoint is whole"
            ):
                train(TINY, run)
        assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    finally:
        for path in (folder, folder / "old"):
            path.chmod(0o755)
        shutil.rmtree(folder)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(TrainingError, match=r"cannot write .*run: File exists; there is no checkpoint"):
        train(TINY, tmp_path / "run")
    assert (tmp_path / "run").read_text() == "mine"


# ------------------------------------------------------------------------------------------------------------ clock


def test_seconds_add_up_over_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(Interrupted):
            train(TINY, run)
    # As if they had taken long.
    lines = [json.loads(line) for line in (run / METRICS).read_text().splitlines()]
    for number, line in enumerate(lines):
        line["time/seconds"] = 1000.0 * (number + 1)
    (run / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    train(TINY, run)
    seconds = [entry["time/seconds"] for entry in load_metrics(run)]
    assert seconds[:2] == [1000, 2000]
    assert 2000 < seconds[2] < 2900
