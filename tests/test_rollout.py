"""Rollouts: the sampler, and every decision and reward of the collector told again by plain replay."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

import agents
from agents.networks import CRITIC_SIZE, HIDDEN_SIZE
from agents.playouts import play_out
from gin_env import engine
from gin_env.actions import DISCARD, DRAW, KNOCK, NUM_ACTIONS, PASS, TAKE
from gin_env.cards import to_mask
from gin_env.melds import least_deadwood
from gin_env.rules import Rules, automatic, preset
from gin_env.tables import DEAD, ENDINGS, TRUNCATED, Tables
from gin_env.view import PLANE, SCALAR, look, observe
from training.advantages import CUT_ENDED, CUT_NONE, CUT_TRUNCATED, signed_gae
from training.chances import hand_points, hand_values, winning_chances
from training.opponents import BOTH, Opponents
from training.rollout import STYLES, Batch, Collector, hidden_cards, sample

RULES = preset("cardpuzzle")
# Many hands end before the dealer has decided anything: any seven cards may knock.
QUICK = Rules(name="quick", ranks=8, hand_size=7, knock_limit=100)
# As above, and a hand is cut off after its first draw.
CUT_OFF = Rules(name="cut off", ranks=5, suits=2, hand_size=3, stock_floor=1, knock_limit=100, draw_cap=1)
SHORT = Rules(name="short", draw_cap=11)
SCALE = 20.0


def keys(count: int, seed: int = 0) -> np.ndarray:
    return engine.mix_keys(seed, np.arange(count))


def lively(
    observations: np.ndarray, masks: np.ndarray, hidden: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A policy that ends its hands: low deadwood, takes what saves, knocks. Each row by itself, to the bit."""
    logits = np.zeros((observations.shape[0], NUM_ACTIONS), dtype=np.float32)
    after = observations[:, PLANE["deadwood_after"] : PLANE["deadwood_after"] + 52]
    logits[:, DISCARD:KNOCK] = np.float32(-4) * after
    logits[:, KNOCK : KNOCK + 52] = np.float32(-4) * after + np.float32(1)
    logits[:, TAKE] = np.float32(8) * observations[:, SCALAR["take_saves"]] - np.float32(0.5)
    return logits, np.float32(-0.25) * observations[:, SCALAR["deadwood"]] + np.float32(0.5)


def copy(batch: Batch) -> Batch:
    return Batch(*(array.copy() for array in batch))


def collected(collector: Collector, batches: int) -> Batch:
    """Returns some batches of `lively` in a row, as one."""
    parts = [copy(collector.collect(lively)) for _ in range(batches)]
    last = {name: getattr(parts[-1], name) for name in ("last_values", "last_seats")}
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in Batch._fields if name not in last
    }
    return Batch(**joined, **last)


# --------------------------------------------------------------------------------------------------------- sampler


def test_samples_follow_the_softmax() -> None:
    count = 40_000
    rng = np.random.default_rng(1)
    for legal in ([PASS, TAKE], [DRAW, TAKE], [5, 9, 23, 40, 54, 55, 107], list(range(0, 108, 3))):
        row = rng.normal(scale=1.5, size=NUM_ACTIONS).astype(np.float32)
        row[[action for action in range(NUM_ACTIONS) if action not in legal]] = 50  # never, likely as they look
        mask = np.zeros((count, NUM_ACTIONS), dtype=np.int8)
        mask[:, legal] = 1
        actions, log_probs = sample(np.tile(row, (count, 1)), mask, keys(count, seed=len(legal)))
        assert (actions.dtype, log_probs.dtype) == (np.int64, np.float32)
        wanted = np.exp(row[legal].astype(np.float64))
        wanted /= wanted.sum()
        counts = np.bincount(actions, minlength=NUM_ACTIONS)
        assert counts.sum() == counts[legal].sum() == count
        assert stats.chisquare(counts[legal], count * wanted).pvalue > 1e-4
        by_action = dict(zip(legal, np.log(wanted), strict=True))
        np.testing.assert_allclose(log_probs, [by_action[int(action)] for action in actions], atol=1e-5)


