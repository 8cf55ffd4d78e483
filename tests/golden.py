"""Golden records and perft counts: what the engine did once and must do for ever.

    python -m tests.golden

writes ``tests/data/golden/*.txt`` and ``tests/data/perft.json`` anew. Do that only where a change is meant to change
them (a new layout of the observation changes every hash, but no move and no result), and read the difference.

A file of golden records holds some hands under one set of rules, chosen so that together they end in all ways, or a
match. Each line is a record with its result; its comment is a hash of all that both seats saw on the way (`digest`).

Perft, as chess programs call it, counts all sequences of legal moves from a position by their length. Two engines with
one rule apart soon count differently.
"""

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gin_env import PRESETS, Rules, engine, melds, preset
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, MELD, PASS, TAKE
from gin_env.cards import NO_CARD
from gin_env.record import HandRecord, Record, hand_record, read_records, table_record
from gin_env.rules import automatic
from gin_env.tables import DECLARE, DEFEND, ENDINGS, LAY_OFF, NOBODY, OVER, PHASES, THROW, WALL, WALL_THROW, Tables
from gin_env.view import look

DATA = Path(__file__).parent / "data"
FOLDER = DATA / "golden"
PERFT = DATA / "perft.json"

MANUAL: dict[str, Any] = {"knocker_melds": "manual", "layoffs": "manual", "defender_melds": "manual"}

# Rules of which some hands are kept.
HANDS: dict[str, Rules] = {
    **PRESETS,
    "cardpuzzle-oklahoma": preset("cardpuzzle", oklahoma=True),
    "plus20-doubled": preset("plus20", oklahoma=True, double_spades="deadwood"),
    "rummyplus-doubled": preset("rummyplus", oklahoma=True, double_spades="all"),
    "luciano-manual": preset("luciano", **MANUAL),
    "cardpuzzle-eights": preset("cardpuzzle", ranks=8, hand_size=8, knock_limit=6),
}
# And of which a match is kept.
MATCHES: dict[str, Rules] = {
    "cardpuzzle-match": preset("cardpuzzle"),
    "luciano-match": preset("luciano"),
    "openspiel-one-hand-match": preset("openspiel", target=None),
}
# Small enough to be counted to the end of the hand, whatever is played.
MINIATURES: dict[str, Rules] = {
    "miniature": Rules(ranks=3, hand_size=3, knock_limit=3, draw_cap=4),
    "miniature-manual": Rules(ranks=4, suits=3, hand_size=3, knock_limit=4, tie="nothing", draw_cap=4, **MANUAL),
    "miniature-ascending": Rules(
        ranks=4,
        suits=3,
        hand_size=3,
        draw_cap=3,
        oklahoma=True,
        double_spades="all",
        layoffs="ascending",
    ),
    "miniature-wall": Rules(
        ranks=4,
        suits=3,
        hand_size=3,
        knock_limit=2,
        rediscard=True,
        swap_cap=2,
        take_cap=2,
        wall="knock",
        stock_floor=3,
        draw_cap=5,
    ),
}


# ----------------------------------------------------------------------------------------------------------- hashes


def digest(record: Record) -> str:
    """Replays a record and returns sixteen hex digits that stand for all observations and masks of both seats.

    They are hashed after each deal and each move, seat 0 first: the numbers of the observation (float32, little-endian,
    no negative zeros), then a byte for each action of the mask.
    """
    seen = hashlib.sha256()
    for tables in engine.replay(record):
        for seat in range(2):
            observations, masks = look(tables, seat)
            seen.update((observations + np.float32(0)).astype("<f4").tobytes())
            seen.update(masks.tobytes())
    return seen.hexdigest()[:16]


def golden_records(path: Path) -> Iterator[tuple[int, Record]]:
    """Yields line numbers and records of a file of golden records; the comment of each is its hash."""
    with path.open(encoding="utf-8") as file:
        yield from read_records(file)


# ---------------------------------------------------------------------------------------------------------- playing

