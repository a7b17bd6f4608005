"""Which code belongs to the user's project, and the files that it names.

Files are looked up within limits and digested once per version.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
import sys
import sysconfig
import time
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

_INSTALLED = ("site-packages", "dist-packages")
_ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_OWN_PACKAGE = __name__.partition(".")[0]
_OWN_FOLDER = os.path.dirname(os.path.abspath(str(sys.modules[_OWN_PACKAGE].__file__)))
MOST_FILES = 500
MOST_BYTES_PER_FILE = 10_000_000
MOST_BYTES = 50_000_000
LONGEST_NAME = 255
MOST_ENTRIES_PER_FOLDER = 5_000

_NAME = re.compile(r"[\w\-./\\ @+~:()]+")
# Prompts and configuration; other files in a folder may be output of the program.
_TEMPLATES = frozenset(
    {".txt", ".md", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".template", ".mustache", ".hbs"}
    | {".liquid", ".prompt", ".prompty", ".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".xml"}
    | {".html"}
)
# Files that a program writes while it runs.
_STATE = frozenset(
    [".db", ".sqlite", ".sqlite3", ".log", ".lock", ".pid", ".pyc", ".sock", ".tmp", ".db-wal", ".db-shm"]
)
_OUTPUTS = frozenset([".json", ".jsonl", ".csv", ".tsv", ".parquet", ".ndjson"])
_SKIPPED_FOLDERS = frozenset({".git", ".proctor", "__pycache__", "node_modules", ".venv", "venv"})
_SKIPPED_FOLDERS |= {"site-packages", "dist-packages"}
# Files that hold only a key; a new key changes no answer.
_KEY_FILE = re.compile(r"\.env(\..*)?|.*\.(pem|key|p12|pfx|jks)|id_(rsa|dsa|ecdsa|ed25519)", re.I)
_SYSTEM = ("/dev/", "/proc/", "/sys/")


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths.get(name, "") for name in ("stdlib", "platstdlib")} | {os.path.dirname(os.__file__)}
    every = {real for folder in folders if folder for real in (folder, os.path.realpath(folder))}
    return tuple(f"{folder}{os.sep}" for folder in sorted(every))


@functools.lru_cache(maxsize=10_000)
def is_project_file(filename: str) -> bool:
    """Return whether a file belongs to the project; so does code typed into a notebook or prompt."""
    if filename.startswith("<"):
        return not filename.startswith("<frozen")
    parts = filename.replace("\\", "/").split("/")
    if any(part in _INSTALLED for part in parts):
        return False
    return not filename.startswith((f"{_OWN_FOLDER}{os.sep}", *_library_folders()))


def is_own(obj: Any) -> bool:
    """Return whether a function or class belongs to Proctor."""
    module = getattr(obj, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == _OWN_PACKAGE


def is_project_function(function: FunctionType) -> bool:
    """Return whether a function belongs to the project."""
    return is_project_file(function.__code__.co_filename) and not is_own(function)


def is_project_class(cls: type) -> bool:
    """Return whether a class belongs to the project."""
    name = cls.__dict__.get("__module__")
    if not isinstance(name, str) or name == "builtins" or is_own(cls):
        return False
    if name.partition(".")[0] in sys.stdlib_module_names:
        return False
    module = sys.modules.get(name)
    if module is not None and (file := file_of(module)) is not None:
        return is_project_file(file)
    functions = (part for part in vars(cls).values() if isinstance(part, FunctionType))
    return all(is_project_file(function.__code__.co_filename) for function in functions)


def is_project_module(module: ModuleType) -> bool:
    """Return whether a module belongs to the project."""
    name = module.__name__
    if name.partition(".")[0] in (_OWN_PACKAGE, *sys.builtin_module_names):
        return False
    file = file_of(module)
    if name == "__main__":
        return file is None or is_project_file(file)
    # A namespace package has a path instead of a file.
    folders = list(getattr(module, "__path__", ())) if file is None else []
    return is_project_file(file or f"{folders[0]}{os.sep}" if file or folders else "<frozen>")


def file_of(module: ModuleType) -> str | None:
    """Return the source file of a module."""
    file = vars(module).get("__file__")
    return file if isinstance(file, str) else None


def folder_of(filename: str | None) -> str | None:
    """Return the folder of a source file; None for code without a file."""
    if not filename or filename.startswith("<"):
        return None
    return os.path.dirname(os.path.abspath(filename))


@functools.lru_cache(maxsize=1_000)
def root_of(folder: str) -> str:
    """Return the root of a folder's project: where its metadata is, or else its top-level package."""
    top = folder
    while os.path.isfile(os.path.join(top, "__init__.py")) and os.path.dirname(top) != top:
        top = os.path.dirname(top)
    root = top
    while not any(os.path.exists(os.path.join(root, marker)) for marker in _ROOT_MARKERS):
        parent = os.path.dirname(root)
        if parent == root:
            return top
        root = parent
    return root