def test_log_probs_are_those_of_torch() -> None:
    pytest.importorskip("torch")

    import torch

    from agents.networks import masked_logits
    from training.losses import log_probabilities

    rng = np.random.default_rng(2)
    logits = rng.normal(scale=10, size=(3000, NUM_ACTIONS)).astype(np.float32)
    mask = (rng.random(logits.shape) < rng.random((3000, 1))).astype(np.int8)
    mask[:, 3] |= ~mask.any(axis=1)
    actions, log_probs = sample(logits, mask, keys(3000))
    assert mask[np.arange(3000), actions].all()
    wanted = log_probabilities(masked_logits(torch.from_numpy(logits), torch.from_numpy(mask))).numpy()
    np.testing.assert_allclose(log_probs, wanted[np.arange(3000), actions], atol=1e-5)


def test_t02_one_legal_action() -> None:
    mask = np.eye(NUM_ACTIONS, dtype=np.int8)
    logits = np.random.default_rng(0).normal(scale=100, size=mask.shape).astype(np.float32)
    actions, log_probs = sample(logits, mask, keys(NUM_ACTIONS))
    assert actions.tolist() == list(range(NUM_ACTIONS))
    assert log_probs.tolist() == [0] * NUM_ACTIONS


def test_t02_no_legal_action_is_refused() -> None:
    mask = np.ones((3, NUM_ACTIONS), dtype=np.int8)
    mask[1] = 0
    with pytest.raises(ValueError, match="row 1 has no legal action"):
        sample(np.zeros(mask.shape, dtype=np.float32), mask, keys(3))


@pytest.mark.parametrize("size", [1e4, 30_000.0, 1e30])
def test_far_apart_logits(size: float) -> None:
    mask = np.zeros((4, NUM_ACTIONS), dtype=np.int8)
    mask[:, :3] = 1
    logits = np.full(mask.shape, size, dtype=np.float32)
    logits[:, 0], logits[:, 1], logits[:, 2] = -size, 0, -size
    actions, log_probs = sample(logits, mask, keys(4))
    assert actions.tolist() == [1] * 4
    assert log_probs.tolist() == [0] * 4


def test_a_sample_depends_on_its_row_alone() -> None:
    logits = np.random.default_rng(0).normal(size=(50, NUM_ACTIONS)).astype(np.float32)
    mask = np.ones(logits.shape, dtype=np.int8)
    together = sample(logits, mask, keys(50))
    order = np.random.default_rng(1).permutation(50)
    for one, other in zip(sample(logits[order], mask[order], keys(50)[order]), together, strict=True):
        assert (one == other[order]).all()


# ------------------------------------------------------------------------------------------------------ opponents


@pytest.mark.parametrize(
    ("shares", "size", "numbers"),
    [
        ({}, 10, []),
        ({"greedy": 0.25, "random": 0.5}, 64, [16, 32]),
        ({"greedy": 1.0}, 7, [7]),
        ({"greedy": 0.1, "random": 0.2, "gin-only": 0.7}, 10, [1, 2, 7]),
        ({"greedy": 1 / 3, "random": 1 / 3, "gin-only": 1 / 3}, 100, [33, 34, 33]),
        ({"greedy": 0.001}, 100, [0]),
    ],
)
def test_shares_of_the_tables(shares: dict[str, float], size: int, numbers: list[int]) -> None:
    opponents = Opponents(shares, [size], seed=1)
    assert [agent and agent.name for agent in opponents.agents] == list(shares)
    assert [int((opponents.who == place).sum()) for place in range(len(shares))] == numbers
    assert ((opponents.who >= 0) == (opponents.learner_seat != BOTH)).all()


def test_opponents_play_their_own_tables_only() -> None:
    opponents = Opponents({"greedy": 0.5, "gin-only": 0.25}, [16], seed=1)
    tables = engine.new_tables(RULES, 16, seed=3)
    rows = opponents.waiting(tables)
    assert rows.tolist() == [i for i in range(12) if tables["mover"][i] == 1]
    actions = opponents.act(tables, rows)
    views, masks = observe(tables), engine.legal(tables)
    for i in range(16):
        name = "greedy" if i < 8 else "gin-only"
        wanted = agents.make(name).act(views[i : i + 1], masks[i : i + 1], keys(1))[0]
        assert actions[i] == (wanted if i in rows else engine.NO_ACTION)


def test_each_group_is_shared_out_alike() -> None:
    opponents = Opponents({"greedy": 0.5, "random": 0.25}, [8, 4], seed=1)
    assert opponents.who.tolist() == [0] * 4 + [1] * 2 + [-1] * 2 + [0] * 2 + [1, -1]


