"""One turn: what the mover may do, and what becomes of it. Compiled helpers of `gin_env.rummy40.engine`, on one table.

A turn is a draw, any number of melds, additions and stolen jokers, and a discard, which ends it. Decisions where the
rule page is silent or short:

- A player has *opened* from the moment on at which the melds that it laid in one turn reach the minimum; it may add and
  steal in the same turn. With a minimum of 0 the first meld opens.
- A move is legal only if the turn can still end: some card must be left that may be thrown, which is no joker as the
  last one and not the card just taken, and each stolen joker must have found a place (`gin_env.rummy40.melds`).
- A stolen joker may be laid in a meld or added to one, also at the other end of the run that it comes from. Jokers look
  alike: one that is placed counts as the stolen one first, then as the one taken from the pile.
- Of two cards that look alike (two packs) the one just taken is laid first, so that the other may be thrown.
- Melds below the minimum (``wrong_opening="penalty"``): the player goes on laying, or takes all of them back, which
  books the penalty and ends the attempts of this turn. It discards only once none lie there. The others have seen them.
- Everybody counts what is in hand at the end of a turn after which no stock is left, but a player who goes out in that
  turn has gone out. Each seat wins the mean of the others' penalties less its own.
- A hand that reaches the cap on draws counts for nothing and is dealt again by the same dealer.
"""

import numpy as np

from gin_env._compile import count, kernel, lowest, write_cards
from gin_env.cards import NO_CARD, NUM_CARDS
from gin_env.melds import bit
from gin_env.rummy40.actions import (
    BLOCKS,
    DISCARD,
    DRAW,
    FIRST_RUN,
    JOKER_SET,
    LAY,
    MELD_JOKERS,
    MELD_POINTS,
    MELD_REAL,
    MELD_SIZE,
    NUM_ACTIONS,
    PLACE,
    STEAL_SET,
    TAKE,
    TAKE_BACK,
)
from gin_env.rummy40.board import adds_at, find_meld, put_card, put_meld, refresh, steals_at, takes_joker
from gin_env.rummy40.cards import JOKER
from gin_env.rummy40.melds import can_finish, is_real, list_melds, list_openings, points_of, without
from gin_env.rummy40.rules import CODES
from gin_env.rummy40.tables import (
    DRAW_ANY,
    EPISODE_ENDED,
    GOING_ON,
    HAND_ENDED,
    NOBODY,
    OUT,
    OVER,
    PLAY,
    STOCK_OUT,
    TRUNCATED,
)

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_PENALTY = CODES["penalty"]
_OPENED = CODES["opened"]
# (blocks, 2): place and which, of each block of 52 actions from PLACE on.
_BLOCKS = np.array(BLOCKS, dtype=np.int64)


# ------------------------------------------------------------------------------------------------------ what is legal


@kernel
def may_take(t):
    """Whether the mover may draw from the discard pile."""
    return t.pile_size > 0 and (t.rules.pile != _OPENED or t.opened[t.mover] > 0)


@kernel
def may_take_back(t):
    """Whether the mover may take back its melds. Where the mask sees to the minimum there is no need to."""
    return t.attempt > 0 and t.rules.wrong_opening == _PENALTY


@kernel
def throwable(t):
    """The cards that the mover may throw, as a mask, and whether it may throw a joker."""
    seat = t.mover
    if t.owed > 0 or t.attempt > 0:
        return _U0, False
    have, twice = t.hands[seat, 0], t.hands[seat, 1]
    jokers = np.int64(t.jokers[seat])
    if t.banned == JOKER:
        jokers -= 1
    elif t.banned != NO_CARD:
        have &= ~(bit(t.banned) & ~twice)
    return have, jokers > 0 and t.opened[seat] > 0 and t.num_cards[seat] > 1


@kernel
def may_lay(t, number):
    """Whether a player who has opened (or opens with the meld) can still end its turn once it has laid the meld."""
    seat = np.int64(t.mover)
    left = t.num_cards[seat] - MELD_SIZE[number]
    if t.owed == 0 and left > 1:
        return True
    joker = MELD_JOKERS[number]
    have, twice = without(t.hands[seat, 0], t.hands[seat, 1], MELD_REAL[number])
    room = np.int64(t.room[adds_at(t.rules, seat)])
    if not joker:
        # A set of all suits takes no joker, nor does a run of all ranks.
        full = t.rules.suits if number < FIRST_RUN else t.rules.ranks
        room += MELD_SIZE[number] < full
    banned = np.int64(t.banned)
    if is_real(banned) and (MELD_REAL[number] & bit(banned)) != _U0:
        banned = np.int64(NO_CARD)
    owed = t.owed - min(np.int64(t.owed), joker)
    return can_finish(
        have, twice, t.jokers[seat] - joker, left, owed, room, banned, t.rules.pack, np.int64(t.rules.suits)
    )


