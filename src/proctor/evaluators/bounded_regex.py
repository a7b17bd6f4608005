"""Match a user's regular expression in bounded time.

A pattern such as `(a+)+$` can keep `re` busy for years without releasing the interpreter, so every
pattern that may be slow runs in a pooled child process with a CPU time limit.
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
from proctor.evaluators.score_conversion import preview

SECONDS = 2.0
Mode = Literal["search", "match", "fullmatch", "finditer"]
Span = tuple[int, int]

# With one repetition, the time grows at most with the square of the length.
_MAX_LENGTH = 2_000
# Each choice may multiply the time; a few are harmless.
_MAX_CHOICES = 8
_MAX_PATTERN = 100_000
_REPETITION = re.compile(r"[*+]|\{\d*,\d*\}|\\\d|\(\?P=")
_REPEATED_GROUP = re.compile(r"\)\s*(?:[*+]|\{)")
_OPTION = re.compile(r"(?<![(*+?}])\?")
_ESCAPE_OR_CLASS = re.compile(r"\\[^\d]|\[\^?\]?(?:\\.|[^\]\\])*\]")


def find_first(
    pattern: re.Pattern[str],
    text: str,
    mode: Literal["search", "match", "fullmatch"] = "search",
    *,
    seconds: float = SECONDS,
) -> Span | None:
    """Return where a pattern first matches, or None; raise an error after `seconds` of CPU time."""
    if _is_quick_match(pattern, text):
        match = getattr(pattern, mode)(text)
        return None if match is None else match.span()
    spans = _match_in_child(pattern, text, mode, seconds)
    return spans[0] if spans else None


def find_all(pattern: re.Pattern[str], text: str, *, seconds: float = SECONDS) -> list[Span]:
    """Return every position where a pattern matches; raise an error after `seconds` of CPU time."""
    if _is_quick_match(pattern, text):
        return [match.span() for match in pattern.finditer(text)]
    return _match_in_child(pattern, text, "finditer", seconds)


def _is_quick_match(pattern: re.Pattern[str], text: str) -> bool:
    # In verbose patterns a comment may separate a group from its repetition.
    return not pattern.flags & re.VERBOSE and is_quick(pattern.pattern, len(text))


def is_quick(pattern: str, length: int = 0) -> bool:
    """Return True if a pattern cannot take long on a text of this length.

    It has at most one repetition, which is not of a group, few choices and no back references.
    """
    if length > _MAX_LENGTH:
        return False
    simplified = _ESCAPE_OR_CLASS.sub("_", pattern)
    # The alternatives of one group are one choice.
    choices = len(_OPTION.findall(simplified)) + min(simplified.count("|"), simplified.count("(") + 1)
    return (
        len(_REPETITION.findall(simplified)) <= 1 and choices <= _MAX_CHOICES and not _REPEATED_GROUP.search(simplified)
    )


def _match_in_child(pattern: re.Pattern[str], text: str, mode: Mode, seconds: float) -> list[Span]:
    if len(pattern.pattern) > _MAX_PATTERN:
        raise EvaluatorError(f"the pattern has {len(pattern.pattern):,} characters; the limit is {_MAX_PATTERN:,}")
    spans = _POOL.match(pattern, text, mode, seconds)
    if spans is None:
        raise EvaluatorError(
            f"the pattern {preview(pattern.pattern)} was stopped after {seconds:g} s of CPU time; "
            "remove the nested repetition, or make it possessive: (?:a+)++"
        )
    return spans


class _Matcher:
    """One child process that matches patterns."""

    def __init__(self) -> None:
        # Isolated and without site packages, so it starts in milliseconds.
        command = [sys.executable, "-I", "-S", str(resources.path("evaluators", "regex_child.py"))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C must reach only the run, not end a match.
            start_new_session=True,
        )

    def match(self, pattern: re.Pattern[str], text: str, mode: Mode, seconds: float) -> list[Span] | None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        encoded_pattern, encoded_text = (part.encode("utf-8", "surrogatepass") for part in (pattern.pattern, text))
        flags = pattern.flags & ~re.UNICODE.value
        try:
            stdin.write(f"{mode} {flags} {seconds} {len(encoded_pattern)} {len(encoded_text)}\n".encode())
            stdin.write(encoded_pattern)
            stdin.write(encoded_text)
            stdin.flush()
            answer = stdout.readline()
        except BrokenPipeError:
            return None
        if not answer.endswith(b"\n"):
            return None
        numbers = list(map(int, answer.split()))
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def is_out_of_time(self) -> bool:
        return self._process.wait() == -signal.SIGPROF

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class _MatcherPool:
    """One matcher per core; a caller waits for an idle matcher."""

    def __init__(self) -> None:
        self._reset()
        # A forked child must not share the pipes of its parent.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)
        atexit.register(self.close)

    def _reset(self) -> None:
        self._idle: list[_Matcher] = []
        self._slots = threading.BoundedSemaphore(os.cpu_count() or 1)

    def match(self, pattern: re.Pattern[str], text: str, mode: Mode, seconds: float) -> list[Span] | None:
        with self._slots:
            # A process that something else killed is replaced once.
            for idle in (self._idle.pop() if self._idle else None, None):
                matcher = idle or _Matcher()
                spans, is_out_of_time = self._use(matcher, pattern, text, mode, seconds)
                if spans is not None or is_out_of_time:
                    return spans
        raise EvaluatorError("the process that matches patterns ended without an answer")

    def _use(
        self, matcher: _Matcher, pattern: re.Pattern[str], text: str, mode: Mode, seconds: float
    ) -> tuple[list[Span] | None, bool]:
        spans, is_out_of_time = None, False
        try:
            spans = matcher.match(pattern, text, mode, seconds)
            is_out_of_time = spans is None and matcher.is_out_of_time()
        finally:
            # After an error, the next caller must not read the answer to this request.
            if spans is None:
                matcher.close()
            else:
                self._idle.append(matcher)
        return spans, is_out_of_time

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


_POOL = _MatcherPool()
