"""A program as a player, asked line by line over its standard input and output.

    agents.make("external:python my_bot.py")
    agents.make("external:timeout=5,restarts=2:./my_bot --fast")

`docs/guide/external.md` tells what is said, for whoever writes such a program. It can be in any language. The command
runs with the rights of whoever runs this process, as if typed into a shell: enter only programs that you trust.

Whatever the program does, the caller goes on. A program that stops, floods or is late loses the game it is in (its
action is -1; see ``forfeits`` of `agents.match.play_games`) and is ended and started again for the next one, a given
number of times. After an answer that is illegal or no answer at all it loses the game and stays.
"""

import os
import re
import shlex
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from agents.base import parse_options, register
from agents.laying import lay, meld_action
from agents.program import Program, Trouble
from gin_env.actions import DRAW, LAYOFF, MAX_MELDS, MELD, MELDS, PASS, TAKE, action_name, parse_action
from gin_env.cards import NUM_CARDS, card_name, cards_text, from_mask, parse_cards, to_mask
from gin_env.engine import NO_ACTION
from gin_env.rules import Rules, value_text
from gin_env.showdown import fitting
from gin_env.tables import DECLARE, DEFEND, ENDINGS, LAY_OFF, OVER, THROW, WALL_THROW
from gin_env.view import OWN, View

PROTOCOL = 1
# What can go wrong, as `ExternalAgent.incidents` counts it.
INCIDENTS = {
    "start": "it could not be started, or did not say that it is ready",
    "timeout": "it gave no answer in time",
    "exit": "it ended",
    "flood": "it wrote far more than an answer",
    "illegal": "it answered with what the rules do not allow then",
    "garbage": "it answered with what is no answer",
    "gone": "it had been started again as often as it may be; each game that it lost by that",
    "unasked": "it wrote a line without being asked; the line is dropped, and nothing else happens",
}


class _Options(NamedTuple):
    """How to treat a program.

    Attributes:
        timeout: Seconds for an answer.
        start: Seconds until it is ready, from its start.
        restarts: How often it is started again.
    """

    timeout: float = 10.0
    start: float = 30.0
    restarts: int = 10


