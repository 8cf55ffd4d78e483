"""The replay: sum tree, n-step returns with signs, positions bit for bit, draws by priority."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agents
from gin_env import engine
from gin_env.rules import preset
from gin_env.view import VIEW_DTYPE, look, observe
from training.advantages import CUT_ENDED, CUT_NONE, CUT_TRUNCATED
from training.replay import Positions, Replay, SumTree, n_step_returns, reach

# --------------------------------------------------------------------------------------------------------- sum tree


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40).flatmap(
        lambda size: st.tuples(
            st.just(size), st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, 5)), min_size=1, max_size=60)
        )
    )
)
def test_sum_tree_against_a_list(case: tuple[int, list[tuple[int, int]]]) -> None:
    size, changes = case
    tree, plain = SumTree(size), [0] * size
    for row, number in changes:
        plain[row] = number
    rows, numbers = (np.array(column) for column in zip(*changes, strict=True))
    tree.set(rows, numbers)
    assert tree.priorities.tolist() == plain
    assert tree.total == sum(plain)
    # Each whole place and the half behind it lie in the part of one row.
    wanted = [row for row, number in enumerate(plain) for _ in range(number)]
    for offset in (0.0, 0.5):
        assert tree.find(np.arange(sum(plain)) + offset).tolist() == wanted


def test_sums_depend_on_the_leaves_alone() -> None:
    rng = np.random.default_rng(3)
    numbers = rng.random(100)
    once, often = SumTree(100), SumTree(100)
    once.set(np.arange(100), numbers)
    for _ in range(20):
        rows = rng.integers(0, 100, size=30)
        often.set(rows, rng.random(30) * 10.0 ** rng.integers(-9, 9, size=30))
    for row in rng.permutation(100):
        often.set(np.array([row]), numbers[[row]])
    assert once.total == often.total
    places = rng.random(500) * once.total
    assert (once.find(places) == often.find(places)).all()


def test_a_row_without_priority_is_never_found() -> None:
    numbers = np.array([0, 0.1, 0, 0.7, 0.2, 0, 0])
    tree = SumTree(7)
    tree.set(np.arange(7), numbers)
    places = np.array([0, 0.05, np.nextafter(tree.total, 0), tree.total, tree.total + 1])
    assert set(tree.find(places).tolist()) <= {1, 3, 4}
    assert tree.find(places[:1]).tolist() == [1]


# ---------------------------------------------------------------------------------------------------------- returns


def returns(
    rewards: list[float], seats: list[int], cuts: list[int], row: int, steps: int, discount: float = 1.0
) -> tuple[float, int, float]:
    """`n_step_returns` of one decision at one table."""
    got = n_step_returns(
        np.array([row]),
        np.array(rewards, np.float32),
        np.array(seats, np.int8),
        np.array(cuts, np.int8),
        1,
        steps,
        discount,
    )
    return float(got[0][0]), int(got[1][0]), float(got[2][0])


GOING = [CUT_NONE] * 6


def test_turns_by_hand() -> None:
    """Seats take turns of two decisions, as a draw and a throw; the other's reward counts with a minus."""
    rewards, seats = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0], [0, 0, 1, 1, 0, 0, 1, 1]
    going = [CUT_NONE] * 8
    # From a draw the next own decision is the throw, from there it is the draw after the other's turn.
    assert returns(rewards, seats, going, 0, 1) == (1, 1, 1)
    assert returns(rewards, seats, going, 1, 1) == (2 - 12, 4, 1)
    assert returns(rewards, seats, going, 0, 2) == (3 - 12, 4, 1)
    assert returns(rewards, seats, going, 0, 3) == (3 - 12 + 16, 5, 1)
    # The same from the other seat, of whose next decision round the ring is seat 0's part of it.
    assert returns(rewards, seats, going, 3, 1) == (8 - 48, 6, 1)
    assert returns(rewards, seats, going, 7, 1) == (128 - 3, 2, 1)
    # A decision later is worth half as much, whoever made it.
    assert returns(rewards, seats, going, 0, 2, 0.5) == (1 + 1 - 1 - 1, 4, 1 / 16)


def test_one_seat_alone_by_hand() -> None:
    """Against opponents all decisions are the learner's: no sign ever changes."""
    assert returns([1, -2, 4, 0, 0, 0], [0] * 6, GOING, 0, 3, 0.5) == (1 - 1 + 1, 3, 1 / 8)


def test_nothing_follows_the_end_of_a_hand() -> None:
    cuts = [CUT_NONE, CUT_ENDED, CUT_NONE, CUT_NONE, CUT_NONE, CUT_NONE]
    for steps in (1, 2, 5):
        total, _, factor = returns([0, 3, 100, 100, 100, 100], [0, 1, 0, 1, 0, 1], cuts, 0, steps)
        assert (total, factor) == (-3, 0)  # the other seat won 3 with its move
    # A dead hand is an end as well, and nothing was won.
    total, _, factor = returns([0, 0, 100, 100, 100, 100], [0, 1, 0, 1, 0, 1], cuts, 1, 4)
    assert (total, factor) == (0, 0)
    # The end is not reached where the own position before it stands for it.
    assert returns([1, 0, 3, 100, 100, 100], [0, 0, 1, 0, 1, 0], [CUT_NONE, *cuts[:5]], 0, 1) == (1, 1, 1)


