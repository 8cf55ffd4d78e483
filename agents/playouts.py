"""Hands played to their end in a hurry, by the same player on both seats. Compiled.

`play_out` has a simple player: some hundred thousand hands a second. It plays on the few numbers that decide such a
hand instead of views, and hands over to the engine for the showdown. `advised_play_out` has `agents.strategist`, on the
engine: several times slower, and closer to how strong players finish a hand.
"""

import numpy as np

from agents.lookahead import OF_POINTS, completing
from agents.strategist import above, below, strategist_row
from gin_env._compile import count, kernel, lowest
from gin_env.actions import BIG_GIN, KNOCK, TAKE
from gin_env.cards import NO_CARD, NUM_CARDS, NUM_RANKS
from gin_env.engine import GOING_ON, may_big_gin, may_take_at_wall, play
from gin_env.melds import (
    bit,
    least_after_discard,
    least_deadwood,
    most_points,
    num_set_choices,
    rank_cards,
    run_cards,
    run_loose,
    set_choice,
    set_ranks,
    thrown_loose,
)
from gin_env.rules import CODES
from gin_env.tables import DRAW_ANY, DRAW_STOCK, NOBODY, OFFER, OFFER_DEALER, THROW, WALL, WALL_THROW
from gin_env.view import observe_row

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_WALL_KNOCK = CODES["knock"]


@kernel
def near(card):
    """The cards of a card's rank, and those next to it and next but one in its suit."""
    up, down = above(bit(card)), below(bit(card))
    return rank_cards(card % NUM_RANKS) | up | above(up) | down | below(down)


@kernel
def throw(hand, banned):
    """What to throw of eleven cards: what leaves the least deadwood, of equals what has the fewest cards near it.

    Returns:
        The least deadwood and the card.
    """
    ranks = set_ranks(hand)
    choices = num_set_choices(hand, ranks) if ranks else 1
    best = np.int64(1000)  # more than any hand has
    thrown = -1
    banned_card = _U0 if banned < 0 else bit(banned)
    for choice in range(choices):
        rest = hand & ~set_choice(hand, ranks, choice) if choice else hand
        total = run_loose(rest)
        runs = run_cards(rest)
        loose = rest & ~runs & ~banned_card
        if loose:
            points = most_points(loose)
            if total - points < best:
                best = total - points
                cards = loose & OF_POINTS[points]
                fewest = np.int64(NUM_CARDS)
                while cards != _U0:
                    card = lowest(cards)
                    cards &= cards - _U1
                    company = count(near(card) & loose)
                    if company < fewest:
                        fewest = company
                        thrown = card
        runs &= ~banned_card
        # Of melded cards only those are worth a look that may leave less.
        if total <= best:
            while runs != _U0:
                card = lowest(runs)
                runs &= runs - _U1
                left = total + thrown_loose(rest, card)
                if left < best:
                    best, thrown = left, card
    return best, thrown


@kernel
def won_by(t, seat):
    """The points that a seat has won, or lost, in a hand that is over."""
    if t.winner == NOBODY:
        return np.int64(0)
    return np.int64(t.points if t.winner == seat else -t.points)


@kernel
def play_out(t, seat, own_draws, other_draws):
    """Plays a hand to its end and returns the points that ``seat`` wins.

    Both seats throw by `throw` and take what makes a meld and lowers the deadwood. They knock as soon as they may
    during their first draws of the hand, as many as is said, and later only go gin.

    Args:
        t: A table whose rules are automatic; changed.
        seat: 0 or 1.
        own_draws: Draws during which that seat knocks.
        other_draws: Draws during which the other seat does.
    """
    phase = np.int64(t.phase)
    mover = np.int64(t.mover)
    draws = np.int64(t.draws)
    at = np.int64(t.stock_at)
    taken = np.int64(t.taken)
    limit = np.int64(t.limit)
    size = np.int64(t.pile_size)
    top = np.int64(t.pile[size - 1]) if size else np.int64(NO_CARD)
    mine, other = t.hands[mover], t.hands[1 - mover]
    last = t.rules.deck_size - t.rules.stock_floor
    big = t.rules.big_gin_bonus >= 0
    rediscard = t.rules.rediscard
    cap = np.int64(t.rules.draw_cap)
    while True:
        if phase != THROW and phase != WALL_THROW:
            if phase == WALL:
                # Seldom: as the engine has it.
                t.phase, t.mover, t.draws, t.stock_at, t.taken = WALL, mover, draws, at, NO_CARD
                t.hands[mover], t.hands[1 - mover] = mine, other
                t.pile_size, t.pile[0] = 1, top
                if not may_take_at_wall(t):
                    return 0
                play(t, TAKE)
                mine |= bit(top)
                draws += 1
                taken = top
                phase = WALL_THROW
                continue
            takes = False
            if phase != DRAW_STOCK and top != NO_CARD:
                card = bit(top)
                if completing(mine) & card:
                    takes = least_after_discard(mine | card, top) < least_deadwood(mine)
            if takes:
                mine |= bit(top)
                taken = top
            elif phase == OFFER or phase == OFFER_DEALER:
                phase = OFFER_DEALER if phase == OFFER else DRAW_STOCK
                mover = 1 - mover
                mine, other = other, mine
                continue
            else:
                mine |= bit(t.deck[at])
                at += 1
                taken = NO_CARD
            draws += 1
            phase = THROW
        least, card = throw(mine, np.int64(NO_CARD) if rediscard else taken)
        if least <= limit:
            all_melded = big and least == 0 and least_deadwood(mine) == 0
            early = (draws + 1) // 2 <= (own_draws if mover == seat else other_draws)
            if least == 0 or early or phase == WALL_THROW:
                t.phase, t.mover, t.draws, t.stock_at = phase, mover, draws, at
                t.taken = NO_CARD
                t.hands[mover], t.hands[1 - mover] = mine, other
                t.pile_size = 0
                play(t, np.int64(BIG_GIN) if all_melded else KNOCK + card)
                return won_by(t, seat)
        mine &= ~bit(card)
        top = card
        if at >= last:
            if t.rules.wall != _WALL_KNOCK:
                return 0
            phase = WALL
        elif draws >= cap:
            return 0
        else:
            phase = DRAW_ANY
        mover = 1 - mover
        mine, other = other, mine


@kernel
def advised_play_out(t, seat, weights, v, mask, after, melds):
    """Plays a hand to its end as `agents.strategist.StrategistAgent` on both seats.

    Args:
        t: A table whose rules are automatic; changed.
        seat: 0 or 1.
        weights: A record of `agents.strategist.WEIGHTS_DTYPE`.
        v: A row of a view, scratch, as are
        mask: (A,) int8,
        after: (52,) int64,
        melds: (3,) uint64.

    Returns:
        The points that ``seat`` wins.
    """
    while True:
        throws = t.phase == THROW or t.phase == WALL_THROW
        # Of the mask these two are all that the player looks at.
        mask[BIG_GIN] = throws and may_big_gin(t)
        mask[TAKE] = not throws and (may_take_at_wall(t) if t.phase == WALL else t.pile_size > 0)
        observe_row(t, np.int64(t.mover), v)
        if play(t, np.int64(strategist_row(v, mask, weights, after, melds))) != GOING_ON:
            break
    return won_by(t, seat)