@register("external", raw=True)
class ExternalAgent:
    """A program of your own, in any language: `external:COMMAND`.

    The command is written as for a shell but without its operators. Before it and a colon may stand options:
    ``timeout=SECONDS`` for an answer (10), ``start=SECONDS`` until it is ready (30) and ``restarts=NUMBER`` (10), as in
    ``external:timeout=5:python my_bot.py``. It plays one game at a time, and is told of everything that happens there;
    docs/guide/external.md says in what words. The command runs with your rights.

    Attributes:
        name: What the program calls itself.
        version: Likewise; may be empty.
        incidents: What went wrong so far, by kind (`INCIDENTS`).
        last_incident: The last of them in words, with the last words of the program's stderr.
    """

    max_games = 1
    _program: Program | None

    def __init__(self, spec: str = "") -> None:
        """Starts the program.

        Args:
            spec: The command, with the options before it: what follows ``external:``.

        Raises:
            ValueError: If the options are wrong, or the program cannot be started.
        """
        self._read(spec)
        self.name, self.version = "external", ""
        for attempts_left in (1, 0):
            try:
                self._program = self._start()
                break
            except Trouble as trouble:
                if not attempts_left:
                    raise ValueError(f"agent 'external:{spec}': {trouble}") from None

    def _read(self, spec: str) -> None:
        self._spec = spec
        self._words, self._options = _read_spec(spec)
        self.incidents: Counter[str] = Counter()
        self.last_incident = ""
        self._program = None
        self._restarts = self._options.restarts  # that are left
        self._game: int | None = None  # while it goes on
        self._hands = 0  # of the game
        self._playing = False  # a hand
        self._seen = np.empty(0)  # its last view, one row
        self._plan: list[int] = []  # melds that it has named and that are still to be laid
        self._auto = -1  # phase that it has left to us
        self._told_melds: set[int] = set()  # seats
        self._told_layoffs = 0  # cards

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy starts a program of its own, and not before its first game begins.
        return _copy, (self._spec, self.name, self.version)

    def close(self) -> None:
        """Ends the program. The next game starts it again, as after a crash."""
        program, self._program = self._program, None
        if program is not None:
            program.stop()

    def _start(self) -> Program:
        try:
            program = Program(self._words)
        except OSError as error:
            raise Trouble("start", f"{self._words[0]!r} cannot be run: {error.strerror or error}") from None
        said = ""
        try:
            program.send(f"protocol {PROTOCOL}")
            while True:
                said = program.receive(self._options.start)
                ready, protocol, *names = [*said.split(maxsplit=3), ""]
                if ready == "ready" and len(names) > 1:
                    if protocol != str(PROTOCOL):
                        raise Trouble("start", f"it speaks protocol {protocol}; expected {PROTOCOL}")
                    self.name, self.version = names[0], names[1].strip()
                    return program
        except Trouble as trouble:
            program.stop()
            what = str(trouble)
            if trouble.kind != "start":
                what += f"; expected 'ready {PROTOCOL} NAME VERSION'" + (
                    f", but it said {said[:200]!r}" if said else ""
                )
            raise Trouble("start", what + _quote(program)) from None

    def _fail(self, trouble: Trouble) -> None:
        """Counts what went wrong, and ends the program unless it only answered badly."""
        self.incidents[trouble.kind] += 1
        self.last_incident = str(trouble)
        program = self._program
        if program is not None and trouble.kind not in ("illegal", "garbage"):
            self.close()
            self.last_incident += _quote(program)

    # ------------------------------------------------------------------------------------------------------- questions

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        """See `agents.base.Agent.act`; one row at most.

        Returns:
            (N,) int64 action ids, -1 where the program is at fault.

        Raises:
            ValueError: If there is more than one row, or `follow` was not told how it came to this one.
        """
        if view.size > 1:
            raise ValueError(f"agent {self.name!r} is a program that plays one game at a time, not {view.size}")
        actions = [self._act(view, np.flatnonzero(mask[0]).tolist(), int(rng[0]))] if view.size else []
        return np.array(actions, dtype=np.int64)

    def _act(self, view: View, legal: list[int], key: int) -> int:
        if not self._playing or not np.array_equal(view, self._seen):
            raise ValueError(f"agent {self.name!r} is a program that must be told of every move (its `follow`)")
        if self._program is None:
            return NO_ACTION
        try:
            if self._plan:
                action = self._plan.pop(0)
            elif self._auto == view["phase"][0]:
                action = _laid(view)
            elif len(legal) == 1:
                action = legal[0]
            else:
                action = self._ask(self._program, view, legal, key)
            if action not in legal:
                raise Trouble("illegal", f"it played {action_name(action)!r}; legal: {_answers(legal)}")
        except Trouble as trouble:
            self._fail(trouble)
            return NO_ACTION
        return action

    def _ask(self, program: Program, view: View, legal: list[int], key: int) -> int:
        phase = int(view["phase"][0])
        unasked = program.drop_lines()
        if unasked:
            self.incidents["unasked"] += unasked
        program.send(f"key {key}")
        if phase in (DECLARE, DEFEND):
            program.send("ask melds auto")
        elif phase == LAY_OFF:
            program.send(f"ask layoff auto / {_answers(legal)}")
        else:
            program.send(f"ask {'throw' if phase in (THROW, WALL_THROW) else 'draw'} {_answers(legal)}")
        said = program.receive(self._options.timeout)
        answer = said.lower()
        if phase >= DECLARE and answer == "auto":
            self._auto = phase
            return _laid(view)
        try:
            if phase in (DECLARE, DEFEND) and answer.split()[0] == "melds":
                self._plan = [*_read_melds(answer.removeprefix("melds")), PASS]
                return self._plan.pop(0)
            return parse_action(answer)
        except ValueError as error:
            raise Trouble("garbage", f"it answered {said[:200]!r}: {error}") from None

    # --------------------------------------------------------------------------------------------------------- reports

    def follow(self, views: View, games: np.ndarray, actions: np.ndarray) -> None:
        """Tells the program what happened: see `agents.match.play_games`. It never raises."""
        for row in range(views.size):
            view = views[row : row + 1]
            self._follow(view, int(games[row]), int(actions[row]))
            self._seen = view.copy()

    def _follow(self, view: View, game: int, action: int) -> None:
        v = view[0]
        if action != NO_ACTION:
            self._tell_move(self._seen[0], v, action)
        elif self._playing and game == self._game and np.array_equal(view, self._seen):
            # Nothing was dealt: the mover has forfeited the game.
            mover = int(v["seat"]) ^ (not v["to_move"])
            self._tell(f"forfeit {mover}")
            self._finish_game(1 - mover)
        else:
            if game != self._game:
                self._begin_game(v, game)
            self._tell_deal(v)
        if self._playing and v["phase"] >= DECLARE:
            self._tell_showdown(v)

    def _tell(self, line: str) -> None:
        try:
            if self._program is not None:
                self._program.send(line)
        except Trouble as trouble:
            self._fail(trouble)

    def _begin_game(self, v: np.void, game: int) -> None:
        if self._game is not None:
            self._finish_game(None)
        self._game, self._hands = game, 0
        if self._program is not None and self._program.owner != os.getpid():
            self._program = None  # we are a fork of the process whose program it is
            self._restarts += 1
        if self._program is None:
            self._start_again()
        rules = Rules.from_row(v["rules"])
        fields = " ".join(f"{name}={value_text(value)}" for name, value in rules.to_dict().items() if name != "name")
        self._tell(f"game {game} seat {v['seat']} target {v['target']}")
        self._tell(f"rules {rules.name} {fields}")

    def _start_again(self) -> None:
        try:
            if not self._restarts:
                raise Trouble("gone", self.last_incident)
            self._restarts -= 1
            self._program = self._start()
        except Trouble as trouble:
            self._fail(trouble)

    def _finish_game(self, winner: int | None) -> None:
        self._game, self._playing = None, False
        self._tell(f"game-over {'-' if winner is None else winner}")

    def _tell_deal(self, v: np.void) -> None:
        self._playing = True
        self._hands += 1
        self._plan, self._auto = [], -1
        self._told_melds, self._told_layoffs = set(), 0
        seat, dealer = int(v["seat"]), int(v["seat"]) ^ (not v["is_dealer"])
        scores = _by_seat(seat, v["own_score"], v["opponent_score"])
        doubled = "yes" if v["doubled"] else "no"
        self._tell(f"hand {self._hands} dealer {dealer} limit {v['limit']} scores {scores} doubled {doubled}")
        self._tell(f"cards {cards_text(v['hand'])}")
        self._tell(f"upcard {card_name(int(v['upcard']))}")

    def _tell_move(self, before: np.void, v: np.void, action: int) -> None:
        own = bool(before["to_move"])
        mover = int(v["seat"]) ^ (not own)
        if action >= LAYOFF:
            meld, card = divmod(action - LAYOFF, NUM_CARDS)
            self._told_layoffs |= 1 << card
            self._tell(f"layoff {mover} {card_name(card)} {meld + 1}")
        elif before["phase"] < DECLARE:
            words = action_name(action)
            if action == TAKE:
                words += " " + card_name(int(before["upcard"]))
            elif action == DRAW and own:
                words += " " + card_name(int(v["drawn"]))
            self._tell(f"move {mover} {words}")

    def _tell_showdown(self, v: np.void) -> None:
        """Tells what has come onto the table, each thing once."""
        seat, over = int(v["seat"]), v["phase"] == OVER
        if v["knocker"] >= 0:
            own = v["knocker"] == OWN
            knocker, defender = (seat, 1 - seat) if own else (1 - seat, seat)
            if v["own_deadwood" if own else "opponent_deadwood"] >= 0:
                self._tell_melds(v, knocker)
            if over:
                self._tell_melds(v, defender, hand=False)
                knocker_melds = v["own_melds" if own else "opponent_melds"]
                for card, meld in _layoff_order(knocker_melds, v["layoffs"]):
                    if not self._told_layoffs >> card & 1:
                        self._tell(f"layoff {defender} {card_name(card)} {meld + 1}")
                self._tell(f"final {defender} {cards_text(v['opponent_known' if own else 'hand'])}")
        elif over:
            for one, cards in enumerate(_pair(seat, v["hand"], v["opponent_known"])):
                self._tell(f"final {one} {cards_text(cards)}")
        if over:
            points = int(v["own_points"])
            winner = seat if points > 0 else 1 - seat if points < 0 else None
            scores = _pair(seat, v["own_score"], v["opponent_score"])
            self._tell(f"deadwood {_by_seat(seat, v['own_deadwood'], v['opponent_deadwood'])}")
            self._tell(f"result {ENDINGS[v['ending']]} {'-' if winner is None else winner} {abs(points)}")
            self._tell(f"scores {scores[0]} {scores[1]}")
            self._playing = False
            if not v["target"] or max(scores) >= v["target"]:
                self._finish_game(winner)

    def _tell_melds(self, v: np.void, seat: int, hand: bool = True) -> None:
        if seat not in self._told_melds:
            self._told_melds.add(seat)
            own = seat == v["seat"]
            melds = [cards_text(meld) for meld in v["own_melds" if own else "opponent_melds"] if meld]
            self._tell(f"melds {seat} {' / '.join(melds)}".rstrip())
            if hand:
                self._tell(f"final {seat} {cards_text(v['hand' if own else 'opponent_known'])}")


