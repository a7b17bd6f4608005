"""The viewer in a real browser: every page, the keyboard, narrow screens, and the one-file report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.history.sqlite import SQLiteHistory
from proctor.reports.html import HTMLReporter
from tests.web.browser import open_browser, open_page, serving
from tests.web.rich_history import HEBREW, make_history

PAGES = {
    "runs": "/#/",
    "run": "/#/runs/run-03",
    "samples": "/#/runs/run-03/samples",
    "sample": "/#/runs/run-03?sample=planets-1",
    "sample with an image": "/#/runs/run-03?sample=moons-0",
    "epochs": "/#/runs/run-04/samples",
    "rubrics": "/#/runs/run-05/rubrics",
    "judges": "/#/runs/run-03/judges",
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
def address(history: SQLiteHistory) -> Iterator[str]:
    with serving(history) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def report_file(history: SQLiteHistory, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the one-file report of the run with three configurations."""
    path = tmp_path_factory.mktemp("file") / "report.html"
    HTMLReporter().save(history.report("run-03"), path)
    return path.as_uri()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_every_page_opens_without_an_error(browser: Any, address: str, path: str, width: int) -> None:
    """On a desk and on a phone, in light and dark; it fits the width and loads nothing from elsewhere."""
    with open_page(browser, address + path, width=width, scheme="dark" if width == 390 else "light") as page:
        page.wait_for_load_state("networkidle")
        assert page.locator("h1").first.inner_text().strip()
        assert page.locator(".error-state").count() == 0
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0


def test_which_questions_does_medium_solve_that_small_fails_in_three_clicks(browser: Any, address: str) -> None:
    """The run, the cell of the won samples, and a sample with what each configuration said."""
    with open_page(browser, address) as page:
        page.get_by_role("link", name="observatory").first.click()
        page.get_by_role("button", name="won").first.click()
        rows = page.get_by_role("row").filter(has_text="million kilometres")
        rows.first.wait_for()
        rows.first.click()
        panel = page.get_by_role("complementary")
        panel.wait_for()
        text = panel.inner_text()
        assert "small" in text
        assert "medium" in text
        assert "Question" in text


def test_texts_are_found(browser: Any, address: str) -> None:
    """The address keeps the search, so that a colleague sees the same."""
    with open_page(browser, address + "/#/runs/run-03/samples") as page:
        page.get_by_placeholder("Search texts").fill("about comets")
        page.get_by_text("of 200 samples").wait_for()
        assert "comets" in page.get_by_role("row").nth(2).inner_text()
        link = page.url
    with open_page(browser, link) as page:
        page.get_by_text("of 200 samples").wait_for()


def test_right_to_left_text_keeps_its_direction(browser: Any, address: str) -> None:
    """A text decides about its own direction."""
    with open_page(browser, address + "/#/runs/run-03?sample=probes-7") as page:
        box = page.get_by_text(HEBREW).last
        box.wait_for()
        assert box.evaluate("node => getComputedStyle(node).direction || ''") == "rtl" or box.evaluate(
            "node => !!node.closest('[dir=auto]')"
        )


def test_the_keyboard_is_enough(browser: Any, address: str) -> None:
    """j and Enter open a sample, Escape closes it, ? lists the keys."""
    with open_page(browser, address + "/#/runs/run-03/samples") as page:
        page.get_by_role("row").nth(3).wait_for()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.get_by_role("complementary").wait_for()
        page.keyboard.press("Escape")
        page.get_by_role("complementary").wait_for(state="hidden")
        page.keyboard.press("?")
        page.get_by_role("dialog").wait_for()


def test_every_control_has_a_name(browser: Any, address: str) -> None:
    """For screen readers: no button, link or field without a name."""
    roles = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "tab"}
    for path in PAGES.values():
        with open_page(browser, address + path) as page:
            page.wait_for_load_state("networkidle")
            client = page.context.new_cdp_session(page)
            nodes = client.send("Accessibility.getFullAXTree")["nodes"]
            unnamed = [
                node["role"]["value"]
                for node in nodes
                if not node.get("ignored") and node.get("role", {}).get("value") in roles
                if not node.get("name", {}).get("value", "").strip()
            ]
            assert (path, unnamed) == (path, [])


def test_the_one_file_report_opens_from_disk(browser: Any, report_file: str) -> None:
    """With samples, a search, and a comparison, and without asking anybody."""
    with open_page(browser, report_file) as page:
        page.get_by_role("button", name="won").first.click()
        page.get_by_role("row").filter(has_text="million kilometres").first.click()
        assert "Question" in page.get_by_role("complementary").inner_text()
    with open_page(browser, report_file + "#/runs/run-03/samples") as page:
        page.get_by_placeholder("Search texts").fill("about comets")
        page.get_by_text("of 200 samples").wait_for()
    with open_page(browser, report_file + "#/compare?a=run-03%40medium&b=run-03%40small") as page:
        assert "medium" in page.locator("h1").first.inner_text()


def test_an_empty_history_says_what_to_type(browser: Any, tmp_path: Path) -> None:
    """The one command that fills it."""
    with serving(SQLiteHistory(tmp_path / "none.db")) as address, open_page(browser, address) as page:
        assert "proctor" in page.locator("main").inner_text()
