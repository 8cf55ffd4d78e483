"""Worked cases of Rummy40 with the right answers (tests/data/cases_rummy40.json)."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gin_env.rummy40 import as_rules, engine, preset
from gin_env.rummy40.actions import LAY, MELDS, TAKE_BACK, action_name, meld_of, parse_action
from gin_env.rummy40.cards import parse_card, parse_cards
from gin_env.rummy40.tables import GOING_ON, OVER, PLAY, Tables
from gin_env.rummy40.turn import end_match
from tests.rummy40_hands import choose, conserved, held_by, set_up

CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "data" / "cases_rummy40.json").read_text())}


def case(name: str) -> Any:
    """Returns a parametrization with one case, whose id is in the test's name."""
    return pytest.mark.parametrize("case", [pytest.param(CASES[name], id=name)])


def names(tables: Tables) -> list[str]:
    """Returns the names of the legal actions."""
    return [action_name(action) for action in engine.legal_actions(tables)]


def lay(tables: Tables, cards: list[str]) -> None:
    """Lays a meld, which must be legal."""
    engine.step(tables, [parse_action("lay " + " ".join(cards))])


def stands(meld: list[str]) -> tuple[list[str], int] | None:
    """Returns what the cards of a meld stand for, as it is laid, and its points; None where it is no meld."""
    number = meld_of(parse_cards(meld))
    if number is None:
        return None
    laid = MELDS[number]
    return [action_name(3 + (laid.low + k)).split()[1] for k in range(len(laid.cards))], laid.points


