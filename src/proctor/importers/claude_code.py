"""Claude Code: one JSON object a line, one file a session (`~/.claude/projects/…/*.jsonl`).

What is said in a side chain, by a sub-agent, bears the agent's name; so does what the program says
in the user's place ("meta", "command", "summary"). A message that several lines tell has one model
call, with the usage of the last line. A resumed session goes on in the file that holds its history.
A branch that the user went back on is kept, and its tokens count, but it is no part of the
conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.genai.texts import BREAK
from proctor.genai.values import arguments_in
from proctor.importers.chronicle import Chronicle
from proctor.importers.claude_lines import (
    CAVEAT,
    SPEAKERS,
    Line,
    is_aside,
    lines_in,
    sessions_in,
    taken_back,
)
from proctor.importers.claude_usage import Tokens, usage_of
from proctor.importers.imported import Imported
from proctor.importers.shapes import (
    amount,
    joined,
    left,
    mapping,
    named,
    stem,
    text,
    without,
)
from proctor.records.session import ToolCall

NAME = "claude-code"

_OTHER_TYPES = ("summary", "progress", "file-history-snapshot", "queue-operation")
# What the program puts into the user's mouth when a command is typed that no model sees.
_COMMANDS = (
    "<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>",
    "<bash-input>", "<bash-stdout>", "<bash-stderr>",
)  # fmt: skip
_NOTICES = (CAVEAT, "<task-notification>")
_SYNTHETIC = "<synthetic>"
_THOUGHTS = ("thinking", "redacted_thinking")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_SHOWN = ("text", "image", "document")
_KNOWN = ("type", "message", "toolUseResult")
_SAID = (*_KNOWN, "attachment")
_QUEUED = "queued_command"


def looks_like(values: Sequence[Any]) -> bool:
    """True for lines whose `type` says who speaks and whose `message` holds what is said."""
    return any(_is_line(value) for _, value in lines_in((0, value) for value in values))


def _is_line(value: Any) -> bool:
    line = mapping(value)
    kind = line.get("type")
    if kind in SPEAKERS:
        message = line.get("message")
        return isinstance(message, dict) and "content" in message
    known = isinstance(kind, str) and kind in _OTHER_TYPES
    return known and any(key in line for key in ("leafUuid", "sessionId", "messageId", "data"))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The session of a file; several, if their lines are not linked."""
    numbered = enumerate(lines_in(values))
    for lines in sessions_in([Line(n, place, it, mapping(it)) for place, (n, it) in numbered]):
        yield _Telling(lines).imported(source)


