"""Advantages, signed and by seat: by hand, against a slow restatement, and across the ends of hands."""

import numpy as np
import pytest

from training.advantages import CUT_ENDED, CUT_NONE, CUT_TRUNCATED, estimates, seat_gae, signed_gae


def gae(
    rewards: list[float],
    values: list[float],
    seats: list[int],
    cuts: list[int],
    last: tuple[float, int],
    decay: float,
) -> list[float]:
    """`signed_gae` along one table."""
    column = [np.array(row)[:, None] for row in (rewards, values, seats, cuts)]
    return signed_gae(
        column[0].astype(np.float32),
        column[1].astype(np.float32),
        column[2].astype(np.int8),
        column[3].astype(np.int8),
        np.array([last[0]], dtype=np.float32),
        np.array([last[1]], dtype=np.int8),
        decay,
    )[:, 0].tolist()


def restated(
    rewards: np.ndarray,
    values: np.ndarray,
    seats: np.ndarray,
    cuts: np.ndarray,
    last_values: np.ndarray,
    last_seats: np.ndarray,
    decay: float,
) -> np.ndarray:
    """The same as a sum over the decisions that follow, each seen from the first one's seat."""
    horizon, size = rewards.shape
    out = np.zeros((horizon, size))
    for i in range(size):
        following = [float(value) for value in values[1:, i]] + [float(last_values[i])]
        whose = [int(seat) for seat in seats[1:, i]] + [int(last_seats[i])]
        for start in range(horizon):
            for t in range(start, horizon):
                if cuts[t, i] == CUT_TRUNCATED:
                    break
                side = 1 if seats[t, i] == seats[start, i] else -1
                error = float(rewards[t, i]) - float(values[t, i])
                if cuts[t, i] == CUT_NONE:
                    error += following[t] if whose[t] == seats[t, i] else -following[t]
                out[start, i] += decay ** (t - start) * side * error
                if cuts[t, i] == CUT_ENDED:
                    break
    return out


def test_t10_by_hand_without_discount() -> None:
    got = gae([0, 1, 0, -1], [0.5, 0.4, 0.3, 0.2], [0] * 4, [CUT_NONE, CUT_ENDED] * 2, (9.0, 0), 0.5)
    # The last of each hand: 1 - 0.4 and -1 - 0.2. Before it: 0.4 - 0.5 + 0.6 / 2 and 0.2 - 0.3 - 1.2 / 2.
    assert got == pytest.approx([0.2, 0.6, -0.7, -1.2])


def test_what_comes_after_the_end_of_a_hand_changes_nothing() -> None:
    rng = np.random.default_rng(8)
    seats = [0, 1, 1, 0, 1, 0]
    cuts = [CUT_NONE, CUT_NONE, CUT_ENDED, CUT_NONE, CUT_NONE, CUT_NONE]
    heads = set()
    for _ in range(10):
        tail = rng.normal(size=(2, 3)).tolist()
        got = gae([0, 0, 2.5, *tail[0]], [0.5, 1, -0.25, *tail[1]], seats, cuts, (rng.normal(), 0), 0.9)
        heads.add(tuple(got[:3]))
    assert len(heads) == 1


def test_uneven_turns_by_hand() -> None:
    """Seat 1 moves once, seat 0 twice, seat 1 wins 3 with its next move."""
    got = gae([0, 0, 0, 3], [1.0, 2.0, 0.5, -1.0], [1, 0, 0, 1], [CUT_NONE] * 3 + [CUT_ENDED], (7.0, 0), 0.5)
    last = 3 - -1.0  # its value was -1
    third = 1.0 - 0.5 - 0.5 * last  # the other seat moves next: its value and advantage with a minus
    second = 0.5 - 2.0 + 0.5 * third  # the same seat moves again
    first = -2.0 - 1.0 - 0.5 * second
    assert [first, second, third, last] == [-1.875, -2.25, -1.5, 4.0]
    assert got == [first, second, third, last]


def test_the_decision_after_the_last_has_a_seat() -> None:
    """Seat 0 decided twice with values 1 and -1; whoever is next is worth 2 to itself."""
    for seat, second in ((0, 2.0 + 1.0), (1, -2.0 + 1.0)):
        got = gae([0, 0], [1.0, -1.0], [0, 0], [CUT_NONE, CUT_NONE], (2.0, seat), 0.5)
        assert got == [-1.0 - 1.0 + 0.5 * second, second]


def test_a_truncated_hand_stands_as_it_was() -> None:
    cuts = [CUT_NONE, CUT_TRUNCATED, CUT_NONE]
    got = gae([0, 0, 0], [1.0, 0.5, 0.25], [0, 1, 0], cuts, (0.75, 0), 0.5)
    # The truncated decision: no advantage, and what follows belongs to another hand. The one before it bootstraps.
    assert got == [-0.5 - 1.0, 0, 0.75 - 0.25]
    # Not even a reward counts there.
    assert gae([0, 9, 0], [1.0, 0.5, 0.25], [0, 1, 0], cuts, (0.75, 0), 0.5) == got


