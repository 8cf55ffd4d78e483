"""Reports for people (sentences and rich tables) and for programs (JSON files)."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gin_env.rulebook import DECISIONS, SOURCES, describe
from gin_env.rules import PRESETS, Rules

if TYPE_CHECKING:  # they load numba, which reports do without
    from agents import match40
    from agents.base import Agent
    from agents.match import Behaviour, MatchResult

    AnyResult = MatchResult | match40.MatchResult
from experiments.files import replacing


def headline(result: "AnyResult") -> str:
    """Says in one sentence how a match ended, for example "greedy beats random by 48.6 points a hand (95 % ...)"."""
    a, b = side_names(result)
    mean = result.points_per_hand
    times = times_played(result)
    played = f"{result.deals:,} {'deal' if result.deals == 1 else 'deals'} played {times}"
    low, high = result.ci95
    if not math.isfinite(low):
        verb = "beats" if mean > 0 else "loses to" if mean < 0 else "is level with"
        return f"{a} {verb} {b} by {abs(mean):.1f} points a hand; one deal played {times} says nothing of the margin"
    digits = 1 if high - low >= 0.2 else 2
    level = "every pair of games" if times == "twice" else "the games of every deal"
    if low == high == 0:
        return f"{a} and {b} are level: {level} came out at exactly 0, {played}"
    if low <= 0 <= high:
        return (
            f"{a} and {b} cannot be told apart: {mean:+z.{digits}f} points a hand for {a} "
            f"(95 % interval {low:+z.{digits}f} to {high:+z.{digits}f}), {played}"
        )
    rate, (least, most) = result.win_rate, result.win_ci95
    if mean < 0:  # told from the winner's side
        a, b, mean, low, high = b, a, -mean, -high, -low
        rate, least, most = 1 - rate, 1 - most, 1 - least
    if result.match:
        return (
            f"{a} wins {percent(rate)} of matches against {b} (95 % interval {percent(least)} to {percent(most)}) "
            f"and {mean:+.{digits}f} points a hand ({low:+.{digits}f} to {high:+.{digits}f}), {played}"
        )
    return (
        f"{a} beats {b} by {mean:.{digits}f} points a hand "
        f"(95 % interval {low:.{digits}f} to {high:.{digits}f}), {played}"
    )


def times_played(result: "AnyResult") -> str:
    """Says how often each deal was played."""
    return "twice" if result.games.shape[1] == 2 else f"{result.games.shape[1]} times"


def side_names(result: "AnyResult") -> tuple[str, str]:
    """Returns what to call the two sides, told apart where both have one name."""
    if result.a == result.b:
        return f"{result.a} (1)", f"{result.b} (2)"
    return result.a, result.b


def percent(share: float | None) -> str:
    """Writes a share, "-" for none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def number(value: float | None, form: str = ".1f") -> str:
    """Writes a number, "-" for none."""
    return "-" if value is None else format(value, form)


# What is shown of each side's behaviour.
BEHAVIOUR: tuple[tuple[str, Callable[["Behaviour"], str]], ...] = (
    ("knocks", lambda side: percent(side.knock)),
    ("gin", lambda side: percent(side.gin)),
    ("big gin", lambda side: percent(side.big_gin)),
    ("undercuts the other", lambda side: percent(side.undercut_made)),
    ("is undercut", lambda side: percent(side.undercut_suffered)),
    ("deadwood when knocking", lambda side: number(side.knock_deadwood)),
    ("own turns in a hand", lambda side: number(side.turns)),
    ("draws from the pile", lambda side: percent(side.takes)),
)


BEHAVIOUR40: tuple[tuple[str, Callable[["match40.Behaviour"], str]], ...] = (
    ("goes out", lambda side: percent(side.out)),
    ("opens", lambda side: percent(side.opened)),
    ("points left", lambda side: number(side.left)),
    ("points for melds taken back", lambda side: number(side.penalties, ".2f")),
    ("own turns in a hand", lambda side: number(side.turns)),
    ("draws from the pile", lambda side: percent(side.takes)),
)


def behaviour_rows(sides: "Sequence[Behaviour] | Sequence[match40.Behaviour]") -> list[tuple[str, list[str]]]:
    """Returns the rows of a table of behaviour: a label, and what is shown of each side."""
    shown: Any = BEHAVIOUR40 if hasattr(sides[0], "places") else BEHAVIOUR
    rows = [(label, [show(side) for side in sides]) for label, show in shown]
    for place in range(len(getattr(sides[0], "places", ()))):
        label = "points a hand, starting" if place == 0 else f"points a hand, {place} after the start"
        rows.append((label, [f"{side.places[place]:+z.2f}" for side in sides]))  # type: ignore[union-attr]
    return rows