def test_a_truncated_decision_stands_as_it_was() -> None:
    cuts = [CUT_NONE, CUT_NONE, CUT_TRUNCATED, CUT_NONE, CUT_NONE, CUT_NONE]
    # Its reward does not count and the next hand's position neither: its own value is taken, here the other seat's.
    for steps in (1, 2, 5):
        assert returns([0, 0, 50, 100, 100, 100], [0, 1, 1, 0, 0, 1], cuts, 0, steps, 0.5) == (0, 2, -1 / 4)
    assert returns([0, 0, 50, 100, 100, 100], [0, 1, 0, 0, 0, 1], cuts, 0, 3, 0.5) == (0, 2, 1 / 4)


def restated(
    rewards: np.ndarray, seats: np.ndarray, cuts: np.ndarray, tables: int, row: int, steps: int, discount: float
) -> tuple[float, int, float]:
    """The same as a sum over the chain of a table, which is made first."""
    slots = rewards.size // tables
    slot, table = divmod(row, tables)
    chain = [((slot + k) % slots) * tables + table for k in range(reach(steps) + 1)]
    own = [k for k in range(1, len(chain)) if seats[chain[k]] == seats[row]]
    goal = own[steps - 1] if len(own) >= steps else len(chain) - 1
    total = 0.0
    for k in range(goal + 1):
        sign = 1 if seats[chain[k]] == seats[row] else -1
        if k == goal or cuts[chain[k]] == CUT_TRUNCATED:
            return total, chain[k], sign * discount**k
        total += discount**k * sign * float(rewards[chain[k]])
        if cuts[chain[k]] == CUT_ENDED:
            return total, chain[k], 0.0
    raise AssertionError


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("discount", [1.0, 0.75])
def test_against_the_restatement(steps: int, discount: float) -> None:
    rng = np.random.default_rng(steps)
    slots, tables = 17, 13
    size = slots * tables
    rewards = rng.normal(size=size).astype(np.float32)
    seats = rng.integers(0, 2, size=size).astype(np.int8)
    cuts = rng.choice([CUT_NONE, CUT_ENDED, CUT_TRUNCATED], p=[0.8, 0.15, 0.05], size=size).astype(np.int8)
    rows = rng.permutation(size)
    got = n_step_returns(rows, rewards, seats, cuts, tables, steps, discount)
    # Who is called seat 0 does not matter.
    for one, other in zip(got, n_step_returns(rows, rewards, 1 - seats, cuts, tables, steps, discount), strict=True):
        assert (one == other).all()
    for k, row in enumerate(rows):
        total, follow, factor = restated(rewards, seats, cuts, tables, int(row), steps, discount)
        assert got[0][k] == pytest.approx(total, abs=1e-5)
        assert got[2][k] == pytest.approx(factor)
        if factor:
            assert got[1][k] == follow


# -------------------------------------------------------------------------------------------------------- positions


@pytest.mark.parametrize("rules", ["cardpuzzle", "plus20", "rummyplus", "luciano"])
def test_positions_come_back_to_the_bit(rules: str) -> None:
    tables = engine.new_tables(preset(rules), 40, seed=3, match=True)
    player = agents.make("greedy:knock=3")
    views = np.zeros(40, dtype=VIEW_DTYPE)
    kept = Positions(40 * 30)
    seen = []
    for move in range(30):
        seen.append(look(tables))
        kept.put(40 * move, observe(tables, out=views), seen[-1][1])
        engine.step(tables, player.act(views, seen[-1][1], engine.mix_keys(move, np.arange(40))), redeal=True)
    rows = np.random.default_rng(0).permutation(1200)[:300]
    observations, masks = kept.get(rows)
    assert observations.tobytes() == np.concatenate([one for one, _ in seen])[rows].tobytes()
    assert (masks == np.concatenate([mask for _, mask in seen])[rows]).all()


# ----------------------------------------------------------------------------------------------------------- replay

TABLES = 4


def add(replay: Replay, rng: np.random.Generator, cuts: np.ndarray | None = None) -> None:
    """Keeps one made-up decision at each table, whose action is its number."""
    number = replay.kept * TABLES + np.arange(TABLES)
    replay.add(
        np.zeros(TABLES, dtype=VIEW_DTYPE),
        np.ones((TABLES, 108), dtype=np.int8),
        number % 1000,
        rng.normal(size=TABLES).astype(np.float32),
        rng.integers(0, 2, size=TABLES).astype(np.int8),
        np.zeros(TABLES, dtype=np.int8) if cuts is None else cuts,
    )


def drawn(replay: Replay, count: int = 400) -> set[int]:
    return set(replay.draw(count, 1, 0.4).actions.tolist())


