"""Messages made of `parts`, as Gemini's API has them: text, thoughts, calls and their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.genai.texts import BREAK
from proctor.genai.values import arguments_in
from proctor.importers.chronicle import Chronicle
from proctor.importers.shapes import joined, left, mapping, named, text, without
from proctor.records.session import Role, ToolCall

_SHOWN = ("inlineData", "fileData", "executableCode", "codeExecutionResult")


def tell_parts(
    told: Chronicle,
    role: str,
    parts: Sequence[Any],
    *,
    name: str | None = None,
    status: str | None = None,
    calls: Sequence[ToolCall] = (),
) -> dict[str, Any]:
    """Tell what the parts say; gives what stood beside the calls, for a note.

    `calls` are those that the message has beside its parts.
    """
    said: list[Any] = []
    calls = [*calls]
    rest: list[Any] = []
    for part in parts:
        found = mapping(part)
        call = mapping(found.get("functionCall"))
        if found.get("thought") is True:
            told.keep("thinking", without(found, "thought"))
        elif text(call.get("name")):
            made = _call(call, found)
            calls.append(made)
            told_of = {"id": made.call_id, "name": made.name, "args": call.get("args")}
            signed = {"functionCall": call, "thoughtSignature": made.signature}
            rest += _beside(made.call_id, left(found, signed) | left(call, told_of))
        elif isinstance(found.get("functionResponse"), dict):
            rest += _answered(told, found, status)
        elif isinstance(found.get("text"), str) or any(key in found for key in _SHOWN):
            said.append(part)
            continue
        else:
            told.pass_over(f"part: {named(part)}", part)
        said.append(BREAK)
    if calls or any(part is not BREAK for part in said):
        speaker: Role = "user" if role == "user" else "assistant"
        told.say(speaker, joined(said, _text_in, speaker), name=name, calls=calls)
    return {"parts": rest} if rest else {}


def _call(call: Mapping[str, Any], part: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        call["name"],
        arguments_in(call.get("args")),
        call_id=text(call.get("id")),
        signature=text(part.get("thoughtSignature")),
    )


def _answered(told: Chronicle, part: Mapping[str, Any], status: str | None) -> list[Any]:
    """Tell a tool's answer; gives what stood beside it."""
    response = part["functionResponse"]
    given, call_id = response.get("response"), text(response.get("id"))
    said = mapping(given).get("error")
    error = None
    if said is not None or status in ("error", "cancelled", "canceled"):
        error = said if isinstance(said, str) and said else f"it ended with {status or 'an error'}"
    result = given["output"] if isinstance(given, dict) and set(given) == {"output"} else given
    name = told.answer(call_id, result, error=error, name=text(response.get("name")))
    told_of = {"id": call_id, "name": name, "response": given}
    return _beside(call_id, without(part, "functionResponse") | left(response, told_of))


def _beside(call_id: str | None, rest: dict[str, Any]) -> list[Any]:
    return [{"of": call_id, **rest}] if rest else []


def _text_in(part: Any) -> str | None:
    found = mapping(part)
    said = found.get("text")
    return said if len(found) == 1 and isinstance(said, str) else None