def _copy(spec: str, name: str, version: str) -> ExternalAgent:
    """Returns an agent whose program has been started before, elsewhere; nothing is started yet."""
    agent = ExternalAgent.__new__(ExternalAgent)
    agent._read(spec)
    agent.name, agent.version = name, version
    agent._restarts += 1  # the first start is none
    return agent


def _read_spec(spec: str) -> tuple[list[str], _Options]:
    """Returns the words of the command, and the options before it.

    Raises:
        ValueError: If it is not of the form.
    """
    whole, command = f"external:{spec}", spec
    options: dict[str, Any] = {}
    if re.match(r"\w+=[^\s:]*:", spec):
        head, _, command = spec.partition(":")
        options = parse_options(whole, head)
    for name, value in options.items():
        if name not in _Options._fields:
            raise ValueError(f"agent {whole!r}: there is no option {name!r}; expected {', '.join(_Options._fields)}")
        if name == "restarts" and (type(value) is not int or value < 0):
            raise ValueError(f"agent {whole!r}: restarts is {value}; expected a whole number, 0 or more")
        if name != "restarts" and value <= 0:
            raise ValueError(f"agent {whole!r}: {name} is {value}; expected seconds, more than 0")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"agent {whole!r}: the command cannot be read: {error}") from None
    if not words:
        raise ValueError(f"agent {whole!r} lacks the command; expected external:COMMAND, such as external:./my_bot")
    if os.name != "posix":
        raise ValueError(f"agent {whole!r}: programs can play on Linux and macOS only")
    return words, _Options(**options)


