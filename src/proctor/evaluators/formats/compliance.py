"""Holding an output against formats: which are wanted, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.errors import EvaluatorError, Problem, nearest
from proctor.evaluators.formats.catalogue import ALSO, FORMATS, Format
from proctor.evaluators.formats.fault import Fault, Terms, at, without_fence
from proctor.evaluators.formats.json_text import HALF_A_PAIR, SURROGATE, unwritable
from proctor.evaluators.formats.scalars import matcher
from proctor.evaluators.verdict import shown
from proctor.records import codec
from proctor.records.sample import kind_of
from proctor.records.score import Score

WHERE = "format_compliance"


def agreed(names: Sequence[Any], given: Mapping[str, Any]) -> tuple[dict[str, Format], Terms]:
    """The formats of these names and their options, or an error that says what does not fit.

    >>> agreed(["csv"], {"header": False})[1].header
    False
    """
    wanted = {name: _format_named(name) for name in names}
    return wanted, _terms(wanted, {key: it for key, it in given.items() if it is not None})


def verdict(output: Any, wanted: Mapping[str, Format], terms: Terms, allow_fences: bool) -> Score:
    """Passes if one of the formats fits; where none does and one was given up, nobody knows."""
    faults: dict[str, Fault] = {}
    given_up = ""
    for name, one in wanted.items():
        try:
            fault = fault_of(output, one, terms, allow_fences)
        except EvaluatorError as error:
            given_up = f"not known whether it is {name}: {error.what}"
            continue
        if fault is None:
            return Score(1.0, True, "", {"method": "parser", "format": name})
        faults[name] = fault
    details: dict[str, Any] = {"method": "parser", "formats": list(wanted)}
    if given_up:
        return Score.error(given_up, details)
    if len(faults) == 1:
        (fault,) = faults.values()
        return Score(0.0, False, str(fault), details | fault.place)
    reasons = (f"not {name}: {fault}" for name, fault in faults.items())
    return Score(0.0, False, "; ".join(reasons), details)


def _format_named(name: Any) -> Format:
    found = FORMATS.get(ALSO.get(name, name)) if isinstance(name, str) else None
    if found is None:
        raise EvaluatorError(
            f"there is no format {name!r}", where=WHERE, fix=nearest(str(name), [*FORMATS, *ALSO])
        )
    return found


def _terms(wanted: Mapping[str, Format], given: Mapping[str, Any]) -> Terms:
    """The options for the formats; what none of them takes is refused."""
    if not wanted:
        raise EvaluatorError("it is given no format", where=WHERE)
    taken = {option for one in wanted.values() for option in one.options}
    problems = [
        Problem(option, f"no option of {', '.join(wanted)}") for option in given if option not in taken
    ]
    if "pattern" in taken and "pattern" not in given:
        problems.append(Problem("pattern", "regex needs it"))
    delimiter = given.get("delimiter", ",")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        problems.append(Problem("delimiter", f"it is one character, got {delimiter!r}"))
    if problems:
        raise EvaluatorError("its options do not fit", where=WHERE, problems=problems)
    if "pattern" in given:
        matcher(given["pattern"])
    return Terms(**given)


def fault_of(output: Any, wanted: Format, terms: Terms, allow_fences: bool) -> Fault | None:
    """What is wrong with an output in one format."""
    if not isinstance(output, str | bytes | bytearray):
        plain = output if object in wanted.data else codec.plain(output)
        if object in wanted.data or (
            isinstance(plain, wanted.data) and isinstance(plain, bool) == (bool in wanted.data)
        ):
            why = unwritable(plain)
            return Fault(why) if why else None
        if not isinstance(plain, str):
            return Fault(f"it is {kind_of(plain)}, not a text: {shown(plain)}")
        output = plain
    text, before = without_fence(output, allow_fences)
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError:
            return Fault("the bytes are not UTF-8")
    if wanted.strip:
        before += text[: len(text) - len(text.lstrip())].count("\n")
        text = text.strip()
    broken = SURROGATE.search(text)
    fault = wanted.check(text, terms) if broken is None else at(text, broken.start(), HALF_A_PAIR)
    return None if fault is None else fault.below(before)
