"""Model requests and responses, and short descriptions of binary data in them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from proctor.records.session import Message, ToolCall, Usage

MAX_LOGPROBS = 20


class ToolSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool that a model may call: name, description, and parameters as JSON Schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class ModelRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One request to a model, the same for every provider. None uses the provider's default.

    `schema` is a JSON Schema that the answer must match. `top_logprobs` requests the log probabilities of other tokens.
    `opinion` is the number of a repetition of the same request: it is never sent, but a cache or a cassette stores each
    repetition.

    >>> ModelRequest((Message("user", "Is 7 a prime number?"),), temperature=0.0).messages[0].role
    'user'
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: dict[str, Any] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seed: int | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=1, le=MAX_LOGPROBS)] | None = None
    opinion: int = 0


class TokenLogprobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token of an answer, with the log probabilities of the token and its alternatives."""

    token: str
    logprob: float
    others: dict[str, float] = {}


class ModelResponse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The response of a model, the same for every provider.

    `finish_reason` is "stop", "length", "tool_calls", "refusal" or a provider-specific value; `refusal` is the
    text of a refusal. `output` is the answer converted to the requested type. `attempts` counts the HTTP
    requests, `raw` is the provider's JSON.
    """

    text: str = ""
    model: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: str | None = None
    refusal: str | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()
    latency_ms: float | None = None
    attempts: int = 1
    cached: bool = False
    raw: Any = None
    output: Any = None

    @property
    def cost(self) -> float | None:
        """The cost, or None if the price is unknown."""
        return self.usage.cost


# Shorter values are not media data.
_MIN_DATA_LENGTH = 100
_MAIN_TYPES = ("image", "audio", "video")
_KINDS = (*_MAIN_TYPES, "file", "document", "media", "blob")
_MEDIA_TYPES = ("media_type", "mediaType", "mime_type", "mimeType")
_DATA_KEYS = ("data", "blob", "image", "audio", "file_data", "base64")
# These keys may also contain text, so the type must be known.
_CONTENT_KEYS = ("content", "result")
# Keys that only wrap data, and keys that only describe its type.
_WRAPPER_KEYS = frozenset(
    (
        *("source", "image_url", "url", "inlineData", "inline_data", "input_audio", "file"),
        *(*_DATA_KEYS, *_CONTENT_KEYS),
    )
)
_TYPE_KEYS = frozenset(("type", "format", "detail", "modality", *_MEDIA_TYPES))
# A line of base64, or the start of a data URL.
_MAY_HOLD_DATA = re.compile(r"[A-Za-z0-9+/_-]{60}|;base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]+={0,2}\s*")
_DATA_URL = re.compile(
    r"data:((?:image|audio|video|application|font)/[\w.+-]{1,100})(?:;[\w.=-]{1,100})*"
    r";base64,[A-Za-z0-9+/_%-]*={0,2}"
)
_SUMMARY = re.compile(r"\([^()]{1,150} characters\)")
# Data without a type must be longer than any name, with letters of both cases and digits.
_MIN_UNTYPED_LENGTH = 500
_BREAK = r"(?:\r?\n|(?:\\r)?\\n)"
_UNTYPED = re.compile(
    r"[A-Za-z0-9+/_-]{60,}"
    rf"(?:{_BREAK}[A-Za-z0-9+/_-]{{60,}})*(?:{_BREAK}[A-Za-z0-9+/_-]{{1,59}}(?==))?={{0,2}}"
)
_CHARACTER_CLASSES = tuple(map(re.compile, ("[A-Z]", "[a-z]", "[0-9]")))

Write = Callable[[Any], str]


class _Medium(NamedTuple):
    """The kind of data, and its media type if known."""

    kind: str
    media_type: str = ""

    def describe(self, data: str) -> str:
        facts = (self.kind, self.media_type, f"{len(data):,} characters")
        return f"({', '.join(fact for fact in facts if fact)})"

    def describe_untyped(self, data: str) -> str:
        """Describe a string that looks like data; return any other string unchanged."""
        return self.describe(data) if _is_untyped_data(data) else data

    def holds(self, key: str, value: Any) -> bool:
        """True if the value of a key is the data itself."""
        is_typed = bool(self.media_type) or self.kind in _MAIN_TYPES
        return key in (*_DATA_KEYS, *(_CONTENT_KEYS if is_typed else ())) and _is_data(value)


def summarize_data(text: str) -> str:
    """Replace the data in a text with a short description."""
    if ";base64," in text:
        text = _DATA_URL.sub(lambda match: _find_medium(match[1]).describe(match[0]), text)
    if len(text) < _MIN_UNTYPED_LENGTH:
        return text
    return _UNTYPED.sub(lambda match: _Medium("data").describe_untyped(match[0]), text)


def render_value(value: Any, write: Write) -> str:
    """Render a value with `write`, with media data replaced by a short description."""
    text = write(value)
    if len(text) < _MIN_DATA_LENGTH or _MAY_HOLD_DATA.search(text) is None:
        return text
    with contextlib.suppress(RecursionError):
        summary = _summarize(value, None)
        facts = list(_list_facts(summary))
        if len(facts) == 1 and _SUMMARY.fullmatch(str(facts[0])):
            return str(facts[0])
        return write(summary)
    return summarize_data(text)


def render_content(content: Any, write: Write) -> str:
    """Render message content as text: the texts of a list of parts, and other values with `write`."""
    if content is None:
        return ""
    parts = content if isinstance(content, list | tuple) else [content]
    return "\n".join(_render_part(part, write) for part in parts)


def _render_part(part: Any, write: Write) -> str:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        part = part["text"]
    return summarize_data(part) if isinstance(part, str) else render_value(part, write)


def _summarize(value: Any, medium: _Medium | None) -> Any:
    if isinstance(value, str):
        return summarize_data(value)
    if isinstance(value, list | tuple):
        return [_summarize(item, medium) for item in value]
    if not isinstance(value, Mapping):
        return value
    inner = _read_medium(value, medium)
    return {key: _summarize_item(key, item, inner) for key, item in value.items()}


def _summarize_item(key: Any, value: Any, medium: _Medium | None) -> Any:
    if medium is not None and medium.holds(key, value):
        return medium.describe(value)
    if key in _MAIN_TYPES and isinstance(value, str) and _UNTYPED.fullmatch(value):
        return _Medium(key).describe_untyped(value)
    return _summarize(value, medium)


def _read_medium(value: Mapping[str, Any], outer: _Medium | None) -> _Medium | None:
    """Return the medium of the data in a mapping, or the medium of the outer mapping."""
    types = [str(value[key])[:100] for key in _MEDIA_TYPES if value.get(key)]
    if types:
        return None if types[0].startswith("text/") else _find_medium(types[0])
    type_name = str(value.get("type") or "")
    kind = next((kind for kind in _KINDS if kind in type_name), "")
    return _Medium(kind) if kind else outer


def _find_medium(media_type: str) -> _Medium:
    main = media_type.partition("/")[0]
    return _Medium(main if main in _MAIN_TYPES else "file", media_type)


def _is_data(value: Any) -> bool:
    is_long = isinstance(value, str) and len(value) >= _MIN_DATA_LENGTH
    return is_long and _BASE64.fullmatch(value) is not None


def _is_untyped_data(text: str) -> bool:
    return len(text) >= _MIN_UNTYPED_LENGTH and all(kind.search(text) for kind in _CHARACTER_CLASSES)


def _list_facts(value: Any) -> Iterator[Any]:
    """Yield the keys and values of a value, except keys that only describe data."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in _TYPE_KEYS:
                yield from () if key in _WRAPPER_KEYS else (key,)
                yield from _list_facts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _list_facts(item)
    else:
        yield value
