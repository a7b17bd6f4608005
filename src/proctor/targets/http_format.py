"""The format of an existing endpoint: a template of the request, and where the answer is in the response."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from string import Template
from typing import Any

import msgspec

from proctor.errors import CallFailed, FieldMissing, Problem, TargetError, join_hints, suggest_name
from proctor.models.prompts import render_value
from proctor.records import codec
from proctor.records.fields.path import Path, parse_path
from proctor.records.sample import Sample
from proctor.records.session import Usage
from proctor.records.trial import Reply
from proctor.sessions import current as sessions
from proctor.targets.wire import excerpt

INPUT, ID = "input", "id"
USAGE_FIELDS = ("input_tokens", "output_tokens")
_INDEX = re.compile(r"\[(-?\d+)\]")
_DOTTED_INDEX = re.compile(r"\.(-?\d+)(?![^.'])")
# The last event of a stream in the format of OpenAI.
_DONE = "[DONE]"
EVENT_STREAM = "text/event-stream"
_EVENT_FIELD = re.compile(r"(?:data|event|id|retry)?:|(?:data|event|id|retry)\Z")
# The parts of a response that an error message shows.
_MAX_KEYS, _MAX_DEPTH = 12, 4
# Where the text of a response usually is, and how deep it is searched.
_TEXT_KEYS = frozenset(("answer", "completion", "content", "delta", "message", "output", "reply", "response", "text"))
_PLAIN_KEY, _MAX_TEXT_DEPTH = re.compile(r"[A-Za-z_][\w-]*"), 10


class BodyTemplate:
    """A JSON value in which `$input`, `$id`, options and keys of the input are placeholders.

    A string that is only a placeholder becomes the value itself, of any type; inside a longer string, the value becomes
    text. `$$` is a dollar sign.

    >>> BodyTemplate({"q": "$input", "note": "sample $id"}).fill(Sample("7", [1, 2]), {})
    {'q': [1, 2], 'note': 'sample 7'}
    """

    def __init__(self, body: Any) -> None:
        self.body = body
        self.names = frozenset(name for text in _list_texts(body) for name in Template(text).get_identifiers())
        problems = [
            Problem("body", f"a $ is not followed by a name: {text[:60]!r}")
            for text in _list_texts(body)
            if not Template(text).is_valid()
        ]
        if problems:
            raise TargetError("the body is invalid", problems=problems, fix="write $$ for a dollar sign")
        if not self.names:
            fix = 'write $input where it belongs: {"message": "$input"}'
            raise TargetError("the body has no placeholder: it would be the same for all samples", fix=fix)

    def fill(self, sample: Sample[Any, Any], options: Mapping[str, Any]) -> Any:
        """Return the body for one sample."""
        keys = {str(key): value for key, value in sample.input.items()} if isinstance(sample.input, Mapping) else {}
        values = {**keys, **options, ID: sample.id, INPUT: sample.input}
        missing = sorted(self.names - values.keys())
        if missing:
            names = " and ".join(f"${name}" for name in missing)
            noun = "placeholder" if len(missing) == 1 else "placeholders"
            what = f"the body has the {noun} {names}, but the input of {sample.id!r} and the options have no such key"
            hints = [f"${name}: {suggest_name(name, values)}" for name in missing]
            raise TargetError(what, fix=join_hints(*hints, f"${INPUT} is the whole input"))
        return _fill(self.body, values)

    def find_unused(self, options: Mapping[str, Any]) -> list[str]:
        """Return one sentence for each option that the body does not use; it names a similar placeholder."""
        others = [name for name in self.names if name not in {*options, ID, INPUT}]
        similar = {name: get_close_matches(name, others, n=1) for name in options if name not in self.names}
        return [
            f"the body does not use the option {name!r}; write ${name} "
            + (f"instead of ${placeholder[0]}" if placeholder else "where it belongs")
            for name, placeholder in similar.items()
        ]


class ResponseFormat:
    """Where the output and the usage are in a response, or in each event of a stream.

    `path` and `usage` are written like `choices[0].message.content` or `choices.0.message.content`.
    """

    def __init__(self, path: Any = None, usage: Any = None, *, stream: Any = False) -> None:
        if not isinstance(stream, bool):
            raise TargetError(f"must be true or false, got {stream!r}", where="stream", fix="write stream: true")
        if not isinstance(usage or {}, Mapping) or (usage or {}).keys() - set(USAGE_FIELDS):
            fix = "write usage: {input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens}"
            raise TargetError(f"may have the keys {' and '.join(USAGE_FIELDS)}", where="usage", fix=fix)
        self.path = None if path is None else _parse(path, "response")
        self.usage = {name: _parse(text, f"usage.{name}") for name, text in (usage or {}).items()}
        # Messages show the paths as the user wrote them.
        self._written = {"response": path, **(usage or {})}
        self.stream = stream

    def describe(self) -> list[Any]:
        """Return what distinguishes one format from another."""
        usage = {name: path.text for name, path in self.usage.items()}
        return [self.path.text if self.path else None, usage, self.stream]

    def read(self, body: bytes, content_type: str, name: str, redact: Callable[[str], str]) -> Reply:
        """Return the output of a response; `redact` removes secrets from messages."""
        if self.stream:
            return self._read_stream(body, content_type, name, redact)
        try:
            response = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CallFailed(f"{name} sent invalid JSON ({error}): {excerpt(body, redact)}") from None
        assert self.path is not None
        try:
            output = self.path.find(response)
        except FieldMissing as error:
            reason = error.what.replace("the result", "the response")
            raise self._make_error([response], self._write_like_user(reason), name, redact) from None
        return Reply(output, self._read_usage([response], name, redact))

    def _read_stream(self, body: bytes, content_type: str, name: str, redact: Callable[[str], str]) -> Reply:
        is_sse = content_type == EVENT_STREAM
        server_events = list(_read_server_events(body)) if is_sse else []
        texts = [data for _, data in server_events] if is_sse else list(_read_lines(body))
        problem = next((data for kind, data in server_events if _is_failure(kind)), None)
        if problem is not None:
            raise CallFailed(f"{name} sent an error in its stream: {excerpt(problem.encode(), redact)}")
        if self.path is None:
            if problem := next((text for text in texts if _find_error(_decode_or_none(text))), None):
                raise CallFailed(f"{name} sent an error in its stream: {excerpt(problem.encode(), redact)}")
            return Reply("".join(texts))
        events = []
        for text in texts:
            try:
                events.append(msgspec.json.decode(text))
            except msgspec.DecodeError as error:
                raise CallFailed(
                    f"{name} sent an event that is not JSON ({error}): {excerpt(text.encode(), redact)}"
                ) from None
        failure = next(filter(None, map(_find_error, events)), None)
        if failure is not None:
            raise CallFailed(f"{name} sent an error in its stream: {excerpt(codec.encode(failure), redact)}")
        pieces = [self.path.find(event) for event in events if self.path.exists(event)]
        if not pieces:
            reason = (
                f"none of {len(events)} events has {self._written['response']}"
                if events
                else "the stream has no events"
            )
            raise self._make_error(events, reason, name, redact)
        wrong = next((piece for piece in pieces if piece is not None and not isinstance(piece, str)), None)
        if wrong is not None:
            raise CallFailed(
                f"{name}: {self._written['response']} in an event is not text but {redact(_describe_shape(wrong))}\n"
                f"{redact(_advise_response(events))}"
            )
        return Reply("".join(piece for piece in pieces if piece is not None), self._read_usage(events, name, redact))

    def _read_usage(self, responses: Sequence[Any], name: str, redact: Callable[[str], str]) -> Usage | None:
        """Return the usage of a response, or the last one in a stream; None if a part of it is missing."""
        counts: dict[str, int] = {}
        for field, path in self.usage.items():
            values = [path.find(response) for response in responses if path.exists(response)]
            numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
            if not numbers:
                shape = redact(_describe_shape(responses[-1] if responses else None, path.keys))
                what = f"the usage of {name} is unknown: a response has no number at {self._written[field]}"
                # Responses may have different shapes; one of them is enough.
                if not any(text.startswith(what) for text in sessions.warnings.get() or ()):
                    sessions.warn(f"{what}; its shape is {shape}. Fix: correct `usage: {{{field}: …}}` in the target")
                return None
            counts[field] = numbers[-1]
        return sessions.check_usage(Usage(**counts), name) if counts else None

    def _write_like_user(self, text: str) -> str:
        """Write list indexes in a message in brackets if the path of the user has brackets."""
        return _DOTTED_INDEX.sub(r"[\1]", text) if "[" in str(self._written["response"]) else text

    def _make_error(self, responses: Sequence[Any], reason: str, name: str, redact: Callable[[str], str]) -> CallFailed:
        assert self.path is not None
        path = find_text_path(responses)
        # The first event of a stream is often one without text.
        response = next((each for each in responses if path and _parse(path, "").exists(each)), None)
        response = responses[0] if response is None and responses else response
        error = response.get("error") if isinstance(response, dict) else None
        reported = f"; its error: {excerpt(codec.encode(error), redact)}" if error else ""
        shape = redact(_describe_shape(response, self.path.keys))
        return CallFailed(
            f"{name} sent no output at {self._written['response']}: {reason}{reported}\n"
            f"{'An event' if self.stream else 'The response'} has this shape: {shape}\n"
            f"{redact(_advise_response(responses))}"
        )


def _advise_response(responses: Sequence[Any]) -> str:
    path = find_text_path(responses)
    advice = f"{path}`, if that is the output" if path else "PATH`, where PATH leads to a text in that shape"
    return f"Fix: in the target, write `response: {advice}"


def advise_path(body: bytes) -> str:
    """Return the fix for a response that has no `output`: the path of its text, or the keys that it has."""
    response = msgspec.json.decode(body)
    if path := find_text_path([response]):
        return f"add `response: {path}` to the target, if that is the output"
    keys = ", ".join(list(response)[:_MAX_KEYS]) if isinstance(response, dict) else ""
    return f"add `response: PATH` to the target, where PATH is {f'one of its keys: {keys}' if keys else 'the output'}"


def find_text_path(responses: Sequence[Any]) -> str | None:
    """Return the path that most likely has the text of a response, or the pieces of it in events; None without one.

    A path that ends with a usual name comes first, then the one with the most different texts, then the longest. Under
    another name, only a text of several words counts: the others may be ids.

    >>> find_text_path([{"id": "chatcmpl-1", "choices": [{"delta": {"content": "Hi"}}]}])
    'choices[0].delta.content'
    """
    texts: dict[str, list[str]] = {}
    for response in responses:
        for path, text in _list_text_paths(response):
            texts.setdefault(path, []).append(text)

    def rank(path: str) -> tuple[bool, int, int]:
        return path.rpartition(".")[2] in _TEXT_KEYS, len(set(texts[path])), sum(map(len, texts[path]))

    likely = (path for path in texts if rank(path)[0] or any(" " in text for text in texts[path]))
    return max(likely, key=rank, default=None)


def _list_text_paths(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > _MAX_TEXT_DEPTH:
        return
    if isinstance(value, str) and path:
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            if key != "error" and _PLAIN_KEY.fullmatch(key):
                yield from _list_text_paths(part, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list) and value:
        yield from _list_text_paths(value[0], f"{path}[0]", depth + 1)


def _parse(path: Any, where: str) -> Path:
    normal = _INDEX.sub(r".\1", path).lstrip(".") if isinstance(path, str) else path
    if isinstance(normal, str) and ("[" in normal or "]" in normal):
        fix = "write an index as choices[0].message.content or choices.0.message.content"
        raise TargetError(f"{path!r} is not a path: a bracket is not closed or has no number", where=where, fix=fix)
    return parse_path(normal)


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _list_texts(part)


def _fill(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _fill(part, values) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_fill(part, values) for part in value]
    if not isinstance(value, str):
        return value
    template = Template(value)
    [*names] = template.get_identifiers()
    if len(names) == 1 and value in (f"${names[0]}", f"${{{names[0]}}}"):
        return values[names[0]]
    return template.substitute({name: render_value(values[name]) for name in names})


def _is_failure(kind: str) -> bool:
    return kind == "error" or kind.endswith(".failed")


def _find_error(event: Any) -> Any:
    """Return the error that an event reports, or None."""
    if not isinstance(event, dict):
        return None
    return event.get("error") or (event if _is_failure(str(event.get("type", ""))) else None)


def _decode_or_none(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _read_server_events(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the type and the data of each server-sent event, without the one that ends the stream.

    Text that is no event, such as the page of a proxy after the last event, is an error.
    """
    text = body.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        lines = block.split("\n")
        data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
        kind = next((line[6:].strip() for line in lines if line.startswith("event:")), "")
        if not any(map(_EVENT_FIELD.match, lines)) and block.strip():
            yield "error", block.strip()
        elif (data or _is_failure(kind)) and "\n".join(data).strip() != _DONE:
            yield kind, "\n".join(data)


