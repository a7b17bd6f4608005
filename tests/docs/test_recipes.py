"""The recipes in docs/contributing work: applied to a copy of the source, their checks print what the page shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks_of, says

RECIPES = [
    page
    for page in sorted((ROOT / "docs" / "contributing").glob("add-*.md"))
    if '```diff title="src/' in page.read_text(encoding="utf-8")
]
MAX_EDITED_FILES = 3


def apply_diff(block: Block, root: Path) -> None:
    """Replace the old lines of each hunk, which must occur exactly once, with the new ones."""
    path = root / str(block.title)
    text = path.read_text(encoding="utf-8")
    for hunk in block.text.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert ("\n" + text).count("\n" + old) == 1, f"{block.title}: these lines must occur exactly once:\n{old}"
        text = ("\n" + text).replace("\n" + old, "\n" + new)[1:]
    path.write_text(text, encoding="utf-8")


def source_blocks(page: Path) -> list[Block]:
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    return [block for block in blocks if (block.title or "").startswith("src/")]


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_works_on_a_copy_of_the_source(page: Path, tmp_path: Path) -> None:
    """The diffs of a recipe apply, and `check.py` prints with them what the page shows."""
    shutil.copytree(ROOT / "src", tmp_path / "src")  # with the compiled files: most stay valid
    for block in source_blocks(page):
        if block.language == "diff":
            apply_diff(block, tmp_path)
        else:
            (tmp_path / str(block.title)).write_text(block.text, encoding="utf-8")
    (check,) = (block for block in blocks_of(page.read_text(encoding="utf-8")) if block.title == "check.py")
    (tmp_path / "check.py").write_text(check.text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(
        [sys.executable, "check.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert check.shown is not None
    assert says(check.shown, process.stdout), f"{process.stdout}\n{process.stderr}"


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_edits_at_most_three_files(page: Path) -> None:
    """A newcomer edits at most three files of the source."""
    assert len({block.title for block in source_blocks(page)}) <= MAX_EDITED_FILES
