"""A seat's view as text, for people."""

from collections.abc import Iterable

import numpy as np

from gin_env.cards import NO_CARD, NUM_CARDS, NUM_RANKS, RANKS, SUIT_GLYPHS, SUITS, card_name, from_mask
from gin_env.melds import arrange, deadwood_after
from gin_env.rules import CODES
from gin_env.tables import (
    BIG_GINNED,
    DEAD,
    DECLARE,
    DEFEND,
    DRAW_ANY,
    DRAW_STOCK,
    GINNED,
    KNOCKED,
    LAY_OFF,
    OFFER,
    OFFER_DEALER,
    OVER,
    THROW,
    TIED,
    TRUNCATED,
    UNDERCUT,
    WALL,
    WALL_THROW,
)
from gin_env.view import OWN

_PILE_SHOWN = 12  # cards of the discard pile, from its top

_DECISIONS = {
    OFFER: "take the upcard or pass",
    OFFER_DEALER: "take the upcard or pass",
    DRAW_STOCK: "draw from the stock",
    DRAW_ANY: "draw from the stock or take the discard",
    THROW: "discard or knock",
    WALL: "knock with the discard or pass",
    WALL_THROW: "knock",
    DECLARE: "lay melds, or pass",
    LAY_OFF: "lay off, or pass",
    DEFEND: "lay melds, or pass",
}


def card_text(card: int) -> str:
    """Returns a card as people write it, such as ``10♦``."""
    name = card_name(card)
    return name[0].replace("T", "10") + SUIT_GLYPHS[name[1]]


def _cards(cards: Iterable[int]) -> str:
    return " ".join(card_text(int(card)) for card in cards)


def _meld(mask: int) -> str:
    return "[" + _cards(from_mask(int(mask))) + "]"


