"""Read a judge's verdict from structured output, or from a line that contains the delimiter of the call."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from proctor.core.resources import describe_json_error
from proctor.evaluators.judges.quoted_json import unescape_layers

_REASON_HEADING = re.compile(r"(?i)\A[^\w\n]*reason(?:ing)?[^\w\n]*?[:=][ \t]*")
_REASON_LINE = re.compile(r"(?im)^[^\w\n]*reason(?:ing)?[^\w\n]*?[:=]")
# The same heading after a verdict on its line: "SCORE: 4 / REASONING: …".
_REASON_AFTER = re.compile(r"(?i)[\s/|;,*_–—-]+reason(?:ing)?[*_ \t]*[:=]")
# A placeholder for a verdict in a prompt: [1-5], <score>, {score}, 1-5, "a number …".
_PLACEHOLDER = re.compile(r"(?i)[*_` \t]*(?:[\[<{(]|[0-9.]+[ \t]*(?:-|–|to)[ \t]*[0-9]|(?:a|the|your)\b)")
_CODE_BLOCK = re.compile(r"(?s)\s*```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\s*")
_JSON_START = re.compile(r"\s*(?:```[\w-]*\s*)?\{")
# On a scale from 0 to at least this, a number between 0 and 1 may be a fraction of the scale.
_MIN_WIDE_SCALE = 3
# Half a point is a common grade.
_HALF = 0.5
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
# Markup that people and models put around a word.
_MARKUP = "*_`'\"<>[](). \t\r"
# Fewer characters count as markup around a number: ".5" is not 5, and "<4" is not 4, but "<4>" is.
_NUMBER_MARKUP = "*_`'\" \t\r"
_BRACKETS = ("<>", "[]", "()")


class Verdict(NamedTuple):
    """A judge's choice and reason."""

    choice: str
    reason: str


class VerdictLine(NamedTuple):
    """A verdict, its position, and the start and end of its line."""

    text: str
    position: int
    start: int
    end: int


class AllowedVerdicts:
    """The verdicts that a judge may give: one of several words, or a number from a scale."""

    def __init__(self, choices: Sequence[str] = (), scale: tuple[float, float] | None = None) -> None:
        if bool(choices) == (scale is not None):
            raise ValueError("pass either choices or a scale")
        self._choices = {choice.strip(_MARKUP).casefold(): choice for choice in choices}
        if len(self._choices) != len(choices):
            raise ValueError("the choices contain the same word twice")
        self._scale = scale

    def __str__(self) -> str:
        if self._scale is not None:
            return f"a number from {self._scale[0]:g} to {self._scale[1]:g}"
        return " | ".join(self._choices.values())

    @property
    def schema(self) -> dict[str, Any]:
        if self._scale is not None:
            return {"type": "number", "minimum": self._scale[0], "maximum": self._scale[1]}
        return {"type": "string", "enum": list(self._choices.values())}

    def find_offset(self, text: str) -> int:
        """Return the position of the choice in a readable verdict, after the markup."""
        if self._scale is None:
            return len(text) - len(text.lstrip(_MARKUP))
        return text.index(_strip_number(text))

    def parse(self, value: Any) -> str:
        """Return the allowed choice for a value; an ambiguous value raises a ValueError."""
        # The message does not repeat the value, which may be quoted from the judged text.
        invalid = ValueError(f"the verdict is not {'one of ' if self._choices else ''}{self}")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise invalid
        if self._scale is None:
            choice = self._choices.get(str(value).strip(_MARKUP).casefold())
            if choice is None:
                raise invalid
            return choice
        low, high = self._scale
        match = _number_pattern(high).fullmatch(_strip_number(value)) if isinstance(value, str) else None
        text = str(value) if not isinstance(value, str) else match[1] if match else "nan"
        number = float(text)
        if not low <= number <= high:
            raise invalid
        if low <= 0 < number < 1 and number != _HALF and high >= _MIN_WIDE_SCALE:
            raise ValueError(
                f"the verdict is not clearly {self}: a number between 0 and 1 may be a fraction of the scale"
            )
        return text

    def try_parse(self, value: Any) -> str | None:
        with contextlib.suppress(ValueError):
            return self.parse(value)
        return None


