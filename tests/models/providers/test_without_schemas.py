"""A server without schemas gets instructions instead, and its adapter says so."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from proctor.errors import CallFailed, Unreadable
from proctor.models import wire as schemas
from proctor.models.connect import provider
from proctor.models.model_calls import aask
from proctor.models.wrappers.cached import Cached, DiskCache
from proctor.models.wrappers.limits import Paced
from proctor.ports import ProviderAdapter
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message
from proctor.testing import Fault, RecordedRequest
from tests.models.providers.scripted import asked
from tests.models.providers.wires import WIRES, adapter_for
from tests.servers.model_server import ModelServer

NAMED = {
    "openai": "Unknown parameter: response_format",
    "anthropic": "output_config: Extra inputs are not permitted",
    "gemini": "Unknown name responseJsonSchema at generation_config: Cannot find field.",
}


class City(msgspec.Struct):
    """What is asked for."""

    name: str


def _unknowing(wire: str) -> ModelServer:
    """A server that refuses every request with a schema, and answers all others."""
    body = json.dumps({"error": {"message": NAMED[wire], "type": "invalid_request_error"}}).encode()

    def misbehave(asked: RecordedRequest) -> Fault | None:
        return Fault.status(400, body=body) if asked.schema is not None else None

    hint = "It must fit this JSON Schema"
    return ModelServer(
        lambda asked: '{"name": "Paris"}' if hint in str(asked.messages) else "no idea", choose_fault=misbehave
    )


def _asked(model: ProviderAdapter) -> ModelResponse:
    return asyncio.run(aask(model, "Which city?", City, timeout=9.0))


@pytest.mark.parametrize("wire", WIRES)
def test_a_rejected_schema_becomes_instructions(wire: str) -> None:
    """Two requests for the first answer, one for the next; `supports_json_schema` changes."""
    with _unknowing(wire) as server:
        model = adapter_for(wire, server.url)
        before, first, after = model.supports_json_schema, _asked(model), model.supports_json_schema
        assert (before, after) == (True, False)
        assert (first.output, first.attempts) == (City("Paris"), 2)
        assert _asked(model).output == City("Paris")
        assert [call.schema is None for call in server.calls] == [False, True, True]


@pytest.mark.parametrize("wire", WIRES)
def test_wrappers_pass_on_schema_support(wire: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A wrapper has the current `supports_json_schema` of its model."""
    with _unknowing(wire) as server:
        inside = adapter_for(wire, server.url)
        model = Cached(Paced(inside, per_second=1000), DiskCache(tmp_path_factory.mktemp("kept")))
        before, response, after = model.supports_json_schema, _asked(model), model.supports_json_schema
        assert (before, response.output, after) == (True, City("Paris"), False)


@pytest.mark.parametrize("wire", WIRES)
def test_other_rejections_are_errors(wire: str) -> None:
    """Without a schema in the request, or its name in the message, nothing is left out."""
    with ModelServer() as server:
        model = adapter_for(wire, server.url)
        for message, schema in (("messages are too long", {"type": "object"}), (NAMED[wire], None)):
            body = json.dumps({"error": {"message": message}}).encode()
            server.faults.append(Fault.status(400, body=body))
            with pytest.raises(CallFailed, match="400"):
                asyncio.run(model.complete(asked(schema=schema), timeout=9.0))
        assert model.supports_json_schema


def test_instructions_follow_the_users_text_or_stand_alone() -> None:
    """Some servers require user and assistant to alternate."""
    with _unknowing("openai") as server:
        model = adapter_for("openai", server.url)
        talk = (Message("user", "Which?"), Message("assistant", "Hm."))
        for messages in (talk[:1], talk):
            request = ModelRequest(messages, schema={"type": "object"})
            asyncio.run(model.complete(request, timeout=9.0))
    roles = [[m.role for m in call.messages] for call in server.calls if call.schema is None]
    assert roles == [["user"], ["user", "assistant", "user"]]


def test_a_rejection_needs_a_schema_in_the_request() -> None:
    """Names in the message are not enough."""
    assert not schemas.rejects_schema("response_format", asked(), ("response_format",))


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_ignores_schemas_gets_a_fix(wire: str) -> None:
    """Prose twice although a schema was sent: the message says what to write."""
    remedy = "if the server ignores schemas, connect it with supports_json_schema: false"
    with ModelServer(lambda asked: "Paris, I think.") as server:
        with pytest.raises(Unreadable, match=remedy):
            _asked(adapter_for(wire, server.url))
        with pytest.raises(Unreadable) as caught:
            _asked(adapter_for(wire, server.url, supports_json_schema=False))
    assert remedy not in str(caught.value)


def test_json_that_does_not_fit_has_no_schema_hint() -> None:
    """The server did enforce JSON; something else is wrong."""
    with ModelServer(lambda asked: '{"town": "Paris"}') as server, pytest.raises(Unreadable) as caught:
        _asked(adapter_for("openai", server.url))
    assert "supports_json_schema" not in str(caught.value)


IN_WORDS = {"model": "http://127.0.0.1:9/v1#qwen", "supports_json_schema": False}


def test_on_the_command_line_model_options_come_from_python() -> None:
    """Where only an address is possible, it names a mapping with the options."""
    assert provider("tests.models.providers.test_without_schemas:IN_WORDS").supports_json_schema is False
