"""Every block of Python in the guide and the README runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_code_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The blocks of a page run one after another, in one namespace, as a reader would try them."""
    text = path.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    ran = 0
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        block = match.group(1)
        if "bots/quick" in block:
            continue  # what `make bot` makes
        line = text[: match.start()].count("\n") + 1
        # Empty lines, so that an error names the line of the page.
        exec(compile("\n" * line + block, str(path), "exec"), names)
        ran += 1
    assert ran


def test_pages_are_in_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    found = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r"[\w/-]+\.md", nav)) == found


def test_links() -> None:
    for path in PAGES[1:]:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).is_file(), f"{path.name} links to {target}"
