"""The action table of Rummy40: one ``Discrete(1311)``, which the game with two packs extends to ``Discrete(1987)``.

Ids and names, as `ACTION_TABLE` lists them:

=================  =====================================================================================
id                 action
=================  =====================================================================================
0                  draw: take the top card of the stock
1                  take: take the top card of the discard pile
2                  take-back: take back melds that do not reach the opening minimum, at a penalty
3 + card           discard ``card`` (3 to 55, a joker is card 52); it ends the turn
56 + meld          lay a meld of `MELDS` from one's hand (56 to 842)
843 + card         add ``card`` to the set of its rank (843 to 894)
895 + card         add ``card`` at the low end of a run (895 to 946)
947 + card         add ``card`` at the high end of a run (947 to 998)
999 + card         add a joker to a set, as ``card`` (999 to 1050)
1051 + card        add a joker at the low end of a run, as ``card`` (1051 to 1102)
1103 + card        add a joker at the high end of a run, as ``card`` (1103 to 1154)
1155 + card        steal a joker from a set for ``card`` (1155 to 1206)
1207 + card        steal a joker that is the lowest card of a run for ``card`` (1207 to 1258)
1259 + card        steal a joker that stands higher in a run for ``card`` (1259 to 1310)
=================  =====================================================================================

A card and the kind of its place name one meld on the table: with one pack there are never two. With two packs there may
be a second and a third, which the actions from 1311 on name, *second* and *third* in the order in which the melds were
laid (`PLACES` counts why three are enough).

The melds that can be laid in one action are the sets of three and four and the runs of three to five, each without a
joker and with one in each place. Longer runs grow by adding. A turn ends with the discard; nothing else ends it.
"""

from typing import NamedTuple

import numpy as np

from gin_env.cards import CARD_POINTS, NO_CARD, NUM_CARDS, NUM_RANKS, NUM_SUITS, to_mask
from gin_env.rummy40.cards import JOKER, JOKER_NAME, NUM_KINDS, card_name, cards_text, parse_card, parse_cards

DRAW = 0
TAKE = 1
TAKE_BACK = 2
DISCARD = 3
LAY = DISCARD + NUM_KINDS


class Meld(NamedTuple):
    """A meld as it is laid in one action."""

    cards: tuple[int, ...]  # in order, JOKER in its place; sets with the joker last
    real: int  # mask of the cards that are no jokers
    stands: int  # mask of the cards that the joker may stand for: two in a set of three; 0 without a joker
    points: int  # the joker counted as the card it stands for
    low: int  # lowest card of a run, also where a joker stands for it; NO_CARD for a set


def _sets() -> list[Meld]:
    melds = []
    for rank in range(NUM_RANKS):
        of_rank = [suit * NUM_RANKS + rank for suit in range(NUM_SUITS)]
        threes = [[card for card in of_rank if card != missing] for missing in of_rank]
        pairs = [[of_rank[a], of_rank[b]] for a in range(NUM_SUITS) for b in range(a + 1, NUM_SUITS)]
        points = int(CARD_POINTS[rank])
        for real in [*threes, of_rank]:
            melds.append(Meld(tuple(real), to_mask(real), 0, points * len(real), NO_CARD))
        for real in [*pairs, *threes]:
            stands = to_mask(card for card in of_rank if card not in real)
            melds.append(Meld((*real, JOKER), to_mask(real), stands, points * (len(real) + 1), NO_CARD))
    return melds


def _run(first: int, length: int, joker: int) -> Meld:
    cards = list(range(first, first + length))
    points = sum(int(CARD_POINTS[card]) for card in cards)
    if joker < 0:
        return Meld(tuple(cards), to_mask(cards), 0, points, first)
    stands = cards[joker]
    laid = tuple(JOKER if card == stands else card for card in cards)
    return Meld(laid, to_mask(card for card in cards if card != stands), 1 << stands, points, first)