def test_a_decision_is_drawn_once_its_return_is_known_until_it_is_overwritten() -> None:
    replay = Replay(size=6 * TABLES + 1, tables=TABLES, steps=2)
    rng = np.random.default_rng(0)
    assert (replay.slots, replay.wait) == (6, 4)
    for number in range(20):
        if number <= 4:
            with pytest.raises(ValueError, match="no decision to draw yet"):
                replay.draw(5, 0, 0.4)
        else:
            # The last four at each table wait for theirs, and six of them fit.
            first = max(number - 6, 0)
            assert drawn(replay) == set(range(first * TABLES, (number - 4) * TABLES))
        assert replay.filled == min(number, 6) * TABLES
        add(replay, rng)


def test_a_truncated_decision_is_never_drawn() -> None:
    replay = Replay(size=8 * TABLES, tables=TABLES, steps=1)
    rng = np.random.default_rng(0)
    cuts = np.array([CUT_NONE, CUT_TRUNCATED, CUT_ENDED, CUT_NONE], dtype=np.int8)
    add(replay, rng, cuts)
    for _ in range(3):
        add(replay, rng)
    assert drawn(replay) == {0, 2, 3}


def test_draws_follow_the_priorities() -> None:
    replay = Replay(size=50 * TABLES, tables=TABLES, steps=1, exponent=0.5)
    rng = np.random.default_rng(0)
    for _ in range(50):
        add(replay, rng)
    rows = np.arange(47 * TABLES)
    errors = rng.normal(size=rows.size) * 3
    replay.set_errors(rows, errors)
    wanted = np.sqrt(np.abs(errors) + 1e-3)
    count = 4096
    got = np.bincount(replay.draw(count, 5, 0.4).rows, minlength=rows.size)
    # Each part of the sum is drawn from once, so a row's number is off by less than two.
    assert (np.abs(got - count * wanted / wanted.sum()) < 2).all()
    # A new decision comes in with the highest priority so far.
    add(replay, rng)
    assert replay.tree.priorities[47 * TABLES] == pytest.approx(np.sqrt(np.abs(errors).max() + 1e-3))


def test_weights_make_up_for_the_chances() -> None:
    replay = Replay(size=4 * TABLES, tables=TABLES, steps=1, exponent=1.0)
    rng = np.random.default_rng(0)
    for _ in range(4):
        add(replay, rng)
    replay.set_errors(np.arange(4), np.array([1, -2, 4, 8]) - np.array([1, -1, 1, 1]) * 1e-3)
    for importance in (0.0, 0.5, 1.0):
        draw = replay.draw(600, 2, importance)
        # As (1 / chance) ** importance, the rarest of those drawn being 1.
        assert draw.weights == pytest.approx(np.array([1, 2, 4, 8.0])[draw.rows] ** -importance)
        # In full, every decision weighs the same over all draws.
        if importance == 1:
            totals = [draw.weights[draw.rows == row].sum() for row in range(4)]
            assert max(totals) - min(totals) < 2
    assert replay.draw(600, 2, 1.0).rows.tolist() == draw.rows.tolist()
    assert any(replay.draw(2, seed, 1.0).rows.tolist() != replay.draw(2, 2, 1.0).rows.tolist() for seed in range(9))


@pytest.mark.parametrize("decisions", [5, 8, 17])
def test_what_is_put_back_goes_on_the_same(decisions: int) -> None:
    def new() -> Replay:
        return Replay(size=8 * TABLES, tables=TABLES, steps=2, discount=0.9)

    replay, rng = new(), np.random.default_rng(0)
    for _ in range(decisions):
        add(replay, rng)
    replay.set_errors(replay.draw(5, 0, 0.4).rows, rng.normal(size=5) * 9)
    again = new()
    again.load({name: array.copy() for name, array in replay.arrays().items()}, replay.kept, replay.highest)
    for number in range(12):
        one, other = (kept.draw(64, number, 0.5) for kept in (replay, again))
        assert all((a == b).all() for a, b in zip(one, other, strict=True))
        for kept in (replay, again):
            add(kept, np.random.default_rng(number))
            kept.set_errors(one.rows[:7], np.random.default_rng(number).normal(size=7))
    assert all((a == b).all() for a, b in zip(replay.arrays().values(), again.arrays().values(), strict=True))

    broken = {**replay.arrays(), "rewards": replay.rewards[:-1]}
    with pytest.raises(ValueError, match="the replay's rewards are float32 of shape"):
        new().load(broken, replay.kept, replay.highest)


def test_a_million_decisions_fit_into_half_a_gigabyte() -> None:
    replay = Replay(size=1 << 14, tables=TABLES, steps=1)
    assert replay.nbytes / (1 << 14) * 1e6 < 0.5e9


def test_a_replay_that_is_too_small() -> None:
    with pytest.raises(ValueError, match="28 decisions is too small for returns of 3 steps at 4 tables"):
        Replay(size=28, tables=4, steps=3)
