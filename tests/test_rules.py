"""Rules: what the presets say, what is refused and in which words, and the fingerprint."""

import dataclasses
import json
import re
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from gin_env import PRESETS, Rules, preset
from gin_env.rules import CODES, RULES_DTYPE, as_rules

# What the rule pages say, point by point. Each cell is for cardpuzzle, luciano, plus20 and rummyplus.
PAGES: dict[str, tuple[Any, Any, Any, Any]] = {
    "deck_size": (52, 52, 52, 52),
    "ranks": (13, 13, 13, 13),
    "suits": (4, 4, 4, 4),
    "hand_size": (10, 10, 10, 10),
    "first_dealer": ("random", "random", "random", "random"),
    "next_dealer": ("alternate", "winner", "alternate", "alternate"),
    "rediscard": (False, False, True, False),
    "knock_limit": (10, 10, 10, 10),
    "oklahoma": (False, False, False, False),
    "double_spades": ("no", "no", "no", "no"),
    "gin_bonus": (25, 25, 25, 25),
    "big_gin_bonus": (31, None, None, 31),
    "undercut_bonus": (25, 25, 20, 25),
    "tie": ("undercut", "undercut", "nothing", "nothing"),
    "stock_floor": (2, 2, 2, 2),
    "wall": ("dead", "dead", "dead", "dead"),
    "draw_cap": (200, 200, 200, 200),
    "swap_cap": (None, None, None, None),
    "take_cap": (None, None, None, None),
    "knocker_melds": ("auto", "auto", "auto", "auto"),
    "layoffs": ("best", "best", "best", "best"),
    "target": (100, 100, 100, 100),
}

HINTS = get_type_hints(Rules)
FIELDS = [field.name for field in dataclasses.fields(Rules)]

# The numbers that may be chosen, from and to.
RANGES = {
    "ranks": (3, 13),
    "suits": (1, 4),
    "hand_size": (2, 10),
    "knock_limit": (0, 100),
    "gin_bonus": (0, 1000),
    "big_gin_bonus": (0, 1000),
    "undercut_bonus": (0, 1000),
    "stock_floor": (0, 10),
    "draw_cap": (1, 200),
    "swap_cap": (1, 1000),
    "take_cap": (1, 1000),
    "target": (1, 1_000_000),
}
WORDS = [name for name in FIELDS if get_origin(HINTS[name]) is not None and "Literal" in str(HINTS[name])]

# For each field a value that no preset has.
OTHER: dict[str, Any] = {
    "ranks": 12,
    "suits": 3,
    "hand_size": 7,
    "knock_limit": 7,
    "oklahoma": True,
    "double_spades": "all",
    "gin_bonus": 20,
    "big_gin_bonus": 50,
    "undercut_bonus": 10,
    "rediscard": True,
    "tie": "nothing",
    "first_dealer": 1,
    "next_dealer": "same",
    "stock_floor": 0,
    "wall": "knock",
    "draw_cap": 100,
    "swap_cap": 3,
    "take_cap": 50,
    "knocker_melds": "manual",
    "layoffs": "ascending",
    "target": 50,
}


@pytest.mark.parametrize("point", PAGES)
def test_presets_are_what_their_pages_say(point: str) -> None:
    for name, value in zip(("cardpuzzle", "luciano", "plus20", "rummyplus"), PAGES[point], strict=True):
        assert getattr(preset(name), point) == value, name


def test_presets() -> None:
    assert list(PRESETS) == ["cardpuzzle", "luciano", "plus20", "rummyplus"]
    assert set(PAGES) == {*FIELDS, "deck_size"} - {"name"}
    assert all(name == rules.name for name, rules in PRESETS.items())
    assert Rules() == preset("cardpuzzle")
    assert preset("cardpuzzle", target=50) == Rules(target=50)
    assert len({rules.fingerprint for rules in PRESETS.values()}) == 4


def test_as_rules() -> None:
    rules = preset("luciano", oklahoma=True)
    assert as_rules(rules) is rules
    assert as_rules("luciano") == PRESETS["luciano"]
    with pytest.raises(ValueError, match="'poker' is no preset; expected one of cardpuzzle, luciano, plus20, "):
        as_rules("poker")


# ------------------------------------------------------------------------------------------------------- validation


def test_every_field_is_tested_here() -> None:
    assert {*RANGES, *WORDS, "oklahoma", "rediscard", "name"} == set(FIELDS)
    assert set(OTHER) == set(FIELDS) - {"name"}


@pytest.mark.parametrize("field", RANGES)
def test_numbers(field: str) -> None:
    low, high = RANGES[field]
    # Limits that a small pack does not reach.
    room = {"ranks": 13, "suits": 4, "hand_size": 2, "stock_floor": 0}
    for value in (low, high):
        assert getattr(Rules(**{**room, field: value}), field) == value
    for value in (low - 1, high + 1, -5):
        with pytest.raises(ValueError, match=f"^rules: {field} is {value}; expected {low} to {high}$"):
            Rules(**{field: value})
    for value in (37.5, "10", True, [10], 10.0):
        with pytest.raises(TypeError, match=rf"^rules: {field} is {re.escape(repr(value))}; expected int"):
            Rules(**{field: value})
    if field in ("big_gin_bonus", "swap_cap", "take_cap"):
        with pytest.raises(TypeError, match="expected int or None"):
            Rules(**{field: "no"})
        assert getattr(Rules(**{field: None}), field) is None
    else:
        with pytest.raises(TypeError, match=f"^rules: {field} is None; expected int$"):
            Rules(**{field: None})


