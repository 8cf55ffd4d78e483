"""The agent protocol, and agents by name.

An agent sees views and masks, never tables. It acts for many tables at once:

    >>> import agents
    >>> agents.make("greedy").name
    'greedy'
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from gin_env.view import View


@runtime_checkable
class Agent(Protocol):
    """A player of gin rummy.

    Attributes:
        name: What results call it.
    """

    name: str

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """Chooses one action for each row.

        Args:
            view: (N,) views of the seats to move (`gin_env.view.VIEW_DTYPE`).
            mask: (N, 108) int8, 1 for each legal action; at least one in each row.
            rng: (N,) uint64, a fresh random key for each row. All randomness of an agent comes from these keys, each
                row from its own, so that a choice is the same whatever else is in the batch.

        Returns:
            (N,) int64 action ids.
        """
        ...


Factory = Callable[..., Agent]
_FACTORIES: dict[str, Factory] = {}


def register(name: str) -> Callable[[Factory], Factory]:
    """Makes an agent class (or a function that returns an agent) known to `make` as ``name``."""

    def keep(factory: Factory) -> Factory:
        _FACTORIES[name] = factory
        return factory

    return keep


def names() -> list[str]:
    """The names that `make` knows."""
    return sorted(_FACTORIES)


def make(spec: str) -> Agent:
    """Returns an agent: ``"greedy"``, ``"greedy:knock=5"``, or the path of an exported bundle.

    Raises:
        ValueError: If there is no such agent, or its options are wrong.
        agents.bundle.BundleError: If the path is a bundle that cannot be played.
    """
    name, _, options = spec.partition(":")
    if name in _FACTORIES:
        try:
            return _FACTORIES[name](**_parse_options(spec, options))
        except TypeError as error:
            raise ValueError(f"agent {spec!r}: {error}") from None
    path = Path(spec)
    if path.is_dir():
        from agents.bundle import BundleAgent

        return BundleAgent(path)
    raise ValueError(f"{spec!r} is no agent: expected {', '.join(names())}, or the folder of an exported bundle")


def _parse_options(spec: str, options: str) -> Mapping[str, int]:
    parsed = {}
    for option in filter(None, options.split(",")):
        key, equals, value = option.partition("=")
        if not equals or not key.isidentifier() or not value.lstrip("-").isdigit():
            raise ValueError(f"agent {spec!r}: option {option!r} is not of the form name=whole number")
        parsed[key] = int(value)
    return parsed
