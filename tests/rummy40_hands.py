"""Positions and rules of Rummy40 for tests: written down as text, or random ones in which moves are scarce."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gin_env._compile import kernel
from gin_env.rummy40 import Rummy40Rules, as_rules
from gin_env.rummy40.board import refresh
from gin_env.rummy40.cards import JOKER, parse_cards
from gin_env.rummy40.tables import PLAY, Tables, empty_tables
from tests import reference_rummy40 as reference

FIRST_MELD = reference.FIRST_MELD


def hold(masks: np.ndarray, cards: Sequence[int]) -> int:
    """Writes a multiset into two masks, and returns its number of jokers."""
    for k in range(2):
        masks[k] = sum(1 << card for card in set(cards) - {JOKER} if cards.count(card) > k)
    return list(cards).count(JOKER)


def set_up(
    rules: Rummy40Rules | str,
    hand: str | Sequence[int],
    melds: Sequence[reference.Meld | tuple[int, str]] = (),
    *,
    opened: bool = True,
    banned: int | None = None,
    owed: int = 0,
    pile: str = "",
    match: bool = False,
) -> Tables:
    """Returns a table at which seat 0 has drawn and may lay.

    Args:
        rules: Of the game.
        hand: Of seat 0.
        melds: On the table: as the reference has them, or (owner, cards as they lie).
        opened: Whether seat 0 has opened; the owners of melds have.
        banned: Card that it has just taken.
        owed: Stolen jokers in its hand.
        pile: Cards from the bottom; without any the first card that is nowhere else.
        match: Whether the hand belongs to a match.
    """
    rules = as_rules(rules)
    tables = empty_tables(rules, 1, match)
    t = tables[0]
    told = reference.Table(rules)
    cards = parse_cards(hand) if isinstance(hand, str) else list(hand)
    rest = list(rules.deck)
    for card in cards:
        rest.remove(card)
    laid = [as_meld(*meld) if not isinstance(meld, reference.Meld) else meld for meld in melds]
    for k, meld in enumerate(laid):
        for card in meld.cards:
            rest.remove(card)
        t["meld_cards"][k] = sum(1 << card for card in meld.cards if card != JOKER)
        t["meld_stands"][k] = sum(1 << card for card in meld.stands(told.pack))
        t["meld_low"][k] = -1 if meld.first is None else meld.first
        t["meld_high"][k] = -1 if meld.first is None else meld.first + len(meld.cards) - 1
        t["meld_owner"][k] = meld.owner
        t["opened"][meld.owner] = 1
    t["num_melds"] = len(laid)
    thrown = parse_cards(pile) or rest[:1]
    for card in thrown:
        rest.remove(card)
    t["pile"][: len(thrown)] = thrown
    t["pile_size"] = len(thrown)
    t["jokers"][0] = hold(t["hands"][0], cards)
    t["num_cards"][0] = len(cards)
    for seat in range(1, rules.seats):
        others, rest = rest[: rules.hand_size], rest[rules.hand_size :]
        t["jokers"][seat] = hold(t["hands"][seat], others)
        t["num_cards"][seat] = len(others)
    t["opened"][0] = opened
    t["stock_at"] = rules.deck_size - len(rest)
    dealt = list(rules.deck)
    for card in rest:
        dealt.remove(card)
    t["deck"][: rules.deck_size] = dealt + rest
    t["phase"], t["mover"], t["dealer"], t["owed"] = PLAY, 0, rules.seats - 1, owed
    if banned is not None:
        t["banned"] = t["taken"] = banned
    t["draws"] = 1
    refresh(t)
    return tables


def as_meld(owner: int, cards: str) -> reference.Meld:
    """Returns a meld written as it lies on the table: a run from its lowest card on, a joker in its place."""
    ids = parse_cards(cards)
    real = [card for card in ids if card != JOKER]
    if len({card % 13 for card in real}) == 1:
        return reference.Meld(owner, tuple(sorted(ids)), None)
    place = next(place for place, card in enumerate(ids) if card != JOKER)
    return reference.Meld(owner, tuple(ids), ids[place] - place)


def told_from(tables: Tables) -> reference.Table:
    """Returns the reference's table in the middle of the turn at a table made by `set_up`, or come to by play."""
    t = tables[0]
    rules = Rummy40Rules.from_row(t["rules"])
    told = reference.Table(rules, bool(t["to_limit"]))
    seats = range(rules.seats)
    told.dealer, told.mover = int(t["dealer"]), int(t["mover"])
    told.phase = ("draw", "play", "over")[t["phase"]]
    told.hands = [tuple(held_by(tables, seat)) for seat in seats]
    told.known = [[] for _ in seats]
    told.opened = [bool(t["opened"][seat]) for seat in seats]
    told.booked = [int(t["booked"][seat]) for seat in seats]
    told.melds = tuple(meld_at(tables, k) for k in range(t["num_melds"]))
    told.pile = t["pile"][: t["pile_size"]].tolist()
    told.pile_by = [None] * len(told.pile)
    told.stock = t["deck"][t["stock_at"] : rules.deck_size].tolist()
    told.taken = told.drawn = None
    told.draws = int(t["draws"])
    told.laid, told.attempt, told.owed = int(t["attempt_points"]), int(t["attempt"]), int(t["owed"])
    told.attempted = bool(t["attempted"])
    told.banned = None if t["banned"] < 0 else int(t["banned"])
    return told


