"""Evaluator entries of eval files: parse them, and set parameters from the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from proctor.errors import EvaluatorError, Problem, UsageError, suggest_name
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.decorator import EvaluatorInfo, get_name
from proctor.records.run import EvaluatorSpec

NEGATED = "not-"
RESERVED_KEYS = ("uses", "name", "parameters", "identity")

Describe = Callable[[str], EvaluatorInfo]


class Entry(NamedTuple):
    """A parsed evaluator entry; `bare` is a value without the name of its parameter."""

    uses: str
    name: str | None = None
    parameters: Mapping[str, Any] = {}
    bare: tuple[Any, ...] = ()


def parse_entry(spec: Any) -> Entry | None:
    """Parse an evaluator entry; return None for an object that is itself an evaluator."""
    if isinstance(spec, Entry):
        return spec
    if isinstance(spec, str):
        return Entry(spec)
    if isinstance(spec, EvaluatorSpec):
        return Entry(spec.uses, spec.name, spec.parameters)
    if not isinstance(spec, Mapping):
        return None
    if "uses" in spec:
        uses, parameters = str(spec["uses"]), spec.get("parameters") or {}
        if not isinstance(parameters, Mapping):
            raise EvaluatorError(
                f"parameters must be a mapping, got {parameters!r}", where=uses, fix="write parameters: {name: value}"
            )
        others = {key: value for key, value in spec.items() if key not in RESERVED_KEYS}
        return Entry(uses, spec.get("name"), {**parameters, **others})
    if isinstance(label := spec.get("name"), str):
        more = "".join(f", {key}: …" for key in spec if key != "name")
        fix = f"write {{uses: {label}{more}}}" + ("" if more else f", or {label} alone")
        raise EvaluatorError("`name` is the label of an evaluator; `uses` is missing", fix=fix)
    if len(spec) == 1:
        ((uses, parameters),) = spec.items()
        if parameters is None or isinstance(parameters, Mapping):
            return Entry(str(uses), None, parameters or {})
        return Entry(str(uses), bare=(parameters,))
    raise EvaluatorError(
        f"the keys {', '.join(map(repr, spec))} do not name one evaluator",
        fix="write {name: {parameters}} or {uses: name, …parameters}",
    )


def parameters_by_name(entry: Entry, info: EvaluatorInfo) -> dict[str, Any]:
    """Return parameters by name; a bare value is assigned to the parts or to the only required parameter."""
    if not entry.bare:
        return dict(entry.parameters)
    required = [parameter.name for parameter in info.parameters if parameter.required]
    name = info.parts or (required[0] if len(required) == 1 else "")
    if not name:
        raise EvaluatorError(
            f"the value {entry.bare[0]!r} has no parameter name",
            where=info.name,
            fix=f"write {{{info.name}: {{parameter: value}}}}",
        )
    return {name: entry.bare[0]}


def unwrap_part(part: Any) -> Any:
    """Return the evaluator of a part, which may have the form {evaluator, weight}."""
    return part["evaluator"] if isinstance(part, Mapping) and "evaluator" in part else part


def rewrap_part(part: Any, evaluator: Any) -> Any:
    """Return the part with another evaluator."""
    is_wrapped = isinstance(part, Mapping) and "evaluator" in part
    return {**part, "evaluator": evaluator} if is_wrapped else evaluator


class Setting(NamedTuple):
    """A parameter from the command line: its evaluator, its name, and its value as a string."""

    evaluator: str
    parameter: str
    text: str


class _Slot(NamedTuple):
    """The position of an evaluator, its name, and other names that may select it."""

    steps: tuple[int, ...]
    entry: Any
    name: str
    aliases: frozenset[str]


def apply_settings(
    entries: Sequence[Any], settings: Sequence[Setting], describe: Describe, read_value: Callable[[str], Any]
) -> list[Any]:
    """Return the entries with parameters from the command line; one error reports all problems.

    A setting selects an evaluator by its name, or by its type if the type is unique; `OUTER.INNER` selects an evaluator
    inside a field or a combination. `read_value` parses the value of a parameter that is not declared as a string.
    """
    if not settings:
        return list(entries)
    slots = list(_list_slots(entries, describe))
    changes: dict[tuple[int, ...], dict[str, Any]] = {}
    problems: list[Problem] = []
    for setting in settings:
        try:
            slot = _find_slot(setting.evaluator, slots, describe)
        except UsageError as error:
            where = f"{setting.evaluator}.{setting.parameter}"
            problems.append(Problem(where, f"{error.what}; {error.fix}"))
            continue
        is_text = _is_text_parameter(slot.entry, setting.parameter, describe)
        value = setting.text if is_text else read_value(setting.text)
        changes.setdefault(slot.steps, {})[setting.parameter] = value
    if problems:
        fix = "write EVALUATOR.PARAMETER=VALUE with an evaluator of this run"
        raise EvaluatorError("a parameter cannot be set", where="--set", problems=problems, fix=fix)
    changed = list(entries)
    for steps, parameters in sorted(changes.items(), reverse=True):
        changed = _change(changed, steps, parameters, describe)
    return changed


def _list_slots(entries: Sequence[Any], describe: Describe, outer: str = "") -> Iterator[_Slot]:
    for index, spec in enumerate(entries):
        entry = parse_entry(unwrap_part(spec))
        if entry is None:
            yield _Slot((index,), spec, outer + get_name(spec), frozenset())
            continue
        name = entry.name or entry.uses
        aliases = {entry.uses, entry.uses.rpartition(":")[2]}
        if (info := _describe_or_none(entry.uses, describe)) is not None:
            aliases.add(info.name)
        yield _Slot((index,), spec, outer + name, frozenset(outer + alias for alias in aliases))
        for slot in _list_slots(_list_parts(entry, info), describe, f"{outer}{name}."):
            yield slot._replace(steps=(index, *slot.steps))


def _find_slot(name: str, slots: Sequence[_Slot], describe: Describe) -> _Slot:
    matches = [slot for slot in slots if name == slot.name]
    matches = matches or [slot for slot in slots if name in slot.aliases]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(slot.name for slot in matches)
        raise UsageError(f"several evaluators match {name!r}", fix=f"write one of: {names}")
    known_names = {*(slot.name for slot in slots), *(alias for slot in slots for alias in slot.aliases)}
    outer, dot, inner = name.rpartition(".")
    if dot and outer in known_names:
        raise UsageError(
            f"{outer!r} contains no evaluator {inner!r}", fix=f"set the complete parameter: {outer}.{inner}=VALUE"
        )
    if _describe_or_none(name, describe) is not None:
        raise UsageError(
            f"this run does not use the evaluator {name!r}",
            fix=f"add it to the evaluators, or set one of: {', '.join(sorted(known_names))}",
        )
    raise UsageError(f"this run has no evaluator {name!r}", fix=suggest_name(name, known_names))


def _list_parts(entry: Entry, info: EvaluatorInfo | None) -> list[Any]:
    """Return the evaluators inside a field or a combination."""
    if info is None or not info.parts:
        return []
    try:
        parts = parameters_by_name(entry, info).get(info.parts, ())
    except EvaluatorError:
        return []
    return list(parts) if isinstance(parts, list | tuple) else [parts]


def _change(
    entries: Sequence[Any], steps: tuple[int, ...], parameters: Mapping[str, Any], describe: Describe
) -> list[Any]:
    first, *rest = steps
    spec = entries[first]
    entry = parse_entry(unwrap_part(spec))
    if entry is None:
        changed: Any = attach(spec, parameters=parameters)
    else:
        info = describe(entry.uses)
        current = parameters_by_name(entry, info)
        if rest:
            parts = _change(_list_parts(entry, info), tuple(rest), parameters, describe)
            is_list = isinstance(current[info.parts], list | tuple)
            parameters = {info.parts: parts if is_list else parts[0]}
        changed = {"uses": entry.uses, "parameters": {**current, **parameters}}
        if entry.name:
            changed["name"] = entry.name
    return [*entries[:first], rewrap_part(spec, changed), *entries[first + 1 :]]


def _is_text_parameter(spec: Any, name: str, describe: Describe) -> bool:
    entry = parse_entry(unwrap_part(spec))
    info = None if entry is None else _describe_or_none(entry.uses, describe)
    types = [parameter.type for parameter in info.parameters if parameter.name == name] if info else []
    return any("str" in type_name.split(" | ") for type_name in types)


def _describe_or_none(uses: str, describe: Describe) -> EvaluatorInfo | None:
    """Return None for an unknown evaluator, which the run reports."""
    try:
        return describe(uses)
    except EvaluatorError:
        return None
