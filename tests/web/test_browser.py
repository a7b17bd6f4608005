"""The viewer in a real browser: every page, the keyboard, narrow screens, and the one-file report."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from proctor import evaluate, llm_judge
from proctor.history.sqlite import SQLiteHistory
from proctor.reports.html import HTMLReporter
from proctor.validity.drawing import draw, list_judged_outputs
from tests.web.browser import Window, serving
from tests.web.rich_history import HEBREW, PLANS, make_history, store

SAMPLES = "/#/runs/run-03?tab=samples"
CONTROLS = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "tab"}
PAGES = {
    "runs": "/#/",
    "run": "/#/runs/run-03",
    "samples": "/#/runs/run-03?tab=samples",
    "sample": "/#/runs/run-03?tab=samples&sample=planets-1",
    "sample with an image": "/#/runs/run-03?sample=moons-0",
    "epochs": "/#/runs/run-04?tab=samples",
    "rubrics": "/#/runs/run-05/rubrics",
    "judges": "/#/runs/run-03/judges",
    "label": "/#/label/run-03?evaluator=judge",
    "labelled output": "/#/label/run-03?evaluator=judge&annotator=ana&size=10",
    "only errors": "/#/runs/run-06",
    "interrupted": "/#/runs/run-07",
    "compare": "/#/compare?a=run-03%40medium&b=run-03%40small",
    "compare two runs": "/#/compare?a=run-09%40small&b=run-08%40small",
    "trends": "/#/trends?name=observatory",
    "evaluators": "/#/evaluators",
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> SQLiteHistory:
    return make_history(tmp_path_factory.mktemp("browser") / "h.db")


@pytest.fixture(scope="module")
def report_file(history: SQLiteHistory, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the one-file report of the run with three configurations."""
    path = tmp_path_factory.mktemp("file") / "report.html"
    HTMLReporter().save(history.report("run-03"), path)
    return path.as_uri()


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_every_page_opens_and_fits(window: Window, path: str) -> None:
    """On a desk and on a phone, in light and dark; an audit finds nothing that keeps people from using it."""
    for width, scheme in ((1440, "light"), (390, "dark")):
        page = window.open(path, width=width, scheme=scheme)
        assert page.locator("main").inner_text().strip()
        assert page.locator(".state-error").count() == 0
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert (width, overflow) == (width, 0)
        assert find_unnamed_controls(page) == []
        assert find_barriers(page) == []


def find_barriers(page: Any) -> list[str]:
    """Run the rules of axe-core on a page."""
    audit = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    violations = audit.Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in violations for node in each["nodes"]]


def find_unnamed_controls(page: Any) -> list[str]:
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    return [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored") and node.get("role", {}).get("value") in CONTROLS
        if not node.get("name", {}).get("value", "").strip()
    ]


def test_which_questions_does_medium_solve_that_small_fails_in_three_clicks(window: Window) -> None:
    """The run, the cell of the won samples, and a sample with what each configuration said."""
    page = window.open("/")
    page.get_by_role("link", name="observatory").first.click()
    page.get_by_role("button", name="pass in medium only").click()
    # The answer of small is far off, that of medium is right.
    page.get_by_role("row").filter(has_text="million kilometres").filter(has_text="light years").first.click()
    text = page.get_by_role("complementary").inner_text()
    assert [word for word in ("small", "medium", "million kilometres") if word not in text] == []


def test_texts_are_found_and_the_address_keeps_the_search(window: Window) -> None:
    """A colleague who opens the link sees the same."""
    page = window.open(SAMPLES)
    page.get_by_placeholder("Search texts").fill("about comets")
    page.get_by_text("50 of 200 samples").first.wait_for()
    link = page.url.removeprefix(window.address)
    assert "comets" in link
    page = window.open(link)
    page.get_by_text("50 of 200 samples").first.wait_for()


def test_right_to_left_text_keeps_its_direction(window: Window) -> None:
    """A text decides about its own direction."""
    page = window.open("/#/runs/run-03?tab=samples&sample=probes-7")
    box = page.get_by_role("complementary").get_by_text(HEBREW).first
    box.wait_for()
    assert box.evaluate("node => getComputedStyle(node).direction") == "rtl"


def test_the_keyboard_is_enough(window: Window) -> None:
    """j and Enter open a sample, Escape closes it, ? lists the keys."""
    page = window.open(SAMPLES)
    page.get_by_role("row").nth(3).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("complementary").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("complementary").wait_for(state="hidden")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()


