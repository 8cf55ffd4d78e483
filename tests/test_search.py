"""Search: play-outs restated by the engine, races that are fair, and choices that are better for them."""

import numpy as np
import pytest

import agents
from agents.match import play_match
from agents.playouts import advised_play_out, near, play_out, throw
from agents.search import FIRST_LOOK, MAX_CANDIDATES, REACH, Race, SearchAgent, list_candidates, search, weigh
from agents.strategist import StrategistAgent
from gin_env import engine
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, MAX_MELDS, NUM_ACTIONS, PASS, TAKE
from gin_env.cards import NO_CARD, NUM_CARDS, from_mask, parse_cards, to_mask
from gin_env.rules import as_rules
from gin_env.tables import DECLARE, DRAW_ANY, DRAW_STOCK, OVER, THROW, WALL, WALL_THROW, Tables
from gin_env.testing import check_agent
from gin_env.view import VIEW_DTYPE, View, observe
from tests import reference
from tests.test_agents import keys, played
from tests.test_lookahead import left_without


def fresh(rules: str, size: int, steps: int, seed: int) -> Tables:
    """Tables in the midst of hands that are no matter of melds and layoffs."""
    tables = played(rules, size, steps, seed)
    return tables[tables["phase"] < DECLARE].copy()


# --------------------------------------------------------------------------------------------------------- play-outs


def test_near() -> None:
    assert from_mask(int(near(5))) == sorted(parse_cards("4S 5S 6S 7S 8S 6H 6D 6C"))
    assert from_mask(int(near(13))) == sorted(parse_cards("AH 2H 3H AS AD AC"))
    assert from_mask(int(near(51))) == sorted(parse_cards("KC QC JC KS KH KD"))


def test_throw_leaves_the_least_deadwood() -> None:
    tables = played("cardpuzzle", 400, 22)
    tables = tables[tables["phase"] == THROW]
    assert tables.size > 50
    for table in tables:
        hand, taken = int(table["hands"][table["mover"]]), int(table["taken"])
        least, card = throw(np.uint64(hand), taken)
        assert least == left_without([hand], taken)[0] == reference.deadwood(hand & ~(1 << card))
        assert hand >> card & 1
        assert card != taken
    # Of two kings the one without company.
    hand = to_mask(parse_cards("KS QS KH AH 2H 3H 5D 6D 7D 9C 9S"))
    assert throw(np.uint64(hand), NO_CARD) in ((38, 25), (38, 11))  # KH and QS have one card near them, KS two


def slow_action(table: Tables, draws: int) -> int:
    """What a player of the play-outs does, told by the reference."""
    row = table[0]
    phase, hand = row["phase"], int(row["hands"][row["mover"]])
    if phase == DRAW_STOCK:
        return DRAW
    if phase == WALL:
        return TAKE if engine.legal(table)[0, TAKE] else PASS
    if phase not in (THROW, WALL_THROW):
        top = int(row["pile"][row["pile_size"] - 1])
        melds = any(
            meld >> top & 1 and (hand | 1 << top) & meld == meld for meld in reference.MELDS if meld.bit_count() == 3
        )
        lower = left_without([hand | 1 << top], top)[0] < reference.deadwood(hand)
        return TAKE if melds and lower else DRAW if phase == DRAW_ANY else PASS
    legal = engine.legal(table)[0]
    least, card = throw(np.uint64(hand), int(NO_CARD if row["rules"]["rediscard"] else row["taken"]))
    if legal[BIG_GIN]:
        return BIG_GIN
    early = (int(row["draws"]) + 1) // 2 <= draws
    return KNOCK + card if legal[KNOCK + card] and (least == 0 or early or phase == WALL_THROW) else DISCARD + card


