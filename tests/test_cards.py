"""Cards and actions: their numbers, their names, and what is refused."""

import numpy as np
import pytest

from gin_env import actions, cards
from gin_env.actions import action_name, parse_action
from gin_env.cards import card_name, cards_text, from_mask, parse_card, parse_cards, to_mask


def test_table_of_ids() -> None:
    """The table in the module's docstring is what the functions say."""
    lines = (cards.__doc__ or "").splitlines()
    rows = [line.split() for line in lines if line.strip()[:2] in ("S ", "H ", "D ", "C ")]
    ranks = next(line.split()[1:] for line in lines if line.split()[:1] == ["suit"])
    assert "".join(ranks) == cards.RANKS
    assert "".join(row[0] for row in rows) == cards.SUITS
    for suit, *ids in rows:
        for rank, card in zip(ranks, ids, strict=True):
            assert parse_card(rank + suit) == int(card)
            assert card_name(int(card)) == rank + suit


def test_names_round_trip() -> None:
    names = [card_name(card) for card in range(52)]
    assert len(set(names)) == 52
    assert [parse_card(name) for name in names] == list(range(52))
    assert [parse_card(name.lower()) for name in names] == list(range(52))
    for name, card in zip(names, range(52), strict=True):
        glyph = cards.SUIT_GLYPHS[name[1]]
        assert parse_card(name[0] + glyph) == card
        assert parse_card(f" {name.replace('T', '10')} ") == card


@pytest.mark.parametrize("text", ["", "T", "TDD", "1D", "11D", "0S", "DT", "TX", "JK", "T D", "TD 9D", "♠", "100D"])
def test_not_a_card(text: str) -> None:
    with pytest.raises(ValueError, match="is not a card: expected a rank of A23456789TJQK and a suit of SHDC"):
        parse_card(text)


@pytest.mark.parametrize("card", [-1, 52, 1000])
def test_not_a_card_id(card: int) -> None:
    with pytest.raises(ValueError, match=f"card id {card} is not one of 0 to 51"):
        card_name(card)


def test_lists_of_cards() -> None:
    assert parse_cards("TD 9s, KC") == parse_cards(["TD", "9S", "KC"]) == [35, 8, 51]
    assert parse_cards("") == parse_cards([]) == []
    assert cards_text([35, 8, 51]) == "TD 9S KC"
    assert cards_text(np.array([35, 8, 51])) == "TD 9S KC"
    assert cards_text(to_mask([35, 8, 51])) == cards_text(np.uint64(to_mask([35, 8, 51]))) == "9S TD KC"
    assert cards_text(0) == cards_text([]) == ""
    with pytest.raises(ValueError, match="TD appears twice in 'TD 9S 10D'"):
        parse_cards("TD 9S 10D")
    with pytest.raises(ValueError, match="'9X' is not a card"):
        parse_cards("TD 9X")


def test_masks_round_trip() -> None:
    assert to_mask([]) == 0
    assert to_mask([0, 51]) == to_mask([51, 0, 0]) == 1 | 1 << 51
    assert to_mask(np.array([51], dtype=np.int8)) == 1 << 51
    assert from_mask((1 << 52) - 1) == list(range(52))
    assert from_mask(np.uint64(1 << 51 | 1)) == [0, 51]


def test_points() -> None:
    assert cards.CARD_POINTS.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10] * 4


# ---------------------------------------------------------------------------------------------------------- actions


def test_table_of_actions() -> None:
    assert (actions.PASS, actions.DRAW, actions.TAKE) == (0, 1, 2)
    assert [action_name(action) for action in (0, 1, 2, 107)] == ["pass", "draw", "take", "big-gin"]
    assert [action_name(3 + card) for card in range(52)] == [f"discard {card_name(card)}" for card in range(52)]
    assert [action_name(55 + card) for card in range(52)] == [f"knock {card_name(card)}" for card in range(52)]
    assert actions.NUM_ACTIONS == 108


def test_action_names_round_trip() -> None:
    names = [action_name(action) for action in range(actions.NUM_ACTIONS)]
    assert [parse_action(name) for name in names] == list(range(108))
    assert [parse_action(f"  {name.upper()} ") for name in names] == list(range(108))
    assert parse_action("discard  10d") == parse_action("discard TD") == 3 + 35
    assert action_name(np.int64(38)) == "discard TD"


@pytest.mark.parametrize("action", [-1, 108, 255])
def test_not_an_action_id(action: int) -> None:
    with pytest.raises(ValueError, match=f"action {action} is not one of 0 to 107"):
        action_name(action)


@pytest.mark.parametrize("text", ["", "gin", "big gin", "pass TD", "TD", "discard", "knock", "knock TD 9D", "fold"])
def test_not_an_action(text: str) -> None:
    with pytest.raises(ValueError, match="is not an action: expected pass, draw, take, discard CARD, knock CARD or"):
        parse_action(text)


def test_action_with_a_card_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="'1d' is not a card"):
        parse_action("discard 1D")
