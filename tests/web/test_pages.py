"""What the pages of the viewer contain, as the client reads it."""

from __future__ import annotations

import base64
from array import array
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import Sample, Score, SQLiteHistory, evaluate
from proctor.comparison.report import EvalReport
from proctor.core.stats.intervals import wilson_interval
from proctor.errors import ProctorError, RunNotFound, UsageError
from proctor.records import codec
from proctor.records.metric import MetricValue, Trend, TrendPoint
from proctor.records.results import Counts, ResultList
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.trial import OUTCOMES, Configuration, EvalResult, Failure, Trial
from proctor.reports.html import list_pages
from proctor.reports.pages.judging import judges_page, rubrics_page
from proctor.reports.pages.runs import count_bins, overview_page, summarize_run, trend_page
from proctor.reports.pages.samples import preview
from proctor.web.pages import Pages
from tests.web.example import MARKUP, QUESTIONS, answer, make_history, right, short


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return Pages(make_history(tmp_path_factory.mktemp("view") / "h.db"))


def get(pages: Pages, path: str, **query: str) -> Any:
    """The page as JSON, as the client gets it."""
    return msgspec.json.decode(codec.encode(pages.answer(path, query)))


@pytest.fixture(scope="module")
def run_id(pages: Pages) -> str:
    """The run with two configurations."""
    [run] = [run for run in get(pages, "runs")["runs"] if len(run["configurations"]) == 2]
    return str(run["run_id"])


def test_runs_are_listed_with_their_numbers(pages: Pages) -> None:
    """Newest first, with counts, intervals and costs for each configuration."""
    runs = get(pages, "runs")["runs"]
    assert [(run["name"], run["finished"]) for run in runs] == [("other", 2), ("exam", 10), ("exam", 10)]
    assert runs[1]["tags"] == {"v": MARKUP}
    assert runs[2]["counts"] == {"passed": 5, "failed": 3, "error": 2, "unscored": 0, "skipped": 0}
    metrics = runs[2]["metrics"]
    assert (metrics["small"]["pass_rate"]["value"], metrics["medium"]["pass_rate"]["value"]) == (0.5, 0.75)
    assert metrics["small"]["pass_rate"]["n"] == 4
    low, high = metrics["small"]["pass_rate"]["interval"]
    assert 0 < low < 0.5 < high < 1
    assert metrics["small"]["cost"]["value"] == pytest.approx(4 * 0.0002)


def test_a_run_has_sentences_distributions_and_errors(pages: Pages, run_id: str) -> None:
    """The answer comes first; what needs a look at every result comes with the overview."""
    page = get(pages, f"runs/{run_id}")
    assert [each["name"] for each in page["evaluators"]] == ["right", "short"]
    page |= get(pages, f"runs/{run_id}/overview")
    assert page["sentences"][0].startswith("small: 2 of 4 judged passed (50.0%")
    [right, short] = page["evaluators"]
    assert (right["name"], right["counts"]["medium"]) == (
        "right",
        {"passed": 3, "failed": 1, "errors": 1, "skipped": 0},
    )
    assert sum(right["histogram"]["small"]["counts"]) == 4
    assert short["histogram"]["small"]["edges"][0] == 0.0
    assert page["errors"] == [{"kind": "ValueError", "count": 2, "example": "broken: it breaks"}]


def test_the_grid_has_one_cell_for_each_result(pages: Pages, run_id: str) -> None:
    """Cells are ordered by sample, configuration and epoch."""
    grid = get(pages, f"runs/{run_id}/grid")
    assert grid["sample_ids"] == ["capital", "fish", "hebrew", "broken", MARKUP]
    assert (grid["configurations"], grid["epochs"]) == (["small", "medium"], 1)
    outcomes = [OUTCOMES[mark] for mark in base64.b64decode(grid["outcomes"])]
    assert outcomes[:8] == ["passed", "passed", "failed", "passed", "passed", "passed", "error", "error"]
    assert grid["numbers"] == ["latency", "tokens", "cost"]
    latencies = array("f", base64.b64decode(get(pages, f"runs/{run_id}/numbers", column="latency")["numbers"]))
    assert latencies[0] == 12.5
    scores = array("f", base64.b64decode(get(pages, f"runs/{run_id}/scores", evaluator="right")["scores"]))
    assert list(scores[:4]) == [1.0, 1.0, 0.0, 1.0]


