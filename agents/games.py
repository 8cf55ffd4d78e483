"""What networks, bundles and the trainer ask of a game: its floor, its sizes, and who plays it.

Both games are laid out alike, each in a package of modules of the same names, so that a trainer is written once:

    >>> from agents.games import find_game
    >>> game = find_game("rummy40")
    >>> rules = game.as_rules("rummy40:seats=4")
    >>> game.seats(rules), game.num_actions(rules), game.observation_size(rules)
    (4, 1987, 1132)
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from agents import base

# Any rules of a game; each game has a class of its own.
AnyRules = Any


class Game:
    """A game. Modules are loaded when they are first asked for.

    Attributes:
        name: What config files and the command line call it.
        title: What people call it.
        package: Where its floor lies: the modules engine, view, tables, rules, actions and record.
        preset: The rules that are played if none are named.
        free_rules: Fields of the rules that decide what happens between hands, or who lays the melds: not what a policy
            learns.
        opponents: Players that an exported policy is measured against.
        match_end: Field of the rules that says when a match ends.
        has_matches: Whether hands of a match can be paid by the chance to win it (`training.chances`).
        has_critic: Whether there is a critic that sees all cards (`agents.networks.Critic`).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    package: ClassVar[str]
    rules_class: ClassVar[str]
    preset: ClassVar[str]
    free_rules: ClassVar[tuple[str, ...]]
    opponents: ClassVar[tuple[str, ...]]
    match_end: ClassVar[str]
    has_matches: ClassVar[bool] = False
    has_critic: ClassVar[bool] = False

    def __getattr__(self, name: str) -> Any:
        # The modules, which need numba.
        if name in ("engine", "view", "tables", "rules", "actions", "record"):
            module = import_module(f"{self.package}.{name}")
            setattr(self, name, module)
            return module
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"find_game({self.name!r})"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return find_game, (self.name,)

    # --------------------------------------------------------------------------------------------------------- rules

    def as_rules(self, rules: AnyRules) -> AnyRules:
        """Returns rules given as an object or as text (see the game's own ``as_rules``)."""
        return self.rules.as_rules(rules)

    def rules_of(self, fields: Mapping[str, Any]) -> AnyRules:
        """Returns the rules with these fields, as a checkpoint or a bundle holds them."""
        return getattr(self.rules, self.rules_class).from_dict(fields)

    def check_trainable(self, rules: AnyRules, text: str) -> None:
        """Refuses rules that cannot be trained for.

        Args:
            rules: The rules.
            text: What named them.

        Raises:
            ValueError: If so.
        """

    # --------------------------------------------------------------------------------------------------------- sizes

    def seats(self, rules: AnyRules) -> int:
        """Returns the number of players."""
        raise NotImplementedError

    def num_actions(self, rules: AnyRules) -> int:
        """Returns the number of actions, A, that a policy chooses among."""
        raise NotImplementedError

    def observation_size(self, rules: AnyRules) -> int:
        """Returns the length of an observation, D."""
        raise NotImplementedError

    def network_options(self, rules: AnyRules) -> dict[str, Any]:
        """Returns the settings of the game's networks that follow from its rules."""
        return {}

    def schema(self, rules: AnyRules) -> dict[str, Any]:
        """Returns the observation's fields and version, as bundles carry them."""
        raise NotImplementedError

    def action_names(self, rules: AnyRules) -> list[str]:
        """Returns the names of all actions, as bundles carry them."""
        return [self.actions.action_name(action) for action in range(self.num_actions(rules))]

    # ------------------------------------------------------------------------------------------------------- players

    def make(self, spec: str) -> Any:
        """Returns the player of this name: see `agents.make`."""
        raise NotImplementedError

    def network_inputs(self, view: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the observations (N, D) float32 and masks (N, A) int8 that a network sees."""
        return self.view.encode(view), mask

    def finish(self, view: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Replaces the actions (N,) that a network leaves to the library, in place."""
        return actions

    def policy(self, logits: np.ndarray, view: np.ndarray, mask: np.ndarray, sample: bool) -> np.ndarray:
        """Returns how likely a network plays each action: (N, A) float64.

        Args:
            logits: (N, A), very low where an action is illegal.
            view: (N,) views of the seats to move.
            mask: (N, A) int8.
            sample: Whether it draws from the softmax of the logits instead of taking the largest.
        """
        if not sample:
            out = np.zeros(mask.shape, dtype=np.float64)
            out[np.arange(view.size), logits.argmax(axis=1)] = 1
            return out
        shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
        weights = np.where(mask != 0, np.exp(shifted), 0)
        return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)

    def play_match(self, a: Any, b: Any, *, deals: int, seed: int, rules: AnyRules) -> Any:
        """Plays a duplicate match of single hands: ``points_per_hand`` and ``ci95`` are a's."""
        raise NotImplementedError