def test_the_one_file_report_opens_from_disk(browser: Any, report_file: str) -> None:
    """With samples, a search and a comparison, and without asking anybody."""
    window = Window(browser, report_file)
    page = window.open("")
    page.get_by_role("button", name="pass in medium only").click()
    page.get_by_role("row").filter(has_text="million kilometres").first.click()
    assert "Question" in page.get_by_role("complementary").inner_text()
    page = window.open(SAMPLES.removeprefix("/"))
    page.get_by_placeholder("Search texts").fill("about comets")
    page.get_by_text("50 of 200 samples").first.wait_for()
    page = window.open(PAGES["compare"].removeprefix("/"))
    assert "medium" in page.locator("h1").first.inner_text()
    assert window.problems == []


def test_a_comparison_of_runs_with_epochs_lists_its_samples(browser: Any, tmp_path: Path) -> None:
    """More than half of the epochs must pass; the pages of both configurations share one grid."""
    answers = {"good": ["yes"], "bad": ["no", "no", "yes"]}

    def answer(text: str, kind: str) -> str:
        return answers[kind][int(text) % len(answers[kind])]

    data = [{"id": f"s{n}", "input": str(n), "expected": "yes"} for n in range(12)]
    history = SQLiteHistory(tmp_path / "h.db")
    evaluate(
        answer,
        data,
        "exact_match",
        configurations={kind: {"kind": kind} for kind in answers},
        epochs=2,
        history=history,
    )
    path = tmp_path / "report.html"
    run = history.report("latest")
    HTMLReporter().save(run, path)
    window = Window(browser, path.as_uri())
    page = window.open(f"#/compare?a={run.run_id}%40good&b={run.run_id}%40bad")
    page.get_by_text("s11").first.wait_for()
    assert window.problems == []


def test_the_one_file_report_has_slices_rubrics_and_judges(
    browser: Any, history: SQLiteHistory, tmp_path: Path
) -> None:
    """The same pages as in the viewer."""
    path = tmp_path / "report.html"
    HTMLReporter().save(history.report("run-05"), path)
    window = Window(browser, path.as_uri())
    page = window.open("#/runs/run-05?by=topic")
    page.get_by_role("table", name="Pass rate by topic").wait_for()
    page = window.open("#/runs/run-05/rubrics")
    assert "correctness" in page.locator("main").inner_text()
    HTMLReporter().save(history.report("run-03"), path)
    page = window.open("#/runs/run-03/judges")
    assert "95% interval" in page.locator("main").inner_text()
    assert window.problems == []


LIVE_RUN = """
import pathlib, sys, time
from proctor import evaluate, llm_judge

folder = pathlib.Path(sys.argv[1])

def answer(question):
    (folder / f"{question}-asked").touch()
    while not (folder / question).exists():
        time.sleep(0.02)
    return question

def right(output):
    return True

samples = [{"id": name, "input": name} for name in ("first", "second")]
evaluate(answer, samples, [right], history=str(folder / "h.db"), name="live", concurrency=1, progress=False)
"""


def test_a_run_in_progress_updates_without_a_reload(browser: Any, tmp_path: Path) -> None:
    """A run of another process, while the page is open."""
    process = subprocess.Popen([sys.executable, "-c", LIVE_RUN, str(tmp_path)])
    try:
        while not (tmp_path / "first-asked").exists():
            assert process.poll() is None
            time.sleep(0.05)
        with serving(SQLiteHistory(tmp_path / "h.db")) as address:
            window = Window(browser, address)
            page = window.open("/")
            page.get_by_role("link", name="live").first.click()
            page.get_by_text("No results").wait_for()
            page.evaluate("window.isSamePage = true")
            (tmp_path / "first").touch()
            page.get_by_text("1 of 1 passed").first.wait_for()
            (tmp_path / "second").touch()
            page.get_by_text("2 of 2 passed").first.wait_for()
            assert page.evaluate("window.isSamePage")
            assert window.problems == []
    finally:
        for name in ("first", "second"):
            (tmp_path / name).touch()
        process.wait()


def test_the_marks_of_a_plot_work_by_keyboard(window: Window) -> None:
    """One stop of the Tab key for a plot; arrow keys move, Enter opens the samples."""
    page = window.open("/#/runs/run-03")
    plot = page.get_by_role("group", name="Scores of contains in small")
    assert plot.locator("[tabindex='0']").count() == 1
    plot.get_by_role("button").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("grid").wait_for()
    assert "range=contains" in page.url


