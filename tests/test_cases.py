"""Worked positions with their right answers, from `data/cases.json`.

A case holds facts only: cards in, answers out, under the named rules (`any` is every preset). Its id is in the id of
its test, so `pytest -k L07` runs one.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gin_env import melds
from gin_env.cards import card_name, from_mask, parse_cards, to_mask
from tests import reference
from tests.test_melds import assert_valid_defence, assert_valid_melds, in_use, laid, masks

CASES = json.loads((Path(__file__).parent / "data" / "cases.json").read_text())


def cases(*kinds: str, having: Iterable[str] = ()) -> Any:
    """Returns a parametrization over the cases of some kinds whose expectations have all the named keys."""
    chosen = [case for case in CASES if case["kind"] in kinds and all(key in case["expected"] for key in having)]
    assert chosen
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in chosen])


def cards(names: str | Iterable[str]) -> int:
    """Returns the mask of card names."""
    return to_mask(parse_cards(names))


def table_of(meld_names: Sequence[Sequence[str]]) -> list[int]:
    """Returns the masks of melds."""
    return [cards(names) for names in meld_names]


def defence(hand: int, table: Sequence[int], gin: bool = False) -> tuple[int, int]:
    """Returns the deadwood of the best defence, and the cards laid off, once it is seen to be playable."""
    got = melds.defend(masks([hand]), laid([table]), np.array([gin]))
    assert_valid_defence(hand, laid([table])[0], gin, int(got.deadwood[0]), got.melds[0], got.layoffs[0])
    return int(got.deadwood[0]), sum(in_use(got.layoffs[0]))


def laid_alone(names: Iterable[str], table: Sequence[int]) -> set[str]:
    """Returns those of the cards that can be laid off at once, each tried by itself."""
    return {name for name in names if defence(cards([name]), table)[1]}


# -------------------------------------------------------------------------------------------------- melds, knocks


@cases("meld")
def test_meld(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    if case["id"] == "M06":
        hands, left = [given["hand10"], given["hand11"]], [expected["deadwood10"], 0]
        assert expected["big_gin11"]
    elif "hands" in given:
        hands, left = given["hands"], expected["deadwood"]
    else:
        hands, left = [given["hand"]], [expected["deadwood"]]

    for names, points in zip(hands, left, strict=True):
        hand = cards(names)
        got = melds.arrange(masks([hand]))
        assert melds.deadwood(masks([hand])).tolist() == got.deadwood.tolist() == [points]
        assert_valid_melds(hand, got.melds[0])
        loose = hand & ~sum(in_use(got.melds[0]))
        assert reference.points(loose) == points
        if "melds" in expected:
            assert set(in_use(got.melds[0])) == set(table_of(expected["melds"]))
        if "loose" in expected:
            assert loose == cards(expected["loose"])


@cases("meld", having=["not_melds"])
def test_not_a_meld(case: dict[str, Any]) -> None:
    for names in case["expected"]["not_melds"]:
        hand = cards(names)
        assert melds.deadwood(masks([hand])).tolist() == [reference.points(hand)]
        assert not melds.arrange(masks([hand])).melds.any()


@cases("knock")
def test_knock_discards(case: dict[str, Any]) -> None:
    expected = case["expected"]
    after = melds.deadwood_after(masks([cards(case["input"]["hand11"])]))[0]
    allowed = {card_name(card): int(left) for card, left in enumerate(after) if 0 <= left <= case["input"]["limit"]}
    assert allowed == expected.get("knock_discards", expected.get("discard_to_deadwood"))
    if "gin_discards" in expected:
        assert [name for name, left in allowed.items() if left == 0] == expected["gin_discards"]
    if "knock_allowed" in expected:
        assert bool(allowed) is expected["knock_allowed"]


# ---------------------------------------------------------------------------------------------------- layoffs


@cases("layoff", having=["one_best_defence"])
def test_defence(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    table, hand = table_of(given["knocker_melds"]), cards(given["defender_cards"])
    gin = not given["knocker_deadwood_cards"]
    assert gin is (expected["kind"] == "gin")
    assert reference.points(cards(given["knocker_deadwood_cards"])) == expected["knocker_deadwood"]
    points, off = defence(hand, table, gin)
    assert points == expected["defender_deadwood"]

    # The one that the case names leaves as much, and needs no fewer layoffs.
    named = expected["one_best_defence"]
    on_table = list(table)
    for name, place in named["layoffs_in_order"]:
        number = int(place.removeprefix("knocker meld "))
        assert cards([name]) & reference.FITTING[on_table[number]]
        on_table[number] |= cards([name])
    assert reference.points(cards(named["loose"])) == points
    assert off.bit_count() <= len(named["layoffs_in_order"])


@cases("layoff", having=["best_defender_deadwood"])
def test_best_defender_deadwood(case: dict[str, Any]) -> None:
    table = table_of(case["input"]["knocker_melds"])
    assert defence(cards(case["input"]["defender_cards"]), table)[0] == case["expected"]["best_defender_deadwood"]


@cases("layoff", having=["legal_layoffs_first"])
def test_layoffs_chain(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    table = table_of(given["knocker_melds"])
    assert laid_alone(given["defender_cards"], table) == set(expected["legal_layoffs_first"])
    table[0] |= cards("5D")
    rest = [name for name in given["defender_cards"] if name != "5D"]
    assert laid_alone(rest, table) == set(expected["legal_layoffs_after_5D"])


@cases("layoff", having=["if_8S_goes_on_the_set"])
def test_layoff_on_the_wrong_meld(case: dict[str, Any]) -> None:
    table = table_of(case["input"]["knocker_melds"])
    table[1] |= cards("8S")
    hand = cards(case["input"]["defender_cards"]) & ~cards("8S")
    assert defence(hand, table)[0] == case["expected"]["if_8S_goes_on_the_set"]["defender_deadwood"]


@cases("layoff", having=["must_be_refused", "must_be_allowed"])
def test_layoff_refused_or_allowed(case: dict[str, Any]) -> None:
    for key, allowed in (("must_be_refused", False), ("must_be_allowed", True)):
        for name, on in case["expected"][key]:
            assert laid_alone([name], [cards(on.removeprefix("on "))]) == ({name} if allowed else set())


@cases("layoff", having=["deadwood_if_layoffs_were_wrongly_allowed"])
def test_no_layoffs_against_gin(case: dict[str, Any]) -> None:
    table, hand = table_of(case["input"]["knocker_melds"]), cards(case["input"]["defender_cards"])
    assert defence(hand, table, gin=True) == (case["expected"]["defender_deadwood"], 0)
    assert defence(hand, table, gin=False)[0] == case["expected"]["deadwood_if_layoffs_were_wrongly_allowed"]


# -------------------------------------------------------------------------------------------------- arrangement


@cases("arrangement")
def test_arrangement(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    hand, defender = cards(given["knocker_cards"]), cards(given["defender_cards"])
    got = melds.arrange(masks([hand]))
    assert set(in_use(got.melds[0])) == set(table_of(expected["options"][expected["auto"]]["melds"]))
    for option, places in zip(expected["options"], expected["open_places"], strict=True):
        table = table_of(option["melds"])
        assert len(reference.open_places(hand, table)) == places
        assert from_mask(hand & ~sum(table)) == from_mask(cards(option["loose"]))
        assert int(got.deadwood[0]) == reference.points(cards(option["loose"]))
        assert defence(defender, table)[0] == option["defender_deadwood"]


# --------------------------------------------------------------------------------------------- scoring and flow
# These need the engine: winner, points and kind of ending in every case that has them (the layoff and arrangement
# cases above too), and the cases of the kinds "scoring" and "flow".


@cases("scoring", having=["one_best_defence"])
def test_deadwood_before_scoring(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    table, hand = table_of(given["knocker_melds"]), cards(given["defender_cards"])
    assert defence(hand, table)[0] == expected["defender_deadwood"]
    assert reference.points(cards(given["knocker_deadwood_cards"])) == expected["knocker_deadwood"]


# ADD HERE: test_scoring, test_flow.
