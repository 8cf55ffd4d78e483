"""What a training run is told: a dataclass with a docstring per field. The command line is made of it."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

PAST = "past"  # among the opponents: earlier states of the learner itself

# What is played if no rules are named, by game.
DEFAULT_RULES = {"gin": "cardpuzzle", "rummy40": "rummy40"}


@dataclass(frozen=True)
class RunConfig:
    """What every algorithm is told."""

    algorithm: ClassVar[str] = ""

    seed: int = 1
    """Decides the whole run: deals, weights, samples."""
    game: Literal["gin", "rummy40"] = "gin"
    """Which game."""
    rules: str = ""
    """What to play, one hand an episode: a preset, "preset:field=value,..." or a TOML file; no manual rules. If empty,
    cardpuzzle, or of Rummy40 rummy40."""
    matches: float = 0.0
    """Share of the tables that play whole matches, where a hand's reward is the change in the chance to win; of gin
    only."""
    match_rules: str = "eaai"
    """What they play: rules with a target."""

    total_steps: int = 10_000_000
    """Decisions of the learner, all seats counted."""
    tables: int = 1024
    """Tables played side by side."""
    opponents: Mapping[str, float] = field(default_factory=dict)
    """Share of tables where the learner has one seat and this agent all others, by the agent's name; "past" is the
    learner as it was. The rest is self-play."""
    past_every: int = 2_000_000
    """Decisions after which another past state is kept."""
    past_size: int = 4
    """Past states that are kept, the oldest goes first."""

    network: str = "suits"
    """Network: suits, or of gin the plain mlp (see agents.networks)."""
    width: int = 64
    """Units of each layer."""
    layers: int = 2
    """Mixing layers after the first; of an mlp, its hidden layers."""
    cards: int = 0
    """Channels of the head that looks around each card; 0 leaves it out. An mlp has none."""
    card_layers: int = 1
    """Further layers of that head."""
    skip: bool = True
    """Whether logits begin as arithmetic, of suits only; otherwise as noise."""
    knock_bias: float = -3.0
    """Initial logit of a knock short of gin; an mlp has none, nor has Rummy40."""
    start_from: str = ""
    """Folder of a run or of an exported bundle whose network this one starts from, perhaps with more width,
    layers, cards or card_layers; empty for a new one."""

    learning_rate: float = 5e-4
    """Adam's step at the start."""
    learning_rate_end: float = 0.1
    """What is left of it at the end, as a share; it falls linearly."""
    points_scale: float = 20.0
    """Points that make one unit of reward."""
    max_grad_norm: float = 0.5
    """Largest norm of a gradient."""

    threads: int = 2
    """Threads for torch. With fewer free cores than threads training crawls."""
    device: str = "cpu"
    """Where the network learns: cpu, cuda, cuda:1, ..."""
    compile: bool = False
    """Whether torch compiles the network; it takes a minute at the start and a C++ compiler."""
    eval_every: int = 1_000_000
    """Decisions between two evaluations."""
    eval_deals: int = 500
    """Deals of an evaluation, each played twice against each of eval_against."""
    eval_against: tuple[str, ...] = ("greedy",)
    """Agents to evaluate against. The state with the best mean of points is kept beside the last one."""
    checkpoint_every: int = 1_000_000
    """Decisions between two checkpoints; one is written at the end and on Ctrl-C, too."""

    # Bounds by field, checked in this order: at least, more than, at most.
    _AT_LEAST: ClassVar[Mapping[str, float]] = {
        **dict.fromkeys(("total_steps", "tables", "past_every", "past_size", "width", "threads", "eval_every",
                         "checkpoint_every"), 1),
        "eval_deals": 2,
        **dict.fromkeys(("seed", "layers", "cards", "card_layers", "matches", "learning_rate_end"), 0),
    }  # fmt: skip
    _ABOVE_ZERO: ClassVar[tuple[str, ...]] = ("learning_rate", "max_grad_norm", "points_scale")
    _SHARES: ClassVar[tuple[str, ...]] = ("matches", "learning_rate_end")

    def __post_init__(self) -> None:
        """Checks every field.

        Raises:
            ValueError: If a field has a wrong type or a value that cannot be trained with.
        """
        for name, kind in get_type_hints(type(self)).items():
            if get_origin(kind) is not ClassVar:
                self._check_type(name, kind)
        if not self.rules:
            object.__setattr__(self, "rules", DEFAULT_RULES[self.game])
        for name, least in self._AT_LEAST.items():
            if not getattr(self, name) >= least:
                what = f"at least {least:g}" if least else "0 or more"
                if name == "eval_deals":
                    what += ", for an interval"
                raise ValueError(f"config: {name} is {getattr(self, name)}; expected {what}")
        for name in self._ABOVE_ZERO:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"config: {name} is {getattr(self, name)}; expected more than 0 and finite")
        for name in self._SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"config: {name} is {getattr(self, name)}; expected 0 to 1")
        if not all(type(share) in (int, float) for share in self.opponents.values()):
            raise ValueError(f"config: opponents is {dict(self.opponents)}; expected numbers as shares")
        shares = {str(name): float(share) for name, share in self.opponents.items()}
        if any(not share > 0 for share in shares.values()) or sum(shares.values()) > 1 + 1e-9:
            raise ValueError(f"config: opponents is {shares}; expected shares above 0 with a sum of at most 1")
        object.__setattr__(self, "opponents", shares)

    def _check_type(self, name: str, kind: Any) -> None:
        value = getattr(self, name)
        if kind is float and type(value) is int:
            object.__setattr__(self, name, float(value))
        elif kind in (int, float, str, bool):
            if type(value) is not kind:
                raise ValueError(f"config: {name} is {value!r}; expected {kind.__name__}")
        elif get_origin(kind) is Literal:
            if value not in get_args(kind):
                raise ValueError(f"config: {name} is {value!r}; expected {' or '.join(map(repr, get_args(kind)))}")
        elif get_origin(kind) is tuple:
            if not isinstance(value, list | tuple) or not value or not all(type(entry) is str for entry in value):
                raise ValueError(f"config: {name} is {value!r}; expected a list of names")
            object.__setattr__(self, name, tuple(value))
        elif not isinstance(value, Mapping):
            raise ValueError(f"config: {name} is {value!r}; expected a table of agent = share")

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Returns the config with these fields; those left out keep their defaults.

        Raises:
            ValueError: If a field is unknown or cannot be trained with.
        """
        names = [entry.name for entry in dataclasses.fields(cls)]
        unknown = sorted(set(fields) - set(names))
        if unknown:
            raise ValueError(f"config: unknown field {unknown[0]!r}; expected some of {', '.join(names)}")
        return cls(**fields)


@dataclass(frozen=True)
class PPOConfig(RunConfig):
    """Masked PPO by self-play."""

    algorithm: ClassVar[str] = "ppo"

    horizon: int = 64
    """Decisions at each table between two updates; tables x horizon is the batch."""
    epochs: int = 1
    """Passes over each batch."""
    minibatch: int = 8192
    """Decisions in each gradient step."""
    clip: float = 0.2
    """PPO's bound on the change of an action's probability."""
    kl_stop: float = 0.0
    """KL divergence from the policy that played, in nats, at which the passes over a batch end early; 0 for never."""
    entropy: float = 0.01
    """Weight of the entropy of the legal actions at the start."""
    entropy_end: float = 0.1
    """What is left of it at the end, as a share; it falls linearly."""
    value_weight: float = 0.5
    """Weight of the value's squared error."""
    hand_weight: float = 0.0
    """Weight of guessing the opponent's hand, nats per unseen card; 0 leaves that head out. An mlp has none."""
    critic: Literal["own", "all"] = "own"
    """What the baseline sees: the player's own view, or, of gin, all cards and how simple players would finish the
    hand, by a network of its own that only training uses; it explains twice as much."""
    gae_lambda: float = 0.9
    """Decay of the advantage estimate over decisions."""
    discount: float = 1.0
    """What a point is worth one decision later. Below 1 a sure knock now is preferred to gin some day."""
    bf16: bool = False
    """Whether gradients are computed in bfloat16, where the device has instructions for it."""
    overlap: bool = False
    """Whether the next batch is played while this one is learned from, on a second core or beside a GPU; it is played
    by the network as it was one update before."""

    _AT_LEAST: ClassVar[Mapping[str, float]] = {
        **RunConfig._AT_LEAST,
        **dict.fromkeys(("horizon", "epochs", "minibatch"), 1),
        **dict.fromkeys(("kl_stop", "entropy", "entropy_end", "value_weight", "hand_weight"), 0),
    }
    _ABOVE_ZERO: ClassVar[tuple[str, ...]] = (*RunConfig._ABOVE_ZERO, "clip")
    _SHARES: ClassVar[tuple[str, ...]] = (*RunConfig._SHARES, "gae_lambda", "discount", "entropy_end")

    def __post_init__(self) -> None:
        """Checks every field; see `RunConfig`."""
        super().__post_init__()
        if self.minibatch > self.tables * self.horizon:
            raise ValueError(
                f"config: minibatch is {self.minibatch}; expected at most the batch, tables x horizon = "
                f"{self.tables * self.horizon}"
            )


