"""What a training run is told: a dataclass with a docstring per field. The command line is made of it."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints


@dataclass(frozen=True)
class PPOConfig:
    """Masked PPO by self-play."""

    seed: int = 1
    """Decides the whole run: deals, weights, samples."""
    rules: str = "cardpuzzle"
    """What to play, one hand an episode: a preset, "preset:field=value,..." or a TOML file; no manual rules."""

    total_steps: int = 10_000_000
    """Decisions of the learner, both seats counted."""
    tables: int = 1024
    """Tables played side by side."""
    horizon: int = 64
    """Decisions at each table between two updates; tables x horizon is the batch."""
    opponents: Mapping[str, float] = field(default_factory=dict)
    """Share of tables where the learner has one seat and this agent the other, by the agent's name. The rest is
    self-play."""

    network: str = "suits"
    """Network: suits, or the plain mlp (see agents.networks)."""
    width: int = 64
    """Units of each layer."""
    layers: int = 2
    """Mixing layers after the first; of an mlp, its hidden layers."""
    knock_bias: float = -3.0
    """Initial logit of a knock short of gin; an mlp has none."""

    learning_rate: float = 5e-4
    """Adam's step at the start; it falls linearly to a tenth at the end."""
    epochs: int = 1
    """Passes over each batch."""
    minibatch: int = 8192
    """Decisions in each gradient step."""
    clip: float = 0.2
    """PPO's bound on the change of an action's probability."""
    entropy: float = 0.01
    """Weight of the entropy of the legal actions at the start; it falls linearly to a tenth at the end."""
    value_weight: float = 0.5
    """Weight of the value's squared error."""
    max_grad_norm: float = 0.5
    """Largest norm of a gradient."""
    gae_lambda: float = 0.9
    """Decay of the advantage estimate over decisions."""
    discount: float = 1.0
    """What a point is worth one decision later. Below 1 a sure knock now is preferred to gin some day."""
    points_scale: float = 20.0
    """Points that make one unit of reward."""

    threads: int = 2
    """Threads for torch. With fewer free cores than threads training crawls."""
    eval_every: int = 1_000_000
    """Decisions between two evaluations."""
    eval_deals: int = 500
    """Deals of an evaluation, each played twice against the greedy agent."""
    checkpoint_every: int = 1_000_000
    """Decisions between two checkpoints; one is written at the end and on Ctrl-C, too."""

    def __post_init__(self) -> None:
        """Checks every field.

        Raises:
            ValueError: If a field has a wrong type or a value that cannot be trained with.
        """
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if kind is float and type(value) is int:
                object.__setattr__(self, name, float(value))
            elif kind in (int, float, str) and type(value) is not kind:
                raise ValueError(f"config: {name} is {value!r}; expected {kind.__name__}")
        for name in ("total_steps", "tables", "horizon", "width", "epochs", "minibatch", "threads", "eval_every",
                     "checkpoint_every"):  # fmt: skip
            if getattr(self, name) < 1:
                raise ValueError(f"config: {name} is {getattr(self, name)}; expected at least 1")
        if self.eval_deals < 2:
            raise ValueError(f"config: eval_deals is {self.eval_deals}; expected at least 2, for an interval")
        for name in ("learning_rate", "clip", "max_grad_norm", "points_scale"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"config: {name} is {getattr(self, name)}; expected more than 0 and finite")
        for name in ("seed", "layers", "entropy", "value_weight"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"config: {name} is {getattr(self, name)}; expected 0 or more")
        for name in ("gae_lambda", "discount"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"config: {name} is {getattr(self, name)}; expected 0 to 1")
        if self.minibatch > self.tables * self.horizon:
            raise ValueError(
                f"config: minibatch is {self.minibatch}; expected at most the batch, tables x horizon = "
                f"{self.tables * self.horizon}"
            )
        if not isinstance(self.opponents, Mapping):
            raise ValueError(f"config: opponents is {self.opponents!r}; expected a table of agent = share")
        if not all(type(share) in (int, float) for share in self.opponents.values()):
            raise ValueError(f"config: opponents is {dict(self.opponents)}; expected numbers as shares")
        shares = {str(name): float(share) for name, share in self.opponents.items()}
        if any(not share > 0 for share in shares.values()) or sum(shares.values()) > 1 + 1e-9:
            raise ValueError(f"config: opponents is {shares}; expected shares above 0 with a sum of at most 1")
        object.__setattr__(self, "opponents", shares)

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "PPOConfig":
        """Returns the config with these fields; those left out keep their defaults.

        Raises:
            ValueError: If a field is unknown or cannot be trained with.
        """
        names = [entry.name for entry in dataclasses.fields(cls)]
        unknown = sorted(set(fields) - set(names))
        if unknown:
            raise ValueError(f"config: unknown field {unknown[0]!r}; expected some of {', '.join(names)}")
        return cls(**fields)


def load_recipe(path: str | Path) -> PPOConfig:
    """Reads a recipe: a TOML file of `PPOConfig` fields.

    Raises:
        ValueError: If the file is missing, is no TOML, or holds a field that cannot be trained with.
    """
    try:
        fields = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"recipe {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"recipe {path} is no TOML: {error}") from None
    try:
        return PPOConfig.from_dict(fields)
    except ValueError as error:
        raise ValueError(f"recipe {path}: {error}") from None
