"""Programs as players: what they are told and asked, and that nothing they do harms the caller."""

import gc
import io
import os
import pickle
import random
import re
import shlex
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents import external, program
from agents.external import ExternalAgent
from agents.match import play_match
from experiments.cli import main
from experiments.examples import eaai_shim
from gin_env import engine
from gin_env.actions import KNOCK, LAYOFF, TAKE, action_name
from gin_env.cards import RANKS, card_name, cards_text, parse_cards, to_mask
from gin_env.melds import arrange
from gin_env.record import Record
from gin_env.tables import DECLARE, ENDINGS, OVER
from gin_env.view import observe

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide" / "external.md"
EXAMPLE = f"external:{sys.executable} {ROOT / 'experiments' / 'examples' / 'external_bot.py'}"
SHIM = f"external:{sys.executable} {ROOT / 'experiments' / 'examples' / 'eaai_shim.py'}"

# A bot whose answers, and whatever else it does, are the test's.
BOT = """
import os, subprocess, sys, time
def say(text):
    print(text, flush=True)
for line in sys.stdin:
    word, *words = line.split()
    answers = " ".join(words[1:]).split(" / ")
    if word == "protocol":
        {ready}
    elif word == "ask":
        {ask}
    {other}
"""


def bot(ask: str = "say(answers[0])", ready: str = "say('ready 1 bot')", other: str = "", **options: float) -> str:
    """Returns the spec of a bot."""
    code = BOT.format(ask=ask, ready=ready, other=other)
    prefix = ",".join(f"{name}={value}" for name, value in options.items())
    return f"external:{prefix}{':' if prefix else ''}{shlex.join([sys.executable, '-ISc', code])}"


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "GRACE", 0.02)


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet collected does not."""
    state = Path(f"/proc/{pid}/stat")
    if state.parent.parent.joinpath("self").exists():
        return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# ---------------------------------------------------------------------------------------------- what is told and asked


class Fake:
    """A program within this process, which gives random legal answers."""

    def __init__(self, words: list[str]) -> None:
        self.owner = os.getpid()
        self.told: list[str] = []
        self.answers: deque[str] = deque()
        self.rng = random.Random(5)
        self.hand: set[int] = set()
        self.laid: set[int] = set()

    def send(self, line: str) -> None:
        self.told.append(line)
        match line.split():
            case ["protocol", *_]:
                self.answers.append("ready 1 fake 0.1 beta")
            case ["game", _, "seat", seat, *_]:
                self.seat = seat
            case ["cards", *cards]:
                self.hand, self.laid = set(parse_cards(cards)), set()
            case ["move", seat, "draw" | "take", card] if seat == self.seat:
                self.hand |= set(parse_cards(card))
            case ["move", _, "discard" | "knock", card]:
                self.hand -= set(parse_cards(card))
            case ["layoff", _, card, _]:
                self.hand -= set(parse_cards(card))
            case ["ask", "melds", *_] if self.rng.random() < 0.8:
                # All of them, or in the knocker's case perhaps another way of melding.
                melds = arrange(np.array([to_mask(self.hand)], dtype=np.uint64)).melds[0]
                self.answers.append("Melds " + " / ".join(cards_text(meld).lower() for meld in melds if meld))
            case ["ask", _, *words]:
                answers = " ".join(words).split(" / ")
                knocks = [answer for answer in answers if answer.startswith("knock")]
                self.answers.append(self.rng.choice(knocks or answers).replace("T", "10"))

    def receive(self, seconds: float) -> str:
        return self.answers.popleft()

    def drop_lines(self) -> int:
        assert not self.answers
        return 0

    def last_words(self) -> str:
        return ""

    def stop(self) -> None:
        self.told.append("stopped")


def expected_lines(record: Record, game: int, seat: int, match: bool) -> list[str]:
    """What a program in a seat should be told of a game but the questions, from its record and the open tables."""
    rules = record.rules
    fields = " ".join(
        f"{name}={str(value).lower() if value is None or isinstance(value, bool) else value}"
        for name, value in rules.to_dict().items()
        if name != "name"
    )
    lines = [f"game {game} seat {seat} target {rules.target if match else 0}", f"rules {rules.name} {fields}"]
    hands = 0
    before: Any = None
    for tables in engine.replay(record):
        t = tables[0]
        if t["num_moves"] == 0:
            hands += 1
            told: set[str] = set()
            scores = t["scores"]
            lines += [
                f"hand {hands} dealer {t['dealer']} limit {t['limit']} scores {scores[0]} {scores[1]} "
                f"doubled {'yes' if t['doubled'] else 'no'}",
                f"cards {cards_text(t['hands'][seat])}",
                f"upcard {card_name(t['deck'][2 * rules.hand_size])}",
            ]
        else:
            mover, action = int(before["mover"]), int(t["moves"][t["num_moves"] - 1])
            words = action_name(action)
            if action >= LAYOFF:
                _, card, number = words.split()
                told.add(card)
                lines.append(f"layoff {mover} {card} {number}")
            elif before["phase"] < DECLARE:
                if words == "draw" and mover == seat:
                    words += " " + card_name(before["deck"][before["stock_at"]])
                elif action == TAKE:
                    words += " " + card_name(before["pile"][before["pile_size"] - 1])
                lines.append(f"move {mover} {words}")
        over = t["phase"] == OVER
        knocker = int(t["knocking"])
        if knocker >= 0 and t["phase"] > DECLARE and "melds" not in told:
            told.add("melds")
            melds = t["melds" if over else "laid"][knocker]
            lines.append(f"melds {knocker} {' / '.join(cards_text(meld) for meld in melds if meld)}".strip())
            lines.append(f"final {knocker} {cards_text(t['hands'][knocker])}")
        if over:
            if knocker >= 0:
                other = 1 - knocker
                melds = t["melds"][other]
                lines.append(f"melds {other} {' / '.join(cards_text(meld) for meld in melds if meld)}".strip())
                for number, cards in enumerate(t["layoffs"], 1):
                    untold = [card for card in cards_text(cards).split() if card not in told]
                    lines += [f"layoff {other} {card} {number}" for card in untold]
                lines.append(f"final {other} {cards_text(t['hands'][other])}")
            else:
                lines += [f"final {one} {cards_text(t['hands'][one])}" for one in (0, 1)]
            winner = "-" if t["winner"] < 0 else str(t["winner"])
            lines += [
                f"deadwood {t['deadwood'][0]} {t['deadwood'][1]}",
                f"result {ENDINGS[t['ending']]} {winner} {t['points'] if winner != '-' else 0}",
                f"scores {t['scores'][0]} {t['scores'][1]}",
            ]
            if not match or t["match_winner"] >= 0:
                lines.append(f"game-over {winner}")
        before = t.copy()
    return lines


def by_layoff(lines: list[str]) -> list[Any]:
    """Lines with neighbouring layoffs as a set: in which order they come within a hand is for the bot to see."""
    out: list[Any] = []
    for line in lines:
        if not line.startswith("layoff"):
            out.append(line)
        elif out and isinstance(out[-1], set):
            out[-1].add(line)
        else:
            out.append({line})
    return out


@pytest.mark.parametrize("match", [False, True])
@pytest.mark.parametrize("rules", ["cardpuzzle", "eaai", "openspiel", "plus20:oklahoma=true,double_spades=all"])
def test_a_program_is_told_what_its_seat_may_know(rules: str, match: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "Program", Fake)
    agent = ExternalAgent("./fake")
    assert (agent.name, agent.version) == ("fake", "0.1 beta")
    records: list[Record] = []
    result = play_match(
        agent,
        agents.make("greedy:knock=4"),
        deals=3 if match else 20,
        seed=8,
        rules=rules,
        match=match,
        forfeits=True,
        record=records.append,
    )
    assert (result.forfeits, dict(agent.incidents), agent.last_incident) == ((0, 0), {}, "")
    assert isinstance(agent._program, Fake)
    told = agent._program.told
    assert told[0] == "protocol 1"
    expected = [line for game, one in enumerate(records) for line in expected_lines(one, game, game % 2, match)]
    reports = [line for line in told[1:] if line.split()[0] not in ("key", "ask")]
    assert by_layoff(reports) == by_layoff(expected)
    endings = {line.split()[1] for line in expected if line.startswith("result")}
    assert {"knock", "gin"} <= endings
    asked = {" ".join(line.split()[:2]) for line in told if line.startswith("ask")}
    wanted = {"ask draw", "ask throw"}
    wanted |= {"ask melds"} if rules in ("eaai", "openspiel") else set()
    wanted |= {"ask layoff"} if rules == "openspiel" else set()
    assert asked == wanted
    keys = [line for line in told if line.startswith("key")]
    assert len(set(keys)) == len(keys) == sum(line.startswith("ask") for line in told)


def test_layoffs_are_told_in_an_order_in_which_they_fit() -> None:
    melds = np.array([to_mask(parse_cards(text)) for text in ("5H 6H 7H", "TS TD TC", "2C 3C 4C")], dtype=np.uint64)
    layoffs = np.array([to_mask(parse_cards(text)) for text in ("3H 4H 8H 9H", "TH", "AC 5C 6C")], dtype=np.uint64)
    order = [(card_name(card), number) for card, number in external._layoff_order(melds, layoffs)]
    places = {card: place for place, (card, _) in enumerate(order)}
    assert len(places) == 8
    assert [number for _, number in order] == [0, 0, 0, 0, 1, 2, 2, 2]
    for first, then in (("4H", "3H"), ("8H", "9H"), ("5C", "6C")):
        assert places[first] < places[then]


def test_every_meld_can_be_laid() -> None:
    rng = random.Random(3)
    sets = [[rank + suit for suit in suits] for rank in RANKS for suits in ("SHDC", "SHD", "SHC", "SDC", "HDC")]
    runs = [
        [rank + "H" for rank in RANKS[low:high]] for high in range(14) for low in range(max(high - 10, 0), high - 2)
    ]
    for names in sets + runs:
        rng.shuffle(names)
        laid = [
            to_mask(parse_cards(action_name(action).split()[1:])) for action in external._read_melds(" ".join(names))
        ]
        assert sum(laid) == to_mask(parse_cards(names))
        assert len(laid) == 1 or len(names) > 5
    for text in ("7H 8H", "7H 8H 9S", "7H 8H 9H 9H", "KH AH 2H", "QH KH AH", "7H 8H 9H TS", "7X 8X 9X"):
        with pytest.raises(ValueError, match=r"meld|card|twice"):
            external._read_melds(text)


# -------------------------------------------------------------------------------------------------- programs that play


def test_the_example_plays() -> None:
    agent, greedy = agents.make(EXAMPLE), agents.make("greedy")
    assert (agent.name, getattr(agent, "version", None)) == ("lonely", "1.0")
    assert isinstance(agent, agents.Agent)
    result = play_match(agent, greedy, deals=6, seed=2, rules="eaai")
    assert result.versions[0] == "1.0"
    assert result.behaviour[0].turns > 3
    assert play_match(pickle.loads(pickle.dumps(agent)), greedy, deals=6, seed=2, rules="eaai") == result
    both = play_match(agent, agents.make(EXAMPLE), deals=3)
    assert both.points_per_hand == 0  # it makes no random choices


def test_the_shim_plays() -> None:
    agent, greedy = agents.make(SHIM), agents.make("greedy")
    results = [play_match(agent, greedy, deals=4, seed=1, rules=rules) for rules in ("eaai", "eaai", "openspiel")]
    assert results[0] == results[1]  # its chance comes from the keys
    assert (results[0].games != 0).any()
    assert isinstance(agent, ExternalAgent)
    assert dict(agent.incidents) == {}


class Noting(eaai_shim.GinRummyPlayer):
    """Keeps how the shim calls it, and knocks with the first throw."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        got = super().__getattribute__(name)
        if name == "calls" or not callable(got):
            return got

        def noted(*args: Any) -> Any:
            shown = ", ".join(" ".join(map(str, arg)) if isinstance(arg, list) else str(arg) for arg in args)
            self.calls.append(f"{name}({shown})")
            return got(*args)

        return noted

    def willDrawFaceUpCard(self, card: eaai_shim.Card) -> bool:  # noqa: N802
        return True

    def getDiscard(self) -> eaai_shim.Card:  # noqa: N802
        return eaai_shim.Card.read("KD")

    def getFinalMelds(self) -> list[list[eaai_shim.Card]]:  # noqa: N802
        return [[eaai_shim.Card.read(card) for card in ("5H", "6H", "7H")]]