@kernel
def may_place(t, place, card, which):
    """Whether a player who has opened can still end its turn once the card, or a joker as the card, is in its place."""
    seat = np.int64(t.mover)
    rules = t.rules
    mine = adds_at(rules, seat)
    have, twice = t.hands[seat, 0], t.hands[seat, 1]
    jokers, size = np.int64(t.jokers[seat]), np.int64(t.num_cards[seat])
    owed, room = np.int64(t.owed), np.int64(t.room[mine])
    k = find_meld(t, seat, place, card, which)
    # Cards missing to a full meld: one that is full takes no joker.
    if t.meld_low[k] < 0:
        missing = rules.suits - count(t.meld_cards[k]) - (t.meld_stands[k] != _U0)
    else:
        missing = rules.ranks - (t.meld_high[k] - t.meld_low[k] + 1)
    banned = np.int64(t.banned)
    if place >= JOKER_SET and place < STEAL_SET:
        jokers -= 1
        size -= 1
        owed -= min(owed, 1)
        room -= 1
    else:
        have, twice = without(have, twice, bit(card))
        if card == banned:
            banned = np.int64(NO_CARD)
        if place >= STEAL_SET:
            jokers += 1
            owed += 1
            room += missing > 0 and adds_at(rules, np.int64(t.meld_owner[k])) == mine
        else:
            size -= 1
            room -= missing == 1 and takes_joker(t, k)
    return can_finish(have, twice, jokers, size, owed, room, banned, rules.pack, np.int64(rules.suits))


@kernel
def list_lays(t, found):
    """Writes the melds that the mover may lay into ``found`` (787,), by number, and returns how many there are."""
    seat = np.int64(t.mover)
    rules = t.rules
    have, twice = t.hands[seat, 0], t.hands[seat, 1]
    jokers, size = np.int64(t.jokers[seat]), np.int64(t.num_cards[seat])
    pack, suits = rules.pack, np.int64(rules.suits)
    need = 0 if t.opened[seat] else np.int64(rules.opening - t.attempt_points)
    lenient = rules.wrong_opening == _PENALTY
    if need > 0 and not lenient:
        banned = np.int64(t.banned)
        return list_openings(have, twice, jokers, size, banned, need, pack, suits, found)
    if need > 0 and t.attempted:
        return 0
    # Melds below the minimum may take all cards: they can be taken back.
    total = list_melds(have, jokers, pack, suits, size if need > 0 else size - 1, found)
    kept = 0
    for k in range(total):
        if MELD_POINTS[found[k]] < need or may_lay(t, found[k]):
            found[kept] = found[k]
            kept += 1
    return kept


@kernel
def placeable(t, place, which):
    """The cards that the mover may put into places of a kind, in the first (0), second or third meld that has one."""
    seat = np.int64(t.mover)
    if not t.opened[seat]:
        return _U0
    room = t.room[adds_at(t.rules, seat)]
    if place < STEAL_SET:
        cards = t.fits[adds_at(t.rules, seat), place, which]
        fine = t.owed == 0 and t.num_cards[seat] > 2
    else:
        cards = t.fits[steals_at(t.rules, seat), place, which]
        fine = t.owed == 0 and t.num_cards[seat] > 2 and room > 0
    if place >= JOKER_SET and place < STEAL_SET:
        if t.jokers[seat] == 0:
            return _U0
    else:
        cards &= t.hands[seat, 0]
    # With two cards left once all jokers are placed one of them may be thrown; otherwise each move is looked at.
    if fine:
        return cards
    rest = cards
    while rest != _U0:
        card = lowest(rest)
        rest &= rest - _U1
        if not may_place(t, place, card, which):
            cards &= ~bit(card)
    return cards


