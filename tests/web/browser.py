"""A real browser for tests of the viewer: Chromium, and a server on loopback."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from proctor.cli.view import _listen, make_server
from proctor.ports import History
from proctor.web.server import list_hosts, make_app

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Only a hang takes this long, even on a busy machine.
PATIENCE_MS = 30_000


@contextmanager
def serving(history: History, token: str | None = None) -> Iterator[str]:
    """The address of a viewer of a history."""
    with _listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        app = make_app(history, hosts=list_hosts("127.0.0.1", port), token=token)
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def open_browser() -> Iterator[Any]:
    """A headless Chromium; the test is skipped if there is none, or if it cannot start."""
    path = next((found for found in map(shutil.which, NAMES) if found), None)
    if path is None:
        pytest.skip("no Chromium on the PATH, and it could not be installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync_api.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        except sync_api.Error as error:
            pytest.skip(f"Chromium cannot be started on this machine: {str(error).splitlines()[0]}")
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def closing_new_pages(browser: Any) -> Iterator[Any]:
    """The browser, whose new pages are closed at the end: an open page goes on asking its server for news."""
    contexts = list(browser.contexts)
    yield browser
    for context in browser.contexts:
        if context not in contexts:
            context.close()


class Window:
    """A browser window; errors, dialogs and requests to others than its address are problems."""

    def __init__(self, browser: Any, address: str) -> None:
        self.address = address
        self.problems: list[str] = []
        self.page = page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", self._dismiss)
        page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        page.on("request", self._check_request)

    def _dismiss(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _check_request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"request: {request.url}")

    def open(self, path: str, *, width: int = 1440, scheme: str = "light") -> Any:
        """Open a page, and wait until it shows its content."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        # An address that differs only after the # would not load the page again.
        self.page.goto("about:blank")
        self.page.goto(self.address + path)
        self.page.locator("main h1").first.wait_for()
        self.page.wait_for_function("() => !document.querySelector('.state.loading, .pending')")
        return self.page
