"""What an opponent may hold: its unseen cards sampled as likely as they are, given how it has played.

An opponent here is a style of play and a *history*: which of its cards were dealt to it and which came from the stock
at which turn. All orders of the pack are equally likely, and so are all histories that a view allows. The weight of
one is how likely its style was to play as the opponent has played, with what it held then.

1. `read_history` reads the opponent's turns from the view: the card that it could have taken, whether it took it, what
   it threw.
2. `follow` is a particle filter (Gordon, Salmond and Smith 1993): many opponents, each with a style and a random deal,
   are led through these turns. At each they draw a card, and are weighed: for having taken or left the top of the pile
   (`weigh_draw`), for having thrown this card and not knocked (`weigh_throw`). Where few have most of the weight, all
   are replaced by copies of them.
3. `wander` moves each of those that are left to other histories by the rule of Metropolis et al. (1953), which keeps
   the weights: another card in place of a hidden one, another time for a card to have come, another style. Copies of
   one opponent become different ones, and what the filter has missed is found.
"""

from typing import NamedTuple

import numpy as np

from agents.baselines import nth_bit
from agents.playouts import EARLY, EARLY_DRAWS, LATE, MELDS_ONLY, completes, lowers
from gin_env._compile import count, kernel, lowest
from gin_env.cards import NO_CARD, NUM_CARDS, NUM_RANKS
from gin_env.keys import mix
from gin_env.melds import INT_POINTS, bit, deadwood_without
from gin_env.tables import THROW, WALL_THROW
from gin_env.view import DEALT, OPPONENT, OWN

_U0 = np.uint64(0)
_U1 = np.uint64(1)

# Turns of the opponent that are looked at, from the last one back.
MAX_TURNS = 24
# What is kept of a turn: the card on the pile that the opponent saw and did not take (-1: it had no choice, or took
# one), 1 if it took one, the card that it threw, 1 if that one had come from the pile, and the card that it drew.
FACED, TOOK, THREW, RETURNED, DREW = range(5)

# How an opponent strays from its style: the chance to throw any card, to draw otherwise, and not to knock. Apart from
# that a throw is less likely for each point of deadwood that it leaves above the least, and more for a higher rank.
THROW_SLIP, DRAW_SLIP, KNOCK_SLIP = 0.05, 0.1, 0.02
_DEEP = 40  # points above the least from which on nothing changes
_FADING = np.exp(-0.7 * np.arange(_DEEP + 1))
_BY_RANK = np.exp(0.1 * np.arange(NUM_RANKS))

# A card that completes a meld with the opponent's others is proposed so many times as often (and accepted less, so
# that it does not count more).
_LURE = 8


class Particles(NamedTuple):
    """Scratch: the opponents of the filter."""

    hands: np.ndarray  # (M,) uint64
    styles: np.ndarray  # (M,) int64, rows of the styles
    drew: np.ndarray  # (M, MAX_TURNS) int8, the cards drawn, the last turn first
    weights: np.ndarray  # (M,) float64
    sources: np.ndarray  # (M,) int64
    turns: np.ndarray  # (MAX_TURNS, 5) int64
    after: np.ndarray  # (52,) int64


def particles(size: int) -> Particles:
    """Allocates scratch for so many opponents."""
    return Particles(
        np.zeros(size, dtype=np.uint64),
        np.zeros(size, dtype=np.int64),
        np.zeros((size, MAX_TURNS), dtype=np.int8),
        np.zeros(size),
        np.zeros(size, dtype=np.int64),
        np.zeros((MAX_TURNS, 5), dtype=np.int64),
        np.zeros(NUM_CARDS, dtype=np.int64),
    )


@kernel
def pick(key, number):
    """A uniform integer of 0 to ``number - 1`` from a random key."""
    return np.int64(((key >> np.uint64(32)) * np.uint64(number)) >> np.uint64(32))


@kernel
def unseen_cards(v):
    """The cards of a view that may be in the stock or, unseen, in the opponent's hand."""
    seen = v.hand | v.opponent_known
    for k in range(v.pile_size):
        seen |= bit(v.pile[k])
    return v.rules.pack & ~seen


@kernel
def hidden_cards(v):
    """The number of unseen cards in the opponent's hand."""
    return np.int64(v.opponent_cards) - count(v.opponent_known)


# ------------------------------------------------------------------------------------------------------ the history


