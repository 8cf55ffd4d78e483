"""The action table: one ``Discrete(108)``, which manual play extends to ``Discrete(449)``.

Ids and names:

=================  =========================================================================================
id                 action
=================  =========================================================================================
0                  pass: refuse the upcard offer, or the last upcard; in manual play: lay no more
1                  draw: take the top card of the stock
2                  take: take the top card of the discard pile (or the upcard)
3 + card           discard ``card`` (3 to 54)
55 + card          knock, discarding ``card`` (55 to 106); with nothing left it is gin
107                big gin: eleven melded cards, no discard
108 + meld         lay a meld of `MELDS` from one's hand (108 to 292)
293 + 52 m + card  lay off ``card`` on the knocker's meld m, of 0 to 2 in the order laid down (293 to 448)
=================  =========================================================================================

The last two kinds exist only where the rules are manual (`gin_env.rules.Rules.num_actions`). The melds are the sets of
three and four and the runs of three, four and five cards; a longer run is laid as several, which is the same in play.
"""

import numpy as np

from gin_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, card_name, cards_text, parse_card, parse_cards, to_mask

PASS = 0
DRAW = 1
TAKE = 2
DISCARD = 3
KNOCK = DISCARD + NUM_CARDS
BIG_GIN = KNOCK + NUM_CARDS
NUM_ACTIONS = BIG_GIN + 1


def _melds() -> list[int]:
    melds = []
    for rank in range(NUM_RANKS):
        of_rank = [suit * NUM_RANKS + rank for suit in range(NUM_SUITS)]
        melds += [to_mask(card for card in of_rank if card != missing) for missing in of_rank]
        melds.append(to_mask(of_rank))
    for length in (3, 4, 5):
        for suit in range(NUM_SUITS):
            for low in range(NUM_RANKS - length + 1):
                first = suit * NUM_RANKS + low
                melds.append(to_mask(range(first, first + length)))
    return melds


# (185,) uint64, what can be laid in one action: for each rank the four sets of three (the suit that is missing in the
# order S H D C) and the set of four; then the runs of three, of four and of five, by suit and lowest card.
MELDS = np.array(_melds(), dtype=np.uint64)
NUM_MELDS = len(MELDS)
MAX_MELDS = 3  # a hand of ten or eleven cards holds at most three: the width of every array of melds

MELD = BIG_GIN + 1
LAYOFF = MELD + NUM_MELDS
NUM_MANUAL_ACTIONS = LAYOFF + MAX_MELDS * NUM_CARDS

_WORDS = {PASS: "pass", DRAW: "draw", TAKE: "take", BIG_GIN: "big-gin"}
_MELD_NUMBERS = {int(mask): number for number, mask in enumerate(MELDS)}


def action_name(action: int) -> str:
    """Returns an action's name.

    One of ``pass``, ``draw``, ``take``, ``discard TD``, ``knock TD``, ``big-gin``, ``meld 7S 7H 7D`` and
    ``layoff 8S 1``, on the knocker's first meld.

    Raises:
        ValueError: If ``action`` is not 0 to 448.
    """
    if action in _WORDS:
        return _WORDS[action]
    if DISCARD <= action < KNOCK:
        return f"discard {card_name(action - DISCARD)}"
    if KNOCK <= action < BIG_GIN:
        return f"knock {card_name(action - KNOCK)}"
    if MELD <= action < LAYOFF:
        return f"meld {cards_text(int(MELDS[action - MELD]))}"
    if LAYOFF <= action < NUM_MANUAL_ACTIONS:
        slot, card = divmod(action - LAYOFF, NUM_CARDS)
        return f"layoff {card_name(card)} {slot + 1}"
    raise ValueError(f"action {action} is not one of 0 to {NUM_MANUAL_ACTIONS - 1}")


def parse_action(text: str) -> int:
    """Returns the id of an action written as `action_name` writes it.

    Raises:
        ValueError: If the text names no action.
    """
    words = text.strip().lower().split()
    for action, word in _WORDS.items():
        if words == [word]:
            return action
    if len(words) == 2 and words[0] in ("discard", "knock"):
        return (DISCARD if words[0] == "discard" else KNOCK) + parse_card(words[1])
    if len(words) > 1 and words[0] == "meld":
        cards = to_mask(parse_cards(words[1:]))
        if cards not in _MELD_NUMBERS:
            raise ValueError(f"{text!r}: expected a set of 3 or 4 cards or a run of 3 to 5")
        return MELD + _MELD_NUMBERS[cards]
    if len(words) == 3 and words[0] == "layoff":
        if words[2] not in ("1", "2", "3"):
            raise ValueError(f"{text!r}: expected the number of one of the knocker's melds, 1 to {MAX_MELDS}")
        return LAYOFF + (int(words[2]) - 1) * NUM_CARDS + parse_card(words[1])
    raise ValueError(
        f"{text!r} is not an action: expected pass, draw, take, discard CARD, knock CARD, big-gin, meld CARDS or "
        "layoff CARD NUMBER"
    )
