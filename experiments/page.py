"""The report of a tournament: one page of HTML that needs nothing else, with its Markdown and JSON beside it."""

import io
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.files import write_json, write_text
from experiments.report import times_played
from experiments.sheets import Cell, Sheet, headline, sheets, size
from experiments.standings import TournamentResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Paint = Callable[[TournamentResult, "Figure"], None]

RESULT, PAGE, MARKDOWN = "result.json", "report.html", "report.md"
NO_PLOTS = 'No plots: this needs matplotlib, which is not installed: pip install "gin-env[tournament]"'

# Colours that stand in a plot for those of the page, light or dark.
_INK, _QUIET, _PAPER, _MARK, _WIN, _LOSE = "#010101", "#020202", "#030303", "#040404", "#050505", "#060606"
_COLOURS = dict(
    zip((_INK, _QUIET, _PAPER, _MARK, _WIN, _LOSE), ("ink", "quiet", "paper", "mark", "win", "lose"), strict=True)
)

_LIGHT = "--paper:#fcfbf8;--ink:#1d2327;--quiet:#626b73;--line:#dcd8cf;--mark:#2b5d8a;--win:#2f8f5b;--lose:#c4513d"
_DARK = "--paper:#16191c;--ink:#e4e2dc;--quiet:#98a0a6;--line:#363b40;--mark:#7fb2dd;--win:#3fa86e;--lose:#d9644f"
_STYLE = f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
body {{ background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 76rem; padding: 1.5rem 1rem 3rem }}
h1 {{ font-size: 1.5rem; margin: 0 0 .3rem }}
h2 {{ font-size: 1.1rem; margin: 2.2rem 0 .6rem }}
.lead {{ font-size: 1.05rem; margin: 0 }}
.note, figcaption, small {{ color: var(--quiet); font-size: .82em }}
.note {{ margin: .5rem 0 0; max-width: 50rem }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums }}
th {{ color: var(--quiet); font-size: .82em; font-weight: 600; vertical-align: bottom }}
th, td {{ border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: right; white-space: nowrap }}
td small {{ display: block; line-height: 1.2 }}
.words {{ background: var(--paper); left: 0; max-width: 14rem; min-width: min(11rem, 32vw);
  overflow-wrap: anywhere; position: sticky; text-align: left; white-space: normal }}
