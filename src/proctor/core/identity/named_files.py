"""Files that code names: collected during the walk, then located and digested within limits."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proctor.core.identity.code import DYNAMIC_NAME, CodeFacts
from proctor.core.identity.contents import is_cacheable, is_project_file
from proctor.core.identity.file_calls import FileCall, is_write_mode
from proctor.core.identity.locations import ANYWHERE, Location, Names, resolve_locations, resolve_string, resolve_text
from proctor.core.identity.special_functions import FILES

_MAX_NAMES = 5_000
_ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
TOO_MANY_FILES = "files beyond the size limit"
MAX_FILES = 500
MAX_BYTES_PER_FILE = 10_000_000
MAX_BYTES = 50_000_000
MAX_NAME_LENGTH = 255
MAX_ENTRIES_PER_FOLDER = 5_000

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
# Files that hold only a key; rotating a key does not change the behavior.
_KEY_FILE = re.compile(r"\.env(\..*)?|.*\.(pem|key|p12|pfx|jks)|id_(rsa|dsa|ecdsa|ed25519)", re.I)
_SYSTEM = ("/dev/", "/proc/", "/sys/")
# A folder for files, although it is below /dev.
_SHARED_MEMORY = "/dev/shm/"


class Scope(NamedTuple):
    """The position of the walk: the name of a function or class, and the folder of its file."""

    name: str
    folder: str | None

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that a relative path may start from: the folder of the code, and the working directory."""
        current = os.getcwd()
        return (current,) if self.folder in (None, current) else (self.folder or "", current)


class Uncovered:
    """Phrases for the things that an identity does not cover, each with the functions that use them."""

    def __init__(self) -> None:
        self._functions: dict[str, set[str]] = {}

    def add(self, phrase: str, function: str) -> None:
        """Record a phrase and the function that it applies to."""
        self._functions.setdefault(phrase, set()).add(function)

    def add_facts(self, facts: CodeFacts, function: str) -> None:
        """Record the environment variables and programs that a function uses."""
        for name in facts.environment:
            phrase = "environment variables whose names are computed"
            self.add(phrase if name == DYNAMIC_NAME else f"the environment variable {name}", function)
        for phrase in facts.dynamic_features:
            self.add(phrase, function)

    def phrases(self) -> tuple[str, ...]:
        """Return the sorted phrases, each with its functions."""
        return tuple(
            f"{phrase} (in {', '.join(sorted(function_names))})" if (function_names := functions - {""}) else phrase
            for phrase, functions in sorted(self._functions.items())
        )


