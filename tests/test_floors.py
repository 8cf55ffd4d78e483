"""Imports go down: gin_env <- agents <- training <- experiments, and gin_env knows no torch."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("gin_env", "agents", "training", "experiments")
COMMANDS = sorted(path.stem for path in (ROOT / "experiments" / "commands").glob("[a-z]*.py"))
SOURCES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


def imports(text: str, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yields line and full name of every import in a module's source, those inside functions included.

    Args:
        text: The source.
        package: The parts of the package that holds the module.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield node.lineno, ".".join([*base, *([node.module] if node.module else [])])


def arrows_up(text: str, package: tuple[str, ...]) -> list[str]:
    """Returns the imports in a module's source that it must not have."""
    height = FLOORS.index(package[0])
    forbidden = {*FLOORS[height + 1 :], "tests"} | ({"torch"} if height == 0 else set())
    return [f"{line}: {name}" for line, name in imports(text, package) if name.partition(".")[0] in forbidden]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_goes_up(path: Path) -> None:
    package = path.relative_to(ROOT).parent.parts
    assert arrows_up(path.read_text(encoding="utf-8"), package) == []


def test_all_floors_are_there() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == set(FLOORS)


def test_the_check_finds_what_it_should() -> None:
    text = "import torch\nfrom gin_env import melds\nfrom . import x\ndef f():\n    from training.ppo import train\n"
    assert arrows_up(text, ("gin_env",)) == ["1: torch", "5: training.ppo"]
    assert arrows_up(text, ("agents",)) == ["5: training.ppo"]
    assert arrows_up(text, ("experiments",)) == []
    assert [name for _, name in imports("from ..a import b\nfrom . import c", ("p", "q"))] == ["p.a", "p.q"]


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("gin_env", ["torch", "onnxruntime", "numba", "pettingzoo"]),
        ("gin_env.rulebook", ["torch", "onnxruntime", "numba", "pettingzoo"]),
        ("gin_env.engine", ["torch", "onnxruntime"]),
        ("gin_env.rummy40", ["torch", "onnxruntime", "numba", "pettingzoo"]),
        ("gin_env.rummy40.engine", ["torch", "onnxruntime", "gin_env.engine"]),
        ("gin_env.adapters", ["torch", "numba", "pettingzoo", "pyspiel", "rlcard"]),
        ("gin_env.adapters.gin_rummy_v4", ["torch", "pyspiel", "rlcard"]),
        ("agents", ["torch", "onnxruntime"]),
        ("agents.match", ["torch", "onnxruntime"]),
        ("experiments.cli", ["torch", "onnxruntime", "numba", "numpy", "tyro"]),
        *((f"experiments.commands.{name}", ["torch", "onnxruntime", "numba", "numpy", "tyro"]) for name in COMMANDS),
        ("experiments.report", ["torch", "onnxruntime", "numba"]),
        ("experiments.runs", ["torch", "onnxruntime", "numba"]),
        ("experiments.docs", ["torch", "onnxruntime"]),
    ],
)
def test_a_module_does_not_load(module: str, absent: list[str]) -> None:
    code = f"import sys, {module}; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
