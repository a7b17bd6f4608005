"""Sessions with secrets: answers are reused, and no secret is on disk."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.history.block import COMPRESSED_PREFIX
from proctor.wiring.open_history import open_history
from tests.cli.project import Project
from tests.rubrics.batches import BATCH, calls
from tests.rubrics.test_learning import COMMAND, write_logs

KEY = "AKIA" + "Z7QW2MKX5RTB6PLN"
MAIL = "ann.lee@example.com"
ONE = ("sessions", "evaluate", "--rubrics", "starter", "--session", "logs/s000.json")
UNKEPT = "answers that were not cached, because they contain secrets or personal data: "
ECHO = """
import judge
from msgspec.structs import replace
from proctor import ModelRequest, ModelResponse

async def quotes(request: ModelRequest) -> ModelResponse:
    said = await judge.four(request)
    quoted = [word for word in request.messages[-1].content.split() if word.startswith("AKIA")]
    return replace(said, text=f"It says {quoted}. {said.text}")
"""

# The same judge to the history, whatever it says.
MOODY = """
import os
import echo, judge
from proctor import ModelRequest, ModelResponse

async def judges(request: ModelRequest) -> ModelResponse:
    return await (echo.quotes if os.path.exists("quoting") else judge.four)(request)
"""


@pytest.fixture
def secret(batch: Project) -> Project:
    """Three sessions, the first with a key and an address."""
    chat = [
        {"role": "user", "content": f"This is session number 0. My key is {KEY} of {MAIL}"},
        {"role": "assistant", "content": "Done."},
    ]
    Path("logs/s000.json").write_text(json.dumps(chat))
    return batch


def on_disk(text: str) -> bool:
    """True if a text is in any file of the history, or in a result; packed or not."""
    places = [*Path(".proctor").rglob("*"), *Path("out").rglob("*"), *Path().glob("r.json")]
    files = [path.read_bytes() for path in places if path.is_file()]
    return any(text.encode() in data for data in (*files, *unpacked()))


def unpacked() -> Iterator[bytes]:
    """The decompressed content of the history."""
    with contextlib.closing(sqlite3.connect(".proctor/history.db")) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            for row in database.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, bytes) and value.startswith(COMPRESSED_PREFIX):
                        yield zlib.decompress(value)


def test_stored_answers_about_secrets_are_reused(secret: Project) -> None:
    """The repeated command makes no call, and neither the answers nor the file contain the secret."""
    result = secret.proctor(*ONE, "--budget", "calls=2")
    assert "raise the budget and run the command again" in result.err
    assert secret.proctor(*ONE, "--budget", "calls=4", "--output", "r.json").code == 0
    again = secret.proctor(*ONE, "--output", "r.json")
    assert "6 answers, all reused" in again.out
    assert UNKEPT not in again.err
    assert set(calls().values()) == {1}
    assert on_disk("Turn 1 shows it.")
    assert on_disk("[secret: aws access key]")
    assert not on_disk(KEY)


def test_a_batch_with_a_secret_repeats_no_call(secret: Project) -> None:
    """Neither when it is resumed nor when it is repeated."""
    command = (*BATCH, "--output-dir", "out", "--parallel", "1")
    secret.proctor(*command, "--budget", "calls=4")
    assert secret.proctor(*command, "--budget", "calls=99", "--resume").code == 0
    assert secret.proctor(*command).code == 0
    assert set(calls().values()) == {1}
    assert len(calls()) == 18
    assert not on_disk(KEY)


def test_an_answer_that_quotes_a_secret_is_not_stored_and_the_run_says_so(secret: Project) -> None:
    """Six of eighteen calls are repeated; the other answers are reused."""
    Path("echo.py").write_text(ECHO)
    command = (*BATCH, "--output-dir", "out", "--judge", "echo:quotes")
    result = secret.proctor(*command)
    assert result.code == 0, result.err
    assert f"warning: {UNKEPT}6; a later run requests them again" in result.err
    warnings = json.loads(Path("out/summary.json").read_text())["details"]["warnings"]
    assert any(warning.startswith(UNKEPT) for warning in warnings)
    secret.proctor(*command)
    counts = calls()
    assert {counts[name] for name in counts if name.startswith("0 ")} == {2}
    assert {counts[name] for name in counts if not name.startswith("0 ")} == {1}
    assert on_disk("It says")
    assert not on_disk(KEY)


def test_a_repeated_call_replaces_the_stored_answer(secret: Project) -> None:
    """After --fresh only the new answer is used, or none if it may not be stored."""
    Path("echo.py").write_text(ECHO)
    Path("moody.py").write_text(MOODY)
    command = (*BATCH, "--output-dir", "out", "--judge", "moody:judges")
    secret.proctor(*command)
    assert not on_disk("It says")
    Path("quoting").touch()
    result = secret.proctor(*command, "--fresh")
    assert f"warning: {UNKEPT}6; a later run requests them again" in result.err
    assert set(calls().values()) == {2}
    result = secret.proctor(*command)
    assert "12 of 18 answers reused" in result.out
    counts = calls()
    assert {counts[name] for name in counts if name.startswith("0 ")} == {3}
    assert {counts[name] for name in counts if not name.startswith("0 ")} == {2}
    data = json.loads(Path("out/s001_result.json").read_text())["rubric_scores"]
    assert all("It says" in one["reasoning"] for one in data)
    assert not on_disk(KEY)


@pytest.mark.parametrize("door", [ONE, (*BATCH, "--output-dir", "out")])
def test_the_redacted_kinds_can_be_chosen(secret: Project, door: tuple[str, ...]) -> None:
    """Secrets by default, personal data too, or nothing; in each the answers are found again."""
    secret.proctor(*door)
    assert (on_disk(KEY), on_disk(MAIL)) == (False, True)
    shutil.rmtree(".proctor")
    result = secret.proctor(*door, "--redact", "personal")
    assert result.code == 0, result.err
    assert (on_disk(KEY), on_disk(MAIL)) == (False, False)
    run = next(iter(open_history(None).runs()))
    assert run.options.redact == "personal"
    result = secret.proctor(*door, "--redact", "personal")
    assert "answers, all reused" in result.out
    secret.proctor(*door, "--redact", "nothing", "--fresh")
    assert on_disk(KEY)
    assert on_disk(MAIL)


def test_the_check_of_learned_rubrics_is_stored_without_secrets(project: Project) -> None:
    """It is a run like any other."""
    write_logs(Path.cwd(), 12)
    for log in Path().glob("s*.json"):
        log.write_text(log.read_text().replace('"content": "', f'"content": "I am {MAIL}. '))
    command = (*COMMAND, "--overwrite", "--held-out", "0.5")
    assert project.proctor(*command).code == 0
    assert on_disk(MAIL)
    shutil.rmtree(".proctor")
    result = project.proctor(*command, "--redact", "personal")
    assert result.code == 0, result.err
    assert not on_disk(MAIL)


def test_another_word_is_refused(secret: Project) -> None:
    """With the words that there are."""
    result = secret.proctor(*ONE, "--redact", "all")
    assert result.code == 2
    assert "personal" in result.err
