"""Results of sessions as files: each as soon as its session is scored, and a summary at the end."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proctor import codec
from proctor.naming import NamesApart
from proctor.ports import RunView
from proctor.records.report import EvalReport
from proctor.records.rubric_scores import Columns
from proctor.records.trial import EvalResult
from proctor.reports import files
from proctor.reports.figures import count
from proctor.reports.rubric_tally import Tally, from_before, with_run
from proctor.reports.rubrics import session_result

LONGEST_NAME = 100
ENDING, SUMMARY = "_result.json", "summary.json"
# Under which name of `details` a result tells the whole path of its log.
PLACE = "source_path"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Names:
    """File names made from session ids: safe everywhere, and no two alike.

    >>> names = Names()
    >>> names.of("../etc/passwd"), names.of("a b"), names.of("A_b"), names.of("")
    ('etc_passwd', 'a_b', 'A_b_2', 'session')
    >>> names.of("a b")
    'a_b'
    """

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        # To some disks capitals make no difference.
        self._apart = NamesApart("_", key=str.casefold)

    def of(self, session_id: str) -> str:
        """The name for an id, the same one every time."""
        if session_id not in self._given:
            plain = _UNSAFE.sub("_", session_id).strip("._-")
            if len(plain) > LONGEST_NAME:
                plain = f"{plain[:LONGEST_NAME]}_{codec.digest(session_id)[:8]}"
            self._given[session_id] = self._apart.of(plain or "session")
        return self._given[session_id]


class ResultFiles:
    """The files of a batch in a folder. A summary is there only when the batch is complete.

    Whoever knows the ids beforehand makes `names` of them in order: a resumed batch, which does
    the same, then finds its own files again. `begun` hears which run it is. `sessions` is where
    the sessions are from.
    """

    def __init__(
        self,
        folder: Path,
        columns: Columns,
        names: Names | None = None,
        sessions: Path | None = None,
    ) -> None:
        self._folder = folder
        self._columns = columns
        self._sessions = sessions
        self._names = names or Names()
        self._written: set[str] = set()
        self._run_id, self._resumed = "", 0
        self._before = {name: told.get("run_id") for name, told in _details_in(folder)}
        self.scored = self.failed = 0

    def begun(self, view: RunView) -> None:
        """Take note of the run whose results these are."""
        self._run_id, self._resumed = view.run_id, view.resumed

    def name(self, session_id: str) -> str:
        """The name of a session's file."""
        return self._names.of(session_id) + ENDING

    def heard(self, result: EvalResult) -> None:
        """Write what one session came to."""
        if not self._written:
            # It would be that of other results.
            (self._folder / SUMMARY).unlink(missing_ok=True)
        content = self._write(result)["summary"]
        self.scored += content["total_score"] is not None
        self.failed += content.get("rubrics_failed", 0)

    def words(self, _outcomes: Any = None) -> list[str]:
        """How the batch goes."""
        return [f"{self.scored} scored", f"{count(self.failed, 'rubric')} failed"]

    def finish(self, report: EvalReport) -> dict[str, Any]:
        """Write what is not written yet, and the summary, which is given back."""
        tally = Tally(self._columns)
        others: dict[str, str] = {}
        for result in report.results:
            tally.add(result)
            name = self.name(result.sample_id)
            if name not in self._written:
                self._write(result)
            if name != result.sample_id + ENDING:
                others[result.sample_id] = name
        summary = with_run(tally.summary(), report)
        if self._resumed:
            summary["details"] |= from_before(summary["details"], self._resumed)
        if others:
            # Whoever looks for a session finds its file.
            summary["details"]["file_names"] = others
        write_json(self._folder / SUMMARY, summary)
        return summary

    def strangers(self) -> list[str]:
        """Result files in the folder that are not of this batch."""
        found = (path.name for path in self._folder.glob(f"*{ENDING}"))
        return sorted(name for name in found if name not in self._written)

    def replaced(self) -> list[str]:
        """The other runs whose results in the folder were written over."""
        runs = {run_id for name, run_id in self._before.items() if name in self._written}
        return sorted(str(run_id) for run_id in runs if run_id and run_id != self._run_id)

    def __len__(self) -> int:
        return len(self._written)

    def _write(self, result: EvalResult) -> dict[str, Any]:
        name, content = self.name(result.sample_id), session_result(result, self._columns)
        if self._sessions is not None:
            content = placed(content, self._sessions)
        if self._run_id:
            content["details"] = {"run_id": self._run_id, **content["details"]}
        write_json(self._folder / name, content)
        self._written.add(name)
        return content


def other_sessions_in(folder: Path, sessions: Path) -> str:
    """A result in a folder that is of sessions from elsewhere; nothing if there is none."""
    for name, told in _details_in(folder):
        source = told.get("source")
        if isinstance(source, str):
            whole = told.get(PLACE)
            # Another program's result may have none.
            whole = whole if isinstance(whole, str) else source
            if not is_of(whole, sessions):
                return f"{name} of {source if os.path.realpath(source) == whole else whole}"
    return ""


def placed(content: dict[str, Any], sessions: Path) -> dict[str, Any]:
    """A result that tells its log's whole path, by which it is known from wherever it is seen."""
    details = content["details"]
    source = details.get("source")
    if source is None:
        return content
    # What an earlier sitting stored is told as it was seen from where that was started.
    whole = os.path.realpath(source if is_of(source, sessions) else sessions)
    return {**content, "details": {"source": source, PLACE: whole, **details}}


def is_of(source: str, sessions: Path) -> bool:
    """True if a log is a file of sessions, or one in their folder, with or without its line."""
    whole, own = os.path.realpath(source), os.path.realpath(sessions)
    return whole == own or whole.startswith((own.rstrip(os.sep) + os.sep, f"{own}:"))


def _details_in(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the results in a folder say of where they are from, as far as they can be read."""
    for path in sorted(folder.glob(f"*{ENDING}")):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            content = json.loads(path.read_bytes())
            told = content.get("details") if isinstance(content, dict) else None
            if isinstance(told, dict):
                yield path.name, told


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people; whole or not at all."""
    files.write(path, [codec.encode_pretty(content), b"\n"])
