"""The prompts of judges: the shipped ones and users' own, always with the notice about the fence."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.core import resources
from proctor.errors import EvaluatorError, Problem, suggest_name
from proctor.evaluators.judges.fence import Fence
from proctor.models.prompts import MarkdownSection, Prompt, PromptTemplate

OUTPUT, EXPECTED = "output", "expected"
EVIDENCE = ("input", "context", EXPECTED, OUTPUT)
_FENCE, _MARK = "fence", "mark"


@functools.cache
def load_template(key: str) -> PromptTemplate[Any]:
    """Return a prompt that ships with Proctor, by its key."""
    return add_fence_notice(_load(key))


def add_fence_notice(template: PromptTemplate[Any]) -> PromptTemplate[Any]:
    """Put the notice about the fence before a prompt, as part of its version."""
    (notice,) = _load(_FENCE).sections
    section = MarkdownSection[Any](notice.title, notice.template, _FENCE, role=notice.role)
    fenced: PromptTemplate[Any] = PromptTemplate(
        template.ns,
        template.key,
        [section, *template.sections],
        name=template.name,
        parameters={**template.parameters, _MARK: str},
    )
    # A version that the user set stays; otherwise it is a digest of the prompt.
    digest = PromptTemplate[Any](template.ns, template.key, template.sections).version
    if template.version != digest:
        fenced.version = template.version
    return fenced


def select_template(prompt: Any, key: str, variables: tuple[str, ...], where: str) -> PromptTemplate[Any]:
    """Return the user's prompt, from a file or a template, or the shipped one.

    It must contain the output, and only placeholders that a judge can fill.
    """
    if prompt is None:
        return load_template(key)
    if not isinstance(prompt, str | Path | PromptTemplate):
        raise EvaluatorError(f"prompt must be a file or a PromptTemplate, got {prompt!r}", where=where)
    if isinstance(prompt, str) and ("\n" in prompt or f"${OUTPUT}" in prompt):
        raise EvaluatorError(
            "prompt must be a file or a PromptTemplate, got a text",
            where=where,
            fix="write the text to a file that starts with the lines ---, key: NAME and ---, and pass its path",
        )
    own = prompt if isinstance(prompt, PromptTemplate) else PromptTemplate.load(prompt)
    allowed = (*variables, *EVIDENCE, _MARK)
    problems = [
        Problem(f"${name}", f"there is no such placeholder; {suggest_name(name, allowed)}")
        for name in own.parameters
        if name not in allowed
    ]
    if OUTPUT not in own.parameters:
        problems.append(Problem(f"${OUTPUT}", "the prompt must contain this placeholder"))
    if problems:
        raise EvaluatorError("the prompt is invalid", where=f"{where}, {own.id}", problems=problems)
    return add_fence_notice(own)


def needs_expected(template: PromptTemplate[Any]) -> bool:
    return any(EXPECTED in section.placeholders and section.only_if is None for section in template.sections)


def fill_template(template: PromptTemplate[Any], fence: Fence, values: Mapping[str, str]) -> Prompt[Any]:
    filled = {**values, **fence.blocks(), _MARK: fence.mark}
    # All values are texts with a placeholder, so they need no validation.
    return Prompt(template, {name: value for name, value in filled.items() if name in template.parameters})


@functools.cache
def _load(key: str) -> PromptTemplate[Any]:
    return PromptTemplate.load(resources.path("evaluators", "judges", "prompts", f"{key}.md"))
