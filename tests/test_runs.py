"""`ginrummy runs`: what the folders of training runs tell."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.cli import main
from experiments.runs import Point, differences, find_runs, names, read_run, read_runs, runs_table
from training.folder import CHECKPOINT, CONFIG, METRICS, CheckpointError, locked

ROOT = Path(__file__).resolve().parent.parent
# Step, seconds, points a hand against greedy and against gin-only.
CURVE = [(1000, 10.0, -4.0, -1.0), (2000, 30.0, 2.5, -0.5), (3000, 45.5, 1.25, 0.25)]


def checkpoint(step: int) -> bytes:
    """The beginning of a safetensors file, as far as it matters here."""
    header = json.dumps({"__metadata__": {"header": json.dumps({"format": 1, "step": step})}}).encode()
    return len(header).to_bytes(8, "little") + header + b"weights"


def make(folder: Path, *, steps: int = 3, timed: bool = True, saved: int | None = 3000, **fields: Any) -> Path:
    """Writes a run's folder by hand."""
    folder.mkdir(parents=True)
    config = {"algorithm": "ppo", "seed": 1, "total_steps": 3000, "eval_against": ["greedy", "gin-only"]} | fields
    (folder / CONFIG).write_text(json.dumps(config))
    lines = []
    for step, seconds, greedy, gin_only in CURVE[:steps]:
        entry = {"step": step, "charts/SPS": 80.0, "eval/points_per_hand": greedy, "eval/against_gin-only": gin_only}
        entry |= {"eval/ci95_low": greedy - 1, "eval/ci95_high": greedy + 1}
        # Most entries are none of an evaluation.
        lines += [{"step": step - 500, "charts/SPS": 70.0}, entry | ({"time/seconds": seconds} if timed else {})]
    (folder / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    if saved is not None:
        (folder / CHECKPOINT).write_bytes(checkpoint(saved))
    return folder


def test_a_run(tmp_path: Path) -> None:
    run = read_run(make(tmp_path / "a"))
    assert (run.step, run.total, run.seconds, run.checkpoint, run.rate) == (3000, 3000, 45.5, 3000, 80.0)
    assert run.curve == tuple(Point(step, seconds, mean, mean - 1, mean + 1) for step, seconds, mean, _ in CURVE)
    assert run.last == run.curve[2]
    assert run.best == run.curve[1]
    assert run.level == run.curve[1]
    assert run.to_json()["level"]["seconds"] == 30.0
    assert run.state == "finished"


def test_a_run_against_another_player(tmp_path: Path) -> None:
    run = read_run(make(tmp_path / "a"), "gin-only")
    assert run.curve == tuple(Point(step, seconds, mean, None, None) for step, seconds, _, mean in CURVE)
    assert run.level == run.curve[2]
    run = read_run(tmp_path / "a", "random")
    assert run.level is None
    assert (run.curve, run.best, run.last) == ((), None, None)


def test_a_run_that_only_began(tmp_path: Path) -> None:
    run = read_run(make(tmp_path / "a", steps=0, saved=None))
    assert (run.step, run.seconds, run.checkpoint, run.curve, run.state) == (0, None, None, (), "stopped")
    (tmp_path / "a" / METRICS).unlink()
    assert read_run(tmp_path / "a").step == 0


def test_lines_and_checkpoints_that_were_cut_off(tmp_path: Path) -> None:
    folder = make(tmp_path / "a")
    with (folder / METRICS).open("a") as file:
        file.write('{"step": 3500, "charts/SP')
    for data in (b"", checkpoint(3000)[:30], b"\xff" * 100):
        (folder / CHECKPOINT).write_bytes(data)
        run = read_run(folder)
        assert (run.step, run.checkpoint, run.state) == (3000, None, "stopped")


def test_who_trains_now(tmp_path: Path) -> None:
    folder = make(tmp_path / "a", saved=1000)
    with locked(folder):
        run = read_run(folder)
        assert run.state == "training"
        assert run.to_json()["pid"] == os.getpid()
    assert read_run(folder).state == "stopped"


def test_all_runs_of_a_folder(tmp_path: Path) -> None:
    make(tmp_path / "b")
    make(tmp_path / "deep" / "er" / "a")
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / CONFIG).write_text('{"format": 1, "rules": {}}')
    assert find_runs(tmp_path) == [tmp_path / "b", tmp_path / "deep" / "er" / "a"]
    assert find_runs(tmp_path / "b") == [tmp_path / "b"]
    # A damaged one is no reason not to list the others, unless it was asked for.
    (make(tmp_path / "c") / CONFIG).write_text("{")
    assert [run.folder.name for run in read_runs([tmp_path])] == ["b", "a"]
    with pytest.raises(CheckpointError, match=r"config .*c.config\.json is damaged"):
        read_runs([tmp_path / "c"])


def test_what_to_call_runs(tmp_path: Path) -> None:
    runs = read_runs([make(tmp_path / "x" / "a"), make(tmp_path / "y" / "a")])
    assert names(runs) == ["x/a", "y/a"]
    assert names(runs[:1]) == ["a"]


def test_settings_that_differ(tmp_path: Path) -> None:
    runs = read_runs(
        [make(tmp_path / "a", clip=0.2), make(tmp_path / "b", seed=2, clip=0.2), make(tmp_path / "c", n=3)]
    )
    # Only what all of them have.
    assert differences(runs) == {"seed": [1, 2, 1]}
    assert differences(runs[:1]) == {}


def test_times(tmp_path: Path) -> None:
    from rich.console import Console

    console = Console(width=80, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(runs_table(read_runs([make(tmp_path / "a"), make(tmp_path / "b", timed=False)]), "greedy"))
    console.file.close()
    text = console.export_text()
    assert "0:00:46" in text
    assert "2.5" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = make(tmp_path / "a", opponents={"greedy": 0.25}), make(tmp_path / "b", opponents={}, algorithm="dqn")
    assert main(["runs", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "settings that differ" not in out
    assert "finished" in out
    path, picture = tmp_path / "out.json", tmp_path / "deep" / "out.png"
    assert main(["runs", str(one), str(other), "--json", "--out", str(path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data == json.loads(path.read_text())
    assert [run["algorithm"] for run in data["runs"]] == ["ppo", "dqn"]
    assert data["runs"][0]["best"] == {"step": 2000, "seconds": 30.0, "mean": 2.5, "low": 1.5, "high": 3.5}
    assert data["differences"] == {"algorithm": ["ppo", "dqn"], "opponents": [{"greedy": 0.25}, {}]}

    pytest.importorskip("matplotlib")
    assert main(["runs", str(one), str(other), "--plot", str(picture)]) == 0
    assert "greedy 0.25" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["runs", str(one), "--against", "random", "--plot", str(picture)]) == 2
    assert "none of the runs has been evaluated against 'random'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "says"), [("nothere", "there is no folder"), ("empty", "holds no run; train one with: ginrummy train ppo")]
)
def test_folders_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, says: str) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["runs", str(tmp_path / word)]) == 2
    assert says in capsys.readouterr().err


def test_runs_need_no_torch(tmp_path: Path) -> None:
    make(tmp_path / "a")
    code = (
        "import sys; from experiments.cli import main; main(sys.argv[1:]); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'numba', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code, "runs", str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