class NamedFiles:
    """Strings that may name files, and calls that use files, with their scopes."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, Scope], None] = {}
        self._facts: dict[Scope, CodeFacts] = {}
        self._reads: dict[tuple[Location, Scope], None] = {}
        self._writes: dict[tuple[Location, Scope], None] = {}

    def add_name(self, name: str, scope: Scope) -> str:
        """Record a string and return it; an absolute path becomes relative to the project."""
        if len(name) > MAX_NAME_LENGTH or "\n" in name:
            return name
        if len(self._names) < _MAX_NAMES:
            self._names[name, scope] = None
        return make_relative(name, scope.folders) if os.path.isabs(name) else name

    def add_facts(self, facts: CodeFacts, scope: Scope, names: Names) -> None:
        """Record the strings of a function and the files that it reads and writes."""
        for text in facts.strings:
            self.add_name(text, scope)
        self._facts[scope] = facts
        has_write = False
        for call in facts.file_calls:
            writes = _may_write(call, names)
            for location in resolve_locations(call, names):
                (self._writes if writes else self._reads)[location, scope] = None
                has_write |= writes
        if facts.writes and not has_write:
            self._writes[ANYWHERE, scope] = None

    def add_locations(self, reads: Iterable[Location], writes: Iterable[Location], scope: Scope) -> None:
        """Record files that a function reads or writes without opening them by name."""
        self._reads |= dict.fromkeys((location, scope) for location in reads)
        self._writes |= dict.fromkeys((location, scope) for location in writes)

    def digests(self, uncovered: Uncovered) -> list[tuple[str, str]]:
        """Return the label and the digest of every named file."""
        collector = _FileCollector(uncovered, list(self._writes), list(self._reads))
        reads = any(facts.reads for facts in self._facts.values())
        for text, scope in self._names:
            # A string of dots and slashes is hardly ever a folder name.
            for file in find_files(text, scope.folders) if text.strip("./\\ ") else ():
                facts = self._facts.get(scope)
                if not file.is_folder:
                    collector.add_file(file, scope)
                elif (facts is not None and facts.lists_folders) if file.has_code else reads:
                    collector.add_folder(file, scope)
        for location, scope in self._reads:
            collector.add_read(location, scope)
        return collector.result()


def _may_write(call: FileCall, names: Names) -> bool:
    """Return whether a call may write its file.

    A variable mode may be any string that is assigned to it, or its default as a parameter; an unknown mode reads.
    """
    if call.mode is None or (call.mode is call.first and resolve_text(call.path, names) is None):
        return call.writes
    mode = resolve_string(call.mode, names)
    if mode is not None:
        return is_write_mode(mode)
    default = names.defaults.get(str(call.mode.value)) if call.mode.kind == "local" else None
    values = {*call.mode_values, default} if type(default) is str else call.mode_values
    return any(map(is_write_mode, values))


class _FileCollector:
    """Digests the files that names and calls refer to, within the limits."""

    def __init__(
        self, uncovered: Uncovered, writes: list[tuple[Location, Scope]], reads: list[tuple[Location, Scope]]
    ) -> None:
        self._uncovered = uncovered
        self._digests: dict[str, str] = {}
        self._files_left = MAX_FILES
        self._bytes_left = MAX_BYTES
        self._problems: dict[str, None] = {}
        self._output_files: set[str] = set()
        self._output_folders: set[str] = set()
        self._input_files = {
            os.path.normpath(os.path.join(folder, location.start))
            for location, scope in reads
            if location.complete
            for folder in scope.folders
        }
        for location, scope in writes:
            paths = self._output_files if location.complete else self._output_folders
            path = location.start if location.complete else location.folder
            paths.update(os.path.normpath(os.path.join(folder, path)) if path else "" for folder in scope.folders)

    def result(self) -> list[tuple[str, str]]:
        for problem in self._problems:
            self._uncovered.add(problem, "")
        return sorted(self._digests.items())

    def add_file(self, file: NamedFile, scope: Scope) -> bool:
        """Digest a file unless the code writes it; return False if the limits are reached."""
        # Where the name of a written file is not known, it may be any data file that no call only reads.
        may_be_output = self._output_folders and is_output(file.path) and file.path not in self._input_files
        if is_key_file(file.path):
            self._uncovered.add(f"the key file {file.label}, which is not read", scope.name)
        elif file.path in self._output_files or may_be_output:
            self._uncovered.add(f"the file {file.label}, which it may write", scope.name)
        else:
            return self._digest(file.label, file.path)
        return True

    def _digest(self, label: str, path: str) -> bool:
        if label in self._digests:
            return True
        if self._files_left <= 0 or self._bytes_left <= 0:
            self._problems[TOO_MANY_FILES] = None
            return False
        try:
            digest, size = digest_file(path)
        except OSError:
            self._problems[f"the file {label}, which cannot be read"] = None
            return True
        if size > MAX_BYTES_PER_FILE:
            self._problems[f"the content of the file {label}, which is too large"] = None
        else:
            self._bytes_left -= size
        self._files_left -= 1
        self._digests[label] = digest
        return True

    def add_folder(self, folder: NamedFile, scope: Scope) -> None:
        """Digest the prompts and configuration in a folder unless the code may write there."""
        scan = scan_folder(folder.path, "", only=folder.has_code, deep=not folder.has_code)
        self._add_all(folder, scan.direct if folder.has_code else scan.direct + scan.nested, scope)
        self._check_complete(scan)

    def _add_all(self, folder: NamedFile, labeled_paths: list[tuple[str, str]], scope: Scope) -> None:
        if self._may_write_in(folder.path):
            self._uncovered.add(f"the folder {folder.label}, which it may write to", scope.name)
            return
        for label, path in labeled_paths:
            file = NamedFile(f"{folder.label}/{label}", path, is_folder=False)
            if not self.add_file(file, scope):
                break

    def _check_complete(self, scan: Scan) -> None:
        if not scan.complete:
            self._problems[TOO_MANY_FILES] = None

    def add_read(self, location: Location, scope: Scope) -> None:
        """Digest a file that a call reads, or the files of its folder if its name is computed."""
        if location.complete:
            self._add_named(location, scope)
            return
        path = location.folder
        for folder in list(find_files(path, scope.folders)) if path else ():
            if folder.is_folder and self._is_covered(folder, location, scope):
                return
        is_package_data = os.path.isabs(path) and os.path.isdir(path) and not is_project_file(f"{path}/")
        if not is_package_data:
            self._uncovered.add(FILES, scope.name)

    def _add_named(self, location: Location, scope: Scope) -> None:
        for file in find_files(location.start, scope.folders):
            if not file.is_folder:
                self.add_file(file, scope)
                return
        path = expand_name(location.start) if is_expandable(location.start) else location.start
        is_file = os.path.isfile(path) and os.path.getsize(path)
        if (is_file and is_project_file(path)) or is_expandable(path):
            label = make_relative(location.start, scope.folders)
            self._uncovered.add(f"the file {label}", scope.name)

    def _is_covered(self, folder: NamedFile, location: Location, scope: Scope) -> bool:
        """Digest the files of a folder that a computed name may refer to; return False if it has other files."""
        extension = os.path.splitext(f"-{location.end}")[1].lower()
        deep = not folder.has_code or location.recursive is not False
        scan = scan_folder(folder.path, extension, only=folder.has_code, deep=deep)
        self._check_complete(scan)
        labeled_paths, covered = scan.direct, bool(extension) or not scan.has_others
        if not folder.has_code or location.recursive:
            labeled_paths = labeled_paths + scan.nested
        elif location.recursive is None and scan.nested:
            # The name may contain a folder. Prompts below the code count; data files may be output.
            if may_be_written(extension):
                covered = False
            else:
                labeled_paths = labeled_paths + scan.nested
        self._add_all(folder, labeled_paths, scope)
        return covered and extension != ".py"

    def _may_write_in(self, folder: str) -> bool:
        folder_prefix = folder.rstrip(os.sep) + os.sep
        return any(path == "" or f"{path}{os.sep}".startswith(folder_prefix) for path in self._output_folders)


@functools.lru_cache(maxsize=1_000)
def find_root(folder: str) -> str:
    """Return the root of a folder's project: the folder with its metadata, or its top-level package."""
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


