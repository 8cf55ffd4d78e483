"""From the knock to the score: melds, layoffs, points. Compiled helpers of `gin_env.engine`, on one table.

Where the rules are automatic a knock settles the hand at once. Where they are manual it goes on in up to three phases:
the knocker lays melds (DECLARE), the defender lays off (LAY_OFF, not after gin), the defender lays melds (DEFEND).
Each lasts until its mover passes. No phase can get stuck: a meld may only be laid if the rest can still come within the
limit, and the defender may always pass.
"""

from gin_env._compile import count, kernel, lowest, write_cards
from gin_env.actions import BIG_GIN, LAYOFF, MAX_MELDS, MELD, MELDS, NUM_MELDS, PASS
from gin_env.cards import NO_CARD, NUM_CARDS, NUM_RANKS
from gin_env.melds import INT_POINTS, arrange_hand, bit, defend_hand, is_run, least_deadwood, rank_cards
from gin_env.rules import CODES
from gin_env.tables import (
    BIG_GINNED,
    DEAD,
    DECLARE,
    DEFEND,
    EPISODE_ENDED,
    GINNED,
    GOING_ON,
    HAND_ENDED,
    KNOCKED,
    LAY_OFF,
    NOBODY,
    OVER,
    TIED,
    TRUNCATED,
    UNDERCUT,
)

_MANUAL, _BEST = CODES["manual"], CODES["best"]
_TIE_UNDERCUTS = CODES["undercut"]
_DOUBLE_ALL = CODES["all"]


@kernel
def score(rules, doubled, ending, knocker_deadwood, defender_deadwood):
    """Scores a knock, gin or big gin.

    Args:
        rules: A row of `RULES_DTYPE`.
        doubled: Whether the hand's spade upcard doubles it.
        ending: KNOCKED, GINNED or BIG_GINNED, as declared.
        knocker_deadwood: Points left to the knocker.
        defender_deadwood: Points left to the defender after layoffs.

    Returns:
        The ending (KNOCKED may become UNDERCUT or TIED), 1 if the knocker won, -1 if the defender did or 0, and the
        points won.
    """
    factor = 2 if doubled else 1
    bonus_factor = 2 if doubled and rules.double_spades == _DOUBLE_ALL else 1
    if ending == GINNED:
        return ending, 1, factor * defender_deadwood + bonus_factor * rules.gin_bonus
    if ending == BIG_GINNED:
        return ending, 1, factor * defender_deadwood + bonus_factor * rules.big_gin_bonus
    difference = defender_deadwood - knocker_deadwood
    if difference > 0:
        return KNOCKED, 1, factor * difference
    if difference < 0 or rules.tie == _TIE_UNDERCUTS:
        return UNDERCUT, -1, -factor * difference + bonus_factor * rules.undercut_bonus
    return TIED, 0, 0


@kernel
def episode_over(t):
    """Whether the table's episode is over, once a hand has ended there."""
    if not t.to_target or t.match_winner != NOBODY:
        return True
    # A match of one hand: it takes one that was played to an end.
    return t.rules.target < 0 and t.ending != DEAD and t.ending != TRUNCATED


@kernel
def end_hand(t, ending, winner, points):
    """Books the result of the table's hand and says whether its episode is over."""
    t.phase = OVER
    t.ending = ending
    t.winner = winner
    t.points = points
    t.num_turns = t.draws
    for seat in range(2):
        t.final_hands[seat] = t.hands[seat]
    if winner != NOBODY:
        t.scores[winner] += points
        # Without a target (-1) the first points win.
        if t.to_target and t.scores[winner] >= t.rules.target:
            t.match_winner = winner
    return EPISODE_ENDED if episode_over(t) else HAND_ENDED


@kernel
def end_unscored(t, ending):
    """Ends a dead or truncated hand: both hands as they would best be laid, no points."""
    t.knocker = NOBODY
    pack = t.rules.pack
    t.layoffs[:] = 0
    for seat in range(2):
        t.deadwood[seat] = arrange_hand(t.hands[seat], pack, t.melds[seat])
    return end_hand(t, ending, NOBODY, 0)


# ---------------------------------------------------------------------------------------------------------- laying


@kernel
def card_points(cards):
    """Points of all the cards of a mask."""
    points = 0
    while cards:
        points += INT_POINTS[lowest(cards)]
        cards &= cards - bit(0)
    return points


@kernel
def fitting(meld):
    """The cards that can be laid off on a meld at once."""
    low = lowest(meld)
    if not is_run(meld):
        return rank_cards(low % NUM_RANKS) & ~meld
    high = low + count(meld) - 1
    cards = bit(low - 1) if low % NUM_RANKS > 0 else meld & ~meld
    return cards | bit(high + 1) if high % NUM_RANKS < NUM_RANKS - 1 else cards


@kernel
def unlaid(t, seat):
    """The cards of a seat's hand that it has neither laid in melds nor laid off."""
    laid = t.laid[seat, 0] | t.laid[seat, 1] | t.laid[seat, 2]
    if seat != t.knocking:
        laid |= t.laid_off[0] | t.laid_off[1] | t.laid_off[2]
    return t.hands[seat] & ~laid


@kernel
def lay_meld(t, seat, meld):
    """Lays a meld from a seat's hand."""
    slot = 0
    while t.laid[seat, slot]:
        slot += 1
    t.laid[seat, slot] = meld
    t.known[seat] |= meld


