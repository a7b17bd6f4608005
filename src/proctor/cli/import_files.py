"""`proctor import`: read the files of other evaluation tools."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.cli import options as cli
from proctor.errors import ConfigError, Problem, ProctorError, UsageError, suggest_name
from proctor.records.formatting import format_count
from proctor.records.numbers import as_number

if TYPE_CHECKING:
    from proctor.interop.imported import ImportedFile
    from proctor.records.sample import Sample
    from proctor.wiring.store_imports import StoredImport

HEADING, PROGRAM = "# Written by proctor import", "file.py:function"


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=cli.PATH)
@cli.option(
    "--format NAME", "Read this format, one of those above. Default: recognized from the file.", into="file_format"
)
@cli.option("--dataset FILE", "Write the samples to this JSONL file, and store no run. Example: --dataset qa.jsonl.")
@cli.option(
    "--eval-file FILE",
    "Write an eval file with the translated checks, and its samples to --dataset (default: dataset.jsonl in its "
    "folder). Example: --eval-file eval.yaml.",
)
@cli.option(
    "--target ADDRESS",
    "With --eval-file: write this target into it. Default: the models and prompts of the file. "
    "Example: --target app.py:answer.",
)
@cli.option(
    "--pass-at SCORE=NUMBER",
    "Pass the scores with this name from NUMBER, if the tool gives no verdict for them; repeat for more. Default: 1 in "
    "Inspect and OpenAI evals, 0.5 in other tools. Example: --pass-at closeness=0.7.",
    multiple=True,
)
@cli.option("--name NAME", "Store the runs under this name. Default: the name in the file.")
@cli.option("--force", "Replace a dataset or an eval file that exists and differs.")
@cli.option("--dry-run", "Show what would be imported, and store nothing.")
@cli.common_options
def command(
    paths: tuple[Path, ...],
    *,
    file_format: str | None,
    dataset: Path | None,
    eval_file: Path | None,
    target: str | None,
    pass_at: tuple[str, ...],
    name: str | None,
    force: bool,
    dry_run: bool,
    history: str | None,
    as_json: bool,
) -> None:
    """Import results, datasets and configs of other evaluation tools.

    Formats: braintrust, deepeval, huggingface, inspect, langsmith, lm-eval, mlflow, openai-evals, opik, phoenix,
    promptfoo, pydantic-evals and ragas.

    Store the runs in the history, with metrics computed from the results, and show them next to the numbers of the
    tool. The same file is imported only once.

    \b
    proctor import results.json
    proctor import logs/*.eval --name nightly
    proctor import promptfooconfig.yaml --eval-file eval.yaml
    """
    from proctor.interop.formats import list_files

    if target is not None and eval_file is None:
        raise ConfigError(
            "--target needs --eval-file", fix=f"add --eval-file eval.yaml, or use proctor run --target {target}"
        )
    if pass_at and (dataset is not None or eval_file is not None):
        raise ConfigError(
            "--pass-at is for runs, and --dataset and --eval-file store none", fix="leave it out, or import the run"
        )
    files = _read_files(paths, file_format)
    pass_marks = _read_pass_marks(pass_at, files)
    # A file that another one includes, such as the samples of its results, is not imported twice.
    included = {part.resolve() for path, file in files for part in list_files(path, file.format) if part != path}
    files = [(path, file) for path, file in files if path.resolve() not in included]
    if target is not None and eval_file is not None:
        changes = {"target": _rebase_target(target, eval_file.parent), "configurations": {}}
        files = [(path, msgspec.structs.replace(file, **changes)) for path, file in files]
    content: dict[str, Any]
    stored: list[list[StoredImport]] = []
    if dataset is not None or eval_file is not None:
        content = _write_files(files, dataset, eval_file, name, history, force=force, dry_run=dry_run)
    else:
        stored, content = _store_runs(files, history, name, pass_marks, dry_run=dry_run)
    if as_json:
        cli.print_json(content)
    elif "runs" in content:
        _show_runs(files, stored, dry_run=dry_run)
    else:
        _show_written(files, content)


def _rebase_target(text: str, folder: Path) -> Any:
    """Return --target for an eval file in `folder`: paths in an eval file are relative to its folder."""
    from proctor.cli.evaluation import parse_target
    from proctor.wiring.config import resolve_target

    target, current = parse_target(text), Path(os.path.relpath(Path.cwd(), folder.resolve()))
    return target if current == Path() else resolve_target(target, current)


def _read_files(paths: tuple[Path, ...], file_format: str | None) -> list[tuple[Path, ImportedFile]]:
    """Read all files before any is stored; one error lists those that cannot be read."""
    from proctor.interop.formats import read_file

    files: list[tuple[Path, ImportedFile]] = []
    errors: list[tuple[Path, ProctorError]] = []
    for path in paths:
        try:
            files.append((path, read_file(path, file_format)))
        except ProctorError as error:
            if len(paths) == 1:
                raise
            errors.append((path, error))
    if errors:
        problems = [Problem(error.where or str(path), error.what, error.fix) for path, error in errors]
        what = f"{len(errors):,} of {len(paths):,} files cannot be read; nothing was stored"
        raise UsageError(what, problems=problems, fix=f"leave it out, or: {problems[0].fix}")
    return files


def _read_pass_marks(pass_at: tuple[str, ...], files: list[tuple[Path, ImportedFile]]) -> dict[str, float]:
    """Return the pass mark of each score; its tool must not have given verdicts."""
    where = "--pass-at"
    names = dict.fromkeys(name for _, file in files for run in file.runs for name in run.without_verdicts)
    marks: dict[str, float] = {}
    for name, text in cli.parse_pairs(pass_at, where, "SCORE=NUMBER").items():
        mark = as_number(cli.parse_value(text))
        if mark is None or not 0 <= mark <= 1:
            raise ConfigError(
                f"the pass mark of {name} must be a number from 0 to 1, got {text!r}",
                where=where,
                fix=f"write {where} {shlex.quote(name)}=0.7",
            )
        if name not in names:
            scores = {score for _, file in files for run in file.runs for r in run.results for score in r.scores}
            is_known = name in scores
            what = f"{name} has the verdicts of its tool" if is_known else f"no run has a score {name!r}"
            known = suggest_name(name, list(names)) if names else f"leave out {where}: no score lacks a verdict"
            raise ConfigError(what, where=where, fix=known)
        marks[name] = mark
    return marks


def _store_runs(
    files: list[tuple[Path, ImportedFile]],
    history: str | None,
    name: str | None,
    pass_marks: dict[str, float],
    *,
    dry_run: bool,
) -> tuple[list[list[StoredImport]], dict[str, Any]]:
    from proctor.wiring.open_history import open_history
    from proctor.wiring.store_imports import store_file

    store = None if dry_run else open_history(history)
    stored = [list(store_file(imported, path, store, name=name, pass_marks=pass_marks)) for path, imported in files]
    # A file that is named twice is new the first time.
    runs = dict(reversed([(str(path), group) for (path, _), group in zip(files, stored, strict=True)]))
    described = [
        {
            "file": path,
            "format": imported.format,
            "version": imported.version,
            "samples": len(imported.samples),
            "warnings": imported.warnings,
            "untranslated": imported.untranslated,
        }
        for path, imported in files
    ]
    return stored, {"files": described, "runs": runs}


def _show_runs(files: list[tuple[Path, ImportedFile]], groups: list[list[StoredImport]], *, dry_run: bool) -> None:
    from proctor.reports.listing import show_imported

    for (path, imported), stored in zip(files, groups, strict=True):
        version = f" {imported.version}" if imported.version else ""
        title = f"{path} ({imported.format}{version}): {format_count(len(imported.samples), 'sample')}"
        if not stored:
            click.echo(f"{title} and no run. To evaluate your program (replace {PROGRAM}):")
            where, checks = shlex.quote(str(path)), "" if _has_checks(imported) else " -e exact_match"
            source = f"--dataset {where} --dataset-format {imported.format}"
            click.echo(f"  proctor import {where} --format {imported.format} --eval-file eval.yaml")
            click.echo(f"  proctor run {source} --target {PROGRAM}{checks}")
        else:
            click.echo(f"{title}, {format_count(len(stored), 'run')}")
            show_imported(stored, imported.format, is_dry_run=dry_run)
        warnings = dict.fromkeys(text for run in stored for text in run.warnings) if stored else imported.warnings
        for warning in warnings:
            click.echo(f"  note: {cli.display_name(warning)}")
    run_ids = [run.run_id for group in groups for run in group if run.stored]
    if run_ids:
        click.echo(f"next: proctor show {run_ids[-1]}")


def _has_checks(imported: ImportedFile) -> bool:
    return bool(imported.evaluators) or any(sample.evaluators for sample in imported.samples)


def _write_files(
    files: list[tuple[Path, ImportedFile]],
    dataset: Path | None,
    eval_file: Path | None,
    name: str | None,
    history: str | None,
    *,
    force: bool,
    dry_run: bool,
) -> dict[str, Any]:
    """Write the samples, and the eval file if it is named; return the paths, the number of samples and the warnings."""
    from proctor.cli.outputs import OutputType, check_file
    from proctor.records import codec
    from proctor.reports.files import write_file

    if dataset is None:
        assert eval_file is not None
        dataset = eval_file.parent / "dataset.jsonl"
    if dataset.suffix.lower() not in (".jsonl", ".ndjson"):
        raise ConfigError(
            f"must be a JSONL file, got {str(dataset)!r}", where="--dataset", fix="write --dataset qa.jsonl"
        )
    check_file(dataset, OutputType("a dataset", rb'\{"id":'), "--dataset", history)
    check_file(eval_file, OutputType("an imported eval file", HEADING.encode()), "--eval-file", history)
    samples = _merge_samples(files)
    outputs = {dataset: b"".join(codec.encode(sample) + b"\n" for sample in samples)}
    if eval_file is not None:
        outputs[eval_file] = _make_eval_file(files, dataset, eval_file, name).encode()
    for path, content in outputs.items():
        if not force and path.is_file() and path.read_bytes() not in (b"", content):
            raise ConfigError(
                "the file exists and differs; it is not overwritten",
                where=str(path),
                fix="name another file with --dataset or --eval-file, or replace it: add --force",
            )
    for path, content in outputs.items() if not dry_run else ():
        write_file(path, [content], what="the dataset" if path == dataset else "the eval file")
    return {"dataset": dataset, "samples": len(samples), "eval_file": eval_file, "warnings": _list_warnings(files)}


def _list_warnings(files: list[tuple[Path, ImportedFile]]) -> list[str]:
    texts = (text for _, imported in files for text in (*imported.warnings, *imported.untranslated))
    return list(dict.fromkeys(texts))


def _merge_samples(files: list[tuple[Path, ImportedFile]]) -> list[Sample[Any, Any]]:
    """Return the samples of all files; the same sample of several files occurs once."""
    merged: dict[str, Sample[Any, Any]] = {}
    problems = [
        Problem(str(path), f"the id {sample.id!r} belongs to another sample too")
        for path, imported in files
        for sample in imported.samples
        if merged.setdefault(sample.id, sample) != sample
    ]
    if problems:
        raise UsageError("the samples cannot be merged", problems=problems, fix="import the files one by one")
    if not merged:
        raise UsageError("the files contain no samples", where=str(files[0][0]), fix="name a file with a dataset")
    return list(merged.values())


def _make_eval_file(files: list[tuple[Path, ImportedFile]], dataset: Path, eval_file: Path, name: str | None) -> str:
    import yaml

    imported = [file for _, file in files]
    evaluators = [entry for file in imported for entry in file.evaluators]
    unique = [entry for index, entry in enumerate(evaluators) if entry not in evaluators[:index]]
    name = name or next((file.name for file in imported if file.name), None)
    content: dict[str, Any] = {"name": name} if name else {}
    content["dataset"] = Path(os.path.relpath(dataset, eval_file.parent or ".")).as_posix()
    target = next((file.target for file in imported if file.target), None)
    configurations = {key: value for file in imported for key, value in file.configurations.items()}
    if target:
        content["target"] = target
    if configurations:
        content["configurations"] = configurations
    if unique:
        content["evaluators"] = unique
    epochs = max((r.trial.epoch for file in imported for run in file.runs for r in run.results), default=0) + 1
    if epochs > 1:
        content["run"] = {"epochs": epochs}
    lines = [f"{HEADING} {' '.join(str(path) for path, _ in files)}"]
    lines += [f"# {text}" for text in _list_warnings(files)]
    if not target:
        lines += ["# Name the program to evaluate:", f"# target: {PROGRAM}"]
    if not any(_has_checks(file) for file in imported):
        lines += ["# Name the checks:", "# evaluators: [exact_match]"]
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
    return "\n".join(" ".join(line.split()) for line in lines) + f"\n{body}"


def _show_written(files: list[tuple[Path, ImportedFile]], content: dict[str, Any]) -> None:
    checked = sum(bool(sample.evaluators) for _, imported in files for sample in imported.samples)
    checks = f", {checked:,} with their own evaluators" if checked else ""
    click.echo(f"wrote {content['dataset']}: {format_count(content['samples'], 'sample')}{checks}")
    for warning in content["warnings"]:
        click.echo(f"  note: {cli.display_name(warning)}")
    evaluator = "" if any(_has_checks(imported) for _, imported in files) else " -e exact_match"
    source = f"--dataset {shlex.quote(str(content['dataset']))}"
    if content["eval_file"]:
        click.echo(f"wrote {content['eval_file']}")
        source = shlex.quote(str(content["eval_file"]))
        if any(imported.target for _, imported in files):
            click.echo(f"next: proctor run {source}{evaluator}")
            return
        click.echo(f"{content['eval_file']} names no program: add the line target: {PROGRAM} to it, or use --target")
    click.echo(f"next (replace {PROGRAM} with your program): proctor run {source} --target {PROGRAM}{evaluator}")
