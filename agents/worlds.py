"""Worlds: tables as they may well be, made from what one seat sees of them.

A world is an opponent (`agents.beliefs`) and an order of the stock, both consistent with a view. `set_up` writes what
the view tells into a row of tables, `fill_in` the rest; the engine then plays on from there as from any other table.
"""

import numpy as np

from agents.beliefs import Particles, believe, particles, pick, unseen_cards
from gin_env._compile import kernel, lowest
from gin_env.actions import MAX_MELDS
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.keys import mix
from gin_env.melds import bit
from gin_env.tables import DECLARE, NOBODY, PLAYING, TABLE_DTYPE, WALL_THROW, Tables
from gin_env.view import DEALT, OWN, View

_U0 = np.uint64(0)
_U1 = np.uint64(1)


@kernel
def set_up(v, t):
    """Writes all that a view tells of its table into a row of tables, for the seat to move before any knock.

    `fill_in` adds the opponent's unseen cards and the stock. What a view does not tell is set to what does not matter
    for this hand: the key, its number, the moves that led here, the last hand's result. A match of one hand becomes a
    hand that is an episode.
    """
    seat = np.int64(v.seat)
    other = 1 - seat
    t.rules = v.rules
    t.to_target = v.target > 0
    t.phase = v.phase
    t.mover = seat
    t.dealer = seat if v.is_dealer else other
    t.doubled = v.doubled
    t.limit = v.limit
    t.draws = v.draws
    t.stock_at = v.rules.deck_size - v.stock
    t.pile_size = v.pile_size
    t.taken = v.taken
    t.drawn = v.drawn
    t.scores[seat] = v.own_score
    t.scores[other] = v.opponent_score
    t.hands[seat] = v.hand
    t.hands[other] = v.opponent_known
    t.known[seat] = v.own_known
    t.known[other] = v.opponent_known
    t.thrown[seat] = v.own_thrown
    t.thrown[other] = v.opponent_thrown
    t.declined[seat] = v.own_declined
    t.declined[other] = v.opponent_declined
    for k in range(NUM_CARDS):
        t.pile[k] = v.pile[k]
        by = v.pile_by[k]
        t.pile_by[k] = NOBODY if by == DEALT else seat if by == OWN else other
        t.deck[k] = NO_CARD
    t.key = _U0
    t.hand_number = 0
    t.num_moves = 0
    t.match_winner = NOBODY
    t.knocking = NOBODY
    t.knocked_with = -1
    t.ending = PLAYING
    t.knocker = NOBODY
    t.winner = NOBODY
    t.points = 0
    t.num_turns = 0
    for who in range(2):
        t.deadwood[who] = 0
        t.final_hands[who] = _U0
        for k in range(MAX_MELDS):
            t.laid[who, k] = _U0
            t.melds[who, k] = _U0
    for k in range(MAX_MELDS):
        t.laid_off[k] = _U0
        t.layoffs[k] = _U0

    # Draws that were not from the stock were takes, of which the offer's and one at the wall do not count.
    t.takes = v.draws - (t.stock_at - (2 * v.rules.hand_size + 1)) - (v.phase == WALL_THROW)
    if v.draws > 0 and (v.pile_size == 0 or v.pile_by[0] != DEALT):
        t.takes -= 1
    # A card that both have thrown was thrown back, unless it was kept for a turn: a view does not always tell.
    last = v.taken if v.taken != NO_CARD else v.upcard
    t.swaps = 0
    if v.rules.swap_cap >= 0 and last != NO_CARD and v.own_thrown & v.opponent_thrown & bit(last):
        t.swaps = 1


@kernel
def fill_in(t, hidden, unseen, key):
    """Makes a world of a table that `set_up` wrote: the opponent's unseen cards, and the others as the stock.

    Args:
        t: A row of tables.
        hidden: The opponent's unseen cards.
        unseen: All unseen cards.
        key: Decides the order of the stock.
    """
    other = 1 - np.int64(t.mover)
    t.hands[other] = t.known[other] | hidden
    rest = unseen & ~hidden
    first = np.int64(t.stock_at)
    size = 0
    while rest != _U0:
        # Fisher-Yates, from the inside out.
        key = mix(key, _U1)
        place = pick(key, size + 1)
        t.deck[first + size] = t.deck[first + place]
        t.deck[first + place] = lowest(rest)
        rest &= rest - _U1
        size += 1


@kernel
def _sample(v, styles, steps, key, p, hidden, style, out):
    believe(v, styles, steps, key, p, hidden, style)
    unseen = unseen_cards(v)
    for i in range(out.size):
        set_up(v, out[i])
        fill_in(out[i], hidden[i], unseen, mix(key, np.uint64(i)))


def sample_worlds(
    view: View, size: int, key: int, styles: np.ndarray, opponents: int = 1024, steps: int = 20
) -> Tables:
    """Returns worlds of one view as tables, to look at or to play on.

    Args:
        view: (1,) view of a seat that is to move, before any knock.
        size: Number of worlds.
        key: Decides what is sampled.
        styles: (S, 5) int64, `agents.playouts.STYLE`: what styles an opponent may have, all equally likely.
        opponents: Of the filter; at least ``size`` are used.
        steps: Moves from each of those that are taken.

    Returns:
        (size,) tables, which show the seat the same view.

    Raises:
        ValueError: If the view is not one row of a seat to move before any knock.
    """
    if view.shape != (1,) or not view["to_move"][0] or view["phase"][0] >= DECLARE:
        raise ValueError(f"view has shape {view.shape}; expected one row, of a seat to move before any knock")
    out = np.zeros(size, dtype=TABLE_DTYPE)
    scratch: Particles = particles(max(opponents, size))
    hidden, style = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.int64)
    _sample(np.ascontiguousarray(view)[0], styles, steps, np.uint64(key), scratch, hidden, style, out)
    return out