def test_the_shim_calls_as_the_framework_does() -> None:
    player, answers = Noting(), io.StringIO()
    eaai_shim.Shim(player, "noting", answers).run(
        """protocol 1
        game 0 seat 1 target 100
        hand 1 dealer 0 limit 10 scores 0 0 doubled no
        cards 5H 6H AS
        upcard 7H
        something new
        key 7
        ask draw pass / take
        move 1 take 7H
        ask throw discard KD / knock KD
        move 1 knock KD
        ask melds auto
        melds 1 5H 6H 7H
        final 1 5H 6H 7H AS
        melds 0
        layoff 0 8H 1
        layoff 0 9H 1
        final 0 8H 9H
        scores 0 12""".splitlines()
    )
    assert answers.getvalue() == "ready 1 noting\ntake\nknock KD\nmelds 5H 6H 7H\n"
    assert player.calls == [
        "startGame(1, 1, 5H 6H AS)",
        "willDrawFaceUpCard(7H)",
        "reportDraw(1, 7H)",
        "getDiscard()",
        "reportDiscard(1, KD)",
        "getFinalMelds()",
        "reportFinalMelds(1, [Card(suit=1, rank=4), Card(suit=1, rank=5), Card(suit=1, rank=6)])",
        "reportFinalHand(1, 5H 6H 7H AS)",
        "reportFinalMelds(0, )",
        "reportLayoff(0, 8H, 5H 6H 7H)",
        "reportLayoff(0, 9H, 5H 6H 7H 8H)",
        "reportFinalHand(0, 8H 9H)",
        "reportScores(0 12)",
    ]


