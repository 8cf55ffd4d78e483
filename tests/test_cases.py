"""Worked positions with their right answers, from `data/cases.json`.

A case holds facts only: cards in, answers out, under the named rules (`any` is every rule page). Its id is in the id of
its test, so `pytest -k L07` runs one.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from gin_env import PRESETS, IllegalAction, Rules, engine, melds, preset, view
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE, action_name, parse_action
from gin_env.cards import NUM_CARDS, RANKS, card_name, from_mask, parse_cards, to_mask
from gin_env.tables import DECLARE, DEFEND, GINNED, KNOCKED, LAY_OFF, NOBODY, OVER
from gin_env.view import observe
from tests import reference
from tests.reference_engine import stacked_deck
from tests.test_melds import assert_valid_defence, assert_valid_melds, in_use, laid, masks
from tests.test_view import shuffle_hidden

CASES = json.loads((Path(__file__).parent / "data" / "cases.json").read_text())
CASE = {case["id"]: case for case in CASES}
PAGES = ("cardpuzzle", "luciano", "plus20", "rummyplus")


def cases(*kinds: str, having: Iterable[str] = ()) -> Any:
    """Returns a parametrization over the cases of some kinds whose expectations have all the named keys."""
    chosen = [case for case in CASES if case["kind"] in kinds and all(key in case["expected"] for key in having)]
    assert chosen
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in chosen])


def cards(names: str | Iterable[str]) -> int:
    """Returns the mask of card names."""
    return to_mask(parse_cards(names))


def table_of(meld_names: Sequence[Sequence[str]]) -> list[int]:
    """Returns the masks of melds."""
    return [cards(names) for names in meld_names]


def defence(hand: int, table: Sequence[int], gin: bool = False) -> tuple[int, int]:
    """Returns the deadwood of the best defence, and the cards laid off, once it is seen to be playable."""
    got = melds.defend(masks([hand]), laid([table]), np.array([gin]))
    assert_valid_defence(hand, laid([table])[0], gin, int(got.deadwood[0]), got.melds[0], got.layoffs[0])
    return int(got.deadwood[0]), sum(in_use(got.layoffs[0]))


def laid_alone(names: Iterable[str], table: Sequence[int]) -> set[str]:
    """Returns those of the cards that can be laid off at once, each tried by itself."""
    return {name for name in names if defence(cards([name]), table)[1]}


# -------------------------------------------------------------------------------------------------- melds, knocks


@cases("meld")
def test_meld(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    if case["id"] == "M06":
        hands, left = [given["hand10"], given["hand11"]], [expected["deadwood10"], 0]
        assert expected["big_gin11"]
    elif "hands" in given:
        hands, left = given["hands"], expected["deadwood"]
    else:
        hands, left = [given["hand"]], [expected["deadwood"]]

    for names, points in zip(hands, left, strict=True):
        hand = cards(names)
        got = melds.arrange(masks([hand]))
        assert melds.deadwood(masks([hand])).tolist() == got.deadwood.tolist() == [points]
        assert_valid_melds(hand, got.melds[0])
        loose = hand & ~sum(in_use(got.melds[0]))
        assert reference.points(loose) == points
        if "melds" in expected:
            assert set(in_use(got.melds[0])) == set(table_of(expected["melds"]))
        if "loose" in expected:
            assert loose == cards(expected["loose"])


def deadwood_after_laying_longest(hand: int, kind: Sequence[int]) -> int:
    """Returns what is left when the longest meld of a kind is laid first."""
    longest = max((meld for meld in kind if meld & hand == meld), key=int.bit_count)
    return reference.deadwood(hand & ~longest)


@cases("meld", having=["longest_run_first_gives"])
def test_longest_run_first_is_wrong(case: dict[str, Any]) -> None:
    left = deadwood_after_laying_longest(cards(case["input"]["hand"]), reference.RUNS)
    assert left == case["expected"]["longest_run_first_gives"] > case["expected"]["deadwood"]


@cases("meld", having=["greedy_four_first"])
def test_four_of_a_kind_first_is_wrong(case: dict[str, Any]) -> None:
    left = deadwood_after_laying_longest(cards(case["input"]["hand"]), reference.SETS)
    assert left == case["expected"]["greedy_four_first"] > case["expected"]["deadwood"]


@cases("meld", having=["not_melds"])
def test_not_a_meld(case: dict[str, Any]) -> None:
    for names in case["expected"]["not_melds"]:
        hand = cards(names)
        assert melds.deadwood(masks([hand])).tolist() == [reference.points(hand)]
        assert not melds.arrange(masks([hand])).melds.any()
        with pytest.raises(ValueError, match="expected a set of 3 or 4 cards or a run of 3 to 5"):
            parse_action(f"meld {' '.join(names)}")


@cases("knock")
def test_knock_discards(case: dict[str, Any]) -> None:
    expected = case["expected"]
    after = melds.deadwood_after(masks([cards(case["input"]["hand11"])]))[0]
    allowed = {card_name(card): int(left) for card, left in enumerate(after) if 0 <= left <= case["input"]["limit"]}
    assert allowed == expected.get("knock_discards", expected.get("discard_to_deadwood"))
    if "gin_discards" in expected:
        assert [name for name, left in allowed.items() if left == 0] == expected["gin_discards"]
    if "knock_allowed" in expected:
        assert bool(allowed) is expected["knock_allowed"]
    if "shortcut_answer" in expected:
        # The best of eleven less its dearest loose card leaves more than the best of ten.
        hand = cards(case["input"]["hand11"])
        loose = reference.loose_cards(hand, reference.best_arrangement(hand))
        short_cut = reference.points(loose) - max(reference.POINTS[card] for card in from_mask(loose))
        assert short_cut == expected["shortcut_answer"] > case["input"]["limit"] >= min(allowed.values())


# ---------------------------------------------------------------------------------------------------- layoffs


@cases("layoff", "scoring", having=["one_best_defence"])
def test_defence(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    table, hand = table_of(given["knocker_melds"]), cards(given["defender_cards"])
    gin = not given["knocker_deadwood_cards"]
    assert gin is (expected["kind"] == "gin")
    assert reference.points(cards(given["knocker_deadwood_cards"])) == expected["knocker_deadwood"]
    points, off = defence(hand, table, gin)
    assert points == expected["defender_deadwood"]

    # The one that the case names leaves as much, and needs no fewer layoffs.
    named = expected["one_best_defence"]
    on_table = list(table)
    for name, place in named["layoffs_in_order"]:
        number = int(place.removeprefix("knocker meld "))
        assert cards([name]) & reference.FITTING[on_table[number]]
        on_table[number] |= cards([name])
    assert reference.points(cards(named["loose"])) == points
    assert off.bit_count() <= len(named["layoffs_in_order"])
    own, layoffs = table_of(named["own_melds"]), cards([name for name, _ in named["layoffs_in_order"]])
    assert all(meld in reference.MELDS for meld in own)
    parts = [*own, layoffs, cards(named["loose"])]
    assert sum(parts) == hand
    assert sum(part.bit_count() for part in parts) == 10


@cases("layoff", having=["best_defender_deadwood"])
def test_best_defender_deadwood(case: dict[str, Any]) -> None:
    table = table_of(case["input"]["knocker_melds"])
    assert defence(cards(case["input"]["defender_cards"]), table)[0] == case["expected"]["best_defender_deadwood"]


@cases("layoff", having=["legal_layoffs_first"])
def test_layoffs_chain(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    table = table_of(given["knocker_melds"])
    assert laid_alone(given["defender_cards"], table) == set(expected["legal_layoffs_first"])
    table[0] |= cards("5D")
    rest = [name for name in given["defender_cards"] if name != "5D"]
    assert laid_alone(rest, table) == set(expected["legal_layoffs_after_5D"])


@cases("layoff", having=["if_8S_goes_on_the_set"])
def test_layoff_on_the_wrong_meld(case: dict[str, Any]) -> None:
    table = table_of(case["input"]["knocker_melds"])
    table[1] |= cards("8S")
    hand = cards(case["input"]["defender_cards"]) & ~cards("8S")
    assert defence(hand, table)[0] == case["expected"]["if_8S_goes_on_the_set"]["defender_deadwood"]


@cases("layoff", having=["must_be_refused", "must_be_allowed"])
def test_layoff_refused_or_allowed(case: dict[str, Any]) -> None:
    for key, allowed in (("must_be_refused", False), ("must_be_allowed", True)):
        for name, on in case["expected"][key]:
            assert laid_alone([name], [cards(on.removeprefix("on "))]) == ({name} if allowed else set())


@cases("layoff", having=["deadwood_if_layoffs_were_wrongly_allowed"])
def test_no_layoffs_against_gin(case: dict[str, Any]) -> None:
    table, hand = table_of(case["input"]["knocker_melds"]), cards(case["input"]["defender_cards"])
    assert defence(hand, table, gin=True) == (case["expected"]["defender_deadwood"], 0)
    assert defence(hand, table, gin=False)[0] == case["expected"]["deadwood_if_layoffs_were_wrongly_allowed"]


# -------------------------------------------------------------------------------------------------- arrangement


@cases("arrangement", having=["options"])
def test_arrangement(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    hand, defender = cards(given["knocker_cards"]), cards(given["defender_cards"])
    got = melds.arrange(masks([hand]))
    assert set(in_use(got.melds[0])) == set(table_of(expected["options"][expected["auto"]]["melds"]))
    for option, places in zip(expected["options"], expected["open_places"], strict=True):
        table = table_of(option["melds"])
        assert len(reference.open_places(hand, table)) == places
        assert from_mask(hand & ~sum(table)) == from_mask(cards(option["loose"]))
        assert int(got.deadwood[0]) == reference.points(cards(option["loose"]))
        assert defence(defender, table)[0] == option["defender_deadwood"]


# --------------------------------------------------------------------------------------------- scoring and flow

A, B = 0, 1  # the players of the cases, by seat
SEATS = {"A": A, "B": B, None: NOBODY}

# Ten cards with three melds; a loose diamond of 1 to 10 points makes it a knocker's hand.
KNOCKER_MELDS = "5S 6S 7S JH JD JC 2C 3C 4C"


def knocker_hand(deadwood: int) -> list[int]:
    """Returns ten cards that leave so much, up to 10."""
    return parse_cards(f"{KNOCKER_MELDS} {'8S' if deadwood == 0 else RANKS[deadwood - 1] + 'D'}")


def defender_hand(deadwood: int) -> list[int]:
    """Returns ten cards that leave so much (up to 9, or 11 to 19), without a layoff on `knocker_hand`."""
    if deadwood > 10:
        return parse_cards(f"KS KH KD KC QS QH QD QC 9H {RANKS[deadwood - 10]}D")
    return parse_cards("KS KH KC QS QH QC TH TD TC " + ("KD" if deadwood == 0 else RANKS[deadwood - 1] + "H"))


def play_knock(
    tables: np.ndarray,
    seat: int,
    knocker: Sequence[int],
    defender: Sequence[int],
    *,
    dealer: int | None = None,
    upcard: int | None = None,
    drawn: int | None = None,
    big: bool = False,
    then: Iterable[str] = (),
) -> tuple[list[int], int]:
    """Deals a hand in which ``seat`` draws a card at once and knocks, throwing it or (``big``) with all eleven.

    The dealer is the one that the rules say, if not given. ``then`` are the moves after the knock, by name.

    Returns:
        The points by seat and how the table stands.
    """
    if dealer is None:
        preview = tables.copy()
        engine.deal(preview)
        dealer = int(preview["dealer"][0])
        dealers = None
    else:
        dealers = [dealer]
    pack = from_mask(tables["rules"]["pack"][0])
    spare = [card for card in pack if card not in {*knocker, *defender, upcard, drawn}]
    upcard = spare.pop() if upcard is None else upcard
    drawn = spare.pop() if drawn is None else drawn
    moves = [PASS, PASS, DRAW, BIG_GIN if big else KNOCK + drawn]
    if seat == dealer:
        # The other player begins, and throws what was drawn.
        deck = stacked_deck(pack, defender, knocker, [upcard, spare[0], drawn])
        moves = [PASS, PASS, DRAW, DISCARD + spare[0], *moves[2:]]
    else:
        deck = stacked_deck(pack, knocker, defender, [upcard, drawn])
    moves += [parse_action(move) for move in then]
    engine.deal(tables, decks=[deck], dealers=dealers)
    assert tables["dealer"].tolist() == [dealer]
    for move in moves[:-1]:
        points, over = engine.step(tables, [move])
        assert points.tolist() == [[0, 0]]
        assert over.tolist() == [engine.GOING_ON]
    points, over = engine.step(tables, moves[-1:])
    assert int(tables["knocking"][0]) == seat
    return points[0].tolist(), int(over[0])


def deal(rules: Rules | str, deck: Sequence[str], dealer: int = A) -> np.ndarray:
    """Returns a table on which this deck was dealt."""
    tables = engine.new_tables(rules, 1)
    engine.deal(tables, decks=[parse_cards(deck)], dealers=[dealer])
    return tables


def names_of(tables: np.ndarray) -> set[str]:
    """Returns the names of the legal actions."""
    return {action_name(action) for action in engine.legal_actions(tables)}


def cards_after(word: str, tables: np.ndarray) -> dict[str, int]:
    """Returns the cards with which an action (discard, knock) is legal, each with the deadwood that it leaves."""
    hand = int(tables["hands"][0, tables["mover"][0]])
    names = [name.split()[1] for name in names_of(tables) if name.startswith(word)]
    return {name: reference.deadwood(hand & ~cards([name])) for name in sorted(names)}


def play(tables: np.ndarray, *moves: str) -> None:
    """Plays actions by name."""
    for move in moves:
        engine.step(tables, [parse_action(move)])


@cases("scoring", having=["wrong_answer_if_own_melds_are_fixed_first"])
def test_own_melds_first_is_wrong(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    hand, table = cards(given["defender_cards"]), tuple(table_of(given["knocker_melds"]))
    loose = reference.loose_cards(hand, reference.best_arrangement(hand))
    left = reference.points(loose) - reference.most_laid_off(loose, table, {}).points
    assert left == expected["wrong_answer_if_own_melds_are_fixed_first"] > expected["defender_deadwood"]
    # Whoever lays off by the lower card first, after the own melds, cannot do better.
    tables = engine.new_tables(preset("cardpuzzle", layoffs="ascending"), 1)
    knocker = from_mask(sum(table)) + parse_cards(given["knocker_deadwood_cards"])
    play_knock(tables, A, knocker, from_mask(hand))
    assert tables["deadwood"][0, B] == left


@pytest.mark.parametrize("dealer", [A, B])
@pytest.mark.parametrize("name", PAGES)
@cases("layoff", "scoring", having=["winner", "one_best_defence"])
def test_scoring(case: dict[str, Any], name: str, dealer: int) -> None:
    """Everything that a case says of the end of the hand, with A as the knocker."""
    given, expected = case["input"], case["expected"]
    table = table_of(given["knocker_melds"])
    knocker = from_mask(sum(table)) + parse_cards(given["knocker_deadwood_cards"])
    tables = engine.new_tables(name, 1)
    points, over = play_knock(tables, A, knocker, parse_cards(given["defender_cards"]), dealer=dealer)
    assert over == engine.EPISODE_ENDED

    won, ending = expected["points"], expected["kind"]
    if expected["winner"] == "defender":
        ending = "undercut"
        # The cases count the bonus of most presets.
        won += PRESETS[name].undercut_bonus - 25
    assert points == ([won, -won] if expected["winner"] == "knocker" else [-won, won])
    assert set(in_use(tables["melds"][0, A])) == set(table)
    result = engine.result(tables)
    assert result is not None
    assert result.ending == ending
    assert result.winner == (A if expected["winner"] == "knocker" else B)
    assert result.points == won
    assert result.deadwood == (expected["knocker_deadwood"], expected["defender_deadwood"])
    assert len(" ".join(result.layoffs).split()) <= len(expected["one_best_defence"]["layoffs_in_order"])
    if "wrong_if_gin_bonus_added" in expected:
        assert expected["points"] + PRESETS[name].gin_bonus == expected["wrong_if_gin_bonus_added"]


@pytest.mark.parametrize("name", PAGES)
@cases("arrangement", having=["options"])
def test_arrangement_is_scored(case: dict[str, Any], name: str) -> None:
    given, expected = case["input"], case["expected"]
    option = expected["options"][expected["auto"]]
    assert PRESETS[name].knock_limit == given["limit"]
    tables = engine.new_tables(name, 1)
    points, _ = play_knock(tables, A, parse_cards(given["knocker_cards"]), parse_cards(given["defender_cards"]))
    assert points == [option["points"], -option["points"]]
    assert option["winner"] == "knocker"
    assert set(in_use(tables["melds"][0, A])) == set(table_of(option["melds"]))


@pytest.mark.parametrize("name", PAGES)
@cases("scoring", having=["cardpuzzle", "plus20"])
def test_score_table(case: dict[str, Any], name: str) -> None:
    """Counts alone, on hands made for them."""
    given, expected = case["input"], case["expected"][name]
    if "rows" in given:
        rows, answers = given["rows"], expected
    else:
        rows = [{"knocker": given["knocker_deadwood"], "defender": given["defender_deadwood_after_layoffs"]}]
        answers = [[expected["winner"], expected["points"]]]
    for row, answer in zip(rows, answers, strict=True):
        big = row.get("kind") == "big"
        knocker, defender = knocker_hand(row["knocker"]), defender_hand(row["defender"])
        drawn = parse_cards("9S")[0] if big else None
        tables = engine.new_tables(name, 1)
        if answer is None:
            with pytest.raises(engine.IllegalAction, match="'big-gin'"):
                play_knock(tables, A, knocker, defender, drawn=drawn, big=True)
            continue
        points, _ = play_knock(tables, A, knocker, defender, drawn=drawn, big=big)
        result = engine.result(tables)
        assert result is not None
        assert result.deadwood == (row["knocker"], row["defender"])
        winner, won = answer
        assert result.winner == {"knocker": A, "defender": B, None: None}[winner]
        assert points == {"knocker": [won, -won], "defender": [-won, won], None: [0, 0]}[winner]
        assert (winner is None) is (result.ending == "tie")


@pytest.mark.parametrize("double_spades", ["deadwood", "all"])
@cases("scoring", having=["double_spades"])
def test_doubled_spades(case: dict[str, Any], double_spades: Any) -> None:
    given, expected = case["input"], case["expected"]
    rules = preset("plus20", oklahoma=True, double_spades=double_spades)
    upcard = parse_cards(given["upcard"])[0]
    for row, answer in zip(given["rows"], expected["double_spades"][double_spades], strict=True):
        sign = 1 if answer[0] == "knocker" else -1
        declared = {"knock": KNOCKED, "gin": GINNED}[row["kind"]]
        _, who, won = engine.score(rules.record()[0], True, declared, row["knocker"], row["defender"])
        assert (who, won) == (sign, answer[1])
        # And at the table.
        tables = engine.new_tables(rules, 1)
        points, _ = play_knock(
            tables, A, knocker_hand(row["knocker"]), defender_hand(row["defender"]), upcard=upcard, dealer=B
        )
        assert tables["limit"].tolist() == [expected["knock_limit"]]
        assert points == [sign * answer[1], -sign * answer[1]]

    ace = expected["ace_of_spades_upcard"]
    play_knock(tables, A, knocker_hand(0), defender_hand(3), upcard=parse_cards("AS")[0])
    assert tables["limit"].tolist() == [ace["limit"]]
    assert tables["doubled"].tolist() == [ace["doubled"]]


@pytest.mark.parametrize("name", ["luciano", "plus20"])
@cases("oklahoma")
def test_limit_by_upcard(case: dict[str, Any], name: str) -> None:
    rules = preset(name, oklahoma=True)
    upcards, limits = parse_cards(case["input"]["upcards"]), case["expected"]["limits"]
    for upcard, limit in zip(upcards, limits, strict=True):
        tables = engine.new_tables(rules, 1)
        pack = from_mask(tables["rules"]["pack"][0])
        rest = [card for card in pack if card != upcard]
        engine.deal(tables, decks=[[*rest[:20], upcard, *rest[20:]]])
        # For the whole hand, also once the upcard has been taken.
        while tables["phase"][0] != OVER:
            assert tables["limit"].tolist() == [limit]
            for seat in (A, B):
                assert observe(tables, seat)["limit"].tolist() == [limit]
                seen, _ = view.look(tables, seat)
                assert seen[0, view.SCALAR["limit"]] == pytest.approx(limit / 10)
            moves = engine.legal_actions(tables)
            engine.step(tables, [TAKE if TAKE in moves and tables["draws"][0] < 3 else moves[0]])

    assert case["expected"]["deadwood_1_with_ace_upcard"] == "no knock"
    tables = engine.new_tables(rules, 1)
    with pytest.raises(engine.IllegalAction, match="may not play 'knock"):
        play_knock(tables, A, knocker_hand(1), defender_hand(19), upcard=parse_cards("AH")[0])


# ------------------------------------------------------------------------------------------------------------- flow


@pytest.mark.parametrize("name", PAGES)
@cases("flow", having=["after_knock_KH"])
def test_first_turn_knock(case: dict[str, Any], name: str) -> None:
    given, expected = case["input"], case["expected"]
    assert given["actions"] == ["take_upcard"]
    tables = deal(name, given["deck"])
    play(tables, "take")
    upcard = given["deck"][20]
    knocks, discards = cards_after("knock", tables), cards_after("discard", tables)
    if PRESETS[name].rediscard:
        assert upcard in discards
        discards.pop(upcard)
        knocks.pop(upcard, None)
    assert knocks == expected["knock_discards"]
    assert (upcard in discards) is expected["upcard_discard_legal"]
    play(tables, "knock KH")
    result, after = engine.result(tables), expected["after_knock_KH"]
    assert result is not None
    assert (result.knocker, result.winner, result.points) == (B, B, after["points"])
    assert after["winner"] == "knocker"
    assert result.deadwood == (after["defender_deadwood"], after["knocker_deadwood"])
    assert result.turns == 1


@pytest.mark.parametrize("name", PAGES)
@cases("flow", having=["from_discard", "from_stock"])
def test_rediscard(case: dict[str, Any], name: str) -> None:
    given, expected = case["input"], case["expected"]
    hand, taken = parse_cards(given["hand10"]), parse_cards([given["taken_card"]])[0]
    assert expected["plus20_from_discard"] == "as from_stock"
    pack = list(reference.DECK)
    other = [card for card in pack if card not in {*hand, taken}][-10:]
    for where, moves, then in (
        ("from_discard", ["take"], [taken]),
        ("from_stock", ["pass", "pass", "draw"], [next(c for c in pack if c not in {*hand, *other, taken}), taken]),
    ):
        tables = engine.new_tables(name, 1)
        engine.deal(tables, decks=[stacked_deck(pack, hand, other, then)], dealers=[A])
        play(tables, *moves)
        answer = expected["from_stock" if PRESETS[name].rediscard else where]
        assert cards_after("knock", tables) == answer["knock_discards"]
        assert sorted(cards_after("discard", tables)) == sorted(answer["plain_discards"])


@pytest.mark.parametrize("name", PAGES)
@cases("flow", having=["mask_after_two_passes"])
def test_upcard_offer(case: dict[str, Any], name: str) -> None:
    given, expected = case["input"], case["expected"]
    words = {"take_upcard": "take", "pass": "pass", "draw_stock": "draw"}
    upcard, first_of_stock = given["deck"][20:22]
    tables = deal(name, given["deck"])
    assert tables["mover"].tolist() == [B]
    assert names_of(tables) == {words[word] for word in expected["mask_start"]}
    play(tables, "pass")
    assert expected["to_move_after_one_pass"] == "dealer"
    assert tables["mover"].tolist() == [A]
    assert names_of(tables) == {words[word] for word in expected["mask_after_pass"]}

    takes = tables.copy()
    play(takes, "take", "discard 7S")
    assert takes["mover"].tolist() == [B]
    assert names_of(takes) == {"draw", "take"}

    play(tables, "pass")
    assert expected["to_move_after_two_passes"] == "non-dealer"
    assert tables["mover"].tolist() == [B]
    assert names_of(tables) == {words[word] for word in expected["mask_after_two_passes"]}
    with pytest.raises(engine.IllegalAction, match="seat 1 may not play 'take' .* legal: draw"):
        play(tables, "take")
    play(tables, "draw", f"discard {first_of_stock}")
    assert names_of(tables) == {"draw", "take"}
    # The refused upcard lies under that discard; whoever takes the top one never gets at it, for a throw follows.
    play(tables, "take")
    assert cards([upcard, first_of_stock]) & int(tables["hands"][0, A]) == cards([first_of_stock])
    play(tables, "discard 7S")
    assert [card_name(card) for card in tables["pile"][0, : tables["pile_size"][0]]] == [upcard, "7S"]


def play_dead(tables: np.ndarray, offer: Sequence[str] = ("pass", "pass")) -> None:
    """Answers the offer, throwing a king for a taken upcard, then draws and throws what was drawn until the end."""
    for move in offer:
        play(tables, move)
    if offer[-1] == "take":
        play(tables, "discard KS" if offer == ("take",) else "discard KC")
    while tables["phase"][0] != OVER:
        play(tables, "draw")
        engine.step(tables, [DISCARD + int(tables["drawn"][0])])


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("name", PAGES)
@cases("flow", having=["stock_draws"])
def test_dead_hand(case: dict[str, Any], name: str, match: bool) -> None:
    given, expected = case["input"], case["expected"]
    seats = {"dealer": A, "non-dealer": B}

    def dead(offer: Sequence[str]) -> np.ndarray:
        tables = engine.new_tables(name, 1, match=match)
        engine.deal(tables, decks=[parse_cards(given["deck"])], dealers=[A])
        assert PRESETS[name].deck_size - tables["stock_at"][0] == expected["stock_after_deal"]
        play_dead(tables, offer)
        result = engine.result(tables)
        assert result is not None
        assert (result.ending, result.winner, result.knocker, result.points) == (expected["result"], None, None, 0)
        assert tables["scores"].tolist() == [expected["points"]]
        assert PRESETS[name].deck_size - tables["stock_at"][0] == expected["stock_left"]
        return tables

    tables = dead(("pass", "pass"))
    assert tables["num_turns"].tolist() == [expected["turns"]] == [expected["stock_draws"]]
    assert tables["mover"].tolist() == [seats[expected["last_turn_by"]]]
    for offer, key in (
        (("take",), "if_the_nondealer_took_the_upcard"),
        (("pass", "take"), "if_the_dealer_took_the_upcard"),
    ):
        after = dead(offer)
        assert after["num_turns"].tolist() == [expected[key]["turns"]]
        assert after["mover"].tolist() == [seats[expected[key]["last_turn_by"]]]
    if match:
        assert expected["next_dealer"] == "same dealer"
        engine.deal(tables)
        assert tables["dealer"].tolist() == [A]


@pytest.mark.parametrize("name", PAGES)
@cases("flow", having=["knock_allowed_on_turn_29"])
def test_knock_on_the_last_turn(case: dict[str, Any], name: str) -> None:
    """The hands of the case cannot knock, so three cards of the non-dealer change places with low spades."""
    names = list(case["input"]["deck"])
    for high, low in (("KS", "AS"), ("QD", "2S"), ("3D", "3S")):
        i, j = names.index(high), names.index(low)
        names[i], names[j] = names[j], names[i]
    tables = deal(name, names)
    play(tables, "pass", "pass", "draw")
    while tables["draws"][0] < case["expected"]["turns"]:
        engine.step(tables, [DISCARD + int(tables["drawn"][0])])
        play(tables, "draw")
    drawn = int(tables["drawn"][0])
    assert (f"knock {card_name(drawn)}" in names_of(tables)) is case["expected"]["knock_allowed_on_turn_29"]
    engine.step(tables, [KNOCK + drawn])
    result = engine.result(tables)
    assert result is not None
    assert (result.ending, result.knocker, result.turns) == ("knock", B, 29)


@pytest.mark.parametrize("name", PAGES)
@cases("flow", having=["ends"])
def test_endless_swapping(case: dict[str, Any], name: str) -> None:
    """Both always take the top card and throw the oldest of the others; no knock, though some could be had."""
    tables = engine.new_tables(name, 1, seed=8, match=True)
    dealer = int(tables["dealer"][0])
    oldest_first = [from_mask(hand) for hand in tables["hands"][0]]
    over = [engine.GOING_ON]
    draws = 0
    while over == [engine.GOING_ON]:
        mover = int(tables["mover"][0])
        oldest_first[mover].append(int(tables["pile"][0, tables["pile_size"][0] - 1]))
        play(tables, "take")
        points, over = (array.tolist() for array in engine.step(tables, [DISCARD + oldest_first[mover].pop(0)]))
        draws += 1
    assert case["expected"]["ends"] == f"after {draws} turns"
    result = engine.result(tables)
    assert result is not None
    assert (result.ending, result.winner, result.points, result.turns) == ("truncated", None, 0, 200)
    assert points == [[0, 0]]
    assert over == [engine.HAND_ENDED]
    engine.deal(tables)
    assert (int(tables["dealer"][0]) == dealer) is case["expected"]["same_dealer"]


# ------------------------------------------------------------------------------------------------------------ matches


@pytest.mark.parametrize("name", ["cardpuzzle", "luciano"])
@cases("match", having=["match_winner"])
def test_undercutter_wins_the_match(case: dict[str, Any], name: str) -> None:
    given, expected = case["input"], case["expected"]
    tables = engine.new_tables(preset(name, target=given["target"]), 1, match=True)
    hand = given["hand"]
    for dealer in (A, B):
        table = tables.copy()
        table["scores"] = [[given["scores"]["A"], given["scores"]["B"]]]
        knocker, defender = knocker_hand(hand["knocker_deadwood"]), defender_hand(hand["defender_deadwood"])
        _, over = play_knock(table, SEATS[hand["knocker"]], knocker, defender, dealer=dealer)
        assert over == engine.EPISODE_ENDED
        assert table["scores"].tolist() == [[expected["scores"]["A"], expected["scores"]["B"]]]
        assert table["match_winner"].tolist() == [SEATS[expected["match_winner"]]]


@pytest.mark.parametrize("name", PAGES)
@cases("match", having=["next_dealer"])
def test_next_dealer(case: dict[str, Any], name: str) -> None:
    given, expected = case["input"], case["expected"]
    dealer = SEATS[given["dealer"]]

    def next_dealer(how: str, seat: int, knocker_deadwood: int, defender_deadwood: int) -> int:
        tables = engine.new_tables(name, 1, match=True)
        play_knock(tables, seat, knocker_hand(knocker_deadwood), defender_hand(defender_deadwood), dealer=dealer)
        result = engine.result(tables)
        assert result is not None
        assert result.ending == how
        engine.deal(tables)
        return int(tables["dealer"][0])

    for hand, answer in zip(given["hands"], expected["next_dealer"][name], strict=True):
        how, winner = hand["how"], SEATS[hand["winner"]]
        if how == "dead":
            assert SEATS[answer] == dealer  # and so it is: see test_dead_hand
            continue
        if how == "undercut":
            got = next_dealer(how, 1 - winner, 9, 3)
        else:
            got = next_dealer(how, winner, 0 if how == "gin" else 4, 19)
        assert got == SEATS[answer], hand
    tie = expected["after_a_tie_that_scores_nothing"].get(name)
    assert (tie is None) is (PRESETS[name].tie == "undercut")
    if tie is not None:
        for seat in (A, B):
            assert next_dealer("tie", seat, 8, 8) == SEATS[tie]


@cases("match", having=["final"])
def test_match_is_a_straight_race(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    # Points to (knocker's, defender's) deadwood.
    counts = {12: (4, 16), 28: (0, 3), 38: (0, 13)}
    tables = engine.new_tables(preset("cardpuzzle", target=given["target"]), 1, match=True)
    last = len(given["hands"]) - 1
    for number, (winner, points) in enumerate(given["hands"]):
        assert tables["match_winner"].tolist() == [NOBODY]
        knocker, defender = counts[points]
        won, over = play_knock(tables, SEATS[winner], knocker_hand(knocker), defender_hand(defender))
        assert won[SEATS[winner]] == points
        assert over == (engine.EPISODE_ENDED if number == last else engine.HAND_ENDED)
    assert expected["bonus"] == 0
    assert tables["scores"].tolist() == [[expected["final"]["A"], expected["final"]["B"]]]
    assert tables["match_winner"].tolist() == [SEATS[expected["winner"]]]


@cases("match", having=["targets"])
def test_match_targets(case: dict[str, Any]) -> None:
    expected = case["expected"]
    assert set(expected["targets"]) == set(PAGES)
    for name, targets in expected["targets"].items():
        assert preset(name).target == expected["default"]
        for target in targets:
            points = None if target == "one hand" else target
            assert preset(name, target=points).target == points
        for target in expected["refused"]:
            with pytest.raises(ValueError, match=f"rules: target is {target}; expected"):
                preset(name, target=target)
            with pytest.raises(ValueError, match=f"rules: target is {target}; expected|is '{target}'; expected"):
                engine.new_tables(f"{name}:target={target}", 1)


@pytest.mark.parametrize("dealer", [A, B])
@pytest.mark.parametrize("name", PAGES)
@cases("match", having=["one_hand"])
def test_match_of_one_hand(case: dict[str, Any], name: str, dealer: int) -> None:
    """A dead hand is dealt again, then a hand that is worth nothing draws the match, then one wins the next."""
    expected = case["expected"]["one_hand"]
    rules = preset(name, target=None, tie="nothing", next_dealer="alternate", first_dealer=dealer)
    tables = engine.new_tables(rules, 1, match=True)
    engine.deal(tables, decks=[parse_cards(CASE["F06"]["input"]["deck"])], dealers=[dealer])
    play_dead(tables)
    assert tables["phase"].tolist() == [OVER]
    assert tables["match_winner"].tolist() == [NOBODY]
    assert expected["dead_hand"] == "dealt again by the same player"
    engine.deal(tables)
    assert tables["dealer"].tolist() == [dealer]

    assert expected["zero_point_tie"] == "a draw"
    points, over = play_knock(tables, A, knocker_hand(8), defender_hand(8), dealer=dealer)
    assert (points, over) == ([0, 0], engine.EPISODE_ENDED)
    assert tables["match_winner"].tolist() == [NOBODY]
    assert tables["scores"].tolist() == [[0, 0]]

    # Another match: the first dealer is that of the rules again.
    points, over = play_knock(tables, B, knocker_hand(4), defender_hand(19))
    assert tables["dealer"].tolist() == [dealer]
    assert (points, over) == ([-15, 15], engine.EPISODE_ENDED)
    assert tables["match_winner"].tolist() == [B]
    assert tables["scores"].tolist() == [[0, 15]]
    engine.deal(tables)
    assert tables["scores"].tolist() == [[0, 0]]
    assert tables["match_winner"].tolist() == [NOBODY]


# ------------------------------------------------------------------------------------------------------ laid by hand


def begin_layoffs(case: dict[str, Any], rules: Rules, dealer: int = B) -> np.ndarray:
    """Returns a table where A has knocked and laid the case's melds, and B is to answer."""
    given = case["input"]
    table = table_of(given["knocker_melds"])
    knocker = from_mask(sum(table)) + parse_cards(given["knocker_deadwood_cards"])
    declared = [f"meld {' '.join(meld)}" for meld in given["knocker_melds"]] + ["pass"]
    tables = engine.new_tables(rules, 1)
    play_knock(
        tables,
        A,
        knocker,
        parse_cards(given["defender_cards"]),
        dealer=dealer,
        then=declared if rules.knocker_melds == "manual" else (),
    )
    assert set(in_use(tables["laid"][0, A])) == set(table)
    if rules.knocker_melds == "manual":
        assert in_use(tables["laid"][0, A]) == table
    return tables


