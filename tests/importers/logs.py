"""Logs for the tests: written here, or real ones from PROCTOR_DATA (by default ../shared/data)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import pytest

from proctor.records import codec
from proctor.sessions.importers.imported_session import ImportedSession
from proctor.sessions.importers.session_files import Format
from tests.support import ROOT

DATA = Path(os.environ.get("PROCTOR_DATA", ROOT.parent / "shared" / "data"))


def real(name: str) -> Path:
    """A file or folder of real logs; skips the test if it is missing."""
    result = DATA / "07_sessions" / name
    if not result.exists():
        pytest.skip(f"there are no real logs at {result} (set PROCTOR_DATA)")
    return result


def values_in(path: Path) -> list[Any]:
    """The values of a file, decoded by the standard library."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if path.name.removesuffix(".gz").endswith(".json"):
        return [json.loads(data)]
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def read(form: Any, values: Iterable[Any], source: str = "logs/chat.jsonl") -> list[ImportedSession]:
    """The sessions in some values, one a line."""
    module: Format = form
    return list(module.read(list(enumerate(values, start=1)), source))


def only(form: Any, *values: Any) -> ImportedSession:
    """The one session in some values."""
    (imported,) = read(form, values)
    return imported


def written(found: Any) -> str:
    """Everything that is kept of sessions, as text."""
    return codec.encode(found).decode()


def marked_in(value: Any, meaning: Container[Any], marks: list[str]) -> Any:
    """The value with each meaningless text, number and key replaced by a unique one."""
    if isinstance(value, dict):
        return {key if key in meaning else _mark(marks): marked_in(it, meaning, marks) for key, it in value.items()}
    if isinstance(value, list):
        return [marked_in(it, meaning, marks) for it in value]
    if isinstance(value, bool | None) or value in meaning:
        return value
    mark = _mark(marks)
    return int(mark) if isinstance(value, int | float) else mark


def _mark(marks: list[str]) -> str:
    marks.append(f"{7_340_033_000 + len(marks)}")
    return marks[-1]


def kinds(found: ImportedSession) -> list[str]:
    """What happened, in short: who spoke, which tool ran."""
    return [_kind(event) for event in found.session]


def _kind(event: Any) -> str:
    name = getattr(event, "role", None) or type(event).__name__
    more = getattr(event, "kind", None) or getattr(event, "model", None)
    return f"{name} {getattr(event, 'name', None) or more or ''}".strip()