# How a seat plays: whether it knocks, goes gin or waits for big gin, how it draws, by how many points it errs.
_STYLES = 8
_KNOCKS = np.array([1, 1, 0, 0, 0, 0, 1, 1], dtype=bool)
_GINS = np.array([1, 1, 1, 0, 0, 0, 1, 1], dtype=bool)
_ALWAYS_TAKES = np.array([0, 0, 0, 0, 1, 0, 0, 0], dtype=bool)
_ALWAYS_DRAWS = np.array([0, 0, 0, 0, 0, 1, 0, 0], dtype=bool)
_THROWS_BACK = np.array([0, 0, 0, 0, 0, 0, 0, 1], dtype=bool)
_ERRS = np.array([0.1, 4, 0.1, 0.1, 2, 0.1, 40, 4])


def choose(tables: Tables, seed: int) -> np.ndarray:
    """Returns a legal action for each table: now greedy, now stubborn, now silly, so that hands end in all ways.

    A pure function of the seed and each table, whatever the batch.
    """
    rows = np.arange(tables.size)
    mask = engine.legal(tables) != 0
    styles = engine.mix_keys(seed, tables["key"] + tables["mover"].astype(np.uint64)) % np.uint64(_STYLES)
    style = styles.astype(np.int64)
    numbers = np.arange(mask.shape[1], dtype=np.uint64) << np.uint64(32)
    keys = engine.decision_keys(seed, tables)[:, None] ^ numbers[None, :]
    noise = (engine.mix_keys(seed, keys) >> np.uint64(40)).astype(np.float64) / 2**24
    score = noise * _ERRS[style][:, None]

    hands = tables["hands"][rows, tables["mover"]]
    throws = np.isin(tables["phase"], (THROW, WALL_THROW))
    top = tables["pile"][rows, np.maximum(tables["pile_size"] - 1, 0)].astype(np.int64)
    draws = ~throws & (tables["phase"] < DECLARE)
    held = np.where(draws, hands | np.uint64(1) << top.astype(np.uint64), np.where(throws, hands, np.uint64(0)))
    after = melds.deadwood_after(held).astype(np.float64)
    after[after < 0] = 1000
    score[:, DISCARD:KNOCK] -= after
    back = throws & _THROWS_BACK[style] & (tables["taken"] != NO_CARD)
    score[rows[back], DISCARD + tables["taken"][back]] += 500
    score[:, KNOCK:BIG_GIN] += np.where(_KNOCKS[style][:, None] | _GINS[style][:, None] & (after == 0), 2000, -2000)
    score[:, KNOCK:BIG_GIN] -= after
    score[:, BIG_GIN] += 4000
    after[rows, top] = 1000
    score[:, TAKE] += melds.deadwood(np.where(draws, hands, np.uint64(0))) - after.min(axis=1) - 1
    score[:, TAKE] += 5000 * (_ALWAYS_TAKES | _THROWS_BACK)[style]
    score[:, DRAW] += 5000 * _ALWAYS_DRAWS[style]
    # Whoever lays by hand mostly lays what it can.
    score[:, PASS] -= np.where(tables["phase"] >= DECLARE, 0.5 * _ERRS[style], 0)
    score[:, MELD:] += 2 * noise[:, MELD:]
    score[~mask] = -np.inf
    assert mask.any(axis=1).all()
    return score.argmax(axis=1)


class _Played(NamedTuple):
    record: Record
    shows: frozenset[str]  # what it is worth keeping for


def _play_hands(rules: Rules, size: int, seed: int = 0) -> list[_Played]:
    """Plays a hand at each of ``size`` tables."""
    tables = engine.new_tables(rules, size, seed=seed)
    numbers, phases = np.arange(size), np.zeros(size, dtype=np.int64)
    played: dict[int, _Played] = {}
    while numbers.size:
        phases |= 1 << tables["phase"].astype(np.int64)
        _, over = engine.step(tables, choose(tables, seed))
        for row in np.flatnonzero(over):
            record = Record(rules, False, (hand_record(tables, row),))
            played[int(numbers[row])] = _Played(record, _shows(tables[row], int(phases[row])))
        going = np.flatnonzero(over == engine.GOING_ON)
        tables, numbers, phases = tables.take(going), numbers[going], phases[going]
    return [played[number] for number in range(size)]


