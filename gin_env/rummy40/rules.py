"""The rules of Rummy40, as data: every number and choice is a field of `Rummy40Rules`.

>>> from gin_env.rummy40 import as_rules, preset
>>> preset("rummy40").opening
40
>>> four = as_rules("rummy40:seats=4,opening=50,limit=200")
>>> four.num_packs, four.num_jokers, four.deck_size
(2, 4, 108)
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gin_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from gin_env.fields import (
    changes,
    check_fields,
    check_names,
    fingerprint,
    from_numbers,
    load_toml,
    read_text,
    rules_text,
    to_row,
)
from gin_env.rummy40.actions import NUM_ACTIONS, NUM_TWO_PACK_ACTIONS
from gin_env.rummy40.cards import JOKER

MAX_SEATS = 4
MAX_PACKS = 2
MAX_JOKERS = 4
MAX_HAND_SIZE = 10
MAX_DRAW_CAP = 200
MAX_DECK = MAX_PACKS * NUM_CARDS + MAX_JOKERS

# The numbers that can be played, from and to.
RANGES = {
    "packs": (1, MAX_PACKS),
    "jokers": (0, MAX_JOKERS),
    "ranks": (3, NUM_RANKS),
    "suits": (1, NUM_SUITS),
    "hand_size": (2, MAX_HAND_SIZE),
    "opening": (0, 100),
    "opening_penalty": (0, 1000),
    "joker_points": (0, 1000),
    "draw_cap": (1, MAX_DRAW_CAP),
    "limit": (1, 1_000_000),
}


@dataclass(frozen=True)
class Rummy40Rules:
    """What is played. Immutable; equal fingerprints mean equal games.

    Fields that may be None follow the number of players, as on the rule page; a value that says the same becomes None.

    Attributes:
        name: A label for people; it is no part of the fingerprint.
        seats: Players: 2, or 4, all against all.
        packs: Packs of cards; None for one with two players and two with four.
        jokers: Jokers in all; None for two in each pack.
        ranks: Ranks in the pack, from the ace up (small packs keep the same card ids).
        suits: Suits in the pack, in the order S H D C.
        hand_size: Cards dealt to each player.
        opening: Least points of the melds that a player lays in the turn in which it lays the first; 0 for none.
        wrong_opening: What becomes of melds that do not reach them: "masked" (such a move is not legal, nor is one
            from which the minimum cannot be reached any more) or "penalty" (the player takes the cards back, which
            costs points and ends the attempts of this turn).
        opening_penalty: Points for melds taken back, booked at once and counted when the hand ends.
        adding: The melds to which a player who has opened may add: its "own" or "any"; None for its own with two
            players and any with four.
        stealing: The melds from which a player who has opened may take a joker: "any", its "own" or "no" meld.
        pile: Who may take the last discard: "anyone", or those who have "opened".
        rediscard: Whether the card just taken from the discard pile may be thrown in the same turn.
        joker_points: Points of a joker that is left in hand.
        first_dealer: "random", or the seat that deals first; then the deal goes round.
        draw_cap: A discard after this many draws of all players ends the hand as truncated.
        limit: Points that end a match; None for a match of one hand.
    """

    name: str = "rummy40"
    seats: Literal[2, 4] = 2
    packs: int | None = None
    jokers: int | None = None
    ranks: int = 13
    suits: int = 4
    hand_size: int = 10
    opening: int = 40
    wrong_opening: Literal["masked", "penalty"] = "masked"
    opening_penalty: int = 20
    adding: Literal["own", "any"] | None = None
    stealing: Literal["any", "own", "no"] = "any"
    pile: Literal["anyone", "opened"] = "anyone"
    rediscard: bool = False
    joker_points: int = 25
    first_dealer: Literal["random", 0, 1, 2, 3] = "random"
    draw_cap: int = 200
    limit: int | None = 100

    def __post_init__(self) -> None:
        """Checks every field.

        Raises:
            TypeError: If a field has the wrong type.
            ValueError: If a value, or a combination of values, cannot be played.
        """
        check_fields(self, RANGES)
        # What says the same is the same: so equal rules are equal objects.
        for field, value in (("packs", self._page_packs), ("jokers", self._page_jokers), ("adding", self._page_adding)):
            if getattr(self, field) == value:
                object.__setattr__(self, field, None)
        if self.first_dealer != "random" and self.first_dealer >= self.seats:
            raise ValueError(f"rules: first_dealer is {self.first_dealer}; {self.seats} players have the seats 0 to "
                             f"{self.seats - 1}")  # fmt: skip
        if self.wrong_opening == "penalty" and not self.opening:
            raise ValueError("rules: wrong_opening='penalty' needs an opening minimum; with opening=0 nothing is wrong")
        if self.hand_size <= self.num_jokers:
            raise ValueError(
                f"rules: a hand of {self.hand_size} may be all jokers, of which there are {self.num_jokers}, and none "
                "can be thrown before opening; expected fewer jokers or larger hands"
            )
        stock = self.deck_size - self.seats * self.hand_size - 1
        if stock < 1:
            raise ValueError(
                f"rules: {self.deck_size} cards leave no stock after dealing {self.hand_size} to each of {self.seats} "
                "players and one face up"
            )

    @property
    def _page_packs(self) -> int:
        return 1 if self.seats == 2 else 2

    @property
    def _page_jokers(self) -> int:
        return 2 * self.num_packs

    @property
    def _page_adding(self) -> Literal["own", "any"]:
        return "own" if self.seats == 2 else "any"

    @property
    def num_packs(self) -> int:
        """Packs of cards."""
        return self._page_packs if self.packs is None else self.packs

    @property
    def num_jokers(self) -> int:
        """Jokers in all packs together."""
        return self._page_jokers if self.jokers is None else self.jokers

    @property
    def adds_to(self) -> Literal["own", "any"]:
        """The melds to which a player who has opened may add."""
        return self._page_adding if self.adding is None else self.adding

    @property
    def pack(self) -> int:
        """The mask of all cards in play."""
        suit = (1 << self.ranks) - 1
        return sum(suit << NUM_RANKS * number for number in range(self.suits))

    @property
    def deck(self) -> list[int]:
        """All cards in play, by id: each card as often as there are packs, then the jokers."""
        one = [NUM_RANKS * suit + rank for suit in range(self.suits) for rank in range(self.ranks)]
        return sorted(one * self.num_packs) + [JOKER] * self.num_jokers

    @property
    def deck_size(self) -> int:
        """Cards in play, jokers included."""
        return self.num_packs * self.ranks * self.suits + self.num_jokers

    @property
    def num_actions(self) -> int:
        """Size of the action table: 1311 with one pack, 1987 with two (see `gin_env.rummy40.actions`)."""
        return NUM_ACTIONS if self.num_packs == 1 else NUM_TWO_PACK_ACTIONS

    @property
    def text(self) -> str:
        """A preset and what differs from it, such as ``rummy40:seats=4,limit=200``; `as_rules` reads it."""
        return rules_text(self, PRESETS.get(self.name, PRESETS[DEFAULT_PRESET]))

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Rummy40Rules":
        """Returns the rules with these fields; those left out keep their defaults.

        Raises:
            ValueError: If a field is unknown or its value cannot be played.
        """
        check_names(cls, fields)
        try:
            return cls(**fields)
        except TypeError as error:
            raise ValueError(str(error)) from None

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that differ whenever the game played differs."""
        said = {"packs": self.num_packs, "jokers": self.num_jokers, "adding": self.adds_to}
        return fingerprint(self.to_dict() | said)

    def record(self) -> np.ndarray:
        """Returns the rules as kernels read them: a (1,) array of `RULES_DTYPE`, in which only limit may be missing."""
        said = {"packs": self.num_packs, "jokers": self.num_jokers, "adding": CODES[self.adds_to]}
        row = to_row(self, RULES_DTYPE, CODES)
        for name, value in said.items():
            row[name] = value
        return row

    @classmethod
    def from_row(cls, row: np.void) -> "Rummy40Rules":
        """Returns the rules that a row of `RULES_DTYPE` holds, as in a table. Their name is that of the preset.

        Raises:
            ValueError: If the row holds no rules that can be played.
        """
        return _from_numbers(row.item())