def test_metadata_is_a_column_for_each_key(pages: Pages, run_id: str) -> None:
    """Tags are keys of their own, and values are text."""
    keys = {each["key"]: each["values"] for each in get(pages, f"runs/{run_id}/metadata")["keys"]}
    assert keys == {"level": 1, "tags.rtl": 1, "topic": 4}
    column = get(pages, f"runs/{run_id}/metadata", key="topic")
    codes = array("H", base64.b64decode(column["codes"]))
    assert [column["values"][code] for code in codes] == ["places", "moons", "places", "faults", MARKUP]
    level = get(pages, f"runs/{run_id}/metadata", key="level")
    assert list(array("H", base64.b64decode(level["codes"]))) == [65535, 65535, 65535, 0, 65535]


def test_rows_show_the_start_of_each_text_and_why_it_failed(pages: Pages, run_id: str) -> None:
    """In the order asked for; unknown rows are left out."""
    rows = get(pages, f"runs/{run_id}/rows", at="3,1,99")["rows"]
    assert [row["sample_id"] for row in rows] == ["broken", "fish"]
    assert rows[0]["cells"][0]["error"] == "ValueError: it breaks"
    small, medium = rows[1]["cells"]
    assert (small["output"], small["evaluator"], small["reason"]) == ("Seven fish", "right", "expected 'unknown'")
    assert (medium["cell"], medium["output"], "reason" in medium) == (3, "unknown", False)


def test_a_sample_has_all_its_results_and_sessions(pages: Pages, run_id: str) -> None:
    """An id may contain anything, also a slash."""
    page = get(pages, f"runs/{run_id}/samples/{MARKUP}")
    assert page["sample"]["input"] == MARKUP
    assert [result["configuration"] for result in page["results"]] == ["small", "medium"]
    message, call = page["results"][0]["session"]["events"]
    assert (message["type"], message["role"], call["type"], call["name"]) == ("message", "user", "tool_call", "search")
    assert page["results"][0]["scores"]["right"]["reason"] == "expected 'safe'"
    with pytest.raises(RunNotFound, match="has no sample 'x'"):
        get(pages, f"runs/{run_id}/samples/x")


@pytest.mark.parametrize("sample_id", ["..", ".", "a/b", "a\u202eb?c=d&e#f"])
def test_every_id_can_be_read(tmp_path: Path, sample_id: str) -> None:
    """As a query, because a browser changes paths such as `samples/..`; the path still works."""
    history = SQLiteHistory(tmp_path / "h.db")
    evaluate(lambda text: text, [{"id": sample_id, "input": "x"}], "json_validity", history=history, progress=False)
    pages = Pages(history)
    assert get(pages, "runs/latest/sample", id=sample_id)["sample"]["id"] == sample_id
    assert get(pages, f"runs/latest/samples/{sample_id}")["sample"]["id"] == sample_id


def test_latencies_are_counted_as_in_their_mean() -> None:
    """A failed call is no answer, and in neither."""
    run = RunMetadata("r", "r", datetime(2026, 1, 1, tzinfo=UTC), "completed", configurations=(Configuration(),))
    results = [
        EvalResult(Trial(Sample("s1", "?"), "!", latency_ms=5.0)),
        EvalResult(Trial(Sample("s2", "?"), "!", latency_ms=50.0)),
        EvalResult(Trial(Sample("s3", "?"), error=Failure("TimeoutError", "late"), latency_ms=0.25)),
    ]
    latency = overview_page(EvalReport(results, run), ResultList(results).grid())["latency"]["default"]
    assert (sum(latency["counts"]), latency["edges"][0]) == (2, pytest.approx(5.0))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SEVEN FISH", ["fish"]),
        ("it breaks", ["broken"]),
        ("expected 'safe'", [MARKUP]),
        ("צרפת", ["hebrew"]),
        ("places", ["capital", "hebrew"]),
        ("configuration", []),
        ('"', []),
    ],
)
def test_a_search_finds_texts_and_not_the_names_of_fields(
    pages: Pages, run_id: str, text: str, found: list[str]
) -> None:
    """In inputs, outputs, expected values, reasons, errors and metadata, regardless of case."""
    page = get(pages, f"runs/{run_id}/search", text=text)
    ids = get(pages, f"runs/{run_id}/grid")["sample_ids"]
    assert (page["cursor"], [ids[row] for row in page["rows"]]) == (None, found)


