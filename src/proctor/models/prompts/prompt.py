"""Prompts: a template with the values of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any, Generic

from proctor.errors import ModelError, Problem, suggest_name
from proctor.models.prompts.template import OutputT, PromptTemplate, is_of_type, type_name, values_of
from proctor.records.session import Message


class Prompt(Generic[OutputT]):
    """A template with the values of its parameters.

    >>> from proctor import MarkdownSection
    >>> section = MarkdownSection("", "Rate this: $output", key="task")
    >>> prompt = Prompt(PromptTemplate("demo", "rate", [section])).bind(output="4")
    >>> [message.content for message in prompt.messages()]
    ['Rate this: 4']
    """

    def __init__(self, template: PromptTemplate[OutputT], values: Mapping[str, Any] | None = None) -> None:
        self.template = template
        self.values = dict(values or {})

    @property
    def output_type(self) -> Any:
        """The type of the answer, or None for plain text."""
        return self.template.output_type

    def bind(self, *params: Any, **values: Any) -> Prompt[OutputT]:
        """Add values: an object for each section's type, or values by name.

        >>> from proctor import MarkdownSection
        >>> section = MarkdownSection("", "$greeting, $name!", key="task")
        >>> bound = Prompt(PromptTemplate("demo", "greet", [section])).bind({"greeting": "Hello"})
        >>> bound.bind(name="Ada").text
        'Hello, Ada!'
        """
        bound = dict(self.values)
        for parameters in params:
            bound |= values_of(parameters)
        bound |= values
        known = self.template.parameters
        problems = [
            Problem(name, f"there is no such parameter; {suggest_name(name, known)}")
            for name in bound
            if name not in known
        ]
        problems += [
            Problem(name, f"expected {type_name(known[name])}, not {value!r}")
            for name, value in bound.items()
            if name in known and not is_of_type(value, known[name])
        ]
        if problems:
            raise ModelError(
                "the parameters do not fit the prompt", where=self.template.key, problems=problems
            )
        return Prompt(self.template, bound)

    def messages(self) -> tuple[Message, ...]:
        """Render the sections in order; adjacent sections of one role share a message."""
        sections = [
            section
            for section in self.template.sections
            if section.only_if is None or self.values.get(section.only_if) is not None
        ]
        if not sections:
            raise ModelError("the prompt is empty: every section was left out", where=self.template.key)
        missing = {n for s in sections for n in s.placeholders if self.values.get(n) is None}
        if missing:
            raise ModelError(
                f"parameters are missing: {', '.join(sorted(missing))}",
                where=self.template.key,
                fix="bind them",
            )
        return tuple(
            Message(role, "\n\n".join(section.render(self.values) for section in group))
            for role, group in groupby(sections, key=lambda section: section.role)
        )

    @property
    def text(self) -> str:
        """All messages as one text."""
        return "\n\n".join(message.content for message in self.messages())
