"""Prompts: templates with strict placeholders, typed parameters and a version, and their values."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from string import Template
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from proctor.core import optional as extras
from proctor.core.resources import describe_conversion, describe_decode_error, describe_os_error
from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.errors import ModelError, Problem, join_choices, suggest_name
from proctor.records import codec
from proctor.records.session import Message
from proctor.records.validation import describe_types

# The types in the front matter of a prompt file.
TYPES: Mapping[str, Any] = {
    "str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict, "any": Any,
}  # fmt: skip


def read_field_types(params_type: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, struct or pydantic model, with their types."""
    if extras.is_pydantic_model(params_type):
        return {name: field.annotation for name, field in params_type.model_fields.items()}
    if dataclasses.is_dataclass(params_type):
        names = [field.name for field in dataclasses.fields(params_type)]
    elif isinstance(params_type, type) and issubclass(params_type, msgspec.Struct):
        names = list(params_type.__struct_fields__)
    else:
        raise ModelError(f"{params_type!r} has no fields", fix="use a dataclass, a struct or a pydantic model")
    try:
        hints = get_type_hints(params_type)
    except NameError:
        # Names that only type checkers import cannot be resolved, so types are not checked.
        hints = {}
    return {name: hints.get(name, Any) for name in names}


def read_values(params: Any) -> dict[str, Any]:
    """Return the values of a parameters object, by name."""
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    if isinstance(params, msgspec.Struct):
        return msgspec.structs.asdict(params)
    if extras.is_pydantic_model(type(params)):
        return {name: getattr(params, name) for name in type(params).model_fields}
    if isinstance(params, Mapping):
        return {str(name): value for name, value in params.items()}
    raise ModelError(
        f"parameters must be a dataclass, struct, model or mapping, not {params!r}",
        fix="pass one of these, or bind the parameters by name",
    )


def is_of_type(value: Any, kind: Any) -> bool:
    """Return True if a value has a type; None means a missing parameter."""
    if value is None or kind is Any:
        return True
    if isinstance(kind, type) and isinstance(value, kind):
        return not isinstance(value, bool) or kind in (bool, object)
    try:
        msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError:
        return False
    except TypeError:
        # msgspec does not support this union, so it is not checked.
        return True
    return True


def type_name(kind: Any) -> str:
    """Return the name of a type; a literal type is written as its values: "'short' or 'long'"."""
    if get_origin(kind) is Literal:
        return join_choices(map(repr, get_args(kind)))
    return kind.__name__ if isinstance(kind, type) else str(kind)


def render_value(value: Any) -> str:
    """Render a value for a prompt: text unchanged, everything else as JSON."""
    return str.__str__(value) if isinstance(value, str) else codec.encode_pretty(value).decode()


ROLES = ("system", "user")
_SECTION_MARKER = re.compile(r"^<!--[ \t]*(\w+)(?:[ \t]+if[ \t]+(\w+))?[ \t]*-->[ \t]*(?:\n|\Z)", re.MULTILINE)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TEXT_KEYS = ("ns", "key", "name")
_HEAD = (*_TEXT_KEYS, "version", "parameters")


class FileSection(NamedTuple):
    role: str
    only_if: str | None
    text: str


def read_prompt_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"the prompt cannot be read: {describe_decode_error(error)}",
            where=str(path),
            fix=describe_conversion(file=str(path)),
        ) from None
    except OSError as error:
        what = describe_os_error(error, "the prompt cannot be read")
        raise ModelError(what, where=str(path), fix="check the path of the prompt file") from None


def parse_prompt_file(text: str, where: str) -> tuple[Mapping[str, Any], tuple[FileSection, ...]]:
    """Parse a prompt file; one error reports all problems of its front matter."""
    text = text.replace("\r\n", "\n")
    front = _FRONT.match(text)
    if front is None:
        raise ModelError(
            "the file has no front matter", where=where, fix="start the file with the lines ---, key: NAME and ---"
        )
    head = _parse_front_matter(front[1], where)
    problems = [*_check_keys(head), *_check_types(head.get("parameters"))]
    sections = _split_body(text[front.end() :])
    problems += [
        Problem(f"<!-- {section.role} -->", f"unknown role; {suggest_name(section.role, ROLES)}")
        for section in sections
        if section.role not in ROLES
    ]
    if problems:
        raise ModelError("the prompt file is invalid", where=where, problems=problems)
    return head, sections


