"""How a verdict is given: as structured output, or on a line that bears the mark of the call."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from proctor.evaluators.judges.echoes import ways

_SPACE = re.compile(r"[ \t\r\n]*")


class Member(NamedTuple):
    """The value of one key, and where in the text it begins."""

    value: Any
    start: int


def members(text: str) -> dict[str, Member]:
    """The members of a text that is one JSON object and nothing else.

    A key that is there twice is refused: of two verdicts one may be quoted.

    >>> members('{"rating": "good"}')["rating"]
    Member(value='good', start=11)
    """
    try:
        return _members(text)
    except RecursionError:
        raise ValueError("it is not the JSON that was asked for (it is nested too deep)") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not the JSON that was asked for ({error.msg})") from None


def _members(text: str) -> dict[str, Member]:
    read = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once).raw_decode
    found: dict[str, Member] = {}
    at = _past(text, _skip(text, 0), "{")
    while not text.startswith("}", at):
        if found:
            at = _past(text, at, ",")
        if not text.startswith('"', at):
            raise json.JSONDecodeError("a key was expected", text, at)
        key, at = read(text, at)
        start = _past(text, _skip(text, at), ":")
        if key in found:
            raise json.JSONDecodeError("a key is there twice", text, at)
        value, at = read(text, start)
        found[key] = Member(value, start)
        at = _skip(text, at)
    if _skip(text, at + 1) != len(text):
        raise json.JSONDecodeError("something follows it", text, at)
    return found


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _past(text: str, at: int, sign: str) -> int:
    """Where the next thing begins after a sign that must be there."""
    if not text.startswith(sign, at):
        raise json.JSONDecodeError(f"{sign} was expected", text, at)
    return _skip(text, at + 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise json.JSONDecodeError("a key is there twice", "", 0)
    return dict(pairs)


def _refuse(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant} is not JSON", "", 0)


_REASON = re.compile(r"\A[^\w\n]*reason(?:ing)?[^\w\n]*?[:=][ \t]*", re.IGNORECASE)
_REASON_LINE = re.compile(r"^[^\w\n]*reason(?:ing)?[^\w\n]*?[:=]", re.IGNORECASE | re.MULTILINE)
# What a prompt puts where a verdict belongs: [1-5], <score>, {score}, 1-5, "a number …".
_BLANK = re.compile(r"[*_` \t]*(?:[\[<{(]|[0-9.]+[ \t]*(?:-|–|to)[ \t]*[0-9]|(?:a|the|your)\b)", re.I)
# The same heading behind a verdict, on its line: "SCORE: 4 / REASONING: …".
_REASON_BEHIND = re.compile(r"[\s/|;,*_–—-]+reason(?:ing)?[*_ \t]*[:=]", re.IGNORECASE)
_WHOLE_BLOCK = re.compile(r"\s*```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_JSON_BEGINS = re.compile(r"\s*(?:```[\w-]*\s*)?\{")
_REASON_KEY = "reason"
# From this end on, a fraction on a scale from 0 is as likely meant as a share of the scale.
_LEAST_WIDE_SCALE = 3
# Half a point is a usual grade.
_HALF = 0.5
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
# How people and models dress up a word; it is not part of the word.
_DRESS = "*_`'\"<>[](). \t\r"
# Around a number less is dress: ".5" is not 5, and "<4" is not 4; "<4>" is.
_NUMBER_DRESS = "*_`'\" \t\r"
_PAIRS = ("<>", "[]", "()")


class Verdict(NamedTuple):
    """What a judge decided, and why."""

    choice: str
    reason: str


class Allowed:
    """What a verdict may be: one word out of a few, or a number from a scale.

    >>> Allowed(["good", "poor"]).pick("**Good**"), Allowed(scale=(1, 5)).pick("4 out of 5")
    ('good', '4')
    """

    def __init__(
        self, choices: Sequence[str] | None = None, scale: tuple[float, float] | None = None
    ) -> None:
        if (choices is None) == (scale is None):
            raise ValueError("a verdict is one of some choices, or a number from a scale")
        self._choices = {choice.strip(_DRESS).casefold(): choice for choice in choices or ()}
        if len(self._choices) != len(choices or ()):
            raise ValueError("two choices are the same word")
        self._scale = scale

    def __str__(self) -> str:
        if self._scale is not None:
            return f"a number from {self._scale[0]:g} to {self._scale[1]:g}"
        return " | ".join(self._choices.values())

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        if self._scale is not None:
            return {"type": "number", "minimum": self._scale[0], "maximum": self._scale[1]}
        return {"type": "string", "enum": list(self._choices.values())}

    def place(self, said: str) -> int:
        """Where in a verdict that can be read the choice itself begins."""
        if self._scale is None:
            return len(said) - len(said.lstrip(_DRESS))
        return said.index(_undressed(said))

    def is_format(self, said: str) -> bool:
        """True for what the instructions say a verdict looks like, which is none yet."""
        return said.strip() == f"<{self}>"

    def pick(self, said: Any) -> str:
        """The choice that was meant: exactly one of those allowed, never a guess."""
        if isinstance(said, bool) or not isinstance(said, str | int | float):
            raise self._refusal()
        if self._scale is not None:
            return self._number(said, *self._scale)
        bare = str(said).strip(_DRESS).casefold()
        if bare not in self._choices:
            raise self._refusal()
        return self._choices[bare]

    def _number(self, said: str | float, low: float, high: float) -> str:
        found = str(said)
        if isinstance(said, str):
            match = _number_of(high).fullmatch(_undressed(said))
            found = match[1] if match else "nan"
        number = float(found)
        if not low <= number <= high:
            raise self._refusal()
        if low <= 0 < number < 1 and number != _HALF and high >= _LEAST_WIDE_SCALE:
            raise ValueError(
                f"the verdict is not clearly {self}: a number between 0 and 1 may be a share of it"
            )
        return found

    def _refusal(self) -> ValueError:
        # What was said instead is not repeated: it may be quoted from what is judged.
        return ValueError(f"the verdict is not {'one of ' if self._choices else ''}{self}")


class VerdictForm:
    """One word out of a few, or a number from a scale, under the name of a field.

    A model that is held to a schema answers in JSON. Any other explains itself and ends with a
    line `FIELD mark: choice`. Only the last line of that shape counts, so that a verdict which is
    quoted from what is judged changes nothing: what is judged cannot contain the mark. `quoted`
    tells whether a text stands in what is judged: such an answer is a copy, and no verdict.

    An answer without such a line may be of the form `SCORE: 4` and `REASONING: …`, without the
    mark, if only one verdict is in it; see `UnmarkedLines`. `texts` are what is judged: a verdict
    that is written in one of them is never taken.

    >>> form = VerdictForm("rating", ["good", "poor"], mark="7f3a")
    >>> form.read("It says RATING: good, but it is not.\\nRATING 7f3a: poor", structured=False)
    Verdict(choice='poor', reason='It says RATING: good, but it is not.')
    """

    def __init__(
        self,
        field: str,
        choices: Sequence[str] | None = None,
        *,
        scale: tuple[float, float] | None = None,
        mark: str = "",
        quoted: Callable[[str], bool] | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        self.field, self.mark = field, mark
        self._allowed = Allowed(choices, scale)
        self._unmarked = UnmarkedLines(field, self._allowed, texts) if mark else None
        self._quoted = quoted
        self._lines = VerdictLines(f"{field.upper()} {mark}".rstrip(), self._allowed)

    @property
    def schema(self) -> dict[str, Any]:
        """The reason comes first: a verdict should follow from it."""
        return sheet_schema({_REASON_KEY: {"type": "string"}, self.field: self._allowed.schema})

    @property
    def instructions(self) -> str:
        """How to answer without a schema."""
        return (
            "Explain your verdict briefly. Then end with one last line, exactly of this form:\n"
            f"{self._lines.shape}: <{self._allowed}>"
        )

    def read(self, text: str, *, structured: bool) -> Verdict:
        """The verdict in an answer, or a ValueError that says why there is none."""
        if structured and not self._is_unmarked(text):
            found = read_object(text, self._quoted)
            reason = self._member(found, _REASON_KEY).value
            return Verdict(self._allowed.pick(self._member(found).value), str(reason).strip())
        last = self._last(text)
        choice = self._allowed.pick(last.said)
        before, after = text[: last.start].strip(), text[last.end :].strip(" \t/|;,").strip()
        if before.startswith("```") and after.endswith("```"):
            before, after = before.partition("\n")[2], after.removesuffix("```").rstrip()
        return Verdict(choice, without_heading("\n".join(part for part in (before, after) if part)))

    def place(self, text: str, *, structured: bool) -> int:
        """Where in an answer that can be read the choice begins."""
        if structured and not self._is_unmarked(text):
            start = self._member(read_object(text, self._quoted)).start
            return start + (text[start] == '"')
        last = self._last(text)
        return last.place + self._allowed.place(last.said)

    def asked_without_mark(self) -> None:
        """The user's own prompt asks for `SCORE: …`: of several such lines the last counts."""
        if self._unmarked is not None:
            self._unmarked.asked_for = True

    def _last(self, text: str) -> VerdictLine:
        """The last line with the mark; without one, a line that is as good as that."""
        try:
            return self._lines.last(text)
        except ValueError:
            found = None if self._unmarked is None else self._unmarked.last(text)
            if found is None:
                if self._unmarked is not None and self._unmarked.has_only_refused(text):
                    raise ValueError(
                        f"its line {self.field.upper()}: … has no verdict that is {self._allowed}"
                    ) from None
                raise
            return found

    def _is_unmarked(self, text: str) -> bool:
        """True if a model that should answer in JSON did so in lines."""
        is_json = _JSON_BEGINS.match(text) is not None
        return not is_json and self._unmarked is not None and self._unmarked.last(text) is not None

    def _member(self, found: dict[str, Member], name: str = "") -> Member:
        name = name or self.field
        if name not in found:
            raise ValueError(f"it has no {name!r}")
        return found[name]


