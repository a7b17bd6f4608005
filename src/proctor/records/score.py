"""Scores of evaluators, and rules to combine them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from math import fsum, inf
from typing import Any, Literal

import msgspec

from proctor.errors import InvalidRecord
from proctor.records.numbers import is_fraction

Status = Literal["ok", "error", "skipped"]
# The effect of a skipped part on a combination: it is skipped too, or the part is left out.
Skipped = Literal["skip", "ignore"]

# Flags in the details of a combined score: see `_flag_gaps`.
INCOMPLETE, UNCERTAIN = "incomplete", "uncertain"
# The key of failures in the details of a score whose parts are not scores: criteria or opinions, with the reason.
FAILED_PARTS = "failed_parts"

# The skip reason of evaluators that run once per sample, in its last epoch; older data has the second string.
NOT_LAST_EPOCH = "scored once per sample, in its last epoch"
_OLD_NOT_LAST_EPOCH = "it is told once a sample, in the last of its epochs"
# The skip reason of comparing evaluators on the baseline itself; older data has the second string.
IS_BASELINE = "the baseline is not compared with itself"
_OLD_IS_BASELINE = "this is the baseline, which is compared with nothing"
# Scores that are skipped by design do not leave a combination undecided and are not missing.
SKIPPED_BY_DESIGN = frozenset({NOT_LAST_EPOCH, _OLD_NOT_LAST_EPOCH, IS_BASELINE, _OLD_IS_BASELINE})
_NO_VERDICT = "use Score.error or Score.skipped when there is no verdict"
# Names of score fields in the mappings that custom evaluators return.
_ALIASES = {"score": "value", "message": "reason"}


class Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A verdict on one output: a value from 0 to 1, passed or not, and the reason.

    `Score.error` and `Score.skipped` are not verdicts: their `value` and `passed` are None, they are left out
    of every mean, and they are counted separately. `value` must be a number and `passed` a boolean; anything
    else raises `InvalidRecord`, which is a ValueError.

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
            value = self.value
            if type(value) is not float or value < 0.0 or not value <= 1.0:
                self._check_value()
            if self.passed is not True and type(self.passed) is not bool:
                self._check_passed()
        else:
            self._check_no_verdict()
        if type(self.reason) is not str and not isinstance(self.reason, str):
            raise InvalidRecord(f"Score.reason must be a string, got {self.reason!r}", fix="write reason=str(…)")
        if type(self.details) is not dict and not isinstance(self.details, Mapping):
            raise InvalidRecord(f"Score.details must be a mapping, got {self.details!r}", fix="write details={…}")

    def _check_value(self) -> None:
        """Convert any number from 0 to 1 to a float, including NumPy numbers and decimals."""
        value: Any = unbox(self.value)
        if not is_fraction(value):
            fix = _NO_VERDICT
            if isinstance(value, bool):
                fix = f"write Score({float(value)}, {value})"
            elif isinstance(value, int | float) and 1 < value < inf:
                fix = f"divide a rating by the highest value of its scale, as in value / 5; {_NO_VERDICT}"
            raise InvalidRecord(f"Score.value must be a number from 0 to 1, got {self.value!r}", fix=fix)
        msgspec.structs.force_setattr(self, "value", float(value))

    def _check_passed(self) -> None:
        """Convert any boolean to a bool, including NumPy booleans."""
        passed = unbox(self.passed)
        if not isinstance(passed, bool):
            raise InvalidRecord(f"Score.passed must be True or False, got {self.passed!r}", fix=_NO_VERDICT)
        msgspec.structs.force_setattr(self, "passed", passed)

    def _check_no_verdict(self) -> None:
        """Reject a verdict with an error or a skip; older data has `passed` False there."""
        if self.status not in ("error", "skipped"):
            raise InvalidRecord(
                f"Score.status must be 'ok', 'error' or 'skipped', got {self.status!r}", fix="leave out status"
            )
        if self.passed is False:
            msgspec.structs.force_setattr(self, "passed", None)
        if self.value is not None or self.passed is not None:
            raise InvalidRecord(
                f"a Score with status {self.status!r} must have neither a value nor a verdict",
                fix=f"write Score.{self.status}(reason)",
            )

    def __getitem__(self, name: str) -> Any:
        """Read a field by its name, or by a key of an evaluator's mapping: score, message."""
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
        """Make the score of a failed evaluator: no value, counted as an error."""
        return cls(None, None, reason, dict(details or {}), "error")

    @classmethod
    def skipped(cls, reason: str, details: Mapping[str, Any] | None = None) -> Score:
        """Make the score of an evaluator that does not apply to a sample: no value, counted as skipped."""
        return cls(None, None, reason, dict(details or {}), "skipped")


