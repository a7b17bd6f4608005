"""Attaching: settle once what kind of evaluator a thing is, so that a run only has to call it."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.core.identity import examine
from proctor.errors import EvaluatorError, Problem
from proctor.evaluators.calling import Way, async_score, plain_score, reader, score_of_two
from proctor.evaluators.evidence import SESSION_OPTIONAL, Shape, shape_of, signature_of
from proctor.evaluators.marking import (
    ASYNC,
    EvaluatorInfo,
    Marking,
    call_of,
    is_factory,
    known_as,
    marking_of,
    settled,
)
from proctor.evaluators.options import (
    address_of,
    data_of,
    make,
    options_of_factory,
    options_of_function,
    read_option,
)
from proctor.ports import FieldGroup
from proctor.records.fields.view import Field
from proctor.records.numbers import is_fraction
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.session import Session, SessionView
from proctor.records.trial import Trial

# Where the built-in evaluators are defined.
_OWN_EVALUATORS = "proctor.evaluators."

Mode = Literal["inline", "thread", "async"]


class Attached:
    """An evaluator whose kind is settled: what it is as data, how it is called, and the call.

    `score` takes a trial and gives a score, or something to await where `mode` is "async"; it
    never raises. It can also be called directly, with an output and what was expected: outside a
    running event loop that gives the score, inside one an async evaluator is awaited. `needs`
    says what it looks at beside the trial itself: "context" for fields and configurations,
    "epochs" for the other repeats of the sample. A `group` is several evaluators of one field,
    each of which is to be heard. `is_own` is True if it is Proctor's own code and calls no code of
    the user's as long as it judges texts.

    >>> same = attach(lambda output, expected: output == expected, name="same")
    >>> same("Paris", "Paris").passed
    True
    """

    __slots__ = ("group", "is_own", "mode", "needs", "score", "spec")

    def __init__(
        self,
        spec: EvaluatorSpec,
        mode: Mode,
        score: Callable[[Trial], Any],
        needs: frozenset[str] = frozenset(),
        group: FieldGroup | None = None,
        *,
        is_own: bool = False,
    ) -> None:
        self.spec = spec
        self.mode: Mode = mode
        self.score = score
        self.needs = needs
        self.group = group
        self.is_own = is_own

    def __call__(
        self, output: Any, expected: Any = None, session: Session | SessionView | None = None, /
    ) -> Any:
        usage = None
        if isinstance(session, SessionView):
            usage = session.told
            session = Session(list(session)) if session.recorded else None
        trial = Trial(Sample("", None, expected), output, usage=usage, session=session)
        score = self.score(trial)
        return settled(score) if self.mode == "async" else score

    def __repr__(self) -> str:
        return f"<evaluator {self.spec.name!r}, {self.mode}>"

    def known_by(self, name: str, uses: str | None = None) -> Attached:
        """The same evaluator, its scores kept under another name."""
        spec = msgspec.structs.replace(self.spec, name=name, uses=uses or self.spec.uses)
        return Attached(spec, self.mode, self.score, self.needs, self.group, is_own=self.is_own)


class Terms(NamedTuple):
    """How a thing is to be attached; what is empty is read from the thing itself.

    `bound` are the options that are in it already, `options` those still to be bound.
    """

    name: str
    uses: str
    threshold: float | None = None
    bound: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}
    marking: Marking | None = None
    made_by: Any = None


def attach(
    thing: Any,
    *,
    name: str | None = None,
    threshold: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    uses: str | None = None,
) -> Attached:
    """Make an evaluator out of a function, an async function, an object with `evaluate`, or a
    factory with its parameters.

    `name` is what its scores are kept under; `threshold` the least number that passes, for
    evaluators that return numbers; `parameters` are its options; `uses` is what it was called in
    an eval file.

    >>> def close(output, expected, *, margin=1):
    ...     return abs(output - expected) <= margin
    >>> attach(close, parameters={"margin": 5})(12, 10).passed
    True
    """
    label = _checked_name(name) or known_as(thing)
    threshold = read_option("threshold", threshold)
    if threshold is not None and not is_fraction(threshold):
        raise EvaluatorError(f"a threshold is from 0 to 1, got {threshold!r}", where=label)
    if isinstance(thing, Attached):
        _refuse_terms(threshold, parameters, label)
        return thing.known_by(name or thing.spec.name, uses)
    function, bound = _without_partial(thing, label)
    terms = Terms(name or "", uses or "", threshold, bound, parameters or {})
    if is_factory(function):
        return _from_factory(function, terms)
    marking = marking_of(function)
    if marking is not None and marking.given is not None:
        terms = terms._replace(bound={**marking.given, **bound})
    where = terms.uses or _address(function)
    return _settled(thing, terms._replace(name=label, uses=where, marking=marking))


def name_clashes(attached: Iterable[Attached]) -> list[Problem]:
    """The names that more than one evaluator has, and how to mend it."""
    counts = Counter(one.spec.name for one in attached)
    return [
        Problem(
            name,
            f"{count} evaluators have this name; give each its own: "
            "attach(…, name=…), {name: evaluator}, or `name:` in an eval file",
        )
        for name, count in counts.items()
        if count > 1
    ]


def problems_of(error: EvaluatorError, where: str) -> list[Problem]:
    """An error as entries in the list of a greater one."""
    place = f"{where} ({error.where})" if error.where else where
    if error.problems:
        return [Problem(f"{place}, {p.where}" if p.where else place, p.what) for p in error.problems]
    return [Problem(place, f"{error.what} ({error.fix})" if error.fix else error.what)]


def _checked_name(name: str | None) -> str:
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise EvaluatorError(f"the name of an evaluator is a word, got {name!r}")
    return name or ""


def _refuse_terms(threshold: float | None, parameters: Mapping[str, Any] | None, label: str) -> None:
    if threshold is not None or parameters:
        raise EvaluatorError(
            "it is attached already, so it takes no other threshold or parameters",
            where=label,
            fix="give them when it is first attached, or use combination.threshold",
        )


def _without_partial(thing: Any, label: str) -> tuple[Any, dict[str, Any]]:
    """The function inside partials, and what they have bound, by name."""
    bound: dict[str, Any] = {}
    while isinstance(thing, functools.partial):
        signature = signature_of(thing.func, label)
        bound = {**signature.bind_partial(*thing.args, **thing.keywords).arguments, **bound}
        thing = thing.func
    return thing, bound


def _from_factory(factory: Any, terms: Terms) -> Attached:
    """Call the factory; what it made is attached under the factory's name, or its own."""
    options: dict[str, Any] = {**terms.bound, **terms.options}
    late: dict[str, Any] = {}
    if isinstance(factory, type):
        options, late = _for_evaluate(factory, options)
    product = make(factory, options, terms.name or known_as(factory))
    told = marking_of(product)
    if isinstance(product, Attached) or (told is not None and told.given is not None):
        name, uses = terms.name or None, terms.uses or None
        return attach(product, name=name, threshold=terms.threshold, uses=uses)
    settled = Terms(
        terms.name or known_as(product if isinstance(factory, type) else factory),
        terms.uses or _address(factory),
        terms.threshold,
        bound=options,
        options=late,
        marking=marking_of(factory),
        made_by=factory,
    )
    return _settled(product, settled)


