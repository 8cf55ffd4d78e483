"""Recorded hands judged: by what a seat knew alone, with figures that add up."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import agents
from agents import search
from agents.match import AgentError, play_match
from agents.search import weigh
from experiments import analyse as analysis
from experiments.analyse import Settings, analyse, dearest, names, print_analysis
from experiments.cli import main
from gin_env import engine
from gin_env.actions import DRAW, PASS, TAKE
from gin_env.record import HandRecord, Record, parse_record
from gin_env.rules import as_rules
from gin_env.tables import PHASES
from gin_env.view import VIEW_DTYPE, observe

ROOT = Path(__file__).resolve().parent.parent
MANUAL = ROOT / "tests" / "data" / "golden" / "luciano-manual.txt"


def play(a: str, b: str, **options: Any) -> list[tuple[int, Record]]:
    """Plays one deal twice and returns the records."""
    records: list[Record] = []
    play_match(agents.make(a), agents.make(b), deals=1, record=records.append, **options)
    return list(enumerate(records, 1))


def moves_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [move for story in result["records"] for hand in story["hands"] for move in hand["moves"]]


@pytest.fixture(scope="module")
def records() -> list[tuple[int, Record]]:
    return play("random", "greedy", seed=5)


@pytest.fixture(scope="module")
def told(records: list[tuple[int, Record]]) -> dict[str, Any]:
    return analyse(records, agents.make("greedy"), Settings(worlds=60, seed=3))


# ------------------------------------------------------------------------------------------------------------ figures


def test_a_player_agrees_with_itself(told: dict[str, Any]) -> None:
    by_name = {player["player"]: player for player in told["players"]}
    assert set(by_name) == {"random", "greedy"}
    itself, other = by_name["greedy"], by_name["random"]
    assert (itself["agreement"], itself["loss"], itself["error"], itself["worst"]) == (1, 0, 0, [])
    assert other["agreement"] < 0.6
    assert other["loss"] > 2 * other["error"] > 0  # whoever plays at random loses by it


def test_the_figures_are_those_of_the_search(records: list[tuple[int, Record]], told: dict[str, Any]) -> None:
    """Each loss is the paired difference that `weigh` finds from the mover's view."""
    checked = 0
    for (_, record), story in zip(records, told["records"], strict=True):
        (hand,) = story["hands"]
        for tables, move in zip(engine.replay(record), hand["moves"], strict=False):
            mask = engine.legal(tables)
            assert (move["judged"] is None) == (mask.sum() == 1)
            if move["judged"] is None:
                continue
            one = move["judged"]
            assert mask[0, one["choice"]]
            number = np.uint64((1 << 20) + move["number"] - 1)
            key = analysis._key(3, analysis._MEASURE, number)
            found = {c.action: c for c in weigh(observe(tables), mask, move["action"], worlds=60, seed=key)}
            assert (one["loss"], one["error"]) == (found[one["choice"]].gain, found[one["choice"]].error)
            assert one["loss"] == pytest.approx(found[one["choice"]].points - one["points"])
            assert one["best"] == max(found.values(), key=lambda c: c.gain).action
            assert sorted(c["action"] for c in one["actions"]) == np.flatnonzero(mask[0]).tolist()
            checked += 1
    assert checked > 20


def test_the_summary_adds_up(told: dict[str, Any]) -> None:
    for player in told["players"]:
        moves = [move for move in analysis.all_moves(told) if move["player"] == player["player"] and move["judged"]]
        losses = [move["judged"]["loss"] for move in moves]
        errors = [move["judged"]["error"] for move in moves]
        assert player["judged"] == len(moves)
        assert player["hands"] == 2
        assert player["loss"] == pytest.approx(np.mean(losses))
        assert player["loss_per_hand"] == pytest.approx(np.sum(losses) / 2)
        assert player["error_per_hand"] == pytest.approx(np.sqrt(np.square(errors).sum()) / 2)
        assert [one["loss"] for one in player["worst"]] == sorted((x for x in losses if x > 0), reverse=True)[:5]


