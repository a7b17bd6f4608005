"""Templates: sections of text with placeholders, checked when they are made."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from proctor.core import optional as extras
from proctor.core.resources import describe_error, how_to_convert
from proctor.core.yaml_text import describe_yaml_error, load_yaml
from proctor.errors import ModelError, Problem, nearest
from proctor.records import codec

# The words for types in the head of a prompt file.
TYPES: Mapping[str, Any] = {
    "str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict, "any": Any,
}  # fmt: skip


def fields_of(params_type: Any) -> dict[str, Any]:
    """The fields of a dataclass, struct or pydantic model, with their types.

    >>> @dataclasses.dataclass
    ... class Params:
    ...     question: str
    >>> list(fields_of(Params))
    ['question']
    """
    if extras.is_pydantic_model(params_type):
        return {name: field.annotation for name, field in params_type.model_fields.items()}
    if dataclasses.is_dataclass(params_type):
        names = [field.name for field in dataclasses.fields(params_type)]
    elif isinstance(params_type, type) and issubclass(params_type, msgspec.Struct):
        names = list(params_type.__struct_fields__)
    else:
        raise ModelError(
            f"{params_type!r} has no fields",
            fix="use a dataclass, a struct or a pydantic model for parameters",
        )
    try:
        hints = get_type_hints(params_type)
    except NameError:
        # Names imported for type checkers only cannot be resolved: then types are not checked.
        hints = {}
    return {name: hints.get(name, Any) for name in names}


def values_of(params: Any) -> dict[str, Any]:
    """The values in a parameters object, by name.

    >>> values_of({"question": "Why?"})
    {'question': 'Why?'}
    """
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        return {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
    if isinstance(params, msgspec.Struct):
        return msgspec.structs.asdict(params)
    if extras.is_pydantic_model(type(params)):
        return {name: getattr(params, name) for name in type(params).model_fields}
    if isinstance(params, Mapping):
        return {str(name): value for name, value in params.items()}
    raise ModelError(
        f"parameters come as a dataclass, struct, model or mapping, got {params!r}",
        fix="or bind them by name",
    )


def is_of_type(value: Any, kind: Any) -> bool:
    """True if a value is of a type; None stands for a parameter that is not there.

    >>> fits(3, float), fits(True, int), fits(["a"], list[str]), fits([1], list[str])
    (True, False, True, False)
    """
    if value is None or kind is Any:
        return True
    if isinstance(kind, type) and isinstance(value, kind):
        return not isinstance(value, bool) or kind in (bool, object)
    try:
        msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError:
        return False
    except TypeError:
        # A union of types that only Python knows: whether it fits cannot be told.
        return True
    return True


def type_name(kind: Any) -> str:
    """A type as an error message shows it.

    >>> named(str), named(list[int])
    ('str', 'list[int]')
    """
    return kind.__name__ if isinstance(kind, type) else str(kind)


def render_value(value: Any) -> str:
    """A value as it stands in a prompt: text as it is, everything else as JSON.

    >>> written("as it is"), written({"a": True})
    ('as it is', '{\\n  "a": true\\n}')
    """
    return str.__str__(value) if isinstance(value, str) else codec.encode_pretty(value).decode()


ROLES = ("system", "user")
_MARK = re.compile(r"^<!--[ \t]*(\w+)(?:[ \t]+if[ \t]+(\w+))?[ \t]*-->[ \t]*(?:\n|\Z)", re.MULTILINE)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_WORDS = ("ns", "key", "name")
_HEAD = (*_WORDS, "version", "parameters")


class Part(NamedTuple):
    """What stands under one mark of the file."""

    role: str
    only_if: str | None
    text: str


class PromptFile(NamedTuple):
    """A prompt file as data."""

    ns: str
    key: str
    name: str | None
    version: str | None
    parameters: dict[str, Any] | None
    parts: tuple[Part, ...]


def read_prompt_file(path: Path) -> str:
    """The text of a prompt file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"the prompt cannot be read: {describe_error(error)}",
            where=str(path),
            fix=how_to_convert(file=str(path)),
        ) from None
    except OSError as error:
        raise ModelError(f"the prompt cannot be read: {error.strerror or error}", where=str(path)) from None


