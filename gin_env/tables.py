"""The state of N tables: one array with a record for each table.

``tables["hands"]`` is the (N, 2) array of all hands, as in a struct of arrays; ``tables[i]`` is one table. They share
memory. A record keeps what one move touches side by side, and a kernel's helper takes one pointer to it, where passing
forty arrays around cost far more than the game itself (measured: 15 times the time of the mask, 20 times that of a
step). Copying a table is copying its row. Seats are 0 and 1. Kernels write in place; nothing here knows a player or an
environment.
"""

import numpy as np
from numpy.typing import DTypeLike

from gin_env.actions import MAX_MELDS
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.rules import MAX_DRAW_CAP, MAX_HAND_SIZE, RULES_DTYPE, Rules

# Phases: what the mover has to decide.
OFFER = 0  # the non-dealer takes the upcard or passes
OFFER_DEALER = 1  # then the dealer
DRAW_STOCK = 2  # both passed: the non-dealer must draw from the stock
DRAW_ANY = 3  # draw from the stock or take the top discard
THROW = 4  # eleven cards: discard, knock or declare big gin
WALL = 5  # the stock is at its floor: knock with the top discard, or pass
WALL_THROW = 6  # the discard was taken at the wall: knock or declare big gin
DECLARE = 7  # the knocker lays melds
LAY_OFF = 8  # the defender lays off
DEFEND = 9  # the defender lays melds
OVER = 10  # the hand (or the match) has ended
PHASES = (
    "offer",
    "offer-dealer",
    "draw-stock",
    "draw",
    "throw",
    "wall",
    "wall-throw",
    "declare",
    "lay-off",
    "defend",
    "over",
)

# How a hand ended.
PLAYING = 0  # no hand has ended yet
KNOCKED = 1  # the knocker's deadwood was less
GINNED = 2  # the knocker had nothing left
BIG_GINNED = 3  # eleven melded cards
UNDERCUT = 4  # the defender's deadwood was less (or equal, where a tie is an undercut)
TIED = 5  # equal deadwood, where a tie scores nothing
DEAD = 6  # the stock ran down to its floor
TRUNCATED = 7  # the cap on draws was reached
ENDINGS = ("playing", "knock", "gin", "big-gin", "undercut", "tie", "dead", "truncated")

# What a step says of each table.
GOING_ON = 0
HAND_ENDED = 1  # and the match goes on with another hand
EPISODE_ENDED = 2  # a single hand, or the whole match

NOBODY = -1

# Two passes, a draw and a throw for each draw up to the cap and one at the wall, then melds and layoffs: each of the
# twenty cards that are left by an action of its own would be more than enough, and three times a pass.
MAX_MOVES = 2 + 2 * (MAX_DRAW_CAP + 1) + 2 * MAX_HAND_SIZE + 3

