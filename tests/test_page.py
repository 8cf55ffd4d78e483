"""The report of a tournament: one page that needs nothing else, and says what the result says."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("choix")
pytest.importorskip("matplotlib")

import agents
from agents import base
from experiments import page
from experiments.page import draw, html_page, markdown, write_report
from experiments.sheets import headline, sheets
from experiments.standings import TournamentResult
from experiments.tournament import play_tournament
from gin_env.view import View

EVIL = "odd:<script>alert('x')</script>&|*$\\frac$`_[y](z)"
COMMAND = "ginrummy tournament greedy 'a<b' --deals 12"
VOID = {"meta", "br", "img", "link"}


class Odd:
    """Has any options."""

    name = "<i>odd</i>"

    def __init__(self, options: str) -> None:
        self.inner = agents.make("gin-only")

    def act(self, view: View, mask: np.ndarray, rng: np.ndarray) -> np.ndarray:
        return self.inner.act(view, mask, rng)


class Page(HTMLParser):
    """Reads a page: its texts, tags and attributes, and whether every tag is closed in its place."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def result() -> Iterator[TournamentResult]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(base._FACTORIES["gin"], "odd", Odd)
        patch.setitem(base._RAW, "gin", {"odd"})
        yield play_tournament(["greedy", "random", EVIL], deals=12, seed=2, resamples=10)


@pytest.fixture(scope="module")
def plots(result: TournamentResult) -> dict[str, str]:
    return draw(result)


@pytest.fixture(scope="module")
def read(result: TournamentResult, plots: dict[str, str]) -> Page:
    return Page(html_page(result, COMMAND, plots))


def test_it_needs_nothing_else(read: Page, result: TournamentResult, plots: dict[str, str]) -> None:
    tags = {tag for tag, _ in read.tags}
    assert not tags & {"script", "link", "img", "iframe", "object"}
    for _, attributes in read.tags:
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href"):
                assert value is not None
                assert value.startswith("#")
    text = html_page(result, COMMAND, plots)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_names_are_text(read: Page, result: TournamentResult) -> None:
    assert "i" not in {tag for tag, _ in read.tags}
    place = 1 + [one.entry.spec for one in result.standings].index(EVIL)
    assert read.texts.count(f"{place}. {EVIL}") == 2  # standings and cross-table; the plots cut it short
    assert EVIL in read.texts  # among the versions
    assert any(text.startswith("<i>odd</i>, ") for text in read.texts)
    assert COMMAND in read.texts


def test_every_cell_is_on_the_page(read: Page, result: TournamentResult) -> None:
    for sheet in sheets(result):
        assert sheet.title in read.texts
        for row in sheet.rows:
            for cell in row:
                assert not cell.text or cell.text in read.texts
                assert not cell.small or cell.small in read.texts
    assert headline(result) + "." in read.texts


def test_shades_say_how_sure_it_is(read: Page, result: TournamentResult) -> None:
    cells = [attributes for tag, attributes in read.tags if tag == "td" and "--heat" in (attributes.get("style") or "")]
    _, cross, _ = sheets(result)
    sure = [cell for row in cross.rows for cell in row if cell.level]
    assert sure
    assert len(cells) == len(sure)
    for attributes, cell in zip(cells, sure, strict=True):
        words = (attributes["class"] or "").split()
        assert ("win" in words, "lose" in words) == (cell.level > 0, cell.level < 0)
        assert ("sure" in words) == (abs(cell.level) == 2)


def test_what_identifies_it_is_on_the_page(read: Page, result: TournamentResult) -> None:
    whole = "\n".join(read.texts)
    for fact in (result.deck_hash, result.plan.rules.fingerprint, result.plan.source, "numpy"):
        assert fact in whole
    lines = markdown(result, COMMAND).splitlines()
    assert f"    {COMMAND}" in lines
    assert any(result.deck_hash in line for line in lines)


def test_plots(plots: dict[str, str], result: TournamentResult) -> None:
    assert len(plots) == 3
    for svg in plots.values():
        root = ElementTree.fromstring(svg.replace("xlink:href", "href"))
        assert root.tag.endswith("svg")
        texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
        assert "1. greedy" in texts or "2. greedy" in texts
        assert any(text is not None and text.endswith("…") for text in texts)
        # The colours are the page's own.
        assert not re.search(r"#0[1-6]0[1-6]0[1-6]", svg)
        assert "var(--ink)" in svg
    assert draw(result) == plots


@pytest.mark.parametrize("match", [False, True])
def test_plots_of_other_tournaments(match: bool) -> None:
    """Two players, whole matches, a single deal: there is something to draw each time."""
    result = play_tournament(["greedy", "greedy:knock=10"], deals=1, match=match, resamples=2)
    for svg in draw(result).values():
        ElementTree.fromstring(svg.replace("xlink:href", "href"))
        assert "nan" not in svg.lower()


def test_markdown_tables_keep_their_columns(result: TournamentResult) -> None:
    lines = markdown(result, COMMAND).splitlines()
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) == sum(2 + len(sheet.rows) for sheet in sheets(result))
    columns = [re.sub(r"\\.", "", line).count("|") - 1 for line in tables]
    expected = [len(sheet.head) for sheet in sheets(result) for _ in range(2 + len(sheet.rows))]
    assert columns == expected
    assert "<script>" not in "\n".join(lines)


def test_files(result: TournamentResult, tmp_path: Path) -> None:
    assert write_report(result, tmp_path / "new", COMMAND)
    told = json.loads((tmp_path / "new" / "result.json").read_text())
    assert told.pop("command") == COMMAND
    assert told == json.loads(json.dumps(result.to_json()))
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"result.json", "report.html", "report.md"}


def test_without_matplotlib(result: TournamentResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr(page, "draw", missing)
    assert not write_report(result, tmp_path, COMMAND)
    read = Page((tmp_path / "report.html").read_text())
    assert "svg" not in {tag for tag, _ in read.tags}
    assert page.NO_PLOTS in read.texts
