"""Worked positions with their right answers, from `data/cases.json`.

A case holds facts only: cards in, answers out, under the named rules (`any` is every preset). Its id is in the id of
its test, so `pytest -k L07` runs one.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gin_env import PRESETS, Rules, engine, melds, preset
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE, action_name, parse_action
from gin_env.cards import RANKS, card_name, from_mask, parse_cards, to_mask
from gin_env.tables import GINNED, KNOCKED, NOBODY, OVER
from gin_env.view import observe
from tests import reference
from tests.reference_engine import stacked_deck
from tests.test_melds import assert_valid_defence, assert_valid_melds, in_use, laid, masks

CASES = json.loads((Path(__file__).parent / "data" / "cases.json").read_text())


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


@cases("meld", having=["not_melds"])
def test_not_a_meld(case: dict[str, Any]) -> None:
    for names in case["expected"]["not_melds"]:
        hand = cards(names)
        assert melds.deadwood(masks([hand])).tolist() == [reference.points(hand)]
        assert not melds.arrange(masks([hand])).melds.any()


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


# ---------------------------------------------------------------------------------------------------- layoffs


@cases("layoff", having=["one_best_defence"])
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


@cases("arrangement")
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
) -> tuple[list[int], int]:
    """Deals a hand in which ``seat`` draws a card at once and knocks, throwing it or (``big``) with all eleven.

    The dealer is the one that the rules say, if not given.

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
    engine.deal(tables, decks=[deck], dealers=dealers)
    assert tables["dealer"].tolist() == [dealer]
    for move in moves[:-1]:
        points, over = engine.step(tables, [move])
        assert points.tolist() == [[0, 0]]
        assert over.tolist() == [engine.GOING_ON]
    points, over = engine.step(tables, moves[-1:])
    assert int(tables["knocker"][0]) == seat
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


@cases("scoring", having=["one_best_defence"])
def test_deadwood_before_scoring(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    table, hand = table_of(given["knocker_melds"]), cards(given["defender_cards"])
    assert defence(hand, table)[0] == expected["defender_deadwood"]
    assert reference.points(cards(given["knocker_deadwood_cards"])) == expected["knocker_deadwood"]


@pytest.mark.parametrize("dealer", [A, B])
@pytest.mark.parametrize("name", PRESETS)
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


@pytest.mark.parametrize("name", PRESETS)
@cases("arrangement")
def test_arrangement_is_scored(case: dict[str, Any], name: str) -> None:
    given, expected = case["input"], case["expected"]
    option = expected["options"][expected["auto"]]
    assert PRESETS[name].knock_limit == given["limit"]
    tables = engine.new_tables(name, 1)
    points, _ = play_knock(tables, A, parse_cards(given["knocker_cards"]), parse_cards(given["defender_cards"]))
    assert points == [option["points"], -option["points"]]
    assert option["winner"] == "knocker"
    assert set(in_use(tables["melds"][0, A])) == set(table_of(option["melds"]))


@pytest.mark.parametrize("name", PRESETS)
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
            moves = engine.legal_actions(tables)
            engine.step(tables, [TAKE if TAKE in moves and tables["draws"][0] < 3 else moves[0]])

    assert case["expected"]["deadwood_1_with_ace_upcard"] == "no knock"
    tables = engine.new_tables(rules, 1)
    with pytest.raises(engine.IllegalAction, match="may not play 'knock"):
        play_knock(tables, A, knocker_hand(1), defender_hand(19), upcard=parse_cards("AH")[0])


# ------------------------------------------------------------------------------------------------------------- flow


@pytest.mark.parametrize("name", PRESETS)
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


@pytest.mark.parametrize("name", PRESETS)
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


@pytest.mark.parametrize("name", PRESETS)
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
@pytest.mark.parametrize("name", PRESETS)
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


@pytest.mark.parametrize("name", PRESETS)
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


@pytest.mark.parametrize("name", PRESETS)
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


@pytest.mark.parametrize("name", PRESETS)
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
            continue  # see test_dead_hand
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
