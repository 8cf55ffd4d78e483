"""The rules of a game, as data: every number and choice is a field of `Rules`.

A named preset is a `Rules` object; a house variant is one with other fields:

    >>> from gin_env import Rules, preset
    >>> preset("cardpuzzle").gin_bonus
    25
    >>> Rules(name="short", knock_limit=7, target=50).knock_limit
    7
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from gin_env.cards import NUM_RANKS, NUM_SUITS

MAX_HAND_SIZE = 10
MAX_DRAW_CAP = 200


def _check_type(field: str, value: Any, kind: Any) -> None:
    if get_origin(kind) is Literal:
        # By type as well: True would otherwise pass for the seat 1.
        if not any(type(value) is type(choice) and value == choice for choice in get_args(kind)):
            raise ValueError(f"rules: {field} is {value!r}; expected one of {get_args(kind)}")
        return
    kinds = get_args(kind) or (kind,)
    if type(value) not in kinds:
        wanted = " or ".join("None" if k is type(None) else k.__name__ for k in kinds)
        raise TypeError(f"rules: {field} is {value!r}; expected {wanted}")


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
        take_cap: Draws from the discard pile before the hand is dead; None for no such rule.
        knocker_melds: "auto" (the engine arranges the knocker's hand) or "manual" (the knocker declares melds).
        layoffs: "best" (own melds and layoffs together, least deadwood), "ascending" (own melds as arranged alone, then
            each card in order of its id on the first meld that takes it) or "manual" (card by card).
        target: Points that win a match.
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
    target: int = 100

    def __post_init__(self) -> None:
        """Checks every field.

        Raises:
            TypeError: If a field has the wrong type.
            ValueError: If a value, or a combination of values, cannot be played.
        """
        for field, kind in get_type_hints(type(self)).items():
            _check_type(field, getattr(self, field), kind)
        for field, low, high in (
            ("ranks", 3, NUM_RANKS),
            ("suits", 1, NUM_SUITS),
            ("hand_size", 2, MAX_HAND_SIZE),
            ("knock_limit", 0, 100),
            ("gin_bonus", 0, 1000),
            ("big_gin_bonus", 0, 1000),
            ("undercut_bonus", 0, 1000),
            ("stock_floor", 0, 10),
            ("draw_cap", 1, MAX_DRAW_CAP),
            ("swap_cap", 1, 1000),
            ("take_cap", 1, 1000),
            ("target", 1, 1_000_000),
        ):
            value = getattr(self, field)
            if value is not None and not low <= value <= high:
                raise ValueError(f"rules: {field} is {value}; expected {low} to {high}")
        if self.double_spades != "no" and not self.oklahoma:
            raise ValueError(f"rules: double_spades={self.double_spades!r} needs oklahoma=True, whose upcard it reads")
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

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Rules":
        """Returns the rules with these fields; those left out keep their defaults.

        Raises:
            ValueError: If a field is unknown or its value cannot be played.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(fields) - names)
        if unknown:
            raise ValueError(f"rules: unknown field {unknown[0]!r}; expected some of {', '.join(sorted(names))}")
        try:
            return cls(**fields)
        except TypeError as error:
            raise ValueError(str(error)) from None

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that differ whenever the game played differs."""
        fields = self.to_dict()
        del fields["name"]
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]

    def record(self) -> np.ndarray:
        """Returns the rules as kernels read them: a (1,) array of `RULES_DTYPE`."""
        row = np.zeros(1, dtype=RULES_DTYPE)
        for name in RULES_DTYPE.names or ():
            value = getattr(self, name)
            if value is None:
                value = -1
            elif isinstance(value, str):
                value = CODES[value]
            row[name] = value
        return row


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
    [("pack", np.uint64), ("target", np.int32), ("deck_size", np.int16)]
    + [(field.name, np.int16) for field in dataclasses.fields(Rules) if field.name not in ("name", "target")]
)

PRESETS = {
    rules.name: rules
    for rules in (
        Rules(name="cardpuzzle"),
        Rules(name="luciano", big_gin_bonus=None, next_dealer="winner"),
        Rules(name="plus20", big_gin_bonus=None, undercut_bonus=20, tie="nothing", rediscard=True),
        Rules(name="rummyplus", tie="nothing"),
    )
}


def preset(name: str, **changes: Any) -> Rules:
    """Returns a named preset, with some fields changed.

    Raises:
        ValueError: If no preset has this name, or a change cannot be played.
    """
    if name not in PRESETS:
        raise ValueError(f"{name!r} is no preset; expected one of {', '.join(PRESETS)}")
    try:
        return dataclasses.replace(PRESETS[name], **changes)
    except TypeError as error:
        raise ValueError(str(error)) from None


def as_rules(rules: "Rules | str") -> Rules:
    """Returns rules given as an object or as a preset's name."""
    return preset(rules) if isinstance(rules, str) else rules
