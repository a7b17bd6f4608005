"""The registry: evaluators by name, and evaluators built from what an eval file says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from proctor.core import imports as importing
from proctor.core import imports as plugins
from proctor.errors import EvaluatorError, Problem, UsageError, nearest
from proctor.evaluators.attached import Attached, attach, name_clashes, problems_of
from proctor.evaluators.combination import negate
from proctor.evaluators.evidence import shape_of
from proctor.evaluators.marking import EvaluatorInfo, describe, info_of, known_as, marking_of
from proctor.metrics.registry import is_metric, make_metric
from proctor.ports import Metric
from proctor.wiring.evaluator_entries import (
    NEGATED,
    Written,
    evaluator_in,
    parameters_by_name,
    put_back,
    read_entry,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


# What `register_evaluator` was told: known to every registry of this process from then on.
_for_all: dict[str, Any] = {}


class Registered(NamedTuple):
    """An evaluator in the registry: what the catalogue shows, and the function, object or class."""

    info: EvaluatorInfo
    thing: Any
    renamed: bool = False


class Registry:
    """Evaluators by name. Built-ins and plugins enter by the same road: entry points.

    >>> registry = Registry.standard()
    >>> registry.build({"contains": {"case_sensitive": False}})("Paris, France", "paris").passed
    True
    """

    def __init__(self, discover: Callable[[], Iterable[EntryPoint]] = tuple) -> None:
        self._discover: Callable[[], Iterable[EntryPoint]] | None = discover
        self._found: dict[str, Registered] = {}
        self._warnings: list[str] = []
        self._loaded: dict[str, tuple[str, ...]] = {}
        self._metrics: dict[str, Metric] = {}

    @classmethod
    def standard(cls) -> Registry:
        """A registry of everything that is installed; it is looked for when a name is asked for."""
        return cls(_installed)

    @classmethod
    def from_entry_points(cls, entry_points: Iterable[EntryPoint]) -> Registry:
        """A registry of what entry points lead to; those that fail become `warnings`."""
        return cls(lambda: entry_points)

    @property
    def warnings(self) -> list[str]:
        """What could not be loaded, and why."""
        self._load_found()
        return self._warnings

    @property
    def _known(self) -> dict[str, Registered]:
        self._load_found()
        return self._found

    def _load_found(self) -> None:
        """Load what is installed, once; functions that are given as they are need none of it."""
        if self._discover is None:
            return
        discover, self._discover = self._discover, None
        is_standard = discover is _installed
        own_first = sorted(discover(), key=lambda e: (not e.value.startswith("proctor."), e.name))
        for entry_point in own_first:
            try:
                thing = entry_point.load()
                name = None if info_of(thing) else entry_point.name
                self.register(thing, None if isinstance(thing, ModuleType) else name)
            except Exception as error:
                # A broken plugin must not keep the others, or the built-ins, from being used.
                self._warnings.append(
                    f"the plugin {entry_point.name!r} ({entry_point.value}) cannot be loaded: "
                    + f"{type(error).__name__}: {error}".partition("\n")[0]
                )
        for name, thing in _for_all.items() if is_standard else ():
            self.register(thing, name)

    def register(self, thing: Any, name: str | None = None) -> tuple[str, ...]:
        """Add a function, factory, object, class, or all marked functions of a module.

        >>> registry = Registry()
        >>> registry.register(lambda output: len(output) < 80, name="short")
        ('short',)
        """
        if isinstance(thing, ModuleType):
            marked = [one for one in vars(thing).values() if _belongs(one, thing)]
            return tuple(name for one in marked for name in self.register(one))
        name = name or known_as(thing)
        if ":" in name or name.startswith(NEGATED) or not name.strip():
            raise EvaluatorError(
                f"{name!r} cannot be the name of an evaluator",
                fix=f"a name has no colon and does not begin with {NEGATED!r}",
            )
        known = self._known.get(name)
        if known is not None and known.thing is not thing:
            raise EvaluatorError(
                f"there is an evaluator {name!r} already", fix="register it under another name"
            )
        _refuse_speechless(thing, name)
        info = describe(thing)
        renamed = info.name != name
        self._known[name] = Registered(msgspec.structs.replace(info, name=name), thing, renamed=renamed)
        return (name,)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that plugins brought."""
        return tuple(self._metrics.values())

    def load_plugin(self, address: str) -> tuple[str, ...]:
        """Add what is found at `module:attribute`, or all marked functions of a module.

        Returns the names of the evaluators that it brings. A metric is added to `metrics`.
        """
        if address in self._loaded:
            return self._loaded[address]
        thing = _load(address) if ":" in address else _load_module(address)
        names: tuple[str, ...] = ()
        if is_metric(thing):
            self._metrics[address] = make_metric(thing, address)
        else:
            names = self.register(thing)
            if not names:
                raise EvaluatorError(
                    "the module has no evaluator in it",
                    where=address,
                    fix="mark its functions with @evaluator, or write module:attribute",
                )
        self._loaded[address] = names
        return names

    def load_plugins(self, addresses: Iterable[str]) -> tuple[str, ...]:
        """Add several plugins; all that cannot be loaded are named in one error."""
        names: dict[str, None] = {}
        failed: list[EvaluatorError] = []
        for address in addresses:
            try:
                names.update(dict.fromkeys(self.load_plugin(address)))
            except EvaluatorError as error:
                failed.append(error)
        if len(failed) == 1:
            raise failed[0]
        if failed:
            problems = [one for error in failed for one in problems_of(error, "plugin")]
            raise EvaluatorError("some plugins cannot be loaded", problems=problems)
        return tuple(names)

    def evaluators(self) -> tuple[EvaluatorInfo, ...]:
        """The catalogue, by category and name."""
        infos = (known.info for known in self._known.values())
        return tuple(sorted(infos, key=lambda info: (info.category, info.name)))

    def describe(self, name: str) -> EvaluatorInfo:
        """What is known of an evaluator, by its name or address."""
        plain = name.removeprefix(NEGATED)
        return describe(_load(plain)) if ":" in plain else self._find(plain).info

    def build(self, spec: Any, *, name: str | None = None) -> Attached:
        """Make an evaluator from what an eval file, or a program, says.

        Taken are a name, `module:attribute`, `not-` before either, {name: parameters},
        {uses, name, …parameters}, an `EvaluatorSpec`, a callable, and one that is attached.

        >>> registry = Registry.standard()
        >>> registry.build({"uses": "contains", "name": "has_answer"}).spec.name
        'has_answer'
        >>> registry.build("not-contains")("all is well", "error").passed
        True
        """
        written = read_entry(spec)
        if written is None:
            return attach(spec, name=name)
        name = name or written.name
        if written.uses.startswith(NEGATED):
            inner = written._replace(uses=written.uses.removeprefix(NEGATED), name=None)
            return attach(negate(self.build(inner)), name=name)
        entry = self._find(written.uses)
        parameters = self._with_parts(written, entry.info)
        if name and any(parameter.name == "name" for parameter in entry.info.parameters):
            parameters.setdefault("name", name)
        pass_mark = None
        if not _takes(entry, "threshold"):
            pass_mark = parameters.pop("threshold", None)
        return attach(
            entry.thing,
            name=name or (written.uses if entry.renamed else None),
            threshold=pass_mark,
            parameters=parameters,
            uses=written.uses,
        )

    def build_all(self, specs: Sequence[Any] | Mapping[str, Any]) -> tuple[Attached, ...]:
        """Make several evaluators, in a list or by name; all problems are reported at once.

        >>> [one.spec.name for one in Registry.standard().build_all(["exact_match", "contains"])]
        ['exact_match', 'contains']
        """
        if isinstance(specs, str) or not isinstance(specs, Sequence | Mapping):
            specs = [specs]
        if not specs:
            raise EvaluatorError("no evaluator was given", fix="give at least one")
        named = specs.items() if isinstance(specs, Mapping) else ((None, one) for one in specs)
        built, problems = self._each(named, "evaluators")
        problems += name_clashes(built)
        if problems:
            raise EvaluatorError("some evaluators cannot be built", problems=problems)
        return tuple(built)

    def _each(
        self, named: Iterable[tuple[str | None, Any]], where: str
    ) -> tuple[list[Attached], list[Problem]]:
        built: list[Attached] = []
        problems: list[Problem] = []
        for position, (name, spec) in enumerate(named):
            try:
                built += (self.build(one, name=name) for one in self._spread(spec))
            except EvaluatorError as error:
                problems += problems_of(error, _place(spec, name, position, where))
        return built, problems

    def _spread(self, spec: Any) -> Sequence[Any]:
        """The evaluators that one entry stands for, mostly itself alone."""
        written = read_entry(spec)
        uses = "" if written is None else written.uses.removeprefix(NEGATED)
        marking = marking_of(self._find(uses).thing) if uses else None
        if written is None or written.bare or marking is None or marking.spread is None:
            return (spec,)
        each = marking.spread(written.parameters)
        if written.name and len(each) > 1:
            what = f"{written.name!r} cannot be the name of {len(each)} evaluators"
            raise EvaluatorError(what, fix="leave `name` out: each has a name of its own")
        return [written._replace(parameters=parameters) for parameters in each]

    def _find(self, uses: str) -> Registered:
        if uses in self._known:
            return self._known[uses]
        if ":" in uses:
            thing = _load(uses)
            return Registered(describe(thing), thing)
        raise EvaluatorError(f"there is no evaluator {uses!r}", fix=nearest(uses, self._known))

    def _with_parts(self, written: Written, info: EvaluatorInfo) -> dict[str, Any]:
        """The parameters, with evaluators among them built."""
        parameters = parameters_by_name(written, info)
        if info.parts not in parameters:
            return parameters
        inside = parameters[info.parts]
        several = any(p.name == info.parts and p.type.startswith("list") for p in info.parameters)
        given = list(inside) if isinstance(inside, list | tuple) else [inside]
        built, problems = self._each(((None, evaluator_in(part)) for part in given), info.parts)
        if problems:
            raise EvaluatorError("its parts cannot be built", where=info.name, problems=problems)
        whole = [put_back(part, one) for part, one in zip(given, built, strict=True)]
        return {**parameters, info.parts: whole if several else whole[0]}


