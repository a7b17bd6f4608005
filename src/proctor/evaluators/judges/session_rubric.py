"""A judge that scores complete sessions by one rubric."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import msgspec

from proctor.core import resources
from proctor.core.resources import describe_conversion, describe_decode_error, describe_os_error
from proctor.core.stopwatch import Stopwatch
from proctor.errors import CallFailed, EvaluatorError, Problem, StopRun, suggest_name
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.judge import JudgeOptions, Question, failed_score, get_opinion, single_score
from proctor.evaluators.judges.scale import NumberScale
from proctor.evaluators.judges.templates import add_fence_notice
from proctor.evaluators.judges.transcript import CHAT_SESSION, TranscriptCache
from proctor.evaluators.score_conversion import NO_SESSION
from proctor.models.connect import display_name
from proctor.models.model_calls import call_context
from proctor.models.prompts import MarkdownSection, PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records.numbers import is_number
from proctor.records.rubric import Rubric
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import SessionView
from proctor.sessions import current as sessions

REQUIRED = ("rubric_name", "rubric_description", "scoring_criteria", CHAT_SESSION)
OPTIONAL = ("scale", "min_score", "max_score")
# A name in single braces is a placeholder; double braces are escaped single braces.
_NAME = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


def judge_template(source: Any = None) -> PromptTemplate[Any]:
    """Return the template of rubric judges: the user's file, or the built-in template.

    It must contain {rubric_name}, {rubric_description}, {scoring_criteria} and {chat_session}, and may contain {scale},
    {min_score} and {max_score}. Any other {name} is an error; {{name}} is an escaped {name}, and braces around anything
    else are plain text.
    """
    if source is None:
        return _built_in_template()
    if isinstance(source, PromptTemplate):
        _check_placeholders([(name, "") for name in source.parameters], source.id)
        return add_fence_notice(source)
    if not isinstance(source, str | Path) or source == "":
        what = f"prompt must be a file or a PromptTemplate, got {source!r}"
        raise EvaluatorError(what, where="rubric", fix="pass the path of a text file with placeholders")
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        what = describe_os_error(error, "the judge template cannot be read")
        fix = "pass the path of a text file with placeholders"
        if isinstance(error, UnicodeDecodeError):
            what = f"the judge template cannot be read: {describe_decode_error(error)}"
            fix = describe_conversion(file=str(path))
        raise EvaluatorError(what, where=str(path), fix=fix) from None
    return add_fence_notice(parse_template(text, path.stem or "judge_template", where=str(path)))


def parse_template(text: str, key: str, *, ns: str = "judges", where: str = "judge template") -> PromptTemplate[Any]:
    """Create a template from its text; one error lists all problems."""
    text = text.replace("\r\n", "\n")
    matches = [match for match in _NAME.finditer(text) if match[2]]
    lines = [f"line {text.count(chr(10), 0, match.start()) + 1}" for match in matches]
    _check_placeholders([(match[2], line) for match, line in zip(matches, lines, strict=True)], where)
    section = MarkdownSection[Any]("", _to_dollar_placeholders(text).strip(), "template")
    return PromptTemplate(ns, key, [section])


def _to_dollar_placeholders(text: str) -> str:
    pieces, end = [], 0
    for match in _NAME.finditer(text):
        pieces.append(text[end : match.start()].replace("$", "$$"))
        end = match.end()
        name = f"${{{match[2]}}}" if match[2] else f"{{{match[1]}}}"
        if match[2] == CHAT_SESSION:
            # The fence must start and end on its own line.
            before = text[: match.start()].rpartition("\n")[2]
            after = text[end:].partition("\n")[0]
            name = "\n" * bool(before) + name + "\n" * bool(after.strip())
        pieces.append(name)
    return "".join(pieces) + text[end:].replace("$", "$$")


def _check_placeholders(placeholders: Sequence[tuple[str, str]], where: str) -> None:
    """Raise an error for unknown and missing placeholders; each has its position in the file."""
    allowed = (*REQUIRED, *OPTIONAL)
    problems = [
        Problem(position, f"unknown placeholder {{{name}}}; {suggest_name(name, allowed)}")
        for name, position in placeholders
        if name not in allowed
    ]
    missing = [name for name in REQUIRED if name not in dict(placeholders)]
    problems += [Problem("", f"the placeholder {{{name}}} is missing") for name in missing]
    if problems:
        fix = "write {{name}} for a name in braces that is not a placeholder"
        raise EvaluatorError("the judge template is invalid", where=where, problems=problems, fix=fix)


@functools.cache
def _built_in_template() -> PromptTemplate[Any]:
    text = resources.text("evaluators", "judges", "prompts", "judge_template.txt")
    return add_fence_notice(parse_template(text, "judge_template", ns="proctor.judges"))


# The status of a rubric that could not be scored.
EVALUATION_FAILED = "evaluation_failed"
# The worst case for one turn: a call and its result, with a line break after every character.
_MIN_CONTENTS = 12


class ConcurrencyLimit:
    """Limits the concurrent calls of the evaluators that share it; None means no limit. It does not affect scores."""

    __slots__ = ("_limit", "_semaphores")
    __proctor_identity__: ClassVar[tuple[str, ...]] = ()

    def __init__(self, limit: int | None = None) -> None:
        # With a limit of 0, calls would wait forever.
        if limit is not None and limit < 1:
            raise ValueError(f"the concurrency limit must be 1 or more, got {limit!r}")
        self._limit = limit
        # Weak references, so that closed event loops are freed.
        self._semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._semaphores = WeakKeyDictionary()

    async def __aenter__(self) -> None:
        if (semaphore := self._semaphore()) is None:
            return
        await semaphore.acquire()
        if call_context.get().is_stopping():
            semaphore.release()
            raise StopRun("the rubric was not scored, because the run is stopping")

    async def __aexit__(self, *error: object) -> None:
        if (semaphore := self._semaphore()) is not None:
            semaphore.release()

    def _semaphore(self) -> asyncio.Semaphore | None:
        if self._limit is None:
            return None
        return self._semaphores.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._limit))


@dataclass(frozen=True, slots=True)
class SessionRubric:
    """A judge that scores complete sessions by one rubric.

    The timeout, in seconds, covers only the model, not the wait for other calls or for an endpoint.
    """

    # Scores do not depend on the other fields.
    __proctor_identity__: ClassVar = ("adapter", "template", "scale", "options", "transcripts", "warning")

    adapter: ProviderAdapter
    template: PromptTemplate[Any]
    scale: NumberScale
    options: JudgeOptions
    transcripts: TranscriptCache
    timeout: float | None
    limit: ConcurrencyLimit
    warning: str = ""

    async def score(self, output: Any, sample: Any, session: SessionView | None) -> Score:
        """Return the score of a session, or an error score without a verdict."""
        if self.warning:
            sessions.warn(self.warning)
        if session is None or not session.recorded:
            return Score.skipped(NO_SESSION)
        input_value = sample.input if isinstance(sample, Sample) else None
        fence = self.transcripts.get(session, input_value, output)
        if fence is None:
            return Score.skipped("the session has no text and no tool calls")
        async with self.limit:
            score = await self._ask_with_timeout(fence)
        if score.status != "error":
            return score
        return msgspec.structs.replace(score, details={"status": EVALUATION_FAILED, **score.details})

    async def _ask_with_timeout(self, fence: Fence) -> Score:
        if self.timeout is None:
            return await self._ask(fence)
        watch = Stopwatch(self.timeout)
        try:
            async with watch:
                return await self._ask(fence)
        except TimeoutError:
            if not watch.expired:
                raise
            last_failure = f"; the last attempt {watch.last_failure}" if watch.last_failure else ""
            judge = {"model": self.adapter.model, "prompt": self.template.id, "error": "TimeoutError"}
            reason = f"{display_name(self.adapter.model)}: no verdict within {self.timeout:g} s{last_failure}"
            return Score.error(reason, {"judge": judge})

    async def _ask(self, fence: Fence) -> Score:
        question = Question(self.template, fence)
        try:
            opinion = await get_opinion(self.adapter, question, self.scale, self.options)
            return single_score(opinion, self.scale)
        except CallFailed as error:
            return failed_score(self.adapter, self.template, [error])


def fill_judge_template(template: Any, rubric: Rubric, scale: NumberScale) -> PromptTemplate[Any]:
    """Return a template with the texts and the scale of a rubric."""
    low, high = f"{scale.low:g}", f"{scale.high:g}"
    values = {
        "rubric_name": rubric.name,
        "rubric_description": rubric.description,
        "scoring_criteria": rubric.scoring_criteria,
        "scale": f"{low}-{high}",
        "min_score": low,
        "max_score": high,
    }
    return judge_template(template).filled(values)


def create_transcript_cache(max_content: Any, max_session: Any, where: str) -> TranscriptCache:
    """Create the transcripts for a judge, with their limits in characters."""
    if not (is_number(max_content) and max_content == int(max_content) >= 100):
        what = f"max_content_chars must be an integer, 100 or more, got {max_content!r}"
        raise EvaluatorError(what, where=where)
    if not is_number(max_session) or max_session < _MIN_CONTENTS * max_content:
        raise EvaluatorError(
            f"max_session_chars must be at least {_MIN_CONTENTS} times max_content_chars, so that a turn "
            f"fits; got {max_session!r}",
            where=where,
        )
    return TranscriptCache(max_content, max_session)
