"""What is not the same as when a run began, and whether it may go on all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from proctor.comparison.terms import code_of, terms_apart
from proctor.errors import Problem, ResumeRefused
from proctor.identity import SCHEME, is_other_scheme
from proctor.records.rubric_scores import RUBRICS_VERSION
from proctor.records.run import EvaluatorSpec, RunMetadata, TargetSpec

LONGEST = 60
EVALUATOR_CODE = "evaluators' code"
UNKNOWN = (
    "the run was written by another version of Proctor, which identified code in another way "
    f"(this is scheme {SCHEME}), so it cannot be known whether the code is the same"
)


def differences(before: RunMetadata, now: RunMetadata) -> list[Problem]:
    """What is not the same as when the run began, in words."""
    changes = []
    if before.dataset.fingerprint is None or now.dataset.fingerprint is None:
        changes.append(
            Problem("dataset", "it can be read only once, so nothing tells if it is the same")
        )
    elif before.dataset.fingerprint != now.dataset.fingerprint:
        lengths = f"{before.dataset.length} samples then, {now.dataset.length} now"
        changes.append(Problem("dataset", f"its content has changed ({lengths})"))
    if before.target != now.target:
        changes.append(Problem("target", _target_difference(before.target, now.target)))
    if before.configurations != now.configurations:
        changes.append(Problem("configurations", "they or their options have changed"))
    if before.baseline != now.baseline:
        baselines = f"was {before.baseline or 'none'}, is {now.baseline or 'none'}"
        changes.append(Problem("baseline", baselines))
    if before.options.epochs != now.options.epochs:
        epochs = f"were {before.options.epochs}, are {now.options.epochs}"
        changes.append(Problem("epochs", epochs))
    if before.total is not None and now.total is not None and now.total < before.total:
        planned = f"{before.total} trials were planned, {now.total} are now"
        changes.append(Problem("limit", planned))
    if now.options.limit is not None and before.options.shuffle != now.options.shuffle:
        seeds = f"was {before.options.shuffle}, is {now.options.shuffle}"
        changes.append(Problem("shuffle", f"{seeds}; with a limit these are other samples"))
    versions = [run.tags.get(RUBRICS_VERSION) for run in (before, now)]
    if versions[0] is not None and versions[0] != versions[1]:
        # Results name it, also those that were scored before.
        told = "was {}, is {}".format(*(version or "none" for version in versions))
        changes.append(Problem(RUBRICS_VERSION, told))
    return [*changes, *_other_skipped(before, now), *_evaluator_differences(before, now)]


def _other_skipped(before: RunMetadata, now: RunMetadata) -> list[Problem]:
    was, is_now = before.options.skipped, now.options.skipped
    if was == is_now:
        return []
    return [Problem("skipped", f"was {was!r}, is {is_now!r}: equal scores would pass or not")]


def _target_difference(then: TargetSpec, today: TargetSpec) -> str:
    if then.name != today.name:
        return f"was {then.name!r}, is {today.name!r}"
    if then.kind == today.kind and is_other_scheme(then.identity, today.identity):
        return UNKNOWN
    return "its code, what it uses, or its version has changed"


def _evaluator_differences(before: RunMetadata, now: RunMetadata) -> list[Problem]:
    then = {spec.name: spec for spec in before.evaluators}
    today = {spec.name: spec for spec in now.evaluators}
    if then == today:
        return []
    if (unknown := _of_other_scheme(then, today)) is not None:
        return [Problem(EVALUATOR_CODE, f"{unknown}: {UNKNOWN}")]
    gone, new = sorted(then.keys() - today.keys()), sorted(today.keys() - then.keys())
    told = {"gone": ", ".join(gone), "new": ", ".join(new), "changed": _changed(then, today)}
    words = [f"{word}: {names}" for word, names in told.items() if names]
    return [Problem("evaluators", "; ".join(words) or "their order has changed")]


def _of_other_scheme(
    then: Mapping[str, EvaluatorSpec], today: Mapping[str, EvaluatorSpec]
) -> str | None:
    """The evaluators whose code cannot be compared, if nothing else about them differs."""
    if list(then) != list(today):
        return None
    names = [name for name in then if then[name] != today[name]]
    for name in names:
        if terms_apart(then[name], today[name]):
            return None
        if not is_other_scheme(then[name].identity, today[name].identity):
            return None
    return ", ".join(names)


def uncovered_by_identity(
    run: RunMetadata,
    *,
    resumed: bool = False,
    evaluators: Sequence[EvaluatorSpec] | None = None,
) -> tuple[str, ...]:
    """A warning for the target and each evaluator of which some changes go unnoticed.

    What runs outside of this process is never covered; that is said where it matters, which is
    where outputs of before are used again.
    """
    outside = run.target.kind in ("http", "command")
    target = run.target.uncovered if resumed or run.options.cache or not outside else ()
    named = [(f"target {run.target.name!r}", target)] if evaluators is None else []
    specs = run.evaluators if evaluators is None else evaluators
    named += [(f"evaluator {spec.name!r}", spec.uncovered) for spec in specs]
    return tuple(
        f"{name} depends on {'; '.join(uncovered)}: a change of it is not noticed by resume, "
        "cache, workers or comparisons; set a version of the target when it changes"
        if name.startswith("target")
        else f"{name} depends on {'; '.join(uncovered)}: a change of it is not noticed by resume "
        "or comparisons"
        for name, uncovered in named
        if uncovered
    )


def _changed(then: Mapping[str, EvaluatorSpec], today: Mapping[str, EvaluatorSpec]) -> str:
    """The evaluators that are not what they were, with the options that are others."""
    alike: dict[str, list[str]] = {}
    for name in sorted(then.keys() & today.keys()):
        if then[name] != today[name]:
            alike.setdefault(_how(then[name], today[name]), []).append(name)
    return ", ".join(f"{', '.join(names)} ({how})" for how, names in alike.items())


def _how(then: EvaluatorSpec, today: EvaluatorSpec) -> str:
    apart = terms_apart(then, today)
    told = (_told(term.path, term.mine, term.theirs) for term in apart)
    return "; ".join(told) or code_of(today)


def _told(path: str, then: str, today: str) -> str:
    """An option with both its values, as far as they can be told apart."""
    was, now = (said if len(said) <= LONGEST else f"{said[:LONGEST]}…" for said in (then, today))
    return f"{path} reads otherwise" if was == now else f"{path} was {was}, is {now}"


def refuse_if_changed(before: RunMetadata, changes: Sequence[Problem], *, allowed: bool) -> None:
    """Mixing results of two different things is refused; of two sets of evaluators, always."""
    about_evaluators = any(change.where == "evaluators" for change in changes)
    if not changes or (allowed and not about_evaluators):
        return
    fix = "run it anew, or resume with --allow-changes (allow_changes=True) to mix old and new"
    if about_evaluators:
        fix = (
            "resume with the evaluators the run began with, then score its outputs "
            f"with the new ones: proctor rescore {before.run_id}"
        )
    raise ResumeRefused(
        f"run {before.run_id} cannot be resumed: it is not the same evaluation any more",
        problems=changes,
        fix=fix,
    )