def test_past_states_take_turns() -> None:
    opponents = Opponents({"past": 1.0}, [12], seed=1, past_size=2)
    assert opponents.need_past
    for name in ("random", "gin-only", "greedy"):  # the first is forgotten
        opponents.past.append(agents.make(name))
    tables = engine.new_tables(RULES, 12, seed=4)
    for hand in range(2):
        tables["hand_number"] = hand
        rows = opponents.waiting(tables)
        actions = opponents.act(tables, rows)
        views, masks = observe(tables), engine.legal(tables)
        for i in rows.tolist():
            name = ("gin-only", "greedy")[(i + hand) % 2]
            assert actions[i] == agents.make(name).act(views[i : i + 1], masks[i : i + 1], keys(1))[0]


# ------------------------------------------------------------------------------------------------------ collector


class Told:
    """One decision of the learner, as the replay tells it."""

    def __init__(self, seat: int) -> None:
        self.seat = seat
        self.reward = 0.0
        self.cut = CUT_NONE


class Replay:
    """The collector's tables played again, one table and one move at a time, by the actions that it kept.

    Args:
        collector: Before its first batch.
        opponents: The name of the opponent at each table, or None for self-play; only such as use no random keys.
    """

    def __init__(self, collector: Collector, opponents: list[str | None]) -> None:
        self.tables: Tables = collector.tables.copy()
        self.opponents = [name and agents.make(name) for name in opponents]
        # Each hand that ended: (its ending, points by seat, decisions the learner had in it, who ended it).
        self.hands: list[tuple[int, np.ndarray, int, int]] = []
        self.in_hand = [0] * self.tables.size
        self.last: list[Told | None] = [None] * self.tables.size

    def move(self, i: int, action: int) -> None:
        table = self.tables[i : i + 1]
        mover = int(table["mover"][0])
        points, over = engine.step(table, np.array([action]), redeal=True)
        if not over[0]:
            return
        ending = int(table["ending"][0])
        self.hands.append((ending, points[0].copy(), self.in_hand[i], mover))
        told = self.last[i]
        if self.in_hand[i]:
            assert told is not None
            told.reward = points[0, told.seat] / SCALE
            told.cut = CUT_TRUNCATED if ending == TRUNCATED else CUT_ENDED
        self.in_hand[i] = 0

    def decisions(self, batch: Batch) -> Iterator[list[Told]]:
        """Yields each row of decisions once it is known what followed, and checks what the batch says of it."""
        size = self.tables.size
        for t in range(batch.actions.shape[0]):
            observations, masks = look(self.tables)
            assert (batch.observations[t] == observations).all()
            assert (batch.masks[t] == masks).all()
            assert masks[np.arange(size), batch.actions[t]].all()
            assert (batch.seats[t] == self.tables["mover"]).all()
            assert (batch.values[t] == lively(observations, masks)[1]).all()
            row = []
            for i in range(size):
                told = self.last[i] = Told(int(self.tables["mover"][i]))
                row.append(told)
                self.in_hand[i] += 1
                self.move(i, int(batch.actions[t, i]))
                opponent = self.opponents[i]
                while opponent is not None and self.tables["mover"][i] == 1:
                    table = self.tables[i : i + 1]
                    self.move(i, int(opponent.act(observe(table), engine.legal(table), keys(1))[0]))
            yield row


def check(collector: Collector, opponents: list[str | None], batches: int) -> tuple[Replay, Batch]:
    """Replays what a new collector gathers and compares everything; returns the replay and the batches as one."""
    replay = Replay(collector, opponents)
    batch = collected(collector, batches)
    for t, row in enumerate(replay.decisions(batch)):
        assert batch.rewards[t].tolist() == [np.float32(told.reward) for told in row]
        assert batch.cuts[t].tolist() == [told.cut for told in row]
    assert (replay.tables == collector.tables).all()
    assert (batch.last_values == lively(*look(replay.tables))[1]).all()
    assert (batch.last_seats == replay.tables["mover"]).all()
    return replay, batch


@pytest.mark.parametrize("rules", [RULES, QUICK, SHORT, preset("plus20")], ids=lambda rules: rules.name)
def test_self_play_replayed(rules: Rules) -> None:
    collector = Collector(rules, 24, 20, {}, seed=5, points_scale=SCALE)
    replay, batch = check(collector, [None] * 24, batches=4)
    assert (collector.opponents.learner_seat == BOTH).all()
    assert {0, 1} == set(np.unique(batch.seats))
    # Each hand is paid once, to the decision that ended it.
    ended = [hand for hand in replay.hands if hand[0] != TRUNCATED]
    assert (batch.cuts == CUT_ENDED).sum() == len(ended) > 10
    assert (batch.cuts == CUT_TRUNCATED).sum() == len(replay.hands) - len(ended)
    assert bool(len(ended) < len(replay.hands)) is (rules is SHORT)
    paid = sum(points[mover] for _, points, _, mover in replay.hands) / SCALE
    assert batch.rewards.sum() == pytest.approx(paid, rel=1e-5)


