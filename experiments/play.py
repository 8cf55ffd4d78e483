"""A person at the terminal against a player. Text in, text out: it works on a screen and in a pipe."""

import datetime
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import agents
from agents.base import Agent
from agents.match import AGENT_STREAM, AgentError
from experiments.files import append_line
from experiments.prompt import (
    HELP,
    PRACTICE_HELP,
    cards_text,
    coloured,
    hint_lines,
    move_text,
    options,
    read_move,
    view_table,
)
from gin_env import engine
from gin_env.actions import TAKE
from gin_env.engine import EPISODE_ENDED, GOING_ON, NO_ACTION
from gin_env.melds import arrange
from gin_env.record import HandRecord, Record, hand_record
from gin_env.render import card_text
from gin_env.rules import Rules
from gin_env.tables import OVER, Tables
from gin_env.view import View, observe


class Quit(Exception):
    """The person has had enough."""


# ---------------------------------------------------------------------------------------------------------------- game


class Game:
    """A hand or a match between a person and an agent.

    Args:
        agent: The agent.
        rules: What is played.
        number: Of the game; game n of a seed has the cards of deal n of `agents.match.play_games`.
        match: Whether hands go on to the rules' target.
        seed: Decides the cards and the agent's random keys.
        seat: The person's.
    """

    def __init__(self, agent: Agent, rules: Rules, number: int, *, match: bool, seed: int, seat: int) -> None:
        self.agent, self.rules, self.number, self.match, self.seat = agent, rules, number, match, seat
        self.tables = engine.new_tables(rules, 1, seed=seed, first=number, match=match)
        self.forfeited = False  # by the agent
        self.hands: list[HandRecord] = []  # that are over
        self.taken_back = 0
        self._past: list[Tables] = []  # this hand at the person's decisions
        self._stream = int(engine.mix_keys(seed, np.array([AGENT_STREAM], dtype=np.uint64))[0])
        self._tell(NO_ACTION)

    @property
    def table(self) -> np.void:
        """The table as it is."""
        return self.tables[0]

    @property
    def to_move(self) -> bool:
        """Whether the person is to move."""
        return bool(self.table["phase"] != OVER and self.table["mover"] == self.seat)

    def view(self) -> View:
        """The person's view, (1,)."""
        return observe(self.tables, self.seat)

    def decision(self) -> tuple[View, np.ndarray, np.ndarray]:
        """What the mover decides on: view (1,), mask (1, A) and random key (1,)."""
        return observe(self.tables), engine.legal(self.tables), engine.decision_keys(self._stream, self.tables)

    def remember(self) -> None:
        """Keeps the table at a decision of the person, for `take_back`."""
        if not self._past or self._past[-1]["num_moves"][0] != self.table["num_moves"]:
            self._past.append(self.tables.copy())

    def take_back(self) -> bool:
        """Goes back to the person's decision before this one, in this hand; says whether there was one."""
        if len(self._past) < 2:
            return False
        self._past.pop()
        self.tables[:] = self._past[-1]
        self.taken_back += 1
        return True

    def play(self, action: int) -> int:
        """Plays an action of the mover; returns how the table stands, as `gin_env.engine.step` does."""
        over = int(engine.step(self.tables, [action])[1][0])
        self._tell(action)
        if over != GOING_ON:
            self.hands.append(hand_record(self.tables))
        return over

    def move_of_agent(self) -> int:
        """Returns the agent's action, or -1 if it forfeits.

        Raises:
            AgentError: If it is illegal.
        """
        view, mask, key = self.decision()
        action = int(self.agent.act(view, mask.copy(), key)[0])
        if action != NO_ACTION and not (0 <= action < mask.shape[1] and mask[0, action]):
            raise AgentError(f"agent {self.agent.name!r} played action {action}, which is illegal there")
        return action

    def deal(self) -> None:
        """Deals the next hand of a match."""
        engine.deal(self.tables)
        self._past = []
        self._tell(NO_ACTION)

    def record(self, comment: str) -> Record | None:
        """Returns what has been played so far, or None if nothing has."""
        hands = list(self.hands)
        if self.table["num_moves"] and len(hands) == self.table["hand_number"]:
            hands.append(hand_record(self.tables))
        return Record(self.rules, self.match, tuple(hands), comment) if hands else None

    def _tell(self, action: int) -> None:
        follow: Callable[..., None] | None = getattr(self.agent, "follow", None)
        if follow is not None:
            follow(observe(self.tables, 1 - self.seat), np.array([self.number]), np.array([action]))


# ------------------------------------------------------------------------------------------------------------ terminal


