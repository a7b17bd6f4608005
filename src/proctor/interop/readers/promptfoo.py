"""promptfoo: results (JSON, JSON Lines, YAML, CSV), configs, and files of tests.

A row is one test in one column (prompt and provider): the test is the sample, the column the configuration, and repeats
are epochs. promptfoo gives one verdict per row, which the score `assertions` holds with the assertions as its parts; a
named metric has its own score with the verdict of its assertions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.errors import DatasetError
from proctor.interop.files import damaged_file, decode_json, read_json, read_json_lines, read_table, read_yaml
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.readers.promptfoo_assertions import name_checks
from proctor.interop.readers.promptfoo_config import describe_notes, make_sample, read_config, read_tests
from proctor.interop.run_builder import make_score, make_unique, make_usage
from proctor.records.codec import encode_canonical
from proctor.records.numbers import as_number, is_fraction, is_number, token_count
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Event, Message, ModelCall, Session, Usage
from proctor.records.trial import DEFAULT_CONFIGURATION, Configuration, EvalResult, Failure, Trial
from proctor.sessions.genai.message_parser import parse_role
from proctor.sessions.importers.imported_session import parse_time
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text

NAME = "promptfoo"
ASSERTIONS = "assertions"
_ERROR_REASON = 2
_LABEL_LENGTH = 60
# The counts in `stats`, and those in the metrics of each column.
_COLUMN_COUNTS = {"successes": "testPassCount", "failures": "testFailCount", "errors": "testErrorCount"}
_YAML = (".yaml", ".yml")
_LINES = (".jsonl", ".ndjson")
_CONFIG_KEYS = re.compile(rb"^(?:prompts|providers|targets|tests|scenarios|defaultTest)\s*:", re.MULTILINE)
_OUTPUT_CELL = re.compile(r"\[(PASS|FAIL|ERROR)\]\s*(?:\(([\d.]+)\))?\s*(.*)", re.DOTALL)
_OLD_REASON = re.compile(r"\s*\n+(?:Pass|Fail) Reason:\s*(.*)\Z", re.DOTALL)
_JSON_MARKS = (b'"gradingResult"', b'"promptIdx"', b'"successes"', b'"evalId"')
_CSV_ROUNDED = "the CSV file has scores with two decimals and no assertions, tokens or cost; export JSON for those"


def recognize(path: Path, head: bytes) -> bool:
    """Return True for results, a config, or a file of tests."""
    suffix, first = path.suffix.lower(), head.lstrip().partition(b"\n")[0]
    if suffix == ".csv":
        return b"__expected" in first or (b"Status" in first and b"Score" in first) or b"[PASS] (" in head
    if suffix in _YAML:
        is_result = head.startswith(b"evalId:") and b"results:" in head
        return is_result or len({match[0] for match in _CONFIG_KEYS.finditer(head)}) > 1
    if suffix in _LINES:
        return b'"promptIdx"' in first or (b'"vars"' in first and first.startswith(b"{"))
    if suffix == ".xml":
        return b"<promptfoo>" in head
    if not head.lstrip().startswith((b"{", b"[")):
        return False
    is_config = b'"prompts"' in head and (b'"providers"' in head or b'"tests"' in head)
    return is_config or (b'"results"' in head and any(mark in head for mark in _JSON_MARKS))


def read(path: Path) -> ImportedFile:
    """Read results as a run, or a config or file of tests as a dataset."""
    suffix = path.suffix.lower()
    if suffix == ".xml":
        fix = "export the results as JSON: promptfoo export eval ID --output results.json"
        raise damaged_file(f"{suffix} files of promptfoo are not read", path, fix)
    if suffix == ".csv":
        header, rows = read_table(path)
        if "Status" in header or any(_OUTPUT_CELL.match(cell) for row in rows[:1] for cell in row):
            return _read_results(path, {"results": list(_read_csv_rows(header, rows))}, (_CSV_ROUNDED,))
        return read_tests(path)
    if suffix in _LINES:
        rows = [value for _, value in read_json_lines(path)]
        is_result = any("promptIdx" in as_mapping(row) or "success" in as_mapping(row) for row in rows)
        return _read_results(path, {"results": rows}) if is_result else read_tests(path)
    document = read_yaml(path) if suffix in _YAML else read_json(path)
    fields = as_mapping(document)
    if "data" in fields and "results" in as_mapping(fields["data"]):
        fields = as_mapping(fields["data"])
    if "results" in fields:
        return _read_results(path, fields)
    return read_config(path, fields) if "prompts" in fields or "providers" in fields else read_tests(path)


class Column(NamedTuple):
    """A column of the results: a prompt and a provider."""

    provider: str
    prompt: str


class Table:
    """The rows of a file by test, column and repeat."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], config: Mapping[str, Any], repeats: bool) -> None:
        self.untranslated: list[tuple[str, str]] = []
        self._config = config
        self._repeats = repeats
        self._tests: dict[Any, Sample[Any, Any]] = {}
        self._counts: dict[Any, int] = {}
        self.columns: dict[Any, Column] = {}
        # Rows are in the order in which their calls ended.
        places = [(row, *self._place(row)) for row in sorted(rows, key=_sort_key)]
        self._tests = dict(zip(self._tests, name_checks(self._tests.values()), strict=True))
        self.rows = [(row, self._tests[key], column, epoch) for row, key, column, epoch in places]

    def _place(self, row: Mapping[str, Any]) -> tuple[Any, Any, int]:
        """Return the key of the test, the column and the epoch of a row."""
        test = {"vars": as_mapping(row.get("vars")), **as_mapping(row.get("testCase"))}
        prompt = as_mapping(row.get("prompt"))
        label = str(prompt.get("label") or prompt.get("display") or prompt.get("raw") or row.get("prompt") or "")
        provider = row.get("provider")
        fields = as_mapping(provider)
        name = str(fields.get("label") or fields.get("id") or (provider if isinstance(provider, str) else ""))
        index = row.get("promptIdx")
        column = index if isinstance(index, int) else (name, label)
        self.columns.setdefault(column, Column(name, label))
        content = encode_canonical([test.get("vars"), test.get("assert"), test.get("description")])
        number = row.get("testIdx")
        key: Any = content if self._repeats or not isinstance(number, int) else number
        if key not in self._tests:
            position = key + 1 if isinstance(key, int) else len(self._tests) + 1
            raw = prompt.get("raw")
            self._tests[key] = make_sample(f"test-{position}", test, self._config, self.untranslated, raw or "")
        epoch = self._counts.get((key, column), 0)
        self._counts[key, column] = epoch + 1
        return key, column, epoch

    @property
    def samples(self) -> tuple[Sample[Any, Any], ...]:
        return tuple(self._tests.values())

    def name_columns(self) -> dict[Any, str]:
        """Return a short distinct name for each column."""
        keys = sorted(self.columns) if all(isinstance(key, int) for key in self.columns) else list(self.columns)
        if len(keys) == 1:
            return {keys[0]: DEFAULT_CONFIGURATION}
        columns = [self.columns[key] for key in keys]
        if len({column.provider for column in columns}) == len(columns):
            names = [column.provider for column in columns]
        elif len({column.provider for column in columns}) == 1:
            names = [column.prompt for column in columns]
        else:
            names = [f"{column.provider} / {column.prompt}" for column in columns]
        short_names: dict[Any, str] = {}
        for key, name in zip(keys, names, strict=True):
            short = " ".join(name.split())[:_LABEL_LENGTH] or "column"
            is_repeated = short in short_names.values()
            short_names[key] = f"{short} {len(short_names) + 1}" if is_repeated else short
        return short_names


