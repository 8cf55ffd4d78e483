"""Recorded hands judged move by move: what a player would have played, and what the moves that were played cost.

A decision is judged from the view of the seat that made it. The actions in question are played out in the same worlds,
which are sampled from that view (`agents.search.weigh`): what the seat could not know decides nothing. The loss is the
mean of the points that the player's choice wins there, less that of what was played. Positive: the choice looks better.

What such a figure is worth:

- Play-outs go on by simple rules on both seats (`agents.playouts`). They compare an action and another under that play,
  not under perfect play. What such a player makes nothing of, such as feeding the opponent, they see only in part, and
  who plays like it looks better than it is.
- Its standard error is that of the sampled worlds alone. They follow from each other by a walk and are taken as
  independent, which makes little difference: over seeds the figures spread by about as much as it says. A loss of less
  than two errors says nothing, and among many moves some come out above that by chance.
- The dearest moves are chosen for their figures, so that these flatter: with another seed they shrink.
- Points are those of the hand, also in a match.

Forced moves, and those of the showdown, of which a world knows nothing, have no figures.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agents.base import Agent
from agents.match import AgentError
from agents.search import weigh
from experiments.prompt import move_text as move_words_text
from experiments.replay import Story, ending_lines, heading, move_words, opening_lines, tell
from gin_env import engine
from gin_env.actions import action_name
from gin_env.record import Record, move_text
from gin_env.tables import DECLARE
from gin_env.view import View, observe

WORLDS = 2000
MIN_WORLDS = 20  # for a standard error that means anything
DEAREST = 5  # moves of each player that a summary lists
# Streams of a seed, each with a number for every move of a record: the worlds, those that choose, the agent's keys.
_MEASURE, _CHOOSE, _KEYS = (np.uint64(stream << 60) for stream in range(1, 4))
_HAND_SHIFT = 20  # where the number of the hand stands in the number of a move
_CLEAR = 2.0  # standard errors from which a loss is marked


@dataclass(frozen=True)
class Settings:
    """How to judge.

    Attributes:
        worlds: Worlds for each decision.
        seed: Decides them, and the agent's random choices.
        seats: Whose decisions are judged, and whose cards are told.
        hand: Number of the hand of each record, from 1, or None for all.
        against: What a move is compared with: the agent's choice, or the best action found. The best is chosen in half
            of the worlds and measured in the others, so that its figure does not flatter.

    Raises:
        ValueError: If one is out of range.
    """

    worlds: int = WORLDS
    seed: int = 0
    seats: tuple[int, ...] = (0, 1)
    hand: int | None = None
    against: Literal["agent", "best"] = "agent"

    def __post_init__(self) -> None:
        """Checks them."""
        if self.worlds < MIN_WORLDS:
            raise ValueError(f"worlds is {self.worlds}; expected at least {MIN_WORLDS}")
        if self.hand is not None and self.hand < 1:
            raise ValueError(f"hand is {self.hand}; expected 1 or more")
        if self.against not in ("agent", "best"):
            raise ValueError(f"against is {self.against!r}; expected 'agent' or 'best'")
        engine.mix_keys(self.seed, np.zeros(1, dtype=np.uint64))  # raises if the seed is out of range


def analyse(
    records: Sequence[tuple[int, Record]],
    agent: Agent,
    settings: Settings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Judges the moves of some records.

        >>> import agents
        >>> from agents.match import play_match
        >>> records = []
        >>> _ = play_match(agents.make("random"), agents.make("greedy"), deals=1, record=records.append)
        >>> told = analyse(list(enumerate(records, 1)), agents.make("greedy"), Settings(worlds=100))
        >>> [(player["player"], player["agreement"] == 1) for player in told["players"]]
        [('random', False), ('greedy', True)]

    Args:
        records: Numbers of lines, and the records there.
        agent: Whose choices the moves are compared with.
        settings: How.
        progress: Called after each move with the number of moves seen, and of all.

    Returns:
        Plain values. ``records`` has what `experiments.replay.tell` says of each, with its ``line``, and in each move
        ``judged`` (`judge`), None where there is nothing to judge. ``players`` holds a summary for each player
        (`summarise`). Then what was asked for.

    Raises:
        ValueError: If the agent would have to follow the game, or no record has the hand that is asked for.
        agents.match.AgentError: If the agent plays an illegal action.
        gin_env.record.RecordError: If the moves of a record cannot be played.
    """
    settings = settings or Settings()
    if hasattr(agent, "follow"):
        raise ValueError(f"{agent.name} would have to follow the game from its beginning; expected another agent")
    longest = max((len(record.hands) for _, record in records), default=0)
    if settings.hand is not None and settings.hand > longest:
        raise ValueError(f"there is no hand {settings.hand}; the longest record has {longest}")
    total = sum(len(hand.moves) for _, record in records for hand in _hands(record, settings.hand))
    stories = []
    seen = 0
    for line, record in records:
        story: Story = {"line": line} | tell(record, settings.seats)
        story["hands"] = [hand for hand in story["hands"] if settings.hand in (None, hand["number"])]
        decisions = {(number, place): (view, mask) for number, place, view, mask in _decisions(record, settings)}
        for hand in story["hands"]:
            for place, move in enumerate(hand["moves"]):
                found = decisions.get((hand["number"], place))
                number = np.uint64((hand["number"] << _HAND_SHIFT) + place)
                move["judged"] = None if found is None else judge(agent, *found, move["action"], number, settings)
                seen += 1
                if progress is not None:
                    progress(seen, total)
        if story["hands"]:
            stories.append(story)
    return {
        "agent": agent.name,
        "against": settings.against,
        "worlds": settings.worlds,
        "seed": settings.seed,
        "seats": list(settings.seats),
        "players": summarise(stories, settings.seats),
        "records": stories,
    }