class VerdictLine(NamedTuple):
    """A line with a verdict on it: what was said, where that begins, and the ends of the line."""

    said: str
    place: int
    start: int
    end: int


def _verdict_line(match: re.Match[str], group: int) -> VerdictLine:
    """The line of a match; a reasoning behind the verdict is no part of it."""
    said, end = match[group], match.end()
    if (behind := _REASON_BEHIND.search(said)) is not None:
        said, end = said[: behind.start()], match.start(group) + behind.start()
    return VerdictLine(said, match.start(group), match.start(), end)


class VerdictLines:
    """Lines `SHAPE: choice`, with whatever Markdown a model likes to put around them."""

    def __init__(self, shape: str, allowed: Allowed) -> None:
        self.shape = shape
        self._words = re.findall(r"\w+", shape.casefold())
        self._allowed = allowed

    def last(self, text: str) -> VerdictLine:
        """The last of them, or a ValueError; the format that was asked for is none itself."""
        found = [
            match
            for match in _line_of(len(self._words)).finditer(text)
            if [word.casefold() for word in match.groups()[:-1]] == self._words
            and not self._allowed.is_format(match.groups()[-1])
        ]
        if not found:
            raise ValueError(f"it has no line that begins with {self.shape}:")
        return _verdict_line(found[-1], len(self._words) + 1)


