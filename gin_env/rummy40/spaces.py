"""Spaces of the environments of Rummy40; what those of both games share is in `gin_env.spaces`."""

import numpy as np
from gymnasium import spaces

from gin_env.cards import NUM_CARDS
from gin_env.rummy40.actions import DRAW
from gin_env.rummy40.rules import Rummy40Rules
from gin_env.rummy40.view import observation_size, planes, scalars, state_size

# Planes that count cards, of which two look alike where there are two packs.
_COUNTS = {"hand", "own_known", "unseen", "own_melds", "other_melds"}


def observation_space(rules: Rummy40Rules) -> spaces.Box:
    """Returns the space of one observation, with bounds that hold for any position under the rules."""
    names = planes(rules.seats)
    high = np.ones(observation_size(rules), dtype=np.float32)
    for number, (name, _) in enumerate(names):
        if name in _COUNTS or name.startswith("known_"):
            high[NUM_CARDS * number : NUM_CARDS * (number + 1)] = rules.num_packs
    # A hand has one card more after a draw; all its cards count ten but for the jokers.
    cards, jokers = rules.hand_size + 1, rules.num_jokers
    most_points = 10 * cards + jokers * rules.joker_points
    booked = rules.draw_cap * rules.opening_penalty if rules.wrong_opening == "penalty" else 0
    limit = rules.limit or 1
    # Two who tie at the limit play on, so that only the type of their scores bounds them.
    most_score = np.iinfo(np.int32).max if rules.seats == 2 else limit + most_points + booked
    bounds = {
        "cards": cards / 10,
        "joker_count": jokers,
        "unseen_jokers": jokers,
        "points": most_points / 10,
        "need": rules.opening / 10,
        "attempt": rules.opening / 10,
        "owed": jokers,
        "stock": rules.deck_size / 64,
        "draws": rules.draw_cap / 64,
        "booked": booked / 10,
        "score": most_score / limit,
    }
    for number, (name, _) in enumerate(scalars(rules.seats), NUM_CARDS * len(names)):
        field = name.removeprefix("own_").rstrip("_0123456789")  # as in own_cards, cards_2
        if field in bounds:
            high[number] = np.nextafter(np.float32(bounds[field]), np.float32(np.inf))  # the vector is rounded too
    return spaces.Box(np.zeros_like(high), high, dtype=np.float32)


def state_space(rules: Rummy40Rules) -> spaces.Box:
    """Returns the space of the hidden state (`gin_env.rummy40.view.state`)."""
    most = max(rules.num_packs, rules.num_jokers)
    return spaces.Box(0, most, shape=(state_size(rules.seats),), dtype=np.float32)


def opening_mask(rules: Rummy40Rules) -> np.ndarray:
    """Returns what is legal whatever the deal when an episode starts: a card may be drawn from the stock."""
    mask = np.zeros(rules.num_actions, dtype=np.int8)
    mask[DRAW] = 1
    return mask
