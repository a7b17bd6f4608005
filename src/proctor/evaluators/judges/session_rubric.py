"""One rubric as a judge of whole sessions."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from proctor.core import resources
from proctor.core.resources import describe_error, how_to_convert
from proctor.core.stopwatch import Stopwatch
from proctor.errors import CallFailed, ConfigError, EvaluatorError, Problem, StopRun, nearest
from proctor.evaluators.calling import NO_SESSION
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.judge import alone, failed
from proctor.evaluators.judges.opinion import Asking, Question, give
from proctor.evaluators.judges.scale import Numbers, numbers
from proctor.evaluators.judges.templates import fenced
from proctor.evaluators.judges.transcript import CHAT_SESSION, Shown
from proctor.evaluators.rubric_files import load_rubrics, one_rubric
from proctor.models.asking import conditions
from proctor.models.prompts import MarkdownSection, PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records.numbers import is_number
from proctor.records.rubric import Rubric, RubricSet, further_keys, scale_of
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import SessionView
from proctor.sessions import current as sessions

NEEDED = ("rubric_name", "rubric_description", "scoring_criteria", CHAT_SESSION)
SCALE = ("scale", "min_score", "max_score")
# A name in single braces is a placeholder, in double ones the name in braces; all else is text.
_NAME = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


def judge_template(given: str | Path | PromptTemplate[Any] | None = None) -> PromptTemplate[Any]:
    """The template of rubric judges: the user's file, or the one that ships.

    It must have {rubric_name}, {rubric_description}, {scoring_criteria} and {chat_session} in it
    and may have {scale}, {min_score} and {max_score}. Any other {name} is refused; {{name}} is
    the name in braces, and braces around anything else are text.

    >>> judge_template().id.partition("@")[0]
    'proctor.judges/judge_template'
    """
    if given is None:
        return _shipped()
    if isinstance(given, PromptTemplate):
        _refuse(_faults(list(given.parameters)), given.id)
        return fenced(given)
    path = Path(given)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvaluatorError(
            f"the judge template cannot be read: {describe_error(error)}",
            where=str(path),
            fix=how_to_convert(file=str(path)),
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EvaluatorError(
            f"the judge template cannot be read: {reason}",
            where=str(path),
            fix="give the path of a text file with the placeholders in it",
        ) from None
    return fenced(parsed(text, path.stem or "judge_template", where=str(path)))


def parsed(text: str, key: str, *, ns: str = "judges", where: str = "judge template") -> PromptTemplate[Any]:
    """A template out of its text, or every fault in it at once.

    >>> parsed("{rubric_name} {rubric_description} {scoring_criteria} {chatsession}", "mine")
    Traceback (most recent call last):
        ...
    proctor.errors.EvaluatorError: judge template: the judge template has faults
      - line 1: nothing can be put in for {chatsession}; did you mean 'chat_session'?
      - it has no {chat_session} in it
    Fix: write {{name}} for a name in braces that is no placeholder
    """
    text = text.replace("\r\n", "\n")
    found = [(match[2], text.count("\n", 0, match.start()) + 1) for match in _names(text)]
    _refuse(_faults([name for name, _ in found], [line for _, line in found]), where)
    section = MarkdownSection[Any]("", _in_dollars(text).strip(), "template")
    return PromptTemplate(ns, key, [section])


def _names(text: str) -> list[re.Match[str]]:
    return [match for match in _NAME.finditer(text) if match[2]]


def _in_dollars(text: str) -> str:
    """The same text with placeholders as the prompts have them."""
    pieces, end = [], 0
    for match in _NAME.finditer(text):
        pieces.append(text[end : match.start()].replace("$", "$$"))
        name = f"${{{match[2]}}}" if match[2] else f"{{{match[1]}}}"
        pieces.append(_on_lines(name, match) if match[2] == CHAT_SESSION else name)
        end = match.end()
    return "".join(pieces) + text[end:].replace("$", "$$")


def _on_lines(name: str, match: re.Match[str]) -> str:
    """A placeholder on lines of its own: the fence that comes there begins and ends lines."""
    text = match.string
    before = text[: match.start()].rpartition("\n")[2]
    after = text[match.end() :].partition("\n")[0]
    return "\n" * bool(before) + name + "\n" * bool(after.strip())


def _faults(names: Sequence[str], lines: Sequence[int] = ()) -> list[Problem]:
    known = (*NEEDED, *SCALE)
    places = [f"line {line}" for line in lines] or [""] * len(names)
    problems = [
        Problem(place, f"nothing can be put in for {{{name}}}; {nearest(name, known)}")
        for name, place in zip(names, places, strict=True)
        if name not in known
    ]
    return problems + [Problem("", f"it has no {{{name}}} in it") for name in NEEDED if name not in names]


def _refuse(problems: list[Problem], where: str) -> None:
    if problems:
        raise EvaluatorError(
            "the judge template has faults",
            where=where,
            problems=problems,
            fix="write {{name}} for a name in braces that is no placeholder",
        )


@functools.cache
def _shipped() -> PromptTemplate[Any]:
    text = resources.text("evaluators", "judges", "prompts", "judge_template.txt")
    return fenced(parsed(text, "judge_template", ns="proctor.judges"))


# The status of a rubric that could not be scored.
EVALUATION_FAILED = "evaluation_failed"
# A turn is a call and its result, and every character of it may become a line of its own.
_ROOM = 12


class Places:
    """So many calls at a time, over all who share it; how many is nothing that scores rest on.

    None is for as many as come.
    """

    __slots__ = ("_at_once", "_free")
    __proctor_identity__: ClassVar[tuple[str, ...]] = ()

    def __init__(self, at_once: int | None = None) -> None:
        # With none at all, whoever asks would wait for ever.
        if at_once is not None and at_once < 1:
            raise ValueError(f"there is at least one place, got {at_once!r}")
        self._at_once = at_once
        # Weak, so that nothing is left of a loop that is gone.
        self._free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return "Places()"

    async def __aenter__(self) -> None:
        if (free := self._here()) is None:
            return
        await free.acquire()
        if conditions.get().is_stopping():
            free.release()
            raise StopRun("it was not begun: the run is stopping")

    async def __aexit__(self, *error: object) -> None:
        if (free := self._here()) is not None:
            free.release()

    def _here(self) -> asyncio.Semaphore | None:
        if self._at_once is None:
            return None
        loop = asyncio.get_running_loop()
        if loop not in self._free:
            self._free[loop] = asyncio.Semaphore(self._at_once)
        return self._free[loop]


class Time:
    """Seconds for a verdict, or time without end; how many is nothing that scores rest on."""

    __slots__ = ("seconds",)
    __proctor_identity__: ClassVar[tuple[str, ...]] = ()

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds

    def __repr__(self) -> str:
        return "Time()"


class SessionRubric(NamedTuple):
    """A judge that scores whole sessions by one rubric; `places` are shared with other rubrics.

    Its time is that of the model: not while it waits for a place, nor for its turn at an endpoint.
    """

    adapter: ProviderAdapter
    template: PromptTemplate[Any]
    scale: Numbers
    how: Asking
    shown: Shown
    time: Time
    places: Places
    warning: str = ""

    async def score(self, output: Any, sample: Any, session: SessionView | None) -> Score:
        """The score of a session; without a verdict an error, whose details say so."""
        if self.warning:
            sessions.warn(self.warning)
        if session is None or not session.recorded:
            return Score.skipped(NO_SESSION)
        asked = sample.input if isinstance(sample, Sample) else None
        fence = self.shown.of(session, asked, output)
        if fence is None:
            return Score.skipped("nothing was said and no tool was called in the session")
        async with self.places:
            score = await self._in_time(fence)
        if score.status != "error":
            return score
        return msgspec.structs.replace(score, details={"status": EVALUATION_FAILED, **score.details})

    async def _in_time(self, fence: Fence) -> Score:
        seconds = self.time.seconds
        if seconds is None:
            return await self._asked(fence)
        watch = Stopwatch(seconds)
        try:
            async with watch:
                return await self._asked(fence)
        except TimeoutError:
            if not watch.expired:
                raise
            who = {"model": self.adapter.model, "prompt": self.template.id}
            why = f"; at last it {watch.noted}" if watch.noted else ""
            return Score.error(
                f"{self.adapter.model}: no verdict within {seconds:g} s{why}",
                {"judge": {**who, "error": "TimeoutError"}},
            )

    async def _asked(self, fence: Fence) -> Score:
        question = Question(self.template, fence)
        try:
            return alone(await give(self.adapter, question, self.scale, self.how), self.scale)
        except CallFailed as error:
            return failed(self.adapter, self.template, [error])


def rubric_for(given: Any, among: Any, where: str) -> Rubric:
    """The rubric that is meant: as it is, as plain data, or by its id in a rubric file."""
    try:
        return one_rubric(given, among)
    except ConfigError as error:
        raise EvaluatorError(
            error.what, where=error.where or where, fix=error.fix, problems=error.problems
        ) from None


def rubrics_of(given: Any, where: str) -> RubricSet:
    """The set of rubrics that is meant: a file, plain data, or "starter"."""
    try:
        return load_rubrics(given)
    except ConfigError as error:
        raise EvaluatorError(
            error.what, where=error.where or where, fix=error.fix, problems=error.problems
        ) from None


def session_rubric(
    adapter: ProviderAdapter,
    rubric: Rubric,
    *,
    template: str | Path | PromptTemplate[Any] | None,
    scale: Any,
    threshold: float | None,
    how: Asking,
    shown: Shown,
    timeout: float | None,
    places: Places,
    where: str,
) -> SessionRubric:
    """The judge of one rubric, or what is wrong with its options."""
    if timeout is not None and not (is_number(timeout) and timeout > 0):
        raise EvaluatorError(f"a timeout is above 0 seconds, got {timeout!r}", where=where)
    taken = numbers(scale_of(rubric, scale), threshold, where)
    low, high = f"{taken.low:g}", f"{taken.high:g}"
    words: Mapping[str, str] = {
        "rubric_name": rubric.name,
        "rubric_description": rubric.description,
        "scoring_criteria": rubric.scoring_criteria,
        "scale": f"{low}-{high}",
        "min_score": low,
        "max_score": high,
    }
    prompt = judge_template(template).filled(words)
    warning = further_keys(rubric)
    return SessionRubric(adapter, prompt, taken, how, shown, Time(timeout), places, warning)


def shown_as(content: Any, session: Any, where: str) -> Shown:
    """How much of a session a judge is shown, in characters."""
    if not (is_number(content) and content == int(content) >= 100):
        raise EvaluatorError(f"max_content_chars is a whole number from 100 up, got {content!r}", where=where)
    if not is_number(session) or session < _ROOM * content:
        raise EvaluatorError(
            f"max_session_chars is at least {_ROOM} times max_content_chars, so that a turn "
            f"has room; got {session!r}",
            where=where,
        )
    return Shown(content, session)