# (length, place of the joker from the low end or -1) of the runs that can be laid in one action, in order.
RUN_SHAPES = tuple((length, joker) for length in (3, 4, 5) for joker in range(-1, length))
SETS_PER_RANK = 15
FIRST_RUN = SETS_PER_RANK * NUM_RANKS

# What can be laid in one action. First the sets, for each rank: the four of three (the suit that is missing in the
# order S H D C), the one of four, the six of two cards and a joker (by suits), the four of three cards and a joker.
# Then the runs by shape, by suit, by lowest card.
MELDS = tuple(_sets()) + tuple(
    _run(suit * NUM_RANKS + low, length, joker)
    for length, joker in RUN_SHAPES
    for suit in range(NUM_SUITS)
    for low in range(NUM_RANKS - length + 1)
)
NUM_MELDS = len(MELDS)


class Place(NamedTuple):
    """A kind of place on the table for one card, of one's hand or that a joker stands for."""

    verb: str  # what is done: add the card, add a joker as the card, or steal a joker for the card
    where: str
    most: int  # melds that can have the place for one card, with two packs
    meaning: str


# With one pack no card has two places of a kind: a run of which two copies were needed would need the same two or three
# cards twice. With two packs each meld below takes at least two of the six cards that can be there (two of three
# neighbours, of three other suits), or one of the two cards beside the joker, or three of six where it has no joker.
PLACES = (
    Place("add", "set", 3, "add the card to the set of its rank"),
    Place("add", "low", 3, "add the card at the low end of a run"),
    Place("add", "high", 3, "add the card at the high end of a run"),
    Place("joker", "set", 2, "add a joker to a set, as the card"),
    Place("joker", "low", 2, "add a joker at the low end of a run, as the card"),
    Place("joker", "high", 2, "add a joker at the high end of a run, as the card"),
    Place("steal", "set", 3, "steal the joker of a set for the card"),
    Place("steal", "low", 2, "steal the joker that is the lowest card of a run for the card"),
    Place("steal", "run", 2, "steal the joker that stands higher in a run for the card"),
)
ADD_SET, ADD_LOW, ADD_HIGH, JOKER_SET, JOKER_LOW, JOKER_HIGH, STEAL_SET, STEAL_LOW, STEAL_RUN = range(len(PLACES))
NUM_PLACES = len(PLACES)
MOST_ALIKE = max(place.most for place in PLACES)

PLACE = LAY + NUM_MELDS
NUM_ACTIONS = PLACE + NUM_PLACES * NUM_CARDS
# (place, which of its kind) of each block of 52 actions from PLACE on: the first ones, then the second, then the third.
BLOCKS = tuple((place, nth) for nth in range(MOST_ALIKE) for place in range(NUM_PLACES) if nth < PLACES[place].most)
NUM_TWO_PACK_ACTIONS = PLACE + len(BLOCKS) * NUM_CARDS


def _action_table() -> tuple[tuple[int, int, str, str], ...]:
    nth = ("", " 2", " 3")
    table = [
        (DRAW, 1, "draw", "take the top card of the stock"),
        (TAKE, 1, "take", "take the top card of the discard pile"),
        (TAKE_BACK, 1, "take-back", "take back melds that do not reach the opening minimum, at a penalty"),
        (DISCARD, NUM_KINDS, "discard CARD", "end the turn with this card; a joker is card 52"),
        (LAY, NUM_MELDS, "lay CARDS", "lay a meld from one's hand; JK is a joker in its place"),
    ]
    for index, (place, which) in enumerate(BLOCKS):
        verb, where, _, meaning = PLACES[place]
        meaning += ("", ", the second such meld", ", the third such meld")[which]
        table.append((PLACE + index * NUM_CARDS, NUM_CARDS, f"{verb} CARD {where}{nth[which]}", meaning))
    return tuple(table)


# (first id, number of ids, form of the names, meaning), for the documentation.
ACTION_TABLE = _action_table()