class Terminal:
    """Plays games at a terminal, counts them and writes them down.

    Args:
        agent: The opponent.
        adviser: Makes who gives hints, when one is asked for; raises ValueError if nobody can.
        console: Where to print.
        ask: Prints a prompt and returns a line; raises EOFError at the end of the input.
        practice: Whether moves may be taken back and the opponent's cards be seen.
        record: File of the records, which are appended to it.
    """

    def __init__(
        self,
        agent: Agent,
        adviser: Callable[[], Agent],
        *,
        console: Console,
        ask: Callable[[str], str],
        practice: bool,
        record: Path,
    ) -> None:
        self.agent, self.console, self.ask = agent, console, ask
        self.practice, self.file = practice, record
        self.name = " ".join(agent.name.split())
        self.points = [0, 0]  # of the person and the agent
        self.won = [0, 0]  # games
        self.games = 0
        self._make_adviser = adviser
        self._adviser: Agent | None = None
        self._running: tuple[Game, str] | None = None  # with its comment
        self._lines: list[int] = []  # of the file

    def say(self, text: str, style: str = "") -> None:
        """Prints a line."""
        self.console.print(coloured(text, style), soft_wrap=True, highlight=False)

    def play(self, game: Game, comment: str) -> None:
        """Plays a game to its end, or to that of the input, and writes it down.

        Raises:
            Quit: If the person wants to.
            EOFError: At the end of the input.
        """
        self._running = game, comment
        self._play(game)
        self.write()
        self.games += 1

    def write(self) -> None:
        """Writes down the game that is played, as far as it is."""
        if self._running is None:
            return
        game, comment = self._running
        comment += ", practice" if self.practice else ""
        comment += f", moves taken back: {game.taken_back}" if game.taken_back else ""
        comment += f", {self.name} forfeited" if game.forfeited else ""
        record = game.record(comment)
        if record is not None:
            self._lines.append(append_line(self.file, record.line()))
        self._running = None

    def _play(self, game: Game) -> None:
        over = GOING_ON
        while over != EPISODE_ENDED:
            if over != GOING_ON:
                game.deal()
            over = self._play_hand(game)
            if game.forfeited:
                incident = getattr(self.agent, "last_incident", "")
                self.say(f"{self.name} forfeits the game" + (f": {incident}" if incident else ""), "bold yellow")
                self.won[0] += 1
                return
            points = int(game.view()["own_points"][0])
            self.points[points < 0] += abs(points)
            self.console.print(view_table(game.view()[0], self.name))
        winner = int(game.table["match_winner" if game.match else "winner"])
        if winner >= 0:
            self.won[winner != game.seat] += 1
        if game.match:
            self.say("you win the match" if winner == game.seat else f"{self.name} wins the match", "bold")

    def _play_hand(self, game: Game) -> int:
        self.say(f"{'you deal' if game.table['dealer'] == game.seat else f'{self.name} deals'}", "dim")
        over = GOING_ON
        while over == GOING_ON:
            if game.to_move:
                over = game.play(self._decide(game))
                continue
            top = int(game.view()["upcard"][0])
            with self.console.status(f"{self.name} is thinking"):
                action = game.move_of_agent()
            if action == NO_ACTION:
                game.forfeited = True
                return EPISODE_ENDED
            over = game.play(action)
            self.say(f"{self.name}: {move_text(action)}" + (f" {card_text(top)}" if action == TAKE else ""))
        return over

    def _decide(self, game: Game) -> int:
        game.remember()
        self.console.print(view_table(game.view()[0], self.name))
        while True:
            view, mask, key = game.decision()
            legal = np.flatnonzero(mask[0]).tolist()
            text = " ".join(self.ask(f"{options(view[0], legal)} > ").split())
            command = text.lower()
            if command == "?":
                self.say(HELP + (PRACTICE_HELP if self.practice else ""))
            elif command == "":
                self.console.print(view_table(view[0], self.name))
            elif command == "q":
                if self.ask("quit? y or n > ").strip().lower() in ("y", "yes"):
                    raise Quit
            elif command == "h":
                self._hint(view, mask, key)
            elif command in ("u", "o") and not self.practice:
                self.say("only with --practice", "yellow")
            elif command == "o":
                self._open(game)
            elif command == "u":
                self._take_back(game)
            else:
                try:
                    return read_move(text, view[0], legal)
                except ValueError as error:
                    self.say(str(error), "yellow")

    def _hint(self, view: View, mask: np.ndarray, key: np.ndarray) -> None:
        try:
            self._adviser = self._adviser or self._make_adviser()
            lines = hint_lines(self._adviser, view, mask, key)
        except ValueError as error:
            self.say(str(error), "yellow")
            return
        for line in lines:
            self.say(line, "cyan")

    def _open(self, game: Game) -> None:
        cards = int(game.table["hands"][1 - game.seat])
        melds = [int(meld) for meld in arrange(np.array([cards], dtype=np.uint64), game.rules.pack).melds[0]]
        shown = [f"[{cards_text(meld)}]" for meld in melds if meld] + [cards_text(cards & ~sum(melds))]
        self.say(f"{self.name} holds {' '.join(shown)}", "cyan")

    def _take_back(self, game: Game) -> None:
        if hasattr(self.agent, "follow"):
            self.say(f"{self.name} follows the game, and cannot be told that a move was taken back", "yellow")
        elif game.take_back():
            self.say("taken back", "cyan")
            self.console.print(view_table(game.view()[0], self.name))
        else:
            self.say("there is nothing to take back in this hand", "yellow")

    def summary(self) -> None:
        """Says how it went, and where it is written."""
        if self.games:
            played = f"{self.games} {'game' if self.games == 1 else 'games'}"
            self.say(
                f"{played}: you won {self.won[0]} and {self.points[0]} points, "
                f"{self.name} {self.won[1]} and {self.points[1]}",
                "bold",
            )
        if self._lines:
            again = f"ginrummy replay {self.file} --line {self._lines[-1]}"
            self.say(f"written to {self.file}; see it again: {again}", "dim")
        else:
            self.say("nothing was played", "dim")


