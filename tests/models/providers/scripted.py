"""A scripted model for tests, which counts its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from proctor.errors import CallFailed
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message, Usage

Answer = Callable[[ModelRequest], str | ModelResponse | Exception]


def asked(text: str = "Capital of France?", **settings: object) -> ModelRequest:
    """A request with one message of the user's."""
    return ModelRequest((Message("user", text),), **settings)  # type: ignore[arg-type]


class Scripted:
    """Answers with the result of a function after a delay; an exception is raised."""

    def __init__(
        self,
        answer: Answer = lambda request: f"answer to {request.messages[-1].content}",
        *,
        model: str = "test:scripted",
        supports_json_schema: bool = False,
        seconds: float = 0.0,
    ) -> None:
        self._answer = answer
        self._seconds = seconds
        self.model = model
        self.supports_json_schema = supports_json_schema
        self.requests: list[ModelRequest] = []
        self.timeouts: list[float | None] = []

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        self.requests.append(request)
        self.timeouts.append(timeout)
        if timeout is not None and timeout < self._seconds:
            await asyncio.sleep(timeout)
            raise CallFailed("too late", retryable=True)
        await asyncio.sleep(self._seconds)
        response = self._answer(request)
        if isinstance(response, Exception):
            raise response
        if isinstance(response, str):
            return ModelResponse(response, self.model, usage=Usage(10, 2, cost=0.001))
        return response
