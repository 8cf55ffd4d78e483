"""Rules: what the presets say, what is refused and in which words, as text and files, and the fingerprint."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings

from gin_env import PRESETS, Rules, preset
from gin_env.rules import CODES, RULES_DTYPE, as_rules, automatic, load_rules
from tests.hands import any_rules

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
    "defender_melds": ("auto", "auto", "auto", "auto"),
    "target": (100, 100, 100, 100),
}

# What the two libraries play that the other presets are for, in the same fields; the rest is as in cardpuzzle.
LIBRARIES: dict[str, dict[str, Any]] = {
    "openspiel": {
        "big_gin_bonus": None,
        "tie": "nothing",
        "rediscard": True,
        "first_dealer": 1,
        "next_dealer": "same",
        "wall": "knock",
        "swap_cap": 2,
        "take_cap": 50,
        "knocker_melds": "manual",
        "layoffs": "manual",
        "defender_melds": "manual",
    },
    "eaai": {
        "big_gin_bonus": None,
        "knocker_melds": "manual",
        "layoffs": "ascending",
        "defender_melds": "manual",
    },
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
    "defender_melds": "manual",
    "target": 50,
}

# What a value needs of the other fields.
NEEDS: dict[tuple[str, Any], dict[str, Any]] = {
    ("double_spades", "deadwood"): {"oklahoma": True},
    ("double_spades", "all"): {"oklahoma": True},
    ("defender_melds", "manual"): {"layoffs": "manual"},
}


def needs(field: str, value: Any) -> dict[str, Any]:
    """Returns the fields without which a value cannot be played."""
    if field == "swap_cap" and value is not None:
        return {"rediscard": True}
    return NEEDS.get((field, value), {})


# What may be left out altogether.
NONE = ("big_gin_bonus", "swap_cap", "take_cap", "target")


@pytest.mark.parametrize("point", PAGES)
def test_presets_are_what_their_pages_say(point: str) -> None:
    for name, value in zip(("cardpuzzle", "luciano", "plus20", "rummyplus"), PAGES[point], strict=True):
        assert getattr(preset(name), point) == value, name


@pytest.mark.parametrize("name", LIBRARIES)
def test_presets_for_comparisons(name: str) -> None:
    assert preset(name) == preset("cardpuzzle", name=name, **LIBRARIES[name])


def test_presets() -> None:
    assert list(PRESETS) == ["cardpuzzle", "luciano", "plus20", "rummyplus", "openspiel", "eaai"]
    assert set(PAGES) == {*FIELDS, "deck_size"} - {"name"}
    assert all(name == rules.name for name, rules in PRESETS.items())
    assert Rules() == preset("cardpuzzle")
    assert preset("cardpuzzle", target=50) == Rules(target=50)
    assert preset("cardpuzzle", name="mine") == Rules(name="mine")
    assert len({rules.fingerprint for rules in PRESETS.values()}) == len(PRESETS)
    with pytest.raises(ValueError, match="'poker' is no preset; expected one of cardpuzzle, luciano, plus20, "):
        preset("poker")


def test_manual_rules_have_more_actions() -> None:
    for name in FIELDS:
        for value in get_args(HINTS[name]) if name in WORDS else ():
            rules = Rules(**needs(name, value) | {name: value})
            manual = "manual" in (rules.knocker_melds, rules.layoffs, rules.defender_melds)
            assert rules.manual is manual
            assert rules.num_actions == (449 if manual else 108)
    assert [name for name, rules in PRESETS.items() if rules.manual] == ["openspiel", "eaai"]


def test_automatic() -> None:
    """The same game, played by who leaves the melds to the engine."""
    for rules in (*PRESETS.values(), HOUSE):
        left = automatic(rules)
        assert not left.manual
        assert (left.knocker_melds, left.layoffs, left.defender_melds) == ("auto", "best", "auto")
        assert (
            dataclasses.replace(
                left, knocker_melds=rules.knocker_melds, layoffs=rules.layoffs, defender_melds=rules.defender_melds
            )
            == rules
        )
    assert automatic(PRESETS["luciano"]) == PRESETS["luciano"]


# ---------------------------------------------------------------------------------------------------- text and files


def test_as_rules() -> None:
    rules = preset("luciano", oklahoma=True)
    assert as_rules(rules) is rules
    assert as_rules("luciano") == as_rules("luciano:") == PRESETS["luciano"]
    assert as_rules("luciano:oklahoma=true") == rules
    assert as_rules("luciano: oklahoma = True , target=50,") == preset("luciano", oklahoma=True, target=50)
    changed = preset("plus20", big_gin_bonus=31, tie="undercut", first_dealer=0, target=None, name="mine")
    assert as_rules("plus20:big_gin_bonus=31,tie=undercut,first_dealer=0,target=none,name=mine") == changed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("poker", f"'poker' is no preset; expected one of {', '.join(PRESETS)}, or a .toml file"),
        ("", "'' is no preset"),
        (":target=50", "'' is no preset"),
        ("plus20:target", "rules 'plus20:target': 'target' is not of the form field=value"),
        ("plus20:target=50,x", "rules 'plus20:target=50,x': 'x' is not of the form field=value"),
        ("plus20:colour=red", "rules: unknown field 'colour'; expected some of big_gin_bonus, defender_melds, "),
        ("plus20:target=50, target=60", "rules 'plus20:target=50, target=60': target is given twice"),
        ("plus20:=5", "rules: unknown field ''; expected some of"),
        ("plus20:target=soon", "rules: target is 'soon'; expected int or None"),
        ("plus20:target=0", "rules: target is 0; expected 1 to 1000000"),
        ("plus20:name=7", "rules: name is 7; expected str"),
        ("plus20:rediscard=1", "rules: rediscard is 1; expected bool"),
        ("plus20:tie=none", "rules: tie is None; expected one of ('undercut', 'nothing')"),
        ("plus20:defender_melds=manual", "rules: layoffs='best' chooses the defender's melds too"),
        (None, "rules are None; expected a Rules object, a preset's name or a .toml file"),
        (7, "rules are 7; expected a Rules object, a preset's name or a .toml file"),
    ],
)
def test_text_that_is_no_rules(text: Any, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        as_rules(text)


def test_text() -> None:
    assert [rules.text for rules in PRESETS.values()] == list(PRESETS)
    assert preset("plus20", oklahoma=True, target=50).text == "plus20:oklahoma=true,target=50"
    assert preset("luciano", target=None, first_dealer=1).text == "luciano:first_dealer=1,target=none"
    assert Rules(name="short", knock_limit=7).text == "cardpuzzle:knock_limit=7"


@settings(max_examples=200, deadline=None)
@given(any_rules())
def test_text_and_plain_values_round_trip(rules: Rules) -> None:
    """The name apart, which the text leaves out where it is no preset's."""
    read = as_rules(rules.text)
    assert dataclasses.replace(read, name=rules.name) == rules
    assert read.fingerprint == rules.fingerprint
    assert as_rules(read.text) == read
    named = dataclasses.replace(rules, name="eaai")
    assert as_rules(named.text) == named
    assert Rules.from_dict(json.loads(json.dumps(rules.to_dict()))) == rules