@dataclass(frozen=True)
class DQNConfig(RunConfig):
    """Masked double dueling DQN with prioritised replay, by self-play."""

    algorithm: ClassVar[str] = "dqn"

    horizon: int = 64
    """Decisions at each table between two entries of the log. Gradient steps are taken all along."""
    replay_size: int = 262_144
    """Last decisions that are kept; each takes 390 bytes."""
    replay_ratio: float = 1.0
    """Decisions drawn from the replay for each that is made."""
    learn_from: int = 32_768
    """Decisions before the first gradient step."""
    minibatch: int = 1024
    """Decisions in each gradient step."""
    n_step: int = 3
    """Decisions of a seat after which the value of its next position stands for the rest of the hand."""
    discount: float = 1.0
    """What a point is worth one decision later."""
    target_every: int = 200
    """Gradient steps after which the target network is renewed."""
    epsilon: float = 0.1
    """Share of the decisions that are a random legal action, at the start."""
    epsilon_end: float = 0.1
    """What is left of it at the end, as a share; it falls linearly."""
    temperature: float = 1.0
    """Points of difference that make an action e times rarer among the other decisions; 0 plays the best one."""
    priority: float = 0.5
    """Exponent of the errors by which decisions are drawn; 0 draws all alike."""
    importance: float = 0.4
    """Exponent of the weights that make up for it, at the start; 1 at the end."""

    _AT_LEAST: ClassVar[Mapping[str, float]] = {
        **RunConfig._AT_LEAST,
        **dict.fromkeys(("horizon", "minibatch", "n_step", "target_every"), 1),
        **dict.fromkeys(("temperature", "priority", "learn_from"), 0),
    }
    _ABOVE_ZERO: ClassVar[tuple[str, ...]] = (*RunConfig._ABOVE_ZERO, "replay_ratio")
    _SHARES: ClassVar[tuple[str, ...]] = (*RunConfig._SHARES, "discount", "epsilon", "epsilon_end", "importance")

    def __post_init__(self) -> None:
        """Checks every field; see `RunConfig`."""
        super().__post_init__()
        # By then each seat has decided n times again, at two decisions a turn, and some more.
        least = (2 * self.n_step + 2) * self.tables
        for name in ("replay_size", "learn_from"):
            if getattr(self, name) < least:
                raise ValueError(
                    f"config: {name} is {getattr(self, name)}; expected at least (2 n_step + 2) x tables = {least}"
                )