def held_by(tables: Tables, seat: int, row: int = 0) -> list[int]:
    """Returns the cards of a hand, sorted, by counting bits."""
    once, twice = (int(mask) for mask in tables["hands"][row, seat])
    cards = [card for card in range(52) for mask in (once, twice) if mask >> card & 1]
    return cards + [JOKER] * int(tables["jokers"][row, seat])


def meld_at(tables: Tables, k: int, row: int = 0) -> reference.Meld:
    """Returns a meld on the table as the reference has it."""
    t = tables[row]
    real, stands = int(t["meld_cards"][k]), int(t["meld_stands"][k])
    low, high, owner = int(t["meld_low"][k]), int(t["meld_high"][k]), int(t["meld_owner"][k])
    if low < 0:
        cards = [card for card in range(52) if real >> card & 1]
        return reference.Meld(owner, (*cards, *[JOKER] * bool(stands)), None)
    return reference.Meld(owner, tuple(JOKER if stands >> card & 1 else card for card in range(low, high + 1)), low)


@kernel
def choose(masks, keys, eager, out):
    """Chooses a legal action of each row by its key: any, or where ``eager`` one that puts cards on the table."""
    for i in range(keys.size):
        first = 0
        if eager[i]:
            for action in range(masks.shape[1] - 1, FIRST_MELD - 1, -1):
                if masks[i, action]:
                    first = FIRST_MELD
                    break
        legal = 0
        for action in range(first, masks.shape[1]):
            legal += masks[i, action]
        nth = np.int64((keys[i] >> np.uint64(33)) % np.uint64(max(legal, 1)))
        for action in range(first, masks.shape[1]):
            nth -= masks[i, action]
            if nth < 0:
                out[i] = action
                break


@kernel
def conserved(t, whole):
    """Returns the first table that does not hold every card as often as (53,) says, or -1."""
    counts = np.empty(53, dtype=np.int64)
    for i in range(t.size):
        counts[:] = 0
        for seat in range(t[i].rules.seats):
            counts[52] += t[i].jokers[seat]
            for card in range(52):
                for k in range(2):
                    counts[card] += t[i].hands[seat, k] >> np.uint64(card) & np.uint64(1)
        for k in range(t[i].num_melds):
            counts[52] += t[i].meld_stands[k] > 0
            for card in range(52):
                counts[card] += t[i].meld_cards[k] >> np.uint64(card) & np.uint64(1)
        for k in range(t[i].pile_size):
            counts[t[i].pile[k]] += 1
        for k in range(t[i].stock_at, t[i].rules.deck_size):
            counts[t[i].deck[k]] += 1
        for card in range(53):
            if counts[card] != whole[card]:
                return i
    return -1


# ------------------------------------------------------------------------------------------------------ random ones


