"""A search finds the same samples in the viewer, where the server searches, and in a one-file report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import Score, SQLiteHistory, evaluate
from proctor.records import codec
from proctor.web.pages import Pages
from tests.web.browser import Window, open_browser, serving

SAMPLES: list[dict[str, Any]] = [
    {"id": "first", "input": "How far is Europa?", "expected": "FAR", "metadata": {"topic": "moons", "level": 3}},
    {"id": "second", "input": {"ask": "Straße", "n": 2.5}, "metadata": {"by": {"name": "Ada"}, "tags": ["hard"]}},
    {
        "id": "third",
        "input": "ΟΔΟΣ und İstanbul",
        "expected": ["one", None],
        "metadata": {"checked": True, "size": 7.0},
    },
    {"id": "fails", "input": "break", "metadata": {"note": 'a "quoted" line\nand another', "empty": None}},
]
# A query and the samples that contain it.
CASES: list[tuple[str, list[str]]] = [
    ("EUROPA", ["first"]),
    ("far", ["first"]),
    ("first", ["first"]),
    ("moons", ["first"]),
    ("topic", []),
    ("straße", ["second"]),
    ("strasse", []),
    ('"n":2.5', []),
    ("2.5", ["second"]),
    ("ask", []),
    ("7.0", []),
    ("7", ["third"]),
    ("ada", ["second"]),
    ("hard", ["second"]),
    ("yes", []),
    ("οδος", ["third"]),
    ("İSTANBUL", ["third"]),
    ("one", ["third"]),
    ("true", ["third"]),
    ("valueerror", ["fails"]),
    ("it breaks", ["fails"]),
    ('"quoted" line\nand', ["fails"]),
    ("null", []),
    ("answer to", ["first", "second", "third"]),
    ("europa far", ["first"]),
    ("judge  moons\tANSWER", ["first"]),
    ("europa straße", []),
    ("breaks answer", []),
    ("because the judge", ["first", "second", "third"]),
    ("nothing of this kind", []),
]


def answer(question: Any) -> str:
    if question == "break":
        raise ValueError("it breaks")
    return "An answer to it"


def judge(output: str) -> Score:
    return Score(1.0, True, "because the judge says so")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> SQLiteHistory:
    path: Path = tmp_path_factory.mktemp("search") / "h.db"
    history = SQLiteHistory(path)
    evaluate(answer, SAMPLES, [judge], history=history, name="search", progress=False)
    return history


@pytest.fixture(scope="module")
def page(history: SQLiteHistory) -> Iterator[Any]:
    with serving(history) as address, open_browser() as browser:
        yield Window(browser, address).open("/")


def test_the_server_finds_the_samples(history: SQLiteHistory) -> None:
    """In inputs, outputs, expected values, metadata, errors and reasons of a result: all words, in any case."""
    pages, hits = Pages(history), {}
    ids = pages.answer("runs/latest/grid", {})["sample_ids"]
    for query, _ in CASES:
        rows = pages.answer("runs/latest/search", {"text": query})["rows"]
        hits[query] = [ids[row] for row in rows]
    assert hits == dict(CASES)


def test_errors_are_found_by_kind_and_not_by_text(history: SQLiteHistory, page: Any) -> None:
    """A kind is compared as a whole, on the server and in a report."""
    pages = Pages(history)
    ids = pages.answer("runs/latest/grid", {})["sample_ids"]
    samples = [codec.encode(pages.answer("runs/latest/sample", {"id": sample_id})).decode() for sample_id in ids]
    script = """async ([samples, error, text]) => {
      const { containsText } = await import("/source.js");
      return samples.map((sample) => JSON.parse(sample)).filter((detail) => containsText(detail, text, error))
        .map((detail) => detail.sample.id);
    }"""
    for error, text, hits in (("ValueError", "", ["fails"]), ("Value", "", []), ("ValueError", "moons", [])):
        rows = pages.answer("runs/latest/search", {"error": error, "text": text})["rows"]
        assert [ids[row] for row in rows] == hits
        assert page.evaluate(script, [samples, error, text]) == hits


def test_a_report_finds_the_same_samples(history: SQLiteHistory, page: Any) -> None:
    """The client searches the samples of a report as the server does."""
    pages = Pages(history)
    samples = [codec.encode(pages.answer(f"runs/latest/samples/{each['id']}", {})).decode() for each in SAMPLES]
    script = """async ([samples, queries]) => {
      const { containsText } = await import("/source.js");
      const details = samples.map((sample) => JSON.parse(sample));
      return queries.map((query) =>
        details.filter((detail) => containsText(detail, query)).map((detail) => detail.sample.id));
    }"""
    hits = page.evaluate(script, [samples, [query for query, _ in CASES]])
    assert dict(zip((query for query, _ in CASES), hits, strict=True)) == dict(CASES)