@dataclass(frozen=True)
class ImitateConfig(RunConfig):
    """Imitation of any agent, on the positions that the learner comes to itself."""

    algorithm: ClassVar[str] = "imitate"

    teacher: str = "greedy"
    """The agent that is imitated, by its name; where it tells its probabilities they are, otherwise its choice."""
    teacher_share: float = 0.25
    """Share of the tables where the teacher's choices are played; at the others the learner's are."""
    horizon: int = 32
    """Decisions at each table between two updates; tables x horizon positions are labelled by the teacher for each."""
    memory: int = 0
    """Labelled positions that are kept and learned from again; 0 keeps those of the last update only. Good where the
    teacher is slow."""
    epochs: int = 1
    """Positions learned from in each update, in multiples of those labelled for it."""
    minibatch: int = 2048
    """Positions in each gradient step."""
    smoothing: float = 0.0
    """Share of the teacher's choice that goes to all legal actions alike, so that some doubt is left to go on with."""
    value_weight: float = 0.5
    """Weight of the value's squared error, against what the hand brought."""

    _AT_LEAST: ClassVar[Mapping[str, float]] = {
        **RunConfig._AT_LEAST,
        **dict.fromkeys(("horizon", "epochs", "minibatch"), 1),
        **dict.fromkeys(("memory", "value_weight"), 0),
    }
    _SHARES: ClassVar[tuple[str, ...]] = (*RunConfig._SHARES, "teacher_share", "smoothing")

    def __post_init__(self) -> None:
        """Checks every field; see `RunConfig`."""
        super().__post_init__()
        batch = self.tables * self.horizon
        if self.minibatch > batch * self.epochs:
            raise ValueError(
                f"config: minibatch is {self.minibatch}; expected at most tables x horizon x epochs = "
                f"{batch * self.epochs}"
            )
        if self.memory and self.memory < batch:
            raise ValueError(f"config: memory is {self.memory}; expected 0, or at least tables x horizon = {batch}")


CONFIGS: dict[str, type[RunConfig]] = {kind.algorithm: kind for kind in (PPOConfig, DQNConfig, ImitateConfig)}

Config = TypeVar("Config", bound=RunConfig)


def load_recipe(path: str | Path, kind: type[Config], **changes: Any) -> Config:
    """Reads a recipe: a TOML file of fields.

    Args:
        path: The file.
        kind: The config it is for, `PPOConfig` for instance. A recipe may name its ``algorithm``.
        changes: Fields that take the place of the recipe's.

    Raises:
        ValueError: If the file is missing, is no TOML, is for another algorithm, or holds a field that cannot be
            trained with.
    """
    try:
        fields = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"recipe {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"recipe {path} is no TOML: {error}") from None
    algorithm = fields.pop("algorithm", kind.algorithm)
    if algorithm != kind.algorithm:
        raise ValueError(f"recipe {path} is for {algorithm!r}; expected one for {kind.algorithm!r}")
    try:
        return kind.from_dict(fields | changes)
    except ValueError as error:
        raise ValueError(f"recipe {path}: {error}") from None
