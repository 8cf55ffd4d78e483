"""The pages in docs/ are what the code prints."""

import inspect
import re
from pathlib import Path

import pytest

import agents
from agents import base
from experiments import docs
from gin_env import PRESETS, actions, tables, view
from gin_env.rummy40 import Rummy40Rules
from gin_env.rummy40 import actions as rummy40_actions
from gin_env.rummy40 import tables as rummy40_tables
from gin_env.rummy40 import view as rummy40_view

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
AGAIN = "docs/ is not what the code prints; run: ginrummy docs --out docs"


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return docs.pages()


def test_the_pages_are_current(tmp_path: Path) -> None:
    for printed in docs.write_docs(tmp_path):
        path = DOCS / printed.relative_to(tmp_path)
        assert path.is_file(), f"{path.name} is missing: {AGAIN}"
        assert path.read_text(encoding="utf-8") == printed.read_text(encoding="utf-8"), f"{path.name}: {AGAIN}"


def test_no_page_is_left_over(pages: dict[str, str]) -> None:
    found = {
        str(path.relative_to(DOCS))
        for path in DOCS.rglob("*.md")
        if path.read_text(encoding="utf-8").startswith(docs.MARK)
    }
    assert found == set(pages), AGAIN


def test_writing(tmp_path: Path, pages: dict[str, str]) -> None:
    (tmp_path / "mine.md").write_text("mine")
    (tmp_path / "index.md").write_text("old")
    written = docs.write_docs(tmp_path)
    assert {str(path.relative_to(tmp_path)): path.read_text(encoding="utf-8") for path in written} == pages
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {*written, tmp_path / "mine.md"}


def test_links(pages: dict[str, str]) -> None:
    linked = set()
    for name, text in pages.items():
        for target in re.findall(r"\]\(([^)#]+)", text):
            if "://" not in target:
                path = (DOCS / name).parent / target
                assert path.resolve().is_file(), f"{name} links to {target}"
                linked.add(str(path.resolve().relative_to(DOCS)))
    assert {name for name in linked if not name.startswith("guide/")} == set(pages) - {"index.md"}


def test_tables_are_whole(pages: dict[str, str]) -> None:
    """Every row of a table has as many cells as its head."""
    for name, text in pages.items():
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
            assert len(cells) == 1, (name, table)


# ---------------------------------------------------------------------------------------------------------- content


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_actions(pages: dict[str, str]) -> None:
    text = pages["actions.md"]
    for first, last in (
        (actions.DISCARD, actions.KNOCK - 1),
        (actions.KNOCK, actions.BIG_GIN - 1),
        (actions.MELD, actions.LAYOFF - 1),
        (actions.LAYOFF, actions.NUM_MANUAL_ACTIONS - 1),
    ):
        assert f"({first} to {last})" in text
    assert f"| `{actions.BIG_GIN}` | big gin" in text
    assert f"Discrete({actions.NUM_ACTIONS})" in text
    assert f"Discrete({actions.NUM_MANUAL_ACTIONS})" in text
    # The groups of melds are all of them, without a gap.
    spans = [re.findall(r"\d+", row[2]) for row in rows(text) if " of " in row[0] and "(" in row[0]]
    assert [int(span[0]) for span in spans] == [108, 173, 217, 257]
    assert [int(span[1]) + 1 for span in spans] == [173, 217, 257, actions.LAYOFF]
    for number, name in re.findall(r"^\| (\d+) \| `(.+)` \|$", text, re.MULTILINE):
        assert actions.parse_action(name) == int(number)


def test_observations(pages: dict[str, str]) -> None:
    text = pages["observations.md"]
    for name, *_, meaning in view.VIEW_FIELDS:
        assert f"| `{name}` |" in text
        assert meaning in text
    # The numbers of the vector, from the first to the last.
    at = 0
    for row in rows(text):
        span = re.fullmatch(r"(\d+)(?: to (\d+))?", row[0])
        if span:
            assert int(span.group(1)) == at
            at = int(span.group(2) or at) + 1
    assert at == view.MANUAL_OBSERVATION_SIZE
    for number, phase in enumerate(tables.PHASES):
        assert f"| {phase} | {number} | `" in text
    for number, ending in enumerate(tables.ENDINGS):
        assert f"| {ending} | {number} | `" in text
    assert all(row[-1] for row in rows(text))
    assert "(N, 156) float32" in text


def test_tables(pages: dict[str, str]) -> None:
    for name, *_, meaning in tables.TABLE_FIELDS:
        assert f"| `{name}` |" in pages["tables.md"]
        assert meaning in pages["tables.md"]


