"""A seat's view of Rummy40 as text, for people, as `gin_env.render` for gin."""

from collections.abc import Iterable

import numpy as np

from gin_env.cards import CARD_POINTS, NO_CARD, from_mask
from gin_env.render import by_suit
from gin_env.render import card_text as plain_card_text
from gin_env.rummy40.cards import JOKER, JOKER_NAME, held
from gin_env.rummy40.rules import CODES
from gin_env.rummy40.tables import DRAW_ANY, OUT, OVER, TRUNCATED
from gin_env.rummy40.view import OWN

_PILE_SHOWN = 12  # cards of the discard pile, from its top


def card_text(card: int) -> str:
    """Returns a card as people write it, such as ``10♦``, or ``JK`` for a joker."""
    return JOKER_NAME if card == JOKER else plain_card_text(card)


def _cards(cards: Iterable[int]) -> str:
    return " ".join(card_text(int(card)) for card in cards)


def _loose(cards: Iterable[int]) -> str:
    """Cards grouped by suit, jokers last, such as ``♠ A 7   ♦ K   JK``."""
    ids = list(cards)
    groups = [by_suit(card for card in ids if card != JOKER), _cards(card for card in ids if card == JOKER)]
    return "   ".join(filter(None, groups))


def player(view: np.void, who: int) -> str:
    """Returns what a player is called: "you", "opponent", or with four "player 1" for the one after oneself."""
    if who == OWN:
        return "you"
    return "opponent" if view["rules"]["seats"] == 2 else f"player {who}"


def hand_of(view: np.void) -> list[int]:
    """Returns one's own cards, jokers last."""
    return held(view["hand"], view["jokers"])


def known_of(view: np.void, who: int) -> list[int]:
    """Returns the cards that are known to be in another player's hand; once the hand is over all of them."""
    return held(view["known"][who], view["known_jokers"][who])


def points_of(view: np.void, cards: Iterable[int]) -> int:
    """Returns the points of cards that are left in hand."""
    return sum(int(view["rules"]["joker_points"] if card == JOKER else CARD_POINTS[card]) for card in cards)


def melds_of(view: np.void, owner: int) -> list[list[int]]:
    """Returns a player's melds on the table: the cards as they lie, the joker of a set last."""
    melds = []
    for k in range(int(view["num_melds"])):
        if view["meld_owner"][k] != owner:
            continue
        real, stands, low = int(view["meld_cards"][k]), int(view["meld_stands"][k]), int(view["meld_low"][k])
        if low == NO_CARD:
            melds.append(from_mask(real) + [JOKER] * bool(stands))
        else:
            run = range(low, int(view["meld_high"][k]) + 1)
            melds.append([JOKER if stands >> card & 1 else card for card in run])
    return melds


def head_text(view: np.void) -> str:
    """Says who sits where, and what it takes to open."""
    opening = int(view["rules"]["opening"])
    head = f"rummy40  seat {view['seat']}, {'dealer' if view['dealer'] == OWN else 'non-dealer'}"
    return head + (f", {opening} points to open" if opening else ", any meld opens")


def score_text(view: np.void) -> str:
    """Says how the match stands; empty where one hand decides."""
    if not view["limit"]:
        return ""
    scores = [f"{player(view, who)} {view['scores'][who]}" for who in range(int(view["rules"]["seats"]))]
    return ", ".join([*scores, f"to {view['limit']}"])


def state_text(view: np.void) -> str:
    """Says who is to move and what there is to decide, or how the hand ended."""
    if view["phase"] == OVER:
        return _result(view)
    mover = int(view["mover"])
    opened = bool(view["opened"][mover])
    if view["phase"] == DRAW_ANY:
        barred = view["rules"]["pile"] == CODES["opened"] and not opened
        decision = "draw from the stock" + ("" if barred or not view["pile_size"] else " or take the discard")
    elif view["owed"]:
        decision = "place the stolen joker"
    elif view["attempt"]:
        decision = f"{view['attempt_points']} of {view['rules']['opening']} points lie there: lay more"
        if view["rules"]["wrong_opening"] == CODES["penalty"]:
            decision += " or take them back"
    else:
        decision = "lay, add, steal or discard" if opened else "lay or discard"
    return f"{player(view, mover)}: {decision}"


def _result(view: np.void) -> str:
    """How the hand ended, in a sentence."""
    ending = int(view["ending"])
    if ending == TRUNCATED:
        return "broken off after too many draws: nobody counts"
    seats = int(view["rules"]["seats"])
    penalties = view["penalties"][:seats].tolist()
    # As the engine pays: the mean of the others' penalties less one's own.
    won = (sum(penalties) - seats * penalties[OWN]) / (seats - 1)
    gains = f"you {'lost' if won < 0 else 'won'} {abs(won):.4g}"
    if ending == OUT:
        return f"{player(view, int(view['out']))} went out: {gains}"
    return f"the stock ran out: {gains}"


def other_text(view: np.void, who: int) -> str:
    """Says what another player holds and whether it has opened; once the hand is over what it had left."""
    known = known_of(view, who)
    if view["phase"] == OVER:
        return f"{_loose(known) or 'nothing left'}  ({view['penalties'][who]} points)"
    parts = [f"{int(view['num_cards'][who]) - len(known)} hidden"]
    if known:
        parts.append(f"known {_cards(known)}")
    if view["opened"][who]:
        parts.append("opened")
    if view["booked"][who]:
        parts.append(f"{view['booked'][who]} points booked")
    return ", ".join(parts)


def own_text(view: np.void) -> str:
    """Says what one's own cards count and whether one has opened; once the hand is over what they cost."""
    if view["phase"] == OVER:
        return f"{view['penalties'][OWN]} points"
    parts = [f"{points_of(view, hand_of(view))} points", "opened" if view["opened"][OWN] else "not opened"]
    if view["booked"][OWN]:
        parts.append(f"{view['booked'][OWN]} points booked")
    return ", ".join(parts)


def render_text(view: np.void) -> str:
    """Returns one seat's view as lines of text.

    Args:
        view: A row of `gin_env.rummy40.view.VIEW_DTYPE`.
    """
    seats = range(int(view["rules"]["seats"]))
    over = view["phase"] == OVER
    lines = [head_text(view)]
    if view["limit"]:
        lines.append(f"score      {score_text(view)}")
    if over:
        lines.append(f"result     {_result(view)}")
    lines += [f"{player(view, who):10} {other_text(view, who)}" for who in seats[1:]]
    label = "table"
    for who in seats:
        melds = melds_of(view, who)
        if melds:
            lines.append(f"{label:10} {player(view, who)}: {'  '.join(f'[{_cards(meld)}]' for meld in melds)}")
            label = ""
    if not over:
        size = int(view["pile_size"])
        pile = view["pile"][max(size - _PILE_SHOWN, 0) : size]
        below = f"({size - len(pile)} below) " if size > len(pile) else ""
        lines.append(f"stock      {view['stock']} cards")
        lines.append(f"pile       {below}{_cards(pile) or 'empty'}{' <- top' if size else ''}")
    lines.append(f"hand       {_loose(hand_of(view)) or 'nothing left'}  ({own_text(view)})")
    if not over:
        for field, said in (("drawn", "drew"), ("taken", "took")):
            if view["to_move"] and view[field] != NO_CARD:
                lines.append(f"you {said}   {card_text(int(view[field]))}")
        lines.append(f"to move    {state_text(view)}")
    return "\n".join(lines)