# How kernels read the words.
CODES = {"masked": 0, "penalty": 1, "own": 0, "any": 1, "no": 2, "anyone": 0, "opened": 1, "random": -1}

RULES_DTYPE = np.dtype(
    [("pack", np.uint64), ("limit", np.int32), ("deck_size", np.int16)]
    + [(field.name, np.int16) for field in dataclasses.fields(Rummy40Rules) if field.name not in ("name", "limit")]
)

DEFAULT_PRESET = "rummy40"
PRESETS = {DEFAULT_PRESET: Rummy40Rules()}


def preset(name: str, /, **fields: Any) -> Rummy40Rules:
    """Returns a named preset, with some fields changed.

    Raises:
        ValueError: If no preset has this name, or a change cannot be played.
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"{name!r} is no preset; expected one of {', '.join(PRESETS)}")
    check_names(Rummy40Rules, fields)
    try:
        return dataclasses.replace(PRESETS[name], **fields)
    except TypeError as error:
        raise ValueError(str(error)) from None


def as_rules(rules: "Rummy40Rules | str") -> Rummy40Rules:
    """Returns rules given as an object or as text.

    Args:
        rules: Rules; or the name of a preset, alone or with changes (``"rummy40:seats=4,opening=0"``); or the path of
            a TOML file (`load_rules`), which ends in ``.toml``.

    Raises:
        ValueError: If the text names no rules, or they cannot be played.
        OSError: If the file cannot be read.
    """
    if isinstance(rules, Rummy40Rules):
        return rules
    if not isinstance(rules, str):
        raise ValueError(f"rules are {rules!r}; expected a Rummy40Rules object, a preset's name or a .toml file")
    if rules.endswith(".toml"):
        return load_rules(rules)
    name, fields = read_text(rules, PRESETS)
    return preset(name, **fields)


def load_rules(path: str | Path) -> Rummy40Rules:
    """Reads rules from a TOML file, as `gin_env.fields.load_toml` says.

    Raises:
        ValueError: If the file is not TOML or its rules cannot be played.
        OSError: If it cannot be read.
    """
    rules: Rummy40Rules = load_toml(path, DEFAULT_PRESET, preset)
    return rules


@lru_cache(maxsize=1024)  # as in `gin_env.rules`
def _from_numbers(numbers: tuple[int, ...]) -> Rummy40Rules:
    """Returns the rules of a row of `RULES_DTYPE`, given as numbers."""
    row = dict(zip(RULES_DTYPE.names or (), numbers, strict=True))
    rules = Rummy40Rules.from_dict(from_numbers(Rummy40Rules, row, CODES))
    nearest = min(PRESETS, key=lambda name: len(changes(rules, PRESETS[name])))
    return dataclasses.replace(rules, name=nearest)
