"""Prompts as objects: templates with strict placeholders, typed parameters and a version."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from string import Template
from typing import Any, Generic, Literal, TypeVar, get_args, get_type_hints

import msgspec
import yaml

from proctor import codec, extras
from proctor.errors import ModelError, Problem, nearest
from proctor.records.session import Message

ParamsT = TypeVar("ParamsT")
OutputT = TypeVar("OutputT")
Speaker = Literal["system", "user"]

_MARK = re.compile(r"^<!--\s*(system|user)(?:\s+if\s+(\w+))?\s*-->[ \t]*\n", re.MULTILINE)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*\n", re.DOTALL | re.MULTILINE)
_TYPES: Mapping[str, Any] = {
    "str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict, "any": Any,
}  # fmt: skip
_HEAD = ("ns", "key", "name", "version", "parameters")


class MarkdownSection(Generic[ParamsT]):
    """A part of a prompt: a heading, and text in which `$name` stands for a parameter.

    `MarkdownSection[Params]` takes its parameters from a dataclass, struct or pydantic model and
    refuses placeholders that it has no field for. `$$` is a dollar sign; braces mean nothing.
    With `only_if`, the section is left out where that parameter is None.

    >>> MarkdownSection("Question", "Answer concisely: $question", key="q").placeholders
    ('question',)
    """

    def __init__(
        self,
        title: str,
        template: str,
        key: str,
        *,
        role: Speaker = "user",
        only_if: str | None = None,
    ) -> None:
        self.title, self.template, self.key = title, template, key
        self.role: Speaker = role
        self.only_if = only_if
        self._text = Template(template)
        if not self._text.is_valid():
            raise ModelError(
                "a $ is not followed by a parameter's name",
                where=key,
                fix="write $$ for a dollar sign",
            )

    @property
    def params_type(self) -> Any:
        """The type in the brackets, or None."""
        (found,) = get_args(getattr(self, "__orig_class__", None)) or (None,)
        return found

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names in the text, in order."""
        return tuple(dict.fromkeys(self._text.get_identifiers()))

    def render(self, values: Mapping[str, Any]) -> str:
        """The text with the values put in; what is put in is never looked at again."""
        filled = self._text.substitute({name: _written(values[name]) for name in self.placeholders})
        return f"# {self.title}\n\n{filled}" if self.title else filled


