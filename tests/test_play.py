"""A person at the terminal: what may be typed, whole games, hints, taking back, and the file of records."""

import io
import os
import random
import re
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import agents
from agents.match import play_match
from experiments import play as playing
from experiments.cli import main
from experiments.files import append_line
from experiments.play import Game
from experiments.prompt import HELP, PRACTICE_HELP, hint_lines, options, outs, read_move, view_table
from gin_env import engine
from gin_env.actions import BIG_GIN, DISCARD, DRAW, KNOCK, PASS, TAKE, action_name, parse_action
from gin_env.cards import card_name, parse_card, parse_cards, to_mask
from gin_env.record import Record, read_records
from gin_env.rules import as_rules, preset
from gin_env.tables import Tables
from gin_env.view import observe
from tests.reference import DECK
from tests.reference_engine import stacked_deck
from tests.test_agents import keys
from tests.test_cli import NO_TORCH, run
from tests.test_external import bot
from tests.test_render import knocked


class Person:
    """Types what it is told to, then what an agent would play, if there is one, in changing forms."""

    def __init__(self, lines: Iterable[str] = (), agent: str | None = None) -> None:
        self.lines = list(lines)
        self.agent = None if agent is None else agents.make(agent)
        self.games: list[Game] = []
        self.prompts: list[str] = []
        self.rng = random.Random(2)

    def ask(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if self.lines:
            return self.lines.pop(0)
        if self.agent is None:
            raise EOFError
        view, mask, key = self.games[-1].decision()
        return typed(int(self.agent.act(view, mask, key)[0]), self.rng)


def typed(action: int, rng: random.Random) -> str:
    """Returns something that stands for an action."""
    words = action_name(action).replace("T", "10").split()
    cards = " ".join(words[1:])
    short = {
        "pass": ["p"],
        "draw": ["d", "D"],
        "take": ["t"],
        "discard": [cards.lower(), cards],
        "knock": [f"k {cards}", f"k{cards.lower()}"],
        "big-gin": ["g", "gin"],
        "meld": [f"m {cards.lower()}"],
        "layoff": [f"l {cards}"],
    }
    return rng.choice([*short[words[0]], " ".join(words)])


Start = Callable[..., tuple[str, list[Record]]]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Plays, and returns what was printed and recorded."""

    def go(person: Person, spec: str = "gin-only", **options: Any) -> tuple[str, list[Record]]:
        class Watched(Game):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                person.games.append(self)

        monkeypatch.setattr(playing, "Game", Watched)
        out = io.StringIO()
        wanted = {"rules": "cardpuzzle", "match": False, "hands": None, "seed": 7, "seat": 0, "practice": False}
        wanted |= {"adviser": None, "record": tmp_path / "games.txt"} | options
        wanted["rules"] = as_rules(wanted["rules"])
        try:
            playing.play(spec, console=Console(file=out, width=110), ask=person.ask, **wanted)
        finally:
            go.out = out.getvalue()  # type: ignore[attr-defined]
        path = tmp_path / "games.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return out.getvalue(), [record for _, record in read_records(lines)]

    return go


# --------------------------------------------------------------------------------------------------------- whole games


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("rules", ["cardpuzzle", "eaai", "openspiel", "plus20:oklahoma=true,double_spades=all"])
def test_hands_are_those_of_a_match(rules: str, seat: int, start: Start) -> None:
    """A person who plays like greedy plays greedy's hands, whatever it types."""
    out, records = start(Person(agent="greedy"), hands=4, rules=rules, seat=seat)
    expected: list[Record] = []
    play_match(agents.make("greedy"), agents.make("gin-only"), deals=4, seed=7, rules=rules, record=expected.append)
    assert [record.hands for record in records] == [record.hands for record in expected[seat::2]]
    points, won = [0, 0], [0, 0]
    for record in records:
        *_, tables = engine.replay(record)
        winner = int(tables["winner"][0])
        if winner >= 0:
            points[winner ^ seat] += int(tables["points"][0])
            won[winner ^ seat] += 1
    assert f"4 games: you won {won[0]} and {points[0]} points, gin-only {won[1]} and {points[1]}\n" in out
    assert out.count("result ") == 4
    names = ("you", "gin-only") if seat == 0 else ("gin-only", "you")
    assert f"game 3: seat 0 {names[0]}, seat 1 {names[1]}" in records[3].comment
    assert not re.search("you may not|understood", out)


def test_a_match(start: Start) -> None:
    out, records = start(Person(agent="greedy"), "random", match=True, rules="luciano:target=200", seat=1)
    (record,) = records
    assert record.match
    *_, tables = engine.replay(record)
    assert tables["match_winner"][0] == 1
    assert len(record.hands) > 1
    assert out.count("result ") == len(record.hands)
    assert "you win the match" in out
    assert "1 game: you won 1 and " in out
    assert re.search(r"│ score +│ you 0, opponent 0, to 200 ", out)


def test_asks_for_another_hand(start: Start) -> None:
    class Twice(Person):
        def ask(self, prompt: str) -> str:
            if prompt.startswith("another hand"):
                self.prompts.append(prompt)
                return "n" if len(self.games) == 2 else ""
            return super().ask(prompt)

    _, records = start(Twice(agent="greedy"))
    assert len(records) == 2
    assert records[0].hands[0].deck != records[1].hands[0].deck


def test_through_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("h\np\n?\nq\nno\nq\ny\n"))
    assert main(["play", "greedy", "--seed", "3", "--seat", "1"]) == 0
    out = capsys.readouterr().out
    assert "greedy would take\n" in out
    assert HELP.splitlines()[0] in out
    (path,) = (tmp_path / "games").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d\.txt", path.name)
    assert f"ginrummy replay games/{path.name} --line 1" in out
    assert main(["replay", str(path)]) == 0
    assert "seat 1  passes" in capsys.readouterr().out