class UnmarkedLines:
    """A verdict line without a mark, as in `SCORE: 4` and below it `REASONING: …`.

    Without the mark a verdict could be quoted from what is judged. So one counts only if it is the
    only verdict of the answer and comes with a reasoning or stands alone; where the user's own
    prompt asks for such lines (`asked_for`), the last one counts. A verdict that is written in one
    of the `texts`, however it is written there, never counts.
    """

    def __init__(self, field: str, allowed: Allowed, texts: Sequence[str]) -> None:
        self._field, self._allowed, self._texts = field, allowed, texts
        self.asked_for = False

    def last(self, text: str) -> VerdictLine | None:
        """The line that counts, or None."""
        found = [
            (line, choice) for line in self._lines(text) if (choice := self._picked(line.said)) is not None
        ]
        if not found:
            return None
        choices = {choice for _, choice in found}
        has_reason = _REASON_LINE.search(text) or _REASON_BEHIND.match(text, found[-1][0].end)
        alone = len(_unblocked(text).split("\n")) == 1 or bool(has_reason)
        if not self.asked_for and not (len(choices) == 1 and alone):
            return None
        line, choice = found[-1]
        return None if self._is_in_texts(choice) else line

    def has_only_refused(self, text: str) -> bool:
        """True if there are lines of this field, and none has a verdict that is allowed."""
        lines = self._lines(text)
        return bool(lines) and all(self._picked(line.said) is None for line in lines)

    def _lines(self, text: str) -> list[VerdictLine]:
        matches = _line_of(1).finditer(text)
        return [_verdict_line(one, 2) for one in matches if one[1].casefold() == self._field]

    def _picked(self, said: str) -> str | None:
        try:
            return self._allowed.pick(said)
        except ValueError:
            return None

    def _is_in_texts(self, choice: str) -> bool:
        """True if the field's name and this verdict stand next to each other in a text."""
        pattern = _in_text(self._field)
        return any(
            _same(choice, match[1])
            for text in self._texts
            for way in ways(text)
            for match in pattern.finditer(way)
        )


