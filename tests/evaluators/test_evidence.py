"""The arguments of an evaluator are read from its parameters, once."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any, Optional

import pytest
from inline_snapshot import snapshot

from proctor.errors import EvaluatorError
from proctor.evaluators.decorator import needs_session
from proctor.evaluators.options import SUPPORTED_SIGNATURES, read_signature
from proctor.records import sample as sample_module
from proctor.records.sample import Sample
from proctor.records.session import Session, SessionView
from tests.tables import each_row

Anything = Callable[..., Any]


class SessionViewProtocol(typing.Protocol):
    """What another framework may call a view of its session."""


def with_optional(output: Any, given: Optional[Sample[str, str]]) -> None: ...  # noqa: UP045
def with_union(output: Any, given: Sample[str, str] | None) -> None: ...
def with_dotted(output: Any, given: sample_module.Sample[str, str]) -> None: ...
def with_text(output: Any, given: "Sample[str, str]") -> None: ...  # noqa: UP037
def with_session(output: Any, expected: Any, trace: Session | None = None) -> None: ...
def with_session_second(output: Any, trace: Session) -> None: ...
def with_view(output: Any, trace: SessionView) -> None: ...
def with_protocol(output: Any, expected: Any, trace: SessionViewProtocol) -> None: ...
def with_list(output: Any, given: list[Sample[str, str]]) -> None: ...


def with_live_annotation(output: Any, given: Any) -> None: ...


with_live_annotation.__annotations__["given"] = typing.Optional[Sample[str, str]]  # noqa: UP045


class Judge:
    """A callable object with another method."""

    def __call__(self, output: Any, expected: Any, session: Any) -> bool:
        """Three pieces of evidence."""
        return True

    def look(self, output: Any) -> bool:
        """One piece of evidence."""
        return True


@each_row(
    ("function", "kinds"),
    [
        (lambda output: 0, ("output",)),
        (lambda anything, reference: 0, ("output", "expected")),
        (lambda anything, reference, trace: 0, ("output", "expected", "session")),
        (lambda output, sample: 0, ("output", "sample")),
        (lambda output, example, config=None: 0, ("output", "sample", "config")),
        (lambda output, example, config: 0, ("output", "sample", "config")),
        (lambda output, expected, config=None: 0, ("output", "expected", "config")),
        (lambda output, session: 0, ("output", "session")),
        (lambda output, expected, sample: 0, ("output", "expected", "sample")),
        (lambda output, expected=None: 0, ("output", "expected")),
        (lambda output, expected="x", session=None: 0, ("output", "expected", "session")),
        (lambda output, limit=80: 0, ("output",)),
        (lambda output, expected, limit=80: 0, ("output", "expected")),
        (lambda *evidence: 0, ("output", "expected")),
        (lambda output, *rest: 0, ("output", "expected")),
        (lambda output, expected, *rest, **options: 0, ("output", "expected")),
        (lambda output, /, *, limit: 0, ("output",)),
        (with_optional, ("output", "sample")),
        (with_union, ("output", "sample")),
        (with_dotted, ("output", "sample")),
        (with_text, ("output", "sample")),
        (with_live_annotation, ("output", "sample")),
        (with_session, ("output", "expected", "session")),
        (with_session_second, ("output", "session")),
        (with_view, ("output", "session")),
        (with_protocol, ("output", "expected", "session")),
        (with_list, ("output", "expected")),
        (Judge(), ("output", "expected", "session")),
        (Judge().look, ("output",)),
        (functools.partial(lambda limit, output, expected: 0, 80), ("output", "expected")),
        (functools.partial(lambda output, expected: 0, expected="x"), ("output",)),
    ],
)
def test_evidence_goes_by_position_and_by_telling_names(function: Anything, kinds: tuple[str, ...]) -> None:
    """Ruling: what an evaluator wants is decided from its positional parameters."""
    assert read_signature(function, "it").kinds == kinds


def test_an_expected_value_is_needed_where_it_has_no_default() -> None:
    """Only a second parameter without a default cannot do without."""
    assert read_signature(lambda output, expected: 0, "it").requires_expected is True
    assert read_signature(lambda output, expected=None: 0, "it").requires_expected is False
    assert read_signature(lambda *evidence: 0, "it").requires_expected is False
    assert read_signature(lambda output, sample: 0, "it").requires_expected is False


def test_other_parameters_are_options() -> None:
    """Keyword-only parameters, and positional ones with a default that are not evidence."""

    def judge(output: Any, expected: Any, strict: bool = False, *, limit: int, **more: Any) -> None:
        """Evidence, and options of all kinds."""

    shape = read_signature(judge, "judge")
    assert list(shape.options) == ["strict", "limit"]
    assert shape.accepts_any is True


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (lambda *evidence: 0, ("output", "expected", "session")),
        (lambda output, *rest: 0, ("output", "expected", "session")),
        (lambda output, expected, *rest: 0, ("output", "expected", "session")),
        (lambda output, expected, trace=None: 0, ("output", "expected", "session")),
        (lambda output, expected, trace, *rest: 0, ("output", "expected", "session")),
    ],
)
def test_an_explicit_mark_requests_the_session(function: Anything, kinds: tuple[str, ...]) -> None:
    """Ruling: also through a partial."""
    needs_session(function)
    assert read_signature(function, "it").kinds == kinds
    assert read_signature(functools.partial(function), "it").kinds == kinds


def nothing() -> None: ...
def only_options(*, limit: int) -> None: ...
def four(output: Any, expected: Any, session: Any, extra: Any, more: Any) -> None: ...


@needs_session
def marked(output: Any, expected: Any) -> None: ...


def test_unsupported_signatures_are_refused_with_the_supported_ones() -> None:
    messages = []
    for function in (nothing, only_options, four, marked, max):
        with pytest.raises(EvaluatorError) as caught:
            read_signature(function, function.__name__)
        messages.append(str(caught.value).replace(SUPPORTED_SIGNATURES, "…"))
    assert messages == snapshot(
        [
            """\
nothing: an evaluator takes at least the output, but this one has no positional parameter
Fix: …\
""",
            """\
only_options: an evaluator takes at least the output, but this one has no positional parameter
Fix: …\
""",
            """\
four: there is no evidence for its parameters after the first 3: 'extra', 'more'
Fix: …\
""",
            """\
marked: it is marked with needs_session, but has no third parameter for the session
Fix: write it as (output, expected, session)\
""",
            """\
max: its parameters cannot be read
Fix: wrap it: lambda output, expected: ...\
""",
        ]
    )
