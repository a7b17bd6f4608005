"""Everything that the pages show is true: the code runs and prints what they say."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest
import yaml

import proctor
from proctor.wiring.eval_file import EvalFile
from proctor.wiring.registry import Registry
from tests.docs.blocks import PAGES, ROOT, Block, blocks_of
from tests.docs.performance import Performance
from tests.servers import RedisServer
from tests.tables import each_row

FIELDS = {field.name: field.type for field in msgspec.structs.fields(EvalFile)}


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def built_in(entry: object) -> bool:
    """True for an evaluator that needs no file of the reader's."""
    return ":" not in str(entry if isinstance(entry, str) else next(iter(dict(entry)), ""))  # type: ignore[call-overload]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block runs, every command answers, and both print what the page shows."""
    text = page.read_text(encoding="utf-8")
    with contextlib.ExitStack() as stack:
        instead = {}
        if "6379" in text:
            port = str(stack.enter_context(RedisServer()).port)
            instead = {"localhost:6379": f"127.0.0.1:{port}", "port=6379": f"port={port}"}
        performance = Performance(page_name(page), tmp_path, monkeypatch, instead)
        for block in blocks_of(text):
            performance.perform(block)


@each_row("page", PAGES)
def test_eval_files_on_a_page_are_eval_files(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """YAML that says what an eval file may say is valid, key by key, down to the evaluators."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "looked-for-never-sent")
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language == "yaml":
            check_yaml(block)


def check_yaml(block: Block) -> None:
    data = yaml.safe_load(block.text)
    if not isinstance(data, dict) or not data.keys() <= FIELDS.keys():
        return
    for key, value in data.items():
        msgspec.convert(value, FIELDS[key])
    known = [entry for entry in data.get("evaluators", ()) if built_in(entry)]
    if known:
        Registry.standard().build_all(known)


def test_every_public_name_is_explained_somewhere() -> None:
    """Whatever can be imported from `proctor` occurs in the documentation."""
    pages = [page for page in PAGES if page.parent.name == "docs"]
    words = {word for page in pages for word in _words(page.read_text(encoding="utf-8"))}
    assert sorted(set(proctor.__all__) - words) == []


def _words(text: str) -> set[str]:
    return set("".join(letter if letter.isidentifier() else " " for letter in text).split())
