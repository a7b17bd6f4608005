"""`proctor run --watch`: run again when the eval file, the dataset, or a file that the target reaches changes.

Each run is a process of its own, so that changed modules are imported again. It reports which files it has read: an
audit hook sees every file that is opened, also those that only the identity of the target reads.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.cli import options as cli
from proctor.cli.evaluation import DEFAULT_FILE, WATCH_VARIABLE
from proctor.errors import ConfigError, ProctorError
from proctor.records.formatting import format_count

POLL_SECONDS = 0.4
SAMPLES_NAMED = 5
# Files in such folders are not sources of an evaluation.
IGNORED_FOLDERS = frozenset({".proctor", ".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages"})
# Options that make no sense for a run that is repeated.
REJECTED = ("resume", "workers", "cluster")


class WatchReport(msgspec.Struct, frozen=True):
    """The report of a run to the process that watches it: its id and the files that it has read."""

    run_id: str = ""
    files: list[str] = []


class FileState(NamedTuple):
    """The state of a file; the digest is compared only if the time or the size has changed."""

    modified_ns: int
    size: int
    digest: bytes


class FileRecorder:
    """Records the files that this process reads in this folder and in the folder of the eval file, from now on."""

    def __init__(self, file: Path | None) -> None:
        folders = {Path.cwd(), (file or DEFAULT_FILE).absolute().parent}
        self._folders = tuple(str(folder.resolve()) + os.sep for folder in folders)
        self._files: set[str] = set()
        self.run_id = ""
        sys.addaudithook(self._on_event)

    def write_report(self) -> None:
        """Write the report for the watching process."""
        for module in list(sys.modules.values()):
            if isinstance(file := getattr(module, "__file__", None), str):
                self._add(file)
        report = WatchReport(self.run_id, sorted(self._files.copy()))
        Path(os.environ[WATCH_VARIABLE]).write_bytes(msgspec.json.encode(report))

    def _on_event(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str) and not _is_write(args[1], args[2]):
            self._add(args[0])

    def _add(self, name: str) -> None:
        path = Path(name).resolve()
        # Adding to a set is atomic; a lock could be taken twice by one thread, because any code may open a file.
        if str(path).startswith(self._folders) and not IGNORED_FOLDERS & set(path.parts):
            self._files.add(str(path))


def _is_write(mode: Any, flags: Any) -> bool:
    if isinstance(mode, str) and set(mode) & set("wax+"):
        return True
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def watch_files(arguments: Sequence[str], file: Path | None, options: Mapping[str, Any]) -> int:
    """Run, wait for a change, and run again, until Ctrl-C; return the exit code of the last run."""
    for name in REJECTED:
        if options.get(name):
            raise ConfigError(f"--watch cannot be combined with --{name}", fix=f"leave out --{name}")
    history = options["history"]
    files = {str((file or DEFAULT_FILE).resolve())}
    last_run = ""
    code = 0
    try:
        while True:
            code, report = run_once(arguments)
            files |= set(report.files)
            if report.run_id:
                if last_run:
                    cli.echo_stderr(describe_difference(report.run_id, last_run, history), is_problem=False)
                last_run = report.run_id
            states = read_states(files)
            cli.echo_stderr(f"watching {format_count(len(states), 'file')}; press Ctrl-C to stop", is_problem=False)
            changed = wait_for_change(states)
            cli.echo_stderr(f"\nchanged: {', '.join(os.path.relpath(path) for path in changed)}", is_problem=False)
    except KeyboardInterrupt:
        return code


def run_once(arguments: Sequence[str]) -> tuple[int, WatchReport]:
    """Run the command in a process of its own; return its exit code and its report."""
    descriptor, name = tempfile.mkstemp(prefix="proctor-watch-")
    os.close(descriptor)
    try:
        command = [sys.executable, "-m", "proctor", "run", *(word for word in arguments if word != "--watch")]
        process = subprocess.Popen(command, env={**os.environ, WATCH_VARIABLE: name})
        try:
            code = process.wait()
        except KeyboardInterrupt:
            # The terminal interrupts both processes; the run stores its finished results first.
            process.wait()
            raise
        data = Path(name).read_bytes()
        return code, msgspec.json.decode(data, type=WatchReport) if data else WatchReport()
    finally:
        Path(name).unlink(missing_ok=True)


def read_states(files: Iterable[str]) -> dict[str, FileState | None]:
    """Return the state of each file; None if it does not exist."""
    return {file: _read_state(file, None) for file in sorted(files)}


def wait_for_change(states: Mapping[str, FileState | None], sleep: Callable[[float], object] = time.sleep) -> list[str]:
    """Return the files whose content has changed, as soon as there is one."""
    known = dict(states)
    while True:
        sleep(POLL_SECONDS)
        current = {file: _read_state(file, state) for file, state in known.items()}
        changed = [
            file
            for file, state in current.items()
            if (state is None) is not (known[file] is None)
            or (state is not None and state.digest != (known[file] or state).digest)
        ]
        if changed:
            return changed
        known = current


def _read_state(file: str, known: FileState | None) -> FileState | None:
    path = Path(file)
    try:
        status = path.stat()
        if known is not None and known[:2] == (status.st_mtime_ns, status.st_size):
            return known
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "blake2b").digest()
    except OSError:
        return None
    return FileState(status.st_mtime_ns, status.st_size, digest)


def describe_difference(new: str, reference: str, history: str | None) -> str:
    """Describe in one line how a run differs from the one before it."""
    from proctor.wiring.compare_runs import compare_configurations, open_pair

    try:
        comparisons, _ = compare_configurations(*open_pair(new, reference, history=history), flips=0)
    except ProctorError as error:
        return f"not compared with the last run: {error.what}"
    parts = []
    for comparison in comparisons:
        names = {"lost": comparison.lost, "won": comparison.won}
        changes = [
            f"{word} {_list_names([flip.sample_id for flip in flips])}" for word, flips in names.items() if flips
        ]
        prefix = f"{comparison.a}: " if len(comparisons) > 1 else ""
        answer = comparison.answer.replace(new, "this run").replace(reference, "the last run")
        if not changes and not comparison.biased:
            changes = ["no sample changed"]
        parts.append(prefix + ". ".join([*(["; ".join(changes)] if changes else []), answer]))
    return "since the last run: " + " | ".join(parts)


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - SAMPLES_NAMED
    shown = ", ".join(cli.display_name(name) for name in names[:SAMPLES_NAMED])
    return f"{len(names)} ({shown}{f', … {more} more' if more > 0 else ''})"