def match40_table(result: "match40.MatchResult") -> Table:
    """Returns the table of a match of Rummy40: results, behaviour and speed, a column for each side."""
    deal = times_played(result)
    games = f"{result.games.size:,} matches, " if result.match else ""
    title = f"{result.rules}, seed {result.seed}, every deal {deal}, {games}{result.hands:,} hands"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in side_names(result):
        table.add_column(name, justify="right")
    mean = result.points_per_hand
    table.add_row("points a hand", f"{mean:+z.2f}", f"{-mean:+z.2f}")
    hands = max(result.hands, 1)
    table.add_row("hands won", percent(result.hands_won / hands), percent(result.hands_lost / hands))
    if result.match:
        table.add_row("matches won", percent(result.win_rate), percent(1 - result.win_rate))
    if any(result.forfeits):
        table.add_row("games forfeited", *(f"{number:,}" for number in result.forfeits))
    table.add_section()
    for label, texts in behaviour_rows(result.behaviour):
        table.add_row(label, *texts)
    table.add_section()
    for label, share in (("stock ran out", result.stock), ("hands truncated", result.truncated)):
        table.add_row(label, percent(share), percent(share))
    table.add_section()
    table.add_row("decisions a second", *(number(side.per_second, ",.0f") for side in result.speed))
    table.add_row("milliseconds a decision", *(number(side.milliseconds, ".4g") for side in result.speed))
    return table


def match_table(result: "MatchResult") -> Table:
    """Returns the table of a match: results, seats, behaviour and speed, a column for each side."""
    games = f"{2 * result.deals:,} matches, " if result.match else ""
    table = Table(title=f"{result.rules}, seed {result.seed}, {games}{result.hands:,} hands", title_justify="left")
    table.add_column("")
    for name in side_names(result):
        table.add_column(name, justify="right")
    mean = result.points_per_hand
    table.add_row("points a hand", f"{mean:+z.2f}", f"{-mean:+z.2f}")
    # The other side is the dealer where a is not.
    table.add_row("  as non-dealer", f"{result.as_non_dealer:+z.2f}", f"{-result.as_dealer:+z.2f}")
    table.add_row("  as dealer", f"{result.as_dealer:+z.2f}", f"{-result.as_non_dealer:+z.2f}")
    hands = max(result.hands, 1)
    table.add_row("hands won", percent(result.hands_won / hands), percent(result.hands_lost / hands))
    if result.match:
        table.add_row("matches won", percent(result.win_rate), percent(1 - result.win_rate))
    if any(result.forfeits):
        table.add_row("games forfeited", *(f"{number:,}" for number in result.forfeits))
    table.add_section()
    for label, show in BEHAVIOUR:
        table.add_row(label, *(show(side) for side in result.behaviour))
    table.add_section()
    for label, share in (("dead hands", result.dead), ("ties", result.tied), ("hands truncated", result.truncated)):
        table.add_row(label, percent(share), percent(share))
    table.add_section()
    table.add_row("decisions a second", *(number(side.per_second, ",.0f") for side in result.speed))
    table.add_row("milliseconds a decision", *(number(side.milliseconds, ".4g") for side in result.speed))
    return table


def print_match(result: "AnyResult", console: Console) -> None:
    """Prints a match: its table, what identifies it, and the sentence that sums it up."""
    # By what it has, for the modules of both games load numba.
    table: Any = match40_table if hasattr(result, "seats") else match_table
    console.print(table(result))
    console.print(f"rules {result.fingerprint}, decks {result.deck_hash[:16]}", style="dim", highlight=False)
    console.print(headline(result), style="bold", highlight=False, markup=False, soft_wrap=True)


def print_incidents(player: "Agent", console: Console) -> None:
    """Prints what went wrong with a player that counts it (`agents.external.ExternalAgent`)."""
    incidents = getattr(player, "incidents", None)
    if incidents:
        counts = ", ".join(f"{number:,} {kind}" for kind, number in incidents.items())
        last = getattr(player, "last_incident", "")
        line = f"{player.name}: {counts}" + (f"; the last: {last}" if last else "")
        console.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)


