"""What an evaluator says: a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Any, Literal

import msgspec

from proctor.records.numbers import is_fraction

Status = Literal["ok", "error", "skipped"]
# What a combination does with a skipped part: it is skipped too, or the part is left out.
Skipped = Literal["skip", "ignore"]

# In the details of a combined score: see `_gaps`.
INCOMPLETE, UNCERTAIN = "incomplete", "uncertain"

# Why an evaluator of repeats says nothing of the others: it is not missing there.
NOT_LAST = "it is told once a sample, in the last of its epochs"
# Why an evaluator that compares says nothing of the baseline configuration itself.
IS_BASELINE = "this is the baseline, which is compared with nothing"
# Such scores are skipped by design: they leave no combination undecided and are not missing.
NOT_ASKED = frozenset({NOT_LAST, IS_BASELINE})


# What custom evaluators and combinations call a score's parts in the mappings they return.
_ALIASES = {"score": "value", "message": "reason"}


class Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A verdict on one output: a value from 0 to 1, passed or not, and why.

    `Score.error` and `Score.skipped` are not verdicts: their `value` and `passed` are None, they
    stay out of every mean, and they are counted separately. `value` must be a number and `passed`
    a boolean; anything else is refused when the score is made.

    >>> Score(0.75, True, "close enough").value
    0.75
    >>> skipped = Score.skipped("the sample has no expected value")
    >>> skipped.value is None, skipped.passed is None
    (True, True)
    """

    value: float | None
    passed: bool | None
    reason: str = ""
    details: dict[str, Any] = {}
    status: Status = "ok"

    def __post_init__(self) -> None:
        if self.status == "ok":
            if type(self.value) is not float or not 0.0 <= self.value <= 1.0:
                self._check_value()
            if type(self.passed) is not bool:
                self._check_passed()
        else:
            self._check_no_verdict()
        if type(self.reason) is not str and not isinstance(self.reason, str):
            raise ValueError(f"a score's reason must be a text, got {self.reason!r}")
        if type(self.details) is not dict and not isinstance(self.details, Mapping):
            raise ValueError(f"a score's details must be a mapping, got {self.details!r}")

    def _check_value(self) -> None:
        """Store any number from 0 to 1 as a float, NumPy's included; refuse everything else."""
        value: Any = _unboxed(self.value)
        if not is_fraction(value):
            raise ValueError(
                f"a score's value must be a number from 0 to 1, got {self.value!r}; "
                + (
                    f"write Score({float(value)}, {value})"
                    if isinstance(value, bool)
                    else "use Score.error or Score.skipped when there is no verdict"
                )
            )
        msgspec.structs.force_setattr(self, "value", float(value))

    def _check_passed(self) -> None:
        """Store any boolean as a bool, NumPy's included; refuse everything else."""
        passed = _unboxed(self.passed)
        if not isinstance(passed, bool):
            raise ValueError(
                f"a score's passed must be True or False, got {self.passed!r}; "
                "use Score.error or Score.skipped when there is no verdict"
            )
        msgspec.structs.force_setattr(self, "passed", passed)

    def _check_no_verdict(self) -> None:
        """Refuse a verdict with an error or a skip; older data has `passed` False there."""
        if self.status not in ("error", "skipped"):
            raise ValueError(f"a score's status is ok, error or skipped, got {self.status!r}")
        if self.passed is False:
            msgspec.structs.force_setattr(self, "passed", None)
        if self.value is not None or self.passed is not None:
            raise ValueError(
                f"a score with status {self.status!r} must have neither a value nor a verdict; "
                f"write Score.{self.status}(reason)"
            )

    def __getitem__(self, name: str) -> Any:
        """Read a part by its name, or by the names of an evaluator's mapping: score, message."""
        field = _ALIASES.get(name, name)
        if field not in self.__struct_fields__:
            keys = ", ".join((*self.__struct_fields__, *_ALIASES))
            raise KeyError(f"a score has no {name!r}; it has {keys}")
        return getattr(self, field)

    @property
    def ok(self) -> bool:
        """True if this is a verdict, not an error or a skip."""
        return self.status == "ok"

    @classmethod
    def error(cls, reason: str, details: Mapping[str, Any] | None = None) -> Score:
        """The evaluator failed: no value, counted as an error."""
        return cls(None, None, reason, dict(details or {}), "error")

    @classmethod
    def skipped(cls, reason: str, details: Mapping[str, Any] | None = None) -> Score:
        """The evaluator has nothing to say on this sample: no value, counted as skipped."""
        return cls(None, None, reason, dict(details or {}), "skipped")


def _unboxed(value: Any) -> Any:
    """The Python number or boolean in a NumPy scalar or an array without dimensions."""
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        return value.item()
    return value


def parts_of(score: Score) -> dict[str, Score]:
    """The scores that a combined one was made of, by name; those that were stored are plain data.

    >>> list(parts_of(combine_all({"a": Score(1.0, True), "b": Score(0.5, False)})))
    ['a', 'b']
    """
    parts = score.details.get("parts")
    if not isinstance(parts, Mapping):
        return {}
    try:
        return {str(name): msgspec.convert(part, Score) for name, part in parts.items()}
    except msgspec.ValidationError:
        # A user's own details may be called so, too.
        return {}


