"""What a hand and the table allow, in positions where moves are scarce, against a search through all continuations."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gin_env.rummy40 import engine
from gin_env.rummy40.actions import NUM_MELDS, action_name
from gin_env.rummy40.board import adds_at
from gin_env.rummy40.melds import in_melds, in_pairs, list_melds, points_of
from gin_env.rummy40.tables import Tables
from tests import reference_rummy40 as reference
from tests.rummy40_hands import random_position, set_up, told_from

PACK = np.uint64((1 << 52) - 1)


def mask(cards: list[int]) -> np.uint64:
    """Returns the mask of cards."""
    return np.uint64(sum(1 << card for card in set(cards)))


# ------------------------------------------------------------------------------------------------------- the hand


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 51), max_size=11, unique=True), st.integers(0, 2), st.integers(3, 5), st.integers(1, 4))
def test_melds_of_a_hand(cards: list[int], jokers: int, longest: int, suits: int) -> None:
    cards = [card for card in cards if card < 13 * suits]
    pack = list(range(13 * suits))
    found = np.empty(NUM_MELDS, dtype=np.int64)
    number = list_melds(mask(cards), jokers, mask(pack), suits, longest, found)
    held = {*cards, *([reference.JOKER] if jokers else [])}
    expected = [
        index
        for index, (laid, first) in enumerate(reference.LAYABLE)
        if held.issuperset(laid)
        and len(laid) <= longest
        and (reference.JOKER not in laid or set(reference.Meld(0, laid, first).stands(pack)) & set(pack))
    ]
    assert sorted(found[:number].tolist()) == expected
    plain = [laid for laid, _ in reference.LAYABLE if reference.JOKER not in laid]
    there = [laid for laid in plain if set(laid) <= set(cards)]
    assert in_melds(mask(cards)) == mask([card for laid in there for card in laid])
    near = [laid for laid in plain if len(laid) == 3 and len(set(laid) & set(cards)) >= 2 and set(laid) <= set(pack)]
    together = mask([card for laid in near for card in laid if card in cards])
    assert in_pairs(mask(cards), mask(pack), suits) == together
    assert points_of(mask(cards)) == sum(map(reference.points, cards))


# ------------------------------------------------------------------------------------------------ the whole position


def compare(tables: Tables) -> tuple[reference.Table, list[int]]:
    """Compares the legal actions of a position with the reference's, and returns these."""
    told = told_from(tables)
    legal = told.legal()
    found = engine.legal_actions(tables)
    names = sorted(action_name(action) for action in set(found) ^ set(legal))
    assert found == legal, (told.rules.text, told.turn(), names)
    return told, legal


@pytest.mark.parametrize("first", range(0, 1200, 300))
def test_scarce_positions(first: int) -> None:
    """Only such that can come up are compared: those from which the turn can end."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + 300):
        tables = random_position(Random(seed))
        told = told_from(tables)
        told._ends = {}
        turn = told.turn()
        if not told._can_end(turn):
            continue
        told, legal = compare(tables)
        raw = {move for move, _ in told._moves(turn)}
        seen["refused"] += bool(raw - set(legal))
        seen["opening"] += not turn.opened and bool(raw & set(legal))
        seen["no opening"] += not turn.opened and bool(raw) and not raw & set(legal)
        seen["owed"] += turn.owed > 0
        seen["pairs"] += turn.owed > tables["room"][0, adds_at(tables["rules"][0], 0)]
    # The sample holds what it is for.
    assert min(seen[name] for name in ("refused", "opening", "no opening", "owed", "pairs")) > 5, seen


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 40_000, 3000))
def test_many_scarce_positions(first: int) -> None:
    for seed in range(first, first + 3000):
        tables = random_position(Random(seed))
        told = told_from(tables)
        told._ends = {}
        if told._can_end(told.turn()):
            compare(tables)


def names(tables: Tables) -> list[str]:
    """Returns the names of the legal actions, once they are compared with the reference's."""
    return [action_name(action) for action in compare(tables)[1]]


def tabled(tables: Tables) -> list[str]:
    """Returns those that put cards on the table."""
    return [name for name in names(tables) if not name.startswith("discard")]


# ------------------------------------------------------------------------------------------------- positions by hand


