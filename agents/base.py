"""The agent protocol, and agents by name.

An agent sees views and masks, never tables. It acts for many tables at once:

    >>> import agents
    >>> agents.make("greedy").name
    'greedy'
    >>> agents.make("greedy", game="rummy40").game
    'rummy40'
"""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gin_env.engine import mix_keys
from gin_env.view import View


@runtime_checkable
class Agent(Protocol):
    """A player of gin rummy, or of Rummy40.

    One that plays Rummy40 says so in an attribute ``game``, which is ``"rummy40"``; without it an agent plays gin
    (`game_of`). Its views and masks are those of `gin_env.rummy40` then, and A is 1311, or 1987 with two packs.

    An agent may also have a method ``probabilities(view, mask)`` that returns, for such views and masks, how likely it
    plays each action: (N, 108) float64, 0 for illegal ones, 1 in all. `experiments.exploit` then need not sample it.

    Attributes:
        name: What results call it.
    """

    name: str

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """Chooses one action for each row.

        Args:
            view: (N,) views of the seats to move (`gin_env.view.VIEW_DTYPE`).
            mask: (N, A) int8, 1 for each legal action, at least one in each row; A is 108, or 449 where the rules are
                manual (`gin_env.actions`).
            rng: (N,) uint64, a fresh random key for each row. All randomness of an agent comes from these keys, each
                row from its own, so that a choice is the same whatever else is in the batch.

        Returns:
            (N,) int64 action ids.
        """
        ...


Factory = Callable[..., Agent]
GAMES = ("gin", "rummy40")
_FACTORIES: dict[str, dict[str, Factory]] = {game: {} for game in GAMES}
_RAW: dict[str, set[str]] = {game: set() for game in GAMES}
CHECKPOINT = "checkpoint.safetensors"  # the file in the folder of a training run


def register(name: str, *, game: str = "gin", raw: bool = False) -> Callable[[Factory], Factory]:
    """Makes an agent class (or a function that returns an agent) known to `make` as ``name``.

    Args:
        name: The word before the first colon.
        game: Which game it plays (`GAMES`).
        raw: Whether the factory takes what follows the colon as one string, instead of options by keyword.
    """

    def keep(factory: Factory) -> Factory:
        _of(game)[name] = factory
        if raw:
            _RAW[game].add(name)
        return factory

    return keep


def _of(game: str) -> dict[str, Factory]:
    """Returns the factories of a game by name.

    Raises:
        ValueError: If there is no such game.
    """
    if game not in _FACTORIES:
        raise ValueError(f"{game!r} is no game: expected {' or '.join(GAMES)}")
    return _FACTORIES[game]


def names(game: str = "gin") -> list[str]:
    """The names that `make` knows for a game."""
    return sorted(_of(game))


def scripted(game: str = "gin") -> list[str]:
    """The names that `make` knows whole: players who need to be told nothing more."""
    return [name for name in names(game) if name not in _RAW[game]]


def factory(name: str, game: str = "gin") -> Factory:
    """The class, or function, that `make` calls for this name; its docstring states the player's rule."""
    return _of(game)[name]


def describe(name: str, game: str = "gin") -> str:
    """The first line of what is written about a player that `make` knows by this name."""
    return (factory(name, game).__doc__ or "").strip().partition("\n")[0]


def game_of(agent: Agent) -> str:
    """Which game an agent plays: one of `GAMES`."""
    return str(getattr(agent, "game", "gin"))


def make(spec: str, game: str = "gin") -> Agent:
    """Returns an agent.

    ``"greedy"``, or ``"greedy:knock=5"`` with options; the folder of an exported bundle (``"bots/quick"``); the folder
    of a training run, whose last checkpoint plays, or one of its checkpoint files (``"runs/quick:sample=1"``); or a
    program (``"external:python my_bot.py"``, see `agents.external`).

    Args:
        spec: The agent.
        game: Which game it is to play (`GAMES`); the same name is another player in each.

    Raises:
        ValueError: If there is no such agent, or its options are wrong; or if it is a checkpoint that cannot be played;
            or if it plays the other game.
        agents.bundle.BundleError: If it is a bundle that cannot be played.
    """
    known = _of(game)
    name, _, options = spec.partition(":")
    if name in known:
        if name in _RAW[game]:
            return known[name](options)
        return _call(known[name], spec, options)
    for path, given in ((Path(spec), ""), (Path(name), options)):
        if path.is_dir() or (path.suffix == ".safetensors" and path.is_file()):
            agent = _call(partial(_player_of(path), path), spec, given)
            if game_of(agent) != game:
                raise ValueError(f"agent {spec!r} plays {game_of(agent)}; expected one that plays {game}")
            return agent
    kind = "agent" if game == "gin" else f"agent of {game}"
    raise ValueError(
        f"{spec!r} is no {kind}: expected {', '.join(names(game))}, or the folder of an exported bundle or a training "
        "run"
    )


def _call(factory: Factory, spec: str, options: str) -> Agent:
    try:
        return factory(**parse_options(spec, options))
    except TypeError as error:
        raise ValueError(f"agent {spec!r}: {error}") from None


def _player_of(path: Path) -> Factory:
    """Returns what plays a folder or a checkpoint file."""
    if path.is_dir() and not (path / CHECKPOINT).is_file():
        from agents.bundle import CONFIG, POLICY, SUMS, BundleAgent

        if (path / CONFIG).is_file() and not (path / SUMS).exists() and not (path / POLICY).exists():
            raise ValueError(f"run {path} has no checkpoint yet: there is no {path / CHECKPOINT}")
        return BundleAgent
    try:
        import safetensors  # noqa: F401  (it reads the file)

        from agents.neural import CheckpointAgent
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise ValueError(
            f"playing run {path} needs {error.name}; install it with: pip install 'gin-env[train]'"
        ) from None
    return CheckpointAgent


def parse_options(spec: str, options: str) -> dict[str, Any]:
    """Reads ``"name=number,name=number"``.

    Args:
        spec: The whole agent, for the message of an error.
        options: What follows its name and colon; may be empty.

    Raises:
        ValueError: If it is not of that form.
    """
    parsed: dict[str, Any] = {}
    for option in filter(None, options.split(",")):
        key, equals, value = option.partition("=")
        try:
            if not equals or not key.isidentifier() or key in parsed:
                raise ValueError
            number = float(value)
            if not math.isfinite(number):
                raise ValueError
        except ValueError:
            raise ValueError(f"agent {spec!r}: option {option!r} is not of the form name=number, once each") from None
        parsed[key] = int(value) if value.lstrip("+-").isdigit() else number
    return parsed


def gumbel(rng: np.ndarray, size: int) -> np.ndarray:
    """Standard Gumbel noise from random keys: the argmax of logits plus noise is a sample of their softmax.

    Args:
        rng: (N,) uint64 keys, one for each row.
        size: Numbers for each row.

    Returns:
        (N, size) float64.
    """
    bits = _mix_each(rng, size)
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    return -np.log(-np.log(uniform))


def _mix_each(rng: np.ndarray, size: int) -> np.ndarray:
    """Returns ``size`` 64-bit hashes of each key: (N, size) uint64, each a pure function of (key, place)."""
    with np.errstate(over="ignore"):
        numbers = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return mix_keys(0, rng[:, None] + numbers[None, :])
