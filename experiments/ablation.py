"""What each part of the training is worth: variants of a recipe, each trained for the same processor time.

The processor time of a decision is measured once for every variant before it is trained, and gives its number of
decisions, so that a schedule ends where the time does. On a shared machine that is fairer than the clock.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import agents
from agents.match import play_match
from experiments.files import replacing, write_json
from training import imitate, ppo
from training.checkpoint import CHECKPOINT, load_checkpoint
from training.config import ImitateConfig, PPOConfig, RunConfig
from training.metrics import METRICS, Stopwatch

# Name: what differs from the recipe.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "recipe": {},
    "no card head": {"cards": 0},
    "deeper card head": {"card_layers": 1},
    "mlp": {"network": "mlp", "width": 256},
    "no arithmetic start": {"skip": False},
    "imitation instead": {"skip": False, "imitate": "early-knock"},
    "critic sees all cards": {"critic": "all", "gae_lambda": 0.8},
    "guesses the hand": {"hand_weight": 0.1},
    "self-play only": {"opponents": {}},
    "past opponents": {"past": 0.2},
    "double entropy": {"entropy": 2.0},
    "two epochs": {"epochs": 2},
}
OPPONENTS = ("greedy", "gin-only", "early-knock")
IMITATION = 0.25  # share of the decisions that imitate, where a variant does
WARM_UP = 1  # updates before the clock runs
TIMED = 3  # updates that are timed
SEED = 9_000_017


def variant(base: PPOConfig, name: str) -> PPOConfig:
    """Returns the config of a variant.

    Raises:
        ValueError: If there is no such variant.
    """
    if name not in VARIANTS:
        raise ValueError(f"{name!r} is no variant; expected some of {', '.join(VARIANTS)}")
    changes = dict(VARIANTS[name])
    changes.pop("imitate", None)  # `_one` sees to it
    if "past" in changes:  # a share of its own, taken from self-play
        changes = {"opponents": {**base.opponents, "past": changes["past"]}}
    if "entropy" in changes:  # a factor
        changes["entropy"] *= base.entropy
    return dataclasses.replace(base, **changes)


def cost(config: PPOConfig) -> float:
    """Returns the processor time of a decision of the learner, seconds, learning included."""
    trainer = ppo.Trainer(config)
    start = first = 0.0
    for update in range(WARM_UP + TIMED):
        if update == WARM_UP:
            start, first = time.process_time(), trainer.step
        trainer.update(Stopwatch())
    return (time.process_time() - start) / (trainer.step - first)


def ablate(
    base: PPOConfig,
    *,
    names: Sequence[str],
    seeds: Sequence[int],
    minutes: float,
    deals: int,
    folder: Path,
    progress: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Trains every variant with every seed and measures what came out.

    Args:
        base: The recipe.
        names: Of `VARIANTS`.
        seeds: Each variant is trained with each of them.
        minutes: Processor time of a training.
        deals: Deals against each of `OPPONENTS`, each played twice; along the way at most 500.
        folder: Of the runs. Those that are there and finished are not trained again.
        progress: Called with a line for each run.

    Returns:
        Plain values: the settings, and for each run its decisions, curve and matches, and the processor minutes after
        which it was level with the opponents (`level`).
    """
    runs = []
    for name in names:
        config, seconds = variant(base, name), 0.0
        for seed in seeds:
            run = folder / f"{name.replace(' ', '-')}-{seed}"
            done = run / "ablation.json"
            if not done.exists():
                seconds = seconds or cost(config)
                write_json(done, _one(config, name, seed, minutes, seconds, deals, run))
            runs.append(json.loads(done.read_text(encoding="utf-8")))
            runs[-1]["level"] = level(runs[-1]["curve"])
            seconds = runs[-1]["microseconds_per_decision"] / 1e6
            mean = runs[-1]["mean"]
            progress(f"{name}, seed {seed}: {mean:+.2f} points a hand on average, {runs[-1]['steps']:,} decisions")
    return {"minutes": minutes, "deals": deals, "opponents": list(OPPONENTS), "base": base.to_dict(), "runs": runs}


