"""Cached answers of judges are found again, without the secrets of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor import ModelRequest, ModelResponse, Score, SQLiteHistory, evaluate, evaluator
from proctor.core.redaction.redact import Redaction
from proctor.engine.redaction import redacting_writer
from proctor.models import model_calls as recall
from proctor.records.model import ToolSpec
from proctor.records.session import Message, ToolCall
from proctor.records.trial import EvalResult, PositionedResult, Verdict

KEY = "AKIA" + "Z7QW2MKX5RTB6PLN"
MARK = "[secret: aws access key]"
MAIL = "ann.lee@example.com"


class Store:
    """A history in memory: it takes what is kept, and finds it."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.warnings: list[str] = []

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Take it."""

    def add_batch(self, batch: Sequence[PositionedResult]) -> None:
        """Take them."""

    def cache_output(self, key: str, created_at: str, reply: bytes) -> None:
        self.kept[key] = reply

    def is_lagging(self) -> bool:
        return False


class Judge:
    """Who is asked; only its name matters here."""

    model, supports_json_schema = "openai:gpt-4o-mini", False

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        raise NotImplementedError


class Kept:
    """What a run keeps, behind the redaction."""

    def __init__(self, store: Store, redaction: Redaction) -> None:
        self.find = store.kept.get
        self._store, self._redaction = store, redaction

    def put(self, key: str, data: bytes) -> None:
        with redacting_writer(self._store, self._redaction, is_immediate=True, warnings=self._store.warnings) as writer:
            writer.cache_output(key, "2026-01-01T00:00:00+00:00", data)


def asked(said: Any, **more: Any) -> ModelRequest:
    return ModelRequest((Message("user", said),), **more)


def remembered(
    request: ModelRequest, response: ModelResponse, *, personal: bool = False
) -> tuple[ModelResponse | None, Store]:
    """What is found of an answer that was kept, and where it was looked for."""
    store = Store()
    stored = Kept(store, Redaction(personal=personal))
    recall.store_response(stored, Judge(), request, response)
    return recall.find_response(stored, Judge(), request), store


@pytest.mark.parametrize(
    "request_",
    [
        asked(f"The key is {KEY}."),
        asked({"parts": [{"text": KEY}], "api_key": "hunter2hunter", "password": 246813579}),
        asked(f"{KEY}\n" * 5_000),
        asked(
            "Which?",
            tools=(ToolSpec("find", f"with {KEY}"),),
            schema={"type": "object", "properties": {KEY: {"const": KEY}}},
            temperature=0.0,
            max_tokens=9,
        ),
    ],
)
def test_the_answer_is_found_though_its_question_holds_a_secret(request_: ModelRequest) -> None:
    """By what was really asked, and as it was given; what is kept is without the secret."""
    answer = ModelResponse("Turn 1 shows it: 4", "gpt", finish_reason="stop")
    result, store = remembered(request_, answer)
    assert result is not None
    assert (result.text, result.cached, result.finish_reason) == (answer.text, True, "stop")
    (data,) = store.kept.values()
    assert KEY.encode() not in data
    assert b"hunter2" not in data
    assert b"246813579" not in data
    assert MARK.encode() in data
    assert store.warnings == []


@pytest.mark.parametrize(
    "answer",
    [
        ModelResponse(f"It is {KEY}"),
        ModelResponse("4", raw={"said": [KEY]}),
        ModelResponse("", tool_calls=(ToolCall("show", {"it": KEY}),)),
    ],
)
def test_an_answer_with_a_secret_is_not_cached(answer: ModelResponse) -> None:
    """A warning says so."""
    result, store = remembered(asked(f"The key is {KEY}."), answer)
    assert (result, store.kept) == (None, {})
    (warning,) = store.warnings
    assert warning.startswith("answers that were not cached")
    assert warning.endswith("personal data: 1; a later run requests them again")


def test_personal_data_is_taken_out_of_a_question_where_that_is_wanted() -> None:
    """In an answer it is a reason not to keep it, as a secret is."""
    answer = ModelResponse("Polite: 5")
    for personal in (False, True):
        result, store = remembered(asked(f"Write to {MAIL}"), answer, personal=personal)
        assert result is not None
        assert (MAIL.encode() in store.kept.popitem()[1]) is not personal
    assert remembered(asked("Who?"), ModelResponse(MAIL), personal=True)[0] is None
    assert remembered(asked("Who?"), ModelResponse(MAIL))[0] is not None


def test_a_run_says_how_many_outputs_it_did_not_keep(tmp_path: Path) -> None:
    """Of a target as of a judge; a run that kept all says nothing."""

    @evaluator(pure=True)
    def fine(output: Any) -> Score:
        return Score(1.0, True)

    for samples, told in ((["key", "a", "key too"], 2), (["a", "b"], 0)):
        report = evaluate(
            lambda text: KEY if "key" in text else text,
            [{"id": text, "input": text} for text in samples],
            fine,
            cache=True,
            history=SQLiteHistory(tmp_path / "h.db"),
            progress=False,
        )
        assert report.metadata is not None
        results = [text for text in report.metadata.warnings if "not cached" in text]
        assert [f": {told};" in text for text in results] == ([True] if told else [])
    assert KEY.encode() not in (tmp_path / "h.db").read_bytes()
