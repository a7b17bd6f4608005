"""VS Code chat (Copilot Chat): a JSON document with `requests`, each a question with the parts of its answer.

Adjacent texts form one message; a tool invocation starts a new one. Newer versions of VS Code store sessions as
edits, one per line; these are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from proctor.records.session import ToolCall, Usage
from proctor.sessions.genai.values import parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values, format_epoch
from proctor.sessions.importers.json_values import as_list, as_mapping, as_number, as_text, first_count, omit_keys, take
from proctor.sessions.importers.session_builder import CALL_FAILED, PendingSession, SessionBuilder, split_sessions

NAME = "vscode-chat"
_REQUEST_KEYS = {"requestId", "message", "response"}
_TOOL = "toolInvocationSerialized"
# Known parts of an answer that are neither text nor calls.
_OTHER_KINDS = frozenset((
    "prepareToolInvocation", "textEditGroup", "notebookEditGroup", "codeblockUri", "undoStop", "progressMessage",
    "progressTaskSerialized", "mcpServersStarting", "confirmation", "command", "treeData", "warning",
    "codeCitation", "references", "usedContext", "elicitation", "multiDiffData", "pullRequest", "thinking",
))  # fmt: skip


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for documents with `requests` that have a message or a response."""
    items = (as_mapping(item) for item in flatten_values(values))
    return any(
        len(_REQUEST_KEYS & as_mapping(request).keys()) > 1
        for item in items
        for request in as_list(item.get("requests"))
    )


def _is_session(value: Any) -> bool:
    return isinstance(as_mapping(value).get("requests"), list)


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file."""
    for pending in split_sessions(values, source, is_document=_is_session):
        yield _read_session(pending)


def _read_session(pending: PendingSession) -> ImportedSession:
    builder, recorded = SessionBuilder(), dict(as_mapping(pending.value))
    requests = take(recorded, "requests", list) or []
    for number, request in enumerate(requests, start=1):
        _add_request(builder, number, request)
    if title := as_text(recorded.get("customTitle")):
        recorded.setdefault("title", title)
    builder.recorded = recorded
    for name in ("creationDate", "lastMessageDate"):
        builder.add_time(_format_milliseconds(recorded.get(name)))
    imported = builder.build(as_text(recorded.get("sessionId")), NAME, pending.location, pending.strays)
    failure = _get_failure(requests[-1]) if requests else None
    error = (as_text(as_mapping(failure).get("message")) or CALL_FAILED) if failure else None
    return msgspec.structs.replace(imported, error=error)


def _get_failure(request: Any) -> Any:
    return as_mapping(as_mapping(request).get("result")).get("errorDetails")


def _add_request(builder: SessionBuilder, number: int, request: Any) -> None:
    rest = dict(as_mapping(request))
    if not rest:
        builder.add_unknown(f"request: {describe_type(request)}", request)
        return
    builder.add_time(_format_milliseconds(rest.get("timestamp")))
    message = rest.pop("message", None)
    if isinstance(message, dict):
        message = dict(message)
        builder.add_message("user", take(message, "text", str) or "")
        rest |= {"message": message} if message else {}
    elif isinstance(message, str):
        builder.add_message("user", message)
    elif message is not None:
        builder.add_unknown(f"message: {describe_type(message)}", message)
    _add_answer(builder, number, take(rest, "response", list) or ())
    counts = as_mapping(as_mapping(rest.get("result")).get("usage")) or as_mapping(rest.get("usage"))
    usage = Usage(first_count(counts, "promptTokens"), first_count(counts, "completionTokens"))
    if (model := as_text(rest.get("modelId"))) or usage != Usage():
        builder.add_model_call((number,), model, usage)
    if failure := _get_failure(rest):
        builder.add_event("error", failure)
    builder.add_note(number, rest)


def _add_answer(builder: SessionBuilder, number: int, parts: Sequence[Any]) -> None:
    texts: list[str] = []
    for part in parts:
        fields = dict(as_mapping(part))
        kind = fields.get("kind")
        if (text := _take_text(fields)) is not None:
            texts.append(text)
            builder.add_note(number, {"part": fields} if fields else {})
        elif kind == _TOOL and as_text(fields.get("toolId")):
            call = _take_call(fields)
            builder.add_message("assistant", "".join(texts), calls=[call])
            texts = []
            _add_result(builder, call, fields)
            builder.add_note(number, {"part": fields} if fields else {})
        elif isinstance(kind, str) and kind in _OTHER_KINDS:
            builder.add_event(kind, omit_keys(fields, "kind"))
        else:
            builder.add_unknown(f"part: {kind[:60] if isinstance(kind, str) else describe_type(part)}", part)
    if texts:
        builder.add_message("assistant", "".join(texts))


def _take_text(part: dict[str, Any]) -> str | None:
    """Remove the text of a part and return it; None if the part is not text."""
    if "kind" not in part:
        return part.pop("value") if isinstance(part.get("value"), str) else None
    content = as_mapping(part.get("content"))
    if part["kind"] == "markdownContent" and isinstance(content.get("value"), str):
        part["content"] = omit_keys(content, "value")
        return str(content["value"])
    reference = as_mapping(part.get("inlineReference"))
    if part["kind"] == "inlineReference":
        return as_text(part.get("name")) or as_text(reference.get("name")) or as_text(reference.get("path"))
    return None


def _take_call(part: dict[str, Any]) -> ToolCall:
    del part["kind"]
    details = as_mapping(part.get("toolSpecificData"))
    arguments: Any = details.get("rawInput")
    if arguments is None and (command := details.get("commandLine", details.get("command"))) is not None:
        arguments = {"command": command}
    return ToolCall(part.pop("toolId"), parse_arguments(arguments), call_id=take(part, "toolCallId", str))


def _add_result(builder: SessionBuilder, call: ToolCall, part: dict[str, Any]) -> None:
    """Add the result of a call that ended; a call that the user declined failed."""
    confirmed = part.get("isConfirmed")
    is_declined = confirmed is False or as_mapping(confirmed).get("type") == 0
    if part.get("isComplete") is not True and not is_declined:
        return
    is_error = as_mapping(part.get("resultDetails")).get("isError") is True
    error = "the user declined the call" if is_declined else None
    result = part.pop("resultDetails", None)
    builder.add_result(call.call_id, result, error=error, has_failed=is_error, name=call.name)


def _format_milliseconds(value: Any) -> str | None:
    number = as_number(value)
    return None if number is None else format_epoch(number / 1000)
