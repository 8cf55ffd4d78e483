"""Rules of Rummy40: what the page says, what is refused and in which words, as text, files and rows."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from gin_env.rummy40 import PRESETS, Rummy40Rules, as_rules, load_rules, preset
from gin_env.rummy40.rules import CODES, RULES_DTYPE
from tests.rummy40_hands import any_rummy40_rules

# What the rule page says, for two players and for four.
PAGE: dict[str, tuple[Any, Any]] = {
    "seats": (2, 4),
    "num_packs": (1, 2),
    "num_jokers": (2, 4),
    "deck_size": (54, 108),
    "ranks": (13, 13),
    "suits": (4, 4),
    "hand_size": (10, 10),
    "opening_penalty": (20, 20),
    "adds_to": ("own", "any"),
    "stealing": ("any", "any"),
    "pile": ("anyone", "anyone"),
    "rediscard": (False, False),
    "joker_points": (25, 25),
    "first_dealer": ("random", "random"),
    "wrong_opening": ("masked", "masked"),
}


def test_the_page() -> None:
    two, four = preset("rummy40"), preset("rummy40", seats=4)
    for field, (with_two, with_four) in PAGE.items():
        assert (getattr(two, field), getattr(four, field)) == (with_two, with_four), field
    for seats in (2, 4):
        for opening in (0, 40, 50):
            for limit in (None, 100, 200, 500):
                rules = preset("rummy40", seats=seats, opening=opening, limit=limit)
                assert (rules.opening, rules.limit) == (opening, limit)


def test_what_says_the_same_is_the_same() -> None:
    two = preset("rummy40")
    assert Rummy40Rules(packs=1, jokers=2, adding="own") == two
    assert Rummy40Rules(seats=4, packs=2, jokers=4, adding="any") == preset("rummy40", seats=4)
    assert Rummy40Rules(packs=2, jokers=4).jokers is None  # two a pack
    assert dataclasses.replace(two, seats=4) == preset("rummy40", seats=4)
    assert two.fingerprint == Rummy40Rules(name="mine", packs=1).fingerprint


BAD: list[tuple[dict[str, Any], str]] = [
    ({"seats": 3}, r"rules: seats is 3; expected one of \(2, 4\)"),
    ({"seats": True}, "rules: seats is True; expected one of"),
    ({"adding": "all"}, r"rules: adding is 'all'; expected one of \('own', 'any'\)"),
    ({"stealing": None}, "rules: stealing is None; expected one of"),
    ({"packs": 3}, "rules: packs is 3; expected 1 to 2"),
    ({"jokers": 5}, "rules: jokers is 5; expected 0 to 4"),
    ({"ranks": 14}, "rules: ranks is 14; expected 3 to 13"),
    ({"hand_size": 11}, "rules: hand_size is 11; expected 2 to 10"),
    ({"opening": 101}, "rules: opening is 101; expected 0 to 100"),
    ({"draw_cap": 201}, "rules: draw_cap is 201; expected 1 to 200"),
    ({"limit": 0}, "rules: limit is 0; expected 1 to 1000000"),
    ({"opening": 40.0}, "rules: opening is 40.0; expected int"),
    ({"packs": "two"}, "rules: packs is 'two'; expected int or None"),
    ({"rediscard": 1}, "rules: rediscard is 1; expected bool"),
    ({"first_dealer": 2}, "rules: first_dealer is 2; 2 players have the seats 0 to 1"),
    ({"opening": 0, "wrong_opening": "penalty"}, "wrong_opening='penalty' needs an opening minimum"),
    ({"hand_size": 2}, "a hand of 2 may be all jokers, of which there are 2"),
    ({"ranks": 4}, "18 cards leave no stock after dealing 10 to each of 2 players and one face up"),
]


@pytest.mark.parametrize(("fields", "message"), BAD, ids=[str(fields) for fields, _ in BAD])
def test_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Rummy40Rules(**fields)
    with pytest.raises(ValueError, match=message):
        Rummy40Rules.from_dict(fields)
    with pytest.raises(ValueError, match=message):
        preset("rummy40", **fields)


def test_unknown() -> None:
    with pytest.raises(ValueError, match="rules: unknown field 'knock_limit'; expected some of adding, draw_cap"):
        preset("rummy40", knock_limit=3)
    with pytest.raises(ValueError, match=r"'gin' is no preset; expected one of rummy40$"):
        preset("gin")
    with pytest.raises(ValueError, match="'cardpuzzle' is no preset; expected one of rummy40, or a .toml file"):
        as_rules("cardpuzzle")
    with pytest.raises(ValueError, match="rules are 40; expected a Rummy40Rules object"):
        as_rules(40)  # type: ignore[arg-type]


def test_text() -> None:
    rules = as_rules("rummy40:seats=4, opening=0 ,limit=none,adding=own")
    assert rules == Rummy40Rules(seats=4, opening=0, limit=None, adding="own")
    assert rules.text == "rummy40:seats=4,opening=0,adding=own,limit=none"
    assert as_rules(rules) is rules
    assert preset("rummy40").text == "rummy40"
    for text, message in (
        ("rummy40:seats", "'seats' is not of the form field=value"),
        ("rummy40:seats=2,seats=4", "seats is given twice"),
        ("rummy40:seats=two", "seats is 'two'; expected one of"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            as_rules(text)


@settings(max_examples=60, deadline=None)
@given(any_rummy40_rules())
def test_every_form_gives_the_rules_back(rules: Rummy40Rules) -> None:
    renamed = dataclasses.replace(rules, name="rummy40")
    assert as_rules(rules.text) == renamed
    assert Rummy40Rules.from_dict(rules.to_dict()) == rules
    row = rules.record()
    assert row.shape == (1,)
    assert row.dtype == RULES_DTYPE
    assert Rummy40Rules.from_row(row[0]) == renamed
    assert (row["packs"][0], row["jokers"][0]) == (rules.num_packs, rules.num_jokers)
    assert row["adding"][0] == CODES[rules.adds_to]
    assert row["limit"][0] == (rules.limit or -1)
    assert len(rules.deck) == rules.deck_size
    assert rules.deck.count(52) == rules.num_jokers
    assert rules.num_actions == (1311 if rules.num_packs == 1 else 1987)


def test_fingerprints_differ_with_every_field() -> None:
    changes: dict[str, Any] = {
        "seats": 4, "packs": 2, "jokers": 1, "ranks": 12, "suits": 3, "hand_size": 9, "opening": 50,
        "wrong_opening": "penalty", "opening_penalty": 10, "adding": "any", "stealing": "own", "pile": "opened",
        "rediscard": True, "joker_points": 50, "first_dealer": 0, "draw_cap": 100, "limit": 200,
    }  # fmt: skip
    assert {*changes, "name"} == {field.name for field in dataclasses.fields(Rummy40Rules)}
    prints = {preset("rummy40", **{field: value}).fingerprint for field, value in changes.items()}
    assert len(prints | {preset("rummy40").fingerprint}) == len(changes) + 1


def test_a_row_that_is_no_rules() -> None:
    row = preset("rummy40").record()
    row["stealing"] = 9
    with pytest.raises(ValueError, match="stealing is coded as 9, which stands for none of"):
        Rummy40Rules.from_row(row[0])


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "house.toml"
    path.write_text('seats = 4\nopening = 50\nlimit = "none"\n')
    assert load_rules(path) == as_rules(str(path)) == Rummy40Rules(name="house", seats=4, opening=50, limit=None)
    path.write_text("seats = 5\n")
    with pytest.raises(ValueError, match=r"house.toml: rules: seats is 5"):
        load_rules(path)


def test_presets_carry_their_names() -> None:
    assert {name: rules.name for name, rules in PRESETS.items()} == {name: name for name in PRESETS}
