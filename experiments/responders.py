"""How much a player who knows another one wins from it on the full game, at least.

The game cannot be solved, so nobody knows the best response. But whatever any responder wins from a frozen player, a
best response wins too; and as each deal is played from both seats, from perfect play it would win nothing. So a
responder's gain is a lower bound of the player's exploitability, and no more than that: that little was found says
little.

Responders are the scripted players, and networks trained by PPO with the frozen player at every table. The best of them
is chosen on some deals, and its gain is told of others, for the best of many is chosen for its luck too.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

import agents
from agents.base import Agent, scripted
from agents.match import check_match, identify, play_games
from agents.result import MatchResult, summarise
from gin_env.rules import Rules, automatic

# Share of the deals on which the best is chosen.
CHOOSING = 5


def folder_of(folder: Path, spec: str, seed: int) -> Path:
    """Returns the folder of the run that trains a responder to a player."""
    return folder / ("against-" + re.sub(r"[^\w.=-]+", "_", spec).strip("_") + f"-{seed}")


def train_responders(
    spec: str,
    rules: Rules,
    *,
    recipe: Path,
    folder: Path,
    seeds: Sequence[int],
    steps: int | None = None,
    seconds: float | None = None,
    overwrite: bool = False,
) -> list[tuple[str, Agent]]:
    """Trains responders to a frozen player, or goes on with those in the folder.

    Args:
        spec: The player.
        rules: What is played.
        recipe: A recipe of `ginrummy train ppo`; its opponents and evaluations are replaced by the player.
        folder: Each responder is a run in a folder of its own within.
        seeds: Of the responders.
        steps: Decisions of each; None for what the recipe says.
        seconds: Time of this call for each, after which it is taken as it is; None for no limit.
        overwrite: Whether to start afresh.

    Returns:
        Names and players: of each run the last state, and the best by its evaluations where that is another one.

    Raises:
        training.run.Interrupted: After Ctrl-C; the same call goes on.
        training.checkpoint.CheckpointError: If a folder holds another run.
    """
    # Only here: scripted responders do without torch.
    from training import ppo
    from training.checkpoint import BEST, CHECKPOINT
    from training.config import PPOConfig, load_recipe

    base = load_recipe(recipe, PPOConfig)
    responders: list[tuple[str, Agent]] = []
    for seed in seeds:
        config = dataclasses.replace(
            base,
            seed=seed,
            # A learner keeps its seat, so it must not keep its role.
            rules=dataclasses.replace(automatic(rules), first_dealer="random").text,
            matches=0.0,
            opponents={spec: 1.0},
            eval_against=(spec,),
            total_steps=base.total_steps if steps is None else steps,
        )
        run = folder_of(folder, spec, seed)
        ppo.train(config, run, overwrite=overwrite, seconds=seconds)
        states = [agents.make(str(run / file)) for file in (CHECKPOINT, BEST) if (run / file).exists()]
        responders += {agent.name: agent for agent in states}.items()
    return responders


def respond(
    spec: str,
    rules: Rules | str = "cardpuzzle",
    *,
    trained: Sequence[tuple[str, Agent]] = (),
    deals: int = 10_000,
    seed: int = 0,
    batch: int = 2048,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Plays responders against a frozen player, and the best of them once more.

    Args:
        spec: The player, as `agents.make` knows it.
        rules: What is played.
        trained: Responders beside the scripted players, with their names.
        deals: Deals for the best, each played twice; a fifth of them more to choose it.
        seed: Of the deals and of the players' random choices.
        batch: Most games to play at once.
        progress: Called with a line of text now and then.

    Returns:
        Plain values: ``agent``, ``responders`` (``name``, ``trained``, ``points_per_hand``, ``ci95``; the best first),
        ``best`` (the name), and of the deals on which it was not chosen ``gain``, ``ci95``, ``at_least`` (the lower end
        of the interval, but not below 0: with 97.5 % confidence a best response wins that much), ``deals``, ``first``
        (the number of the first), ``seed``, ``deck_hash``, and ``forfeits`` of the player.

    Raises:
        ValueError: If an argument is out of range, or there is no such player.
    """
    rules = check_match(rules, False, deals, seed, batch)
    if deals < 2 * CHOOSING:
        raise ValueError(f"deals is {deals}; expected at least {2 * CHOOSING}, for an interval")
    frozen = agents.make(spec)
    say = progress or (lambda line: None)
    choosing = deals // CHOOSING

    def play(agent: Agent, first: int, deals: int) -> MatchResult:
        games = play_games(agent, frozen, deals=deals, first=first, seed=seed, rules=rules, batch=batch, forfeits=True)
        return summarise(games, **identify(agent, frozen, rules=rules, match=False, seed=seed, deals=deals))

    players = [(name, agents.make(name)) for name in scripted()]
    results = []
    for name, agent in [*players, *trained]:
        say(f"{name} against {spec}")
        result = play(agent, 0, choosing)
        results.append((result.points_per_hand, name, agent, result))
    results.sort(key=lambda entry: (-entry[0], entry[1]))
    _, best, agent, _ = results[0]
    say(f"{best}, the best, on other deals")
    final = play(agent, choosing, deals)
    names = {name for name, _ in trained}
    return {
        "agent": spec,
        "responders": [
            {
                "name": name,
                "trained": name in names,
                "points_per_hand": result.points_per_hand,
                "ci95": list(result.ci95),
                "deals": choosing,
            }
            for _, name, _, result in results
        ],
        "best": best,
        "gain": final.points_per_hand,
        "ci95": list(final.ci95),
        "at_least": max(final.ci95[0], 0.0),
        "deals": deals,
        "first": choosing,
        "forfeits": final.forfeits[1],
    }


