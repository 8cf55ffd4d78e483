"""Worlds look to their seat as the table does, and their hidden hands are as likely as the belief says."""

import math
from itertools import combinations

import numpy as np
import pytest

from agents.worlds import (
    DECLINE_SCALE,
    FADING,
    GIN,
    TAKEN_LOOSE,
    THROW_SCALE,
    WAITED,
    beliefs,
    sample_worlds,
)
from gin_env import engine
from gin_env.cards import CARD_POINTS, from_mask, to_mask
from gin_env.rules import as_rules, automatic
from gin_env.tables import DECLARE, THROW, Tables
from gin_env.view import OPPONENT, View, observe
from tests import reference
from tests.test_agents import played

SMALL = "cardpuzzle:ranks=5,suits=3,hand_size=3"


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20", "rummyplus", "eaai", "openspiel", SMALL])
def test_worlds_look_as_the_table_does(rules: str) -> None:
    phases = set()
    for steps in (0, 1, 2, 7, 16, 31):
        tables = played(rules, 8, steps, seed=steps)
        views, masks = observe(tables), engine.legal(tables)
        for row in range(tables.size):
            if views["phase"][row] >= DECLARE:
                continue
            worlds = sample_worlds(views, 6, seed=row, row=row)
            seen = observe(worlds)
            for name in views.dtype.names or ():
                if name == "rules" and as_rules(rules).manual:
                    assert (seen["rules"] == automatic(as_rules(rules)).record()).all()
                else:
                    assert (seen[name] == views[name][row]).all(), name
            assert (engine.legal(worlds) == masks[row, :108]).all()
            phases.add(int(views["phase"][row]))
            for world in worlds:
                cards = [*from_mask(int(world["hands"][0])), *from_mask(int(world["hands"][1]))]
                cards += world["pile"][: world["pile_size"]].tolist()
                cards += world["deck"][world["stock_at"] : world["rules"]["deck_size"]].tolist()
                assert sorted(cards) == from_mask(int(world["rules"]["pack"]))
            # They are no copies of the table, nor of each other.
            if views["stock"][row] > 5:
                assert len({int(world["hands"][1 - views["seat"][row]]) for world in worlds}) > 1
                assert len({world["deck"].tobytes() for world in worlds}) == 6
    assert {0, 3, THROW} <= phases


def restated(v: np.void, hand: int) -> float:
    """The belief, by the reference's deadwood."""

    def least(cards: int, banned: int = -1) -> int:
        return min(reference.deadwood(cards & ~(1 << card)) for card in from_mask(cards) if card != banned)

    deadwood = reference.deadwood(hand)
    thrown = [
        int(card)
        for card, by in zip(v["pile"][: v["pile_size"]], v["pile_by"][: v["pile_size"]], strict=True)
        if by == OPPONENT
    ]
    total = 0.0
    for age, card in enumerate(reversed(thrown)):
        total -= FADING**age * (deadwood - least(hand | 1 << card)) / THROW_SCALE
    fade = sum(FADING**age for age in range(len(thrown))) / max(len(thrown), 1) if thrown else 1.0
    for card in from_mask(int(v["opponent_declined"]) & ~hand):
        total -= fade * max(deadwood - least(hand | 1 << card, card), 0) / DECLINE_SCALE
    if thrown and deadwood <= v["limit"]:
        total -= GIN if deadwood == 0 else WAITED
    for card in from_mask(int(v["opponent_known"])):
        if deadwood >= reference.deadwood(hand & ~(1 << card)) + CARD_POINTS[card]:
            total -= TAKEN_LOOSE
    return total


def test_belief_restated() -> None:
    checked = 0
    for steps in (3, 8, 15, 26):
        views = observe(played("cardpuzzle", 4, steps, seed=steps))
        for row in range(views.size):
            worlds = sample_worlds(views, 3, seed=steps, row=row)
            hands = worlds["hands"][:, 1 - views["seat"][row]]
            told = [restated(views[row], int(hand)) for hand in hands]
            assert beliefs(views, hands, row) == pytest.approx(told, abs=1e-9)
            checked += len(set(told))
    assert checked > 20


def all_hands(tables: Tables, views: View) -> list[int]:
    """The hands that the opponent of the first row may have."""
    v = views[0]
    seen = int(v["hand"]) | int(v["opponent_known"]) | to_mask(v["pile"][: v["pile_size"]])
    unseen = from_mask(int(v["rules"]["pack"]) & ~seen)
    hidden = int(v["opponent_cards"]) - int(v["opponent_known"]).bit_count()
    return [int(v["opponent_known"]) | to_mask(some) for some in combinations(unseen, hidden)]


@pytest.mark.parametrize("steps", [0, 5, 6])
def test_hands_come_as_often_as_they_are_believed(steps: int) -> None:
    tables = played(SMALL, 6, steps, seed=3)
    rows = np.flatnonzero(tables["num_moves"] == steps)  # hands that have just been dealt say nothing
    assert rows.size
    tables = tables[rows[:1]]
    views = observe(tables)
    hands = all_hands(tables, views)
    chances = np.exp(beliefs(views, np.array(hands, dtype=np.uint64)))
    chances /= chances.sum()
    assert (chances.max() > 1.5 * chances.min()) == (steps > 0)
    drawn = sample_worlds(views, 6000)["hands"][:, 1 - views["seat"][0]]
    counts = np.array([(drawn == hand).sum() for hand in hands])
    assert counts.sum() == 6000
    # Total variation against what as many draws from the belief itself would give.
    exact = np.random.default_rng(1).multinomial(6000, chances)
    assert abs(counts / 6000 - chances).sum() < abs(exact / 6000 - chances).sum() + 0.1


def test_each_hand_of_a_first_turn_is_as_likely_as_any_other() -> None:
    tables = engine.new_tables("cardpuzzle", 1, seed=5)
    views = observe(tables)
    hands = sample_worlds(views, 3000)["hands"][:, 1 - views["seat"][0]]
    counts = np.array([((hands >> np.uint64(card)) & np.uint64(1)).sum() for card in range(52)])
    unseen = counts > 0
    assert unseen.sum() == 41
    assert not counts[from_mask(int(views["hand"][0]))].any()
    mean = 3000 * 10 / 41
    assert abs(counts[unseen] - mean).max() < 5 * math.sqrt(mean * (1 - 10 / 41))


def test_worlds_are_a_function_of_the_seed() -> None:
    views = observe(played("cardpuzzle", 3, 9))
    first, again, other = (sample_worlds(views, 4, seed=seed, row=1) for seed in (7, 7, 8))
    assert first.tobytes() == again.tobytes()
    assert (sample_worlds(views, 2, seed=7, row=1) == first[:2]).all()
    assert first.tobytes() != other.tobytes()