class VerdictForm:
    """Asks for one of several words, or a number from a scale, under the name of a field.

    A model with structured output answers in JSON. Any other model explains itself and ends with a line `FIELD
    delimiter: choice`. Only the last such line counts, so that a quoted verdict has no effect: the judged texts cannot
    contain the delimiter. An answer that is quoted from them (`is_quoted`) is not a verdict. If no line has the
    delimiter, a verdict without it may count (see `UnmarkedLines`).
    """

    def __init__(
        self,
        field: str,
        choices: Sequence[str] = (),
        *,
        scale: tuple[float, float] | None = None,
        delimiter: str = "",
        is_quoted: Callable[[str], bool] | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        self.field, self.delimiter = field, delimiter
        self._allowed = AllowedVerdicts(choices, scale)
        self._unmarked = UnmarkedLines(field, self._allowed, texts) if delimiter else None
        self._is_quoted = is_quoted
        self._lines = MarkedLines(f"{field.upper()} {delimiter}".rstrip(), self._allowed)

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema; the reason comes first, because the verdict should follow from it."""
        return object_schema({"reason": {"type": "string"}, self.field: self._allowed.schema})

    @property
    def instructions(self) -> str:
        """The instructions for a model without structured output."""
        return (
            "Explain your verdict briefly. Then end with one last line, exactly of this form:\n"
            f"{self._lines.prefix}: <{self._allowed}>"
        )

    def read(self, text: str, *, structured: bool) -> Verdict:
        """Return the verdict of an answer, or raise a ValueError that explains why there is none."""
        if structured and not self._is_unmarked(text):
            answer = read_object(text, self._is_quoted)
            if missing := [name for name in ("reason", self.field) if name not in answer]:
                raise ValueError(f"it has no {missing[0]!r}")
            return Verdict(self._allowed.parse(answer[self.field]), str(answer["reason"]).strip())
        line = self._find_line(text)
        choice = self._allowed.parse(line.text)
        before, after = text[: line.start].strip(), text[line.end :].strip(" \t/|;,").strip()
        if before.startswith("```") and after.endswith("```"):
            before, after = before.partition("\n")[2], after.removesuffix("```").rstrip()
        return Verdict(choice, remove_heading("\n".join(filter(None, (before, after)))))

    def find_choice(self, text: str, *, structured: bool) -> int:
        """Return the position of the choice in a readable answer."""
        if structured and not self._is_unmarked(text):
            start = _find_value(text, self.field)
            return start + text.startswith('"', start)
        line = self._find_line(text)
        return line.position + self._allowed.find_offset(line.text)

    def allow_unmarked_verdict(self) -> None:
        """Accept the last of several lines `SCORE: …`, because the user's prompt asks for them."""
        if self._unmarked is not None:
            self._unmarked.is_requested = True

    def _find_line(self, text: str) -> VerdictLine:
        try:
            return self._lines.find_last(text)
        except ValueError:
            line = self._unmarked.find(text) if self._unmarked else None
            if line is not None:
                return line
            if self._unmarked and self._unmarked.has_only_invalid(text):
                raise ValueError(f'its line "{self.field.upper()}: …" does not contain {self._allowed}') from None
            raise

    def _is_unmarked(self, text: str) -> bool:
        # Some models answer in lines although they should answer in JSON.
        if _JSON_START.match(text) or self._unmarked is None:
            return False
        return self._unmarked.find(text) is not None


def _create_line(match: re.Match[str], group: int) -> VerdictLine:
    text, end = match[group], match.end()
    if (reason := _REASON_AFTER.search(text)) is not None:
        text, end = text[: reason.start()], match.start(group) + reason.start()
    return VerdictLine(text, match.start(group), match.start(), end)


class MarkedLines:
    """Lines `PREFIX: choice`, with any Markdown around them."""

    def __init__(self, prefix: str, allowed: AllowedVerdicts) -> None:
        self.prefix = prefix
        self._words = re.findall(r"\w+", prefix.casefold())
        self._format = f"<{allowed}>"

    def find_last(self, text: str) -> VerdictLine:
        """Return the last such line, ignoring a repetition of the requested format, or a ValueError."""
        matches = [
            match
            for match in _line_pattern(len(self._words)).finditer(text)
            if [word.casefold() for word in match.groups()[:-1]] == self._words
            and match.groups()[-1].strip() != self._format
        ]
        if not matches:
            raise ValueError(f'it has no line "{self.prefix}: {self._format}"')
        return _create_line(matches[-1], len(self._words) + 1)


class UnmarkedLines:
    """Verdict lines without the delimiter, such as `SCORE: 4` followed by `REASONING: …`.

    Such a verdict could be quoted from the judged texts. It counts only if it is the only verdict of the answer and has
    a reason or no other text; if the user's prompt asks for such lines (`is_requested`), the last one counts. A verdict
    that occurs in one of the `texts` in any form never counts.
    """

    def __init__(self, field: str, allowed: AllowedVerdicts, texts: Sequence[str]) -> None:
        self._field, self._allowed, self._texts = field, allowed, texts
        self.is_requested = False

    def find(self, text: str) -> VerdictLine | None:
        parsed = [(line, self._allowed.try_parse(line.text)) for line in self._find_all(text)]
        verdicts = [(line, choice) for line, choice in parsed if choice is not None]
        if not verdicts:
            return None
        line, choice = verdicts[-1]
        if not self.is_requested:
            block = _CODE_BLOCK.fullmatch(text)
            has_reason = _REASON_LINE.search(text) or _REASON_AFTER.match(text, line.end)
            if len({other for _, other in verdicts}) > 1:
                return None
            if "\n" in (block[1] if block else text) and not has_reason:
                return None
        return None if self._is_in_texts(choice) else line

    def has_only_invalid(self, text: str) -> bool:
        """Return whether the field has lines but none of them has an allowed verdict."""
        lines = self._find_all(text)
        return bool(lines) and all(self._allowed.try_parse(line.text) is None for line in lines)

    def _find_all(self, text: str) -> list[VerdictLine]:
        matches = _line_pattern(1).finditer(text)
        return [_create_line(match, 2) for match in matches if match[1].casefold() == self._field]

    def _is_in_texts(self, choice: str) -> bool:
        pattern = _field_pattern(self._field)
        return any(
            _is_same_verdict(choice, match[1])
            for text in self._texts
            for layer in unescape_layers(text)
            for match in pattern.finditer(layer)
        )


def asks_for_unmarked_verdict(prompt: str, field: str) -> bool:
    """Return whether a prompt asks for lines such as `SCORE: …`."""
    lines = _line_pattern(1).finditer(prompt)
    return any(match[1].casefold() == field and bool(_PLACEHOLDER.match(match[2])) for match in lines)


def read_object(text: str, is_quoted: Callable[[str], bool] | None = None) -> dict[str, Any]:
    """Return an answer that is a single JSON object and not a copy from the judged texts.

    A duplicate key is an error: one of the two verdicts may be quoted.
    """
    problem = "it is not an object"
    try:
        answer = json.loads(text, object_pairs_hook=_reject_repeated, parse_constant=_reject_constant)
    except RecursionError:
        answer, problem = None, "it is too deeply nestedly"
    except json.JSONDecodeError as error:
        answer, problem = None, describe_json_error(error)
    if not isinstance(answer, dict):
        raise ValueError(f"it is not the requested JSON ({problem})")
    if is_quoted is not None and is_quoted(text):
        raise ValueError("it is a copy from the judged texts, not a verdict on them")
    return answer


def _reject_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise json.JSONDecodeError("a key occurs twice", "", 0)
    return dict(pairs)


def _reject_constant(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is not JSON", "", 0)


def _find_value(text: str, key: str) -> int:
    """Return the position of the value of a top-level key in a JSON object."""
    for match in re.finditer(rf'(?<!\\)"{re.escape(key)}"\s*:\s*', text):
        try:
            # Only at the top level, a closing brace completes the object.
            json.loads(f"{text[: match.end()]}null}}")
        except json.JSONDecodeError:
            continue
        return match.end()
    return len(text)


@functools.cache
def _field_pattern(field: str) -> re.Pattern[str]:
    return re.compile(rf"(?i){re.escape(field)}[\W_]{{0,20}}({_NUMBER}|\w+)")


def _is_same_verdict(choice: str, text: str) -> bool:
    try:
        return float(choice) == float(text)
    except ValueError:
        return choice.casefold() == text.casefold()


def _strip_number(text: str) -> str:
    number = text.strip(_NUMBER_MARKUP).removesuffix(".").rstrip(_NUMBER_MARKUP)
    if number[:1] + number[-1:] in _BRACKETS:
        return number[1:-1].strip(_NUMBER_MARKUP)
    return number


@functools.cache
def _number_pattern(high: float) -> re.Pattern[str]:
    """Match a number and an optional maximum, as in "4/5 stars" or "4 out of 5"."""
    out_of = rf"(?:[ \t]*/[ \t]*|[ \t]+(?:out[ \t]+)?of[ \t]+){re.escape(f'{high:g}')}"
    return re.compile(rf"(?i)({_NUMBER})(?:{out_of}(?:[ \t]+(?:points|stars))?)?")


@functools.cache
def _line_pattern(words: int) -> re.Pattern[str]:
    """Match a line that starts with this number of words.

    The pattern does not contain the words, because every call has a different delimiter and compiling a pattern takes
    longer than everything else.
    """
    prefix = r"[^\w\n]+".join([r"(\w+)"] * words)
    return re.compile(rf"(?m)^[^\w\n]*{prefix}[^\w\n]*?[:=][ \t]*(.*)$")


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def remove_heading(reason: str) -> str:
    """Remove the word "Reason:" at the start of a reason."""
    return _REASON_HEADING.sub("", reason.strip(), count=1).lstrip("* \t").strip()