def test_two_configurations_are_compared(pages: Pages, run_id: str) -> None:
    """With the answer first, the flips, and the option that differs."""
    page = get(pages, "compare", a=f"{run_id}@medium", b=f"{run_id}@small")
    assert page["comparison"]["answer"].startswith("Not enough evidence that medium and small differ")
    assert [flip["sample_id"] for flip in page["comparison"]["flips"]] == ["fish"]
    # Both answer the capital and the Hebrew question; the error and the markup fail in both.
    assert page["counts"] == {"both": 2, "lost": 0, "won": 1, "neither": 2}
    units = {delta["name"]: delta["unit"] for delta in page["deltas"]}
    assert (units["pass_rate"], units["latency_ms.mean"], units["cost.mean"]) == ("", "ms", "USD")
    assert page["changes"] == [{"what": "configuration", "same": False, "text": "size: 'small' → 'medium'"}]
    slices = get(pages, "compare", a=f"{run_id}@medium", b=f"{run_id}@small", by="topic")["comparison"]["slices"]
    assert {part["label"]: part["samples"] for part in slices["slices"]} == {
        "places": 2,
        "moons": 1,
        "faults": 1,
        MARKUP: 1,
    }
    with pytest.raises(ProctorError, match="2 configurations"):
        get(pages, "compare", a=run_id, b=run_id)


def test_a_metric_is_shown_by_slice(pages: Pages, run_id: str) -> None:
    """With the number of samples and an interval for each configuration."""
    page = get(pages, f"runs/{run_id}/slices", by="topic")
    assert [(each["value"], each["n"]) for each in page["slices"]][:2] == [("places", 2), (MARKUP, 1)]
    places = page["slices"][0]["metrics"]["medium"]
    assert (places["value"], places["n"]) == (1.0, 2)
    assert (page["total"]["small"]["value"], page["total"]["small"]["n"]) == (0.5, 4)
    assert get(pages, f"runs/{run_id}/slices", by="tags.rtl")["key"] == "tags"


def test_judges_are_compared_with_the_other_evaluators(pages: Pages, run_id: str) -> None:
    """Every two evaluators: how often both have a verdict and agree; four samples are too few for an interval."""
    page = get(pages, f"runs/{run_id}/judges")
    [pair] = page["pairs"]
    assert (pair.pop("interval"), "fewer than 5 clusters" in pair.pop("note")) == (None, True)
    assert pair == {
        "a": "right", "b": "short", "n": 8, "samples": 4, "agree": 7, "only_a_passed": 0, "only_b_passed": 1
    }  # fmt: skip
    assert (page["judges"], page["disagreements"], page["share"]["n"]) == ({}, [], 0)


def test_several_results_of_a_sample_are_no_independent_evidence_of_a_judge() -> None:
    """Ten samples judged twice: the interval of the agreement is wider than that of twenty independent results."""
    specs = EvaluatorSpec("exact", "exact_match"), EvaluatorSpec("judge", "llm_judge", {"model": "example:judge"})
    names = Configuration("a"), Configuration("b")
    run = RunMetadata("r", "r", datetime(2026, 1, 1, tzinfo=UTC), "completed", evaluators=specs, configurations=names)
    passed, failed = Score(1.0, True), Score(0.0, False)
    results = [
        EvalResult(
            Trial(Sample(f"s{n}", "?"), "!", configuration=name.name),
            {"exact": passed, "judge": passed if n < 8 else failed},
        )
        for n in range(10)
        for name in names
    ]
    report = EvalReport(results, run)
    page = judges_page(report, report.results.grid())
    [pair] = page["pairs"]
    assert (pair["n"], pair["samples"], pair["agree"], page["count"]) == (20, 10, 16, 4)
    low, high = pair["interval"]
    independent = wilson_interval(16, 20)
    assert independent is not None
    assert high - low > independent[1] - independent[0]
    assert page["share"]["interval"] == pytest.approx((1 - high, 1 - low))