def place_of(tables: np.ndarray, meld: int) -> int:
    """Returns the number by which a layoff names one of A's melds, 1 to 3."""
    return in_use(tables["laid"][0, A]).index(meld) + 1


def layoffs_of(tables: np.ndarray) -> set[str]:
    """Returns the cards that may be laid off now, on whichever meld."""
    return {name.split()[1] for name in names_of(tables) if name.startswith("layoff")}


def assert_refused(tables: np.ndarray, action: str | int) -> None:
    """Asserts that an action is refused, the state unchanged and the same player to move."""
    before = tables.tobytes()
    number = parse_action(action) if isinstance(action, str) else action
    seat = int(tables["mover"][0])
    with pytest.raises(IllegalAction, match=f"seat {seat} may not play") as caught:
        engine.step(tables, [number])
    assert caught.value.legal == tuple(engine.legal_actions(tables))
    assert tables.tobytes() == before


def points_of(tables: np.ndarray) -> list[int]:
    """Returns the points of the last hand by seat."""
    won, winner = int(tables["points"][0]), int(tables["winner"][0])
    return [0, 0] if winner == NOBODY else [won, -won] if winner == A else [-won, won]


by_whom = pytest.mark.parametrize("knocker_melds", ["auto", "manual"])


@by_whom
@pytest.mark.parametrize("dealer", [A, B])
@cases("layoff", having=["layoff_mask_steps"])
def test_layoff_mask_steps(case: dict[str, Any], knocker_melds: Any, dealer: int) -> None:
    rules = preset("luciano", knocker_melds=knocker_melds, layoffs="manual")
    tables = begin_layoffs(case, rules, dealer)
    steps = case["expected"]["layoff_mask_steps"]
    laid_already = 0
    for step in steps:
        assert layoffs_of(tables) == set(step)
        assert case["expected"]["may_stop"] == "at any point"
        assert "pass" in names_of(tables)
        stopped = tables.copy()
        play(stopped, "pass")
        assert stopped["phase"].tolist() == [OVER]
        hand = cards(case["input"]["defender_cards"]) & ~laid_already
        assert stopped["deadwood"][0, B] == reference.deadwood(hand)
        if step:
            laid_already |= cards(step)
            play(tables, f"layoff {step[0]} {place_of(tables, cards('5S 6S 7S'))}")
    play(tables, "pass")
    assert tables["deadwood"][0, B] == case["expected"]["best_defender_deadwood"]