.heat {{ background: color-mix(in srgb, var(--hue) var(--heat), transparent); border: 2px solid var(--paper) }}
.heat small {{ color: inherit; opacity: .85 }}
.win {{ --hue: var(--win) }} .lose {{ --hue: var(--lose) }} .sure {{ font-weight: 700 }}
figure {{ margin: 2.2rem 0 0; overflow-x: auto }}
svg {{ height: auto; max-width: 100%; min-width: 38rem }}
dl {{ display: grid; gap: .2rem 1.2rem; grid-template-columns: max-content 1fr }}
dt {{ color: var(--quiet) }}
dd {{ margin: 0; overflow-wrap: anywhere }}
code {{ font: .88em ui-monospace, monospace }}
@page {{ margin: 12mm; size: landscape }}
@media print {{ :root {{ color-scheme: light; {_LIGHT}; --paper: #fff }}
  body {{ font-size: 11px; max-width: none; padding: 0 }} .wide, figure {{ overflow: visible }}
  svg {{ max-height: 165mm; min-width: 0 }} figure {{ margin-top: 1rem }}
  table, figure, dl {{ break-inside: avoid }} h2 {{ break-after: avoid }}
  th, td, .heat {{ padding: .15rem .35rem }} .heat {{ print-color-adjust: exact; -webkit-print-color-adjust: exact }} }}
"""


def write_report(result: TournamentResult, folder: str | Path, command: str) -> bool:
    """Writes the report into a folder: report.html, report.md and result.json.

    Args:
        result: What to tell.
        folder: Where to.
        command: The command that makes the same result again.

    Returns:
        Whether the page has plots, which need matplotlib.

    Raises:
        OSError: If a file cannot be written.
    """
    try:
        plots = draw(result)
    except ModuleNotFoundError:
        plots = {}
    write_text(Path(folder) / PAGE, html_page(result, command, plots))
    write_text(Path(folder) / MARKDOWN, markdown(result, command))
    write_json(Path(folder) / RESULT, result.to_json() | {"command": command})
    return bool(plots)


def _facts(result: TournamentResult, command: str) -> list[tuple[str, str, bool]]:
    """What it takes to play the same again: name, text, and whether that is code."""
    plan = result.plan
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items() if version != "-")
    target, seating = "target", "twice with the seats exchanged"
    if plan.game == "rummy40":
        target = "limit"
        if times_played(result.standings[0].field) != "twice":
            seating = "with either player alone against the other in all other seats, in each seat"
    return [
        ("command", command, True),
        ("rules", f"{plan.rules_name} (fingerprint {plan.rules.fingerprint})", False),
        ("a game", f"a match to the {target}" if plan.match else "one hand", False),
        ("deals", f"{result.deals:,} common to all pairings, each played {seating}", False),
        ("seed", str(plan.seed), False),
        ("decks", f"SHA-256 {result.deck_hash}", False),
        ("sources", f"{plan.source}, gin-env {plan.package}", False),
        ("versions", versions, False),
        *((entry.spec, f"{entry.name}, {entry.version}", False) for entry in plan.entries),
    ]


# -------------------------------------------------------------------------------------------------------------- text


def markdown(result: TournamentResult, command: str) -> str:
    """Returns the report in Markdown."""
    lines = ["# Tournament", "", _inline(headline(result)) + ".", "", f"    {command}", ""]
    for sheet in sheets(result):
        lines += [f"## {sheet.title}", ""]
        lines.append("| " + " | ".join(_inline(head) for head in sheet.head) + " |")
        lines.append("|" + "|".join("---" if cell.words else "--:" for cell in sheet.rows[0]) + "|")
        lines += ["| " + " | ".join(_markdown_cell(cell) for cell in row) + " |" for row in sheet.rows]
        legend = " Bold: sure at 99.9 %; in brackets: not even at 95 %." if sheet.shaded else ""
        lines += ["", sheet.note + legend, ""]
    lines += ["## What was played", ""]
    lines += [f"- {_inline(name)}: {_inline(text)}" for name, text, code in _facts(result, command) if not code]
    return "\n".join(lines) + "\n"


def _markdown_cell(cell: Cell) -> str:
    small = cell.small if not cell.small or cell.small.startswith("±") else f"({cell.small})"
    text = _inline(f"{cell.text} {small}".strip())
    if cell.heat is None:
        return text
    return (f"({text})", text, f"**{text}**")[abs(cell.level)]


def _inline(text: str) -> str:
    """Returns text that Markdown shows as it is."""
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", escape(text, quote=False))


# -------------------------------------------------------------------------------------------------------------- HTML


def html_page(result: TournamentResult, command: str, plots: dict[str, str]) -> str:
    """Returns the report as a page of HTML.

    Args:
        result: What to tell.
        command: The command that makes the same result again.
        plots: Pictures by their captions, as SVG (see `draw`).
    """
    standings, cross_table, behaviour = (_html_sheet(sheet) for sheet in sheets(result))
    figures = [
        f'<figure role="img" aria-label="{escape(caption)}">{svg}<figcaption>{escape(caption)}</figcaption></figure>'
        for caption, svg in plots.items()
    ]
    if not figures:
        figures = [f'<p class="note">{escape(NO_PLOTS)}</p>']
    facts = "\n".join(
        f"<dt>{escape(name)}</dt><dd>{f'<code>{escape(text)}</code>' if code else escape(text)}</dd>"
        for name, text, code in _facts(result, command)
    )
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_title(result)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
        f'<h1>{_title(result)}</h1>\n<p class="lead">{escape(headline(result))}.</p>',
        f'<p class="note">{size(result)}.</p>',
        standings,
        *figures[:1],
        cross_table,
        *figures[1:2],
        behaviour,
        *figures[2:],
        f"<h2>What was played</h2>\n<dl>\n{facts}\n</dl>\n</body>\n</html>",
    ]
    return "\n".join(parts) + "\n"


def _title(result: TournamentResult) -> str:
    return f"{'Gin rummy' if result.plan.game == 'gin' else 'Rummy40'} tournament"


def _html_sheet(sheet: Sheet) -> str:
    head = "".join(
        f"<th{_classes(words=cell.words)}>{escape(name)}</th>"
        for name, cell in zip(sheet.head, sheet.rows[0], strict=True)
    )
    rows = "\n".join("<tr>" + "".join(_html_cell(cell) for cell in row) + "</tr>" for row in sheet.rows)
    legend = (
        " Coloured: sure at 95 %, the stronger the farther from even; bold: sure at 99.9 %." if sheet.shaded else ""
    )
    return (
        f'<h2>{escape(sheet.title)}</h2>\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f'<tbody>\n{rows}\n</tbody></table></div>\n<p class="note">{escape(sheet.note + legend)}</p>'
    )


def _html_cell(cell: Cell) -> str:
    hot = cell.heat is not None and cell.level != 0
    classes = _classes(words=cell.words, heat=hot, win=cell.level > 0, lose=cell.level < 0, sure=abs(cell.level) > 1)
    heat = f' style="--heat:{10 + 55 * abs(cell.heat):.0f}%"' if hot and cell.heat is not None else ""
    small = f"<small>{escape(cell.small)}</small>" if cell.small else ""
    return f"<td{classes}{heat}>{escape(cell.text)}{small}</td>"


def _classes(**wanted: bool) -> str:
    names = " ".join(name for name, on in wanted.items() if on)
    return f' class="{names}"' if names else ""


# ------------------------------------------------------------------------------------------------------------- plots


def draw(result: TournamentResult) -> dict[str, str]:
    """Returns the plots of a tournament as SVG by their captions, in the colours of the page's style.

    Raises:
        ModuleNotFoundError: If matplotlib is not installed.
    """
    unit = "match" if result.plan.match else "hand"
    plots: tuple[tuple[str, _Paint], ...] = (
        ("Ratings with their intervals of 95 % confidence.", _draw_ratings),
        (f"Points in a {unit} against all others: how often, and the mean.", _draw_points),
        ("How hands end, by who ended them and how.", _draw_endings),
    )
    if result.plan.game == "rummy40":
        plots = (*plots[:2], ("How hands end for a player.", _draw_endings40))
    return {caption: _svg(result, paint) for caption, paint in plots}


def _svg(result: TournamentResult, paint: _Paint) -> str:
    """Paints a figure, and returns it with the colours of the page."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",  # letters stay letters
        "svg.hashsalt": paint.__name__,
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9,
        "text.parse_math": False,  # a name may have a dollar sign
        "text.color": _INK,
        "axes.edgecolor": _QUIET,
        "axes.labelcolor": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": _QUIET,
        "xtick.labelcolor": _INK,
        "ytick.color": _QUIET,
        "ytick.labelcolor": _INK,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
    }
    file = io.StringIO()
    with rc_context(settings):
        figure = Figure(figsize=(9, 3), layout="constrained")
        paint(result, figure)
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace("'DejaVu Sans'", "system-ui").strip()
    for colour, name in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def _names(result: TournamentResult, axes: "Axes") -> np.ndarray:
    """Writes the names at the left, the best at the top; returns their places."""
    places = np.arange(len(result.standings))[::-1]
    names = [f"{place}. {one.entry.spec}" for place, one in enumerate(result.standings, 1)]
    axes.set_yticks(places, [name if len(name) <= 32 else f"{name[:31]}…" for name in names])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, len(places) - 0.4)
    return places


