"""The command `ginrummy`. `ginrummy --help` lists what it does.

The commands are in experiments/commands; the one that is called is imported. Whatever needs numba or torch is imported
by the command that uses it, so that help comes at once and a match needs no torch.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from experiments.commands.console import Failure

TRACEBACK = "GINRUMMY_TRACEBACK"
LOST = 0.2  # seconds after which a Ctrl-C that was lost is sent once more

# The module in experiments/commands and the function of each.
COMMANDS = {
    "train ppo": "train:train_ppo",
    "train dqn": "train:train_dqn",
    "train imitate": "train:train_imitate",
    "runs": "train:runs",
    "ablate": "train:ablate",
    "export": "train:export",
    "match": "games:match",
    "sprt": "games:sprt",
    "tournament": "games:tournament",
    "play": "games:play",
    "replay": "records:replay",
    "analyse": "records:analyse",
    "agents": "reference:list_agents",
    "exploit": "measure:exploit",
    "calibrate": "measure:calibrate",
    "rules": "reference:rules",
    "docs": "reference:docs",
    "fit strategist": "measure:fit_strategist",
    "fit belief": "measure:fit_belief",
    "bench engine": "bench:bench_engine",
    "bench train": "bench:bench_train",
    "bench search": "bench:bench_search",
    "fuzz": "bench:fuzz",
}

# The extra of gin-env that brings each package.
EXTRAS = {
    "torch": "train",
    "tensorboard": "train",
    "safetensors": "train",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "matplotlib": "plots",
    "sb3_contrib": "sb3",
    "stable_baselines3": "sb3",
    "choix": "tournament",
    "ray": "ray",
}

HELP = f"""\
usage: ginrummy COMMAND ...

Trains bots that play gin rummy, exports them, and measures players and the engine.

commands:
  train ppo       train a network by self-play, from a recipe
  train dqn       the same by Q-learning with a replay
  train imitate   train a network to play like another player, as a start for more
  runs            list training runs, or compare some of them
  ablate          train variants of a recipe for the same time, and see what each part of it is worth
  export          turn a training run into a bundle that plays without torch
  match           play two players against each other, every deal twice
  tournament      play every player against every other on the same deals; ratings and a report
  sprt            play until it is decided whether one player is better than another
  play            play against a player yourself, at the terminal
  replay          show recorded hands and matches move by move
  analyse         judge recorded hands move by move: what a player would have played, and what each move lost
  agents          list the players
  exploit         how much an opponent who knows a player wins from it: exact on small games, else at least
  calibrate       how well a network guesses the opponent's hand, turn by turn
  rules           print the rules of a preset, or of your own
  docs            print the reference pages in docs/
  fit strategist  fit the weights of the player `strategist`, or measure what each of its terms is worth
  fit belief      fit what the player `search` believes about the opponent's hand, and see how well it guesses
  bench engine    measure decisions per second, side by side with other libraries
  bench train     measure how fast training is, side by side with sb3-contrib's
  bench search    measure how strong the player `search` is with so much time for a decision
  fuzz            play random rules at random and check every invariant of the engine

`ginrummy COMMAND --help` tells the options of each. For example:
  ginrummy train ppo --recipe quick --run runs/quick
  ginrummy export runs/quick --out bots/quick
  ginrummy match bots/quick greedy --deals 5000
  ginrummy play bots/quick
  ginrummy match greedy random --deals 5 --records hands.txt
  ginrummy replay hands.txt --line 1
  ginrummy analyse hands.txt --worst 10
  ginrummy tournament greedy gin-only early-knock random --deals 10000 --workers 2

An error is one line, and the exit status 2. With {TRACEBACK}=1 in the environment it comes with its traceback.
"""


def main(args: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Args:
        args: The words after ``ginrummy``; by default those the process was started with.

    Returns:
        The exit status: 0, 1 if `fuzz` found something, 2 after an error, or 130 after Ctrl-C.

    Raises:
        SystemExit: From an option that is wrong (status 2), or after a help text (0).
    """
    words = list(sys.argv[1:] if args is None else args)
    with _ctrl_c() as pressed:
        return _run(words, pressed)


def _run(words: list[str], pressed: list[int]) -> int:
    try:
        _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _end("interrupted", 130)
    except BrokenPipeError:
        # The reader of the output has gone (as `head` does). Python flushes stdout once more at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        if pressed and not isinstance(error, Failure):
            return _end("interrupted", 130)
        failure = _expected(error)
        if failure is None:
            raise
        return _end(*failure)
    return 0


@contextmanager
def _ctrl_c() -> Iterator[list[int]]:
    """Collects the presses of Ctrl-C in a list; each of them raises KeyboardInterrupt, as ever.

    Where compiled code calls back into Python that exception cannot pass: Python prints it and goes on. Numba, which
    compiles for a minute before the first game, then often fails with an error of its own, which means the same; where
    it does not, the signal comes once more.
    """
    pressed: list[int] = []
    again: list[threading.Timer] = []

    def press(number: int, frame: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    def tell(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            return hook(lost)
        again.append(threading.Timer(LOST, signal.raise_signal, (signal.SIGINT,)))
        again[-1].daemon = True
        again[-1].start()

    # Another handler stays: nohup and shells let background jobs ignore Ctrl-C. And only the main thread may set one.
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed
        return
    signal.signal(signal.SIGINT, press)
    hook, sys.unraisablehook = sys.unraisablehook, tell
    try:
        yield pressed
    finally:
        for timer in again:
            timer.cancel()
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(line: str, status: int) -> int:
    print("ginrummy: " + " ".join(line.split()), file=sys.stderr)
    return status


def _expected(error: Exception) -> tuple[str, int] | None:
    """Returns the line and status for an error that a user can cause, or None for a fault of ours."""
    if isinstance(error, Failure):
        return str(error), error.status
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package in EXTRAS:
            return f'this needs {package}, which is not installed: pip install "gin-env[{EXTRAS[package]}]"', 2
        return None
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}", 2
    # BundleError is looked up where it was loaded: nobody can raise it before.
    bundle = sys.modules.get("agents.bundle")
    expected = (ValueError, OSError, *([bundle.BundleError] if bundle else []))
    return (str(error) or type(error).__name__, 2) if isinstance(error, expected) else None


def _dispatch(words: list[str]) -> None:
    for name, place in COMMANDS.items():
        length = len(name.split())
        if words[:length] == name.split():
            module, function = place.split(":")
            getattr(import_module(f"experiments.commands.{module}"), function)(words[length:])
            return
    if not words or words[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        if not words:
            raise Failure("a command is missing; see ginrummy --help")
        return
    longer = [name for name in COMMANDS if name.startswith(words[0] + " ")]
    if longer and set(words[1:]) & {"-h", "--help"}:
        print(HELP, end="")
        return
    if longer:
        raise Failure(f"{' '.join(words[:2])!r} is no command; expected {' or '.join(longer)}")
    raise Failure(f"{words[0]!r} is no command; expected {', '.join(COMMANDS)} (see ginrummy --help)")


if __name__ == "__main__":
    sys.exit(main())
