"""Check an output against formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.errors import EvaluatorError, Problem, suggest_name
from proctor.evaluators.formats.catalogue import ALIASES, FORMATS, Format
from proctor.evaluators.formats.fault import Fault, Terms, at, remove_fence
from proctor.evaluators.formats.json_text import HALF_A_PAIR, SURROGATE, explain_unwritable
from proctor.evaluators.formats.scalars import compile_regex
from proctor.evaluators.score_conversion import preview
from proctor.records import codec
from proctor.records.sample import type_name
from proctor.records.score import Score

WHERE = "format_compliance"


def select_formats(names: Sequence[Any], options: Mapping[str, Any]) -> tuple[dict[str, Format], Terms]:
    """Return the formats of these names and their options, or an error that says what is invalid."""
    formats = {name: _find_format(name) for name in names}
    return formats, _check_options(formats, {key: it for key, it in options.items() if it is not None})


def score_formats(output: Any, formats: Mapping[str, Format], terms: Terms, allow_fences: bool) -> Score:
    """Pass if one of the formats fits; an abandoned check of the others is an error."""
    faults: dict[str, Fault] = {}
    abandoned = ""
    for name, expected in formats.items():
        try:
            fault = _find_fault(output, expected, terms, allow_fences)
        except EvaluatorError as error:
            abandoned = f"not known whether it is {name}: {error.what}"
            continue
        if fault is None:
            return Score(1.0, True, "", {"method": "parser", "format": name})
        faults[name] = fault
    details: dict[str, Any] = {"method": "parser", "formats": list(formats)}
    if abandoned:
        return Score.error(abandoned, details)
    if len(faults) == 1:
        (fault,) = faults.values()
        return Score(0.0, False, str(fault), details | fault.place)
    reasons = (f"not {name}: {fault}" for name, fault in faults.items())
    return Score(0.0, False, "; ".join(reasons), details)


def _find_format(name: Any) -> Format:
    known = FORMATS.get(ALIASES.get(name, name)) if isinstance(name, str) else None
    if known is None:
        fix = suggest_name(str(name), [*FORMATS, *ALIASES])
        raise EvaluatorError(f"there is no format {name!r}", where=WHERE, fix=fix)
    return known


def _check_options(formats: Mapping[str, Format], options: Mapping[str, Any]) -> Terms:
    if not formats:
        raise EvaluatorError("it is given no format", where=WHERE)
    known = {option for expected in formats.values() for option in expected.options}
    problems = [
        Problem(option, f"no option of {', '.join(formats)}") for option in options if option not in known
    ]
    if "pattern" in known and "pattern" not in options:
        problems.append(Problem("pattern", "regex needs it"))
    delimiter = options.get("delimiter", ",")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        problems.append(Problem("delimiter", f"it must be one character, got {delimiter!r}"))
    if problems:
        raise EvaluatorError("the options are invalid", where=WHERE, problems=problems)
    if "pattern" in options:
        compile_regex(options["pattern"])
    return Terms(**options)


def _find_fault(output: Any, expected: Format, terms: Terms, allow_fences: bool) -> Fault | None:
    if not isinstance(output, str | bytes | bytearray):
        plain = output if object in expected.data else codec.plain(output)
        if object in expected.data or (
            isinstance(plain, expected.data) and isinstance(plain, bool) == (bool in expected.data)
        ):
            reason = explain_unwritable(plain)
            return Fault(reason) if reason else None
        if not isinstance(plain, str):
            return Fault(f"it is {type_name(plain)}, not a text: {preview(plain)}")
        output = plain
    text, before = remove_fence(output, allow_fences)
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError:
            return Fault("the bytes are not UTF-8")
    if expected.strip:
        before += text[: len(text) - len(text.lstrip())].count("\n")
        text = text.strip()
    broken = SURROGATE.search(text)
    fault = expected.check(text, terms) if broken is None else at(text, broken.start(), HALF_A_PAIR)
    return None if fault is None else fault.below(before)
