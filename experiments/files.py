"""Files that are there in full or not at all: written beside, then renamed."""

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
