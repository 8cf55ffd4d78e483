"""The engine of Rummy40 against a plain reference, and what must hold at every table, for every seed and any batch."""

import dataclasses
import pickle
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gin_env import engine as gin_engine
from gin_env.rummy40 import IllegalAction, Rummy40Rules, as_rules, engine, preset
from gin_env.rummy40.actions import NUM_TWO_PACK_ACTIONS, action_name, parse_action
from gin_env.rummy40.cards import JOKER, held, parse_cards
from gin_env.rummy40.record import table_record
from gin_env.rummy40.tables import (
    ENDINGS,
    EPISODE_ENDED,
    GOING_ON,
    HAND_ENDED,
    OVER,
    PHASES,
    PLAY,
    TABLE_DTYPE,
    Tables,
    empty_tables,
)
from tests import reference_rummy40 as reference
from tests.rummy40_hands import any_rummy40_rules, choose, set_up, told_from

# What two or four players may agree on before a match, and how a wrong opening is dealt with.
SETTINGS = {
    f"{seats}-{opening}{'-penalty' if wrong == 'penalty' else ''}": preset(
        "rummy40", seats=seats, opening=opening, wrong_opening=wrong
    )
    for seats in (2, 4)
    for opening, wrong in ((0, "masked"), (40, "masked"), (50, "masked"), (40, "penalty"), (50, "penalty"))
}


# -------------------------------------------------------------------------------------------------- the reference


def assert_same(tables: np.ndarray, told: reference.Table) -> None:
    """Everything that the reference knows is what the table says."""
    t, seats = tables[0], told.rules.seats
    line = table_record(tables).line()
    assert told.phase == PHASES[t["phase"]], line
    if told.phase != "over":
        assert told.mover == t["mover"], line
    for seat in range(seats):
        assert list(told.hands[seat]) == held(t["hands"][seat], t["jokers"][seat]), line
        assert sorted(told.known[seat]) == held(t["known"][seat], t["known_jokers"][seat]), line
        assert len(told.hands[seat]) == t["num_cards"][seat]
    assert told.opened == t["opened"][:seats].astype(bool).tolist(), line
    assert told.booked == t["booked"][:seats].tolist()
    assert told.scores == t["scores"][:seats].tolist()
    assert told.dealer == t["dealer"]
    size = int(t["pile_size"])
    assert told.pile == t["pile"][:size].tolist()
    assert [-1 if by is None else by for by in told.pile_by] == t["pile_by"][:size].tolist()
    assert len(told.stock) == t["rules"]["deck_size"] - t["stock_at"]
    assert (told.laid, told.attempt, told.owed, told.draws) == (
        t["attempt_points"], t["attempt"], t["owed"], t["draws"],
    )  # fmt: skip
    assert len(told.melds) == t["num_melds"], line
    for k, meld in enumerate(told.melds):
        real = {card for card in meld.cards if card != reference.JOKER}
        assert sum(1 << card for card in real) == t["meld_cards"][k], line
        assert sum(1 << card for card in meld.stands(told.pack)) == t["meld_stands"][k], line
        assert meld.owner == t["meld_owner"][k]
        low, high = (-1, -1) if meld.first is None else (meld.first, meld.first + len(meld.cards) - 1)
        assert (low, high) == (t["meld_low"][k], t["meld_high"][k]), line


STYLES = ("any", "lay", "hold", "keep", "meld")


