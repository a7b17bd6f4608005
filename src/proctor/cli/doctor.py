"""`proctor doctor`: check what is installed, configured and reachable."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import click
import msgspec

from proctor.cli import options as cli
from proctor.cli.evaluation import DEFAULT_FILE, file_argument, open_mailbox
from proctor.errors import ProctorError
from proctor.records.formatting import format_count
from proctor.version import VERSION

Status = Literal["ok", "info", "warn", "fail"]
COLORS = {"ok": "green", "info": "", "warn": "yellow", "fail": "red"}
# What each extra is for; a test compares the names with those of the package.
EXTRAS = {
    "pydantic": "datasets and answers typed with pydantic models",
    "langchain": "LangChain runnables and chat models",
    "local": "models and embedders on this machine",
    "language": "output_language for rare languages",
    "hf": "scorers from Hugging Face",
    "postgres": "a history in PostgreSQL",
    "redis": "workers and mailboxes on Redis",
    "sqs": "workers and mailboxes on SQS",
    "parquet": "datasets and exports in Parquet",
    "inspect": "importing Inspect logs (.eval)",
    "pandas": "report.to_pandas()",
    "polars": "report.to_polars()",
    "otel": "OpenTelemetry spans",
    "ray": "runs on a Ray cluster",
}
MAX_NAMES = 5
_REQUIREMENT = re.compile(r"""([\w.-]+)(?:\[[^\]]*\])?\s*(?:>=\s*([\w.]+))?.*?;.*extra\s*==\s*['"](.+?)['"]""")


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one check; `fix` is what to type."""

    section: str
    name: str
    status: Status
    message: str
    fix: str = ""


@click.command("doctor")
@file_argument
@cli.option("--requests ADDRESS", "Also connect to this mailbox. Example: redis://localhost:6379/0/evals.")
@cli.option("--online", "Also ask the providers whose API key is set for their models.")
@cli.common_options
def command(file: Path | None, requests: str | None, online: bool, history: str | None, as_json: bool) -> int:
    """Check what is installed, configured and reachable; every problem has a fix.

    \b
    proctor doctor
    proctor doctor eval.yaml --online
    proctor doctor --history postgresql://localhost/evals --requests redis://localhost:6379/0/evals

    The eval file is FILE, or eval.yaml in this folder; its target is imported but not called. Keys are never printed.
    Providers are asked only with --online. Exit codes: 0 nothing failed (there may be warnings), 2 usage error, 3 a
    check failed.
    """
    findings = [
        *_check_installation(),
        *_check_eval_file(file),
        *_check_keys(),
        *_check_history(history),
        *_check_mailbox(requests),
        *(_check_providers() if online else ()),
        *_check_weights(),
    ]
    is_failed = any(finding.status == "fail" for finding in findings)
    if as_json:
        cli.print_json({"ok": not is_failed, "checks": findings})
    else:
        _show(findings)
    return cli.ERROR if is_failed else 0


def _show(findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    section = ""
    for finding in findings:
        if finding.section != section:
            section = finding.section
            click.secho(section, bold=True)
        status = click.style(f"{finding.status:<4}", fg=COLORS[finding.status] or None)
        head, *rest = finding.message.split("\n")
        click.echo(f"  {status}  {finding.name:<{width}}  {head}")
        indent = " " * (width + 10)
        # What is not installed or not set is not a problem.
        label = "To add it" if finding.status == "info" else "Fix"
        for line in [*rest, *([f"{label}: {finding.fix}"] if finding.fix else [])]:
            click.echo(indent + line)
    counts = {status: sum(finding.status == status for finding in findings) for status in ("fail", "warn")}
    failures, warnings = format_count(counts["fail"], "failure"), format_count(counts["warn"], "warning")
    click.echo(f"\n{format_count(len(findings), 'check')}: {failures}, {warnings}")


def _check_installation() -> Iterator[Finding]:
    section = "Installed"
    version = platform.python_version()
    yield Finding(section, "python", "ok", f"{version} ({sys.executable})")
    yield Finding(section, "proctor", "ok", VERSION)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding and encoding != "utf8":
        message = f"the terminal uses {sys.stdout.encoding}: some characters are replaced"
        yield Finding(section, "encoding", "warn", message, "set PYTHONUTF8=1")
    packages = _list_extras()
    for extra, purpose in EXTRAS.items():
        missing, old = [], []
        for package, minimum in packages.get(extra, ()):
            try:
                installed = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                missing.append(package)
                continue
            if _parse_version(installed) < _parse_version(minimum):
                old.append(f"{package} {installed} is older than {minimum}")
        fix = f'pip install "proctor[{extra}]"'
        if old:
            yield Finding(section, extra, "warn", f"{purpose}: {', '.join(old)}", fix)
        elif missing:
            yield Finding(section, extra, "info", f"not installed; for {purpose}", fix)
        else:
            yield Finding(section, extra, "ok", purpose)


def _list_extras() -> dict[str, list[tuple[str, str]]]:
    """Return the packages of each extra with their minimum version."""
    extras: dict[str, list[tuple[str, str]]] = {}
    for requirement in importlib.metadata.requires("proctor") or ():
        if match := _REQUIREMENT.fullmatch(requirement):
            extras.setdefault(match[3], []).append((match[1], match[2] or ""))
    return extras


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _attempt(section: str, name: str, check: Callable[[], str]) -> Finding:
    """Return the message of a check, or its error with the fix."""
    try:
        return Finding(section, name, "ok", check())
    except ProctorError as error:
        message = str(error).partition("\nFix: ")[0]
        return Finding(section, name, "fail", message, error.fix or "correct the problems above")
    except Exception as error:
        # Importing a target runs the user's code, and a driver raises errors of its own.
        message = f"{type(error).__name__}: {error}"
        return Finding(section, name, "fail", message, "set PROCTOR_DEBUG=1 and run `proctor run` to see the traceback")


def _check_eval_file(file: Path | None) -> Iterator[Finding]:
    section = "Configured"
    if file is None and not DEFAULT_FILE.is_file():
        yield Finding(section, "eval file", "info", "there is no eval.yaml in this folder", "proctor init my-evals")
        return
    path = file or DEFAULT_FILE

    def check() -> str:
        from proctor.wiring.config import load_eval_file
        from proctor.wiring.prepare import inspect_dataset, prepare
        from proctor.wiring.registry import Registry

        registry = Registry.standard()
        loaded = load_eval_file(path)
        registry.load_plugins(loaded.plugins)
        plan = prepare(loaded.evaluation, registry)
        length = inspect_dataset(plan, loaded.evaluation.places).length
        samples = "an unknown number of samples" if length is None else format_count(length, "sample")
        own = plan.checks.specs if plan.checks is not None else ()
        parts = [format_count(len(plan.evaluators), "evaluator")] if plan.evaluators or not own else []
        if own:
            parts.append(f"samples have their own evaluators ({', '.join(spec.name for spec in own[:MAX_NAMES])}")
            parts[-1] += f", … {len(own) - MAX_NAMES} more)" if len(own) > MAX_NAMES else ")"
        return f"{path}: target {plan.target.spec.name}, {samples}, {', '.join(parts)}"

    with cli.redirect_prints(True):
        yield _attempt(section, "eval file", check)


def _check_history(address: str | None) -> Iterator[Finding]:
    from proctor.wiring.open_history import history_file, open_history

    section, file = "Reachable", history_file(address)
    if file is not None and not file.exists():
        folder = next(parent for parent in file.absolute().parents if parent.exists())
        if os.access(folder, os.W_OK):
            yield Finding(section, "history", "ok", f"the first run creates {file}")
        else:
            yield Finding(
                section, "history", "fail", f"{folder} cannot be written", "add --history FILE in another folder"
            )
        return

    def check() -> str:
        store = open_history(address)
        try:
            latest = store.runs(limit=1)
            where = store.describe().where
        finally:
            store.close()
        if file is not None:
            _try_write(file)
        return f"{where} can be read and written; latest run: {latest[0].run_id if latest else 'none'}"

    yield _attempt(section, "history", check)


def _try_write(file: Path) -> None:
    """Start a write transaction and roll it back."""
    from proctor.errors import HistoryError

    try:
        connection = sqlite3.connect(f"file:{file.absolute()}?mode=rw", uri=True, isolation_level=None, timeout=0.5)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        finally:
            connection.close()
    except sqlite3.Error as error:
        fix = f"make {file} and its folder writable, or add --history FILE"
        raise HistoryError(f"{file} can be read but not written: {error}", fix=fix) from None


def _check_mailbox(address: str | None) -> Iterator[Finding]:
    if address is None:
        return
    from proctor.models.connect import hide_credentials

    def check() -> str:
        count = open_mailbox(address, dict).approximate_count()
        return f"{hide_credentials(address)} answers; {format_count(count, 'message')}"

    yield _attempt("Reachable", "mailbox", check)


def _check_keys() -> Iterator[Finding]:
    from proctor.cli.models import list_providers

    for provider in list_providers(check=False):
        variables = " or ".join(provider.variables)
        if provider.ready:
            yield Finding("Configured", provider.name, "ok", f"{variables} is set; --online checks it")
        else:
            fix = f"export {provider.variables[0]}=…"
            yield Finding("Configured", provider.name, "info", f"{variables} is not set", fix)


def _check_providers() -> Iterator[Finding]:
    from proctor.cli.models import list_providers

    for provider in list_providers(check=True):
        if provider.error is not None:
            fix = f"check {' or '.join(provider.variables)} and the network"
            yield Finding("Reachable", provider.name, "fail", provider.error.partition("\nFix: ")[0], fix)
        elif provider.models is not None:
            yield Finding("Reachable", provider.name, "ok", f"answers; {format_count(len(provider.models), 'model')}")


def _check_weights() -> Iterator[Finding]:
    from proctor.cli.models import list_local

    for model in list_local():
        name, size = f"local:{model.name}", f"{model.size / 1e6:,.0f} MB"
        if model.path is None:
            yield Finding("Local models", name, "info", f"not downloaded ({size}); {model.note}", model.pull)
        elif model.install is not None:
            yield Finding("Local models", name, "warn", "downloaded, but its package is missing", model.install)
        else:
            yield Finding("Local models", name, "ok", f"downloaded ({size})")