def respond_report(
    specs: Sequence[str],
    rules: Rules | str,
    *,
    recipe: Path,
    folder: Path,
    seeds: Sequence[int] = (1,),
    steps: int | None = None,
    seconds: float | None = None,
    overwrite: bool = False,
    deals: int = 10_000,
    seed: int = 0,
    batch: int = 2048,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Does `train_responders` and `respond` for some players.

    Args:
        specs: The players, at least one.
        rules: What is played.
        recipe: See `train_responders`, as are the next five.
        folder: Of the runs.
        seeds: Of the responders.
        steps: Decisions of each; 0 trains none.
        seconds: Time for each.
        overwrite: Whether to start afresh.
        deals: See `respond`, as are the last three.
        seed: Of the deals.
        batch: Most games at once.
        progress: Called with a line now and then.

    Returns:
        Plain values: ``rules``, ``seed``, ``steps``, ``seeds``, and ``agents`` (`respond` of each).

    Raises:
        ValueError: If an argument is out of range, or there is no such player.
    """
    if not specs:
        raise ValueError("no player is named: the full game cannot be solved, only players can be measured")
    if steps is not None and steps < 0:
        raise ValueError(f"steps is {steps}; expected 0 or more")
    rules = check_match(rules, False, deals, seed, batch)
    for spec in specs:
        agents.make(spec)  # whatever is wrong with it is said before minutes are spent on another
    results = []
    for spec in specs:
        trained: list[tuple[str, Agent]] = []
        if steps != 0:
            trained = train_responders(
                spec,
                rules,
                recipe=recipe,
                folder=folder,
                seeds=seeds,
                steps=steps,
                seconds=seconds,
                overwrite=overwrite,
            )
        results.append(respond(spec, rules, trained=trained, deals=deals, seed=seed, batch=batch, progress=progress))
    return {
        "rules": {"name": rules.name, "text": rules.text, "fingerprint": rules.fingerprint},
        "seed": seed,
        "steps": steps,
        "seeds": list(seeds) if steps != 0 else [],
        "agents": results,
    }


def respond_table(result: dict[str, Any], rules: str) -> Table:
    """Returns the table of `respond`: a row for each responder, and for the best on other deals."""
    table = Table(title=f"responders to {result['agent']}, {rules}", title_justify="left")
    table.add_column("responder", overflow="fold")
    for column in ("points a hand", "95 % interval", "deals"):
        table.add_column(column, justify="right", no_wrap=True)

    def row(name: str, mean: float, interval: Sequence[float], deals: int, style: str = "") -> None:
        table.add_row(name, f"{mean:+z.2f}", f"{interval[0]:+z.2f} to {interval[1]:+z.2f}", f"{deals:,}", style=style)

    for one in result["responders"]:
        row(one["name"], one["points_per_hand"], one["ci95"], one["deals"])
    table.add_section()
    row(f"{result['best']}, other deals", result["gain"], result["ci95"], result["deals"], "bold")
    return table


def respond_line(result: dict[str, Any]) -> str:
    """Says in one sentence what is known of a player's exploitability."""
    spec, best = result["agent"], result["best"]
    gain = f"{result['gain']:+z.2f} points a hand ({result['ci95'][0]:+z.2f} to {result['ci95'][1]:+z.2f})"
    if result["ci95"][0] <= 0:
        return f"nothing was found that surely beats {spec}: {best} wins {gain}. A best response may still win much"
    return (
        f"{spec} can be exploited by at least {result['at_least']:.2f} points a hand: {best} wins {gain}. "
        "That is a lower bound; a best response may win far more"
    )
