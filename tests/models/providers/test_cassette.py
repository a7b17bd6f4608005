"""Cassettes: every call is recorded, and replayed without calling the model."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.errors import CallFailed, ModelError
from proctor.models.connect import provider
from proctor.models.wrappers.cassette import MAX_HINTS, RecordingModel, ReplayModel
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from tests.models.providers.scripted import Scripted, asked


def ask(model: Any, *requests: ModelRequest) -> list[ModelResponse]:
    async def main() -> list[ModelResponse]:
        return [await model.complete(request) for request in requests]

    return asyncio.run(main())


def recorded(path: Path, *requests: ModelRequest, **about: Any) -> list[ModelResponse]:
    return ask(RecordingModel(Scripted(**about), path), *requests)


FULL = ModelResponse(
    "The café is “open”.\n",
    "test:full-2026",
    (ToolCall("search", {"q": ["ä", 1, None]}, call_id="c1"),),
    Usage(3, 4, 1, 0.25),
    "tool_calls",
    logprobs=(TokenLogprobs("The", -0.1, {"A": -2.5}),),
    latency_ms=12.5,
    attempts=2,
    raw={"id": "x", "nested": {"choices": [1, 2.5]}},
)


def test_a_replay_returns_the_recorded_response(tmp_path: Path) -> None:
    """With every field, the address and the schema support of the model."""
    path = tmp_path / "deep" / "calls.jsonl"
    tools = (ToolSpec("search", "finds", {"type": "object"}),)
    request = asked("où?", tools=tools, schema={"type": "object"}, temperature=0.5, seed=7)
    recorded(path, request, answer=lambda _: FULL, model="test:full", supports_json_schema=True)
    replay = ReplayModel(path)
    assert ask(replay, request) == [FULL]
    assert (replay.model, replay.supports_json_schema) == ("test:full", True)


def test_the_file_is_lines_of_json_with_a_header(tmp_path: Path) -> None:
    """The header names the schema version and who wrote it; a line holds one call."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked("a"), asked("b"))
    header, first, second = map(json.loads, path.read_text().splitlines())
    assert header["proctor_cassette"] == 1
    assert header["written_by"].startswith("proctor ")
    assert first["model"] == "test:scripted"
    assert first["request"]["messages"] == [{"type": "message", "role": "user", "content": "a"}]
    assert second["response"]["text"] == "answer to b"
    assert second["response"]["latency_ms"] >= 0


def test_failures_are_recorded_and_raised_again(tmp_path: Path) -> None:
    """With the message, whether it is retryable, and the delay."""
    path = tmp_path / "calls.jsonl"
    down = CallFailed("the server is down", retryable=True, retry_after=3.0)
    with pytest.raises(CallFailed):
        recorded(path, asked(), answer=lambda _: down)
    with pytest.raises(CallFailed, match="the server is down") as caught:
        ask(ReplayModel(path), asked())
    assert (caught.value.retryable, caught.value.retry_after) == (True, 3.0)
    assert json.loads(path.read_text().splitlines()[1])["error"]["kind"] == "CallFailed"


def test_takes_are_replayed_in_order_and_the_last_repeats(tmp_path: Path) -> None:
    """The same request three times: first, second, third, and then the third."""
    path, takes = tmp_path / "calls.jsonl", iter("abc")
    recorded(path, *[asked()] * 3, answer=lambda _: next(takes))
    assert [r.text for r in ask(ReplayModel(path), *[asked()] * 5)] == ["a", "b", "c", "c", "c"]


