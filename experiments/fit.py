"""Fits the weights of `agents.strategist` by playing: CMA-ES on duplicate deals, all games compiled.

A generation is a few dozen sets of weights, drawn around a mean. All of them play the same fresh deals, each deal twice
with the seats exchanged, against the same opponents: scripted players, and the mean as it was some generations before.
What tells two sets apart is then their play, not their luck. The better half moves the mean and the cloud around it
(`Search`). At the end the mean plays deals that no generation has seen.

A fit is the same to the last digit whether it was interrupted or not: every draw follows from the seed and the number
of the generation, and what else is needed lies in a file beside the result after every generation.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import agents
from agents.baselines import GreedyAgent, greedy_row
from agents.match import pair_interval
from agents.strategist import TERMS, WEIGHTS_DTYPE, StrategistAgent, strategist_row
from experiments.files import write_json
from experiments.workers import source_stamp
from gin_env._compile import kernel
from gin_env.actions import MAX_MELDS, NUM_ACTIONS
from gin_env.cards import NUM_CARDS
from gin_env.engine import new_tables, play, write_legal
from gin_env.rules import as_rules
from gin_env.tables import NOBODY, OVER, TABLE_DTYPE, Tables
from gin_env.view import VIEW_DTYPE, observe_row

OPPONENTS = ("greedy", "gin-only", "early-knock")
ITSELF = "itself"  # the mean of the search, as it was at the last multiple of REFRESH
REFRESH = 20  # generations
DIGITS = 3  # decimals of the weights

# Points a hand that weights cost for being off the start: this much times the square of the distance in reaches. It
# keeps weights that hardly matter from drifting.
PULL = 0.005
# Where the search begins, and how far the first generation reaches. Rounded from coarser searches of the same kind.
START = {
    "loose": (10, 0),
    "high": (0.75, 0.25),
    "outs": (4, 0.6),
    "extend": (0.4, 0.3),
    "windows": (0.1, 0.15),
    "low": (0.5, 0.6),
    "gone": (0.5, 0.5),
    "held": (1.2, 0.5),
    "feed": (9, 1.5),
    "hold": (2, 0.8),
    "safe": (1, 0.4),
    "declined": (0.6, 0.3),
    "meld": (5.5, 1.5),
    "lower": (0.3, 0.15),
    "stock": (3, 1),
    "hope": (0.5, 0.15),
    "knock": (40, 4),
    "care": (5.5, 0.6),
    "far": (1.3, 0.6),
    "layoffs": (1.8, 0.4),
    "gin": (4.5, 0.8),
    "thin": (0.4, 0.4),
}


class Interrupted(Exception):
    """A fit was stopped by Ctrl-C. The message says how far it got."""


@dataclass(frozen=True)
class Settings:
    """What decides a fit.

    Attributes:
        generations: How often the cloud moves.
        population: Sets of weights in a generation.
        deals: Deals of a generation against each opponent, each played twice.
        seed: Of the deals and of the cloud.
        rules: Rules as text (`gin_env.rules.as_rules`).
        check_deals: Deals that the result plays against each opponent, each twice.
    """

    generations: int
    population: int
    deals: int
    seed: int
    rules: str
    check_deals: int

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ValueError: If one is too small.
        """
        for name, least in (("generations", 1), ("population", 4), ("deals", 1), ("check_deals", 2), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least {least}")

    @property
    def check_seed(self) -> int:
        """The seed of deals that the fit does not see."""
        return self.seed + 1

    def command(self, *names: str) -> str:
        """The command line, with the options of these names, or of all."""
        given = {name: value for name, value in asdict(self).items() if not names or name in names}
        options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        return shlex.join(["ginrummy", "fit", "strategist", *options])


# ------------------------------------------------------------------------------------------------------------- games


@kernel
def _play(deals, weights, rival, knocks, points):
    """Plays every set of weights against every opponent on every deal, from both seats, on one table.

    Args:
        deals: (D,) tables, dealt.
        weights: (K,) records.
        rival: (0 or 1,) records: a last opponent that plays by these.
        knocks: (F, 3) int64, of each greedy opponent its knock rule (`agents.baselines.greedy_row`).
        points: (K, F or F + 1, D, 2) int32, written: what the weights won from seat 0 and from seat 1.
    """
    table = np.empty(1, dtype=TABLE_DTYPE)
    views = np.empty(1, dtype=VIEW_DTYPE)
    mask = np.zeros(NUM_ACTIONS, dtype=np.int8)
    after = np.zeros(NUM_CARDS, dtype=np.int64)
    melds = np.zeros(MAX_MELDS, dtype=np.uint64)
    for k in range(weights.size):
        for f in range(points.shape[1]):
            for d in range(deals.size):
                for seat in range(2):
                    # Records do not keep their arrays in memory; using the arrays in every pass does.
                    table[0] = deals[d]
                    t, v = table[0], views[0]
                    while t.phase != OVER:
                        observe_row(t, np.int64(t.mover), v)
                        write_legal(t, True, mask)
                        if t.mover == seat:
                            action = strategist_row(v, mask, weights[k], after, melds)
                        elif f < knocks.shape[0]:
                            action = greedy_row(v, mask, knocks[f, 0], knocks[f, 1], knocks[f, 2], after)
                        else:
                            action = strategist_row(v, mask, rival[0], after, melds)
                        play(t, np.int64(action))
                    won = 0 if t.winner == NOBODY else t.points
                    points[k, f, d, seat] = won if t.winner == seat else -won


def records(rows: np.ndarray) -> np.ndarray:
    """Returns weights in the order of `TERMS`, (K, T) numbers, as (K,) records."""
    return np.ascontiguousarray(rows, dtype=np.float64).view(WEIGHTS_DTYPE)[:, 0]


def play_weights(
    rows: np.ndarray, deals: Tables, opponents: tuple[str, ...] = OPPONENTS, rival: np.ndarray | None = None
) -> np.ndarray:
    """Plays sets of weights against opponents.

    Args:
        rows: (K, T) weights in the order of `TERMS`.
        deals: (D,) tables, dealt (`gin_env.engine.new_tables`); they stay as they are.
        opponents: F players that are `greedy`, with whatever knock rule.
        rival: (T,) weights of one more opponent.

    Returns:
        (K, F, D, 2) int32, or F + 1 with a rival: the points that the weights win from seat 0 and from seat 1.

    Raises:
        ValueError: If an opponent is another player.
    """
    knocks = np.zeros((len(opponents), 3), dtype=np.int64)
    for row, spec in zip(knocks, opponents, strict=True):
        agent = agents.make(spec)
        if not isinstance(agent, GreedyAgent):
            raise ValueError(f"opponent {spec!r} is not the greedy player with some knock rule")
        row[:] = agent.knock, agent.late_knock, agent.early_draws
    extra = np.empty((0, len(TERMS))) if rival is None else rival[None]
    points = np.empty((len(rows), len(opponents) + len(extra), deals.size, 2), dtype=np.int32)
    _play(deals, records(rows), records(extra), knocks, points)
    return points


# ------------------------------------------------------------------------------------------------------------ search


@dataclass
class Search:
    """A cloud of points that moves to where a function is larger: CMA-ES.

    After N. Hansen, "The CMA Evolution Strategy: A Tutorial" (arXiv:1604.00772), with its default parameters and
    without negative weights. Only the order of the values counts.

    Attributes:
        mean: (n,) middle of the cloud.
        spread: Its size.
        shape: (n, n) its covariance, but for the size.
        trail: (n,) path of the mean, from which the shape learns.
        drift: (n,) the same, made round, which says whether the size should grow.
        generation: How often it has moved.
    """

    mean: np.ndarray
    spread: float
    shape: np.ndarray
    trail: np.ndarray
    drift: np.ndarray
    generation: int = 0

    @classmethod
    def around(cls, size: int) -> "Search":
        """Returns a round cloud of size 1 around the origin of ``size`` dimensions."""
        return cls(np.zeros(size), 1.0, np.eye(size), np.zeros(size), np.zeros(size))

    def ask(self, population: int, rng: np.random.Generator) -> np.ndarray:
        """Draws a generation: (population, n)."""
        axes, directions = self._axes()
        return self.mean + self.spread * (rng.standard_normal((population, self.mean.size)) * axes) @ directions.T

    def tell(self, points: np.ndarray, values: np.ndarray) -> None:
        """Moves the cloud.

        Args:
            points: (population, n), as drawn.
            values: (population,), the larger the better.
        """
        n, parents = self.mean.size, len(points) // 2
        share = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
        share /= share.sum()
        weight = 1 / (share**2).sum()
        fade = (4 + weight / n) / (n + 4 + 2 * weight / n)
        fade_drift = (weight + 2) / (n + weight + 5)
        rate_one = 2 / ((n + 1.3) ** 2 + weight)
        rate_many = min(1 - rate_one, 2 * (weight - 2 + 1 / weight) / ((n + 2) ** 2 + weight))
        damping = 1 + 2 * max(0.0, np.sqrt((weight - 1) / (n + 1)) - 1) + fade_drift
        length = np.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))  # of a standard normal vector, expected

        best = (points[np.argsort(-values, kind="stable")[:parents]] - self.mean) / self.spread
        step = share @ best
        axes, directions = self._axes()
        self.generation += 1
        self.mean = self.mean + self.spread * step
        round_step = directions @ ((directions.T @ step) / axes)
        self.drift = (1 - fade_drift) * self.drift + np.sqrt(fade_drift * (2 - fade_drift) * weight) * round_step
        drifted = np.linalg.norm(self.drift)
        expected = np.sqrt(1 - (1 - fade_drift) ** (2 * self.generation)) * length
        steady = float(drifted < (1.4 + 2 / (n + 1)) * expected)
        self.trail = (1 - fade) * self.trail + steady * np.sqrt(fade * (2 - fade) * weight) * step
        self.shape = (
            (1 - rate_one - rate_many + (1 - steady) * rate_one * fade * (2 - fade)) * self.shape
            + rate_one * np.outer(self.trail, self.trail)
            + rate_many * (best.T * share) @ best
        )
        self.spread *= float(np.exp(fade_drift / damping * (drifted / length - 1)))

    def _axes(self) -> tuple[np.ndarray, np.ndarray]:
        values, directions = np.linalg.eigh(self.shape)
        return np.sqrt(np.maximum(values, 1e-20)), directions

    def to_json(self) -> dict[str, Any]:
        """Returns all of it as plain values, from which `from_json` makes the same again."""
        return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Search":
        """Returns the search that was written."""
        values: dict[str, Any] = {
            key: np.array(value) if isinstance(value, list) else value for key, value in data.items()
        }
        return cls(**values)


