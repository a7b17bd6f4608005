"""The files that a walk encounters, collected first and read at its end."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from proctor.core.identity import project
from proctor.core.identity.code import COMPUTED, CodeFacts
from proctor.core.identity.locations import ANYWHERE, Location, Names, locations_of
from proctor.core.identity.project import is_project_file
from proctor.core.identity.special_functions import FILES

_MOST_NAMES = 5_000
TOO_MANY_FILES = "more files than are looked at"


class Scope(NamedTuple):
    """The position of the walk: the name of a function or class, and the folder of its file."""

    name: str
    folder: str | None

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that a relative path may start from: that of the code, and the working directory."""
        current = os.getcwd()
        return (current,) if self.folder in (None, current) else (self.folder or "", current)


class Uncovered:
    """Phrases for what an identity does not cover, each with the functions that use it."""

    def __init__(self) -> None:
        self._functions: dict[str, set[str]] = {}

    def add(self, phrase: str, function: str) -> None:
        """Record a phrase and the function that it applies to."""
        self._functions.setdefault(phrase, set()).add(function)

    def add_facts(self, facts: CodeFacts, function: str) -> None:
        """Record the environment variables and programs that a function uses."""
        for name in facts.environment:
            phrase = "environment variables whose names are computed"
            self.add(phrase if name == COMPUTED else f"the environment variable {name}", function)
        for phrase in facts.dynamic:
            self.add(phrase, function)

    def phrases(self) -> tuple[str, ...]:
        """Return the sorted phrases, each with its functions."""
        return tuple(
            f"{phrase} (in {', '.join(sorted(named))})" if (named := functions - {""}) else phrase
            for phrase, functions in sorted(self._functions.items())
        )