def random_position(rng: Random) -> Tables:
    """Returns a table in the middle of a turn, with scarce cards: few in hand, many that go together, jokers owed."""
    seats = rng.choice((2, 2, 4))
    packs = rng.choice((None, 1, 2))
    small = rng.random() < 0.3 and (packs or seats // 2) * 2 >= seats
    rules = Rummy40Rules(
        seats=seats,  # type: ignore[arg-type]
        packs=packs,
        jokers=rng.choice((None, 4)),
        ranks=rng.randint(5, 8) if small else 13,
        suits=rng.choice((3, 4)) if small else 4,
        hand_size=5 if small else 10,
        opening=rng.choice((0, 20, 40, 50)),
        adding=rng.choice((None, "own", "any")),
        stealing=rng.choice(("any", "any", "own")),
    )
    pool = rng.sample(rules.deck, rules.deck_size)
    pack = set(rules.deck)

    def take(cards: Sequence[int]) -> bool:
        rest = list(pool)
        for card in cards:
            if card not in rest:
                return False
            rest.remove(card)
        pool[:] = rest
        return True

    hand: list[int] = []
    opened = rng.random() < 0.7
    melds: list[reference.Meld] = []
    if opened:
        hand += [JOKER] * rng.choice((0, 0, 1, 1, 2))
        take(hand)
        for _ in range(rng.randint(1, 5)):
            cards, first = rng.choice(reference.LAYABLE)
            meld = reference.Meld(rng.randrange(seats), cards, first)
            stands = meld.stands(sorted(pack - {JOKER}))
            if JOKER in cards and not set(stands) <= pack:
                continue
            if take(cards):
                melds.append(meld)
        size = rng.randint(2, 7)
    else:
        hand += [JOKER] * rng.choice((0, 1, 1, 2, 2, 3)) if rules.num_jokers > 2 else [JOKER] * rng.choice((0, 1, 2))
        take(hand)
        size = rules.hand_size + 1
    # Cards that go together: whole melds, parts of melds, cards that fit on the table.
    while len(hand) < size:
        if rng.random() < 0.7:
            real = [card for card in rng.choice(reference.LAYABLE)[0] if card != JOKER]
            wanted = rng.sample(real, rng.randint(1, len(real)))
        elif melds and rng.random() < 0.7:
            places = rng.choice(melds).places(sorted(pack - {JOKER}))
            wanted = [card for cards in places.values() for card in cards][:1]
        else:
            wanted = rng.sample(range(52), 1)
        wanted = wanted[: size - len(hand)]
        if take(wanted):
            hand += wanted
    owed = rng.randint(0, hand.count(JOKER)) if opened else 0
    banned = rng.choice(hand) if rng.random() < 0.5 else None
    if banned == JOKER and hand.count(JOKER) <= owed:
        banned = None
    return set_up(rules, hand, melds, opened=opened, banned=banned, owed=owed)


@st.composite
def any_rummy40_rules(draw: st.DrawFn) -> Rummy40Rules:
    """Draws rules that can be played: whole packs and small ones, each field at its limits or anywhere between."""
    seats = draw(st.sampled_from([2, 4]))
    packs = draw(st.sampled_from([None, 1, 2]))
    whole = draw(st.booleans())
    ranks = 13 if whole else draw(st.integers(3, 13))
    suits = 4 if whole else draw(st.integers(1, 4))
    num_packs = packs or seats // 2
    jokers = draw(st.sampled_from([0, 1, 2, 3, 4] + [None] * (whole or num_packs == 1)))
    num_jokers = 2 * num_packs if jokers is None else jokers
    most = (num_packs * ranks * suits + num_jokers - 2) // seats
    while most <= num_jokers or most < 2:
        jokers, num_jokers, ranks, suits = 0, 0, 13, 4
        most = (num_packs * ranks * suits - 2) // seats
    opening = draw(st.sampled_from([0, 40, 50, 1, 100, 20]))
    fields: dict[str, Any] = {
        "opening": opening,
        "hand_size": draw(st.integers(max(2, num_jokers + 1), min(10, most))),
        "wrong_opening": draw(st.sampled_from(["masked", "penalty"] if opening else ["masked"])),
        "opening_penalty": draw(st.sampled_from([0, 20, 1000])),
        "adding": draw(st.sampled_from([None, "own", "any"])),
        "stealing": draw(st.sampled_from(["any", "own", "no"])),
        "pile": draw(st.sampled_from(["anyone", "opened"])),
        "rediscard": draw(st.booleans()),
        "joker_points": draw(st.sampled_from([0, 25, 50, 1000])),
        "first_dealer": draw(st.sampled_from(["random", *range(seats)])),
        "draw_cap": draw(st.sampled_from([1, 7, 200])),
        "limit": draw(st.sampled_from([None, 1, 100, 200, 500, 1_000_000])),
    }
    return Rummy40Rules(
        name="random", seats=seats, packs=packs, jokers=jokers, ranks=ranks, suits=suits, **fields
    )  # fmt: skip
