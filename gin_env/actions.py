"""The action table, one ``Discrete(108)`` for every gin preset.

Ids and names:

=========  ================================================================
id         action
=========  ================================================================
0          pass: refuse the upcard offer
1          draw: take the top card of the stock
2          take: take the top card of the discard pile (or the upcard)
3 + card   discard ``card`` (3 to 54)
55 + card  knock, discarding ``card`` (55 to 106); with nothing left it is gin
107        big gin: eleven melded cards, no discard
=========  ================================================================
"""

from gin_env.cards import NUM_CARDS, card_name, parse_card

PASS = 0
DRAW = 1
TAKE = 2
DISCARD = 3
KNOCK = DISCARD + NUM_CARDS
BIG_GIN = KNOCK + NUM_CARDS
NUM_ACTIONS = BIG_GIN + 1

_WORDS = {PASS: "pass", DRAW: "draw", TAKE: "take", BIG_GIN: "big-gin"}


def action_name(action: int) -> str:
    """Returns an action's name: ``pass``, ``draw``, ``take``, ``discard TD``, ``knock TD`` or ``big-gin``.

    Raises:
        ValueError: If ``action`` is not 0 to 107.
    """
    if action in _WORDS:
        return _WORDS[action]
    if DISCARD <= action < KNOCK:
        return f"discard {card_name(action - DISCARD)}"
    if KNOCK <= action < BIG_GIN:
        return f"knock {card_name(action - KNOCK)}"
    raise ValueError(f"action {action} is not one of 0 to {NUM_ACTIONS - 1}")


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
    raise ValueError(f"{text!r} is not an action: expected pass, draw, take, discard CARD, knock CARD or big-gin")
