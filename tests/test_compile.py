"""How kernels are compiled: what their cache depends on, and the machine instructions that they use."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from agents import baselines
from gin_env import _compile, engine, melds, view

ROOT = Path(__file__).resolve().parent.parent


def kernels(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yields the kernels that a module defines."""
    for name, value in vars(module).items():
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
            yield name, value


@pytest.mark.parametrize("module", [engine, melds, view, baselines], ids=lambda module: module.__name__)
def test_cache_is_stamped_with_all_sources(module: ModuleType) -> None:
    """The stamp sits in private fields of numba's; if they are renamed, kernels would go stale without a word."""
    found = dict(kernels(module))
    assert len(found) >= 2
    stamp = _compile._source_stamp(Path(str(module.__file__)).resolve())
    for name, dispatcher in found.items():
        assert dispatcher._cache._cache_file._source_stamp == stamp, name
        assert dispatcher.targetoptions["nogil"], name


def test_a_change_in_another_file_is_noticed(tmp_path: Path) -> None:
    """As kernels meet it: a constant in a neighbour's file changes, their own file does not."""
    (tmp_path / "neighbour.py").write_text("NUMBER = 1\n")
    (tmp_path / "mine.py").write_text(
        "from gin_env._compile import kernel\nfrom neighbour import NUMBER\n\n\n"
        "@kernel\ndef answer():\n    return NUMBER\n\n\n"
        "print(answer(), sum(answer.stats.cache_hits.values()))\n"
    )

    def run() -> str:
        script = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(tmp_path)!r}]; import mine"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout.strip()

    assert run() == "1 0"
    assert run() == "1 1"  # from the cache
    (tmp_path / "neighbour.py").write_text("NUMBER = 22\n")
    assert run() == "22 0"


# ----------------------------------------------------------------------------------------------------- instructions


@numba.njit
def _counts(masks, counts, places):
    for i in range(masks.size):
        counts[i] = _compile.count(masks[i])
        places[i] = _compile.lowest(masks[i])


@numba.njit
def _write(out, offset, mask):
    _compile.write_cards(out, offset, mask)


def sample() -> list[int]:
    """Returns masks of 64 bits, dense, sparse and at the edges; 0 is not among them."""
    rng = Random(1)
    masks = [1 << place for place in range(64)] + [2**64 - 1, 2**64 - 2, 2**63 + 1, 2**52 - 1]
    for density in (1, 2, 4):
        for _ in range(500):
            mask = 2**64 - 1
            for _ in range(density):
                mask &= rng.getrandbits(64)
            masks.append(mask or 1)
    return masks


def test_count_and_lowest() -> None:
    masks = sample()
    counts, places = np.empty((2, len(masks)), dtype=np.int64)
    _counts(np.array(masks, dtype=np.uint64), counts, places)
    assert counts.tolist() == [mask.bit_count() for mask in masks]
    assert places.tolist() == [(mask & -mask).bit_length() - 1 for mask in masks]
    # No cards at all can be counted; what the lowest of them is nobody may ask.
    _counts(np.zeros(1, dtype=np.uint64), counts[:1], places[:1])
    assert counts[0] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_write_cards(dtype: Any) -> None:
    """Bits 0 to 51 and nothing beside them."""
    for mask in [0, *sample()[::10]]:
        for offset in (0, 3, 56):
            out = np.full(120, 7, dtype=dtype)
            _write(out, offset, np.uint64(mask))
            bits = [mask >> card & 1 for card in range(52)]
            assert out.tolist() == [7] * offset + bits + [7] * (68 - offset)


def test_no_record_outlives_its_array() -> None:
    """Numba frees an array after its last use, and a record taken from it points into it all the same."""
    taken = re.compile(r"np\.(?:empty|zeros|ones|full)\([^\n]*_DTYPE\)\[")
    assert taken.search("    v = np.empty(1, dtype=VIEW_DTYPE)[0]\n")
    for floor in ("gin_env", "agents", "training", "experiments"):
        for path in (ROOT / floor).rglob("*.py"):
            assert not taken.search(path.read_text(encoding="utf-8")), path
