"""How players lay down under manual rules."""

import dataclasses

import numpy as np
import pytest

import agents
from agents.laying import lay
from agents.match import play_match
from gin_env import Rules, engine, melds, preset
from gin_env.actions import LAYOFF, MELD, PASS, action_name, parse_action
from gin_env.cards import parse_cards, to_mask
from gin_env.rules import PRESETS, automatic
from gin_env.tables import DECLARE, DEFEND, LAY_OFF, OVER
from gin_env.view import observe
from tests.reference import DECK
from tests.reference_engine import stacked_deck

MANUAL = {"knocker_melds": "manual", "layoffs": "manual"}


def cards(text: str) -> int:
    """Returns the mask of cards."""
    return to_mask(parse_cards(text))


def after_knock(rules: Rules, knocker: str, defender: str, thrown: str, mover: int = 0) -> np.ndarray:
    """Returns one table at which a seat has drawn and thrown a card, knocking."""
    hands = [parse_cards(knocker), parse_cards(defender)]
    card = parse_cards(thrown)
    others = [c for c in DECK if c not in {*hands[0], *hands[1], *card}]
    tables = engine.new_tables(rules, 1)
    engine.deal(tables, decks=[stacked_deck(DECK, *hands, [others[0], *card])], dealers=[1])
    for move in ("pass", "pass", "draw", f"knock {thrown}"):
        engine.step(tables, [parse_action(move)])
    return tables


def play_out(tables: np.ndarray) -> list[str]:
    """Lays on until the hand is over; returns the actions' names."""
    names = []
    while tables["phase"][0] != OVER:
        action = lay(observe(tables), np.zeros(1, dtype=np.int64))
        names.append(action_name(int(action[0])))
        engine.step(tables, action)
    return names


@pytest.mark.parametrize("defender_melds", ["auto", "manual"])
@pytest.mark.parametrize("name", PRESETS)
def test_manual_hands_go_as_automatic_ones(name: str, defender_melds: str) -> None:
    """For players that lay as the engine does it makes no difference who lays."""
    auto = automatic(preset(name))
    results = [
        play_match(agents.make("greedy"), agents.make("random"), deals=150, seed=5, rules=rules).games
        for rules in (auto, dataclasses.replace(auto, **MANUAL, defender_melds=defender_melds))
    ]
    knocks = [
        play_match(agents.make("greedy"), agents.make("early-knock"), deals=150, seed=6, rules=rules).games
        for rules in (auto, dataclasses.replace(auto, **MANUAL, defender_melds=defender_melds))
    ]
    # A random player lays at random: only the hands of the others are the same.
    assert not np.array_equal(*results)
    np.testing.assert_array_equal(*knocks)


def test_knocker_lays_the_engines_arrangement() -> None:
    # Three sets leave fewer places for layoffs than three runs.
    tables = after_knock(
        preset("luciano", **MANUAL), "9S TS JS 9D TD JD 9C TC JC QH", "AH 2S 3D 4C 5H 6S 7D 8C KS KH", "KD"
    )
    assert play_out(tables)[:4] == ["meld 9S 9D 9C", "meld TS TD TC", "meld JS JD JC", "pass"]


def test_a_long_run_is_laid_in_parts() -> None:
    tables = after_knock(preset("openspiel"), "AS 2S 3S 4S 5S 6S 7S 8S 2H 3H", "AH AD 4C 5H 6C 7D 8C TS TH QD", "KD")
    assert play_out(tables)[:4] == ["meld AS 2S 3S", "meld 4S 5S 6S 7S 8S", "pass", "pass"]
    assert tables["deadwood"][0, 0] == 5


def test_defender_breaks_a_meld_to_lay_off_more() -> None:
    rules = preset("luciano", **MANUAL, defender_melds="manual")
    # Four sevens are a set; the one that goes on 4H-5H-6H lets the eight follow.
    knocker, defender = "4H 5H 6H TS TD TC 2S 2D 2C AS", "7S 7H 7D 7C 8H KS QD JC 3S 5D"
    tables = after_knock(rules, knocker, defender, "KD")
    # The knocker's four moves; and the answer at once, for comparison.
    auto = after_knock(automatic(rules), knocker, defender, "KD")
    names = play_out(tables)
    assert auto["phase"][0] == OVER
    assert tables["deadwood"].tolist() == auto["deadwood"].tolist()
    assert [name for name in names if name.startswith("layoff")] == ["layoff 7H 3", "layoff 8H 3"]
    assert "meld 7S 7D 7C" in names


@pytest.mark.parametrize("name", ["openspiel", "eaai"])
def test_from_any_position_of_the_showdown(name: str) -> None:
    """Others may have begun to lay: what follows is legal, and the best of what is left."""
    tables = engine.new_tables(name, 300, seed=3)
    rng = np.random.default_rng(1)
    greedy = agents.make("greedy")
    seen: dict[int, int] = {DECLARE: 0, LAY_OFF: 0, DEFEND: 0}
    for _ in range(140):
        mask = engine.legal(tables)
        actions = greedy.act(observe(tables), mask, engine.decision_keys(1, tables))
        showdown = (tables["phase"] >= DECLARE) & (tables["phase"] != OVER)
        wild = np.where(mask == 1, rng.random(mask.shape), -1).argmax(axis=1)
        mixed = np.where(showdown & (rng.random(tables.size) < 0.5), wild, actions)
        for row in np.flatnonzero(showdown):
            phase = int(tables["phase"][row])
            seen[phase] += 1
            assert mask[row, actions[row]] == 1
            table = tables[row : row + 1].copy()
            seat = int(table["mover"][0])
            before = best_left(table, seat)
            play_out(table)
            after = int(table["deadwood"][0, seat])
            if phase != DEFEND or name == "openspiel":
                assert after == before
            else:  # ascending layoffs are not always the best ones
                assert after >= before
        engine.step(tables, mixed, redeal=True)
    assert min(seen[DECLARE], seen[DEFEND]) > 100
    assert (seen[LAY_OFF] > 100) is (name == "openspiel")


def best_left(table: np.ndarray, seat: int) -> int:
    """Returns the least deadwood that a seat can still reach."""
    laid = int(np.bitwise_or.reduce(table["laid"][0, seat]))
    off = int(np.bitwise_or.reduce(table["laid_off"][0]))
    phase = table["phase"][0]
    rest = np.array([int(table["hands"][0, seat]) & ~laid & (~off if phase != DECLARE else ~0)], dtype=np.uint64)
    if phase == DECLARE:
        return int(melds.deadwood(rest)[0])
    on = table["laid"][0, 1 - seat] | table["laid_off"][0]
    none_to_come = phase == DEFEND and PRESETS["openspiel"].record()["layoffs"][0] == table["rules"]["layoffs"][0]
    gin = none_to_come or table["knocked_with"][0] == 0
    return int(melds.defend(rest, on[np.newaxis], np.array([gin])).deadwood[0])


def test_other_phases_are_left_alone() -> None:
    tables = engine.new_tables("openspiel", 3)
    assert lay(observe(tables), np.array([7, 8, 9])).tolist() == [7, 8, 9]
    assert PASS < MELD < LAYOFF