def test_recording_appends_to_the_file(tmp_path: Path) -> None:
    """A second sitting appends; the header is written once."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked("a"))
    recorded(path, asked("b"))
    assert path.read_text().count("proctor_cassette") == 1
    assert [r.text for r in ask(ReplayModel(path), asked("b"), asked("a"))] == [
        "answer to b", "answer to a",
    ]  # fmt: skip


def test_takes_are_replayed_in_the_order_of_their_calls(tmp_path: Path) -> None:
    """Three concurrent calls with responses in the reverse order."""
    path, asked_so_far = tmp_path / "calls.jsonl", iter(range(3))

    async def answer(messages: list[Message]) -> str:
        number = next(asked_so_far)
        await asyncio.sleep(0.06 - 0.02 * number)
        return f"take {number}"

    async def at_once(model: Any) -> list[str]:
        calls = (model.complete(asked()) for _ in range(3))
        return [response.text for response in await asyncio.gather(*calls)]

    first = asyncio.run(at_once(RecordingModel(answer, path)))
    assert first == ["take 0", "take 1", "take 2"]
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [line["take"] for line in lines] == [3, 2, 1]
    assert asyncio.run(at_once(ReplayModel(path))) == first


def test_a_new_sitting_replaces_the_old_one(tmp_path: Path) -> None:
    """Only the new takes of a request are replayed; other requests stay."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked("a"), asked("a"), asked("b"), answer=lambda _: "old")
    takes = iter(["new 1", "new 2"])
    recorded(path, asked("a"), asked("a"), answer=lambda _: next(takes))
    replay = ReplayModel(path)
    responses = ask(replay, asked("a"), asked("a"), asked("a"), asked("b"))
    assert [r.text for r in responses] == ["new 1", "new 2", "new 2", "old"]


def test_a_cassette_without_numbers_is_replayed_in_its_order(tmp_path: Path) -> None:
    """Lines written by hand, or before takes were counted."""
    path, takes = tmp_path / "calls.jsonl", iter("ab")
    recorded(path, asked(), asked(), answer=lambda _: next(takes))
    bare = re.sub(r',"sitting":"\w+","take":\d+', "", path.read_text())
    assert bare != path.read_text()
    path.write_text(bare)
    assert [r.text for r in ask(ReplayModel(path), asked(), asked())] == ["a", "b"]


def test_schema_support_is_replayed(tmp_path: Path) -> None:
    """`supports_json_schema` before and after each call is the same in the replay."""
    path = tmp_path / "calls.jsonl"
    model = Scripted(supports_json_schema=True)

    def answer(request: ModelRequest) -> str:
        model.supports_json_schema = False
        return "in words"

    model._answer = answer
    for make in (lambda: RecordingModel(model, path), lambda: ReplayModel(path)):
        adapter = make()
        values = [adapter.supports_json_schema]
        ask(adapter, asked(schema={"type": "object"}))
        assert [*values, adapter.supports_json_schema] == [True, False]


def test_many_tasks_threads_and_models_write_whole_lines(tmp_path: Path) -> None:
    """Four threads with two models and 100 long answers each: 400 lines, each a call."""
    path = tmp_path / "calls.jsonl"

    def work(number: int) -> None:
        long = lambda request: request.messages[0].content * 500  # noqa: E731
        model = RecordingModel(Scripted(long, model=f"test:{number % 2}"), path)

        async def main() -> None:
            each = (model.complete(asked(f"{number}-{i}")) for i in range(100))
            await asyncio.gather(*each)

        asyncio.run(main())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    lines = path.read_text().splitlines()
    assert len(lines) == 401
    assert all(json.loads(line) for line in lines)
    (answer,) = ask(ReplayModel(path, model="test:1"), asked("3-99"))
    assert answer.text == "3-99" * 500


