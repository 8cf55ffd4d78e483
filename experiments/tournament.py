"""Round robins: every player against every other, all pairings on the same deals, each deal in all seatings.

A tournament lies in a folder:

    =================== ==============================================================================
    file                what it holds
    =================== ==============================================================================
    manifest.json       what is played: players and their versions, rules, seed, sources
    pieces/I-J-F-N.npz  the games of players I and J (by alphabet) on N deals from deal F on
    result.json         the result (`TournamentResult.to_json`)
    report.html, .md    the report (`experiments.page`)
    =================== ==============================================================================

Every file is there in full or not at all, so a tournament that was stopped in whatever way goes on where it was. What
is played in which order, by whom and in pieces of what size changes nothing in the result.
"""

import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any

import numpy as np

from agents.match import agent_version
from experiments.files import replacing, write_json
from experiments.ratings import RESAMPLES
from experiments.standings import TournamentResult, versions
from experiments.workers import (
    PIECE,
    AnyRules,
    Piece,
    Played,
    Players,
    empty_games,
    game_played,
    games_of_deal,
    matches_of,
    pieces,
    play_pieces,
    source_stamp,
)
from gin_env import rules as gin
from gin_env.rummy40 import rules as rummy40

FORMAT = 1
MANIFEST, PIECES = "manifest.json", "pieces"


class TournamentError(ValueError):
    """A folder that holds another tournament, or players that cannot meet."""


class Interrupted(Exception):
    """A tournament was stopped by Ctrl-C. The message says how far it got."""


@dataclass(frozen=True)
class Entry:
    """A player.

    Attributes:
        spec: The text by which `agents.make` makes it, which is also what results call it.
        name: What it calls itself.
        version: Its own version, or that of gin-env.
    """

    spec: str
    name: str
    version: str


@dataclass(frozen=True)
class Plan:
    """What is played, the number of deals left out: two tournaments with one plan agree on the deals that both have.

    Attributes:
        entries: The players, sorted by their specs.
        rules: What is played.
        match: Whether a game is a match to the target.
        seed: Of the deals and the players' choices.
        package: Version of gin-env.
        source: A hash of the sources that decide how a game goes.
    """

    entries: tuple[Entry, ...]
    rules: AnyRules
    match: bool
    seed: int
    package: str
    source: str

    def to_json(self) -> dict[str, Any]:
        """Returns the plan as plain values."""
        # Of gin as it was before there was another game: folders made then go on.
        game = {} if self.game == "gin" else {"game": self.game}
        return game | {
            "format": FORMAT,
            "agents": [vars(entry) for entry in self.entries],
            "rules": {"name": self.rules_name, "fingerprint": self.rules.fingerprint},
            "match": self.match,
            "seed": self.seed,
            "package": self.package,
            "source": self.source,
        }

    @property
    def rules_name(self) -> str:
        """The name of the rules, with what differs from the preset of that name."""
        known = gin.PRESETS if self.game == "gin" else rummy40.PRESETS
        return self.rules.text if self.rules.name in known else self.rules.name

    @property
    def game(self) -> str:
        """Which game is played."""
        return game_played(self.rules)

    @cached_property
    def digest(self) -> str:
        """Hash of the plan, which names its folder."""
        return sha256(dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]


def make_plan(
    specs: Sequence[str],
    rules: AnyRules | str = "cardpuzzle",
    match: bool = False,
    seed: int = 0,
    game: str = "gin",
) -> Plan:
    """Returns the plan of a tournament. Each player is made once, to see that it can be.

    Raises:
        TournamentError: If there are fewer than two players, or one is named twice.
        ValueError: If there is no such player, or an argument is out of range.
    """
    rules = matches_of(game).check_match(rules, match, 1, seed)
    assert not isinstance(rules, str)
    if len(specs) < 2:
        raise TournamentError(
            f"{'no player' if not specs else 'only ' + specs[0]} is named; expected at least 2 players"
        )
    for spec in specs:
        if specs.count(spec) > 1:
            raise TournamentError(f"player {spec!r} is named {specs.count(spec)} times; each enters once")
    with Players() as players:
        made = ((spec, players.get(spec, game=game)) for spec in sorted(specs))
        entries = tuple(Entry(spec, agent.name, agent_version(agent)) for spec, agent in made)
    return Plan(entries, rules, match, int(seed), versions()["gin-env"], source_stamp())