@kernel
def lay_off_ascending(t, defender):
    """Lays off the lowest card that fits, on the first meld that takes it, until none fits."""
    knocker = 1 - defender
    laid = True
    while laid:
        laid = False
        rest = unlaid(t, defender)
        while rest and not laid:
            card = bit(lowest(rest))
            rest &= ~card
            for slot in range(MAX_MELDS):
                meld = t.laid[knocker, slot]
                if meld and fitting(meld | t.laid_off[slot]) & card:
                    t.laid_off[slot] |= card
                    laid = True
                    break


@kernel
def declared(t):
    """What the knocker has declared: KNOCKED, GINNED or BIG_GINNED."""
    if count(t.hands[t.knocking]) > t.rules.hand_size:
        return BIG_GINNED
    return GINNED if t.knocked_with == 0 else KNOCKED


@kernel
def knock(t, big):
    """Begins the showdown of a knock, once its card is thrown, or of a big gin. Returns how the table stands."""
    knocker = t.mover
    t.knocking = knocker
    # Nobody has a choice how to lay eleven melded cards.
    if t.rules.knocker_melds == _MANUAL and not big:
        t.phase = DECLARE
        return GOING_ON
    t.knocked_with = arrange_hand(t.hands[knocker], t.rules.pack, t.laid[knocker])
    return answer(t)


@kernel
def answer(t):
    """Goes on when the knocker's melds are on the table."""
    rules = t.rules
    if rules.manual:
        t.known[t.knocking] = t.hands[t.knocking]
        t.mover = 1 - t.knocking
        # The turn of a big gin was not ended by a throw.
        t.taken = NO_CARD
        t.drawn = NO_CARD
        if rules.layoffs == _MANUAL and declared(t) == KNOCKED:
            t.phase = LAY_OFF
            return GOING_ON
        if rules.defender_melds == _MANUAL:
            t.phase = DEFEND
            return GOING_ON
    return settle(t)


@kernel
def settle(t):
    """Lays what the defender does not lay itself, and scores."""
    rules = t.rules
    knocker = t.knocking
    defender = 1 - knocker
    ending = declared(t)
    if rules.layoffs == _BEST:
        left = defend_hand(t.hands[defender], t.laid[knocker], ending != KNOCKED, t.laid[defender], t.laid_off)
    else:
        if rules.defender_melds != _MANUAL:
            arrange_hand(unlaid(t, defender), rules.pack, t.laid[defender])
        if rules.layoffs != _MANUAL and ending == KNOCKED:
            lay_off_ascending(t, defender)
        left = card_points(unlaid(t, defender))
    t.knocker = knocker
    t.deadwood[knocker] = t.knocked_with
    t.deadwood[defender] = left
    for k in range(MAX_MELDS):
        t.melds[0, k] = t.laid[0, k]
        t.melds[1, k] = t.laid[1, k]
        t.layoffs[k] = t.laid_off[k]
    ending, sign, points = score(rules, t.doubled, ending, t.knocked_with, left)
    return end_hand(t, ending, NOBODY if sign == 0 else knocker if sign > 0 else defender, points)


# ------------------------------------------------------------------------------------------------- the three phases


@kernel
def may_lay(t, meld):
    """Whether the mover may lay a meld now."""
    rest = unlaid(t, t.mover)
    if meld & ~rest:
        return False
    return t.phase == DEFEND or least_deadwood(rest & ~meld) <= t.limit


@kernel
def may_stop(t):
    """Whether the mover may pass in the showdown: the knocker only within the limit."""
    return t.phase != DECLARE or card_points(unlaid(t, t.mover)) <= t.limit


@kernel
def layoffs_on(t, slot):
    """The cards that the mover may lay off on one of the knocker's melds."""
    meld = t.laid[t.knocking, slot]
    return fitting(meld | t.laid_off[slot]) & unlaid(t, t.mover) if meld else meld


@kernel
def is_legal_in_showdown(t, action):
    """Whether the mover of a table in the showdown may play ``action``."""
    if action == PASS:
        return may_stop(t)
    if action < MELD:
        return False
    if action < LAYOFF:
        return t.phase != LAY_OFF and may_lay(t, MELDS[action - MELD])
    slot = (action - LAYOFF) // NUM_CARDS
    if t.phase != LAY_OFF or slot >= MAX_MELDS:
        return False
    return layoffs_on(t, slot) & bit((action - LAYOFF) % NUM_CARDS) != 0


@kernel
def write_legal_in_showdown(t, out):
    """Adds the legal actions of a table in the showdown to a mask (449,) of zeros."""
    out[PASS] = may_stop(t)
    if t.phase == LAY_OFF:
        for slot in range(MAX_MELDS):
            write_cards(out, LAYOFF + slot * NUM_CARDS, layoffs_on(t, slot))
        return
    rest = unlaid(t, t.mover)
    for number in range(NUM_MELDS):
        meld = MELDS[number]
        if not meld & ~rest:
            out[MELD + number] = t.phase == DEFEND or least_deadwood(rest & ~meld) <= t.limit


@kernel
def play_in_showdown(t, action):
    """Plays a legal action of the showdown and says how the table stands."""
    mover = t.mover
    if action >= LAYOFF:
        card = bit((action - LAYOFF) % NUM_CARDS)
        t.laid_off[(action - LAYOFF) // NUM_CARDS] |= card
        t.known[mover] |= card
        return GOING_ON
    if action >= MELD:
        lay_meld(t, mover, MELDS[action - MELD])
        return GOING_ON
    if t.phase == DECLARE:
        t.knocked_with = card_points(unlaid(t, mover))
        return answer(t)
    if t.phase == LAY_OFF and t.rules.defender_melds == _MANUAL:
        t.phase = DEFEND
        return GOING_ON
    return settle(t)


assert PASS < BIG_GIN < MELD < LAYOFF
