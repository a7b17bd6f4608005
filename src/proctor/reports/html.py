"""Write a report as one HTML file that opens from disk: the viewer's client with its data inside."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib import resources
from itertools import permutations
from typing import Any

from proctor.comparison.compare import compare_all
from proctor.comparison.report import EvalReport
from proctor.errors import ProctorError, UsageError
from proctor.records import codec
from proctor.records.grid import Grid
from proctor.records.rubric import read_run_columns
from proctor.reports import files
from proctor.reports.pages import comparisons, runs, samples
from proctor.reports.pages.slow import make_slow_page, read_metadata
from proctor.version import VERSION

DATA_TYPE = "application/vnd.proctor+deflate"
ROWS_PER_BLOCK = 100
# All pairs of more configurations would be too many comparisons.
MAX_COMPARED = 4
# Metadata keys with more values make no readable slices; a report has the slices of the first keys.
MAX_SLICES, MAX_SLICED_KEYS = 40, 20
ENTRY_MODULE = "app.js"
# Characters of base 85 that mean something in HTML, and others for them.
MARKUP_FREE = str.maketrans("<&", ".,")

_IMPORT = re.compile(r'^import\s*\{(?P<names>[^}]*)\}\s*from\s*"\./(?P<module>[\w-]+\.js)";[^\S\n]*$', re.MULTILINE)
_EXPORT = re.compile(
    r"^export\s+(?P<declaration>(?:async\s+)?function\*?|class|const|let)\s+(?P<name>[\w$]+)", re.MULTILINE
)
_OTHER_MODULE_SYNTAX = re.compile(r"^\s*(?:import|export)\b.*", re.MULTILINE)


class HTMLReporter:
    """Write a report as one HTML file, with all samples, that needs no server and no network.

    >>> HTMLReporter().generate(EvalReport([])).startswith("<!doctype html>")
    True
    """

    extension = "html"
    signature = r"<!doctype html>\s*<html[^>]* data-proctor-report"

    def __init__(self, cards: Sequence[Mapping[str, Any]] | None = None) -> None:
        """`cards` are the cards of the run's judges; without them, the report says where to find them."""
        self._cards = cards

    def generate(self, report: EvalReport) -> str:
        """Return the report as text."""
        return b"".join(self._chunks(report)).decode()

    def save(self, report: EvalReport, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, one block of samples at a time."""
        files.write_file(path, self._chunks(report))

    def _chunks(self, report: EvalReport) -> Iterator[bytes]:
        style, script = read_client_file("style.css"), bundle_modules()
        name = report.metadata.name if report.metadata is not None else "report"
        policy = (
            f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )
        yield (
            '<!doctype html>\n<html lang="en" data-proctor-report>\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="referrer" content="no-referrer">\n'
            f"<title>{escape(name)} – Proctor</title>\n<style>{style}</style>\n</head>\n<body>\n"
        ).encode(errors="backslashreplace")
        for path, page in self._list_pages(report):
            data = encode_block(codec.encode_any_text(page))
            script_block = f'<script type="{DATA_TYPE}" data-path="{escape(path)}">{data}</script>\n'
            yield script_block.encode(errors="backslashreplace")
        yield f'<script type="module">{script}</script>\n</body>\n</html>\n'.encode()

    def _list_pages(self, report: EvalReport) -> Iterator[tuple[str, Any]]:
        yield from list_pages(report)
        if self._cards is not None:
            yield f"runs/{report.run_id}/cards", {"cards": self._cards}


def encode_block(data: bytes) -> str:
    """Compress data, as text in base 85, which is a sixteenth shorter than base 64, and without `<` and `&`."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS, 9)
    return base64.b85encode(compressor.compress(data) + compressor.flush()).decode().translate(MARKUP_FREE)


def list_pages(report: EvalReport) -> Iterator[tuple[str, Any]]:
    """Yield the pages of a report with their paths."""
    run = report.metadata
    yield "home", {"home": "file", "version": VERSION, "title": run.name if run else ""}
    if run is None:
        yield "runs", {"runs": []}
        return
    grid = report.results.grid()
    page = runs.run_page(report)
    base = f"runs/{run.run_id}"
    yield "runs", {"runs": [page["summary"]]}
    yield base, page
    yield f"{base}/overview", runs.overview_page(report, grid)
    yield f"{base}/grid", samples.grid_page(grid)
    yield f"{base}/scores", {"scores": {name: samples.encode_numbers(column) for name, column in grid.scores.items()}}
    yield f"{base}/numbers", {name: samples.encode_numbers(each) for name, each in samples.number_columns(grid).items()}
    yield from _list_slow_pages(report, grid, base)
    for first in range(0, len(grid.sample_ids), ROWS_PER_BLOCK):
        yield f"{base}/details/{first // ROWS_PER_BLOCK}", _detail_pages(report, grid, first)
    yield "compare", _comparison_pages(report)


def _list_slow_pages(report: EvalReport, grid: Grid, base: str) -> Iterator[tuple[str, Any]]:
    known = read_metadata(report, grid)
    metadata = make_slow_page(report, grid, "metadata", samples=known)
    yield f"{base}/metadata", metadata
    if not report.total:
        return
    yield f"{base}/comparisons", make_slow_page(report, grid, "comparisons")
    yield f"{base}/judges", make_slow_page(report, grid, "judges")
    keys = dict.fromkeys(
        "tags" if (key := entry["key"]).startswith("tags.") else key
        for entry in metadata["keys"]
        if entry["key"].startswith("tags.") or 2 <= entry["values"] <= MAX_SLICES
    )
    for key in [*keys][:MAX_SLICED_KEYS]:
        # Too many different tags, or a key that contains dots, have no slices.
        with suppress(UsageError):
            yield f"{base}/slices?by={key}", make_slow_page(report, grid, "slices", key, known)
    if read_run_columns(report.metadata).columns:
        for name in report.configurations:
            yield f"{base}/rubrics?configuration={name}", make_slow_page(report, grid, "rubrics", name)


def _detail_pages(report: EvalReport, grid: Grid, first: int) -> list[dict[str, Any]]:
    rows = range(first, min(len(grid.sample_ids), first + ROWS_PER_BLOCK))
    return [samples.sample_page(report.results.read(grid.row_places(row)), row) for row in rows]


def _comparison_pages(report: EvalReport) -> list[dict[str, Any]]:
    names = report.configurations
    if not 2 <= len(names) <= MAX_COMPARED or not report.total:
        return []
    sides = {name: report.side(name) for name in names}
    pages = []
    for a, b in permutations(names, 2):
        new, reference = (comparisons.ComparedSide(report, name) for name in (a, b))
        numbers = sides[a], sides[b]
        siblings = [(sides[first], sides[second]) for first, second in report.pair_siblings(a, b)]
        comparison = compare_all([numbers], siblings=siblings)[0]
        pages.append(comparisons.comparison_page(comparison, new, reference, numbers))
    return pages


def read_client_file(name: str) -> str:
    """Return a file of the viewer's client."""
    return resources.files("proctor").joinpath("web", "client", name).read_text(encoding="utf-8")


def bundle_modules(entry: str = ENTRY_MODULE) -> str:
    """Return the client's modules as one script: each module becomes a function that returns its exports."""
    sources: dict[str, str] = {}
    _collect_modules(entry, sources, ())
    parts = ["const modules = {};"]
    for name, source in sources.items():
        parts.append(f'modules["{name}"] = (() => {{\n{_wrap_module(name, source)}\n}})();')
    return "\n".join(parts).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _collect_modules(name: str, sources: dict[str, str], importers: tuple[str, ...]) -> None:
    """Collect a module after the modules that it imports."""
    if name in importers:
        raise ProctorError(f"the client's modules import each other: {' → '.join((*importers, name))}")
    if name in sources:
        return
    source = read_client_file(name)
    for match in _IMPORT.finditer(source):
        _collect_modules(match["module"], sources, (*importers, name))
    sources[name] = source


def _wrap_module(name: str, source: str) -> str:
    exports = [match["name"] for match in _EXPORT.finditer(source)]

    def read_module(match: re.Match[str]) -> str:
        names = re.sub(r"\s+as\s+", ": ", match["names"])
        return f'const {{{names}}} = modules["{match["module"]}"];'

    plain = _EXPORT.sub(lambda match: f"{match['declaration']} {match['name']}", _IMPORT.sub(read_module, source))
    if other := _OTHER_MODULE_SYNTAX.search(plain):
        raise ProctorError(f"{name} cannot be bundled: {other[0].strip()!r}")
    return f"{plain}\nreturn {{ {', '.join(exports)} }};"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