# ------------------------------------------------------------------------------------------------------------ folder


class Folder:
    """The folder of a tournament: its plan, and the pieces that are over.

    Args:
        path: The folder; it is made if need be.
        plan: What is played.

    Raises:
        TournamentError: If the folder holds another tournament.
        OSError: If it cannot be read or written.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        self._compare()

    def _compare(self) -> None:
        file = self.path / MANIFEST
        try:
            held = loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except (JSONDecodeError, UnicodeDecodeError) as error:
            raise TournamentError(f"{file} cannot be read: {error}") from None
        for key, ours in self.plan.to_json().items():
            theirs = held.get(key) if isinstance(held, dict) else None
            if theirs != ours:
                raise TournamentError(
                    f"{self.path} holds another tournament: {_difference(key, theirs, ours)}; choose another folder, "
                    "or remove that one"
                )

    def write_manifest(self, deals: int, decks: str) -> None:
        """Writes what is played."""
        write_json(self.path / MANIFEST, self.plan.to_json() | {"deals": deals, "deck_hash": decks})

    def write(self, i: int, j: int, played: Played) -> None:
        """Writes a piece."""
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in vars(played.games).items()}
        arrays["plan"], arrays["incidents"] = np.array(self.plan.digest), np.array(dumps(played.incidents))
        path = self.path / PIECES / f"{i}-{j}-{played.games.first}-{played.games.points.shape[0]}.npz"
        with replacing(path) as beside:
            np.savez_compressed(beside, allow_pickle=False, **arrays)

    def read(self, i: int, j: int, deals: int, say: Callable[[str], None]) -> list[Played]:
        """Reads the pieces of a pairing on the first so many deals, none of which overlap."""
        found: dict[int, list[int]] = {}
        for path in (self.path / PIECES).glob(f"{i}-{j}-*-*.npz"):
            first, size = (int(word) if word.isdecimal() else -1 for word in path.stem.split("-")[2:4])
            if first >= 0 and size >= 1 and first + size <= deals:
                found.setdefault(first, []).append(size)
        read: list[Played] = []
        reached = 0
        for first in sorted(found):
            for size in sorted(found[first], reverse=True):
                if first < reached:
                    break
                path = self.path / PIECES / f"{i}-{j}-{first}-{size}.npz"
                try:
                    read.append(self._read_piece(path, first, size))
                except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
                    say(f"{path} is damaged and is played again: {str(error) or type(error).__name__}")
                    continue
                reached = first + size
        return read

    def _read_piece(self, path: Path, first: int, deals: int) -> Played:
        empty = empty_games(self.plan.rules, first, deals)
        # Opened here: numpy leaves a damaged archive open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            if str(arrays["plan"]) != self.plan.digest:
                raise ValueError("it is of another tournament")
            values = {name: arrays[name] for name in vars(empty)}
            one, other = loads(str(arrays["incidents"]))
        for name, value in vars(empty).items():
            expected = np.asarray(value)
            if values[name].shape != expected.shape or values[name].dtype != expected.dtype:
                raise ValueError(f"{name} is {values[name].dtype} of shape {values[name].shape}")
        if values["first"] != first:
            raise ValueError(f"it is of deal {values['first']}")
        return Played(type(empty)(**values | {"first": first}), (Counter(one), Counter(other)))


def _difference(key: str, theirs: Any, ours: Any) -> str:
    """Says how two values of a plan differ."""
    if isinstance(theirs, list) and isinstance(ours, list):
        for its, mine in zip(theirs, ours, strict=False):
            if its != mine and its["spec"] == mine["spec"]:
                return f"{mine['spec']} was {its['name']}, {its['version']}, and is {mine['name']}, {mine['version']}"
        theirs, ours = (", ".join(entry["spec"] for entry in entries) for entries in (theirs, ours))
    return f"its {key} is {theirs}, yours is {ours}"


# -------------------------------------------------------------------------------------------------------------- play


def play_tournament(
    specs: Sequence[str],
    *,
    deals: int = 1000,
    seed: int = 0,
    rules: AnyRules | str = "cardpuzzle",
    match: bool = False,
    batch: int = 2048,
    workers: int = 1,
    ray: str | None = None,
    folder: str | Path | None = None,
    piece: int = PIECE,
    anchor: str | None = None,
    resamples: int = RESAMPLES,
    progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] = lambda line: None,
    game: str = "gin",
) -> TournamentResult:
    """Plays a round robin, or what is missing of it.

    Args:
        specs: The players, as texts for `agents.make`. Their order changes nothing.
        deals: Deals that every pairing plays, each in all seatings.
        seed: Decides all decks, and all keys of the players.
        rules: Rules, or text that names them.
        match: Whether a game is a match to the target.
        batch: Most games that a worker plays at once.
        workers: Processes that play (see `experiments.workers.play_pieces`).
        ray: Address of a Ray cluster that plays instead.
        folder: Where pieces are kept; by default none are.
        piece: Deals in a piece, which is what an interruption can cost each worker.
        anchor: The player whose rating is 0; by default the mean is.
        resamples: How often the deals are drawn for the intervals of the ratings.
        progress: Called with the number of games that are over and of all games that were missing.
        say: Called with lines about pieces found in the folder.
        game: Which game the rules are of, and the players play.

    Raises:
        TournamentError: If the players cannot meet, or the folder holds another tournament.
        ValueError: If an argument is out of range.
        Interrupted: On Ctrl-C.
    """
    plan = make_plan(specs, rules, match, seed, game)
    matches_of(game).check_match(plan.rules, match, deals, seed, batch)
    if piece < 1:
        raise ValueError(f"piece is {piece}; expected at least 1 deal")
    names = [entry.spec for entry in plan.entries]
    if anchor is not None and anchor not in names:
        raise TournamentError(f"the anchor {anchor!r} is none of the players: {', '.join(names)}")
    decks = matches_of(game).deck_hash(plan.rules, seed, deals)
    store = None if folder is None else Folder(Path(folder), plan)
    parts: dict[tuple[int, int], list[Played]] = {pair: [] for pair in combinations(range(len(names)), 2)}
    if store is not None:
        store.write_manifest(deals, decks)
        for i, j in parts:
            parts[i, j] = store.read(i, j, deals, say)
    there = sum(part.games.points.shape[0] for some in parts.values() for part in some)
    every = deals * len(parts)
    missing, finished = every - there, 0
    if there:
        say(f"{there:,} of {every:,} duplicate deals are there already")

    def done(one: Piece, played: Played) -> None:
        nonlocal finished
        pair = names.index(one.a), names.index(one.b)
        parts[pair].append(played)
        if store is not None:
            store.write(*pair, played)
        finished += one.deals
        if progress is not None:
            progress(games_of_deal(plan.rules) * finished, games_of_deal(plan.rules) * missing)

    wanted = [
        Piece(names[i], names[j], first, number, plan.rules, match, plan.seed, batch, source=plan.source)
        for (i, j), some in parts.items()
        for first, number in _gaps(some, deals, piece)
    ]
    # All pairings advance together.
    wanted.sort(key=lambda one: one.first)
    try:
        play_pieces(wanted, done, workers=workers, ray=ray)
    except KeyboardInterrupt:
        kept = "nothing is kept" if store is None else f"the same command goes on from {store.path}"
        raise Interrupted(
            f"interrupted with {there + finished:,} of {every:,} duplicate deals played; {kept}"
        ) from None
    whole = {pair: type(some[0].games).join([part.games for part in some]) for pair, some in parts.items()}
    incidents: list[Counter[str]] = [Counter() for _ in names]
    for pair, some in parts.items():
        for part in some:
            for number, more in zip(pair, part.incidents, strict=True):
                incidents[number].update(more)
    return TournamentResult.of(plan, decks, whole, incidents, anchor=anchor, resamples=resamples)


def _gaps(parts: Sequence[Played], deals: int, piece: int) -> Iterator[tuple[int, int]]:
    """Yields the pieces that are missing among the first so many deals: first deal and number of each."""
    reached = 0
    for games in sorted((part.games for part in parts), key=lambda games: games.first):
        yield from pieces(piece, reached, games.first)
        reached = games.first + games.points.shape[0]
    yield from pieces(piece, reached, deals)
