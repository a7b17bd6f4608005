"""A labelling session of the terminal or the viewer: the drawn outputs, what people see of them, and their labels."""

from __future__ import annotations

import getpass
import uuid
from collections.abc import Iterable
from typing import Any

from proctor.core.clock import SystemClock
from proctor.errors import UsageError
from proctor.ports import History
from proctor.records.label import HumanLabel, LabelledItem, Strategy
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult
from proctor.validity.drawing import CRITERIA, DrawnOutput, JudgedOutput, digest_evaluator, draw, list_judged_outputs


def user_name() -> str:
    """Return the name of the user, the default annotator."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "annotator"


def require_outputs(run: RunMetadata, results: Iterable[EvalResult], evaluator: str) -> list[JudgedOutput]:
    """Return the outputs on which an evaluator, or all together (""), has a verdict; raise an error without any."""
    outputs = list(list_judged_outputs(run.run_id, results, evaluator))
    if not outputs:
        raise UsageError(
            f"run {run.run_id} has no output with a verdict of {evaluator or 'its evaluators'}",
            fix=f"see why: proctor show {run.run_id}",
        )
    return outputs


class LabelSession:
    """The outputs drawn for one question, the same for every annotator, and the labels that are added to them."""

    def __init__(
        self,
        history: History,
        run: RunMetadata,
        results: Iterable[EvalResult],
        evaluator: str,
        strategy: Strategy,
        size: int,
        seed: int = 0,
    ) -> None:
        self._history = history
        self.run, self.evaluator, self.strategy = run, evaluator, strategy
        self._digest = digest_evaluator(run, evaluator)
        self.drawn = draw(require_outputs(run, results, evaluator), strategy, size, seed)

    def find_labels(self, annotator: str) -> dict[LabelledItem, HumanLabel]:
        """Return the labels that an annotator gave to the drawn outputs, oldest first."""
        digests = {each.output.item: ("", each.output.output_digest) for each in self.drawn}
        labels = self._history.labels(run_id=self.run.run_id, evaluator=self.evaluator)
        # A resumed run may have replaced an output since it was labelled.
        return {
            label.item: label
            for label in labels
            if label.annotator == annotator and label.output_digest in digests.get(label.item, ())
        }

    def store(self, drawn: DrawnOutput, annotator: str, *, comment: str = "", **verdict: Any) -> None:
        """Store a label: `passed`, `skipped`, or `withdrawn`, which takes the annotator's last label back."""
        label = HumanLabel(
            **drawn.output.item._asdict(),
            **verdict,
            label_id=uuid.uuid4().hex,
            labelled_at=SystemClock().now(),
            comment=comment,
            annotator=annotator,
            strategy=self.strategy,
            probability=drawn.probability,
            evaluator_digest=self._digest,
            output_digest=drawn.output.output_digest,
        )
        self._history.add_labels([label])

    def list_texts(self, drawn: DrawnOutput) -> list[tuple[str, Any]]:
        """Return what an annotator sees of an output, each with its title; never a verdict."""
        item = drawn.output.item
        results = self._history.results(item.run_id).for_sample(item.sample_id)
        trial = next(
            r.trial for r in results if (r.trial.configuration, r.trial.epoch) == (item.configuration, item.epoch)
        )
        specs = [spec for spec in self.run.evaluators if spec.name == self.evaluator]
        questions = [spec.parameters[key] for spec in specs for key in CRITERIA if key in spec.parameters]
        sample = trial.sample
        texts = [("question", questions[0] if questions else None), ("input", sample.input)]
        texts += [("context", sample.context), ("expected", sample.expected)]
        return [*((title, value) for title, value in texts if value is not None), ("output", trial.output)]
