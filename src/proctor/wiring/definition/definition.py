"""A definition: fields are selected, evaluators attached to them, and spans evaluated by it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Self, Unpack

import msgspec

from proctor.comparison.report import FieldReport
from proctor.core import bridge
from proctor.datasets.run_anew import recorded_configurations
from proctor.errors import ConfigError, EvaluatorError, Problem, UsageError, nearest
from proctor.evaluators.attached import Attached, attach
from proctor.evaluators.fields import Combination
from proctor.evaluators.marking import describe
from proctor.ports import ProgressCallback
from proctor.records.fields.path import compiled
from proctor.records.progress import EventKind, ProgressEvent, ProgressStatus, only_events
from proctor.records.score import Skipped
from proctor.records.trial import Configuration
from proctor.wiring import evaluate as api
from proctor.wiring.definition.block import (
    Block,
    all_of_them,
    are_a_series,
    check_alias,
    check_conduct,
    check_evaluator,
    check_listener,
    name_in_words,
    no_field,
)
from proctor.wiring.definition.keeping import Keeping
from proctor.wiring.definition.spans import Spans, refuse_unrecorded, spans_of
from proctor.wiring.prepare import Configurations, configurations_from
from proctor.wiring.registry import Registry


class Settings:
    """What a function sets is a parameter of the evaluator; what is none is refused."""

    def __init__(self, evaluator: str, known: tuple[str, ...]) -> None:
        vars(self).update(_evaluator=evaluator, _known=known, _given={})

    def __setattr__(self, name: str, value: Any) -> None:
        if self._known and name not in self._known:
            raise EvaluatorError(
                f"it has no parameter {name!r}", where=self._evaluator, fix=nearest(name, self._known)
            )
        self._given[name] = value

    def __getattr__(self, name: str) -> Any:
        given = vars(self)["_given"]
        if name in given:
            return given[name]
        raise AttributeError(f"{name!r} was not set")


def settings_of(configure: Callable[[Any], object], evaluator: Any, registry: Registry) -> dict[str, Any]:
    """The parameters that a function sets.

    >>> def strict(config):
    ...     config.case_sensitive = True
    >>> settings_of(strict, "contains", Registry.standard())
    {'case_sensitive': True}
    """
    named = isinstance(evaluator, str)
    info = registry.describe(evaluator) if named else describe(evaluator)
    settings = Settings(info.name, tuple(parameter.name for parameter in info.parameters))
    configure(settings)
    given: dict[str, Any] = vars(settings)["_given"]
    return given


Callback = Callable[[ProgressEvent], object]


def in_turn(callback: Callback, configurations: Sequence[str]) -> Callback:
    """A callback that hears of one configuration to its end, and only then of the next.

    What is told of the others meanwhile is held back; the percentage still never falls.

    >>> from datetime import UTC, datetime
    >>> moment = datetime(2026, 1, 1, tzinfo=UTC)
    >>> heard = []
    >>> tell = in_turn(lambda event: heard.append((event.kind, event.configuration)), ["a", "b"])
    >>> for kind, name in [("config_start", "b"), ("config_start", "a"), ("config_end", "a")]:
    ...     tell(ProgressEvent(kind, "running", 0.0, moment, "r", name))
    >>> heard
    [('config_start', 'a'), ('config_end', 'a'), ('config_start', 'b')]
    """
    return _InTurn(callback, configurations)


class _InTurn:
    def __init__(self, callback: Callback, configurations: Sequence[str]) -> None:
        self._callback = callback
        self._waiting: dict[str, list[ProgressEvent]] = {name: [] for name in configurations}
        self._highest = 0.0
        self._failure: Exception | None = None

    def __call__(self, event: ProgressEvent) -> None:
        self._take(event)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _take(self, event: ProgressEvent) -> None:
        turn = next(iter(self._waiting), None)
        name = event.configuration
        if event.kind == "end":
            # Whatever was not ended properly, as in a run that was stopped, is told before it.
            for held in self._waiting.values():
                self._tell(held)
            self._waiting.clear()
            self._tell([event])
        elif name is None or name == turn or name not in self._waiting:
            self._tell([event])
            if event.kind == "config_end" and name == turn:
                self._next()
        else:
            self._waiting[name].append(event)

    def _next(self) -> None:
        """The turn passes on, over all that have ended meanwhile."""
        del self._waiting[next(iter(self._waiting))]
        while self._waiting:
            name, held = next(iter(self._waiting.items()))
            self._waiting[name] = []
            self._tell(held)
            if not held or held[-1].kind != "config_end":
                return
            del self._waiting[name]

    def _tell(self, events: Sequence[ProgressEvent]) -> None:
        for event in events:
            self._highest = max(self._highest, event.progress)
            try:
                self._callback(msgspec.structs.replace(event, progress=self._highest))
            except Exception as error:
                # It is told of the rest too; that it failed is said at the end of this call.
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
NEAR = 0.8


def define(name: str | None = None) -> Definition:
    """Begin a definition; its name is what its runs are kept under.

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
    """A named set of options that reach the target.

    >>> configuration("low_temp", temperature=0.3).options
    {'temperature': 0.3}
    """
    if not (isinstance(name, str) and name.strip()):
        raise ConfigError(
            f"the name of a configuration is a word, got {name!r}",
            fix='write configuration("low_temp", temperature=0.3)',
        )
    return Configuration(name, options)


