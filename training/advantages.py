"""Advantages for zero-sum games whose seats take uneven turns.

Of two seats one wins what the other loses, so that one chain runs through the decisions of both (`signed_gae`). Among
more the value to one says nothing of what the position is worth to another, and each seat has a chain of its own
(`seat_gae`).
"""

import numpy as np

from gin_env._compile import kernel

# How a decision is followed.
CUT_NONE = 0  # by another decision of the same hand
CUT_ENDED = 1  # by the end of the hand
CUT_TRUNCATED = 2  # by a truncation: nobody knows what would have come, so the value stands as it was


@kernel
def _gae(rewards, values, seats, cuts, last_values, last_seats, discount, decay, advantages):
    horizon, size = rewards.shape
    for i in range(size):
        running = np.float32(0)
        next_value = last_values[i]
        next_seat = last_seats[i]
        for t in range(horizon - 1, -1, -1):
            # What is good for the other seat is bad for this one.
            sign = np.float32(1) if next_seat == seats[t, i] else np.float32(-1)
            if cuts[t, i] == CUT_ENDED:
                running = rewards[t, i] - values[t, i]
            elif cuts[t, i] == CUT_TRUNCATED:
                running = np.float32(0)
            else:
                running = rewards[t, i] - values[t, i] + discount * sign * (next_value + decay * running)
            advantages[t, i] = running
            next_value = values[t, i]
            next_seat = seats[t, i]


def signed_gae(
    rewards: np.ndarray,
    values: np.ndarray,
    seats: np.ndarray,
    cuts: np.ndarray,
    last_values: np.ndarray,
    last_seats: np.ndarray,
    decay: float,
    discount: float = 1.0,
) -> np.ndarray:
    """Generalised advantage estimates (Schulman et al. 2016) along each table's decisions.

    Every number is from the side of the seat that decides at that step. Where the next decision is the other seat's,
    its value and advantage count with a minus.

    Args:
        rewards: (T, N) float32, what the seat deciding at t won before the table's next decision.
        values: (T, N) float32.
        seats: (T, N) int8, who decides.
        cuts: (T, N) int8, CUT_NONE, CUT_ENDED or CUT_TRUNCATED.
        last_values: (N,) float32, value of the decision after the last.
        last_seats: (N,) int8, who decides there.
        decay: Lambda, 0 to 1.
        discount: Gamma, 0 to 1, for each decision.

    Returns:
        (T, N) float32.

    Raises:
        ValueError: If the shapes do not fit.
    """
    shape = rewards.shape
    if any(array.shape != shape for array in (values, seats, cuts)) or len(shape) != 2:
        raise ValueError(f"rewards {shape}, values, seats and cuts must share one shape (T, N)")
    if last_values.shape != shape[1:] or last_seats.shape != shape[1:]:
        raise ValueError(f"last values and seats must have shape {shape[1:]}")
    advantages = np.empty(shape, dtype=np.float32)
    _gae(rewards, values, seats, cuts, last_values, last_seats, np.float32(discount), np.float32(decay), advantages)
    return advantages


@kernel
def _seat_gae(won, values, seats, cuts, last_values, last_seats, discount, decay, advantages):
    horizon, size, num_seats = won.shape
    # By seat: what its chain goes on with after the decision that is looked at, and how.
    ahead = np.empty(num_seats, dtype=np.float32)
    since = np.empty(num_seats, dtype=np.float32)
    how = np.empty(num_seats, dtype=np.int64)
    for i in range(size):
        for seat in range(num_seats):
            how[seat] = CUT_TRUNCATED  # nothing is known of what follows
            since[seat] = 0
            ahead[seat] = 0
        how[last_seats[i]] = CUT_NONE
        ahead[last_seats[i]] = last_values[i]
        for t in range(horizon - 1, -1, -1):
            if cuts[t, i] != CUT_NONE:
                for seat in range(num_seats):
                    how[seat] = cuts[t, i]
                    since[seat] = 0
                    ahead[seat] = 0
            for seat in range(num_seats):
                since[seat] += won[t, i, seat]
            seat = np.int64(seats[t, i])
            value = values[t, i]
            if how[seat] == CUT_TRUNCATED:
                running = np.float32(0)
            else:
                running = since[seat] + discount * ahead[seat] - value
            advantages[t, i] = running
            how[seat] = CUT_NONE
            since[seat] = 0
            ahead[seat] = value + decay * running


def seat_gae(
    won: np.ndarray,
    values: np.ndarray,
    seats: np.ndarray,
    cuts: np.ndarray,
    last_values: np.ndarray,
    last_seats: np.ndarray,
    decay: float,
    discount: float = 1.0,
) -> np.ndarray:
    """Generalised advantage estimates along each seat's own decisions.

    A seat's decision is followed by its own next one in the same hand, whatever the others do between them. Its last
    one before the end of the arrays has no estimate, 0, as at a truncation, unless it decides there again.

    Args:
        won: (T, N, S) float32, what each of S seats won between the table's decision t and its next.
        values: (T, N) float32, to the seat that decides.
        seats: (T, N) int8, who decides.
        cuts: (T, N) int8, CUT_NONE, CUT_ENDED or CUT_TRUNCATED.
        last_values: (N,) float32, value of the decision after the last.
        last_seats: (N,) int8, who decides there.
        decay: Lambda, 0 to 1.
        discount: Gamma, 0 to 1, for each decision of the seat.

    Returns:
        (T, N) float32.

    Raises:
        ValueError: If the shapes do not fit.
    """
    shape = values.shape
    if won.shape[:-1] != shape or any(array.shape != shape for array in (seats, cuts)) or len(shape) != 2:
        raise ValueError(f"won {won.shape}, values {shape}, seats and cuts must have shapes (T, N, S) and (T, N)")
    if last_values.shape != shape[1:] or last_seats.shape != shape[1:]:
        raise ValueError(f"last values and seats must have shape {shape[1:]}")
    advantages = np.empty(shape, dtype=np.float32)
    _seat_gae(won, values, seats, cuts, last_values, last_seats, np.float32(discount), np.float32(decay), advantages)
    return advantages


def estimates(
    rewards: np.ndarray,
    won: np.ndarray,
    values: np.ndarray,
    seats: np.ndarray,
    cuts: np.ndarray,
    last_values: np.ndarray,
    last_seats: np.ndarray,
    decay: float,
    discount: float = 1.0,
) -> np.ndarray:
    """Returns `signed_gae` of a game of two seats, and `seat_gae` of one of more.

    Args:
        rewards: (T, N) float32, as `signed_gae` takes them.
        won: (T, N, S) float32, as `seat_gae` takes them.
        values: As for both.
        seats: As for both.
        cuts: As for both.
        last_values: As for both.
        last_seats: As for both.
        decay: As for both.
        discount: As for both.
    """
    if won.shape[2] == 2:
        return signed_gae(rewards, values, seats, cuts, last_values, last_seats, decay, discount)
    return seat_gae(won, values, seats, cuts, last_values, last_seats, decay, discount)
