"""Attach evaluators: decide once how a function, object or factory is called during a run."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.core.aliases import use_common_names
from proctor.core.callables import unwrap_partial
from proctor.core.identity import Identity, compute_identity
from proctor.core.isolation import is_interrupt
from proctor.core.private_copy import private_copies
from proctor.errors import EvaluatorError, Problem, StopRun
from proctor.evaluators.decorator import (
    ASYNC_ATTRIBUTE,
    EvaluatorInfo,
    EvaluatorMark,
    get_callable,
    get_mark,
    get_name,
    is_factory,
    raise_for_literals,
    raise_for_types,
    resolve_score,
)
from proctor.evaluators.measurements import check_fraction
from proctor.evaluators.options import (
    SESSION_OPTIONAL,
    Evidence,
    call_factory,
    get_address,
    inspect_signature,
    read_factory_options,
    read_function_options,
    read_option,
    read_signature,
    to_data,
)
from proctor.evaluators.score_conversion import NO_ANSWER, NO_EXPECTED, NO_SESSION, as_error, as_score
from proctor.ports import EvaluatorObject, FieldGroup
from proctor.records.fields.context import FieldContext
from proctor.records.fields.path import OUTPUT
from proctor.records.fields.view import Field, TrialView, make_context
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.score import IS_BASELINE, NOT_LAST_EPOCH, Score
from proctor.records.session import Session, SessionView
from proctor.records.trial import Trial
from proctor.sessions import current as sessions

_BUILT_IN = "proctor.evaluators."

CallMode = Literal["inline", "compute", "thread", "async"]


class BoundEvaluator:
    """An evaluator that is ready to be called.

    `score` takes a trial and returns a score (an awaitable if `mode` is "async"); it never raises.
    Call it directly with an output and an expected value; inside a running event loop, await an
    async evaluator. `needs` lists additional evidence: "context" for fields and configurations,
    "epochs" for the other epochs of the sample. `group` holds the evaluators of one field.
    `is_builtin` is True for built-in code that calls no user code when it evaluates strings.
    """

    __slots__ = ("group", "is_builtin", "mode", "needs", "score", "spec")

    def __init__(
        self,
        spec: EvaluatorSpec,
        mode: CallMode,
        score: Callable[[Trial], Any],
        needs: frozenset[str] = frozenset(),
        group: FieldGroup | None = None,
        *,
        is_builtin: bool = False,
    ) -> None:
        self.spec = spec
        self.mode: CallMode = mode
        self.score = score
        self.needs = needs
        self.group = group
        self.is_builtin = is_builtin

    def __call__(self, output: Any, expected: Any = None, session: Session | SessionView | None = None, /) -> Any:
        usage = None
        if isinstance(session, SessionView):
            usage = session.reported_usage
            session = Session(list(session)) if session.recorded else None
        score = self.score(Trial(Sample("", None, expected), output, usage=usage, session=session))
        return resolve_score(score) if self.mode == "async" else score

    def __repr__(self) -> str:
        return f"<evaluator {self.spec.name!r}, {self.mode}>"

    def with_name(self, name: str, uses: str | None = None) -> BoundEvaluator:
        """Return the same evaluator with its scores under another name."""
        spec = msgspec.structs.replace(self.spec, name=name, uses=uses or self.spec.uses)
        return BoundEvaluator(spec, self.mode, self.score, self.needs, self.group, is_builtin=self.is_builtin)


class AttachOptions(NamedTuple):
    """How to attach an evaluator; the options in `bound` are already applied, the others in `options` are not."""

    name: str
    uses: str
    threshold: float | None = None
    bound: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    mark: EvaluatorMark | None = None
    factory: Any = None


def attach(
    evaluator: EvaluatorObject,
    *,
    name: str | None = None,
    threshold: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    uses: str | None = None,
) -> BoundEvaluator:
    """Make an evaluator from a function, an async function, an object with `evaluate`, or a factory.

    `name` labels its scores; `threshold` is the lowest passing value of evaluators that return
    numbers; `parameters` are its options; `uses` is its name in an eval file.

    >>> def close(output, expected, *, margin=1):
    ...     return abs(output - expected) <= margin
    >>> attach(close, parameters={"margin": 5})(12, 10).passed
    True
    """
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise EvaluatorError(f"an evaluator's name must be a non-empty string, got {name!r}")
    label = name or get_name(evaluator)
    threshold = read_option("threshold", threshold)
    if threshold is not None:
        check_fraction(label, "threshold", threshold)
    if isinstance(evaluator, BoundEvaluator):
        if threshold is not None or parameters:
            raise EvaluatorError(
                "the threshold and the parameters of an attached evaluator cannot change",
                where=label,
                fix="pass them when you first attach it, or wrap it: threshold(evaluator, 0.8)",
            )
        return evaluator.with_name(name or evaluator.spec.name, uses)
    function, bound = _unwrap_partials(evaluator, label)
    options = AttachOptions(name or "", uses or "", threshold, bound, parameters or {})
    if is_factory(function):
        return _attach_product(function, options)
    mark = get_mark(function)
    if mark is not None and mark.options is not None:
        options = options._replace(bound={**mark.options, **bound})
    uses = options.uses or _get_registered_name(function)
    return _attach_function(evaluator, options._replace(name=label, uses=uses, mark=mark))


def find_name_clashes(evaluators: Iterable[BoundEvaluator]) -> list[Problem]:
    """Return a problem for each name that several evaluators share."""
    names: dict[str, tuple[str, int]] = {}
    for spec in (evaluator.spec for evaluator in evaluators):
        names[spec.name] = spec.uses, names.get(spec.name, ("", 0))[1] + 1
    return [
        Problem(
            name,
            f"{count} evaluators have this name",
            f"write {{uses: {uses}, name: …}} in an eval file, or {{name: evaluator}} or attach(…, name=…) in Python",
        )
        for name, (uses, count) in names.items()
        if count > 1
    ]


def flatten_problems(error: EvaluatorError, where: str) -> list[Problem]:
    """Return the problems of an error, for an error that contains it."""
    location = f"{where} ({error.where})" if error.where else where
    if error.problems:
        return [Problem(f"{location}, {p.where}" if p.where else location, p.what) for p in error.problems]
    return [Problem(location, f"{error.what} ({error.fix})" if error.fix else error.what)]


def _unwrap_partials(evaluator: Any, label: str) -> tuple[Any, dict[str, Any]]:
    bound: dict[str, Any] = {}
    while isinstance(evaluator, functools.partial):
        signature = inspect_signature(evaluator.func, label)
        keywords = use_common_names(evaluator.keywords, signature.parameters)
        bound = {**signature.bind_partial(*evaluator.args, **keywords).arguments, **bound}
        evaluator = evaluator.func
    return evaluator, bound


def _attach_product(factory: Any, options: AttachOptions) -> BoundEvaluator:
    arguments: dict[str, Any] = {**options.bound, **options.options}
    evaluate_options: dict[str, Any] = {}
    if isinstance(factory, type):
        arguments, evaluate_options = _split_class_options(factory, arguments)
    product = call_factory(factory, arguments, options.name or get_name(factory))
    mark = get_mark(product)
    if isinstance(product, BoundEvaluator) or (mark is not None and mark.options is not None):
        name, uses = options.name or None, options.uses or None
        return attach(product, name=name, threshold=options.threshold, uses=uses)
    name_source = product if isinstance(factory, type) else factory
    return _attach_function(
        product,
        AttachOptions(
            options.name or get_name(name_source),
            options.uses or _get_registered_name(factory),
            options.threshold,
            bound=arguments,
            options=evaluate_options,
            mark=get_mark(factory),
            factory=factory,
        ),
    )


def _split_class_options(evaluator_class: type, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    method = getattr(evaluator_class, "evaluate", None)
    if not inspect.isfunction(method):
        return dict(options), {}
    label = get_name(evaluator_class)
    constructor = read_factory_options(evaluator_class, label)
    signature = read_signature(method.__get__(evaluator_class), label)
    for_constructor, for_evaluate = dict(options), {}
    for name in options:
        if name not in constructor.parameters and (name in signature.options or signature.accepts_any):
            for_evaluate[name] = for_constructor.pop(name)
    return for_constructor, for_evaluate


def _get_registered_name(evaluator: Any) -> str:
    mark = get_mark(evaluator)
    return get_address(evaluator) if mark is None else mark.info.name


@functools.lru_cache(maxsize=256)
def _compute_builtin_identity(function: Any) -> Identity:
    """Identify a function of Proctor without options, whose code does not change while the process runs."""
    return compute_identity([function, [], []])


def _attach_function(evaluator: Any, options: AttachOptions) -> BoundEvaluator:
    call = get_callable(evaluator, options.name)
    signature = read_signature(call, options.name)
    checked_options = read_function_options(call, signature).check(options.options, options.name)
    info, check = options.mark[:2] if options.mark else (EvaluatorInfo(options.name), None)
    values = {**options.bound, **checked_options}
    raise_for_literals(call, values, options.name, check)
    if check is not None:
        try:
            check(values)
        except (TypeError, AttributeError):
            raise_for_types(call, values, options.name)
            raise
    if options.threshold is not None:
        values["threshold"] = options.threshold
    threshold = info.threshold if options.threshold is None else options.threshold
    data = {key: to_data(value) for key, value in values.items()}
    function = options.factory or call
    if not values and (getattr(function, "__module__", None) or "").startswith("proctor."):
        identity = _compute_builtin_identity(function)
    else:
        identity = compute_identity([function, sorted(data.items()), list(values.values())])
    spec = EvaluatorSpec(options.name, options.uses, data, identity.digest, identity.uncovered)
    if checked_options:
        call = functools.partial(call, **checked_options)
    epochs = {"epochs"} & set(info.needs)
    needs = frozenset({"context", *epochs} if signature.takes_context else ())
    can_share = _is_read_only(call, values)
    plan = CallPlan(
        [_make_reader(evidence, Field(info.field, info.field)) for evidence in signature.evidence],
        signature.requires_expected,
        threshold,
        "epochs" in needs,
        "session" in signature.kinds and not getattr(call, SESSION_OPTIONAL, False),
        can_share,
        "output" in signature.kinds and "session" not in signature.kinds,
    )
    if _is_async(call):
        return BoundEvaluator(spec, "async", _make_async_scorer(call, plan), needs)
    if signature.kinds == ("output", "expected") and signature.requires_expected:
        score = _make_pair_scorer(call, threshold, can_share=can_share)
    else:
        score = _make_sync_scorer(call, plan)
    is_builtin = _is_builtin_without_callbacks(call)
    mode: CallMode = "inline" if info.pure else "compute" if is_builtin else "thread"
    return BoundEvaluator(spec, mode, score, needs, is_builtin=info.pure and is_builtin)


class CallPlan(NamedTuple):
    """How to turn a trial into the arguments of an evaluator, and when to skip the call."""

    readers: Sequence[Callable[[Trial], Any]]
    requires_expected: bool
    threshold: float
    once_per_sample: bool
    needs_session: bool = False
    can_share: bool = False
    needs_answer: bool = False

    def read_arguments(self, trial: Trial) -> Sequence[Any]:
        values = [read(trial) for read in self.readers]
        return values if self.can_share else _copy_values(values)

    def find_skip(self, trial: Trial) -> Score | None:
        """Return a skipped score if the trial lacks evidence that the evaluator needs."""
        if self.requires_expected and trial.sample.expected is None:
            return Score.skipped(NO_EXPECTED)
        if self.needs_answer and trial.output is None and _lacks_answer(trial):
            return Score.skipped(NO_ANSWER)
        if self.needs_session and trial.session is None:
            return Score.skipped(NO_SESSION)
        if self.once_per_sample and isinstance(trial, TrialView) and trial.epochs is None:
            return Score.skipped(NOT_LAST_EPOCH)
        return None


def _make_sync_scorer(call: Callable[..., Any], plan: CallPlan) -> Callable[[Trial], Score]:
    def score(trial: Trial) -> Score:
        try:
            skip = plan.find_skip(trial)
            if skip is not None:
                return skip
            arguments = plan.read_arguments(trial)
            return _mark_baseline_skip(as_score(call(*arguments), plan.threshold), arguments)
        except BaseException as error:
            return _error_score(error)

    return score


def _make_pair_scorer(call: Callable[..., Any], threshold: float, *, can_share: bool) -> Callable[[Trial], Score]:
    # A fast path for the most common signature.
    def score(trial: Trial) -> Score:
        expected = trial.sample.expected
        if expected is None:
            return Score.skipped(NO_EXPECTED)
        if trial.output is None and _lacks_answer(trial):
            return Score.skipped(NO_ANSWER)
        try:
            if can_share or type(trial.output) is type(expected) is str:
                returned = call(trial.output, expected)
            else:
                returned = call(*_copy_values((trial.output, expected)))
            return returned if type(returned) is Score else as_score(returned, threshold)
        except BaseException as error:
            return _error_score(error)

    return score


def _make_async_scorer(call: Callable[..., Any], plan: CallPlan) -> Callable[[Trial], Any]:
    async def score(trial: Trial) -> Score:
        try:
            skip = plan.find_skip(trial)
            if skip is not None:
                return skip
            arguments = plan.read_arguments(trial)
            return _mark_baseline_skip(as_score(await call(*arguments), plan.threshold), arguments)
        except asyncio.CancelledError:
            # The caller knows whether the evaluator cancelled itself or timed out.
            raise
        except BaseException as error:
            return _error_score(error)

    return score


def _lacks_answer(trial: Trial) -> bool:
    if isinstance(trial, TrialView) and trial.field is not None and trial.field.path != OUTPUT:
        return False
    return trial.output is None and trial.raw_output is not None


def _copy_values(values: Sequence[Any]) -> Sequence[Any]:
    try:
        return private_copies(values)
    except BaseException as error:
        if isinstance(error, StopRun) or is_interrupt(error):
            raise
        sessions.warn(
            "the arguments of an evaluator cannot be copied, so an evaluator that modifies them changes "
            f"them for other evaluators and in the stored result ({type(error).__name__})"
        )
        return values


def _error_score(error: BaseException) -> Score:
    if isinstance(error, StopRun) or is_interrupt(error):
        raise error
    return as_error(error)


def _mark_baseline_skip(score: Score, arguments: Sequence[Any]) -> Score:
    """Set the reason of a skip to IS_BASELINE if the evaluator needs a baseline and the trial is the baseline."""
    if score.status != "skipped":
        return score
    contexts = (argument for argument in arguments if isinstance(argument, FieldContext))
    if any(context.looked_for_baseline for context in contexts):
        return Score.skipped(IS_BASELINE, score.details)
    return score


def _make_reader(evidence: Evidence, default_field: Field) -> Callable[[Trial], Any]:
    def read_expected(trial: Trial) -> Any:
        expected = trial.sample.expected
        return evidence.default if expected is None else expected

    def read_session(trial: Trial) -> SessionView:
        if trial.session is None:
            return SessionView((), trial.usage, recorded=False)
        return trial.session.view(trial.usage)

    readers: dict[str, Callable[[Trial], Any]] = {
        "output": lambda trial: trial.output,
        "expected": read_expected,
        "sample": lambda trial: trial.sample,
        "session": read_session,
        "context": lambda trial: make_context(trial, default_field),
        # A new dict for each call, because an evaluator may modify it.
        "config": lambda trial: dict(getattr(trial, "options", ())),
    }
    return readers[evidence.kind]


def _is_builtin(function: Any) -> bool:
    return inspect.isfunction(function) and function.__module__.startswith(_BUILT_IN)


def _is_builtin_without_callbacks(call: Any) -> bool:
    while isinstance(call, functools.partial):
        if any(callable(option) for option in call.keywords.values()):
            return False
        call = call.func
    return _is_builtin(call)


def _is_read_only(call: Any, options: Mapping[str, Any]) -> bool:
    """Return True for a built-in function that calls no user code and therefore modifies no value."""
    function = unwrap_partial(call)
    # The closure of a function from a factory may contain user code.
    return _is_builtin(function) and function.__closure__ is None and all(map(_is_plain, options.values()))


def _is_plain(option: Any) -> bool:
    if isinstance(option, Mapping):
        return all(map(_is_plain, option.values()))
    if isinstance(option, list | tuple | set | frozenset):
        return all(map(_is_plain, option))
    return option is None or isinstance(option, str | int | float | bytes)


def _is_async(call: Any) -> bool:
    call = unwrap_partial(call)
    if getattr(call, ASYNC_ATTRIBUTE, None) is not None or inspect.iscoroutinefunction(call):
        return True
    return not inspect.isroutine(call) and inspect.iscoroutinefunction(type(call).__call__)
