"""Judge templates of the simple kind: a text in which `{name}` stands for a value."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor import resources
from proctor.errors import EvaluatorError, Problem, nearest
from proctor.evaluators.judging.templates import fenced
from proctor.evaluators.judging.transcript import CHAT_SESSION
from proctor.prompts import MarkdownSection, PromptTemplate
from proctor.utf8 import describe_error, how_to_convert

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


def parsed(
    text: str, key: str, *, ns: str = "judges", where: str = "judge template"
) -> PromptTemplate[Any]:
    """A template out of its text, or every fault in it at once.

    >>> parsed("{rubric_name} {rubric_description} {scoring_criteria} {chatsession}", "mine")
    Traceback (most recent call last):
        ...
    proctor.errors.EvaluatorError: judge template: the judge template has faults
      - line 1: nothing can be put in for {chatsession}; did you mean 'chat_session'?
      - it has no {chat_session} in it
    To mend it: write {{name}} for a name in braces that is no placeholder
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
    return problems + [
        Problem("", f"it has no {{{name}}} in it") for name in NEEDED if name not in names
    ]


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
    text = resources.text("evaluators", "judging", "prompts", "judge_template.txt")
    return fenced(parsed(text, "judge_template", ns="proctor.judges"))
