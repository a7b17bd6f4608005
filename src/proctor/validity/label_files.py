"""Labels in files for other tools: CSV and JSON lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ConfigError, Problem, UsageError
from proctor.records import codec
from proctor.records.label import HumanLabel, LabelledItem, Strategy
from proctor.records.trial import DEFAULT_CONFIGURATION
from proctor.records.validation import explain
from proctor.validity.drawing import JudgedOutput

FORMATS = (".csv", ".jsonl", ".ndjson")
WORDS = {"true": True, "pass": True, "passed": True, "1": True, "yes": True}
WORDS |= {"false": False, "fail": False, "failed": False, "0": False, "no": False}
COLUMNS = HumanLabel.__struct_fields__
ALIASES = {"sample": "sample_id", "label": "passed", "verdict": "passed"}


def show_item(item: LabelledItem) -> dict[str, Any]:
    """Return the fields of an item as people and files have them: epochs are counted from 1, and from 0 in records."""
    return {**item._asdict(), "epoch": item.epoch + 1}


def write_labels(labels: Sequence[HumanLabel], path: Path) -> None:
    """Write labels to a CSV file or a file of JSON lines, as the extension says."""
    # A default is left out of stored records, but which output it is and how it was drawn must be explicit in a file.
    rows = [{**msgspec.to_builtins(label), **show_item(label.item), "strategy": label.strategy} for label in labels]
    if _check_extension(path) == ".csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        path.write_text(text.getvalue(), encoding="utf-8")
    else:
        path.write_bytes(b"".join(codec.encode_any_text(row) + b"\n" for row in rows))


def read_labels(
    path: Path,
    outputs: Sequence[JudgedOutput],
    *,
    strategy: Strategy | None,
    annotator: str,
    digest: str,
    now: datetime,
    same_question: Callable[[str, str], bool] = lambda _run_id, _digest: True,
) -> list[HumanLabel]:
    """Read labels of the outputs of one run and evaluator; one error lists all problems of the file.

    A row needs `sample_id` and `passed`. `strategy` says how the outputs were drawn if the rows do not. If a row names
    another version of the evaluator, `same_question` says whether that one of a run asked the same.
    """
    by_item = {output.item: output for output in outputs}
    run_id, evaluator = (outputs[0].item.run_id, outputs[0].item.evaluator) if outputs else ("", "")
    rows = list(_read_rows(path))
    if not rows:
        fix = "write a header and one row for each label: sample_id,passed,strategy"
        raise UsageError("the file has no labels", where=str(path), fix=fix)
    _check_question(path, [row for _, row in rows], digest, same_question)
    labels, problems = [], []
    for where, row in rows:
        try:
            fields = _read_fields(row, {"run_id": run_id, "evaluator": evaluator, "annotator": annotator})
            item = LabelledItem(run_id, fields["sample_id"], fields["configuration"], fields["epoch"], evaluator)
            if row.get("epoch") in ("", None) and item._replace(epoch=1) in by_item:
                raise ValueError(f"epoch is missing: sample {item.sample_id!r} has several")
            fields = _complete(fields, item, by_item, strategy, digest, now)
            fields["probability"] = fields["probability"] or _probability(fields["strategy"], rows, outputs)
            labels.append(msgspec.convert(fields, HumanLabel, strict=False))
        except (ValueError, msgspec.MsgspecError) as error:
            problems.append(Problem(where, explain(error) if isinstance(error, msgspec.MsgspecError) else str(error)))
        except UsageError as error:
            problems.append(Problem(where, error.what))
    if problems:
        fix = "give each row sample_id and passed (true or false), and add a strategy column or --strategy random"
        if all("epoch" in problem.what for problem in problems):
            fix = "count epochs from 1, as `proctor label --json` and --export do"
        raise ConfigError("the labels cannot be imported", where=str(path), problems=problems, fix=fix)
    return labels


def _check_question(
    path: Path, rows: Sequence[Mapping[str, Any]], digest: str, same_question: Callable[[str, str], bool]
) -> None:
    """Refuse labels of another version of the evaluator, unless it asked the same question."""
    versions = {(str(row.get("run_id") or ""), str(row.get("evaluator_digest") or "")) for row in rows}
    others = {version for version in versions if version[1] not in ("", digest) and not same_question(*version)}
    if others:
        names = ", ".join(sorted({f"{version} of run {run_id or '(unknown)'}" for run_id, version in others}))
        raise UsageError(
            f"the labels answer the question of version {names}, and this run's evaluator ({digest}) asks another "
            "question, or that version is not known here",
            where=str(path),
            fix="label this run, or add --same-question if people would give the same answers",
        )


def _read_fields(row: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    fields = {ALIASES.get(name, name): value for name, value in row.items() if value not in ("", None)}
    if unknown := [name for name in fields if name not in COLUMNS]:
        raise ValueError(f"unknown column {unknown[0]!r}")
    if "sample_id" not in fields:
        raise ValueError("sample_id is missing")
    passed = fields.get("passed")
    if isinstance(passed, str | int) and not isinstance(passed, bool):
        if (word := str(passed).strip().lower()) not in WORDS:
            raise ValueError(f"passed must be true or false, got {passed!r}")
        fields["passed"] = WORDS[word]
    if str(fields.get("skipped", False)).lower() not in ("true", "false"):
        raise ValueError(f"skipped must be true or false, got {fields['skipped']!r}")
    fields["skipped"] = str(fields.get("skipped", False)).lower() == "true"
    if fields.pop("withdrawn", False) in (True, "True", "true"):
        raise ValueError("withdrawn labels cannot be imported")
    if fields["skipped"] == (fields.get("passed") is not None):
        raise ValueError("passed is missing")
    if fields.get("evaluator", defaults["evaluator"]) != defaults["evaluator"]:
        raise ValueError(
            f"the label is for evaluator {fields['evaluator']!r}, not {defaults['evaluator'] or 'overall'!r}"
        )
    number = fields.get("probability")
    fields["probability"] = None if number is None else float(number)
    configuration = str(fields.get("configuration", DEFAULT_CONFIGURATION))
    source = {**defaults, **fields}
    return {
        **source,
        "sample_id": str(fields["sample_id"]),
        "configuration": configuration,
        "epoch": _read_epoch(str(fields.get("epoch", 1)).strip()) - 1,
        "source": fields.get("run_id", ""),
    }


def _read_epoch(epoch: str) -> int:
    if not epoch.removeprefix("-").isdecimal():
        raise ValueError(f"epoch must be an integer, got {epoch!r}")
    if int(epoch) < 1:
        raise ValueError(f"epoch {epoch} does not exist: epochs are counted from 1")
    return int(epoch)


def _complete(
    fields: dict[str, Any],
    item: LabelledItem,
    outputs: Mapping[LabelledItem, JudgedOutput],
    strategy: Strategy | None,
    digest: str,
    now: datetime,
) -> dict[str, Any]:
    """Bind a row to an output of the run: its ids, its digests, and how it was drawn."""
    output = outputs.get(item)
    if output is None:
        others = [each.epoch for each in outputs if each[1:3] == item[1:3]]
        if others and item.epoch > (last := max(others)):
            raise ValueError(
                f"epoch {item.epoch + 1} of sample {item.sample_id!r} does not exist: the last is {last + 1}"
            )
        where = "" if (item.configuration, item.epoch) == (DEFAULT_CONFIGURATION, 0) else f" in {item.configuration}"
        raise ValueError(f"the run has no verdict on sample {item.sample_id!r}{where}")
    if fields.get("output_digest", output.output_digest) != output.output_digest:
        raise ValueError(f"sample {item.sample_id!r} has another output in this run")
    drawn = fields.get("strategy") or strategy
    if drawn is None:
        raise ValueError("strategy is missing: random, stratified or disagreement")
    source = fields.pop("source")
    known_id = fields.get("label_id") if source == item.run_id else None
    content = repr((item, source, fields.get("label_id"), fields["annotator"], fields.get("passed"), fields["skipped"]))
    return {
        **fields,
        "run_id": item.run_id,
        "label_id": known_id or blake2b(content.encode(), digest_size=16).hexdigest(),
        "labelled_at": fields.get("labelled_at", now),
        "strategy": drawn,
        "evaluator_digest": digest,
        "output_digest": output.output_digest,
    }


def _probability(strategy: str, rows: Sequence[Any], outputs: Sequence[JudgedOutput]) -> float | None:
    return min(1.0, len(rows) / len(outputs)) if strategy == "random" else None


def _read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    extension = _check_extension(path)
    if not path.is_file():
        raise UsageError("file not found", where=str(path), fix="check the path")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the file is not UTF-8 text", where=str(path), fix="save it as UTF-8") from None
    if extension == ".csv":
        for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
            cells: dict[str, Any] = {name: value for name, value in row.items() if name is not None}
            yield f"{path}:{number}", cells
        return
    yield from _read_json_lines(path, text.splitlines())


def _read_json_lines(path: Path, lines: Iterable[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                row = msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise UsageError(
                    f"not JSON: {error}", where=f"{path}:{number}", fix="write one object per line"
                ) from None
            if not isinstance(row, dict):
                raise UsageError("must be an object", where=f"{path}:{number}", fix="write one object per line")
            yield f"{path}:{number}", row


def _check_extension(path: Path) -> str:
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"unknown file extension {path.suffix!r}", where=str(path), fix="name a .csv or .jsonl file")
    return path.suffix.lower()
