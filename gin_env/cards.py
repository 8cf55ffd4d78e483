"""Cards: ids, bitmasks, names, points.

A card is an integer, ``suit * 13 + rank``:

    ====  ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ====
    suit   A    2    3    4    5    6    7    8    9    T    J    Q    K
    ====  ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ====
    S       0    1    2    3    4    5    6    7    8    9   10   11   12
    H      13   14   15   16   17   18   19   20   21   22   23   24   25
    D      26   27   28   29   30   31   32   33   34   35   36   37   38
    C      39   40   41   42   43   44   45   46   47   48   49   50   51
    ====  ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ==== ====

A set of cards is a 64-bit mask with bit ``card`` set, so the thirteen cards of
suit ``s`` are the bits ``13 * s`` to ``13 * s + 12``. Small decks (see
`gin_env.rules.Rules`) use the same ids and leave the others out.
"""

from collections.abc import Iterable

import numpy as np

RANKS = "A23456789TJQK"
SUITS = "SHDC"
NUM_RANKS = 13
NUM_SUITS = 4
NUM_CARDS = 52
NO_CARD = -1

SUIT_GLYPHS = {"S": "♠", "H": "♥", "D": "♦", "C": "♣"}

# (52,) int16, points of each card: ace 1, 2 to 10 their face value, J Q K 10.
CARD_POINTS = np.array([min(card % NUM_RANKS + 1, 10) for card in range(NUM_CARDS)], dtype=np.int16)


def card_name(card: int) -> str:
    """Returns the two-character name of a card id, such as ``"TD"`` for 35.

    Raises:
        ValueError: If ``card`` is not 0 to 51.
    """
    if not 0 <= card < NUM_CARDS:
        raise ValueError(f"card id {card} is not one of 0 to {NUM_CARDS - 1}")
    return RANKS[card % NUM_RANKS] + SUITS[card // NUM_RANKS]


def parse_card(text: str) -> int:
    """Returns the id of one card written as ``"TD"``, ``"10d"`` or ``"10♦"``.

    Raises:
        ValueError: If the text is not a card.
    """
    name = text.strip().upper().replace("10", "T")
    for suit, glyph in SUIT_GLYPHS.items():
        name = name.replace(glyph, suit)
    if len(name) != 2 or name[0] not in RANKS or name[1] not in SUITS:
        raise ValueError(f"{text!r} is not a card: expected a rank of {RANKS} and a suit of {SUITS}, such as 'TD'")
    return SUITS.index(name[1]) * NUM_RANKS + RANKS.index(name[0])


def parse_cards(text: str | Iterable[str]) -> list[int]:
    """Returns the ids of cards separated by spaces or commas, in the order written.

    Raises:
        ValueError: If a part is not a card or a card appears twice.
    """
    parts = text.replace(",", " ").split() if isinstance(text, str) else list(text)
    cards = [parse_card(part) for part in parts]
    if len(set(cards)) != len(cards):
        twice = next(card for card in cards if cards.count(card) > 1)
        raise ValueError(f"{card_name(twice)} appears twice in {text!r}")
    return cards


def to_mask(cards: Iterable[int]) -> int:
    """Returns the bitmask of card ids."""
    mask = 0
    for card in cards:
        mask |= 1 << int(card)
    return mask


def from_mask(mask: int) -> list[int]:
    """Returns the card ids of a bitmask, lowest first."""
    mask = int(mask)
    return [card for card in range(NUM_CARDS) if mask >> card & 1]


def cards_text(cards: int | np.integer | Iterable[int]) -> str:
    """Returns the names of cards (a bitmask or ids), separated by spaces."""
    ids = from_mask(int(cards)) if isinstance(cards, int | np.integer) else cards
    return " ".join(card_name(int(card)) for card in ids)
