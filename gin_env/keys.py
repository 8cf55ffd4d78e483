"""Random keys: 64-bit hashes from which all chance of the games is drawn, each a pure function of its numbers."""

import numpy as np

from gin_env._compile import kernel

_U1 = np.uint64(1)


@kernel
def mix(key, number):
    """A 64-bit hash of a key and a number (the finalizer of splitmix64, Steele et al. 2014)."""
    x = key + np.uint64(0x9E3779B97F4A7C15) * (number + _U1)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def below(key, number, bound):
    """A uniform integer of 0 to ``bound - 1`` from (key, number); the bias is under 2**-25."""
    return np.int64(((mix(key, number) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel
def _mix_keys(seed, numbers, out):
    for i in range(numbers.size):
        out[i] = mix(seed, numbers[i])


def mix_keys(seed: int, numbers: np.ndarray) -> np.ndarray:
    """Returns one 64-bit key for each number, a pure function of (seed, number): uint64 of the numbers' shape.

    Raises:
        ValueError: If ``seed`` is not 0 to 2**64 - 1.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed is {seed!r}; expected a whole number of 0 to 2**64 - 1")
    numbers = np.ascontiguousarray(numbers, dtype=np.uint64)
    out = np.empty(numbers.shape, dtype=np.uint64)
    _mix_keys(np.uint64(seed), numbers.ravel(), out.ravel())
    return out
