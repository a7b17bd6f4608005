"""Write the pictures of the viewer in docs/images, from the history of the browser tests.

python -m tools.screenshots     needs Chromium and playwright
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.web import rich_history
from tests.web.browser import Window, open_browser, serving

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "images"
MAX_BYTES = 150_000
# The browser tests use texts that look like markup here.
PLAIN_TEXT = "by the old catalogue"


class Picture(NamedTuple):
    """A page, its size in pixels, and its colour scheme."""

    name: str
    path: str
    width: int = 1100
    height: int = 680
    scheme: str = "light"


PICTURES = (
    Picture("runs", "/#/"),
    Picture("run", "/#/runs/run-03"),
    Picture("run-dark", "/#/runs/run-03", scheme="dark"),
    Picture("sample", "/#/runs/run-03?tab=samples&differ=1&sample=planets-1&c=large"),
    Picture("compare", "/#/compare?a=run-03%40medium&b=run-03%40small", height=790),
    Picture("rubrics", "/#/runs/run-05/rubrics", height=620),
    Picture("trends", "/#/trends?name=observatory&run=run-02", scheme="dark", height=620),
    Picture("label", "/#/label/run-03?evaluator=judge&annotator=ada&size=30", height=620),
    Picture("phone", "/#/runs/run-03", width=390, height=760),
)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    rich_history.MARKUP = PLAIN_TEXT
    plans = tuple(
        msgspec.structs.replace(plan, tags={"branch": "main"} if "branch" in plan.tags else plan.tags)
        for plan in rich_history.PLANS
    )
    with tempfile.TemporaryDirectory() as folder:
        history = rich_history.make_history(Path(folder) / "history.db", plans)
        with serving(history) as address, open_browser() as browser:
            window = Window(browser, address)
            for picture in PICTURES:
                take_picture(window, picture)
            if window.problems:
                sys.exit("\n".join(window.problems))


def take_picture(window: Window, picture: Picture) -> None:
    """Open a page, wait until its texts are there, and write the picture."""
    page: Any = window.open(picture.path, width=picture.width, scheme=picture.scheme)
    page.set_viewport_size({"width": picture.width, "height": picture.height})
    page.wait_for_load_state("networkidle")
    path = FOLDER / f"{picture.name}.png"
    page.screenshot(path=path, animations="disabled")
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}  {size / 1000:.0f} kB")
    if size > MAX_BYTES:
        sys.exit(f"{path.name} has more than {MAX_BYTES // 1000} kB")


if __name__ == "__main__":
    main()