def test_the_same_seed_the_same_figures(records: list[tuple[int, Record]], told: dict[str, Any]) -> None:
    # Whatever stands before it in the file, and whatever else is judged.
    again = analyse([(9, records[1][1])], agents.make("greedy"), Settings(worlds=60, seed=3, seats=(1,)))
    before = [move["judged"] for move in told["records"][1]["hands"][0]["moves"] if move["seat"] == 1]
    after = [move["judged"] for move in moves_of(again) if move["seat"] == 1]
    assert after == before
    assert any(after)
    other = analyse(records[1:], agents.make("greedy"), Settings(worlds=60, seed=4, seats=(1,)))
    assert [move["judged"] for move in moves_of(other) if move["seat"] == 1] != before


def test_a_clear_blunder() -> None:
    """To break a meld with gin in hand costs points."""
    gin = "AS2S3S AH2H3H 4D4H4S4C".replace(" ", "")
    others = "6D8DTDQDKD7C9CJCKC6C"
    pack = [rank + suit for suit in "SHDC" for rank in "A23456789TJQK"]
    cards = [gin[k : k + 2] for k in range(0, 20, 2)], [others[k : k + 2] for k in range(0, 20, 2)]
    dealt = [card for pair in zip(*cards, strict=True) for card in pair]
    rest = ["KS", "9H", *(card for card in pack if card not in {*dealt, "9H", "KS"})]
    line = f"gin1 cardpuzzle hand dealer=1 deck={''.join(dealt + rest)} p p d "
    wrong, right = (
        moves_of(analyse([(1, parse_record(line + move))], agents.make("greedy"), Settings(worlds=200)))[3]["judged"]
        for move in ("2H", "k9H")
    )
    assert wrong["choice_move"] == right["choice_move"] == wrong["best_move"] == "k9H"
    assert wrong["loss"] > 3 * wrong["error"] > 0
    assert (right["loss"], right["error"]) == (0, 0)


def test_the_best_found_is_measured_in_other_worlds(records: list[tuple[int, Record]]) -> None:
    result = analyse(records[:1], agents.make("greedy"), Settings(worlds=60, seed=3, against="best"))
    judged = [(move["action"], move["judged"]) for move in moves_of(result) if move["judged"]]
    assert any(one["best"] != one["choice"] for _, one in judged)
    for played, one in judged:
        found = {action["action"]: action for action in one["actions"]}
        assert (one["loss"], one["error"]) == (found[one["best"]]["gain"], found[one["best"]]["error"])
        assert one["loss"] == 0 or one["best"] != played
    # Chosen elsewhere, some of them do worse where they are measured.
    assert min(one["loss"] for _, one in judged) < 0


# -------------------------------------------------------------------------------------------------- what a seat knows


def test_nothing_hidden_decides(records: list[tuple[int, Record]]) -> None:
    """With the stock and the opponent's cards shuffled, a seat's first decision is judged the same."""
    hand = records[0][1].hands[0]
    mine, other, stock = hand.deck[:20:2], hand.deck[1:20:2], hand.deck[21:]
    hidden = np.array(other + stock)
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        mixed = rng.permutation(hidden).tolist() if seed else hidden.tolist()
        deck = [card for pair in zip(mine, mixed[:10], strict=True) for card in pair] + [hand.deck[20], *mixed[10:]]
        shuffled = HandRecord(hand.dealer, tuple(deck), (TAKE,))
        result = analyse([(1, Record(records[0][1].rules, False, (shuffled,)))], agents.make("greedy"), Settings(60))
        found.append(moves_of(result)[0]["judged"])
    assert found[0] is not None
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("seat", [0, 1])
def test_a_seat_left_out_stays_hidden(seat: int, records: list[tuple[int, Record]]) -> None:
    result = analyse(records, agents.make("greedy"), Settings(worlds=20, seats=(seat,)))
    for move in moves_of(result):
        if move["seat"] != seat:
            assert move["judged"] is None
            assert move["hand"] is None
            assert move["action"] != DRAW or move["card"] is None
    assert sum(move["judged"] is not None for move in moves_of(result)) == sum(p["judged"] for p in result["players"])


