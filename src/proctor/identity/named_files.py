"""The files that a walk comes across, gathered first and read at its end."""

from __future__ import annotations

import os
from typing import NamedTuple

from proctor.identity import files
from proctor.identity.code import CodeFacts
from proctor.identity.uncovered import Uncovered

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
    """Strings that may name files, by the scope that they were seen in."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, Scope], None] = {}
        self._facts: dict[Scope, CodeFacts] = {}

    def named(self, text: str, scope: Scope) -> str:
        """Remember a string; gives it without the place of the project, if it is a path."""
        if len(text) > files.LONGEST_NAME or "\n" in text:
            return text
        if len(self._names) < _MOST_NAMES:
            self._names[text, scope] = None
        return files.relative(text, scope.folders) if os.path.isabs(text) else text

    def add_facts(self, facts: CodeFacts, scope: Scope) -> None:
        """Remember what a function names and whether it reads and writes files."""
        for text in facts.strings:
            self.named(text, scope)
        self._facts[scope] = facts

    def digests(self, uncovered: Uncovered) -> list[tuple[str, str]]:
        """Every named file with a digest of its content, the same in every folder."""
        found: dict[str, str] = {}
        budget = _Budget()
        for text, scope in self._names:
            for file in files.find(text, scope.folders):
                self._add(file, scope, found, budget, uncovered)
        for problem in budget.problems:
            uncovered.add(problem, "")
        for scope, facts in self._facts.items():
            if facts.opens_computed and not found:
                uncovered.add("files whose names are computed", scope.name)
        return sorted(found.items())

    def _add(
        self,
        file: files.Found,
        scope: Scope,
        found: dict[str, str],
        budget: _Budget,
        uncovered: Uncovered,
    ) -> None:
        writes = any(facts.writes for facts in self._facts.values())
        if not file.is_folder:
            if writes and files.is_output(file.path):
                uncovered.add(f"the file {file.label}, which it may write", scope.name)
            else:
                budget.add(found, file.label, file.path)
        elif not writes and any(facts.reads for facts in self._facts.values()):
            for label, path in files.templates_in(file.path):
                if not budget.add(found, f"{file.label}/{label}", path):
                    break


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
