"""How kernels are compiled: numba, cached on disk, without the GIL.

numba keeps compiled kernels beside the source and compiles one again when its
own file changes. It does not notice a change in another file that the kernel
calls into. `kernel` closes that gap: the stamp of every cached kernel is a hash
of the source files that it can call into.
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

_ROOT = Path(__file__).resolve().parent.parent
_IMPORT = re.compile(rb"^\s*(?:from ([\w.]+) import (\([^)]*\)|.*)|import ([\w.]+))", re.MULTILINE)


@cache
def _source_stamp(source: Path) -> str:
    """A hash of the sources that a kernel in ``source`` can call into or read a constant from.

    These are the file and those of this project that it imports, and so on.
    """
    texts: dict[Path, bytes] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in texts:
            continue
        texts[path] = path.read_bytes()
        for module, names, plain in _IMPORT.findall(texts[path]):
            parts = (module or plain).decode().split(".")
            # What is imported may be a module itself: `from agents import base`. Or it lies beside the importer.
            words = re.findall(r"\w+", names.decode())
            for place in (_ROOT.joinpath(*parts), path.parent.joinpath(*parts)):
                files = (place.with_suffix(".py"), *(place / f"{word}.py" for word in words))
                waiting.extend(file for file in files if file.is_file())
    digest = hashlib.sha256()
    for path in sorted(texts):
        digest.update(texts[path])
    return digest.hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a loop over arrays, or a typed helper that such loops call.

    The first call on a machine compiles (seconds); later processes load the
    result from the cache.
    """
    dispatcher = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    # The only private names of numba used here; without them the cache still
    # works but trusts the modification time of the kernel's own file alone.
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None and hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _source_stamp(Path(function.__code__.co_filename).resolve())
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


@intrinsic
def write_cards(typing_context: Any, out: Any, offset: Any, mask: Any) -> Any:
    """Writes bits 0 to 51 of a uint64 as the numbers 0 and 1 into ``out[offset:offset + 52]``.

    ``out`` is a contiguous vector of float32 or int8; there is no bounds check. A loop would take a comparison for
    each card; as vectors of bits it is a few machine instructions.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array_type = signature.args[0]
        array = context.make_array(array_type)(context, builder, args[0])
        number = context.get_data_type(array_type.dtype)
        for start, width in ((0, 32), (32, 16), (48, 4)):
            bits = builder.trunc(builder.lshr(args[2], ir.Constant(ir.IntType(64), start)), ir.IntType(width))
            flags = builder.bitcast(bits, ir.VectorType(ir.IntType(1), width))
            vector = ir.VectorType(number, width)
            ones = builder.select(flags, ir.Constant(vector, [1] * width), ir.Constant(vector, [0] * width))
            place = builder.gep(array.data, [builder.add(args[1], ir.Constant(ir.IntType(64), start))])
            builder.store(ones, builder.bitcast(place, vector.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(out, types.int64, types.uint64), generate


@intrinsic
def read_flags(typing_context: Any, flags: Any, offset: Any) -> Any:
    """Returns ``flags[offset:offset + 64] != 0`` as the bits of a uint64.

    ``flags`` is a contiguous vector of int8; there is no bounds check.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        vector = ir.VectorType(ir.IntType(8), 64)
        place = builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())
        loaded = builder.load(place, align=1)
        return builder.bitcast(builder.icmp_signed("!=", loaded, ir.Constant(vector, None)), ir.IntType(64))

    return types.uint64(flags, types.int64), generate


@intrinsic
def borrow_row(typing_context: Any, matrix: Any, row: Any) -> Any:
    """Returns ``matrix[row]`` of a contiguous matrix without counting a reference to it.

    Counting is an atomic instruction for each use of a row, which cost a quarter of the time of an observation. The
    row must not outlive the matrix, and there is no bounds check.
    """
    vector = types.Array(matrix.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, args[0])
        width = builder.extract_value(source.shape, 1)
        result = context.make_array(vector)(context, builder)
        stride = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(matrix.dtype)))
        arrayobj.populate_array(
            result,
            data=builder.gep(source.data, [builder.mul(args[1], width)]),
            shape=cgutils.pack_array(builder, [width]),
            strides=cgutils.pack_array(builder, [stride]),
            itemsize=stride,
            meminfo=None,
        )
        return result._getvalue()

    return vector(matrix, types.int64), generate
