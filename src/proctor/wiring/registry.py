"""The registry: finds evaluators by name, and builds them from the entries of eval files."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from proctor import evaluators as builtin_evaluators
from proctor.core import imports as importing
from proctor.errors import EvaluatorError, UsageError, suggest_name
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach, find_name_clashes, flatten_problems
from proctor.evaluators.decorator import EvaluatorInfo, describe_evaluator, get_info, get_mark, get_name
from proctor.evaluators.options import read_signature
from proctor.metrics.registry import is_metric, make_metric
from proctor.ports import EvaluatorLike, EvaluatorObject, EvaluatorsLike, Metric
from proctor.wiring.evaluator_entries import NEGATED, Entry, parameters_by_name, parse_entry, rewrap_part, unwrap_part

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


# Evaluators from `register_evaluator`, which every standard registry of this process contains.
_process_evaluators: dict[str, Any] = {}


class RegistryEntry(NamedTuple):
    """An evaluator in the registry: its catalog entry, and the function, object or class."""

    info: EvaluatorInfo
    evaluator: Any
    is_renamed: bool = False


class Registry:
    """Evaluators by name. Built-ins and plugins are both registered by entry points.

    >>> registry = Registry.standard()
    >>> registry.build({"contains": {"case_sensitive": False}})("Paris, France", "paris").passed
    True
    """

    def __init__(self, discover: Callable[[], Iterable[EntryPoint]] = tuple) -> None:
        self._discover: Callable[[], Iterable[EntryPoint]] | None = discover
        self._loaded_entries: dict[str, RegistryEntry] = {}
        self._warnings: list[str] = []
        self._loaded: dict[str, tuple[str, ...]] = {}
        self._metrics: dict[str, Metric] = {}

    @classmethod
    def standard(cls) -> Registry:
        """Return a registry of everything installed, which is loaded on first use."""
        return cls(_installed)

    @classmethod
    def from_entry_points(cls, entry_points: Iterable[EntryPoint]) -> Registry:
        """Return a registry of these entry points; entry points that fail become `warnings`."""
        return cls(lambda: entry_points)

    @property
    def warnings(self) -> list[str]:
        """The plugins that could not be loaded, and why."""
        self._load_installed()
        return self._warnings

    @property
    def _entries(self) -> dict[str, RegistryEntry]:
        self._load_installed()
        return self._loaded_entries

    def _load_installed(self) -> None:
        """Load the entry points once; a run that passes functions needs none of them."""
        if self._discover is None:
            return
        discover, self._discover = self._discover, None
        is_standard = discover is _installed
        own_first = sorted(discover(), key=lambda e: (not e.value.startswith("proctor."), e.name))
        for entry_point in own_first:
            try:
                loaded = entry_point.load()
                has_name = isinstance(loaded, ModuleType) or get_info(loaded)
                self.register(loaded, None if has_name else entry_point.name)
            except Exception as error:
                # A broken plugin must not disable other plugins or the built-in evaluators.
                reason = f"{type(error).__name__}: {error}".partition("\n")[0]
                plugin = f"the plugin {entry_point.name!r} ({entry_point.value})"
                self._warnings.append(f"{plugin} cannot be loaded: {reason}")
        for name, evaluator in _process_evaluators.items() if is_standard else ():
            self.register(evaluator, name)

    def register(self, evaluator: EvaluatorObject | ModuleType, name: str | None = None) -> tuple[str, ...]:
        """Add a function, a factory, an object, a class, or all marked functions of a module.

        >>> registry = Registry()
        >>> registry.register(lambda output: len(output) < 80, name="short")
        ('short',)
        """
        if isinstance(evaluator, ModuleType):
            defined = [
                member
                for member in vars(evaluator).values()
                if getattr(member, "__module__", None) == evaluator.__name__
            ]
            return tuple(name for member in defined if get_info(member) is not None for name in self.register(member))
        name = name or get_name(evaluator)
        if ":" in name or name.startswith(NEGATED) or not name.strip():
            raise EvaluatorError(
                f"{name!r} cannot be the name of an evaluator",
                fix=f"choose a name with no colon that does not start with {NEGATED!r}",
            )
        entry = self._entries.get(name)
        if entry is not None and entry.evaluator is not evaluator:
            raise EvaluatorError(f"an evaluator is already named {name!r}", fix="register it under another name")
        _require_callable(evaluator, name)
        info = describe_evaluator(evaluator)
        named_info = msgspec.structs.replace(info, name=name)
        self._entries[name] = RegistryEntry(named_info, evaluator, is_renamed=info.name != name)
        return (name,)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the loaded plugins."""
        return tuple(self._metrics.values())

    def load_metric(self, metric: Any) -> Any:
        """Return a metric by its address, or by the name of an installed metric; return any other object unchanged.

        >>> Registry().load_metric("proctor.metrics:SuccessRateMetric").name
        'success_rate'
        """
        if not isinstance(metric, str):
            return metric
        if ":" in metric:
            return make_metric(_load(metric), metric)
        installed = {point.name: point for point in importing.entry_points(importing.METRICS)}
        if metric not in installed:
            fix = suggest_name(metric, installed) if installed else "write module:attribute, or install its package"
            raise EvaluatorError(f"unknown metric {metric!r}", where="metrics", fix=fix)
        return make_metric(_import(lambda _: installed[metric].load(), metric), metric)

    def load_plugin(self, address: str) -> tuple[str, ...]:
        """Add the object at `module:attribute`, or all marked functions of a module.

        Returns the names of the added evaluators. A metric is added to `metrics`.
        """
        if address in self._loaded:
            return self._loaded[address]
        loaded = _import(importing.import_object if ":" in address else importing.import_module, address)
        names: tuple[str, ...] = ()
        if is_metric(loaded):
            self._metrics[address] = make_metric(loaded, address)
        else:
            names = self.register(loaded)
            if not names:
                raise EvaluatorError(
                    "the module has no evaluators",
                    where=address,
                    fix="mark its functions with @evaluator, or write module:attribute",
                )
        self._loaded[address] = names
        return names

    def load_plugins(self, addresses: Iterable[str]) -> tuple[str, ...]:
        """Add several plugins; one error lists all plugins that cannot be loaded."""
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
            problems = [problem for error in failed for problem in flatten_problems(error, "plugin")]
            raise EvaluatorError(
                "some plugins cannot be loaded", problems=problems, fix="correct or remove these plugins"
            )
        return tuple(names)

    def evaluators(self) -> tuple[EvaluatorInfo, ...]:
        """Return the catalog, by category and name."""
        infos = (entry.info for entry in self._entries.values())
        return tuple(sorted(infos, key=lambda info: (info.category, info.name)))

    def describe(self, name: str) -> EvaluatorInfo:
        """Return the catalog entry of an evaluator, by its name or address."""
        plain_name = name.removeprefix(NEGATED)
        return describe_evaluator(_load(plain_name)) if ":" in plain_name else self._find(plain_name).info

    def build(self, spec: EvaluatorLike | Entry, *, name: str | None = None) -> BoundEvaluator:
        """Build an evaluator from an entry of an eval file, or from an object.

        Accepts a name, `module:attribute`, `not-` before either, {name: parameters},
        {uses, name, …parameters}, {name: object}, an `EvaluatorSpec`, a callable, and an attached evaluator.

        >>> registry = Registry.standard()
        >>> registry.build({"uses": "contains", "name": "has_answer"}).spec.name
        'has_answer'
        >>> registry.build("not-contains")("all is well", "error").passed
        True
        """
        entry = parse_entry(spec)
        if entry is None:
            return attach(cast(EvaluatorObject, spec), name=name)
        if self._is_named_object(entry):
            return attach(entry.bare[0], name=name or entry.uses)
        name = name or entry.name
        if entry.uses.startswith(NEGATED):
            inner = entry._replace(uses=entry.uses.removeprefix(NEGATED), name=None)
            from proctor.evaluators.combination import negate

            return attach(negate(self.build(inner)), name=name)
        registered = self._find(entry.uses)
        parameters = self._build_parameters(entry, registered.info)
        if name and any(parameter.name == "name" for parameter in registered.info.parameters):
            parameters.setdefault("name", name)
        has_threshold = _has_option(registered, "threshold")
        return attach(
            registered.evaluator,
            name=name or (entry.uses if registered.is_renamed else None),
            threshold=None if has_threshold else parameters.pop("threshold", None),
            parameters=parameters,
            uses=entry.uses,
        )

    def build_all(self, evaluators: EvaluatorsLike) -> tuple[BoundEvaluator, ...]:
        """Build several evaluators, in a list or by name; one error reports all problems.

        >>> [each.spec.name for each in Registry.standard().build_all(["exact_match", "contains"])]
        ['exact_match', 'contains']
        """
        if isinstance(evaluators, str) or not isinstance(evaluators, Sequence | Mapping | None):
            evaluators = [evaluators]
        if not evaluators:
            raise EvaluatorError(
                "there is no evaluator" if evaluators is None else "the list is empty",
                where="evaluators",
                fix="add at least one evaluator, such as exact_match",
            )
        named_evaluators = (
            evaluators.items() if isinstance(evaluators, Mapping) else ((None, evaluator) for evaluator in evaluators)
        )
        built, errors = self._build_each(named_evaluators, "evaluators")
        clashes = find_name_clashes(built)
        if len(errors) == 1 and not clashes:
            [(place, error)] = errors
            where = f"{place} ({error.where})" if error.where else place
            raise EvaluatorError(error.what, where=where, fix=error.fix, problems=error.problems)
        if errors or clashes:
            problems = [problem for place, error in errors for problem in flatten_problems(error, place)] + clashes
            fix = "correct these entries; `proctor evaluators NAME` lists the parameters of an evaluator"
            if clashes:
                names = f"give each evaluator a unique name: {clashes[0].fix}"
                fix = f"{fix}; {names}" if errors else names
            raise EvaluatorError("some evaluators cannot be built", problems=problems, fix=fix)
        return tuple(built)

    def _build_each(
        self, named_evaluators: Iterable[tuple[str | None, Any]], where: str
    ) -> tuple[list[BoundEvaluator], list[tuple[str, EvaluatorError]]]:
        """Return the evaluators that can be built, and the errors of the others with their positions."""
        built: list[BoundEvaluator] = []
        errors: list[tuple[str, EvaluatorError]] = []
        for position, (name, spec) in enumerate(named_evaluators):
            try:
                built += (self.build(expanded_spec, name=name) for expanded_spec in self.expand(spec))
            except EvaluatorError as error:
                errors.append((_describe_place(spec, name, position, where), error))
        return built, errors

    def expand(self, spec: Any) -> Sequence[Any]:
        """Return the evaluators of an entry: usually itself, several for a set of rubrics."""
        entry = parse_entry(spec)
        if entry is not None and self._is_named_object(entry):
            return (spec,)
        uses = "" if entry is None else entry.uses.removeprefix(NEGATED)
        marking = get_mark(self._find(uses).evaluator) if uses else None
        if entry is None or entry.bare or marking is None or marking.spread is None:
            return (spec,)
        expanded = marking.spread(entry.parameters)
        if entry.name and len(expanded) > 1:
            raise EvaluatorError(
                f"{entry.name!r} cannot be the name of {len(expanded)} evaluators",
                fix="delete `name`: each evaluator has a name of its own",
            )
        return [entry._replace(parameters=parameters) for parameters in expanded]

    def _is_named_object(self, entry: Entry) -> bool:
        """True for {name: evaluator object}, unless the name is an evaluator that has this object as a parameter."""
        if not entry.bare or not (callable(entry.bare[0]) or hasattr(entry.bare[0], "evaluate")):
            return False
        try:
            parameters_by_name(entry, self._find(entry.uses).info)
        except EvaluatorError:
            return True
        return False

    def find_evaluator(self, uses: str) -> Any:
        """Return the function, object or class behind the name or address of an evaluator."""
        return self._find(uses.removeprefix(NEGATED)).evaluator

    def _find(self, uses: str) -> RegistryEntry:
        if self._discover is _installed and (entry := _find_builtin(uses)) is not None:
            return entry
        if uses in self._entries:
            return self._entries[uses]
        if ":" in uses:
            evaluator = _load(uses)
            return RegistryEntry(describe_evaluator(evaluator), evaluator)
        raise EvaluatorError(f"unknown evaluator {uses!r}", fix=suggest_name(uses, self._entries))

    def _build_parameters(self, entry: Entry, info: EvaluatorInfo) -> dict[str, Any]:
        """Return the parameters, and build the evaluators among them."""
        parameters = parameters_by_name(entry, info)
        if info.parts not in parameters:
            return parameters
        value = parameters[info.parts]
        is_list = any(p.name == info.parts and p.type.startswith("list") for p in info.parameters)
        parts = list(value) if isinstance(value, list | tuple) else [value]
        built, errors = self._build_each(((None, unwrap_part(part)) for part in parts), info.parts)
        if errors:
            problems = [problem for place, error in errors for problem in flatten_problems(error, place)]
            raise EvaluatorError("its evaluators cannot be built", where=info.name, problems=problems)
        rewrapped = [rewrap_part(part, evaluator) for part, evaluator in zip(parts, built, strict=True)]
        return {**parameters, info.parts: rewrapped if is_list else rewrapped[0]}


