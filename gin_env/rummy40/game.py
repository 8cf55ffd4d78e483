"""Rummy40 as the environments play it (`gin_env.game`)."""

from typing import Any

import numpy as np

from gin_env.game import Game
from gin_env.rummy40 import engine, tables, view
from gin_env.rummy40.picture import render_picture
from gin_env.rummy40.record import table_record
from gin_env.rummy40.render import render_text
from gin_env.rummy40.rules import Rummy40Rules, as_rules
from gin_env.rummy40.spaces import observation_space, opening_mask, state_space


def _num_seats(rules: Rummy40Rules) -> int:
    return rules.seats


def _end_matches(tables: np.ndarray, rows: Any) -> None:
    tables["match_over"][rows] = True


RUMMY40 = Game(
    name="rummy40",
    as_rules=as_rules,
    num_seats=_num_seats,
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
