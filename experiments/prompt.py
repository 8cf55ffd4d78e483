"""What a person at the terminal sees and may type: the words of `experiments.play`."""

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from agents.base import Agent
from agents.laying import lay
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, LAYOFF, PASS, TAKE, action_name, parse_action
from gin_env.cards import NO_CARD, NUM_CARDS, card_name, from_mask, parse_card
from gin_env.melds import deadwood, deadwood_after
from gin_env.render import card_text, render_text
from gin_env.tables import DECLARE, DEFEND, LAY_OFF, THROW, WALL_THROW
from gin_env.view import View

HELP = """\
d            draw from the stock
t            take the top of the discard pile, or the upcard
p            pass: refuse the upcard; lay no more
7h           throw 7♥ (10h or th is 10♥)
k 7h         knock, throwing 7♥
g            go gin, or big gin
m 7h 8h 9h   lay a meld        } where the rules leave it to you
l 9s 1       lay off 9♠ on the first meld of the knocker
a            lay melds and lay off, the best of each
h            a hint: what the adviser would play, and your outs
Enter        show the table again
q            quit
?            this"""
PRACTICE_HELP = """
u            take back your last move
o            show the opponent's cards"""
_SHOWN = 5  # actions of a hint


def read_move(text: str, view: np.void, legal: list[int]) -> int:
    """Returns the action that a person means.

    Args:
        text: As in `HELP`, or as `gin_env.actions.action_name` writes it.
        view: A row of the person's view.
        legal: The legal actions.

    Raises:
        ValueError: If it is no action, or not legal; says why.
    """
    words = text.lower().split()
    plain = {"d": DRAW, "draw": DRAW, "t": TAKE, "take": TAKE, "p": PASS, "pass": PASS}
    if len(words) == 1 and words[0] in plain:
        action = plain[words[0]]
    elif words in (["g"], ["gin"]):
        action = _gin(view, legal)
    elif words in (["a"], ["auto"]) and view["phase"] >= DECLARE:
        action = int(lay(np.array([view]), np.zeros(1, dtype=np.int64))[0])
    else:
        action = _read_cards(words, view, legal)
    if action not in legal:
        raise ValueError(f"{_why_not(action, view)}; {options(view, legal)}")
    return action


def _read_cards(words: list[str], view: np.void, legal: list[int]) -> int:
    text = " ".join(words)
    word, *rest = words
    try:
        if word == "m":
            return parse_action("meld " + " ".join(rest))
        if word in ("l", "layoff"):
            one = len(rest) == 1
            return _only_layoff(parse_card(rest[0]), legal) if one else parse_action("layoff " + " ".join(rest))
        if word == "k":
            return KNOCK + parse_card(text[1:])
        if not rest and len(word) < 4:
            # K7H as in a record; KH is a king.
            return KNOCK + parse_card(word[1:]) if word[0] == "k" and len(word) > 2 else DISCARD + parse_card(word)
        return parse_action(text)
    except ValueError:
        raise ValueError(f"{text!r} is not understood; {options(view, legal)}; ? for help") from None


def _only_layoff(card: int, legal: list[int]) -> int:
    fitting = [action for action in legal if action >= LAYOFF and (action - LAYOFF) % NUM_CARDS == card]
    return fitting[0] if len(fitting) == 1 else LAYOFF + card


def _gin(view: np.void, legal: list[int]) -> int:
    if BIG_GIN in legal:
        return BIG_GIN
    after = _after(view)
    return next((action for action in legal if KNOCK <= action < BIG_GIN and after[action - KNOCK] == 0), BIG_GIN)


def _after(view: np.void) -> np.ndarray:
    """(52,) deadwood left by each throw, points."""
    return deadwood_after(np.array([view["hand"]], dtype=np.uint64))[0]


def _why_not(action: int, view: np.void) -> str:
    throws = view["phase"] in (THROW, WALL_THROW)
    if action == BIG_GIN:
        return "that is not gin"
    if DISCARD <= action < BIG_GIN and throws:
        card = (action - DISCARD) % NUM_CARDS
        shown = card_text(card)
        if not int(view["hand"]) >> card & 1:
            return f"you do not hold {shown}"
        if card == view["taken"] and not view["rules"]["rediscard"]:
            return f"{shown} was taken from the pile in this turn and may not be thrown"
        if action >= KNOCK:
            return f"without {shown} you have {_after(view)[card]}, more than {view['limit']} to knock with"
    return f"you may not {action_name(action)} now"


def options(view: np.void, legal: list[int]) -> str:
    """Says what may be typed."""
    phase = view["phase"]
    parts = []
    if DRAW in legal:
        parts.append("d draw")
    if TAKE in legal:
        parts.append(f"t take {card_text(int(view['upcard']))}")
    if phase == THROW:
        parts.append("a card to throw")
    if phase in (THROW, WALL_THROW):
        after = _after(view)
        knocks = [action - KNOCK for action in legal if KNOCK <= action < BIG_GIN]
        if BIG_GIN in legal or any(after[card] == 0 for card in knocks):
            parts.append("g gin")
        shown = ", ".join(f"k {card_name(card).lower()} ({after[card]})" for card in knocks if after[card] > 0)
        parts += [f"knock: {shown}"] if shown else []
    if phase in (DECLARE, DEFEND) and max(legal) > BIG_GIN:
        parts.append("m CARDS to lay a meld")
    if phase == LAY_OFF:
        offs = [divmod(action - LAYOFF, NUM_CARDS) for action in legal if action >= LAYOFF]
        parts += [f"l {card_name(card).lower()} {meld + 1}" for meld, card in offs]
    if phase >= DECLARE:
        parts.append("a the best")
    if PASS in legal:
        parts.append("p done" if phase >= DECLARE else "p pass")
    return ", ".join(parts)


