"""Build the documentation site into site/: python tools/site_builder.py

The pages stay where they are read on a repository host too, so their links are relative to the repository. This tool
copies them, points links to other pages of the site, and runs zensical, which refuses links that lead nowhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "zensical.toml"
# Pages in the root of the repository that belong to the site.
ROOT_PAGES = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "GLOSSARY", "SECURITY", "THIRD_PARTY")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".jsonl": "json", ".csv": "text"}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<image>!?)\[(?P<label>[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\((?P<place>[^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:|#")
# What a browser would load from a server when it opens a page.
LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+rel="?(?:stylesheet|preconnect)[^>]+href="https?:'
)


def find_pages() -> dict[str, str]:
    """Return the place of every page in the repository and on the site."""
    docs = {str(path.relative_to(ROOT)): str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md")}
    pages = {source: re.sub(r"README\.md$", "index.md", place) for source, place in docs.items()}
    pages |= {f"{name}.md": f"project/{name.lower()}.md" for name in ROOT_PAGES}
    pages["examples/README.md"] = "examples/index.md"
    pages |= {f"examples/{path.name}": f"examples/{path.stem}.md" for path in ROOT.glob("examples/*.py")}
    return pages | {
        f"examples/{path.parent.name}/README.md": f"examples/{path.parent.name}.md"
        for path in ROOT.glob("examples/*/README.md")
    }


def read_page(source: str) -> str:
    """Return the text of a page: a script is a page with its code, and the page of an example shows its files."""
    path = ROOT / source
    if path.suffix == ".py":
        return f"# {path.name}\n\n{_show(path, path.name)}"
    text = path.read_text(encoding="utf-8")
    if path.parent.parent == ROOT / "examples":
        files = sorted(file for file in path.parent.rglob("*.*") if file.suffix in LANGUAGES)
        text += "\n## Files\n\n" + "\n".join(_show(file, str(file.relative_to(path.parent))) for file in files)
    return text


def _show(path: Path, title: str) -> str:
    return f'```{LANGUAGES[path.suffix]} title="{title}"\n{path.read_text(encoding="utf-8").rstrip()}\n```\n'


def rewrite_links(text: str, source: str, pages: dict[str, str]) -> str:
    """Point the links of a page to pages of the site; a link to another file of the repository becomes its label."""

    def rewrite(match: re.Match[str]) -> str:
        place = match["place"]
        if ELSEWHERE.match(place):
            return match[0]
        path, _, anchor = place.partition("#")
        target = normpath(str(Path(source).parent / path))
        if match["image"]:
            moved = target.removeprefix("docs/")
        elif target in pages:
            moved = pages[target]
        else:
            return match["label"]
        moved = relpath(moved, str(Path(pages[source]).parent))
        return f"{match['image']}[{match['label']}]({moved}{'#' * bool(anchor)}{anchor})"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(rewrite, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(rewrite, text[end:])])


def copy_pages(folder: Path) -> None:
    """Write all pages and images of the site into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("images", "stylesheets"):
        shutil.copytree(ROOT / "docs" / name, folder / name)
    pages = find_pages()
    for source, place in pages.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rewrite_links(read_page(source), source, pages), encoding="utf-8")


def list_nav(entries: list[Any]) -> Iterator[str]:
    """List the pages of a navigation."""
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from list_nav(value) if isinstance(value, list) else [value]


def find_external_loads(site: Path) -> list[str]:
    """List the pages that would load something from another server."""
    return [str(page) for page in site.rglob("*.html") if LOADED.search(page.read_text(encoding="utf-8"))]


def build_site(folder: Path) -> tuple[int, str]:
    """Build the site in a folder; return the number of pages, 0 if something is wrong, and what zensical printed."""
    config = folder / CONFIG.name
    if config != CONFIG:
        shutil.copy(CONFIG, config)
    project = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]
    copy_pages(folder / project["docs_dir"])
    missing = [place for place in list_nav(project["nav"]) if not (folder / project["docs_dir"] / place).is_file()]
    site = folder / project["site_dir"]
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config)]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    output = process.stdout + process.stderr
    if process.returncode or missing or "warning" in output.lower():
        return 0, f"{output}\nin the navigation, but no pages: {missing}"
    if loading := find_external_loads(site):
        return 0, "\n".join(["these pages load from other servers:", *loading])
    return sum(1 for _ in site.rglob("*.html")), output


def main() -> int:
    """Build the site; the exit code is 1 if a link or the navigation is broken, or a page needs a network."""
    count, output = build_site(ROOT)
    print(f"wrote {count} pages; open site/index.html" if count else output)
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
