"""Random rules, random play, every invariant: `gin_env.testing.check_rules` for as long as one likes.

The same for Rummy40, with `gin_env.rummy40.testing.check_rules`.

A trial is a pure function of its seed: the rules (unless they are given), the number of tables and of hands, the deals
and the choices. So a failure is told by its rules and its seed, and the same two show it again.
"""

import contextlib
import dataclasses
import shlex
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any, Literal, NamedTuple, get_args

from gin_env.rules import MAX_HAND_SIZE, PRESETS, Rules, as_rules
from gin_env.rummy40 import testing as rummy40
from gin_env.rummy40.rules import Rummy40Rules
from gin_env.rummy40.rules import as_rules as rummy40_rules
from gin_env.testing import ConformanceError, Report, check_rules

GameName = Literal["gin", "rummy40"]
AnyRules = Rules | Rummy40Rules

# Of a trial: now and then single tables and odd batches, mostly some that are large enough to be fast.
TABLES = (1, 2, 7, 33, 100, 128, 128, 256, 256, 512)
LEAST_HANDS = 24


@dataclasses.dataclass(frozen=True)
class Failure:
    """A trial in which a check failed.

    Attributes:
        rules: The rules as text (`gin_env.rules.Rules.text`).
        seed: Of the trial.
        check: Name of the check, or of an exception that is no failed check.
        message: What was found, and how the table came there; or a traceback.
        game: One of `GAMES`.
    """

    rules: str
    seed: int
    check: str
    message: str
    game: str = "gin"

    @property
    def command(self) -> str:
        """The command that shows it again."""
        game = "" if self.game == "gin" else f"--game {self.game} "
        return f"ginrummy fuzz {game}--rules {shlex.quote(self.rules)} --seed {self.seed}"