def make_passed_scores(evaluators: Iterable[str]) -> dict[str, Score]:
    """Return the scores of most results: every evaluator passed, without a reason. Comparing is faster than reading."""
    return {name: Score(1.0, True) for name in evaluators}


def unbox(value: Any) -> Any:
    """Return the Python number or boolean of a NumPy scalar, a zero-dimensional array or a decimal."""
    if isinstance(value, Decimal) and value.is_finite():
        return float(value)
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        return value.item()
    return value


def read_parts(score: Score) -> dict[str, Score]:
    """Return the parts of a combined score by name, even if they were stored as data."""
    parts = score.details.get("parts")
    if not isinstance(parts, Mapping):
        return {}
    try:
        return {str(name): msgspec.convert(part, Score) for name, part in parts.items()}
    except msgspec.ValidationError:
        # Custom details may also have a key "parts".
        return {}


def find_failures(score: Score) -> dict[str, Score]:
    """Return the errors inside a combined score by name, at any depth: `any_of` has a verdict although a part failed.

    >>> find_failures(combine_any({"same": Score(0.0, False), "judge": Score.error("401")}))
    {'judge': Score(value=None, passed=None, reason='401', details={}, status='error')}
    """
    reasons = score.details.get(FAILED_PARTS)
    failures = {str(n): Score.error(str(r)) for n, r in reasons.items()} if isinstance(reasons, Mapping) else {}
    for name, part in read_parts(score).items() if "parts" in score.details else ():
        failures |= find_failures(part) or ({name: part} if part.status == "error" else {})
    return failures


def describe_gaps(failed_parts: Mapping[str, str]) -> dict[str, Any]:
    """Return the details of a score with failed criteria or opinions, which could not change its verdict."""
    return {INCOMPLETE: True, FAILED_PARTS: dict(failed_parts)} if failed_parts else {}


def decide_majority(passes: int, missing: int, total: int) -> bool | None:
    """Return whether more than half of all verdicts pass; None if the missing ones could change that.

    >>> decide_majority(2, 1, 3), decide_majority(0, 1, 3), decide_majority(1, 1, 3)
    (True, False, None)
    """
    return True if 2 * passes > total else False if 2 * (passes + missing) <= total else None


def combine_all(scores: Mapping[str, Score], skipped: Skipped = "skip") -> Score:
    """Combine scores that must all pass; the value is the mean. Used by `all_of`, `and` and results.

    A failed verdict decides. Without a failed verdict, an error makes the combination an error, and a skipped score
    makes it skipped. With `skipped="ignore"` skipped scores are left out.
    """
    verdicts = [score for score in scores.values() if score.ok]
    errors = _select_status(scores, "error")
    failed = any(score.passed is False for score in verdicts)
    details = _make_details(scores, errors)
    if not failed:
        if errors:
            return Score.error(_join_reasons(errors, scores), details)
        undecided = find_undecided(scores, skipped) if verdicts else scores
        if undecided or not verdicts:
            return Score.skipped(_join_reasons(undecided, scores), details)
    # One certain failure is enough; a pass is as certain as the least certain part.
    deciding = [score for score in verdicts if not failed or score.passed is False]
    details |= _flag_gaps(scores, skipped, any if not failed else all, deciding)
    values = [score.value for score in verdicts if score.value is not None]
    # The reason lists the failures; the details have the other scores.
    decisive = {
        name: score
        for name, score in scores.items()
        if (score.status == "error" or score.passed is False if failed else score.ok)
    }
    return Score(fsum(values) / len(values), not failed, _join_reasons(decisive, scores), details)


