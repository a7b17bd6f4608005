"""Models that are functions of the request."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Usage


class Scripted:
    """A model that answers by a function of the request, and records its requests."""

    def __init__(
        self, answer: Callable[[ModelRequest], str | ModelResponse], *, supports_json_schema: bool = False
    ) -> None:
        self.model = "scripted:judge"
        self.supports_json_schema = supports_json_schema
        self.asked: list[ModelRequest] = []
        self._answer = answer

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        self.asked.append(request)
        said = self._answer(request)
        if isinstance(said, ModelResponse):
            return said
        return ModelResponse(said, self.model, usage=Usage(10, 5, cost=0.001))


def text_of(request: ModelRequest) -> str:
    """The complete text of a request."""
    return "\n".join(str(message.content) for message in request.messages)


def mark_of(request: ModelRequest) -> str:
    """The mark of the call."""
    found = re.search(r"^<<<[A-Z ]+ ([0-9a-f]{16})$", text_of(request), re.MULTILINE)
    assert found is not None
    return found[1]


def block(request: ModelRequest, name: str) -> str:
    """The fenced text of a name."""
    mark = mark_of(request)
    _, _, rest = text_of(request).partition(f"<<<{name} {mark}\n")
    return rest.partition(f"\n{mark} {name}>>>")[0]


def line(request: ModelRequest, field: str, choice: Any) -> str:
    """A verdict in the requested form."""
    return f"{field} {mark_of(request)}: {choice}"
