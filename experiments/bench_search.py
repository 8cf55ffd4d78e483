"""How strong the player `search` is with so much time, or so many worlds, for a decision: a curve.

Each budget plays a duplicate match against the base that it searches from, all on the same deals. So the curve says
what the search adds to that player. With 0 it is the player itself, and level.

A budget in milliseconds buys as many worlds as the machine plays out in it: fewer on a slower one, or where other work
runs beside it. So the worlds that were seen are told beside the strength. They are those of the decisions that are
searched; the others, such as drawing where nothing else is legal, are the base's. A search may end before its budget
does, as soon as nothing is left but the base's choice (`agents.search.search`).
"""

import math
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

import agents
from agents.match import check_match, play_match
from agents.search import SearchAgent
from experiments.bench import cpu_name, version
from gin_env.rules import Rules

BUDGETS = (5.0, 10.0, 20.0, 50.0)


def bench_search(
    *,
    base: str = "greedy",
    budgets: Sequence[float] = BUDGETS,
    worlds: Sequence[int] = (),
    deals: int = 500,
    seed: int = 0,
    rules: Rules | str = "cardpuzzle",
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Measures points a hand of `search` against its base, by budget.

    Args:
        base: The player that it searches from, for `agents.make`.
        budgets: Milliseconds for a decision.
        worlds: Worlds for each candidate; these matches are the same on every machine.
        deals: Deals of each match, each played twice.
        seed: Of the deals and the players' random choices.
        rules: What to play.
        progress: Called with the games that are over, of how many, and a text.

    Returns:
        Plain values. ``entries`` is a list, one for each budget: ``agent``, ``kind`` ("ms" or "worlds"), ``budget``,
        ``points_per_hand`` and its interval of 95 % (``ci95``), ``decisions``, the share of them that were
        ``searched``, ``worlds`` seen in each of these and the ``milliseconds`` it took (None if none was searched),
        ``milliseconds_per_decision`` of all, and ``cpu_share``, the share of the time for which this process had a
        core. Then what was played, on what.

    Raises:
        ValueError: If an argument is out of range, or there is no such base.
    """
    if not budgets and not worlds:
        raise ValueError("there is no budget; expected some milliseconds or worlds")
    for budget in budgets:
        if not (math.isfinite(budget) and budget > 0):
            raise ValueError(f"a budget is {budget:g} ms; expected more than 0")
    if deals < 2:
        raise ValueError(f"deals is {deals}; expected at least 2, for an interval")
    rules = check_match(rules, False, deals, seed)
    wanted = [("ms", budget) for budget in budgets] + [("worlds", number) for number in worlds]
    # All of them before the first match, so that what is wrong with the last does not come out after the others.
    players = [SearchAgent(f"{kind}={_plain(budget)}:{base}") for kind, budget in wanted]
    play_match(SearchAgent(f"worlds=2:{base}"), agents.make(base), deals=1, rules=rules)  # compiles
    games = 2 * deals
    entries = []
    result = None
    for number, (player, (kind, budget)) in enumerate(zip(players, wanted, strict=True)):

        def finished(over: int, _: int, before: int = games * number, name: str = player.name) -> None:
            if progress is not None:
                progress(before + over, games * len(players), name)

        finished(0, games)
        cpu, start = time.process_time(), time.perf_counter()
        result = play_match(player, agents.make(base), deals=deals, seed=seed, rules=rules, progress=finished)
        elapsed = time.perf_counter() - start
        speed = result.speed[0]
        each = None
        if speed.milliseconds is not None and player.searched:
            # What is not searched takes next to no time beside what is.
            each = speed.milliseconds * speed.decisions / player.searched
        entries.append(
            {
                "agent": player.name,
                "kind": kind,
                "budget": budget,
                "points_per_hand": result.points_per_hand,
                "ci95": list(result.ci95),
                "decisions": speed.decisions,
                "searched": player.searched / speed.decisions,
                "worlds": player.seen / player.searched if player.searched else None,
                "milliseconds": each,
                "milliseconds_per_decision": speed.milliseconds,
                "cpu_share": min((time.process_time() - cpu) / elapsed, 1.0),
            }
        )
    assert result is not None  # there is a budget
    return {
        "base": result.b,
        "rules": result.rules,
        "fingerprint": result.fingerprint,
        "seed": seed,
        "deals": deals,
        "deck_hash": result.deck_hash,
        "entries": entries,
        "cpu": cpu_name(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("gin-env", "numpy", "numba")},
        },
    }


def _plain(number: float) -> str:
    """Writes a budget as the options of an agent take it."""
    return f"{number:.12g}" if isinstance(number, float) else str(number)