@pytest.mark.parametrize(
    "rules", ["cardpuzzle", "plus20", "luciano", "cardpuzzle:wall=knock", "cardpuzzle:tie=nothing"]
)
def test_play_out_restated(rules: str) -> None:
    endings = set()
    for steps in (0, 1, 2, 9, 20, 33):
        for row in fresh(rules, 12, steps, seed=steps):
            table = np.array([row])
            seat, draws = steps % 2, (5, (0, 100)[steps % 3 % 2])
            slow = table.copy()
            slow["rules"] = as_rules(rules).record()
            while slow["phase"][0] != OVER:
                mover = int(slow["mover"][0])
                engine.step(slow, [slow_action(slow, draws[mover != seat])])
            told = 0
            if slow["winner"][0] >= 0:
                told = int(slow["points"][0]) * (1 if slow["winner"][0] == seat else -1)
            assert play_out(table[0], seat, *draws) == told
            endings.add(int(slow["ending"][0]))
    assert len(endings) >= 4


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20", "luciano", "cardpuzzle:wall=knock", "eaai"])
def test_advised_play_out_restated(rules: str) -> None:
    player = agents.make("strategist")
    assert isinstance(player, StrategistAgent)
    scratch = (
        np.zeros(1, dtype=VIEW_DTYPE)[0],
        np.ones(NUM_ACTIONS, dtype=np.int8),
        np.zeros(NUM_CARDS, dtype=np.int64),
        np.zeros(MAX_MELDS, dtype=np.uint64),
    )
    endings = set()
    for steps in (0, 1, 2, 9, 20, 33):
        for row in fresh(rules, 12, steps, seed=steps):
            table, slow, seat = np.array([row]), np.array([row]), steps % 2
            while slow["phase"][0] != OVER:
                engine.step(slow, player.act(observe(slow), engine.legal(slow), keys(1)))
            told = 0
            if slow["winner"][0] >= 0:
                told = int(slow["points"][0]) * (1 if slow["winner"][0] == seat else -1)
            assert advised_play_out(table[0], seat, player.weights[0], *scratch) == told
            endings.add(int(slow["ending"][0]))
    assert len(endings) >= 3


# ------------------------------------------------------------------------------------------------------------- races


def decision(steps: int, seed: int = 0, phase: int = THROW) -> tuple[View, np.ndarray, int]:
    """A view, its mask, and what greedy plays there."""
    tables = fresh("cardpuzzle", 40, steps, seed)
    tables = tables[tables["phase"] == phase][:1].copy()
    views, masks = observe(tables), engine.legal(tables)
    return views, masks, int(agents.make("greedy").act(views, masks, keys(1))[0])


def test_candidates() -> None:
    out = np.empty(MAX_CANDIDATES, dtype=np.int64)
    kinds = set()
    for steps in (0, 1, 2, 8, 13, 30):
        tables = fresh("cardpuzzle", 30, steps, seed=steps)
        views, masks = observe(tables), engine.legal(tables)
        chosen = agents.make("random").act(views, masks, keys(tables.size))
        for row, v in enumerate(views):
            throws = out[: list_candidates(v, masks[row], chosen[row], True, out)].tolist()
            listed = out[: list_candidates(v, masks[row], chosen[row], False, out)].tolist()
            if v["phase"] == THROW and chosen[row] < KNOCK:
                assert throws == [action for action in listed if action < KNOCK]
            else:
                assert throws == [chosen[row]]
            legal = np.flatnonzero(masks[row]).tolist()
            assert listed[0] == chosen[row]
            assert len(set(listed)) == len(listed)
            assert set(listed) <= set(legal)
            if v["phase"] not in (THROW, WALL_THROW):
                assert set(listed) == set(legal)
                continue
            hand, taken = int(v["hand"]), int(v["taken"])
            least = left_without([hand], taken)[0]
            after = {card: reference.deadwood(hand & ~(1 << card)) for card in from_mask(hand) if card != taken}
            if chosen[row] == BIG_GIN or (chosen[row] >= KNOCK and least == 0):
                assert len(listed) == 1
                continue
            throws = {DISCARD + card for card, left in after.items() if left <= least + REACH}
            knocks = {KNOCK + card for card, left in after.items() if left == least and masks[row, KNOCK + card]}
            if len(throws | knocks | {int(chosen[row])}) <= MAX_CANDIDATES:
                assert set(listed) == throws | knocks | {int(chosen[row])}
            kinds.add((bool(knocks), len(listed) > 4))
    assert len(kinds) >= 3


def test_all_candidates_are_played_in_the_same_worlds() -> None:
    views, _, chosen = decision(14)
    race = Race(views[0], np.array([chosen] * 3), key=5)
    race.run(40)
    first, *others = race.standing()
    assert first.worlds == 40
    assert first.gain == first.error == 0
    assert [(one.points, one.gain) for one in others] == [(first.points, 0)] * 2


