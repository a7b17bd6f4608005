"""Queries find the right runs, and their work grows no faster than the number of stored runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from proctor.history.postgres import PostgresHistory
from proctor.history.run_finder import to_microseconds
from proctor.history.sqlite import SQLiteHistory
from proctor.history.stored_runs import StoredRuns
from proctor.records.codec import encode
from proctor.records.run import RunMetadata
from tests.history.history_contract import NOON, make_run
from tests.tables import each_row

COUNT = 2_000
# Instructions of SQLite's virtual machine between two calls of the counter.
STEP = 100


def fill(history: StoredRuns, runs: list[RunMetadata]) -> None:
    """Store many runs at once; one by one would take a minute."""
    with history._changing() as connection:
        connection.executemany(
            "INSERT INTO runs (run_id, name, status, began, metadata) VALUES (?, ?, ?, ?, ?)",
            [(run.run_id, run.name, run.status, to_microseconds(run.started_at), encode(run)) for run in runs],
        )
        keys = dict(connection.execute("SELECT run_id, id FROM runs").fetchall())
        connection.executemany(
            "INSERT INTO tags (run, key, value) VALUES (?, ?, ?)",
            [(keys[run.run_id], *tag) for run in runs for tag in run.tags.items()],
        )
        connection.executemany(
            "INSERT INTO configurations (run, name) VALUES (?, ?)",
            [(keys[run.run_id], each.name) for run in runs for each in run.configurations],
        )
        names = {(keys[run.run_id], name) for run in runs for each in run.evaluators for name in (each.name, each.uses)}
        connection.executemany("INSERT INTO evaluators (run, name) VALUES (?, ?)", names)


def make_runs(numbers: range) -> list[RunMetadata]:
    """Make runs with twenty names, ten branches, and a commit of their own."""
    return [
        make_run(
            f"run-{number:05}",
            f"exam {number % 20}",
            hours=number,
            tags={"branch": f"b{number % 10}", "commit": f"c{number}", "model": "small"},
            configurations=["small", "large"] if number % 3 else ["small"],
            evaluators=["exact", "rare" if number % 1_000 == 0 else "judge"],
        )
        for number in numbers
    ]


@pytest.fixture(scope="module", params=["file", "server"])
def history(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredRuns]:
    history: StoredRuns
    if request.param == "file":
        history = SQLiteHistory(tmp_path_factory.mktemp("history") / "h.db")
    else:
        history = PostgresHistory(request.getfixturevalue("postgres").database())
    fill(history, [*make_runs(range(COUNT)), make_run("single", "alone", hours=-1)])
    yield history
    history.close()


MONTH = (NOON + timedelta(hours=200), NOON + timedelta(hours=919))
QUERIES: dict[str, tuple[dict[str, Any], int]] = {
    "newest": ({}, 20),
    "name": ({"name": "exam 3", "limit": 1_000}, 100),
    "configuration": ({"configuration": "large"}, 20),
    "far back": ({"configuration": "large", "offset": 500}, 20),
    "evaluator": ({"evaluator": "exact_match"}, 20),
    "rare": ({"evaluator": "rare"}, 2),
    "dates": ({"since": MONTH[0], "until": MONTH[1], "limit": 1_000}, 720),
    "tags": ({"tags": {"branch": "b3", "model": "small"}}, 20),
    "one": ({"tags": {"commit": "c77"}}, 1),
    "none": ({"evaluator": "unknown"}, 0),
    "all": (
        {
            "name": "exam 3",
            "configuration": "large",
            "evaluator": "judge",
            "since": MONTH[0],
            "until": MONTH[1],
            "tags": {"model": "small"},
            "limit": 1_000,
        },
        24,
    ),
}


@each_row("query", QUERIES)
def test_a_query_returns_the_matching_runs(query: str, history: StoredRuns) -> None:
    """By name, configuration, evaluator, dates, tags, and by all of them."""
    filters, count = QUERIES[query]
    assert len(history.runs(**filters)) == count


@pytest.mark.parametrize(
    ("reference", "run_id"),
    [("run-00077", "run-00077"), ("sing", "single"), ("exam 7", "run-01987"), ("latest", "run-01999")],
)
def test_a_run_is_found(reference: str, run_id: str, history: StoredRuns) -> None:
    """By its id, the start of it, its name, or as the latest."""
    assert history.find(reference).run_id == run_id


def count_steps(history: SQLiteHistory, ask: Callable[[], object]) -> int:
    """Count the instructions that SQLite executes, in hundreds; they do not depend on the machine."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection: Any = history._connection
    connection.set_progress_handler(count, STEP)
    ask()
    connection.set_progress_handler(None, STEP)
    return steps


def test_twice_the_runs_need_at_most_twice_the_steps(tmp_path: Path) -> None:
    """No query compares every run with every other one."""
    history = SQLiteHistory(tmp_path / "h.db")
    questions: dict[str, Callable[[], object]] = {
        name: partial(history.runs, **{**filters, "limit": 20}) for name, (filters, _) in QUERIES.items()
    }
    questions["find"] = lambda: history.find("run-00077")
    questions["find by name"] = lambda: history.find("exam 7")
    questions["latest"] = lambda: history.find("latest")
    fill(history, make_runs(range(COUNT // 2)))
    before = {name: count_steps(history, ask) for name, ask in questions.items()}
    fill(history, make_runs(range(COUNT // 2, COUNT)))
    after = {name: count_steps(history, ask) for name, ask in questions.items()}
    history.close()
    assert {name: steps for name, steps in after.items() if steps > 2.5 * before[name] + 50} == {}
    assert max(after[name] for name in ("newest", "find", "find by name", "latest")) < 50
