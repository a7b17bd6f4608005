"""The site builds without a network and without warnings, and its navigation leads to every page."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT

pytest.importorskip("zensical", reason="zensical builds the site; run `make test`")
# Their own index pages lead to these.
LISTED_ELSEWHERE = ("decisions/0", "contributing/add-", "examples/")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("site_builder")


def test_the_site_builds_without_warnings(site: Any, tmp_path: Path) -> None:
    """Every page is built, every link and heading exists, and nothing is loaded from other servers."""
    count, output = site.build_site(tmp_path)
    assert count > len(site.find_pages()) - 1, output


def test_the_navigation_leads_to_every_page(site: Any) -> None:
    """A new page needs an entry in zensical.toml."""
    listed = list(site.list_nav(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))
    assert len(set(listed)) == len(listed)
    missing = {*site.find_pages().values()} - {*listed}
    assert sorted(page for page in missing if not page.startswith(LISTED_ELSEWHERE)) == []


def test_links_lead_to_pages_of_the_site(site: Any) -> None:
    """Links between the root and docs/ are moved, links to source files become text, code is left alone."""
    pages = {"docs/a.md": "a.md", "docs/sub/b.md": "sub/b.md", "GLOSSARY.md": "project/glossary.md"}
    fence = "\n```\n[s](../../src/x.py)\n```\n"
    text = "[g](../../GLOSSARY.md#term) [a](../a.md) [s](../../src/x.py) [w](https://a.b) [h](#here)" + fence
    moved = "[g](../project/glossary.md#term) [a](../a.md) s [w](https://a.b) [h](#here)" + fence
    assert site.rewrite_links(text, "docs/sub/b.md", pages) == moved
    assert site.rewrite_links("![x](docs/images/x.png)", "GLOSSARY.md", pages) == "![x](../images/x.png)"


def test_a_page_that_loads_from_a_server_is_found(site: Any, tmp_path: Path) -> None:
    """Scripts and styles of other servers are found; plain links are not."""
    (tmp_path / "a.html").write_text('<script src="https://cdn.example/x.js"></script>')
    (tmp_path / "b.html").write_text('<a href="https://example.com">x</a><script src="x.js"></script>')
    assert [Path(name).name for name in site.find_external_loads(tmp_path)] == ["a.html"]