def choose_move(told: reference.Table, legal: list[int], rng: Random, style: str) -> int:
    """Returns a move: any; or mostly those that put cards on the table, or only then when one must."""
    tabled = [move for move in legal if move >= reference.FIRST_MELD]
    if style != "any" and tabled and rng.random() < (0.1 if style == "hold" else 0.9):
        steals = [move for move in tabled if move >= reference.at_place("steal set", 0)]
        return rng.choice(steals if steals and rng.random() < 0.5 else tabled)
    rest = [move for move in legal if move not in tabled] or legal
    if style in ("keep", "hold", "meld") and told.phase == "play":
        # Of the throws those of cards without neighbours.
        hand = told.hands[told.mover]

        def ties(move: int) -> int:
            card = move - reference.discard(0)
            if card == reference.JOKER:
                return 99
            others = list(hand)
            if card in others:
                others.remove(card)
            return sum(
                c != reference.JOKER and (c % 13 == card % 13 or c // 13 == card // 13 and abs(c - card) < 3)
                for c in others
            )

        if style == "meld" or rng.random() < 0.8:
            return min(rng.sample(rest, len(rest)), key=ties)
    return rng.choice(rest)


def play_both(rules: Rummy40Rules, seed: int, hands: int, match: bool = False) -> Counter[str]:
    """Plays hands on both engines and compares them at every step; returns how many ended in which way."""
    rng = Random(seed)
    tables = engine.new_tables(rules, 1, seed=seed, match=match)
    told = reference.Table(rules, match)
    endings: Counter[str] = Counter()
    for number in range(hands):
        if number:
            engine.deal(tables)
        dealer = told.next_dealer()
        told.deal(tables["deck"][0, : rules.deck_size].tolist(), int(tables["dealer"][0]) if dealer is None else dealer)
        styles = [rng.choice(STYLES) for _ in range(rules.seats)]
        while True:
            assert_same(tables, told)
            legal = told.legal()
            assert engine.legal_actions(tables) == legal, (
                table_record(tables).line(),
                sorted(map(action_name, set(engine.legal_actions(tables)) ^ set(legal))),
            )
            if told.phase == "over":
                break
            assert legal, "a dead end"
            move = choose_move(told, legal, rng, styles[told.mover])
            told.play(move)
            engine.step(tables, [move])
        result = engine.result(tables)
        assert result is not None
        assert told.result is not None
        assert (result.ending, result.out, result.penalties, result.turns) == told.result
        endings[result.ending] += 1
        winners = np.flatnonzero(tables["match_winners"][0]).tolist()
        assert (winners, bool(tables["match_over"][0])) == (told.match_winners, bool(told.match_winners))
    return endings


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_played_as_the_reference_plays_it(name: str) -> None:
    endings: Counter[str] = Counter()
    for seed in range(4):
        endings += play_both(SETTINGS[name], seed, 2, match=seed % 2 == 1)
    assert {"out", "stock"} <= set(endings)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_many_hands_of_every_setting(name: str) -> None:
    for seed in range(1000, 1500):
        play_both(SETTINGS[name], seed, 2, match=seed % 2 == 1)


@settings(max_examples=25, deadline=None)
@given(any_rummy40_rules(), st.integers(0, 2**32 - 1), st.booleans())
def test_any_rules_are_played_as_the_reference_plays_them(rules: Rummy40Rules, seed: int, match: bool) -> None:
    play_both(rules, seed, 2, match)


# ------------------------------------------------------------------------------------------- every position there is

# Small enough that every sequence of moves can be played.
MINIATURES = {
    "one joker": "rummy40:ranks=4,suits=3,jokers=1,hand_size=3,opening=0,draw_cap=4",
    "two jokers": "rummy40:ranks=3,suits=3,jokers=2,hand_size=3,opening=0,draw_cap=5",
    "minimum": "rummy40:ranks=4,suits=3,jokers=2,hand_size=3,opening=8,draw_cap=4",
    "two packs": "rummy40:ranks=3,suits=3,packs=2,jokers=2,hand_size=3,opening=0,draw_cap=4,adding=any",
    "penalty": "rummy40:ranks=4,suits=3,jokers=1,hand_size=3,opening=12,draw_cap=4,wrong_opening=penalty",
    "four players": "rummy40:seats=4,packs=1,ranks=5,suits=3,jokers=2,hand_size=3,opening=0,draw_cap=4",
}
# What makes no difference to what can still happen.
_PAST = {"moves", "num_moves", "pile_by", "final_hands", "final_jokers", "taken", "drawn", "known", "known_jokers"}
_STATE = [name for name in TABLE_DTYPE.names or () if name not in _PAST | {"rules", "key", "deck", "fits"}]


def positions(tables: Tables) -> Tables:
    """Returns all positions that can come up from some tables, alike ones once; fails at a dead end."""
    found = [tables]
    while tables.size:
        mask = engine.legal(tables)
        assert (mask.any(axis=1) == (tables["phase"] != OVER)).all(), "a dead end"
        rows, actions = np.nonzero(mask)
        tables = tables.take(rows)
        engine.step(tables, actions)
        if not rows.size:
            break
        state = [np.ascontiguousarray(tables[name]).reshape(rows.size, -1).view(np.uint8) for name in _STATE]
        _, first = np.unique(np.concatenate(state, axis=1), axis=0, return_index=True)
        tables = tables.take(first)
        found.append(tables)
    return np.concatenate(found)


def assert_exact(tables: Tables, most: int, seed: int) -> int:
    """Compares the mask with a search through all continuations, at so many positions in the middle of a turn."""
    rows = np.flatnonzero((tables["phase"] == PLAY) & ((tables["opened"][:, 0] > 0) | (tables["num_melds"] > 0)))
    chosen = Random(seed).sample(rows.tolist(), min(most, rows.size))
    for row in chosen:
        one = tables.take([row])
        legal = told_from(one).legal()
        assert engine.legal_actions(one) == legal, (table_record(one).line(), list(map(action_name, legal)))
    return len(chosen)


@pytest.mark.parametrize("name", MINIATURES)
def test_no_dead_end_in_small_games(name: str) -> None:
    number = exact = 0
    for seed in range(3):
        tables = positions(engine.new_tables(MINIATURES[name], 1, seed=seed))
        number += tables.size
        exact += assert_exact(tables, 80, seed)
    assert number > 1500
    assert exact > 150


@pytest.mark.slow
@pytest.mark.parametrize("name", MINIATURES)
def test_no_dead_end_in_many_small_games(name: str) -> None:
    for seed in range(100, 160):
        assert_exact(positions(engine.new_tables(MINIATURES[name], 1, seed=seed)), 2000, seed)


# -------------------------------------------------------------------------------------------------------- the deal


def test_decks_depend_on_seed_table_and_hand_only() -> None:
    many = engine.new_tables("rummy40", 40, seed=5)
    alone = engine.new_tables("rummy40", 1, seed=5, first=33)
    assert many.take([33]).tobytes() == alone.tobytes()
    engine.deal(many, [33])
    engine.deal(alone)
    assert (many["deck"][33] == alone["deck"][0]).all()
    assert (many["deck"][33] != many["deck"][32]).any()
    other = engine.new_tables("rummy40", 40, seed=6)
    assert (other["deck"] != many["deck"]).any(axis=1).all()
    # Every card is at every place as often as any other, about.
    first = engine.new_tables("rummy40", 4000, seed=1)["deck"][:, 0]
    counts = np.bincount(first, minlength=53)
    assert counts[:52].min() > 35
    assert 100 < counts[JOKER] < 200


def test_deal_goes_round_from_the_player_after_the_dealer() -> None:
    for seats in (2, 4):
        rules = as_rules(f"rummy40:seats={seats},first_dealer=1")
        tables = engine.new_tables(rules, 1)
        deck = tables["deck"][0, : rules.deck_size].tolist()
        for place in range(10 * seats):
            seat = (2 + place) % seats
            assert deck[place] in held(tables["hands"][0, seat], tables["jokers"][0, seat])
        assert tables["pile"][0, 0] == deck[10 * seats]
        assert (tables["mover"][0], tables["stock_at"][0]) == (2 % seats, 10 * seats + 1)


def test_first_dealers_are_random_and_then_go_round() -> None:
    dealers = engine.new_tables("rummy40:seats=4", 400, seed=2)["dealer"]
    assert np.bincount(dealers, minlength=4).min() > 70
    tables = engine.new_tables("rummy40:seats=4,first_dealer=3,limit=500", 1, match=True)
    seen = []
    for _ in range(5):
        seen.append(int(tables["dealer"][0]))
        finish(tables)
        engine.deal(tables)
    assert seen == [3, 0, 1, 2, 3]


def finish(tables: Tables) -> np.ndarray:
    """Draws from the stock and throws the first card that may be thrown until the hand is over; returns the ends."""
    over = np.zeros(1, dtype=np.int8)
    while tables["phase"][0] != OVER:
        over = engine.step(tables, [engine.legal_actions(tables)[0]])[1]
    return over


def test_given_decks() -> None:
    rules = preset("rummy40")
    tables = engine.new_tables(rules, 2)
    deck = rules.deck[::-1]
    engine.deal(tables, [1], decks=[deck], dealers=[0])
    assert held(tables["hands"][1, 1], tables["jokers"][1, 1])[-1] == JOKER
    assert held(tables["hands"][1, 0], tables["jokers"][1, 0])[-1] == JOKER
    for arguments, message in (
        ({"decks": [deck[:-1]]}, "are not 1 orders of the 54 cards in play"),
        ({"decks": [[0] * 54]}, "are not 1 orders"),
        ({"decks": [deck], "dealers": [2]}, r"dealers are \[2\]; expected 1 seats of 0 to 1"),
        ({"dealers": [0]}, "dealers are given without decks"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.deal(tables, [0], **arguments)  # type: ignore[arg-type]
    for rows, message in (([2], "do not fit"), ([True, False], "rows are bool")):
        with pytest.raises(ValueError, match=message):
            engine.deal(tables, rows)


def test_a_joker_that_is_turned_up_stays() -> None:
    rules = preset("rummy40", first_dealer=1)
    deck = [card for card in rules.deck if card != JOKER]
    deck[20:20] = [JOKER, JOKER]
    tables = engine.new_tables(rules, 1)
    engine.deal(tables, decks=[deck], dealers=[1])
    assert tables["pile"][0, 0] == JOKER
    engine.step(tables, [parse_action("take")])
    assert (tables["jokers"][0, 0], tables["known_jokers"][0, 0]) == (1, 1)
    # Not thrown before opening; but the next one's from the stock could not be, either.
    assert parse_action("discard JK") not in engine.legal_actions(tables)


def test_bad_arguments() -> None:
    for arguments, message in (
        ({"size": 0}, "size is 0; expected at least 1 table"),
        ({"size": 1, "seed": -1}, "seed is -1"),
        ({"size": 1, "first": -1}, "first is -1"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.new_tables("rummy40", **arguments)  # type: ignore[arg-type]
    tables = engine.new_tables("rummy40", 2)
    for actions in ([0], [0.0, 0.0], [[0, 0]]):
        with pytest.raises(ValueError, match="expected integers of shape"):
            engine.step(tables, actions)
    with pytest.raises(ValueError, match=r"points is int32 .*expected a contiguous, writeable array of float64"):
        engine.step(tables, [0, 0], points=np.zeros((2, 2), dtype=np.int32))
    with pytest.raises(ValueError, match="out is int8 of shape"):
        engine.legal(tables, np.zeros((2, 108), dtype=np.int8))


# ------------------------------------------------------------------------------------------------------ one table


def test_illegal_action() -> None:
    tables = engine.new_tables("rummy40:first_dealer=1", 3, seed=4)
    before = tables.tobytes()
    with pytest.raises(IllegalAction) as caught:
        engine.step(tables, [0, 5, 1])
    error = caught.value
    assert (error.table, error.seat, error.action, error.legal, error.phase) == (1, 0, 5, (0, 1), "draw")
    assert "table 1: seat 0 may not play 'discard 3S' (action 5) in phase 'draw'; legal: draw, take" in str(error)
    assert tables.tobytes() == before
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.record) == (str(error), error.record)
    (replayed,) = engine.replay(error.record)
    assert (replayed["hands"] == tables.take([1])["hands"]).all()
    for action in (-2, 3, 1311, NUM_TWO_PACK_ACTIONS, 10**9):
        with pytest.raises(IllegalAction, match=r"may not play|does not exist"):
            engine.step(tables, [action, -1, -1])
    with pytest.raises(IllegalAction, match="does not exist"):
        engine.step(tables, np.array([2**64 - 1, 0, 0], dtype=np.uint64))
    empty = empty_tables(preset("rummy40"), 1)
    with pytest.raises(IllegalAction, match="the hand is over; deal or reset first"):
        engine.step(empty, [0])


def test_an_action_of_two_packs_does_not_exist_with_one() -> None:
    tables = set_up("rummy40", "8S 2D 4H KC", [(0, "5S 6S 7S")])
    assert parse_action("add 8S high") in engine.legal_actions(tables)
    with pytest.raises(IllegalAction):
        engine.step(tables, [parse_action("add 8S high 2")])


def test_no_action_leaves_a_table() -> None:
    tables = engine.new_tables("rummy40", 4, seed=2)
    before = tables.take(range(4))
    points, over = engine.step(tables, [-1, 0, -1, 1])
    assert tables.take([0, 2]).tobytes() == before.take([0, 2]).tobytes()
    assert tables["draws"].tolist() == [0, 1, 0, 1]
    assert not points.any()
    assert not over.any()


def test_batches_copies_and_redealing() -> None:
    """A table plays the same alone, among others, and whether the next hand is dealt in the step or after it."""
    rules = preset("rummy40", seats=4, opening=0, limit=100)
    tables = engine.new_tables(rules, 30, seed=8, match=True)
    alone = engine.new_tables(rules, 1, seed=8, first=17, match=True)
    masks = np.empty((30, rules.num_actions), dtype=np.int8)
    actions = np.empty(30, dtype=np.int64)
    for _ in range(700):
        engine.legal(tables, masks)
        choose(masks, engine.decision_keys(3, tables), np.ones(30, dtype=bool), actions)
        assert (engine.legal(alone)[0] == masks[17]).all()
        points, over = engine.step(tables, actions, redeal=True)
        own_points, own_over = engine.step(alone, actions[[17]])
        assert (own_points[0] == points[17]).all()
        assert own_over[0] == over[17]
        if own_over[0]:
            engine.deal(alone)
        assert alone.tobytes() == tables.take([17]).tobytes()
    assert alone["hand_number"][0] > 3


def test_keys_are_those_of_gin() -> None:
    numbers = np.arange(5, dtype=np.uint64)
    assert (engine.mix_keys(7, numbers) == gin_engine.mix_keys(7, numbers)).all()
    tables = engine.new_tables("rummy40", 5)
    assert len(set(engine.decision_keys(1, tables).tolist())) == 5


# ------------------------------------------------------------------------------------------------- how hands end


def play(tables: Tables, *names: str) -> tuple[np.ndarray, int]:
    """Plays named actions and returns the last one's points and end."""
    for name in names:
        points, over = engine.step(tables, [parse_action(name)])
    return points[0], int(over[0])


def test_going_out() -> None:
    tables = set_up("rummy40", "9S 2D", [(0, "TS JS QS")])
    points, over = play(tables, "add 9S low", "discard 2D")
    result = engine.result(tables)
    assert result is not None
    assert (result.ending, result.out, over) == ("out", 0, EPISODE_ENDED)
    other = sum(reference.points(card) for card in parse_cards(result.hands[1]))
    assert result.penalties == (0, other)
    assert points.tolist() == [other, -other]
    assert result.hands[0] == ""


def test_going_out_on_the_turn_that_drew_the_last_card() -> None:
    for name, ending in (("discard 2D", "out"), ("discard 9S", "stock")):
        tables = set_up("rummy40", "9S 2D", [(0, "TS JS QS")])
        tables["stock_at"] = tables["rules"]["deck_size"]
        play(tables, *(["add 9S low"] if ending == "out" else []), name)
        result = engine.result(tables)
        assert result is not None
        assert result.ending == ending
        assert (result.penalties[0] == 0) == (ending == "out")


def test_jokers_count_what_the_rules_say() -> None:
    for points in (25, 50):
        tables = set_up(f"rummy40:joker_points={points}", "9S JK 2D", [(0, "AS AH AD AC")])
        tables["stock_at"] = tables["rules"]["deck_size"]
        play(tables, "discard 9S")
        assert tables["penalties"][0, 0] == points + 2


def test_four_players_win_the_mean_of_the_others() -> None:
    tables = set_up("rummy40:seats=4", "9S 2D", [(0, "TS JS QS")])
    tables["jokers"][0, 1:] = [1, 2, 0]
    tables["hands"][0, 1:] = 0
    points, _ = play(tables, "add 9S low", "discard 2D")
    assert tables["penalties"][0].tolist() == [0, 25, 50, 0]
    assert points.tolist() == pytest.approx([25, 50 / 3 - 25, 25 / 3 - 50, 25])
    assert points.sum() == pytest.approx(0)


def test_truncated_hands_count_for_nothing_and_are_dealt_again() -> None:
    rules = preset("rummy40", draw_cap=3, limit=100, first_dealer=0)
    tables = engine.new_tables(rules, 1, match=True)
    over = finish(tables)
    assert (over[0], ENDINGS[tables["ending"][0]]) == (HAND_ENDED, "truncated")
    assert not tables["scores"].any()
    assert not tables["penalties"].any()
    engine.deal(tables)
    assert (tables["dealer"][0], tables["hand_number"][0]) == (0, 1)


def test_matches_end_and_begin_anew() -> None:
    rules = preset("rummy40", limit=100, first_dealer=0)
    tables = engine.new_tables(rules, 1, match=True)
    over = GOING_ON
    hands = 0
    while over != EPISODE_ENDED:
        over = int(finish(tables)[0])
        hands += 1
        assert (over == EPISODE_ENDED) == (tables["scores"][0].max() >= 100)
        if over != EPISODE_ENDED:
            engine.deal(tables)
            assert tables["dealer"][0] == hands % 2
    assert (
        tables["match_winners"][0, :2].tolist() == (tables["scores"][0, :2] == tables["scores"][0, :2].min()).tolist()
    )
    engine.deal(tables)
    assert not tables["scores"].any()
    assert not tables["match_winners"].any()
    assert (tables["match_over"][0], tables["dealer"][0]) == (False, 0)


def test_one_hand_matches() -> None:
    tables = engine.new_tables(preset("rummy40", limit=None), 1, match=True, seed=3)
    assert finish(tables)[0] == EPISODE_ENDED
    assert tables["match_winners"][0, :2].sum() >= 1
    assert tables["match_over"][0]


def test_known_cards() -> None:
    """Cards from the pile are known while they are held; a drawn one is not; melds taken back are."""
    rules = preset("rummy40", wrong_opening="penalty", opening=100)
    tables = set_up(rules, "4S 5S 6S 2D 2H 9C KD QH JC 8D 7H", pile="3D TC", opened=False)
    play(tables, "discard 7H", "draw")
    play(tables, f"discard {action_name(engine.legal_actions(tables)[0]).split()[1]}")
    top = int(tables["pile"][0, tables["pile_size"][0] - 1])
    play(tables, "take", "lay 4S 5S 6S", "take-back")
    assert held(tables["known"][0, 0], tables["known_jokers"][0, 0]) == sorted([3, 4, 5, top])
    assert tables["banned"][0] == top
    play(tables, "discard 4S")
    assert held(tables["known"][0, 0], 0) == sorted([4, 5, top])
    assert held(tables["known"][0, 1], 0) == []


def test_who_may_take_from_the_pile() -> None:
    tables = engine.new_tables("rummy40:pile=opened", 1)
    assert [action_name(action) for action in engine.legal_actions(tables)] == ["draw"]
    tables["opened"][0, tables["mover"][0]] = 1
    assert [action_name(action) for action in engine.legal_actions(tables)] == ["draw", "take"]


def test_result_before_the_first_end() -> None:
    assert engine.result(engine.new_tables("rummy40", 1)) is None
    assert dataclasses.replace(preset("rummy40"), seats=4).num_actions == engine.num_actions(
        engine.new_tables("rummy40:seats=4", 1)
    )


def test_penalties_may_be_booked_every_turn() -> None:
    """As many as a hand has turns, at the highest price."""
    rules = preset("rummy40", opening=100, wrong_opening="penalty", opening_penalty=1000)
    tables = set_up(rules, "4S 5S 6S 2D 2H 9C KD QH JC 8D 7H", opened=False)
    tables["booked"][0, 0] = 99_000
    play(tables, "lay 4S 5S 6S", "take-back", "discard 2D")
    assert tables["booked"][0, 0] == 100_000
    tables["stock_at"] = rules.deck_size - 1
    play(tables, "draw", action_name(3 + held(tables["hands"][0, 1], 0)[0]))
    assert tables["penalties"][0, 0] > 100_000
