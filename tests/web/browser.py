"""A real browser for tests of the viewer: Chromium, and a server on loopback."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from proctor.cli.view import _listen
from proctor.ports import History
from proctor.web.server import list_hosts, make_app

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Only a hang takes this long, even on a busy machine.
PATIENCE_MS = 60_000


@contextmanager
def serving(history: History, token: str | None = None) -> Iterator[str]:
    """The address of a viewer of a history."""
    with _listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        app = make_app(history, hosts=list_hosts("127.0.0.1", port), token=token)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def open_browser() -> Iterator[Any]:
    """A headless Chromium; the test is skipped if there is none."""
    path = next((found for found in map(shutil.which, NAMES) if found), None)
    if path is None:
        pytest.skip("no Chromium on the PATH, and it could not be installed")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(browser: Any, address: str, *, width: int = 1440, scheme: str = "light") -> Iterator[Any]:
    """A page whose errors and dialogs fail the test, and that must ask nobody but the address."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(PATIENCE_MS)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    own = address.partition("/#")[0]
    page.on(
        "request",
        lambda request: None if request.url.startswith((own, "data:", "blob:")) else problems.append(request.url),
    )
    try:
        page.goto(address)
        page.locator("h1").first.wait_for()
        yield page
        assert problems == []
    finally:
        page.close()