def test_melds_of_the_shim_are_the_best() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        hand = rng.choice(52, size=10, replace=False)
        cards = [eaai_shim.Card.read(card_name(card)) for card in hand]
        least, ways = eaai_shim.best_melds(cards)
        assert least == arrange(np.array([to_mask(hand)], dtype=np.uint64)).deadwood[0]
        assert len({frozenset(way) for way in ways}) == len(ways)


# ------------------------------------------------------------------------------------------------------- misbehaviour

HANG = "time.sleep(60)"


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("exit", bot("sys.exit(3)")),
        ("exit", bot(other="if word == 'cards': os._exit(0)")),
        ("exit", bot("os.kill(os.getpid(), 9)")),
        ("exit", bot("os.close(1); time.sleep(60)")),
        ("exit", bot("print('take', end=''); sys.exit()")),
        ("exit", bot("subprocess.Popen(['sleep', '60']); os._exit(1)", timeout=0.3)),
        ("timeout", bot(HANG, timeout=0.1)),
        ("timeout", bot("print('take', end='', flush=True)", timeout=0.1)),
        ("timeout", bot("say('# thinking')", timeout=0.1)),
        ("timeout", bot("time.sleep(0.3); say('take')", timeout=0.1)),
        ("timeout", bot(ready="say('ready 1 bot'); time.sleep(60)", timeout=0.1)),
        ("flood", bot("sys.stdout.write('x' * 3_000_000); sys.stdout.flush()")),
        ("flood", bot("sys.stdout.write('take\\n' * 300_000); sys.stdout.flush()")),
        ("flood", bot(other="if word == 'cards': print('hello\\n' * 300_000)")),
        ("illegal", bot("say('big-gin')")),
        ("illegal", bot("say('layoff 7H 3')")),
        ("garbage", bot("say('I am well, thank you.')")),
        ("garbage", bot("say('discard 1H')")),
        ("garbage", bot("sys.stdout.buffer.write(bytes([255, 0, 10])); sys.stdout.flush()")),
        ("garbage", bot("say('auto')")),
    ],
    ids=lambda value: value if len(value) < 10 else re.sub(r"\W+", "-", value.partition('"ask":')[2])[:40],
)
@pytest.mark.usefixtures("no_grace")
def test_a_fault_costs_the_game_and_no_more(kind: str, spec: str) -> None:
    agent = agents.make(spec)
    assert isinstance(agent, ExternalAgent)
    result = play_match(agent, agents.make("greedy"), deals=1, forfeits=True)
    assert dict(agent.incidents) == {kind: 2}
    assert result.forfeits == (2, 0)
    assert result.games_lost == 2
    assert (result.games <= -25).all()
    assert agent.last_incident


