"""Round robins: the same result however they are played, interrupted and resumed."""

import io
import json
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

pytest.importorskip("choix")

import agents
from agents import base
from agents.match import Games, deck_hash, pair_interval, play_games, play_match
from agents.result import summarise
from experiments import cli, tournament, workers
from experiments.commands.games import _with_address
from experiments.sheets import _milliseconds, headline, print_tournament, rich_table, sheets, significance
from experiments.standings import TournamentResult
from experiments.tournament import MANIFEST, PIECES, Folder, Interrupted, TournamentError, make_plan, play_tournament
from experiments.workers import Piece, Played, WorkerError, pieces, play_match_by, play_pieces, source_stamp
from gin_env import preset
from gin_env.view import View

ROOT = Path(__file__).resolve().parent.parent
CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "data" / "cases.json").read_text())}
PLAYERS = ("random", "gin-only", "greedy")  # not in alphabetical order
DEALS = 30


def play(*players: str, **options: Any) -> TournamentResult:
    return play_tournament(players or PLAYERS, **{"deals": DEALS, "seed": 5, "resamples": 10} | options)


def plain(result: TournamentResult) -> Any:
    """The result as a program reads it, without the times."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(part) for key, part in value.items() if key != "speed"}
        return [without(part) for part in value] if isinstance(value, list) else value

    return without(json.loads(json.dumps(result.to_json(), allow_nan=False)))


@pytest.fixture(scope="module")
def whole() -> TournamentResult:
    return play()


@pytest.fixture
def enter(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[..., Any]], None]:
    """Makes a player of the tests known by a name."""

    def register(name: str, factory: Callable[..., Any]) -> None:
        monkeypatch.setitem(base._FACTORIES["gin"], name, factory)

    return register


def count_pieces(monkeypatch: pytest.MonkeyPatch) -> list[Piece]:
    """Returns a list to which every piece that is played is added."""
    played: list[Piece] = []
    honest = workers.play_piece

    def spy(piece: Piece, *rest: Any) -> Played:
        played.append(piece)
        return honest(piece, *rest)

    monkeypatch.setattr(workers, "play_piece", spy)
    return played


# --------------------------------------------------------------------------------------------- what is in the result


def test_every_pairing_is_the_match_of_its_players(whole: TournamentResult) -> None:
    names = sorted(PLAYERS)
    assert list(whole.pairings) == [(0, 1), (0, 2), (1, 2)]
    for (i, j), pairing in whole.pairings.items():
        alone = play_match(agents.make(names[i]), agents.make(names[j]), deals=DEALS, seed=5)
        assert pairing == alone
        assert (pairing.games == alone.games).all()


def test_what_identifies_it_is_logged_d05(whole: TournamentResult, tmp_path: Path) -> None:
    play("greedy", "random", folder=tmp_path, deals=3)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    for log in (whole.to_json(), manifest):
        found = {
            "deck hash": log["deck_hash"] == deck_hash(preset("cardpuzzle"), 5, log["deals"]),
            "bot version": all(entry["version"] for entry in log["agents"]),
            "variant": log["rules"] == {"name": "cardpuzzle", "fingerprint": preset("cardpuzzle").fingerprint},
            "seed": log["seed"] == 5,
            "source": log["source"] == source_stamp(),
        }
        assert all(found.values()), found
        assert set(CASES["D05"]["expected"]["log_fields"]) <= {*found, "seat"}
    assert {"non_dealer", "dealer"} <= whole.to_json()["standings"][0]["seats"].keys()
    # Every pairing is on the same decks.
    assert len({pairing.deck_hash for pairing in whole.pairings.values()}) == 1


def test_two_names_of_one_player_are_level_d01() -> None:
    case = CASES["D01"]
    result = play("gin-only", "greedy:knock=0", deals=case["input"]["deals"])
    (pairing,) = result.pairings.values()
    sums = pairing.games.sum(axis=1)
    assert sums.tolist() == [case["expected"]["sum_per_pair"]] * case["input"]["deals"]
    assert pairing.points_per_hand == case["expected"]["mean_difference"]
    assert sums.var() == case["expected"]["variance_of_pair_sums"]
    assert [one.elo for one in result.standings] == [0, 0]
    assert "cannot be told apart" in headline(result)


@pytest.mark.parametrize("match", [False, True])
def test_standings_against_a_plain_sum(match: bool) -> None:
    result = play("gin-only", "greedy", "early-knock", match=match, deals=8, rules="plus20:target=50")
    names = [entry.spec for entry in result.plan.entries]
    total = 0
    for one in result.standings:
        me = names.index(one.entry.spec)
        points = np.zeros((8, 2), dtype=int)  # by deal and place in the pair
        hands = won = 0
        for (i, j), pairing in result.pairings.items():
            if me in (i, j):
                points += pairing.games if me == i else -pairing.games
                hands += pairing.hands
                won += pairing.hands_won if me == i else pairing.hands_lost
        assert one.field.hands == hands
        assert one.field.hands_won == won
        assert one.field.points_per_hand == points.sum() / hands
        if not match:
            assert one.field.ci95 == pair_interval(points, np.full((8, 2), 2))[1]
        assert one.field.as_dealer != one.field.as_non_dealer
        assert one.field.deals == 8
        total += points.sum()
    assert total == 0
    assert [one.elo for one in result.standings] == sorted((one.elo for one in result.standings), reverse=True)
    assert sum(one.elo for one in result.standings) == pytest.approx(0, abs=1e-6)
    assert sum(one.first for one in result.standings) == pytest.approx(1)


def test_more_hands_won_is_not_a_better_rating(whole: TournamentResult) -> None:
    best, second, _ = whole.standings
    assert (best.entry.spec, second.entry.spec) == ("gin-only", "greedy")
    assert best.field.hands_won < second.field.hands_won


def test_the_anchor_is_at_zero(whole: TournamentResult) -> None:
    anchored = play(anchor="greedy")
    moved = {one.entry.spec: one.elo for one in anchored.standings}
    before = {one.entry.spec: one.elo for one in whole.standings}
    assert moved["greedy"] == 0
    assert moved["random"] == pytest.approx(before["random"] - before["greedy"])


@pytest.mark.parametrize("match", [False, True])
def test_games_told_from_the_other_side(match: bool) -> None:
    players = agents.make("early-knock"), agents.make("greedy")
    games = play_games(*players, deals=6, rules="luciano:target=40", match=match)
    other = play_games(*players[::-1], deals=6, rules="luciano:target=40", match=match)
    text = dict.fromkeys(("a", "b", "rules", "fingerprint", "deck_hash"), "")
    known: dict[str, Any] = {**text, "versions": ("", ""), "match": match, "seed": 0}
    assert summarise(games.mirrored(), **known) == summarise(other, **known)
    assert (games.mirrored().points == other.points).all()
    back = games.mirrored().mirrored()
    for name, value in vars(games).items():
        assert np.array_equal(getattr(back, name), value), name


# --------------------------------------------------------------------------------------------- however it is played


def test_order_of_names_changes_nothing(whole: TournamentResult) -> None:
    other = play(*PLAYERS[::-1])
    assert other == whole
    assert plain(other) == plain(whole)


@pytest.mark.parametrize("options", [{"piece": 7}, {"piece": 1000, "batch": 3}, {"piece": 4, "batch": 1}])
def test_pieces_and_batches_change_nothing(whole: TournamentResult, options: dict[str, int]) -> None:
    assert plain(play(**options)) == plain(whole)


def test_killed_with_its_workers_and_resumed(whole: TournamentResult, tmp_path: Path) -> None:
    """Two workers, killed without warning: they leave, what was played is kept, and nothing of it shows."""
    words = ["tournament", *PLAYERS, "--deals", "100000", "--seed", "5", "--piece", "10", "--workers", "2"]
    program = "import sys\nfrom experiments.cli import main\nsys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, *words, "--out", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        while len(list((tmp_path / PIECES).glob("[0-9]*.npz"))) < 4:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.stdout.read()  # ends when no worker holds it any more
    lines: list[str] = []
    resumed = play(folder=tmp_path, say=lines.append)
    assert lines[0].endswith("of 90 duplicate deals are there already")
    assert plain(resumed) == plain(whole)


def test_a_match_by_pieces_is_the_match() -> None:
    lines: list[str] = []
    calls: list[tuple[int, int]] = []
    result, incidents = play_match_by(
        "random", "greedy", deals=20, seed=3, piece=6, record=lines.append, progress=lambda *call: calls.append(call)
    )
    records: list[Any] = []
    alone = play_match(agents.make("random"), agents.make("greedy"), deals=20, seed=3, record=records.append)
    assert result == alone
    assert lines == [record.line() for record in records]
    assert calls == [(12, 40), (24, 40), (36, 40), (40, 40)]
    assert incidents == (Counter(), Counter())
    mirror, _ = play_match_by("greedy", "greedy", deals=5, piece=2)
    assert mirror.ci95 == (0, 0)


@given(st.integers(1, 50), st.integers(0, 200), st.integers(0, 200))
def test_pieces_cover_the_deals(size: int, first: int, number: int) -> None:
    cut = list(pieces(size, first, first + number))
    assert [deal for start, some in cut for deal in range(start, start + some)] == list(range(first, first + number))
    assert all(start // size == (start + some - 1) // size for start, some in cut)


@pytest.mark.interop
def test_on_ray(whole: TournamentResult, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    words = ["tournament", *PLAYERS, "--deals", str(DEALS), "--seed", "5", "--resamples", "10", "--piece", "9"]
    words += ["--ray", "local", "--json", "--out", str(tmp_path)]
    program = "import sys\nfrom experiments.cli import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["elo"] for one in told["standings"]] == [one.elo for one in whole.standings]
    assert told["pairings"][0]["ci95"] == list(whole.pairings[0, 1].ci95)


# --------------------------------------------------------------------------------------------------------- resuming


def interrupted(monkeypatch: pytest.MonkeyPatch, after: int, **options: Any) -> str:
    """Plays until so many pieces are over, then as if Ctrl-C was pressed; returns what was said."""
    with monkeypatch.context() as patch:
        played = count_pieces(patch)
        honest = workers.play_piece

        def stop(piece: Piece, *rest: Any) -> Played:
            if len(played) == after:
                raise KeyboardInterrupt
            return honest(piece, *rest)

        patch.setattr(workers, "play_piece", stop)
        with pytest.raises(Interrupted) as raised:
            play(**options)
    return str(raised.value)


def test_interrupted_and_resumed(whole: TournamentResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = interrupted(monkeypatch, 4, folder=tmp_path, piece=10)
    assert said == f"interrupted with 40 of 90 duplicate deals played; the same command goes on from {tmp_path}"
    # All pairings advance together.
    assert {path.name for path in (tmp_path / PIECES).iterdir()} == {
        "0-1-0-10.npz", "0-2-0-10.npz", "1-2-0-10.npz", "0-1-10-10.npz"
    }  # fmt: skip
    played = count_pieces(monkeypatch)
    calls: list[tuple[int, int]] = []
    resumed = play(folder=tmp_path, piece=10, progress=lambda *call: calls.append(call))
    assert plain(resumed) == plain(whole)
    assert sum(piece.deals for piece in played) == 50
    assert calls[-1] == (100, 100)
    played.clear()
    assert plain(play(folder=tmp_path, piece=3)) == plain(whole)  # nothing is missing
    assert not played


def test_interrupted_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert interrupted(monkeypatch, 2, piece=10).endswith("20 of 90 duplicate deals played; nothing is kept")


def test_more_deals_and_fewer(whole: TournamentResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(folder=tmp_path, deals=17, piece=8)
    played = count_pieces(monkeypatch)
    assert plain(play(folder=tmp_path, piece=8)) == plain(whole)
    assert {(piece.first, piece.deals) for piece in played} == {(17, 7), (24, 6)}
    assert json.loads((tmp_path / MANIFEST).read_text())["deals"] == DEALS
    played.clear()
    # What lies across the end is played again; what overlaps is not counted twice.
    assert plain(play(folder=tmp_path, deals=20, piece=8)) == plain(play(deals=20))
    assert {(piece.first, piece.deals) for piece in played[:3]} == {(17, 3)}
    assert plain(play(folder=tmp_path, piece=8)) == plain(whole)


def damage(path: Path, how: str) -> None:
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("no archive")
    elif how == "bit":
        with zipfile.ZipFile(path) as archive:
            start = archive.getinfo("points.npy").header_offset
        whole = bytearray(path.read_bytes())
        names = int.from_bytes(whole[start + 26 : start + 28], "little") + int.from_bytes(
            whole[start + 28 : start + 30], "little"
        )
        whole[start + 30 + names + 50] ^= 1
        path.write_bytes(bytes(whole))
    else:
        with np.load(path) as arrays:
            values = dict(arrays)
        if how == "shape":
            values["won"] = values["won"][:-1]
        elif how == "missing":
            del values["hands"]
        elif how == "deal":
            values["first"] = values["first"] + 10
        elif how == "pickle":
            values["points"] = np.array([object()])
        else:
            values["plan"] = np.array("0" * 16)
        np.savez(path, **values)


@pytest.mark.parametrize("how", ["cut", "empty", "text", "bit", "shape", "missing", "deal", "pickle", "tournament"])
def test_a_damaged_piece_is_played_again(
    how: str, whole: TournamentResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(folder=tmp_path, piece=10)
    file = tmp_path / PIECES / "0-2-10-10.npz"
    good = file.read_bytes()
    damage(file, how)
    assert file.read_bytes() != good
    played = count_pieces(monkeypatch)
    lines: list[str] = []
    assert plain(play(folder=tmp_path, piece=10, say=lines.append)) == plain(whole)
    assert [(piece.a, piece.b, piece.first) for piece in played] == [("gin-only", "random", 10)]
    assert len(lines) == 2
    assert lines[0].startswith(f"{file} is damaged and is played again: ")
    lines.clear()
    play(folder=tmp_path, piece=10, say=lines.append)
    assert lines == ["90 of 90 duplicate deals are there already"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"seed": 6}, "its seed is 5, yours is 6"),
        ({"match": True}, "its match is False, yours is True"),
        ({"rules": "plus20"}, "its rules is .*plus20"),
        ({"specs": ("greedy", "gin-only")}, "its agents is gin-only, greedy, random, yours is gin-only, greedy"),
    ],
)
def test_another_tournament_is_refused(options: dict[str, Any], says: str, tmp_path: Path) -> None:
    play(folder=tmp_path, deals=2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    options = dict(options)
    with pytest.raises(TournamentError, match=f"{tmp_path} holds another tournament: {says}.*; choose another folder"):
        play(*options.pop("specs", ()), folder=tmp_path, deals=2, **options)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_another_version_is_refused(
    tmp_path: Path, enter: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Versioned:
        name, version = "bot", "1"

        def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
            return mask.argmax(axis=1)

    enter("bot", Versioned)
    play("bot", "greedy", folder=tmp_path, deals=2)
    Versioned.version = "2"
    with pytest.raises(TournamentError, match="bot was bot, 1, and is bot, 2"):
        play("bot", "greedy", folder=tmp_path, deals=2)
    Versioned.version = "1"
    monkeypatch.setattr(tournament, "source_stamp", lambda: "other")
    with pytest.raises(TournamentError, match=f"its source is {source_stamp()}, yours is other"):
        play("bot", "greedy", folder=tmp_path, deals=2)


def test_a_manifest_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(TournamentError, match=r"manifest.json cannot be read"):
        play(folder=tmp_path, deals=2)


def test_pieces_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path, make_plan(PLAYERS))
    games = Games.empty(0, 3)

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space"):
        folder.write(0, 1, Played(games, (Counter(), Counter())))
    assert list((tmp_path / PIECES).iterdir()) == []


# ----------------------------------------------------------------------------------------------- players and errors


class Wrong:
    """Plays what is illegal in every tenth game or so."""

    name = "wrong"

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        return np.where(rng % 100 < 2, -1, mask.argmax(axis=1))


class Late:
    """Keeps something that must be closed, and counts what goes wrong."""

    name, version = "late", "3"
    open: list["Late"] = []
    made = 0

    def __init__(self) -> None:
        self.open.append(self)
        Late.made += 1
        self.incidents: Counter[str] = Counter()

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        if not self.incidents:
            self.incidents["timeout"] += 1
            return np.full(view.size, -1)
        return mask.argmax(axis=1)

    def close(self) -> None:
        self.open.remove(self)


def test_illegal_moves_are_forfeits_and_counted(enter: Callable[..., None]) -> None:
    enter("wrong", Wrong)
    result = play("wrong", "greedy", deals=20)
    by_name = {one.entry.spec: one for one in result.standings}
    forfeits = by_name["wrong"].field.forfeits
    assert 0 < forfeits[0] < 40
    assert forfeits[1] == by_name["greedy"].field.forfeits[0] == 0
    assert plain(result)["pairings"][0]["forfeits"] == {"a": 0, "b": forfeits[0]}


def test_what_a_player_counts_is_kept(enter: Callable[..., None], tmp_path: Path) -> None:
    """A player that can be closed is another one in each piece, so no piece depends on the one before."""
    enter("late", Late)
    result = play("late", "greedy", "random", deals=20, piece=5, folder=tmp_path)
    assert Late.open == []
    assert Late.made == 1 + 8  # one to see that it can be made
    told = {one["spec"]: one for one in plain(result)["standings"]}
    assert told["late"]["incidents"] == {"timeout": 8}
    assert told["late"]["version"] == "3"
    assert told["greedy"]["incidents"] == {}
    again = play("late", "greedy", "random", deals=20, folder=tmp_path)
    assert plain(again) == plain(result)
    assert Late.made == 10
    match, incidents = play_match_by("late", "late", deals=4, piece=2)
    assert incidents == (Counter(timeout=2), Counter(timeout=2))
    assert match.forfeits[0] > 0
    assert Late.open == []


@pytest.mark.parametrize(
    ("specs", "options", "says"),
    [
        (("greedy", "random", "greedy"), {}, "'greedy' is named 2 times"),
        (("greedy",), {}, "only greedy is named"),
        ((), {"specs": ()}, "no player is named"),
        (("greedy", "nobody"), {}, "'nobody' is no agent"),
        (("greedy", "random"), {"anchor": "gin-only"}, "the anchor 'gin-only' is none of the players: greedy, random"),
        (("greedy", "random"), {"deals": 0}, "deals is 0"),
        (("greedy", "random"), {"batch": 0}, "batch is 0"),
        (("greedy", "random"), {"piece": 0}, "piece is 0"),
        (("greedy", "random"), {"workers": 0}, "workers is 0"),
        (("greedy", "random"), {"workers": 2, "ray": ""}, "workers are processes of this machine"),
        (("greedy", "random"), {"rules": "whist"}, "'whist'"),
        (("greedy", "random"), {"rules": preset("cardpuzzle", target=None), "match": True}, "no target"),
    ],
)
def test_bad_arguments(specs: tuple[str, ...], options: dict[str, Any], says: str) -> None:
    options = dict(options)
    with pytest.raises(ValueError, match=says):
        play_tournament(options.pop("specs", specs), **options)


def test_other_sources_are_refused() -> None:
    piece = Piece("greedy", "random", 0, 1, preset("cardpuzzle"), False, 0, 1, source="0123")
    with pytest.raises(WorkerError, match=rf"other sources of gin_env and agents \({source_stamp()}, not 0123\)"):
        play_pieces([piece], lambda *_: None)


# ---------------------------------------------------------------------------------------------- tables and command


def test_significance() -> None:
    assert significance(1.0, (0.1, 1.9)) == 1
    assert significance(-1.0, (-1.5, -0.5)) == -2
    assert significance(1.0, (-0.1, 2.1)) == 0
    assert significance(0.0, (0.0, 0.0)) == 0
    assert significance(5.0, (-np.inf, np.inf)) == 0


@pytest.mark.parametrize("match", [False, True])
def test_cross_table(match: bool) -> None:
    result = play("gin-only", "greedy", "random", match=match, deals=10)
    _, cross, behaviour = sheets(result)
    specs = [one.entry.spec for one in result.standings]
    assert [row[0].text for row in cross.rows] == [f"{place}. {spec}" for place, spec in enumerate(specs, 1)]
    names = sorted(specs)
    for one, other in combinations(range(3), 2):
        i, j = names.index(specs[one]), names.index(specs[other])
        pairing = result.pairings[min(i, j), max(i, j)]
        if match:
            share = pairing.win_rate if i < j else 1 - pairing.win_rate
            assert cross.rows[one][other + 1].text == f"{100 * share:.1f} %"
        else:
            mean = pairing.points_per_hand if i < j else -pairing.points_per_hand
            assert cross.rows[one][other + 1].text == f"{mean:+.2f}"
        assert cross.rows[one][other + 1].level == -cross.rows[other][one + 1].level
        assert cross.rows[one][other + 1].small == cross.rows[other][one + 1].small
        assert cross.rows[one][other + 1].heat == pytest.approx(-(cross.rows[other][one + 1].heat or 0))
    assert cross.rows[2][1].level == -2  # random, against the first
    assert len(behaviour.rows) == 10
    assert rich_table(cross).row_count == 3


def test_milliseconds() -> None:
    assert [_milliseconds(value) for value in (None, 0.0004, 4.13, 152.0)] == ["-", "0.0004", "4.1", "152"]


def test_tables_of_one_deal() -> None:
    result = play("greedy", "random", deals=1)
    print_tournament(result, Console(width=100, file=(file := io.StringIO())))
    text = file.getvalue()
    assert "±?" in text
    assert "1 deal, each played twice" in text
    assert plain(result)["standings"][0]["elo_ci95"] == [None, None]


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, whole: TournamentResult) -> None:
    words = ["tournament", *PLAYERS, "--deals", str(DEALS), "--seed", "5", "--resamples", "10", "--out", str(tmp_path)]
    assert cli.main([*words, "--json"]) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert [one["elo"] for one in told["standings"]] == [one.elo for one in whole.standings]
    assert said.err.splitlines()[-1] == f"the report is in {tmp_path / 'report.html'}"
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert "Cross-table" in out
    assert out.splitlines()[-1] == headline(whole)


def test_command_interrupted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "play_piece", stop)
    assert cli.main(["tournament", "greedy", "random", "--out", str(tmp_path)]) == 130
    said = capsys.readouterr().err
    assert said.startswith("ginrummy: interrupted with 0 of 1,000 duplicate deals played")


@pytest.mark.parametrize(("package", "extra"), [("ray", "ray"), ("choix", "tournament")])
def test_what_is_missing_is_named(
    package: str, extra: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    words = ["tournament", "greedy", "random", "--deals", "1", "--out", str(tmp_path), "--ray"]
    assert cli.main(words) == 2
    expected = f'this needs {package}, which is not installed: pip install "gin-env[{extra}]"'
    assert capsys.readouterr().err == f"ginrummy: {expected}\n"


def test_ray_with_and_without_an_address() -> None:
    assert _with_address(["--ray"]) == ["--ray", ""]
    assert _with_address(["--ray", "greedy:knock=5", "a"]) == ["--ray", "", "greedy:knock=5", "a"]
    for address in ("auto", "local", "ray://head:10001", "10.0.0.1:6379"):
        assert _with_address(["a", "--ray", address, "b"]) == ["a", "--ray", address, "b"]


def test_match_with_workers_tells_what_went_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = play_match(agents.make("greedy"), agents.make("random"), deals=2)
    counts = Counter(), Counter(timeout=3)
    asked: dict[str, Any] = {}

    def by_others(a: str, b: str, **options: Any) -> Any:
        asked.update(options)
        return result, counts

    monkeypatch.setattr(workers, "play_match_by", by_others)
    words = ["match", "greedy", "random", "--deals", "2", "--workers", "3"]
    assert cli.main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["incidents"] == {"a": {}, "b": {"timeout": 3}}
    assert (asked["workers"], asked["deals"]) == (3, 2)
    assert cli.main(words) == 0
    assert "random: 3 timeout\n" in capsys.readouterr().out
    counts[1].clear()
    assert cli.main([*words, "--json"]) == 0
    assert "incidents" not in json.loads(capsys.readouterr().out)


def test_match_with_workers_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["match", "greedy", "random", "--workers", "0"]) == 2
    assert "workers is 0" in capsys.readouterr().err