@by_whom
@pytest.mark.parametrize("dealer", [A, B])
@cases("layoff", having=["must_be_refused_first"])
def test_layoff_by_hand(case: dict[str, Any], knocker_melds: Any, dealer: int) -> None:
    expected = case["expected"]
    assert case["variant"] == "luciano"
    rules = preset("luciano", knocker_melds=knocker_melds, layoffs="manual")
    tables = begin_layoffs(case, rules, dealer)
    left = reference.points(cards(case["input"]["knocker_deadwood_cards"]))
    place = place_of(tables, cards("5S 6S 7S"))
    assert layoffs_of(tables) == set(expected["mask_start"])
    for number in (1, 2, 3):
        assert_refused(tables, f"layoff {expected['must_be_refused_first']} {number}")
    stopped = tables.copy()
    play(stopped, "pass")
    assert stopped["deadwood"].tolist() == [[left, expected["deadwood_if_stop_at_once"]]]
    assert points_of(stopped)[A] == expected["deadwood_if_stop_at_once"] - left

    play(tables, f"layoff 8S {place}")
    assert layoffs_of(tables) == set(expected["mask_after_8S"])
    assert_refused(tables, f"layoff 8S {place}")
    play(tables, f"layoff 9S {place}")
    assert names_of(tables) == {"pass"}
    play(tables, "pass")
    assert tables["deadwood"].tolist() == [[left, expected["deadwood_best"]]]
    assert points_of(tables)[A] == expected["deadwood_best"] - left
    # As the engine does it alone.
    alone = begin_layoffs(case, preset("luciano"), dealer)
    assert alone["deadwood"].tolist() == tables["deadwood"].tolist()