def test_a_card_to_throw_is_kept() -> None:
    assert tabled(set_up("rummy40", "7S 8S 9S", [(0, "KS KH KD")])) == []
    assert tabled(set_up("rummy40", "7S 8S 9S 2D", [(0, "KS KH KD")])) == ["lay 7S 8S 9S"]
    # Neither a joker nor the card just taken will do as the last.
    lays = tabled(set_up("rummy40", "7S 8S 9S JK", [(0, "QS QH QD QC")]))
    assert {"lay 7S 8S JK", "lay JK 8S 9S"} < set(lays)
    assert "lay 7S 8S 9S" not in lays
    assert tabled(set_up("rummy40", "7S 8S 9S 2D", [(0, "KS KH KD")], banned=8)) == ["lay 7S 8S 9S"]
    assert tabled(set_up("rummy40", "7S 8S 9S 2D", [(0, "KS KH KD")], banned=27)) == []
    assert tabled(set_up("rummy40:rediscard=true", "7S 8S 9S 2D", [(0, "KS KH KD")])) == ["lay 7S 8S 9S"]


def test_two_jokers_may_be_left() -> None:
    """One of them may be thrown, for it is not the last card."""
    tables = set_up("rummy40", "7S 8S 9S JK JK", [(1, "KS KH KD")])
    assert "lay 7S 8S 9S" in names(tables)
    engine.step(tables, [engine.legal_actions(tables)[names(tables).index("lay 7S 8S 9S")]])
    assert names(tables) == ["discard JK"]


def test_jokers_are_not_thrown_before_opening() -> None:
    assert "discard JK" not in names(set_up("rummy40", "2S 4H 6D 8C TS QH AD 3C 5S 7H JK", opened=False))
    assert "discard JK" in names(set_up("rummy40", "2S 4H JK", [(0, "KS KH KD")]))
    assert names(set_up("rummy40", "2S JK", [(1, "9S TS JS")])) == ["discard 2S", "discard JK"]


def test_opening_with_several_melds() -> None:
    # 24 + 15 = 39: not enough; with the ace instead of the king's place 40.
    assert tabled(set_up("rummy40", "7S 8S 9S 4H 5H 6H 2D KC QS JD 3C", opened=False)) == []
    hand = "8S 8H 8D 4H 5H 6H 2D KC QS JD 9S"  # 24 + 15
    assert tabled(set_up("rummy40", hand, opened=False)) == []
    assert tabled(set_up("rummy40:opening=39", hand, opened=False)) == ["lay 8S 8H 8D", "lay 4H 5H 6H"]
    # After one of the two only the other, and no discard.
    tables = set_up("rummy40:opening=39", hand, opened=False)
    engine.step(tables, [engine.legal_actions(tables)[names(tables).index("lay 8S 8H 8D")]])
    assert names(tables) == ["lay 4H 5H 6H"]
    engine.step(tables, engine.legal_actions(tables))
    assert tables["opened"][0, 0] == 1
    assert "discard 9S" in names(tables)


def test_three_melds_to_open() -> None:
    hand = "3S 3H 3D 4H 5H 6H 6S 7S 8S 2C 9C"  # 9 + 15 + 21
    assert len(tabled(set_up("rummy40:opening=45", hand, opened=False))) == 3
    assert tabled(set_up("rummy40:opening=46", hand, opened=False)) == []


def test_opening_must_leave_a_card() -> None:
    hand = "JS QS KS 4H 5H 6H 7C 8C 9C TC 2D"  # 30 + 15 + 34, which leaves the two
    assert len(tabled(set_up("rummy40:opening=79", hand, opened=False))) == 3
    assert tabled(set_up("rummy40:opening=79", hand, opened=False, banned=27)) == []  # the two was just taken
    assert tabled(set_up("rummy40:opening=69", hand, opened=False, banned=27)) != []


def test_a_joker_may_stand_for_a_card_that_lies_elsewhere() -> None:
    assert "lay 8S 8H JK" in names(set_up("rummy40:opening=0", "8S 8H JK 2D 4C", [(1, "8D 9D TD")], opened=False))


def test_a_stolen_joker_must_have_a_place() -> None:
    table = [(1, "8S 8H JK")]
    assert "steal 8D set" not in names(set_up("rummy40", "8D 2C KS", [(0, "AS AH AD AC"), *table]))
    # On a meld of one's own, or with two cards of the hand if one is left then.
    assert "steal 8D set" in names(set_up("rummy40", "8D 2C KS", [(0, "AS AH AD"), *table]))
    assert "steal 8D set" in names(set_up("rummy40", "8D 2C 3C KS", [(0, "AS AH AD AC"), *table]))
    assert "steal 8D set" not in names(set_up("rummy40", "8D 2C 3C", [(0, "AS AH AD AC"), *table]))
    # With four players also on the meld that it comes from, but not on a set that is full.
    assert "steal 8D set" in names(set_up("rummy40:seats=4", "8D 2C KS", [(0, "AS AH AD AC"), *table]))
    full = [(0, "AS AH AD AC"), (1, "8S 8H 8C JK")]
    assert "steal 8D set" not in names(set_up("rummy40:seats=4", "8D 2C KS", full))