def test_a_rescored_run_is_no_point_of_a_trend() -> None:
    """It has the outputs of another run; it is shown, and marked, only if it is asked for."""
    first = RunMetadata("a", "n", datetime(2026, 1, 1, tzinfo=UTC))
    runs = [first, msgspec.structs.replace(first, run_id="b", rescored_from="a")]
    points = Trend("pass_rate", tuple(TrendPoint(r.started_at, r.run_id, "default", 0.5, 4, None, "n") for r in runs))
    page = trend_page(points, runs, ["pass_rate"])
    assert ([point["run_id"] for point in page["points"]], page["rescored"]) == (["a"], 1)
    marked = trend_page(points, runs, ["pass_rate"], with_rescored=True)["points"]
    assert [point.get("rescored_from") for point in marked] == [None, "a"]


def test_sessions_are_shown_by_rubric(tmp_path: Path) -> None:
    """On the scale of each rubric, with a weighted total; a missing score is None."""
    rubrics: list[dict[str, Any]] = [
        {"id": name, "name": name.title(), "description": "d", "scoring_criteria": "c", "weight": weight}
        for name, weight in (("clear", 1.0), ("right", 3.0))
    ]
    specs = tuple(EvaluatorSpec(each["id"], "rubric", {"rubric": each, "scale": [1, 5]}) for each in rubrics)
    run = RunMetadata("r", "r", datetime(2026, 1, 1, tzinfo=UTC), "completed", evaluators=specs)
    scores = {"clear": Score(0.5, True), "right": Score(1.0, True)}
    results = [
        EvalResult(Trial(Sample("s1", "?"), "!"), scores),
        EvalResult(Trial(Sample("s2", "?"), "!"), {**scores, "right": Score.error("no verdict")}),
    ]
    page = rubrics_page(EvalReport(results, run), ResultList(results).grid())
    assert [(each["id"], each["name"], each["weight"]) for each in page["rubrics"]] == [
        ("clear", "Clear", 1.0),
        ("right", "Right", 3.0),
    ]
    assert page["scores"] == [[3.0, 5.0], [3.0, None]]
    assert page["totals"] == [4.5, 3.0]


def test_the_evaluators_are_listed(pages: Pages) -> None:
    """With their parameters, as in the catalogue."""
    names = {each["name"] for each in get(pages, "evaluators")["evaluators"]}
    assert {"exact_match", "llm_judge"} <= names


def test_a_trend_names_what_changed(pages: Pages) -> None:
    """Between two runs of one name."""
    page = get(pages, "trends", metric="pass_rate", name="exam")
    assert [point["value"] for point in page["points"]] == [0.5, 0.75, 0.5]
    assert page["names"] == ["other", "exam"]
    assert "mean_score" in page["metrics"]


@pytest.mark.parametrize(
    ("path", "query", "text"),
    [
        ("nothing", {}, "unknown page 'nothing'"),
        ("runs/latest/nothing", {}, "unknown page 'nothing'"),
        ("runs/latest/numbers", {"column": "latncy"}, "unknown column 'latncy'"),
        ("runs/latest/scores", {}, "the query has no 'evaluator'"),
        ("runs/latest/scores", {"evaluator": "rigth"}, "unknown evaluator 'rigth'"),
        ("runs/latest/metadata", {"key": "topics"}, "unknown metadata key 'topics'"),
        ("runs/latest/rows", {"at": "-1"}, "a row must be a whole number"),
        ("compare", {"a": "latest"}, "the query has no 'b'"),
    ],
)
def test_a_faulty_request_names_its_fault(pages: Pages, path: str, query: dict[str, str], text: str) -> None:
    """The client shows the message."""
    with pytest.raises(UsageError, match=text):
        pages.answer(path, query)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        ("a\n  b", "a b"),
        ({"a": 1}, '{"a":1}'),
        ("x" * 400, "x" * 299 + "…"),
        (b"\x00\x01", None),
        ([{"type": "text", "text": "See:"}, {"type": "image", "source": {"data": "A" * 900}}], "See: [image]"),
        ([{"type": "text", "text": "See:"}], '[{"type":"text","text":"See:"}]'),
    ],
)
def test_a_preview_is_one_short_line(value: Any, shown: str | None) -> None:
    """Of any value."""
    text = preview(value)
    assert len(text) <= 300
    assert "\n" not in text
    if shown is not None:
        assert text == shown


