"""What a seat of Rummy40 may know, its encoding, and the hidden state, against a plain account of the same hand."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gin_env.rummy40 import Rummy40Rules, engine, preset, view
from gin_env.rummy40.cards import JOKER
from gin_env.rummy40.tables import ENDINGS, OVER, PHASES, Tables
from gin_env.rummy40.testing import shuffle_hidden
from tests import reference_rummy40 as reference
from tests.rummy40_hands import any_rummy40_rules, held_by
from tests.test_rummy40_engine import STYLES, choose_move

RULES = (
    preset("rummy40"),
    preset("rummy40", opening=0, adding="any"),
    preset("rummy40", seats=4, opening=0),
    preset("rummy40", seats=4, wrong_opening="penalty"),
    preset("rummy40", packs=2, opening=0, stealing="own", rediscard=True),
    Rummy40Rules(name="small", ranks=6, suits=3, jokers=2, hand_size=4, opening=0),
)
some_rules = st.one_of(st.sampled_from(RULES), any_rummy40_rules())
seeds = st.integers(0, 2**32 - 1)


def position(rules: Rummy40Rules, seed: int, num_moves: int, match: bool) -> tuple[Tables, reference.Table]:
    """Returns a table some moves into its hands, or at the end of one, and the same as the reference tells it."""
    tables = engine.new_tables(rules, 1, seed=seed, match=match)
    told = reference.Table(rules, match)
    rng = Random(seed)
    style = rng.choice(STYLES)

    def deal() -> None:
        told.deal(tables["deck"][0, : rules.deck_size].tolist(), int(tables["dealer"][0]))

    deal()
    for _ in range(num_moves):
        if tables["phase"][0] == OVER:
            if rng.random() < 0.3:
                break
            engine.deal(tables)
            deal()
        move = choose_move(told, engine.legal_actions(tables), rng, style)
        told.play(move)
        engine.step(tables, [move])
    return tables, told


def mask(cards: Any) -> int:
    """Returns the mask of the cards that are no jokers."""
    return sum(1 << card for card in set(cards) - {JOKER})


def masks(cards: list[int]) -> list[int]:
    """Returns a multiset as two masks."""
    return [sum(1 << card for card in set(cards) - {JOKER} if cards.count(card) > k) for k in range(2)]


def may_go(told: reference.Table, seat: int, kinds: tuple[str, ...]) -> dict[str, set[int]]:
    """Returns for kinds of places the cards that have one in a meld to which a seat may go."""
    found: dict[str, set[int]] = {kind: set() for kind in kinds}
    for kind in kinds:
        whose = told.rules.stealing if kind.startswith("steal") else told.rules.adds_to
        for meld in told.melds:
            if whose == "any" or whose == "own" and meld.owner == seat:
                found[kind] |= set(meld.places(told.pack).get(kind, []))
    return found


ALL_PLACES = reference.ADD + reference.JOKERS + reference.STEALS


def expected_view(tables: Tables, told: reference.Table, seat: int) -> dict[str, Any]:
    """Returns every field of the view but the melds, from the seat on round."""
    rules, seats = told.rules, told.rules.seats
    over = told.phase == "over"
    to_move = not over and told.mover == seat
    order = [(seat + k) % seats for k in range(seats)]

    def by(who: int | None) -> int:
        return -1 if who is None else (who - seat) % seats

    def around(values: Any, empty: Any = 0) -> list[Any]:
        return [values[who] for who in order] + [empty] * (4 - seats)

    known = [told.hands[who] if over and who != seat else told.known[who] for who in range(seats)]
    feeds: set[int] = set()
    for who in order[1:]:
        if told.opened[who]:
            feeds |= set().union(*may_go(told, who, reference.ADD).values())
    places = may_go(told, seat, ALL_PLACES)
    result = told.result if over else None
    return {
        "seat": seat,
        "to_move": to_move,
        "attempted": told.attempted,
        "phase": PHASES.index(told.phase),
        "mover": by(int(tables["mover"][0])),
        "dealer": by(told.dealer),
        "upcard": told.pile[-1] if told.pile else -1,
        "taken": -1 if told.taken is None else told.taken,
        "drawn": told.drawn if to_move and told.drawn is not None else -1,
        "attempt": told.attempt,
        "attempt_points": told.laid,
        "owed": told.owed,
        "jokers": told.hands[seat].count(JOKER),
        "num_melds": len(told.melds),
        "draws": told.draws,
        "stock": len(told.stock),
        "pile_size": len(told.pile),
        "hand": masks(list(told.hands[seat])),
        "opened": around([int(opened) for opened in told.opened]),
        "num_cards": around([len(hand) for hand in told.hands]),
        "known": around([masks(list(cards)) for cards in known], [0, 0]),
        "known_jokers": around([list(cards).count(JOKER) for cards in known]),
        "booked": around(told.booked),
        "scores": around(told.scores),
        "limit": (rules.limit or 0) if told.match else 0,
        "fits": [mask(places[kind]) for kind in ALL_PLACES],
        "feeds": mask(feeds),
        "pile": told.pile + [-1] * (108 - len(told.pile)),
        "pile_by": [by(who) for who in told.pile_by] + [-1] * (108 - len(told.pile)),
        "ending": 0 if result is None else ENDINGS.index(result.ending),
        "out": -1 if result is None else by(result.out),
        "penalties": [0] * 4 if result is None else around(result.penalties),
    }


def expected_observation(tables: Tables, told: reference.Table, seat: int) -> dict[str, Any]:
    """Returns every field of the observation: planes as {card: number}, scalars as numbers."""
    seen = expected_view(tables, told, seat)
    rules, seats = told.rules, told.rules.seats
    hand = list(told.hands[seat])

    def plane(cards: list[int]) -> dict[int, float]:
        return {card: float(cards.count(card)) for card in cards if card != JOKER}

    order = [(seat + k) % seats for k in range(seats)]
    known = [list(told.hands[who]) if told.phase == "over" and who != seat else list(told.known[who]) for who in order]
    laid = [[card for meld in told.melds if meld.owner == who for card in meld.cards] for who in order]
    others_laid = [card for cards in laid[1:] for card in cards]
    jokers: list[dict[int, float]] = [{}, {}]
    for meld in told.melds:
        jokers[meld.owner != seat] |= dict.fromkeys(meld.stands(told.pack), 1.0)
    unseen = rules.deck
    for card in [*hand, *told.pile, *laid[0], *others_laid, *(card for cards in known[1:] for card in cards)]:
        unseen.remove(card)
    piles: list[dict[int, float]] = [{} for _ in order]
    for depth, (card, who) in enumerate(zip(reversed(told.pile), reversed(told.pile_by), strict=True)):
        if who is not None and card != JOKER:
            piles[order.index(who)].setdefault(card, 1 - depth / 128)
    places = may_go(told, seat, ALL_PLACES)
    held = {*hand} - {JOKER}
    plain = [set(cards) for cards, _ in reference.LAYABLE if JOKER not in cards and set(cards) <= set(told.pack)]
    limit = rules.limit if told.match else None
    need = 0 if told.opened[seat] else rules.opening - (told.laid if tables["mover"][0] == seat else 0)
    points = sum(rules.joker_points if card == JOKER else reference.points(card) for card in hand)
    by_seat = {
        "known": [plane(cards) for cards in known],
        "pile": piles,
        "opened": [float(told.opened[who]) for who in order],
        "cards": [len(told.hands[who]) / 10 for who in order],
        "joker_count": [float((hand if k == 0 else cards).count(JOKER)) for k, cards in enumerate(known)],
        "booked": [told.booked[who] / 10 for who in order],
        "score": [told.scores[who] / limit if limit else 0.0 for who in order],
    }
    own = {"known": "own_known", "pile": "own_pile", "joker_count": "own_joker_count"}
    fields: dict[str, Any] = {
        "hand": plane(hand),
        "unseen": plane(unseen),
        "upcard": plane(told.pile[-1:]),
        "own_melds": plane(laid[0]),
        "other_melds": plane(others_laid),
        "own_jokers": jokers[0],
        "other_jokers": jokers[1],
        "takes": dict.fromkeys(set().union(*(places[kind] for kind in reference.ADD)), 1.0),
        "takes_joker": dict.fromkeys(set().union(*(places[kind] for kind in reference.JOKERS)), 1.0),
        "frees_joker": dict.fromkeys(set().union(*(places[kind] for kind in reference.STEALS)), 1.0),
        "feeds": {card: 1.0 for card in range(52) if seen["feeds"] >> card & 1},
        "melds": {card: 1.0 for meld in plain if meld <= held for card in meld},
        "pairs": {card: 1.0 for meld in plain if len(meld) == 3 and len(meld & held) > 1 for card in meld & held},
        "draw": told.phase == "draw",
        "play": told.phase == "play",
        "to_move": seen["to_move"],
        "is_dealer": told.dealer == seat,
        "unseen_jokers": unseen.count(JOKER),
        "upcard_joker": told.pile[-1:] == [JOKER],
        "points": points / 10,
        "need": need / 10,
        "attempt": told.laid / 10,
        "attempted": told.attempted,
        "owed": told.owed,
        "stock": len(told.stock) / 64,
        "end_near": 1 / (1 + len(told.stock)),
        "draws": told.draws / 64,
        "match": bool(limit),
    }
    for name, values in by_seat.items():
        fields[own.get(name, f"own_{name}")] = values[0]
        fields |= {f"{name}_{k}": value for k, value in enumerate(values) if k > 0}
    return fields


@settings(max_examples=60, deadline=None)
@given(some_rules, seeds, st.integers(0, 150), st.booleans())
def test_view_and_observation_are_what_the_seat_has_seen(
    rules: Rummy40Rules, seed: int, num_moves: int, match: bool
) -> None:
    tables, told = position(rules, seed, num_moves, match)
    for seat in range(rules.seats):
        row = view.observe(tables, seat)[0]
        for name, value in expected_view(tables, told, seat).items():
            assert row[name].tolist() == value, (name, engine.refusal(tables, 0, -2).record)
        for k in range(36):
            meld = told.melds[k] if k < len(told.melds) else None
            stands = 0 if meld is None else mask(meld.stands(told.pack))
            assert int(row["meld_stands"][k]) == stands
            assert int(row["meld_cards"][k]) == (0 if meld is None else mask(meld.cards))
            assert row["meld_owner"][k] == (-1 if meld is None else (meld.owner - seat) % rules.seats)
            first = -1 if meld is None or meld.first is None else meld.first
            assert row["meld_low"][k] == first
            assert row["meld_high"][k] == (first if meld is None or first < 0 else first + len(meld.cards) - 1)

        observation, legal = (found[0] for found in view.look(tables, seat))
        assert (observation == view.encode(view.observe(tables, seat))[0]).all()
        assert np.flatnonzero(legal).tolist() == (engine.legal_actions(tables) if row["to_move"] else [])
        expected = expected_observation(tables, told, seat)
        assert observation.size == view.observation_size(rules) == view.observation_size(tables)
        at = 0
        for name, _ in view.planes(rules.seats):
            plane = [expected[name].get(card, 0.0) for card in range(52)]
            assert observation[at : at + 52].tolist() == pytest.approx(plane), name
            at += 52
        for name, _ in view.scalars(rules.seats):
            assert observation[at] == pytest.approx(float(expected[name]), rel=1e-6), name
            at += 1
        assert at == observation.size
        names = [name for name, _ in view.planes(rules.seats) + view.scalars(rules.seats)]
        assert sorted(names) == sorted(expected)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(some_rules, seeds, st.integers(0, 150), st.booleans())
def test_hidden_cards_do_not_matter(rules: Rummy40Rules, seed: int, num_moves: int, match: bool) -> None:
    tables, _ = position(rules, seed, num_moves, match)
    for seat in range(rules.seats):
        rng = np.random.default_rng(seed)
        shuffled = shuffle_hidden(tables, seat, rng)
        seen = [np.zeros(1, dtype=view.VIEW_DTYPE) for _ in range(2)]
        view.observe(tables, seat, seen[0])
        view.observe(shuffled, seat, seen[1])
        assert seen[0].tobytes() == seen[1].tobytes()
        for mine, theirs in zip(view.look(tables, seat), view.look(shuffled, seat), strict=True):
            assert (mine == theirs).all()


def test_shuffling_moves_hidden_cards_and_no_others() -> None:
    """Otherwise the test above would show nothing."""
    rules = preset("rummy40", seats=4)
    moved = set()
    for seed in range(20):
        tables, told = position(rules, seed, 60, match=False)
        if told.phase == "over":
            continue
        shuffled = shuffle_hidden(tables, 1, np.random.default_rng(seed))
        for seat in range(4):
            before, after = held_by(tables, seat), held_by(shuffled, seat)
            assert len(before) == len(after)
            assert (seat != 1) or before == after
            for card in told.known[seat]:
                assert card in after
            if before != after:
                moved.add(seat)
        stock = slice(int(tables["stock_at"][0]), rules.deck_size)
        whole = [
            sorted([*t["deck"][0, stock].tolist(), *(card for seat in range(4) for card in held_by(t, seat))])
            for t in (tables, shuffled)
        ]
        assert whole[0] == whole[1]
        assert (tables["deck"][0, stock] != shuffled["deck"][0, stock]).any()
    assert moved == {0, 2, 3}


@pytest.mark.parametrize("seats", [2, 4])
def test_seats(seats: int) -> None:
    tables = engine.new_tables(f"rummy40:seats={seats}", 6, seed=1)
    movers = view.observe(tables)
    assert movers["seat"].tolist() == tables["mover"].tolist()
    assert movers["to_move"].all()
    others = view.observe(tables, (tables["mover"] + 1) % seats)
    assert not others["to_move"].any()
    observations, legal = view.look(tables, (tables["mover"] + 1) % seats)
    assert observations.shape == (6, view.OBSERVATION_SIZE[seats])
    assert not legal.any()
    with pytest.raises(ValueError, match=rf"seats are \[{seats}\]; expected 0 to {seats - 1}"):
        view.observe(tables, seats)
    with pytest.raises(ValueError, match="observations is"):
        view.look(tables, None, np.zeros((6, 3), dtype=np.float32))


def test_schema() -> None:
    for seats in (2, 4):
        told = view.schema(seats)
        planes, scalars = told["planes"], told["scalars"]
        assert isinstance(planes, list)
        assert isinstance(scalars, list)
        assert told["size"] == 52 * len(planes) + len(scalars) == view.OBSERVATION_SIZE[seats]
        assert len({*planes, *scalars}) == len(planes) + len(scalars)
        assert told["version"] == view.OBSERVATION_VERSION
    assert view.OBSERVATION_SIZE == {2: 909, 4: 1127}


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.text)
def test_state(rules: Rummy40Rules) -> None:
    tables, told = position(rules, 5, 40, match=False)
    (state,) = view.state(tables)
    seats = rules.seats
    assert state.size == view.state_size(seats)
    for seat in range(seats):
        hand = told.hands[seat]
        part = state[53 * seat : 53 * (seat + 1)]
        assert part.tolist() == [hand.count(card) for card in range(53)]
    first, second, jokers = np.split(state[53 * seats :], [52, 104])
    depths: dict[int, list[float]] = {}
    for depth, card in enumerate(told.stock):
        depths.setdefault(card, []).append(1 - depth / 128)
    for card in range(52):
        there = [*depths.get(card, []), 0.0, 0.0]
        assert [first[card], second[card]] == pytest.approx(there[:2])
    assert jokers.tolist() == pytest.approx([*depths.get(JOKER, []), 0.0, 0.0, 0.0, 0.0][:4])