# --------------------------------------------------------------------------------------------------------------- fit


def fit(
    settings: Settings,
    out: Path,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda finished, games: None,
) -> dict[str, Any]:
    """Fits the weights and writes the result.

    Args:
        settings: What decides it.
        out: File of the result. Until it is written the state lies beside it, from which the same call goes on, or one
            that wants more generations or another check.
        overwrite: Whether a result or state that is there is replaced.
        progress: Called after each generation with the number of games that are over and of all games.

    Returns:
        The result, as written: settings, weights, check, and the history of the generations.

    Raises:
        ValueError: If there is a result or a state of another fit.
        Interrupted: After Ctrl-C.
    """
    state = out.with_name(f"{out.stem}.part{out.suffix}")
    start = np.array([START[name][0] for name in TERMS], dtype=np.float64)
    reach = np.array([START[name][1] for name in TERMS], dtype=np.float64)
    free = np.flatnonzero(reach)
    rules = as_rules(settings.rules)
    games = settings.population * (len(OPPONENTS) + 1) * settings.deals * 2  # of a generation
    told = {
        **asdict(settings),
        "fingerprint": rules.fingerprint,
        "opponents": list(OPPONENTS),
        "start": {name: list(START[name]) for name in TERMS},
        "pull": PULL,
    }
    source = {"source": source_stamp()}  # other sources may play otherwise
    if overwrite:
        state.unlink(missing_ok=True)
    elif out.exists():
        raise ValueError(f"{out} holds a fit; --overwrite makes another in its place")

    search, history, rival = Search.around(free.size), [], start
    if state.exists():
        kept = json.loads(state.read_text(encoding="utf-8"))
        for key, value in (told | source).items():
            longer = key == "generations" and kept["search"]["generation"] <= value
            if kept[key] != value and not longer and key != "check_deals":
                raise ValueError(
                    f"{state} holds an unfinished fit whose {key} is {kept[key]}, here it is {value}; "
                    "--overwrite starts afresh"
                )
        search, history, rival = Search.from_json(kept["search"]), kept["history"], np.array(kept["rival"])

    def weights(points: np.ndarray) -> np.ndarray:
        rows = np.tile(start, (len(points), 1))
        rows[:, free] += reach[free] * points
        return rows

    try:
        while search.generation < settings.generations:
            number = search.generation
            if number % REFRESH == 0:
                rival = weights(search.mean[None])[0]
            points = search.ask(settings.population, np.random.default_rng([settings.seed, number]))
            deals = new_tables(rules, settings.deals, seed=settings.seed, first=number * settings.deals)
            won = play_weights(weights(points), deals, rival=rival).mean(axis=(2, 3))
            search.tell(points, won.mean(axis=1) - PULL * (points**2).sum(axis=1))
            against = dict(zip((*OPPONENTS, ITSELF), won.mean(axis=0).round(DIGITS).tolist(), strict=True))
            entry = {"generation": number + 1, "spread": round(search.spread, DIGITS), "points_per_hand": against}
            history.append(entry)
            kept = {"search": search.to_json(), "rival": rival.tolist(), "history": history}
            write_json(state, told | source | kept)
            progress(search.generation * games, settings.generations * games)
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped after {search.generation} of {settings.generations} generations; the same command goes on"
        ) from None

    final = weights(search.mean[None]).round(DIGITS)[0]
    check = new_tables(rules, settings.check_deals, seed=settings.check_seed)
    won = play_weights(final[None], check)[0]
    result = {
        "command": settings.command(),
        **told,
        "weights": dict(zip(TERMS, final.tolist(), strict=True)),
        "check": {
            "deals": settings.check_deals,
            "seed": settings.check_seed,
            "against": {name: _interval(points) for name, points in zip(OPPONENTS, won, strict=True)},
        },
        "history": history,
    }
    write_json(out, result)
    state.unlink()
    return result