class _Telling:
    """One session, told line by line."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._told = Chronicle()
        self._lines = lines
        self._ids: list[str] = []
        self._seen: dict[str, tuple[int, Any]] = {}
        self._tokens = Tokens()
        self._in_progress: set[tuple[Any, ...]] = set()
        self._gone = taken_back(lines)
        self._branches: dict[str, list[Any]] = {}
        said = [line.fields for line in lines if line.fields.get("type") in SPEAKERS]
        agents = {text(line.get("agentId")) for line in said}
        # The file of a sub-agent: what it says is the conversation, and no side chain of one.
        self._agent = agents.pop() if len(agents) == 1 and all(map(is_aside, said)) else None

    def imported(self, source: str) -> Imported:
        for line in self._lines:
            self._line(line)
        told, ids = self._told, self._ids
        id_ = ids[-1] if ids else stem(source)
        if len(ids) > 1:
            told.recorded["sessions"] = ids
        if self._agent is not None:
            told.recorded |= {"agent": self._agent, **({"sub_agent_of": id_} if ids else {})}
            id_ = f"{id_}/{self._agent}" if ids else id_
        if tokens := self._tokens.recorded():
            told.recorded["tokens"] = tokens
        return told.imported(id_, NAME, source)

    def _line(self, line: Line) -> None:
        fields, kind = line.fields, line.fields.get("type")
        own = text(fields.get("sessionId"))
        if own is not None and own not in self._ids:
            self._ids.append(own)
        self._told.at(fields.get("timestamp"))
        if self._repeats(line):
            return
        if (branch := self._gone.get(text(fields.get("uuid")) or "")) is not None:
            self._take_back(line, branch)
        elif kind in SPEAKERS:
            self._message(line, fields, fields)
        elif kind == "summary":
            self._told.recorded["title"] = fields.get("summary")
            self._told.keep("summary", line.value)
        elif kind == "progress" and (inner := _of_an_agent(fields)):
            self._message(line, inner, fields)
        elif kind == "system":
            self._told.keep("system", line.value)
        elif kind == "attachment" and _is_queued(mapping(fields.get("attachment"))):
            self._queued(line, fields["attachment"])
        else:
            self._told.pass_over(None, line.value)

    def _take_back(self, line: Line, branch: str) -> None:
        """A line of a branch that the user went back on: it stands with the others of it."""
        if branch not in self._branches:
            self._branches[branch] = []
            self._told.keep("rewound", {"taken": self._branches[branch]})
        self._branches[branch].append(line.value)
        fields = line.fields
        if fields.get("type") == "progress":
            fields = _of_an_agent(fields)
        if fields.get("type") == "assistant":
            message = mapping(fields.get("message"))
            self._used(_key(line, fields, message), message)

    def _queued(self, line: Line, attachment: Mapping[str, Any]) -> None:
        """What the user said while the model was at work: it is told in no other line."""
        said = attachment["prompt"]
        speaker = self._speaker(line.fields, line.fields, {}, said)
        if speaker is None and not _is_of_the_user(attachment):
            speaker = "meta"
        parts = [{"type": "text", "text": said}] if isinstance(said, str) else said
        self._user(line, line.fields, parts, speaker)
        rest = left(attachment, {"type": _QUEUED, "prompt": said})
        around = without(line.fields, "type", "attachment")
        self._told.note(line.number, around | _under("attachment", rest))

    def _repeats(self, line: Line) -> bool:
        """A resumed session begins with lines of the one before: those are told once."""
        fields = line.fields
        uuid, message = text(fields.get("uuid")), fields.get("message")
        if uuid is None or (message is None and fields.get("attachment") is None):
            return False
        said = {name: fields.get(name) for name in _SAID}
        number, before = self._seen.setdefault(uuid, (line.number, said))
        if before is said or before != said:
            return False
        self._told.note(line.number, {"repeats_line": number, **without(fields, *_SAID)})
        if fields.get("type") == "assistant":
            self._tokens.add(mapping(message))
        return True

    def _message(self, line: Line, fields: Mapping[str, Any], around: Mapping[str, Any]) -> None:
        message = fields.get("message")
        said = mapping(message).get("content")
        if not isinstance(said, str | list):
            self._told.pass_over(f"{named(fields)} without content", line.value)
            return
        message = mapping(message)
        speaker = self._speaker(fields, around, message, said)
        parts: Sequence[Any] = [{"type": "text", "text": said}] if isinstance(said, str) else said
        if fields is not around:
            parts = self._new(fields, message, parts)
        if fields.get("type") == "assistant":
            self._assistant(line, fields, message, parts, speaker)
        else:
            self._user(line, fields, parts, speaker)
        rest = left(message, {"role": fields["type"], "content": said, "type": "message"})
        self._told.note(line.number, _outside(fields, around, parts) | _under("message", rest))

    def _new(
        self, fields: Mapping[str, Any], message: Mapping[str, Any], parts: Sequence[Any]
    ) -> Sequence[Any]:
        """The parts that no line of progress told before: those tell a message time and again."""
        names = (text(message.get("id")), text(fields.get("uuid")), text(fields.get("timestamp")))
        which = next((name for name in names if name), None)
        if which is None:
            return parts
        keys = [(fields["type"], which, msgspec.json.encode(part)) for part in parts]
        new = [part for key, part in zip(keys, parts, strict=True) if key not in self._in_progress]
        self._in_progress.update(keys)
        return new

    def _speaker(
        self,
        fields: Mapping[str, Any],
        around: Mapping[str, Any],
        message: Mapping[str, Any],
        said: str | Sequence[Any],
    ) -> str | None:
        """Who else than the user and the model speaks, if it is someone else."""
        if fields is not around or (is_aside(fields) and self._agent is None):
            agent = text(fields.get("agentId")) or text(mapping(around.get("data")).get("agentId"))
            return f"sub-agent {agent}" if agent else "sub-agent"
        if message.get("model") == _SYNTHETIC or fields.get("isApiErrorMessage") is True:
            return "synthetic"
        if fields.get("isMeta") is True:
            return "meta"
        if fields.get("isCompactSummary") is True:
            return "summary"
        begins = said if isinstance(said, str) else _first_text(said)
        if begins.startswith(_NOTICES):
            return "meta"
        return "command" if begins.lstrip().startswith(_COMMANDS) else None

    def _assistant(
        self,
        line: Line,
        fields: Mapping[str, Any],
        message: Mapping[str, Any],
        parts: Sequence[Any],
        speaker: str | None,
    ) -> None:
        key = _key(line, fields, message)
        calls: list[ToolCall] = []
        said: list[Any] = []
        for part in parts:
            kind = mapping(part).get("type")
            if kind in _THOUGHTS:
                self._told.keep(str(kind), without(part, "type"))
            elif kind in _CALLS and text(part.get("name")):
                call = _call(part)
                calls.append(call)
                told = {"type": _CALLS[0], "id": call.call_id, "name": call.name}
                self._rest(line, left(part, told | {"input": part.get("input")}), call.call_id)
            elif kind in _SHOWN:
                said.append(part)
                continue
            else:
                self._part(line, part)
            said.append(BREAK)
        if calls or any(part is not BREAK for part in said):
            content = joined(said, _text_in, "assistant")
            self._told.say("assistant", content, name=speaker, calls=calls, key=key)
        self._used(key, message)

    def _used(self, key: Hashable, message: Mapping[str, Any]) -> None:
        self._tokens.add(message)
        model = text(message.get("model"))
        if model != _SYNTHETIC and (model or message.get("usage")):
            self._tokens.hold(key, message)
            usage = usage_of(mapping(message.get("usage")))
            reason = text(message.get("stop_reason"))
            self._told.used(key, model, usage, finish_reason=reason)

    def _user(
        self, line: Line, fields: Mapping[str, Any], parts: Sequence[Any], speaker: str | None
    ) -> None:
        said = []
        for part in parts:
            if mapping(part).get("type") in _SHOWN:
                said.append(part)
            else:
                self._part(line, part, fields.get("toolUseResult"))
        if said:
            self._told.say("user", joined(said, _text_in), name=speaker)

    def _part(self, line: Line, part: Any, beside: Any = None) -> None:
        """A part that nobody says: a tool's result, or something that is not understood."""
        if _is_result(part):
            self._result(line, part, beside)
        else:
            self._told.pass_over(f"content: {named(part)}", part)

    def _rest(self, line: Line, rest: Mapping[str, Any], call_id: str | None) -> None:
        """What stands in a part beside what is told of it."""
        if rest:
            self._told.note(line.number, {"of": call_id, **rest})

    def _result(self, line: Line, part: Mapping[str, Any], beside: Any) -> None:
        """What a tool gave back; `beside` is what only the program knows of it."""
        content = part.get("content")
        result = joined(content, _text_in) if isinstance(content, list) else content
        error = None
        if part.get("is_error") is True:
            error = result if isinstance(result, str) and result else "it failed"
        inside = part.get("toolUseResult") if beside is None else None
        beside = inside if beside is None else beside
        known = mapping(beside)
        took = amount(known.get("totalDurationMs", known.get("durationMs")))
        call_id = text(part.get("tool_use_id"))
        self._told.answer(call_id, result, error=error, duration_ms=took)
        if beside is not None and beside != content:
            self._told.keep("toolUseResult", {"call_id": call_id, "details": beside})
        told = {"type": "tool_result", "content": content, "tool_use_id": call_id}
        told["is_error"] = part.get("is_error") is True
        if inside is not None:
            told["toolUseResult"] = inside
        self._rest(line, left(part, told), call_id)