def parse(text: str, where: str) -> PromptFile:
    """The text of a prompt file as data; what is wrong in its head is told together.

    >>> parse("---\\nkey: greet\\n---\\n<!-- system -->\\nBe kind.\\n", "a file").parts
    (Part(role='system', only_if=None, text='Be kind.'),)
    """
    text = text.replace("\r\n", "\n")
    front = _FRONT.match(text)
    if front is None:
        raise ModelError("the file has no head", where=where, fix="begin it with ---, key: name, ---")
    head = _head(front[1], where)
    problems = [*_faults(head), *_type_faults(head.get("parameters"))]
    parts = _parts(text[front.end() :])
    problems += [
        Problem(f"<!-- {part.role} -->", f"there is no such role; {nearest(part.role, ROLES)}")
        for part in parts
        if part.role not in ROLES
    ]
    if problems:
        raise ModelError("the prompt file does not hold together", where=where, problems=problems)
    declared, version = head.get("parameters"), head.get("version")
    return PromptFile(
        head.get("ns", "prompts"),
        head["key"],
        head.get("name"),
        None if version is None else str(version),
        None if declared is None else {str(n): TYPES[kind] for n, kind in declared.items()},
        parts,
    )


def _head(text: str, where: str) -> Mapping[str, Any]:
    # Whoever builds prompts in Python does not wait for it.
    import yaml

    try:
        head = load_yaml(text)
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, yaml.MarkedYAMLError):
            what, fix = describe_yaml_error(error)
        else:
            what, fix = str(error).partition("\n")[0], ""
        raise ModelError(f"its head cannot be read as YAML: {what}", where=where, fix=fix) from None
    if not isinstance(head, dict) or "key" not in head:
        raise ModelError("its head does not name a key", where=where, fix="write key: name")
    return head


def _faults(head: Mapping[str, Any]) -> list[Problem]:
    unknown = [str(key) for key in head if key not in _HEAD]
    faults = [Problem(key, f"this means nothing; {nearest(key, _HEAD)}") for key in unknown]
    faults += [
        Problem(key, f"expected a word, got {head[key]!r}")
        for key in _WORDS
        if key in head and not (isinstance(head[key], str) and head[key].strip())
    ]
    version = head.get("version")
    if isinstance(version, bool) or not isinstance(version, str | int | float | None):
        faults.append(Problem("version", f"expected a word or a number, got {version!r}"))
    return faults


def _type_faults(parameters: Any) -> list[Problem]:
    if parameters is None:
        return []
    if not isinstance(parameters, dict):
        return [Problem("parameters", f"expected names with types, got {parameters!r}")]
    return [
        Problem(f"parameters.{name}", f"{kind!r} is no type here; {nearest(str(kind), TYPES)}")
        for name, kind in parameters.items()
        if not (isinstance(kind, str) and kind in TYPES)
    ]


def _parts(body: str) -> tuple[Part, ...]:
    first, *pieces = _MARK.split(body)
    found = [Part("user", None, first.strip())] if first.strip() else []
    marked = zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=True)
    return (*found, *(Part(role, only_if, text.strip()) for role, only_if, text in marked))


ParamsT = TypeVar("ParamsT")
OutputT = TypeVar("OutputT")
Speaker = Literal["system", "user"]