def test_a_stolen_joker_is_placed_before_the_discard() -> None:
    tables = set_up("rummy40", "8D 2C KS", [(0, "AS AH AD"), (1, "8S 8H JK")])
    engine.step(tables, [engine.legal_actions(tables)[names(tables).index("steal 8D set")]])
    assert names(tables) == ["joker AC set"]
    engine.step(tables, engine.legal_actions(tables))
    assert names(tables) == ["discard KS", "discard 2C"]


def test_joker_of_a_set_of_three_stands_for_either_suit() -> None:
    table = [(0, "8S 8H JK")]
    for card in ("8D", "8C"):
        assert {f"add {card} set", f"steal {card} set"} <= set(names(set_up("rummy40", f"{card} 2C KS 4D", table)))
    tables = set_up("rummy40", "8D 2C KS 4D", table)
    engine.step(tables, [engine.legal_actions(tables)[names(tables).index("add 8D set")]])
    assert tables["meld_stands"][0, 0] == 1 << 46  # 8C is left


def test_adding_to_whose_melds() -> None:
    table = [(0, "KS KH KD"), (1, "9S TS JS")]
    assert [n for n in names(set_up("rummy40", "8S KC 2D 4H", table)) if n.startswith("add")] == ["add KC set"]
    both = [n for n in names(set_up("rummy40:adding=any", "8S KC 2D 4H", table)) if n.startswith("add")]
    assert both == ["add KC set", "add 8S low"]
    assert not [n for n in names(set_up("rummy40", "8S KC 2D 4H", table[1:], opened=False)) if n.startswith("add")]


def test_stealing_from_whose_melds() -> None:
    table = [(0, "KS KH JK"), (1, "9S JK JS")]
    for stealing, expected in (("any", {"KD", "TS"}), ("own", {"KD"}), ("no", set())):
        tables = set_up(f"rummy40:stealing={stealing}", "KD TS 2D 3D 4H", table)
        assert {name.split()[1] for name in names(tables) if name.startswith("steal")} == expected


def test_second_and_third_meld_with_a_place() -> None:
    """With two packs, in the order laid."""
    table = [(1, "5S 6S 7S"), (2, "5S 6S 7S"), (3, "9S TS JS")]
    tables = set_up("rummy40:seats=4", "8S 2D 4H KC", table)
    assert [name for name in names(tables) if name.startswith("add")] == ["add 8S low", "add 8S high", "add 8S high 2"]
    engine.step(tables, [engine.legal_actions(tables)[names(tables).index("add 8S high 2")]])
    assert tables["meld_high"][0, :3].tolist() == [6, 7, 10]


def test_the_twin_of_the_card_just_taken_may_be_thrown() -> None:
    rules = "rummy40:seats=4"
    assert "discard 9S" in names(set_up(rules, "9S 9S 2D", [(0, "KS KH KD")], banned=8))
    assert "discard 9S" not in names(set_up(rules, "9S 2D 4C", [(0, "KS KH KD")], banned=8))
    tables = set_up(rules, "9S 9S 2D", [(0, "TS JS QS")], banned=8)
    engine.step(tables, [engine.legal_actions(tables)[names(tables).index("add 9S low")]])
    assert names(tables)[:2] == ["discard 9S", "discard 2D"]


def test_meld_with_a_joker_settles_what_is_owed_and_the_card_taken() -> None:
    """Laid together, both count."""
    tables = set_up("rummy40:seats=4", "JS JD JD JK 2C", [(0, "KS KH KD")], banned=36, owed=1)
    engine.step(tables, [engine.legal_actions(tables)[names(tables).index("lay JS JD JK")]])
    assert (tables["owed"][0], tables["banned"][0]) == (0, -1)
    assert names(tables) == ["discard JD", "discard 2C"]


def test_small_packs_have_no_place_beyond_their_cards() -> None:
    rules = "rummy40:ranks=5,suits=3,hand_size=3,opening=0"
    tables = set_up(rules, "3S 4S 5S JK 2H", opened=False)
    assert not [name for name in names(tables) if "6S" in name or "JC" in name]
    assert "lay JK 4S 5S" in names(tables)
    assert "lay 4S 5S JK" not in names(tables)
    # Three suits make a whole set.
    assert not [n for n in names(set_up(rules, "2S JK 3H 5D", [(0, "AS AH AD")])) if n.endswith("set")]
