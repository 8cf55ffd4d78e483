"""The command `ginrummy`: help, results, and errors in one line."""

import ctypes
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agents
from agents import match, match40
from experiments import bench, cli
from experiments.cli import main
from experiments.commands.train import DEFAULT_RECIPES, recipe_names
from gin_env import engine, preset
from gin_env.record import read_records
from gin_env.rulebook import SOURCES
from gin_env.rules import PRESETS, as_rules

ROOT = Path(__file__).resolve().parent.parent
HOUSE = str(ROOT / "experiments" / "rules" / "house.toml")

NO_TORCH = """
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
"""


def run(*words: str, code: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own, after some code."""
    program = f"import sys\n{code}\nfrom experiments.cli import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True, **options)


# ------------------------------------------------------------------------------------------------------------- help


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert f"\n  {command} " in text


@pytest.mark.parametrize("command", [name for name in cli.COMMANDS if not name.startswith("train ")])
def test_help_of_a_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert f"ginrummy {command}" in capsys.readouterr().out


def test_help_of_a_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--help"]) == 0
    assert "bench engine" in capsys.readouterr().out


def test_agents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("greedy ") and "deadwood" in line for line in lines)
    assert any(line.startswith("random ") for line in lines)
    assert main(["agents", "--game", "rummy40"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["greedy", "patient", "random", "DIR"]


# ------------------------------------------------------------------------------------------------------------ match


def test_match_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "greedy", "random", "--deals", "100"]) == 0
    out = capsys.readouterr().out
    assert "as non-dealer" in out
    assert out.splitlines()[-1].startswith("greedy beats random by ")
    assert out.endswith("100 deals played twice\n")


def test_match_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    words = ["match", "greedy:knock=5", "greedy", "--deals", "20", "--seed", "9", "--rules", "plus20", "--batch", "6"]
    assert main([*words, "--json", "--out", str(path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data == json.loads(path.read_text())
    assert (data["a"], data["seed"], data["deals"], data["rules"]["name"]) == ("greedy:knock=5", 9, 20, "plus20")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_match_of_rummy40(workers: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "hands.txt"
    words = ["match", "greedy", "random", "--game", "rummy40", "--rules", "rummy40:seats=4", "--deals", "6"]
    assert main([*words, "--json", "--records", str(path), "--workers", workers]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["game"], told["seats"], told["hands"]) == ("rummy40", 4, 48)
    players = (agents.make(name, game="rummy40") for name in ("greedy", "random"))
    expected = match40.play_match(*players, deals=6, rules="rummy40:seats=4", forfeits=True).to_json()
    assert {**told, "speed": 0} == {**json.loads(json.dumps(expected)), "speed": 0}
    lines = path.read_text().splitlines()
    assert len(lines) == 48
    assert lines[7].startswith("rummy1 rummy40:seats=4 ")
    assert "deal 0: seat 0 greedy, seat 1 greedy, seat 2 greedy, seat 3 random" in lines[7]


def test_match_of_rummy40_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "greedy", "random", "--game", "rummy40", "--deals", "60", "--match"]) == 0
    out = capsys.readouterr().out
    assert "goes out" in out
    assert "matches won" in out
    assert out.splitlines()[-1].startswith("greedy wins ")
    assert main(["match", "greedy", "greedy", "--game", "rummy40", "--rules", "rummy40:seats=4", "--deals", "9"]) == 0
    assert "the games of every deal came out at exactly 0, 9 deals played 8 times" in capsys.readouterr().out


def test_match_needs_no_torch() -> None:
    done = run("match", "greedy", "random", "--deals", "5", "--json", code=NO_TORCH)
    assert done.returncode == 0
    assert json.loads(done.stdout)["deals"] == 5
    assert done.stderr == ""


def test_bench_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "engine", "--tables", "4", "--seconds", "0.01", "--rounds", "1", "--no-peers"]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["entries"][0]["decisions_per_second"] > 0
    assert "round 1 of 1" in said.err
    assert main(words) == 0
    assert "decisions a second on one thread (cardpuzzle)" in capsys.readouterr().out


# -------------------------------------------------------------------------------------------------- rules and docs


def test_rules_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    out = capsys.readouterr().out
    for name in PRESETS:
        assert f" {name} " in out
    assert main(["rules", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["presets"]
    assert [entry["name"] for entry in listed] == list(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_rules_of_a_preset(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", name]) == 0
    out = capsys.readouterr().out
    assert out.startswith(name)
    assert "decided by this project" in out
    assert SOURCES[name].title in out
    assert PRESETS[name].fingerprint in out


def test_rules_as_text_and_as_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    assert main(["rules", "plus20:oklahoma=true,target=50", "--json", "--out", str(path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data == json.loads(path.read_text())
    assert data["text"] == "plus20:oklahoma=true,target=50"
    assert {point["title"] for point in data["points"] if point["decision"] == "yours"} == {
        "limit",
        "Oklahoma",
        "match target",
    }
    assert main(["rules", HOUSE]) == 0
    out = capsys.readouterr().out
    assert out.startswith("house ")
    assert "yours: changed" in out
    assert "said by the rule page" not in out


def test_rules_need_no_numba() -> None:
    done = run("rules", "luciano", "--json", code=NO_TORCH.replace("torch", "numba"))
    assert done.returncode == 0
    assert json.loads(done.stdout)["name"] == "luciano"
    assert done.stderr == ""


def test_docs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "--out", str(tmp_path / "pages")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert str(tmp_path / "pages" / "rules" / "luciano.md") in lines
    assert all(Path(line).is_file() for line in lines)


def test_commands_that_take_rules(capsys: pytest.CaptureFixture[str]) -> None:
    match_words = ["match", "greedy", "random", "--deals", "3", "--json", "--rules"]
    bench_words = ["bench", "engine", "--tables", "4", "--seconds", "0.01", "--rounds", "1", "--no-peers"]
    bench_words += ["--threads", "1", "--json", "--rules"]
    for text, name in (("luciano:target=none", "luciano"), (HOUSE, "house")):
        assert main([*match_words, text]) == 0
        told = json.loads(capsys.readouterr().out)["rules"]
        assert told["name"].startswith(name)
        assert told["fingerprint"] == as_rules(text).fingerprint
    # Some have more actions and a longer observation.
    texts = ["luciano:target=none", HOUSE, "openspiel"]
    assert main([*bench_words, *texts]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert [as_rules(entry["rules"]).fingerprint for entry in entries] == [as_rules(text).fingerprint for text in texts]


# ---------------------------------------------------------------------------------------------------- match, replay


def records(folder: Path, *words: str) -> Path:
    """Plays a few hands and returns the file of their records."""
    path = folder / "deep" / "hands.txt"
    assert main(["match", "greedy", "random", "--deals", "3", "--records", str(path), *words]) == 0
    return path


def test_match_writes_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = records(tmp_path, "--json", "--rules", "plus20", "--seed", "4", "--batch", "4")
    told = json.loads(capsys.readouterr().out)
    assert main(["match", "greedy", "random", "--deals", "3", "--json", "--rules", "plus20", "--seed", "4"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain.pop("speed").keys() == told.pop("speed").keys()
    assert told == plain

    read = [record for _, record in read_records(path.read_text(encoding="utf-8").splitlines())]
    points = []
    for game, record in enumerate(read):
        names = ("greedy", "random") if game % 2 == 0 else ("random", "greedy")
        assert record.comment == f"deal {game // 2}: seat 0 {names[0]}, seat 1 {names[1]}"
        assert record.rules == preset("plus20")
        *_, tables = engine.replay(record)
        result = engine.result(tables)
        assert result is not None
        points.append(0 if result.winner is None else result.points * (1 if names[result.winner] == "greedy" else -1))
    assert len(read) == 6
    assert sum(points) / 6 == pytest.approx(told["points_per_hand"])
    assert [record.hands[0].deck for record in read[::2]] == [record.hands[0].deck for record in read[1::2]]
    assert list(path.parent.iterdir()) == [path]


def test_broken_off_match_leaves_no_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = records(tmp_path)
    before = path.read_text()
    step, calls = engine.step, 0

    def interrupted(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 30:
            raise KeyboardInterrupt
        return step(*args, **options)

    monkeypatch.setattr(engine, "step", interrupted)
    assert main(["match", "greedy", "random", "--deals", "50", "--records", str(path)]) == 130
    assert path.read_text() == before
    assert list(path.parent.iterdir()) == [path]


RULES = "cardpuzzle:ranks=4,hand_size=3,knock_limit=6"
HAND = f"gin1 {RULES} hand dealer=0 deck=AS2S3S4SAH2H3H4HAD2D3D4DAC2C3C4C p p d k4H = seat 1 +3 knock"


def test_replay_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.txt"
    path.write_text("# mine\n\n" + HAND + " # a word\n")
    assert main(["replay", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{RULES}, a hand  # a word",
        "hand 1: seat 0 deals; knock with 6 or less",
        "      upcard  3♥, stock 9",
        "      seat 0  2♠ 4♠ 2♥  deadwood 8",
        "      seat 1  A♠ 3♠ A♥  deadwood 5",
        "   1  seat 1  passes",
        "   2  seat 0  passes",
        "   3  seat 1  draws 4♥",
        "   4  seat 1  knocks with 4♥  A♠ 3♠ A♥  deadwood 5",
        "      seat 0  2♠ 4♠ 2♥  deadwood 8",
        "      seat 1  A♠ 3♠ A♥  deadwood 5",
        "      seat 1 knocked and wins 3",
        "",
    ]


def test_replay_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = records(tmp_path)
    capsys.readouterr()
    assert main(["replay", str(path), "--json"]) == 0
    stories = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [story["line"] for story in stories] == [1, 2, 3, 4, 5, 6]
    for story, (_, record) in zip(stories, read_records(path.read_text().splitlines()), strict=True):
        (hand,) = story["hands"]
        assert [move["action"] for move in hand["moves"]] == list(record.hands[0].moves)
        assert [move["number"] for move in hand["moves"]] == list(range(1, len(hand["moves"]) + 1))
        assert hand["result"]["ending"] == record.hands[0].result.ending  # type: ignore[union-attr]
        assert len(hand["hands"][0]["cards"]) == len(hand["result"]["hands"][0]) == 10
        assert all(move["hand"] and (move["card"] or move["move"] in "pG") for move in hand["moves"])
        assert story["mover"] is None


@pytest.mark.parametrize("seat", [0, 1])
def test_replay_hides_what_a_seat_cannot_see(seat: int, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(ROOT / "tests" / "data" / "golden" / "luciano-manual.txt")
    assert main(["replay", path, "--json", "--seat", str(seat)]) == 0
    stories = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for story in stories:
        (hand,) = story["hands"]
        assert hand["hands"][1 - seat] is None
        assert hand["hands"][seat] is not None
        for move in hand["moves"]:
            assert (move["hand"] is None) == (move["seat"] != seat)
            assert (move["card"] is None) == (move["move"][0] in "pm" or move["move"] == "d" and move["seat"] != seat)
    assert main(["replay", path, "--seat", str(seat), "--line", "2"]) == 0
    out = capsys.readouterr().out
    assert f"seat {1 - seat}  draws a card" in out
    assert f"seat {seat}  draws a card" not in out


def test_replay_of_a_match(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "tests" / "data" / "golden"
    assert main(["replay", str(folder / "cardpuzzle-match.txt")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cardpuzzle, a match to 100  # ")
    assert lines[1].startswith("hand 1: seat ")
    assert "score 0-0" in lines[1]
    assert lines[-2] in ("seat 0 wins the match", "seat 1 wins the match")
    assert main(["replay", str(folder / "openspiel-one-hand-match.txt"), "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert (story["match"], story["target"], len(story["hands"])) == (True, None, 3)
    assert story["winner"] == story["hands"][-1]["result"]["winner"]


def test_replay_of_the_standard_input() -> None:
    text = "\n" + HAND.partition(" k")[0]
    done = run("replay", "-", code=NO_TORCH, input=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("      seat 1 is to move: throw\n\n")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("gin1 whist", "line 3: it ends after 'whist'"),
        (HAND.replace("+3", "+6"), "line 3: hand 1: its result is 'seat 1 +6 knock'"),
        (HAND.replace("d k4H", "t k4H"), "line 3: hand 1, move 3, 't': seat 1 may not play it"),
    ],
)
def test_replay_says_which_line_is_wrong(
    line: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.txt"
    right = HAND
    path.write_text(f"# one is wrong\n{right}\n{line}\n")
    assert main(["replay", str(path)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"ginrummy: {path}, {says}")
    assert said.err.count("\n") == 1
    assert main(["replay", str(path), "--line", "2"]) == 0
    assert capsys.readouterr() == (said.out, "")
    assert main(["replay", str(path), "--line", "1"]) == 2
    assert capsys.readouterr().err == f"ginrummy: {path}: there is no record on line 1\n"


def test_replay_of_what_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "noise"
    path.write_bytes(b"\xff\xfe\x00")
    assert main(["replay", str(path)]) == 2
    assert "noise: this is no text: " in capsys.readouterr().err
    path.write_text("\n# nothing\n")
    assert main(["replay", str(path)]) == 2
    assert capsys.readouterr().err == f"ginrummy: {path}: there is no record\n"


# ----------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "a command is missing"),
        ("fly", "'fly' is no command"),
        ("train", "expected train ppo"),
        ("train sac", "'train sac' is no command; expected train ppo"),
        ("match nobody greedy", "'nobody' is no agent"),
        ("match greedy greedy:knock=-1", "knock is -1"),
        ("match greedy random --rules whist", "'whist' is no preset"),
        ("match greedy random --rules plus20:tie=never", "tie is 'never'; expected one of"),
        ("match greedy random --rules no/such.toml", "no/such.toml: No such file"),
        ("bench engine --rules plus20:oklahoma", "'oklahoma' is not of the form field=value"),
        ("rules whist", "'whist' is no preset; expected one of cardpuzzle, "),
        ("rules plus20:colour=red", "unknown field 'colour'"),
        ("rules plus20:target=5,target=6", "target is given twice"),
        ("rules no/such.toml", "no/such.toml: No such file"),
        ("docs --out /dev/null/docs", "/dev/null"),
        ("match greedy random --deals -5", "deals is -5; expected at least 1"),
        ("match greedy random --seed -1", "seed is -1"),
        ("match gin-only random --game rummy40", "'gin-only' is no agent of rummy40: expected greedy, patient, random"),
        ("match greedy random --game rummy40 --rules plus20", "'plus20' is no preset; expected one of rummy40"),
        (
            "match greedy random --rules rummy40:seats=4",
            "the rules 'rummy40:seats=4' are not of gin: add --game rummy40",
        ),
        ("match greedy random --game rummy40 --luck", "--luck is told of gin only, not of rummy40"),
        ("tournament greedy nobody --game rummy40", "'nobody' is no agent of rummy40"),
        ("match greedy random --batch 0", "batch is 0"),
        ("match greedy random --deals 2 --out /dev/null/x.json", "/dev/null"),
        ("match greedy random --deals 2 --records /dev/null/x.txt", "/dev/null"),
        ("replay no/such/file", "no/such/file: No such file"),
        ("bench engine --tables 0", "tables is 0"),
        ("bench train --rounds 0", "rounds is 0"),
        ("export no/such/run", "there is no run no/such/run"),
        ("train ppo --recipe nothing", "there is no recipe 'nothing'"),
    ],
)
def test_error_in_one_line(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said
    assert said.startswith("ginrummy: ")


@pytest.mark.parametrize(
    "words", ["match greedy", "match greedy random more", "match greedy random --deals many", "bench engine --deals 3"]
)
def test_wrong_words(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""


def test_error_with_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cli.TRACEBACK, "1")
    with pytest.raises(ValueError, match="nobody"):
        main(["match", "nobody", "greedy"])


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*args: Any, **options: Any) -> None:
        raise TypeError("a fault")

    monkeypatch.setattr(match, "play_match", fault)
    with pytest.raises(TypeError, match="a fault"):
        main(["match", "greedy", "random"])


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [(match, "play_match", "match greedy random --json"), (bench, "bench_engine", "bench engine --json")],
)
def test_ctrl_c(
    module: Any, name: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, interrupt)
    assert main(words.split()) == 130
    assert capsys.readouterr() == ("", "ginrummy: interrupted\n")


def test_a_real_ctrl_c() -> None:
    # It sends itself the signal from within the match, so that nothing depends on the time.
    code = f"""
import os, signal
signal.signal({signal.SIGINT}, signal.default_int_handler)
from gin_env import engine
step = engine.step
engine.step = lambda *args, **options: (os.kill(os.getpid(), {signal.SIGINT}), step(*args, **options))[1]
"""
    done = run("match", "random", "random", code=code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ginrummy: interrupted\n")


@pytest.mark.parametrize("error", [RuntimeError("no compiled object yet"), ValueError("of the compiler"), None])
def test_ctrl_c_while_the_compiler_calls_back(error: Exception | None) -> None:
    # As numba does: its C code calls Python, where an exception cannot pass, and then it misses what it called for.
    code = f"""
import ctypes, os, signal
signal.signal({signal.SIGINT}, signal.default_int_handler)
from gin_env import engine
step = engine.step
def compiles(*args, **options):
    engine.step = step
    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), {signal.SIGINT}))()
    if {error!r}:
        raise {error!r}
    return step(*args, **options)