def _parse_front_matter(text: str, where: str) -> Mapping[str, Any]:
    try:
        head = load_yaml(text)
    except InvalidYAML as error:
        what = f"its front matter is not valid YAML: {error.what}"
        raise ModelError(what, where=where, fix=error.fix) from None
    if not isinstance(head, dict) or "key" not in head:
        raise ModelError("its front matter has no key", where=where, fix="add the line key: NAME")
    return head


def _check_keys(head: Mapping[str, Any]) -> list[Problem]:
    unknown_keys = [str(key) for key in head if key not in _HEAD]
    problems = [Problem(key, f"unknown key; {suggest_name(key, _HEAD)}") for key in unknown_keys]
    problems += [
        Problem(key, f"must be a string, got {head[key]!r}")
        for key in _TEXT_KEYS
        if key in head and not (isinstance(head[key], str) and head[key].strip())
    ]
    version = head.get("version")
    if isinstance(version, bool) or not isinstance(version, str | int | float | None):
        problems.append(Problem("version", f"must be a string or a number, got {version!r}"))
    return problems


def _check_types(parameters: Any) -> list[Problem]:
    if parameters is None:
        return []
    if not isinstance(parameters, dict):
        return [Problem("parameters", f"must be a mapping of names to types, got {parameters!r}")]
    return [
        Problem(f"parameters.{name}", f"{kind!r} is not a type; {suggest_name(str(kind), TYPES)}")
        for name, kind in parameters.items()
        if not (isinstance(kind, str) and kind in TYPES)
    ]


def _split_body(body: str) -> tuple[FileSection, ...]:
    first, *pieces = _SECTION_MARKER.split(body)
    unmarked = [FileSection("user", None, first.strip())] if first.strip() else []
    marked = zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=True)
    return (*unmarked, *(FileSection(role, only_if, text.strip()) for role, only_if, text in marked))


ParamsT = TypeVar("ParamsT")
OutputT = TypeVar("OutputT")
Role = Literal["system", "user"]


