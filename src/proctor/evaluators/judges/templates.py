"""The prompts of judges: built-in prompts and users' own prompts, always with the notice about the fence."""

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
    """Return a built-in prompt by its key."""
    return add_fence_notice(_load(key))


def add_fence_notice(template: PromptTemplate[Any]) -> PromptTemplate[Any]:
    """Put the notice about the fence before a prompt, as part of its version."""
    (notice,) = _load(_FENCE).sections
    section = MarkdownSection[Any](notice.title, notice.template, _FENCE, role=notice.role)
    fenced_template: PromptTemplate[Any] = PromptTemplate(
        template.ns,
        template.key,
        [section, *template.sections],
        name=template.name,
        parameters={**template.parameters, _MARK: str},
    )
    # A version that the user set is preserved; otherwise the version is a digest of the prompt.
    digest = PromptTemplate[Any](template.ns, template.key, template.sections).version
    if template.version != digest:
        fenced_template.version = template.version
    return fenced_template


def select_template(prompt: Any, key: str, variables: tuple[str, ...], where: str) -> PromptTemplate[Any]:
    """Return the user's prompt, from a file or a template, or the built-in prompt.

    It must contain the output, and only placeholders that a judge can fill.
    """
    if prompt is None:
        return load_template(key)
    if not isinstance(prompt, str | Path | PromptTemplate):
        raise EvaluatorError(f"prompt must be the path of a file or a PromptTemplate, got {prompt!r}", where=where)
    if isinstance(prompt, str) and ("\n" in prompt or f"${OUTPUT}" in prompt):
        raise EvaluatorError(
            "prompt must be the path of a file or a PromptTemplate, got the text of a prompt",
            where=where,
            fix="write the text to a file that starts with the lines ---, key: NAME and ---, and pass its path",
        )
    user_template = prompt if isinstance(prompt, PromptTemplate) else PromptTemplate.load(prompt)
    allowed = (*variables, *EVIDENCE, _MARK)
    problems = [
        Problem(f"${name}", f"unknown placeholder; {suggest_name(name, allowed)}")
        for name in user_template.parameters
        if name not in allowed
    ]
    if OUTPUT not in user_template.parameters:
        problems.append(Problem(f"${OUTPUT}", "the prompt must contain this placeholder"))
    if problems:
        raise EvaluatorError("the prompt is invalid", where=f"{where}, {user_template.id}", problems=problems)
    return add_fence_notice(user_template)


def needs_expected(template: PromptTemplate[Any]) -> bool:
    return any(EXPECTED in section.placeholders and section.only_if is None for section in template.sections)


def fill_template(template: PromptTemplate[Any], fence: Fence, values: Mapping[str, str]) -> Prompt[Any]:
    placeholder_values = {**values, **fence.blocks(), _MARK: fence.delimiter}
    # All values are strings for known placeholders, so they need no validation.
    return Prompt(template, {name: value for name, value in placeholder_values.items() if name in template.parameters})


@functools.cache
def _load(key: str) -> PromptTemplate[Any]:
    return PromptTemplate.load(resources.path("evaluators", "judges", "prompts", f"{key}.md"))
