"""One browser and one window for all tests of a file; the file defines the `history` that the window shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from proctor.ports import History
from tests.web.browser import Window, closing_new_pages, open_browser, serving


@pytest.fixture(scope="module")
def ids(history: History) -> list[str]:
    """The ids of the runs, oldest first."""
    return [run.run_id for run in reversed(history.runs())]


@pytest.fixture(scope="module")
def shared_browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def browser(shared_browser: Any) -> Iterator[Any]:
    """The browser, whose pages are closed after each test."""
    with closing_new_pages(shared_browser):
        yield shared_browser


@pytest.fixture(scope="module")
def shared_window(shared_browser: Any, history: History) -> Iterator[Window]:
    with serving(history) as address:
        yield Window(shared_browser, address)


@pytest.fixture
def window(shared_window: Window) -> Iterator[Window]:
    """The window; a test fails if it has problems."""
    shared_window.problems.clear()
    yield shared_window
    assert shared_window.problems == []
