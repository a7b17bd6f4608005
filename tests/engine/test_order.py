"""The order of samples is drawn from their ids by a seed, and changes nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import SQLiteHistory, evaluate, exact_match
from proctor.errors import ConfigError, ResumeRefused, RunStopped
from proctor.records.order import shuffle_key
from proctor.reports.json import JSONReporter
from proctor.reports.markdown import MarkdownReporter
from proctor.wiring.dispatch import collect, submit
from proctor.wiring.prepare import Evaluation
from tests.distributed.failing_mailboxes import LONG, with_timeout
from tests.distributed.worker_runs import QUIET, comparable_report, workers
from tests.support import run_command, samples

CALLS: list[str] = []
BROKEN: set[str] = set()
ONE_BY_ONE: dict[str, Any] = {"concurrency": 1, "progress": False}


async def target(text: str, *, suffix: str = "") -> str:
    CALLS.append(text + suffix)
    if text in BROKEN:
        raise ValueError("broken")
    return text.upper()


@pytest.fixture(autouse=True)
def _fresh() -> None:
    CALLS.clear()
    BROKEN.clear()


def in_order(seed: int, count: int = 10) -> list[str]:
    """The inputs of some samples in the order that a seed draws."""
    ids = sorted((f"s{i}" for i in range(count)), key=lambda name: shuffle_key(seed, name))
    return [f"word {name[1:]}" for name in ids]


def ids(report: Any) -> list[str]:
    return [result.sample_id for result in report.results]


def test_the_order_hangs_on_seed_and_ids_alone() -> None:
    """The same seed gives the same order for any order of the dataset; another seed gives another order."""
    for dataset in (samples(10), samples(10)[::-1]):
        CALLS.clear()
        evaluate(target, dataset, exact_match, history=False, shuffle=7, **ONE_BY_ONE)
        assert in_order(7) == CALLS
    assert in_order(7) != in_order(8)
    assert in_order(7) != [f"word {i}" for i in range(10)]


def test_every_place_in_the_order_is_as_likely_for_every_sample() -> None:
    """Over 2,000 seeds, the mean turn of each of ten samples is 4.5, within five errors."""
    turns = [[in_order(seed).index(f"word {i}") for seed in range(2_000)] for i in range(10)]
    assert all(abs(sum(turn) / 2_000 - 4.5) < 5 * 2.872 / 2_000**0.5 for turn in turns)


def test_results_and_reports_are_those_of_the_dataset_s_order(tmp_path: Path) -> None:
    """But for the option itself, nothing in the stored run tells that it was shuffled."""
    how: Any = {"configurations": {"a": {}, "b": {"suffix": "!"}}, "epochs": 2, **QUIET}
    plain = evaluate(target, samples(6), exact_match, history=tmp_path / "1.db", name="x", **how)
    mixed = evaluate(target, samples(6), exact_match, history=tmp_path / "2.db", name="x", shuffle=7, **how)
    assert ids(mixed) == ids(plain)
    first, second = comparable_report(plain, tmp_path), comparable_report(mixed, tmp_path)
    assert second["metadata"]["options"].pop("shuffle") == 7
    assert first["metadata"].get("options", {}) == second["metadata"]["options"]
    for item in (first, second):
        item["metadata"].pop("options", None)
    assert first == second


def test_a_sample_s_trials_stay_together_with_the_baseline_first() -> None:
    """All configurations and epochs of the first sample are run before the second begins."""
    evaluate(
        target, samples(3), exact_match, history=False, shuffle=1, epochs=2, baseline="old",
        configurations={"new": {"suffix": "!"}, "old": {}}, **ONE_BY_ONE,
    )  # fmt: skip
    expected = [[word, word, f"{word}!", f"{word}!"] for word in in_order(1, 3)]
    assert [item for group in expected for item in group] == CALLS


def test_a_limit_takes_the_first_of_the_order_and_may_be_raised(tmp_path: Path) -> None:
    """It is a random part, the report says so, and more of the same order may be asked for."""
    history = SQLiteHistory(tmp_path / "h.db")
    how: Any = {"history": history, "shuffle": 7, **ONE_BY_ONE}
    first = evaluate(target, samples(10), exact_match, limit=3, **how)
    assert in_order(7)[:3] == CALLS
    assert ids(first) == sorted(ids(first))
    assert "(3 of 10 samples, drawn with seed 7)" in MarkdownReporter().generate(first)
    CALLS.clear()
    more = evaluate(target, samples(10), exact_match, limit=8, resume=first.run_id, **how)
    assert in_order(7)[3:8] == CALLS
    assert (more.total, ids(more)) == (8, sorted(ids(more)))


def test_other_samples_are_not_taken_for_the_rest_of_a_limited_run(tmp_path: Path) -> None:
    """With a limit another seed means other samples; without one it is only another order."""
    history = SQLiteHistory(tmp_path / "h.db")
    how: Any = {"history": history, "name": "exam", **ONE_BY_ONE}
    evaluate(target, samples(10), exact_match, limit=3, shuffle=7, **how)
    with pytest.raises(ResumeRefused, match="shuffle: was 7, is None; with a limit these are"):
        evaluate(target, samples(10), exact_match, limit=4, resume="exam", **how)
    CALLS.clear()
    whole = evaluate(target, samples(10), exact_match, shuffle=8, resume="exam", **how)
    assert [word for word in in_order(8) if word not in in_order(7)[:3]] == CALLS
    assert ids(whole) == [f"s{i}" for i in range(10)]


def test_a_stopped_run_continues_in_its_order(tmp_path: Path) -> None:
    """Finished trials are known by their position in the dataset."""
    how: Any = {"history": tmp_path / "h.db", "name": "exam", "shuffle": 7, **ONE_BY_ONE}
    BROKEN.add(in_order(7)[4])
    with pytest.raises(RunStopped):
        evaluate(target, samples(10), exact_match, on_error="raise", **how)
    assert in_order(7)[:5] == CALLS
    CALLS.clear()
    report = evaluate(target, samples(10), exact_match, resume=True, **how)
    assert in_order(7)[5:] == CALLS
    assert (ids(report), report.errors) == ([f"s{i}" for i in range(10)], 1)


def test_a_generator_can_be_shuffled() -> None:
    """It is read as a whole first."""
    report = evaluate(target, iter(samples(10)), exact_match, history=False, shuffle=7, **ONE_BY_ONE)
    assert in_order(7) == CALLS
    assert ids(report) == [f"s{i}" for i in range(10)]


def test_workers_take_any_order(tmp_path: Path) -> None:
    """Answers are known by their place, also where a later one was asked for earlier."""
    with workers(target, count=2) as requests:
        report = with_timeout(
            LONG,
            lambda: evaluate(
                target, samples(40), exact_match, workers=requests, shuffle=7,
                history=tmp_path / "h.db", **QUIET,
            ),
        )  # fmt: skip
        assert (ids(report), report.pass_rate) == ([f"s{i}" for i in range(40)], 1.0)
        assert report.metadata is not None
        assert report.metadata.warnings == ()


def test_a_shuffled_run_is_submitted_completely(tmp_path: Path) -> None:
    """In its order; a random subset is refused."""
    history = SQLiteHistory(tmp_path / "h.db")
    exam = Evaluation(target, samples(6), exact_match, name="exam", options={"shuffle": 7})
    with workers(target) as requests:
        submit(exam, requests, history)
        report = collect("exam", requests, history, timeout=LONG)
        assert report.metadata is not None
        assert (report.metadata.status, ids(report)) == ("completed", [f"s{i}" for i in range(6)])
        part = Evaluation(target, samples(6), exact_match, options={"shuffle": 7, "limit": 3})
        with pytest.raises(ConfigError, match="a random subset of a dataset cannot be submitted"):
            submit(part, requests, history)


EVAL = """
dataset:
  - {id: a, input: a, expected: a}
  - {id: b, input: b, expected: b}
  - {id: c, input: c, expected: c}
  - {id: d, input: d, expected: d}