@case("R01")
def test_joker_when_opening(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    laid = [card for meld in given["laid"] for card in meld]
    for minimum, accepted in ((given["opening_minimum"], expected["accepted"]), (46, False)):
        tables = set_up(f"rummy40:opening={minimum}", f"{' '.join(laid)} 2C 7D 9C JD", opened=False)
        first = f"lay {' '.join(given['laid'][0])}"
        assert (first in names(tables)) == accepted
        if accepted:
            for meld in given["laid"]:
                lay(tables, meld)
            assert tables["opened"][0, 0] == 1
    points = [MELDS[meld_of(parse_cards(meld)) or 0].points for meld in given["laid"]]
    assert sum(points) == expected["value"]
    joker = 10
    assert expected["value"] - joker == expected["wrong_joker_0"]
    assert expected["value"] - joker + 25 == expected["wrong_joker_25"]


@case("R03")
def test_joker_at_the_ends_of_a_run(case: dict[str, Any]) -> None:
    for meld, result in zip(case["input"]["melds"], case["expected"]["results"], strict=True):
        found = stands(meld)
        assert found == (None if result is None else (result["stands"], result["value"])), meld
        if result is None:
            with pytest.raises(ValueError, match="expected a set of 3 or 4 cards or a run of 3 to 5"):
                parse_action("lay " + " ".join(meld))
        elif meld.count("JK") < 2:
            tables = set_up("rummy40:opening=0", f"{' '.join(meld)} 2C 9D", opened=False)
            lay(tables, meld)
            assert [int(tables["meld_low"][0, 0]), int(tables["meld_high"][0, 0])] == parse_cards(
                [result["stands"][0], result["stands"][-1]]
            )
            if "JK" in meld:
                place = meld.index("JK")
                assert int(tables["meld_stands"][0, 0]) == 1 << parse_card(result["stands"][place])


@case("R04")
def test_where_the_joker_is_added(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    tables = set_up("rummy40", " ".join(given["hand"]), [(0, " ".join(meld)) for meld in given["table"]])
    added = [name for name in names(tables) if name.startswith("joker")]
    assert added == ["joker TS low"]
    assert expected["legal_add_joker"] == ["low end, as TS"]
    assert any(name.endswith("high") for name in added) == expected["joker_after_king"]
    assert "add 9S low" not in names(tables)
    engine.step(tables, [parse_action("joker TS low")])
    assert [name for name in names(tables) if name.startswith("add")] == [
        f"add {card} low" for card in expected["then_legal"]
    ]


@case("R05")
@pytest.mark.parametrize("owner", [0, 1])
def test_exact_card_takes_the_joker(case: dict[str, Any], owner: int) -> None:
    given, expected = case["input"], case["expected"]
    melds = [(owner, " ".join(meld)) for meld in given["table"]]
    swapped = []
    # With two packs, for the nine of spades lies on the table.
    rules = "rummy40:packs=2,jokers=4,adding=any"
    for card in given["candidates"]:
        # The two and three of diamonds are a place for any joker.
        tables = set_up(rules, f"{card} 2D 3D JH", melds)
        for name in names(tables):
            if not name.startswith(f"steal {card}"):
                continue
            after = tables.copy()
            engine.step(after, [parse_action(name)])
            (slot,) = np.flatnonzero(after["meld_stands"][0] != tables["meld_stands"][0]).tolist()
            swapped.append([card, slot])
            assert after["jokers"][0, 0] == after["owed"][0] == 1
            assert not [name for name in names(after) if name.startswith("discard")]
    assert swapped == expected["swap_allowed"]
    assert {card for card, _ in swapped}.isdisjoint(expected["swap_refused"])


@case("R08")
def test_cards_in_play(case: dict[str, Any]) -> None:
    expected = case["expected"]
    for seats, told in ((2, expected["two_players"]), (4, expected["four_players"])):
        tables = engine.new_tables(f"rummy40:seats={seats}", 5, seed=seats)
        deck = tables["deck"][:, : told["cards"]]
        assert (tables["deck"][:, told["cards"] :] == -1).all()
        assert (np.sort(deck, axis=1) == sorted([*range(52)] * (seats // 2) + [52] * told["jokers"])).all()
        assert (told["cards"] - tables["stock_at"] == told["stock"]).all()
        assert (tables["num_cards"][:, :seats] == expected["hand_size"]).all()
        assert (tables["pile_size"] == 1).all()


def end_hand_at(seats: int, limit: int, before: list[int], hand: list[int]) -> Tables:
    """Returns a match's table with scores, and with what a hand has added to them."""
    tables = engine.new_tables(f"rummy40:seats={seats},limit={limit}", 1, match=True)
    tables["scores"][0, :seats] = np.add(before, hand)
    tables["phase"] = OVER
    end_match(tables[0])
    return tables


@case("R10")
def test_who_wins_the_match(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    for name in ("two", "four", "two_both_over"):
        before, hand, told = given[name]["before"], given[name]["hand"], expected[name]
        tables = end_hand_at(len(before), given["limit"], before, hand)
        assert tables["scores"][0, : len(before)].tolist() == told["totals"]
        assert tables["match_over"][0]
        assert np.flatnonzero(tables["match_winners"][0]).tolist() == [told["winner"]]
        assert told["totals"][told["winner"]] == min(told["totals"])
        if "loser" in told:
            assert told["loser"] != told["winner"]
    # Two that are over and equal play one more hand; of four the lowest share the win.
    assert not end_hand_at(2, 100, [90, 90], [20, 20])["match_over"][0]
    assert end_hand_at(4, 100, [90, 90, 60, 60], [20, 20, 0, 0])["match_winners"][0].tolist() == [0, 0, 1, 1]
    assert not end_hand_at(4, 100, [90, 90, 60, 60], [9, 0, 0, 0])["match_over"][0]


@case("R11")
def test_below_the_minimum(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    hand = parse_cards(given["hand_before"])
    (meld,) = given["laid"]
    name = "lay " + " ".join(meld)
    assert MELDS[parse_action(name) - LAY].points == expected["value"]

    # With a mask that sees to the minimum: not offered.
    tables = set_up(preset("rummy40", opening=given["minimum"]), hand, opened=False)
    assert not [name for name in names(tables) if name.startswith(("lay", "take"))]
    with pytest.raises(engine.IllegalAction, match=f"seat 0 may not play '{name}'"):
        engine.step(tables, [parse_action(name)])

    # With the penalty: laid, and taken back.
    rules = preset("rummy40", opening=given["minimum"], wrong_opening="penalty")
    tables = set_up(rules, hand, opened=False)
    engine.step(tables, [parse_action(name)])
    assert bool(tables["opened"][0, 0]) is expected["accepted"]
    assert names(tables) == ["take-back"]  # no discard over melds that do not count
    engine.step(tables, [TAKE_BACK])
    assert expected["hand_after"] == "unchanged"
    assert held_by(tables, 0) == sorted(hand)
    assert tables["booked"][0, 0] == expected["penalty"]
    assert (bool(tables["opened"][0, 0]), int(tables["num_melds"][0])) == (expected["opened"], 0)
    # One attempt a turn; the turn goes on to the discard.
    assert all(name.startswith("discard") for name in names(tables))
    points, over = engine.step(tables, [parse_action("discard KD")])
    assert (over[0], points.any()) == (GOING_ON, False)
    # The penalty counts when the hand ends.
    tables["stock_at"] = tables["rules"]["deck_size"] - 1
    engine.step(tables, [0])
    points, _ = engine.step(tables, [next(iter(engine.legal_actions(tables)))])
    result = engine.result(tables)
    assert result is not None
    left = sum(min(card % 13 + 1, 10) for card in held_by(tables, 0))
    assert result.penalties[0] == left + expected["penalty"]
    assert points[0].sum() == 0

    # Without a minimum the meld is laid, and opens.
    tables = set_up("rummy40:opening=0", hand, opened=False)
    engine.step(tables, [parse_action(name)])
    told = expected["with_minimum_0"]
    assert (bool(tables["opened"][0, 0]), int(tables["booked"][0, 0])) == (told["accepted"], told["penalty"])


@case("R13")
def test_an_ace_is_worth_one(case: dict[str, Any]) -> None:
    values = [MELDS[meld_of(parse_cards(meld)) or 0].points for meld in case["input"]["melds"]]
    assert values == case["expected"]["values"]
    assert meld_of(parse_cards("QH KH AH")) is None
    assert meld_of(parse_cards("KH AH 2H")) is None
    # Nor is it added to a king, nor does a joker stand beyond one.
    tables = set_up("rummy40", "AH JK 2C 7D", [(0, "JH QH KH")])
    assert [name for name in names(tables) if name.split()[0] in ("add", "joker")] == ["joker TH low"]


@case("R14")
def test_no_card_is_lost(case: dict[str, Any]) -> None:
    for seats in case["input"]["players"]:
        rules = as_rules(f"rummy40:seats={seats}")
        whole = np.bincount(rules.deck, minlength=53)
        size = 500
        tables = engine.new_tables(rules, size, seed=14)
        masks = np.empty((size, rules.num_actions), dtype=np.int8)
        eager = np.arange(size) % 2 == 0  # to lay, so that much lies on the table
        actions = np.empty(size, dtype=np.int64)
        hands = 0
        while hands < case["input"]["hands"]:
            engine.legal(tables, masks)
            choose(masks, engine.decision_keys(14, tables), eager, actions)
            _, over = engine.step(tables, actions, redeal=True)
            hands += np.count_nonzero(over)
            assert conserved(tables, whole) == -1
            # Until it opens a player has the cards that it was dealt, and one more before it throws.
            shut = (tables["opened"] == 0) & (np.arange(4) < seats)
            drawn = (np.arange(4) == tables["mover"][:, None]) & (tables["phase"] == PLAY)[:, None]
            laying = (tables["attempt"] > 0)[:, None]
            assert (~shut | drawn & laying | (tables["num_cards"] == rules.hand_size + drawn)).all()
    assert case["expected"] == {"after_a_discard": "each hand has ten cards minus what it laid, before it has opened"}


def test_every_case_is_a_test() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in CASES if f'@case("{name}")' not in source] == []
