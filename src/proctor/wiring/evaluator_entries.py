"""Evaluators as an eval file writes them: read, described, and changed from the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from proctor.errors import EvaluatorError, Problem, UsageError, nearest
from proctor.evaluators.attached import attach
from proctor.evaluators.marking import EvaluatorInfo, known_as
from proctor.records.run import EvaluatorSpec

NEGATED = "not-"
_OWN_KEYS = ("uses", "name", "parameters", "identity")

Describe = Callable[[str], EvaluatorInfo]


class Written(NamedTuple):
    """An evaluator as an eval file writes it; `bare` is a value without a parameter's name."""

    uses: str
    name: str | None = None
    parameters: Mapping[str, Any] = {}
    bare: tuple[Any, ...] = ()


def read_entry(spec: Any) -> Written | None:
    """What an eval file says about one evaluator; None for what is an evaluator itself."""
    if isinstance(spec, Written):
        return spec
    if isinstance(spec, str):
        return Written(spec)
    if isinstance(spec, EvaluatorSpec):
        return Written(spec.uses, spec.name, spec.parameters)
    if not isinstance(spec, Mapping):
        return None
    if "uses" in spec:
        return _read_uses(spec)
    if len(spec) == 1:
        ((uses, parameters),) = spec.items()
        if parameters is None or isinstance(parameters, Mapping):
            return Written(str(uses), None, parameters or {})
        return Written(str(uses), bare=(parameters,))
    raise EvaluatorError(
        f"cannot tell which evaluator is meant by the keys {', '.join(map(repr, spec))}",
        fix="write {name: {parameters}} or {uses: name, …parameters}",
    )


def parameters_of(uses: str, specs: Any) -> list[Mapping[str, Any]]:
    """What those entries for evaluators say that use one of a name."""
    several = isinstance(specs, list | tuple)
    given = specs.values() if isinstance(specs, Mapping) else specs if several else [specs]
    written = map(read_entry, given)
    return [one.parameters for one in written if one is not None and one.uses == uses]


def _read_uses(spec: Mapping[str, Any]) -> Written:
    uses, parameters = str(spec["uses"]), spec.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        raise EvaluatorError(f"parameters is a mapping, got {parameters!r}", where=uses)
    others = {key: value for key, value in spec.items() if key not in _OWN_KEYS}
    return Written(uses, spec.get("name"), {**parameters, **others})


def parameters_by_name(written: Written, info: EvaluatorInfo) -> dict[str, Any]:
    """The parameters by name; a bare value is that of the parts, or of the only required one."""
    if not written.bare:
        return dict(written.parameters)
    required = [parameter.name for parameter in info.parameters if parameter.required]
    name = info.parts or (required[0] if len(required) == 1 else "")
    if not name:
        raise EvaluatorError(
            f"cannot tell which parameter is meant by {written.bare[0]!r}",
            where=info.name,
            fix=f"write {{{info.name}: {{parameter: value}}}}",
        )
    return {name: written.bare[0]}


def evaluator_in(part: Any) -> Any:
    """The evaluator of a part, which may stand beside its weight as {evaluator, weight}."""
    return part["evaluator"] if isinstance(part, Mapping) and "evaluator" in part else part


def put_back(part: Any, built: Any) -> Any:
    """The part with its evaluator built."""
    beside = isinstance(part, Mapping) and "evaluator" in part
    return {**part, "evaluator": built} if beside else built


class Setting(NamedTuple):
    """One parameter from the command line: of which evaluator, its name, and its text."""

    evaluator: str
    parameter: str
    text: str


class _Slot(NamedTuple):
    """Where an evaluator is written, and the names that mean it: its own, then its kind's."""

    steps: tuple[int, ...]
    entry: Any
    own: str
    kinds: frozenset[str]

    def is_called(self, name: str) -> bool:
        return name == self.own


