"""Advantages for zero-sum games whose seats take uneven turns."""

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
