"""lm-evaluation-harness: results_<time>.json, and samples_<task>_<time>.jsonl with one line per document and filter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proctor.errors import DatasetError
from proctor.interop.files import read_json
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import Notes, RunBuilder, make_sample
from proctor.interop.tables import has_all, parse_time, read_objects, require_object
from proctor.records.numbers import is_number
from proctor.records.sample import Sample
from proctor.records.score import Score

NAME = "lm-eval"
_SAMPLES_NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+)\.jsonl")
_RESULTS_START = re.compile(rb'\A\s*\{\s*"results"\s*:\s*\{')
_SAMPLES_START = re.compile(rb'\A\s*\{\s*"doc_id"\s*:\s*\d+\s*,\s*"doc"\s*:')
# The keys of a line that are not metrics.
_OTHER_KEYS = frozenset((
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
    "target_hash",
))  # fmt: skip


class _Task(NamedTuple):
    """What the results file says about one task: its numbers, and whether higher is better, by metric."""

    name: str
    numbers: Mapping[str, Any] = {}
    directions: Mapping[str, Any] = {}
    total: int | None = None


def recognize(path: Path, head: bytes) -> bool:
    """Return True if a file has the results or the samples of lm-evaluation-harness."""
    if _SAMPLES_START.match(head):
        return True
    is_results = _RESULTS_START.match(head) is not None
    return (
        is_results and (path.name.startswith("results_") or has_all(head, ["lm_eval_version"])) and b'"alias"' in head
    )


def companions(path: Path) -> tuple[Path, ...]:
    """Return the files that `read` reads together with a results file: its samples, in the same folder."""
    time = path.stem.removeprefix("results_")
    if not path.name.startswith("results_"):
        return ()
    matches = ((file, _SAMPLES_NAME.fullmatch(file.name)) for file in sorted(path.parent.glob("samples_*.jsonl")))
    return tuple(file for file, match in matches if match and match["time"] == time)


def read(path: Path) -> ImportedFile:
    """Read a results file with the samples beside it, or one samples file with the numbers of its results file."""
    notes = Notes()
    if path.suffix.lower() == ".json":
        document = require_object(read_json(path), str(path))
        files = {_parse_task(file): file for file in companions(path)}
    else:
        results = path.parent / f"results_{_parse_time_stamp(path)}.json"
        document = require_object(read_json(results), str(results)) if results.is_file() else {}
        files = {_parse_task(path): path}
    tasks = {name: _find_task(document, name, notes) for name in dict.fromkeys([*files, *document.get("results", {})])}
    if path.suffix.lower() != ".json":
        tasks = {name: task for name, task in tasks.items() if name in files}
    samples: dict[str, Sample[Any, Any]] = {}
    runs = []
    for name, task in tasks.items():
        builder = RunBuilder(notes)
        if name in files:
            _add_documents(read_objects(files[name]), task, builder, files[name])
        else:
            notes.add("without samples", "task", f"({name}): write them with lm_eval --log_samples")
        samples |= builder.samples
        runs.append(_build_run(builder, task, document))
    version = str(document.get("lm_eval_version") or "")
    return ImportedFile(NAME, version, tuple(samples.values()), tuple(runs), warnings=notes.texts)


def _parse_task(path: Path) -> str:
    match = _SAMPLES_NAME.fullmatch(path.name)
    return match["task"] if match else path.stem.removeprefix("samples_")


def _parse_time_stamp(path: Path) -> str:
    match = _SAMPLES_NAME.fullmatch(path.name)
    return match["time"] if match else ""


def _find_task(document: Mapping[str, Any], name: str, notes: Notes) -> _Task:
    numbers: dict[str, float] = {}
    for key, value in document.get("results", {}).get(name, {}).items():
        metric, comma, filter_name = key.partition(",")
        if not comma:
            continue
        if is_number(value):
            numbers[_name_score(metric, filter_name)] = value
        else:
            notes.add("left out", "reported number", f"written as {value!r} ({key})")
    total = document.get("n-samples", {}).get(name, {}).get("effective")
    return _Task(name, numbers, document.get("higher_is_better", {}).get(name) or {}, total)


def _name_score(metric: str, filter_name: str) -> str:
    return metric if filter_name in ("", "none") else f"{metric}_{filter_name}"


def _add_documents(lines: Iterable[Mapping[str, Any]], task: _Task, builder: RunBuilder, path: Path) -> None:
    """Add one result for each document, with the metrics of all its filters."""
    documents: dict[Any, list[Mapping[str, Any]]] = {}
    for number, line in enumerate(lines, start=1):
        if "doc_id" not in line:
            raise DatasetError(
                '"doc_id" is missing', where=f"{path}:{number}", fix="pass a file of lm_eval --log_samples"
            )
        documents.setdefault(line["doc_id"], []).append(line)
    for doc_id, group in documents.items():
        first = group[0]
        choices = _read_choices(first)
        answer, expected = _read_answer(first, choices)
        metadata = {key: first[key] for key in ("doc", "doc_hash", "prompt_hash", "target_hash") if key in first}
        if choices:
            metadata["choices"] = [text for text, _ in choices]
        sample = make_sample(f"{task.name}/{doc_id}", _read_prompt(first), expected, metadata)
        scores = {
            _name_score(metric, str(line.get("filter", ""))): _read_score(line.get(metric), metric, task, builder)
            for line in group
            for metric in line.get("metrics") or [key for key in line if key not in _OTHER_KEYS]
        }
        responses = first.get("resps")
        builder.add(sample, scores, output=answer, raw_output=responses if responses != [[answer]] else None)


def _read_score(value: Any, metric: str, task: _Task, builder: RunBuilder) -> Score | None:
    if task.directions.get(metric) is False and is_number(value):
        builder.notes.add("without a value", "score", f"of {metric}: lower is better; the details have the number")
        return Score.skipped("lower is better", {"value": value})
    return builder.score(value)


def _list_requests(line: Mapping[str, Any]) -> list[list[Any]]:
    """Return the arguments of each request; older versions write lists instead of numbered keys."""
    arguments = line.get("arguments") or []
    requests = arguments.values() if isinstance(arguments, dict) else arguments
    return [list(request.values()) if isinstance(request, dict) else list(request) for request in requests]


def _read_prompt(line: Mapping[str, Any]) -> Any:
    requests = _list_requests(line)
    return requests[0][0] if requests and requests[0] else line.get("doc")


def _read_choices(line: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the choices of a multiple-choice question with their log-likelihoods; none for other documents."""
    texts = [request[1] for request in _list_requests(line) if len(request) > 1 and isinstance(request[1], str)]
    pairs = [pair for pair in line.get("filtered_resps") or () if isinstance(pair, list) and len(pair) == 2]
    if len(texts) < 2 or len(texts) != len(pairs):
        return []
    try:
        return [(text.strip(), float(pair[0])) for text, pair in zip(texts, pairs, strict=True)]
    except ValueError:
        return []


def _read_answer(line: Mapping[str, Any], choices: list[tuple[str, float]]) -> tuple[Any, Any]:
    """Return the answer and the expected answer; for multiple choice the most likely and the right choice."""
    target = line.get("target")
    if not choices:
        answers = line.get("filtered_resps") or [None]
        return (answers[0] if len(answers) == 1 else answers), target
    texts = [text for text, _ in choices]
    if str(target).isdecimal() and int(str(target)) < len(texts) and target not in texts:
        target = texts[int(str(target))]
    return max(choices, key=lambda choice: choice[1])[0], target


def _build_run(builder: RunBuilder, task: _Task, document: Mapping[str, Any]) -> ImportedRun:
    details = {key: document[key] for key in ("model_name", "model_source", "config", "git_hash") if document.get(key)}
    version = document.get("versions", {}).get(task.name)
    model = document.get("model_name")
    return builder.build(
        task.name,
        {**details, **({} if version is None else {"task_version": version})},
        started_at=parse_time(document.get("date")),
        reported=dict(task.numbers),
        total=task.total,
        tags={"model": str(model)} if model else {},
    )
