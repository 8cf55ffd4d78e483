"""The action table of Rummy40: names and ids, and the melds that can be laid in one action."""

from itertools import combinations

import numpy as np
import pytest

from gin_env.rummy40 import actions
from gin_env.rummy40.actions import LAY, MELDS, PLACE, action_name, action_of, parse_action
from gin_env.rummy40.cards import JOKER, card_name, held, parse_card, parse_cards
from tests import reference_rummy40 as reference


def test_names_are_read_back() -> None:
    names = [action_name(action) for action in range(actions.NUM_TWO_PACK_ACTIONS)]
    assert len(set(names)) == len(names) == 1987
    assert [parse_action(name) for name in names] == list(range(1987))
    assert [parse_action(f" {name.upper()} ") for name in names[:900]] == list(range(900))


def test_some_names() -> None:
    for action, name in {
        0: "draw", 1: "take", 2: "take-back", 3: "discard AS", 55: "discard JK", 56: "lay AH AD AC",
        actions.LAY + actions.FIRST_RUN: "lay AS 2S 3S", 843: "add AS set", 895 + 51: "add KC low",
        1103 + 13: "joker AH high", 1259: "steal AS run", 1311: "add AS set 2", 1986: "steal KC set 3",
    }.items():  # fmt: skip
        assert action_name(action) == name
    assert parse_action("lay JK 8S 8H") == parse_action("lay 8H 8S JK")
    assert parse_action("lay 7S 5S 6S") == parse_action("lay 5S 6S 7S")
    assert parse_action("lay jk 6s 7s") != parse_action("lay 6s 7s jk")


@pytest.mark.parametrize(
    "text",
    [
        "", "pass", "discard", "discard 1S", "lay", "lay 5S 6S", "lay 5S 6S 8S", "lay QH KH JK", "lay JK AH 2H",
        "lay QH KH AH", "lay JK JK 7H", "lay JK JK JK", "lay 7S 7S 7H", "lay 5S JK JK 8S", "lay 2S 3S 4S 5S 6S 7S",
        "add 5S", "add 5S run", "steal 5S high", "joker 5S run", "add JK set", "add 5S set 1", "add 5S set 4",
        "joker 5S set 3", "steal 5S run 3", "add 5S set 2 2",
    ],
)  # fmt: skip
def test_no_action(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|not a card"):
        parse_action(text)


def test_ids_out_of_range() -> None:
    for action in (-1, 1987):
        with pytest.raises(ValueError, match="is not one of 0 to 1986"):
            action_name(action)
    with pytest.raises(ValueError, match="card id 53 is not one of 0 to 52"):
        card_name(53)


def test_the_table_that_is_printed_has_no_gap() -> None:
    at = 0
    for first, number, form, meaning in actions.ACTION_TABLE:
        assert first == at
        assert meaning
        verb = form.split()[0]
        assert {action_name(action).split()[0] for action in range(first, first + number)} == {verb}
        at += number
        if at == actions.NUM_ACTIONS:
            assert "second" not in meaning
    assert at == actions.NUM_TWO_PACK_ACTIONS


def all_melds() -> set[tuple[int, ...]]:
    """Returns all sets of three and four and runs of three to five, each with at most one joker: from the rules."""
    found: set[tuple[int, ...]] = set()
    for rank in range(13):
        suits = [13 * suit + rank for suit in range(4)]
        for size in (3, 4):
            found |= set(combinations(suits, size))
            found |= {(*cards, JOKER) for cards in combinations(suits, size - 1)}
    for suit in range(4):
        for low in range(13):
            for high in range(low + 2, min(low + 5, 13)):
                run = [13 * suit + rank for rank in range(low, high + 1)]
                found.add(tuple(run))
                found |= {
                    tuple(JOKER if k == place else card for k, card in enumerate(run)) for place in range(len(run))
                }
    return found


def test_the_melds_are_all() -> None:
    assert {meld.cards for meld in MELDS} == all_melds()
    assert len(MELDS) == len(all_melds()) == actions.NUM_MELDS == 787
    assert [(meld.cards, None if meld.low < 0 else meld.low) for meld in MELDS] == reference.LAYABLE


def test_what_is_known_of_melds() -> None:
    pack = range(52)
    for number, meld in enumerate(MELDS):
        told = reference.Meld(0, meld.cards, None if meld.low < 0 else meld.low)
        stands = told.stands(pack)
        real = [card for card in meld.cards if card != JOKER]
        worth = [*real, *stands[:1]]  # of the two suits of a set of three either
        assert meld.points == sum(map(reference.points, worth)) == actions.MELD_POINTS[number]
        assert meld.real == sum(1 << card for card in real) == int(actions.MELD_REAL[number])
        assert meld.stands == sum(1 << card for card in stands) == int(actions.MELD_STANDS[number])
        assert (actions.MELD_SIZE[number], actions.MELD_JOKERS[number]) == (len(meld.cards), JOKER in meld.cards)
        assert actions.MELD_LOW[number] == meld.low


def test_places() -> None:
    assert action_of(actions.ADD_LOW, 7) == parse_action("add 8S low") == PLACE + 52 + 7
    assert action_of(actions.STEAL_SET, 51, 2) == 1986
    assert [block for block in actions.BLOCKS if block[1] == 0] == [(place, 0) for place in range(9)]
    kinds = [(" ".join((place.verb, place.where)), nth) for number, nth in actions.BLOCKS
             for place in [actions.PLACES[number]]]  # fmt: skip
    assert kinds == reference.BLOCKS
    assert reference.FIRST_MELD == LAY
    assert reference.FIRST_PLACE == PLACE


def test_no_card_has_more_places_than_there_are_actions() -> None:
    """The most melds that can have a place of each kind for one card: counted from the cards they need."""
    pack = list(range(52))
    # Of all melds of three to five cards, and the sets and runs that have grown by one card, by kind of place.
    shapes = [reference.Meld(0, cards, first) for cards, first in reference.LAYABLE]
    for packs in (1, 2):
        for kind, place in zip(reference.BLOCKS, actions.PLACES, strict=False):
            card = 13 * 2 + 6  # one in the middle, where all kinds have places
            having = [meld for meld in shapes if card in meld.places(pack).get(kind[0], [])]
            # Shorter ones leave more for others.
            having = [meld for meld in having if len(meld.cards) == 3 or kind[0] == "joker set"]
            sets = [frozenset(c for c in meld.cards if c != JOKER) for meld in having]

            def most(left: dict[int, int], at: int, sets: list[frozenset[int]] = sets) -> int:
                best = 0
                for k in range(at, len(sets)):
                    if all(left[c] for c in sets[k]):
                        rest = {c: n - (c in sets[k]) for c, n in left.items()}
                        best = max(best, 1 + most(rest, k))
                return best

            number = most({c: packs for meld in sets for c in meld}, 0)
            assert number == (1 if packs == 1 else place.most), (kind, packs)


def test_cards() -> None:
    assert [card_name(card) for card in (0, 51, JOKER)] == ["AS", "KC", "JK"]
    assert [parse_card(text) for text in ("as", "10♣", "jk")] == [0, 48, JOKER]
    assert parse_cards("7S 7S, JK") == [6, 6, JOKER]
    assert held((np.uint64(0b11), np.uint64(0b10)), 2) == [0, 1, 1, JOKER, JOKER]
