"""Every example does what it shows: scripts print what stands at their end, folders what their page says."""

from __future__ import annotations

import contextlib
import io
import runpy
import shutil
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks_of, says
from tests.docs.performance import Performance
from tests.servers import RedisServer

EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
FOLDERS = sorted(page.parent for page in EXAMPLES.glob("*/README.md"))
MARK = "\n# Output:\n"


def name_of(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_a_script_prints_what_it_shows(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comment at the end of a script is its output."""
    text = script.read_text(encoding="utf-8")
    shown = "".join(line.removeprefix("# ") + "\n" for line in text.partition(MARK)[2].splitlines())
    assert shown, f"{script.name} does not show its output"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(script), run_name="__main__")
    printed.seek(0)
    output = printed.read()
    assert says(shown, output), f"{script.name} prints\n{output}"


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_does_what_its_page_says(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the page, typed in a copy of the folder, print what it shows."""
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__", ".proctor"))
    text = (folder / "README.md").read_text(encoding="utf-8")
    monkeypatch.syspath_prepend(str(copy))
    with contextlib.ExitStack() as stack:
        instead = {}
        if "6379" in text:
            instead = {"localhost:6379": f"127.0.0.1:{stack.enter_context(RedisServer()).port}"}
        performance = Performance(f"examples/{folder.name}/README.md", copy, monkeypatch, instead)
        blocks = [block for block in blocks_of(text) if block.language == "console"]
        assert blocks, f"{folder.name} has no commands"
        for block in blocks:
            performance.perform(block)


def test_there_is_an_example_of_everything() -> None:
    """Every entry point, kind of target, judge and decision has an example, and each says what it shows."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in EXAMPLES.rglob("*.*")
        if path.suffix in {".py", ".md", ".yaml", ".toml"}
    ]
    words = (
        *("evaluate(", "proctor run eval.yaml", "proctor run eval.py", "define(", "EvalLoop(", "proctor worker"),
        *("evaluate-batch", "proctor gate", "ModelServer(", "panel(", "judge card", "proctor noise", "proctor plan"),
        *('.by("', "configurations=", "HttpTarget(", "CommandTarget(", "RecordedTarget(", "metrics=[", "entry-points"),
        *("history", "resume=", "MainLoop[", "pytest"),
    )
    assert [word for word in words if not any(word in text for text in texts)] == []
    assert len(SCRIPTS) + len(FOLDERS) >= 16
    for script in SCRIPTS:
        first, _, rest = script.read_text(encoding="utf-8").partition("\n\n")
        assert first.startswith('"""'), script.name
        assert rest.startswith(f"Run: python {script.name}"), script.name
