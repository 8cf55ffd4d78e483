"""How players lay down where the rules leave it to them: what the engine does where they do not.

The knocker lays the arrangement of `gin_env.melds.arrange`. The defender follows `gin_env.melds.defend`: the own melds
and layoffs that together leave the least deadwood. Scripted players and networks share it, so a policy that has learned
with automatic melds and layoffs plays manual rules as well.
"""

import numpy as np

from gin_env._compile import kernel, lowest
from gin_env.actions import LAYOFF, MAX_MELDS, MELD, MELDS, NUM_MELDS, PASS
from gin_env.cards import NUM_CARDS
from gin_env.melds import arrange_hand, bit, defend_hand, is_run
from gin_env.rules import CODES
from gin_env.showdown import fitting
from gin_env.tables import DECLARE, LAY_OFF, OVER
from gin_env.view import View

_U0 = np.uint64(0)
_MANUAL = CODES["manual"]
_MELD_LENGTH = 5  # cards of the longest run that one action lays


@kernel
def meld_action(meld):
    """The action that lays a meld, or the first part of a run of more than five cards; PASS where it is no meld."""
    if is_run(meld):
        length = 0
        while length < _MELD_LENGTH + 1 and meld & bit(lowest(meld) + length):
            length += 1
        if length > _MELD_LENGTH:  # three of them leave three or more
            low = lowest(meld)
            meld = bit(low) | bit(low + 1) | bit(low + 2)
    for number in range(NUM_MELDS):
        if MELDS[number] == meld:
            return MELD + number
    return PASS


@kernel
def next_meld(melds, laid):
    """The action that lays the next of some melds, or PASS when all of them lie."""
    for k in range(MAX_MELDS):
        rest = melds[k] & ~laid
        if rest:
            return meld_action(rest)
    return PASS


@kernel
def lay_action(v):
    """What to play in a row of a view in the phases DECLARE, LAY_OFF and DEFEND."""
    melds = np.zeros(MAX_MELDS, dtype=np.uint64)
    layoffs = np.zeros(MAX_MELDS, dtype=np.uint64)
    table = np.zeros(MAX_MELDS, dtype=np.uint64)
    laid = v.own_melds[0] | v.own_melds[1] | v.own_melds[2]
    if v.phase == DECLARE:
        arrange_hand(v.hand, v.rules.pack, melds)
        fits = laid & ~(melds[0] | melds[1] | melds[2]) == _U0
        for k in range(MAX_MELDS):
            rest = melds[k] & ~laid
            fits = fits and (rest == _U0 or rest == melds[k] or meld_action(rest) != PASS)
        if not fits:
            # Begun in another way: the best of what is left.
            arrange_hand(v.hand & ~laid, v.rules.pack, melds)
        return next_meld(melds, laid)
    off = _U0
    for k in range(MAX_MELDS):
        table[k] = v.opponent_melds[k] | v.layoffs[k]
        off |= v.layoffs[k]
    rest = v.hand & ~(laid | off)
    # Layoffs may come now (LAY_OFF), after the own melds, or have been made. There are none against gin.
    to_come = v.phase == LAY_OFF or v.rules.layoffs != _MANUAL
    defend_hand(rest, table, not to_come or v.opponent_deadwood == 0, melds, layoffs)
    if v.phase != LAY_OFF:
        return next_meld(melds, laid)
    for k in range(MAX_MELDS):
        cards = layoffs[k] & fitting(table[k]) if table[k] else _U0
        if cards:
            return LAYOFF + k * NUM_CARDS + lowest(cards)
    return PASS


@kernel
def _lay(views, actions):
    for i in range(views.size):
        if DECLARE <= views[i].phase < OVER:
            actions[i] = lay_action(views[i])


def lay(view: View, actions: np.ndarray) -> np.ndarray:
    """Replaces the actions in the phases after a knock by the best melds and layoffs.

    Args:
        view: (N,) views of the seats to move.
        actions: (N,) int64 action ids, changed in place.

    Returns:
        The same array.
    """
    _lay(np.ascontiguousarray(view), actions)
    return actions


def policy(logits: np.ndarray, view: View, mask: np.ndarray, sample: bool) -> np.ndarray:
    """Returns the probability of every action for a network that leaves the laying to `lay`.

    Args:
        logits: (N, 108), very low where an action is illegal.
        view: (N,) views of the seats to move.
        mask: (N, A) int8.
        sample: Whether it draws from the softmax of the logits instead of taking the largest.

    Returns:
        (N, A) float64.
    """
    rows = np.arange(view.size)
    out = np.zeros(mask.shape, dtype=np.float64)
    if sample:
        shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
        weights = np.where(mask[:, : logits.shape[1]] != 0, np.exp(shifted), 0)
        out[:, : logits.shape[1]] = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    else:
        out[rows, logits.argmax(axis=1)] = 1
    showdown = (view["phase"] >= DECLARE) & (view["phase"] < OVER)
    chosen = lay(view, np.zeros(view.size, dtype=np.int64))
    out[showdown] = 0
    out[rows[showdown], chosen[showdown]] = 1
    return out
