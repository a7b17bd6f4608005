"""Name the clause of a specification that a test proves.

Every test in this folder carries exactly one clause:

    @clause("002.FIELD.3", "Field Selection System")
    def test_a_missing_field_raises_when_the_span_is_evaluated() -> None:
        \"\"\"A selected field that the span lacks raises an error with its path.\"\"\"

The identifier is `SPEC.TOPIC.NUMBER`; the second argument is the heading in the specification. The
docstring states, in Proctor's vocabulary, what holds. `ruling` names the ruling that the test
follows where it differs from the letter of the specification, or settles what it leaves open.
`unmet` says why a clause does not hold yet: the test then has to fail. Clauses that no test can
prove, such as those about another programming language, are listed with `not_applicable`.

`tools/generate.py` reads these decorators without running the tests and writes
docs/conformance.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])

IDENTIFIER = re.compile(r"00[0-4]\.[A-Z][A-Z_]*\.\d+")


def clause(identifier: str, heading: str, *, ruling: str = "", unmet: str = "") -> Callable[[Test], Test]:
    """Mark a test as the proof of one clause."""
    if not IDENTIFIER.fullmatch(identifier):
        raise ValueError(f"{identifier!r} is not a clause. Fix: write SPEC.TOPIC.NUMBER")

    def mark(test: Test) -> Test:
        marked: Test = pytest.mark.clause(identifier, heading, ruling=ruling)(test)
        if unmet:
            marked = pytest.mark.xfail(reason=unmet, strict=True)(marked)
        return marked

    return mark


def not_applicable(identifier: str, heading: str, statement: str, *, reason: str) -> None:
    """List a clause that has no test, with the reason. It is only read by tools/conformance.py."""
    if not (IDENTIFIER.fullmatch(identifier) and heading and statement and reason):
        raise ValueError(f"{identifier!r} needs an identifier, a heading, a statement and a reason")