def test_rules_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "house.toml"
    path.write_text('# Ours.\npreset = "luciano"\noklahoma = true\ntarget = 50\n', encoding="utf-8")
    assert load_rules(path) == preset("luciano", name="house", oklahoma=True, target=50)
    assert load_rules(str(path)) == as_rules(str(path)) == load_rules(path)
    # Without a preset the fields of cardpuzzle, and a name of its own.
    path.write_text('name = "ours"\nbig_gin_bonus = "none"\nknock_limit = 7\n', encoding="utf-8")
    assert load_rules(path) == Rules(name="ours", big_gin_bonus=None, knock_limit=7)
    path.write_text("", encoding="utf-8")
    assert load_rules(path) == Rules(name="house")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"target =", "Invalid value"),
        (b"\xff", "codec can't decode"),
        (b'preset = "poker"', "'poker' is no preset; expected one of"),
        (b"preset = 7", "7 is no preset"),
        (b'preset = ["luciano"]', "['luciano'] is no preset"),
        (b'colour = "red"', "rules: unknown field 'colour'; expected some of"),
        (b"[rules]\ntarget = 50", "rules: unknown field 'rules'"),
        (b'target = "soon"', "rules: target is 'soon'; expected int or None"),
        (b"target = 0", "rules: target is 0; expected 1 to 1000000"),
        (b"target = 50.0", "rules: target is 50.0; expected int or None"),
        (b"name = 7", "rules: name is 7; expected str"),
        (b'defender_melds = "manual"', "rules: layoffs='best' chooses the defender's melds too"),
    ],
)
def test_file_that_is_no_rules(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "house.toml"
    path.write_bytes(content)
    for read in (load_rules, as_rules):
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*{re.escape(message)}"):
            read(str(path))


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        as_rules(str(tmp_path / "house.toml"))


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
        assert getattr(Rules(**{**room, **needs(field, value), field: value}), field) == value
    for value in (low - 1, high + 1, -5):
        with pytest.raises(ValueError, match=f"^rules: {field} is {value}; expected {low} to {high}$"):
            Rules(**{field: value})
    kind = "int or None" if field in NONE else "int"
    for value in (37.5, "10", True, [10], 10.0):
        with pytest.raises(TypeError, match=rf"^rules: {field} is {re.escape(repr(value))}; expected {kind}$"):
            Rules(**{field: value})
    if field in NONE:
        assert getattr(Rules(**{field: None}), field) is None
    else:
        with pytest.raises(TypeError, match=f"^rules: {field} is None; expected int$"):
            Rules(**{field: None})


@pytest.mark.parametrize("field", WORDS)
def test_words(field: str) -> None:
    choices = get_args(HINTS[field])
    for choice in choices:
        rules = Rules(**needs(field, choice) | {field: choice})
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
        with pytest.raises(ValueError, match=f"double_spades='{word}' needs oklahoma=True, whose upcard it reads$"):
            Rules(double_spades=word)
    with pytest.raises(
        ValueError,
        match="^rules: layoffs='best' chooses the defender's melds too; with defender_melds='manual' expected "
        "layoffs='manual' or 'ascending'$",
    ):
        Rules(defender_melds="manual")
    for layoffs in ("manual", "ascending"):
        assert Rules(defender_melds="manual", layoffs=layoffs).manual
    with pytest.raises(ValueError, match="^rules: swap_cap=3 counts what rediscard=False forbids; expected None$"):
        Rules(swap_cap=3)
    assert Rules(swap_cap=3, rediscard=True).swap_cap == 3
    with pytest.raises(ValueError, match="3 ranks of 4 suits leave -9 cards in the stock after dealing 10 each"):
        Rules(ranks=3)
    # Ten dealt, an upcard, and three in the stock, where one more than the floor is needed.
    assert Rules(ranks=7, suits=2, hand_size=5, stock_floor=2).deck_size == 14
    with pytest.raises(ValueError, match="leave 3 cards in the stock .* more than stock_floor=3 are needed"):
        Rules(ranks=7, suits=2, hand_size=5, stock_floor=3)


def test_changed_presets_are_checked() -> None:
    with pytest.raises(ValueError, match="rules: target is 0; expected 1 to"):
        preset("luciano", target=0)
    with pytest.raises(ValueError, match="rules: target is 37.5; expected int or None"):
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
    rules = Rules(**needs(field, OTHER[field]))
    changed = dataclasses.replace(rules, **{field: OTHER[field]})
    assert changed.fingerprint != rules.fingerprint
    assert re.fullmatch("[0-9a-f]{16}", changed.fingerprint)


def test_fingerprint_ignores_the_name() -> None:
    assert Rules(name="anything").fingerprint == Rules().fingerprint
    assert Rules.from_dict(Rules().to_dict()).fingerprint == Rules().fingerprint


def test_fingerprints_stay() -> None:
    """They are written into records and exported players, so that a change of these lines needs a reason."""
    assert {name: rules.fingerprint for name, rules in PRESETS.items()} == {
        "cardpuzzle": "57eda3ac576e124c",
        "luciano": "87d12410ebde9fb6",
        "plus20": "7521bd352b370bfa",
        "rummyplus": "2ed4059fb74ff72b",
        "openspiel": "3e264babf357ba58",
        "eaai": "57ef2f12bf8e15b8",
    }


def test_record_for_kernels() -> None:
    rules = HOUSE
    row = rules.record()
    assert row.shape == (1,)
    assert row.dtype == RULES_DTYPE
    assert set(RULES_DTYPE.names or ()) == {*FIELDS, "deck_size", "pack", "manual"} - {"name"}
    for field in FIELDS:
        if field in WORDS:
            value = getattr(rules, field)
            assert row[field][0] == CODES.get(value, value)
        elif field != "name":
            assert row[field][0] == getattr(rules, field)
    assert row["deck_size"][0] == rules.deck_size == 36
    assert row["pack"][0] == rules.pack
    assert row["manual"][0] == 1
    assert Rules().record()["manual"][0] == 0
    assert rules.pack.bit_count() == 36
    assert Rules().pack == (1 << 52) - 1
    # What does not exist reads as -1.
    nothing = Rules(**dict.fromkeys(NONE)).record()
    assert [int(nothing[field][0]) for field in NONE] == [-1, -1, -1, -1]
    # Every value that may be chosen fits.
    largest = Rules(**{name: high for name, (_, high) in RANGES.items()}, rediscard=True).record()
    assert [int(largest[name][0]) for name in RANGES] == [high for _, high in RANGES.values()]


def test_words_have_codes_of_their_own() -> None:
    """Two words of one field never read alike."""
    for field in WORDS:
        choices = get_args(HINTS[field])
        assert len({CODES.get(choice, choice) for choice in choices}) == len(choices), field