def _draw_ratings(result: TournamentResult, figure: "Figure") -> None:
    """Ratings as points; beside them, where some are far behind, the others from nearby."""
    elo = np.array([one.elo for one in result.standings])
    bounds = np.array([one.elo_ci95 for one in result.standings])
    bounds = np.where(np.isfinite(bounds), bounds, elo[:, None])
    figure.set_size_inches(9, 0.32 * elo.size + 0.9)
    # Below the widest gap, if it is wider than all above it are apart.
    place = int(np.argmax(elo[:-1] - elo[1:])) + 1
    near = place if place > 1 and elo[place - 1] - elo[place] > elo[0] - elo[place - 1] else elo.size
    views = figure.subplots(1, 1 if near == elo.size else 2, sharey=True, squeeze=False)[0]
    for axes, shown in zip(views, (elo.size, near), strict=False):
        places = _names(result, axes)
        axes.errorbar(
            elo[:shown],
            places[:shown],
            xerr=np.abs(bounds - elo[:, None]).T[:, :shown],
            fmt="o",
            color=_MARK,
            ecolor=_MARK,
            markersize=5,
            elinewidth=1.6,
            capsize=3,
        )
        axes.grid(axis="x", color=_QUIET, alpha=0.25, linewidth=0.6)
        axes.set_xlabel("rating" if shown == elo.size else f"rating, the first {shown}")