# ---------------------------------------------------------------------------------------------------------- the command


def play(
    spec: str,
    *,
    rules: Rules,
    match: bool,
    hands: int | None,
    seed: int,
    seat: int,
    practice: bool,
    adviser: str | None,
    record: Path | None,
    console: Console,
    ask: Callable[[str], str],
) -> None:
    """Plays at the terminal until the games, the input or the person's patience end.

    Args:
        spec: The opponent, for `agents.make`.
        rules: What is played.
        match: Whether to play a match to the rules' target instead of hands.
        hands: Hands to play; None asks after each.
        seed: Decides the cards and the opponent's random choices.
        seat: The person's.
        practice: Whether moves may be taken back and the opponent's cards be seen.
        adviser: Who gives hints, for `agents.make`; by default the opponent.
        record: File that the records are appended to; by default games/ and the date.
        console: Where to print.
        ask: Prints a prompt and returns a line; raises EOFError at the end of the input.

    Raises:
        ValueError: If an argument does not fit.
        OSError: If the file cannot be written.
    """
    if match and (hands is not None or rules.target is None):
        raise ValueError("hands are counted without a match" if hands is not None else f"{rules.text!r} has no target")
    if hands is not None and hands < 1:
        raise ValueError(f"hands is {hands}; expected at least 1")
    today = datetime.datetime.now()
    file = Path("games") / f"{today:%Y-%m-%d}.txt" if record is None else record
    append_line(file, None)
    opponent = agents.make(spec)
    terminal = Terminal(
        opponent,
        lambda: _make_adviser(adviser or spec),
        console=console,
        ask=ask,
        practice=practice,
        record=file,
    )
    names = ("you", terminal.name) if seat == 0 else (terminal.name, "you")

    def play_games() -> None:
        for number in count():
            if hands == number or (match and number):
                return
            if number and hands is None and ask("another hand? y or n > ").strip().lower() in ("n", "no", "q"):
                return
            game = Game(opponent, rules, number, match=match, seed=seed, seat=seat)
            comment = f"{today:%Y-%m-%d %H:%M}, seed {seed}, game {number}: seat 0 {names[0]}, seat 1 {names[1]}"
            terminal.play(game, comment)

    with _signals_interrupt() as no_more_signals:
        try:
            try:
                play_games()
            except (Quit, EOFError):
                console.print()
            finally:
                no_more_signals()
                terminal.write()
        finally:  # again, if a signal came before the first of these lines: where a terminal is lost, that is usual
            no_more_signals()
            terminal.write()
            close: Callable[[], None] | None = getattr(opponent, "close", None)
            if close is not None:
                close()
            terminal.summary()


def _make_adviser(spec: str) -> Agent:
    agent: Any = agents.make(spec)
    if hasattr(agent, "follow"):
        raise ValueError(f"{agent.name} gives no hints, for it would have to follow the game; see --hints")
    if hasattr(agent, "sample"):
        agent.sample = True  # so that it tells its policy and not only the likeliest action
    return agent


@contextmanager
def _signals_interrupt() -> Iterator[Callable[[], None]]:
    """Makes a termination request, and the loss of the terminal, the same as Ctrl-C: the game is written down.

    Yields:
        What makes all three be ignored until the end of the block.
    """

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        old = {number: signal.signal(number, interrupt) for number in numbers}
    except ValueError:  # not in the main thread, which alone gets signals
        yield lambda: None
        return

    def ignore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    try:
        yield ignore
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