@pytest.mark.parametrize("rules", [RULES, QUICK, SHORT], ids=lambda rules: rules.name)
def test_play_against_opponents_replayed(rules: Rules) -> None:
    shares = {"greedy": 0.5, "gin-only": 0.25}
    collector = Collector(rules, 24, 20, shares, seed=6, points_scale=SCALE)
    seats = collector.opponents.learner_seat
    # Hands that the opponents ended before the learner's first decision are over already.
    replay, batch = check(collector, ["greedy"] * 12 + ["gin-only"] * 6 + [None] * 6, batches=4)
    assert (batch.seats[:, :18] == 0).all()
    assert (seats[:18] == 0).all()
    assert (seats[18:] == BOTH).all()
    assert set(np.unique(batch.seats[:, 18:])) == {0, 1}

    # The learner's seat is paid whoever ended the hand, for what it decided in.
    owed = [hand for hand in replay.hands if hand[2]]
    assert (batch.cuts != CUT_NONE).sum() == len(owed)
    lost_to_opponent = batch.rewards[:, :18] < 0
    assert lost_to_opponent.sum() > 5
    assert (batch.cuts[:, :18][lost_to_opponent] == CUT_ENDED).all()


def test_a_hand_without_a_decision_is_owed_to_nothing() -> None:
    collector = Collector(QUICK, 32, 25, {"greedy": 1.0}, seed=7, points_scale=SCALE)
    # Some were played before the first decision of all.
    assert collector.tables["hand_number"].max() > 0
    replay, batch = check(collector, ["greedy"] * 32, batches=2)
    free = [points for _, points, decided, _ in replay.hands if not decided]
    assert len(free) > 20
    assert sum(abs(points).sum() for points in free) > 0
    paid = sum(points[0] for _, points, decided, _ in replay.hands if decided) / SCALE
    assert batch.rewards.sum() == pytest.approx(paid, rel=1e-5)


def test_a_hand_without_a_decision_leaves_the_cut_of_the_hand_before() -> None:
    """A hand ends and the next one is cut off before the learner decides: its decision still was the end of a hand."""
    collector = Collector(CUT_OFF, 64, 20, {"greedy:knock=0": 1.0}, seed=1, points_scale=SCALE)
    replay, batch = check(collector, ["greedy:knock=0"] * 64, batches=2)
    assert any(ending == TRUNCATED and not decided for ending, _, decided, _ in replay.hands)
    assert (batch.cuts == CUT_ENDED).sum() > 20
    assert (batch.rewards[batch.cuts != CUT_ENDED] == 0).all()


def test_returns_of_finished_hands_are_the_points_of_both_seats() -> None:
    """With decay 1 every decision of a finished hand returns what its seat won, and the seats' returns are opposite."""
    collector = Collector(RULES, 32, 64, {}, seed=8, points_scale=SCALE)
    batch = collected(collector, 3)
    advantages = signed_gae(
        batch.rewards, batch.values, batch.seats, batch.cuts, batch.last_values, batch.last_seats, decay=1.0
    )
    returns = batch.values + advantages
    hands = both = 0
    for i in range(32):
        ends = np.flatnonzero(batch.cuts[:, i] == CUT_ENDED)
        for first, end in zip([0, *ends[:-1] + 1], ends, strict=True):
            signs = np.where(batch.seats[first : end + 1, i] == batch.seats[end, i], 1, -1)
            won = batch.rewards[end, i] * signs
            np.testing.assert_allclose(returns[first : end + 1, i], won, atol=1e-5)
            hands += 1
            both += len(set(signs)) == 2
    assert hands >= both > 50


# ------------------------------------------------------------------------------------- what a batch depends on


def same(one: Batch, other: Batch) -> bool:
    return all((a == b).all() for a, b in zip(one, other, strict=True))


def test_the_seed_decides_the_batch() -> None:
    shares = {"random": 0.5}
    one, again, other = (
        collected(Collector(RULES, 16, 24, shares, seed=seed, points_scale=SCALE), 2) for seed in (3, 3, 4)
    )
    assert same(one, again)
    assert not same(one, other)
    # Not the deals alone differ: the first decisions come from other keys, too.
    assert (one.observations[0] != other.observations[0]).any()