class NamedFile(NamedTuple):
    """A file or folder that code names; `label` does not depend on the location of the project.

    `has_code` is true for a folder that contains the code itself or the working directory.
    """

    label: str
    path: str
    is_folder: bool
    has_code: bool = False


_digests: dict[str, tuple[tuple[int, int, int], str]] = {}


def find(name: str, folders: tuple[str, ...]) -> Iterator[NamedFile]:
    """Yield the file or folder that a string may name, relative to any of the folders."""
    is_name = 0 < len(name) <= LONGEST_NAME and _NAME.fullmatch(name) and name.strip()
    if not is_name or name.startswith(_SYSTEM):
        return
    absolute = os.path.isabs(name)
    for folder in ("",) if absolute else folders:
        path = os.path.normpath(os.path.join(folder, name))
        try:
            info = os.stat(path)
        except (OSError, ValueError):
            continue
        if not is_project_file(path) or _SKIPPED_FOLDERS & set(path.split(os.sep)):
            continue
        label = relative(path, folders) if absolute else name.replace("\\", "/")
        if stat.S_ISREG(info.st_mode) and os.path.splitext(path)[1].lower() not in _STATE:
            # An empty file is a marker, not a prompt.
            if info.st_size:
                yield NamedFile(label, path, is_folder=False)
            return
        if stat.S_ISDIR(info.st_mode):
            inside = path.rstrip(os.sep) + os.sep
            has_code = any(f"{other}{os.sep}".startswith(inside) for other in folders)
            yield NamedFile(label, path, is_folder=True, has_code=has_code)
            return


def relative(path: str, folders: tuple[str, ...]) -> str:
    """Return a path relative to the project that contains it."""
    for folder in folders:
        root = root_of(folder)
        if path == root or path.startswith(root.rstrip(os.sep) + os.sep):
            return os.path.relpath(path, folder).replace("\\", "/")
    return path


def is_output(path: str) -> bool:
    """Return whether a file may be output of code that writes files, by its extension."""
    return os.path.splitext(path)[1].lower() in _OUTPUTS


def is_key_file(path: str) -> bool:
    """Return whether a file holds only a key, by its name."""
    return _KEY_FILE.fullmatch(os.path.basename(path)) is not None


def is_template(path: str) -> bool:
    """Return whether a file is a prompt or configuration, by its extension."""
    return os.path.splitext(path)[1].lower() in _TEMPLATES


class Scan(NamedTuple):
    """The prompts and configuration in a folder (`direct`) and its subfolders (`below`).

    Each has a label and a path. `has_others` is true if there are other files that are not Python code;
    `complete` is false if there are too many files.
    """

    direct: list[tuple[str, str]]
    below: list[tuple[str, str]]
    has_others: bool
    complete: bool


def scan(folder: str, extension: str, *, only: bool, deep: bool = True) -> Scan:
    """List a folder and, if `deep`, its subfolders.

    Files with `extension` are included besides prompts and configuration, or exclusively with `only`.
    """
    direct: list[tuple[str, str]] = []
    below: list[tuple[str, str]] = []
    others, entries = False, 0
    for parent, folders, names in os.walk(folder):
        visible = {name for name in folders if not name.startswith(".")} - _SKIPPED_FOLDERS
        folders[:] = sorted(visible) if deep else []
        entries += len(names) + len(folders)
        if entries > MOST_ENTRIES_PER_FOLDER:
            return Scan(direct, below, others, complete=False)
        for name in sorted(names):
            if name.startswith(".") and (only or not is_template(name)):
                continue
            path = os.path.join(parent, name)
            has_extension = bool(extension) and name.lower().endswith(extension)
            if has_extension or (is_template(name) and not (only and extension)):
                label = os.path.relpath(path, folder).replace("\\", "/")
                (direct if parent == folder else below).append((label, path))
            elif not name.endswith((".py", ".pyc")) and not is_template(name):
                others = True
    return Scan(direct, below, others, complete=True)


def may_be_written(extension: str) -> bool:
    """Return whether files with an extension are often written by programs."""
    return extension in _OUTPUTS or extension in (".yaml", ".yml", ".xml", ".html", "")


def digest_of(path: str) -> tuple[str, int]:
    """Return a digest of a file's content and its size; unchanged files are not read again.

    A file beyond the limit counts by its size only.
    """
    info = os.stat(path)
    version = (info.st_mtime_ns, info.st_size, info.st_ino)
    cached = _digests.get(path)
    if cached is not None and cached[0] == version:
        return cached[1], info.st_size
    if info.st_size > MOST_BYTES_PER_FILE:
        return f"{info.st_size} bytes", info.st_size
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(MOST_BYTES_PER_FILE + 1)).hexdigest()
    if len(_digests) > 20 * MOST_FILES:
        _digests.clear()
    if is_cacheable(info.st_mtime_ns):
        _digests[path] = version, digest
    return digest, info.st_size


def is_cacheable(modified_ns: int) -> bool:
    """Return False for a file changed just now, as a second change may keep its time and size."""
    return time.time_ns() - modified_ns > 2_000_000_000
