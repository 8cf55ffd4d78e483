"""Files that are there in full or not at all: written beside, then renamed."""

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Gives the path of a new file to write, which takes the place of another at the end of the block.

    Args:
        path: The file to replace; its folder is made if need be. After an error within the block it is as it was.

    Raises:
        OSError: If the file cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The end of the name stays: it may decide the format.
    beside = path.with_name(f".{os.getpid()}.part.{path.name}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def writing(path: str | Path) -> Iterator[TextIO]:
    """Opens a text file for writing, as `replacing` does."""
    with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file, as `replacing` does."""
    with writing(path) as file:
        file.write(text)


def append_line(path: str | Path, line: str | None) -> int:
    """Appends a line to a text file, whole or not at all, whoever else appends to it. The file and its folder are made.

    Args:
        path: The file. If it does not end with the end of a line, one is put in between.
        line: The line, without its end; None appends nothing, and only tries whether it could.

    Returns:
        The number of the line, from 1; 0 if there is none.

    Raises:
        OSError: If the file cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    made = not path.exists()
    with open(path, "a+b", buffering=0) as file:
        if line is None:
            if made:
                path.unlink()
            return 0
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        before = file.read(size)  # nothing, where it is a device
        data = line.encode() + b"\n"
        if before and not before.endswith(b"\n"):
            data = b"\n" + data
        if file.write(data) != len(data):
            file.truncate(size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if path.is_file():  # and no device
            os.fsync(file.fileno())
        return (before + data).count(b"\n")


def write_json(path: str | Path, data: Mapping[str, Any]) -> None:
    """Writes a JSON file, as `replacing` does.

    Args:
        path: The file.
        data: Plain values; numbers must be finite.

    Raises:
        ValueError: If a number is not finite.
        OSError: If the file cannot be written.
    """
    write_text(path, json.dumps(data, indent=2, allow_nan=False) + "\n")
