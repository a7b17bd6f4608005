"""Files that code names: found, bounded, and their content digested once per version."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from proctor.core.identity.project import is_project_file, root_of

MOST_FILES = 500
MOST_BYTES_PER_FILE = 10_000_000
MOST_BYTES = 50_000_000
LONGEST_NAME = 255
# How many files and folders of one folder are looked at.
MOST_ENTRIES = 5_000

_NAME = re.compile(r"[\w\-./\\ @+~:()]+")
# Prompts and configuration; what else lies in a folder that code names may be its output.
_TEMPLATES = frozenset(
    [
        ".txt",
        ".md",
        ".j2",
        ".jinja",
        ".jinja2",
        ".tmpl",
        ".tpl",
        ".template",
        ".mustache",
        ".hbs",
        ".liquid",
        ".prompt",
        ".prompty",
        ".yaml",
        ".yml",
        ".json",
        ".toml",
        ".ini",
        ".cfg",
        ".xml",
        ".html",
    ]
)
# Files that a program writes while it runs.
_STATE = frozenset(
    [".db", ".sqlite", ".sqlite3", ".log", ".lock", ".pid", ".pyc", ".sock", ".tmp", ".db-wal", ".db-shm"]
)
_OUTPUTS = frozenset([".json", ".jsonl", ".csv", ".tsv", ".parquet", ".ndjson"])
_SKIPPED_FOLDERS = frozenset({".git", ".proctor", "__pycache__", "node_modules", ".venv", "venv"})
_SKIPPED_FOLDERS |= {"site-packages", "dist-packages"}
# Files that hold nothing but a key: one that changes does not change what is answered.
_KEY_FILE = re.compile(r"\.env(\..*)?|.*\.(pem|key|p12|pfx|jks)|id_(rsa|dsa|ecdsa|ed25519)", re.I)
_SYSTEM = ("/dev/", "/proc/", "/sys/")


class Found(NamedTuple):
    """A file or folder that code names; `label` is the same wherever the project lies.

    `has_code` is true for a folder that holds the code itself or the working directory.
    """

    label: str
    path: str
    is_folder: bool
    has_code: bool = False


_digests: dict[str, tuple[tuple[int, int, int], str]] = {}


def find(name: str, folders: tuple[str, ...]) -> Iterator[Found]:
    """The files and folders that a string may name, seen from some folders."""
    if not 0 < len(name) <= LONGEST_NAME or not _NAME.fullmatch(name) or name.strip() == "":
        return
    if name.startswith(_SYSTEM):
        return
    absolute = os.path.isabs(name)
    for folder in ("",) if absolute else folders:
        path = os.path.normpath(os.path.join(folder, name))
        try:
            told = os.stat(path)
        except (OSError, ValueError):
            continue
        mode = told.st_mode
        if not is_project_file(path) or _SKIPPED_FOLDERS & set(path.split(os.sep)):
            continue
        label = relative(path, folders) if absolute else name.replace("\\", "/")
        if stat.S_ISREG(mode) and os.path.splitext(path)[1].lower() not in _STATE:
            # An empty file is a signal between programs, not a prompt.
            if told.st_size:
                yield Found(label, path, is_folder=False)
            return
        if stat.S_ISDIR(mode):
            yield Found(label, path, is_folder=True, has_code=_contains(path, folders))
            return


def relative(path: str, folders: tuple[str, ...]) -> str:
    """A path without the place where the project lies."""
    for folder in folders:
        root = root_of(folder)
        if path == root or path.startswith(root.rstrip(os.sep) + os.sep):
            return os.path.relpath(path, folder).replace("\\", "/")
    return path


def is_output(path: str) -> bool:
    """True for a file that code which writes files may have written itself."""
    return os.path.splitext(path)[1].lower() in _OUTPUTS


def is_key_file(path: str) -> bool:
    """True for a file that holds nothing but a key.

    >>> [is_key_file(name) for name in (".env", "tls/server.pem", "answer-key.md", "key.txt")]
    [True, True, False, False]
    """
    return _KEY_FILE.fullmatch(os.path.basename(path)) is not None


def is_template(path: str) -> bool:
    """True for a file of prompts or configuration, by its extension."""
    return os.path.splitext(path)[1].lower() in _TEMPLATES


class Scan(NamedTuple):
    """The prompts and configuration in a folder: label and path, in order.

    `below` are those in its subfolders. `has_others` is true if there are files besides them that
    are no Python code, and `complete` is false if there are too many files.
    """

    direct: list[tuple[str, str]]
    below: list[tuple[str, str]]
    has_others: bool
    complete: bool


def scan(folder: str, extension: str, *, only: bool, deep: bool = True) -> Scan:
    """Look through a folder and, if `deep`, its subfolders.

    Files with `extension` are added to prompts and configuration, or taken `only`.
    """
    direct: list[tuple[str, str]] = []
    below: list[tuple[str, str]] = []
    others, entries = False, 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            each
            for each in (folders if deep else ())
            if each not in _SKIPPED_FOLDERS and not each.startswith(".")
        )
        entries += len(names) + len(folders)
        if entries > MOST_ENTRIES:
            return Scan(direct, below, others, complete=False)
        for name in sorted(names):
            if name.startswith(".") and (only or not is_template(name)):
                continue
            path = os.path.join(place, name)
            by_extension = bool(extension) and name.lower().endswith(extension)
            if by_extension or (is_template(name) and not (only and extension)):
                label = os.path.relpath(path, folder).replace("\\", "/")
                (direct if place == folder else below).append((label, path))
            elif not name.endswith((".py", ".pyc")) and not is_template(name):
                others = True
    return Scan(direct, below, others, complete=True)


def may_be_written(extension: str) -> bool:
    """True for an extension of files that programs write as often as people do."""
    return extension in _OUTPUTS or extension in (".yaml", ".yml", ".xml", ".html", "")


def digest_of(path: str) -> tuple[str, int]:
    """A digest of a file's content and its size; read again only if the file has changed.

    Of a file beyond the limit only the size counts.
    """
    told = os.stat(path)
    version = (told.st_mtime_ns, told.st_size, told.st_ino)
    known = _digests.get(path)
    if known is not None and known[0] == version:
        return known[1], told.st_size
    if told.st_size > MOST_BYTES_PER_FILE:
        return f"{told.st_size} bytes", told.st_size
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(MOST_BYTES_PER_FILE + 1)).hexdigest()
    if len(_digests) > 20 * MOST_FILES:
        _digests.clear()
    if is_settled(told.st_mtime_ns):
        _digests[path] = version, digest
    return digest, told.st_size


def is_settled(modified_ns: int) -> bool:
    """False for a file changed just now: a second change may leave time and size as they are."""
    return time.time_ns() - modified_ns > 2_000_000_000


def _contains(folder: str, others: tuple[str, ...]) -> bool:
    """True for a folder that holds the code itself or the working directory: all and nothing."""
    inside = folder.rstrip(os.sep) + os.sep
    return any(f"{other}{os.sep}".startswith(inside) for other in others)
