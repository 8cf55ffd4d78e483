"""Worlds look to their seat as the table does, and their hidden hands are as likely as the belief says."""

import math
from itertools import combinations

import numpy as np
import pytest

import agents
from agents.worlds import BELIEF, GIN, TERMS, WEIGHTS, beliefs, sample_hands, sample_worlds, terms
from gin_env import engine
from gin_env.cards import NUM_RANKS, from_mask, to_mask
from gin_env.melds import deadwood
from gin_env.rules import as_rules, automatic
from gin_env.tables import DECLARE, THROW, Tables
from gin_env.view import OPPONENT, View, observe
from tests import reference
from tests.test_agents import keys, played

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


def company(cards: int) -> int:
    """The cards of the same ranks, and the neighbours in suit."""
    found = {rank + 13 * suit for rank in {card % NUM_RANKS for card in from_mask(cards)} for suit in range(4)}
    for card in from_mask(cards):
        found |= {card + step for step in (-1, 1) if 0 <= card % NUM_RANKS + step < NUM_RANKS}
    return to_mask(found)


def loose_of(hand: int) -> list[int]:
    """What may be left outside the melds of a hand, where as few points as can be are."""
    least = reference.deadwood(hand)
    melds = [meld for meld in reference.MELDS if meld & hand == meld]
    rests, grow = {hand}, [hand]
    while grow:
        rest = grow.pop()
        more = {rest & ~meld for meld in melds if meld & rest == meld} - rests
        rests |= more
        grow += more
    return [rest for rest in rests if sum(min(card % NUM_RANKS + 1, 10) for card in from_mask(rest)) == least]


def restated(v: np.void, hand: int) -> list[dict[str, float]]:
    """What speaks for a hand, by the reference's deadwood; for each way to leave as little outside the melds."""

    def least(cards: int) -> int:
        return min(reference.deadwood(cards & ~(1 << card)) for card in from_mask(cards))

    points, turns = reference.deadwood(hand), int(v["draws"]) / 2
    known, thrown = int(v["opponent_known"]), int(v["opponent_thrown"])
    declined = int(v["opponent_declined"]) & ~thrown
    pile = list(zip(v["pile"][: v["pile_size"]].tolist(), v["pile_by"][: v["pile_size"]].tolist(), strict=True))
    unseen = int(v["rules"]["pack"]) & ~(int(v["hand"]) | known | to_mask(card for card, _ in pile))
    last = [card for card, by in reversed(pile) if by == OPPONENT][:3]
    told = []
    for loose in loose_of(hand):
        outs = {
            card
            for meld in reference.MELDS
            if meld.bit_count() == 3 and (meld & loose).bit_count() == 2
            for card in from_mask(meld & ~loose)
        }
        told.append({
            "points": turns * points,
            "outs": turns * (to_mask(outs) & unseen & ~hand).bit_count(),
            "thrown": (loose & company(thrown)).bit_count(),
            "declined": (hand & company(declined)).bit_count(),
            "taken": (hand & ~known & company(known)).bit_count(),
            "idle": (known & loose).bit_count(),
            "regret": sum((points - least(hand | 1 << card)) / 2**age for age, card in enumerate(last)),
            "waited": float(bool(thrown) and 0 < points <= int(v["limit"])),
        })  # fmt: skip
    return told


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20", "luciano"])
def test_belief_restated(rules: str) -> None:
    seen: dict[str, set[float]] = {name: set() for name in TERMS}
    for steps in (3, 8, 15, 26, 37):
        views = observe(played(rules, 8, steps, seed=steps))
        for row in range(views.size):
            if views["phase"][row] >= DECLARE:
                continue
            worlds = sample_worlds(views, 3, seed=steps, row=row)
            hands = worlds["hands"][:, 1 - views["seat"][row]]
            told, gin = terms(views, hands, row)
            for hand, one, is_gin, nats in zip(hands, told, gin, beliefs(views, hands, row), strict=True):
                found = dict(zip(TERMS, one.tolist(), strict=True))
                assert found in restated(views[row], int(hand))
                assert is_gin == (bool(views["opponent_thrown"][row]) and deadwood(np.array([hand]))[0] == 0)
                assert nats == pytest.approx(WEIGHTS @ one - GIN * is_gin, abs=1e-9)
                for name, number in found.items():
                    seen[name].add(number)
    assert all(len(numbers) > 1 for numbers in seen.values()), seen


def test_gin_is_hardly_believed() -> None:
    views = observe(played("cardpuzzle", 40, 12, seed=5))
    row = int(np.flatnonzero(views["opponent_thrown"] != 0)[0])
    v = views[row]
    seen = int(v["hand"]) | int(v["opponent_known"]) | to_mask(v["pile"][: v["pile_size"]])
    melds = [meld for meld in reference.MELDS if not meld & seen]
    hand = next(
        one | two | three
        for one in melds
        for two in melds
        for three in melds
        if (one | two | three).bit_count() == 10 and reference.deadwood(one | two | three) == 0
    )
    told, gin = terms(views, np.array([hand], dtype=np.uint64), row)
    assert gin.tolist() == [True]
    assert beliefs(views, np.array([hand], dtype=np.uint64), row)[0] == pytest.approx(told[0] @ WEIGHTS - GIN)


def test_each_term_has_its_place() -> None:
    assert len(TERMS) == len(set(TERMS)) == WEIGHTS.size == len(BELIEF)


@pytest.mark.parametrize("player", ["strategist", "greedy"])
def test_believed_hands_are_as_good_as_the_true_ones(player: str) -> None:
    """They were once twice as bad late in the hand: nothing said that whoever has drawn often has melds by now."""
    agent = agents.make(player)
    tables = engine.new_tables("cardpuzzle", 64, seed=4)
    rng = np.random.default_rng(2)
    true, believed = [], []
    for _ in range(60):
        views, masks = observe(tables), engine.legal(tables)
        for row in np.flatnonzero((views["draws"] >= 10) & (views["phase"] == THROW)):
            hands = sample_hands(views, 50, int(rng.integers(1 << 62)), int(row))
            true.append(deadwood(tables["hands"][[row], 1 - views["seat"][row]])[0])
            believed.append(deadwood(hands).mean())
        engine.step(tables, agent.act(views, masks, keys(tables.size)), redeal=True)
    assert len(true) > 200
    assert np.mean(believed) == pytest.approx(np.mean(true), abs=6)
    assert np.corrcoef(true, believed)[0, 1] > 0.3


def test_sampled_hands_are_hands() -> None:
    views = observe(played("cardpuzzle", 8, 15, seed=3))
    for row in range(views.size):
        v = views[row]
        hands = sample_hands(views, 30, seed=1, row=row)
        assert (hands == sample_hands(views, 30, seed=1, row=row)).all()
        assert (hands[:10] == sample_hands(views, 10, seed=1, row=row)).all()
        assert len(set(hands.tolist())) > 5
        seen = int(v["hand"]) | to_mask(v["pile"][: v["pile_size"]])
        for hand in hands.tolist():
            assert not hand & seen
            assert hand & int(v["opponent_known"]) == int(v["opponent_known"])
            assert hand.bit_count() == v["opponent_cards"]


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
