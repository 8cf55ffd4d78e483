"""How kernels are compiled: numba, cached on disk, without the GIL.

numba keeps compiled kernels beside the source and compiles one again when its
own file changes. It does not notice a change in another file that the kernel
calls into. `kernel` closes that gap: the stamp of every cached kernel is a hash
of the source files that it can call into.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic


@cache
def _source_stamp(folder: Path) -> str:
    """A hash of the sources that a kernel in ``folder`` can call into or read a constant from."""
    here = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for place in sorted({here, here.parent / "agents", folder}):
        for path in sorted(place.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a loop over arrays, or a typed helper that such loops call.

    The first call on a machine compiles (seconds); later processes load the
    result from the cache.
    """
    dispatcher = numba.njit(cache=True, nogil=True)(function)
    # The only private names of numba used here; without them the cache still
    # works but trusts the modification time of the kernel's own file alone.
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None and hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _source_stamp(Path(function.__code__.co_filename).resolve().parent)
    return dispatcher



@intrinsic
def count(typing_context: Any, mask: Any) -> Any:
    """Number of bits set in a uint64 (one machine instruction)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@intrinsic
def lowest(typing_context: Any, mask: Any) -> Any:
    """Position of the lowest bit set in a uint64 that is not 0 (one machine instruction)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, False))

    return types.int64(types.uint64), generate