def _sort_key(row: Mapping[str, Any]) -> tuple[int, int]:
    test, column = row.get("testIdx"), row.get("promptIdx")
    return (test, column) if isinstance(test, int) and isinstance(column, int) else (0, 0)


def _read_results(path: Path, fields: Mapping[str, Any], warnings: tuple[str, ...] = ()) -> ImportedFile:
    results = fields["results"]
    inner = as_mapping(results)
    rows = [as_mapping(row) for row in as_list(results) or as_list(inner.get("results"))]
    if not rows:
        raise damaged_file("the file has no results", path)
    config = as_mapping(fields.get("config"))
    prompts = as_list(inner.get("prompts")) or as_list(fields.get("prompts"))
    table = Table(rows, config, _find_repeat(fields, config) > 1)
    names = table.name_columns()
    configurations = [
        Configuration(name, {"provider": table.columns[key].provider, "prompt": table.columns[key].prompt})
        for key, name in names.items()
    ]
    metadata = as_mapping(fields.get("metadata"))
    columns = [as_mapping(as_mapping(prompt).get("metrics")) for prompt in prompts]
    stats = {**_count_tests(columns), **as_mapping(inner.get("stats"))}
    counted = sum(token_count(stats.get(key)) or 0 for key in _COLUMN_COUNTS)
    run = ImportedRun(
        as_text(config.get("description")) or path.name.partition(".")[0],
        tuple(_read_row(row, sample, names[column], epoch) for row, sample, column, epoch in table.rows),
        "completed",
        parse_time(inner.get("timestamp")) or parse_time(fields.get("createdAt")),
        configurations=tuple(configurations),
        reported=_read_totals(stats, columns),
        total=max(counted, len(table.rows)),
        tags={str(key): str(value) for key, value in as_mapping(config.get("tags")).items()},
        details={"target": ", ".join(dict.fromkeys(c.provider for c in table.columns.values() if c.provider))},
    )
    version = as_text(metadata.get("promptfooVersion")) or ""
    warnings += _count_overruled(rows)
    return ImportedFile(NAME, version, table.samples, (run,), (), warnings, describe_notes(table.untranslated))