@kernel
def _lowest_rank(cards):
    """The card of the lowest rank, of equals the first."""
    best = lowest(cards)
    while cards != _U0:
        if lowest(cards) % NUM_RANKS < best % NUM_RANKS:
            best = lowest(cards)
        cards &= cards - _U1
    return best


@kernel
def read_history(v, turns):
    """Reads the opponent's turns from what a view shows, the last one first.

    The pile holds what nobody took, from the bottom in order. Two neighbours thrown by the same player say that the
    other one's throw between them was taken. Which card that was is known where there is only one; where several were
    taken the lower ranks are held to be the later throws. A chain of cards thrown and taken at once can leave no
    trace but the cards; then a turn is put into the midst of the others.

    Args:
        v: A row of a view, before any knock.
        turns: (MAX_TURNS, 5) int64, written; the card drawn is -1 where it was one of the stock.

    Returns:
        The number of turns.
    """
    lying = _U0  # in the pile, thrown by the opponent
    own_lying = _U0
    for k in range(v.pile_size):
        if v.pile_by[k] == OPPONENT:
            lying |= bit(v.pile[k])
        elif v.pile_by[k] == OWN:
            own_lying |= bit(v.pile[k])
    gone = v.opponent_thrown & (v.own_known | v.own_thrown) & ~lying  # thrown by the opponent, taken by this seat
    taken = v.own_thrown & (v.opponent_known | v.opponent_thrown) & ~own_lying  # the other way round
    held = v.opponent_known  # of what the opponent took, going back
    number = 0
    place = np.int64(v.pile_size) - 1
    card, by = np.int64(NO_CARD), np.int64(DEALT)
    if v.taken != NO_CARD and v.opponent_thrown & bit(v.taken):
        card, by = np.int64(v.taken), np.int64(OPPONENT)
        gone &= ~bit(card)
    elif place >= 0:
        card, by = np.int64(v.pile[place]), np.int64(v.pile_by[place])
        place -= 1
    while by != DEALT and number < MAX_TURNS:
        below, below_by = np.int64(NO_CARD), np.int64(DEALT)
        if place >= 0:
            below, below_by = np.int64(v.pile[place]), np.int64(v.pile_by[place])
        # Next after the card below the opponent moved, and it drew from the stock.
        drew = below_by == OWN or (below_by == DEALT and place >= 0 and v.is_dealer)
        threw = np.int64(NO_CARD)
        if by == OPPONENT:
            threw = card
        elif drew and gone != _U0:
            threw = _lowest_rank(gone)
            gone &= ~bit(threw)
        if threw != NO_CARD:
            turns[number, FACED] = below if below_by == OWN else NO_CARD
            turns[number, TOOK] = 0
            turns[number, THREW] = threw
            turns[number, RETURNED] = taken & bit(threw) != _U0
            turns[number, DREW] = NO_CARD
            held |= taken & bit(threw)
            if not drew:
                one = held & taken & ~bit(threw)
                if one == _U0 and place < 0:
                    one = held & ~taken  # the upcard of the offer
                if one != _U0:
                    turns[number, TOOK] = 1
                    turns[number, DREW] = lowest(one)
                    held &= ~bit(lowest(one))
            number += 1
        card, by = below, below_by
        place -= 1

    held &= taken
    while held != _U0 and gone != _U0 and number < MAX_TURNS:
        middle = number // 2
        for k in range(number, middle, -1):
            for field in range(5):
                turns[k, field] = turns[k - 1, field]
        threw = _lowest_rank(gone)
        gone &= ~bit(threw)
        turns[middle, FACED] = NO_CARD
        turns[middle, TOOK] = 1
        turns[middle, THREW] = threw
        turns[middle, RETURNED] = 0
        turns[middle, DREW] = lowest(held)
        held &= held - _U1
        number += 1
    return number


@kernel
def offered(v):
    """The upcard if the opponent refused it in the offer, -1 otherwise."""
    if v.pile_size > 0 and v.pile_by[0] == DEALT and v.opponent_declined & bit(v.pile[0]):
        return np.int64(v.pile[0])
    return np.int64(NO_CARD)


@kernel
def own_draw(v, k):
    """Which of its draws in the hand the opponent made k turns ago, from 1."""
    return (v.draws + (v.phase != THROW and v.phase != WALL_THROW)) // 2 - k