@dataclasses.dataclass(frozen=True)
class FuzzResult:
    """What was tried.

    Attributes:
        seed: Of the first trial; the others follow.
        trials: Trials that ended.
        rule_sets: Different rules among them.
        seconds: By the clock.
        report: Hands, decisions, phases and endings.
        failure: The trial that failed, which is the last one.
        interrupted: Whether Ctrl-C ended it.
    """

    seed: int
    trials: int
    rule_sets: int
    seconds: float
    report: Report
    failure: Failure | None = None
    interrupted: bool = False

    @property
    def hands_per_second(self) -> float:
        """Hands a second."""
        return self.report.hands / self.seconds if self.seconds else 0.0

    def summary(self) -> str:
        """Says what was tried and found."""
        report = self.report
        lines = [
            f"{report.hands:,} hands ({report.decisions:,} decisions), {self.rule_sets:,} rule sets, seeds from "
            f"{self.seed} on, {self.seconds:.0f} seconds, {self.hands_per_second:,.0f} hands a second"
        ]
        for name, counts in (("decisions", report.phases), ("endings", report.endings)):
            if counts:
                lines.append(f"{name}: " + ", ".join(f"{key} {number:,}" for key, number in counts.most_common()))
        if self.failure is None:
            lines.append("interrupted; nothing was wrong so far" if self.interrupted else "nothing was wrong")
        else:
            lines += [f"FAILED under {self.failure.rules} with seed {self.failure.seed}", self.failure.message.rstrip()]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Returns the result as plain values."""
        return {
            "seed": self.seed,
            "trials": self.trials,
            "rule_sets": self.rule_sets,
            "seconds": self.seconds,
            "hands": self.report.hands,
            "decisions": self.report.decisions,
            "hands_per_second": self.hands_per_second,
            "phases": dict(self.report.phases),
            "endings": dict(self.report.endings),
            "interrupted": self.interrupted,
            "failure": self.failure and dataclasses.asdict(self.failure) | {"command": self.failure.command},
        }


def random_rules(rng: Random) -> Rules:
    """Returns rules that can be played: a preset with a few changes, or with nearly everything changed."""
    base = rng.choice(list(PRESETS.values()))
    share = rng.choice((0.1, 0.3, 0.6, 1.0))  # of the fields that change
    changes = {name: value for name, value in _random_fields(rng).items() if rng.random() < share}
    fields = base.to_dict() | changes
    # What does not fit together is given up, one way or the other.
    if not fields["oklahoma"]:
        fields["double_spades"] = "no"
    if not fields["rediscard"]:
        fields["swap_cap"] = None
    if fields["defender_melds"] == "manual" and fields["layoffs"] == "best":
        fields["layoffs"] = rng.choice(("ascending", "manual"))
    if fields["ranks"] * fields["suits"] < 6:  # two hands of two, an upcard and a card to draw
        fields["ranks"] = 6
    cards = fields["ranks"] * fields["suits"]
    fields["hand_size"] = min(fields["hand_size"], (cards - 2) // 2)
    fields["stock_floor"] = min(fields["stock_floor"], cards - 2 * fields["hand_size"] - 2)
    return Rules.from_dict(fields)


def _random_fields(rng: Random) -> dict[str, Any]:
    """Returns a value for every field but the name, whether they fit together or not."""
    bonus = (0, 1, 10, 20, 25, 50, 1000)
    return {
        "ranks": rng.choice((rng.randint(3, 13), 13)),
        "suits": rng.choice((rng.randint(1, 4), 4)),
        "hand_size": rng.choice((rng.randint(2, MAX_HAND_SIZE), MAX_HAND_SIZE)),
        "knock_limit": rng.choice((0, rng.randint(1, 15), rng.randint(0, 100))),
        "oklahoma": rng.random() < 0.5,
        "double_spades": rng.choice(("no", "deadwood", "all")),
        "gin_bonus": rng.choice(bonus),
        "big_gin_bonus": rng.choice((None, *bonus)),
        "undercut_bonus": rng.choice(bonus),
        "tie": rng.choice(("undercut", "nothing")),
        "rediscard": rng.random() < 0.5,
        "first_dealer": rng.choice(("random", 0, 1)),
        "next_dealer": rng.choice(("alternate", "winner", "same")),
        "stock_floor": rng.choice((0, 2, rng.randint(0, 10))),
        "wall": rng.choice(("dead", "knock")),
        "draw_cap": rng.choice((1, rng.randint(2, 40), 200)),
        "swap_cap": rng.choice((None, 1, 2, rng.randint(3, 20))),
        "take_cap": rng.choice((None, 1, rng.randint(2, 60), 1000)),
        "knocker_melds": rng.choice(("auto", "manual")),
        "layoffs": rng.choice(("best", "ascending", "manual")),
        "defender_melds": rng.choice(("auto", "manual")),
        "target": rng.choice((None, 1, 50, 100, rng.randint(1, 1000), 1_000_000)),
    }


def random_rummy40_rules(rng: Random) -> Rummy40Rules:
    """Returns rules of Rummy40 that can be played: those of the page with a few changes, or with nearly all changed."""
    share = rng.choice((0.1, 0.3, 0.6, 1.0))  # of the fields that change
    opening = rng.choice((0, 40, 50, rng.randint(1, 100)))
    values: dict[str, Any] = {
        "packs": rng.choice((None, 1, 2)),
        "jokers": rng.choice((None, rng.randint(0, 4))),
        "ranks": rng.choice((rng.randint(3, 13), 13)),
        "suits": rng.choice((rng.randint(1, 4), 4)),
        "hand_size": rng.choice((rng.randint(2, 10), 10)),
        "opening": opening,
        "wrong_opening": rng.choice(("masked", "penalty")) if opening else "masked",
        "opening_penalty": rng.choice((0, 20, 1000)),
        "adding": rng.choice((None, "own", "any")),
        "stealing": rng.choice(("any", "own", "no")),
        "pile": rng.choice(("anyone", "opened")),
        "rediscard": rng.random() < 0.5,
        "joker_points": rng.choice((0, 25, 50, 1000)),
        "first_dealer": rng.choice(("random", 0, 1)),
        "draw_cap": rng.choice((1, rng.randint(2, 40), 200)),
        "limit": rng.choice((None, 1, 100, 200, 500, rng.randint(1, 1000), 1_000_000)),
    }
    fields = {name: value for name, value in values.items() if rng.random() < share}
    if not fields.get("opening", 40):
        fields.pop("wrong_opening", None)
    fields["seats"] = rng.choice((2, 2, 4))
    while True:
        try:
            return Rummy40Rules.from_dict(fields)
        except ValueError:  # too few cards, or too many jokers for the hand: give some of it up
            del fields[
                rng.choice([name for name in fields if name in ("packs", "jokers", "ranks", "suits", "hand_size")])
            ]


class Game(NamedTuple):
    """What is tried of a game."""

    as_rules: Callable[[str], AnyRules]
    random_rules: Callable[[Random], AnyRules]
    check_rules: Callable[..., Report]
    warm_up: str  # rules whose hands come to most kernels


GAMES = {
    "gin": Game(as_rules, random_rules, check_rules, "openspiel"),
    "rummy40": Game(rummy40_rules, random_rummy40_rules, rummy40.check_rules, "rummy40:opening=0"),
}
assert set(GAMES) == set(get_args(GameName))


def trial(seed: int, rules: AnyRules | None = None, game: str = "gin") -> tuple[AnyRules, Report | Failure]:
    """Plays one trial.

    Args:
        seed: Decides everything.
        rules: What to play; by default that, too, is random.
        game: One of `GAMES`.

    Returns:
        The rules that were played, and what was seen or what failed.
    """
    rules = rules or GAMES[game].random_rules(Random(f"{seed} rules"))
    rng = Random(f"{seed} sizes")
    tables = rng.choice(TABLES)
    hands = max(2 * tables, LEAST_HANDS)
    try:
        return rules, GAMES[game].check_rules(rules, hands=hands, seed=seed, tables=tables)
    except ConformanceError as error:
        _pass_on_ctrl_c(error)
        return rules, Failure(rules.text, seed, error.check, str(error), game)
    except Exception as error:  # the engine should not raise, whatever it is
        _pass_on_ctrl_c(error)
        return rules, Failure(rules.text, seed, type(error).__name__, traceback.format_exc(), game)


def _pass_on_ctrl_c(error: BaseException | None) -> None:
    """Raises KeyboardInterrupt if that is what an error comes from: inside a kernel it turns into a SystemError."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise error
        error = error.__cause__ or error.__context__


