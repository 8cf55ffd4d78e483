"""Rules as sentences: whose decision each point is, and that no point and no field is forgotten."""

import dataclasses
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import gin_env
from gin_env import PRESETS, Rules, as_rules, engine, load_rules, preset
from gin_env.rulebook import _OURS, DECISIONS, SOURCES, Point, describe, to_json
from gin_env.rules import RANGES

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "experiments" / "rules" / "house.toml"
PAGES = ("cardpuzzle", "luciano", "plus20", "rummyplus")
FIELDS = [field.name for field in dataclasses.fields(Rules) if field.name != "name"]

# What no page says, and this project decided for all of them.
ALWAYS = {
    "re-discard when knocking",
    "declaring big gin",
    "defender with nothing left",
    "laying off",
    "the knocker's melds",
    "the defender's melds",
    "what is shown",
    "draw cap",
}
# And what one page or another leaves open.
SILENT: dict[str, set[str]] = {
    "cardpuzzle": set(),
    "luciano": {"first dealer", "dealer after a dead hand", "ace", "dead hand", "wall"},
    "plus20": {"first dealer", "next dealer", "dealer after a dead hand", "both pass", "tie", "dead hand", "wall"},
    "rummyplus": {
        "first dealer",
        "next dealer",
        "dealer after a dead hand",
        "ace",
        "offer in every hand",
        "re-discard",
        "tie",
        "dead hand",
        "wall",
    },
}


def points(rules: Rules | str) -> dict[str, Point]:
    found = {point.title: point for point in describe(rules)}
    assert len(found) == len(describe(rules))
    return found


def decided(rules: Rules | str, decision: str) -> set[str]:
    return {title for title, point in points(rules).items() if point.decision == decision}


# --------------------------------------------------------------------------------------------------- whose decision


@pytest.mark.parametrize("name", PAGES)
def test_what_the_pages_leave_open(name: str) -> None:
    titles = set(points(name))
    assert decided(name, "ours") == (SILENT[name] | ALWAYS) & titles
    assert decided(name, "page") == titles - SILENT[name] - ALWAYS
    # Big gin and a ban on throwing the card back come with a point of their own.
    missing = {"plus20": {"re-discard when knocking", "declaring big gin"}, "luciano": {"declaring big gin"}}
    assert ALWAYS - titles == missing.get(name, set())


def test_what_the_libraries_leave_open() -> None:
    assert decided("openspiel", "ours") == {"what is shown", "draw cap", "match target", "match end"}
    assert decided("eaai", "ours") == {"what is shown", "draw cap"}
    for name in ("openspiel", "eaai"):
        assert decided(name, "page") == decided(name, "yours") == set()


def test_titles_with_a_reason_exist() -> None:
    """A title that is misspelt among the decisions would be taken for the page's."""
    for name, ours in _OURS.items():
        titles = set(points(name)) | set(points(preset(name, target=None)))
        titles |= set(points(preset(name, rediscard=False, swap_cap=None, big_gin_bonus=31)))
        assert set(ours) <= titles, name


def test_changes_are_yours() -> None:
    assert decided("plus20", "yours") == set()
    assert decided("plus20:target=50", "yours") == {"match target"}
    assert decided("plus20:undercut_bonus=30", "yours") == {"undercut"}
    assert decided("luciano:undercut_bonus=30", "yours") == {"undercut", "tie"}
    assert decided("luciano:oklahoma=true", "yours") == {"limit", "Oklahoma"}
    assert decided("openspiel:swap_cap=none", "yours") == {"swap cap"}
    # The rest stays what it was.
    assert decided("plus20:target=50", "ours") == decided("plus20", "ours")


def test_house_rules_are_nobodys_page() -> None:
    rules = load_rules(HOUSE)
    assert rules.name == "house"
    assert decided(rules, "page") == decided(rules, "library") == set()
    assert decided(rules, "yours") == {"limit", "Oklahoma", "gin", "big gin", "undercut", "tie", "match target"}
    assert decided(Rules(name="like the default"), "yours") == set()
    assert decided(Rules(name="like the default"), "ours") == set(points("cardpuzzle"))


def test_reasons_are_given_for_own_decisions_only() -> None:
    for name in PRESETS:
        for point in describe(name):
            assert point.decision in DECISIONS
            assert not point.reason or point.decision == "ours"
    assert "by hand" in points("luciano")["laying off"].reason


# ------------------------------------------------------------------------------------------------------- sentences


def other_values(field: str) -> list[Any]:
    kind = get_type_hints(Rules)[field]
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if kind is bool:
        return [False, True]
    numbers = {"ranks": [12], "suits": [3, 2], "hand_size": [7], "stock_floor": [1, 4], "draw_cap": [1, 77]}
    return [*numbers.get(field, [1, 77]), *([None] if type(None) in get_args(kind) else [])]


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_told(field: str) -> None:
    """With each of its values the rules read differently, and the points that changed name the field."""
    base: dict[str, Any] = {"double_spades": {"oklahoma": True}, "swap_cap": {"rediscard": True}}.get(field, {})
    if field == "defender_melds":
        base = {"layoffs": "manual"}
    if field in ("ranks", "suits"):
        base = {"hand_size": 7}
    told = {}
    for value in other_values(field):
        rules = Rules(**{**base, field: value})
        told[value] = [(point.title, point.text) for point in describe(rules)]
        if value is not None or field == "big_gin_bonus":
            assert any(field in point.fields for point in describe(rules)), value
        if field in RANGES and value is not None:
            assert re.search(rf"\b{value}\b", " ".join(text for _, text in told[value])), value
    for one, two in itertools.combinations(told, 2):
        assert told[one] != told[two], (one, two)