def _of_an_agent(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The line of a sub-agent that a line of progress holds."""
    inner = mapping(mapping(fields.get("data")).get("message"))
    return inner if inner.get("type") in SPEAKERS and "message" in inner else {}


def _key(line: Line, fields: Mapping[str, Any], message: Mapping[str, Any]) -> Hashable:
    """What the lines of one message have in common."""
    return text(message.get("id")) or text(fields.get("requestId")) or line.place


def _is_queued(attachment: Mapping[str, Any]) -> bool:
    said = attachment.get("prompt")
    return attachment.get("type") == _QUEUED and isinstance(said, str | list) and bool(said)


def _is_of_the_user(attachment: Mapping[str, Any]) -> bool:
    """False for what a task, or another agent, has put into the queue."""
    origin = mapping(attachment.get("origin")).get("kind", "human")
    mode = attachment.get("commandMode", "prompt")
    return origin == "human" and mode == "prompt" and attachment.get("isMeta") is not True


def _outside(
    fields: Mapping[str, Any], around: Mapping[str, Any], parts: Sequence[Any]
) -> dict[str, Any]:
    """What stands around a message; what the program knows of a result is told with the result."""
    if fields is not around:
        return without(around, "type")
    has_result = fields.get("type") == "user" and any(map(_is_result, parts))
    return without(fields, *(_KNOWN if has_result else _KNOWN[:2]))


def _under(name: str, rest: Mapping[str, Any]) -> dict[str, Any]:
    return {name: rest} if rest else {}


def _is_result(part: Any) -> bool:
    return str(mapping(part).get("type")).endswith("tool_result")


def _text_in(part: Any) -> str | None:
    """The text of a part that is nothing else."""
    found = mapping(part)
    said = found.get("text")
    return (
        said if len(found) == 2 and found.get("type") == "text" and isinstance(said, str) else None
    )


def _first_text(parts: Sequence[Any]) -> str:
    return next((said for part in parts if (said := text(mapping(part).get("text")))), "")


def _call(part: Mapping[str, Any]) -> ToolCall:
    return ToolCall(part["name"], arguments_in(part.get("input")), call_id=text(part.get("id")))
