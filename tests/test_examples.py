"""The examples run, and say what they should."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(name: str) -> str:
    """Returns what an example prints."""
    command = [sys.executable, "-m", f"experiments.examples.{name}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.interop
def test_openspiel_bridge() -> None:
    pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install 'gin-env[peers]'")
    there, here = run("openspiel_bridge").splitlines()
    assert there.startswith("in OpenSpiel, 120 hands: greedy ")
    assert here.startswith("at our tables, 120 hands: greedy ")


@pytest.mark.interop
def test_gin_rummy_v4() -> None:
    (line,) = run("gin_rummy_v4").splitlines()
    assert line.startswith("40 hands, mean rewards: player_0 +")
    assert ", player_1 -" in line


@pytest.mark.parametrize("name", ["gin_rummy_v4", "openspiel_bridge"])
def test_examples_are_short(name: str) -> None:
    assert len((ROOT / "experiments" / "examples" / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 60
