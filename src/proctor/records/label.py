"""Human labels: what a person says about one output, and how that output was drawn."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from proctor.errors import InvalidRecord
from proctor.records.trial import DEFAULT_CONFIGURATION

Strategy = Literal["random", "stratified", "disagreement"]


class LabelledItem(NamedTuple):
    """The output that a label is about, and the question: an evaluator's, or the overall verdict ("")."""

    run_id: str
    sample_id: str
    configuration: str
    epoch: int
    evaluator: str


class HumanLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The verdict of an annotator on one output: passed, failed, or skipped.

    `evaluator` is the evaluator whose question was answered, empty for the overall verdict; `evaluator_digest` is its
    version at that time. `probability` is the chance with which `strategy` drew the output; None if it is unknown. The
    latest label of an annotator on an item counts; a `withdrawn` label takes the earlier one back.
    """

    label_id: str
    run_id: str
    sample_id: str
    labelled_at: datetime
    configuration: str = DEFAULT_CONFIGURATION
    epoch: int = 0
    evaluator: str = ""
    passed: bool | None = None
    value: float | None = None
    skipped: bool = False
    withdrawn: bool = False
    comment: str = ""
    annotator: str = ""
    strategy: Strategy = "random"
    probability: float | None = None
    evaluator_digest: str = ""
    output_digest: str = ""

    def __post_init__(self) -> None:
        states = (self.passed is not None, self.skipped, self.withdrawn)
        if sum(states) != 1:
            raise InvalidRecord(
                "a label is exactly one of: passed or failed, skipped, withdrawn",
                fix="write passed=True or skipped=True",
            )
        if self.labelled_at.tzinfo is None:
            raise InvalidRecord("the time of a label needs a time zone", fix="write labelled_at=datetime.now(UTC)")
        if self.probability is not None and not 0 < self.probability <= 1:
            raise InvalidRecord(f"probability must be from 0 to 1, got {self.probability!r}", fix="leave it out")

    @property
    def item(self) -> LabelledItem:
        """The output and the question that were labelled."""
        return LabelledItem(self.run_id, self.sample_id, self.configuration, self.epoch, self.evaluator)


def current_labels(labels: Iterable[HumanLabel]) -> list[HumanLabel]:
    """Return the latest label of each annotator on each item, in the order given; withdrawn labels are left out."""
    latest: dict[tuple[LabelledItem, str], HumanLabel] = {}
    for label in labels:
        key = label.item, label.annotator
        latest.pop(key, None)
        latest[key] = label
    return [label for label in latest.values() if not label.withdrawn]