def _shows(t: np.void, phases: int) -> frozenset[str]:
    """What a hand that is over shows of the game."""
    ending = ENDINGS[t["ending"]]
    on_the_way = [PHASES[p] for p in (WALL, WALL_THROW, DECLARE, LAY_OFF, DEFEND) if phases >> p & 1]
    layoffs = int(np.bitwise_count(t["layoffs"]).sum())
    shows = {
        f"{ending}, {int((t['layoffs'] > 0).sum())} melds laid off on",
        f"{ending}, {layoffs} layoffs",
        f"{ending}, doubled {t['doubled']}",
        f"{ending}, won by {t['winner']}",
        f"{ending}, dealt by {t['dealer']}",
        f"limit {t['limit']}",
        *(f"{ending}, {phase}" for phase in on_the_way),
    }
    if t["knocker"] != NOBODY:
        shows.add(f"{ending}, {int((t['melds'] > 0).sum())} melds")
        if t["deadwood"][0] == t["deadwood"][1]:
            shows.add(f"{ending}, equal deadwood")
    for cap in ("swaps", "takes"):
        if t[cap] == t["rules"][cap[:-1] + "_cap"]:
            shows.add(f"{ending}, {cap} at their cap")
    return frozenset(shows)


def _cover(played: list[_Played], most: int) -> list[Record]:
    """Returns few hands that show, as far as possible, all that the hands show: each the one that adds the most."""
    chosen: list[int] = []
    seen: set[str] = set()
    while len(chosen) < most:
        # Of equals the shortest, then the first.
        gains = [(len(p.shows - seen), -len(p.record.hands[0].moves), -n) for n, p in enumerate(played)]
        gain, _, number = max(gains)
        if not gain:
            break
        chosen.append(-number)
        seen |= played[-number].shows
    return [played[number].record for number in sorted(chosen)]


def _play_match(rules: Rules, seed: int, hands: int) -> Record:
    """Plays matches until one has this many hands, at least one of them dead, and returns it."""
    for first in range(1000):
        tables = engine.new_tables(rules, 1, seed=seed, first=first, match=True)
        played: list[HandRecord] = []
        over = engine.GOING_ON
        while over != engine.EPISODE_ENDED:
            over = int(engine.step(tables, choose(tables, seed))[1][0])
            if over != engine.GOING_ON:
                played.append(dataclasses.replace(hand_record(tables), scores=None))
            if over == engine.HAND_ENDED:
                engine.deal(tables)
        if len(played) >= hands and any(hand.result and hand.result.ending == "dead" for hand in played):
            return Record(rules, True, tuple(played))
    raise AssertionError("no such match")


# ------------------------------------------------------------------------------------------------------------ perft


class Perft(NamedTuple):
    """What was counted.

    Attributes:
        sequences: Sequences of 1, 2, ... legal moves.
        ended: Those that end the hand, by ending.
        points: Which these bring to seat 0 and to seat 1, summed up.
    """

    sequences: list[int]
    ended: dict[str, int]
    points: list[int]


def perft(tables: Tables, depth: int, chunk: int = 1 << 14) -> Perft:
    """Counts the sequences of legal moves at some tables, each to the end of its hand at most.

    Args:
        tables: Positions to start from; they stay as they are.
        depth: Most moves of a sequence.
        chunk: Most positions to hold at once for each move of the depth.
    """
    sequences = [0] * depth
    ended: Counter[str] = Counter()
    points = np.zeros(2, dtype=np.int64)
    waiting = [(0, tables)]
    while waiting:
        played, before = waiting.pop()
        rows, actions = np.nonzero(engine.legal(before))
        sequences[played] += rows.size
        for start in range(0, rows.size, chunk):
            after = before.take(rows[start : start + chunk])  # an index on records is far slower
            won, over = engine.step(after, actions[start : start + chunk])
            ended.update(ENDINGS[ending] for ending in after["ending"][over != engine.GOING_ON])
            points += np.maximum(won, 0).sum(axis=0)
            going = np.flatnonzero(over == engine.GOING_ON)
            if going.size and played + 1 < depth:
                waiting.append((played + 1, after.take(going)))
    while sequences and not sequences[-1]:
        sequences.pop()
    return Perft(sequences, dict(sorted(ended.items())), points.tolist())


