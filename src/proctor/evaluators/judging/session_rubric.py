"""One rubric as a judge of whole sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from proctor import sessions
from proctor.asking.conditions import conditions
from proctor.errors import CallFailed, ConfigError, EvaluatorError, StopRun
from proctor.evaluators.calling import NO_SESSION
from proctor.evaluators.judging.braces import judge_template
from proctor.evaluators.judging.fence import Fence
from proctor.evaluators.judging.judge import alone, failed
from proctor.evaluators.judging.opinion import Asking, Question, give
from proctor.evaluators.judging.scale import Numbers, numbers
from proctor.evaluators.judging.transcript import Shown
from proctor.ports import ProviderAdapter
from proctor.prompts import PromptTemplate
from proctor.records.numbers import is_number
from proctor.records.rubric import Rubric, RubricSet, further_keys, scale_of
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import SessionView
from proctor.rubrics.files import load_rubrics, one_rubric
from proctor.stopwatch import Stopwatch

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
        self._free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

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
        return msgspec.structs.replace(
            score, details={"status": EVALUATION_FAILED, **score.details}
        )

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
        raise EvaluatorError(
            f"max_content_chars is a whole number from 100 up, got {content!r}", where=where
        )
    if not is_number(session) or session < _ROOM * content:
        raise EvaluatorError(
            f"max_session_chars is at least {_ROOM} times max_content_chars, so that a turn "
            f"has room; got {session!r}",
            where=where,
        )
    return Shown(content, session)
