"""No text of a run becomes markup or code: in the viewer, the one-file report, Markdown, SVG and the terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from proctor.cli.main import run_cli
from proctor.engine.finish import aggregate
from proctor.history.sqlite import SQLiteHistory
from proctor.history.trends import trend
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Event, Message, Session, ToolCall
from proctor.records.trial import Configuration, EvalResult, Failure, Trial
from proctor.reports.formats import find_format
from proctor.reports.trend import render_svg
from tests.web.browser import PATIENCE_MS, Window, serving
from tests.web.markup import FOREIGN_ELEMENTS, PAYLOADS

TOGETHER = " ".join(PAYLOADS[:12])


def make_result(n: int, payload: str, configuration: str) -> EvalResult:
    """A result with the payload in every field that a program, a user or a model can fill."""
    sample = Sample(f"{n} {payload}", payload, payload, {payload: payload, "topic": payload, "tags": [payload]})
    if n % 10 == 9:
        return EvalResult(Trial(sample, error=Failure(payload, payload, payload), configuration=configuration))
    events: list[Event] = [
        Message("system", payload),
        Message("user", [{"type": "text", "text": payload}, {"type": "image_url", "image_url": {"url": payload}}]),
        ToolCall(payload, {payload: payload}, result=payload, error=payload if n % 2 else None),
        Message("assistant", payload, name=payload),
    ]
    output: Any = payload if n % 3 else {"answer": payload, payload: [payload]}
    trial = Trial(sample, output, latency_ms=1.0, configuration=configuration, session=Session(events))
    passed = bool(n % 2) != (configuration == TOGETHER)
    score = Score(float(passed), passed, payload, {payload: payload})
    return EvalResult(trial, {TOGETHER: score}, {TOGETHER: Session([Message("assistant", payload)])})


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> SQLiteHistory:
    """One run with every payload, whose names are payloads too."""
    history = SQLiteHistory(tmp_path_factory.mktemp("markup") / "h.db")
    configurations = ("plain", TOGETHER)
    run = RunMetadata(
        "run",
        TOGETHER,
        datetime(2026, 1, 1, tzinfo=UTC),
        dataset=DatasetInfo(TOGETHER, TOGETHER, len(PAYLOADS), "f"),
        target=TargetSpec(TOGETHER, "function", "t"),
        configurations=tuple(Configuration(name, {"size": TOGETHER}) for name in configurations),
        evaluators=(EvaluatorSpec(TOGETHER, TOGETHER, {"model": f"x:{TOGETHER}"}),),
        tags={TOGETHER: TOGETHER},
        warnings=(TOGETHER,),
        baseline="plain",
    )
    history.begin(run)
    with history.writer("run") as writer:
        results = [make_result(n, text, name) for n, text in enumerate(PAYLOADS) for name in configurations]
        for position, result in enumerate(results):
            writer.add(position, result)
    done = msgspec.structs.replace(run, status="completed")
    history.finish(done, *aggregate(history.results("run"), done))
    return history


def test_there_are_enough_payloads() -> None:
    """At least 120, all different."""
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 120


def assert_clean(window: Window, page: Any) -> None:
    assert page.evaluate(f"document.querySelectorAll({FOREIGN_ELEMENTS!r}).length") == 0
    assert [problem for problem in window.problems if "Content Security Policy" in problem or "dialog" in problem] == []


# Goes through the samples with the key j, unfolds everything, and counts foreign elements per sample; inside the page,
# because every question from outside costs more than a sample.
WALK = """async ([count, foreign, patience]) => {
  const panel = document.querySelector("aside.panel");
  const pause = () => new Promise((resume) => setTimeout(resume, 2));
  const isShown = (n) =>
    panel.querySelector("h2")?.textContent.trim().startsWith(`${n} `)
    && panel.querySelector(".panel-content");
  const counts = [];
  for (let n = 0; n < count; n++) {
    for (const start = performance.now(); !isShown(n); await pause())
      if (performance.now() - start > patience) throw new Error(`sample ${n} is not shown`);
    panel.querySelectorAll("details").forEach((fold) => { fold.open = true; });
    // Events of elements that a payload has made come later.
    await pause();
    counts.push(document.querySelectorAll(foreign).length);
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
  }
  return counts;
}"""


def look_at_every_sample(window: Window, prefix: str) -> None:
    page = window.open(f"{prefix}#/runs/run?tab=samples")
    # Less to draw.
    page.set_viewport_size({"width": 1440, "height": 300})
    page.get_by_role("row").nth(2).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("complementary").wait_for()
    assert page.evaluate(WALK, [len(PAYLOADS), FOREIGN_ELEMENTS, PATIENCE_MS]) == [0] * len(PAYLOADS)
    assert_clean(window, page)


def test_no_payload_runs_in_the_viewer(browser: Any, history: SQLiteHistory) -> None:
    """On every page, and with every sample open and unfolded."""
    with serving(history) as address:
        window = Window(browser, address)
        for path in ("/#/", "/#/runs/run", "/#/runs/run/judges", "/#/runs/run/rubrics", "/#/trends", "/#/compare"):
            page = window.open(path)
            page.wait_for_timeout(300)
            assert_clean(window, page)
        look_at_every_sample(window, "/")


def test_no_payload_runs_in_the_one_file_report(browser: Any, history: SQLiteHistory, tmp_path: Path) -> None:
    """Opened from disk, with every sample open and unfolded."""
    path = find_format("html").save(history.report("run"), tmp_path)
    window = Window(browser, path.as_uri())
    assert_clean(window, window.open(""))
    look_at_every_sample(window, "")


def test_no_payload_is_markup_in_markdown_and_svg(browser: Any, history: SQLiteHistory) -> None:
    """A renderer that allows HTML makes no element of them."""
    report = history.report("run")
    page = browser.new_page()
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(find_format("markdown").render(report))
    picture = render_svg(trend(history, "pass_rate"))
    for text in (html, picture):
        page.set_content(text)
        page.wait_for_timeout(200)
        assert page.evaluate(f"document.querySelectorAll({FOREIGN_ELEMENTS!r}).length") == 0
    page.close()


@pytest.mark.parametrize(
    "command", [["show", "run"], ["show", "run", "--outcome", "failed", "--limit", "200"], ["runs"], ["compare", "run"]]
)
def test_no_payload_reaches_the_terminal_as_a_control_code(
    history: SQLiteHistory, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """Neither in a table nor in a list of results, nor in an error message."""
    run_cli([*command, "--history", history.describe().where])
    captured = capsys.readouterr()
    shown = captured.out + captured.err
    assert shown.strip()
    assert not set(shown) & {"\x1b", "\x9b", "\x07", "\x00"}
