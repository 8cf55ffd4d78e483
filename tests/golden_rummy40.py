"""Golden records and counts of Rummy40: what the engine did once and must do for ever.

    python -m tests.golden_rummy40

writes ``tests/data/golden_rummy40.txt`` and ``tests/data/perft_rummy40.json`` anew. Do that only where a change is
meant to change them (a new layout of the observation changes every hash, but no move and no result), and read the
difference.

Each line of the first is a record with its result; its comment is a hash of all that every seat saw on the way. The
second counts the sequences of legal moves from the deals of small games, by their length.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gin_env.rummy40 import Rummy40Rules, engine, view
from gin_env.rummy40.record import Record, table_record
from gin_env.rummy40.tables import OVER
from tests.rummy40_hands import choose
from tests.test_rummy40_engine import MINIATURES, SETTINGS

RECORDS = Path(__file__).parent / "data" / "golden_rummy40.txt"
PERFT = Path(__file__).parent / "data" / "perft_rummy40.json"
HANDS = 3  # of each setting
DEPTH = 9


def digest(record: Record) -> str:
    """Returns a hash of the observations and masks of all seats after each move."""
    told = hashlib.sha256()
    for tables in engine.replay(record):
        for seat in range(record.rules.seats):
            observations, masks = view.look(tables, seat)
            told.update(np.round(observations, 4).tobytes())
            told.update(masks.tobytes())
    return told.hexdigest()[:16]


def play(rules: Rummy40Rules, seed: int) -> Record:
    """Returns a hand in which every second seat lays what it can."""
    tables = engine.new_tables(rules, 1, seed=seed)
    masks = np.empty((1, rules.num_actions), dtype=np.int8)
    actions = np.empty(1, dtype=np.int64)
    while tables["phase"][0] != OVER:
        engine.legal(tables, masks)
        choose(masks, engine.decision_keys(seed + 1, tables), tables["mover"] % 2 == seed % 2, actions)
        engine.step(tables, actions)
    return table_record(tables)


def records() -> Iterator[str]:
    """Yields the golden lines."""
    for rules in SETTINGS.values():
        for seed in range(HANDS):
            record = play(rules, seed)
            yield f"{record.line()} # {digest(record)}"


def perft(rules: str, depth: int) -> list[int]:
    """Returns how many sequences of legal moves there are from the first deal, of each length from 1 on."""
    tables = engine.new_tables(rules, 1, seed=40)
    counts = []
    for _ in range(depth):
        rows, actions = np.nonzero(engine.legal(tables))
        if not rows.size:
            break
        tables = tables.take(rows)
        engine.step(tables, actions)
        counts.append(rows.size)
    return counts


def counts() -> dict[str, list[int]]:
    """Returns the golden counts by rules."""
    return {rules: perft(rules, DEPTH) for rules in MINIATURES.values()}


if __name__ == "__main__":
    RECORDS.write_text("".join(f"{line}\n" for line in records()), encoding="utf-8")
    PERFT.write_text(json.dumps(counts(), indent=1) + "\n", encoding="utf-8")