def asks_without_mark(text: str, field: str) -> bool:
    """True if a prompt asks for lines such as `SCORE: …`.

    >>> asks_without_mark("Answer in this format:\\nSCORE: [1-5]", "score")
    True
    """
    lines = _line_of(1).finditer(text)
    return any(match[1].casefold() == field and bool(_BLANK.match(match[2])) for match in lines)


def _unblocked(text: str) -> str:
    """What stands in a block of code that is all of a text; any other text as it is."""
    block = _WHOLE_BLOCK.fullmatch(text)
    return text if block is None else block[1]


@functools.cache
def _in_text(field: str) -> re.Pattern[str]:
    """The name of a field and the word or number after it, whatever signs are between them."""
    return re.compile(rf"{re.escape(field)}[\W_]{{0,20}}({_NUMBER}|\w+)", re.IGNORECASE)


def _same(choice: str, said: str) -> bool:
    try:
        return float(choice) == float(said)
    except ValueError:
        return choice.casefold() == said.casefold()


def _undressed(said: str) -> str:
    """A number without what is put around it; brackets only if both are there."""
    bare = said.strip(_NUMBER_DRESS).removesuffix(".").rstrip(_NUMBER_DRESS)
    if bare[:1] + bare[-1:] in _PAIRS:
        return bare[1:-1].strip(_NUMBER_DRESS)
    return bare


@functools.cache
def _number_of(high: float) -> re.Pattern[str]:
    """A number, and after it perhaps what it is out of, as in "4/5 stars" or "4 out of 5"."""
    best = re.escape(f"{high:g}")
    out_of = rf"(?:[ \t]*/[ \t]*|[ \t]+(?:out[ \t]+)?of[ \t]+){best}"
    return re.compile(rf"({_NUMBER})(?:{out_of}(?:[ \t]+(?:points|stars))?)?", re.IGNORECASE)


@functools.cache
def _line_of(words: int) -> re.Pattern[str]:
    """A line that begins with so many words.

    The words are compared rather than put into the pattern: a mark is new in every call, and to
    compile a pattern takes longer than everything else.
    """
    said = r"[^\w\n]+".join([r"(\w+)"] * words)
    return re.compile(rf"^[^\w\n]*{said}[^\w\n]*?[:=][ \t]*(.*)$", re.MULTILINE)


def read_object(text: str, quoted: Callable[[str], bool] | None) -> dict[str, Member]:
    """The members of an answer that is one JSON object, and not a copy of what is judged."""
    found = members(text)
    if quoted is not None and quoted(text):
        raise ValueError("it is a copy of something in the texts, not a verdict on them")
    return found


def sheet_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of an object that has all these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def without_heading(reason: str) -> str:
    """A reason without the word "Reason:" before it.

    >>> without_heading("**Reasoning:** it is right")
    'it is right'
    """
    return _REASON.sub("", reason.strip(), count=1).lstrip("* \t").strip()