class NamedFiles:
    """Strings that may name files, and calls that use files, with their scopes."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, Scope], None] = {}
        self._facts: dict[Scope, CodeFacts] = {}
        self._reads: dict[tuple[Location, Scope], None] = {}
        self._writes: dict[tuple[Location, Scope], None] = {}

    def add_name(self, text: str, scope: Scope) -> str:
        """Record a string and return it; an absolute path becomes relative to the project."""
        if len(text) > project.LONGEST_NAME or "\n" in text:
            return text
        if len(self._names) < _MOST_NAMES:
            self._names[text, scope] = None
        return project.relative(text, scope.folders) if os.path.isabs(text) else text

    def add_facts(self, facts: CodeFacts, scope: Scope, names: Names) -> None:
        """Record the strings of a function and the files that it reads and writes."""
        for text in facts.strings:
            self.add_name(text, scope)
        self._facts[scope] = facts
        has_write = False
        for call in facts.file_calls:
            for location in locations_of(call, names):
                (self._writes if call.writes else self._reads)[location, scope] = None
                has_write |= call.writes
        if facts.writes and not has_write:
            self._writes[ANYWHERE, scope] = None

    def add_reads(self, locations: Iterable[Location], scope: Scope) -> None:
        """Record files that a function reads without opening them by name."""
        for location in locations:
            self._reads[location, scope] = None

    def digests(self, uncovered: Uncovered) -> list[tuple[str, str]]:
        """Return the label and the digest of every named file."""
        collector = _FileCollector(uncovered, list(self._writes))
        reads = any(facts.reads for facts in self._facts.values())
        for text, scope in self._names:
            # A string of dots and slashes is hardly ever a folder name.
            for file in project.find(text, scope.folders) if text.strip("./\\ ") else ():
                facts = self._facts.get(scope)
                if not file.is_folder:
                    collector.add_file(file, scope)
                elif (facts is not None and facts.lists) if file.has_code else reads:
                    collector.add_folder(file, scope)
        for location, scope in self._reads:
            collector.add_read(location, scope)
        return collector.result()


class _FileCollector:
    """Digests the files that names and calls refer to, within the limits."""

    def __init__(self, uncovered: Uncovered, writes: list[tuple[Location, Scope]]) -> None:
        self._uncovered = uncovered
        self._digests: dict[str, str] = {}
        self._files_left = project.MOST_FILES
        self._bytes_left = project.MOST_BYTES
        self._problems: dict[str, None] = {}
        self._output_files: set[str] = set()
        self._output_folders: set[str] = set()
        for location, scope in writes:
            paths = self._output_files if location.complete else self._output_folders
            path = location.start if location.complete else location.folder
            paths.update(os.path.normpath(os.path.join(folder, path)) if path else "" for folder in scope.folders)

    def result(self) -> list[tuple[str, str]]:
        for problem in self._problems:
            self._uncovered.add(problem, "")
        return sorted(self._digests.items())

    def add_file(self, file: project.NamedFile, scope: Scope) -> bool:
        """Digest a file unless the code writes it; return False if the limits are reached."""
        writes = bool(self._output_files or self._output_folders)
        if project.is_key_file(file.path):
            self._uncovered.add(f"the key file {file.label}, which is not read", scope.name)
        elif file.path in self._output_files or (writes and project.is_output(file.path)):
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
            digest, size = project.digest_of(path)
        except OSError:
            self._problems[f"the file {label}, which cannot be read"] = None
            return True
        if size > project.MOST_BYTES_PER_FILE:
            self._problems[f"the content of the file {label}, which is too large"] = None
        else:
            self._bytes_left -= size
        self._files_left -= 1
        self._digests[label] = digest
        return True

    def add_folder(self, folder: project.NamedFile, scope: Scope) -> None:
        """Digest the prompts and configuration in a folder unless the code may write there."""
        scan = project.scan(folder.path, "", only=folder.has_code, deep=not folder.has_code)
        self._add_all(folder, scan.direct if folder.has_code else scan.direct + scan.below, scope)
        self._check_complete(scan)

    def _add_all(self, folder: project.NamedFile, labelled_paths: list[tuple[str, str]], scope: Scope) -> None:
        if self._may_write_in(folder.path):
            self._uncovered.add(f"the folder {folder.label}, which it may write to", scope.name)
            return
        for label, path in labelled_paths:
            file = project.NamedFile(f"{folder.label}/{label}", path, is_folder=False)
            if not self.add_file(file, scope):
                break

    def _check_complete(self, scan: project.Scan) -> None:
        if not scan.complete:
            self._problems[TOO_MANY_FILES] = None

    def add_read(self, location: Location, scope: Scope) -> None:
        """Digest a file that a call reads, or the files of its folder if its name is computed."""
        if location.complete:
            self._add_named(location, scope)
            return
        path = location.folder
        for folder in list(project.find(path, scope.folders)) if path else ():
            if folder.is_folder and self._is_covered(folder, location, scope):
                return
        is_package_data = os.path.isabs(path) and os.path.isdir(path) and not is_project_file(f"{path}/")
        if not is_package_data:
            self._uncovered.add(FILES, scope.name)

    def _add_named(self, location: Location, scope: Scope) -> None:
        for file in project.find(location.start, scope.folders):
            if not file.is_folder:
                self.add_file(file, scope)
                return
        is_file = os.path.isfile(location.start) and os.path.getsize(location.start)
        if is_file and is_project_file(location.start):
            label = project.relative(location.start, scope.folders)
            self._uncovered.add(f"the file {label}", scope.name)

    def _is_covered(self, folder: project.NamedFile, location: Location, scope: Scope) -> bool:
        """Digest the files of a folder that a computed name may mean; return False if it has others."""
        extension = os.path.splitext(f"-{location.end}")[1].lower()
        deep = not folder.has_code or location.recursive is not False
        scan = project.scan(folder.path, extension, only=folder.has_code, deep=deep)
        self._check_complete(scan)
        labelled_paths, covered = scan.direct, bool(extension) or not scan.has_others
        if not folder.has_code or location.recursive:
            labelled_paths = labelled_paths + scan.below
        elif location.recursive is None and scan.below:
            # The name may contain a folder: prompts below the code count, data files may be output.
            if project.may_be_written(extension):
                covered = False
            else:
                labelled_paths = labelled_paths + scan.below
        self._add_all(folder, labelled_paths, scope)
        return covered and extension != ".py"

    def _may_write_in(self, folder: str) -> bool:
        inside = folder.rstrip(os.sep) + os.sep
        return any(path == "" or f"{path}{os.sep}".startswith(inside) for path in self._output_folders)