@kernel
def is_legal(t, action, found):
    """Whether the mover of the table may play ``action``; ``found`` is scratch as for `list_lays`."""
    if t.phase == DRAW_ANY:
        return action == DRAW or action == TAKE and may_take(t)
    if t.phase != PLAY or action < TAKE_BACK:
        return False
    if action == TAKE_BACK:
        return may_take_back(t)
    if action < LAY:
        cards, joker = throwable(t)
        card = action - DISCARD
        return joker if card == JOKER else (cards & bit(card)) != _U0
    if action < PLACE:
        listed = False
        for k in range(list_lays(t, found)):
            listed |= found[k] == action - LAY
        return listed
    block = (action - PLACE) // NUM_CARDS
    if block >= _BLOCKS.shape[0] or t.rules.packs == 1 and action >= NUM_ACTIONS:
        return False
    cards = placeable(t, _BLOCKS[block, 0], _BLOCKS[block, 1])
    return (cards & bit((action - PLACE) % NUM_CARDS)) != _U0


@kernel
def write_legal(t, found, out):
    """Writes the mask of legal actions of the table's mover into ``out``, int8: (1311,), with two packs (1987,).

    ``found`` is scratch as for `list_lays`.
    """
    for action in range(PLACE):
        out[action] = 0
    drawing = t.phase == DRAW_ANY
    out[DRAW] = drawing
    out[TAKE] = drawing and may_take(t)
    playing = t.phase == PLAY
    blocks = (out.size - PLACE) // NUM_CARDS
    if not playing or not t.opened[t.mover]:
        for action in range(PLACE, out.size):
            out[action] = 0
    if not playing:
        return
    out[TAKE_BACK] = may_take_back(t)
    cards, joker = throwable(t)
    write_cards(out, DISCARD, cards)
    out[DISCARD + JOKER] = joker
    for k in range(list_lays(t, found)):
        out[LAY + found[k]] = 1
    if t.opened[t.mover]:
        for block in range(blocks):
            write_cards(out, PLACE + block * NUM_CARDS, placeable(t, _BLOCKS[block, 0], _BLOCKS[block, 1]))


# -------------------------------------------------------------------------------------------------- what becomes of it


@kernel
def give(t, seat, cards, jokers):
    """Takes cards out of a hand: one of each of the mask, and jokers."""
    t.hands[seat, 0], t.hands[seat, 1] = without(t.hands[seat, 0], t.hands[seat, 1], cards)
    t.known[seat, 0], t.known[seat, 1] = without(t.known[seat, 0], t.known[seat, 1], cards)
    t.jokers[seat] -= jokers
    t.known_jokers[seat] = max(t.known_jokers[seat] - jokers, 0)
    t.num_cards[seat] -= count(cards) + jokers
    if is_real(t.banned) and (cards & bit(t.banned)) != _U0:
        t.banned = NO_CARD
    if jokers > 0:
        if t.owed > 0:
            t.owed -= 1
        elif t.banned == JOKER:
            t.banned = NO_CARD


@kernel
def receive(t, seat, cards, jokers, seen):
    """Puts cards into a hand: one of each of the mask, and jokers; ``seen`` by the others or not."""
    t.hands[seat, 1] |= t.hands[seat, 0] & cards
    t.hands[seat, 0] |= cards
    t.jokers[seat] += jokers
    t.num_cards[seat] += count(cards) + jokers
    if seen:
        t.known[seat, 1] |= t.known[seat, 0] & cards
        t.known[seat, 0] |= cards
        t.known_jokers[seat] += jokers


@kernel
def take_back(t):
    """Gives the mover back the melds that do not reach the minimum, and books the penalty."""
    seat = np.int64(t.mover)
    for k in range(t.num_melds - t.attempt, t.num_melds):
        receive(t, seat, t.meld_cards[k], 1 if t.meld_stands[k] != _U0 else 0, True)
        t.meld_cards[k] = _U0
        t.meld_stands[k] = _U0
        t.meld_low[k] = NO_CARD
        t.meld_high[k] = NO_CARD
        t.meld_owner[k] = NOBODY
    t.num_melds -= t.attempt
    t.attempt = 0
    t.attempt_points = 0
    t.attempted = True
    t.banned = NO_CARD if t.rules.rediscard else t.taken
    t.booked[seat] += t.rules.opening_penalty
    refresh(t)