@by_whom
@cases("layoff", having=["legal_layoffs_first"])
def test_layoffs_chain_at_the_table(case: dict[str, Any], knocker_melds: Any) -> None:
    rules = preset("cardpuzzle", knocker_melds=knocker_melds, layoffs="manual")
    tables = begin_layoffs(case, rules)
    assert layoffs_of(tables) == set(case["expected"]["legal_layoffs_first"])
    play(tables, f"layoff 5D {place_of(tables, cards('6D 7D 8D'))}")
    assert layoffs_of(tables) == set(case["expected"]["legal_layoffs_after_5D"])


@by_whom
@cases("layoff", having=["if_8S_goes_on_the_set"])
def test_layoff_on_the_wrong_meld_at_the_table(case: dict[str, Any], knocker_melds: Any) -> None:
    rules = preset("rummyplus", knocker_melds=knocker_melds, layoffs="manual")
    left = {}
    for meld in ("8H 8D 8C", "5S 6S 7S"):
        tables = begin_layoffs(case, rules)
        play(tables, f"layoff 8S {place_of(tables, cards(meld))}")
        assert layoffs_of(tables) == ({"9S"} if meld == "5S 6S 7S" else set())
        if layoffs_of(tables):
            play(tables, f"layoff 9S {place_of(tables, cards(meld))}")
        play(tables, "pass")
        left[meld] = int(tables["deadwood"][0, B])
    assert left["8H 8D 8C"] == case["expected"]["if_8S_goes_on_the_set"]["defender_deadwood"]
    assert left["5S 6S 7S"] == case["expected"]["defender_deadwood"]


