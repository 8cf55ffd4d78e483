"""Conformance checks for the rules of Rummy40, as library code, as `gin_env.testing` has them for gin.

`check_rules` plays random hands under some rules and looks at every step whether the game holds together. It raises
`gin_env.testing.ConformanceError`, whose message says what is wrong, at which table, and which call shows it again.

    >>> from gin_env.rummy40.testing import check_rules
    >>> check_rules("rummy40:seats=4,opening=50", hands=20).hands >= 20
    True

What is checked at every step is compiled, so that millions of steps take minutes; what needs more is checked every so
often at one table. Everything is decided by the seed, so a failure comes again.
"""

from collections import Counter

import numpy as np

from gin_env._compile import borrow_row, count, kernel, lowest, read_flags
from gin_env.cards import CARD_POINTS, NO_CARD, NUM_CARDS, NUM_RANKS
from gin_env.keys import mix, mix_keys
from gin_env.melds import bit
from gin_env.rummy40 import engine, view
from gin_env.rummy40.actions import (
    DISCARD,
    DRAW,
    LAY,
    MELD_JOKERS,
    MELD_REAL,
    MELD_SIZE,
    NUM_PLACES,
    NUM_TWO_PACK_ACTIONS,
    PLACE,
    PLACES,
    STEAL_SET,
    TAKE,
    TAKE_BACK,
    action_name,
)
from gin_env.rummy40.cards import JOKER, held
from gin_env.rummy40.engine import EPISODE_ENDED, GOING_ON, HAND_ENDED, NO_ACTION, IllegalAction
from gin_env.rummy40.melds import in_melds, in_pairs
from gin_env.rummy40.record import RecordError, table_record
from gin_env.rummy40.rules import CODES, MAX_SEATS, Rummy40Rules, as_rules
from gin_env.rummy40.spaces import observation_space
from gin_env.rummy40.tables import (
    DRAW_ANY,
    ENDINGS,
    MAX_MOVES,
    NOBODY,
    OUT,
    OVER,
    PHASES,
    PLAY,
    STOCK_OUT,
    TRUNCATED,
    Tables,
)
from gin_env.rummy40.turn import throwable
from gin_env.testing import ConformanceError, Report

__all__ = ["ConformanceError", "Report", "check_rules", "shuffle_hidden"]

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_PENALTY, _ANY, _NO = CODES["penalty"], CODES["any"], CODES["no"]
_POINTS = CARD_POINTS.astype(np.int64)
_CARDS = np.arange(NUM_CARDS, dtype=np.uint64)
# Streams of a seed for choices, apart from the deals' and from one another.
_PLAY_STREAM, _STYLE_STREAM = (1 << 62) + 1, (1 << 62) + 2
_SAMPLE_EVERY = 16  # steps, for the checks that play a position several times over
_REFUSALS = 30  # actions that are tried at one table