@kernel
def play(t, action):
    """Plays a legal action and says how the table stands: GOING_ON, HAND_ENDED or EPISODE_ENDED."""
    seat = np.int64(t.mover)
    rules = t.rules
    t.moves[t.num_moves] = action
    t.num_moves += 1
    if action < TAKE_BACK:
        if action == TAKE:
            t.pile_size -= 1
            card = np.int64(t.pile[t.pile_size])
            t.pile[t.pile_size] = NO_CARD
            t.pile_by[t.pile_size] = NOBODY
            t.taken = card
            t.banned = NO_CARD if rules.rediscard else card
        else:
            card = np.int64(t.deck[t.stock_at])
            t.stock_at += 1
            t.drawn = card
        if card == JOKER:
            receive(t, seat, _U0, 1, action == TAKE)
        else:
            receive(t, seat, bit(card), 0, action == TAKE)
        t.draws += 1
        t.phase = PLAY
        return GOING_ON
    if action == TAKE_BACK:
        take_back(t)
        return GOING_ON
    if action >= PLACE:
        block, card = (action - PLACE) // NUM_CARDS, (action - PLACE) % NUM_CARDS
        place = _BLOCKS[block, 0]
        k = find_meld(t, seat, place, card, _BLOCKS[block, 1])
        put_card(t, k, place, card)
        if place >= JOKER_SET and place < STEAL_SET:
            give(t, seat, _U0, 1)
        else:
            give(t, seat, bit(card), 0)
            if place >= STEAL_SET:
                receive(t, seat, _U0, 1, True)
                t.owed += 1
        return GOING_ON
    if action >= LAY:
        number = action - LAY
        put_meld(t, seat, number)
        give(t, seat, MELD_REAL[number], MELD_JOKERS[number])
        if not t.opened[seat]:
            t.attempt += 1
            t.attempt_points += MELD_POINTS[number]
            if t.attempt_points >= rules.opening:
                t.opened[seat] = 1
                t.attempt = 0
                t.attempt_points = 0
        return GOING_ON
    card = action - DISCARD
    t.taken = NO_CARD
    t.banned = NO_CARD
    t.drawn = NO_CARD
    t.attempted = False
    if card == JOKER:
        give(t, seat, _U0, 1)
    else:
        give(t, seat, bit(card), 0)
    t.pile[t.pile_size] = card
    t.pile_by[t.pile_size] = seat
    t.pile_size += 1
    if t.num_cards[seat] == 0:
        return end_hand(t, OUT)
    if t.stock_at == rules.deck_size:
        return end_hand(t, STOCK_OUT)
    if t.draws >= rules.draw_cap:
        return end_hand(t, TRUNCATED)
    t.phase = DRAW_ANY
    t.mover = (seat + 1) % rules.seats
    return GOING_ON


@kernel
def hand_points(t, seat):
    """Points of the cards in a seat's hand."""
    return points_of(t.hands[seat, 0]) + points_of(t.hands[seat, 1]) + t.jokers[seat] * t.rules.joker_points


@kernel
def end_hand(t, ending):
    """Counts the hand and says whether the episode has ended with it: EPISODE_ENDED or HAND_ENDED."""
    seats = np.int64(t.rules.seats)
    t.phase = OVER
    t.ending = ending
    t.out = t.mover if ending == OUT else NOBODY
    t.num_turns = t.draws
    for seat in range(seats):
        t.final_hands[seat, 0] = t.hands[seat, 0]
        t.final_hands[seat, 1] = t.hands[seat, 1]
        t.final_jokers[seat] = t.jokers[seat]
        t.penalties[seat] = 0 if ending == TRUNCATED else hand_points(t, seat) + t.booked[seat]
        if t.to_limit:
            t.scores[seat] += t.penalties[seat]
    if not t.to_limit:
        return EPISODE_ENDED
    if ending != TRUNCATED:
        end_match(t)
    return EPISODE_ENDED if t.match_over else HAND_ENDED


@kernel
def end_match(t):
    """Ends the match where a score has reached the limit: the lowest wins, of two equal ones neither yet."""
    seats = np.int64(t.rules.seats)
    least = most = np.int64(t.scores[0])
    for seat in range(1, seats):
        least = min(least, np.int64(t.scores[seat]))
        most = max(most, np.int64(t.scores[seat]))
    # Without a limit one hand decides, and equal scores share it.
    if t.rules.limit < 0 or most >= t.rules.limit and (seats > 2 or least < most):
        t.match_over = True
        for seat in range(seats):
            t.match_winners[seat] = t.scores[seat] == least


@kernel
def write_points(t, points):
    """Writes what each seat has won in the hand that has ended, into (seats,): the others' mean less its own."""
    seats = points.size
    total = 0
    for seat in range(seats):
        total += t.penalties[seat]
    for seat in range(seats):
        points[seat] = (total - seats * t.penalties[seat]) / (seats - 1)