def level(curve: Sequence[Mapping[str, float]]) -> float | None:
    """Returns the minutes after which a run was behind its opponents no more; None if it still is.

    Args:
        curve: Its evaluations, "minutes" and "mean" of each. Between two of them the points are taken to rise evenly.
    """
    behind = [place for place, point in enumerate(curve) if point["mean"] < 0]
    if not behind:
        return curve[0]["minutes"]
    if behind[-1] == len(curve) - 1:
        return None
    last, first = curve[behind[-1]], curve[behind[-1] + 1]
    share = -last["mean"] / (first["mean"] - last["mean"])
    return last["minutes"] + share * (first["minutes"] - last["minutes"])


def _one(
    config: PPOConfig, name: str, seed: int, minutes: float, seconds: float, deals: int, run: Path
) -> dict[str, Any]:
    batch = config.tables * config.horizon
    steps = max(round(60 * minutes / seconds / batch), 1) * batch
    teacher, before = VARIANTS[name].get("imitate"), 0
    config = dataclasses.replace(config, seed=seed)
    if teacher:
        before = round(IMITATION * steps / batch) * batch
        warm = run.with_name(f"{run.name}-before")
        shared = {field.name: getattr(config, field.name) for field in dataclasses.fields(RunConfig)}
        changes = {"opponents": {}, "total_steps": before, "eval_every": steps, "eval_deals": 2}
        changes |= {"horizon": config.horizon, "minibatch": config.minibatch, "teacher": teacher}
        imitate.train(ImitateConfig(**{**shared, **changes}), warm, overwrite=True)
        config = dataclasses.replace(config, start_from=str(warm))
        steps -= before
    config = dataclasses.replace(
        config,
        total_steps=steps,
        eval_every=max(steps // 8, 1),
        eval_deals=min(500, deals),
        eval_against=OPPONENTS,
        checkpoint_every=steps,
    )
    ppo.train(config, run, overwrite=True)
    trainer = ppo.Trainer(config)
    trainer.restore(run)
    matches = {}
    for opponent in OPPONENTS:
        result = play_match(trainer.agent(), agents.make(opponent), deals=deals, seed=SEED, rules=config.rules)
        matches[opponent] = {"points_per_hand": result.points_per_hand, "ci95": list(result.ci95)}
    entries = [json.loads(line) for line in (run / METRICS).read_text(encoding="utf-8").splitlines()]
    curve = [
        {"minutes": (before + entry["step"]) * seconds / 60, "step": before + entry["step"], "mean": entry["eval/mean"]}
        for entry in entries
        if "eval/mean" in entry
    ]
    _, header = load_checkpoint(run / CHECKPOINT)
    return {
        "variant": name,
        "changes": dict(VARIANTS[name]),
        "seed": seed,
        "steps": before + header["step"],
        "microseconds_per_decision": 1e6 * seconds,
        "matches": matches,
        "mean": float(np.mean([match["points_per_hand"] for match in matches.values()])),
        "curve": curve,
    }


def plot(result: Mapping[str, Any], path: Path) -> None:
    """Draws points a hand by processor minutes, a line for each variant, the mean over its seeds.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    names = list(dict.fromkeys(run["variant"] for run in result["runs"]))
    for number, name in enumerate(names):
        runs = [run for run in result["runs"] if run["variant"] == name]
        grid = np.linspace(0, result["minutes"], 33)[1:]
        lines = [
            np.interp(grid, [p["minutes"] for p in run["curve"]], [p["mean"] for p in run["curve"]]) for run in runs
        ]
        axes.plot(grid, np.mean(lines, axis=0), label=name, color=f"C{number % 10}", ls="-" if number < 10 else "--")
    axes.axhline(0, color="grey", lw=0.5)
    axes.set_xlabel("processor minutes, one thread")
    axes.set_ylabel("points a hand, mean over " + ", ".join(result["opponents"]))
    axes.legend(fontsize=8)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=120)