@kernel
def weigh_draw(hand, card, took, style):
    """How likely a style is to take a card with this hand or, where ``took`` is false, to leave it."""
    likes = lowers(hand, card) and (style[MELDS_ONLY] == 0 or completes(hand, card))
    return 1 - DRAW_SLIP if likes == took else DRAW_SLIP


@kernel
def weigh_throw(v, hand, card, banned, draw, style, after):
    """How likely a style is to throw a card and not to knock.

    Args:
        v: A row of a view.
        hand: Eleven cards.
        card: The one that was thrown.
        banned: One that could not be thrown, or -1.
        draw: Own draws so far.
        style: See `agents.playouts.STYLE`.
        after: (52,) int64, scratch.
    """
    least = deadwood_without(hand, banned, INT_POINTS, 1, after)
    threshold = style[EARLY] if draw <= style[EARLY_DRAWS] else style[LATE]
    total = 0.0
    cards = hand if banned == NO_CARD else hand & ~bit(banned)
    size = count(cards)
    while cards != _U0:
        one = lowest(cards)
        cards &= cards - _U1
        total += _FADING[min(after[one] - least, _DEEP)] * _BY_RANK[one % NUM_RANKS]
    chance = _FADING[min(after[card] - least, _DEEP)] * _BY_RANK[card % NUM_RANKS] / total
    chance = (1 - THROW_SLIP) * chance + THROW_SLIP / size
    return chance * KNOCK_SLIP if least <= threshold and least <= v.limit else chance


@kernel
def weigh(v, turns, number, hidden, style, bar, after):
    """The weight of a history: how likely a style is to have played it.

    Args:
        v: A row of a view.
        turns: (MAX_TURNS, 5) with the cards drawn.
        number: Of turns.
        hidden: The opponent's unseen cards now.
        style: See `agents.playouts.STYLE`.
        bar: A weight below it need not be exact.
        after: (52,) int64, scratch.

    Returns:
        The weight, or some number below the bar; 0 where a card is drawn after it was thrown.
    """
    hand = v.opponent_known | hidden
    weight = 1.0
    for k in range(number):
        hand |= bit(turns[k, THREW])
        drew = turns[k, DREW]
        if not hand & bit(drew):
            return 0.0
        took = turns[k, TOOK] != 0
        banned = drew if took and not v.rules.rediscard else np.int64(NO_CARD)
        weight *= weigh_throw(v, hand, turns[k, THREW], banned, own_draw(v, k), style, after)
        hand &= ~bit(drew)
        card = drew if took else turns[k, FACED]
        if card != NO_CARD:
            weight *= weigh_draw(hand, card, took, style)
        if weight < bar:
            return weight
    if number < MAX_TURNS and offered(v) != NO_CARD:
        weight *= weigh_draw(hand, offered(v), False, style)
    return weight


# ------------------------------------------------------------------------------------------------------- the filter


@kernel
def follow(v, styles, number, key, p):
    """Leads opponents through the turns of a history, those that would have played so being copied.

    Args:
        v: A row of a view.
        styles: (S, 5) int64, `agents.playouts.STYLE`; each opponent has one of them, all equally often.
        number: Of turns in ``p.turns``.
        key: Random.
        p: `Particles`; hands, styles and cards drawn are written.
    """
    unseen = unseen_cards(v)
    turns = p.turns
    size = p.hands.size
    for i in range(size):
        key = mix(key, _U1)
        p.styles[i] = i % styles.shape[0]
        p.hands[i] = _deal(v, turns, number, unseen, key, p.drew[i])
        p.weights[i] = 1.0
        if number < MAX_TURNS and offered(v) != NO_CARD:
            p.weights[i] = weigh_draw(p.hands[i], offered(v), False, styles[p.styles[i]])
    for k in range(number - 1, -1, -1):
        threw = turns[k, THREW]
        took = turns[k, TOOK] != 0
        card = turns[k, DREW] if took else turns[k, FACED]
        total = 0.0
        squares = 0.0
        for i in range(size):
            hand = p.hands[i]
            style = styles[p.styles[i]]
            weight = p.weights[i]
            if card != NO_CARD:
                weight *= weigh_draw(hand, card, took, style)
            if p.drew[i, k] == NO_CARD:
                key = mix(key, _U1)
                rest = unseen & ~hand
                p.drew[i, k] = nth_bit(rest, pick(key, count(rest)))
            drew = np.int64(p.drew[i, k])
            hand |= bit(drew)
            banned = drew if took and not v.rules.rediscard else np.int64(NO_CARD)
            weight *= weigh_throw(v, hand, threw, banned, own_draw(v, k), style, p.after)
            p.hands[i] = hand & ~bit(threw)
            p.weights[i] = weight
            total += weight
            squares += weight * weight
        # Copies, where the weights are worth less than half as many equal ones.
        if k == 0 or 2 * total * total < size * squares:
            key = mix(key, _U1)
            _copy_by_weight(p, number, total, key)
    if number == 0 and offered(v) != NO_CARD:
        _copy_by_weight(p, 0, p.weights.sum(), key)