def test_a_batch_does_not_depend_on_the_horizon() -> None:
    shares = {"random": 0.5}
    whole, parts = (
        collected(Collector(RULES, 12, horizon, shares, seed=3, points_scale=SCALE), 48 // horizon)
        for horizon in (48, 8)
    )
    assert same(whole, parts)


def test_a_table_does_not_depend_on_the_others() -> None:
    """Nor on who plays there; but the keys of random players are counted for all tables."""
    few = collected(Collector(RULES, 8, 48, {"greedy": 0.5}, seed=3, points_scale=SCALE), 1)
    more = collected(Collector(RULES, 16, 48, {"greedy": 0.25, "gin-only": 0.5}, seed=3, points_scale=SCALE), 1)
    for name in ("observations", "actions", "log_probs", "rewards", "cuts", "seats"):
        assert (getattr(few, name)[:, :4] == getattr(more, name)[:, :4]).all(), name
    alone = collected(Collector(RULES, 16, 48, {}, seed=3, points_scale=SCALE), 1)
    for name in ("observations", "actions", "log_probs", "rewards", "cuts", "seats"):
        assert (getattr(few, name)[:, 4:] == getattr(alone, name)[:, 4:8]).all(), name


def test_the_scale_divides_the_rewards_and_changes_nothing_else() -> None:
    points, units = (collected(Collector(RULES, 8, 64, {}, seed=3, points_scale=scale), 1) for scale in (1.0, 8.0))
    assert (points.rewards == 8 * units.rewards).all()
    assert (points.rewards != 0).any()
    assert (points.actions == units.actions).all()


def test_the_next_batch_overwrites_the_arrays() -> None:
    collector = Collector(RULES, 4, 5, {}, seed=3, points_scale=SCALE)
    first = collector.collect(lively)
    kept = copy(first)
    second = collector.collect(lively)
    assert all(one is other for one, other in zip(first, second, strict=True))
    assert not same(kept, second)


# --------------------------------------------------------------------------------------------------- whole matches


def test_the_chance_to_win_a_match() -> None:
    # A hand brings 1 or 3 points, to 4: from 3-3 the next hand decides, from 3-2 a half and a half of what follows.
    chances = winning_chances(4, np.array([0, 0.5, 0, 0.5]))
    assert chances[3, 3] == 0.5
    assert chances[3, 2] == 0.5 + 0.5 * (0.5 * chances[3, 3] + 0.5 * 0)
    assert chances[0, 0] == 0.5
    np.testing.assert_allclose(chances + chances.T, 1)
    assert (np.diff(chances[:4, 0]) > 0).all()
    assert chances[4, 1] == 1
    assert chances[1, 4] == 0


def test_points_of_hands() -> None:
    shares = hand_points(preset("eaai"), deals=200)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == 0
    assert 15 < (shares * np.arange(shares.size)).sum() < 40
    assert (shares == hand_points(preset("eaai"), deals=200)).all()


def test_matches_are_paid_by_the_chance_to_win() -> None:
    rules = automatic(preset("eaai"))
    collector = Collector(RULES, 16, 40, {}, seed=3, points_scale=SCALE, matches=0.5, match_rules=rules)
    assert collector.first_match == 8
    tables = collector.tables
    assert (tables["to_target"] == ([False] * 8 + [True] * 8)).all()
    chances = winning_chances(100, hand_points(rules))
    totals = np.zeros(16)
    for _ in range(12):
        batch = collector.collect(lively)
        for t, i in zip(*np.nonzero(batch.cuts == CUT_ENDED), strict=True):
            sign = 1 if batch.seats[t, i] == 0 else -1
            totals[i] += sign * batch.rewards[t, i] * SCALE / collector.chance_scale
    # From the first hand on the changes add up to the chance at the score now, one more or less for each match won.
    for i in range(8, 16):
        now = chances[tuple(np.minimum(tables["scores"][i], 100))] - 0.5
        matches = totals[i] - now
        # Each match that ended brought half a win or half a loss.
        assert abs(2 * matches - round(2 * matches)) < 1e-4
    assert (tables["hand_number"][8:] > 3).all()
    # A point of the first hand is worth about as much there as in a single hand.
    first = hand_values(chances, np.zeros((1, 2), dtype=int), np.array([[25, -25]]), np.array([0]))
    assert first[0, 0] * collector.chance_scale == pytest.approx(25, rel=0.15)
    assert first.sum() == pytest.approx(0)


def test_hidden_cards() -> None:
    collector = Collector(RULES, 8, 10, {}, seed=3, points_scale=SCALE, hidden=HIDDEN_SIZE)
    tables = collector.tables.copy()
    batch = collector.collect(lively)
    assert batch.hidden.shape == (10, 8, 104)
    for i in range(8):
        other = 1 - int(tables["mover"][i])
        assert to_mask(np.flatnonzero(batch.hidden[0, i, :52])) == int(tables["hands"][i, other])
        stock = tables["deck"][i, int(tables["stock_at"][i]) :]
        assert np.argsort(-batch.hidden[0, i, 52:], kind="stable")[: stock.size].tolist() == stock.tolist()
        assert (batch.hidden[0, i, 52:] > 0).sum() == stock.size


def test_what_a_critic_is_told() -> None:
    collector = Collector(RULES, 8, 10, {}, seed=3, points_scale=SCALE, hidden=CRITIC_SIZE)
    tables = collector.tables.copy()
    before = tables.tobytes()
    told = np.empty((8, CRITIC_SIZE), dtype=np.float32)
    hidden_cards(tables, told)
    assert tables.tobytes() == before
    cards = np.empty((8, HIDDEN_SIZE), dtype=np.float32)
    hidden_cards(tables, cards)
    assert (told[:, :HIDDEN_SIZE] == cards).all()
    for i in range(8):
        seat = int(tables["mover"][i])
        ends = [play_out(tables.copy()[i], seat, own, other) / 20 for own, other in STYLES]
        np.testing.assert_allclose(told[i, HIDDEN_SIZE:-1], ends)
        assert told[i, -1] * 10 == pytest.approx(least_deadwood(tables["hands"][i, 1 - seat]))
    assert len(np.unique(told[:, HIDDEN_SIZE:-1])) > 8
    batch = collector.collect(lively)
    assert batch.hidden.shape == (10, 8, CRITIC_SIZE)
    assert (batch.hidden[0] == told).all()


def test_a_critic_knows_the_luck_of_a_match_too() -> None:
    options = {"matches": 1.0, "match_rules": automatic(preset("eaai"))}
    collector = Collector(RULES, 8, 40, {}, seed=3, points_scale=SCALE, hidden=CRITIC_SIZE, **options)
    told = collector.collect(lively).hidden[..., HIDDEN_SIZE:]
    assert np.isfinite(told).all()
    assert (told[..., 0] != told[..., 2]).mean() > 0.2


# ------------------------------------------------------------------------------------------------------ statistics


def test_statistics() -> None:
    collector = Collector(RULES, 24, 30, {"greedy": 0.5}, seed=9, points_scale=SCALE)
    collector.statistics()
    replay, _ = check(collector, ["greedy"] * 12 + [None] * 12, batches=4)
    got = collector.statistics()
    number = len(replay.hands)
    counts = Counter(ENDINGS[ending] for ending, *_ in replay.hands)
    assert got["hands"] == number > 50
    for ending in ENDINGS[1:]:
        assert got.pop(f"{ending.replace('-', '_')}_rate") == pytest.approx(counts[ending] / number)
    assert counts["knock"] > 5
    assert got.pop("points") == pytest.approx(np.mean([points.max() for _, points, *_ in replay.hands]))
    assert 2 < got.pop("turns") < 32
    assert set(got) == {"hands"}
    # Told once.
    assert collector.statistics() == {}


def test_statistics_are_described() -> None:
    pytest.importorskip("torch")

    from training.metrics import GLOSSARY

    collector = Collector(QUICK, 24, 30, {}, seed=9, points_scale=SCALE)
    collector.collect(lively)
    assert {f"game/{name}" for name in collector.statistics()} <= set(GLOSSARY)


def test_dead_hands_win_nothing() -> None:
    """Players who neither knock nor care run out of stock."""

    def idle(observations: np.ndarray, masks: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.zeros((observations.shape[0], NUM_ACTIONS), dtype=np.float32)
        logits[:, KNOCK:] = -40
        return logits, np.zeros(observations.shape[0], dtype=np.float32)

    collector = Collector(RULES, 16, 200, {}, seed=2, points_scale=SCALE)
    batch = collector.collect(idle)
    assert (collector.tables["ending"] == DEAD).all()
    assert (batch.cuts == CUT_ENDED).sum() >= 16
    assert not batch.rewards.any()
    got = collector.statistics()
    assert (got["dead_rate"], got["points"]) == (1, 0)