@by_whom
@cases("layoff", having=["must_be_refused", "must_be_allowed"])
def test_layoff_refused_or_allowed_at_the_table(case: dict[str, Any], knocker_melds: Any) -> None:
    rules = preset("plus20", knocker_melds=knocker_melds, layoffs="manual")
    tables = begin_layoffs(case, rules)
    for name, on in case["expected"]["must_be_refused"]:
        assert_refused(tables, f"layoff {name} {place_of(tables, cards(on.removeprefix('on ')))}")
        assert name not in layoffs_of(tables)
    for name, on in case["expected"]["must_be_allowed"]:
        play(tables, f"layoff {name} {place_of(tables, cards(on.removeprefix('on ')))}")


@by_whom
@pytest.mark.parametrize("defender_melds", ["auto", "manual"])
@cases("layoff", having=["layoff_actions_in_mask"])
def test_no_layoff_actions_against_gin(case: dict[str, Any], knocker_melds: Any, defender_melds: Any) -> None:
    rules = preset("cardpuzzle", knocker_melds=knocker_melds, layoffs="manual", defender_melds=defender_melds)
    tables = begin_layoffs(case, rules)
    if defender_melds == "manual":
        assert tables["phase"].tolist() == [DEFEND]
        assert len(layoffs_of(tables)) == case["expected"]["layoff_actions_in_mask"]
        assert_refused(tables, f"layoff 5S {place_of(tables, cards('6S 7S 8S'))}")
        play(tables, "pass")
    assert tables["phase"].tolist() == [OVER]
    assert engine.result(tables).ending == "gin"
    assert tables["deadwood"][0, B] == case["expected"]["defender_deadwood"]