def register_evaluator(thing: Any, name: str | None = None) -> tuple[str, ...]:
    """Make an evaluator known by its name everywhere in this process; gives its names.

    >>> class Polite:
    ...     evaluator_name = "polite"
    ...     def evaluate(self, field_context, **options):
    ...         return {"passed": "please" in field_context.value}
    >>> register_evaluator(Polite)
    ('polite',)
    """
    # Said again, as when a notebook's cell is run once more, the new one holds, if it is sound.
    known_as_before = _for_all.pop(name or known_as(thing), None)
    try:
        names = Registry.standard().register(thing, name)
    except EvaluatorError:
        if known_as_before is not None:
            _for_all[name or known_as(thing)] = known_as_before
        raise
    for one in names:
        _for_all[one] = thing
    return names


def _installed() -> Iterable[EntryPoint]:
    return plugins.installed(plugins.EVALUATORS)


def _takes(entry: Registered, option: str) -> bool:
    """True if an evaluator has such an option, or takes any."""
    if option in (parameter.name for parameter in entry.info.parameters):
        return True
    if not isinstance(entry.thing, type):
        return False
    method = getattr(entry.thing, "evaluate", None)
    return inspect.isfunction(method) and shape_of(method.__get__(entry), option).any_option


def _place(spec: Any, name: str | None, position: int, where: str) -> str:
    """Where an evaluator was written, as its writer would say it."""
    if isinstance(spec, Mapping) and spec.get("uses") == "field" and "name" in spec:
        return f"fields.{spec['name']}"
    return f"{where}[{position if name is None else name}]"


def _belongs(thing: Any, module: ModuleType) -> bool:
    """True for a marked function, or class, that was written in the module."""
    return info_of(thing) is not None and getattr(thing, "__module__", None) == module.__name__


def _refuse_speechless(thing: Any, name: str) -> None:
    """A class whose objects cannot be called evaluates nothing."""
    if isinstance(thing, type) and not (
        hasattr(thing, "evaluate") or any("__call__" in vars(kind) for kind in thing.__mro__)
    ):
        raise EvaluatorError(
            "its objects are neither callable nor have they an `evaluate` method", where=name
        )


def _load(address: str) -> Any:
    return _told(importing.load, address)


def _load_module(name: str) -> ModuleType:
    found: ModuleType = _told(importing.module, name)
    return found


def _told(load: Any, address: str) -> Any:
    """Load, and let every failure be an error about this evaluator."""
    try:
        return load(address)
    except UsageError as error:
        raise EvaluatorError(error.what, where=address, fix=error.fix) from error
    except Exception as error:
        raise EvaluatorError(
            f"it cannot be imported: {type(error).__name__}: {error}", where=address
        ) from error
