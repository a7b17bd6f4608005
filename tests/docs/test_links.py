"""Links on the pages lead somewhere, and nothing is out of reach."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.blocks import FENCE, PAGES, ROOT
from tests.tables import each_row

LINK = re.compile(r"\[[^\]]*\]\((?P<place>[^)\s]+)\)")
ELSEWHERE = ("http://", "https://", "mailto:")


def prose(page: Path) -> str:
    """A page without its code, in which brackets mean something else."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """The places of a page that can be linked to: its headings, as GitHub writes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    broken = []
    for index in LINK.findall(prose(page)):
        if index.startswith(ELSEWHERE):
            continue
        path, _, anchor = index.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(index)
    return broken


@each_row("page", PAGES)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Files that a page links to are there, and so are the headings."""
    assert broken_links(page) == []


def test_every_page_is_on_the_map() -> None:
    """The map of the documentation leads to every page of it."""
    listed = {index.partition("#")[0] for index in LINK.findall(prose(ROOT / "docs" / "index.md"))}
    pages = {page.name for page in PAGES if page.parent == ROOT / "docs"} - {"index.md"}
    assert sorted(pages - listed) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """A missing file and a missing heading are both reported, and a good link is not."""
    page = tmp_path / "page.md"
    page.write_text("# One two!\n[a](#one-two) [b](#three) [c](no.md) [d](https://example.com)\n")
    assert broken_links(page) == ["#three", "no.md"]
