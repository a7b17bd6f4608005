"""What somebody who sees the pages for the first time must be able to tell from them, in a real browser."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from proctor import Reply, Usage, evaluate, llm_judge
from proctor.history.sqlite import SQLiteHistory
from proctor.records.results import Counts, ResultList
from proctor.records.run import Provenance, RunMetadata
from proctor.records.trial import Configuration
from proctor.reports.comparison import render_comparison
from proctor.reports.pages.comparisons import _describe_targets
from proctor.reports.pages.runs import estimate_so_far
from proctor.reports.pages.samples import IMAGE_TYPES
from proctor.web.pages import Pages
from proctor.web.server import CLIENT
from tests.web.browser import Window, serving
from tests.web.rich_history import PLANS, make_image
from tests.web.rich_history import store as store_plan

SAMPLES = [{"id": f"s{n:02}", "input": str(n), "expected": f"<{n}>"} for n in range(12)]


def answer(text: str, polite: bool = False) -> Reply:
    """Raise for s09; else an answer around the expected value, and always 17 tokens more if it is polite."""
    if text == "9":
        raise ValueError("no route")
    right = f"the answer is <{text}>" if int(text) % 2 else "unknown"
    return Reply(right, usage=Usage(10 + 17 * polite, 1))


def praise(prompt: str) -> str:
    return prompt.rpartition("\n")[2].partition("<")[0] + "good"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> SQLiteHistory:
    """Two runs of one name, one with another evaluator and name, and one with two configurations and a judge."""
    history = SQLiteHistory(tmp_path_factory.mktemp("reader") / "h.db")
    options: dict[str, Any] = {"history": history, "progress": False}
    for name, evaluators in (("qa", ["contains"]), ("qa", ["contains"]), ("noisy", ["contains", "exact_match"])):
        evaluate(answer, SAMPLES, evaluators, name=name, **options)
    settings = {"default": {}, "polite": {"polite": True}}
    judges = {"judge": llm_judge(praise, "Is it right?")}
    evaluate(answer, SAMPLES, judges, name="tones", configurations=settings, **options)
    history.set_baseline("main", history.runs()[-1].run_id)
    return history


@pytest.mark.parametrize("sample", ["s09", "s07", "s02"])
def test_a_sample_shows_its_expected_value(window: Window, ids: list[str], sample: str) -> None:
    """If the target failed, if the output contains it, and if the output has nothing in common with it."""
    page = window.open(f"/#/runs/{ids[0]}?tab=samples&sample={sample}")
    panel = page.get_by_role("complementary")
    section = panel.locator("section").filter(has=page.get_by_role("heading", name="Expected", exact=True))
    assert section.locator(".quotation").inner_text() == f"<{int(sample[1:])}>"
    assert panel.get_by_text("− expected", exact=True).count() == 0
    assert panel.get_by_role("combobox", name="Difference from").count() == (0 if sample == "s09" else 1)


def test_runs_are_named_in_a_comparison(window: Window, ids: list[str]) -> None:
    """By their names; what makes them incomparable is said once, and the flips do not hide it."""
    page = window.open(f"/#/compare?a={ids[2]}%40default&b={ids[0]}%40default", width=390)
    text = page.inner_text("main")
    assert "noisy and qa were not scored by the same evaluators" in text
    assert text.count("only noisy has the evaluator exact_match") == 1
    # The six odd samples pass in qa, except for the error.
    assert "0 samples passed only in noisy, 5 only in qa; the evaluators differ, so this does not show" in text
    assert [run_id for run_id in ids if run_id in text] == []
    assert page.get_by_role("columnheader", name="noisy passes").count() == 1


def test_runs_of_one_name_have_the_end_of_their_ids(history: SQLiteHistory, ids: list[str]) -> None:
    """So that a sentence about both can be read; two configurations of one run need no name of the run."""
    names = {
        (ids[1], ids[0]): (f"qa {ids[1][-6:]}", f"qa {ids[0][-6:]}"),
        (f"{ids[3]}@polite", ids[0]): ("tones@polite", "qa"),
        (f"{ids[3]}@polite", f"{ids[3]}@default"): ("polite", "default"),
    }
    for (a, b), labels in names.items():
        comparison = Pages(history).answer("compare", {"a": a, "b": b})["comparison"]
        assert (comparison.a, comparison.b) == labels


def test_the_choices_of_a_comparison_can_be_told_apart(window: Window, ids: list[str]) -> None:
    """Runs of one name and minute differ by the end of their ids; the pass rate and the baseline are there."""
    choices = window.open("/#/compare").get_by_label("Old").locator("option").all_inner_texts()
    assert len(set(choices)) == len(choices) == 6
    assert f"qa · default · {ids[0][-6:]} · baseline main · 45.5% (95% 21.3–72.0%) of 11 passed · " in choices[-1]


def test_a_difference_without_spread_says_so(window: Window, ids: list[str]) -> None:
    """17 more tokens in every sample are worse, although they have no interval; the option has no recorded default."""
    page = window.open(f"/#/compare?a={ids[3]}%40polite&b={ids[3]}%40default")
    row = page.get_by_role("row").filter(has_text="+17").inner_text()
    assert ("+17 tokens in every sample" in row or "+17 in every sample" in row, "worse" in row) == (True, True)
    assert "no interval" not in page.inner_text("main")
    assert "polite: the default → True" in page.inner_text("main")


def test_a_percentile_without_interval_says_how_many_values_it_needs(window: Window, ids: list[str]) -> None:
    """The lowest n with 95% between two ranks of the 95th percentile is 72: 0.95**72 < 0.025."""
    page = window.open(f"/#/runs/{ids[0]}")
    page.get_by_text("fewer than 72 values", exact=True).wait_for()


@pytest.mark.parametrize("width", [390, 1440])
def test_squares_do_not_touch_their_numbers(window: Window, ids: list[str], width: int) -> None:
    """All eleven judged samples pass in both configurations: the largest square there is."""
    page = window.open(f"/#/compare?a={ids[3]}%40polite&b={ids[3]}%40default", width=width)
    page.locator(".flip-cell.both").wait_for()
    gap = """(cell) => cell.querySelector(".flip-count").getBoundingClientRect().left
        - cell.querySelector(".flip-area").getBoundingClientRect().right"""
    assert page.locator(".flip-cell.both").evaluate(gap) >= 4


def test_a_card_has_one_link_and_only_its_command_is_code(window: Window, ids: list[str]) -> None:
    """The sentence around a command is set as a sentence."""
    page = window.open(f"/#/runs/{ids[3]}/judges")
    page.get_by_text("no card").wait_for()
    assert page.get_by_role("link", name="Label outputs").count() == 1
    script = """async (text) => {
      const { markCommand } = await import("/judges.js");
      return [markCommand(text)].flat().map((part) => (part.tagName === "CODE" ? [part.textContent] : part));
    }"""
    label, judge = "proctor label r-1 --evaluator 'my judge' --sample-size 30", "proctor judge next 2026-ab"
    assert page.evaluate(script, label) == ["", [label], ""]
    assert page.evaluate(script, f"improve it: {judge} lists outputs") == ["improve it: ", [judge], " lists outputs"]
    assert page.evaluate(script, "add samples") == ["add samples"]


def test_a_verdict_beside_an_interval_with_0_says_where_it_comes_from(shared_window: Window, tmp_path: Path) -> None:
    """Holm's test of the weakest of four slices decides (8 won and 1 lost of 20); its interval holds with the others.

    The terminal says it too, and the plots have numbers.
    """
    sides = {f"clear{slice_}-{n}": (True, n > 13) for slice_ in range(3) for n in range(20)}
    sides |= {f"weak-{n}": (n != 8, n >= 8) for n in range(20)}
    data = [{"id": name, "input": name, "metadata": {"topic": name.partition("-")[0]}} for name in sides]
    history = SQLiteHistory(tmp_path / "h.db")
    report = evaluate(
        lambda name, side: sides[name][side], data, {"right": lambda output: output}, progress=False, history=history,
        configurations={"new": {"side": 0}, "old": {"side": 1}},
    )  # fmt: skip
    comparison = report.compare("new", "old", by="topic")
    assert comparison.slices is not None
    delta = comparison.slices["weak"].deltas["pass_rate"]
    assert delta.interval is not None
    assert (delta.verdict, delta.interval[0] < 0) == ("better", True)
    assert delta.p_adjusted == pytest.approx(20 / 2**9)
    note = "if an interval includes 0 but the verdict is better or worse, the corrected p-value decided"
    assert note in " ".join(render_comparison(comparison).split())
    with serving(history) as address:
        window = Window(shared_window.page.context.browser, address)
        page = window.open(f"/#/compare?a={report.run_id}%40new&b={report.run_id}%40old&by=topic")
        remarks = page.locator("#s-slices .remark")
        remarks.first.wait_for()
        said = (
            "The verdict comes from the corrected test (p = 0.039, Holm); the interval is wider, so that all intervals"
        )
        assert [text.startswith(said) for text in remarks.all_inner_texts()] == [True]
        assert page.locator("#s-slices .axis").first.locator("text").all_text_contents() == ["−50", "+50"]
        assert page.locator("#s-differences .axis").first.locator("text").count() == 2
        window.page.context.close()
        assert window.problems == []


def test_an_image_of_a_sample_is_shown_as_a_picture(shared_window: Window, tmp_path: Path) -> None:
    """In the panel and on the page of labels; the grid has a word for it. Messages are shown as in a transcript."""
    picture = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": make_image()}}]
    messages = [{"role": "user", "content": picture}]
    history = SQLiteHistory(tmp_path / "h.db")
    data = [{"id": "parts", "input": picture}, {"id": "messages", "input": messages}]
    run = evaluate(lambda _: "a square", data, "json_validity", history=history, progress=False)
    with serving(history) as address:
        window = Window(shared_window.page.context.browser, address)
        for sample in ("parts", "messages"):
            page = window.open(f"/#/runs/{run.run_id}?tab=samples&sample={sample}")
            assert page.get_by_role("complementary").get_by_role("img", name="attached image").count() == 1
        assert page.get_by_text("What is this? [image]").count() == 1
        page = window.open(f"/#/label/{run.run_id}?annotator=ana")
        assert page.get_by_role("img", name="attached image").count() == 1
        window.page.context.close()
        assert window.problems == []


def test_plots_of_rubrics_have_numbers(shared_window: Window, tmp_path: Path) -> None:
    """One axis for each scale."""
    history = SQLiteHistory(tmp_path / "h.db")
    [plan] = (plan for plan in PLANS if plan.rubrics)
    store_plan(history, plan, "run-00", Random(1))
    with serving(history) as address:
        window = Window(shared_window.page.context.browser, address)
        page = window.open("/#/runs/run-00/rubrics")
        assert page.locator(".rubric-means .axis text").all_text_contents() == ["1", "2", "3", "4", "5"]
        window.page.context.close()
        assert window.problems == []


@pytest.mark.parametrize(
    ("a", "b", "texts"),
    [
        ({"command": ("proctor", "run", "--target", "new.py:f")}, {"command": ("proctor", "run", "--target=old.py:f")},
         ("new.py:f", "old.py:f")),
        ({"commit": "b" * 12}, {"commit": "a" * 12}, ("b" * 12, "a" * 12)),
        ({"commit": "a" * 12}, {}, ("the code of f, or code and constants that it uses",) * 2),
    ],
)  # fmt: skip
def test_a_changed_target_is_described_by_what_differs(
    history: SQLiteHistory, a: dict[str, Any], b: dict[str, Any], texts: tuple[str, str]
) -> None:
    """The address in the command line, or the commit; a fact that only one run has is no difference."""
    run = history.runs()[0]
    target = msgspec.structs.replace(run.target, name="f")

    def make_run(provenance: dict[str, Any]) -> RunMetadata:
        return msgspec.structs.replace(run, target=target, provenance=Provenance(**provenance))

    assert _describe_targets(make_run(a), make_run(b)) == texts


@pytest.mark.parametrize("width", [1440, 390])
def test_plots_of_latency_and_tokens_have_numbers_at_both_ends(window: Window, ids: list[str], width: int) -> None:
    """Below the rows of each metric, in its unit, also on a phone."""
    page = window.open(f"/#/runs/{ids[3]}", width=width)
    table = page.get_by_role("region", name="Latency, tokens and cost").locator("table")
    axes = table.locator(".axis-row").evaluate_all(
        "rows => rows.map(r => [...r.querySelectorAll('text')].map(t => t.textContent))"
    )
    groups = table.locator("tr.group").count()
    assert len(axes) == groups > 2
    assert all(len(ends) == 2 and ends[0].startswith(("0", "$0")) for ends in axes)


def test_a_run_in_progress_shows_its_rate_so_far(shared_browser: Any, tmp_path: Path) -> None:
    """With progress, interval and n; it does not count as an earlier rate of its name."""
    history = SQLiteHistory(tmp_path / "h.db")
    done = evaluate(answer, SAMPLES, "contains", name="qa", history=history, progress=False)
    assert done.metadata is not None
    run = msgspec.structs.replace(done.metadata, run_id="going", status="running", total=12)
    history.begin(run)
    with history.claim("going"):
        with history.writer("going") as writer:
            for position, result in enumerate(done.results[:5]):
                writer.add(position, result)
        [listed] = [each for each in Pages(history).answer("runs", {})["runs"] if each["run_id"] == "going"]
        with serving(history) as address:
            page = Window(shared_browser, address).open("/#/runs")
            row = page.locator("tbody", has=page.locator("[data-key=going]")).first.inner_text()
    assert listed["metrics"] == {"default": {}}
    assert (listed["so_far"]["default"]["value"], listed["so_far"]["default"]["n"]) == (0.4, 5)
    assert "running, 5 of 12 results" in row
    assert "of 5 so far" in row


def test_many_results_of_a_run_in_progress_are_only_counted() -> None:
    """The counts are those of the only configuration; of several, there is no rate."""
    counts, run = Counts(passed=15_000, failed=10_000, error=3), RunMetadata("r", "r", datetime(2026, 1, 1, tzinfo=UTC))
    one, two = (
        msgspec.structs.replace(run, configurations=tuple(map(Configuration, names))) for names in ("a", ("a", "b"))
    )
    rates = estimate_so_far(one, ResultList([]), counts)
    assert [(rate.value, rate.n, rate.errors, rate.interval) for rate in rates.values()] == [(0.6, 25_000, 3, None)]
    assert estimate_so_far(two, ResultList([]), counts) == {}


def test_images_have_the_same_types_on_the_server_and_in_the_client() -> None:
    """A part of a message that is an image in the grid is a picture in the transcript."""
    source = (CLIENT / "format.js").read_text(encoding="utf-8")
    assert f"const IMAGE_TYPES = {json.dumps(IMAGE_TYPES)};" in source