def load_custom_metrics(addresses: Iterable[str] = ()) -> tuple[Any, ...]:
    """Return the metrics at some addresses and all installed metrics, to compare runs that were stored with them."""
    registry = Registry()
    registry.load_plugins(addresses)
    installed = []
    for name in importing.plugin_names(importing.METRICS):
        # A broken package must not prevent other comparisons.
        with contextlib.suppress(EvaluatorError):
            installed.append(registry.load_metric(name))
    return (*registry.metrics, *installed)


def register_evaluator(evaluator: EvaluatorObject, name: str | None = None) -> tuple[str, ...]:
    """Register an evaluator by name for this process; return its names.

    >>> class Polite:
    ...     evaluator_name = "polite"
    ...     def evaluate(self, field_context, **options):
    ...         return {"passed": "please" in field_context.value}
    >>> register_evaluator(Polite)
    ('polite',)
    """
    # A notebook cell that runs again replaces its evaluator, if the new evaluator is valid.
    previous = _process_evaluators.pop(name or get_name(evaluator), None)
    try:
        names = Registry.standard().register(evaluator, name)
    except EvaluatorError:
        if previous is not None:
            _process_evaluators[name or get_name(evaluator)] = previous
        raise
    _process_evaluators.update(dict.fromkeys(names, evaluator))
    return names


