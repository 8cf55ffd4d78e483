"""Records: what is written can be read and played again, and what is wrong is named. Golden records and perft."""

import copy
import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from gin_env import PRESETS, IllegalAction, Rules, aec, engine, preset
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, NUM_MANUAL_ACTIONS, PASS, TAKE
from gin_env.cards import parse_cards
from gin_env.record import (
    HandRecord,
    Outcome,
    Record,
    RecordError,
    hand_record,
    move_text,
    parse_move,
    parse_record,
    read_records,
    table_record,
)
from gin_env.rules import as_rules
from gin_env.tables import OVER, empty_tables
from gin_env.vector import GinRummyVectorEnv
from gin_env.view import VIEW_DTYPE, look, observe
from tests import golden

# The first example compiles the kernels, which no deadline should count.
properties = settings(max_examples=60, deadline=None)
any_seed = st.integers(0, 2**64 - 1)

# A pack of 16 cards in order.
SMALL = "cardpuzzle:ranks=4,hand_size=3,knock_limit=3"
DECK = "AS2S3S4SAH2H3H4HAD2D3D4DAC2C3C4C"


@st.composite
def any_rules(draw: st.DrawFn) -> Rules:
    """Rules with anything in any field that can be played."""
    ranks, suits = draw(st.integers(3, 13)), draw(st.integers(1, 4))
    assume(ranks * suits >= 6)
    hand_size = draw(st.integers(2, min(10, (ranks * suits - 2) // 2)))
    stock = ranks * suits - 2 * hand_size - 1
    oklahoma, rediscard = draw(st.booleans()), draw(st.booleans())
    layoffs = draw(st.sampled_from(["best", "ascending", "manual"]))
    points = st.integers(0, 1000)
    return Rules(
        name=draw(st.sampled_from(["mine", *PRESETS])),
        ranks=ranks,
        suits=suits,
        hand_size=hand_size,
        knock_limit=draw(st.integers(0, 100)),
        oklahoma=oklahoma,
        double_spades=draw(st.sampled_from(["no", "deadwood", "all"])) if oklahoma else "no",
        gin_bonus=draw(points),
        big_gin_bonus=draw(st.none() | points),
        undercut_bonus=draw(points),
        tie=draw(st.sampled_from(["undercut", "nothing"])),
        rediscard=rediscard,
        first_dealer=draw(st.sampled_from(["random", 0, 1])),
        next_dealer=draw(st.sampled_from(["alternate", "winner", "same"])),
        stock_floor=draw(st.integers(0, min(10, stock - 1))),
        wall=draw(st.sampled_from(["dead", "knock"])),
        draw_cap=draw(st.integers(1, 200)),
        swap_cap=draw(st.none() | st.integers(1, 1000)) if rediscard else None,
        take_cap=draw(st.none() | st.integers(1, 1000)),
        knocker_melds=draw(st.sampled_from(["auto", "manual"])),
        layoffs=layoffs,
        defender_melds="auto" if layoffs == "best" else draw(st.sampled_from(["auto", "manual"])),
        target=draw(st.none() | st.integers(1, 1_000_000)),
    )


def choose(tables: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Returns any legal action of the only table, a knock rather often."""
    legal = engine.legal_actions(tables)
    knocks = [action for action in legal if KNOCK <= action <= BIG_GIN]
    return [int(rng.choice(knocks if knocks and rng.random() < 0.3 else legal))]


def play(rules: Rules, seed: int, num_moves: int, match: bool) -> tuple[np.ndarray, list[HandRecord]]:
    """Returns a table after some moves, and the hands of its match that are over; it stops where the match does."""
    tables = engine.new_tables(rules, 1, seed=seed, match=match)
    rng = np.random.default_rng(seed)
    hands = []
    for move in range(num_moves):
        _, over = engine.step(tables, choose(tables, rng))
        if over[0] != engine.GOING_ON:
            hands.append(hand_record(tables))
        if over[0] == engine.EPISODE_ENDED:
            break
        if over[0] == engine.HAND_ENDED and move + 1 < num_moves:
            engine.deal(tables)
    return tables, hands


def replayed(record: Record | str) -> np.ndarray:
    """Returns the table where a record stops."""
    return golden.position(record)


def hand(**changes: Any) -> HandRecord:
    """A hand of the small pack."""
    deck = parse_cards(DECK[place : place + 2] for place in range(0, len(DECK), 2))
    return dataclasses.replace(HandRecord(dealer=0, deck=tuple(deck)), **changes)


# ------------------------------------------------------------------------------------------------------------ text


def test_a_line() -> None:
    line = f"gin1 {SMALL} match dealer=0 deck={DECK} p p d AC t 4C = dead / dealer=0 scores=0-0 deck={DECK} t # a word"
    record = parse_record(line)
    assert record.line() == line
    assert record.rules == as_rules(SMALL)
    assert record.match
    assert record.comment == "a word"
    first, second = record.hands
    assert first.moves == (PASS, PASS, DRAW, DISCARD + 39, TAKE, DISCARD + 42)
    assert first.deck[:5] == (0, 1, 2, 3, 13)
    assert (first.result, first.scores) == (Outcome("dead", None, 0), None)
    assert (second.result, second.scores) == (None, (0, 0))
    assert record == dataclasses.replace(record, comment="another")


def test_moves() -> None:
    words = [move_text(action) for action in range(NUM_MANUAL_ACTIONS)]
    assert words[:4] == ["p", "d", "t", "AS"]
    assert {"k7S", "G", "m7S7H7D", "m5C6C7C8C9C", "8S>1", "8S>3"} < set(words)
    assert len(set(words)) == NUM_MANUAL_ACTIONS
    assert [parse_move(word) for word in words] == list(range(NUM_MANUAL_ACTIONS))
    # No word can be taken for another part of the line.
    assert not any(set(word) & set("=/# \t") for word in words)
    assert parse_move("m7D7S7H") == parse_move("m7S7H7D")
    for action in (-1, NUM_MANUAL_ACTIONS):
        with pytest.raises(ValueError, match="is not one of"):
            move_text(action)


@pytest.mark.parametrize(
    "word", ["", "P", "pass", "7s", "10S", "k", "kk7S", "K7S", "m7S", "m7S7H", "8S>0", "8S>4", ">1"]
)
def test_no_move(word: str) -> None:
    with pytest.raises(RecordError, match="is no m"):
        parse_move(word)


WRONG = {
    "": "a record is one line, but these are 0",
    "gin1 luciano hand\ngin1 luciano hand": "but these are 2",
    "gin2 luciano hand": "starts with 'gin2'; expected the version 'gin1'",
    "# no more": "starts with ''",
    "gin1 luciano": "ends after 'luciano'",
    "gin1 whist hand x": "'whist' is no preset",
    "gin1 luciano:ranks=20 hand x": "ranks is 20",
    "gin1 luciano:ranks hand x": "'ranks' is not of the form field=value",
    "gin1 /etc/rules.toml hand x": "are a file's name",
    "gin1 luciano game x": "kind is 'game'",
    "gin1 luciano hand": "hand 1: dealer= is missing$",
    "gin1 luciano hand p": "hand 1: dealer= is missing before 'p'",
    "gin1 luciano hand dealer=0 p": "hand 1: deck= is missing before 'p'",
    "gin1 luciano hand dealer=0 dealer=0 p": "hand 1: 'dealer=0' is there twice",
    "gin1 luciano hand Dealer=0 p": "hand 1: 'Dealer=0' is unknown",
    "gin1 luciano hand dealer=2 deck=": "hand 1: dealer is '2'; expected 0 or 1",
    "gin1 luciano hand dealer=0 deck=": "hand 1: deck has 0 cards; expected the 52 of the pack",
    f"gin1 {SMALL} hand dealer=0 deck={DECK}5": "deck: card 17 is '5'",
    f"gin1 {SMALL} hand dealer=0 deck=AS1S": "deck: card 2 is '1S'",
    f"gin1 {SMALL} hand dealer=0 deck={DECK[:-2]}5C": "deck: card 16, 5C, is not in the pack",
    f"gin1 {SMALL} hand dealer=0 deck={DECK[:-2]}AS": "deck: card 16, AS, is there twice",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} p p x d": "hand 1: move 3: 'x' is no move",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} p m7S7H p": "hand 1: move 2: 'm7S7H' is no meld: expected a set",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} p m7SxH7D p": "hand 1: move 2: 'm7SxH7D' is no meld: 'xH' is no card",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} p mASAHAD": "hand 1: move 2: 'mASAHAD' does not exist under these rules",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} = dead = dead": "hand 1: it has two results",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} = draw": "hand 1: result is 'draw'; expected one of knock, gin,",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} = seat 0 31 gin": "hand 1: result is 'seat 0 31 gin'",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} = seat 0 +³ gin": "hand 1: result is",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} / dealer=1 deck={DECK}": "there are 2 hands",
    f"gin1 {SMALL} hand dealer=0 deck={DECK} /": "hand 2: dealer= is missing",
    f"gin1 {SMALL} hand dealer=0 scores=3-4 deck={DECK}": "hand 1: scores are for a match only",
    f"gin1 {SMALL} match dealer=0 scores=34 deck={DECK}": "hand 1: scores are '34'; expected two numbers",
    f"gin1 {SMALL} match dealer=0 scores=3--4 deck={DECK}": "hand 1: scores are '3--4'",
    f"gin1 {SMALL} match dealer=0 scores=3-100 deck={DECK}": "scores are 3-100; a match that goes on has 0 to 99",
    f"gin1 {SMALL},target=none match dealer=0 scores=0-1 deck={DECK}": "scores are 0-1; .* 0 to 0",
}


@pytest.mark.parametrize("line", WRONG, ids=range(len(WRONG)))
def test_a_wrong_line(line: str) -> None:
    with pytest.raises(RecordError, match=WRONG[line]):
        parse_record(line)


def test_a_record_is_checked_however_it_was_made() -> None:
    rules = as_rules(SMALL)
    with pytest.raises(RecordError, match="there is no hand"):
        Record(rules, True, ())
    with pytest.raises(RecordError, match="a comment is one line"):
        Record(rules, True, (hand(),), "one\ntwo")
    with pytest.raises(RecordError, match="hand 2: dealer is 2"):
        Record(rules, True, (hand(), hand(dealer=2)))
    with pytest.raises(RecordError, match="deck: card 1, card id 77, is not in the pack"):
        Record(rules, False, (hand(deck=(77, *hand().deck[1:])),))
    with pytest.raises(RecordError, match="move 1: action 449 does not exist"):
        Record(rules, False, (hand(moves=(449,)),))


def test_lines_of_a_file() -> None:
    line = f"gin1 {SMALL} hand dealer=0 deck={DECK} p"
    lines = ["# a file\n", "\n", line + "\r\n", "  \n", f"  {line} d\n", "gin1\n", line]
    records = read_records(lines)
    assert [(number, record.hands[0].moves) for number, record in (next(records), next(records))] == [
        (3, (PASS,)),
        (5, (PASS, DRAW)),
    ]
    with pytest.raises(RecordError, match="^line 6: it ends after 'gin1'"):
        next(records)


# ----------------------------------------------------------------------------------------------- rules as a row


@settings(max_examples=200, deadline=None)
@given(any_rules())
def test_rules_from_a_row(rules: Rules) -> None:
    back = Rules.from_row(rules.record()[0])
    assert back.fingerprint == rules.fingerprint
    assert len(back.text) <= len(rules.text) or rules.name in PRESETS
    assert as_rules(back.text).fingerprint == rules.fingerprint


@pytest.mark.parametrize("name", PRESETS)
def test_presets_from_a_row(name: str) -> None:
    assert Rules.from_row(preset(name).record()[0]) == preset(name)


def test_no_rules_from_a_row() -> None:
    row = preset("luciano").record()
    row["tie"] = 7
    with pytest.raises(ValueError, match="tie is coded as 7"):
        Rules.from_row(row[0])


# ----------------------------------------------------------------------------------------------- tables and back


@properties
@given(any_rules(), any_seed, st.integers(0, 120), st.booleans())
@example(preset("cardpuzzle"), 3, 100, True)
@example(preset("openspiel"), 1, 90, False)
def test_a_table_comes_back(rules: Rules, seed: int, num_moves: int, match: bool) -> None:
    """Rules, deck, dealer, moves and scores are all of a hand: the players see no difference."""
    tables, _ = play(rules, seed, num_moves, match)
    record = table_record(tables)
    line = record.line()
    assert "\n" not in line
    again = parse_record(line)
    assert again == record
    assert again.line() == line
    assert again.rules.fingerprint == rules.fingerprint
    back = replayed(line)
    assert table_record(back) == record
    for seat in range(2):
        mine, theirs = observe(tables, seat), observe(back, seat)
        for name in VIEW_DTYPE.names or ():
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
        for one, other in zip(look(tables, seat), look(back, seat), strict=True):
            assert one.tobytes() == other.tobytes()
    assert engine.legal_actions(back) == engine.legal_actions(tables)
    if tables["phase"][0] == OVER:
        assert engine.result(back) == engine.result(tables)
        assert back["match_winner"] == tables["match_winner"]


@properties
@given(any_rules(), any_seed, st.integers(1, 250))
@example(preset("cardpuzzle", target=30), 5, 250)
@example(preset("luciano", target=60), 5, 250)
def test_a_match_comes_back(rules: Rules, seed: int, num_moves: int) -> None:
    tables, hands = play(rules, seed, num_moves, match=True)
    if tables["phase"][0] != OVER:
        hands.append(hand_record(tables))
    # With and without the scores, which follow.
    bare = tuple(dataclasses.replace(one, scores=None) for one in hands)
    for record in (Record(rules, True, tuple(hands)), Record(rules, True, bare)):
        back = replayed(record.line())
        for name in ("scores", "match_winner", "dealer", "hands", "mover", "phase", "num_moves"):
            np.testing.assert_array_equal(back[name], tables[name], err_msg=name)


def test_replay_goes_move_by_move() -> None:
    line = f"gin1 {SMALL} match dealer=0 deck={DECK} p p d 4H t 2S"
    steps = [(int(t["num_moves"][0]), int(t["mover"][0])) for t in engine.replay(line)]
    assert steps == [(0, 1), (1, 0), (2, 1), (3, 1), (4, 0), (5, 0), (6, 1)]


def test_a_record_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing has been dealt at table 1"):
        hand_record(empty_tables(preset("luciano"), 2), 1)


# ------------------------------------------------------------------------------------------------- what replay says


def match_lines() -> list[str]:
    """The parts of a golden match: its head, then its hands without scores."""
    ((_, record),) = golden.golden_records(golden.FOLDER / "cardpuzzle-match.txt")
    head, *hands = record.line().partition(" #")[0].split(" / ")
    rules, first = head.split(" match ")
    return [rules + " match", first, *hands]


def test_replay_names_what_is_wrong() -> None:
    head, first, second, *others = match_lines()
    assert len(others) > 1
    start, played = " ".join(first.split()[:9]), first.partition(" =")[0]
    head_1 = head.replace("cardpuzzle", "cardpuzzle:first_dealer=1")
    other = 1 - int(second[len("dealer=")])
    cases = [
        (f"{head} {first} d", "hand 1: result is '.* d'; expected one of"),
        (f"{head} {played} d", "hand 1, move .*, 'd': the hand has ended before"),
        (f"{head} {' '.join(first.split()[:2])} d", "hand 1, move 1, 'd': seat . may not play it in .*; legal: p, t$"),
        (f"{head} {first} / dealer={other}{second[8:]}", f"hand 2: dealer is {other}; by the rules it is {1 - other}"),
        (f"{head} {start} / {second}", "hand 2: the hand before has not ended"),
        (f"{head} {' / '.join([first, second, *others])} / {first}", "the hand before has ended the match"),
        (f"{head} {first} / {second.replace(' ', ' scores=0-99 ', 1)}", "hand 2: scores are 0-99; the hands before"),
        (f"{head_1} dealer=0{first[8:]}", "hand 1: dealer is 0; by the rules it is 1"),
        (f"{head} {start} = dead", "hand 1: it has a result, but the moves stop before its end"),
        (f"{head} {played} = truncated", "hand 1: its result is 'truncated'; the moves lead to '"),
    ]
    for line, says in cases:
        with pytest.raises(RecordError, match=says):
            replayed(line)
    # A record with scores takes a match up in the middle, whoever deals.
    scored = f"{head_1} dealer=0 scores=12-30{first[8:]}"
    back = replayed(scored.partition(" =")[0])
    result = engine.result(back)
    assert result is not None
    expected = [12, 30]
    if result.winner is not None:
        expected[result.winner] += result.points
    assert back["scores"].tolist() == [expected]


def test_the_legal_moves_are_told_in_the_words_of_a_record() -> None:
    with pytest.raises(RecordError, match="hand 1, move 3, '4H': seat 1 may not play it in phase '.*'; legal: d$"):
        replayed(f"gin1 {SMALL} hand dealer=0 deck={DECK} p p 4H")


# --------------------------------------------------------------------------------------------------- IllegalAction


def test_an_illegal_action_comes_with_its_table() -> None:
    tables = engine.new_tables("plus20", 5, seed=8, match=True)
    rng = np.random.default_rng(2)
    for _ in range(120):
        masks = engine.legal(tables)
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
        bad = int(rng.integers(5))
        illegal = actions.copy()
        illegal[bad] = rng.choice(np.flatnonzero(masks[bad] == 0))
        before = tables.tobytes()
        with pytest.raises(IllegalAction) as caught:
            engine.step(tables, illegal)
        error = caught.value
        assert tables.tobytes() == before
        assert str(error).endswith(f"\nto reproduce: {error.record}")
        back = replayed(error.record)
        with pytest.raises(IllegalAction) as again:
            engine.step(back, [error.action])
        assert (again.value.seat, again.value.legal, again.value.phase) == (error.seat, error.legal, error.phase)
        assert again.value.record == error.record
        same = pickle.loads(pickle.dumps(error))
        assert (str(same), vars(same)) == (str(error), vars(error))
        assert str(copy.copy(error)) == str(error)
        engine.step(tables, actions, redeal=True)


def test_an_illegal_action_after_the_end() -> None:
    tables, _ = play(preset("luciano"), 4, 1000, match=False)
    with pytest.raises(IllegalAction, match="the hand is over") as caught:
        engine.step(tables, [DRAW])
    assert caught.value.record == table_record(tables).line()
    assert " = " in caught.value.record


def test_an_illegal_action_where_there_is_no_record() -> None:
    for tables in (empty_tables(preset("luciano"), 1), engine.new_tables("luciano", 1)):
        tables["rules"]["tie"] = 9
        with pytest.raises(IllegalAction) as caught:
            engine.step(tables, [BIG_GIN])
        assert caught.value.record == ""
        assert "to reproduce" not in str(caught.value)


def test_the_front_doors_tell_it_too() -> None:
    game = aec.env(rules="luciano", match=True)
    game.reset(seed=3)
    for action in (DRAW, -1):
        with pytest.raises(IllegalAction, match="to reproduce: gin1 luciano match ") as caught:
            game.step(action)
        assert table_record(replayed(caught.value.record)) == table_record(game.unwrapped.tables)

    env = gymnasium.make("gin_env/GinRummy-v0", rules="luciano")
    env.reset(seed=3)
    for action in (BIG_GIN, -1):
        with pytest.raises(IllegalAction, match="to reproduce: gin1 luciano hand "):
            env.step(action)

    envs = GinRummyVectorEnv(3, rules="luciano")
    envs.reset(seed=3)
    tables = envs.tables
    for action in (BIG_GIN, -1):
        actions = [engine.legal_actions(tables, row)[0] for row in range(3)]
        actions[1] = action
        with pytest.raises(IllegalAction, match="table 1: .*\nto reproduce: gin1 luciano hand ") as caught:
            envs.step(actions)
        assert caught.value.record == table_record(tables, 1).line()

    class Wrong:
        def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            return np.full(view.size, BIG_GIN)

    envs = GinRummyVectorEnv(8, rules="luciano", opponent=Wrong())
    with pytest.raises(RuntimeError, match="the opponent .*\nto reproduce: gin1 luciano hand "):
        envs.reset(seed=3)


# --------------------------------------------------------------------------------------------------------- golden


GOLDEN = {path.stem: path for path in sorted(golden.FOLDER.glob("*.txt"))}


def test_golden_files_are_there() -> None:
    assert set(GOLDEN) == {*golden.HANDS, *golden.MATCHES, "miniature"}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_records(name: str) -> None:
    """Deals, moves, results (checked by the replay), observations and masks are what they were."""
    records = list(golden.golden_records(GOLDEN[name]))
    lines = GOLDEN[name].read_text(encoding="utf-8").splitlines()
    for number, record in records:
        assert record.line() == lines[number - 1]
        assert all(hand.result for hand in record.hands)
        assert golden.digest(record) == record.comment, f"{name}, line {number}"
    assert len(lines) == len(records) + 1


@pytest.mark.parametrize("name", golden.HANDS)
def test_golden_hands_end_in_all_ways(name: str) -> None:
    rules = golden.HANDS[name]
    endings = {"knock", "gin", "undercut", "dead", "truncated"}
    endings |= {"big-gin"} if rules.big_gin_bonus is not None else set()
    endings |= {"tie"} if rules.tie == "nothing" else set()
    # There the cap on cards taken ends the hand before the cap on draws can.
    endings -= {"truncated"} if rules.take_cap else set()
    records = [record for _, record in golden.golden_records(GOLDEN[name])]
    assert {record.hands[0].result.ending for record in records if record.hands[0].result} == endings
    assert {record.rules.fingerprint for record in records} == {rules.fingerprint}


def test_a_digest_sees_every_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    _, record = next(golden.golden_records(GOLDEN["luciano"]))
    assert golden.digest(record) == record.comment
    plain = golden.look

    def bent(tables: np.ndarray, seat: int) -> tuple[np.ndarray, np.ndarray]:
        observations, masks = plain(tables, seat)
        if tables["num_moves"][0] == 1 and seat == 1:
            observations[0, -1] = np.nextafter(observations[0, -1], np.float32(1))
        return observations, masks

    monkeypatch.setattr(golden, "look", bent)
    assert golden.digest(record) != record.comment


# ---------------------------------------------------------------------------------------------------------- perft


COUNTS = json.loads(golden.PERFT.read_text(encoding="utf-8"))
by_name = pytest.mark.parametrize("counted", COUNTS, ids=lambda counted: counted["name"])


def assert_counts(counted: dict[str, Any], expected: dict[str, Any]) -> None:
    tables = replayed(counted["record"])
    before = tables.tobytes()
    result = golden.perft(tables, len(expected["sequences"]))
    assert result._asdict() == expected
    assert tables.tobytes() == before


@by_name
def test_perft(counted: dict[str, Any]) -> None:
    assert_counts(counted, counted["fast"])


@pytest.mark.slow
@pytest.mark.parametrize("counted", [c for c in COUNTS if c["slow"]], ids=lambda counted: counted["name"])
def test_perft_deeper(counted: dict[str, Any]) -> None:
    assert_counts(counted, counted["slow"])


def test_miniatures_are_counted_to_the_end() -> None:
    for counted in COUNTS:
        if counted["name"] in golden.MINIATURES:
            depth = len(counted["fast"]["sequences"])
            assert golden.perft(replayed(counted["record"]), depth + 1)._asdict() == counted["fast"]
            assert sum(counted["fast"]["ended"].values()) > 500


def test_perft_in_any_chunks() -> None:
    tables = replayed(COUNTS[1]["record"])
    assert golden.perft(tables, 4, chunk=7) == golden.perft(tables, 4)


def test_perft_by_hand() -> None:
    tables = replayed(COUNTS[0]["record"])
    # p, t. After t one of ten cards, after p another p or t: 12. Then d or t after each card, d after pp, and one of
    # ten cards after pt: 31.
    assert golden.perft(tables, 3).sequences == [2, 12, 31]


def test_perft_names_are_those_of_the_presets() -> None:
    names = {counted["name"].partition(",")[0] for counted in COUNTS}
    assert names == {*PRESETS, *golden.MINIATURES}
    phases = {counted["name"].split(", ")[1] for counted in COUNTS if ", " in counted["name"]}
    assert phases == {"the deal", "a knock", "a showdown"}
    assert Path(golden.PERFT).is_file()
