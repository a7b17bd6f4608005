"""Answers the requests of the viewer from a history, and keeps what is expensive to read in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError, ProctorError, RunNotFound, UsageError, suggest_name
from proctor.history.trends import trend
from proctor.ports import History
from proctor.records import codec
from proctor.records.grid import Grid
from proctor.records.sample import Sample
from proctor.reports.pages import comparisons, runs, samples
from proctor.reports.pages.slow import SLOW_PAGES, make_slow_page, read_metadata
from proctor.version import VERSION
from proctor.web.labelling import LabelPages
from proctor.wiring.compare_runs import (
    AT,
    OpenedRun,
    check_pair,
    compare_sides,
    list_siblings,
    open_reports,
    split_reference,
)
from proctor.wiring.open_history import current_status, load_report
from proctor.wiring.registry import Registry

MAX_REPORTS = 8
# The metadata of so many samples stays in memory, because the slices by each key need it.
MAX_KEPT_SAMPLES = 200_000
# The columns of these stay in memory, some 90 MB for 100,000 samples in three configurations.
MAX_SLOW_REPORTS = 2
MAX_RUNS = 2_000
MAX_ROWS = 500
LIVE = ("running", "submitted")
# The status and the JSON of an answer.
Answer = tuple[int, bytes]
# Answers a page elsewhere.
Compute = Callable[[str, Mapping[str, str]], Answer]
# Statistics of smaller runs take less time than a second process takes to start.
LARGE_RUN = 20_000


class Pages:
    """The pages of the viewer. Quick pages are answered one at a time, because their caches are shared.

    Pages that read all samples or compute statistics have a lock of their own, so that the others do not wait for them.
    """

    def __init__(self, history: History, annotator: str = "", compute: Compute | None = None) -> None:
        self._history, self._compute = history, compute
        self._labels = LabelPages(history, annotator)
        self._lock = threading.Lock()
        self._slow_lock = threading.Lock()
        self._reports: OrderedDict[str, _OpenedReport] = OrderedDict()
        self._comparisons: OrderedDict[tuple[str, ...], dict[str, Any]] = OrderedDict()
        self._slow_reports: OrderedDict[str, EvalReport] = OrderedDict()

    def answer(self, path: str, query: Mapping[str, str]) -> Any:
        """Return the page at a path; raise `RunNotFound` or `UsageError` if there is none."""
        match path.removeprefix("/").split("/"):
            case ["runs", run_id, name] if name in SLOW_PAGES:
                with self._lock:
                    opened = self._open(run_id)
                with self._slow_lock:
                    return opened.answer_slowly(name, query, self._history, self._share)
            case ["compare"]:
                with self._slow_lock:
                    return self._compare(query)
            case ["runs", run_id, "cards"]:
                with self._slow_lock:
                    return self._labels.list_cards(run_id)
            case ["runs", run_id, "label"]:
                return self._labels.list_choices(run_id)
            case ["runs", run_id, "label", "next"]:
                return self._labels.show_next(run_id, query)
            case parts:
                with self._lock:
                    return self._answer(parts, query)

    def answer_json(self, path: str, query: Mapping[str, str]) -> Answer:
        """Return the status and the JSON of a page; another process may compute what takes seconds."""
        compute = self._compute
        if compute is not None:
            # An error is an answer of the page itself.
            with suppress(ProctorError):
                if self._is_slow(path, query):
                    return compute(path, query)
        return encode_answer(lambda: self.answer(path, query))

    def _is_slow(self, path: str, query: Mapping[str, str]) -> bool:
        """True if a page reads all results of a large run."""
        match path.removeprefix("/").split("/"):
            case ["runs", run_id, name] if name in SLOW_PAGES:
                names = [run_id]
            case ["compare"]:
                names = [query.get(side, "").rpartition(AT)[0] or query.get(side, "") for side in "ab"]
            case _:
                return False
        return any((self._history.find(name).total or 0) > LARGE_RUN for name in names)

    def change_json(self, path: str, body: bytes) -> Answer:
        """Store a label, the only change that the viewer makes, and return the output to label next."""
        return encode_answer(lambda: self._change(path, body))

    def _change(self, path: str, body: bytes) -> Any:
        match path.removeprefix("/").split("/"):
            case ["runs", run_id, "labels"]:
                return self._labels.change(run_id, body)
        raise UsageError(f"unknown page {path!r}")

    def _answer(self, parts: list[str], query: Mapping[str, str]) -> Any:
        match parts:
            case ["home"]:
                return {"home": "server", "version": VERSION, "history": self._history.describe().where}
            case ["runs"]:
                return self._list_runs()
            case ["runs", run_id]:
                opened = self._open(run_id)
                names = sorted(self._baseline_names().get(opened.report.run_id, []))
                return opened.page | {"summary": opened.page["summary"] | {"baselines": names}}
            case ["runs", run_id, "samples", *rest]:
                return self._open(run_id).sample("/".join(rest))
            case ["runs", run_id, "sample"]:
                # Browsers change paths with an id such as "..".
                return self._open(run_id).sample(query.get("id", ""))
            case ["runs", run_id, name]:
                return self._open(run_id).column(name, query)
            case ["trends"]:
                return self._trend(query)
            case ["find"]:
                return self._find_side(_require(query, "reference"))
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
            results = self._history.results(run.run_id, metadata)
            counts = results.counts()
            table = runs.configuration_tables(run, overall, tables)
            rates = runs.estimate_so_far(run, results, counts) if run.status in LIVE else None
            listed.append(runs.summarize_run(run, table, counts, names.get(run.run_id, ()), rates))
        return {"runs": listed}

    def _find_side(self, reference: str) -> dict[str, Any]:
        """Return the run and the configurations that a typed RUN or RUN@CONFIGURATION means; none if it is unknown."""
        try:
            run_name, selected = split_reference(reference, self._history)
            run = self._history.find(run_name)
        except RunNotFound:
            return {"run_id": None, "configurations": []}
        names = [each.name for each in run.configurations if selected in (None, each.name)]
        return {"run_id": run.run_id, "configurations": names}

    def _baseline_names(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name, run in self._history.baselines().items():
            names.setdefault(run.run_id, []).append(name)
        return names

    def _open(self, run_id: str) -> _OpenedReport:
        opened = self._reports.get(run_id)
        if opened is None or opened.is_live:
            opened = _OpenedReport(load_report(self._history, run_id))
            _keep_last(self._reports, run_id, opened)
        else:
            # A run may be deleted while its pages are kept.
            self._history.find(run_id)
        self._reports.move_to_end(run_id)
        return opened

    def _compare(self, query: Mapping[str, str]) -> dict[str, Any]:
        first, second = open_reports(_require(query, "a"), _require(query, "b"), self._history)
        by = query.get("by") or ""
        for side in (first, second):
            if len(side.configurations) != 1:
                side.report.side()  # Raises an error that lists the configurations.
        check_pair(first, second)
        a, b = (comparisons.ComparedSide(s.report, s.configurations[0]) for s in (first, second))
        key = (a.report.run_id, a.configuration, b.report.run_id, b.configuration, by)
        if key in self._comparisons:
            return self._comparisons[key]
        first, second = (side._replace(report=self._share(side.report)) for side in (first, second))
        labels = _name_sides(first, second)
        numbers = first.side(a.configuration, labels[0]), second.side(b.configuration, labels[1])
        [comparison] = compare_sides([numbers], siblings=list_siblings(first, second, [numbers]), by=by or None)
        page = comparisons.comparison_page(comparison, a, b, numbers)
        if all(side.report.metadata and side.report.metadata.status not in LIVE for side in (a, b)):
            _keep_last(self._comparisons, key, page)
        return page

    def _share(self, report: EvalReport) -> EvalReport:
        """Return the same report as before if the run has not changed, so that slow pages read its columns once."""
        known = self._slow_reports.get(report.run_id)
        if known is not None and known.metadata == report.metadata and known.metrics == report.metrics:
            self._slow_reports.move_to_end(report.run_id)
            return known
        if report.metadata is not None and report.metadata.status not in LIVE:
            _keep_last(self._slow_reports, report.run_id, report, MAX_SLOW_REPORTS)
        return report

    def _trend(self, query: Mapping[str, str]) -> dict[str, Any]:
        metric, name = query.get("metric", "pass_rate"), query.get("name") or None
        stored = self._history.runs(limit=MAX_RUNS, name=name)
        tables = self._history.stored_metrics([run.run_id for run in stored])
        names = dict.fromkeys(each for overall, _ in tables.values() for each in overall)
        points = trend(self._history, metric, name=name)
        page = runs.trend_page(points, stored, list(names), with_rescored="rescored" in query)
        return page | {"names": list(dict.fromkeys(run.name for run in self._history.runs(limit=MAX_RUNS)))}


class _OpenedReport:
    """A report with its grid and pages, which are made on demand and kept."""

    def __init__(self, report: EvalReport) -> None:
        self.report = report
        self._lock = threading.Lock()
        self._grid: Grid | None = None
        self._rows: dict[str, int] | None = None
        self._page: dict[str, Any] | None = None
        self._overview: dict[str, Any] | None = None
        self._slow_pages: dict[tuple[str, str], Any] = {}
        self._samples: list[Sample[Any, Any]] | None = None

    @property
    def is_live(self) -> bool:
        """True if more results may come."""
        return self.report.metadata is not None and self.report.metadata.status in LIVE

    @property
    def grid(self) -> Grid:
        with self._lock:
            if self._grid is None:
                self._grid = self.report.results.grid()
            return self._grid

    @property
    def rows(self) -> dict[str, int]:
        if self._rows is None:
            self._rows = {sample_id: row for row, sample_id in enumerate(self.grid.sample_ids)}
        return self._rows

    @property
    def page(self) -> dict[str, Any]:
        if self._page is None:
            self._page = runs.run_page(self.report)
        return self._page

    @property
    def overview(self) -> dict[str, Any]:
        if self._overview is None:
            self._overview = runs.overview_page(self.report, self.grid)
        return self._overview

    def column(self, name: str, query: Mapping[str, str]) -> Any:
        """Return a page below the run."""
        pages: dict[str, Callable[[Mapping[str, str]], Any]] = {
            "grid": lambda _: samples.grid_page(self.grid),
            "overview": lambda _: self.overview,
            "scores": self._scores,
            "numbers": self._numbers,
            "rows": self._row_pages,
            "search": self._search,
        }
        if name not in pages:
            raise UsageError(f"unknown page {name!r}", fix=suggest_name(name, [*pages, *SLOW_PAGES]))
        return pages[name](query)

    def answer_slowly(
        self, name: str, query: Mapping[str, str], history: History, share: Callable[[EvalReport], EvalReport]
    ) -> Any:
        """Return a page that takes seconds for a large run; it is made from results that no other thread reads.

        `share` replaces a report by the one that earlier slow pages have read.
        """
        detail = ""
        if name == "slices":
            # Every tag is a column of its own in the grid.
            detail = "tags" if (detail := _require(query, "by")).startswith("tags.") else detail
        elif name == "rubrics":
            detail = query.get("configuration") or self.grid.configurations[0]
        if (name, detail) not in self._slow_pages:
            report = share(load_report(history, self.report.run_id))
            known = self._read_samples(report) if name in ("metadata", "slices") else None
            self._slow_pages[name, detail] = make_slow_page(report, self.grid, name, detail, known)
        page = self._slow_pages[name, detail]
        return _select_metadata(page, query.get("key")) if name == "metadata" else page

    def _read_samples(self, report: EvalReport) -> list[Sample[Any, Any]]:
        known = self._samples
        if known is None:
            known = read_metadata(report, self.grid)
            self._samples = known if len(known) <= MAX_KEPT_SAMPLES else None
        return known

    def _scores(self, query: Mapping[str, str]) -> dict[str, Any]:
        name = _require(query, "evaluator")
        if name not in self.grid.scores:
            raise UsageError(f"unknown evaluator {name!r}", fix=suggest_name(name, self.grid.scores))
        return {"scores": samples.encode_numbers(self.grid.scores[name])}

    def _numbers(self, query: Mapping[str, str]) -> dict[str, Any]:
        name, columns = _require(query, "column"), samples.number_columns(self.grid)
        if name not in columns:
            raise UsageError(f"unknown column {name!r}", fix=suggest_name(name, columns))
        return {"numbers": samples.encode_numbers(columns[name])}

    def _row_pages(self, query: Mapping[str, str]) -> dict[str, Any]:
        wanted = [_parse_row(text) for text in query.get("at", "").split(",") if text][:MAX_ROWS]
        return {"rows": samples.row_pages(self.report.results, self.grid, wanted)}

    def _search(self, query: Mapping[str, str]) -> dict[str, Any]:
        error, after = query.get("error", ""), _parse_row(query.get("cursor") or "0")
        text = query.get("text", "") if error else _require(query, "text")
        return samples.search_page(self.report.results, self.rows, text, after, error=error)

    def sample(self, sample_id: str) -> dict[str, Any]:
        """Return everything about one sample."""
        row = self.rows.get(sample_id)
        if row is None:
            raise RunNotFound(f"run {self.report.run_id} has no sample {sample_id!r}")
        return samples.sample_page(self.report.results.read(self.grid.row_places(row)), row)


def encode_answer(answer: Callable[[], Any]) -> Answer:
    """Return the status and the JSON of an answer, or of the error that it raised."""
    try:
        return 200, codec.encode_any_text(answer())
    except ProctorError as error:
        status = 404 if isinstance(error, RunNotFound) else 400 if isinstance(error, UsageError) else 500
        return status, codec.encode_any_text({"error": error.what, "fix": error.fix})


def _name_sides(first: OpenedRun, second: OpenedRun) -> tuple[str, str]:
    """Name two sides by run and configuration, with the end of the run ids, or the whole ids, if the names are equal.

    The id is last, because a narrow column cuts a name in its middle.
    """
    a, b = (_name_side(side, is_same_run=first.report.run_id == second.report.run_id) for side in (first, second))
    ids = [side.report.run_id for side in (first, second)]
    if a != b or ids[0] == ids[1]:
        return a, b
    ends = [run_id.rpartition("-")[2] for run_id in ids]
    id_a, id_b = ids if ends[0] == ends[1] else ends
    return f"{a} {id_a}", f"{b} {id_b}"


def _name_side(side: OpenedRun, *, is_same_run: bool) -> str:
    [configuration] = side.configurations
    name = side.report.metadata.name if side.report.metadata else side.label
    has_several = len(side.report.configurations) > 1
    return configuration if is_same_run else f"{name}{AT}{configuration}" if has_several else name


def _select_metadata(page: dict[str, Any], key: str | None) -> Any:
    columns = page["columns"]
    if key is None:
        return {"keys": page["keys"]}
    if key not in columns:
        raise UsageError(f"unknown metadata key {key!r}", fix=suggest_name(key, columns))
    return columns[key]


def _keep_last(cache: OrderedDict[Any, Any], key: Any, value: Any, limit: int = MAX_REPORTS) -> None:
    cache[key] = value
    if len(cache) > limit:
        cache.popitem(last=False)


def _require(query: Mapping[str, str], name: str) -> str:
    value = query.get(name)
    if not value:
        raise ConfigError(f"the query has no {name!r}", fix=f"add {name}=…")
    return value


def _parse_row(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise ConfigError(f"a row must be a whole number, got {text!r}")
    return int(text)