def find_parameters(uses: str, evaluators: Any) -> list[Mapping[str, Any]]:
    """Return the parameters of each entry that uses this evaluator."""
    if isinstance(evaluators, Mapping):
        evaluators = evaluators.values()
    elif not isinstance(evaluators, list | tuple):
        evaluators = [evaluators]
    entries = map(parse_entry, evaluators)
    return [entry.parameters for entry in entries if entry is not None and entry.uses == uses]


def _installed() -> Iterable[EntryPoint]:
    return importing.entry_points(importing.EVALUATORS)


def _find_builtin(name: str) -> RegistryEntry | None:
    """Return a built-in evaluator without loading all others, which takes longer than most runs."""
    evaluator = getattr(builtin_evaluators, name) if name in builtin_evaluators.__all__ else None
    info = get_info(evaluator)
    return None if info is None or info.name != name else RegistryEntry(info, evaluator)


def _has_option(registered: RegistryEntry, option: str) -> bool:
    """True if an evaluator has this option, or accepts any option."""
    if option in (parameter.name for parameter in registered.info.parameters):
        return True
    if not isinstance(registered.evaluator, type):
        return False
    method = getattr(registered.evaluator, "evaluate", None)
    return inspect.isfunction(method) and read_signature(method.__get__(registered), option).accepts_any


def _describe_place(spec: Any, name: str | None, position: int, where: str) -> str:
    if isinstance(spec, Mapping) and spec.get("uses") == "field" and "name" in spec:
        return f"fields.{spec['name']}"
    return f"{where}[{position if name is None else name}]"


def _require_callable(evaluator: Any, name: str) -> None:
    if isinstance(evaluator, type) and not (
        hasattr(evaluator, "evaluate") or any("__call__" in vars(base) for base in evaluator.__mro__)
    ):
        raise EvaluatorError(
            "objects of this class are not callable and have no `evaluate` method",
            where=name,
            fix="add def evaluate(self, output): …",
        )


def _load(address: str) -> Any:
    return _import(importing.import_object, address)


def _import(load: Callable[[str], Any], address: str) -> Any:
    """Import an object; turn every failure into an error about this evaluator."""
    try:
        return load(address)
    except UsageError as error:
        raise EvaluatorError(error.what, where=address, fix=error.fix) from error
    except Exception as error:
        what = f"the import failed: {type(error).__name__}: {error}"
        raise EvaluatorError(what, where=address, fix="correct the module, then try again") from error
