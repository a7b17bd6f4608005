"""The prompts of judges: those that ship, and users' own, always under the words on the fence."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.core import resources
from proctor.errors import EvaluatorError, Problem, nearest
from proctor.evaluators.judges.fence import Fence
from proctor.models.prompts import MarkdownSection, Prompt, PromptTemplate

OUTPUT, EXPECTED = "output", "expected"
EVIDENCE = ("input", "context", EXPECTED, OUTPUT)
_FENCE, _MARK = "fence", "mark"


@functools.cache
def shipped(key: str) -> PromptTemplate[Any]:
    """A prompt that ships with Proctor, by its key.

    >>> shipped("llm-judge").id.partition("@")[0]
    'proctor.judges/llm-judge'
    """
    return fenced(_file(key))


def fenced(template: PromptTemplate[Any]) -> PromptTemplate[Any]:
    """A prompt with the words on the fence before everything else.

    They are part of the prompt, so that its version changes when they do.
    """
    (notice,) = _file(_FENCE).sections
    words = MarkdownSection[Any](notice.title, notice.template, _FENCE, role=notice.role)
    whole: PromptTemplate[Any] = PromptTemplate(
        template.ns,
        template.key,
        [words, *template.sections],
        name=template.name,
        parameters={**template.parameters, _MARK: str},
    )
    # A version that was given by hand is the user's to keep; else it is a digest of the whole.
    if not _is_digest(template):
        whole.version = template.version
    return whole


def chosen(prompt: Any, key: str, known: tuple[str, ...], where: str) -> PromptTemplate[Any]:
    """The user's own prompt, from its file or as a template, or the one that ships.

    It must show the output, and may name only what a judge can put in.
    """
    if prompt is None:
        return shipped(key)
    if not isinstance(prompt, str | Path | PromptTemplate):
        raise EvaluatorError(f"a prompt is a file or a PromptTemplate, got {prompt!r}", where=where)
    if isinstance(prompt, str) and ("\n" in prompt or f"${OUTPUT}" in prompt):
        raise EvaluatorError(
            "a prompt is a file or a PromptTemplate, got a text",
            where=where,
            fix="write the text to a file under a head with its key, or PromptTemplate.parse it",
        )
    own = prompt if isinstance(prompt, PromptTemplate) else PromptTemplate.load(prompt)
    taken = (*known, *EVIDENCE, _MARK)
    problems = [
        Problem(f"${name}", f"nothing can be put in here; {nearest(name, taken)}")
        for name in own.parameters
        if name not in taken
    ]
    if OUTPUT not in own.parameters:
        problems.append(Problem(f"${OUTPUT}", "it has no place in the text"))
    if problems:
        raise EvaluatorError("the prompt does not fit", where=f"{where}, {own.id}", problems=problems)
    return fenced(own)


def needs_expected(template: PromptTemplate[Any]) -> bool:
    """True if a prompt cannot be asked without a reference."""
    return any(EXPECTED in section.placeholders and section.only_if is None for section in template.sections)


def bound(template: PromptTemplate[Any], fence: Fence, words: Mapping[str, str]) -> Prompt[Any]:
    """A prompt with the texts put in, each behind the fence; those it has no place for are not."""
    values = {**words, **fence.blocks(), _MARK: fence.mark}
    # All are texts, and none is without a place: there is nothing to check as users' values are.
    return Prompt(template, {n: v for n, v in values.items() if n in template.parameters})


@functools.cache
def _file(key: str) -> PromptTemplate[Any]:
    path = resources.path("evaluators", "judges", "prompts", f"{key}.md")
    return PromptTemplate.load(path)


def _is_digest(template: PromptTemplate[Any]) -> bool:
    again: PromptTemplate[Any] = PromptTemplate(template.ns, template.key, template.sections)
    return again.version == template.version
