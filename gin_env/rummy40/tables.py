"""The state of N tables of Rummy40: one array with a record for each table, as in `gin_env.tables`.

Seats are 0 to ``rules.seats - 1`` and play goes round by rising number; every field by seat has four places, of which
two players use the first two. A multiset of cards is two masks: the cards that are there at least once, and those that
are there twice (see `gin_env.rummy40.cards`).
"""

import numpy as np

from gin_env.cards import NO_CARD
from gin_env.rummy40.actions import MOST_ALIKE, NUM_PLACES
from gin_env.rummy40.rules import MAX_DECK, MAX_DRAW_CAP, MAX_SEATS, RULES_DTYPE, Rummy40Rules
from gin_env.tables import EPISODE_ENDED, GOING_ON, HAND_ENDED, NOBODY, output

__all__ = [
    "DRAW_ANY",
    "ENDINGS",
    "EPISODE_ENDED",
    "GOING_ON",
    "HAND_ENDED",
    "MAX_MELDS",
    "MAX_MOVES",
    "NOBODY",
    "OUT",
    "OVER",
    "PHASES",
    "PLAY",
    "PLAYING",
    "STOCK_OUT",
    "TABLE_DTYPE",
    "TABLE_FIELDS",
    "TRUNCATED",
    "Tables",
    "empty_tables",
    "output",
]

# Phases: what the mover has to decide.
DRAW_ANY = 0  # draw from the stock or take the top discard
PLAY = 1  # lay, add, steal; then discard
OVER = 2  # the hand (or the match) has ended
PHASES = ("draw", "play", "over")

# How a hand ended.
PLAYING = 0  # no hand has ended yet
OUT = 1  # somebody threw the last card
STOCK_OUT = 2  # the stock ran out: everybody counts
TRUNCATED = 3  # the cap on draws was reached: nobody counts
ENDINGS = ("playing", "out", "stock", "truncated")

MAX_MELDS = MAX_DECK // 3  # on the table; each has three cards or more
# Two moves of each draw. Then those that put cards on the table: each puts a card there that stays, but for jokers, of
# which each can come back as often as a card takes it away. And melds that are taken back: three, and the taking back,
# for each draw.
MAX_MOVES = 2 * MAX_DRAW_CAP + 2 * MAX_DECK + 4 * MAX_DRAW_CAP