target: app.py:say
evaluators: [contains]
"""


@pytest.mark.parametrize(
    ("words", "seed"),
    [
        (["eval.yaml", "--shuffle", "7"], 7),
        (["--shuffle", "eval.yaml"], 0),
        (["eval.yaml", "--shuffle"], 0),
        (["seeded.yaml"], 5),
        (["seeded.yaml", "--shuffle", "7"], 7),
    ],
)
def test_the_command_line_and_the_eval_file_say_it(tmp_path: Path, words: list[str], seed: int) -> None:
    """A seed, the usual one, or that of the file; a file's name is not taken for a seed."""
    (tmp_path / "app.py").write_text("def say(text):\n    print(text)\n    return text\n")
    (tmp_path / "eval.yaml").write_text(EVAL)
    (tmp_path / "seeded.yaml").write_text(f"{EVAL}run: {{shuffle: 5}}\n")
    done = run_command("run", *words, "--concurrency", "1", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted("abcd", key=lambda name: shuffle_key(seed, name))


def test_an_invalid_seed_is_refused(tmp_path: Path) -> None:
    """The message names the option."""
    (tmp_path / "app.py").write_text("def say(text):\n    return text\n")
    (tmp_path / "eval.yaml").write_text(EVAL)
    done = run_command("run", "eval.yaml", "--shuffle", "often", cwd=tmp_path)
    assert done.returncode == 2
    assert "shuffle must be an integer, got 'often'" in done.stderr


def test_the_option_is_stored_and_read_back() -> None:
    """A report in JSON says which seed it was."""
    report = evaluate(target, samples(2), exact_match, history=False, shuffle=3, **QUIET)
    assert '"shuffle": 3' in JSONReporter().generate(report)