# Kinds of actions, by which decisions are counted, and the first id of each.
KINDS = ("draw", "take", "take-back", "discard", "lay", "add", "joker", "steal")
_DISCARDS = KINDS.index("discard")
_KIND_OF = np.array(
    [0, 1, 2]
    + [3] * (LAY - DISCARD)
    + [4] * (PLACE - LAY)
    + [
        5 + ("add", "joker", "steal").index(place.verb)
        for nth in range(3)
        for place in PLACES
        if nth < place.most
        for _ in range(NUM_CARDS)
    ],
    dtype=np.int64,
)
# How a seat plays a hand: the weight of each kind of action where there is one, and whether it keeps cards that belong
# together. Any, at once, with much stealing, holding back, careless with the pile, wrong on purpose.
_STYLES = np.array(
    [
        (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
        (2.0, 1.0, 0.1, 0.1, 9.0, 9.0, 9.0, 9.0),
        (2.0, 1.0, 0.1, 0.2, 1.0, 1.0, 0.3, 9.0),
        (2.0, 1.0, 0.5, 9.0, 0.3, 0.3, 0.3, 0.3),
        (0.3, 9.0, 0.1, 0.5, 2.0, 1.0, 1.0, 2.0),
        (1.0, 0.5, 9.0, 1.0, 9.0, 1.0, 1.0, 1.0),
        (3.0, 1.0, 0.1, 0.0001, 3.0, 0.5, 0.5, 3.0),
        (3.0, 1.0, 0.1, 0.0001, 0.5, 3.0, 3.0, 3.0),
    ]
)
_KEEPS = np.array([False, True, True, True, False, True, True, True])


# ------------------------------------------------------------------------------------------------------- random play


@kernel
def _list_legal(mask, out):
    """Writes the legal actions of a mask into ``out``, and returns how many there are."""
    size = 0
    whole = mask.size // 64 * 64
    for start in range(0, whole, 64):
        flags = read_flags(mask, start)
        while flags != _U0:
            out[size] = start + lowest(flags)
            size += 1
            flags &= flags - _U1
    for action in range(whole, mask.size):
        if mask[action]:
            out[size] = action
            size += 1
    return size


@kernel
def _choose(t, masks, keys, styles, weights, keeps, kind_of, out):
    """Chooses a legal action for each table, NO_ACTION where there is none: a kind by its weight, then any of it."""
    numbers = np.empty(weights.shape[1], dtype=np.int64)
    legal = np.empty(masks.shape[1], dtype=np.int64)
    for i in range(t.size):
        size = _list_legal(borrow_row(masks, i), legal)
        seat = t[i].mover
        style = styles[i, seat]
        loose = _U0
        if keeps[style] and t[i].phase == PLAY:
            have = t[i].hands[seat, 0]
            loose = have & ~(in_melds(have) | in_pairs(have, t[i].rules.pack, np.int64(t[i].rules.suits)))
        # Where there are loose cards to throw, only those.
        loose &= throwable(t[i])[0]
        for kind in range(numbers.size):
            numbers[kind] = 0
        for k in range(size):
            numbers[kind_of[legal[k]]] += 1
        total = 0.0
        for kind in range(numbers.size):
            if numbers[kind]:
                total += weights[style, kind]
        out[i] = NO_ACTION
        if size == 0:
            continue
        at = total * (np.int64(mix(keys[i], _U0) >> np.uint64(11)) * 2.0**-53)
        chosen = -1
        for kind in range(numbers.size):
            if numbers[kind] and (chosen < 0 or at >= 0.0):
                chosen = kind
                at -= weights[style, kind]
        best = _U0
        for k in range(size):
            action = legal[k]
            if kind_of[action] != chosen:
                continue
            if chosen == _DISCARDS and loose != _U0:
                if action - DISCARD == JOKER or (loose & bit(action - DISCARD)) == _U0:
                    continue
            draw = mix(keys[i], np.uint64(action + 1))
            if out[i] == NO_ACTION or draw > best:
                best = draw
                out[i] = action


# ---------------------------------------------------------------------------------------------- one position, compiled

_PROBLEMS = (
    "",
    "cards: hands, pile, stock and melds are not the cards in play",
    "cards: a hand is not as large as its number says",
    "cards: a card is held twice and not once, or known and not held",
    "cards: a player who has not opened has a card too many or too few",
    "melds: a meld on the table is none",
    "melds: what can be done to the melds is not what they show",
    "melds: somebody has opened without a meld, or has one without having opened",
    "legal actions: the player to move has no legal action, or the hand is over and some are legal",
    "legal actions: a draw is legal when none is due, or another action when one is",
    "legal actions: a card that is not held, or the one just taken, may be thrown",
    "legal actions: a discard is legal with a stolen joker in hand or melds below the minimum on the table",
    "legal actions: what is not in hand may be laid, or the last card, or cards may be added before opening",
    "moves: a stolen joker, an attempt or a card taken is there outside a player's turn",
)


@kernel
def _count(once, twice, more, cards):
    """Counts the cards of a mask: those seen once at least, twice, and three times."""
    return once | cards, twice | (once & cards), more | (twice & cards)


@kernel
def _whole(t):
    """Whether hands, pile, stock and melds are the cards in play."""
    once = twice = more = _U0
    jokers = 0
    for seat in range(t.rules.seats):
        once, twice, more = _count(once, twice, more, t.hands[seat, 0])
        once, twice, more = _count(once, twice, more, t.hands[seat, 1])
        jokers += t.jokers[seat]
    for k in range(t.num_melds):
        once, twice, more = _count(once, twice, more, t.meld_cards[k])
        jokers += t.meld_stands[k] != _U0
    size = np.int64(t.pile_size)
    for k in range(size + t.rules.deck_size - t.stock_at):
        card = np.int64(t.pile[k] if k < size else t.deck[t.stock_at + k - size])
        if card == JOKER:
            jokers += 1
        else:
            once, twice, more = _count(once, twice, more, bit(card))
    pack = t.rules.pack
    return once == pack and twice == (pack if t.rules.packs > 1 else _U0) and more == _U0 and jokers == t.rules.jokers


@kernel
def _is_meld(t, k):
    """Whether the k-th meld on the table is one, from its cards alone."""
    cards, stands = t.meld_cards[k], t.meld_stands[k]
    size = count(cards) + (stands != _U0)
    if (cards & stands) != _U0 or ((cards | stands) & ~t.rules.pack) != _U0 or count(cards) < 2 or size < 3:
        return False
    ranks = suits = 0
    for card in range(NUM_CARDS):
        if ((cards | stands) & bit(card)) != _U0:
            ranks |= 1 << card % NUM_RANKS
            suits |= 1 << card // NUM_RANKS
    if t.meld_low[k] == NO_CARD:
        # Every suit that is missing may be the joker's.
        whole = count(cards | stands) == t.rules.suits if stands != _U0 else True
        return t.meld_high[k] == NO_CARD and count(np.uint64(ranks)) == 1 and size <= t.rules.suits and whole
    if count(np.uint64(suits)) != 1 or count(stands) > 1:
        return False
    for card in range(NUM_CARDS):
        inside = t.meld_low[k] <= card <= t.meld_high[k]
        if inside != (((cards | stands) & bit(card)) != _U0):
            return False
    return True


@kernel
def _places(t, k, card, place):
    """Whether a card has a place of a kind in the k-th meld, from its cards alone."""
    cards, stands = t.meld_cards[k], t.meld_stands[k]
    if place >= STEAL_SET:
        if (stands & bit(card)) == _U0:
            return False
        kind = 0 if t.meld_low[k] == NO_CARD else 1 if t.meld_low[k] == card else 2
        return place - STEAL_SET == kind
    if place >= 3 and stands != _U0 or (t.rules.pack & bit(card)) == _U0:
        return False
    if place % 3 == 0:
        rank, size = 0, count(cards) + (stands != _U0)
        for other in range(NUM_CARDS):
            if (cards & bit(other)) != _U0:
                rank = other % NUM_RANKS
        return (
            t.meld_low[k] == NO_CARD
            and card % NUM_RANKS == rank
            and (cards & bit(card)) == _U0
            and size < t.rules.suits
        )
    if t.meld_low[k] == NO_CARD or card // NUM_RANKS != t.meld_low[k] // NUM_RANKS:
        return False
    return card == t.meld_low[k] - 1 if place % 3 == 1 else card == t.meld_high[k] + 1


@kernel
def _fits_wrong(t):
    """Whether ``fits`` or ``room`` are not what the melds on the table show."""
    rules = t.rules
    for row in range(rules.seats):
        room = 0
        for k in range(t.num_melds):
            mine = row == 0 if rules.adding == _ANY else row == t.meld_owner[k]
            takes = False
            for card in range(NUM_CARDS):
                for place in range(3, 6):
                    takes |= _places(t, k, card, place)
            room += mine and takes
        if room != t.room[row]:
            return True
        for place in range(NUM_PLACES):
            rule = rules.adding if place < STEAL_SET else rules.stealing
            for card in range(NUM_CARDS):
                number = 0
                for k in range(t.num_melds):
                    mine = row == 0 if rule == _ANY else row == t.meld_owner[k]
                    number += mine and rule != _NO and _places(t, k, card, place)
                for n in range(3):
                    if ((t.fits[row, place, n] & bit(card)) != _U0) != (number > n):
                        return True
                if number > 3:
                    return True
    return False


@kernel
def _hand_problem(t, seat):
    """The number in `_PROBLEMS` of what is wrong with a hand, or 0."""
    once, twice = t.hands[seat, 0], t.hands[seat, 1]
    if count(once) + count(twice) + t.jokers[seat] != t.num_cards[seat]:
        return 2
    known, known_twice = t.known[seat, 0], t.known[seat, 1]
    if (twice & ~once) != _U0 or (known & ~once) != _U0 or (known_twice & ~twice) != _U0:
        return 3
    if (known_twice & ~known) != _U0 or not 0 <= t.known_jokers[seat] <= t.jokers[seat]:
        return 3
    owns = attempted = 0
    for k in range(t.num_melds):
        if t.meld_owner[k] == seat:
            owns += 1
            if t.mover == seat and k >= t.num_melds - t.attempt:
                attempted += count(t.meld_cards[k]) + (t.meld_stands[k] != _U0)
    more = t.mover == seat and t.phase == PLAY
    if not t.opened[seat] and t.num_cards[seat] + attempted != t.rules.hand_size + more:
        return 4
    return 7 if (owns > 0) != (t.opened[seat] > 0 or attempted > 0) else 0


@kernel
def _action_problem(t, action, real, jokers, sizes):
    """The number in `_PROBLEMS` of what is wrong with an action being legal, or 0."""
    seat = np.int64(t.mover)
    if (action < TAKE_BACK) != (t.phase == DRAW_ANY) or action == TAKE and t.pile_size == 0:
        return 9
    if DISCARD <= action < LAY:
        card = action - DISCARD
        have = np.int64(t.jokers[seat])
        if card != JOKER:
            have = 0
            for k in range(2):
                have += (t.hands[seat, k] & bit(card)) != _U0
        if have - (card == t.banned) < 1 or card == JOKER and (not t.opened[seat] or t.num_cards[seat] < 2):
            return 10
        return 11 if t.owed or t.attempt else 0
    if LAY <= action < PLACE:
        number = action - LAY
        lacks = (real[number] & ~t.hands[seat, 0]) != _U0 or jokers[number] > t.jokers[seat]
        return 12 if lacks or t.num_cards[seat] == sizes[number] and t.rules.wrong_opening != _PENALTY else 0
    return 12 if action >= PLACE and (not t.opened[seat] or t.num_cards[seat] < 2) else 0


@kernel
def _problem(t, mask, legal, melds_changed, full, real, jokers, sizes):
    """The number in `_PROBLEMS` of what is wrong with a table, or 0."""
    if not _whole(t):
        return 1
    for seat in range(t.rules.seats):
        problem = _hand_problem(t, seat)
        if problem:
            return problem
    if melds_changed:
        for k in range(t.num_melds):
            if not _is_meld(t, k):
                return 5
    if full and _fits_wrong(t):
        return 6
    if t.phase != PLAY and (t.owed or t.attempt or t.taken != NO_CARD or t.drawn != NO_CARD or t.attempted):
        return 13
    size = _list_legal(mask, legal)
    if (size > 0) != (t.phase != OVER):
        return 8
    for k in range(size):
        problem = _action_problem(t, legal[k], real, jokers, sizes)
        if problem:
            return problem
    return 0


@kernel
def _check_positions(t, masks, seen_melds, real, jokers, sizes, full):
    """Checks all tables: (row, number in `_PROBLEMS`) of the first thing that is wrong, or (-1, 0).

    ``seen_melds`` holds a hash of the melds when they were last looked at, so that they are looked at when they change.
    Where ``full``, they are looked at anyhow, and what can be done to them too.
    """
    legal = np.empty(masks.shape[1], dtype=np.int64)
    for i in range(t.size):
        seen = np.uint64(t[i].num_melds)
        for k in range(t[i].num_melds):
            seen = mix(seen ^ t[i].meld_cards[k], t[i].meld_stands[k])
        changed = full or seen != seen_melds[i]
        seen_melds[i] = seen
        problem = _problem(t[i], borrow_row(masks, i), legal, changed, full, real, jokers, sizes)
        if problem:
            return i, problem
    return -1, 0


# ----------------------------------------------------------------------------------------------------------- the check


def check_rules(rules: Rummy40Rules | str, *, hands: int = 500, seed: int = 0, tables: int = 64) -> Report:
    """Plays random hands under some rules and checks at every step that the game holds together.

    Half of the hands are episodes of their own, the others belong to matches. The choices range from uniform to play
    that keeps cards together, lays at once, steals or holds back. What is checked:

    - cards: hands, pile, stock and melds are the cards in play; hands have their size;
    - melds: each on the table is one, and what can be added to it or stolen follows from it;
    - moves: somebody has a legal action until the hand is over, also after every other legal action; a step moves what
      it should, and no hand is longer than the rules allow;
    - actions: the mask is what is accepted; an illegal action raises and changes nothing;
    - views: what a seat cannot see changes nothing in its view, observation and mask;
    - results: penalties follow from the hands, points sum to zero, matches end as the rules say;
    - copies: a table plays the same alone, among others, from a copy, from its record.

    Args:
        rules: Rules, or text as for `gin_env.rummy40.rules.as_rules`.
        hands: Hands to play; some more may end.
        seed: Decides deals and choices.
        tables: Tables at once.

    Returns:
        What was seen; its ``phases`` are decisions by the kind of the action.

    Raises:
        ConformanceError: If a check fails.
        ValueError: If an argument is out of range.
    """
    rules = as_rules(rules)
    for name, number in (("hands", hands), ("tables", tables)):
        if number < 1:
            raise ValueError(f"{name} is {number}; expected at least 1")
    reproduce = f"gin_env.rummy40.testing.check_rules({rules.text!r}, hands={hands}, seed={seed}, tables={tables})"
    report = Report(0, 0, Counter(), Counter())
    for match in (False, True):
        share = hands // 2 if match else hands - hands // 2
        if share:
            report += _Run(rules, match, seed, min(tables, share), reproduce).play(share)
    return report


class _Run:
    """Tables that are played from deal to deal and checked on the way."""

    def __init__(self, rules: Rummy40Rules, match: bool, seed: int, size: int, reproduce: str) -> None:
        self.rules, self.match, self.seed, self.reproduce = rules, match, seed, reproduce
        self.tables = engine.new_tables(rules, size, seed=seed, match=match)
        self.rng = np.random.default_rng([seed, match])
        self.space = observation_space(rules)
        self.masks = np.empty((size, rules.num_actions), dtype=np.int8)
        self.seen = np.zeros(size, dtype=np.uint64)
        self.actions = np.empty(size, dtype=np.int64)
        self.points = np.empty((size, rules.seats))
        self.over = np.empty(size, dtype=np.int8)
        self.hands = self.decisions = self.turn = 0
        self.kinds = np.zeros(len(KINDS), dtype=np.int64)
        self.endings = np.zeros(len(ENDINGS), dtype=np.int64)
        streams = mix_keys(seed, np.array([_PLAY_STREAM, _STYLE_STREAM], dtype=np.uint64))
        self.play_seed, self.style_seed = (int(stream) for stream in streams)

    def play(self, hands: int) -> Report:
        """Plays until so many hands have ended."""
        while self.hands < hands:
            self.step()
            self.turn += 1
        return Report(
            self.hands,
            self.decisions,
            Counter({KINDS[kind]: int(self.kinds[kind]) for kind in np.flatnonzero(self.kinds)}),
            Counter({ENDINGS[ending]: int(self.endings[ending]) for ending in np.flatnonzero(self.endings)}),
        )

    def fail(self, check: str, problem: str, tables: Tables | None = None, row: int = 0) -> None:
        """Raises the error of a failed check, with the table's record if one is given."""
        position = ""
        if tables is not None:
            table = tables[row]
            try:
                line = table_record(tables, row).line()
            except ValueError as error:  # something is wrong with the table
                line = f"none can be written ({error})"
            position = (
                f"table {row} of {tables.size}, hand {table['hand_number']}{' of matches' if self.match else ''}, "
                f"phase {PHASES[table['phase']]!r}, seat {table['mover']} to move\nrecord: {line}"
            )
        raise ConformanceError(check, problem, self.reproduce, position)

    def require(self, right: np.ndarray, check: str, problem: str, tables: Tables) -> None:
        """Fails unless something is right (N,) at all tables."""
        if not right.all():
            self.fail(check, problem, tables, int(np.argmin(right)))

    def choose(self) -> None:
        """Chooses an action for each table, a pure function of the seed, the table, its hand and the moves played."""
        tables = self.tables
        hand_keys = mix_keys(self.style_seed, tables["key"] + tables["hand_number"].astype(np.uint64))
        places = np.arange(MAX_SEATS, dtype=np.uint64) * np.uint64(12)
        styles = ((hand_keys[:, None] >> places) % np.uint64(len(_STYLES))).astype(np.int64)
        keys = engine.decision_keys(self.play_seed, tables)
        _choose(tables, self.masks, keys, styles, _STYLES, _KEEPS, _KIND_OF, self.actions)

    def step(self) -> None:
        """Checks where the tables are, plays a move at each, checks what came of it, and deals where a hand is over."""
        tables = self.tables
        engine.legal(tables, self.masks)
        self.check_positions(tables, self.masks, full=False)
        self.choose()
        sampled = self.turn % _SAMPLE_EVERY == 0
        if sampled:
            row = int(self.rng.integers(tables.size))
            self.check_views(tables, row)
            self.check_acceptance(tables, row)
            self.check_copies(tables, row)
        drawn = tables["draws"].copy()
        scores = tables["scores"].copy()
        try:
            engine.step(tables, self.actions, points=self.points, over=self.over)
        except IllegalAction as error:
            self.fail("legal actions", f"{action_name(error.action)!r} is refused, and the mask allows it",
                      tables, error.table)  # fmt: skip
        self.decisions += tables.size
        self.kinds += np.bincount(_KIND_OF[self.actions], minlength=len(KINDS))
        ended = tables["phase"] == OVER
        self.require(
            (self.over != GOING_ON) == ended, "moves", "step and phase disagree whether the hand is over", tables
        )
        self.require(tables["num_moves"] <= MAX_MOVES, "length", f"a hand has more than {MAX_MOVES} moves", tables)
        counted = tables["draws"] - drawn == np.isin(self.actions, (DRAW, TAKE))
        self.require(counted, "moves", "a draw was not counted, or another move was", tables)
        self.require(ended | ~self.points.any(axis=1), "moves", "points are won before the hand is over", tables)
        rows = np.flatnonzero(ended)
        if rows.size:
            self.check_ends(rows, scores)
            if sampled:
                row = int(self.rng.choice(rows))
                self.check_record(row)
                for seat in range(self.rules.seats):
                    self.check_bounds(view.look(tables.take([row]), seat)[0], seat, tables, row)
            engine.deal(tables, rows)

    def check_positions(self, tables: Tables, masks: np.ndarray, full: bool) -> None:
        """Checks all that can be said of positions."""
        seen = np.zeros(tables.size, dtype=np.uint64) if full else self.seen
        row, problem = _check_positions(tables, masks, seen, MELD_REAL, MELD_JOKERS, MELD_SIZE, full)
        if problem:
            check, _, text = _PROBLEMS[problem].partition(": ")
            self.fail(check, text, tables, row)

    def check_ends(self, rows: np.ndarray, scores: np.ndarray) -> None:
        """Checks how hands ended: why, what is counted, who has won the match."""
        rules, seats = self.rules, self.rules.seats
        t, points, over, scores = self.tables.take(rows), self.points[rows], self.over[rows], scores[rows, :seats]
        self.check_positions(t, np.zeros((rows.size, self.masks.shape[1]), dtype=np.int8), full=True)
        self.hands += rows.size
        self.endings += np.bincount(t["ending"], minlength=len(ENDINGS))

        def must(right: np.ndarray, problem: str) -> None:
            self.require(right, "results", problem, t)

        ending, mover = t["ending"], t["mover"]
        empty = t["num_cards"][:, :seats] == 0
        went_out = empty[np.arange(rows.size), mover] & (t["out"] == mover) & (empty.sum(axis=1) == 1)
        nobody = ~empty.any(axis=1) & (t["out"] == NOBODY)
        stock_out = nobody & (t["stock_at"] == rules.deck_size)
        capped = nobody & (t["draws"] == rules.draw_cap) & (t["stock_at"] < rules.deck_size)
        why = np.select([ending == OUT, ending == STOCK_OUT, ending == TRUNCATED], [went_out, stock_out, capped], False)
        must(why, "the hand has ended without a reason, or somebody else is said to have gone out")
        must(t["num_turns"] == t["draws"], "the number of turns is not that of the draws")
        kept = (t["final_hands"] == t["hands"]).all(axis=(1, 2)) & (t["final_jokers"] == t["jokers"]).all(axis=1)
        must(kept, "the hands of the result are not those held")

        bits = t["hands"][:, :seats, :, None] >> _CARDS & _U1
        jokers = rules.joker_points * t["jokers"][:, :seats].astype(np.int64)
        left = (bits.astype(np.int64) * _POINTS).sum(axis=(2, 3)) + jokers
        penalties = np.where(ending[:, None] == TRUNCATED, 0, left + t["booked"][:, :seats])
        must((t["penalties"][:, :seats] == penalties).all(axis=1), "the penalties are not what is in hand and booked")
        others = (penalties.sum(axis=1, keepdims=True) - penalties) / (seats - 1)
        must(np.isclose(points, others - penalties).all(axis=1), "the points are not those of the penalties")
        must(abs(points.sum(axis=1)) < 1e-9, "the points do not sum to zero")

        totals = scores + (penalties if self.match else 0)
        must((t["scores"][:, :seats] == totals).all(axis=1), "the scores are not those before and the penalties")
        lowest = totals == totals.min(axis=1, keepdims=True)
        done = np.full(rows.size, self.match) & (ending != TRUNCATED)
        if rules.limit is not None:
            done &= (totals.max(axis=1) >= rules.limit) & ((seats > 2) | (lowest.sum(axis=1) == 1))
        must(t["match_over"] == done, "the match has ended too early, or has not ended")
        must((t["match_winners"][:, :seats] == lowest * done[:, None]).all(axis=1), "others have won the match")
        expected = np.where(done | (not self.match), EPISODE_ENDED, HAND_ENDED)
        must(over == expected, "the step tells another end")

    # ------------------------------------------------------------------------------------------ now and then, one table

    def check_views(self, tables: Tables, row: int) -> None:
        """Nothing that a seat sees depends on what it cannot see."""
        one = tables.take([row])
        for seat in range(self.rules.seats):
            seen, looked = _observe(one, seat), view.look(one, seat)
            if held(seen["hand"][0], seen["jokers"][0]) != held(one["hands"][0, seat], one["jokers"][0, seat]):
                self.fail("views", f"seat {seat} does not see its hand", tables, row)
            moves = one["mover"][0] == seat and one["phase"][0] != OVER
            if not (looked[1][0] == (self.masks[row] if moves else 0)).all():
                self.fail("views", f"the mask shown to seat {seat} is not what is legal for it", tables, row)
            if not (view.encode(seen) == looked[0]).all():
                self.fail("views", "look and observe show a seat two things", tables, row)
            self.check_bounds(looked[0], seat, tables, row)
            shuffled = shuffle_hidden(one, seat, self.rng)
            again = view.look(shuffled, seat)
            if _observe(shuffled, seat).tobytes() != seen.tobytes():
                self.fail("hidden cards", f"seat {seat} can tell from its view what it cannot see", tables, row)
            if any((mine != theirs).any() for mine, theirs in zip(looked, again, strict=True)):
                self.fail("hidden cards", f"seat {seat} can tell from what it observes what it cannot see", tables, row)

    def check_bounds(self, observation: np.ndarray, seat: int, tables: Tables, row: int) -> None:
        """What a seat observes, (1, D), is in the space of observations that the environments announce."""
        low, high = self.space.low, self.space.high
        for place in np.flatnonzero((observation[0] < low) | (observation[0] > high))[:1]:
            told = f"number {place} of seat {seat} is {observation[0, place]}"
            self.fail("observation space", f"{told}; expected {low[place]} to {high[place]}", tables, row)

    def check_acceptance(self, tables: Tables, row: int) -> None:
        """The mask is what is accepted, each such move leaves another one, and a refusal changes nothing."""
        legal = np.flatnonzero(self.masks[row])
        if engine.legal_actions(tables, row) != legal.tolist():
            self.fail("legal actions", "legal_actions and the mask are not the same", tables, row)
        after = tables.take(np.full(legal.size, row))
        try:
            engine.step(after, legal)
        except IllegalAction as error:
            self.fail("legal actions", f"{action_name(error.action)!r} is refused, and the mask allows it", tables, row)
        self.check_positions(after, engine.legal(after), full=True)
        one = tables.take([row])
        before = one.tobytes()
        tried = self.rng.integers(self.masks.shape[1], size=_REFUSALS).tolist()
        hand = held(one["hands"][0, one["mover"][0]], one["jokers"][0, one["mover"][0]])
        tried += [DRAW, TAKE, TAKE_BACK, self.masks.shape[1], NUM_TWO_PACK_ACTIONS, -2]
        tried += [DISCARD + card for card in hand]
        for card in hand:
            tried += range(PLACE + card % NUM_CARDS, self.masks.shape[1], NUM_CARDS)
        for action in sorted(set(tried) - set(legal.tolist())):
            try:
                engine.step(one, [action])
            except IllegalAction as error:
                if error.legal != tuple(legal.tolist()) or error.action != action:
                    self.fail("illegal actions", "the refusal tells other legal actions", tables, row)
            else:
                self.fail("illegal actions", f"action {action} is accepted, and the mask forbids it", tables, row)
            if one.tobytes() != before:
                self.fail("illegal actions", f"action {action} was refused, and has changed the table", tables, row)

    def check_copies(self, tables: Tables, row: int) -> None:
        """A copy plays on as the table itself, wherever it lies and whatever lies beside it."""
        alone, among = tables.take([row]), tables.take(np.arange(tables.size))
        engine.step(alone, self.actions[[row]], redeal=True)
        engine.step(among, np.where(np.arange(tables.size) == row, self.actions, NO_ACTION), redeal=True)
        rest = np.arange(tables.size) != row
        if among.take(np.flatnonzero(rest)).tobytes() != tables.take(np.flatnonzero(rest)).tobytes():
            self.fail("copies", "a table without an action has changed", tables, row)
        if among.take([row]).tobytes() != alone.tobytes():
            self.fail("copies", "a table plays another way beside others", tables, row)

    def check_record(self, row: int) -> None:
        """A hand that has ended comes again from its record."""
        line = table_record(self.tables, row).line()
        try:
            *_, last = engine.replay(line)
        except RecordError as error:
            self.fail("records", f"the record cannot be played: {error}", self.tables, row)
        if table_record(last).line() != line:
            self.fail("records", "the record of a replayed hand is another one", self.tables, row)
        for field in ("hands", "jokers", "known", "pile", "meld_cards", "meld_stands", "scores", "penalties", "ending"):
            if (last[field][0] != self.tables[field][row]).any():
                self.fail("records", f"a replayed hand has another {field!r}", self.tables, row)


def _observe(tables: Tables, seat: int) -> view.View:
    """Returns the views of a seat, with zeros between the fields."""
    return view.observe(tables, seat, np.zeros(tables.size, dtype=view.VIEW_DTYPE))


def shuffle_hidden(tables: Tables, seat: int, rng: np.random.Generator) -> Tables:
    """Returns one table with the cards that a seat has not seen in other places, and other deals to come.

    Args:
        tables: One table.
        seat: Who looks.
        rng: Of the new places.
    """
    shuffled = tables.take([0])
    t = shuffled[0]
    seats, stock = int(t["rules"]["seats"]), slice(int(t["stock_at"]), int(t["rules"]["deck_size"]))
    t["key"] = rng.integers(1 << 63, dtype=np.uint64)
    others = [] if t["phase"] == OVER else [other for other in range(seats) if other != seat]
    hidden: list[int] = []
    sizes = []
    for other in others:
        known = held(t["known"][other], t["known_jokers"][other])
        unseen = held(t["hands"][other], t["jokers"][other])
        for card in known:
            unseen.remove(card)
        hidden += unseen
        sizes.append((known, len(unseen)))
    hidden += t["deck"][stock].tolist()
    new = rng.permutation(np.array(hidden, dtype=np.int64)).tolist()
    for other, (known, size) in zip(others, sizes, strict=True):
        hand, new = known + new[:size], new[size:]
        if t["mover"] == other and t["drawn"] != NO_CARD and hand:
            t["drawn"] = hand[-1]
        t["hands"][other] = 0
        t["jokers"][other] = hand.count(JOKER)
        for card in hand:
            if card != JOKER:
                again = (t["hands"][other, 0] >> np.uint64(card)) & _U1
                t["hands"][other, int(again)] |= _U1 << np.uint64(card)
    t["deck"][stock] = new
    return shuffled