def _find_repeat(fields: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    options = (as_mapping(fields.get("runtimeOptions")), as_mapping(config.get("evaluateOptions")))
    return max((value for option in options if isinstance(value := option.get("repeat"), int)), default=1)


def _count_tests(columns: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Add up the counts of the columns under the names of `stats`, which some files do not have."""
    counts = {key: [token_count(metrics.get(name)) for metrics in columns] for key, name in _COLUMN_COUNTS.items()}
    return {key: sum(number or 0 for number in numbers) for key, numbers in counts.items() if any(numbers)}


def _read_totals(stats: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    usage = as_mapping(stats.get("tokenUsage"))
    totals: dict[str, Any] = {
        "passed": stats.get("successes"),
        "failed": stats.get("failures"),
        "errors": stats.get("errors"),
    }
    if usage.get("total") and not usage.get("cached"):
        totals["tokens.total"] = usage["total"]
    for metrics in columns:
        # The named scores of a column are weighted sums, unlike those of its rows; only derived metrics are new.
        named, weights = (as_mapping(metrics.get(key)) for key in ("namedScores", "namedScoresCount"))
        derived = {name: value for name, value in named.items() if weights and name not in weights}
        for name, value in {
            f"{ASSERTIONS}.sum": metrics.get("score"),
            "cost.total": metrics.get("cost"),
            **derived,
        }.items():
            if is_number(value):
                totals[name] = (totals.get(name) or 0) + value
    return {name: float(value) for name, value in totals.items() if is_number(value)}


def _read_row(row: Mapping[str, Any], sample: Sample[Any, Any], configuration: str, epoch: int) -> EvalResult:
    response = as_mapping(row.get("response") or row.get("providerResponse"))
    grading = as_mapping(row.get("gradingResult"))
    reason = row.get("failureReason")
    # A failed assertion also has an `error`: its reason.
    has_error = reason == _ERROR_REASON or (reason is None and bool(row.get("error")) and not grading)
    message = str(row.get("error") or response.get("error") or "the provider failed")
    tokens = {**as_mapping(response.get("tokenUsage")), **as_mapping(row.get("tokenUsage"))}
    usage = make_usage(
        tokens.get("prompt"), tokens.get("completion"), cached=tokens.get("cached") or None, cost=row.get("cost")
    )
    provider = as_mapping(row.get("provider")).get("id") or "unknown"
    output = response.get("output") if response else row.get("output")
    latency = as_number(row.get("latencyMs"))
    trial = Trial(
        sample,
        None if has_error else output,
        Failure("ProviderError", message.partition("\n")[0], message) if has_error else None,
        latency,
        configuration=configuration,
        epoch=epoch,
        usage=None if usage == Usage() else usage,
        session=Session(list(_read_session(row, output, str(provider), usage))),
        cached=response.get("cached") is True,
    )
    grader_tokens = as_mapping(tokens.get("assertions")) or as_mapping(grading.get("tokensUsed"))
    grader = make_usage(grader_tokens.get("prompt"), grader_tokens.get("completion"))
    sessions = {ASSERTIONS: Session([ModelCall("grader", grader)])} if grader.total_tokens else {}
    return EvalResult(trial, {} if has_error else _read_scores(row, grading), sessions, skipped="ignore")


def _read_session(row: Mapping[str, Any], output: Any, model: str, usage: Usage) -> Iterator[Event]:
    prompt = as_mapping(row.get("prompt")).get("raw")
    if isinstance(prompt, str):
        messages = [{"role": "user", "content": prompt}]
        if prompt.lstrip().startswith('[{"') or prompt.lstrip().startswith("[\n"):
            messages = _read_chat(prompt) or messages
        for message in messages:
            yield Message(parse_role(str(message["role"])) or "user", message["content"])
    if usage != Usage():
        yield ModelCall(model, usage)
    if output is not None:
        yield Message("assistant", output)


def _read_chat(text: str) -> list[dict[str, Any]]:
    """Return the messages of a prompt that is a JSON list of them, else an empty list."""
    try:
        messages = as_list(decode_json(text.encode(), ""))
    except DatasetError:
        return []
    fields = [as_mapping(message) for message in messages]
    return [dict(message) for message in fields] if all("role" in m and "content" in m for m in fields) else []


def _read_scores(row: Mapping[str, Any], grading: Mapping[str, Any]) -> dict[str, Score]:
    passed = row.get("success") is True
    value = row.get("score")
    parts: dict[str, Score] = {}
    for component in map(as_mapping, as_list(grading.get("componentResults"))):
        assertion = as_mapping(component.get("assertion"))
        name = str(assertion.get("metric") or assertion.get("type") or "assertion")
        is_pass = component.get("pass") is True
        part = make_score(component.get("score"), is_pass, component.get("reason"))
        parts[make_unique(name, parts)] = part or Score(float(is_pass), is_pass, str(component.get("reason") or ""))
    details = {"parts": parts} if parts else {}
    reason = str(grading.get("reason") or row.get("error") or "")
    # A custom assertion may give any number.
    scores = {ASSERTIONS: Score(value if is_fraction(value) else float(passed), passed, reason, details)}
    verdicts = _read_metric_verdicts(grading)
    for name, number in as_mapping(row.get("namedScores")).items():
        # A row may pass by its threshold although an assertion failed, and no score may contradict the row.
        score = make_score(number, passed or verdicts.get(str(name), is_number(number) and number >= 1))
        if name != ASSERTIONS:
            scores[str(name)] = score or Score.skipped("the metric has no number")
    return scores


def _read_metric_verdicts(grading: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether all assertions of each named metric passed."""
    verdicts: dict[str, bool] = {}
    for component in map(as_mapping, as_list(grading.get("componentResults"))):
        name = str(as_mapping(component.get("assertion")).get("metric") or "")
        verdicts[name] = verdicts.get(name, True) and component.get("pass") is True
    return verdicts


def _count_overruled(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return a note with the number of named metrics that failed in rows that passed by their threshold."""
    gradings = [as_mapping(row.get("gradingResult")) for row in rows if row.get("success") is True]
    failed = [name for grading in gradings for name, ok in _read_metric_verdicts(grading).items() if name and not ok]
    note = "named metrics that failed in rows that passed by their threshold, and count as passed like the row"
    return (f"{note}: {len(failed):,} ({', '.join(sorted(set(failed))[:3])})",) if failed else ()


def _read_csv_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a results table in the shape of the JSON file, one for each test and column."""
    outputs = [index - 1 for index, name in enumerate(header) if name == "Status" and index]
    if not outputs:
        outputs = [index for index in range(len(header)) if any(_OUTPUT_CELL.match(row[index]) for row in rows)]
    is_new = "Status" in header
    first = outputs[0] if is_new else len(header)
    names = [index for index in range(first) if index not in outputs and header[index] != "Description"]
    for number, row in enumerate(rows):
        test: dict[str, Any] = {"vars": {header[index]: row[index] for index in names}}
        if header[0] == "Description" and row[0]:
            test["description"] = row[0]
        ends = [*outputs[1:], len(header)]
        for column, (start, end) in enumerate(zip(outputs, ends, strict=True)):
            cells = dict(zip(header[start + 1 : end], row[start + 1 : end], strict=False)) if is_new else {}
            yield {
                **(_read_new_cells(row[start], cells) if is_new else _read_old_cell(row[start])),
                "testIdx": number,
                "promptIdx": column,
                "testCase": test,
                **_read_column_name(header[start]),
            }


def _read_column_name(name: str) -> dict[str, Any]:
    match = re.match(r"\[([^\]]+)\] (.*)", name, re.DOTALL)
    provider, prompt = (match[1], match[2]) if match else ("", name)
    return {"provider": {"id": provider}, "prompt": {"label": prompt}}


def _read_new_cells(output: str, cells: Mapping[str, str]) -> dict[str, Any]:
    status = cells.get("Status", "")
    named = cells.get("Named Scores")
    return {
        "output": output,
        "success": status == "PASS",
        "failureReason": {"PASS": 0, "ERROR": _ERROR_REASON}.get(status, 1),
        "error": output if status == "ERROR" else None,
        "score": _parse_score(cells.get("Score")),
        "namedScores": decode_json(named.encode(), "Named Scores") if named else {},
        "gradingResult": {"reason": cells.get("Grader Reason", "")},
    }


def _read_old_cell(cell: str) -> dict[str, Any]:
    match = _OUTPUT_CELL.match(cell)
    status, score, text = (match[1], match[2], match[3]) if match else ("ERROR", None, cell)
    reason = _OLD_REASON.search(text)
    return {
        "output": text[: reason.start()] if reason else text,
        "success": status == "PASS",
        "failureReason": {"PASS": 0, "ERROR": _ERROR_REASON}.get(status, 1),
        "score": _parse_score(score),
        "gradingResult": {"reason": reason[1] if reason else ""},
    }


def _parse_score(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