def apply_settings(
    entries: Sequence[Any], settings: Sequence[Setting], describe: Describe, read_value: Callable[[str], Any]
) -> list[Any]:
    """Evaluators with parameters from the command line in place of those in the file.

    An evaluator is meant by its name, or by its kind if only one is of that kind; one inside a
    field or a combination by `OUTER.INNER`. `read_value` reads the text of a parameter that is not
    declared as text. Everything that is wrong is reported at once.
    """
    if not settings:
        return list(entries)
    slots = list(_slots(entries, describe))
    chosen: dict[tuple[int, ...], dict[str, Any]] = {}
    problems: list[Problem] = []
    for setting in settings:
        try:
            slot = _slot_of(setting.evaluator, slots, describe)
        except UsageError as error:
            place = f"{setting.evaluator}.{setting.parameter}"
            problems.append(Problem(place, f"{error.what}; {error.fix}"))
            continue
        is_text = _takes_text(slot.entry, setting.parameter, describe)
        value = setting.text if is_text else read_value(setting.text)
        chosen.setdefault(slot.steps, {})[setting.parameter] = value
    if problems:
        raise EvaluatorError("a parameter cannot be set", where="--set", problems=problems)
    changed = list(entries)
    for steps, parameters in sorted(chosen.items(), reverse=True):
        changed = _changed(changed, steps, parameters, describe)
    return changed


def _slots(entries: Sequence[Any], describe: Describe, outer: str = "") -> Iterator[_Slot]:
    for index, entry in enumerate(entries):
        written = read_entry(evaluator_in(entry))
        if written is None:
            name = known_as(entry)
            yield _Slot((index,), entry, outer + name, frozenset())
            continue
        own = written.name or written.uses
        kinds = {written.uses, written.uses.rpartition(":")[2]}
        if (info := _info_of(written.uses, describe)) is not None:
            kinds.add(info.name)
        named = frozenset(outer + kind for kind in kinds)
        yield _Slot((index,), entry, outer + own, named)
        for slot in _slots(_inner(written, info), describe, f"{outer}{own}."):
            yield slot._replace(steps=(index, *slot.steps))


def _slot_of(name: str, slots: Sequence[_Slot], describe: Describe) -> _Slot:
    found = [slot for slot in slots if slot.is_called(name)]
    found = found or [slot for slot in slots if name in slot.kinds]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(slot.own for slot in found)
        raise UsageError(f"several evaluators match {name!r}", fix=f"write one of: {names}")
    known = {*(slot.own for slot in slots), *(kind for slot in slots for kind in slot.kinds)}
    outer, dot, inner = name.rpartition(".")
    if dot and outer in known:
        raise UsageError(
            f"{outer!r} contains no evaluator {inner!r}",
            fix=f"only a whole parameter can be set: {outer}.{inner}=VALUE",
        )
    if _info_of(name, describe) is not None:
        raise UsageError(
            f"this run does not use the evaluator {name!r}",
            fix=f"add it to the evaluators, or set one of: {', '.join(sorted(known))}",
        )
    raise UsageError(f"this run has no evaluator {name!r}", fix=nearest(name, known))


def _inner(written: Written, info: EvaluatorInfo | None) -> list[Any]:
    """The evaluators inside a field or a combination."""
    if info is None or not info.parts:
        return []
    try:
        inside = parameters_by_name(written, info).get(info.parts, ())
    except EvaluatorError:
        return []
    return list(inside) if isinstance(inside, list | tuple) else [inside]


def _changed(
    entries: Sequence[Any], steps: tuple[int, ...], parameters: Mapping[str, Any], describe: Describe
) -> list[Any]:
    """The entries with parameters put to the one at a place."""
    first, *rest = steps
    entry = entries[first]
    written = read_entry(evaluator_in(entry))
    if written is None:
        made: Any = attach(entry, parameters=parameters)
    else:
        info = describe(written.uses)
        own = parameters_by_name(written, info)
        if rest:
            inner = _changed(_inner(written, info), tuple(rest), parameters, describe)
            several = isinstance(own[info.parts], list | tuple)
            parameters = {info.parts: inner if several else inner[0]}
        made = {"uses": written.uses, "parameters": {**own, **parameters}}
        if written.name:
            made["name"] = written.name
    return [*entries[:first], put_back(entry, made), *entries[first + 1 :]]


def _takes_text(entry: Any, parameter: str, describe: Describe) -> bool:
    """True if a parameter is a text: then its value is taken to the letter."""
    written = read_entry(evaluator_in(entry))
    info = None if written is None else _info_of(written.uses, describe)
    kinds = [known.type for known in info.parameters if known.name == parameter] if info else []
    return any("str" in kind.split(" | ") for kind in kinds)


def _info_of(uses: str, describe: Describe) -> EvaluatorInfo | None:
    """What is known of an evaluator; None if it cannot be found, which the run reports."""
    try:
        return describe(uses)
    except EvaluatorError:
        return None