def bench_table(bench: Mapping[str, Any]) -> Table:
    """Returns the table of `experiments.bench.bench_engine`: decisions per second, and where the time goes."""
    entries = bench["entries"]
    tables = entries[0]["tables"]
    table = Table(
        title=f"{len(entries[0]['rounds'])} rounds of {bench['seconds']:g} s, {tables:,} tables at once",
        title_justify="left",
        caption="look: observation and mask; choose: a random legal action; step: play it, deal the next hand",
        caption_justify="left",
    )
    table.add_column("1,000 decisions/s", no_wrap=True)
    for name in ("median", "best", "per core", "look ns", "choose", "step"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in entries:
        rates = (entry["decisions_per_second"], entry["best"], entry["per_core_second"])
        parts = [f"{part['nanoseconds']:.0f}" for part in entry.get("kernels", {}).values()]
        table.add_row(bench_label(entry).removeprefix("gin_env "), *(f"{rate / 1000:,.0f}" for rate in rates), *parts)
    return table


def bench_label(entry: Mapping[str, Any]) -> str:
    """Returns what to call an entry of the benchmark."""
    if entry["library"] != "gin_env":
        return str(entry["library"])
    return f"gin_env {entry['label']}" + (f", {entry['threads']} threads" if entry["threads"] > 1 else "")


def print_bench(bench: Mapping[str, Any], console: Console) -> None:
    """Prints a benchmark: its table, the machine, and the sentence that sums it up."""
    console.print(bench_table(bench))
    _print_machine(bench, console)
    first = bench["entries"][0]
    rate = f"gin_env plays {first['decisions_per_second']:,.0f} decisions a second on one thread ({first['label']})"
    for name, ratio in bench["ratios"].items():
        rate += f", {ratio:,.0f} times {name}"
    if not bench["ratios"]:
        rate += "; no other library was measured"
    console.print(rate, style="bold", highlight=False, soft_wrap=True)


def bench_train_table(bench: Mapping[str, Any]) -> Table:
    """Returns the table of `experiments.bench_train.bench_train`: decisions per second, and where the time goes."""
    settings = bench["settings"]
    table = Table(
        title="; ".join(f"{name} {value:,}" for name, value in settings.items()),
        title_justify="left",
        caption="decisions of the learner that enter the gradient, in a second; per core: while it had one",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("trainer, opponent", no_wrap=True)
    for name in ("median", "best", "per core", *bench["entries"][0]["parts"]):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in bench["entries"]:
        rates = (entry["decisions_per_second"], entry["best"], entry["per_core_second"])
        parts = (f"{100 * share:.0f} %" for share in entry["parts"].values())
        label = f"{entry['library']}, {entry['opponent']}" if len(bench["entries"]) > 1 else entry["opponent"]
        table.add_row(label, *(f"{rate:,.0f}" for rate in rates), *parts)
    return table


def print_bench_train(bench: Mapping[str, Any], console: Console) -> None:
    """Prints a benchmark of training: its table, the machine, and the sentence that sums it up."""
    console.print(bench_train_table(bench))
    _print_machine(bench, console)
    first = bench["entries"][0]
    rate = f"gin_env trains on {first['decisions_per_second']:,.0f} decisions a second"
    if "missing" not in bench:  # a recipe alone
        rate += f" by the {first['opponent']}, {first['per_core_second']:,.0f} while it had a core"
        console.print(rate, style="bold", highlight=False, soft_wrap=True)
        return
    rate += f" against {first['opponent']}"
    if bench["missing"]:
        console.print(bench["missing"], style="yellow", highlight=False, markup=False, soft_wrap=True)
    else:
        rate += f", {bench['ratio']:.2f} times MaskablePPO ({bench['ratio_per_core']:.2f} times while each had a core)"
        rate += f"; both networks have {first['parameters']:,} weights"
    console.print(rate, style="bold", highlight=False, soft_wrap=True)


def bench_search_table(bench: Mapping[str, Any]) -> Table:
    """Returns the table of `experiments.bench_search.bench_search`: strength by budget."""
    table = Table(
        title=f"points a hand against {bench['base']}, {bench['rules']}, {bench['deals']:,} deals played twice",
        title_justify="left",
        caption="searched: share of decisions; worlds, ms: of one that is; ms of all: of any",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("budget", no_wrap=True)
    for name in ("points", "95 % interval", "searched", "worlds", "ms", "ms of all"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in bench["entries"]:
        low, high = entry["ci95"]
        table.add_row(
            budget_label(entry),
            f"{entry['points_per_hand']:+z.2f}",
            f"{low:+z.2f} to {high:+z.2f}",
            percent(entry["searched"]),
            number(entry["worlds"], ",.0f"),
            number(entry["milliseconds"], ".3g"),
            number(entry["milliseconds_per_decision"], ".3g"),
        )
    return table


def budget_label(entry: Mapping[str, Any]) -> str:
    """Returns what to call a budget of a search."""
    return f"{entry['budget']:g} ms" if entry["kind"] == "ms" else f"{entry['budget']:,} worlds"


def print_bench_search(bench: Mapping[str, Any], console: Console) -> None:
    """Prints a benchmark of the search: its table, the machine, and the sentence that sums it up."""
    console.print(bench_search_table(bench), markup=False)
    _print_machine(bench, console)
    best = max(bench["entries"], key=lambda entry: entry["points_per_hand"])
    low, high = best["ci95"]
    line = (
        f"the most: {best['agent']} with {best['points_per_hand']:+z.2f} points a hand against {bench['base']} "
        f"(95 % interval {low:+z.2f} to {high:+z.2f}; it is the best of {len(bench['entries'])}, which flatters)"
    )
    console.print(line, style="bold", highlight=False, markup=False, soft_wrap=True)


def ablation_table(result: Mapping[str, Any]) -> Table:
    """Returns the table of `experiments.ablation.ablate`: points a hand by variant, the mean over its seeds."""
    table = Table(
        title=f"{result['minutes']:g} minutes of processor time each, {result['deals']:,} deals played twice",
        title_justify="left",
        caption="points a hand; level: minutes until it was behind no more, by the mean",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("variant", no_wrap=True)
    for name in (*result["opponents"], "mean", "by seed", "decisions", "level"):
        table.add_column(name, justify="right")
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for run in result["runs"]:
        by_name.setdefault(run["variant"], []).append(run)
    for name, runs in by_name.items():
        points = [
            sum(run["matches"][opponent]["points_per_hand"] for run in runs) / len(runs)
            for opponent in result["opponents"]
        ]
        table.add_row(
            name,
            *(f"{value:+.2f}" for value in (*points, sum(points) / len(points))),
            " ".join(f"{run['mean']:+.2f}" for run in runs),
            f"{sum(run['steps'] for run in runs) / len(runs) / 1e6:.1f} M",
            " ".join("-" if run["level"] is None else f"{run['level']:.1f}" for run in runs),
        )
    return table


def fit_table(result: Mapping[str, Any]) -> Table:
    """Returns the table of `experiments.fit.fit`: the weights, and what they win on new deals."""
    table = Table(
        title=f"{result['generations']:,} generations of {result['population']:,}, seed {result['seed']}",
        title_justify="left",
    )
    table.add_column("term")
    table.add_column("weight", justify="right")
    for name, weight in result["weights"].items():
        table.add_row(name, f"{weight:g}")
    table.add_section()
    for name, told in result["check"]["against"].items():
        table.add_row(f"against {name}", f"{told['points_per_hand']:+.2f} points a hand")
        table.add_row("  95 % interval", "{:+.2f} to {:+.2f}".format(*told["ci95"]))
    return table


def terms_table(result: Mapping[str, Any]) -> Table:
    """Returns the table of `experiments.fit.ablate`: what is lost without each term."""
    table = Table(
        title=f"points a hand lost, {result['deals']:,} deals played twice",
        title_justify="left",
        caption=f"mean: over {', '.join(result['opponents'])}; after it half of its interval of 95 %",
        caption_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    against = list(next(iter(result["terms"].values()))["against"])
    table.add_column("term")
    for name in ("weight", "set to", "mean", *against):
        table.add_column(name, justify="right")
    for name, term in result["terms"].items():
        low, high = term["lost"]["ci95"]
        table.add_row(
            name,
            f"{term['weight']:g}",
            f"{term['set_to']:g}",
            f"{term['lost']['points_per_hand']:+.2f} ± {(high - low) / 2:.2f}",
            *(f"{term['against'][opponent]['points_per_hand']:+.2f}" for opponent in against),
        )
    return table


def _print_machine(bench: Mapping[str, Any], console: Console) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in bench["versions"].items() if version)
    console.print(f"{bench['cpu']}; {versions}", style="dim", highlight=False, soft_wrap=True)
    busy = min(entry["cpu_share"] for entry in bench["entries"])
    if busy < 0.95:
        console.print(
            f"The machine was busy: a thread had a core for only {100 * busy:.0f} % of a measurement.", style="yellow"
        )


def plot_bench(bench: Mapping[str, Any], path: str | Path) -> None:
    """Draws decisions per second as bars, on a logarithmic scale, into a picture (png, svg or pdf by its name).

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the name does not end in a format of pictures.
        OSError: If the file cannot be written.
    """
    from matplotlib.figure import Figure

    entries = bench["entries"][::-1]
    figure = Figure(figsize=(9, 0.45 * len(entries) + 1.2), layout="constrained")
    axes = figure.subplots()
    rates = [entry["decisions_per_second"] for entry in entries]
    labels = [bench_label(entry) for entry in entries]
    bars = axes.barh(labels, rates, color=["C0" if entry["library"] == "gin_env" else "C7" for entry in entries])
    axes.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=4, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(min(rates) / 2, max(rates) * 4)
    axes.set_xlabel("decisions a second, observation and mask written")
    axes.tick_params(axis="y", labelsize=8)
    axes.set_title(bench["cpu"], fontsize=8)
    with replacing(path) as beside:
        figure.savefig(beside)


def check_picture(path: str | Path) -> None:
    """Says that a file cannot hold a picture before it takes long to find out.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the name does not end in a format of pictures.
    """
    from matplotlib.figure import Figure

    if Path(path).suffix[1:].lower() not in Figure().canvas.get_supported_filetypes():
        raise ValueError(f"{path} is no name of a picture; expected one that ends in .png, .svg or .pdf")


def plot_bench_search(bench: Mapping[str, Any], path: str | Path) -> None:
    """Draws points a hand by the time of a searched decision, into a picture (png, svg or pdf by its name).

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the name does not end in a format of pictures, or nothing was searched.
        OSError: If the file cannot be written.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogFormatter

    entries = [entry for entry in bench["entries"] if entry["milliseconds"] is not None]
    if not entries:
        raise ValueError("no decision was searched, so there is nothing to draw; expected more deals")
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for kind, label in (("ms", "so many milliseconds"), ("worlds", "so many worlds for each candidate")):
        some = sorted((one for one in entries if one["kind"] == kind), key=lambda one: one["milliseconds"])
        if not some:
            continue
        times = [entry["milliseconds"] for entry in some]
        points = [entry["points_per_hand"] for entry in some]
        lengths = [
            [entry["points_per_hand"] - entry["ci95"][0] for entry in some],
            [entry["ci95"][1] - entry["points_per_hand"] for entry in some],
        ]
        axes.errorbar(times, points, yerr=lengths, marker="o", capsize=3, label=label)
        for entry in some:
            place = (entry["milliseconds"], entry["points_per_hand"])
            axes.annotate(f"{entry['worlds']:,.0f}", place, (5, 5), textcoords="offset points", fontsize=8)
    axes.axhline(0, color="C7", linewidth=0.8)
    axes.set_xscale("log")
    for set_labels in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        set_labels(LogFormatter())
    axes.set_xlabel("milliseconds of a decision that is searched (beside the points: its worlds)")
    axes.set_ylabel(f"points a hand against {bench['base']}, 95 % intervals")
    axes.set_title(f"{bench['rules']}, {bench['deals']:,} deals played twice; {bench['cpu']}", fontsize=8)
    axes.legend(fontsize=8)
    with replacing(path) as beside:
        figure.savefig(beside)


# ------------------------------------------------------------------------------------------------------------ rules


def preset_table() -> Table:
    """Returns the table of the presets: what each is and where it comes from."""
    table = Table()
    for name in ("preset", "game", "source"):
        table.add_column(name, overflow="fold")
    for name, source in SOURCES.items():
        table.add_row(name, source.game, source.title)
    return table


def rules_table(rules: Rules) -> Table:
    """Returns the table of the points of some rules."""
    table = Table(title=rules.text if rules.name in PRESETS else f"{rules.name} ({rules.text})", title_justify="left")
    table.add_column("point", overflow="fold", min_width=12)
    table.add_column("rule", overflow="fold", ratio=1)
    table.add_column("by", no_wrap=True)
    for point in describe(rules):
        style = {"yours": "bold", "ours": "italic"}.get(point.decision)
        table.add_row(point.title, point.text, point.decision, style=style)
    return table


def print_rules(rules: Rules, console: Console) -> None:
    """Prints rules: the table of their points, what its marks mean, the source and the options it gives."""
    console.print(rules_table(rules), markup=False)
    marks = {point.decision for point in describe(rules)}
    legend = "; ".join(f"{mark}: {meaning}" for mark, meaning in DECISIONS.items() if mark in marks)
    console.print(legend, style="dim", highlight=False)
    source = SOURCES.get(rules.name)
    if source is not None:
        console.print(f"source: {source.title}", highlight=False)
        for difference in source.differences:
            console.print(f"- {difference}", highlight=False, soft_wrap=True)
        table = Table(box=None, pad_edge=False)
        table.add_column("options")
        table.add_column("", overflow="fold")
        for option in source.options:
            ours = " (ours)" if option.decision == "ours" else ""
            table.add_row(option.meaning + ours, option.rules)
        if source.options:
            console.print(table)
    console.print(f"fingerprint {rules.fingerprint}", style="dim", highlight=False)