def test_of_several_models_one_must_be_named(tmp_path: Path) -> None:
    """The error names those that the cassette holds."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked(), model="test:one")
    recorded(path, asked(), model="test:two")
    with pytest.raises(ModelError, match="several models") as caught:
        ReplayModel(path)
    assert "test:one, test:two" in str(caught.value)
    with pytest.raises(ModelError, match="no calls of test:three"):
        ReplayModel(path, model="test:three")
    assert provider(f"replay:{path}", of="test:two").model == "test:two"


# A miss


def test_a_miss_names_the_nearest_recording_and_the_field(tmp_path: Path) -> None:
    """Line, field and both values are named; the error is final."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked("Who wrote Faust?"), asked(temperature=0.5), asked("x", seed=1))
    with pytest.raises(CallFailed) as caught:
        ask(ReplayModel(path), asked(temperature=0.7))
    assert not caught.value.retryable
    assert str(caught.value) == (
        f"{path} has no recording of this call of test:scripted; the nearest is on line 3 and "
        "differs in temperature: requested 0.7, recorded 0.5"
    )


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (asked("Capital of Spain?"), "messages.0.content: requested 'Capital of Spain?', recorded"),
        (asked(opinion=2), "opinion: requested 2, recorded nothing"),
        (asked(schema={"type": "array"}), 'schema: requested {"type":"array"}, recorded nothing'),
        (
            ModelRequest((Message("system", "Be brief."), *asked().messages)),
            "messages.0.role: requested 'system', recorded 'user'",
        ),
        (
            ModelRequest((*asked().messages, Message("user", "And?"))),
            'messages.1: requested {"type":"message","role":"user","content":"And?"}, recorded nothing',
        ),
    ],
)
def test_a_miss_shows_the_first_difference(tmp_path: Path, request_: ModelRequest, words: str) -> None:
    """With its path."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked())
    with pytest.raises(CallFailed) as caught:
        ask(ReplayModel(path), request_)
    assert words in str(caught.value)


def test_only_the_first_misses_have_hints(tmp_path: Path) -> None:
    """A cassette of another run is not searched for each of its calls."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked())
    replay = ReplayModel(path)
    values = []
    for number in range(MAX_HINTS + 2):
        with pytest.raises(CallFailed, match="has no recording") as caught:
            ask(replay, asked(seed=number))
        values.append("the nearest is on line 2 and differs in seed" in str(caught.value))
    assert values == [True] * MAX_HINTS + [False] * 2


def test_fence_digests_are_ignored_in_comparisons(tmp_path: Path) -> None:
    """They depend on the quoted text, whose difference is named instead."""
    path = tmp_path / "calls.jsonl"

    def fenced(mark: str, criterion: str, output: str) -> ModelRequest:
        head = f"A part begins with `<<<NAME {mark}`. Is it {criterion}?"
        return asked(f"{head}\n<<<OUTPUT {mark}\n{output}\n{mark} OUTPUT>>>\nRATING {mark}: <a>")

    recorded(path, *(fenced(f"{n:016x}", "polite", f"output {n}") for n in range(9)))
    replay = ReplayModel(path)
    with pytest.raises(CallFailed) as caught:
        ask(replay, fenced("f" * 16, "polite", "output 77"))
    assert "line 9 and" in str(caught.value)
    assert "requested '…OUTPUT mark\\noutput 77" in str(caught.value)
    with pytest.raises(CallFailed) as caught:
        ask(replay, fenced("e" * 16, "honest", "output 5"))
    assert "line 7 and" in str(caught.value)
    assert "Is it honest?" in str(caught.value)


def test_a_different_fence_digest_alone_is_reported(tmp_path: Path) -> None:
    """If nothing else differs."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked(f"<<<A {'0' * 16}"))
    with pytest.raises(CallFailed, match="requested '<<<A 1111111111111111', recorded '<<<A 0000"):
        ask(ReplayModel(path), asked(f"<<<A {'1' * 16}"))


def test_long_texts_are_shown_around_the_difference(tmp_path: Path) -> None:
    """A little before it and a little after it."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked("x" * 5000 + "left" + "y" * 5000))
    with pytest.raises(CallFailed) as caught:
        ask(ReplayModel(path), asked("x" * 5000 + "right" + "y" * 5000))
    assert f"requested '…{'x' * 20}right{'y' * 35}…'" in str(caught.value)
    assert f"recorded '…{'x' * 20}left{'y' * 36}…'" in str(caught.value)