def test_illegal_melds_cost_the_game() -> None:
    for melds in ("AS 2S 3S", "KS KH KD / KC QC JC", "2S 2H"):
        agent = agents.make(bot(f"say('melds {melds}' if words[0] == 'melds' else answers[-1])"))
        assert isinstance(agent, ExternalAgent)
        result = play_match(agent, agents.make("gin-only"), deals=3, rules="eaai:knock_limit=100", forfeits=True)
        # Where no meld is possible it is not asked.
        assert result.forfeits[0] == agent.incidents.total() >= 3
        assert set(agent.incidents) <= {"illegal", "garbage"}


def test_without_forfeits_a_fault_is_an_error() -> None:
    with pytest.raises(agents.match.AgentError, match="'bot' played .* illegal"):  # type: ignore[attr-defined]
        play_match(agents.make(bot("say('big-gin')")), agents.make("greedy"), deals=1)


def test_words_that_nobody_asked_for_are_dropped() -> None:
    agent = agents.make(bot(other="if word in ('cards', 'upcard'): say('knock AS')"))
    assert isinstance(agent, ExternalAgent)
    result = play_match(agent, agents.make("greedy"), deals=2, forfeits=True)
    assert result.hands == 4
    # Some may come too late to be dropped, and are then taken for answers.
    assert agent.incidents["unasked"] <= 8
    assert sum(agent.incidents.values()) >= 1
    assert result.forfeits[0] == agent.incidents["illegal"] + agent.incidents["garbage"]


