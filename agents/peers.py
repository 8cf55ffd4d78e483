"""The scripted players of other libraries, rebuilt from how they behave. Compiled, batched.

They play every preset. Where the rules differ from those that a player was written for, its docstring says what it
does.
"""

import numpy as np

from agents.base import register
from agents.baselines import greedy_throw, nth_bit
from agents.laying import lay_action, meld_action, next_meld
from agents.lookahead import completing
from gin_env._compile import borrow_row, count, kernel, lowest
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, MAX_MELDS, MELDS, PASS, TAKE
from gin_env.cards import NO_CARD, NUM_CARDS, NUM_RANKS, NUM_SUITS, SUITS, from_mask, to_mask
from gin_env.melds import (
    INT_POINTS,
    bit,
    deadwood_without,
    least_deadwood,
    num_set_choices,
    rank_cards,
    run_loose,
    set_choice,
    set_ranks,
    write_melds,
)
from gin_env.showdown import card_points
from gin_env.tables import DECLARE, DRAW_ANY, DRAW_STOCK, LAY_OFF, THROW, WALL, WALL_THROW
from gin_env.view import View

_U0 = np.uint64(0)
_U1 = np.uint64(1)


@kernel
def pick(cards, key):
    """One of some cards, each with the same probability."""
    # The key is random already: its upper half, scaled to the number of cards.
    return nth_bit(cards, np.int64(((key >> np.uint64(32)) * np.uint64(count(cards))) >> np.uint64(32)))


@kernel
def legal_cards(hand, mask, first):
    """The cards of a hand whose action, ``first`` plus the card, is legal."""
    cards = _U0
    left = hand
    while left != _U0:
        card = lowest(left)
        left &= left - _U1
        if mask[first + card]:
            cards |= bit(card)
    return cards


@kernel
def least_of(cards, after):
    """Those of some cards whose throw leaves the least deadwood, by what each leaves: ``after`` (52,), points."""
    best = _U0
    least = 10_000
    while cards != _U0:
        card = lowest(cards)
        cards &= cards - _U1
        if after[card] < least:
            least, best = after[card], _U0
        if after[card] == least:
            best |= bit(card)
    return best


# ---------------------------------------------------------------------------------------------------- openspiel-simple


