"""Evaluators of single samples: find all mistakes before a run, and build them when a sample is scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from proctor.core.identity import compute_identity
from proctor.datasets.problems import dataset_error
from proctor.errors import ConfigError, EvaluatorError, Problem
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.ports import SampleSource
from proctor.records.run import DatasetInfo, EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.wiring.evaluator_entries import parameters_by_name, parse_entry
from proctor.wiring.registry import Registry

MAX_PROBLEMS = 1_000
# Entries that stay in memory for the whole run, and recent entries of a larger dataset.
MAX_CACHED_CHECKS = 20_000
MAX_RECENT_CHECKS = 4_000
# Parameters that tell which model judges; the other parameters differ from sample to sample.
MODEL_PARAMETERS = ("model", "adapter", "judge", "judges")

# An evaluator of a sample: the entry that is stored with the sample, and the evaluator.
Check = tuple[dict[str, Any], BoundEvaluator]


class SampleChecks:
    """Builds the evaluators of samples. `specs` describes them for the run, one for each name.

    >>> checks = SampleChecks(Registry.standard())
    >>> [own] = checks(Sample("1", "", "yes", evaluators=({"contains": {"case_sensitive": False}},)))
    >>> own.spec.name, own("Yes, of course", "yes").passed
    ('contains', True)
    """

    def __init__(self, registry: Registry, specs: tuple[EvaluatorSpec, ...] = ()) -> None:
        self._registry = registry
        self._checks: dict[bytes | int, tuple[Check, ...]] = {}
        self._recent: dict[bytes | int, tuple[Check, ...]] = {}
        # Evaluators that were passed as objects cannot be built again, and their ids must stay in use.
        self._objects: dict[bytes | None, BoundEvaluator] = {}
        self._entries: dict[int, Any] = {}
        self.specs = specs
        self.needs: frozenset[str] = frozenset()

    def __call__(self, sample: Sample[Any, Any]) -> tuple[BoundEvaluator, ...]:
        """Return the evaluators of a sample; an evaluator that cannot be built here has a score with the reason."""
        evaluators: list[BoundEvaluator] = []
        for entry, name in zip(sample.evaluators, sample.check_names, strict=True):
            try:
                evaluators += (evaluator for _, evaluator in self.resolve(entry))
            except EvaluatorError as error:
                evaluators.append(_make_unavailable(entry, name, error))
        return tuple(evaluators)

    def resolve(self, entry: Any) -> tuple[Check, ...]:
        """Build the evaluators of an entry; usually one, several for a set of rubrics."""
        encoded = _encode(entry)
        if encoded in self._objects:
            return ((entry, self._objects[encoded]),)
        key: bytes | int = encoded or id(entry)
        if isinstance(key, int):
            self._entries[key] = entry
        checks = self._checks.get(key) or self._recent.get(key)
        if checks is None:
            checks = tuple(map(self._build, self._registry.expand(entry)))
            self._store(key, checks)
            # The run reads the complete entries; they must not be built again while it measures latencies.
            for check in checks:
                if (stored_key := _encode(check[0])) is not None and stored_key not in self._objects:
                    self._store(stored_key, (check,))
        return checks

    def _store(self, key: bytes | int, checks: tuple[Check, ...]) -> None:
        if len(self._checks) < MAX_CACHED_CHECKS:
            self._checks[key] = checks
            return
        self._recent[key] = checks
        if len(self._recent) > MAX_RECENT_CHECKS:
            del self._recent[next(iter(self._recent))]

    def _build(self, spec: Any) -> Check:
        evaluator, entry = self._registry.build(spec), parse_entry(spec)
        stored: dict[str, Any] = {"name": evaluator.spec.name}
        if entry is not None:
            parameters = (
                parameters_by_name(entry, self._registry.describe(entry.uses)) if entry.bare else entry.parameters
            )
            stored |= {"uses": entry.uses} | ({"parameters": dict(parameters)} if parameters else {})
            if _encode(stored) is not None:
                return stored, evaluator
        own = evaluator.spec
        stored |= {"uses": own.uses, "parameters": own.parameters, "identity": own.identity}
        self._objects[_encode(stored)] = evaluator
        return stored, evaluator

    def convert(self, sample: Sample[Any, Any]) -> Sample[Any, Any]:
        """Return the sample with complete entries, which name the scores and can be stored."""
        if not sample.evaluators:
            return sample
        entries = tuple(stored for entry in sample.evaluators for stored, _ in self.resolve(entry))
        return msgspec.structs.replace(sample, evaluators=entries)

    def require_names(self) -> None:
        """Raise an error if an evaluator is an object of this process, which workers cannot build."""
        if self._objects:
            names = sorted({evaluator.spec.name for evaluator in self._objects.values()})
            raise ConfigError(
                f"samples have evaluators that are objects of this process: {', '.join(names)}",
                where="evaluators",
                fix="name them as in an eval file, such as contains or checks.py:is_polite, or run without workers",
            )

    def collect(self, source: SampleSource, info: DatasetInfo, evaluators: Sequence[BoundEvaluator] | None) -> None:
        """Read the evaluators of all samples and describe them in `specs`; one error reports all mistakes.

        `evaluators` are those of all samples, None if they cannot be built.
        """
        run_names = None if evaluators is None else {evaluator.spec.name for evaluator in evaluators}
        collection = _Collection(self, run_names)
        for location, sample in _locate_samples(source):
            collection.add(location, sample)
            if len(collection.problems) >= MAX_PROBLEMS:
                break
        if collection.problems:
            raise dataset_error(info.name, collection.problems, stopped=len(collection.problems) >= MAX_PROBLEMS)
        self.needs = collection.needs
        self.specs = tuple(
            _describe_for_run(evaluator, entry, count, self._registry)
            for (entry, evaluator), count in zip(
                collection.first_checks.values(), collection.counts.values(), strict=True
            )
        )


class _Collection:
    """What one pass over the samples shows: the evaluators by name, and all problems with their locations."""

    def __init__(self, checks: SampleChecks, run_names: set[str] | None) -> None:
        self._checks = checks
        self._run_names = run_names or set()
        self.first_checks: dict[str, Check] = {}
        self.counts: Counter[str] = Counter()
        self.needs: frozenset[str] = frozenset()
        self.problems: list[tuple[str, Problem]] = []

    def add(self, location: str, sample: Sample[Any, Any]) -> None:
        names: set[str] = set()
        for index, entry in enumerate(sample.evaluators):
            where = f"evaluators[{index}]"
            try:
                checks = self._checks.resolve(entry)
            except EvaluatorError as error:
                parts = [error.what, *map(str, error.problems)]
                self._report(location, where, "; ".join(parts), error.fix)
                continue
            for check in checks:
                if problem := self._find_name_problem(check, names):
                    fix = f"give it a name of its own: {{uses: {check[0]['uses']}, name: …}}"
                    self._report(location, where, problem, fix)
                names.add(check[0]["name"])
                self.needs |= check[1].needs
        self.counts.update(names)

    def _find_name_problem(self, check: Check, names: set[str]) -> str:
        name, uses = check[0]["name"], check[0]["uses"]
        if name in self._run_names:
            return f"the run has an evaluator {name!r} for all samples, and a name has one score"
        if name in names:
            return f"the sample has two evaluators named {name!r}"
        first_uses = self.first_checks.setdefault(name, check)[0]["uses"]
        return "" if first_uses == uses else f"{name!r} is {uses} here and {first_uses} in another sample"

    def _report(self, location: str, where: str, what: str, fix: str) -> None:
        self.problems.append((location, Problem(where, what, fix)))


class CheckedDataset:
    """A dataset whose samples have complete entries of their own evaluators."""

    def __init__(self, source: SampleSource, checks: SampleChecks) -> None:
        self._source = source
        self._checks = checks

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return map(self._checks.convert, self._source)

    def inspect(self) -> DatasetInfo:
        return self._source.inspect()


def restore_checks(
    specs: Iterable[EvaluatorSpec], evaluators: Sequence[BoundEvaluator], registry: Registry
) -> SampleChecks | None:
    """Return the evaluators of the samples of a stored run, to score the run again; None if its samples have none."""
    own = [spec for spec in specs if spec.samples is not None]
    names = {evaluator.spec.name for evaluator in evaluators}
    if clashes := [spec.name for spec in own if spec.name in names]:
        raise EvaluatorError(
            f"samples of the run have their own {', '.join(clashes)}, and a name has one score",
            where="evaluators",
            fix=f"give yours another name: {{uses: {clashes[0]}, name: …}}",
        )
    return SampleChecks(registry, tuple(own)) if own else None


def _describe_for_run(
    evaluator: BoundEvaluator, entry: dict[str, Any], count: int, registry: Registry
) -> EvaluatorSpec:
    """Describe an evaluator by its code and its models; an object's identity is in the entries of the samples."""
    spec = evaluator.spec
    models = {name: value for name, value in spec.parameters.items() if name in MODEL_PARAMETERS}
    if "identity" in entry:
        return EvaluatorSpec(spec.name, entry["uses"], models, samples=count)
    identity, uncovered, _ = compute_identity([registry.find_evaluator(entry["uses"])])
    return EvaluatorSpec(spec.name, entry["uses"], models, identity, uncovered, count)


def _locate_samples(source: SampleSource) -> Iterator[tuple[str, Sample[Any, Any]]]:
    located = getattr(source, "located", None)
    if located is not None:
        yield from located()
    else:
        yield from ((f"sample {sample.id!r}", sample) for sample in source)


def _make_unavailable(entry: Any, name: str, error: EvaluatorError) -> BoundEvaluator:
    where = " (it was an object of the program that stored the run)" if "identity" in entry else ""
    score = Score.skipped if where else Score.error
    reason = f"the sample's evaluator {name!r} cannot be built{where}: {error.what}"
    return BoundEvaluator(EvaluatorSpec(name, name), "inline", lambda _: score(reason))


def _encode(entry: Any) -> bytes | None:
    """Return an entry as JSON; None if it contains an object."""
    try:
        return msgspec.json.encode(entry, order="deterministic")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