@pytest.mark.parametrize("name", PRESETS)
def test_every_field_has_a_point(name: str) -> None:
    told = {field for point in describe(name) for field in point.fields}
    assert set(FIELDS) - told <= {"swap_cap", "take_cap"}
    assert told <= set(FIELDS)


def variants() -> list[Rules]:
    words = ("knocker_melds", "layoffs", "defender_melds", "wall", "tie", "next_dealer", "rediscard")
    found = []
    for values in itertools.product(*(other_values(field) for field in words)):
        fields = dict(zip(words, values, strict=True))
        if fields["layoffs"] != "best" or fields["defender_melds"] != "manual":
            found.append(Rules(**fields, swap_cap=1 if fields["rediscard"] else None))
    return [*found, Rules(suits=2, hand_size=5)]


def test_sentences() -> None:
    for rules in [*PRESETS.values(), load_rules(HOUSE), *variants()]:
        for point in describe(rules):
            assert point.text.endswith("."), point
            assert "  " not in point.text
            assert "None" not in point.text.replace("None: the match", "")
            assert not re.search(r"\b1 \w+s\b", point.text), point


def test_numbers_of_one() -> None:
    told = points(Rules(gin_bonus=1, undercut_bonus=1, knock_limit=1, target=1, stock_floor=1))
    assert told["limit"].text == "1 point."
    assert told["match target"].text == "1 point."
    assert told["gin"].text.endswith("the defender's deadwood and 1 point.")
    assert "1 card left" in told["dead hand"].text


def test_small_packs() -> None:
    told = points(Rules(ranks=10, suits=3, hand_size=7))
    assert told["pack and deal"].text.startswith("30 cards, the 10 ranks from the ace up in 3 suits. 7 to each player")
    assert "the other 15 are the stock" in told["pack and deal"].text
    assert "9-10-A is none" in told["ace"].text
    assert told["melds"].text.startswith("A set is the 3 cards of a rank")
    assert "All 7 cards in melds" in told["gin"].text
    assert "All 8 cards in melds" in told["big gin"].text
    assert "too few suits for sets" in points(Rules(suits=2, hand_size=7))["melds"].text


# --------------------------------------------------------------------------------------------------------- sources


def test_sources() -> None:
    assert list(SOURCES) == list(PRESETS)
    for name, source in SOURCES.items():
        assert source.kind == ("page" if name in PAGES else "library")
        assert source.title
        assert source.game


@pytest.mark.parametrize("name", PRESETS)
def test_options_can_be_played(name: str) -> None:
    options = SOURCES[name].options
    assert len({as_rules(option.rules).fingerprint for option in options}) == len(options)
    for option in options:
        rules = as_rules(option.rules)
        assert rules.name == name
        assert rules.text == option.rules
        engine.new_tables(rules, 1)


def test_json() -> None:
    data = to_json("plus20:target=50")
    assert json.loads(json.dumps(data))["fields"] == preset("plus20", target=50).to_dict()
    assert (data["name"], data["text"]) == ("plus20", "plus20:target=50")
    assert [point["title"] for point in data["points"]] == [point.title for point in describe("plus20")]
    assert data["source"]["title"] == "a short rules page"
    assert to_json(Rules(name="mine"))["source"] is None


def test_unknown_rules() -> None:
    with pytest.raises(ValueError, match="'whist' is no preset; expected one of .*, or a .toml file"):
        describe("whist")


# ---------------------------------------------------------------------------------------------------- rules as text


def test_house_rules_file(tmp_path: Path) -> None:
    rules = load_rules(HOUSE)
    assert rules == as_rules(str(HOUSE))
    assert rules.big_gin_bonus is None
    path = tmp_path / "sunday.toml"
    path.write_text('preset = "luciano"\ntarget = "none"\n')
    assert load_rules(path) == preset("luciano", name="sunday", target=None)
    path.write_text("")
    assert load_rules(path) == Rules(name="sunday")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gin_bonus = ", r"sunday\.toml: "),
        ("colour = 3", r"sunday\.toml: rules: unknown field 'colour'"),
        ("target = 0", r"sunday\.toml: rules: target is 0; expected 1 to"),
        ("target = 1.5", r"sunday\.toml: rules: target is 1.5; expected int or None"),
        ('preset = "whist"', r"sunday\.toml: 'whist' is no preset"),
        ("preset = [1]", r"sunday\.toml: \[1\] is no preset"),
        ("[preset]\na = 1", r"sunday\.toml: {'a': 1} is no preset"),
    ],
)
def test_house_rules_that_are_wrong(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "sunday.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        as_rules(str(path))


def test_a_field_given_twice() -> None:
    with pytest.raises(ValueError, match="'plus20:target=50,target=100': target is given twice"):
        as_rules("plus20:target=50,target=100")


# --------------------------------------------------------------------------------------------------------- imports


def test_numba_is_loaded_when_it_is_needed() -> None:
    code = (
        "import sys, gymnasium, gin_env\n"
        "from gin_env import Rules, as_rules, preset\n"
        "from gin_env.rulebook import describe\n"
        "describe(as_rules('plus20:target=50'))\n"
        "assert 'gin_env/GinRummy-v0' in gymnasium.registry\n"
        "print('numba' in sys.modules)\n"
        "gin_env.engine.new_tables\n"
        "print('numba' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_names_of_the_package() -> None:
    assert gin_env.IllegalAction is engine.IllegalAction
    assert gin_env.engine is engine
    assert callable(gin_env.aec.env)
    assert set(gin_env.__all__) <= set(dir(gin_env))
    for name in gin_env.__all__:
        assert getattr(gin_env, name) is not None
    with pytest.raises(AttributeError, match="module 'gin_env' has no attribute 'whist'"):
        _ = gin_env.whist  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'whist' from 'gin_env'"):
        exec("from gin_env import whist")
