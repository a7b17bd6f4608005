"""Addresses that people type: comparisons of runs, misspelled pages, deleted runs, and pages that need a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import evaluate
from proctor.history.sqlite import SQLiteHistory
from proctor.reports.html import HTMLReporter
from proctor.wiring.open_history import load_report
from tests.web.browser import Window, serving

GONE = "20261117-005215-aaaaaa"
SAMPLES = [{"id": f"s{n}", "input": str(n), "expected": str(n)} for n in range(6)]


def answer(text: str, tone: str = "plain") -> str:
    return f"{text}!" if tone == "warm" and text == "3" else text


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> SQLiteHistory:
    """Two runs with one configuration, then two with two configurations."""
    history = SQLiteHistory(tmp_path_factory.mktemp("addresses") / "h.db")
    tones = {"plain": {"tone": "plain"}, "warm": {"tone": "warm"}}
    for name, configurations in (("first", None), ("second", None), ("tones", tones), ("tones", tones)):
        evaluate(
            answer, SAMPLES, "exact_match", name=name, history=history, configurations=configurations, progress=False
        )
    history.set_baseline("main", history.runs()[-1].run_id)
    return history


@pytest.mark.parametrize(
    "typed",
    [
        "compare?a={1}&b={0}",
        "compare/{1}/{0}",
        "compare/second/first",
        "compare?a=second&b=main",
        "compare/{1}/{0}@default",
        "compare/second@default/baseline:main",
    ],
)
def test_a_typed_comparison_of_two_runs_is_shown(window: Window, ids: list[str], typed: str) -> None:
    """By id, name or baseline, as parameters or as a path; the address becomes the one that links have."""
    page = window.open(f"/#/{typed.format(*ids)}")
    page.get_by_role("region", name="Differences", exact=True).wait_for()
    assert f"#/compare?a={ids[1]}%40default&b={ids[0]}%40default" in page.url
    assert window.problems == []


def test_a_comparison_without_configurations_offers_those_of_both_runs(window: Window, ids: list[str]) -> None:
    """Two runs with the same two configurations; one run with itself; filters of the address are kept."""
    page = window.open(f"/#/compare?a={ids[3]}&b={ids[2]}")
    links = page.locator("main ul a")
    assert links.all_inner_texts() == ["plain in both runs", "warm in both runs"]
    links.nth(1).click()
    page.get_by_role("region", name="Differences", exact=True).wait_for()
    assert f"a={ids[3]}%40warm&b={ids[2]}%40warm" in page.url
    page = window.open(f"/#/compare?a={ids[3]}&b={ids[3]}&outcome=failed")
    page.get_by_role("region", name="Differences", exact=True).wait_for()
    assert f"a={ids[3]}%40warm&b={ids[3]}%40plain" in page.url
    assert "outcome=failed" in page.url
    assert window.problems == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("comparee?a=1", "#/compare"),
        ("cmopare", "#/compare"),
        ("trend", "#/trends"),
        ("evaluator", "#/evaluators"),
        ("run/{0}", "#/runs/{0}"),
        ("Runs/{0}/judge", "#/runs/{0}/judges"),
        ("runs/{0}/nothing", "#/runs/{0}"),
        ("{0}", "#/runs/{0}"),
        ("zzz", None),
    ],
)
def test_a_misspelled_page_suggests_the_nearest(window: Window, ids: list[str], typed: str, meant: str | None) -> None:
    """Only a similar one; the list of runs is always there."""
    page = window.open(f"/#/{typed.format(*ids)}")
    assert page.inner_text("h1") == "There is no such page."
    links = page.locator("main a").all_inner_texts()
    assert links == [*([meant.format(*ids)] if meant else []), "All runs"]


def test_a_deleted_run_suggests_no_other_run(history: SQLiteHistory, shared_browser: Any) -> None:
    """Ids of one day are alike, but the runs are not."""
    with serving(history) as address:
        page = Window(shared_browser, address).open(f"/#/runs/{GONE}")
        text = page.inner_text("main")
    assert f"unknown run '{GONE}': it may be mistyped, deleted, or in another history" in text
    assert "did you mean" not in text
    assert "All runs" in text


def test_the_label_page_without_a_run_offers_the_runs(window: Window, ids: list[str]) -> None:
    """Newest first."""
    page = window.open("/#/label")
    page.get_by_role("link", name="first", exact=True).click()
    page.get_by_role("heading", name="Label outputs of first").wait_for()
    assert page.url.endswith(f"#/label/{ids[0]}")


def test_the_label_page_says_if_it_lists_only_the_newest_runs(tmp_path: Path, shared_browser: Any) -> None:
    """Of 51 runs it lists 50 and links to all."""
    history = SQLiteHistory(tmp_path / "h.db")
    for _ in range(51):
        evaluate(answer, SAMPLES[:1], "exact_match", name="many", history=history, progress=False)
    with serving(history) as address:
        page = Window(shared_browser, address).open("/#/label")
        assert page.inner_text("h1") == "Choose a run to label."
        assert page.locator("main ul.sentences li").count() == 50
        assert "These are the newest 50 of 51 runs. Others: All runs" in page.inner_text("main")


@pytest.mark.parametrize("page_name", ["label", "label/{0}", "trends", "evaluators"])
def test_a_file_names_the_command_for_pages_that_need_the_history(
    history: SQLiteHistory, ids: list[str], shared_browser: Any, tmp_path: Path, page_name: str
) -> None:
    """A report in one file cannot store labels, and has no other runs."""
    HTMLReporter().save(load_report(history, ids[0]), tmp_path / "report.html")
    window = Window(shared_browser, (tmp_path / "report.html").as_uri())
    page = window.open(f"#/{page_name.format(*ids)}")
    is_label = page_name.startswith("label")
    assert page.inner_text("main pre") == (f"proctor view {ids[0]} --open" if is_label else "proctor view --open")
    assert ("cannot be labelled" in page.inner_text("h1")) is is_label
    page.get_by_role("link", name="Back to the report").click()
    page.get_by_role("heading", name="Metrics").wait_for()
    assert window.problems == []
