"""The rules of a game, as data: every number and choice is a field of `Rules`.

A named preset is a `Rules` object; a house variant is one with other fields:

    >>> from gin_env import Rules, preset
    >>> preset("cardpuzzle").gin_bonus
    25
    >>> Rules(name="short", knock_limit=7, target=50).knock_limit
    7
    >>> as_rules("plus20:oklahoma=true,target=50").oklahoma
    True
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gin_env.actions import NUM_ACTIONS, NUM_MANUAL_ACTIONS
from gin_env.cards import NUM_RANKS, NUM_SUITS
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
    value_text,
)

__all__ = [
    "CODES",
    "PRESETS",
    "RANGES",
    "RULES_DTYPE",
    "Rules",
    "as_rules",
    "automatic",
    "load_rules",
    "preset",
    "value_text",
]

MAX_HAND_SIZE = 10
MAX_DRAW_CAP = 200

# The numbers that can be played, from and to.
RANGES = {
    "ranks": (3, NUM_RANKS),
    "suits": (1, NUM_SUITS),
    "hand_size": (2, MAX_HAND_SIZE),
    "knock_limit": (0, 100),
    "gin_bonus": (0, 1000),
    "big_gin_bonus": (0, 1000),
    "undercut_bonus": (0, 1000),
    "stock_floor": (0, 10),
    "draw_cap": (1, MAX_DRAW_CAP),
    "swap_cap": (1, 1000),
    "take_cap": (1, 1000),
    "target": (1, 1_000_000),
}


@dataclass(frozen=True)
class Rules:
    """What is played. Immutable; equal fingerprints mean equal games.

    Attributes:
        name: A label for people; it is no part of the fingerprint.
        ranks: Ranks in the pack, from the ace up (small packs keep the same card ids).
        suits: Suits in the pack, in the order S H D C.
        hand_size: Cards dealt to each player.
        knock_limit: Most deadwood points with which a player may knock.
        oklahoma: The upcard sets the limit of the hand: an ace 0 (gin only), 2 to 9 the rank, otherwise 10.
        double_spades: What a spade upcard doubles under Oklahoma: "no", the "deadwood" difference, or
            "all" (difference and bonus).
        gin_bonus: Points for gin, added to the defender's deadwood.
        big_gin_bonus: Points for eleven melded cards; None where big gin does not exist.
        undercut_bonus: Points for the defender who undercuts, added to the difference.
        tie: Equal deadwood is an "undercut" or scores "nothing".
        rediscard: Whether the card just taken from the discard pile may be thrown in the same turn.
        first_dealer: "random", or the seat 0 or 1 that deals first.
        next_dealer: After a hand that was played: "alternate" (the other player), "winner" (of the hand; after a tie
            the same player), or "same".
        stock_floor: A plain discard with this many cards left in the stock ends the hand.
        wall: At the stock floor the hand is "dead" at once, or the next player may "knock" with the upcard or pass.
        draw_cap: A plain discard after this many draws ends the hand as truncated.
        swap_cap: Turns in a row that take and throw back the upcard before the hand is dead; None for no such rule.
        take_cap: Cards taken from the discard pile, the upcard offer apart, before the hand is dead; None for no such
            rule.
        knocker_melds: "auto" (the engine arranges the knocker's hand, see `gin_env.melds.arrange`) or "manual" (the
            knocker lays melds one by one, any that leave no more than the limit).
        layoffs: "best" (own melds and layoffs chosen together for the least deadwood), "ascending" (after the own
            melds, the lowest card that fits goes on the first meld that takes it, until none fits) or "manual" (the
            defender lays off card by card and may stop).
        defender_melds: "auto" (the best of what is left) or "manual" (the defender lays melds one by one and may stop).
        target: Points that win a match; None for a match of one hand, in which a tie is a draw and a hand that was not
            played to an end is dealt again.
    """

    name: str = "cardpuzzle"
    ranks: int = 13
    suits: int = 4
    hand_size: int = 10
    knock_limit: int = 10
    oklahoma: bool = False
    double_spades: Literal["no", "deadwood", "all"] = "no"
    gin_bonus: int = 25
    big_gin_bonus: int | None = 31
    undercut_bonus: int = 25
    tie: Literal["undercut", "nothing"] = "undercut"
    rediscard: bool = False
    first_dealer: Literal["random", 0, 1] = "random"
    next_dealer: Literal["alternate", "winner", "same"] = "alternate"
    stock_floor: int = 2
    wall: Literal["dead", "knock"] = "dead"
    draw_cap: int = 200
    swap_cap: int | None = None
    take_cap: int | None = None
    knocker_melds: Literal["auto", "manual"] = "auto"
    layoffs: Literal["best", "ascending", "manual"] = "best"
    defender_melds: Literal["auto", "manual"] = "auto"
    target: int | None = 100

    def __post_init__(self) -> None:
        """Checks every field.

        Raises:
            TypeError: If a field has the wrong type.
            ValueError: If a value, or a combination of values, cannot be played.
        """
        check_fields(self, RANGES)
        if self.double_spades != "no" and not self.oklahoma:
            raise ValueError(f"rules: double_spades={self.double_spades!r} needs oklahoma=True, whose upcard it reads")
        if self.layoffs == "best" and self.defender_melds == "manual":
            raise ValueError(
                "rules: layoffs='best' chooses the defender's melds too; with defender_melds='manual' expected "
                "layoffs='manual' or 'ascending'"
            )
        if self.swap_cap is not None and not self.rediscard:
            raise ValueError(f"rules: swap_cap={self.swap_cap} counts what rediscard=False forbids; expected None")
        stock = self.ranks * self.suits - 2 * self.hand_size - 1
        if stock <= self.stock_floor:
            raise ValueError(
                f"rules: {self.ranks} ranks of {self.suits} suits leave {stock} cards in the stock after dealing "
                f"{self.hand_size} each; more than stock_floor={self.stock_floor} are needed"
            )

    @property
    def deck_size(self) -> int:
        """Cards in the pack."""
        return self.ranks * self.suits

    @property
    def pack(self) -> int:
        """The mask of all cards in play."""
        suit = (1 << self.ranks) - 1
        return sum(suit << NUM_RANKS * number for number in range(self.suits))

    @property
    def manual(self) -> bool:
        """Whether players lay melds or lay off by actions of their own."""
        return "manual" in (self.knocker_melds, self.layoffs, self.defender_melds)

    @property
    def num_actions(self) -> int:
        """Size of the action table: 108, or 449 where the rules are manual (see `gin_env.actions`)."""
        return NUM_MANUAL_ACTIONS if self.manual else NUM_ACTIONS

    @property
    def text(self) -> str:
        """A preset and what differs from it, such as ``plus20:oklahoma=true,target=50``; `as_rules` reads it."""
        return rules_text(self, PRESETS.get(self.name, PRESETS[DEFAULT_PRESET]))

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Rules":
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
        return fingerprint(self.to_dict())

    def record(self) -> np.ndarray:
        """Returns the rules as kernels read them: a (1,) array of `RULES_DTYPE`."""
        return to_row(self, RULES_DTYPE, CODES)

    @classmethod
    def from_row(cls, row: np.void) -> "Rules":
        """Returns the rules that a row of `RULES_DTYPE` holds, as in a table.

        A row knows no name: they get that of the preset from which the fewest fields differ.

        Raises:
            ValueError: If the row holds no rules that can be played.
        """
        return _from_numbers(row.item())


# How kernels read the words.
NO, YES = 0, 1
CODES = {
    "no": 0, "deadwood": 1, "all": 2,
    "nothing": 0, "undercut": 1,
    "random": -1,
    "same": 0, "alternate": 1, "winner": 2,
    "dead": 0, "knock": 1,
    "auto": 0, "best": 0, "manual": 1, "ascending": 2,
}  # fmt: skip

# Small numbers, so that the rules of a table fit into one line of the processor's cache.
RULES_DTYPE = np.dtype(
    [("pack", np.uint64), ("target", np.int32), ("deck_size", np.int16), ("manual", np.int16)]
    + [(field.name, np.int16) for field in dataclasses.fields(Rules) if field.name not in ("name", "target")]
)

DEFAULT_PRESET = "cardpuzzle"
PRESETS = {
    rules.name: rules
    for rules in (
        Rules(name="cardpuzzle"),
        Rules(name="luciano", big_gin_bonus=None, next_dealer="winner"),
        Rules(name="plus20", big_gin_bonus=None, undercut_bonus=20, tie="nothing", rediscard=True),
        Rules(name="rummyplus", tie="nothing"),
        # What other libraries play, for comparisons.
        Rules(
            name="openspiel",
            big_gin_bonus=None,
            tie="nothing",
            rediscard=True,
            first_dealer=1,
            next_dealer="same",
            wall="knock",
            swap_cap=2,
            take_cap=50,
            knocker_melds="manual",
            layoffs="manual",
            defender_melds="manual",
        ),
        Rules(
            name="eaai",
            big_gin_bonus=None,
            knocker_melds="manual",
            layoffs="ascending",
            defender_melds="manual",
        ),
    )
}


def preset(name: str, /, **fields: Any) -> Rules:
    """Returns a named preset, with some fields changed.

    Raises:
        ValueError: If no preset has this name, or a change cannot be played.
    """
    # A file of rules may hold anything here, also what no dictionary can look up.
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"{name!r} is no preset; expected one of {', '.join(PRESETS)}")
    check_names(Rules, fields)
    try:
        return dataclasses.replace(PRESETS[name], **fields)
    except TypeError as error:
        raise ValueError(str(error)) from None


def automatic(rules: Rules) -> Rules:
    """Returns the rules with melds and layoffs left to the engine: the best of each."""
    return dataclasses.replace(rules, knocker_melds="auto", layoffs="best", defender_melds="auto")


def as_rules(rules: "Rules | str") -> Rules:
    """Returns rules given as an object or as text.

    Args:
        rules: Rules; or the name of a preset, alone or with changes (``"luciano"``,
            ``"plus20:target=50,tie=undercut"``); or the path of a TOML file (`load_rules`), which ends in ``.toml``.

    Raises:
        ValueError: If the text names no rules, or they cannot be played.
        OSError: If the file cannot be read.
    """
    if isinstance(rules, Rules):
        return rules
    if not isinstance(rules, str):
        raise ValueError(f"rules are {rules!r}; expected a Rules object, a preset's name or a .toml file")
    if rules.endswith(".toml"):
        return load_rules(rules)
    name, fields = read_text(rules, PRESETS)
    return preset(name, **fields)


def load_rules(path: str | Path) -> Rules:
    """Reads rules from a TOML file: fields of `Rules`, and optionally ``preset``, whose other fields they keep.

    TOML has no None; a field that may be None is left out by the text ``"none"``. The name is the file's unless given.

    Raises:
        ValueError: If the file is not TOML or its rules cannot be played.
        OSError: If it cannot be read.
    """
    rules: Rules = load_toml(path, DEFAULT_PRESET, preset)
    return rules


@lru_cache(maxsize=1024)  # it takes long, and every refusal and every record asks it of the rules of one table
def _from_numbers(numbers: tuple[int, ...]) -> Rules:
    """Returns the rules of a row of `RULES_DTYPE`, given as numbers."""
    row = dict(zip(RULES_DTYPE.names or (), numbers, strict=True))
    rules = Rules.from_dict(from_numbers(Rules, row, CODES))
    # The shortest text; of two presets as near, the first.
    nearest = min(PRESETS, key=lambda name: len(changes(rules, PRESETS[name])))
    return dataclasses.replace(rules, name=nearest)
