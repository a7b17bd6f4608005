"""A user's regular expression cannot hang a run."""

from __future__ import annotations

import os
import re
import signal
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import evaluate, regex_match
from proctor.errors import EvaluatorError
from proctor.evaluators import bounded_regex
from proctor.evaluators.bounded_regex import find_all, find_first, is_quick
from proctor.evaluators.rules import occurrences

HANGING = "^(a+)+$"
HOSTILE = "a" * 40 + "!"


@pytest.fixture(autouse=True)
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a second is enough for everything that does not hang."""
    for function in (find_first, find_all):
        defaults: dict[str, Any] = dict(function.__kwdefaults__ or {})
        monkeypatch.setattr(function, "__kwdefaults__", defaults | {"seconds": 0.1})


def test_a_pattern_that_hangs_is_an_error_and_the_next_one_works() -> None:
    score = regex_match(HOSTILE, pattern=HANGING)
    assert (score.status, score.value) == ("error", None)
    assert score.reason.startswith("the pattern '^(a+)+$' was stopped after 0.1 s of CPU time")
    assert regex_match("aaa", pattern=HANGING).passed is True
    assert regex_match("aab", pattern=HANGING).passed is False


def test_a_hanging_pattern_costs_only_its_own_sample(tmp_path: Path) -> None:
    outputs = ["aaa", HOSTILE, "aab", "aaaa"]
    data = [{"id": str(n), "input": text, "expected": HANGING} for n, text in enumerate(outputs)]
    report = evaluate(lambda text: text, data, [regex_match], history=tmp_path / "h.db")
    statuses = [result.scores["regex_match"].status for result in report.results]
    assert statuses == ["ok", "error", "ok", "ok"]


def test_every_evaluator_with_a_pattern_is_bounded() -> None:
    assert occurrences(HOSTILE, pattern="(a+)+$", at_least=1).status == "error"
    assert occurrences("aa b aa", pattern="(a+)+", exactly=2).passed is True


def test_callers_in_many_threads_get_their_own_answers() -> None:
    pattern = re.compile("(?:x|y)+z+")

    def ask(number: int) -> tuple[int, int] | None:
        return find_first(pattern, "." * number + "xyxyzz")

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, range(200)))
    assert found == [(number, number + 6) for number in range(200)]


def test_a_verbose_pattern_is_never_taken_for_quick() -> None:
    score = regex_match("a" * 40, pattern="(a|a) # one letter\n*b", flags="x")
    assert score.status == "error"


def test_a_child_that_was_ended_from_outside_is_replaced() -> None:
    pattern = re.compile("(?:x|y)+z+")
    assert find_first(pattern, "xyz") == (0, 3)
    for matcher in bounded_regex._POOL._idle:
        os.kill(matcher._process.pid, signal.SIGINT)
        matcher._process.wait()
    assert find_first(pattern, "xyz") == (0, 3)


def test_ctrl_c_does_not_reach_the_child() -> None:
    find_first(re.compile("(?:x|y)+z+"), "xyz")
    (matcher, *_) = bounded_regex._POOL._idle
    assert os.getpgid(matcher._process.pid) != os.getpgid(0)


def test_a_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(EvaluatorError, match="the limit is 100,000"):
        find_first(re.compile("a" * 100_001 + "*b*"), "aab")


PATTERNS = ["(a|b)+c", "a*b*", r"(\w+)\s+\1", "(?i:A+)b+", "^$|(?:ab)*", "[ab]+?[bc]+", "a{2,}b*"]


@given(
    st.sampled_from(PATTERNS),
    st.text(st.sampled_from("abc \n" + string.ascii_uppercase[:3] + "é😀")),
    st.sampled_from([0, re.IGNORECASE, re.MULTILINE, re.DOTALL]),
)
def test_a_bounded_match_is_what_re_finds(pattern: str, text: str, flags: int) -> None:
    compiled = re.compile(pattern, flags)
    assert not is_quick(pattern)
    assert find_all(compiled, text) == [match.span() for match in compiled.finditer(text)]
    for mode in ("search", "match", "fullmatch"):
        match = getattr(compiled, mode)(text)
        expected = None if match is None else match.span()
        assert find_first(compiled, text, mode) == expected


def test_half_characters_survive_the_way_to_the_child() -> None:
    """Lone surrogates, which UTF-8 cannot hold, are matched like other characters."""
    assert find_first(re.compile("(?:\ud800|x)+y*"), "..\ud800x") == (2, 4)


def test_the_pool_keeps_one_process_per_core() -> None:
    for _ in range(20):
        find_first(re.compile("(ab)+c*"), "ab")
    assert 1 <= len(bounded_regex._POOL._idle) <= 64
