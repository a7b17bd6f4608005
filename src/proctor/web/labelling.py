"""The labelling page of the viewer: one output at a time without its verdict, and the cards that the labels make."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from proctor.errors import ConfigError, HistoryError, UsageError
from proctor.ports import History
from proctor.records.label import Strategy
from proctor.records.run import RunMetadata
from proctor.validity.describe_card import list_cards
from proctor.validity.drawing import DrawnOutput, digest_output
from proctor.validity.labelling import LabelSession
from proctor.wiring.compare_runs import open_report

MAX_SESSIONS = 8
VERDICTS: dict[str, dict[str, bool]] = {"pass": {"passed": True}, "fail": {"passed": False}, "skip": {"skipped": True}}


class LabelSettings(msgspec.Struct, frozen=True):
    """Who labels which outputs; the same settings continue a session, also one of the terminal."""

    annotator: Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"^\S(.*\S)?$")]
    evaluator: str = ""
    strategy: Strategy = "random"
    size: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 50
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0


class LabelChange(LabelSettings, frozen=True, kw_only=True):
    """A label for the output with the id `item`, or the annotator's last label to take back."""

    action: Literal["pass", "fail", "skip", "undo"]
    item: str = ""
    comment: Annotated[str, msgspec.Meta(max_length=10_000)] = ""


class LabelPages:
    """Answers the requests of the labelling page. A verdict is never part of an answer."""

    def __init__(self, history: History, annotator: str) -> None:
        self._history, self._annotator = history, annotator
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[Any, ...], LabelSession] = OrderedDict()

    def list_choices(self, reference: str) -> dict[str, Any]:
        """Describe what can be labelled in a run, and who labelled how much of it."""
        run = self._find_run(reference)
        counts = Counter((label.evaluator, label.annotator) for label in self._history.labels(run_id=run.run_id))
        names = {"": [], **{spec.name: list(spec.judges_inside) for spec in run.evaluators}}
        return {
            "run_id": run.run_id,
            "name": run.name,
            "annotator": self._annotator,
            "strategies": get_args(Strategy),
            "evaluators": [{"name": name, "judges": judges} for name, judges in names.items()],
            "labelled": [
                {"evaluator": evaluator, "annotator": annotator, "n": n}
                for (evaluator, annotator), n in sorted(counts.items())
            ],
        }

    def show_next(self, reference: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the first drawn output that the annotator has not labelled."""
        try:
            settings = msgspec.convert(dict(query), LabelSettings, strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"the settings of the session are wrong: {error}", fix="choose them again") from None
        with self._lock:
            return self._describe(self._open(reference, settings), settings.annotator)

    def change(self, reference: str, body: bytes) -> dict[str, Any]:
        """Store a label or take the last one back, and return the output to label next."""
        try:
            change = msgspec.json.decode(body, type=LabelChange)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"the request is not a label: {error}", fix="reload the page") from None
        with self._lock:
            session = self._open(reference, change)
            try:
                return self._undo(session, change) if change.action == "undo" else self._label(session, change)
            except HistoryError as error:
                fix = "make the file writable, or copy it to a writable folder and view the copy: --history FILE"
                raise HistoryError(f"the label was not stored: {error.what}", where=error.where, fix=fix) from error

    def list_cards(self, reference: str) -> dict[str, Any]:
        """Return the cards of a run's judges and of its labelled evaluators."""
        run = self._find_run(reference)
        return {"cards": list_cards(self._history, run)}

    def _find_run(self, reference: str) -> RunMetadata:
        run = open_report(reference, self._history).report.metadata
        if run is None:
            raise ConfigError(f"run {reference} has no metadata", fix="choose another run: proctor runs")
        return run

    def _open(self, reference: str, settings: LabelSettings) -> LabelSession:
        key = reference, settings.evaluator, settings.strategy, settings.size, settings.seed
        if key in self._sessions:
            self._sessions.move_to_end(key)
            return self._sessions[key]
        opened = open_report(reference, self._history)
        run, results = self._find_run(reference), opened.report.results
        if opened.configuration is not None:
            results = results.for_configuration(opened.configuration)
        session = LabelSession(self._history, run, results, *key[1:])
        # Other references may mean another run later, and other runs may get more outputs.
        if run.status == "completed" and reference.startswith(run.run_id):
            self._sessions[key] = session
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return session

    def _label(self, session: LabelSession, change: LabelChange) -> dict[str, Any]:
        drawn = next((each for each in session.drawn if _identify(each) == change.item), None)
        if drawn is None:
            raise UsageError("this output is not part of the draw, or has changed", fix="reload the page")
        session.store(drawn, change.annotator, comment=change.comment.strip(), **VERDICTS[change.action])
        return self._describe(session, change.annotator)

    def _undo(self, session: LabelSession, change: LabelChange) -> dict[str, Any]:
        labels = session.find_labels(change.annotator)
        if not labels:
            raise UsageError("there is no label to take back", fix="label an output first")
        item, label = labels.popitem()
        index = next(index for index, each in enumerate(session.drawn) if each.output.item == item)
        session.store(session.drawn[index], change.annotator, withdrawn=True)
        return self._describe(session, change.annotator, index) | {"comment": label.comment}

    def _describe(self, session: LabelSession, annotator: str, index: int | None = None) -> dict[str, Any]:
        labels = session.find_labels(annotator)
        if index is None:
            remaining = (i for i, each in enumerate(session.drawn) if each.output.item not in labels)
            index = next(remaining, None)
        skipped = sum(label.skipped for label in labels.values())
        counts = {"total": len(session.drawn), "labelled": len(labels) - skipped, "skipped": skipped}
        page: dict[str, Any] = {**counts, "output": None, "comment": ""}
        if index is None:
            return page
        drawn = session.drawn[index]
        texts = [{"title": title, "value": value} for title, value in session.list_texts(drawn)]
        output = {"id": _identify(drawn), "sample_id": drawn.output.item.sample_id, "texts": texts}
        return page | {"output": output | {"position": index + 1}}


def _identify(drawn: DrawnOutput) -> str:
    """Return an id of an output that names neither its configuration nor its verdict."""
    return digest_output([*drawn.output.item, drawn.output.output_digest])