class MarkdownSection(Generic[ParamsT]):
    """A part of a prompt: a heading, and text in which `$name` stands for a parameter.

    `MarkdownSection[Params]` takes its parameters from a dataclass, struct or pydantic model and
    refuses placeholders that it has no field for. `$$` is a dollar sign; braces mean nothing.
    With `only_if`, the section is left out where that parameter is None.

    >>> MarkdownSection("Question", "Answer concisely: $question", key="q").placeholders
    ('question',)
    """

    def __init__(
        self, title: str, template: str, key: str, *, role: Speaker = "user", only_if: str | None = None
    ) -> None:
        self.title, self.template, self.key = title, template, key
        self.role: Speaker = role
        self.only_if = only_if
        text = Template(template)
        if role not in ROLES:
            raise ModelError(f"there is no role {role!r}", where=key, fix=nearest(str(role), ROLES))
        if not text.is_valid():
            raise ModelError(
                "a $ is not followed by a parameter's name", where=key, fix="write $$ for a dollar sign"
            )
        self._pieces = tuple(_pieces(text))
        # The names in the text, in order.
        self.placeholders = tuple(dict.fromkeys(name for _, name in self._pieces if name))

    @property
    def params_type(self) -> Any:
        """The type in the brackets, or None."""
        return _in_brackets(self)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names that the section depends on: its placeholders and its condition."""
        return self.placeholders if self.only_if is None else (*self.placeholders, self.only_if)

    def render(self, values: Mapping[str, Any]) -> str:
        """The text with the values put in; what is put in is never looked at again.

        >>> MarkdownSection("", "$question (in $$)", "q").render({"question": "Is $x {y}?"})
        'Is $x {y}? (in $)'
        """
        filled = "".join(text + (render_value(values[name]) if name else "") for text, name in self._pieces)
        return f"# {self.title}\n\n{filled}" if self.title else filled

    def filled(self, values: Mapping[str, Any]) -> MarkdownSection[Any]:
        """The section with some values put in for good, as text; the others keep their places.

        >>> half = MarkdownSection("", "$greeting, $name!", "q").filled({"greeting": "In $"})
        >>> half.placeholders, half.render({"name": "Ada"})
        (('name',), 'In $, Ada!')
        """
        found, literal, pieces = copy.copy(self), "", []
        for text, name in self._pieces:
            literal += text
            if name in values:
                literal += render_value(values[name])
            else:
                pieces.append((literal, name))
                literal = ""
        found._pieces = tuple(pieces)
        found.placeholders = tuple(name for name in self.placeholders if name not in values)
        if self.only_if in values:
            found.only_if = None
        return found


def _pieces(text: Template) -> Iterator[tuple[str, str]]:
    """A template taken apart once: text, and the name of what comes after it, if anything does."""
    end = 0
    literal = ""
    for found in text.pattern.finditer(text.template):
        literal += text.template[end : found.start()]
        end = found.end()
        name = found["named"] or found["braced"]
        if name is None:
            literal += text.delimiter
        else:
            yield literal, name
            literal = ""
    yield literal + text.template[end:], ""


class PromptTemplate(Generic[OutputT]):
    """A prompt before its parameters are known: sections, a name, and a version.

    `PromptTemplate[Output]` says what type the answer has. `version` is a digest of the content
    unless you give one; it is stored with every score that a prompt led to. With `parameters`
    (name: type) placeholders are held to these, as they are to the fields of a section's type.

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
        known = _typed(self.sections) if parameters is None else [dict(parameters)]
        problems = [*_faults_of_sections(self.sections), *_clashes(known)]
        if parameters is None:
            problems += _faults_of_types(self.sections)
        else:
            problems += _faults_of_names(self.sections, parameters)
        if problems:
            raise ModelError("the prompt does not hold together", where=key, problems=problems)
        self.parameters = dict.fromkeys((n for s in self.sections for n in s.wanted), Any)
        for fields in known:
            self.parameters |= fields
        content = [[s.title, s.template, s.key, s.role, s.only_if] for s in self.sections]
        self.version = version or codec.digest(content)[:12]

    @property
    def output_type(self) -> Any:
        """The type in the brackets, or None."""
        return _in_brackets(self)

    @property
    def id(self) -> str:
        """Name and version in one word, as stored with scores.

        >>> PromptTemplate("qa", "answer", [MarkdownSection("", "Hi", "q")], version="2").id
        'qa/answer@2'
        """
        return f"{self.ns}/{self.key}@{self.version}"

    def filled(self, values: Mapping[str, Any]) -> PromptTemplate[OutputT]:
        """The template with some values put in for good, none of them None; its id stays.

        For a prompt that is asked again and again with only the rest of its values new.
        """
        found = copy.copy(self)
        found.sections = tuple(section.filled(values) for section in self.sections)
        found.parameters = {n: kind for n, kind in self.parameters.items() if n not in values}
        return found

    @classmethod
    def load(cls, path: str | Path) -> PromptTemplate[Any]:
        """A prompt from its own file: Markdown under a head that names it and its parameters.

        The head is YAML between two lines of `---`: `key`, and optionally `ns`, `name`, `version`
        and `parameters` (name: type). In the body, `<!-- system -->` and `<!-- user -->` begin
        what is said in that role, `<!-- user if expected -->` a part that may be left out.
        """
        return cls.parse(read_prompt_file(Path(path)), where=str(path))

    @classmethod
    def parse(cls, text: str, *, where: str = "prompt") -> PromptTemplate[Any]:
        """A prompt from the text of such a file.

        >>> PromptTemplate.parse("---\\nkey: greet\\n---\\nGreet $name.").sections[0].placeholders
        ('name',)
        """
        file = parse(text, where)
        try:
            sections = [
                MarkdownSection[Any](
                    "",
                    part.text,
                    f"part-{number}",
                    role="system" if part.role == "system" else "user",
                    only_if=part.only_if,
                )
                for number, part in enumerate(file.parts, start=1)
            ]
            return cls(
                file.ns, file.key, sections, name=file.name, version=file.version, parameters=file.parameters
            )
        except ModelError as error:
            inside = f"{where}, {error.where}" if error.where.startswith("part-") else where
            raise ModelError(error.what, where=inside, fix=error.fix, problems=error.problems) from None


