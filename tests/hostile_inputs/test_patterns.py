"""No hostile text makes a built-in pattern slow: its cost is bounded by the cost for half of the text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from proctor.evaluators.data_files import load_patterns
from proctor.evaluators.language import is_code
from proctor.evaluators.numeric.find_answer import find_answer
from proctor.evaluators.safety.refusal import read_refusal
from proctor.evaluators.text.differences import find_other_exception
from proctor.evaluators.tool_calls import _read_error_text

# Each is repeated to the length of a text.
UNITS = (
    "a", "a-", "a'", "A ", "(", "new A(", ").a(", "won't list x ", "1", "1 ", "1,", "1+", " ", "\t", "a: ", "x=",
    "if (", "a, ", "= [", "all but ", "all a ", "including a ", "let me recount ", "the answer is ", "not ",
    "return a if ", "select a, ", "for (;", "curl: (", "error ", "a/", '"', "'", "\\", "{", "<a ", "/*", "a:\n", "- ",
    "i do not ", "my rules prevent me from ",
)  # fmt: skip
# The start of a line decides which part of a pattern reads the rest.
STARTS = (
    "", "new A(", "return a if ", "for (", "x = [", "def a(", "if (", "const a = ", "class A ", "a(", "select a",
    "fatal: ", "bash: ", "all ", "the answer is ", "i won't ", "my ", "git ", "lambda a", "a, ",
)  # fmt: skip
# Lines and sentences are short, so their patterns may take 8 times as long for twice the text.
LINE_SIZES, LARGEST_LINE_RATIO = (25, 50, 100, 200), 10.0
# Whole texts, and the code patterns that read them.
TEXT_SIZES, LARGEST_TEXT_RATIO = (5_000, 10_000, 20_000), 3.0
GAP_SIZES = (500, 1_000, 2_000)
TEXT_PATTERNS = (
    "comment_block",
    "makefile_start",
    "dockerfile_start",
    "markup",
    "tag",
    "document",
    "tex_start",
    "yaml_parent",
)
FILES = ("code.yaml", "tool_failures.yaml", "safety/refusal.yaml", "text/exceptions.yaml", "numeric/phrases.yaml")
# Shorter times are noise.
LEAST_SECONDS = 0.02


def _list_patterns() -> list[tuple[str, str]]:
    return [(file, name) for file in FILES for name in load_patterns(*file.split("/"))]


@pytest.mark.no_cover
@pytest.mark.parametrize(("file", "name"), _list_patterns())
def test_a_pattern_needs_bounded_time_for_a_line(file: str, name: str) -> None:
    """A line of 200 characters is read in about the time of a shorter line, whatever it repeats."""
    pattern = load_patterns(*file.split("/"))[name]
    # These read a line from its start.
    call = pattern.match if file in FILES[:2] else pattern.search
    slow = {start: _find_slow_units(call, LINE_SIZES, LARGEST_LINE_RATIO, start) for start in STARTS}
    assert {start: units for start, units in slow.items() if units} == {}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["joined", "disowned_after"])
def test_a_pattern_around_numbers_reads_long_gaps(name: str) -> None:
    """A gap of thousands of spaces between two numbers takes no longer than a short one."""
    pattern = load_patterns("numeric", "phrases.yaml")[name]
    assert _find_slow_units(pattern.search, GAP_SIZES, LARGEST_TEXT_RATIO) == []


@pytest.mark.no_cover
@pytest.mark.parametrize("name", TEXT_PATTERNS)
def test_a_pattern_for_texts_grows_with_their_length(name: str) -> None:
    """The patterns for whole texts need twice the time for twice the text."""
    pattern = load_patterns("code.yaml")[name]
    call = pattern.match if name == "markup" else pattern.search
    assert _find_slow_units(call, TEXT_SIZES, LARGEST_TEXT_RATIO) == []


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "call",
    [
        is_code,
        find_answer,
        read_refusal,
        lambda text: list(_read_error_text(text)),
        lambda text: find_other_exception(text, f"all {text}"),
        lambda text: find_other_exception(f"all but a {text}", f"all {text}"),
    ],
    ids=["is_code", "find_answer", "read_refusal", "read_error_text", "exception_repeated", "exception_once"],
)
def test_a_reader_of_texts_grows_with_their_length(call: Callable[[str], object]) -> None:
    """The functions that use these patterns need about twice the time for twice the text."""
    assert _find_slow_units(call, TEXT_SIZES, LARGEST_TEXT_RATIO) == []


def _find_slow_units(
    call: Callable[[str], object], sizes: tuple[int, ...], largest: float, start: str = ""
) -> list[str]:
    return [unit for unit in UNITS if not _is_bounded(call, start, unit, sizes, largest)]


def _is_bounded(call: Callable[[str], object], start: str, unit: str, sizes: tuple[int, ...], largest: float) -> bool:
    shorter = LEAST_SECONDS
    for size in sizes:
        text = (start + unit * size)[:size]
        # One slow moment of the machine looks like growth; three do not.
        seconds = _measure(call, text)
        for _ in range(2):
            if size != sizes[0] and seconds > largest * shorter:
                seconds = min(seconds, _measure(call, text))
        # Longer texts could take minutes.
        if size != sizes[0] and seconds > largest * shorter:
            return False
        shorter = max(seconds, LEAST_SECONDS)
    return True


def _measure(call: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    call(text)
    return time.process_time() - began