def test_much_on_stderr_does_no_harm() -> None:
    agent = agents.make(bot("sys.stderr.write('x' * 300_000); say(answers[0])"))
    assert isinstance(agent, ExternalAgent)
    assert play_match(agent, agents.make("greedy"), deals=1).forfeits == (0, 0)
    assert dict(agent.incidents) == {}


def test_a_crashed_program_is_started_again_so_often_and_no_more() -> None:
    agent = agents.make(bot("sys.exit('out of cards')", restarts=2))
    assert isinstance(agent, ExternalAgent)
    result = play_match(agent, agents.make("greedy"), deals=3, forfeits=True)
    assert result.forfeits == (6, 0)
    assert dict(agent.incidents) == {"exit": 3, "gone": 3}
    assert "out of cards" in agent.last_incident


def test_a_crash_does_not_spoil_the_next_game(tmp_path: Path) -> None:
    mark = tmp_path / "crashed"
    once = f"open({str(mark)!r}, 'x').close() if os.path.exists({str(mark)!r}) is False else say(answers[0])"
    agent = agents.make(
        bot(f"{once}\n        if os.path.getsize({str(mark)!r}) == 0: open({str(mark)!r}, 'w').write('x'); sys.exit(1)")
    )
    assert isinstance(agent, ExternalAgent)
    result = play_match(agent, agents.make("greedy"), deals=3, rules="eaai", match=True, forfeits=True)
    assert result.forfeits == (1, 0)
    assert dict(agent.incidents) == {"exit": 1}
    assert result.hands > 6