class PromptTemplate(Generic[OutputT]):
    """A prompt before its parameters are known: sections, a name, and a version.

    `PromptTemplate[Output]` says what type the answer has. `version` is a digest of the content
    unless you give one; it is stored with every score that a prompt led to.

    >>> template = PromptTemplate[str](
    ...     ns="qa",
    ...     key="answer",
    ...     sections=[MarkdownSection("Question", "Answer concisely: $question", key="q")],
    ... )
    >>> Prompt(template).bind(question="What is 2 + 2?").text
    '# Question\\n\\nAnswer concisely: What is 2 + 2?'
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
        self.parameters = self._typed_parameters() if parameters is None else dict(parameters)
        self._check(strict=parameters is not None)
        content = [[s.title, s.template, s.key, s.role, s.only_if] for s in self.sections]
        self.version = version or codec.digest(content)[:12]

    @property
    def output_type(self) -> Any:
        """The type in the brackets, or None."""
        (found,) = get_args(getattr(self, "__orig_class__", None)) or (None,)
        return found

    @property
    def id(self) -> str:
        """Name and version in one word, as stored with scores.

        >>> PromptTemplate("qa", "answer", [MarkdownSection("", "Hi", "q")], version="2").id
        'qa/answer@2'
        """
        return f"{self.ns}/{self.key}@{self.version}"

    @classmethod
    def load(cls, path: str | Path) -> PromptTemplate[Any]:
        """A prompt from its own file: Markdown under a head that names it and its parameters.

        The head is YAML between two lines of `---`: `key`, and optionally `ns`, `name`, `version`
        and `parameters` (name: type). In the body, `<!-- system -->` and `<!-- user -->` begin
        what is said in that role, `<!-- user if expected -->` a part that may be left out.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise ModelError(f"the prompt cannot be read: {reason}", where=str(path)) from None
        return cls.parse(text, where=str(path))

    @classmethod
    def parse(cls, text: str, *, where: str = "prompt") -> PromptTemplate[Any]:
        """A prompt from the text of such a file."""
        head, body = _parted(text, where)
        try:
            sections = tuple(_sections(body))
            return cls(
                str(head.get("ns", "prompts")),
                str(head["key"]),
                sections,
                name=head.get("name"),
                version=None if head.get("version") is None else str(head["version"]),
                parameters=_declared(head.get("parameters"), where),
            )
        except ModelError as error:
            raise ModelError(
                error.what, where=where, fix=error.fix, problems=error.problems
            ) from None

    def _typed_parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for section in self.sections:
            fields = _fields(section.params_type)
            found |= {name: fields.get(name, Any) for name in section.placeholders}
            if section.only_if:
                found.setdefault(section.only_if, Any)
        return found

    def _check(self, *, strict: bool) -> None:
        """Every placeholder has a parameter, every declared parameter a place."""
        if not self.sections:
            raise ModelError("a prompt without sections says nothing", where=self.key)
        problems = []
        used: set[str] = set()
        for section in self.sections:
            used |= {*section.placeholders} | ({section.only_if} if section.only_if else set())
            known = self.parameters if strict else _fields(section.params_type)
            if strict or section.params_type is not None:
                problems += [
                    Problem(section.key, f"${name} is not a parameter; {nearest(name, known)}")
                    for name in section.placeholders
                    if name not in known
                ]
        if strict:
            problems += [
                Problem(name, "this parameter has no place in the text")
                for name in self.parameters
                if name not in used
            ]
        keys = [section.key for section in self.sections]
        problems += [
            Problem(key, "two sections have this key") for key in {*keys} if keys.count(key) > 1
        ]
        if problems:
            raise ModelError("the prompt does not hold together", where=self.key, problems=problems)


class Prompt(Generic[OutputT]):
    """A template with parameters bound to it, ready to be asked.

    >>> section = MarkdownSection("", "Rate this: $output", key="task")
    >>> prompt = Prompt(PromptTemplate("demo", "rate", [section])).bind(output="4")
    >>> [message.content for message in prompt.messages()]
    ['Rate this: 4']
    """

    def __init__(
        self, template: PromptTemplate[OutputT], values: Mapping[str, Any] | None = None
    ) -> None:
        self.template = template
        self.values = dict(values or {})

    @property
    def output_type(self) -> Any:
        """What type the answer has, or None for plain text."""
        return self.template.output_type

    def bind(self, *params: Any, **values: Any) -> Prompt[OutputT]:
        """The prompt with parameters: one object for each section's type, or values by name."""
        bound = dict(self.values)
        for one in params:
            bound |= _values_of(one)
        bound |= values
        known = self.template.parameters
        problems = [
            Problem(name, f"there is no such parameter; {nearest(name, known)}")
            for name in bound
            if name not in known
        ]
        problems += [
            Problem(name, f"expected {_named(known[name])}, got {value!r}")
            for name, value in bound.items()
            if name in known and not _fits(value, known[name])
        ]
        if problems:
            raise ModelError(
                "the parameters do not fit the prompt", where=self.template.key, problems=problems
            )
        return Prompt(self.template, bound)

    def messages(self) -> tuple[Message, ...]:
        """What is sent: the sections in order, those of one role together."""
        wanted = [s for s in self.template.sections if self._is_wanted(s)]
        missing = {n for s in wanted for n in s.placeholders if self.values.get(n) is None}
        if missing:
            raise ModelError(
                f"parameters are missing: {', '.join(sorted(missing))}",
                where=self.template.key,
                fix="bind them",
            )
        return tuple(
            Message(role, "\n\n".join(section.render(self.values) for section in sections))
            for role, sections in groupby(wanted, key=lambda section: section.role)
        )

    @property
    def text(self) -> str:
        """All messages as one text."""
        return "\n\n".join(message.content for message in self.messages())

    def _is_wanted(self, section: MarkdownSection[Any]) -> bool:
        return section.only_if is None or self.values.get(section.only_if) is not None