def _for_evaluate(kind: type, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options for making an object of a class, and those that its `evaluate` takes."""
    method = getattr(kind, "evaluate", None)
    if not inspect.isfunction(method):
        return dict(options), {}
    own = options_of_factory(kind, known_as(kind))
    late = shape_of(method.__get__(kind), known_as(kind))
    mine: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in options.items():
        belongs = name in own.known or not (name in late.options or late.any_option)
        (mine if belongs else rest)[name] = value
    return mine, rest


def _address(thing: Any) -> str:
    """The registered name of a marked evaluator; the address of any other."""
    marking = marking_of(thing)
    return address_of(thing) if marking is None else marking.info.name


def _settled(thing: Any, terms: Terms) -> Attached:
    """Bind the options, choose how it is called, and write down what it is."""
    call = call_of(thing, terms.name)
    shape = shape_of(call, terms.name)
    options = options_of_function(call, shape).check(terms.options, terms.name)
    info, check = terms.marking[:2] if terms.marking else (EvaluatorInfo(terms.name), None)
    live = {**terms.bound, **options}
    if check is not None:
        check(live)
    if terms.threshold is not None:
        live["threshold"] = terms.threshold
    threshold = info.threshold if terms.threshold is None else terms.threshold
    spec = _spec(terms, terms.made_by or call, live)
    if options:
        call = functools.partial(call, **options)
    needs = _needs(shape, info)
    shares = _changes_nothing(call, live)
    way = Way(
        [reader(piece, Field(info.field, info.field)) for piece in shape.evidence],
        shape.expects,
        threshold,
        "epochs" in needs,
        "session" in shape.kinds and not getattr(call, SESSION_OPTIONAL, False),
        shares,
        "output" in shape.kinds and "session" not in shape.kinds,
    )
    if _is_async(call):
        return Attached(spec, "async", async_score(call, way), needs)
    if shape.kinds == ("output", "expected") and shape.expects:
        score = score_of_two(call, threshold, shares=shares)
    else:
        score = plain_score(call, way)
    mode: Mode = "inline" if info.pure else "thread"
    return Attached(spec, mode, score, needs, is_own=info.pure and _is_own(call))


def _needs(shape: Shape, info: EvaluatorInfo) -> frozenset[str]:
    """What it looks at beside the trial itself."""
    epochs = {"epochs"} & set(info.needs)
    return frozenset({"context", *epochs} if shape.in_context else ())


def _spec(terms: Terms, origin: Any, live: Mapping[str, Any]) -> EvaluatorSpec:
    data = {key: data_of(value) for key, value in live.items()}
    identity = examine([origin, sorted(data.items()), list(live.values())])
    return EvaluatorSpec(terms.name, terms.uses, data, *identity)


def _is_own(call: Any) -> bool:
    """True for a function of Proctor's whose options are plain values."""
    while isinstance(call, functools.partial):
        if any(callable(option) for option in call.keywords.values()):
            return False
        call = call.func
    return inspect.isfunction(call) and call.__module__.startswith(_OWN_EVALUATORS)


def _changes_nothing(call: Any, options: Mapping[str, Any]) -> bool:
    """True for a function of Proctor's that calls no code of the user's: it changes no value."""
    while isinstance(call, functools.partial):
        call = call.func
    is_of_proctor = inspect.isfunction(call) and call.__module__.startswith(_OWN_EVALUATORS)
    # A function made by a factory may hold anything.
    return is_of_proctor and call.__closure__ is None and all(map(_is_plain, options.values()))


def _is_plain(option: Any) -> bool:
    """True for texts, numbers, and lists and mappings of them."""
    if isinstance(option, Mapping):
        return all(map(_is_plain, option.values()))
    if isinstance(option, list | tuple | set | frozenset):
        return all(map(_is_plain, option))
    return option is None or isinstance(option, str | int | float | bytes)


def _is_async(call: Any) -> bool:
    while isinstance(call, functools.partial):
        call = call.func
    if getattr(call, ASYNC, None) is not None:
        return True
    return inspect.iscoroutinefunction(call) or (
        not inspect.isroutine(call) and inspect.iscoroutinefunction(type(call).__call__)
    )
