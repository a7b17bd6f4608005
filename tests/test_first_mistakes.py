"""The mistakes of a first script: each raises an error of Proctor that says what to type."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor import ProctorError, Score, SessionDataset, evaluate, evaluators, quality_score
from tests.support import run_command
from tests.tables import each_row

SAMPLES = [{"id": "1", "input": "a", "expected": "a"}]


def same(question: str) -> str:
    return question


def two_parameters(question: str, style: str) -> str:
    return question + style


def equal(output: Any, expected: Any) -> bool:
    return bool(output == expected)


def three_parameters(a: Any, b: Any, c: Any) -> bool:
    return bool(a == b == c)


def limited(output: Any, *, limit) -> bool:  # type: ignore[no-untyped-def]
    return bool(len(output) < limit)


def run(**changes: Any) -> Callable[[], Any]:
    arguments: dict[str, Any] = {"target": same, "dataset": SAMPLES, "evaluators": equal, "history": False, **changes}
    return lambda: evaluate(**arguments)


@each_row(
    ("mistake", "what", "fix"),
    [
        (
            run(target=two_parameters),
            "called with the input alone: no configuration sets",
            "give the parameter a default",
        ),
        (run(evaluators=three_parameters), "third parameter 'c' would get the session", "rename it to session"),
        (run(evaluators=limited), "limit is missing\n", "functools.partial(limited, limit=…)"),
        (run(evaluators=None), "evaluators: there is no evaluator", "such as exact_match"),
        (run(evaluators=Score(1.0, True)), "is not callable", "pass the evaluator without calling it"),
        (run(evaluators=True), "True is not callable", "pass a function that returns a Score"),
        (run(target=str), "a class is not a target", "such as lambda text: str(text)"),
        (run(dataset=iter([])), "the dataset has no samples", "it may have been read before"),
        (run(dataset=["a", "b"]), "got a string: 'a'", '{"id": "1", "input": "2 + 2"'),
        (run(dataset=[("a", "b")]), "got a tuple", '{"id": "1", "input": "2 + 2"'),
        (run(dataset=[]), "the dataset has no samples", '{"id": "1", "input": "2 + 2"}'),
        (run(configurations=5), "configurations must be a list or a mapping, got 5", "configurations={'main'"),
        (run(history=5), "history must be a file, a URL", 'history="runs.db"'),
        (run(on_progress=5), "on_progress: a progress callback must be a plain function", "such as print"),
        (run(workers=5), "workers must be a mailbox or its address, got 5", 'workers="redis://'),
        (run(concurrency="x"), "concurrency must be an integer, got 'x'", "concurrency=20"),
        (run(budget={"usd": 3}), "budget: unknown key 'usd'", "choose one of: calls, cost, tokens"),
        (run(resume=True), "only a stored run can be resumed", "leave out history=False"),
        (run(evaluators="exact_mach"), "unknown evaluator 'exact_mach'", "did you mean 'exact_match'?"),
        (run(evaluators=[]), "the list is empty", "exact_match"),
        (run(fields={"t": "usage..x"}), "write usage.x", "usage.total_tokens"),
    ],
)
def test_a_mistake_of_a_first_script_has_a_fix(mistake: Callable[[], Any], what: str, fix: str) -> None:
    with pytest.raises(ProctorError) as caught:
        mistake()
    message, _, typed = str(caught.value).partition("Fix: ")
    assert what in message
    # A message with several problems has a fix for each of them.
    assert fix in (typed or message)


def test_the_options_of_workers_and_clusters_have_other_spellings() -> None:
    with pytest.raises(ProctorError, match="workers or a cluster, not both"):
        run(on="ray", workers="memory://x", patience=3.0)()


def test_a_target_that_cancels_itself_ends_at_its_next_await() -> None:
    """Without a further await it ends normally, and its output is scored."""

    async def cancels(question: str) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if question == "b":
            await asyncio.sleep(0)
        return question

    samples = [{"id": name, "input": name, "expected": name} for name in ("a", "b")]
    report = evaluate(cancels, samples, equal, history=False)
    assert [result.outcome for result in report.results] == ["passed", "error"]


def test_one_session_is_selected_by_id(tmp_path: Any) -> None:
    chat = '[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]'
    (tmp_path / "a.json").write_text(chat)
    (tmp_path / "b.json").write_text(chat)
    assert [sample.id for sample in SessionDataset.for_session(tmp_path, "b")] == ["b"]


def test_a_command_that_is_elsewhere_is_suggested(tmp_path: Path) -> None:
    """`history list` is `runs`; other commands of the first level are suggested by their name."""
    for words, command in ((["history", "list"], "proctor runs"), (["history", "show"], "proctor show")):
        finished = run_command(*words, cwd=tmp_path)
        assert (finished.returncode, f"did you mean '{command}'?" in finished.stderr) == (2, True)


def test_a_model_that_expects_a_string_learns_how_to_get_one() -> None:
    """A function without an annotation gets the messages."""
    score = quality_score(lambda p: p.rpartition("x")[0])("output")
    assert score.status == "error"
    assert "it gets the messages as a list. Fix: annotate its parameter as prompt: str" in score.reason


def test_a_panel_is_an_evaluator() -> None:
    assert evaluators.panel is proctor.panel