def random_decisions(rng: np.random.Generator, horizon: int, size: int) -> tuple[np.ndarray, ...]:
    """Random arguments of `signed_gae` without decay."""
    cuts = rng.choice([CUT_NONE, CUT_ENDED, CUT_TRUNCATED], p=[0.75, 0.2, 0.05], size=(horizon, size))
    return (
        rng.normal(size=(horizon, size)).astype(np.float32),
        rng.normal(size=(horizon, size)).astype(np.float32),
        rng.integers(0, 2, size=(horizon, size)).astype(np.int8),
        cuts.astype(np.int8),
        rng.normal(size=size).astype(np.float32),
        rng.integers(0, 2, size=size).astype(np.int8),
    )


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (23, 1), (30, 17)])
def test_against_the_restatement(shape: tuple[int, int], decay: float) -> None:
    decisions = random_decisions(np.random.default_rng(shape), *shape)
    got = signed_gae(*decisions, decay)
    assert got.dtype == np.float32
    assert got.shape == shape
    np.testing.assert_allclose(got, restated(*decisions, decay), atol=2e-5)


def test_returns_of_a_finished_hand_are_zero_sum() -> None:
    """With decay 1 a decision's advantage and value add up to what its seat won in the end."""
    rng = np.random.default_rng(4)
    horizon, size = 24, 40
    _, values, seats, cuts, last_values, last_seats = random_decisions(rng, horizon, size)
    points = rng.integers(-60, 60, size=(horizon, size)).astype(np.float32)
    ended = cuts == CUT_ENDED
    rewards = np.where(ended, points, 0).astype(np.float32)
    returns = signed_gae(rewards, values, seats, cuts, last_values, last_seats, 1.0) + values
    checked = 0
    for i in range(size):
        end = -1
        for t in reversed(range(horizon)):
            if cuts[t, i] != CUT_NONE:
                end = t if ended[t, i] else -1
            if end >= 0:
                sign = 1 if seats[t, i] == seats[end, i] else -1
                assert returns[t, i] == pytest.approx(sign * points[end, i], abs=1e-4)
                checked += 1
    assert checked > horizon * size / 4


def test_swapping_the_seats_changes_nothing() -> None:
    """Everything is from the side of the seat that decides, so that who is called 0 cannot matter."""
    rewards, values, seats, cuts, last_values, last_seats = random_decisions(np.random.default_rng(2), 15, 6)
    one = signed_gae(rewards, values, seats, cuts, last_values, last_seats, 0.9)
    other = signed_gae(rewards, values, 1 - seats, cuts, last_values, 1 - last_seats, 0.9)
    assert (one == other).all()


def test_shapes_that_do_not_fit() -> None:
    rewards, values, seats, cuts, last_values, last_seats = random_decisions(np.random.default_rng(1), 4, 3)
    with pytest.raises(ValueError, match=r"must share one shape \(T, N\)"):
        signed_gae(rewards, values[:3], seats, cuts, last_values, last_seats, 0.9)
    with pytest.raises(ValueError, match=r"must share one shape \(T, N\)"):
        signed_gae(rewards[0], values[0], seats[0], cuts[0], last_values, last_seats, 0.9)
    with pytest.raises(ValueError, match=r"must have shape \(3,\)"):
        signed_gae(rewards, values, seats, cuts, last_values[:2], last_seats, 0.9)
    with pytest.raises(ValueError, match=r"must have shape \(3,\)"):
        signed_gae(rewards, values, seats, cuts, last_values, last_seats[:, None], 0.9)


def test_t10_nothing_leaks_over_the_end_of_a_hand() -> None:
    rewards, values = ([[number] for number in row] for row in ([0, 1.0, 0, -1.0], [0.5, 0.4, 0.3, 0.2]))
    cuts = [[CUT_NONE], [CUT_ENDED], [CUT_NONE], [CUT_ENDED]]
    advantages = signed_gae(
        np.array(rewards, np.float32),
        np.array(values, np.float32),
        np.zeros((4, 1), np.int8),
        np.array(cuts, np.int8),
        np.full(1, 123, np.float32),
        np.ones(1, np.int8),
        0.95,
        0.99,
    )
    assert advantages[:, 0] == pytest.approx([0.4603, 0.6, -1.2306, -1.2], abs=1e-6)


def test_a_discount_keeps_the_sign_of_the_seat() -> None:
    # The other seat's next value of 2 is worth -1 to this one at half price, and so is its advantage.
    advantages = signed_gae(
        np.array([[0.0], [3.0]], np.float32),
        np.array([[0.0], [2.0]], np.float32),
        np.array([[0], [1]], np.int8),
        np.array([[CUT_NONE], [CUT_ENDED]], np.int8),
        np.zeros(1, np.float32),
        np.zeros(1, np.int8),
        1.0,
        0.5,
    )
    assert advantages[:, 0].tolist() == [-1.5, 1.0]


# ---------------------------------------------------------------------------------------------------------- by seat


