"""The client's files: what they may contain, and the modules that compute without a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from proctor.history.sqlite import SQLiteHistory
from proctor.reports.format import format_percent
from proctor.web.server import CLIENT
from tests.web.browser import Window, open_browser, serving

MAX_BYTES = 600_000
FORBIDDEN = {
    "markup from text": r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment",
    "code from text": r"\beval\(|new Function|setTimeout\(\s*[\"'`]",
    "other hosts": r"https?://(?!www\.w3\.org/2000/svg)",
    "dynamic imports": r"\bimport\(",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page of the viewer, whose modules can be imported."""
    history = SQLiteHistory(tmp_path_factory.mktemp("client") / "h.db")
    with serving(history) as address, open_browser() as browser:
        yield Window(browser, address).open("/")


@pytest.mark.parametrize("pattern", FORBIDDEN.values(), ids=FORBIDDEN)
def test_the_client_never_turns_text_into_markup_or_code(pattern: str) -> None:
    """And it asks no other host."""
    found = [(path.name, match[0]) for path in _list_files() for match in re.finditer(pattern, path.read_text())]
    assert found == []


def test_the_client_is_small() -> None:
    """Less than 600 kB for all pages."""
    assert sum(path.stat().st_size for path in _list_files()) < MAX_BYTES


def test_the_page_loads_all_modules_at_once() -> None:
    """A module that is not listed would be found only after the modules that import it."""
    page = (CLIENT / "index.html").read_text()
    listed = set(re.findall(r'(?:modulepreload" href|src)="([\w-]+\.js)"', page))
    assert listed == {path.name for path in CLIENT.glob("*.js")}


def test_a_diff_contains_both_texts(page: Any) -> None:
    """Without the added parts it is the old text, without the removed parts the new one."""
    problems = page.evaluate(
        """async () => {
          const { diffWords } = await import("/diff.js");
          let seed = 1;
          const random = (limit) => (seed = (seed * 48271) % 2147483647) % limit;
          const words = ["a", "b", " ", "\\n", "die Sonne", "太陽", "שמש", "é"];
          const text = () => Array.from({ length: random(14) }, () => words[random(words.length)]).join("");
          const join = (parts, without) =>
            parts.filter(({ kind }) => kind !== without).map((part) => part.text).join("");
          const problems = [];
          for (let round = 0; round < 2000; round += 1) {
            const [before, after] = [text(), text()];
            const parts = diffWords(before, after);
            if (join(parts, "added") !== before || join(parts, "removed") !== after) problems.push([before, after]);
          }
          return problems;
        }"""
    )
    assert problems == []


def test_texts_without_a_readable_diff_have_none(page: Any) -> None:
    """Thousands of different words are not compared."""
    script = """async () => (await import("/diff.js")).diffWords("a b ".repeat(5000), "c d ".repeat(5000))"""
    assert page.evaluate(script) is None


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("plain", "plain"),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        (" =1", "' =1"),
        (-0.5, "-0.5"),
        (None, ""),
        ('a "b", c', '"a ""b"", c"'),
        ("two\nlines", '"two\nlines"'),
    ],
)
def test_no_csv_cell_is_a_formula(page: Any, value: object, cell: str) -> None:
    """A text that a spreadsheet would run gets an apostrophe; numbers stay numbers."""
    assert page.evaluate("""async (value) => (await import("/export.js")).csvCell(value)""", value) == cell


# Three samples in two configurations and two epochs; 255 has no result yet.
OUTCOMES = [0, 0, 0, 0, 0, 1, 1, 1, 2, 255, 0, 0]


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        ({}, [0, 1, 2]),
        ({"outcomes": ["failed"]}, [1]),
        ({"outcomes": ["error"]}, [2]),
        ({"outcomes": ["passed", "error"]}, [0, 1, 2]),
        ({"differ": True}, [2]),
        ({"flaky": True}, [1]),
        ({"byConfiguration": {"old": "failed"}}, [1]),
        ({"byConfiguration": {"old": "passed"}}, [0, 1]),
        ({"byConfiguration": {"old": "notpassed"}}, [1, 2]),
        ({"byConfiguration": {"old": "most:passed"}}, [0]),
        ({"byConfiguration": {"new": "most:passed", "old": "most:notpassed"}}, [2]),
    ],
)
def test_filters_select_rows(page: Any, filters: dict[str, object], rows: list[int]) -> None:
    """An outcome means at least one result; with `most:`, more than half of the results of the sample."""
    script = """async ([outcomes, filters]) => {
      const { GridModel, filterRows } = await import("/gridmodel.js");
      const encode = (bytes) => btoa(String.fromCharCode(...bytes));
      const values = encode(new Uint8Array(new Float32Array(outcomes.length).buffer));
      const samples = { sample_ids: ["a", "b", "c"], configurations: ["old", "new"], epochs: 2 };
      const model = new GridModel({ ...samples, outcomes: encode(outcomes), values });
      return [...filterRows(model, model.states(""), filters)];
    }"""
    assert page.evaluate(script, [OUTCOMES, filters]) == rows


@pytest.mark.parametrize(
    ("text", "is_safe"),
    [
        ("data:image/png;base64,iVBORw0KGgo=", True),
        ("data:image/svg+xml;base64,PHN2Zz4=", False),
        ("https://example.org/a.png", False),
        ("javascript:alert(1)", False),
    ],
)
def test_only_bitmaps_inside_the_data_are_shown(page: Any, text: str, is_safe: bool) -> None:
    """An image never causes a request."""
    assert page.evaluate("""async (text) => (await import("/dom.js")).isSafeImage(text)""", text) is is_safe


