"""What a seat may know, its encoding, and the hidden state, against a plain Python account of the same hand."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
from gin_env import engine, preset, view
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE
from gin_env.rules import Rules
from gin_env.tables import OVER
from tests import reference

RULES = (
    preset("cardpuzzle"),
    preset("plus20", oklahoma=True, double_spades="deadwood"),
    Rules(name="small", ranks=8, suits=4, hand_size=7, knock_limit=7, rediscard=True),
    Rules(name="smallest", ranks=5, suits=2, hand_size=3, stock_floor=1),
)
some_rules = st.sampled_from(RULES)
seeds = st.integers(0, 2**32 - 1)
moves = st.one_of(st.integers(0, 4), st.integers(0, 90))


def position(rules: Rules, seed: int, num_moves: int, match: bool) -> np.ndarray:
    """Returns a table some moves into a hand, or at the end of one: greedy play with a third of random moves."""
    tables = engine.new_tables(rules, 1, seed=seed, match=match)
    rng = Random(seed)
    greedy = agents.make("greedy")
    for _ in range(num_moves):
        if tables["phase"][0] == OVER:
            if not match or tables["match_winner"][0] >= 0 or rng.random() < 0.2:
                break
            engine.deal(tables)
        mask = engine.legal(tables)
        if rng.random() < 0.33:
            action = rng.choice(np.flatnonzero(mask[0]).tolist())
        else:
            action = int(greedy.act(view.observe(tables), mask, np.zeros(1, dtype=np.uint64))[0])
        engine.step(tables, [action])
    return tables


def shuffle_hidden(tables: np.ndarray, seat: int, rng: Random) -> np.ndarray:
    """Returns the table with the cards that a seat has not seen in other places."""
    shuffled = tables.copy()
    row = shuffled[0]
    other = 1 - seat
    hand = 0 if row["phase"] == OVER else int(row["hands"][other] & ~row["known"][other])
    stock = row["deck"][row["stock_at"] : row["rules"]["deck_size"]]
    cards = reference.cards_of(hand) + stock.tolist()
    moved = dict(zip(cards, rng.sample(cards, len(cards)), strict=True))
    row["hands"][other] = (int(row["hands"][other]) & ~hand) | reference.mask_of(
        moved[c] for c in cards if hand >> c & 1
    )
    row["drawn"] = moved.get(int(row["drawn"]), row["drawn"]) if row["mover"] == other else row["drawn"]
    stock[:] = [moved[int(card)] for card in stock]
    return shuffled


# -------------------------------------------------------------------------------------------------------- encoding


class Account:
    """A hand told again from its deck and its moves, with sets and lists."""

    def __init__(self, tables: np.ndarray) -> None:
        row = tables[0]
        rules = row["rules"]
        deck = row["deck"][: rules["deck_size"]].tolist()
        self.pack = set(deck)
        self.dealer = int(row["dealer"])
        self.mover = 1 - self.dealer
        dealt = 2 * int(rules["hand_size"])
        self.hands: list[set[int]] = [set(), set()]
        self.hands[1 - self.dealer] = set(deck[0:dealt:2])
        self.hands[self.dealer] = set(deck[1:dealt:2])
        self.upcard = deck[dealt]
        self.pile: list[tuple[int, int | None]] = [(self.upcard, None)]
        self.stock = deck[dealt + 1 :]
        self.known: list[set[int]] = [set(), set()]
        self.declined: list[set[int]] = [set(), set()]
        self.thrown: list[set[int]] = [set(), set()]
        self.taken: int | None = None
        self.draws = 0
        self.phase = "offer"
        for action in row["moves"][: row["num_moves"]].tolist():
            self.play(action)
        if row["phase"] == OVER:
            self.phase = "over"

    def play(self, action: int) -> None:
        mover = self.mover
        if action == PASS:
            self.declined[mover].add(self.upcard)
            self.phase = "offer_dealer" if self.phase == "offer" else "draw_stock"
            self.mover = 1 - mover
        elif action == DRAW:
            if self.phase == "draw" and self.pile:
                self.declined[mover].add(self.pile[-1][0])
            self.hands[mover].add(self.stock.pop(0))
            self.draws += 1
            self.phase = "throw"
        elif action == TAKE:
            self.taken = self.pile.pop()[0]
            self.hands[mover].add(self.taken)
            self.known[mover].add(self.taken)
            self.draws += 1
            self.phase = "throw"
        elif action != BIG_GIN:
            card = (action - DISCARD) % 52
            self.hands[mover].remove(card)
            self.known[mover].discard(card)
            self.pile.append((card, mover))
            self.thrown[mover].add(card)
            self.taken = None
            self.phase = "draw"
            if action < KNOCK:
                self.mover = 1 - mover


def expected_fields(tables: np.ndarray, seat: int) -> dict[str, Any]:
    """Returns every field of the observation: planes as {card: number}, scalars as numbers."""
    row, told = tables[0], Account(tables)
    other = 1 - seat
    over = told.phase == "over"
    to_move = not over and told.mover == seat
    hand = told.hands[seat]
    known = told.hands[other] if over else told.known[other]
    upcard = told.pile[-1][0] if told.pile else None
    rows = list(enumerate(reversed(told.pile)))

    def ones(cards: Any) -> dict[int, float]:
        return dict.fromkeys(cards, 1.0)

    saves = 0.0
    after: dict[int, int] = {}
    deadwood = reference.deadwood(reference.mask_of(hand))
    if told.phase == "throw" and to_move:
        after = reference.deadwood_after(reference.mask_of(hand))
        banned = None if row["rules"]["rediscard"] else told.taken
        deadwood = min(left for card, left in after.items() if card != banned)
    elif told.phase in ("offer", "offer_dealer", "draw") and upcard is not None:
        taking = reference.deadwood_after(reference.mask_of(hand | {upcard}))
        saves = deadwood - min(left for card, left in taking.items() if card != upcard)
    target = int(row["rules"]["target"]) if row["to_target"] else None
    scores = row["scores"].tolist()
    fields: dict[str, Any] = {
        "hand": ones(hand),
        "own_known": ones(told.known[seat]),
        "opponent_known": ones(known),
        "unseen": ones(told.pack - hand - known - {card for card, _ in told.pile}),
        "own_pile": {card: 1 - depth / 64 for depth, (card, by) in rows if by == seat},
        "opponent_pile": {card: 1 - depth / 64 for depth, (card, by) in rows if by == other},
        "opponent_declined": ones(told.declined[other]),
        "upcard": ones([] if upcard is None else [upcard]),
        "deadwood_after": {card: left / 10 for card, left in after.items()},
        "to_move": to_move,
        "is_dealer": told.dealer == seat,
        "doubled": bool(row["rules"]["double_spades"]) and told.upcard < 13,
        "limit": int(row["rules"]["knock_limit"]) / 10,
        "stock": len(told.stock) / 32,
        "end_near": 1 / (1 + len(told.stock) - int(row["rules"]["stock_floor"])),
        "draws": told.draws / 32,
        "deadwood": deadwood / 10,
        "take_saves": saves / 10,
        "opponent_known_count": len(known) / 10,
        "returned": len(told.thrown[0] & told.thrown[1]) / 4,
        "own_score": scores[seat] / target if target else 0,
        "opponent_score": scores[other] / target if target else 0,
        "match": target is not None,
    }
    if row["rules"]["oklahoma"]:
        rank = told.upcard % 13 + 1
        fields["limit"] = 0 if rank == 1 else min(rank, 10) / 10
    for name in ("offer", "offer_dealer", "draw_stock", "draw", "throw"):
        fields[name] = told.phase == name
    return fields


@given(rules=some_rules, seed=seeds, num_moves=moves, match=st.booleans(), seat=st.integers(0, 1))
@settings(max_examples=150, deadline=None)
def test_encoding_field_by_field(rules: Rules, seed: int, num_moves: int, match: bool, seat: int) -> None:
    tables = position(rules, seed, num_moves, match)
    fields = expected_fields(tables, seat)
    assert set(fields) == set(view.PLANE) | set(view.SCALAR)
    (observation,), _ = view.look(tables, seat)
    for name, start in view.PLANE.items():
        plane = np.zeros(52)
        for card, number in fields[name].items():
            plane[card] = number
        np.testing.assert_allclose(observation[start : start + 52], plane, atol=1e-6, err_msg=name)
    for name, start in view.SCALAR.items():
        assert observation[start] == pytest.approx(float(fields[name]), abs=1e-6), name


@given(rules=some_rules, seed=seeds, num_moves=moves, match=st.booleans(), seat=st.integers(0, 1))
@settings(max_examples=50, deadline=None)
def test_look_is_encode_of_observe_and_the_legal_mask(
    rules: Rules, seed: int, num_moves: int, match: bool, seat: int
) -> None:
    tables = position(rules, seed, num_moves, match)
    observations, masks = view.look(tables, seat)
    row = view.observe(tables, seat)
    assert np.array_equal(observations, view.encode(row))
    moves_now = tables["phase"][0] != OVER and tables["mover"][0] == seat
    assert row["to_move"][0] == moves_now
    assert np.array_equal(masks, engine.legal(tables) if moves_now else np.zeros((1, 108)))


def test_head_of_the_vector_reshapes_to_planes() -> None:
    tables = position(RULES[0], 3, 20, False)
    (observation,), _ = view.look(tables, 0)
    planes = observation[: view.NUM_PLANES * 52].reshape(view.NUM_PLANES, 4, 13)
    hand = {13 * int(suit) + int(rank) for suit, rank in np.argwhere(planes[0])}
    assert hand == set(reference.cards_of(int(tables["hands"][0, 0])))
    assert view.schema()["size"] == observation.size == view.OBSERVATION_SIZE


# -------------------------------------------------------------------------------------------------------- no leaks


@given(rules=some_rules, seed=seeds, num_moves=moves, match=st.booleans(), seat=st.integers(0, 1), order=seeds)
@settings(max_examples=200, deadline=None)
def test_nothing_changes_with_the_cards_that_a_seat_has_not_seen(
    rules: Rules, seed: int, num_moves: int, match: bool, seat: int, order: int
) -> None:
    tables = position(rules, seed, num_moves, match)
    shuffled = shuffle_hidden(tables, seat, Random(order))
    for name, *_ in view.VIEW_FIELDS:  # by field: between the fields of a row lie unused bytes
        assert view.observe(tables, seat)[name].tobytes() == view.observe(shuffled, seat)[name].tobytes(), name
    for mine, theirs in zip(view.look(tables, seat), view.look(shuffled, seat), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    # The shuffle was one: only the hidden state tells the two apart.
    if not np.array_equal(tables["deck"], shuffled["deck"]):
        assert not np.array_equal(view.state(tables), view.state(shuffled))


@given(rules=some_rules, seed=seeds, num_moves=moves)
@settings(max_examples=50, deadline=None)
def test_state_is_both_hands_and_the_order_of_the_stock(rules: Rules, seed: int, num_moves: int) -> None:
    tables = position(rules, seed, num_moves, False)
    told = Account(tables)
    expected = np.zeros((3, 52), dtype=np.float32)
    expected[0, list(told.hands[0])] = 1
    expected[1, list(told.hands[1])] = 1
    for depth, card in enumerate(told.stock):
        expected[2, card] = 1 - depth / 32
    assert np.array_equal(view.state(tables), expected.reshape(1, 156))


def test_both_hands_are_shown_when_the_hand_is_over() -> None:
    tables = position(RULES[0], 5, 500, False)
    assert tables["phase"][0] == OVER
    for seat in range(2):
        row = view.observe(tables, seat)[0]
        assert row["hand"] == tables["hands"][0, seat]
        assert row["opponent_known"] == tables["hands"][0, 1 - seat]
        assert row["own_points"] == (tables["points"][0] if tables["winner"][0] == seat else -tables["points"][0])


def test_a_seat_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 0 or 1"):
        view.observe(engine.new_tables("cardpuzzle", 2), 2)