def combine_all(scores: Mapping[str, Score], skipped: Skipped = "skip") -> Score:
    """All must pass; the value is the mean. One rule for `all_of`, `and` and a result's score.

    A verdict that did not pass decides. Without one, an error makes the combination an error, and
    a skipped score makes it skipped: what could not be judged has not passed. With
    `skipped="ignore"` skipped scores are left out.

    >>> combine_all({"a": Score(1.0, True), "b": Score(0.5, False)}).value
    0.75
    >>> combine_all({"a": Score(0.0, False), "b": Score.error("no answer")}).passed
    False
    >>> combine_all({"a": Score(1.0, True), "b": Score.error("no answer")}).status
    'error'
    >>> combine_all({"a": Score(1.0, True), "b": Score.skipped("no text")}).status
    'skipped'
    >>> combine_all({"a": Score(1.0, True), "b": Score.skipped("no text")}, "ignore").passed
    True
    """
    verdicts = [score for score in scores.values() if score.ok]
    errors = _with_status(scores, "error")
    failed = any(score.passed is False for score in verdicts)
    details = _details(scores, errors)
    if not failed:
        if errors:
            return Score.error(_reasons(errors, scores), details)
        unknown = undecided(scores, skipped) if verdicts else scores
        if unknown or not verdicts:
            return Score.skipped(_reasons(unknown, scores), details)
    # One certain failure is enough; a pass is as certain as the least certain part.
    deciding = [score for score in verdicts if not failed or score.passed is False]
    details |= _gaps(scores, skipped, any if not failed else all, deciding)
    values = [score.value for score in verdicts if score.value is not None]
    # The failures are the reason; what the others say is in the details.
    told = {
        name: score
        for name, score in scores.items()
        if (score.status == "error" or score.passed is False if failed else score.ok)
    }
    return Score(fsum(values) / len(values), not failed, _reasons(told, scores), details)


def combine_any(scores: Mapping[str, Score], skipped: Skipped = "skip") -> Score:
    """One must pass; the value is the greatest. One rule for `any_of` and `or`.

    A verdict that passed decides. Without one, a skipped score makes the combination skipped: it
    might have passed. An error counts as not passed and the details name it; only errors make an
    error. With `skipped="ignore"` skipped scores are left out.

    >>> combine_any({"a": Score(1.0, True), "b": Score.error("no answer")}).passed
    True
    >>> combine_any({"a": Score(0.0, False), "b": Score.skipped("no text")}).status
    'skipped'
    """
    verdicts = [score for score in scores.values() if score.ok]
    errors = _with_status(scores, "error")
    passed = any(score.passed is True for score in verdicts)
    details = _details(scores, errors)
    unknown = {} if passed else undecided(scores, skipped)
    if unknown or not (verdicts or errors):
        told = {**(unknown or scores), **errors}
        return Score.skipped(_reasons(told, scores), details)
    if not verdicts:
        return Score.error(_reasons(errors, scores), details)
    # One certain pass is enough; without a pass an error leaves open what it would have said.
    deciding = [score for score in verdicts if not passed or score.passed is True]
    deciding += [] if passed else errors.values()
    details |= _gaps(scores, skipped, all if passed else any, deciding)
    values = [score.value for score in verdicts if score.value is not None]
    told = {name: score for name, score in scores.items() if score.status != "skipped"}
    return Score(max(values), passed, _reasons(told, scores), details)


def _gaps(
    scores: Mapping[str, Score],
    skipped: Skipped,
    together: Callable[[Iterable[bool]], bool],
    deciding: Sequence[Score],
) -> dict[str, bool]:
    """What a combination does not know although it has a verdict.

    `incomplete`: its value lacks a part that could not be judged. `uncertain`: that part could
    have changed the verdict.
    """
    missing = {**_with_status(scores, "error"), **undecided(scores, skipped)}
    incomplete = bool(missing) or any(INCOMPLETE in score.details for score in scores.values())
    uncertain = together(not score.ok or UNCERTAIN in score.details for score in deciding)
    found = {INCOMPLETE: incomplete, UNCERTAIN: uncertain}
    return {key: True for key, is_so in found.items() if is_so}


def without_verdict(score: Score) -> Score:
    """A combined score whose parts could not all be judged, as an error or a skip.

    >>> without_verdict(combine_any({"a": Score(0.0, False), "b": Score.error("no key")})).status
    'error'
    """
    parts = parts_of(score)
    gaps = {
        name: part if not part.ok else without_verdict(part)
        for name, part in parts.items()
        if not part.ok or INCOMPLETE in part.details or UNCERTAIN in part.details
    }
    make = Score.error if any(part.status == "error" for part in gaps.values()) else Score.skipped
    return make(_reasons(gaps, parts) or score.reason, score.details)


def _with_status(scores: Mapping[str, Score], status: Status) -> dict[str, Score]:
    return {name: score for name, score in scores.items() if score.status == status}


def undecided(scores: Mapping[str, Score], skipped: Skipped) -> dict[str, Score]:
    """The skipped scores that leave a combination undecided."""
    if skipped == "ignore":
        return {}
    found = _with_status(scores, "skipped")
    return {name: score for name, score in found.items() if score.reason not in NOT_ASKED}


def _reasons(told: Mapping[str, Score], scores: Mapping[str, Score]) -> str:
    """What each says, under its name where there are several."""
    reasons = {name: score.reason for name, score in told.items() if score.reason}
    if len(set(reasons.values())) == 1 and NOT_ASKED.issuperset(reasons.values()):
        return next(iter(reasons.values()))
    if len(scores) == 1:
        return "".join(reasons.values())
    silent = {name: score for name, score in told.items() if not score.reason and not score.passed}
    reasons |= {name: _SILENT[score.status] for name, score in silent.items()}
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())


_SILENT = {"ok": "did not pass", "error": "failed", "skipped": "was skipped"}


def _details(scores: Mapping[str, Score], errors: Mapping[str, Score]) -> dict[str, Any]:
    details: dict[str, Any] = {"parts": dict(scores)}
    if errors:
        details["errors"] = list(errors)
    return details