@kernel
def _deal(v, turns, number, unseen, key, drew):
    """Deals an opponent its first hand, and fixes when the cards came that it has thrown since.

    Going back from now each of its cards that was ever hidden is as likely as another to be the one drawn at a turn.
    Those that it still holds have no names yet: the first hand gets some, the others are left as -1.
    """
    nameless = hidden_cards(v)
    named = _U0
    for k in range(number):
        if not turns[k, RETURNED]:
            named |= bit(turns[k, THREW])
        drew[k] = turns[k, DREW]
        if not turns[k, TOOK]:
            key = mix(key, _U1)
            place = pick(key, nameless + count(named))
            if place < nameless:
                nameless -= 1
            else:
                drew[k] = nth_bit(named, place - nameless)
                named &= ~bit(drew[k])
    hand = named
    for _ in range(nameless):
        key = mix(key, _U1)
        rest = unseen & ~hand
        hand |= bit(nth_bit(rest, pick(key, count(rest))))
    return hand


@kernel
def _copy_by_weight(p, number, total, key):
    """Replaces the opponents by copies, about as many of each as its share of the weight (systematic resampling)."""
    size = p.hands.size
    offset = np.float64(key >> np.uint64(11)) * 2.0**-53
    at = 0
    reach = p.weights[0] / total * size
    for i in range(size):
        while reach < offset + i and at < size - 1:
            at += 1
            reach += p.weights[at] / total * size
        p.sources[i] = at
    # The sources rise. Upwards from the left and downwards from the right nothing is overwritten that is still needed.
    for i in range(size):
        if p.sources[i] > i:
            _copy(p, i, number)
    for i in range(size - 1, -1, -1):
        if p.sources[i] < i:
            _copy(p, i, number)
    for i in range(size):
        p.weights[i] = 1.0


@kernel
def _copy(p, i, number):
    source = p.sources[i]
    p.hands[i] = p.hands[source]
    p.styles[i] = p.styles[source]
    for k in range(number):
        p.drew[i, k] = p.drew[source, k]


# --------------------------------------------------------------------------------------------------------- the walk

_SUIT = np.uint64((1 << NUM_RANKS) - 1)
_NO_ACES = np.uint64(sum((1 << NUM_RANKS) - 2 << NUM_RANKS * suit for suit in range(4)))


@kernel
def completing(hand):
    """The cards that lie in a set or a run with two others of a hand; see `agents.playouts.completes`."""
    up = (hand << _U1) & _NO_ACES
    down = (hand & _NO_ACES) >> _U1
    runs = (up & (up << _U1) & _NO_ACES) | (up & down) | (down & ((down & _NO_ACES) >> _U1))
    one, two = hand & _SUIT, (hand >> np.uint64(NUM_RANKS)) & _SUIT
    three, four = (hand >> np.uint64(2 * NUM_RANKS)) & _SUIT, hand >> np.uint64(3 * NUM_RANKS)
    pairs = (one & two) | (three & four) | ((one | two) & (three | four))
    pairs |= pairs << np.uint64(NUM_RANKS)
    return runs | pairs | pairs << np.uint64(2 * NUM_RANKS)