# Files that are not as they should be


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    """A process that died in the middle of a line costs that line only, and others may go on."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked("a"), asked("b"))
    path.write_bytes(path.read_bytes()[:-30])
    replay = ReplayModel(path)
    assert ask(replay, asked("a"))[0].text == "answer to a"
    with pytest.raises(CallFailed, match="line 2"):
        ask(replay, asked("b"))
    recorded(path, asked("c"))
    with pytest.raises(ModelError, match="this line is not a recorded call") as caught:
        ReplayModel(path)
    assert f"{path}:3" in str(caught.value)
    assert len(path.read_text().splitlines()) == 4


def test_a_file_without_a_line_end_at_its_end_is_read_whole(tmp_path: Path) -> None:
    """An editor may have taken the last line end away."""
    path = tmp_path / "calls.jsonl"
    recorded(path, asked("a"), asked("b"))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert ask(ReplayModel(path), asked("b"))[0].text == "answer to b"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not a cassette"),
        ('{"id": 1}\n', "not a cassette"),
        ('{"proctor_cassette":9,"written_by":"x"}\n', "schema version 9"),
        ('{"proctor_cassette":1,"written_by":"x"}\n', "has no calls"),
        (
            '{"proctor_cassette":1,"written_by":"x"}\n{"model":"m","request":{"messages":[]}}\n',
            "a response or an error",
        ),
    ],
)
def test_a_file_that_is_not_a_cassette_is_refused(tmp_path: Path, content: str, words: str) -> None:
    """With the file name and the reason."""
    path = tmp_path / "calls.jsonl"
    path.write_text(content)
    with pytest.raises(ModelError, match=words) as caught:
        ReplayModel(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_a_cassette_is_not_changed(tmp_path: Path) -> None:
    """A dataset that was named by mistake stays as it is."""
    path = tmp_path / "data.jsonl"
    path.write_text('{"id": 1}\n')
    with pytest.raises(ModelError, match="not a cassette"):
        RecordingModel(Scripted(), path)
    assert path.read_text() == '{"id": 1}\n'


def test_files_that_cannot_be_opened_are_named(tmp_path: Path) -> None:
    """Missing to be read, or in the way of a folder to be written."""
    with pytest.raises(ModelError, match=r"file not found: .*none\.jsonl"):
        ReplayModel(tmp_path / "none.jsonl")
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot be written"):
        RecordingModel(Scripted(), tmp_path / "file" / "calls.jsonl")


def test_addresses_record_and_replay(tmp_path: Path) -> None:
    """record:FILE with `of` writes, replay:FILE reads; without a file they say so."""
    path = tmp_path / "calls.jsonl"
    model = Scripted()
    first = ask(provider({"model": f"record:{path}", "of": model}), asked())
    again = ask(provider(f"replay:{path}"), asked())
    assert first == again
    assert len(model.requests) == 1
    for empty in ("replay:", "record:"):
        with pytest.raises(ModelError, match="the file is missing"):
            provider(empty, **({"of": model} if empty == "record:" else {}))


def test_the_parsed_output_is_not_recorded(tmp_path: Path) -> None:
    """It is parsed again from the text."""
    path = tmp_path / "calls.jsonl"
    response = msgspec.structs.replace(FULL, output={"read": 1})
    (first,) = recorded(path, asked(), answer=lambda _: response)
    assert first.output == {"read": 1}
    assert ask(ReplayModel(path), asked())[0].output is None


def test_a_replay_has_the_identity_of_its_model(tmp_path: Path) -> None:
    """So a replayed judge counts as the same judge."""
    path = tmp_path / "calls.jsonl"
    recording = RecordingModel(lambda messages: "x", path)
    ask(recording, asked())
    assert recording.identity
    assert ReplayModel(path).identity == recording.identity
