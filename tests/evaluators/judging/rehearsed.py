"""Judges with prepared answers, which record the requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Usage

Answer = str | ModelResponse | Exception
Script = Callable[["Asked"], Answer]


class Asked:
    """A request as a judge sees it."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.text = "\n\n".join(str(message.content) for message in request.messages)
        self.system = "".join(m.content for m in request.messages if m.role == "system")
        found = re.search(r"`<<<NAME ([0-9a-f]{16})`", self.system)
        assert found is not None, "the judge is not told of the fence"
        self.mark = found[1]

    def part(self, name: str) -> str:
        """The text behind the fence under a name."""
        begin, end = f"<<<{name} {self.mark}\n", f"\n{self.mark} {name}>>>"
        return self.text.partition(begin)[2].partition(end)[0]

    def has(self, name: str) -> bool:
        """True if the prompt has a fenced text of this name."""
        return f"<<<{name} {self.mark}\n" in self.text

    def rating(self, word: str, reason: str = "so it is") -> str:
        """A rating in the requested form."""
        return self._verdict("rating", word, reason)

    def score(self, number: float, reason: str = "so it is") -> str:
        """A score in the requested form."""
        return self._verdict("score", number, reason)

    def _verdict(self, field: str, said: Any, reason: str) -> str:
        if self.request.schema is not None:
            return json.dumps({"reason": reason, field: said})
        return f"{reason}\n{field.upper()} {self.mark}: {said}"


class Scripted:
    """A model with prepared answers, or with a function of the request."""

    def __init__(self, *script: Answer | Script, schema: bool = False) -> None:
        self.model, self.supports_json_schema = "test:judge", schema
        self._script = script
        self.asked: list[Asked] = []

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """The next answer of the script; the last one again and again."""
        self.asked.append(Asked(request))
        said = self._script[min(len(self.asked), len(self._script)) - 1]
        if callable(said):
            said = said(self.asked[-1])
        if isinstance(said, Exception):
            raise said
        if isinstance(said, ModelResponse):
            return said
        return ModelResponse(said, usage=Usage(input_tokens=100, output_tokens=10, cost=0.001))


def rates(*words: str, schema: bool = False) -> Scripted:
    """A judge that gives these ratings in turn, then the last one again."""
    return Scripted(*(_rate(word) for word in words), schema=schema)


def scores(*given: float, schema: bool = False) -> Scripted:
    """A judge that gives these scores in turn, then the last one again."""
    return Scripted(*(_score(number) for number in given), schema=schema)


def _rate(word: str) -> Script:
    return lambda asked: asked.rating(word)


def _score(number: float) -> Script:
    return lambda asked: asked.score(number)
