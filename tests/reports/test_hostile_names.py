"""Names from elsewhere cannot move the cursor, colour the screen or break a line.

Every name and text of a run carries an escape sequence, a line end and marks that reorder a line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from proctor import EvalReport, Message, SQLiteHistory, ToolCall, evaluate, record
from proctor.cli.main import main
from proctor.evaluators.bound_evaluator import attach
from proctor.records.sample import Sample
from proctor.reports import console
from proctor.reports.markdown import MarkdownReporter
from proctor.targets.resolve import as_target
from tests.tables import each_row

EVIL = "\x1b[31m\x1b]0;owned\x07\r\x08\x9b2J\u202e\n# forged"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def evil(name: str) -> str:
    return f"{name}{EVIL}"


def target(text: str, **_options: Any) -> str:
    record(ToolCall(evil("tool"), {evil("argument"): evil("value")}, error=evil("failed")))
    record(Message("assistant", evil("said")))
    if text.startswith("text 3"):
        raise ValueError(evil("an error"))
    return evil(text)


def judge(output: str) -> dict[str, Any]:
    return {"passed": "text 1" in output, "score": 0.5, "reason": evil("because")}


def run(history: SQLiteHistory, configurations: int) -> EvalReport:
    return evaluate(
        as_target(target, name=evil("target")),
        [Sample(evil(f"s{n}"), evil(f"text {n}"), evil("expected")) for n in range(4)],
        [attach(judge, name=evil("judge")), attach(judge, name=evil("other"))],
        history=history,
        name=evil("run"),
        tags={evil("tag"): evil("value")},
        configurations={evil(f"c{n}"): {} for n in range(configurations)},
        progress=False,
    )


@pytest.fixture(scope="module", params=[1, 2, 5])
def stored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, EvalReport, EvalReport]:
    """Two runs of the same, with one configuration, a few, or more than fit side by side."""
    path = tmp_path_factory.mktemp("evil") / "h.db"
    history = SQLiteHistory(path)
    reports = [run(history, request.param) for _ in range(2)]
    history.set_baseline("main", reports[0].run_id)
    history.close()
    return path, reports[0], reports[1]


def assert_clean(text: str) -> None:
    assert CONTROL.search(text) is None, ascii(text)


def test_the_report_in_the_terminal(stored: tuple[Path, EvalReport, EvalReport]) -> None:
    """Headlines, tables, warnings, errors and failures."""
    for width in (40, 80, 200):
        assert_clean(console.render_report(stored[1], width=width))


def test_colours_are_our_own(stored: tuple[Path, EvalReport, EvalReport]) -> None:
    """In colours there are escape sequences, and none of them from a name."""
    text = console.render_report(stored[1], color=True)
    assert_clean(re.sub("\x1b\\[[0-9;]*m", "", text))
    assert "owned\x07" not in text


def test_reports_as_files(stored: tuple[Path, EvalReport, EvalReport]) -> None:
    """No name can create a heading in Markdown."""
    text = MarkdownReporter().generate(stored[1])
    assert_clean(text)
    assert "\n# forged" not in text


COMMANDS = [
    "runs",
    "runs --limit 1",
    "show RUN",
    "show RUN --outcome failed",
    "show RUN --sample SAMPLE",
    "show RUN --sample SAMPLE --session",
    "compare RUN OTHER",
    "rank pass_rate RUN OTHER",
    "gate RUN --baseline OTHER --max-flips 0",
    "gate RUN --fail-under 0.9",
    "history trend pass_rate --table",
    "history prune --count 1 --dry-run",
    "baseline list",
    "baseline set evil RUN",
    "baseline drop evil",
    "rescore RUN -e exact_match",
    "delete OTHER --yes",
]


@each_row("command", COMMANDS)
def test_what_commands_print(
    command: str, stored: tuple[Path, EvalReport, EvalReport], capsys: pytest.CaptureFixture[str]
) -> None:
    """On both streams, whatever comes out of the command."""
    path, old, new = stored
    words = {"RUN": new.run_id, "OTHER": old.run_id, "SAMPLE": evil("s1")}
    with pytest.raises(SystemExit):
        main([*(words.get(word, word) for word in command.split()), "--history", str(path)])
    result = capsys.readouterr()
    assert "Usage:" not in result.err, result.err
    assert_clean(result.out)
    assert_clean(result.err)