class Gin(Game):
    """Gin rummy, with automatic melds and layoffs where a policy is trained."""

    name = "gin"
    title = "gin rummy"
    package = "gin_env"
    rules_class = "Rules"
    preset = "cardpuzzle"
    free_rules = ("first_dealer", "next_dealer", "target", "manual", "knocker_melds", "layoffs", "defender_melds")
    opponents = ("random", "greedy", "gin-only", "early-knock")
    match_end = "target"
    has_matches = True
    has_critic = True

    def check_trainable(self, rules: AnyRules, text: str) -> None:
        """See `Game.check_trainable`: manual rules are not."""
        if rules.manual:
            raise ValueError(
                f"rules {text!r} are manual, and this trains with automatic melds and layoffs: "
                f"expected {self.rules.automatic(rules).text!r}; what it trains plays the manual rules too"
            )

    def seats(self, rules: AnyRules) -> int:
        """See `Game.seats`."""
        return 2

    def num_actions(self, rules: AnyRules) -> int:
        """See `Game.num_actions`."""
        return int(self.actions.NUM_ACTIONS)

    def observation_size(self, rules: AnyRules) -> int:
        """See `Game.observation_size`."""
        return int(self.view.OBSERVATION_SIZE)

    def schema(self, rules: AnyRules) -> dict[str, Any]:
        """See `Game.schema`."""
        return dict(self.view.schema())

    def make(self, spec: str) -> Any:
        """See `Game.make`."""
        return base.make(spec)

    def network_inputs(self, view: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Game.network_inputs`: what manual rules add is left to `agents.laying`."""
        return self.view.encode(view)[:, : self.view.OBSERVATION_SIZE], mask[:, : self.actions.NUM_ACTIONS]

    def finish(self, view: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """See `Game.finish`: melds and layoffs by hand."""
        from agents.laying import lay

        return lay(view, actions)

    def policy(self, logits: np.ndarray, view: np.ndarray, mask: np.ndarray, sample: bool) -> np.ndarray:
        """See `Game.policy`."""
        from agents import laying

        return laying.policy(logits, view, mask, sample)

    def play_match(self, a: Any, b: Any, *, deals: int, seed: int, rules: AnyRules) -> Any:
        """See `Game.play_match`."""
        from agents.match import play_match

        return play_match(a, b, deals=deals, seed=seed, rules=rules)


class Rummy40(Game):
    """Rummy40, with two or four players."""

    name = "rummy40"
    title = "Rummy40"
    package = "gin_env.rummy40"
    rules_class = "Rummy40Rules"
    preset = "rummy40"
    free_rules = ("first_dealer", "limit")
    opponents = ("random", "greedy")
    match_end = "limit"

    def seats(self, rules: AnyRules) -> int:
        """See `Game.seats`."""
        return int(rules.seats)

    def num_actions(self, rules: AnyRules) -> int:
        """See `Game.num_actions`."""
        return int(rules.num_actions)

    def observation_size(self, rules: AnyRules) -> int:
        """See `Game.observation_size`."""
        return int(self.view.observation_size(rules))

    def network_options(self, rules: AnyRules) -> dict[str, Any]:
        """See `Game.network_options`."""
        return {"seats": rules.seats, "packs": rules.num_packs}

    def schema(self, rules: AnyRules) -> dict[str, Any]:
        """See `Game.schema`."""
        return dict(self.view.schema(rules.seats))

    def make(self, spec: str) -> Any:
        """See `Game.make`."""
        return base.make(spec, game="rummy40")

    def play_match(self, a: Any, b: Any, *, deals: int, seed: int, rules: AnyRules) -> Any:
        """See `Game.play_match`: every deal in all seatings."""
        from agents.match40 import play_match

        return play_match(a, b, deals=deals, seed=seed, rules=rules)


GIN = Gin()
GAMES: dict[str, Game] = {game.name: game for game in (GIN, Rummy40())}


def find_game(name: str) -> Game:
    """Returns the game of this name.

    Raises:
        ValueError: If there is none.
    """
    if name not in GAMES:
        raise ValueError(f"{name!r} is no game; expected one of {', '.join(GAMES)}")
    return GAMES[name]


def game_of_rules(rules: AnyRules) -> Game:
    """Returns the game that rules are of."""
    return next(game for game in GAMES.values() if game.rules_class == type(rules).__name__)