def test_in_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "games.txt"
    words = ("play", "greedy", "--seed", "3", "--rules", "openspiel", "--record", str(path))
    done = run(*words, code=NO_TORCH, input="d\np\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "you may not draw now; t take 5♠, p pass" in done.stdout
    assert "p pass > p\n" in done.stdout
    *_, tables = engine.replay(path.read_text().strip())
    assert tables["num_moves"][0] >= 1


# ------------------------------------------------------------------------------------------------------ what is typed


def position(hand: str, upcard: str = "2C", *moves: str, rules: str = "cardpuzzle") -> Tables:
    """Returns a table at which seat 0 has some cards and moves, after some moves."""
    cards = parse_cards(hand)
    top = parse_card(upcard)
    others = [card for card in DECK if card not in {*cards, top}]
    tables = engine.new_tables(rules, 1)
    engine.deal(tables, decks=[stacked_deck(DECK, cards, others[:10], [top])], dealers=[1])
    for move in moves:
        engine.step(tables, [parse_action(move)])
    return tables


def read(tables: Tables, text: str) -> int:
    return read_move(text, observe(tables)[0], engine.legal_actions(tables))


GIN = "4H 5H 6H 7S 7D 7C JS JD JC KH"


@pytest.mark.parametrize(
    ("moves", "text", "action"),
    [
        ((), "t", TAKE),
        ((), " Take ", TAKE),
        ((), "p", PASS),
        (("pass", "pass"), "d", DRAW),
        (("take",), "kh", DISCARD + parse_card("KH")),
        (("take",), "discard kh", DISCARD + parse_card("KH")),
        (("take",), "k kh", KNOCK + parse_card("KH")),
        (("take",), "kKH", KNOCK + parse_card("KH")),
        (("take",), "K k♥", KNOCK + parse_card("KH")),
        (("take",), "knock kh", KNOCK + parse_card("KH")),
    ],
)
def test_moves(moves: tuple[str, ...], text: str, action: int) -> None:
    assert read(position(GIN, "2C", *moves), text) == action


def test_gin_without_a_card() -> None:
    # The seven of hearts lengthens the run, so that the king goes.
    assert read(position(GIN, "7H", "take"), "g") == KNOCK + parse_card("KH")
    assert read(position("4H 5H 6H 7S 7D 7C JS JD JC 8H", "7H", "take"), "gin") == BIG_GIN
    with pytest.raises(ValueError, match="^that is not gin; a card to throw, knock: k kh \\(2\\)"):
        read(position(GIN, "2C", "take"), "g")


@pytest.mark.parametrize(
    ("moves", "text", "says"),
    [
        ((), "d", "you may not draw now; t take 2♣, p pass"),
        ((), "kh", "you may not discard KH now"),
        (("take",), "p", "you may not pass now"),
        (("take",), "3s", "you do not hold 3♠; a card to throw"),
        (("take",), "2c", "2♣ was taken from the pile in this turn and may not be thrown"),
        (("take",), "k 2c", "2♣ was taken from the pile in this turn"),
        (("take",), "k 4h", "without 4♥ you have 23, more than 10 to knock with"),
        (("take",), "k 3s", "you do not hold 3♠"),
        (("take",), "m 4h 5h 6h", "you may not meld 4H 5H 6H now"),
        (("take",), "l 4h 1", "you may not layoff 4H 1 now"),
        (("take",), "a", "'a' is not understood"),
        (("take",), "k", "'k' is not understood; a card to throw, knock: k kh (2); ? for help"),
        (("take",), "9", "'9' is not understood"),
        (("take",), "kh 4h", "'kh 4h' is not understood"),
        (("take",), "l", "'l' is not understood"),
        (("take",), "m", "'m' is not understood"),
        (("take",), "knock", "'knock' is not understood"),
        (("take",), "kkk", "'kkk' is not understood"),
    ],
)
def test_what_is_refused(moves: tuple[str, ...], text: str, says: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(says)):
        read(position(GIN, "2C", *moves), text)


def test_showdown_by_hand() -> None:
    tables = knocked()
    assert "m CARDS to lay a meld, a the best" in options(observe(tables)[0], engine.legal_actions(tables))
    assert action_name(read(tables, "m 7h 5h 6h")) == "meld 5H 6H 7H"
    assert action_name(read(tables, "a")).startswith("meld ")
    tables = knocked("meld 5H 6H 7H", "meld TS TD TC", "meld 2S 2D 2C", "pass")
    assert options(observe(tables)[0], engine.legal_actions(tables)) == "l 8h 1, l th 2, a the best, p done"
    assert action_name(read(tables, "l 8h")) == "layoff 8H 1"
    assert action_name(read(tables, "l 10h 2")) == "layoff TH 2"
    assert read(tables, "a") == PASS  # they are a run of their own
    assert read(tables, "p") == PASS
    with pytest.raises(ValueError, match="^you may not layoff KS 1 now; l 8h 1"):
        read(tables, "l ks")


def test_any_text_is_a_move_or_an_error() -> None:
    rng = random.Random(4)
    letters = "dtpkgmlah0123456789jqkasdhc ♥>/-"
    tables = [position(GIN, "2C", "take"), knocked(), position(GIN)]
    for number in range(600):
        text = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 9)))
        one = tables[number % 3]
        if text.strip():
            try:
                assert read(one, text) in engine.legal_actions(one)
            except ValueError as error:
                assert "\n" not in str(error)  # noqa: PT017