def combine_any(scores: Mapping[str, Score], skipped: Skipped = "skip") -> Score:
    """Combine scores of which one must pass; the value is the maximum. Used by `any_of` and `or`.

    A passed verdict decides. Without a passed verdict, a skipped score makes the combination skipped. An error counts
    as not passed and is listed in the details; the combination is an error only if all scores are errors. With
    `skipped="ignore"` skipped scores are left out.
    """
    verdicts = [score for score in scores.values() if score.ok]
    errors = _select_status(scores, "error")
    passed = any(score.passed is True for score in verdicts)
    details = _make_details(scores, errors)
    undecided = {} if passed else find_undecided(scores, skipped)
    if undecided or not (verdicts or errors):
        return Score.skipped(_join_reasons({**(undecided or scores), **errors}, scores), details)
    if not verdicts:
        return Score.error(_join_reasons(errors, scores), details)
    # One certain pass is enough; without a pass, an error could have been a pass.
    deciding = [score for score in verdicts if not passed or score.passed is True]
    deciding += [] if passed else errors.values()
    details |= _flag_gaps(scores, skipped, all if passed else any, deciding)
    values = [score.value for score in verdicts if score.value is not None]
    decisive = {name: score for name, score in scores.items() if score.status != "skipped"}
    return Score(max(values), passed, _join_reasons(decisive, scores), details)


def _flag_gaps(
    scores: Mapping[str, Score],
    skipped: Skipped,
    quantifier: Callable[[Iterable[bool]], bool],
    deciding: Sequence[Score],
) -> dict[str, bool]:
    """Return the flags of a combined score with missing parts.

    `incomplete` means that a part could not be scored and is missing from the value, `uncertain` that this part could
    have changed the verdict.
    """
    missing = {**_select_status(scores, "error"), **find_undecided(scores, skipped)}
    incomplete = bool(missing) or any(INCOMPLETE in score.details for score in scores.values())
    uncertain = quantifier(not score.ok or UNCERTAIN in score.details for score in deciding)
    flags = {INCOMPLETE: incomplete, UNCERTAIN: uncertain}
    return {key: True for key, is_set in flags.items() if is_set}


def drop_verdict(score: Score) -> Score:
    """Turn a combined score whose parts could not all be judged into an error or a skip."""
    parts = read_parts(score)
    gaps = {
        name: part if not part.ok else drop_verdict(part)
        for name, part in parts.items()
        if not part.ok or INCOMPLETE in part.details or UNCERTAIN in part.details
    }
    is_error = find_failures(score) or any(part.status == "error" for part in gaps.values())
    return (Score.error if is_error else Score.skipped)(_join_reasons(gaps, parts) or score.reason, score.details)


def _select_status(scores: Mapping[str, Score], status: Status) -> dict[str, Score]:
    return {name: score for name, score in scores.items() if score.status == status}


def find_undecided(scores: Mapping[str, Score], skipped: Skipped) -> dict[str, Score]:
    """Return the skipped scores that leave a combination undecided."""
    if skipped == "ignore":
        return {}
    skips = _select_status(scores, "skipped")
    return {name: score for name, score in skips.items() if score.reason not in SKIPPED_BY_DESIGN}


def _join_reasons(selected: Mapping[str, Score], scores: Mapping[str, Score]) -> str:
    """Join the reasons of the selected scores, with their names if there are several scores."""
    reasons = {name: score.reason for name, score in selected.items() if score.reason}
    if len(set(reasons.values())) == 1 and SKIPPED_BY_DESIGN.issuperset(reasons.values()):
        return next(iter(reasons.values()))
    if len(scores) == 1:
        return "".join(reasons.values())
    without_reason = {name: score for name, score in selected.items() if not score.reason and not score.passed}
    reasons |= {name: _DEFAULT_REASONS[score.status] for name, score in without_reason.items()}
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())


_DEFAULT_REASONS = {"ok": "did not pass", "error": "failed", "skipped": "was skipped"}


def _make_details(scores: Mapping[str, Score], errors: Mapping[str, Score]) -> dict[str, Any]:
    details: dict[str, Any] = {"parts": dict(scores)}
    if errors:
        details["errors"] = list(errors)
    return details
