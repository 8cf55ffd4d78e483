"""Pieces of matches, played in this process, in several, or on a Ray cluster.

A piece is some neighbouring deals of one pairing. Its games are the same wherever it is played, and so is what
`agents.match.Games.join` makes of all pieces, to the last digit.
"""

import hashlib
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import agents
from agents import match, match40
from agents.base import Agent
from agents.games import game_of_rules
from agents.result import Games, MatchResult
from experiments.luck import Luck
from gin_env.rules import Rules
from gin_env.rummy40.rules import Rummy40Rules

# Deals in a piece: a tenth of a second for scripted players, some minutes for one that thinks for 50 ms.
PIECE = 250
# Whatever computes with threads of its own keeps to one: the workers share the cores.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@cache
def source_stamp() -> str:
    """A hash of the sources that decide how a game goes: those of gin_env and agents."""
    digest = hashlib.sha256()
    root = Path(__file__).resolve().parent.parent
    for package in ("agents", "gin_env"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# Of either game.
AnyRules = Rules | Rummy40Rules
AnyResult = MatchResult | match40.MatchResult


def matches_of(game: str) -> Any:
    """Returns the module that plays duplicate matches of a game (`agents.base.GAMES`).

    Raises:
        ValueError: If there is no such game.
    """
    modules = {"gin": match, "rummy40": match40}
    if game not in modules:
        raise ValueError(f"{game!r} is no game: expected {' or '.join(modules)}")
    return modules[game]


def game_played(rules: AnyRules) -> str:
    """Returns the game that rules are of."""
    return game_of_rules(rules).name


def games_of_deal(rules: AnyRules) -> int:
    """Returns how often each deal is played."""
    return match40.games_of_deal(rules.seats) if isinstance(rules, Rummy40Rules) else 2


def empty_games(rules: AnyRules, first: int, deals: int) -> Games:
    """Returns the games of some deals, of which nothing has been played yet."""
    if isinstance(rules, Rummy40Rules):
        return match40.Games.empty(first, deals, rules.seats)
    return Games.empty(first, deals)


@dataclass(frozen=True)
class Piece:
    """Some deals of a pairing.

    Attributes:
        a: The one player, as text for `agents.make`.
        b: The other.
        first: Number of the first deal.
        deals: Number of deals, each played in all seatings.
        rules: What is played, which also says which game.
        match: Whether a game is a match to the target.
        seed: Of the deals and the players' choices.
        batch: Most games to play at once.
        records: Whether to write down every game.
        luck: Whether to measure the luck of the draws.
        source: `source_stamp` of the process that wants it. Another source may play otherwise, and is refused.
    """

    a: str
    b: str
    first: int
    deals: int
    rules: AnyRules
    match: bool
    seed: int
    batch: int
    records: bool = False
    luck: bool = False
    source: str = field(default_factory=source_stamp)


@dataclass(frozen=True)
class Played:
    """A piece that is over.

    Attributes:
        games: Its games.
        incidents: What went wrong with a and b, how often, if they count that (`agents.external`).
        lines: The record of each game as a line, if they were wanted.
        luck: Of the draws, if it was wanted.
    """

    games: Games
    incidents: tuple[Counter[str], Counter[str]]
    lines: tuple[str, ...] = ()
    luck: Luck | None = None


class WorkerError(ValueError):
    """A worker ended, or cannot play what it was given."""


def pieces(size: int, first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Cuts the deals from ``first`` up to ``stop`` at the multiples of ``size``: yields (first, number) of each."""
    while first < stop:
        end = min(stop, (first // size + 1) * size)
        yield first, end - first
        first = end


class Players:
    """Agents by their text, made when they are first asked for, and closed at the end of the block.

    Those that can be closed keep a process or the like. They live for a piece only, so that what befell them in one
    does not change the next, which another worker may play.
    """

    def __init__(self) -> None:
        self._agents: dict[tuple[str, str, int], Agent] = {}

    def get(self, spec: str, copy: int = 0, game: str = "gin") -> Agent:
        """Returns an agent; another ``copy`` is one of its own, for those who play themselves."""
        key = game, spec, copy
        if key not in self._agents:
            self._agents[key] = agents.make(spec, game)
        return self._agents[key]

    def __enter__(self) -> "Players":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes those that can be closed, and forgets them."""
        for key, agent in list(self._agents.items()):
            close = getattr(agent, "close", None)
            if close is not None:
                del self._agents[key]
                close()


_players = Players()  # of a worker, as long as it lives


def play_piece(piece: Piece, players: Players | None = None) -> Played:
    """Plays a piece.

    Args:
        piece: What to play.
        players: Where its agents come from; by default those that this process keeps.

    Raises:
        WorkerError: If this process has other sources than the one that wants the piece.
    """
    if piece.source != source_stamp():
        raise WorkerError(f"a worker has other sources of gin_env and agents ({source_stamp()}, not {piece.source})")
    players = _players if players is None else players
    lines: list[str] = []
    game = game_played(piece.rules)
    luck = Luck(piece.rules, piece.deals, piece.first) if piece.luck and isinstance(piece.rules, Rules) else None
    with players:
        a, b = players.get(piece.a, game=game), players.get(piece.b, int(piece.a == piece.b), game)
        games = matches_of(game).play_games(
            a,
            b,
            deals=piece.deals,
            first=piece.first,
            seed=piece.seed,
            rules=piece.rules,
            match=piece.match,
            batch=piece.batch,
            forfeits=True,
            record=(lambda one: lines.append(one.line())) if piece.records else None,
            **({} if luck is None else {"ended": luck.ended}),
        )
        incidents = Counter(getattr(a, "incidents", {})), Counter(getattr(b, "incidents", {}))
    return Played(games, incidents, tuple(lines), luck)


def play_pieces(
    wanted: Iterable[Piece], done: Callable[[Piece, Played], None], *, workers: int = 1, ray: str | None = None
) -> None:
    """Plays pieces, and hands over each that is over, in any order.

    A program that asks for more than one worker must guard its own start by ``if __name__ == "__main__":``, for the
    workers import it.

    Args:
        wanted: What to play.
        done: Called in this process with a piece and what came of it.
        workers: Processes that play. With one, this process plays.
        ray: Play on a Ray cluster instead: its address, "auto" for the one this machine belongs to, "local" for one of
            its own, or "" for whichever Ray finds.

    Raises:
        ValueError: If the number of workers is below 1, or they are asked for together with Ray.
        WorkerError: If a worker ends before its time.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}; expected at least 1")
    if ray is not None:
        if workers > 1:
            raise ValueError("workers are processes of this machine; a Ray cluster knows itself how many it has")
        _play_on_ray(iter(wanted), done, ray)
    elif workers == 1:
        players = Players()
        for piece in wanted:
            done(piece, play_piece(piece, players))
    else:
        _play_in_processes(iter(wanted), done, workers)


def _play_in_processes(wanted: Iterator[Piece], done: Callable[[Piece, Played], None], workers: int) -> None:
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with _one_thread_each():
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)
        try:
            running = {pool.submit(play_piece, piece): piece for piece in islice(wanted, 2 * workers)}
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    done(running.pop(future), future.result())
                    for piece in islice(wanted, 1):
                        running[pool.submit(play_piece, piece)] = piece
        except BrokenProcessPool:
            raise WorkerError(
                "a worker process has ended before its time: killed, out of memory, or started by a program without "
                "if __name__ == '__main__'"
            ) from None
        except BaseException:
            # What is being played would go on to its end.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise
        finally:
            pool.shutdown()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Sets what processes started within the block read when they load their libraries."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the parent decides
    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave() -> None:
        parent.join()
        os._exit(1)  # it was killed: nobody would ever tell this process to stop

    threading.Thread(target=leave, daemon=True).start()


def _play_on_ray(wanted: Iterator[Piece], done: Callable[[Piece, Played], None], address: str) -> None:
    import ray

    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address or None, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    try:
        play = ray.remote(num_cpus=1)(play_piece)
        slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        running: dict[Any, Piece] = {play.remote(piece): piece for piece in islice(wanted, 2 * slots)}
        while running:
            for reference in ray.wait(list(running))[0]:
                done(running.pop(reference), ray.get(reference))
                for piece in islice(wanted, 1):
                    running[play.remote(piece)] = piece
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    finally:
        if ours:
            ray.shutdown()


def play_match_by(
    a: str,
    b: str,
    *,
    deals: int,
    seed: int = 0,
    rules: AnyRules | str = "cardpuzzle",
    match: bool = False,
    batch: int = 2048,
    workers: int = 1,
    ray: str | None = None,
    piece: int = PIECE,
    progress: Callable[[int, int], None] | None = None,
    record: Callable[[str], None] | None = None,
    luck: Luck | None = None,
    game: str = "gin",
) -> tuple[AnyResult, tuple[Counter[str], Counter[str]]]:
    """Plays a duplicate match in pieces; the result is that of `agents.match.play_match` with forfeits.

    Args:
        a: The one player, as text for `agents.make`.
        b: The other.
        deals: Number of deals, each played twice.
        seed: Decides all decks, and all keys of the agents.
        rules: Rules, or text that names them.
        match: Whether a game is a match to the target.
        batch: Most games that a worker plays at once.
        workers: See `play_pieces`.
        ray: See `play_pieces`.
        piece: Deals in a piece.
        progress: Called with the number of games that are over and of all games, whenever a piece is over.
        record: Called with the record of each game as a line, in the order of the deals.
        luck: Measures the luck of the draws of all deals; of gin only.
        game: Which game the rules are of, and the players play.

    Returns:
        The result, and what went wrong with a and b, how often, if they count that.

    Raises:
        ValueError: If an argument is out of range.
        WorkerError: If a worker ends before its time.
    """
    module = matches_of(game)
    rules = module.check_match(rules, match, deals, seed, batch)
    assert not isinstance(rules, str)
    every = games_of_deal(rules)
    parts: list[Games] = []
    incidents: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    waiting: dict[int, Played] = {}
    finished = following = 0

    def done(one: Piece, played: Played) -> None:
        nonlocal finished, following
        parts.append(played.games)
        for count, more in zip(incidents, played.incidents, strict=True):
            count.update(more)
        if luck is not None and played.luck is not None:
            luck.put(played.luck)
        finished += every * one.deals
        if progress is not None:
            progress(finished, every * deals)
        if record is None:
            return
        waiting[one.first] = played
        while following in waiting:
            ready = waiting.pop(following)
            following += ready.games.points.shape[0]
            for line in ready.lines:
                record(line)

    with Players() as players:
        sides = players.get(a, game=game), players.get(b, game=game)
        known = module.identify(*sides, rules=rules, match=match, seed=seed, deals=deals)
    wanted = (
        Piece(a, b, first, number, rules, match, seed, batch, record is not None, luck is not None)
        for first, number in pieces(piece, 0, deals)
    )
    play_pieces(wanted, done, workers=workers, ray=ray)
    result: AnyResult = module.summarise(type(parts[0]).join(parts), **known)
    return result, incidents