_WORDS = {DRAW: "draw", TAKE: "take", TAKE_BACK: "take-back"}
_LAYS = {meld.cards: number for number, meld in enumerate(MELDS)}


def meld_of(cards: list[int]) -> int | None:
    """Returns the number in `MELDS` of cards laid in this order, a joker in its place in a run; None if it is no meld.

    The cards of a set may have any order, and so may those of a run without a joker.
    """
    ranks = {card % NUM_RANKS for card in cards if card != JOKER}
    if len(ranks) == 1 or JOKER not in cards:
        cards = sorted(cards)  # the joker, if there is one, comes last
    return _LAYS.get(tuple(cards))


def action_name(action: int) -> str:
    """Returns an action's name.

    One of ``draw``, ``take``, ``take-back``, ``discard TD``, ``lay 5S JK 7S`` and the likes of ``add 8S low``, ``joker
    8S high`` and ``steal 8S set``, with `` 2`` or `` 3`` after them for the second or third such meld.

    Raises:
        ValueError: If ``action`` is not 0 to 1986.
    """
    if action in _WORDS:
        return _WORDS[action]
    if DISCARD <= action < LAY:
        return f"discard {card_name(action - DISCARD)}"
    if LAY <= action < PLACE:
        return f"lay {cards_text(MELDS[action - LAY].cards)}"
    if PLACE <= action < NUM_TWO_PACK_ACTIONS:
        block, card = divmod(action - PLACE, NUM_CARDS)
        place, which = BLOCKS[block]
        return f"{PLACES[place].verb} {card_name(card)} {PLACES[place].where}{f' {which + 1}' if which else ''}"
    raise ValueError(f"action {action} is not one of 0 to {NUM_TWO_PACK_ACTIONS - 1}")


def parse_action(text: str) -> int:
    """Returns the id of an action written as `action_name` writes it.

    Raises:
        ValueError: If the text names no action.
    """
    words = text.strip().lower().split()
    for action, word in _WORDS.items():
        if words == [word]:
            return action
    if len(words) == 2 and words[0] == "discard":
        return DISCARD + parse_card(words[1])
    if len(words) > 1 and words[0] == "lay":
        meld = meld_of(parse_cards(words[1:]))
        if meld is None:
            raise ValueError(
                f"{text!r}: expected a set of 3 or 4 cards or a run of 3 to 5, with at most one {JOKER_NAME}, in a run "
                "where it stands"
            )
        return LAY + meld
    if len(words) in (3, 4):
        for block, (place, which) in enumerate(BLOCKS):
            if words[0] == PLACES[place].verb and words[2:] == [PLACES[place].where] + [str(which + 1)] * bool(which):
                card = parse_card(words[1])
                if card == JOKER:
                    raise ValueError(f"{text!r}: expected the card that the joker stands for, not {JOKER_NAME}")
                return PLACE + block * NUM_CARDS + card
    raise ValueError(
        f"{text!r} is not an action: expected draw, take, take-back, discard CARD, lay CARDS, add CARD set|low|high, "
        "joker CARD set|low|high or steal CARD set|low|run, and 2 or 3 for the second or third such meld"
    )


def action_of(place: int, card: int, which: int = 0) -> int:
    """Returns the action on a place of `PLACES` for a card, of the first (0), second or third such meld."""
    return PLACE + BLOCKS.index((place, which)) * NUM_CARDS + card


# The melds again as kernels read them, each (787,).
MELD_REAL = np.array([meld.real for meld in MELDS], dtype=np.uint64)
MELD_STANDS = np.array([meld.stands for meld in MELDS], dtype=np.uint64)
MELD_SIZE = np.array([len(meld.cards) for meld in MELDS], dtype=np.int64)
MELD_JOKERS = np.array([int(meld.stands != 0) for meld in MELDS], dtype=np.int64)
MELD_POINTS = np.array([meld.points for meld in MELDS], dtype=np.int64)
MELD_LOW = np.array([meld.low for meld in MELDS], dtype=np.int64)