def _read_melds(text: str) -> list[int]:
    """Returns the actions that lay melds written as ``7H 8H 9H / TS TD TC``; a long run is laid in parts.

    Raises:
        ValueError: If they are no melds.
    """
    actions = []
    for part in filter(None, map(str.strip, text.split("/"))):
        rest = to_mask(parse_cards(part))
        while rest:
            action = int(meld_action(np.uint64(rest)))
            if action == PASS:
                raise ValueError(f"{part!r} is no meld")
            actions.append(action)
            rest &= ~int(MELDS[action - MELD])
    return actions


def _laid(view: View) -> int:
    return int(lay(view, np.zeros(1, dtype=np.int64))[0])


def _answers(legal: list[int]) -> str:
    return " / ".join(action_name(action) for action in legal)


def _pair(seat: int, own: Any, opponent: Any) -> tuple[int, int]:
    """What the owner of a seat and its opponent have, by seat."""
    return (int(own), int(opponent)) if seat == 0 else (int(opponent), int(own))


def _by_seat(seat: int, own: Any, opponent: Any) -> str:
    return "{} {}".format(*_pair(seat, own, opponent))


def _layoff_order(melds: np.ndarray, layoffs: np.ndarray) -> list[tuple[int, int]]:
    """The cards laid off and the numbers of their melds, each where it fits when its turn comes."""
    order = []
    for number in range(MAX_MELDS):
        meld, rest = int(melds[number]), int(layoffs[number])
        while rest:
            card = from_mask(rest & int(fitting(np.uint64(meld))))[0]
            order.append((card, number))
            meld |= 1 << card
            rest &= ~(1 << card)
    return order


def _quote(program: Program) -> str:
    words = program.last_words()
    return f"; its stderr ends: {words}" if words else ""
