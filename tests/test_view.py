"""What a seat may know, its encoding, and the hidden state, against a plain Python account of the same hand."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
from gin_env import engine, preset, view
from gin_env.actions import NUM_ACTIONS
from gin_env.cards import from_mask
from gin_env.rules import Rules, automatic
from gin_env.spaces import observation_space
from gin_env.tables import DECLARE, ENDINGS, LAY_OFF, OVER, PHASES, THROW
from tests import reference, reference_engine
from tests.hands import any_rules
from tests.test_melds import in_use

RULES = (
    preset("cardpuzzle"),
    preset("plus20", oklahoma=True, double_spades="deadwood"),
    Rules(name="small", ranks=8, suits=4, hand_size=7, knock_limit=7, rediscard=True),
    Rules(name="smallest", ranks=5, suits=2, hand_size=3, stock_floor=1),
    preset("openspiel"),
    preset("eaai"),
    preset("cardpuzzle", name="by hand", knocker_melds="manual", layoffs="manual", defender_melds="manual"),
    preset("luciano", name="layoffs", knock_limit=40, layoffs="manual", wall="knock", stock_floor=10),
)
some_rules = st.one_of(st.sampled_from(RULES), any_rules())
seeds = st.integers(0, 2**32 - 1)
moves = st.one_of(st.integers(0, 4), st.integers(0, 90))
# Moves from the knock on, where a hand is to be played until then; None where it is not.
on_from_knock = st.none() | st.integers(0, 8)


def position(rules: Rules, seed: int, num_moves: int, match: bool, on: int | None = None) -> np.ndarray:
    """Returns a table some moves into a hand, or at the end of one: greedy play with a third of random moves.

    Where ``on`` is given the hand goes on until it is knocked or over, and then so many random moves.
    """
    tables = engine.new_tables(rules, 1, seed=seed, match=match)
    rng = Random(seed)
    greedy = agents.make("greedy")

    def move() -> None:
        mask = engine.legal(tables)
        if rng.random() < 0.33 or tables["phase"][0] > THROW:
            action = rng.choice(np.flatnonzero(mask[0]).tolist())
        else:
            action = int(greedy.act(view.observe(tables), mask, np.zeros(1, dtype=np.uint64))[0])
        engine.step(tables, [action])

    for _ in range(num_moves):
        if tables["phase"][0] == OVER:
            if not match or tables["match_winner"][0] >= 0 or rng.random() < 0.2:
                break
            engine.deal(tables)
        move()
    if on is not None:
        while tables["phase"][0] < DECLARE:
            move()
        for _ in range(on):
            if tables["phase"][0] != OVER:
                move()
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


def retold(rules: Rules, tables: np.ndarray) -> reference_engine.Table:
    """Returns the hand as the reference tells it, from its deck and its moves."""
    row = tables[0]
    told = reference_engine.Table(rules)
    told.deal(row["deck"][: row["rules"]["deck_size"]].tolist(), int(row["dealer"]))
    for move in row["moves"][: row["num_moves"]].tolist():
        told.play(move)
    assert told.phase == PHASES[row["phase"]]
    return told


def laid_on(tables: np.ndarray, told: reference_engine.Table) -> tuple[list[list[int]], list[int]]:
    """Returns the melds by seat and the layoffs that lie on the table, each list padded to three."""
    row = tables[0]
    if told.phase == "over":
        # As the engine says, where one defence is as good as another.
        return row["melds"].tolist(), row["layoffs"].tolist()
    if told.knocker is None:
        return [[0, 0, 0], [0, 0, 0]], [0, 0, 0]
    layoffs = [reference.mask_of(cards) for cards in told.laid_off]
    return [[*melds, 0, 0, 0][:3] for melds in told.laid], layoffs


def expected_view(rules: Rules, tables: np.ndarray, seat: int) -> dict[str, Any]:
    """Returns every field of the view."""
    row, told, other = tables[0], retold(rules, tables), 1 - seat
    over, shown = told.phase == "over", told.phase in ("declare", "lay-off", "defend", "over")
    to_move = not over and told.mover == seat
    melds, layoffs = laid_on(tables, told)
    deadwood, points, ending = [-1, -1], 0, 0
    if over:
        assert told.result is not None
        deadwood, ending = list(told.result.deadwood), ENDINGS.index(told.result.ending)
        if told.result.winner is not None:
            points = told.result.points if told.result.winner == seat else -told.result.points
    elif told.knocker is not None and told.left is not None:
        deadwood[told.knocker] = told.left
    scores = row["scores"].tolist()
    size = len(told.pile)

    def by(thrower: int | None) -> int:
        return view.DEALT if thrower is None else view.OWN if thrower == seat else view.OPPONENT

    def number(card: int | None) -> int:
        return -1 if card is None else card

    return {
        "seat": seat,
        "to_move": to_move,
        "is_dealer": told.dealer == seat,
        "doubled": told.doubled,
        "phase": PHASES.index(told.phase),
        "opponent_cards": len(told.hands[other]),
        "upcard": told.pile[-1] if told.pile else -1,
        "taken": number(told.taken),
        "drawn": number(told.drawn) if to_move else -1,
        "limit": told.limit,
        "draws": told.turns,
        "stock": len(told.stock),
        "pile_size": size,
        "hand": reference.mask_of(told.hands[seat]),
        "own_known": reference.mask_of(told.known[seat]),
        "opponent_known": reference.mask_of(told.hands[other] if over else told.known[other]),
        "own_thrown": reference.mask_of(told.thrown[seat]),
        "opponent_thrown": reference.mask_of(told.thrown[other]),
        "own_declined": reference.mask_of(told.declined[seat]),
        "opponent_declined": reference.mask_of(told.declined[other]),
        "pile": [*told.pile, *[-1] * (52 - size)],
        "pile_by": [*map(by, told.pile_by), *[-1] * (52 - size)],
        "own_score": scores[seat],
        "opponent_score": scores[other],
        "target": (rules.target or 0) if row["to_target"] else 0,
        "ending": ending,
        "own_points": points,
        "knocker": by(told.knocker) if shown else -1,
        "own_deadwood": deadwood[seat],
        "opponent_deadwood": deadwood[other],
        "own_melds": melds[seat],
        "opponent_melds": melds[other],
        "layoffs": layoffs,
    }


def expected_fields(rules: Rules, tables: np.ndarray, seat: int) -> dict[str, Any]:
    """Returns every field of the observation: planes as {card: number}, scalars as numbers."""
    row, told = tables[0], retold(rules, tables)
    other = 1 - seat
    over = told.phase == "over"
    to_move = not over and told.mover == seat
    hand = told.hands[seat]
    known = told.hands[other] if over else told.known[other]
    upcard = told.pile[-1] if told.pile else None
    pile = list(zip(reversed(told.pile), reversed(told.pile_by), strict=True))
    throws = told.phase in ("throw", "wall-throw")

    def ones(cards: Any) -> dict[int, float]:
        return dict.fromkeys(cards, 1.0)

    saves = 0.0
    after: dict[int, int] = {}
    deadwood = reference.deadwood(reference.mask_of(hand))
    if throws and to_move:
        after = reference.deadwood_after(reference.mask_of(hand))
        banned = None if rules.rediscard else told.taken
        deadwood = min(left for card, left in after.items() if card != banned)
    elif told.phase in ("offer", "offer-dealer", "draw", "wall") and upcard is not None:
        taking = reference.deadwood_after(reference.mask_of(hand | {upcard}))
        saves = deadwood - min(left for card, left in taking.items() if card != upcard)
    target = rules.target if row["to_target"] else None
    scores = row["scores"].tolist()
    fields: dict[str, Any] = {
        "hand": ones(hand),
        "own_known": ones(told.known[seat]),
        "opponent_known": ones(known),
        "unseen": ones(set(told.pack) - hand - known - set(told.pile)),
        "own_pile": {card: 1 - depth / 64 for depth, (card, by) in enumerate(pile) if by == seat},
        "opponent_pile": {card: 1 - depth / 64 for depth, (card, by) in enumerate(pile) if by == other},
        "opponent_declined": ones(told.declined[other]),
        "upcard": ones([] if upcard is None else [upcard]),
        "deadwood_after": {card: left / 10 for card, left in after.items()},
        "to_move": to_move,
        "is_dealer": told.dealer == seat,
        "doubled": told.doubled,
        "limit": told.limit / 10,
        "stock": len(told.stock) / 32,
        "end_near": 1 / (1 + len(told.stock) - rules.stock_floor),
        "draws": told.turns / 32,
        "deadwood": deadwood / 10,
        "take_saves": saves / 10,
        "opponent_known_count": len(known) / 10,
        "returned": len(told.thrown[0] & told.thrown[1]) / 4,
        "own_score": scores[seat] / target if target else 0,
        "opponent_score": scores[other] / target if target else 0,
        "match": target is not None,
        "throw": throws,
    }
    for name in ("offer", "offer_dealer", "draw_stock", "draw"):
        fields[name] = told.phase == name.replace("_", "-")
    return fields | expected_manual_fields(tables, told, seat) if rules.manual else fields


def expected_manual_fields(tables: np.ndarray, told: reference_engine.Table, seat: int) -> dict[str, Any]:
    """Returns the fields that follow where players lay cards themselves; all empty before a knock and without one."""
    fields: dict[str, Any] = {name: {} for name in view.MANUAL_PLANE} | dict.fromkeys(view.MANUAL_SCALAR, 0.0)
    if told.knocker is None or told.phase == "over" and told.result.knocker is None:
        return fields
    melds, layoffs = laid_on(tables, told)
    off = sum(layoffs)
    for place in range(3):
        grown = melds[told.knocker][place] | layoffs[place]
        fields[f"meld_{place + 1}"] = dict.fromkeys(from_mask(grown), 1.0)
    fields["laid_off"] = dict.fromkeys(from_mask(off), 1.0)
    fields["defender_melds"] = dict.fromkeys(from_mask(sum(melds[1 - told.knocker])), 1.0)
    for name in ("declare", "lay_off", "defend"):
        fields[name] = told.phase == name.replace("_", "-")
    fields["knocker"] = told.knocker == seat
    fields["knocker_deadwood"] = (told.left or 0) / 10
    fields["unlaid"] = reference.points(reference.mask_of(told.hands[seat]) & ~(sum(melds[seat]) | off)) / 10
    return fields


@given(rules=some_rules, seed=seeds, num_moves=moves, match=st.booleans(), seat=st.integers(0, 1), on=on_from_knock)
@settings(max_examples=200, deadline=None)
def test_encoding_field_by_field(
    rules: Rules, seed: int, num_moves: int, match: bool, seat: int, on: int | None
) -> None:
    tables = position(rules, seed, num_moves, match, on)
    fields = expected_fields(rules, tables, seat)
    planes, scalars = view.PLANE, view.SCALAR
    if rules.manual:
        planes, scalars = planes | view.MANUAL_PLANE, scalars | view.MANUAL_SCALAR
    assert set(fields) == set(planes) | set(scalars)
    (observation,), _ = view.look(tables, seat)
    assert observation.size == 52 * len(planes) + len(scalars) == view.observation_size(rules)
    for name, start in planes.items():
        plane = np.zeros(52)
        for card, number in fields[name].items():
            plane[card] = number
        np.testing.assert_allclose(observation[start : start + 52], plane, atol=1e-6, err_msg=name)
    for name, start in scalars.items():
        assert observation[start] == pytest.approx(float(fields[name]), abs=1e-6), name
    assert observation in observation_space(rules)


@given(rules=some_rules, seed=seeds, num_moves=moves, match=st.booleans(), seat=st.integers(0, 1), on=on_from_knock)
@settings(max_examples=200, deadline=None)
def test_view_field_by_field(rules: Rules, seed: int, num_moves: int, match: bool, seat: int, on: int | None) -> None:
    tables = position(rules, seed, num_moves, match, on)
    row, fields = view.observe(tables, seat)[0], expected_view(rules, tables, seat)
    assert ["rules", *fields] == [name for name, *_ in view.VIEW_FIELDS]
    assert row["rules"] == rules.record()[0]
    for name, expected in fields.items():
        assert row[name].tolist() == expected, name


@given(rules=some_rules, seed=seeds, num_moves=moves, match=st.booleans(), seat=st.integers(0, 1), on=on_from_knock)
@settings(max_examples=50, deadline=None)
def test_look_is_encode_of_observe_and_the_legal_mask(
    rules: Rules, seed: int, num_moves: int, match: bool, seat: int, on: int | None
) -> None:
    tables = position(rules, seed, num_moves, match, on)
    observations, masks = view.look(tables, seat)
    row = view.observe(tables, seat)
    assert np.array_equal(observations, view.encode(row))
    moves_now = tables["phase"][0] != OVER and tables["mover"][0] == seat
    assert row["to_move"][0] == moves_now
    assert np.array_equal(masks, engine.legal(tables) if moves_now else np.zeros((1, rules.num_actions)))


@given(rules=some_rules, seed=seeds, num_moves=moves, seat=st.integers(0, 1))
@settings(max_examples=50, deadline=None)
def test_until_the_knock_manual_rules_only_append(rules: Rules, seed: int, num_moves: int, seat: int) -> None:
    """The observation and the mask begin as they do where the engine lays the cards, and go on with zeros."""
    tables = position(rules, seed, num_moves, False)
    if tables["phase"][0] >= DECLARE:
        return
    left = engine.new_tables(automatic(rules), 1)
    row = tables[0]
    engine.deal(left, decks=[row["deck"][: row["rules"]["deck_size"]]], dealers=[row["dealer"]])
    for move in row["moves"][: row["num_moves"]]:
        engine.step(left, [move])
    (mine,), (mask,) = view.look(tables, seat)
    (theirs,), (their_mask,) = view.look(left, seat)
    assert mine[: view.OBSERVATION_SIZE].tobytes() == theirs.tobytes()
    assert mask[:NUM_ACTIONS].tobytes() == their_mask.tobytes()
    assert not mine[view.OBSERVATION_SIZE :].any()
    assert not mask[NUM_ACTIONS:].any()


def test_head_of_the_vector_reshapes_to_planes() -> None:
    tables = position(RULES[0], 3, 20, False)
    (observation,), _ = view.look(tables, 0)
    planes = observation[: view.NUM_PLANES * 52].reshape(view.NUM_PLANES, 4, 13)
    hand = {13 * int(suit) + int(rank) for suit, rank in np.argwhere(planes[0])}
    assert hand == set(reference.cards_of(int(tables["hands"][0, 0])))
    assert view.schema()["size"] == observation.size == view.OBSERVATION_SIZE == 487
    assert view.MANUAL_OBSERVATION_SIZE == 753
    assert view.MANUAL_PLANE["meld_1"] == view.OBSERVATION_SIZE


# -------------------------------------------------------------------------------------------------------- no leaks


@given(
    rules=some_rules,
    seed=seeds,
    num_moves=moves,
    match=st.booleans(),
    seat=st.integers(0, 1),
    on=on_from_knock,
    order=seeds,
)
@settings(max_examples=300, deadline=None)
def test_nothing_changes_with_the_cards_that_a_seat_has_not_seen(
    rules: Rules, seed: int, num_moves: int, match: bool, seat: int, on: int | None, order: int
) -> None:
    tables = position(rules, seed, num_moves, match, on)
    shuffled = shuffle_hidden(tables, seat, Random(order))
    for name, *_ in view.VIEW_FIELDS:  # by field: between the fields of a row lie unused bytes
        assert view.observe(tables, seat)[name].tobytes() == view.observe(shuffled, seat)[name].tobytes(), name
    for mine, theirs in zip(view.look(tables, seat), view.look(shuffled, seat), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    # The shuffle was one: only the hidden state tells the two apart.
    if not np.array_equal(tables["deck"], shuffled["deck"]):
        assert not np.array_equal(view.state(tables), view.state(shuffled))
    # Once the knocker's melds lie on the table all its cards do, and of the defender's those that it has laid.
    row = tables[0]
    if LAY_OFF <= row["phase"] < OVER:
        knocker, defender = int(row["knocking"]), 1 - int(row["knocking"])
        laid = sum(in_use(row["laid"][defender])) | sum(in_use(row["laid_off"]))
        if seat == knocker:
            assert int(view.observe(tables, seat)["opponent_known"][0]) & laid == laid
            assert int(shuffled["hands"][0, defender]) & laid == laid
        else:
            assert view.observe(tables, seat)["opponent_known"][0] == row["hands"][knocker]
            assert shuffled["hands"][0, knocker] == row["hands"][knocker]


@given(rules=some_rules, seed=seeds, num_moves=moves, on=on_from_knock)
@settings(max_examples=50, deadline=None)
def test_state_is_both_hands_and_the_order_of_the_stock(
    rules: Rules, seed: int, num_moves: int, on: int | None
) -> None:
    tables = position(rules, seed, num_moves, False, on)
    told = retold(rules, tables)
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