@kernel
def wander(v, unseen, styles, number, hidden, style, steps, key, p):
    """Moves from one history to others, all of them being visited as often as they have weight.

    Args:
        v: A row of a view.
        unseen: Its unseen cards.
        styles: (S, 5) int64.
        number: Of turns in ``p.turns``, which hold the cards drawn.
        hidden: The opponent's unseen cards in the first history.
        style: Its style, a row of ``styles``.
        steps: Moves to try.
        key: Random.
        p: `Particles`, for its turns and scratch.

    Returns:
        The opponent's unseen cards and its style in the last one.
    """
    turns = p.turns
    ever = hidden  # cards that were hidden once
    for k in range(number):
        if not turns[k, RETURNED]:
            ever |= bit(turns[k, THREW])
    weight = weigh(v, turns, number, hidden, styles[style], 0.0, p.after)
    for _ in range(steps):
        key = mix(key, _U1)
        move = key & np.uint64(7)
        place = np.int64(key >> np.uint64(3) & np.uint64(0xFFFF))
        chance = np.float64(key >> np.uint64(19) & np.uint64(0xFFFFFF)) * 2.0**-24
        if move == 0:
            other = place * styles.shape[0] >> 16
            there = weigh(v, turns, number, hidden, styles[other], weight * chance, p.after)
            if there >= weight * chance:
                style, weight = other, there
        elif move < 6:
            if hidden == _U0 or unseen == hidden:
                continue
            goes = nth_bit(hidden, place * count(hidden) >> 16)
            rest = hidden & ~bit(goes)
            pool = unseen & ~rest
            better = completing(v.opponent_known | rest)
            lured = _LURE * count(pool & better)
            place = pick(mix(key, _U0), lured + count(pool & ~better))
            comes = nth_bit(pool & better, place // _LURE) if place < lured else nth_bit(pool & ~better, place - lured)
            if comes == goes:
                continue
            bar = weight * chance
            if better & bit(comes):
                bar *= _LURE
            if better & bit(goes):
                bar /= _LURE
            _rename(turns, number, goes, comes)
            there = weigh(v, turns, number, rest | bit(comes), styles[style], bar, p.after)
            if there >= bar:
                hidden, weight = rest | bit(comes), there
                ever = (ever & ~bit(goes)) | bit(comes)
            else:
                _rename(turns, number, comes, goes)
        elif number > 0:
            turn = place * number >> 16
            if turns[turn, TOOK]:
                continue
            one = turns[turn, DREW]
            two = nth_bit(ever, pick(mix(key, _U0), count(ever)))
            _rename(turns, number, two, one)
            turns[turn, DREW] = two
            there = weigh(v, turns, number, hidden, styles[style], weight * chance, p.after)
            if there >= weight * chance:
                weight = there
            else:
                turns[turn, DREW] = one
                for k in range(number):
                    if turns[k, DREW] == one and k != turn:
                        turns[k, DREW] = two
    return hidden, style


@kernel
def _rename(turns, number, card, to):
    """Puts another card in the place of one that was drawn."""
    for k in range(number):
        if turns[k, DREW] == card and not turns[k, TOOK]:
            turns[k, DREW] = to


@kernel
def believe(v, styles, steps, key, p, hidden, style):
    """Samples opponents, each as often as it is likely to have played as a view shows.

    Args:
        v: A row of a view, before any knock.
        styles: (S, 5) int64, `agents.playouts.STYLE`: the styles that an opponent may have, all equally likely.
        steps: Moves of `wander` from each opponent of the filter.
        key: Decides what is sampled.
        p: `Particles`, at least as many as are wanted.
        hidden: (W,) uint64, written: the unseen cards of each.
        style: (W,) int64, written: its style, a row of ``styles``.
    """
    unseen = unseen_cards(v)
    number = read_history(v, p.turns)
    follow(v, styles, number, mix(key, _U0), p)
    size = hidden.size
    for i in range(size):
        source = i * p.hands.size // size
        for k in range(number):
            p.turns[k, DREW] = p.drew[source, k]
        one = wander(
            v, unseen, styles, number, p.hands[source] & unseen, p.styles[source], steps, mix(key, np.uint64(i + 1)), p
        )
        # In random order, for neighbours of the filter may be much alike.
        place = pick(mix(key, ~np.uint64(i)), i + 1)
        hidden[i], style[i] = hidden[place], style[place]
        hidden[place], style[place] = one


@kernel
def deal_evenly(v, styles, key, hidden, style):
    """Samples opponents as `believe` does, but all of them equally likely, however they have played."""
    unseen = unseen_cards(v)
    for i in range(hidden.size):
        hidden[i] = _U0
        for _ in range(hidden_cards(v)):
            key = mix(key, _U1)
            rest = unseen & ~hidden[i]
            hidden[i] |= bit(nth_bit(rest, pick(key, count(rest))))
        style[i] = i % styles.shape[0]