@pytest.mark.parametrize("advised", [0, 1, 2])
def test_a_race_goes_on_where_it_stopped(advised: int) -> None:
    views, masks, chosen = decision(14)
    legal = np.flatnonzero(masks[0])
    whole, parts = (Race(views[0], legal, key=5, advised=advised) for _ in range(2))
    whole.run(50)
    for worlds in (1, 20, 29):
        parts.run(worlds)
    assert parts.standing() == whole.standing()


def test_in_some_worlds_strategists_finish_the_hand() -> None:
    views, masks, _ = decision(14)
    legal = np.flatnonzero(masks[0])
    totals = []
    for advised in (0, 1, 2, 3):
        race = Race(views[0], legal, key=5, advised=advised)
        kept = [np.zeros(legal.size)]
        for _ in range(12):
            race.run(1)
            kept.append(race._total.copy())
        totals.append(np.diff(kept, axis=0))  # of each world
    plain, all_of_them, half, third = totals
    assert (plain != all_of_them).any()
    for mixed, advised in ((half, 2), (third, 3)):
        told = (np.arange(1, 13) % advised == 0)[:, None]
        assert (mixed == np.where(told, all_of_them, plain)).all()


def test_the_first_candidate_is_never_given_up() -> None:
    views, masks, chosen = decision(14)
    worst = min(weigh(views, masks, chosen, worlds=200), key=lambda one: one.points).action
    others = np.flatnonzero(masks[0])
    race = Race(views[0], np.concatenate([[worst], others[others != worst]]), key=5)
    race.run(64)
    while race.alive.sum() > 2:
        left = int(race.alive[1:].sum())
        race.halve()
        assert race.alive[0]
        assert race.alive[1:].sum() == (left + 1) // 2
    gain, error = race.gains()
    assert gain[0] == error[0] == 0
    assert race.alive[1:].sum() == 1
    assert race.give_up() == (gain[race.alive][1] <= 3 * error[race.alive][1])
    assert race.alive.sum() == 2  # what is left is better
    better = Race(views[0], race.candidates[::-1][:2].copy(), key=5)
    better.candidates[:] = race.candidates[np.flatnonzero(race.alive)][::-1]
    better.run(400)
    assert not better.give_up()
    assert better.alive.tolist() == [True, better.gains()[0][1] > 0]


def test_the_same_gain_in_few_worlds_proves_nothing() -> None:
    views, masks, chosen = decision(14)
    race = Race(views[0], np.flatnonzero(masks[0])[:2], key=5)
    gain, error = race.gains()
    assert np.isinf(error[1])
    race._count[:], race._gain[:], race._square[:] = 2, (0, 50), (0, 2 * 25.0**2)
    gain, error = race.gains()
    assert gain[1] == 25
    assert error[1] == pytest.approx(20 / 2**0.5)
    race._count[:], race._gain[:], race._square[:] = 1000, (0, 5000), (0, 1000 * (25 + 100))
    assert race.gains()[1][1] == pytest.approx(10 / 1000**0.5, rel=0.01)


def test_evidence_decides() -> None:
    views, masks, chosen = decision(14)
    found = weigh(views, masks, chosen, worlds=400, seed=3)
    worst, best = (pick(found, key=lambda one: one.points).action for pick in (min, max))
    for evidence, margin, wins in ((1.0, 0.0, best), (1e6, 0.0, worst), (1.0, 1.0, best), (1.0, 200.0, worst)):
        assert search(Race(views[0], np.array([worst, best]), 3, margin), worlds=60, evidence=evidence) == wins


def test_what_cannot_reach_the_margin_is_given_up() -> None:
    views, masks, chosen = decision(14)
    legal = np.flatnonzero(masks[0])
    near, far = (Race(views[0], legal, 3, margin) for margin in (0.0, 60.0))
    for race in (near, far):
        race.run(FIRST_LOOK)
        race.give_up()
    assert far.alive.sum() < near.alive.sum()
    assert (near.alive | ~far.alive).all()


# ------------------------------------------------------------------------------------------------------------ player


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20", "eaai"])
def test_keeps_to_the_protocol(rules: str) -> None:
    check_agent(agents.make("search:worlds=4,evidence=0:greedy"), rules, hands=6, tables=4)


def test_plays_by_the_clock() -> None:
    result = play_match(agents.make("search:ms=1:greedy"), agents.make("greedy"), deals=3)
    assert result.deals == 3