@pytest.mark.parametrize("field", WORDS)
def test_words(field: str) -> None:
    choices = get_args(HINTS[field])
    for choice in choices:
        rules = Rules(oklahoma=True, **{field: choice})
        assert getattr(rules, field) == choice
    for value in ("sometimes", None, 2, True, False, 1.0, choices):
        with pytest.raises(ValueError, match=re.escape(f"rules: {field} is {value!r}; expected one of {choices}")):
            Rules(**{field: value})


@pytest.mark.parametrize("field", ["oklahoma", "rediscard"])
def test_switches(field: str) -> None:
    for value in (1, 0, None, "yes"):
        with pytest.raises(TypeError, match=f"^rules: {field} is {value!r}; expected bool$"):
            Rules(**{field: value})


def test_name() -> None:
    with pytest.raises(TypeError, match="rules: name is 7; expected str"):
        Rules(name=7)


def test_combinations() -> None:
    for word in ("deadwood", "all"):
        with pytest.raises(ValueError, match=f"double_spades='{word}' needs oklahoma=True"):
            Rules(double_spades=word)
    with pytest.raises(ValueError, match="3 ranks of 4 suits leave -9 cards in the stock after dealing 10 each"):
        Rules(ranks=3)
    # Ten dealt, an upcard, and three in the stock, where one more than the floor is needed.
    assert Rules(ranks=7, suits=2, hand_size=5, stock_floor=2).deck_size == 14
    with pytest.raises(ValueError, match="leave 3 cards in the stock .* more than stock_floor=3 are needed"):
        Rules(ranks=7, suits=2, hand_size=5, stock_floor=3)


def test_changed_presets_are_checked() -> None:
    with pytest.raises(ValueError, match="rules: target is 0; expected 1 to"):
        preset("luciano", target=0)
    with pytest.raises(ValueError, match="rules: target is 37.5; expected int"):
        preset("luciano", target=37.5)
    with pytest.raises(ValueError, match="colour"):
        preset("luciano", colour="red")


def test_rules_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        preset("luciano").target = 50
    assert hash(preset("luciano")) == hash(preset("luciano"))


# --------------------------------------------------------------------------------------------------- as plain values


HOUSE = Rules(**{**OTHER, "name": "house"})


@pytest.mark.parametrize("rules", [*PRESETS.values(), HOUSE], ids=lambda rules: rules.name)
def test_plain_values_round_trip(rules: Rules) -> None:
    fields = rules.to_dict()
    assert list(fields) == FIELDS
    assert Rules.from_dict(fields) == rules
    assert Rules.from_dict(json.loads(json.dumps(fields))) == rules


def test_from_some_values() -> None:
    assert Rules.from_dict({}) == Rules()
    assert Rules.from_dict({"target": 50}) == Rules(target=50)
    with pytest.raises(ValueError, match=r"^rules: unknown field 'colour'; expected some of big_gin_bonus, "):
        Rules.from_dict({"target": 50, "colour": "red"})
    with pytest.raises(ValueError, match="rules: target is 0; expected 1 to"):
        Rules.from_dict({"target": 0})


@pytest.mark.parametrize("field", OTHER)
def test_fingerprint_changes_with_every_field(field: str) -> None:
    rules = Rules(oklahoma=True) if field == "double_spades" else Rules()
    changed = dataclasses.replace(rules, **{field: OTHER[field]})
    assert changed.fingerprint != rules.fingerprint
    assert re.fullmatch("[0-9a-f]{16}", changed.fingerprint)


def test_fingerprint_ignores_the_name() -> None:
    assert Rules(name="anything").fingerprint == Rules().fingerprint
    assert Rules.from_dict(Rules().to_dict()).fingerprint == Rules().fingerprint


def test_fingerprints_stay() -> None:
    """They are written into records and exported players, so that a change of these lines needs a reason."""
    assert {name: rules.fingerprint for name, rules in PRESETS.items()} == {
        "cardpuzzle": "d6dbc707cd4b3fc9",
        "luciano": "5981c61adbd4621c",
        "plus20": "dff377cf8bb90dca",
        "rummyplus": "b5bef579590c2034",
    }


def test_record_for_kernels() -> None:
    rules = HOUSE
    row = rules.record()
    assert row.shape == (1,)
    assert row.dtype == RULES_DTYPE
    assert set(RULES_DTYPE.names or ()) == {*FIELDS, "deck_size", "pack"} - {"name"}
    for field in FIELDS:
        if field in WORDS:
            value = getattr(rules, field)
            assert row[field][0] == CODES.get(value, value)
        elif field != "name":
            assert row[field][0] == getattr(rules, field)
    assert row["deck_size"][0] == rules.deck_size == 36
    assert row["pack"][0] == rules.pack
    assert rules.pack.bit_count() == 36
    assert Rules().pack == (1 << 52) - 1
    # What does not exist reads as -1.
    nothing = Rules(big_gin_bonus=None).record()
    assert [int(nothing[field][0]) for field in ("big_gin_bonus", "swap_cap", "take_cap")] == [-1, -1, -1]


def test_words_have_codes_of_their_own() -> None:
    """Two words of one field never read alike."""
    for field in WORDS:
        choices = get_args(HINTS[field])
        assert len({CODES.get(choice, choice) for choice in choices}) == len(choices), field