def _hands(record: Record, hand: int | None) -> Iterable[Any]:
    return record.hands if hand is None else record.hands[hand - 1 : hand]


def _decisions(record: Record, settings: Settings) -> Iterator[tuple[int, int, View, np.ndarray]]:
    """Yields where there is something to judge: hand, from 1, place of the move, from 0, view (1,) and mask (1, A)."""
    number = 0
    for tables in engine.replay(record):
        t = tables[0]
        place = int(t["num_moves"])
        number += place == 0
        if place >= len(record.hands[number - 1].moves) or settings.hand not in (None, number):
            continue  # where the hand is over, or the record stops
        if t["mover"] in settings.seats and t["phase"] < DECLARE:
            mask = engine.legal(tables)
            if mask.sum() > 1:
                yield number, place, observe(tables), mask


def judge(
    agent: Agent, view: View, mask: np.ndarray, played: int, number: np.uint64, settings: Settings
) -> dict[str, Any]:
    """Judges one decision.

    Args:
        agent: Whose choice it is compared with.
        view: (1,) of the seat that moved.
        mask: (1, A) int8.
        played: What it played.
        number: Of the move in its record: with the seed it decides the worlds.
        settings: How.

    Returns:
        Plain values: ``choice`` of the agent, the ``best`` action found, ``loss`` and ``error`` of what was played in
        points (compared with either), ``chance`` and ``played_chance``, how likely the agent's policy plays its choice
        and what was played (None if it does not tell), mean ``points`` won after what was played, and all ``actions``
        with points, gain on what was played, and its error.

    Raises:
        agents.match.AgentError: If the agent plays an illegal action.
    """
    choice, chances = _ask(agent, view, mask, _key(settings.seed, _KEYS, number))
    worlds = settings.worlds
    key = _key(settings.seed, _MEASURE, number)
    if settings.against == "best":
        other = weigh(view, mask, played, worlds=worlds - worlds // 2, seed=_key(settings.seed, _CHOOSE, number))
        found = weigh(view, mask, played, worlds=worlds // 2, seed=key)
        best = max(other, key=lambda one: one.gain).action
    else:
        found = weigh(view, mask, played, worlds=worlds, seed=key)
        best = max(found, key=lambda one: one.gain).action  # of equals the one that was played
    by_action = {one.action: one for one in found}
    compared = by_action[best if settings.against == "best" else choice]
    return {
        "choice": choice,
        "choice_move": move_text(choice),
        "chance": None if chances is None else float(chances[choice]),
        "played_chance": None if chances is None else float(chances[played]),
        "best": best,
        "best_move": move_text(best),
        "loss": compared.gain,
        "error": compared.error,
        "points": by_action[played].points,
        "actions": [
            {"action": one.action, "move": move_text(one.action), "points": one.points, "gain": one.gain}
            | {"error": one.error}
            for one in found
        ],
    }


def _key(seed: int, stream: np.uint64, number: np.uint64) -> int:
    return int(engine.mix_keys(seed, np.array([stream + number], dtype=np.uint64))[0])


def _ask(agent: Agent, view: View, mask: np.ndarray, key: int) -> tuple[int, np.ndarray | None]:
    """Returns what the agent plays and, if it tells, how likely its policy plays each action."""
    action = int(agent.act(view, mask.copy(), np.array([key], dtype=np.uint64))[0])
    if not (0 <= action < mask.shape[1] and mask[0, action]):
        legal = ", ".join(action_name(int(one)) for one in np.flatnonzero(mask[0]))
        raise AgentError(f"agent {agent.name!r} played action {action}, which is illegal there; legal: {legal}")
    told: Any = agent
    if not hasattr(told, "probabilities"):
        return action, None
    if not hasattr(told, "sample"):
        return action, told.probabilities(view, mask)[0]
    # One that plays its likeliest action tells its policy only while it samples.
    before, told.sample = told.sample, True
    try:
        return action, told.probabilities(view, mask)[0]
    finally:
        told.sample = before


# ---------------------------------------------------------------------------------------------------------- summaries


def names(story: Mapping[str, Any]) -> tuple[str, str]:
    """Returns what to call the seats of a record: by the players that its comment names, if they differ, else by seat.

    Such comments are those that `ginrummy match` and `ginrummy play` write: "..., seat 0 NAME, seat 1 NAME".
    """
    found = re.search(r"\bseat 0 (.+), seat 1 (.+?)(, practice|, moves taken back|, \S+ forfeited|$)", story["comment"])
    if found is None or found[1] == found[2]:
        return "seat 0", "seat 1"
    return found[1], found[2]


def summarise(stories: Iterable[Mapping[str, Any]], seats: Collection[int] = (0, 1)) -> list[dict[str, Any]]:
    """Adds up what was judged, for each player.

    They go by name where the comments of the records say who sat where (`names`), else by seat.

    Args:
        stories: The records that `analyse` returns.
        seats: Those that were judged.

    Returns:
        For each the ``player``, its ``hands``, the moves ``judged``, how many of them ``agreed`` with the agent and
        which share (``agreement``), the loss in points by move (``loss``) and by hand (``loss_per_hand``) with their
        standard errors (``error``, ``error_per_hand``), and its dearest moves (``worst``). None where nothing was
        judged.
    """
    players: dict[str, list[dict[str, Any]]] = {}
    hands: dict[str, int] = {}
    for story in stories:
        for seat, name in enumerate(names(story)):
            if seat not in seats:
                continue
            moves = players.setdefault(name, [])
            hands[name] = hands.get(name, 0) + len(story["hands"])
            for hand in story["hands"]:
                for move in hand["moves"]:
                    if move["seat"] == seat and move["judged"] is not None:
                        moves.append(move | {"line": story["line"], "hand": hand["number"], "player": name})
    return [_summary(name, hands[name], moves) for name, moves in players.items()]


def _summary(name: str, hands: int, moves: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    judged = [move["judged"] for move in moves]
    agreed = sum(move["judged"]["choice"] == move["action"] for move in moves)
    loss = math.fsum(one["loss"] for one in judged)
    error = math.sqrt(math.fsum(one["error"] ** 2 for one in judged))
    count = len(judged)
    return {
        "player": name,
        "hands": hands,
        "judged": count,
        "agreed": agreed,
        "agreement": agreed / count if count else None,
        "loss": loss / count if count else None,
        "error": error / count if count else None,
        "loss_per_hand": loss / hands if count else None,
        "error_per_hand": error / hands if count else None,
        "worst": dearest(moves, DEAREST),
    }


def dearest(moves: Iterable[Mapping[str, Any]], size: int) -> list[dict[str, Any]]:
    """Returns the moves that lost most, the dearest first, of those that lost anything.

    Args:
        moves: With ``line``, ``hand``, ``player`` and what `analyse` tells of a move.
        size: How many at most.
    """
    lost = [move for move in moves if move["judged"] is not None and move["judged"]["loss"] > 0]
    lost.sort(key=lambda move: (-move["judged"]["loss"], move["line"], move["hand"], move["number"]))
    kept = ("line", "hand", "player", "number", "seat", "action", "move")
    told = ("choice", "choice_move", "best", "best_move", "loss", "error")
    return [{name: move[name] for name in kept} | {name: move["judged"][name] for name in told} for move in lost[:size]]


def all_moves(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the moves of all records with line, number of the hand and player of each, for `dearest`."""
    return [
        move | {"line": story["line"], "hand": hand["number"], "player": names(story)[move["seat"]]}
        for story in result["records"]
        for hand in story["hands"]
        for move in hand["moves"]
    ]


# -------------------------------------------------------------------------------------------------------- for people


def print_analysis(result: Mapping[str, Any], console: Console, worst: int | None = None) -> None:
    """Prints what `analyse` returned: every move, or only so many of the dearest, and the summary.

    Args:
        result: The analysis.
        console: Where to.
        worst: How many; None for every move.
    """

    def say(*parts: str | Text, style: str = "") -> None:
        console.print(Text.assemble(*parts, style=style), soft_wrap=True, highlight=False)

    if worst is None:
        for story in result["records"]:
            say(f"line {story['line']}: {heading(story)}", style="bold")
            for hand in story["hands"]:
                for line in opening_lines(story, hand):
                    say(*line)
                console.print(moves_table(result, hand))
                for line in ending_lines(story, hand) if hand["result"] else ():
                    say(*line)
            say()
    console.print(summary_table(result))
    if worst is None:
        listed = [move for player in result["players"] for move in player["worst"]]
    else:
        listed = dearest(all_moves(result), worst)
    if listed:
        console.print(worst_table(result, listed))
    other = "the best action found" if result["against"] == "best" else f"{result['agent']}'s choice"
    say(
        f"Loss: points by which {other} did better than what was played in {result['worlds']:,} sampled worlds, "
        "played out by simple rules, with its standard error. Negative: what was played did better.",
        style="dim",
    )


def _versus(result: Mapping[str, Any]) -> tuple[str, str]:
    """The title of the column with what a move is compared with, and its field."""
    return ("best found", "best") if result["against"] == "best" else (str(result["agent"]), "choice")


def _loss(one: Mapping[str, Any], same: bool) -> Text:
    if same:
        return Text("0", style="dim")
    clear = abs(one["loss"]) > _CLEAR * one["error"]
    style = "" if not clear else "bold red" if one["loss"] > 0 else "green"
    return Text(f"{one['loss']:+z.1f} ± {one['error']:.1f}", style=style)


def moves_table(result: Mapping[str, Any], hand: Mapping[str, Any]) -> Table:
    """Returns the table of the moves of a hand."""
    title, field = _versus(result)
    told = any(move["judged"] and move["judged"]["chance"] is not None for move in hand["moves"])
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", justify="right")
    table.add_column("seat")
    table.add_column("played", no_wrap=True)
    table.add_column(Text(title), no_wrap=True)
    if told:
        table.add_column(Text("likely" if field == "choice" else f"by {result['agent']}"), justify="right")
    table.add_column("points", justify="right")
    table.add_column("loss", justify="right", no_wrap=True)
    for move in hand["moves"]:
        one = move["judged"]
        cells: list[str | Text] = [str(move["number"]), str(move["seat"]), Text.assemble(*move_words(move))]
        if one is not None:
            same = one[field] == move["action"]
            cells.append(Text(move_words_text(one[field]), style="dim" if same else ""))
            if told:
                # What was played, and before it the agent's choice where that is another.
                chances = dict.fromkeys((one["choice"], move["action"]))
                by = {one["choice"]: one["chance"], move["action"]: one["played_chance"]}
                cells.append(", ".join(f"{by[action]:.0%}" for action in chances))
            cells += [f"{one['points']:+z.1f}", _loss(one, same)]
        table.add_row(*cells, style="dim" if one is None else "")
    return table


def summary_table(result: Mapping[str, Any]) -> Table:
    """Returns the table of the players."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for title in ("hands", "judged", "agrees", "loss a move", "loss a hand"):
        table.add_column(title, justify="right", no_wrap=True)
    for player in result["players"]:
        cells = ["-"] * 3
        if player["judged"]:
            cells = [
                f"{player['agreement']:.1%}",
                f"{player['loss']:+z.2f} ± {player['error']:.2f}",
                f"{player['loss_per_hand']:+z.1f} ± {player['error_per_hand']:.1f}",
            ]
        table.add_row(Text(player["player"]), f"{player['hands']:,}", f"{player['judged']:,}", *cells)
    return table


def worst_table(result: Mapping[str, Any], moves: Iterable[Mapping[str, Any]]) -> Table:
    """Returns the table of some dear moves."""
    title, field = _versus(result)
    table = Table(title="the dearest moves", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in ("line", "hand", "move"):
        table.add_column(name, justify="right")
    table.add_column("by")
    table.add_column("played", no_wrap=True)
    table.add_column(Text(title), no_wrap=True)
    table.add_column("loss", justify="right", no_wrap=True)
    for move in moves:
        places = (str(move["line"]), str(move["hand"]), str(move["number"]), Text(move["player"]))
        words = (move_words_text(move["action"]), move_words_text(move[field]))
        table.add_row(*places, *words, _loss(move, move[field] == move["action"]))
    return table