engine.step = compiles
"""
    # Without an error it would play on for minutes.
    done = run("match", "random", "random", "--deals", "10" if error else "1000000", code=code, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ginrummy: interrupted\n")


def test_what_cannot_be_raised_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: told.append(lost.exc_type))

    def broken(words: list[str]) -> None:
        ctypes.CFUNCTYPE(None)(lambda: 1 // 0)()

    monkeypatch.setattr(cli, "_dispatch", broken)
    assert main([]) == 0
    assert told == [ZeroDivisionError]


def test_ctrl_c_that_is_ignored_stays_so() -> None:
    # As a job in the background, or under nohup.
    code = f"""
import os, signal
signal.signal({signal.SIGINT}, signal.SIG_IGN)
from gin_env import engine
step = engine.step
engine.step = lambda *args, **options: (os.kill(os.getpid(), {signal.SIGINT}), step(*args, **options))[1]
"""
    done = run("match", "random", "random", "--deals", "10", code=code)
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------------------ train


def recipe(folder: Path, text: str = "seed = 4\nepochs = 3\n") -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_train_help_shows_the_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", "ppo", "--recipe", recipe(tmp_path), "--help"])
    assert ended.value.code == 0
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--epochs INT" in out
    assert "(default: 3)" in out
    assert "(default: runs/mine)" in out


def test_train_merges_recipe_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ppo = pytest.importorskip("training.ppo", exc_type=ImportError)
    calls: list[tuple[Any, Path, bool]] = []
    monkeypatch.setattr(ppo, "train", lambda config, run, *, overwrite: calls.append((config, run, overwrite)))
    assert main(["train", "ppo", f"--recipe={recipe(tmp_path)}", "--seed", "8"]) == 0
    assert main(["train", "ppo", "--recipe", recipe(tmp_path), "--run", "there", "--overwrite"]) == 0
    (first, run_dir, fresh), (second, other_dir, afresh) = calls
    assert (first.seed, first.epochs, second.seed, second.epochs) == (8, 3, 4, 3)
    assert (run_dir, fresh) == (Path("runs/mine"), False)
    assert (other_dir, afresh) == (Path("there"), True)


@pytest.mark.parametrize(("algorithm", "option"), [("dqn", "n_step"), ("imitate", "epochs")])
def test_train_other_algorithms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str, option: str) -> None:
    module = pytest.importorskip(f"training.{algorithm}", exc_type=ImportError)
    calls: list[tuple[Any, Path]] = []
    monkeypatch.setattr(module, "train", lambda config, run, *, overwrite: calls.append((config, run)))
    path = recipe(tmp_path, f'algorithm = "{algorithm}"\nseed = 4\n')
    assert main(["train", algorithm, "--recipe", path, "--" + option.replace("_", "-"), "2"]) == 0
    ((config, run_dir),) = calls
    assert (config.algorithm, config.seed, getattr(config, option), run_dir) == (algorithm, 4, 2, Path("runs/mine"))
    # A recipe for another algorithm is refused.
    assert main(["train", "ppo", "--recipe", path]) == 2


def test_train_of_another_game_takes_its_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    ppo = pytest.importorskip("training.ppo", exc_type=ImportError)
    calls: list[Any] = []
    monkeypatch.setattr(ppo, "train", lambda config, run, *, overwrite: calls.append((config, run)))
    assert main(["train", "ppo", "--game", "rummy40", "--rules", "rummy40:seats=4"]) == 0
    config, run = calls[0]
    assert (config.game, config.rules, str(run)) == ("rummy40", "rummy40:seats=4", "runs/rummy40-quick")
    assert set(config.opponents) == {"greedy"}
    # The usual rules are those of the game, whatever recipe it is; rules that are named stay.
    rules = [
        ("ppo --game=rummy40", "rummy40"),
        ("ppo --game rummy40 --recipe quick", "rummy40"),
        ("ppo --game gin --recipe rummy40-quick", "cardpuzzle"),
        ("ppo --game rummy40 --rules cardpuzzle", "cardpuzzle"),
    ]
    for words, expected in rules:
        assert main(["train", *words.split()]) == 0
        assert calls[-1][0].rules == expected


def test_train_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "ppo", "--recipe", recipe(tmp_path, "epoch = 3")]) == 2
    assert "unknown field 'epoch'" in capsys.readouterr().err
    assert main(["train", "ppo", "--recipe", recipe(tmp_path), "--epochs", "0"]) == 2
    assert "epochs is 0" in capsys.readouterr().err


def test_train_with_rules_that_cannot_be_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("training.ppo", exc_type=ImportError)
    for rules, says in (("whist", "'whist' is no preset"), ("eaai", "rules 'eaai' are manual")):
        words = ["train", "ppo", "--recipe", recipe(tmp_path), "--run", str(tmp_path / "run"), "--rules", rules]
        assert main(words) == 2
        assert says in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_train_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ppo = pytest.importorskip("training.ppo", exc_type=ImportError)

    def stop(*args: Any, **options: Any) -> None:
        raise ppo.Interrupted("stopped at step 5; the same command goes on")

    monkeypatch.setattr(ppo, "train", stop)
    assert main(["train", "ppo", "--recipe", recipe(tmp_path)]) == 130
    assert capsys.readouterr() == ("", "ginrummy: stopped at step 5; the same command goes on\n")


def test_train_without_torch(tmp_path: Path) -> None:
    done = run("train", "ppo", "--recipe", recipe(tmp_path), code=NO_TORCH)
    assert done.returncode == 2
    assert done.stderr == 'ginrummy: this needs torch, which is not installed: pip install "gin-env[train]"\n'


def test_packaged_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    assert recipe_names() == sorted(name for algorithm in DEFAULT_RECIPES for name in recipe_names(algorithm))
    for algorithm, default in DEFAULT_RECIPES.items():
        assert default in recipe_names(algorithm)
        for name in recipe_names(algorithm):
            with pytest.raises(SystemExit) as ended:
                main(["train", algorithm, "--recipe", name, "--help"])
            assert ended.value.code == 0
