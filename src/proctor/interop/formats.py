"""The formats of other tools' files: recognize a file, and read it with the reader of its format."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from proctor.datasets.files import check_file
from proctor.errors import ConfigError, DatasetError, ProctorError, suggest_name
from proctor.interop.imported import ImportedFile
from proctor.records.sample import Sample
from proctor.sessions.importers.session_files import FORMATS as SESSION_FORMATS

# The formats, each with a module in `readers`, in order of detection: specific formats come before general ones.
# Add a reader here, and as an entry point of the group `proctor.datasets`.
READERS = (
    "inspect", "openai-evals", "promptfoo", "pydantic-evals", "lm-eval", "langsmith", "braintrust", "phoenix", "opik",
    "mlflow", "deepeval", "ragas", "huggingface",
)  # fmt: skip
HEAD_BYTES = 64 * 1024


class Reader(Protocol):
    """A module that reads one format."""

    def recognize(self, path: Path, head: bytes) -> bool:
        """Return True if a file has the format, judging by its name and its first bytes."""

    def read(self, path: Path) -> ImportedFile:
        """Return the content of a file, or raise an error that says where it is damaged."""


def list_files(path: Path, name: str) -> list[Path]:
    """Return the files that a reader reads for a path: the file or the files of a folder, and its `companions`."""
    companions = getattr(load_reader(name), "companions", None)
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return [*files, *(companions(path) if companions is not None else ())]


def load_reader(name: str) -> Reader:
    """Import the reader of a format."""
    if name not in READERS:
        raise ConfigError(f"unknown format {name!r}", where="--format", fix=suggest_name(name, READERS))
    return cast(Reader, importlib.import_module(f"proctor.interop.readers.{name.replace('-', '_')}"))


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, without a byte order mark; a folder has none."""
    if path.is_dir():
        return b""
    check_file(path)
    with path.open("rb") as file:
        return file.read(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")


def recognize_format(path: Path) -> str | None:
    """Return the name of a file's format, or None."""
    head = read_head(path)
    return next((name for name in READERS if load_reader(name).recognize(path, head)), None)


def read_file(path: Path, format: str | None = None) -> ImportedFile:  # noqa: A002
    """Read a file of another tool; without a `format`, the name and the first bytes decide."""
    if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
        fix = "save the table as CSV in your spreadsheet program, and import that file"
        raise DatasetError("spreadsheets are not read", where=str(path), fix=fix)
    name = recognize_format(path) if format is None else format
    if path.is_file() and not path.stat().st_size:
        raise DatasetError("the file is empty", where=str(path), fix="name a file with content")
    if name is None and path.is_dir():
        pattern = next((f"*{file.suffix}" for file in sorted(path.iterdir()) if file.is_file() and file.suffix), "*")
        raise DatasetError(
            "this is a folder, and none that a tool writes as a whole",
            where=str(path),
            fix=f"import its files: proctor import {shlex.quote(str(path))}/{pattern}",
        )
    if name is None:
        raise DatasetError(
            f"the format is not recognized; tried: {', '.join(READERS)}",
            where=str(path),
            fix="name it: --format NAME. Use proctor sessions for chat logs and traces "
            f"({', '.join(SESSION_FORMATS)}), and proctor run --dataset for samples with the key input",
        )
    reader = load_reader(name)
    if not path.is_dir():
        check_file(path)
    try:
        return reader.read(path)
    except ProctorError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, IsADirectoryError) as error:
        raise DatasetError(
            f"not a file of {name} in a known shape ({type(error).__name__}: {error})",
            where=str(path),
            fix="check the file, or name another format: --format NAME",
        ) from error


def read_samples(name: str, path: Path) -> Iterator[Sample[Any, Any]]:
    """Yield the samples of a file, for `dataset: {path, format}`."""
    imported = read_file(path, name)
    if not imported.samples:
        raise DatasetError("the file contains no samples", where=str(path), fix="name a file with a dataset")
    yield from imported.samples


def __getattr__(name: str) -> Any:
    """Return the dataset reader of a format: the entry points of `proctor.datasets` name `formats:read_promptfoo`."""
    format_name = name.removeprefix("read_").replace("_", "-")
    if name.startswith("read_") and format_name in READERS:
        reader = partial(read_samples, format_name)
        # These formats have no file extensions of their own, so a dataset needs to name them.
        reader.extensions = ()  # type: ignore[attr-defined]
        return reader
    raise AttributeError(name)
