"""Match a user's regular expression in bounded time.

A pattern such as `(a+)+$` can keep Python's `re` busy for years, and nothing inside the process can
stop it: `re` does not release the interpreter. So every pattern that may be slow runs in a child
process with a limit on its CPU time. The processes are kept and used again, at most one per core.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import threading
from typing import Literal

from proctor.core import resources
from proctor.errors import EvaluatorError
from proctor.evaluators.verdict import shown

SECONDS = 2.0
Mode = Literal["search", "match", "fullmatch", "finditer"]
Span = tuple[int, int]

# With one repetition the time grows at most with the square of the length.
_SHORT = 2_000
# Each choice may multiply the time; a few are harmless.
_FEW_CHOICES = 8
_LONGEST_PATTERN = 100_000
_REPETITION = re.compile(r"[*+]|\{\d*,\d*\}|\\\d|\(\?P=")
_REPEATED_GROUP = re.compile(r"\)\s*(?:[*+]|\{)")
_OPTION = re.compile(r"(?<![(*+?}])\?")
_NO_REPETITION = re.compile(r"\\[^\d]|\[\^?\]?(?:\\.|[^\]\\])*\]")


def find_first(
    pattern: re.Pattern[str],
    text: str,
    mode: Literal["search", "match", "fullmatch"] = "search",
    *,
    seconds: float = SECONDS,
) -> Span | None:
    """Return where a pattern first matches, or None; raise an error after `seconds` of CPU time.

    >>> find_first(re.compile("an"), "banana"), find_first(re.compile("an"), "banana", "match")
    ((1, 3), None)
    """
    if _is_quick(pattern, text):
        match = getattr(pattern, mode)(text)
        return None if match is None else match.span()
    found = _ask(pattern, text, mode, seconds)
    return found[0] if found else None


def find_all(pattern: re.Pattern[str], text: str, *, seconds: float = SECONDS) -> list[Span]:
    """Return every place where a pattern matches; raise an error after `seconds` of CPU time.

    >>> find_all(re.compile("an"), "banana")
    [(1, 3), (3, 5)]
    """
    if _is_quick(pattern, text):
        return [match.span() for match in pattern.finditer(text)]
    return _ask(pattern, text, "finditer", seconds)


def _is_quick(pattern: re.Pattern[str], text: str) -> bool:
    # In verbose patterns a comment may stand between a group and its repetition.
    return not pattern.flags & re.VERBOSE and is_quick(pattern.pattern, len(text))


def is_quick(pattern: str, length: int = 0) -> bool:
    """Return True if a pattern cannot take long on a text of this length.

    It has at most one repetition, which is not of a group, few choices and no back references.

    >>> is_quick(r"<<[^*+]+>>"), is_quick(r"(a+)+b"), is_quick(r"(a|a)*b"), is_quick(r"\\+\\*")
    (True, False, False, True)
    """
    if length > _SHORT:
        return False
    bare = _NO_REPETITION.sub("_", pattern)
    # The alternatives of one group are one choice.
    choices = len(_OPTION.findall(bare)) + min(bare.count("|"), bare.count("(") + 1)
    return (
        len(_REPETITION.findall(bare)) <= 1 and choices <= _FEW_CHOICES and not _REPEATED_GROUP.search(bare)
    )


def _ask(pattern: re.Pattern[str], text: str, mode: Mode, seconds: float) -> list[Span]:
    if len(pattern.pattern) > _LONGEST_PATTERN:
        raise EvaluatorError(
            f"the pattern has {len(pattern.pattern):,} characters, at most {_LONGEST_PATTERN:,} are allowed"
        )
    found = _POOL.match(pattern, text, mode, seconds)
    if found is None:
        raise EvaluatorError(
            f"the pattern {shown(pattern.pattern)} was stopped after {seconds:g} s of CPU time; "
            "remove the repetition inside a repetition, or make it possessive: (?:a+)++"
        )
    return found


class _Matcher:
    """One child process that matches patterns."""

    def __init__(self) -> None:
        # Isolated and without site packages: it starts in milliseconds.
        command = [sys.executable, "-I", "-S", str(resources.path("evaluators", "regex_child.py"))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C is for the run, which decides what is finished; it must not end a match.
            start_new_session=True,
        )

    def match(self, pattern: re.Pattern[str], text: str, mode: Mode, seconds: float) -> list[Span] | None:
        """Return the spans of all matches, or None if the process ended without an answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        parts = [part.encode("utf-8", "surrogatepass") for part in (pattern.pattern, text)]
        flags = pattern.flags & ~re.UNICODE.value
        try:
            stdin.write(f"{mode} {flags} {seconds} {len(parts[0])} {len(parts[1])}\n".encode())
            stdin.write(parts[0])
            stdin.write(parts[1])
            stdin.flush()
            answer = stdout.readline()
        except BrokenPipeError:
            return None
        if not answer.endswith(b"\n"):
            return None
        ends = [int(number) for number in answer.split()]
        return list(zip(ends[::2], ends[1::2], strict=True))

    def is_out_of_time(self) -> bool:
        """True if the process was ended by its limit on CPU time."""
        return self._process.wait() == -signal.SIGPROF

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


class _MatcherPool:
    """As many matchers as there are cores; a caller waits for a free one."""

    def __init__(self) -> None:
        self._reset()
        # A forked child must not share the pipes of its parent.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def _reset(self) -> None:
        self._free: list[_Matcher] = []
        self._slots = threading.BoundedSemaphore(os.cpu_count() or 1)

    def match(self, pattern: re.Pattern[str], text: str, mode: Mode, seconds: float) -> list[Span] | None:
        with self._slots:
            # A process that was ended from outside is replaced once.
            for idle in (self._free.pop() if self._free else None, None):
                matcher = idle or _Matcher()
                found, is_out_of_time = self._ask(matcher, pattern, text, mode, seconds)
                if found is not None or is_out_of_time:
                    return found
        raise EvaluatorError("the process that matches patterns ended without an answer")

    def _ask(
        self, matcher: _Matcher, pattern: re.Pattern[str], text: str, mode: Mode, seconds: float
    ) -> tuple[list[Span] | None, bool]:
        found, is_out_of_time = None, False
        try:
            found = matcher.match(pattern, text, mode, seconds)
            is_out_of_time = found is None and matcher.is_out_of_time()
        finally:
            # Whatever went wrong, the next caller must not read an answer that is not its own.
            if found is None:
                matcher.close()
            else:
                self._free.append(matcher)
        return found, is_out_of_time

    def close(self) -> None:
        """End all idle processes."""
        while self._free:
            self._free.pop().close()


_POOL = _MatcherPool()