def _interval(points: np.ndarray, opponents: int = 1) -> dict[str, Any]:
    """Returns mean and interval of (deals, 2) points, sums over some opponents."""
    mean, ends = pair_interval(points)
    return {"points_per_hand": mean / opponents, "ci95": [end / opponents for end in ends]}


# ------------------------------------------------------------------------------------------------------------- terms


def ablate(settings: Settings, progress: Callable[[int, int], None] = lambda finished, games: None) -> dict[str, Any]:
    """Measures what each term is worth: the points that the fitted player loses without it.

    A term whose weight is 0 is switched on instead, at its weight in `START`.

    Args:
        settings: Of a fit; the deals are those of its check.
        progress: Called after each term with the number of games that are over and of all games.

    Returns:
        Plain values. For each term its weight, what it is set to, and the points a hand lost by that, with an interval
        of 95 %: on average over `OPPONENTS`, against each of them, and against the fitted player.
    """
    fitted = StrategistAgent().weights.view(np.float64)
    rules = as_rules(settings.rules)
    deals = new_tables(rules, settings.check_deals, seed=settings.check_seed)
    names = (*OPPONENTS, ITSELF)
    games = len(names) * 2 * settings.check_deals
    base = play_weights(fitted[None], deals, rival=fitted)[0]
    terms = {}
    for place, name in enumerate(TERMS):
        changed = fitted.copy()
        changed[place] = 0 if fitted[place] else START[name][0]
        lost = base - play_weights(changed[None], deals, rival=fitted)[0]
        terms[name] = {
            "weight": float(fitted[place]),
            "set_to": float(changed[place]),
            "lost": _interval(lost[: len(OPPONENTS)].sum(axis=0), len(OPPONENTS)),
            "against": {opponent: _interval(points) for opponent, points in zip(names, lost, strict=True)},
        }
        progress((place + 2) * games, (len(TERMS) + 1) * games)
    return {
        "command": settings.command("seed", "rules", "check_deals") + " --ablate",
        "deals": settings.check_deals,
        "seed": settings.check_seed,
        "rules": {"name": rules.text, "fingerprint": rules.fingerprint},
        "opponents": list(OPPONENTS),
        "terms": terms,
    }