def test_without_evidence_it_is_its_base() -> None:
    base = agents.make("lookahead")
    result = play_match(agents.make("search:worlds=2,evidence=1000:lookahead"), base, deals=20)
    assert result.points_per_hand == 0


def test_is_better_than_its_base() -> None:
    result = play_match(agents.make("search:worlds=24:random"), agents.make("random"), deals=10)
    assert result.ci95[0] > 0
    weak = "greedy:knock=0,late_knock=0"
    result = play_match(agents.make(f"search:worlds=48:{weak}"), agents.make("rlcard-novice"), deals=10)
    assert result.ci95[0] > 0


def test_name() -> None:
    agent = agents.make("search:worlds=30,evidence=1.5:greedy:knock=3")
    assert isinstance(agent, SearchAgent)
    assert agent.name == "search:worlds=30,evidence=1.5:greedy:knock=3"
    assert (agent.worlds, agent.evidence, agent.ms, agent.base.name) == (30, 1.5, 0, "greedy:knock=3")
    assert agents.make("search:greedy").name == "search:greedy"
    assert agents.make("search:greedy").ms == 50
    for spec, evidence, margin, throws, advised in (
        ("search:greedy", 1, 0, False, 0),
        ("search:best", 1, 1, True, 2),
        ("search:throws=0,evidence=3,margin=0,advised=0:best", 3, 0, False, 0),
        ("search:throws=1,margin=2.5,advised=1:greedy", 1, 2.5, True, 1),
    ):
        agent = agents.make(spec)
        assert isinstance(agent, SearchAgent)
        assert (agent.evidence, agent.margin, agent.throws, agent.advised) == (evidence, margin, throws, advised)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("search", "has no base; expected search:BASE"),
        ("search:ms=20", "has no base"),
        ("search:ms=20:", "has no base"),
        ("search:nobody", "'nobody' is no agent"),
        ("search:ms=0:greedy", "ms is 0; expected more than 0"),
        ("search:ms=5,worlds=5:greedy", "expected ms or worlds, not both"),
        ("search:worlds=1:greedy", "worlds is 1; expected a whole number, 2 or more"),
        ("search:worlds=2.5:greedy", "worlds is 2.5; expected a whole number"),
        ("search:evidence=-1:greedy", "evidence is -1; expected 0 or more"),
        ("search:speed=9:greedy", "unknown option 'speed'; expected ms, worlds, evidence, margin, throws or advised"),
        ("search:advised=-1:greedy", "advised is -1; expected a whole number, 0 or more"),
        ("search:advised=0.5:greedy", "advised is 0.5; expected a whole number, 0 or more"),
        ("search:margin=-1:greedy", "margin is -1; expected 0 or more"),
        ("search:ms=x:greedy", "'ms=x' is not of the form"),
        ("search:search:greedy", "'search:greedy' cannot be searched from"),
    ],
)
def test_errors(spec: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        agents.make(spec)


# ------------------------------------------------------------------------------------------------------------- weigh


def test_weigh() -> None:
    views, masks, chosen = decision(14)
    found = weigh(views, masks, chosen, worlds=30, seed=2)
    assert [found[0].action, *sorted(one.action for one in found[1:])] == [one.action for one in found]
    assert {one.action for one in found} == set(np.flatnonzero(masks[0]))
    assert all(one.worlds == 30 for one in found)
    assert found[0].gain == found[0].error == 0
    for one in found:
        assert one.gain == pytest.approx(one.points - found[0].points)
    assert weigh(views, masks, chosen, worlds=30, seed=2) == found
    # Told against another action the same worlds say the same.
    other = weigh(views, masks, found[-1].action, worlds=30, seed=2)
    assert {one.action: one.points for one in other} == {one.action: one.points for one in found}
    with pytest.raises(ValueError, match="action 0 is not legal there; legal: "):
        weigh(views, masks, PASS, worlds=30)


def test_weigh_knows_nothing_of_layoffs() -> None:
    tables = played("eaai:knocker_melds=manual,layoffs=manual,defender_melds=manual", 300, 40)
    tables = tables[(tables["phase"] >= DECLARE) & (tables["phase"] < OVER)][:1].copy()
    assert tables.size
    views, masks = observe(tables), engine.legal(tables)
    legal = int(np.flatnonzero(masks[0])[0])
    (only,) = weigh(views, masks, legal, worlds=30)
    assert (only.action, only.worlds) == (legal, 0)