# (name, type, shape in each row, meaning). Masks are 64-bit card sets (see `gin_env.cards`), cards are ids or -1.
TABLE_FIELDS = (
    ("rules", RULES_DTYPE, (), "the rules played"),
    ("to_target", np.bool_, (), "whether hands go on to a match's target; otherwise a hand is an episode"),
    ("phase", np.int8, (), "OFFER to OVER"),
    ("mover", np.int8, (), "seat to move"),
    ("dealer", np.int8, (), "seat"),
    ("doubled", np.bool_, (), "whether a spade upcard doubles this hand"),
    ("limit", np.int16, (), "most deadwood to knock with in this hand, points"),
    ("draws", np.int16, (), "cards drawn in this hand, from stock and pile"),
    ("takes", np.int16, (), "of them those taken from the pile, the upcard offer apart"),
    ("swaps", np.int16, (), "turns in a row, up to the last, that took a card and threw it back"),
    ("stock_at", np.int16, (), "place in the deck of the next stock card"),
    ("pile_size", np.int16, (), "cards in the discard pile"),
    ("taken", np.int8, (), "card the mover took from the pile in this turn, or -1"),
    ("drawn", np.int8, (), "card the mover drew from the stock in this turn, or -1"),
    ("num_moves", np.int16, (), "actions played in this hand"),
    ("scores", np.int32, (2,), "match points by seat"),
    ("hands", np.uint64, (2,), "by seat"),
    ("known", np.uint64, (2,), "cards of the seat's hand that its opponent has seen: taken, or laid down"),
    ("thrown", np.uint64, (2,), "cards the seat has thrown in this hand, also those taken up since"),
    ("declined", np.uint64, (2,), "cards the seat could have taken from the pile and did not"),
    ("pile", np.int8, (NUM_CARDS,), "discard pile from the bottom, -1 above its top"),
    ("pile_by", np.int8, (NUM_CARDS,), "seat that threw each; -1 for the upcard as dealt and above the top"),
    ("deck", np.int8, (NUM_CARDS,), "order of the deal, then the upcard, then the stock from its top"),
    ("key", np.uint64, (), "decides every deck of the table, together with hand_number"),
    ("hand_number", np.int64, (), "hands dealt at this table before this one"),
    ("match_winner", np.int8, (), "seat, or -1 while the match goes on"),
    # From the knock on, while melds and layoffs go on.
    ("knocking", np.int8, (), "seat that knocked in this hand, or -1"),
    ("knocked_with", np.int16, (), "deadwood left to it, points; -1 until its melds are laid"),
    ("laid", np.uint64, (2, MAX_MELDS), "melds by seat, in the order laid"),
    ("laid_off", np.uint64, (MAX_MELDS,), "the defender's cards on each of the knocker's melds"),
    # The last hand that ended, kept while the next one is played.
    ("ending", np.int8, (), "PLAYING before the first hand has ended, then KNOCKED to TRUNCATED"),
    ("knocker", np.int8, (), "seat, or -1"),
    ("winner", np.int8, (), "seat, or -1"),
    ("points", np.int32, (), "won by the winner"),
    ("num_turns", np.int16, (), "draws in that hand"),
    ("deadwood", np.int16, (2,), "by seat, after layoffs"),
    ("melds", np.uint64, (2, MAX_MELDS), "by seat, as laid down"),
    ("layoffs", np.uint64, (MAX_MELDS,), "the defender's cards on each of the knocker's melds"),
    ("final_hands", np.uint64, (2,), "by seat"),
    ("moves", np.int16, (MAX_MOVES,), "the actions of this hand in order; what lies above num_moves is stale"),
)
TABLE_DTYPE = np.dtype([(name, kind, shape) for name, kind, shape, _ in TABLE_FIELDS], align=True)

Tables = np.ndarray  # (N,) TABLE_DTYPE


def empty_tables(rules: Rules, size: int, match: bool = False) -> Tables:
    """Allocates ``size`` tables on which nothing has been dealt yet; `gin_env.engine.new_tables` deals as well."""
    tables = np.zeros(size, dtype=TABLE_DTYPE)
    tables["rules"] = rules.record()
    tables["to_target"] = match
    tables["hand_number"] = -1
    tables["phase"] = OVER
    for field in ("taken", "drawn", "pile", "pile_by", "deck"):
        tables[field] = NO_CARD
    for field in ("match_winner", "knocking", "knocker", "winner"):
        tables[field] = NOBODY
    return tables


def output(name: str, out: np.ndarray | None, shape: tuple[int, ...], kind: DTypeLike) -> np.ndarray:
    """Returns the array that a kernel writes into: ``out``, or a new one where it is None.

    Kernels do not check bounds, so whatever they are given to write into is checked here.

    Raises:
        ValueError: If ``out`` has another shape or type, or its rows are not contiguous.
    """
    if out is None:
        return np.empty(shape, dtype=kind)
    if out.shape != shape or out.dtype != kind or not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(
            f"{name} is {out.dtype} of shape {out.shape}; expected a contiguous, writeable array of "
            f"{np.dtype(kind).name} of shape {shape}"
        )
    return out