def _read_lines(body: bytes) -> Iterator[str]:
    for line in body.decode("utf-8-sig", "replace").splitlines():
        if line.strip() and line.strip() != _DONE:
            yield line


def _describe_shape(value: Any, path: Sequence[str] = (), depth: int = 0) -> str:
    """Describe a JSON value by its keys and types, without its contents; it is complete along a path.

    >>> _describe_shape({"choices": [{"text": "secret"}], "n": 1})
    '{choices: [{text: string}], n: number}'
    """

    def describe(key: Any, part: Any) -> str:
        is_on_path = bool(path) and str(key) == path[0]
        # Two more levels are shown where the path ends.
        inner_depth = min(depth + 1, _MAX_DEPTH - 2) if is_on_path else depth + 1
        return _describe_shape(part, path[1:] if is_on_path else (), inner_depth)

    if isinstance(value, dict):
        if depth >= _MAX_DEPTH:
            return "{…}"
        names = [key for i, key in enumerate(value) if i < _MAX_KEYS or (path and str(key) == path[0])]
        keys = [f"{key}: {describe(key, value[key])}" for key in names]
        return "{" + ", ".join([*keys, *(["…"] if len(value) > len(names) else [])]) + "}"
    if isinstance(value, list):
        index = int(path[0]) if path and path[0].removeprefix("-").isdecimal() else 0
        index = index if -len(value) <= index < len(value) else 0
        return f"[{describe(path[0] if path else 0, value[index])}]" if value else "[]"
    names_of_types = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names_of_types.get(type(value), type(value).__name__)