def restated_by_seat(
    won: np.ndarray,
    values: np.ndarray,
    seats: np.ndarray,
    cuts: np.ndarray,
    last_values: np.ndarray,
    last_seats: np.ndarray,
    decay: float,
    discount: float,
) -> np.ndarray:
    """`seat_gae` told forward: from each decision to the next of the same seat, and on to the one after it."""
    horizon, size, _ = won.shape
    out = np.zeros((horizon, size))
    for i in range(size):
        for start in range(horizon):
            weight, here, total = 1.0, start, 0.0
            while here < horizon:
                seat, reward, there, cut = int(seats[here, i]), 0.0, here, CUT_NONE
                while there < horizon:
                    reward += float(won[there, i, seat])
                    cut = int(cuts[there, i])
                    there += 1
                    if cut != CUT_NONE or there == horizon or seats[there, i] == seat:
                        break
                if cut == CUT_TRUNCATED or (cut == CUT_NONE and there == horizon and last_seats[i] != seat):
                    break
                error = reward - float(values[here, i])
                if cut == CUT_NONE:
                    error += discount * float(last_values[i] if there == horizon else values[there, i])
                total += weight * error
                if cut == CUT_ENDED:
                    break
                weight *= discount * decay
                here = there
            out[start, i] = total
    return out


def test_by_seat_by_hand() -> None:
    """Three seats; the hand ends with the fourth decision, and seat 1 decides after the last of the next."""
    won = np.zeros((6, 1, 3), dtype=np.float32)
    won[3, 0] = 6, -4, -2
    advantages = seat_gae(
        won,
        np.array([[1.0], [2.0], [0.5], [3.0], [1.0], [8.0]], np.float32),
        np.array([[0], [1], [2], [0], [1], [2]], np.int8),
        np.array([[CUT_NONE]] * 3 + [[CUT_ENDED]] + [[CUT_NONE]] * 2, np.int8),
        np.array([5.0], np.float32),
        np.array([1], np.int8),
        0.5,
    )
    # Each seat is paid what it won, whoever ended the hand; seat 0 goes on to its own second decision: 3 - 1 + 3 / 2.
    # In the next hand seat 1 goes on to a value of 5, and of seat 2 nothing is known.
    assert advantages[:, 0].tolist() == [3.5, -6.0, -2.5, 3.0, 4.0, 0.0]


@pytest.mark.parametrize("num_seats", [2, 3, 4])
@pytest.mark.parametrize(("decay", "discount"), [(0.0, 1.0), (0.9, 1.0), (1.0, 0.8)])
def test_by_seat_against_the_restatement(num_seats: int, decay: float, discount: float) -> None:
    rng = np.random.default_rng(num_seats)
    shape = 40, 12
    cuts = rng.choice([CUT_NONE, CUT_ENDED, CUT_TRUNCATED], p=[0.85, 0.1, 0.05], size=shape).astype(np.int8)
    won = np.where((cuts == CUT_ENDED)[..., None], rng.normal(size=(*shape, num_seats)), 0).astype(np.float32)
    arrays = (
        won,
        rng.normal(size=shape).astype(np.float32),
        rng.integers(num_seats, size=shape).astype(np.int8),
        cuts,
        rng.normal(size=shape[1]).astype(np.float32),
        rng.integers(num_seats, size=shape[1]).astype(np.int8),
    )
    got = seat_gae(*arrays, decay, discount)
    assert got == pytest.approx(restated_by_seat(*arrays, decay, discount), abs=1e-4)
    assert (got != 0).mean() > 0.7


def test_two_seats_are_signed_and_more_are_not() -> None:
    rewards, values, seats, cuts, last_values, last_seats = random_decisions(np.random.default_rng(5), 20, 4)
    won = np.zeros((*rewards.shape, 2), dtype=np.float32)
    np.put_along_axis(won, seats[..., None].astype(np.int64), rewards[..., None], axis=2)
    both = estimates(rewards, won, values, seats, cuts, last_values, last_seats, 0.9, 0.95)
    assert (both == signed_gae(rewards, values, seats, cuts, last_values, last_seats, 0.9, 0.95)).all()
    four = np.concatenate([won, np.zeros_like(won)], axis=2)
    apart = estimates(rewards, four, values, seats, cuts, last_values, last_seats, 0.9, 0.95)
    assert (apart == seat_gae(four, values, seats, cuts, last_values, last_seats, 0.9, 0.95)).all()
    assert (apart != both).any()


def test_by_seat_shapes_that_do_not_fit() -> None:
    _, values, seats, cuts, last_values, last_seats = random_decisions(np.random.default_rng(1), 4, 3)
    won = np.zeros((4, 3, 4), dtype=np.float32)
    with pytest.raises(ValueError, match=r"must have shapes \(T, N, S\) and \(T, N\)"):
        seat_gae(won[:3], values, seats, cuts, last_values, last_seats, 0.9)
    with pytest.raises(ValueError, match=r"must have shape \(3,\)"):
        seat_gae(won, values, seats, cuts, last_values[:2], last_seats, 0.9)