def test_outputs_are_labelled_by_keyboard(browser: Any, tmp_path: Path) -> None:
    """Three labels, one taken back, a reload, a comment, a skip, and the card; the draw is that of the terminal."""
    history = SQLiteHistory(tmp_path / "h.db")
    store(history, PLANS[0], "run-00", Random(0))
    with serving(history) as address:
        window = Window(browser, address)
        page = window.open("/#/runs/run-00")
        page.get_by_role("link", name="Label").press("Enter")
        page.get_by_label("Number of outputs").fill("5")
        page.get_by_label("Your name").fill("ana")
        page.get_by_label("Your name").press("Enter")
        wait_for_heading(page, "1 of 5")
        press(page, {"p": "2 of 5", "f": "3 of 5"})
        press(page, {"p": "4 of 5", "u": "3 of 5"})
        page.reload()
        wait_for_heading(page, "3 of 5")
        press(page, {"f": "4 of 5"})
        page.keyboard.press("c")
        page.keyboard.type("pfsu: unclear")
        page.keyboard.press("Enter")
        press(page, {"p": "5 of 5", "s": "Done: ana has labelled 4 of 5 drawn outputs and skipped 1."})
        assert "4 of 5 labelled, 1 skipped" in page.locator("main").inner_text()
        assert [page.get_by_role("button", name=name).count() for name in ("Pass", "Fail", "Skip", "Undo")] == [
            0,
            0,
            0,
            1,
        ]
        page.get_by_text("card weak").wait_for()
        shown = page.locator("main").inner_text()
        assert "4 labels, and a card needs 30" in shown
        assert "labels alone" in shown
        assert find_barriers(page) == []
        assert window.problems == []
    labels = history.labels(run_id="run-00")
    outputs = list(list_judged_outputs("run-00", history.results("run-00"), "judge"))
    assert [label.item for label in labels] == [each.output.item for each in draw(outputs, "random", 5)]
    assert [label.passed for label in labels] == [True, False, False, True, None]
    assert [label.comment for label in labels] == ["", "", "", "pfsu: unclear", ""]


def press(page: Any, headings: dict[str, str]) -> None:
    """Press keys one after the other, each when the heading after the one before is there."""
    for key, heading in headings.items():
        page.keyboard.press(key)
        wait_for_heading(page, heading)


def wait_for_heading(page: Any, text: str) -> None:
    """Wait for a heading; that of an output continues with a question."""
    page.get_by_role(
        "heading", name=re.compile(rf"^(Output )?{re.escape(text)}(: does it pass “judge”\?)?$")
    ).wait_for()


def test_flaky_samples_are_listed_with_links(window: Window) -> None:
    """Of a run with five epochs, the least reliable first."""
    page = window.open("/#/runs/run-04")
    entry = page.get_by_role("region", name="Flaky samples").get_by_role("listitem").first
    assert re.fullmatch(r"\S+: \d of 5 passed", entry.inner_text())
    entry.get_by_role("link").click()
    page.get_by_role("complementary").wait_for()


def test_an_empty_history_says_what_to_type(browser: Any, tmp_path: Path) -> None:
    """The one command that fills it."""
    with serving(SQLiteHistory(tmp_path / "none.db")) as address:
        window = Window(browser, address)
        assert "proctor demo" in window.open("/").locator("main").inner_text()
        assert window.problems == []


def test_a_sample_opens_at_the_epoch_that_the_filter_is_about(window: Window) -> None:
    """planets-1 failed in the first of five epochs and passed in the others; epochs are counted from 1."""
    pressed = '.tabs.epochs [aria-pressed="true"]'
    for query, epoch in {"o.default=passed": "2", "outcome=failed": "1", "outcome=passed": "2", "epoch=4": "4"}.items():
        page = window.open(f"/#/runs/run-04?{query}&sample=planets-1")
        assert page.locator(pressed).inner_text().strip().endswith(epoch)
    assert window.problems == []


def test_intervals_and_counts_fit_on_a_phone(window: Window) -> None:
    """At 390 pixels every number of an interval table is inside the screen; wider tables scroll and show that."""
    outside = """(table) => [...table.querySelectorAll('tbody td')]
        .filter((cell) => cell.getBoundingClientRect().right > innerWidth).map((cell) => cell.textContent)"""
    for path, last in ((PAGES["run"], "Not counted"), (PAGES["compare"], "Verdict")):
        page = window.open(path, width=390)
        table = page.locator("table.intervals").first
        table.wait_for()
        assert table.evaluate(outside) == []
        for name in ("95% interval", "n", last):
            assert table.get_by_role("columnheader", name=name, exact=True).count() == 1
            assert table.locator(f'td[data-label="{name}"]:visible').count() > 0
    for path in (PAGES["trends"], PAGES["judges"]):
        window.open(path, width=390)
        tables = page.locator("main .scroll-x > table.data")
        tables.first.wait_for()
        shadows = tables.first.evaluate("(table) => getComputedStyle(table.parentElement).backgroundImage")
        assert shadows.count("linear-gradient") == 4


def test_a_row_says_why_its_interval_and_its_verdict_differ(window: Window) -> None:
    """The interval of the mean score excludes 0; corrected for 12 tests, p does not decide. Both ends have a number."""
    page = window.open(PAGES["compare"], width=390)
    remark = page.locator("#s-differences tr", has_text="mean score").first.locator("xpath=following-sibling::tr[1]")
    said = "The interval of this metric alone excludes 0, but the corrected test (p = 0.21, Holm) does not decide."
    assert remark.inner_text().strip() == said
    assert page.locator("#s-differences .axis").first.locator("text:visible").all_text_contents() == ["−10", "+10"]