@by_whom
@pytest.mark.parametrize("defender_melds", ["auto", "manual"])
@pytest.mark.parametrize("name", PAGES)
@cases("layoff", "scoring", having=["winner", "one_best_defence"])
def test_named_defence_at_the_table(case: dict[str, Any], name: str, knocker_melds: Any, defender_melds: Any) -> None:
    """The defence that the case names, move by move."""
    given, expected = case["input"], case["expected"]
    named, table = expected["one_best_defence"], table_of(given["knocker_melds"])
    rules = preset(name, knocker_melds=knocker_melds, layoffs="manual", defender_melds=defender_melds)
    tables = begin_layoffs(case, rules)
    for card, place in named["layoffs_in_order"]:
        play(tables, f"layoff {card} {place_of(tables, table[int(place.removeprefix('knocker meld '))])}")
    if expected["kind"] != "gin":
        play(tables, "pass")
    if defender_melds == "manual":
        play(tables, *(f"meld {' '.join(meld)}" for meld in named["own_melds"]), "pass")
    result = engine.result(tables)
    assert result.deadwood == (expected["knocker_deadwood"], expected["defender_deadwood"])
    assert result.ending == ("undercut" if expected["winner"] == "defender" else expected["kind"])
    sign = 1 if expected["winner"] == "knocker" else -1
    won = expected["points"] + (PRESETS[name].undercut_bonus - 25 if sign < 0 else 0)
    assert points_of(tables) == [sign * won, -sign * won]
    assert set(in_use(tables["melds"][0, B])) == set(table_of(named["own_melds"]))
    assert sum(in_use(tables["layoffs"][0])) == cards([card for card, _ in named["layoffs_in_order"]])