class Definition:
    """Which fields of a result are looked at, by which evaluators, and what is kept of it.

    Every method gives the definition back, so that they can be chained. What is wrong is said at
    once; inside `with define(…) as checks:` all faults are said together at its end.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.history: Keeping[Definition] = Keeping(self)
        self._registry = Registry.standard()
        self._selected: dict[str, str] = {}
        self._blocks: dict[str, Block] = {}
        self._current: Block | None = None
        self._callbacks: list[ProgressCallback] = []
        self._configurations: dict[str, Configuration] = {}
        self._baseline: str | None = None
        self._faults: list[UsageError] | None = None
        if name is not None and not (isinstance(name, str) and name.strip()):
            raise ConfigError(f"the name of a definition is a word, got {name!r}")

    def __repr__(self) -> str:
        fields = ", ".join(self._blocks) or "no fields yet"
        return f"<Definition {self.name or 'without a name'}: {fields}>"

    def __enter__(self) -> Self:
        self._faults = []
        return self

    def __exit__(self, kind: Any, _error: Any, _traceback: Any) -> None:
        faults, self._faults = self._faults or [], None
        if kind is None and faults:
            raise all_of_them(faults, self.name)
        if kind is None:
            self.check()

    def note(self, fault: UsageError) -> None:
        """Say what is wrong: now, or at the end of the `with` block."""
        if self._faults is None:
            raise fault
        self._faults.append(fault)

    def select(self, path: str, as_: str | None = None) -> Self:
        """Select a field by its path, known under a name of its own from here on."""
        name = as_ or path
        try:
            compiled(path)
            if as_ is not None:
                check_alias(as_, path)
            evaluated = self._blocks.get(name)
            known = self._selected.get(name) or (evaluated.path if evaluated else path)
            if known != path:
                raise ConfigError(
                    f"the name {name!r} is taken by the field {known!r}",
                    where=path,
                    fix="choose another name, or write this select before evaluate_field",
                )
        except UsageError as fault:
            self.note(fault)
            return self
        self._selected[name] = path
        return self

    def evaluate_field(self, field: str, *evaluators: Any, combine_with: Combination | None = None) -> Self:
        """Go on with the evaluators of a field: one that was selected, or a path.

        Evaluators may be given here or by `evaluate_with`. Where a field comes up again, its
        evaluators are added to those it has.
        """
        self._current = self._block_of(field)
        for one in evaluators:
            self.evaluate_with(one)
        if combine_with is not None:
            self.combine_with(combine_with)
        return self

    def evaluate_with(
        self,
        evaluator: BuiltIn | str | Callable[..., Any] | Mapping[str, Any] | Any,
        configure: Callable[[Any], object] | None = None,
        /,
        **parameters: Any,
    ) -> Self:
        """Attach an evaluator to the field, by name or as it is, with its parameters.

        `configure` is a function that sets parameters on what it is given.
        """
        block = self._current
        try:
            if block is None:
                raise no_field(f"evaluate_with({name_in_words(evaluator)})")
            check_evaluator(evaluator, configure)
            block.evaluators.append(self._built(evaluator, configure, parameters))
        except UsageError as fault:
            self.note(fault)
        return self

    use_evaluator = evaluate_with

    def combine_with(self, how: Combination, *, skipped: Skipped = "skip") -> Self:
        """Say when the field passes: "and" (all), "or" (any), or a function of the scores.

        `skipped="ignore"` leaves out evaluators that skip; else they make the field skipped.
        """
        block = self._current
        try:
            if block is None:
                raise no_field(f"combine_with({how!r})")
            block.combine_with(how, skipped)
        except UsageError as fault:
            self.note(fault)
        return self

    def register_evaluator(self, evaluator: Any, name: str | None = None) -> Self:
        """Make an evaluator known by its name, in this definition."""
        try:
            self._registry.register(evaluator, name)
        except UsageError as fault:
            self.note(fault)
        return self

    def on_progress(
        self,
        callback: ProgressCallback,
        *,
        kinds: Collection[EventKind] | None = None,
        statuses: Collection[ProgressStatus] | None = None,
        configurations: Collection[str] | None = None,
    ) -> Self:
        """Have a function told of every step, or only of some: by kind, status, configuration."""
        try:
            check_listener(callback, kinds or (), statuses or ())
        except UsageError as fault:
            self.note(fault)
            return self
        self._callbacks.append(
            only_events(callback, kinds=kinds, statuses=statuses, configurations=configurations)
        )
        return self

    def configuration(self, name: str, /, **options: Any) -> Self:
        """Evaluate in this configuration too; the options reach the target."""
        if name in self._configurations:
            fix = "give each configuration its own name"
            self.note(ConfigError(f"there are two configurations {name!r}", fix=fix))
        try:
            self._configurations[name] = configuration(name, **options)
        except UsageError as fault:
            self.note(fault)
        return self

    def baseline(self, configuration: str) -> Self:
        """Compare all other configurations with this one."""
        self._baseline = configuration
        return self

    def check(self) -> Self:
        """Raise what is wrong with the definition as a whole."""
        problems = [
            Problem(name, "it has no evaluator: .evaluate_with(…)")
            for name, block in self._blocks.items()
            if not block.evaluators
        ]
        if not self._blocks:
            problems.append(Problem("", 'there is no field to evaluate: .evaluate_field("output")'))
        names = list(self._configurations)
        if self._baseline is not None and names and self._baseline not in names:
            what = f"there is no configuration {self._baseline!r}; {nearest(self._baseline, names)}"
            problems.append(Problem("baseline", what))
        if self.history.auto_save and not self.name:
            problems.append(Problem("history", 'runs are kept under a name: define("name")'))
        if problems:
            raise ConfigError("the definition is not complete", problems=problems)
        return self

    async def aevaluate(
        self,
        span: Any,
        *,
        target: Any = None,
        configurations: Configurations | None = None,
        recorded: Mapping[str, Any] | None = None,
        **how: Unpack[api.Conducted],
    ) -> FieldReport:
        """Evaluate a span, or a dataset of spans, in every configuration.

        With a `target` every configuration is run anew; without one the span is looked at as it
        was recorded, and for several configurations `recorded` holds what each left behind.
        A dataset is a path, a list of spans, or anything that `evaluate` takes; so are `epochs`,
        `concurrency`, `resume`, `metrics` and whatever else says how it is to go.
        """
        self.check()
        check_conduct(how)
        if target is not None and recorded is not None:
            raise ConfigError(
                "evaluate got a target and recorded results",
                fix="leave out recorded=… to run the target, or target=… to evaluate the results",
            )
        if how.get("resume") and not self.history.auto_save:
            raise ConfigError(
                "only a run that was kept can be resumed, and this definition keeps none",
                where="resume",
                fix='write define("name").history() and run it again',
            )
        chosen = self._chosen(configurations, recorded)
        spans = spans_of(span, recorded)
        if target is None and spans.single and not chosen:
            names = recorded_configurations(spans.source)
            chosen = tuple(Configuration(name) for name in names)
        if target is None and spans.single:
            refuse_unrecorded(spans, [one.name for one in chosen])
        kept = self.history.opened()
        # Who wants to see it on the terminal says progress=True, or None where there is one.
        quiet: api.Conducted = {"progress": False}
        report = await api.aevaluate(
            target,
            spans.source,
            [block.evaluator(name) for name, block in self._blocks.items()],
            configurations=chosen or None,
            baseline=self._baseline,
            fields=self.fields,
            name=self.name or "definition",
            tags=self.history.tags,
            history=kept,
            on_progress=self._listeners(spans, chosen),
            **(quiet | how),
        )
        if self.history.auto_save:
            self.history.prune()
        if spans.single:
            report.refuse_missing()
        return report

    evaluate = bridge.synchronous(aevaluate)

    @property
    def fields(self) -> dict[str, str]:
        """The fields that are selected or evaluated: paths by name."""
        evaluated = {name: block.path for name, block in self._blocks.items()}
        return self._selected | evaluated

    def _block_of(self, field: str) -> Block:
        """The field's block, the one it has or a new one; a path may be known by a name."""
        try:
            compiled(field)
            by_path = {path: name for name, path in self._selected.items()}
            name = field if field in self._selected else by_path.get(field, field)
            if name not in self._blocks:
                self._refuse_slip(field)
                self._blocks[name] = Block(self._selected.get(name, field))
            return self._blocks[name]
        except UsageError as fault:
            self.note(fault)
            return Block(field)

    def _refuse_slip(self, field: str) -> None:
        """A name close to one that was selected is a slip, not a path of its own."""
        close = difflib.get_close_matches(field, self._selected, n=1, cutoff=NEAR)
        if field in self._selected or not close or "." in field or are_a_series(field, close[0]):
            return
        raise ConfigError(
            f"no field {field!r} was selected",
            fix=f"did you mean {close[0]!r}? If not, select it first: .select({field!r})",
        )

    def _built(
        self, evaluator: Any, configure: Callable[[Any], object] | None, given: Mapping[str, Any]
    ) -> Attached:
        parameters = dict(given)
        if configure is not None:
            parameters |= settings_of(configure, evaluator, self._registry)
        if isinstance(evaluator, str):
            return self._registry.build({"uses": evaluator, "parameters": parameters})
        if isinstance(evaluator, Mapping):
            if parameters:
                raise ConfigError(
                    f"parameters are given twice: in {dict(evaluator)!r} and beside it",
                    fix="write evaluate_with(name, parameter=value)",
                )
            return self._registry.build(evaluator)
        return attach(evaluator, parameters=parameters)

    def _chosen(
        self, given: Configurations | None, recorded: Mapping[str, Any] | None
    ) -> tuple[Configuration, ...]:
        if given:
            return configurations_from(given)
        if self._configurations:
            return tuple(self._configurations.values())
        return tuple(Configuration(str(name)) for name in recorded or ())

    def _listeners(self, spans: Spans, configurations: tuple[Configuration, ...]) -> list[ProgressCallback]:
        """Of one span, configurations are told of one after another though they run at once."""
        if not spans.single:
            return list(self._callbacks)
        names = [one.name for one in configurations] or [Configuration().name]
        in_order = sorted(names, key=lambda name: name != self._baseline)
        return [in_turn(callback, in_order) for callback in self._callbacks]