class MarkdownSection(Generic[ParamsT]):
    """A section of a prompt: a heading, and text in which `$name` is a parameter.

    `MarkdownSection[Params]` takes its parameters from a dataclass, struct or pydantic model and rejects
    placeholders without a field. `$$` is a dollar sign; braces have no meaning. With `only_if`, the section
    is left out if that parameter is None.

    >>> MarkdownSection("Question", "Answer concisely: $question", key="q").placeholders
    ('question',)
    """

    def __init__(self, title: str, template: str, key: str, *, role: Role = "user", only_if: str | None = None) -> None:
        self.title, self.template, self.key = title, template, key
        self.role: Role = role
        self.only_if = only_if
        text = Template(template)
        if role not in ROLES:
            raise ModelError(f"unknown role {role!r}", where=key, fix=suggest_name(str(role), ROLES))
        if not text.is_valid():
            raise ModelError("a $ is not followed by a parameter's name", where=key, fix="write $$ for a dollar sign")
        self._pieces = tuple(_split_template(text))
        self.placeholders = tuple(dict.fromkeys(name for _, name in self._pieces if name))

    @property
    def params_type(self) -> Any:
        return _type_argument(self)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The parameters of the section: its placeholders and its condition."""
        return self.placeholders if self.only_if is None else (*self.placeholders, self.only_if)

    def render(self, values: Mapping[str, Any]) -> str:
        """Fill in the values; placeholders inside a value are not replaced.

        >>> MarkdownSection("", "$question (in $$)", "q").render({"question": "Is $x {y}?"})
        'Is $x {y}? (in $)'
        """
        filled = "".join(text + (render_value(values[name]) if name else "") for text, name in self._pieces)
        return f"# {self.title}\n\n{filled}" if self.title else filled

    def filled(self, values: Mapping[str, Any]) -> MarkdownSection[Any]:
        """Return the section with some values filled in; the other placeholders remain.

        >>> half = MarkdownSection("", "$greeting, $name!", "q").filled({"greeting": "In $"})
        >>> half.placeholders, half.render({"name": "Ada"})
        (('name',), 'In $, Ada!')
        """
        section, literal, pieces = copy.copy(self), "", []
        for text, name in self._pieces:
            literal += text
            if name in values:
                literal += render_value(values[name])
            else:
                pieces.append((literal, name))
                literal = ""
        section._pieces = tuple(pieces)
        section.placeholders = tuple(name for name in self.placeholders if name not in values)
        if self.only_if in values:
            section.only_if = None
        return section


def _split_template(text: Template) -> Iterator[tuple[str, str]]:
    """Yield pairs of text and the name of the placeholder after it, or an empty name."""
    end = 0
    literal = ""
    for match in text.pattern.finditer(text.template):
        literal += text.template[end : match.start()]
        end = match.end()
        name = match["named"] or match["braced"]
        if name is None:
            literal += text.delimiter
        else:
            yield literal, name
            literal = ""
    yield literal + text.template[end:], ""


class PromptTemplate(Generic[OutputT]):
    """A prompt without the values of its parameters: sections, a name, and a version.

    `PromptTemplate[Output]` sets the type of the answer. `version` is a digest of the content by default; every score
    of the prompt stores it. `parameters` (name: type) declares the placeholders, like the fields of a section's type.

    >>> section = MarkdownSection("Question", "Answer concisely: $question", key="q")
    >>> template = PromptTemplate[str](ns="qa", key="answer", sections=[section])
    >>> template.parameters
    {'question': typing.Any}
    """

    def __init__(
        self,
        ns: str,
        key: str,
        sections: Sequence[MarkdownSection[Any]],
        *,
        name: str | None = None,
        version: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.ns, self.key, self.name = ns, key, name or key
        self.sections = tuple(sections)
        parameter_types = _parameter_types(self.sections) if parameters is None else [dict(parameters)]
        problems = [*_check_sections(self.sections), *_find_conflicts(parameter_types)]
        if parameters is None:
            problems += _check_fields(self.sections)
        else:
            problems += _check_parameters(self.sections, parameters)
        if problems:
            raise ModelError("the prompt is invalid", where=key, problems=problems)
        self.parameters = dict.fromkeys((n for s in self.sections for n in s.parameter_names), Any)
        for fields in parameter_types:
            self.parameters |= fields
        content = [[s.title, s.template, s.key, s.role, s.only_if] for s in self.sections]
        self.version = version or codec.digest(content)[:12]

    @property
    def output_type(self) -> Any:
        """The type argument, or None."""
        return _type_argument(self)

    @property
    def id(self) -> str:
        """Name and version, as stored with scores.

        >>> PromptTemplate("qa", "answer", [MarkdownSection("", "Hi", "q")], version="2").id
        'qa/answer@2'
        """
        return f"{self.ns}/{self.key}@{self.version}"

    def filled(self, values: Mapping[str, Any]) -> PromptTemplate[OutputT]:
        """Return the template with some values filled in, none of them None; the id does not change.

        Use it for a prompt that is repeated with only a few new values.
        """
        template = copy.copy(self)
        template.sections = tuple(section.filled(values) for section in self.sections)
        template.parameters = {n: kind for n, kind in self.parameters.items() if n not in values}
        return template

    @classmethod
    def load(cls, path: str | Path) -> PromptTemplate[Any]:
        """Load a prompt from a Markdown file with a front matter.

        The front matter is YAML between two lines of `---`: `key`, and optionally `ns`, `name`, `version` and
        `parameters` (name: type). In the body, `<!-- system -->` and `<!-- user -->` start a section with
        that role, `<!-- user if expected -->` a conditional section.
        """
        return cls.parse(read_prompt_file(Path(path)), where=str(path))

    @classmethod
    def parse(cls, text: str, *, where: str = "prompt") -> PromptTemplate[Any]:
        """Parse the text of a prompt file.

        >>> PromptTemplate.parse("---\\nkey: greet\\n---\\nGreet $name.").sections[0].placeholders
        ('name',)
        """
        head, file_sections = parse_prompt_file(text, where)
        declared, version = head.get("parameters"), head.get("version")
        try:
            sections = [
                MarkdownSection[Any](
                    "",
                    section.text,
                    f"part-{number}",
                    role="system" if section.role == "system" else "user",
                    only_if=section.only_if,
                )
                for number, section in enumerate(file_sections, start=1)
            ]
            return cls(
                head.get("ns", "prompts"),
                head["key"],
                sections,
                name=head.get("name"),
                version=None if version is None else str(version),
                parameters=declared and {str(name): TYPES[kind] for name, kind in declared.items()},
            )
        except ModelError as error:
            location = f"{where}, {error.where}" if error.where.startswith("part-") else where
            raise ModelError(error.what, where=location, fix=error.fix, problems=error.problems) from None


class Prompt(Generic[OutputT]):
    """A template with the values of its parameters.

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

        >>> section = MarkdownSection("", "$greeting, $name!", key="task")
        >>> bound = Prompt(PromptTemplate("demo", "greet", [section])).bind({"greeting": "Hello"})
        >>> bound.bind(name="Ada").text
        'Hello, Ada!'
        """
        bound = dict(self.values)
        for parameters in params:
            bound |= read_values(parameters)
        bound |= values
        parameter_types = self.template.parameters
        problems = [
            Problem(name, f"unknown parameter; {suggest_name(name, parameter_types)}")
            for name in bound
            if name not in parameter_types
        ]
        problems += [
            Problem(name, f"must be {describe_types(type_name(parameter_types[name]))}, got {value!r}")
            for name, value in bound.items()
            if name in parameter_types and not is_of_type(value, parameter_types[name])
        ]
        if problems:
            raise ModelError("the parameters of the prompt are invalid", where=self.template.key, problems=problems)
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
                f"parameters have no value: {', '.join(sorted(missing))}",
                where=self.template.key,
                fix="pass them to bind()",
            )
        return tuple(
            Message(role, "\n\n".join(section.render(self.values) for section in group))
            for role, group in groupby(sections, key=lambda section: section.role)
        )

    @property
    def text(self) -> str:
        """All messages as one string."""
        return "\n\n".join(message.content for message in self.messages())


def _type_argument(instance: Any) -> Any:
    """Return the type argument of a generic object, or None."""
    (argument,) = get_args(getattr(instance, "__orig_class__", None)) or (None,)
    return None if argument is Any or isinstance(argument, TypeVar) else argument


def _parameter_types(sections: Iterable[MarkdownSection[Any]]) -> list[dict[str, Any]]:
    kinds = dict.fromkeys(s.params_type for s in sections if s.params_type is not None)
    return [read_field_types(kind) for kind in kinds]


def _check_sections(sections: Sequence[MarkdownSection[Any]]) -> list[Problem]:
    if not sections:
        return [Problem("sections", "a prompt needs at least one section")]
    counts = Counter(section.key for section in sections)
    problems = [Problem(key, "two sections have this key") for key, n in counts.items() if n > 1]
    return problems + [
        Problem(section.key, "a section needs a title or a text")
        for section in sections
        if not (section.title.strip() or section.template.strip())
    ]


def _check_fields(sections: Sequence[MarkdownSection[Any]]) -> list[Problem]:
    """Check that every placeholder of a typed section is a field, and that every field is used."""
    problems: list[Problem] = []
    used = {name for section in sections for name in section.parameter_names}
    for kind in dict.fromkeys(s.params_type for s in sections if s.params_type is not None):
        fields = read_field_types(kind)
        for section in sections:
            if section.params_type is kind:
                problems += _find_unknown_placeholders(section, fields, f"a field of {type_name(kind)}")
        problems += [
            Problem(f"{type_name(kind)}.{name}", "the text does not use this field")
            for name in fields
            if name not in used
        ]
    return problems


def _check_parameters(sections: Sequence[MarkdownSection[Any]], parameters: Mapping[str, Any]) -> list[Problem]:
    """Check that every placeholder is declared, and that every declared parameter is used."""
    problems = [problem for s in sections for problem in _find_unknown_placeholders(s, parameters, "a parameter")]
    used = {name for section in sections for name in section.parameter_names}
    return problems + [Problem(name, "the text does not use this parameter") for name in parameters if name not in used]


def _find_unknown_placeholders(
    section: MarkdownSection[Any], parameter_types: Mapping[str, Any], what: str
) -> Iterable[Problem]:
    return [
        Problem(section.key, f"${name} is not {what}; {suggest_name(name, parameter_types)}")
        for name in dict.fromkeys(section.parameter_names)
        if name not in parameter_types
    ]


def _find_conflicts(parameter_types: Sequence[Mapping[str, Any]]) -> Iterable[Problem]:
    """Find fields of the same name with different types; a name must have one value."""
    first: dict[str, Any] = {}
    for fields in parameter_types:
        for name, kind in fields.items():
            if first.setdefault(name, kind) != kind:
                yield Problem(name, f"it is {type_name(first[name])} in one type, but {type_name(kind)} in another")