def test_a_program_that_cannot_be_started_again_loses_by_that(tmp_path: Path) -> None:
    # The second time there is nothing to run.
    path = tmp_path / "bot.py"
    path.write_text(BOT.format(ask="os.remove(sys.argv[0]); sys.exit(1)", ready="say('ready 1 bot')", other=""))
    agent = agents.make(f"external:restarts=2:{sys.executable} -IS {path}")
    assert isinstance(agent, ExternalAgent)
    result = play_match(agent, agents.make("greedy"), deals=2, forfeits=True)
    assert result.forfeits == (4, 0)
    assert dict(agent.incidents) == {"exit": 1, "start": 2, "gone": 1}
    assert "No such file" in agent.last_incident


def test_the_other_sides_forfeits_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(external, "Program", Fake)
    agent = ExternalAgent("./fake")

    class Stubborn:
        name = "stubborn"

        def act(self, view: Any, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            return np.full(view.size, KNOCK + 51)

    play_match(agent, Stubborn(), deals=2, rules="eaai", match=True, forfeits=True)
    assert isinstance(agent._program, Fake)
    told = [line for line in agent._program.told if line.split()[0] in ("game", "forfeit", "game-over")]
    wanted = []
    for game in range(4):
        seat = game % 2
        wanted += [f"game {game} seat {seat} target 100", f"forfeit {1 - seat}", f"game-over {seat}"]
    assert told == wanted


# ---------------------------------------------------------------------------------------------------------- processes


def test_nothing_survives_the_end(no_grace: None) -> None:
    """Neither a program that ignores the end of its input, nor its children."""
    ready = "child = subprocess.Popen(['sleep', '60']); say(f'ready 1 bot {os.getpid()} {child.pid}')"
    for end in ("close", "collect"):
        agent: Any = agents.make(bot(ready=ready, other="if word == 'quit': time.sleep(60)"))
        pids = [int(word) for word in agent.version.split()]
        assert len(pids) == 2
        assert all(map(alive, pids))
        if end == "close":
            agent.close()
            agent.close()
        del agent
        gc.collect()
        assert not any(map(alive, pids))


def test_nothing_survives_the_end_of_python() -> None:
    spec = bot(ready="say(f'ready 1 bot {os.getpid()}')", other="if word == 'quit': time.sleep(60)")
    code = "import sys, agents; bot = agents.make(sys.argv[1]); print(bot.version)"
    done = subprocess.run([sys.executable, "-c", code, spec], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not alive(int(done.stdout))


def test_a_fork_starts_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    agent: Any = agents.make(bot(ready="say(f'ready 1 bot {os.getpid()}')"))
    parent = agent._program
    first = agent.version
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    result = play_match(agent, agents.make("greedy"), deals=1)
    assert result.hands == 2
    assert agent.version != first
    assert alive(int(first))
    agent.close()
    monkeypatch.undo()
    parent.stop()
    assert not alive(int(first))


def test_a_copy_starts_nothing_before_its_first_game(no_grace: None) -> None:
    agent: Any = agents.make(bot(HANG, timeout=0.1, restarts=0))
    copy = pickle.loads(pickle.dumps(agent))
    assert (copy.name, copy._program) == ("bot", None)
    result = play_match(copy, agents.make("greedy"), deals=2, forfeits=True)
    assert dict(copy.incidents) == {"timeout": 1, "gone": 3}
    assert result.forfeits == (4, 0)
    assert dict(agent.incidents) == {}


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("external", "lacks the command; expected external:COMMAND"),
        ("external:", "lacks the command"),
        ("external:timeout=5:", "lacks the command"),
        ("external:no/such/program --fast", "'no/such/program' cannot be run: No such file"),
        ("external:timeout=0:true", "timeout is 0; expected seconds, more than 0"),
        ("external:restarts=-1:true", "restarts is -1; expected a whole number"),
        ("external:restarts=1.5:true", "restarts is 1.5; expected a whole number"),
        ("external:speed=3:true", "there is no option 'speed'; expected timeout, start, restarts"),
        ("external:timeout=soon:true", "'timeout=soon' is not of the form name=number"),
        ("external:python 'my bot.py", "the command cannot be read: No closing quotation"),
        (
            bot(ready="sys.exit('no licence')"),
            r"it ended \(exit status 1\); expected 'ready 1 .*stderr ends: no licence",
        ),
        (bot(ready="say('hello')", start=0.5), "no answer within 0.5 seconds; expected .* but it said 'hello'"),
        (bot(ready="say('ready 2 bot')"), "it speaks protocol 2; expected 1"),
        (bot(ready="say('ready 1')", start=0.5), "but it said 'ready 1'"),
    ],
    ids=range(14),
)
@pytest.mark.usefixtures("no_grace")
def test_what_cannot_play_is_an_error_at_once(spec: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "exit status" in says:
        monkeypatch.setattr(program, "GRACE", 5.0)
    with pytest.raises(ValueError, match=says):
        agents.make(spec)


def test_lines_before_ready_are_skipped() -> None:
    assert agents.make(bot(ready="say('Welcome!'); say(''); say('ready 1 bot')")).name == "bot"


def test_it_must_be_told_of_every_move() -> None:
    agent: Any = agents.make(bot())
    tables = engine.new_tables("cardpuzzle", 2, seed=1)
    views, masks = observe(tables), engine.legal(tables)
    keys = np.zeros(2, dtype=np.uint64)
    with pytest.raises(ValueError, match="plays one game at a time, not 2"):
        agent.act(views, masks, keys)
    with pytest.raises(ValueError, match="must be told of every move"):
        agent.act(views[:1], masks[:1], keys[:1])
    agent.follow(views[:1], np.array([0]), np.array([-1]))
    assert masks[0, agent.act(views[:1], masks[:1], keys[:1])[0]]
    with pytest.raises(ValueError, match="must be told of every move"):
        agent.act(views[1:], masks[1:], keys[1:])
    assert agent.act(views[:0], masks[:0], keys[:0]).shape == (0,)


def test_the_command_prints_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["match", bot("say('big-gin')"), "greedy", "--deals", "1"]
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "games forfeited │ 2 │ 0" in out
    assert "bot: 2 illegal; the last: it played 'big-gin'; legal: " in out
    assert main([*words, "--json"]) == 0
    assert '"incidents": {\n    "a": {\n      "illegal": 2\n    },\n    "b": {}\n  }' in capsys.readouterr().out
    assert main(["match", "greedy", "random", "--deals", "1", "--json"]) == 0
    assert "incidents" not in capsys.readouterr().out


# -------------------------------------------------------------------------------------------------------------- guide


def test_the_guide_shows_the_example() -> None:
    block = re.search(r"^```py\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block is not None
    assert block[1] == (ROOT / "experiments" / "examples" / "external_bot.py").read_text(encoding="utf-8")


def test_the_guide_tells_of_every_fault_and_option() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for kind in external.INCIDENTS:
        assert f"| `{kind}` | " in text
    for option, value in external._Options()._asdict().items():
        assert f"| `{option}` | {value:g} | " in text


def test_the_conversation_of_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    talk: list[str] = []
    send, receive = program.Program.send, program.Program.receive

    def note_send(self: program.Program, line: str) -> None:
        talk.append(line)
        send(self, line)

    def note_receive(self: program.Program, seconds: float) -> str:
        talk.append("< " + receive(self, seconds))
        return talk[-1][2:]

    monkeypatch.setattr(program.Program, "send", note_send)
    monkeypatch.setattr(program.Program, "receive", note_receive)
    play_match(agents.make(EXAMPLE), agents.make("greedy"), deals=1, seed=3, rules="eaai")
    shown = "\n".join("    " + line for line in talk[: talk.index("game-over 1") + 1])
    assert shown in GUIDE.read_text(encoding="utf-8")