def _warm_up(game: str) -> None:
    """Compiles what a trial needs, which the time is not for."""
    with contextlib.suppress(Exception):  # what is wrong is for the trials to find and to tell
        GAMES[game].check_rules(GAMES[game].warm_up, hands=1, tables=1)


def fuzz(
    minutes: float,
    seed: int,
    rules: AnyRules | None = None,
    progress: Callable[[FuzzResult], None] | None = None,
    game: str = "gin",
) -> FuzzResult:
    """Plays trials until the time is over, one fails or somebody presses Ctrl-C.

    Args:
        minutes: For how long; the trial in progress is finished, and there is at least one.
        seed: Of the first trial; the next has the next number.
        rules: What to play; by default each trial has random rules.
        progress: Called with the result so far after each trial.
        game: One of `GAMES`.

    Raises:
        ValueError: If the time is not positive or the seed is out of range.
    """
    if not 0 < minutes < float("inf"):
        raise ValueError(f"minutes is {minutes}; expected more than 0")
    if not 0 <= seed < 1 << 62:
        raise ValueError(f"seed is {seed}; expected 0 to 2**62 - 1")
    _warm_up(game)
    start = time.perf_counter()
    seen: set[str] = set()
    result = FuzzResult(seed, 0, 0, 0.0, Report(0, 0, Counter(), Counter()))
    # Ctrl-C waits for the end of the trial: raised inside a kernel it would look like a failed check. The second one
    # does not wait.
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            if callable(before):
                before(number, frame)
            raise KeyboardInterrupt
        asked.append(number)

    mine = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, ask) if mine else None
    try:
        while not result.failure and (not result.trials or result.seconds < 60 * minutes):
            if asked:
                raise KeyboardInterrupt
            played, outcome = trial(seed + result.trials, rules, game)
            seen.add(played.fingerprint)
            result = dataclasses.replace(
                result,
                trials=result.trials + 1,
                rule_sets=len(seen),
                seconds=time.perf_counter() - start,
                report=result.report if isinstance(outcome, Failure) else result.report + outcome,
                failure=outcome if isinstance(outcome, Failure) else None,
            )
            if progress is not None:
                progress(result)
    except KeyboardInterrupt:
        result = dataclasses.replace(result, seconds=time.perf_counter() - start, interrupted=True)
    finally:
        if mine:
            signal.signal(signal.SIGINT, before)
    return result