def find_files(name: str, folders: tuple[str, ...]) -> Iterator[NamedFile]:
    """Yield the file or folder that a string may name, relative to any of the folders.

    A name with "~" or a variable names a file only: the home folder itself is no part of a program.
    """
    if is_expandable(name):
        path = expand_name(name)
        files = find_files(path, folders) if path != name and not is_expandable(path) else ()
        yield from (file._replace(label=name) for file in files if not file.is_folder)
        return
    is_name = 0 < len(name) <= MAX_NAME_LENGTH and _NAME.fullmatch(name) and name.strip()
    if not is_name or (name.startswith(_SYSTEM) and not name.startswith(_SHARED_MEMORY)):
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
        label = make_relative(path, folders) if absolute else name.replace("\\", "/")
        if stat.S_ISREG(info.st_mode) and os.path.splitext(path)[1].lower() not in _STATE:
            # An empty file is a marker, not a prompt.
            if info.st_size:
                yield NamedFile(label, path, is_folder=False)
            return
        if stat.S_ISDIR(info.st_mode):
            folder_prefix = path.rstrip(os.sep) + os.sep
            has_code = any(f"{other}{os.sep}".startswith(folder_prefix) for other in folders)
            yield NamedFile(label, path, is_folder=True, has_code=has_code)
            return


def is_expandable(name: str) -> bool:
    """Return whether `expanduser` or `expandvars` may change a name."""
    return name.startswith("~") or "$" in name


def expand_name(name: str) -> str:
    return os.path.expanduser(os.path.expandvars(name))


def make_relative(path: str, folders: tuple[str, ...]) -> str:
    """Return a path relative to the project that contains it."""
    for folder in folders:
        root = find_root(folder)
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
    """The prompts and configuration in a folder (`direct`) and its subfolders (`nested`).

    Each has a label and a path. `has_others` is true if there are other files that are not Python code;
    `complete` is false if there are too many files.
    """

    direct: list[tuple[str, str]]
    nested: list[tuple[str, str]]
    has_others: bool
    complete: bool


def scan_folder(folder: str, extension: str, *, only: bool, deep: bool = True) -> Scan:
    """List a folder and, if `deep`, its subfolders.

    Files with `extension` are included besides prompts and configuration, or exclusively with `only`.
    """
    direct: list[tuple[str, str]] = []
    nested: list[tuple[str, str]] = []
    others, entries = False, 0
    for parent, folders, names in os.walk(folder):
        visible = {name for name in folders if not name.startswith(".")} - _SKIPPED_FOLDERS
        folders[:] = sorted(visible) if deep else []
        entries += len(names) + len(folders)
        if entries > MAX_ENTRIES_PER_FOLDER:
            return Scan(direct, nested, others, complete=False)
        for name in sorted(names):
            if name.startswith(".") and (only or not is_template(name)):
                continue
            path = os.path.join(parent, name)
            has_extension = bool(extension) and name.lower().endswith(extension)
            if has_extension or (is_template(name) and not (only and extension)):
                label = os.path.relpath(path, folder).replace("\\", "/")
                (direct if parent == folder else nested).append((label, path))
            elif not name.endswith((".py", ".pyc")) and not is_template(name):
                others = True
    return Scan(direct, nested, others, complete=True)


def may_be_written(extension: str) -> bool:
    """Return whether files with an extension are often written by programs."""
    return extension in _OUTPUTS or extension in (".yaml", ".yml", ".xml", ".html", "")


def digest_file(path: str) -> tuple[str, int]:
    """Return a digest of a file's content and its size; unchanged files are not read again.

    Only the size of a file beyond the limit is digested.
    """
    info = os.stat(path)
    version = (info.st_mtime_ns, info.st_size, info.st_ino)
    cached = _digests.get(path)
    if cached is not None and cached[0] == version:
        return cached[1], info.st_size
    if info.st_size > MAX_BYTES_PER_FILE:
        return f"{info.st_size} bytes", info.st_size
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(MAX_BYTES_PER_FILE + 1)).hexdigest()
    if len(_digests) > 20 * MAX_FILES:
        _digests.clear()
    if is_cacheable(info.st_mtime_ns):
        _digests[path] = version, digest
    return digest, info.st_size