def _draw_points(result: TournamentResult, figure: "Figure") -> None:
    """A histogram for each player, one below the other."""
    count = len(result.standings)
    figure.set_size_inches(9, 0.55 * count + 0.8)
    every = [one.field.games.ravel() for one in result.standings]
    edge = max(5, max(np.percentile(np.abs(points), 99.7) for points in every))
    width = max(1, round(edge / 24))
    edges = (np.arange(-int(edge / width) - 1, int(edge / width) + 3) - 0.5) * width
    axes = figure.subplots()
    places = _names(result, axes)
    tallest = 0.0
    shares = []
    for points in every:
        inside = np.clip(points, edges[0], edges[-1])
        shares.append(np.histogram(inside, edges)[0] / points.size)
        tallest = max(tallest, shares[-1].max())
    middles = (edges[:-1] + edges[1:]) / 2
    for one, place, share in zip(result.standings, places, shares, strict=True):
        low = place - 0.4
        colours = [_WIN if middle > 0 else _LOSE if middle < 0 else _QUIET for middle in middles]
        axes.bar(middles, 0.85 * share / tallest, width=0.92 * width, bottom=low, color=colours)
        axes.plot([one.field.games.mean()] * 2, [low, low + 0.85], color=_INK, linewidth=1.4)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_xlabel(
        f"points; bars are {width} wide, the outer ones hold all beyond, the tallest is {100 * tallest:.0f} %"
    )


def _draw_endings(result: TournamentResult, figure: "Figure") -> None:
    """Shares of hands as bars, those that the player itself ended at the left of zero's other side."""
    figure.set_size_inches(9, 0.36 * len(result.standings) + 1.1)
    axes = figure.subplots()
    places = _names(result, axes)
    sides = [one.field.behaviour for one in result.standings]

    def share(number: int, *signs: tuple[str, int]) -> np.ndarray:
        return np.array([sum(sign * getattr(side[number], name) for name, sign in signs) for side in sides])

    kinds = (
        ("gin or big gin", (("gin", 1), ("big_gin", 1)), 1.0),
        ("a knock that stood", (("knock", 1), ("undercut_suffered", -1)), 0.65),
        ("a knock that was undercut", (("undercut_suffered", 1),), 0.3),
    )
    for number, direction, colour, who in ((0, 1, _WIN, "player's"), (1, -1, _LOSE, "others'")):
        start = np.zeros(len(sides))
        for name, signs, alpha in kinds:
            width = direction * 100 * share(number, *signs)
            axes.barh(places, width, left=start, height=0.7, color=colour, alpha=alpha, label=f"the {who} {name}")
            start += width
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):.0f}")
    axes.set_xlabel("% of all hands")
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)


def _draw_endings40(result: TournamentResult, figure: "Figure") -> None:
    """Shares of a player's hands as bars: gone out, opened only, not even that."""
    figure.set_size_inches(9, 0.36 * len(result.standings) + 0.9)
    axes = figure.subplots()
    places = _names(result, axes)
    sides: list[Any] = [one.field.behaviour[0] for one in result.standings]
    start = np.zeros(len(sides))
    for name, colour, alpha, shares in (
        ("goes out", _WIN, 1.0, [side.out for side in sides]),
        ("has opened when the hand ends", _WIN, 0.4, [side.opened - side.out for side in sides]),
        ("has not opened", _LOSE, 1.0, [1 - side.opened for side in sides]),
    ):
        width = 100 * np.array(shares)
        axes.barh(places, width, left=start, height=0.7, color=colour, alpha=alpha, label=name)
        start += width
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of its hands")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
