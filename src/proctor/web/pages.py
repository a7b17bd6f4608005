"""Answers the requests of the viewer from a history, and keeps what is expensive to read in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from proctor.comparison.compare import compare_all
from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError, RunNotFound, UsageError, suggest_name
from proctor.history.trends import trend
from proctor.ports import History
from proctor.records.grid import Grid
from proctor.records.run import RunMetadata
from proctor.reports.pages import comparisons, judging, runs, samples
from proctor.version import VERSION
from proctor.wiring.compare_runs import build_sides, open_report
from proctor.wiring.open_history import current_status, load_report
from proctor.wiring.registry import Registry

MAX_REPORTS = 8
MAX_RUNS = 2_000
MAX_ROWS = 500


class Pages:
    """The pages of the viewer; one request at a time, because the caches are shared."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._lock = threading.Lock()
        self._reports: OrderedDict[str, _OpenedReport] = OrderedDict()

    def answer(self, path: str, query: Mapping[str, str]) -> Any:
        """Return the page at a path; raise `RunNotFound` or `UsageError` if there is none."""
        with self._lock:
            return self._answer(path.strip("/").split("/"), query)

    def _answer(self, parts: list[str], query: Mapping[str, str]) -> Any:
        match parts:
            case ["home"]:
                return {"home": "server", "version": VERSION, "history": self._history.describe().where}
            case ["runs"]:
                return self._list_runs()
            case ["runs", run_id]:
                opened = self._open(run_id)
                return runs.run_page(opened.report, self._baseline_names().get(opened.report.run_id, ()))
            case ["runs", run_id, "samples", *rest]:
                return self._open(run_id).sample("/".join(rest))
            case ["runs", run_id, name]:
                return self._open(run_id).column(name, query)
            case ["compare"]:
                return self._compare(query)
            case ["trends"]:
                return self._trend(query)
            case ["evaluators"]:
                return {"evaluators": Registry.standard().evaluators()}
        raise UsageError(f"unknown page {'/'.join(parts)!r}")

    def _list_runs(self) -> dict[str, Any]:
        stored = self._history.runs(limit=MAX_RUNS)
        metrics = self._history.stored_metrics([run.run_id for run in stored])
        names = self._baseline_names()
        listed = []
        for metadata in stored:
            run = current_status(self._history, metadata)
            overall, tables = metrics.get(run.run_id, ({}, {}))
            counts = self._history.results(run.run_id, metadata).counts()
            table = runs.configuration_tables(run, overall, tables)
            listed.append(runs.summarize_run(run, table, counts, names.get(run.run_id, ())))
        return {"runs": listed}

    def _baseline_names(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name, run in self._history.baselines().items():
            names.setdefault(run.run_id, []).append(name)
        return names

    def _open(self, run_id: str) -> _OpenedReport:
        opened = self._reports.get(run_id)
        if opened is None or opened.is_live:
            opened = _OpenedReport(load_report(self._history, run_id))
            self._reports[run_id] = opened
            if len(self._reports) > MAX_REPORTS:
                self._reports.popitem(last=False)
        self._reports.move_to_end(run_id)
        return opened

    def _compare(self, query: Mapping[str, str]) -> dict[str, Any]:
        first, second = (open_report(_require(query, side), self._history) for side in "ab")
        for side in (first, second):
            if len(side.configurations) != 1:
                side.report.side()  # Raises an error that lists the configurations.
        [comparison] = compare_all([build_sides(first, second)])
        a, b = (comparisons.ComparedSide(s.label, s.report, s.configurations[0]) for s in (first, second))
        return comparisons.comparison_page(comparison, a, b)

    def _trend(self, query: Mapping[str, str]) -> dict[str, Any]:
        metric, name = query.get("metric", "pass_rate"), query.get("name") or None
        stored = self._history.runs(limit=MAX_RUNS, name=name)
        tables = self._history.stored_metrics([run.run_id for run in stored])
        names = dict.fromkeys(each for overall, _ in tables.values() for each in overall)
        page = runs.trend_page(trend(self._history, metric, name=name), stored, list(names))
        return page | {"names": list(dict.fromkeys(run.name for run in self._history.runs(limit=MAX_RUNS)))}


class _OpenedReport:
    """A report with its grid and metadata columns, which are read on demand."""

    def __init__(self, report: EvalReport) -> None:
        self.report = report
        self._grid: Grid | None = None
        self._rows: dict[str, int] | None = None
        self._metadata: dict[str, dict[str, Any]] | None = None
        self._slice_pages: dict[str, dict[str, Any]] = {}

    @property
    def is_live(self) -> bool:
        """True if more results may come."""
        return self._run.status in ("running", "submitted")

    @property
    def _run(self) -> RunMetadata:
        assert self.report.metadata is not None
        return self.report.metadata

    @property
    def grid(self) -> Grid:
        if self._grid is None:
            self._grid = self.report.results.grid()
        return self._grid

    @property
    def rows(self) -> dict[str, int]:
        if self._rows is None:
            self._rows = {sample_id: row for row, sample_id in enumerate(self.grid.sample_ids)}
        return self._rows

    @property
    def metadata(self) -> dict[str, dict[str, Any]]:
        if self._metadata is None:
            results = self.report.results
            if len(self.grid.configurations) > 1:
                results = results.for_configuration(self.grid.configurations[0])
            self._metadata = samples.list_metadata(results.samples(), self.rows)
        return self._metadata

    def column(self, name: str, query: Mapping[str, str]) -> Any:
        """Return a page below the run."""
        pages: dict[str, Callable[[Mapping[str, str]], Any]] = {
            "grid": lambda _: samples.grid_page(self.grid),
            "scores": self._scores,
            "metadata": self._metadata_column,
            "rows": self._row_pages,
            "search": self._search,
            "slices": self._slices,
            "rubrics": self._rubrics,
            "judges": lambda _: judging.judges_page(self.report, self.grid),
        }
        if name not in pages:
            raise UsageError(f"unknown page {name!r}", fix=suggest_name(name, pages))
        return pages[name](query)

    def _scores(self, query: Mapping[str, str]) -> dict[str, Any]:
        name = _require(query, "evaluator")
        if name not in self.grid.scores:
            raise UsageError(f"unknown evaluator {name!r}", fix=suggest_name(name, self.grid.scores))
        return {"scores": samples.encode_numbers(self.grid.scores[name])}

    def _metadata_column(self, query: Mapping[str, str]) -> dict[str, Any]:
        key = query.get("key")
        if key is None:
            return {"keys": [{"key": name, "values": len(c["values"])} for name, c in self.metadata.items()]}
        if key not in self.metadata:
            raise UsageError(f"unknown metadata key {key!r}", fix=suggest_name(key, self.metadata))
        return self.metadata[key]

    def _row_pages(self, query: Mapping[str, str]) -> dict[str, Any]:
        wanted = [_parse_row(text) for text in query.get("at", "").split(",") if text][:MAX_ROWS]
        return {"rows": samples.row_pages(self.report.results, self.grid, wanted)}

    def _slices(self, query: Mapping[str, str]) -> dict[str, Any]:
        key = _require(query, "by")
        # Every tag is a column of its own in the grid.
        key = "tags" if key.startswith("tags.") else key
        if key not in self._slice_pages:
            self._slice_pages[key] = runs.slices_page(self.report, key)
        return self._slice_pages[key]

    def _rubrics(self, query: Mapping[str, str]) -> dict[str, Any]:
        names = self.grid.configurations
        name = query.get("configuration") or names[0]
        if name not in names:
            raise UsageError(f"unknown configuration {name!r}", fix=suggest_name(name, names))
        return judging.rubrics_page(self.report, self.grid, names.index(name))

    def _search(self, query: Mapping[str, str]) -> dict[str, Any]:
        text = _require(query, "text")
        return samples.search_page(self.report.results, self.rows, text, _parse_row(query.get("cursor") or "0"))

    def sample(self, sample_id: str) -> dict[str, Any]:
        """Return everything about one sample."""
        row = self.rows.get(sample_id)
        if row is None:
            raise RunNotFound(f"run {self.report.run_id} has no sample {sample_id!r}")
        return samples.sample_page(self.report.results.read(self.grid.row_places(row)), row)


def _require(query: Mapping[str, str], name: str) -> str:
    value = query.get(name)
    if not value:
        raise ConfigError(f"the query has no {name!r}", fix=f"add {name}=…")
    return value


def _parse_row(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"a row must be a whole number, got {text!r}")
    return int(text)