# (name, type, shape in each row, meaning). Masks are 64-bit card sets (see `gin_env.cards`), cards are ids or -1.
TABLE_FIELDS = (
    ("rules", RULES_DTYPE, (), "the rules played"),
    ("to_limit", np.bool_, (), "whether hands go on to a match's limit; otherwise a hand is an episode"),
    ("phase", np.int8, (), "DRAW_ANY to OVER"),
    ("mover", np.int8, (), "seat to move"),
    ("dealer", np.int8, (), "seat"),
    ("draws", np.int16, (), "cards drawn in this hand, from stock and pile"),
    ("stock_at", np.int16, (), "place in the deck of the next stock card"),
    ("pile_size", np.int16, (), "cards in the discard pile"),
    ("taken", np.int8, (), "card the mover took from the pile in this turn, or -1"),
    ("banned", np.int8, (), "the same card while it may not be thrown, or -1"),
    ("drawn", np.int8, (), "card the mover drew from the stock in this turn, or -1"),
    ("num_moves", np.int16, (), "actions played in this hand"),
    ("num_melds", np.int8, (), "melds on the table"),
    ("attempt", np.int8, (), "of them those the mover has laid in this turn while the minimum is not reached"),
    ("attempt_points", np.int16, (), "their points"),
    ("attempted", np.bool_, (), "whether the mover has taken melds back in this turn"),
    ("owed", np.int8, (), "jokers that the mover has stolen in this turn and not placed yet"),
    ("opened", np.int8, (MAX_SEATS,), "1 for each seat that has laid melds that reach the minimum"),
    ("num_cards", np.int8, (MAX_SEATS,), "cards in hand by seat, jokers included"),
    ("jokers", np.int8, (MAX_SEATS,), "jokers in hand by seat"),
    ("known_jokers", np.int8, (MAX_SEATS,), "of them those that the others have seen"),
    ("booked", np.int32, (MAX_SEATS,), "points for melds taken back in this hand"),
    ("scores", np.int32, (MAX_SEATS,), "match points by seat, which are penalties"),
    ("hands", np.uint64, (MAX_SEATS, 2), "by seat: cards held, and those held twice; jokers aside"),
    ("known", np.uint64, (MAX_SEATS, 2), "of them those that the others have seen: taken, or laid and taken back"),
    # What can be done to the melds on the table; follows from them and is kept because each look needs it.
    (
        "fits",
        np.uint64,
        (MAX_SEATS, NUM_PLACES, MOST_ALIKE),
        "by owner of the melds, or in the first row where all melds are open to all: cards that have a place of "
        "each kind (`gin_env.rummy40.actions.PLACES`) in one meld at least, in two, in three",
    ),
    ("room", np.int8, (MAX_SEATS,), "melds that take a joker, by the same rows"),
    ("meld_cards", np.uint64, (MAX_MELDS,), "melds in the order laid: the cards that are no jokers"),
    ("meld_stands", np.uint64, (MAX_MELDS,), "cards that the meld's joker may stand for; 0 without one"),
    ("meld_low", np.int8, (MAX_MELDS,), "lowest card of a run, the joker's included; -1 for a set"),
    ("meld_high", np.int8, (MAX_MELDS,), "highest card of a run; -1 for a set"),
    ("meld_owner", np.int8, (MAX_MELDS,), "seat that laid the meld"),
    ("pile", np.int8, (MAX_DECK,), "discard pile from the bottom, -1 above its top"),
    ("pile_by", np.int8, (MAX_DECK,), "seat that threw each; -1 for the card turned up and above the top"),
    ("deck", np.int8, (MAX_DECK,), "order of the deal, then the card turned up, then the stock from its top"),
    ("key", np.uint64, (), "decides every deck of the table, together with hand_number"),
    ("hand_number", np.int64, (), "hands dealt at this table before this one"),
    ("match_over", np.bool_, (), "whether the match has ended"),
    ("match_winners", np.int8, (MAX_SEATS,), "1 for each seat that has won it; more than one share the win"),
    # The last hand that ended, kept while the next one is played.
    ("ending", np.int8, (), "PLAYING before the first hand has ended, then OUT to TRUNCATED"),
    ("out", np.int8, (), "seat that went out, or -1"),
    ("penalties", np.int32, (MAX_SEATS,), "points of each seat: those left in hand, and for melds taken back"),
    ("num_turns", np.int16, (), "draws in that hand"),
    ("final_hands", np.uint64, (MAX_SEATS, 2), "by seat"),
    ("final_jokers", np.int8, (MAX_SEATS,), "by seat"),
    ("moves", np.int16, (MAX_MOVES,), "the actions of this hand in order; what lies above num_moves is stale"),
)
TABLE_DTYPE = np.dtype([(name, kind, shape) for name, kind, shape, _ in TABLE_FIELDS], align=True)

Tables = np.ndarray  # (N,) TABLE_DTYPE


def empty_tables(rules: Rummy40Rules, size: int, match: bool = False) -> Tables:
    """Allocates tables on which nothing has been dealt yet; `gin_env.rummy40.engine.new_tables` deals as well."""
    tables = np.zeros(size, dtype=TABLE_DTYPE)
    tables["rules"] = rules.record()
    tables["to_limit"] = match
    tables["hand_number"] = -1
    tables["phase"] = OVER
    for field in ("taken", "banned", "drawn", "pile", "pile_by", "deck", "meld_low", "meld_high", "meld_owner"):
        tables[field] = NO_CARD
    tables["out"] = NOBODY
    return tables
