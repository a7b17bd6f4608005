"""The report as one HTML file: what it contains, and that nothing in it can become markup or load anything."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from proctor.cli import report
from proctor.errors import ProctorError
from proctor.records.label import HumanLabel
from proctor.reports import html
from proctor.reports.formats import find_format
from proctor.reports.html import HTMLReporter, bundle_modules
from tests.web.example import MARKUP, make_history


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of the run with two configurations."""
    history = make_history(tmp_path_factory.mktemp("html") / "h.db")
    [run] = [run for run in history.runs() if len(run.configurations) == 2]
    return HTMLReporter().generate(history.report(run.run_id))


def pages(text: str) -> dict[str, Any]:
    """The data blocks of a file, as the client decodes them."""
    blocks = re.findall(rf'<script type="{re.escape(html.DATA_TYPE)}" data-path="([^"]*)">([^<]*)</script>', text)
    base85 = str.maketrans(".,", "<&")
    return {
        path: msgspec.json.decode(zlib.decompress(base64.b85decode(data.translate(base85)))) for path, data in blocks
    }


def test_it_contains_every_page(text: str) -> None:
    """The run, its grid, all samples, and both comparisons of its configurations."""
    found = pages(text)
    [run_id] = [each["run_id"] for each in found["runs"]["runs"]]
    base = f"runs/{run_id}"
    assert set(found) == {
        "home", "runs", base, f"{base}/overview", f"{base}/grid", f"{base}/scores", f"{base}/numbers",
        f"{base}/metadata", f"{base}/details/0", "compare",
        f"{base}/comparisons", f"{base}/judges", f"{base}/slices?by=topic", f"{base}/slices?by=tags",
    }  # fmt: skip
    assert [detail["sample"]["id"] for detail in found[f"{base}/details/0"]][-1] == MARKUP
    assert [(page["a"]["configuration"], page["b"]["configuration"]) for page in found["compare"]] == [
        ("small", "medium"),
        ("medium", "small"),
    ]
    assert sorted(found[f"{base}/metadata"]["columns"]) == ["level", "tags.rtl", "topic"]


def test_its_policy_allows_only_its_own_script_and_style(text: str) -> None:
    """By their hashes; nothing can be loaded from anywhere."""
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    [script] = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for content in (script, style):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "http" not in re.sub(r"http://www\.w3\.org/[\w/]+", "", style)


def test_no_text_of_the_run_is_markup(text: str) -> None:
    """All texts are inside the encoded blocks, and the title is escaped."""
    assert MARKUP not in text
    assert "onerror" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_the_modules_become_one_script() -> None:
    """Each after the modules that it imports, without import and export."""
    script = bundle_modules()
    assert not re.search(r"^\s*(?:import|export)\b", script, re.MULTILINE)
    assert script.index('modules["dom.js"]') < script.index('modules["app.js"]')
    assert "</script" not in script


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        ({"app.js": 'import { a } from "./b.js";\n', "b.js": 'import { c } from "./app.js";\n'}, "import each other"),
        ({"app.js": "export default 3;\n"}, "cannot be bundled: 'export default 3;'"),
        ({"app.js": 'import * as all from "./b.js";\n'}, "cannot be bundled"),
    ],
)
def test_modules_that_cannot_be_bundled_are_refused(
    monkeypatch: pytest.MonkeyPatch, sources: dict[str, str], problem: str
) -> None:
    """With the line that is the reason."""
    monkeypatch.setattr(html, "read_client_file", sources.__getitem__)
    with pytest.raises(ProctorError, match=problem):
        bundle_modules()


def test_it_is_a_report_format(text: str) -> None:
    """Files of this format may be replaced."""
    assert re.match(find_format("html").signature, text)
    assert find_format("html").file_name == "report.html"


def test_a_large_report_is_small(tmp_path: Path) -> None:
    """1,000 samples of 1.2 kB take less than 600 kB beside the client itself."""
    from random import Random

    from proctor import SQLiteHistory, evaluate, exact_match

    random = Random(1)
    words = [f"word{number}" for number in range(3_000)]
    data = [
        {
            "id": f"s{n}",
            "input": " ".join(random.choices(words, k=80)),
            "expected": " ".join(random.choices(words, k=40)),
        }
        for n in range(1_000)
    ]
    history = SQLiteHistory(tmp_path / "h.db")
    report = evaluate(lambda text: text, data, [exact_match], history=history, progress=False)
    HTMLReporter().save(report, tmp_path / "report.html")
    size = (tmp_path / "report.html").stat().st_size
    client = len(HTMLReporter().generate(type(report)([])))
    assert size - client < 900_000


def test_proctor_report_adds_the_cards_of_the_judges(tmp_path: Path) -> None:
    """A reader of the file sees how far the judge can be trusted."""
    history = make_history(tmp_path / "h.db")
    run = history.runs()[0]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    samples = [result.trial.sample.id for result in history.report(run.run_id).results]
    history.add_labels([HumanLabel(i, run.run_id, i, now, evaluator="right", passed=True) for i in samples[:2]])
    file = tmp_path / "report.html"
    options = ["--history", str(tmp_path / "h.db"), "--output", str(file)]
    assert CliRunner().invoke(report.command, [run.run_id, *options]).exit_code == 0
    [card] = pages(file.read_text(encoding="utf-8"))[f"runs/{run.run_id}/cards"]["cards"]
    # The labels belong to no version of the evaluator.
    assert (card["evaluator"], card["state"]) == ("right", "stale")
