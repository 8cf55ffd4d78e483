"""What the environments ask of a game: where those of gin and of Rummy40 differ, but for what they tell of a hand."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from gin_env import engine, tables, view
from gin_env.picture import render_picture
from gin_env.record import table_record
from gin_env.render import render_text
from gin_env.rules import as_rules
from gin_env.spaces import observation_space, opening_mask, state_space


class Game(NamedTuple):
    """A game as the environments play it. The modules of both games have the same names in them."""

    name: str
    as_rules: Callable[[Any], Any]
    num_seats: Callable[[Any], int]  # under some rules
    engine: Any  # gin_env.engine
    tables: Any  # gin_env.tables
    view: Any  # gin_env.view
    observation_space: Callable[[Any], spaces.Box]  # of one observation, under some rules
    opening_mask: Callable[[Any], np.ndarray]  # (A,) int8, what is legal whatever the deal when an episode starts
    state_space: Callable[[Any], spaces.Box]  # of the hidden state, under some rules
    end_matches: Callable[[np.ndarray, Any], None]  # at tables and rows: the next deal is the first of an episode
    table_record: Callable[..., Any]
    render_text: Callable[[np.void], str]
    render_picture: Callable[[np.void], np.ndarray]


def _end_matches(tables: np.ndarray, rows: Any) -> None:
    # A match that has a winner is over.
    tables["match_winner"][rows] = 0


GIN = Game(
    name="gin",
    as_rules=as_rules,
    num_seats=lambda rules: 2,
    engine=engine,
    tables=tables,
    view=view,
    observation_space=observation_space,
    opening_mask=opening_mask,
    state_space=state_space,
    end_matches=_end_matches,
    table_record=table_record,
    render_text=render_text,
    render_picture=render_picture,
)
