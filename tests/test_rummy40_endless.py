"""No dead ends: every hand that small decks allow, to every end.

The whole tree of a deal is walked, level by level, states that are alike once. So what is checked here holds for every
line of play: whoever is to move can move, keeps a card to throw, and places what it has stolen; every turn ends.
"""

import numpy as np
import pytest

from gin_env.rummy40 import engine
from gin_env.rummy40.actions import action_name
from gin_env.rummy40.tables import DRAW_ANY, OVER, PLAY, Tables

SMALL = "rummy40:ranks=3,suits=3,hand_size=3,jokers=1"
LARGER = "rummy40:ranks=4,suits=3,hand_size=4,jokers=1,draw_cap=5,opening=0,adding=any"
FOUR = "rummy40:seats=4,packs=1,ranks=4,suits=4,hand_size=3,jokers=1,adding=any,draw_cap=5"
# Fields that say how a state came about, not what it is.
HISTORY = ("moves", "num_moves", "key", "hand_number")


def distinct(tables: Tables) -> Tables:
    """Returns the tables without those that are like another one."""
    if not tables.size:
        return tables
    plain = np.zeros(tables.size, dtype=tables.dtype)  # the bytes between fields are zero too
    for name in tables.dtype.names or ():
        if name not in HISTORY:
            plain[name] = tables[name]
    _, first = np.unique(plain.view(f"V{tables.dtype.itemsize}"), return_index=True)
    return tables.take(np.sort(first))


@pytest.mark.parametrize(
    ("rules", "seeds", "least"),
    [
        (f"{SMALL},opening=0", (0, 1, 2), 20_000),
        (f"{SMALL},opening=9", (0, 1, 2), 20_000),
        (f"{SMALL},opening=6,stealing=own,rediscard=true", (0, 1), 10_000),
        (f"{SMALL},opening=8,wrong_opening=penalty,draw_cap=4", (0,), 4_000),
        (LARGER, (0,), 20_000),
        (f"{FOUR},opening=0", (0, 1, 2), 10_000),
        (f"{FOUR},opening=6", (0, 1, 2), 10_000),
    ],
)
def test_no_line_of_play_gets_stuck(rules: str, seeds: tuple[int, ...], least: int) -> None:
    states = 0
    kinds: set[str] = set()
    endings: set[int] = set()
    for seed in seeds:
        tables = engine.new_tables(rules if "draw_cap" in rules else f"{rules},draw_cap=6", 1, seed=seed)
        tables["num_moves"] = 0
        while tables.size:
            states += tables.size
            mask = engine.legal(tables)
            assert mask.any(axis=1).all()
            seat = tables["mover"]
            rows = np.arange(tables.size)
            cards, jokers = tables["num_cards"][rows, seat], tables["jokers"][rows, seat]
            playing = tables["phase"] == PLAY
            assert (playing | (tables["phase"] == DRAW_ANY)).all()
            # There is a card to throw, and it is no joker; but melds that are worth too little may have to come back.
            assert (cards - jokers >= 1)[playing & (tables["attempt"] == 0)].all()
            # What was stolen lies on the table again when the turn ends.
            assert not tables["owed"][~playing].any()
            parents, actions = np.nonzero(mask)
            kinds |= {action_name(int(action)).split()[0] for action in np.unique(actions)}
            children = tables.take(parents)
            engine.step(children, actions)
            over = children["phase"] == OVER
            endings |= set(children["ending"][over].tolist())
            # Only who is out has no card left; the others hold some.
            held = children["num_cards"][:, : 4 if "seats=4" in rules else 2]
            assert (held[~over] >= 1).all()
            tables = distinct(children[~over])
    assert states > least
    assert {"draw", "take", "discard", "lay"} <= kinds
    assert {"add", "steal"} <= kinds or rules != LARGER
    assert len(endings) >= 2