def _parted(text: str, where: str) -> tuple[Mapping[str, Any], str]:
    """The head of a prompt file as data, and its body."""
    found = _FRONT.match(text)
    if found is None:
        raise ModelError(
            "the file has no head", where=where, fix="begin it with ---, key: name, ---"
        )
    try:
        head = yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        raise ModelError(f"its head is not YAML: {error}", where=where) from None
    if not isinstance(head, dict) or not isinstance(head.get("key"), str):
        raise ModelError("its head does not name a key", where=where, fix="write key: name")
    unknown = [str(key) for key in head if key not in _HEAD]
    if unknown:
        raise ModelError(
            "its head has keys that mean nothing",
            where=where,
            problems=[Problem(key, nearest(key, _HEAD)) for key in unknown],
        )
    return head, text[found.end() :]


def _sections(body: str) -> Iterable[MarkdownSection[Any]]:
    pieces = _MARK.split(body)
    if pieces[0].strip():
        yield MarkdownSection("", pieces[0].strip(), "part-0")
    roles, conditions, texts = pieces[1::3], pieces[2::3], pieces[3::3]
    for number, (role, only_if, text) in enumerate(
        zip(roles, conditions, texts, strict=True), start=1
    ):
        speaker: Speaker = "system" if role == "system" else "user"
        yield MarkdownSection(
            "", text.strip(), f"part-{number}", role=speaker, only_if=only_if or None
        )


def _declared(parameters: Any, where: str) -> dict[str, Any] | None:
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        raise ModelError("parameters is a mapping of names to types", where=where)
    unknown = [
        Problem(str(name), f"{kind!r} is no type here; {nearest(str(kind), _TYPES)}")
        for name, kind in parameters.items()
        if kind not in _TYPES
    ]
    if unknown:
        raise ModelError("some types are not known", where=where, problems=unknown)
    return {str(name): _TYPES[kind] for name, kind in parameters.items()}


def _fields(params_type: Any) -> dict[str, Any]:
    """The fields of a parameters type, with their types."""
    if params_type is None:
        return {}
    if _is_pydantic(params_type):
        return {name: field.annotation for name, field in params_type.model_fields.items()}
    if not (dataclasses.is_dataclass(params_type) or hasattr(params_type, "__struct_fields__")):
        raise ModelError(
            f"{params_type!r} has no fields",
            fix="use a dataclass, a struct or a pydantic model for parameters",
        )
    try:
        return dict(get_type_hints(params_type))
    except NameError:
        # Names imported for type checkers only cannot be resolved: then types are not checked.
        return dict.fromkeys(params_type.__annotations__, Any)


def _is_pydantic(kind: Any) -> bool:
    pydantic = extras.loaded("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _values_of(params: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    if isinstance(params, msgspec.Struct):
        return msgspec.structs.asdict(params)
    if _is_pydantic(type(params)):
        return {name: getattr(params, name) for name in type(params).model_fields}
    if isinstance(params, Mapping):
        return {str(name): value for name, value in params.items()}
    raise ModelError(
        f"parameters come as a dataclass, struct, model or mapping, got {params!r}",
        fix="or bind them by name",
    )


def _fits(value: Any, kind: Any) -> bool:
    if value is None or kind is Any or not isinstance(kind, type):
        return True
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _named(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


def _written(value: Any) -> str:
    """A value as it stands in a prompt: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else codec.encode_pretty(value).decode()