def test_bins_count_every_value_once() -> None:
    """At the ends too, and on both scales."""
    assert sum(count_bins(array("d", [0.0, 0.5, 1.0]), low=0.0, high=1.0)["counts"]) == 3
    bins = count_bins(array("d", [1.0, 10.0, 100.0]), logarithmic=True)
    assert (sum(bins["counts"]), bins["counts"][0], bins["counts"][-1]) == (3, 1, 1)
    assert bins["edges"][10] == pytest.approx(10.0)
    assert count_bins(array("d", [3.0, 3.0]))["counts"][0] == 2
    assert count_bins(array("d"))["counts"] == []


def test_a_run_in_progress_is_read_again(tmp_path: Path) -> None:
    """More results appear without a restart."""
    from tests.history.history_contract import make_result, make_run, store_run

    history = make_history(tmp_path / "h.db")
    store_run(history, make_run("live", hours=10_000), [make_result("a")])
    view = Pages(history)
    with history.claim("live"):
        assert get(view, "runs/live")["summary"]["finished"] == 1
        with history.writer("live") as writer:
            writer.add(1, make_result("b"))
        assert get(view, "runs/live/grid")["sample_ids"] == ["a", "b"]
        assert get(view, "runs")["runs"][0]["status"] == "running"


def test_a_rescored_run_lists_the_usage_of_its_judges_only() -> None:
    """The tokens and the cost of the outputs belong to the run that made them."""
    first = RunMetadata("a", "exam", datetime(2026, 1, 1, tzinfo=UTC))
    table = {
        "cost.total": MetricValue(2.0, 1), "judges.cost": MetricValue(0.5, 1), "tokens.total": MetricValue(100.0, 1)
    }  # fmt: skip
    runs = [first, msgspec.structs.replace(first, rescored_from="b")]
    listed = [summarize_run(run, {"default": table}, Counts())["metrics"]["default"] for run in runs]
    assert [metrics["cost"]["value"] for metrics in listed] == [2.0, 0.5]
    assert ["tokens" in metrics for metrics in listed] == [True, False]


def test_a_pair_has_one_verdict_on_every_page(tmp_path: Path) -> None:
    """The page of the run, the comparison and the one-file report correct for the same number of tests."""
    sizes = {size: {"size": size} for size in ("small", "medium", "large")}
    history = SQLiteHistory(tmp_path / "h.db")
    options: Any = {"configurations": sizes, "baseline": "small", "history": history, "progress": False}
    report = evaluate(answer, QUESTIONS, [right, short], **options)
    pages = Pages(history)
    embedded = dict(list_pages(report))["compare"]
    for shown in get(pages, f"runs/{report.run_id}/comparisons"):
        for a, b in ((shown["a"], shown["b"]), (shown["b"], shown["a"])):
            page = get(pages, "compare", a=f"{report.run_id}@{a}", b=f"{report.run_id}@{b}")["comparison"]
            [in_file] = [c for each in embedded if ((c := each["comparison"]).a, c.b) == (a, b)]
            assert page["tests"] == in_file.tests > 0
            if a == shown["a"]:
                assert page["answer"] == shown["answer"]
    with pytest.raises(ProctorError, match="are the same run"):
        get(pages, "compare", a=f"{report.run_id}@small", b=f"{report.run_id}@small")


def test_a_deleted_run_has_no_pages(tmp_path: Path) -> None:
    """Also if it was opened before."""
    history = SQLiteHistory(tmp_path / "h.db")
    run_id = evaluate(answer, QUESTIONS, [right], history=history, progress=False).run_id
    pages = Pages(history)
    get(pages, f"runs/{run_id}/grid")
    history.delete(run_id)
    for path in ("", "/grid", "/rows", "/metadata", "/judges"):
        with pytest.raises(RunNotFound):
            get(pages, f"runs/{run_id}{path}")