def _their_runs() -> np.ndarray:
    """Returns the runs of three to five cards in the order in which OpenSpiel finds them."""

    def order(run: int) -> tuple[int, ...]:
        low = from_mask(run)[0]
        return -run.bit_count(), "SCDH".index(SUITS[low // NUM_RANKS]), low

    runs = [meld for meld in MELDS.tolist() if len({card // NUM_RANKS for card in from_mask(meld)}) == 1]
    return np.array(sorted(runs, key=order), dtype=np.uint64)


_THEIR_RUNS = _their_runs()
_SPADES, _HEARTS, _DIAMONDS, _CLUBS = (
    np.uint64(to_mask(range(NUM_RANKS * suit, NUM_RANKS * (suit + 1)))) for suit in range(NUM_SUITS)
)
_LONGEST = 5  # cards of the longest run that one action lays
_MOST_MELDS = 64  # held at once: eleven cards of one suit hold 24
# Their suits from the one that they throw first: our S H D C are the fourth, the first, the second and the third.
_LAST_SUIT = np.array([0, 3, 2, 1], dtype=np.int64)


@kernel
def openspiel_melds(hand, held, out):
    """Writes the melds that OpenSpiel finds best into ``out`` (3,), 0 where unused, and returns their cards.

    Args:
        hand: At most eleven cards.
        held: (64,) uint64, scratch.
        out: (3,) uint64, written.
    """
    size = 0
    for rank in range(NUM_RANKS):
        four = rank_cards(rank)
        if hand & four == four:
            held[size], held[size + 1], held[size + 2] = four, four & ~_DIAMONDS, four & ~_CLUBS
            size += 3
    for rank in range(NUM_RANKS):
        four = rank_cards(rank)
        if hand & four == four:
            held[size], held[size + 1] = four & ~_HEARTS, four & ~_SPADES
            size += 2
        elif count(hand & four) == 3:
            held[size] = hand & four
            size += 1
    for k in range(_THEIR_RUNS.size):
        if _THEIR_RUNS[k] & ~hand == _U0:
            held[size] = _THEIR_RUNS[k]
            size += 1
    for k in range(MAX_MELDS):
        out[k] = _U0
    most = 0
    # Only more points replace what came before.
    for i in range(size):
        one = held[i]
        points = card_points(one)
        if points > most:
            most, out[0], out[1], out[2] = points, one, _U0, _U0
        for j in range(i + 1, size):
            if held[j] & one:
                continue
            two = one | held[j]
            points = card_points(two)
            if points > most:
                most, out[0], out[1], out[2] = points, one, held[j], _U0
            for k in range(j + 1, size):
                if not held[k] & two:
                    points = card_points(two | held[k])
                    if points > most:
                        most, out[0], out[1], out[2] = points, one, held[j], held[k]
    return out[0] | out[1] | out[2]


@kernel
def first_to_spare(hand, banned, melds):
    """The first card of some melds, suits in the order S C D H, without which nothing is left loose; -1 for none."""
    for k in range(MAX_MELDS):
        for number in range(NUM_CARDS):
            card = (number // NUM_RANKS * 3) % 4 * NUM_RANKS + number % NUM_RANKS  # S C D H: 0, 3, 2, 1
            if melds[k] & bit(card) and card != banned and least_deadwood(hand & ~bit(card)) == 0:
                return card
    return -1


@kernel
def openspiel_row(v, mask, after, held, melds):
    """What `OpenSpielSimple` plays in a row of a view.

    Args:
        v: The row.
        mask: (A,) int8.
        after: (52,) int64, scratch.
        held: (64,) uint64, scratch.
        melds: (3,) uint64, scratch.

    Returns:
        An action id.
    """
    phase = v.phase
    if phase == LAY_OFF:
        return PASS
    if phase >= DECLARE:
        laid = v.own_melds[0] | v.own_melds[1] | v.own_melds[2]
        off = _U0
        if phase != DECLARE:
            off = v.layoffs[0] | v.layoffs[1] | v.layoffs[2]
        openspiel_melds(v.hand & ~off, held, melds)
        if laid & ~(melds[0] | melds[1] | melds[2]):
            return lay_action(v)  # another has begun: the best of what is left
        for k in range(MAX_MELDS - 1, -1, -1):
            if melds[k] & ~laid:
                return lay_action(v) if melds[k] & laid else meld_action(melds[k])
        return PASS
    if phase == DRAW_STOCK:
        return DRAW
    if phase == WALL:
        return TAKE if mask[TAKE] else PASS
    banned = np.int64(NO_CARD) if v.rules.rediscard else np.int64(v.taken)
    if phase != THROW and phase != WALL_THROW:
        hand = v.hand | bit(v.upcard)
        melded = openspiel_melds(hand, held, melds)
        loose = hand & ~melded
        dearest = 0
        rest = loose if v.rules.rediscard else loose & ~bit(v.upcard)
        while rest != _U0:
            dearest = max(dearest, INT_POINTS[lowest(rest)])
            rest &= rest - _U1
        if melded & bit(v.upcard) or card_points(loose) - dearest <= v.limit:
            return TAKE
        return DRAW if phase == DRAW_ANY else PASS
    if mask[BIG_GIN]:
        return BIG_GIN
    loose = v.hand & ~openspiel_melds(v.hand, held, melds)
    best = -1 if loose else first_to_spare(v.hand, banned, melds)
    while loose != _U0:
        card = lowest(loose)
        loose &= loose - _U1
        rank = card % NUM_RANKS
        first = best < 0 or rank > best % NUM_RANKS
        if not first and rank == best % NUM_RANKS:
            first = _LAST_SUIT[card // NUM_RANKS] > _LAST_SUIT[best // NUM_RANKS]
        if first and card != banned:
            best = card
    knocks = legal_cards(v.hand, mask, KNOCK)
    if best < 0 or (knocks != _U0 and not knocks & bit(best)):
        best = greedy_throw(v.hand, banned, after)
    return KNOCK + best if knocks & bit(best) else DISCARD + best


@kernel
def _openspiel(views, mask, out):
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    held = np.zeros(_MOST_MELDS, dtype=np.uint64)
    melds = np.zeros(MAX_MELDS, dtype=np.uint64)
    for i in range(views.size):
        out[i] = openspiel_row(views[i], borrow_row(mask, i), after, held, melds)


@register("openspiel-simple")
class OpenSpielSimple:
    """The simple bot of OpenSpiel: melds first, knocks at once, never lays off.

    Its best melds are, of all groups of melds that share no card, the first with the most points. Melds are ordered so:
    first, by rank from the ace, of each rank held four times the set of four, that without its diamond and that without
    its club; then, by rank, of such a rank the set without its heart and that without its spade, and of each rank held
    three times its set; then runs of five, of four and of three cards, each by suit (S C D H) and lowest rank. A longer
    run is two melds. Groups are compared
    meld by meld in that order, a group before those that go on from it.

    Draw: takes the upcard or discard if it lies in the best melds of the eleven cards, or if these leave a knock: the
    points outside the melds, less the dearest card that may be thrown, are at most the limit. Otherwise it passes or
    draws from the stock. At the wall it takes the card if it may knock.

    Throw: of the cards outside its best melds the one of the highest rank, king before queen, then the first suit of
    H D C S. If there are none, the first of its best melds' cards without which nothing is left loose, melds in the
    order above and the cards of each by suit (S C D H) and rank. It throws it with a knock whenever it may knock. Where
    neither is a card that may be thrown, or a knock is legal but not with it, it throws what leaves the least deadwood
    (of equals the highest rank, then the last suit of S H D C). Declares big gin.

    After a knock it lays its best melds, the last in the order above first, and never lays a card off by itself; where
    the rules lay cards off for the defender they do so for it too.

    Rebuilt after OpenSpiel 2.0.2, whose bot forfeits its melds after the opponent's gin; this one lays them.
    """

    name = "openspiel-simple"

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(view.size, dtype=np.int64)
        _openspiel(np.ascontiguousarray(view), np.ascontiguousarray(mask, dtype=np.int8), out)
        return out


# ------------------------------------------------------------------------------------------------------- rlcard-novice


@kernel
def rlcard_row(v, mask, key, after):
    """What `RLCardNovice` plays in a row of a view.

    Args:
        v: The row.
        mask: (A,) int8.
        key: Random, uint64.
        after: (52,) int64, scratch.

    Returns:
        An action id.
    """
    phase = v.phase
    if phase >= DECLARE:
        return lay_action(v)
    if phase == DRAW_STOCK:
        return DRAW
    if phase == WALL:
        return TAKE if mask[TAKE] else PASS
    if phase != THROW and phase != WALL_THROW:
        if key >> np.uint64(63):
            return TAKE
        return DRAW if phase == DRAW_ANY else PASS
    if mask[BIG_GIN]:
        return BIG_GIN
    deadwood_without(v.hand, -1, INT_POINTS, 1, after)
    knocks = legal_cards(v.hand, mask, KNOCK)
    if knocks != _U0:
        best = least_of(knocks, after)
        return KNOCK + pick(best if after[lowest(best)] == 0 else knocks, key)
    return DISCARD + pick(least_of(legal_cards(v.hand, mask, DISCARD), after), key)


@kernel
def _rlcard(views, mask, rng, out):
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    for i in range(views.size):
        out[i] = rlcard_row(views[i], borrow_row(mask, i), rng[i], after)


@register("rlcard-novice")
class RLCardNovice:
    """The novice rule agent of RLCard: draws at random, knocks with any card that allows it.

    Draw: takes the upcard or discard with probability 1/2, otherwise passes or draws from the stock. At the wall it
    takes the card if it may knock.

    Throw: big gin if legal; else gin if legal, with one of the cards that leave nothing; else a knock if legal, with
    one of the cards that may be thrown for it, whatever they leave; else one of the cards that leave the least
    deadwood, of those that may be thrown. Each card of a choice has the same probability.

    Lays and lays off as the engine would (`agents.laying`). RLCard's game has no upcard offer, wall, layoffs and big
    gin: what is said of these is added. Rebuilt after RLCard 1.2.0.
    """

    name = "rlcard-novice"

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(view.size, dtype=np.int64)
        mask = np.ascontiguousarray(mask, dtype=np.int8)
        _rlcard(np.ascontiguousarray(view), mask, np.ascontiguousarray(rng, dtype=np.uint64), out)
        return out


# --------------------------------------------------------------------------------------------------------- eaai-simple


@kernel
def goes_on(melds, laid):
    """Whether what lies on the table is how someone lays these melds in their order, up to some point."""
    before = _U0
    for k in range(MAX_MELDS):
        before |= melds[k]
        if melds[k] & ~laid:
            # The next to be laid: nothing after it lies yet, and of it nothing or the first part of a long run.
            begun = melds[k] & laid
            long = count(melds[k]) > _LONGEST
            return laid & ~before == _U0 and (
                begun == _U0 or (long and begun == np.uint64(7) << np.uint64(lowest(melds[k])))
            )
    return laid & ~before == _U0


@kernel
def random_melds(hand, laid, key, melds):
    """Writes melds with the least deadwood that go on from those laid into ``melds`` (3,), each way as likely.

    Returns:
        Whether there are any.
    """
    ranks = set_ranks(hand)
    choices = num_set_choices(hand, ranks)
    least = least_deadwood(hand)
    ways = 0
    for choice in range(choices):
        sets = set_choice(hand, ranks, choice)
        if run_loose(hand & ~sets) == least:
            write_melds(hand, sets, melds)
            ways += goes_on(melds, laid)
    place = np.int64(((key >> np.uint64(32)) * np.uint64(ways)) >> np.uint64(32))
    for choice in range(choices):
        sets = set_choice(hand, ranks, choice)
        if run_loose(hand & ~sets) == least:
            write_melds(hand, sets, melds)
            if goes_on(melds, laid):
                if place == 0:
                    return True
                place -= 1
    return False


@kernel
def eaai_row(v, mask, key, after, melds):
    """What `EaaiSimple` plays in a row of a view.

    Args:
        v: The row.
        mask: (A,) int8.
        key: Random, uint64.
        after: (52,) int64, scratch.
        melds: (3,) uint64, scratch.

    Returns:
        An action id.
    """
    phase = v.phase
    if phase >= DECLARE:
        laid = v.own_melds[0] | v.own_melds[1] | v.own_melds[2]
        off = _U0
        if phase != DECLARE:
            off = v.layoffs[0] | v.layoffs[1] | v.layoffs[2]
        if phase == LAY_OFF or not random_melds(v.hand & ~off, laid, key, melds):
            return lay_action(v)
        return next_meld(melds, laid)
    if phase == DRAW_STOCK:
        return DRAW
    if phase == WALL:
        return TAKE if mask[TAKE] else PASS
    if phase != THROW and phase != WALL_THROW:
        if completing(v.hand) & bit(v.upcard):
            return TAKE
        return DRAW if phase == DRAW_ANY else PASS
    if mask[BIG_GIN]:
        return BIG_GIN
    cards = v.hand
    if v.taken != NO_CARD:
        if v.own_thrown & bit(v.taken):
            cards &= ~v.own_thrown
        cards &= ~bit(v.taken)
        if cards == _U0:
            cards = v.hand & ~bit(v.taken)
    deadwood_without(v.hand, -1, INT_POINTS, 1, after)
    card = pick(least_of(cards, after), key)
    if mask[KNOCK + card]:
        return KNOCK + card
    if mask[DISCARD + card]:
        return DISCARD + card
    # At the wall there are no other throws than a knock.
    return KNOCK + pick(least_of(legal_cards(v.hand, mask, KNOCK), after), key)


@kernel
def _eaai(views, mask, rng, out):
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    melds = np.zeros(MAX_MELDS, dtype=np.uint64)
    for i in range(views.size):
        out[i] = eaai_row(views[i], borrow_row(mask, i), rng[i], after, melds)


@register("eaai-simple")
class EaaiSimple:
    """The simple player of the EAAI 2021 gin rummy challenge: takes for a meld, knocks as soon as it may.

    Draw: takes the upcard or discard if some meld of the eleven cards contains it, be it among the best melds or not.
    Otherwise it passes or draws from the stock. At the wall it takes the card if it may knock.

    Throw: one of the cards that leave the least deadwood, each with the same probability, but never the card that it
    took from the pile in this turn, and none that would repeat a turn of this hand (below). It knocks with that card if
    it may. Where it must knock, at the wall, and may not with that card, it does with one of the cards that leave the
    least of those that it may knock with. Declares big gin.

    Repeats: the original never throws a card if it has drawn and thrown the same two cards in one turn of the hand
    before, in either order. That takes a memory, and a view has none of the turns, only of which cards it has thrown.
    Here, in a turn that takes a card which it has thrown before in the hand, it throws no other card that it has thrown
    before, as long as it holds any other. This forbids every repeat of a pair of which it has thrown both cards by
    then, together with pairs of such cards from different turns. It allows one repeat: to throw a card that it has held
    since the turn in which it drew it and threw the one now taken. Either way no cycle of takes goes on.

    Melds: where it lays them it chooses one of the arrangements with the least deadwood, each with the same
    probability; touching runs of a suit count as one. It leaves layoffs out of account, as its rules make them for the
    defender after that; where the rules leave them to it, it lays off as the engine would (`agents.laying`) and then
    the melds of what is left.
    """

    name = "eaai-simple"

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`."""
        out = np.empty(view.size, dtype=np.int64)
        mask = np.ascontiguousarray(mask, dtype=np.int8)
        _eaai(np.ascontiguousarray(view), mask, np.ascontiguousarray(rng, dtype=np.uint64), out)
        return out
