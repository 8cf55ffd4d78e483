"""A run's folder: the names of its files, writing them whole, and who trains in it. No torch is needed to read it."""

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

if sys.platform != "win32":
    import fcntl

CONFIG = "config.json"
CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"  # the network that evaluated best
METRICS = "metrics.jsonl"
LOCK = "lock"


class CheckpointError(ValueError):
    """A checkpoint or run folder that is missing, damaged or does not fit. The message says which."""


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file beside its place, then renames it: it is there whole or not at all."""
    beside = path.with_name(f".{path.name}.part")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)  # on a full disk it is in the way
        raise


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file atomically, readable by people."""
    write_atomically(path, (json.dumps(value, indent=2) + "\n").encode())


def load_config(run: Path) -> dict[str, Any]:
    """Reads a run's config.

    Raises:
        CheckpointError: If the folder holds no run, or its config is damaged.
    """
    path = run / CONFIG
    if not path.is_file():
        raise CheckpointError(f"{run} holds no run: there is no {path}")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"config {path} is damaged: {error}") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"config {path} is damaged: it holds no table of fields")
    return config


def load_metrics(run: Path) -> list[dict[str, float]]:
    """Reads a run's scalars, an entry for each line of its log; lines that were cut off are left out."""
    entries = []
    try:
        lines = (run / METRICS).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            entry = json.loads(line)
            entry["step"] = int(entry["step"])
        except (ValueError, KeyError, TypeError):
            # The line being written when the process died, or when this one reads.
            continue
        entries.append(entry)
    return entries


# ------------------------------------------------------------------------------------------------------------- lock


class Holder(NamedTuple):
    """The process that trains in a folder."""

    pid: int
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def _try_lock(file: int, exclusive: bool) -> bool:
    """Locks an open file at once or not at all. Where the system has no such locks it counts as locked."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def holder(run: Path) -> Holder | None:
    """Says which process trains in a folder now, if any does.

    A process that died holds no lock, whatever it left in the file.
    """
    try:
        with open(run / LOCK, encoding="utf-8") as file:
            if _try_lock(file.fileno(), exclusive=False):
                return None
            pid, _, host = file.read().strip().partition(" ")
            return Holder(int(pid) if pid.isdigit() else 0, host or "this machine")
    except OSError:
        return None


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Keeps other processes from training in a folder for the length of a with statement.

    The lock is the system's own, on the file `LOCK`. It ends with the process, however that ends, so none is ever left
    behind by a crash. The file names its holder and is empty when there is none; it is not removed, for then two
    processes could each lock a file of that name.

    Raises:
        CheckpointError: If another process trains there.
        OSError: If the file cannot be written.
    """
    path = run / LOCK
    with open(path, "a", encoding="utf-8") as file:
        # Somebody may be looking who holds it, which takes a moment.
        for wait in (0.0, 0.02, 0.1, 0.3):
            time.sleep(wait)
            if _try_lock(file.fileno(), exclusive=True):
                break
        else:
            raise CheckpointError(
                f"{run} is being trained by {holder(run) or 'another process'}; wait for it, end it, or choose another "
                "--run"
            )
        file.truncate(0)
        file.write(f"{os.getpid()} {socket.gethostname()}\n")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
