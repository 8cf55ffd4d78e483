"""Cards and actions: their numbers, their names, and what is refused."""

import numpy as np
import pytest

from gin_env import actions, cards
from gin_env.actions import action_name, parse_action
from gin_env.cards import card_name, cards_text, from_mask, parse_card, parse_cards, to_mask
from tests import reference, reference_engine


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
    melds = [f"meld {cards_text(meld)}" for meld in reference_engine.LAYABLE]
    assert [action_name(108 + number) for number in range(185)] == melds
    layoffs = [f"layoff {card_name(card)} {place}" for place in (1, 2, 3) for card in range(52)]
    assert [action_name(293 + number) for number in range(156)] == layoffs
    assert (actions.NUM_ACTIONS, actions.NUM_MANUAL_ACTIONS) == (108, 449)
    assert (actions.MELD, actions.NUM_MELDS, actions.LAYOFF, actions.MAX_MELDS) == (108, 185, 293, 3)


def test_melds_that_can_be_laid() -> None:
    """All melds of up to five cards, each once, in the order that the table of actions says."""
    melds = actions.MELDS.tolist()
    assert actions.MELDS.dtype == np.uint64
    assert melds == reference_engine.LAYABLE
    assert set(melds) == {meld for meld in reference.MELDS if meld.bit_count() <= 5}
    assert len(set(melds)) == len(melds) == 65 + 44 + 40 + 36
    for meld, name in (
        (0, "AH AD AC"),
        (4, "AS AH AD AC"),
        (63, "KS KH KD"),
        (65, "AS 2S 3S"),
        (149, "AS 2S 3S 4S 5S"),
    ):
        assert cards_text(melds[meld]) == name
    assert cards_text(melds[184]) == "9C TC JC QC KC"
    # A longer run of a hand is laid as two.
    for run in (mask for mask in reference.RUNS if 6 <= mask.bit_count() <= 10):
        cards = from_mask(run)
        half = len(cards) // 2
        assert {to_mask(cards[:half]), to_mask(cards[half:])} <= set(melds)


def test_action_names_round_trip() -> None:
    names = [action_name(action) for action in range(actions.NUM_MANUAL_ACTIONS)]
    assert len(set(names)) == 449
    assert [parse_action(name) for name in names] == list(range(449))
    assert [parse_action(f"  {name.upper()} ") for name in names] == list(range(449))
    assert parse_action("discard  10d") == parse_action("discard TD") == 3 + 35
    assert action_name(np.int64(38)) == "discard TD"
    # The cards of a meld in any order, also with glyphs.
    assert parse_action("meld 7D 7s 7♥") == parse_action("meld 7S 7H 7D")
    assert parse_action("meld 10h jh 9H") == parse_action("meld 9H TH JH")
    assert parse_action("layoff 10♠ 2") == parse_action("layoff TS 2") == 293 + 52 + 9


@pytest.mark.parametrize("action", [-1, 449, 1000])
def test_not_an_action_id(action: int) -> None:
    with pytest.raises(ValueError, match=f"action {action} is not one of 0 to 448"):
        action_name(action)


@pytest.mark.parametrize(
    "text",
    ["", "gin", "big gin", "pass TD", "TD", "discard", "knock", "knock TD 9D", "fold", "meld", "layoff", "layoff 8S"]
    + ["layoff 8S 1 2", "lay off 8S 1"],
)
def test_not_an_action(text: str) -> None:
    expected = "is not an action: expected pass, draw, take, discard CARD, knock CARD, big-gin, meld CARDS or layoff "
    with pytest.raises(ValueError, match=expected):
        parse_action(text)


@pytest.mark.parametrize(
    "cards_of_no_meld",
    ["7S", "7S 7H", "7S 8S", "7S 8S 8H", "QH KH AH", "KC KD AD", "KS AS 2S", "7S 8S TS", "AS 2S 3S 4S 5S 6S"],
)
def test_meld_that_is_none(cards_of_no_meld: str) -> None:
    with pytest.raises(ValueError, match="expected a set of 3 or 4 cards or a run of 3 to 5"):
        parse_action(f"meld {cards_of_no_meld}")


@pytest.mark.parametrize("place", ["0", "4", "-1", "x", "1.0", "8S"])
def test_layoff_on_a_meld_that_cannot_be(place: str) -> None:
    with pytest.raises(ValueError, match="expected the number of one of the knocker's melds, 1 to 3"):
        parse_action(f"layoff 8S {place}")


def test_action_with_a_card_that_does_not_exist() -> None:
    for text in ("discard 1D", "knock 1D", "meld 7S 1D 7H", "layoff 1D 2"):
        with pytest.raises(ValueError, match="'1d' is not a card"):
            parse_action(text)
    with pytest.raises(ValueError, match="7H appears twice"):
        parse_action("meld 7H 7H 7H")
