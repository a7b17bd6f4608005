"""The files that a walk comes across, gathered first and read at its end."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from proctor.core.identity import files
from proctor.core.identity.code import CodeFacts
from proctor.core.identity.locations import ANYWHERE, Location, Names, locations_of
from proctor.core.identity.project import Uncovered, is_project_file
from proctor.core.identity.special_functions import FILES

_MOST_NAMES = 5_000


class Scope(NamedTuple):
    """Where in the project the walk is: the name of a function or class, and its file's folder."""

    name: str
    folder: str | None

    @property
    def folders(self) -> tuple[str, ...]:
        """Where a relative name may be meant to lie: beside the code, or where the program runs."""
        here = os.getcwd()
        return (here,) if self.folder in (None, here) else (self.folder or "", here)


class NamedFiles:
    """Strings that may name files, and calls that use files, by the scope they were seen in."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, Scope], None] = {}
        self._facts: dict[Scope, CodeFacts] = {}
        self._reads: dict[tuple[Location, Scope], None] = {}
        self._writes: dict[tuple[Location, Scope], None] = {}

    def named(self, text: str, scope: Scope) -> str:
        """Remember a string; gives it without the place of the project, if it is a path."""
        if len(text) > files.LONGEST_NAME or "\n" in text:
            return text
        if len(self._names) < _MOST_NAMES:
            self._names[text, scope] = None
        return files.relative(text, scope.folders) if os.path.isabs(text) else text

    def add_facts(self, facts: CodeFacts, scope: Scope, names: Names) -> None:
        """Remember what a function names and which files it reads and writes."""
        for text in facts.strings:
            self.named(text, scope)
        self._facts[scope] = facts
        found = [
            (call.writes, location) for call in facts.file_calls for location in locations_of(call, names)
        ]
        for is_write, location in found:
            (self._writes if is_write else self._reads)[location, scope] = None
        if facts.writes and not any(is_write for is_write, _ in found):
            self._writes[ANYWHERE, scope] = None

    def add_reads(self, locations: Iterable[Location], scope: Scope) -> None:
        """Remember files that a function reaches by other ways than opening them."""
        for location in locations:
            self._reads[location, scope] = None

    def digests(self, uncovered: Uncovered) -> list[tuple[str, str]]:
        """Every named file with a digest of its content, the same in every folder."""
        gathering = _Gathering(uncovered, list(self._writes))
        reads = any(facts.reads for facts in self._facts.values())
        for text, scope in self._names:
            # Dots and slashes alone are hardly ever meant as folders.
            found = files.find(text, scope.folders) if text.strip("./\\ ") else ()
            for file in found:
                mine = self._facts.get(scope)
                if not file.is_folder:
                    gathering.add_file(file, scope)
                elif (mine is not None and mine.lists) if file.has_code else reads:
                    gathering.add_folder(file, scope)
        for location, scope in self._reads:
            gathering.add_read(location, scope)
        return gathering.result()


class _Gathering:
    """The files that are digested, gathered from names and calls."""

    def __init__(self, uncovered: Uncovered, writes: list[tuple[Location, Scope]]) -> None:
        self._uncovered = uncovered
        self._found: dict[str, str] = {}
        self._budget = _Budget()
        self._written: set[str] = set()
        self._written_folders: set[str] = set()
        for location, scope in writes:
            places = self._written if location.complete else self._written_folders
            path = location.start if location.complete else location.folder
            places.update(
                os.path.normpath(os.path.join(folder, path)) if path else "" for folder in scope.folders
            )

    def result(self) -> list[tuple[str, str]]:
        for problem in self._budget.problems:
            self._uncovered.add(problem, "")
        return sorted(self._found.items())

    def add_file(self, file: files.Found, scope: Scope) -> bool:
        """Digest a file unless the code writes it; False if there is no room for any more."""
        written = self._written | self._written_folders
        if files.is_key_file(file.path):
            self._uncovered.add(f"the key file {file.label}, which is not read", scope.name)
        elif file.path in self._written or (written and files.is_output(file.path)):
            self._uncovered.add(f"the file {file.label}, which it may write", scope.name)
        else:
            return self._budget.add(self._found, file.label, file.path)
        return True

    def add_folder(self, folder: files.Found, scope: Scope) -> None:
        """Digest the prompts and configuration in a folder, unless the code may write there."""
        scan = files.scan(folder.path, "", only=folder.has_code, deep=not folder.has_code)
        self._add_all(folder, scan.direct if folder.has_code else scan.direct + scan.below, scope)
        self._add_problems(scan)

    def _add_all(self, folder: files.Found, found: list[tuple[str, str]], scope: Scope) -> None:
        if self._may_write_in(folder.path):
            self._uncovered.add(f"the folder {folder.label}, which it may write to", scope.name)
            return
        for label, path in found:
            file = files.Found(f"{folder.label}/{label}", path, is_folder=False)
            if not self.add_file(file, scope):
                break

    def _add_problems(self, scan: files.Scan) -> None:
        if not scan.complete:
            self._budget.problems["more files than are looked at"] = None

    def add_read(self, location: Location, scope: Scope) -> None:
        """A file that a call reads: its folder's files, if its name is computed."""
        if location.complete:
            self._add_named(location, scope)
            return
        place = location.folder
        found = list(files.find(place, scope.folders)) if place else []
        for folder in found:
            if folder.is_folder and self._is_covered(folder, location, scope):
                return
        if os.path.isabs(place) and os.path.isdir(place) and not is_project_file(f"{place}/"):
            # Data of an installed package.
            return
        self._uncovered.add(FILES, scope.name)

    def _add_named(self, location: Location, scope: Scope) -> None:
        for file in files.find(location.start, scope.folders):
            if not file.is_folder:
                self.add_file(file, scope)
                return
        is_file = os.path.isfile(location.start) and os.path.getsize(location.start)
        if is_file and is_project_file(location.start):
            label = files.relative(location.start, scope.folders)
            self._uncovered.add(f"the file {label}", scope.name)

    def _is_covered(self, folder: files.Found, location: Location, scope: Scope) -> bool:
        """Digest the files of a folder that a computed name may mean; False if there are others."""
        extension = os.path.splitext(f"-{location.end}")[1].lower()
        deep = not folder.has_code or location.recursive is not False
        scan = files.scan(folder.path, extension, only=folder.has_code, deep=deep)
        self._add_problems(scan)
        found, covered = scan.direct, bool(extension) or not scan.has_others
        if not folder.has_code or location.recursive:
            found = found + scan.below
        elif location.recursive is None and scan.below:
            # The name may hold a folder: prompts below the code count, data is named.
            if files.may_be_written(extension):
                covered = False
            else:
                found = found + scan.below
        self._add_all(folder, found, scope)
        return covered and extension != ".py"

    def _may_write_in(self, folder: str) -> bool:
        inside = folder.rstrip(os.sep) + os.sep
        return any(place == "" or f"{place}{os.sep}".startswith(inside) for place in self._written_folders)


class _Budget:
    """How many files are read, and how much of them."""

    def __init__(self) -> None:
        self._files = files.MOST_FILES
        self._bytes = files.MOST_BYTES
        self.problems: dict[str, None] = {}

    def add(self, found: dict[str, str], label: str, path: str) -> bool:
        """Digest one file; False if there is no room for any more."""
        if label in found:
            return True
        if self._files <= 0 or self._bytes <= 0:
            self.problems["more files than are looked at"] = None
            return False
        try:
            digest, size = files.digest_of(path)
        except OSError:
            self.problems[f"the file {label}, which cannot be read"] = None
            return True
        if size > files.MOST_BYTES_PER_FILE:
            self.problems[f"the content of the file {label}, which is too large"] = None
        else:
            self._bytes -= size
        self._files -= 1
        found[label] = digest
        return True