def _in_brackets(thing: Any) -> Any:
    """The type that a generic object was made with, or None."""
    (found,) = get_args(getattr(thing, "__orig_class__", None)) or (None,)
    return None if found is Any or isinstance(found, TypeVar) else found


def _typed(sections: Iterable[MarkdownSection[Any]]) -> list[dict[str, Any]]:
    """The fields of each parameters type that the sections name."""
    kinds = dict.fromkeys(s.params_type for s in sections if s.params_type is not None)
    return [fields_of(kind) for kind in kinds]


def _faults_of_sections(sections: Sequence[MarkdownSection[Any]]) -> list[Problem]:
    if not sections:
        return [Problem("sections", "a prompt without sections says nothing")]
    counts = Counter(section.key for section in sections)
    faults = [Problem(key, "two sections have this key") for key, n in counts.items() if n > 1]
    return faults + [
        Problem(section.key, "a section without title and text says nothing")
        for section in sections
        if not (section.title.strip() or section.template.strip())
    ]


def _faults_of_types(sections: Sequence[MarkdownSection[Any]]) -> list[Problem]:
    """Every placeholder of a typed section is a field, and every field has a place somewhere."""
    faults: list[Problem] = []
    used = {name for section in sections for name in section.wanted}
    for kind in dict.fromkeys(s.params_type for s in sections if s.params_type is not None):
        fields = fields_of(kind)
        for section in sections:
            if section.params_type is kind:
                faults += _unknown(section, fields, f"a field of {type_name(kind)}")
        faults += [
            Problem(f"{type_name(kind)}.{name}", "this field has no place in the text")
            for name in fields
            if name not in used
        ]
    return faults


def _faults_of_names(
    sections: Sequence[MarkdownSection[Any]], parameters: Mapping[str, Any]
) -> list[Problem]:
    """Every placeholder is declared, and everything declared has a place."""
    faults = [fault for s in sections for fault in _unknown(s, parameters, "a parameter")]
    used = {name for section in sections for name in section.wanted}
    return faults + [
        Problem(name, "this parameter has no place in the text") for name in parameters if name not in used
    ]


def _unknown(section: MarkdownSection[Any], known: Mapping[str, Any], what: str) -> Iterable[Problem]:
    return [
        Problem(section.key, f"${name} is not {what}; {nearest(name, known)}")
        for name in dict.fromkeys(section.wanted)
        if name not in known
    ]


def _clashes(known: Sequence[Mapping[str, Any]]) -> Iterable[Problem]:
    """Fields that two types share must be of one type: a name stands for one value."""
    first: dict[str, Any] = {}
    for fields in known:
        for name, kind in fields.items():
            if first.setdefault(name, kind) != kind:
                yield Problem(
                    name, f"it is {type_name(first[name])} in one type, {type_name(kind)} in another"
                )