@pytest.mark.parametrize("name", PAGES)
@cases("arrangement", having=["if_the_knocker_declares"])
def test_arrangement_that_the_knocker_declares(case: dict[str, Any], name: str) -> None:
    given = case["input"]
    for option in case["expected"]["options"]:
        tables = engine.new_tables(preset(name, knocker_melds="manual"), 1)
        points, _ = play_knock(
            tables,
            A,
            parse_cards(given["knocker_cards"]),
            parse_cards(given["defender_cards"]),
            then=[*(f"meld {' '.join(meld)}" for meld in option["melds"]), "pass"],
        )
        assert in_use(tables["melds"][0, A]) == table_of(option["melds"])
        assert tables["deadwood"].tolist() == [[reference.points(cards(option["loose"])), option["defender_deadwood"]]]
        won = option["points"] + (PRESETS[name].undercut_bonus - 25 if option["winner"] == "defender" else 0)
        assert points == ([won, -won] if option["winner"] == "knocker" else [-won, won])


@pytest.mark.parametrize("dealer", [A, B])
@cases("arrangement", having=["melds_accepted"])
def test_declared_layout_that_is_no_partition(case: dict[str, Any], dealer: int) -> None:
    given, expected = case["input"], case["expected"]
    hand = parse_cards(given["hand"])
    loose = expected["deadwood_of_the_last"]
    assert reference.deadwood(to_mask(hand)) == loose
    # With as high a limit as that, so that the hand may be declared at all.
    rules = preset("luciano", knock_limit=loose, knocker_melds="manual", layoffs="manual")
    rest = [card for card in reference.DECK if card not in hand]
    tables = engine.new_tables(rules, 1)
    play_knock(tables, A, hand, rest[:10], dealer=dealer)
    assert tables["phase"].tolist() == [DECLARE]
    begun = tables.copy()
    assert expected["after_a_refusal"] == "state unchanged, same player to move"
    for declaration, accepted, why in zip(
        given["declarations"], expected["melds_accepted"], expected["why_the_next_is_refused"], strict=True
    ):
        tables = begun.copy()
        moves = [f"meld {' '.join(names)}" for names in declaration]
        play(tables, *moves[:accepted])
        assert (why is None) == (accepted == len(moves))
        if why == "two cards are no meld":
            with pytest.raises(ValueError, match="expected a set of 3 or 4 cards or a run of 3 to 5"):
                parse_action(moves[accepted])
        elif why is not None:
            assert_refused(tables, moves[accepted])
        assert tables["mover"].tolist() == [A]
        assert tables["phase"].tolist() == [DECLARE]
    # The last one is good, if the limit is that high.
    play(tables, "pass")
    assert tables["knocked_with"].tolist() == [loose]
    assert tables["phase"].tolist() == [LAY_OFF]
    assert expected["knock_with_limit_10"] is False
    with pytest.raises(IllegalAction, match="may not play 'knock"):
        play_knock(engine.new_tables(preset("luciano", knocker_melds="manual"), 1), A, hand, rest[:10], dealer=dealer)


