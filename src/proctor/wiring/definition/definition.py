"""`define(…)`: select fields, attach evaluators to them, and evaluate spans."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, Unpack

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core import bridge
from proctor.core.aliases import common_name
from proctor.datasets.rerun import recorded_configurations
from proctor.errors import ConfigError, EvaluatorError, Problem, UsageError, suggest_name
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach
from proctor.evaluators.decorator import describe_evaluator
from proctor.evaluators.fields import Combination
from proctor.ports import EvaluatorLike, EvaluatorObject, ProgressCallback, TargetLike
from proctor.records.fields.path import parse_path
from proctor.records.progress import EventKind, ProgressEvent, ProgressStatus, filter_events
from proctor.records.run import EvaluatorSpec
from proctor.records.score import Skipped
from proctor.records.trial import Configuration
from proctor.wiring import evaluate as api
from proctor.wiring.definition.block import (
    Block,
    check_alias,
    check_evaluator,
    check_listener,
    check_parameters,
    describe_object,
    is_series,
    missing_field_error,
)
from proctor.wiring.definition.definition_history import DefinitionHistory
from proctor.wiring.definition.spans import Spans, convert_spans, require_recorded_results
from proctor.wiring.prepare import Configurations, build_configurations, combine_errors
from proctor.wiring.registry import Registry


class Settings:
    """Collects the parameters that a function sets; rejects unknown parameters."""

    def __init__(self, evaluator: str, known_parameters: tuple[str, ...]) -> None:
        vars(self).update(_evaluator=evaluator, _known=known_parameters, _values={})

    def __setattr__(self, name: str, value: Any) -> None:
        name = common_name(name, self._known)
        if self._known and name not in self._known:
            raise EvaluatorError(
                f"it has no parameter {name!r}", where=self._evaluator, fix=suggest_name(name, self._known)
            )
        self._values[name] = value

    def __getattr__(self, name: str) -> Any:
        values = vars(self)["_values"]
        name = common_name(name, values)
        if name in values:
            return values[name]
        raise AttributeError(f"{name!r} was not set")


def collect_settings(configure: Callable[[Any], object], evaluator: Any, registry: Registry) -> dict[str, Any]:
    """Return the parameters that a function sets."""
    info = registry.describe(evaluator) if isinstance(evaluator, str) else describe_evaluator(evaluator)
    settings = Settings(info.name, tuple(parameter.name for parameter in info.parameters))
    configure(settings)
    values: dict[str, Any] = vars(settings)["_values"]
    return values


Callback = Callable[[ProgressEvent], object]


class OrderedEvents:
    """A callback that passes on all events of one configuration before the events of the next.

    Events of the other configurations are delayed; the percentage never decreases.
    """

    def __init__(self, callback: Callback, configurations: Sequence[str]) -> None:
        self._callback = callback
        self._delayed: dict[str, list[ProgressEvent]] = {name: [] for name in configurations}
        self._highest = 0.0
        self._failure: Exception | None = None

    def __call__(self, event: ProgressEvent) -> None:
        self._receive(event)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _receive(self, event: ProgressEvent) -> None:
        current = next(iter(self._delayed), None)
        name = event.configuration
        if event.kind == "end":
            # A stopped run has configurations that did not end: send their events first.
            for events in self._delayed.values():
                self._send(events)
            self._delayed.clear()
            self._send([event])
        elif name is None or name == current or name not in self._delayed:
            self._send([event])
            if event.kind == "config_end" and name == current:
                self._advance()
        else:
            self._delayed[name].append(event)

    def _advance(self) -> None:
        """Continue with the next configuration that has not ended."""
        del self._delayed[next(iter(self._delayed))]
        while self._delayed:
            name, events = next(iter(self._delayed.items()))
            self._delayed[name] = []
            self._send(events)
            if not events or events[-1].kind != "config_end":
                return
            del self._delayed[name]

    def _send(self, events: Sequence[ProgressEvent]) -> None:
        for event in events:
            self._highest = max(self._highest, event.progress)
            try:
                self._callback(msgspec.structs.replace(event, progress=self._highest))
            except Exception as error:
                # The other events follow; __call__ raises the first failure afterwards.
                self._failure = self._failure or error


BuiltIn = Literal[
    "semantic_similarity", "coherence", "hallucination_detection", "relevance",
    "token_efficiency", "latency", "throughput",
    "no_regression", "token_regression", "latency_regression",
    "bias_detection", "toxicity_detection", "compliance",
    "consistency", "statistical_significance", "effect_size",
    "json_validity", "schema_match", "format_compliance",
    "llm_judge", "quality_score", "rubric_evaluation",
]  # fmt: skip
SIMILARITY = 0.8


def define(name: str | None = None) -> Definition:
    """Start a definition; its runs are stored under its name.

    >>> checks = (
    ...     define("greetings")
    ...     .select("usage.total_tokens", as_="tokens")
    ...     .evaluate_field("output").evaluate_with(lambda output: "hello" in output.lower())
    ...     .evaluate_field("tokens").evaluate_with(lambda tokens: tokens < 100)
    ... )
    >>> checks.evaluate({"output": "Hello Ada", "usage": {"total_tokens": 12}}).passed
    True
    """
    return Definition(name)


def configuration(name: str, /, **options: Any) -> Configuration:
    """Return a configuration: a named set of options for the target.

    >>> configuration("low_temp", temperature=0.3).options
    {'temperature': 0.3}
    """
    if not (isinstance(name, str) and name.strip()):
        raise ConfigError(
            f"a configuration's name must be a non-empty string, got {name!r}",
            fix='write configuration("low_temp", temperature=0.3)',
        )
    return Configuration(name, options)


class Definition:
    """The fields of a result to evaluate, their evaluators, and the history of the runs.

    Every method returns the definition, for chaining. A mistake raises an error immediately; inside
    `with define(…) as checks:` one error at the end of the block reports all mistakes.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.history: DefinitionHistory[Definition] = DefinitionHistory(self)
        self._registry = Registry.standard()
        self._selected: dict[str, str] = {}
        self._blocks: dict[str, Block] = {}
        self._current: Block | None = None
        self._callbacks: list[ProgressCallback] = []
        self._configurations: dict[str, Configuration] = {}
        self._baseline: str | None = None
        self._errors: list[UsageError] | None = None
        if name is not None and not (isinstance(name, str) and name.strip()):
            raise ConfigError(
                f"a definition's name must be a non-empty string, got {name!r}", fix='write define("name")'
            )

    def __repr__(self) -> str:
        fields = ", ".join(self._blocks) or "no fields yet"
        return f"<Definition {self.name or 'without a name'}: {fields}>"

    def __enter__(self) -> Self:
        self._errors = []
        return self

    def __exit__(self, error_type: Any, _error: Any, _traceback: Any) -> None:
        errors, self._errors = self._errors or [], None
        if error_type is not None:
            return
        if errors:
            raise combine_errors(errors, "the definition", self.name or "")
        self.check()

    def report_error(self, error: UsageError) -> None:
        """Raise an error now, or at the end of the `with` block."""
        if self._errors is None:
            raise error
        self._errors.append(error)

    @contextlib.contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except UsageError as error:
            self.report_error(error)

    def select(self, path: str, as_: str | None = None) -> Self:
        """Select a field by its path, and optionally give it a name."""
        name = as_ or path
        with self._reporting_errors():
            parse_path(path)
            if as_ is not None:
                check_alias(as_, path)
            block = self._blocks.get(name)
            known_path = self._selected.get(name) or (block.path if block else path)
            if known_path != path:
                raise ConfigError(
                    f"the field {known_path!r} already has the name {name!r}",
                    where=path,
                    fix="choose another name, or write this select before evaluate_field",
                )
            self._selected[name] = path
        return self

    def evaluate_field(self, field: str, *evaluators: EvaluatorLike, combine_with: Combination | None = None) -> Self:
        """Start the list of evaluators for a field, by its name or path.

        Pass evaluators here or to `evaluate_with`. A second call for the same field adds evaluators.
        """
        self._current = self._block_of(field)
        for evaluator in evaluators:
            self.evaluate_with(evaluator)
        if combine_with is not None:
            self.combine_with(combine_with)
        return self

    def evaluate_with(
        self, evaluator: BuiltIn | EvaluatorLike, configure: Callable[[Any], object] | None = None, /, **parameters: Any
    ) -> Self:
        """Attach an evaluator to the field, by name or as an object, with its parameters.

        `configure` is a function that sets parameters as attributes of its argument.
        """
        with self._reporting_errors():
            if self._current is None:
                raise missing_field_error(f"evaluate_with({describe_object(evaluator)})")
            check_evaluator(evaluator, configure)
            self._current.evaluators.append(self._build(evaluator, configure, parameters))
        return self

    use_evaluator = evaluate_with

    def combine_with(self, rule: Combination, *, skipped: Skipped = "skip") -> Self:
        """Set when the field passes: "and" (all), "or" (any), or a function of the scores.

        With `skipped="ignore"`, evaluators that skip are ignored; by default they skip the field.
        """
        with self._reporting_errors():
            if self._current is None:
                raise missing_field_error(f"combine_with({rule!r})")
            self._current.combine_with(rule, skipped)
        return self

    def register_evaluator(self, evaluator: EvaluatorObject, name: str | None = None) -> Self:
        """Register an evaluator by name for this definition."""
        with self._reporting_errors():
            self._registry.register(evaluator, name)
        return self

    def on_progress(
        self,
        callback: ProgressCallback,
        *,
        kinds: Collection[EventKind] | None = None,
        statuses: Collection[ProgressStatus] | None = None,
        configurations: Collection[str] | None = None,
    ) -> Self:
        """Call a function for every progress event, or for some: by kind, status or configuration."""
        with self._reporting_errors():
            check_listener(callback, kinds or (), statuses or ())
            listener = filter_events(callback, kinds=kinds, statuses=statuses, configurations=configurations)
            self._callbacks.append(listener)
        return self

    def configuration(self, name: str, /, **options: Any) -> Self:
        """Add a configuration; its options are passed to the target."""
        if name in self._configurations:
            fix = "rename one of them"
            self.report_error(ConfigError(f"two configurations are named {name!r}", fix=fix))
        with self._reporting_errors():
            self._configurations[name] = configuration(name, **options)
        return self

    def baseline(self, configuration: str) -> Self:
        """Compare all other configurations with this configuration."""
        self._baseline = configuration
        return self

    def check(self) -> Self:
        """Raise an error that lists everything that is missing from the definition."""
        problems = [
            Problem(name, "add an evaluator: .evaluate_with(…)")
            for name, block in self._blocks.items()
            if not block.evaluators
        ]
        if not self._blocks:
            problems.append(Problem("", 'add a field to evaluate: .evaluate_field("output")'))
        names = list(self._configurations)
        if self._baseline is not None and names and self._baseline not in names:
            problem = f"unknown configuration {self._baseline!r}; {suggest_name(self._baseline, names)}"
            problems.append(Problem("baseline", problem))
        if self.history.auto_save and not self.name:
            problems.append(Problem("history", 'a definition needs a name to store runs: define("name")'))
        if problems:
            raise ConfigError("the definition is not complete", problems=problems)
        return self

    async def aevaluate(
        self,
        span: object,
        *,
        target: TargetLike | None = None,
        configurations: Configurations | None = None,
        recorded: Mapping[str, Any] | None = None,
        **options: Unpack[api.RunKwargs],
    ) -> EvalReport:
        """Evaluate a span, or a dataset of spans, in every configuration.

        With a `target`, every configuration runs; without a target, the span's recorded results are evaluated, and
        `recorded` holds the result of each configuration if there are several. A dataset is a path, a list of spans, or
        anything that `evaluate` accepts. Other keyword arguments (`epochs`, `concurrency`, `resume`, `metrics` …) are
        passed to `evaluate`.
        """
        self.check()
        check_parameters(options)
        if target is not None and recorded is not None:
            raise ConfigError(
                "evaluate received a target and recorded results",
                fix="leave out recorded=… to run the target, or target=… to evaluate the results",
            )
        if options.get("resume") and not self.history.auto_save:
            raise ConfigError(
                "only a stored run can be resumed, and this definition stores none",
                where="resume",
                fix='write define("name").history() and run it again',
            )
        selected = self._select_configurations(configurations, recorded)
        spans = convert_spans(span, recorded)
        if target is None and spans.is_single:
            selected = selected or tuple(map(Configuration, recorded_configurations(spans.source)))
            require_recorded_results(spans, [configuration.name for configuration in selected])
        # Pass progress=True to show progress, or None to show it on a terminal.
        defaults: api.RunKwargs = {"progress": False}
        report = await api.aevaluate(
            target,
            spans.source,
            [block.evaluator(name) for name, block in self._blocks.items()],
            configurations=selected or None,
            baseline=self._baseline,
            fields=self.fields,
            name=self.name or "definition",
            tags=self.history.tags,
            history=self.history.open(),
            on_progress=self._build_callbacks(spans, selected),
            **(defaults | options),
        )
        if self.history.auto_save:
            self.history.prune()
        if spans.is_single:
            report.require_fields()
        return report

    evaluate = bridge.synchronous(aevaluate)

    @property
    def fields(self) -> dict[str, str]:
        """The selected and evaluated fields: paths by name."""
        evaluated = {name: block.path for name, block in self._blocks.items()}
        return self._selected | evaluated

    def _block_of(self, field: str) -> Block:
        """Return the block of a field, by its name or path; create it if necessary."""
        try:
            parse_path(field)
            by_path = {path: name for name, path in self._selected.items()}
            name = field if field in self._selected else by_path.get(field, field)
            if name not in self._blocks:
                self._reject_typo(field)
                self._blocks[name] = Block(self._selected.get(name, field))
            return self._blocks[name]
        except UsageError as error:
            self.report_error(error)
            return Block(field)

    def _reject_typo(self, field: str) -> None:
        """Reject a name that resembles a selected field: it is a typo rather than a path."""
        similar = difflib.get_close_matches(field, self._selected, n=1, cutoff=SIMILARITY)
        if field in self._selected or not similar or "." in field or is_series(field, similar[0]):
            return
        raise ConfigError(
            f"no field {field!r} was selected",
            fix=f"did you mean {similar[0]!r}? If not, select it first: .select({field!r})",
        )

    def _build(
        self, evaluator: EvaluatorLike, configure: Callable[[Any], object] | None, parameters: dict[str, Any]
    ) -> BoundEvaluator:
        if configure is not None:
            parameters |= collect_settings(configure, evaluator, self._registry)
        if isinstance(evaluator, str):
            return self._registry.build({"uses": evaluator, "parameters": parameters})
        if isinstance(evaluator, Mapping | EvaluatorSpec):
            if parameters:
                raise ConfigError(
                    f"parameters are both in {evaluator!r} and in keyword arguments",
                    fix="write evaluate_with(name, parameter=value)",
                )
            return self._registry.build(evaluator)
        return attach(evaluator, parameters=parameters)

    def _select_configurations(
        self, configurations: Configurations | None, recorded: Mapping[str, Any] | None
    ) -> tuple[Configuration, ...]:
        if configurations:
            return build_configurations(configurations)
        if self._configurations:
            return tuple(self._configurations.values())
        return tuple(Configuration(str(name)) for name in recorded or ())

    def _build_callbacks(self, spans: Spans, configurations: tuple[Configuration, ...]) -> list[ProgressCallback]:
        """Return the callbacks; for one span, they report configurations one after another, although these run
        concurrently."""
        if not spans.is_single:
            return list(self._callbacks)
        names = [configuration.name for configuration in configurations] or [Configuration().name]
        ordered = sorted(names, key=lambda name: name != self._baseline)
        return [OrderedEvents(callback, ordered) for callback in self._callbacks]
