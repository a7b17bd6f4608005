"""What a model is asked and what it answers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from proctor.records.session import Message, ToolCall, Usage

MOST_LOGPROBS = 20


class ToolSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool that a model may call: its name, what it is for, and its parameters as JSON Schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class ModelRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One question to a model, the same for every provider. None leaves it to the provider.

    `schema` is a JSON Schema that the answer must fit. `top_logprobs` asks how likely the model
    held other tokens. `opinion` tells the second asking of the same question from the first: it is
    never sent, but a cache or a cassette keeps both.

    >>> ModelRequest((Message("user", "Is 7 a prime number?"),), temperature=0.0).messages[0].role
    'user'
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: dict[str, Any] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seed: int | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=1, le=MOST_LOGPROBS)] | None = None
    opinion: int = 0


class TokenChances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token of an answer, and the logarithms of how likely it and others were in its place."""

    token: str
    logprob: float
    others: dict[str, float] = {}


class ModelResponse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a model answered, the same for every provider.

    `finish_reason` is "stop", "length", "tool_calls", "refusal" or the provider's own word;
    `refusal` what it said instead of an answer. `output` is the answer read into the type that
    was asked for. `attempts` counts the requests it took, `raw` is the provider's own JSON.
    """

    text: str = ""
    model: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: str | None = None
    refusal: str | None = None
    logprobs: tuple[TokenChances, ...] = ()
    latency_ms: float | None = None
    attempts: int = 1
    cached: bool = False
    raw: Any = None
    output: Any = None

    @property
    def cost(self) -> float | None:
        """What it cost, or None where the price is not known."""
        return self.usage.cost


# What is shorter is no picture, and does no harm.
_SHORTEST = 100
_MAIN_TYPES = ("image", "audio", "video")
_KINDS = (*_MAIN_TYPES, "file", "document", "media", "blob")
_MEDIA_TYPES = ("media_type", "mediaType", "mime_type", "mimeType")
_OF_DATA = ("data", "blob", "image", "audio", "file_data", "base64")
# These hold texts as well, so there it must be known that it is a picture or the like.
_OF_ANYTHING = ("content", "result")
# Keys around data that tell nothing of it, and keys that say no more than what it is.
_AROUND = frozenset(
    (
        *("source", "image_url", "url", "inlineData", "inline_data", "input_audio", "file"),
        *(*_OF_DATA, *_OF_ANYTHING),
    )
)
_BESIDE = frozenset(("type", "format", "detail", "modality", *_MEDIA_TYPES))
# A line of base64, which may be broken into such.
_MAY_HOLD_DATA = re.compile(r"[A-Za-z0-9+/_-]{60}|;base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]+={0,2}\s*")
_ADDRESS = re.compile(
    r"data:((?:image|audio|video|application|font)/[\w.+-]{1,100})(?:;[\w.=-]{1,100})*"
    r";base64,[A-Za-z0-9+/_%-]*={0,2}"
)
_TOLD = re.compile(r"\([^()]{1,150} characters\)")
# Without a word of what it is, only what is too long for a name, and in letters of all kinds.
_SHORTEST_BARE = 500
_BREAK = r"(?:\r?\n|(?:\\r)?\\n)"
_BARE = re.compile(
    r"[A-Za-z0-9+/_-]{60,}"
    rf"(?:{_BREAK}[A-Za-z0-9+/_-]{{60,}})*(?:{_BREAK}[A-Za-z0-9+/_-]{{1,59}}(?==))?={{0,2}}"
)
_LETTERS = tuple(map(re.compile, ("[A-Z]", "[a-z]", "[0-9]")))

Write = Callable[[Any], str]


class _Medium(NamedTuple):
    """What data is: its kind, and its media type where that is told."""

    kind: str
    media_type: str = ""

    def told(self, data: str) -> str:
        facts = (self.kind, self.media_type, f"{len(data):,} characters")
        return f"({', '.join(fact for fact in facts if fact)})"

    def told_if_bare(self, data: str) -> str:
        """The same for what nothing tells to be data, but how it looks; else as it is."""
        return self.told(data) if _is_bare(data) else data

    def holds(self, key: str, value: Any) -> bool:
        """True if what stands under a key is the data itself."""
        sure = bool(self.media_type) or self.kind in _MAIN_TYPES
        return key in (*_OF_DATA, *(_OF_ANYTHING if sure else ())) and _is_data(value)


def in_words(text: str) -> str:
    """A text with the data in it told in a few words.

    >>> in_words("See data:image/png;base64,iVBORw0KGgo= here.")
    'See (image, image/png, 34 characters) here.'
    """
    if ";base64," in text:
        text = _ADDRESS.sub(lambda found: _medium_of(found[1]).told(found[0]), text)
    if len(text) < _SHORTEST_BARE:
        return text
    return _BARE.sub(lambda found: _Medium("data").told_if_bare(found[0]), text)


def in_text(value: Any, write: Write) -> str:
    """A value as `write` has it; what only a machine can read is told in words.

    >>> image = {"type": "image", "source": {"media_type": "image/png", "data": "iVBO" * 1003}}
    >>> in_text(image, repr)
    '(image, image/png, 4,012 characters)'
    """
    written = write(value)
    if len(written) < _SHORTEST or _MAY_HOLD_DATA.search(written) is None:
        return written
    with contextlib.suppress(RecursionError):
        told = _without_data(value, None)
        facts = list(_facts(told))
        if len(facts) == 1 and _TOLD.fullmatch(str(facts[0])):
            return str(facts[0])
        return write(told)
    return in_words(written)


def text_of(content: Any, write: Write) -> str:
    """What was said, as text: the texts of a list of parts, whatever else as `write` has it.

    >>> text_of(["Look:", {"type": "text", "text": "here"}, {"a": 1}], repr)
    "Look:\\nhere\\n{'a': 1}"
    """
    if content is None:
        return ""
    parts = content if isinstance(content, list | tuple) else [content]
    return "\n".join(_part(part, write) for part in parts)


def _part(part: Any, write: Write) -> str:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        part = part["text"]
    return in_words(part) if isinstance(part, str) else in_text(part, write)


def _without_data(value: Any, about: _Medium | None) -> Any:
    if isinstance(value, str):
        return in_words(value)
    if isinstance(value, list | tuple):
        return [_without_data(one, about) for one in value]
    if not isinstance(value, Mapping):
        return value
    here = _described(value, about)
    return {key: _told_under(key, one, here) for key, one in value.items()}


def _told_under(key: Any, value: Any, about: _Medium | None) -> Any:
    if about is not None and about.holds(key, value):
        return about.told(value)
    if key in _MAIN_TYPES and isinstance(value, str) and _BARE.fullmatch(value):
        return _Medium(key).told_if_bare(value)
    return _without_data(value, about)


def _described(value: Mapping[str, Any], around: _Medium | None) -> _Medium | None:
    """What a mapping says of the data in it, or what is around it does."""
    types = [str(value[key])[:100] for key in _MEDIA_TYPES if value.get(key)]
    if types:
        return None if types[0].startswith("text/") else _medium_of(types[0])
    named = str(value.get("type") or "")
    kind = next((kind for kind in _KINDS if kind in named), "")
    return _Medium(kind) if kind else around


def _medium_of(media_type: str) -> _Medium:
    main = media_type.partition("/")[0]
    return _Medium(main if main in _MAIN_TYPES else "file", media_type)


def _is_data(value: Any) -> bool:
    long = isinstance(value, str) and len(value) >= _SHORTEST
    return long and _BASE64.fullmatch(value) is not None


def _is_bare(text: str) -> bool:
    return len(text) >= _SHORTEST_BARE and all(kind.search(text) for kind in _LETTERS)


def _facts(value: Any) -> Iterator[Any]:
    """Whatever a value holds, but for what only describes it."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            if key not in _BESIDE:
                yield from () if key in _AROUND else (key,)
                yield from _facts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _facts(one)
    else:
        yield value