def test_a_single_run_shows_whiskers_and_names_each_configuration(browser: Any, tmp_path: Path) -> None:
    """A band needs two runs; with two judges, the page of judges names both."""

    def praise(prompt: str) -> str:
        return prompt.rpartition("\n")[2].partition("<")[0] + "good"

    judges = {name: llm_judge(praise, "Is it right?") for name in ("correct", "second")}
    history = SQLiteHistory(tmp_path / "h.db")
    run = evaluate(
        lambda text: text, [{"id": text, "input": text} for text in "abc"], judges, name="solo", history=history,
        configurations={"plain": {}, "rag": {}},
    )  # fmt: skip
    with serving(history) as address:
        window = Window(browser, address)
        page = window.open("/#/trends?name=solo")
        assert re.match(r"In the only run of solo, pass rate: plain .*n = 3\); rag .*n = 3\)\.", page.inner_text("h1"))
        assert page.locator("[data-whisker]").count() == 2
        assert "The whiskers of a single point are its 95% interval." in page.inner_text("main")
        assert "ring marks" not in page.inner_text("main")
        page = window.open(f"/#/runs/{run.run_id}/judges")
        assert "the judges “correct” and “second” contradict each other" in page.inner_text("h1")
        assert window.problems == []


def test_counts_of_results_open_the_samples_that_contain_them(browser: Any, tmp_path: Path) -> None:
    """In a run with epochs: errors by kind, failures of an evaluator, and the next failure at its configuration."""
    calls: Counter[tuple[str, str]] = Counter()

    def answer(text: str, kind: str) -> str:
        calls[kind, text] += 1
        if (kind, text) == ("old", "2") and calls[kind, text] == 1:
            raise ConnectionError("busy")
        # In old, 4 fails in every epoch and 6 in one of three; in new, only 8 fails.
        if (kind, text) in {("old", "4"), ("new", "8")} or ((kind, text) == ("old", "6") and calls[kind, text] == 1):
            return "no"
        return "yes ConnectionError" if text == "3" else "yes"

    history = SQLiteHistory(tmp_path / "h.db")
    data = [{"id": f"s{n}", "input": str(n), "expected": "yes"} for n in range(10)]
    run = evaluate(
        answer, data, "contains", configurations={kind: {"kind": kind} for kind in ("old", "new")}, epochs=3,
        history=history, concurrency=1, progress=False,
    )  # fmt: skip
    with serving(history) as address:
        window = Window(browser, address)
        page = window.open(f"/#/runs/{run.run_id}")
        page.get_by_role("button", name="ConnectionError").click()
        page.get_by_text("1 of 10 samples").first.wait_for()
        page = window.open(f"/#/runs/{run.run_id}")
        page.get_by_role("button", name="Failures of old by contains").click()
        page.get_by_text("2 of 10 samples").first.wait_for()
        assert "at least one such result" in page.inner_text(".grid-rule")
        page = window.open(f"/#/runs/{run.run_id}?tab=samples&sample=s0&c=old")
        shown = []
        for sample in ("s2", "s4", "s6", "s8"):
            page.keyboard.press("n")
            page.get_by_role("complementary").get_by_role("heading", name=sample, exact=True).wait_for()
            shown.append(page.locator(".verdict strong").inner_text())
        assert shown == ["error", "failed", "failed", "failed"]
        assert "c=new" in page.url
        page.keyboard.press("n")
        page.get_by_role("button").filter(has_text="No further failure").wait_for()
        assert window.problems == []


def test_choices_stay_open_while_the_list_of_runs_changes(browser: Any, tmp_path: Path) -> None:
    """A new run is listed after seconds; this keeps the focus and the elements of the filters."""
    history = SQLiteHistory(tmp_path / "h.db")
    for name in ("first", "second"):
        evaluate(
            lambda text: text, [{"id": "x", "input": "x"}], "json_validity", name=name, history=history, progress=False
        )
    with serving(history) as address:
        window = Window(browser, address)
        window.page.clock.install()
        page = window.open("/")
        page.get_by_role("combobox").first.focus()
        page.get_by_role("combobox").first.evaluate("(element) => { element.isSame = true; }")
        evaluate(
            lambda text: text,
            [{"id": "x", "input": "x"}],
            "json_validity",
            name="third",
            history=history,
            progress=False,
        )
        page.clock.fast_forward(3_500)
        page.get_by_text("3 runs", exact=True).wait_for()
        assert page.evaluate("document.activeElement.isSame")
        assert window.problems == []