def test_the_showdown_and_forced_moves_have_no_figures() -> None:
    record = parse_record(next(line for line in MANUAL.read_text().splitlines() if " >1" in line or ">" in line))
    result = analyse([(1, record)], agents.make("greedy"), Settings(worlds=20))
    phases = {move["phase"]: move["judged"] is None for move in moves_of(result)}
    shown = [phase for phase in phases if PHASES.index(phase) >= PHASES.index("declare")]
    assert shown
    assert all(phases[phase] for phase in shown)
    assert not phases["throw"]


def test_a_hand_of_a_match() -> None:
    (line, record), *_ = play("greedy", "gin-only", match=True, seed=1)
    assert len(record.hands) > 1
    result = analyse([(line, record)], agents.make("greedy"), Settings(worlds=20, hand=2))
    (hand,) = result["records"][0]["hands"]
    assert hand["number"] == 2
    assert [move["action"] for move in hand["moves"]] == list(record.hands[1].moves)
    assert [player["hands"] for player in result["players"]] == [1, 1]
    with pytest.raises(ValueError, match=f"there is no hand 99; the longest record has {len(record.hands)}"):
        analyse([(line, record)], agents.make("greedy"), Settings(worlds=20, hand=99))


@pytest.mark.parametrize("rules", ["plus20", "rummyplus", "cardpuzzle:ranks=8,hand_size=8,knock_limit=6"])
def test_other_rules(rules: str) -> None:
    result = analyse(play("greedy", "random", rules=as_rules(rules)), agents.make("greedy"), Settings(worlds=20))
    assert all(player["judged"] > 0 for player in result["players"])
    json.dumps(result, allow_nan=False)


# -------------------------------------------------------------------------------------------------------------- agents


class Passer:
    """Passes whatever may be done."""

    name = "passer"

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        return np.full(view.size, PASS)


class Follower(Passer):
    """Wants to be told of every move."""

    name = "follower"

    def follow(self, views: np.ndarray, games: np.ndarray, actions: np.ndarray) -> None: ...