# ------------------------------------------------------------------------------------------------------------- seeing


def view_table(view: np.void, name: str) -> Table:
    """Returns a seat's view as a table.

    Args:
        view: A row of `gin_env.view.VIEW_DTYPE`.
        name: The opponent's.
    """
    head, *lines = render_text(view).splitlines()
    table = Table(title=head.partition("  ")[2], title_justify="left", show_header=False, box=box.ROUNDED)
    table.add_column(no_wrap=True, max_width=24)
    table.add_column(overflow="fold")
    for line in lines:
        label, value = line[:11].strip(), line[11:]
        table.add_row(name if label == "opponent" else label, coloured(value))
        if label == "opponent" and view["phase"] < DECLARE:
            for field, said in (("opponent_thrown", "  threw"), ("opponent_declined", "  refused")):
                if view[field]:
                    table.add_row(said, coloured(cards_text(int(view[field]))))
    return table


def cards_text(mask: int) -> str:
    """Returns cards as people write them."""
    return " ".join(card_text(card) for card in from_mask(mask))


def coloured(text: str, style: str = "") -> Text:
    """Returns a text with the red cards in red."""
    shown = Text(text, style=style)
    shown.highlight_regex(r"\b(?:10|[2-9AJQK])[♥♦]|[♥♦](?: (?:10|[2-9AJQK])\b)+", "red")
    return shown


# --------------------------------------------------------------------------------------------------------------- hints


def outs(hand: int, unseen: int) -> list[tuple[int, int]]:
    """Returns the unseen cards that would complete or lengthen a meld, and the deadwood then left after a throw.

    Args:
        hand: Mask of ten cards or fewer.
        unseen: Mask of the cards that may still come.
    """
    cards = from_mask(unseen & ~hand)
    hands = np.array([hand | 1 << card for card in cards], dtype=np.uint64)
    # A card that stays loose adds its points; one in a meld adds none.
    melded = deadwood(hands) <= deadwood(np.array([hand], dtype=np.uint64))[0]
    after = deadwood_after(hands)
    least = np.where(after < 0, after.max(initial=0) + 1, after).min(axis=1, initial=1000)
    return [(card, int(left)) for card, left, good in zip(cards, least, melded, strict=True) if good]


def hint_lines(adviser: Agent, view: View, mask: np.ndarray, key: np.ndarray) -> list[str]:
    """Returns what an agent would play and how likely each action is, and the outs.

    Args:
        adviser: The agent.
        view: (1,) the person's view.
        mask: (1, A) int8.
        key: (1,) uint64.
    """
    v = view[0]
    tell = getattr(adviser, "probabilities", None)
    if tell is None:
        action = int(adviser.act(view, mask, key)[0])
        lines = [f"{adviser.name} would {move_text(action)}"]
    else:
        chances = tell(view, mask)[0]
        best = np.argsort(-chances, kind="stable")[:_SHOWN]
        action = int(best[0])
        shown = ", ".join(f"{move_text(int(one))} {chances[one]:.0%}" for one in best if chances[one] >= 0.005)
        lines = [f"{adviser.name} would {shown}"]
    if v["phase"] >= DECLARE:
        return lines
    hand = int(v["hand"])
    if DISCARD <= action < BIG_GIN:
        hand &= ~(1 << (action - DISCARD) % NUM_CARDS)
    elif v["phase"] in (THROW, WALL_THROW):
        return lines
    seen = int(v["hand"]) | int(v["opponent_known"]) | sum(1 << int(card) for card in v["pile"] if card != NO_CARD)
    unseen = int(v["rules"]["pack"]) & ~seen
    found = outs(hand, unseen)
    cards = ", ".join(f"{card_text(card)} ({left or 'gin'})" for card, left in found)
    lines.append(f"outs: {len(found)} of {unseen.bit_count()} unseen cards" + (f", leaving: {cards}" if cards else ""))
    return lines


def move_text(action: int) -> str:
    """Returns an action in words for people, such as ``knock with 10♦``."""
    if action in (PASS, DRAW, TAKE, BIG_GIN):
        return {PASS: "pass", DRAW: "draw", TAKE: "take", BIG_GIN: "declare big gin"}[action]
    if action < BIG_GIN:
        return ("throw " if action < KNOCK else "knock with ") + card_text((action - DISCARD) % NUM_CARDS)
    word, *cards = action_name(action).split()
    shown = " ".join(card_text(parse_card(card)) for card in cards[: 1 if word == "layoff" else None])
    return f"lay off {shown} on meld {cards[1]}" if word == "layoff" else f"lay {shown}"
