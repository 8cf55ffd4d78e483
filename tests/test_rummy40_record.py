"""Records of Rummy40: what is written is read back and played again, and what is wrong is told."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gin_env.rummy40 import Rummy40Rules, engine, preset
from gin_env.rummy40.actions import NUM_TWO_PACK_ACTIONS, parse_action
from gin_env.rummy40.cards import JOKER
from gin_env.rummy40.record import (
    HandRecord,
    Outcome,
    Record,
    RecordError,
    move_text,
    parse_move,
    parse_record,
    read_records,
    table_record,
)
from tests import golden_rummy40
from tests.rummy40_hands import any_rummy40_rules, choose

DECK = "".join(f"{rank}{suit}" for suit in "SHDC" for rank in "A23456789TJQK") + "JKJK"


def played(rules: Rummy40Rules, seed: int, match: bool, moves: int = 10_000) -> Record:
    """Returns the record of a hand, or of a match to its end."""
    tables = engine.new_tables(rules, 1, seed=seed, match=match)
    masks = np.empty((1, rules.num_actions), dtype=np.int8)
    actions = np.empty(1, dtype=np.int64)
    hands: list[HandRecord] = []
    for _ in range(moves):
        engine.legal(tables, masks)
        choose(masks, engine.decision_keys(seed, tables), np.ones(1, dtype=bool), actions)
        over = engine.step(tables, actions)[1][0]
        if over:
            hands += table_record(tables).hands
            if over == engine.EPISODE_ENDED:
                break
            engine.deal(tables)
    return Record(rules, match, tuple(hands) or table_record(tables).hands, "a comment")


@settings(max_examples=25, deadline=None)
@given(any_rummy40_rules(), st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_written_is_read_and_played(rules: Rummy40Rules, seed: int, match: bool) -> None:
    record = played(rules, seed, match, 1500)
    if match and record.hands[-1].result is not None and len(record.hands) > 6:
        record = Record(record.rules, match, record.hands[:6])
    again = parse_record(record.line())
    assert again.line() == record.line()
    assert again.hands == record.hands
    assert again.rules.fingerprint == rules.fingerprint
    *_, last = engine.replay(again)
    assert table_record(last).hands[-1] == record.hands[-1]


def test_moves() -> None:
    texts = [move_text(action) for action in range(NUM_TWO_PACK_ACTIONS)]
    assert len(set(texts)) == len(texts)
    assert [parse_move(text) for text in texts] == list(range(NUM_TWO_PACK_ACTIONS))
    for text, name in {
        "d": "draw", "t": "take", "b": "take-back", "7S": "discard 7S", "JK": "discard JK", "m7S8SJK": "lay 7S 8S JK",
        "mJK8H8S": "lay 8S 8H JK", "9S>h": "add 9S high", "JK9S>l": "joker 9S low", "9S<s": "steal 9S set",
        "9S<l": "steal 9S low", "9S<r2": "steal 9S run 2", "9S>s3": "add 9S set 3",
    }.items():  # fmt: skip
        assert parse_move(text) == parse_action(name)
    for text in ("", "x", "D", "m7S8S", "mQHKHJK", "m7S8SXX", "7S>", "7S>r", "JK>h", "7S<h", "JK7S<s", "7S>h4"):
        with pytest.raises(RecordError, match="is no m"):
            parse_move(text)
    with pytest.raises(ValueError, match="action 1987 is not one of"):
        move_text(1987)


LINE = f"rummy1 rummy40:first_dealer=1 hand dealer=1 deck={DECK} d AS"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a record is one line"),
        ("gin1 rummy40 hand", "it starts with 'gin1'; expected the version 'rummy1'"),
        ("rummy1 rummy40", "it ends after 'rummy40'"),
        ("rummy1 house.toml hand", "are a file's name"),
        ("rummy1 plus20 hand", "'plus20' is no preset"),
        ("rummy1 rummy40 game", "its kind is 'game'"),
        ("rummy1 rummy40 hand dealer=0", "hand 1: deck= is missing"),
        (LINE.replace(" dealer=1 ", " dealer=2 "), "dealer is 2; expected 0 to 1"),
        (LINE.replace(" dealer=1 ", " dealer=x "), "dealer is 'x'; expected a seat"),
        (LINE.replace("deck=AS", "deck=ASAS"), "deck: card 2, AS, is there more than 1 times"),
        (LINE.replace("deck=AS", "deck="), "deck has 53 cards; expected the 54 in play"),
        (LINE.replace("deck=AS", "deck=1S"), "deck: card 1 is '1S'"),
        (LINE.replace("40:", "40:ranks=12,"), "deck: card 13, KS, is not in play"),
        (LINE + " zz", "hand 1: move 3: 'zz' is no move"),
        (LINE + " 9S>h2", "hand 1: move 3: '9S>h2' does not exist under these rules"),
        (LINE + " = out", "result is 'out'"),
        (LINE + " = out 0-x", "penalties are '0-x'"),
        (LINE + " = out 0-1-2", "result is 'out 0-1-2'; expected 2 numbers"),
        (LINE + " = out 0-1 = out 0-1", "it has two results"),
        (LINE + f" / dealer=0 deck={DECK}", "there are 2 hands; a record of the kind 'hand' holds one"),
        (LINE.replace(" dealer=1 deck", " dealer=1 scores=0-0 deck"), "scores are for a match only"),
        (LINE.replace("hand", "match").replace(" deck", " scores=1-2-3 deck"), "scores are 1-2-3; expected 2 numbers"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_record(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINE + " AS", "hand 1, move 3, 'AS': seat 1 may not play it in phase 'draw'; legal: d, t"),
        (LINE + " = stock 1-2", "hand 1: it has a result, but the moves stop before its end"),
        (
            LINE.replace("hand", "match") + f" / dealer=0 deck={DECK}",
            "hand 2: the hand before has not ended",
        ),
        (LINE.replace("hand", "match").replace(" dealer=1 ", " dealer=0 "), "dealer is 0; by the rules it is 1"),
    ],
)
def test_what_cannot_be_played(text: str, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        list(engine.replay(text))
    assert message in str(caught.value)


def test_results_scores_and_ends_are_checked() -> None:
    record = played(preset("rummy40", opening=0, limit=100, first_dealer=0), 3, match=True)
    line = record.line()
    *_, last = engine.replay(line)
    assert last["match_over"][0]
    results = [hand.result for hand in record.hands]
    assert None not in results
    told = record.hands[0].result
    assert told is not None
    wrong = line.replace(told.text(), Outcome(told.ending, (told.penalties[0] + 1, *told.penalties[1:])).text(), 1)
    with pytest.raises(RecordError, match="its result is .*; the moves lead to"):
        list(engine.replay(wrong))
    second = record.hands[1]
    assert second.scores == told.penalties
    text = "-".join(map(str, told.penalties))
    with pytest.raises(RecordError, match=f"hand 2: scores are 0-1; the hands before lead to {text}"):
        list(engine.replay(line.replace(f"scores={text}", "scores=0-1")))
    with pytest.raises(RecordError, match="the hand before has ended the match"):
        list(engine.replay(line.split(" #")[0] + " / " + record.hands[0].text()))


def test_files() -> None:
    lines = ["# hands", "", LINE, f"{LINE} # one more"]
    assert [(number, record.comment) for number, record in read_records(lines)] == [(3, ""), (4, "one more")]
    with pytest.raises(RecordError, match="line 2: it starts with 'x'"):
        list(read_records([LINE, "x"]))


def test_a_hand_that_was_taken_up_in_the_middle() -> None:
    text = LINE.replace("hand", "match").replace(" dealer=1 ", " dealer=0 scores=40-90 ")
    *_, last = engine.replay(text.replace(" d AS", " d"))
    assert last["scores"][0, :2].tolist() == [40, 90]
    assert parse_record(text).hands[0].deck[-1] == JOKER


# -------------------------------------------------------------------------------------------------------------- golden


def test_golden_records() -> None:
    """Every setting plays on as it did, and every seat sees what it saw."""
    assert list(golden_rummy40.records()) == golden_rummy40.RECORDS.read_text(encoding="utf-8").splitlines()


def test_golden_counts() -> None:
    assert golden_rummy40.counts() == json.loads(golden_rummy40.PERFT.read_text(encoding="utf-8"))