def by_suit(cards: Iterable[int]) -> str:
    """Returns cards grouped by suit, such as ``♠ A 7   ♦ K``."""
    held = sorted(cards)
    groups = []
    for suit, letter in enumerate(SUITS):
        ranks = [RANKS[card % NUM_RANKS].replace("T", "10") for card in held if card // NUM_RANKS == suit]
        if ranks:
            groups.append(SUIT_GLYPHS[letter] + " " + " ".join(ranks))
    return "   ".join(groups)


def _loose(mask: int) -> str:
    return by_suit(from_mask(mask))


def _hand(hand: int, melds: Iterable[int], laid_off: int = 0) -> str:
    """A hand with its melds first, then its other cards."""
    shown = [int(meld) for meld in melds if meld]
    loose = hand & ~laid_off
    for meld in shown:
        loose &= ~meld
    parts = [_meld(meld) for meld in shown]
    if loose:
        parts.append(_loose(loose))
    return "  ".join(parts)


def pack_of(rules: np.void) -> int:
    """Returns the mask of the cards in play from a row of `gin_env.rules.RULES_DTYPE`."""
    return int(rules["pack"])


def _playing(view: np.void) -> list[str]:
    """The lines of a hand that goes on."""
    hand = int(view["hand"])
    known = int(view["opponent_known"])
    hidden = int(view["opponent_cards"]) - known.bit_count()
    opponent = f"{hidden} hidden" + (f", known {_cards(from_mask(known))}" if known else "")
    size = int(view["pile_size"])
    pile = view["pile"][max(size - _PILE_SHOWN, 0) : size]
    below = f"({size - len(pile)} below) " if size > len(pile) else ""
    hands = np.array([hand], dtype=np.uint64)
    laid = arrange(hands, pack_of(view["rules"]))
    deadwood = str(laid.deadwood[0])
    if view["phase"] in (THROW, WALL_THROW) and view["to_move"]:
        after = deadwood_after(hands)[0]
        may_throw = after >= 0
        if view["taken"] != NO_CARD and not view["rules"]["rediscard"]:
            may_throw &= np.arange(NUM_CARDS) != view["taken"]
        deadwood = f"{after[may_throw].min()} after the best discard"
    lines = [
        f"opponent   {opponent}",
        f"stock      {view['stock']} cards",
        f"pile       {below}{_cards(pile) or 'empty'}{' <- top' if size else ''}",
        f"hand       {_hand(hand, laid.melds[0])}",
        f"deadwood   {deadwood}",
    ]
    for field, said in (("drawn", "drew"), ("taken", "took")):
        if view["to_move"] and view[field] != NO_CARD:
            lines.append(f"you {said}   {card_text(int(view[field]))}")
    lines.append(f"to move    {state_text(view)}")
    return lines


def _laying(view: np.void) -> list[str]:
    """The lines between a knock and the end of the hand: what lies on the table, and what is left in hand."""
    own_knock = view["knocker"] == OWN
    knocker, defender = ("own", "opponent") if own_knock else ("opponent", "own")
    who = {"own": "you", "opponent": "opponent"}
    off = [int(cards) for cards in view["layoffs"]]
    lines = [f"knocked    {who[knocker]}"]
    for number, (meld, added) in enumerate(zip(view[f"{knocker}_melds"], off, strict=True), start=1):
        if meld:
            lines.append(f"meld {number}     {_meld(meld)}" + (f" + {_cards(from_mask(added))}" if added else ""))
    if view[f"{knocker}_deadwood"] >= 0:
        shown = int(view["hand"] if own_knock else view["opponent_known"])
        loose = shown & ~sum(int(meld) for meld in view[f"{knocker}_melds"])
        lines.append(f"knocked on {view[f'{knocker}_deadwood']}{'  ' + _loose(loose) if loose else ''}")
    hidden = int(view["opponent_cards"]) - int(view["opponent_known"]).bit_count()
    if hidden:
        lines.append(f"opponent   {hidden} hidden")
    melds = [int(meld) for meld in view[f"{defender}_melds"] if meld]
    if melds:
        lines.append(f"defence    {'  '.join(_meld(meld) for meld in melds)}")
    left = int(view["hand"]) & ~sum(int(meld) for meld in view["own_melds"])
    left &= ~0 if own_knock else ~sum(off)
    lines.append(f"hand       {_loose(left) or 'nothing left'}")
    lines.append(f"to move    {state_text(view)}")
    return lines


def _result(view: np.void) -> str:
    """How the hand ended, in a sentence."""
    ending, points = int(view["ending"]), int(view["own_points"])
    won, lost = ("you", "the opponent") if points > 0 else ("the opponent", "you")
    gains = f"{won} won {abs(points)}"
    sentences = {
        KNOCKED: f"{won} knocked and won {abs(points)}",
        GINNED: f"gin: {gains}",
        BIG_GINNED: f"big gin: {gains}",
        UNDERCUT: f"{lost} knocked and {'were' if lost == 'you' else 'was'} undercut: {gains}",
        TIED: "a tie: nobody scores",
        DEAD: "dead hand, the stock ran out: nobody scores",
        TRUNCATED: "broken off after too many draws: nobody scores",
    }
    return sentences[ending]


def _ended(view: np.void) -> list[str]:
    """The lines of a hand that is over: the result and both hands."""
    layoffs = [int(cards) for cards in view["layoffs"] if cards]
    laid_off = sum(layoffs)
    lines = [f"result     {_result(view)}"]
    for side, label, hand in (("own", "hand", view["hand"]), ("opponent", "opponent", view["opponent_known"])):
        cards = int(hand)
        lines.append(f"{label:10} {_hand(cards, view[side + '_melds'], laid_off)}")
        if laid_off & cards:
            lines.append(f"           laid off {_cards(from_mask(laid_off))}")
        lines.append(f"           deadwood {view[side + '_deadwood']}")
    return lines


def head_text(view: np.void) -> str:
    """Says who sits where, and with how much one may knock."""
    doubled = ", doubled"
    if view["rules"]["double_spades"] == CODES["deadwood"]:
        doubled = ", difference doubled"
    head = f"gin rummy  seat {view['seat']}, {'dealer' if view['is_dealer'] else 'non-dealer'}"
    head += f", knock with {view['limit']} or less" if view["limit"] else ", gin only"
    return head + (doubled if view["doubled"] else "")


def state_text(view: np.void) -> str:
    """Says who is to move and what there is to decide, or how the hand ended."""
    if view["phase"] == OVER:
        return _result(view)
    return f"{'you' if view['to_move'] else 'opponent'}: {_DECISIONS[int(view['phase'])]}"


def render_text(view: np.void) -> str:
    """Returns one seat's view as lines of text.

    Args:
        view: A row of `gin_env.view.VIEW_DTYPE`.
    """
    lines = [head_text(view)]
    if view["target"]:
        lines.append(f"score      you {view['own_score']}, opponent {view['opponent_score']}, to {view['target']}")
    if view["phase"] == OVER:
        lines += _ended(view)
    else:
        lines += _laying(view) if view["phase"] >= DECLARE else _playing(view)
    return "\n".join(lines)