def _list_files() -> list[Path]:
    return sorted(path for path in CLIENT.iterdir() if path.is_file())


def test_scores_of_an_evaluator_called_latency_are_not_a_latency(page: Any) -> None:
    """Its median is a score; the only median latency is that of the target."""
    script = """async () => {
      const { renderCosts } = await import("/metrics.js");
      const value = (number) => ({ value: number, n: 2, kind: "quantile" });
      const table = { "latency.p50": value(1), "latency_ms.p50": { ...value(40), unit: "ms" } };
      const text = (evaluators) =>
        renderCosts({ metrics: { all: table }, summary: { configurations: ["all"], evaluators } }).textContent;
      return [text(["latency"]), text(["exact_match"])].map((one) => one.split("median target latency").length - 1);
    }"""
    assert page.evaluate(script) == [1, 1]
    labels = """async (names) => {
      const { metricLabel } = await import("/format.js");
      return names.map(([name, kind]) => metricLabel(name, kind));
    }"""
    names = [["latency", "score"], ["latency.pass_rate", "rate"], ["latency_ms.mean", ""], ["pass_hat_k.2", "rate"]]
    expected = ["latency (evaluator) score", "latency (evaluator) pass rate", "mean target latency", "pass^2"]
    assert page.evaluate(labels, names) == expected


def test_numbers_are_rounded_as_in_python(page: Any) -> None:
    """Also exact ties: 0.8125 is 81.2%, and 0.375 with two decimals is 0.38."""
    random = Random(1)
    ties = [random.randrange(1 << 12) / (1 << random.randrange(1, 8)) for _ in range(1000)]
    numbers = [0.8125, 0.375, 2.675, 0.5, 1.5, -2.5, 0.15, *ties, *(-tie for tie in ties[:200])]
    numbers += [random.uniform(-1, 1) * 10 ** random.randrange(-4, 6) for _ in range(1000)]
    shares = [0.0, 1.0, 0.9999, 0.0001, *(tie % 1 for tie in ties), *(random.random() for _ in range(500))]
    script = """async ([numbers, shares]) => {
      const { formatFixed, formatPercent } = await import("/format.js");
      const fixed = numbers.map((number) => [0, 1, 2, 3].map((digits) => formatFixed(number, digits)));
      return [fixed, shares.map(formatPercent)];
    }"""
    fixed, percentages = page.evaluate(script, [numbers, shares])
    assert fixed == [[f"{number:.{digits}f}" for digits in range(4)] for number in numbers]
    assert percentages == [format_percent(share) for share in shares]


def test_sentences_have_readable_names_of_metrics(page: Any) -> None:
    """A single word is a metric in lists only; names of sides are not changed."""
    text = "a_b@pass_rate contains more: strict_pass_rate 1% vs. 2%. Worse: contains, contains.pass_rate, tokens.mean."
    script = """async (text) => {
      const names = ["pass_rate", "strict_pass_rate", "contains.pass_rate", "tokens.mean"];
      const metrics = { ...Object.fromEntries(names.map((name) => [name, "rate"])), contains: "score" };
      return (await import("/format.js")).nameMetrics(text, metrics);
    }"""
    assert page.evaluate(script, text) == (
        "a_b@pass_rate contains more: strict pass rate 1% vs. 2%. "
        "Worse: contains score, contains pass rate, tokens per result."
    )


@pytest.mark.parametrize(
    ("module", "call", "value", "result"),
    [
        ("format", "showId", "a\u202eb\n", "a\\u202eb\\u000a"),
        ("format", "showId", "שמש ü", "שמש ü"),
        ("format", "shortenNames", ["number-01-of-all", "number-12-of-all"], ["…01…", "…12…"]),
        ("format", "shortenNames", ["one", "two"], ["one", "two"]),
        ("format", "evaluatorLabel", "latency", "latency (evaluator)"),
        ("transcript", "writeArguments", {"query": "a b", "limit": 3}, 'query="a b", limit=3'),
    ],
)
def test_names_and_calls_are_written_for_people(page: Any, module: str, call: str, value: Any, result: Any) -> None:
    """Characters that reverse a text become visible; names leave out what they have in common."""
    script = """async ([module, call, value]) => (await import(`/${module}.js`))[call](value)"""
    assert page.evaluate(script, [module, call, value]) == result


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (
            "improve it: proctor judge card right --run r-1 --mistakes lists them",
            "proctor judge card right --run r-1 --mistakes",
        ),
        ("proctor label r-1 --evaluator 'a b' --size 30", "proctor label r-1 --evaluator 'a b' --size 30"),
    ],
)
def test_the_command_of_a_fix_ends_where_the_sentence_goes_on(page: Any, text: str, command: str) -> None:
    """The option --mistakes has no value."""
    script = """async (text) => (await import("/judges.js")).markCommand(text)[1].textContent"""
    assert page.evaluate(script, text) == command


def test_bins_that_read_the_same_are_one_bin(page: Any) -> None:
    """Times from 1.501 to 1.504 seconds are all 1.50 s, and the table has one row for them."""
    script = """async () => {
      const { histogram } = await import("/plots.js");
      const { formatMilliseconds } = await import("/format.js");
      const edges = [1501, 1502, 1503, 1504];
      const plot = histogram({ caption: "x", edges, counts: [2, 0, 3], format: formatMilliseconds });
      return [...plot.querySelectorAll("tbody tr")].map((row) => row.textContent);
    }"""
    assert page.evaluate(script) == ["1.50 s5"]
