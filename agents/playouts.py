"""Fast players that play hands to the end on the tables themselves, for players that think ahead.

A style is a row of numbers (`STYLE` names them), so that one compiled loop plays all of them. The kind GREEDY plays as
`agents.baselines.GreedyAgent` does. Another kind of player is another number, and a branch in `style_action`.
"""

import numpy as np

from agents.baselines import greedy_throw
from gin_env._compile import kernel
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE
from gin_env.cards import NO_CARD, NUM_RANKS
from gin_env.engine import play
from gin_env.melds import INT_POINTS, bit, least_after_discard, least_deadwood, most_points, suit_of, suits_held
from gin_env.rules import CODES, MAX_HAND_SIZE
from gin_env.tables import DRAW_ANY, DRAW_STOCK, NOBODY, OVER, THROW, WALL, WALL_THROW

_AUTO, _BEST, _MANUAL = CODES["auto"], CODES["best"], CODES["manual"]

# What the numbers of a style mean.
STYLE = (
    ("kind", "who plays: GREEDY"),
    ("early", "most deadwood to knock with during the early draws, points"),
    ("late", "the same from then on"),
    ("early_draws", "own draws"),
    ("melds_only", "1 to take a discard only where it completes a meld"),
)
KIND, EARLY, LATE, EARLY_DRAWS, MELDS_ONLY = range(len(STYLE))
GREEDY = 0


@kernel
def completes(hand, card):
    """Whether a card lies in a set or a run with two others of a hand."""
    rank = card % NUM_RANKS
    suits = suits_held(hand, rank)
    if suits & (suits - 1):
        return True
    # Bits 0 and 1 are the two ranks below, 3 and 4 the two above.
    near = (suit_of(hand, card // NUM_RANKS) << 2) >> rank
    return near & 3 == 3 or near & 10 == 10 or near & 24 == 24


@kernel
def lowers(hand, card):
    """Whether taking a card and throwing another one leaves less deadwood than the hand has."""
    # A card that completes nothing can only take the place of a dearer one.
    if most_points(hand) <= INT_POINTS[card] and not completes(hand, card):
        return False
    return least_after_discard(hand | bit(card), card) < least_deadwood(hand)


@kernel
def style_action(t, style, after):
    """What a style plays at a table, before any knock.

    Args:
        t: A row of tables.
        style: Numbers, see `STYLE`.
        after: (52,) int64, scratch.

    Returns:
        An action id.
    """
    # A further kind begins here: if style[KIND] == STRATEGIST: return strategist_action(t, ...)
    phase = t.phase
    hand = t.hands[t.mover]
    own_draws = (t.draws + 1 + (phase == WALL)) // 2
    threshold = style[EARLY] if own_draws <= style[EARLY_DRAWS] else style[LATE]
    if phase == THROW or phase == WALL_THROW:
        banned = np.int64(NO_CARD) if t.rules.rediscard else np.int64(t.taken)
        best = greedy_throw(hand, banned, after)
        # Eleven melded cards hold a meld of four, so that one can be spared. Smaller hands may be melded in threes.
        if t.rules.big_gin_bonus >= 0 and (after[best] == 0 or t.rules.hand_size < MAX_HAND_SIZE):
            if least_deadwood(hand) == 0:
                return BIG_GIN
        knocks = phase == WALL_THROW or (after[best] <= threshold and after[best] <= t.limit)
        return KNOCK + best if knocks else DISCARD + best
    if phase == DRAW_STOCK:
        return DRAW
    top = np.int64(t.pile[t.pile_size - 1])
    if phase == WALL:
        held = hand | bit(top)
        least = least_after_discard(held, top)
        may_knock = least <= t.limit or (t.rules.big_gin_bonus >= 0 and least_deadwood(held) == 0)
        return TAKE if may_knock and least <= threshold else PASS
    if lowers(hand, top) and (style[MELDS_ONLY] == 0 or completes(hand, top)):
        return TAKE
    return DRAW if phase == DRAW_ANY else PASS


@kernel
def lay_by_itself(t):
    """Makes melds and layoffs automatic at a table, as those lay who lay well, so that a knock settles the hand."""
    if t.rules.manual:
        t.rules.manual = 0
        t.rules.knocker_melds = _AUTO
        t.rules.defender_melds = _AUTO
        if t.rules.layoffs == _MANUAL:
            t.rules.layoffs = _BEST


@kernel
def play_out(t, action, own, other, after):
    """Plays an action and then the hand to its end.

    Args:
        t: A row of tables whose rules are not manual, before any knock; changed.
        action: What its mover plays.
        own: How the mover plays on, a style.
        other: How its opponent does.
        after: (52,) int64, scratch.

    Returns:
        Points that the mover wins or, negative, loses.
    """
    seat = np.int64(t.mover)
    play(t, action)
    while t.phase != OVER:
        play(t, style_action(t, own if t.mover == seat else other, after))
    if t.winner == NOBODY:
        return 0
    return np.int64(t.points) if t.winner == seat else -np.int64(t.points)