def test_rummy40(pages: dict[str, str]) -> None:
    text = pages["rummy40.md"]
    for fields in (rummy40_view.VIEW_FIELDS, rummy40_tables.TABLE_FIELDS):
        for name, *_, meaning in fields:
            assert f"| `{name}` |" in text
            assert meaning in text
    for field in docs.get_type_hints(Rummy40Rules):
        assert f"| `{field}` |" in text
    assert "| `adding` | `own`, `any`, `none` | `none` |" in text
    spans = [row for row in rows(text) if re.fullmatch(r"\d+( to \d+)?", row[0])]
    # Actions, then the numbers of the vector, each without a gap.
    for size in (rummy40_actions.NUM_TWO_PACK_ACTIONS, rummy40_view.OBSERVATION_SIZE[2]):
        at = 0
        while at < size:
            numbers = [int(number) for number in re.findall(r"\d+", spans.pop(0)[0])]
            assert numbers[0] == at
            at = numbers[-1] + 1
        assert at == size
    assert not spans
    melds = [row for row in rows(text) if row[0].startswith(("sets of", "runs of"))]
    assert [int(row[1].split()[0]) for row in melds] == [0, *(int(row[1].split()[-1]) + 1 for row in melds[:-1])]
    assert int(melds[-1][1].split()[-1]) == rummy40_actions.NUM_MELDS - 1


def test_rules(pages: dict[str, str]) -> None:
    text = pages["rules/index.md"]
    told = [row[0] for row in rows(text)]
    for field in docs.get_type_hints(docs.Rules):
        assert told.count(f"`{field}`") == (1 if field == "name" else 2), field
    assert "| `target` | whole number or `none` | 1 to 1,000,000 | `100` |" in text
    assert "| `big_gin_bonus` | 31 | **none** | **none** | 31 | **none** | **none** |" in text
    assert docs.HOUSE.read_text(encoding="utf-8").strip() in text


@pytest.mark.parametrize("name", PRESETS)
def test_points_of_the_examples(name: str, pages: dict[str, str]) -> None:
    """Reckoned by hand."""
    text = pages[f"rules/{name}.md"]
    bonus = PRESETS[name].undercut_bonus
    assert "**a knock: 23 points for the knocker** (knock)" in text  # 33 - 10
    assert f"**an undercut: {5 + bonus} points for the defender** (undercut)" in text  # 10 - 5
    equal = (
        "nobody scores** (tie)" if PRESETS[name].tie == "nothing" else f"{bonus} points for the defender** (undercut)"
    )
    assert f"**equal deadwood: {equal}" in text
    assert "**gin: 45 points for the knocker** (gin)" in text  # 20 + 25
    big = "**big gin: 45 points for the knocker** (big-gin)"  # 14 + 31
    assert (big in text) == (PRESETS[name].big_gin_bonus is not None)


def test_points_under_oklahoma(pages: dict[str, str]) -> None:
    options = re.split(r"^`(plus20:oklahoma.*)`:$", pages["rules/plus20.md"], flags=re.MULTILINE)
    assert len(options) == 5
    for text, gin in ((options[2], 2 * 20 + 25), (options[4], 2 * (20 + 25))):
        assert "**a knock, upcard 7D: 17 points for the knocker**" in text  # 23 - 6
        assert "**a knock, upcard 7S: 34 points for the knocker**" in text
        assert f"**gin, upcard AS: {gin} points for the knocker**" in text
    assert "**a knock, upcard 7S: 17 points for the knocker**" in pages["rules/luciano.md"]


def test_players_of_rummy40(pages: dict[str, str]) -> None:
    text = pages["players.md"]
    sections = dict(re.findall(r"^### (\S+) of Rummy40\n(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL))
    assert sorted(sections) == agents.names("rummy40")
    for name, section in sections.items():
        assert f"- [{name}](#{name}-of-rummy40): " in text
        doc = inspect.getdoc(base.factory(name, "rummy40")) or ""
        rule = re.split(r"\n(?:Args|Attributes):", doc)[0]
        assert " ".join(rule.replace("``", "`").split()) in " ".join(section.split())
    assert [row[:2] for row in rows(sections["patient"])[-2:]] == [["`near`", "`5`"], ["`turns`", "`3`"]]


def test_players(pages: dict[str, str]) -> None:
    """Every player, its whole rule and all its options."""
    text = pages["players.md"]
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert sorted(sections) == agents.names()
    for name, section in sections.items():
        assert f"- [{name}](#{name}): " in text
        made = base.factory(name)
        doc = inspect.getdoc(made) or ""
        rule, arguments = re.split(r"\n(?:Args|Attributes):", doc)[0], doc.partition("\nArgs:")[2]
        assert " ".join(rule.replace("``", "`").split()) in " ".join(section.split())
        options = [row for row in rows(section) if row[0].startswith("`")]
        assert [row[0].strip("`") for row in options] == re.findall(r"^ {4}(\w+): ", arguments, re.MULTILINE)
        defaults = inspect.signature(made).parameters
        assert all(row[1] == f"`{defaults[row[0].strip('`')].default}`" for row in options)