class Teller:
    """Plays the first legal action and tells a policy, if it is asked while it samples."""

    name = "teller"
    sample = False

    def act(self, view: np.ndarray, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        assert not self.sample
        assert view.dtype == VIEW_DTYPE
        return mask.argmax(axis=1).astype(np.int64)

    def probabilities(self, view: np.ndarray, mask: np.ndarray) -> np.ndarray:
        assert self.sample
        return mask / mask.sum(axis=1, keepdims=True)


def test_how_likely_an_agent_plays_it(records: list[tuple[int, Record]]) -> None:
    teller = Teller()
    result = analyse(records[:1], teller, Settings(worlds=20))
    for move in moves_of(result):
        if move["judged"]:
            one = move["judged"]
            share = pytest.approx(1 / len(one["actions"]))
            assert one["chance"] == one["played_chance"] == share
            assert one["choice"] == min(action["action"] for action in one["actions"])
    assert teller.sample is False
    told = analyse(records[:1], agents.make("greedy"), Settings(worlds=20))
    assert all(move["judged"]["chance"] is None for move in moves_of(told) if move["judged"])


def test_agents_that_will_not_do(records: list[tuple[int, Record]]) -> None:
    with pytest.raises(AgentError, match="'passer' played action 0, which is illegal there; legal: "):
        analyse(records, Passer(), Settings(worlds=20))
    with pytest.raises(ValueError, match="follower would have to follow the game"):
        analyse(records, Follower(), Settings(worlds=20))


# ---------------------------------------------------------------------------------------------------------- for people


def test_names() -> None:
    def called(comment: str) -> tuple[str, str]:
        return names({"comment": comment})

    assert called("deal 3: seat 0 greedy, seat 1 search:ms=5,evidence=2:greedy") == (
        "greedy",
        "search:ms=5,evidence=2:greedy",
    )
    assert called("2026-01-02 10:00, seed 5, game 1: seat 0 you, seat 1 best, practice, moves taken back: 2") == (
        "you",
        "best",
    )
    assert called("deal 3: seat 0 greedy, seat 1 greedy") == called("") == called("mine") == ("seat 0", "seat 1")


def test_dearest() -> None:
    def move(loss: float | None, number: int) -> dict[str, Any]:
        judged = None if loss is None else dict.fromkeys(("choice", "choice_move", "best", "best_move", "error"), 1)
        place = dict.fromkeys(("line", "hand", "player", "seat", "action", "move"), 1)
        return place | {"number": number, "judged": judged if judged is None else judged | {"loss": loss}}

    moves = [move(1.0, 0), move(None, 1), move(3.0, 2), move(-4.0, 3), move(3.0, 4), move(0.0, 5)]
    assert [one["number"] for one in dearest(moves, 9)] == [2, 4, 0]
    assert [one["number"] for one in dearest(moves, 2)] == [2, 4]


def test_pages(told: dict[str, Any]) -> None:
    console = Console(width=100)
    with console.capture() as said:
        print_analysis(told, console)
    text = said.get()
    assert "line 1: cardpuzzle, a hand  # deal 0: seat 0 random, seat 1 greedy" in text
    assert " ± " in text
    assert "the dearest moves" in text
    for move in moves_of(told):
        assert f"\n{move['number']:>3}  " in text or f"\n {move['number']:>2}  " in text
    with console.capture() as said:
        print_analysis(told, console, worst=1)
    short = said.get()
    worst = max(move["judged"]["loss"] for move in moves_of(told) if move["judged"])
    assert short.count(f"{worst:+.1f} ± ") >= 1
    assert "line 1:" not in short
    assert "knock with 10 or less" not in short


# -------------------------------------------------------------------------------------------------------- command line


def test_command(tmp_path: Path, records: list[tuple[int, Record]], capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "hands.txt", tmp_path / "deep" / "judged.json"
    path.write_text("# mine\n" + "".join(record.line() + "\n" for _, record in records))
    words = ["analyse", str(path), "--agent", "greedy", "--worlds", "20", "--json", str(out)]
    assert main([*words, "--line", "3", "--seat", "1"]) == 0
    assert "the dearest moves" in capsys.readouterr().out
    written = json.loads(out.read_text())
    assert (written["file"], written["agent"], written["worlds"]) == (str(path), "greedy", 20)
    assert [story["line"] for story in written["records"]] == [3]
    assert list(out.parent.iterdir()) == [out]
    assert main([*words, "--worst", "2"]) == 0
    assert "deal 0" not in capsys.readouterr().out
    assert [story["line"] for story in json.loads(out.read_text())["records"]] == [2, 3]


def test_errors(tmp_path: Path, records: list[tuple[int, Record]], capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "hands.txt", tmp_path / "judged.json"
    line = records[0][1].line()
    path.write_text(line + "\n")
    wrong = tmp_path / "wrong.txt"
    wrong.write_text(f"{line}\n{line.replace('= seat', 'p = seat')}\n")
    for words, says in (
        (f"{tmp_path}/none.txt", "none.txt: No such file"),
        (f"{path} --agent nobody", "'nobody' is no agent"),
        (f"{path} --worlds 5", "worlds is 5; expected at least 20"),
        (f"{path} --worst 0", "worst is 0; expected at least 1"),
        (f"{path} --hand 0", "hand is 0; expected 1 or more"),
        (f"{path} --hand 2", "there is no hand 2; the longest record has 1"),
        (f"{path} --line 2", "there is no record on line 2"),
        (f"{path} --seed -1", "seed is -1"),
        (f"{wrong}", "wrong.txt, line 2: hand 1, move "),
    ):
        assert main(["analyse", *words.split(), *([] if "--agent" in words else ["--agent", "greedy"])]) == 2
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert says in said.err
    assert not out.exists()


def test_ctrl_c(
    tmp_path: Path,
    records: list[tuple[int, Record]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out = tmp_path / "hands.txt", tmp_path / "judged.json"
    path.write_text(records[0][1].line() + "\n")
    run, calls = search.Race.run, 0

    def interrupted(race: search.Race, worlds: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise KeyboardInterrupt
        run(race, worlds)

    monkeypatch.setattr(search.Race, "run", interrupted)
    assert main(["analyse", str(path), "--agent", "greedy", "--worlds", "20", "--json", str(out)]) == 130
    assert capsys.readouterr() == ("", "ginrummy: interrupted\n")
    assert [one.name for one in tmp_path.iterdir()] == ["hands.txt"]