def position(record: Record | str) -> Tables:
    """Returns the table where a record stops."""
    *_, tables = engine.replay(record)
    return tables


def _to_a_knock(rules: Rules) -> tuple[Tables, int]:
    """Returns a position in which the mover may knock, and a knock that leaves both much to lay and to lay off."""
    tables = engine.new_tables(rules, 400)
    found: tuple[int, Tables, int] = (-1, tables, PASS)
    while tables.size:
        for row, action in np.argwhere(engine.legal(tables)[:, KNOCK:BIG_GIN]):
            mover = int(tables["mover"][row])
            hands = tables["hands"][row].copy()
            hands[mover] &= ~(np.uint64(1) << np.uint64(action))
            laid = melds.arrange(hands)
            defence = melds.defend(hands[[1 - mover]], laid.melds[[mover]], laid.deadwood[[mover]] == 0)
            least = int((laid.melds > 0).sum(axis=1).min())
            worth = 100 * least + int(np.bitwise_count(defence.layoffs).sum())
            if worth > found[0]:
                found = worth, tables[row : row + 1].copy(), KNOCK + int(action)
        engine.step(tables, choose(tables, 0))
        tables = tables.take(np.flatnonzero(tables["phase"] != OVER))
    assert found[0] >= 0
    return found[1:]


def _perft_starts() -> Iterator[tuple[str, Tables]]:
    """Yields the positions that are counted."""
    for name, rules in PRESETS.items():
        manual = dataclasses.replace(rules, **MANUAL)
        yield f"{name}, the deal", engine.new_tables(rules, 1, seed=1)
        for kind, variant in (("automatic", automatic(rules)), ("as it is", rules), ("manual", manual)):
            if kind == "as it is" and rules in (automatic(rules), manual):
                continue
            tables, action = _to_a_knock(variant)
            yield f"{name}, a knock, {kind}", tables.copy()
            if variant.manual:
                engine.step(tables, [action])
                yield f"{name}, a showdown, {kind}", tables
    for name, rules in MINIATURES.items():
        yield name, engine.new_tables(rules, 3, seed=2)[:1]


def _deepest(tables: Tables, most: int, limit: int) -> Perft:
    """Counts as deep as it can without counting more than ``most`` sequences, and no deeper than ``limit``."""
    counted = perft(tables, 1)
    for depth in range(2, limit + 1):
        deeper = perft(tables, depth)
        if sum(deeper.sequences) > most:
            break
        done = deeper == counted
        counted = deeper
        if done:  # the hand has ended everywhere
            break
    return counted


# ---------------------------------------------------------------------------------------------------------- writing

_FAST, _SLOW = 100_000, 1_000_000  # sequences


def write_golden() -> None:
    """Writes the files of golden records."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    hands = HANDS | {"miniature": MINIATURES["miniature-wall"]}
    records = {name: _cover(_play_hands(rules, 3000), most=40) for name, rules in hands.items()}
    records |= {name: [_play_match(rules, 0, 2 if rules.target is None else 6)] for name, rules in MATCHES.items()}
    for name, kept in records.items():
        lines = [f"# Golden records ({name}): python -m tests.golden writes them, the comments are hashes."]
        lines += [dataclasses.replace(record, comment=digest(record)).line() for record in kept]
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        print(f"{name}: {len(kept)}")


def write_perft() -> None:
    """Writes the file of perft counts."""
    counts = []
    for name, tables in _perft_starts():
        record = table_record(tables).line()
        most = 1_000_000 if name in MINIATURES else _FAST
        fast = _deepest(tables, most, 60)
        slow = None if name in MINIATURES else _deepest(tables, _SLOW, 60)
        counts.append({"name": name, "record": record, "fast": fast._asdict(), "slow": slow and slow._asdict()})
        print(f"{name}: {fast}")
    PERFT.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_golden()
    write_perft()
