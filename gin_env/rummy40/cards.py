"""The cards of Rummy40: the ids of `gin_env.cards`, and one id more for every joker.

With two packs each card is there twice. A hand is a *multiset*, written as two masks and a number: the cards held at
least once, those held twice, and the jokers, which no mask holds.
"""

from collections.abc import Iterable

from gin_env import cards as plain
from gin_env.cards import NUM_CARDS

JOKER = NUM_CARDS
NUM_KINDS = NUM_CARDS + 1  # of cards that look different
JOKER_NAME = "JK"


def card_name(card: int) -> str:
    """Returns the name of a card, such as ``"TD"``, or ``"JK"`` for a joker.

    Raises:
        ValueError: If ``card`` is not 0 to 52.
    """
    if not 0 <= card < NUM_KINDS:
        raise ValueError(f"card id {card} is not one of 0 to {JOKER}")
    return JOKER_NAME if card == JOKER else plain.card_name(card)


def parse_card(text: str) -> int:
    """Returns the id of a card written as `gin_env.cards.parse_card` reads it, or as ``"JK"``.

    Raises:
        ValueError: If the text is not a card.
    """
    return JOKER if text.strip().upper() == JOKER_NAME else plain.parse_card(text)


def parse_cards(text: str | Iterable[str]) -> list[int]:
    """Returns the ids of cards separated by spaces or commas, in the order written; a card may be there twice.

    Raises:
        ValueError: If a part is not a card.
    """
    return [parse_card(part) for part in (text.replace(",", " ").split() if isinstance(text, str) else text)]


def cards_text(cards: Iterable[int]) -> str:
    """Returns the names of cards, separated by spaces."""
    return " ".join(card_name(int(card)) for card in cards)


def held(masks: Iterable[int], jokers: int) -> list[int]:
    """Returns the card ids of a multiset: lowest first, jokers last.

    Args:
        masks: The cards that are there at least once, and those that are there twice.
        jokers: Number of jokers.
    """
    return sorted(card for mask in masks for card in plain.from_mask(int(mask))) + [JOKER] * int(jokers)