def test_legal_actions_can_be_typed() -> None:
    rng = random.Random(8)
    player = agents.make("random")
    for rules in ("cardpuzzle", "openspiel"):
        tables = engine.new_tables(rules, 40, seed=5)
        for _ in range(70):
            for row in rng.sample(range(40), 2):
                view = observe(tables)[row]
                legal = engine.legal_actions(tables, row)
                action = rng.choice(legal)
                assert read_move(typed(action, rng), view, legal) == action
                assert options(view, legal)
            step = engine.decision_keys(3, tables)
            engine.step(tables, player.act(observe(tables), engine.legal(tables), step), redeal=True)


# ---------------------------------------------------------------------------------------------------- seeing and hints


def shown(table: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(table)
    return out.getvalue()


def test_the_table_shows_what_is_known() -> None:
    tables = position(GIN, "2C", "pass", "take", "discard AS")
    text = shown(view_table(observe(tables, 0)[0], "the other"))
    for label, value in (
        ("the other", "9 hidden, known 2♣"),
        ("threw", "A♠"),
        ("pile", "A♠ <- top"),
        ("hand", "[7♠ 7♦ 7♣]  [J♠ J♦ J♣]  [4♥ 5♥ 6♥]  ♥ K"),
        ("deadwood", "10"),
        ("stock", "31 cards"),
    ):
        assert re.search(rf"│\s+{label}\s+│ {re.escape(value)}\s+│", text), (label, text)
    assert "seat 0, non-dealer, knock with 10 or less" in text
    assert "refused" in shown(view_table(observe(tables, 1)[0], "the other"))


@pytest.mark.parametrize(
    ("hand", "gone", "expected"),
    [
        ("7H 7S 8H", "", "6H 7C 7D 9H"),  # a set or a run
        ("KS KH", "", "KC KD"),
        ("JS JH", "JD JC", ""),
        ("7H 7S 8H", "7C 9H", "6H 7D"),
        ("AS 2S", "", "3S"),  # the ace is low
        ("QD KD", "", "JD"),
        ("4C 6C 9S", "", "5C"),
        ("4C 5C 6C", "", "3C 7C"),  # a meld grows
        ("2H 5S 9D", "", ""),
    ],
)
def test_outs_complete_a_meld_h01(hand: str, gone: str, expected: str) -> None:
    held = to_mask(parse_cards(hand))
    unseen = to_mask(DECK) & ~held & ~to_mask(parse_cards(gone))
    assert sorted(card_name(card) for card, _ in outs(held, unseen)) == expected.split()


def test_outs_tell_what_is_left() -> None:
    hand = to_mask(parse_cards(GIN))
    found = {card_name(card): left for card, left in outs(hand, to_mask(DECK) & ~hand)}
    # The fourth of a set, or an end of the run: then the king is thrown.
    assert found == dict.fromkeys(("7H", "JH", "3H"), 0)
    assert outs(hand, 0) == []


class Sure:
    """Plays some action, with some chances."""

    name = "sure"

    def __init__(self, **chances: float) -> None:
        self.chances = {parse_action(name.replace("_", " ")): chance for name, chance in chances.items()}

    def act(self, view: Any, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        return self.probabilities(view, mask).argmax(axis=1)

    def probabilities(self, view: Any, mask: np.ndarray) -> np.ndarray:
        out = np.zeros(mask.shape)
        out[:, list(self.chances)] = list(self.chances.values())
        return out


def test_hints() -> None:
    tables = position(GIN, "2C", "take")
    decision = observe(tables), engine.legal(tables), keys(1)
    adviser = Sure(knock_KH=0.7, discard_KH=0.296, discard_4H=0.004)
    assert hint_lines(adviser, *decision) == [
        "sure would knock with K♥ 70%, throw K♥ 30%",
        "outs: 3 of 41 unseen cards, leaving: 3♥ (gin), 7♥ (gin), J♥ (gin)",
    ]
    lines = hint_lines(agents.make("greedy"), *decision)
    assert lines[0] == "greedy would knock with K♥"
    tables = knocked()
    (line,) = hint_lines(agents.make("greedy"), observe(tables), engine.legal(tables), keys(1))
    assert line.startswith("greedy would lay ")


def test_hints_of_another(start: Start) -> None:
    out, _ = start(Person(["h", "p", "h"]), seat=1, adviser="random")
    assert "random would pass 50%, take 50%" in out
    assert re.search(r"outs: \d+ of 4\d unseen cards", out)


def test_a_program_gives_no_hints(start: Start) -> None:
    out, _ = start(Person(["h", "u"]), bot(), seat=1, practice=True)
    assert "bot gives no hints" in out
    assert "cannot be told that a move was taken back" in out


# ----------------------------------------------------------------------------------------------------------- practice


def test_taking_back(start: Start) -> None:
    lines = ["u", "o", "p", "u", "p"]
    person = Person(lines, agent="greedy")
    out, (record,) = start(person, "random", hands=1, seat=1, practice=True, seed=11)
    assert "there is nothing to take back in this hand" in out
    assert "taken back" in out
    assert "random holds " in out
    assert record.comment.endswith(", practice, moves taken back: 1")
    _, records = start(Person(["p"], agent="greedy"), "random", hands=1, seat=1, seed=11)
    assert records[0].hands == records[1].hands


def test_taking_back_goes_to_the_own_decision() -> None:
    game = Game(agents.make("greedy"), preset("cardpuzzle"), 0, match=False, seed=3, seat=0)
    seen = []
    while len(seen) < 4:
        if game.to_move:
            game.remember()
            seen.append(game.tables.copy())
            view, mask, key = game.decision()
            game.play(int(agents.make("random").act(view, mask, key)[0]))
        else:
            game.play(game.move_of_agent())
    while not game.to_move:
        game.play(game.move_of_agent())
    game.remember()
    for before in seen[::-1]:
        assert game.take_back()
        assert game.to_move
        assert game.tables["num_moves"] == before["num_moves"]
        assert np.array_equal(observe(game.tables), observe(before))
    assert not game.take_back()


def test_only_in_practice(start: Start) -> None:
    out, _ = start(Person(["?", "u", "o"]), seat=1)
    assert out.count("only with --practice") == 2
    assert PRACTICE_HELP.strip() not in out
    assert "gin-only holds" not in out
    assert PRACTICE_HELP.strip() in start(Person(["?"]), seat=1, practice=True)[0]


# ---------------------------------------------------------------------------------------------------------- the record


def interrupt() -> str:
    raise KeyboardInterrupt


def terminate() -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    return "h"


@pytest.mark.parametrize("end", [interrupt, terminate])
def test_whoever_interrupts_the_game_is_written_down(end: Callable[[], str], start: Start, tmp_path: Path) -> None:
    class Interrupted(Person):
        def ask(self, prompt: str) -> str:
            return end() if len(self.prompts) > 8 else super().ask(prompt)

    handler = signal.getsignal(signal.SIGTERM)
    (tmp_path / "games.txt").write_text("# mine")
    with pytest.raises(KeyboardInterrupt):
        start(Interrupted(agent="greedy"), match=True)
    assert signal.getsignal(signal.SIGTERM) is handler
    first, line = (tmp_path / "games.txt").read_text().splitlines()
    assert first == "# mine"
    *_, tables = engine.replay(line)
    assert tables["num_moves"][0] > 3
    assert "--line 2" in start.out  # type: ignore[attr-defined]


def test_a_signal_just_as_the_game_ends(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a terminal is lost: the end of the input, then a signal before the game is written down."""
    write, calls = playing.Terminal.write, 0

    def late(self: playing.Terminal) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGTERM)  # is ignored by now
        write(self)

    monkeypatch.setattr(playing.Terminal, "write", late)
    with pytest.raises(KeyboardInterrupt):
        start(Person(["p"]), seat=1, seed=3)
    monkeypatch.undo()
    _, records = start(Person(), seat=1, seed=3)
    assert len(records) == 1
    assert calls == 2


def test_the_end_of_the_input_leaves_a_whole_file(start: Start) -> None:
    class Brief(Person):
        most = 0

        def ask(self, prompt: str) -> str:
            if len(self.prompts) >= self.most:
                raise EOFError
            return super().ask(prompt)

    for most in range(6):
        person = Brief(agent="greedy")
        person.most = most
        out, records = start(person, "greedy", seed=most)
        assert len(person.prompts) == most
        assert "nothing was played" in out or f"--line {len(records)}" in out
        for record in records:
            assert list(engine.replay(record))
    assert len(records) >= 5


def test_a_program_at_fault_loses(start: Start) -> None:
    out, (record,) = start(Person(agent="greedy"), bot("say('big-gin')"), hands=1, seed=3, seat=1)
    assert "bot forfeits the game: it played 'big-gin'; legal: " in out
    assert "1 game: you won 1 and 0 points, bot 0 and 0" in out
    assert record.comment.endswith(", bot forfeited")


def test_append_line(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lines.txt"
    assert append_line(path, None) == 0
    assert not path.exists()
    assert [append_line(path, "ä"), append_line(path, "b")] == [1, 2]
    path.write_bytes(path.read_bytes() + b"no end")
    assert append_line(path, None) == 0
    assert append_line(path, "c") == 4
    assert path.read_text(encoding="utf-8") == "ä\nb\nno end\nc\n"
    with pytest.raises(OSError, match="No space left"):
        append_line("/dev/full", "x")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("play nobody", "'nobody' is no agent"),
        ("play greedy --rules whist", "'whist' is no preset"),
        ("play greedy --hands 0", "hands is 0; expected at least 1"),
        ("play greedy --match --hands 3", "hands are counted without a match"),
        ("play greedy --match --rules luciano:target=none", "'luciano:target=none' has no target"),
        ("play greedy --record /dev/null/games.txt", "/dev/null"),
        ("play greedy --seed -1 --record /dev/null", "seed is -1"),
    ],
)
def test_errors_come_before_the_first_hand(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