@cases("meld", having=["accepted_layouts_of_hand10"])
def test_layouts_of_a_very_long_run(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    defender = [card for card in reference.DECK if card % 13 in (0, 3, 6, 9) and card // 13 != 1][:10]
    for lengths in expected["accepted_layouts_of_hand10"]:
        names, moves = list(given["hand10"]), []
        for length in lengths:
            moves.append("meld " + " ".join(names[:length]))
            names = names[length:]
        tables = engine.new_tables(preset("cardpuzzle", knocker_melds="manual"), 1)
        play_knock(tables, A, parse_cards(given["hand10"]), defender, then=[*moves, "pass"])
        result = engine.result(tables)
        assert (result.ending, result.deadwood[A]) == ("gin", expected["deadwood10"])
        assert result.melds[A] == tuple(move.removeprefix("meld ") for move in moves)
    # Eleven cards: nobody is asked how they are laid.
    eleventh = parse_cards([card for card in given["hand11"] if card not in given["hand10"]])[0]
    for rules in (preset("cardpuzzle"), preset("cardpuzzle", knocker_melds="manual", layoffs="manual")):
        tables = engine.new_tables(rules, 1)
        play_knock(tables, A, parse_cards(given["hand10"]), defender, drawn=eleventh, big=expected["big_gin11"])
        result = engine.result(tables)
        assert (result.ending, result.deadwood[A]) == ("big-gin", 0)
        assert result.melds[A] == (" ".join(given["hand11"]),)


# ------------------------------------------------------------------------------------------------------ what is seen


def begin_seen(case: dict[str, Any], knocker_melds: Any, dealer: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Returns a table at the layoffs of the position that a case names, and what lies there."""
    position = CASE[case["input"]["position"]]
    rules = preset("luciano", knocker_melds=knocker_melds, layoffs="manual", defender_melds="manual")
    return begin_layoffs(position, rules, dealer), position["input"]


def plane(observation: np.ndarray, name: str) -> int:
    """Returns the cards of one plane of an observation."""
    start = (view.PLANE | view.MANUAL_PLANE)[name]
    return to_mask(np.flatnonzero(observation[start : start + NUM_CARDS]))


@by_whom
@pytest.mark.parametrize("dealer", [A, B])
@cases("env", having=["view_of_A"])
def test_view_during_the_layoffs(case: dict[str, Any], knocker_melds: Any, dealer: int) -> None:
    tables, given = begin_seen(case, knocker_melds, dealer)
    expected = case["expected"]
    theirs, mine = cards(given["defender_cards"]), sum(table_of(given["knocker_melds"]))
    mine |= cards(given["knocker_deadwood_cards"])
    place = place_of(tables, cards("5S 6S 7S"))
    for move, shown in (
        (None, ""),
        (f"layoff 8S {place}", "8S"),
        ("pass", "8S"),
        ("pass", None),
    ):
        if move:
            play(tables, move)
        over = shown is None
        assert bool(tables["phase"][0] == OVER) is over
        seen = theirs if over else cards(shown)
        (of_a, of_b), looks = (
            (observe(tables, A)[0], observe(tables, B)[0]),
            [view.look(tables, s)[0][0] for s in (A, B)],
        )

        # A knocked and sees how many cards B holds, and which ones it has laid down.
        assert expected["view_of_A"] == {"cards_of_B": "the number only", "deadwood_of_B": "hidden"}
        assert of_a["opponent_cards"] == 10
        assert int(of_a["opponent_known"]) == plane(looks[A], "opponent_known") == seen
        assert theirs & ~seen & ~plane(looks[A], "unseen") == 0
        assert of_a["opponent_deadwood"] == (theirs_left(theirs, tables) if over else -1)
        assert in_use(of_a["opponent_melds"]) == []
        for order in range(0 if over else 20):
            hidden = shuffle_hidden(tables, A, Random(order))
            assert int(hidden["hands"][0, B]) & seen == seen
            assert hidden["hands"][0, B] != tables["hands"][0, B]
            for name in of_a.dtype.names:
                assert observe(hidden, A)[0][name].tobytes() == of_a[name].tobytes()
            assert view.look(hidden, A)[0].tobytes() == looks[A].tobytes()
            assert not view.look(hidden, A)[1].any()

        # B sees all that A has.
        assert expected["view_of_B"]["cards_of_A"] == "all ten"
        assert int(of_b["opponent_known"]) == plane(looks[B], "opponent_known") == mine
        assert expected["view_of_B"]["melds_of_A"] == "all"
        assert in_use(of_b["opponent_melds"]) == in_use(tables["laid"][0, A])
        assert set(in_use(of_b["opponent_melds"])) == set(table_of(given["knocker_melds"]))
        assert of_b["opponent_deadwood"] == expected["view_of_B"]["deadwood_of_A"]
        assert looks[B][view.MANUAL_SCALAR["knocker_deadwood"]] * 10 == expected["view_of_B"]["deadwood_of_A"]
    assert expected["after_B_is_done"] == "both public"


def theirs_left(theirs: int, tables: np.ndarray) -> int:
    """Returns the points of the defender's cards that are not laid off."""
    return reference.points(theirs & ~sum(in_use(tables["layoffs"][0])))


@by_whom
@pytest.mark.parametrize("dealer", [A, B])
@cases("env", having=["observation_must_contain"])
def test_defender_sees_what_it_needs(case: dict[str, Any], knocker_melds: Any, dealer: int) -> None:
    tables, given = begin_seen(case, knocker_melds, dealer)
    table = in_use(tables["laid"][0, A])
    place = place_of(tables, cards("5S 6S 7S"))
    loose = cards(given["knocker_deadwood_cards"])
    for laid_off in ("", "8S", "8S 9S"):
        if laid_off:
            play(tables, f"layoff {laid_off.split()[-1]} {place}")
        row, (observation,) = observe(tables, B)[0], view.look(tables, B)[0]
        grown = [meld | (cards(laid_off) if number == place else 0) for number, meld in enumerate(table, 1)]
        planes = [plane(observation, f"meld_{number}") for number in (1, 2, 3)]
        scalars = {name: float(observation[at]) for name, at in (view.SCALAR | view.MANUAL_SCALAR).items()}
        phases = ("offer", "offer_dealer", "draw_stock", "draw", "throw", "declare", "lay_off", "defend")

        shown = {
            "knocker_melds": (in_use(row["opponent_melds"]), planes) == (table, grown),
            "knocker_deadwood_cards": int(row["opponent_known"]) & ~sum(table)
            == plane(observation, "opponent_known") & ~(planes[0] | planes[1] | planes[2])
            == loose,
            "knocker_deadwood": row["opponent_deadwood"] == reference.points(loose) == 10 * scalars["knocker_deadwood"],
            "phase": (row["phase"], [name for name in phases if scalars[name]]) == (LAY_OFF, ["lay_off"]),
            "layoffs_so_far": row["layoffs"].tolist() == [cards(laid_off) if n == place else 0 for n in (1, 2, 3)]
            and plane(observation, "laid_off") == cards(laid_off),
            "knock_limit": (row["limit"], scalars["limit"]) == (10, 1),
        }
        assert shown == dict.fromkeys(case["expected"]["observation_must_contain"], True)
        # And what is its own: what is still to be laid, and that it is to move.
        left = cards(given["defender_cards"]) & ~cards(laid_off)
        assert scalars["unlaid"] == pytest.approx(reference.points(left) / 10)
        assert scalars["to_move"] == 1
        assert scalars["knocker"] == 0
