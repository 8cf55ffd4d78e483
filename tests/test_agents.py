"""Scripted players: random is uniform, greedy does what its docstring says; agents by name."""

import numpy as np
import pytest
from scipy import stats

import agents
from agents.base import describe, scripted
from gin_env import engine
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, NUM_ACTIONS, PASS, TAKE
from gin_env.rules import preset
from gin_env.tables import DRAW_ANY, DRAW_STOCK, THROW, Tables
from gin_env.view import VIEW_DTYPE, View, observe
from tests import reference

# Those that play many tables and need not be told more than their name.
ALONE = scripted()


def keys(count: int, seed: int = 0) -> np.ndarray:
    return engine.mix_keys(seed, np.arange(count))


def played(rules: str, tables: int, steps: int, seed: int = 0) -> Tables:
    """Returns tables in the midst of hands: a seat plays at random or greedily, by table and by turns."""
    t = engine.new_tables(rules, tables, seed=seed)
    players = agents.make("random"), agents.make("gin-only")
    for step in range(steps):
        views, masks = observe(t), engine.legal(t)
        choices = [player.act(views, masks, keys(tables, seed=step)) for player in players]
        engine.step(t, np.where((np.arange(tables) + step // 5) % 3 == 0, *choices), redeal=True)
    return t


# ----------------------------------------------------------------------------------------------------------- random


@pytest.mark.parametrize(
    "legal",
    [
        [PASS, TAKE],
        [DRAW, TAKE],
        [DRAW],
        [*range(DISCARD + 9, DISCARD + 20)],
        [3, 54, 55, 106, BIG_GIN],
        [0, 1, 2, 3, 4],
    ],
)
def test_random_is_uniform(legal: list[int]) -> None:
    count = 20_000
    mask = np.zeros((count, NUM_ACTIONS), dtype=np.int8)
    mask[:, legal] = 1
    chosen = agents.make("random").act(np.empty(count, dtype=VIEW_DTYPE), mask, keys(count, seed=17))
    counts = np.bincount(chosen, minlength=NUM_ACTIONS)
    assert counts.sum() == counts[legal].sum() == count
    if len(legal) > 1:
        assert stats.chisquare(counts[legal]).pvalue > 1e-4


def test_random_is_uniform_under_all_masks_at_once() -> None:
    rng = np.random.default_rng(5)
    mask = (rng.random((40_000, NUM_ACTIONS)) < 0.2).astype(np.int8)
    mask[:, 50] |= mask.any(axis=1) == 0
    chosen = agents.make("random").act(np.empty(40_000, dtype=VIEW_DTYPE), mask, keys(40_000))
    assert mask[np.arange(40_000), chosen].all()
    # The place of the chosen action among the legal ones, as a number of 0 to 1, is uniform.
    place = (np.cumsum(mask, axis=1)[np.arange(40_000), chosen] - rng.random(40_000)) / mask.sum(axis=1)
    assert stats.kstest(place, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("name", ALONE)
def test_a_choice_depends_on_its_row_alone(name: str) -> None:
    agent = agents.make(name)
    t = played("cardpuzzle", 64, 23)
    views, masks, rows = observe(t), engine.legal(t), keys(64, seed=3)
    together = agent.act(views, masks, rows)
    assert together.dtype == np.int64
    assert masks[np.arange(64), together].all()
    order = np.random.default_rng(0).permutation(64)
    assert (agent.act(views[order], masks[order], rows[order]) == together[order]).all()
    alone = [agent.act(views[i : i + 1], masks[i : i + 1], rows[i : i + 1])[0] for i in range(64)]
    assert alone == together.tolist()


# ----------------------------------------------------------------------------------------------------------- greedy


def restated(v: View, knock: int, early_draws: int, late_knock: int) -> int:
    """What the greedy agent's docstring says, for one row of a view, by the reference."""
    hand, rules = int(v["hand"]), v["rules"]
    if v["phase"] == DRAW_STOCK:
        return DRAW
    if v["phase"] != THROW:
        upcard = int(v["upcard"])
        after = reference.deadwood_after(hand | 1 << upcard)
        kept = min(left for card, left in after.items() if card != upcard)
        if kept < reference.deadwood(hand):
            return TAKE
        return DRAW if v["phase"] == DRAW_ANY else PASS
    if rules["big_gin_bonus"] >= 0 and reference.deadwood(hand) == 0:
        return BIG_GIN
    after = reference.deadwood_after(hand)
    if not rules["rediscard"]:
        after.pop(int(v["taken"]), None)
    least = min(after.values())
    best = max((card for card, left in after.items() if left == least), key=lambda card: (card % 13, card // 13))
    own_draws = -(-int(v["draws"]) // 2)  # the mover drew last
    threshold = knock if own_draws <= early_draws else late_knock
    return best + (KNOCK if least <= min(threshold, v["limit"]) else DISCARD)


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20", "rummyplus"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("greedy", (100, 1000, 0)),
        ("greedy:knock=5", (5, 1000, 0)),
        ("gin-only", (0, 1000, 0)),
        ("early-knock", (100, 5, 0)),
        ("greedy:knock=8,early_draws=3,late_knock=2", (8, 3, 2)),
    ],
)
def test_greedy_restated(name: str, options: tuple[int, int, int], rules: str) -> None:
    agent = agents.make(name)
    kinds = set()
    for steps in (0, 1, 2, 9, 14, 27, 40):
        t = played(rules, 12, steps, seed=steps)
        views, masks = observe(t), engine.legal(t)
        chosen = agent.act(views, masks, keys(12))
        assert chosen.tolist() == [restated(v, *options) for v in views]
        kinds |= {(int(phase), int(action) >= DISCARD) for phase, action in zip(views["phase"], chosen, strict=True)}
    assert len(kinds) >= 4


# ---------------------------------------------------------------------------------------------------- agents by name


def test_names() -> None:
    assert {"random", "greedy", "gin-only", "early-knock"} <= set(agents.names())
    for name in ALONE:
        agent = agents.make(name)
        assert isinstance(agent, agents.Agent)
        assert agent.name == name
        assert describe(name).endswith(".")
    assert agents.make("greedy:knock=5").name == "greedy:knock=5"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nobody", "'nobody' is no agent: expected .*greedy.*bundle"),
        ("no/such/folder", "is no agent"),
        ("greedy:knock", "'knock' is not of the form"),
        ("greedy:knock=2.5", "knock is 2.5; expected a whole number"),
        ("greedy:knock=1,knock=2", "not of the form name=number, once each"),
        ("greedy:knock=x", "'knock=x' is not of the form"),
        ("greedy:knock=-2", "knock is -2; expected a whole number, 0 or more"),
        ("greedy:speed=2", "agent 'greedy:speed=2'.*speed"),
        ("random:knock=2", "agent 'random:knock=2'"),
    ],
)
def test_make_errors(spec: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        agents.make(spec)


def test_preset_of_views_reaches_the_agent() -> None:
    """The restatement reads big gin and the re-discard from the view; make sure that the presets differ there."""
    assert {preset(name).rediscard for name in ("cardpuzzle", "plus20")} == {False, True}
    assert {preset(name).big_gin_bonus for name in ("rummyplus", "plus20")} == {31, None}
