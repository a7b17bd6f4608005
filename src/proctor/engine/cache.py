"""Outputs kept by content, so that what was paid for once can be scored again."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from proctor.core.clock import Clock
from proctor.records import codec
from proctor.records.lossless import MARK, restored, restored_session, tagged, tagged_session
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Message, Session, ToolCall
from proctor.records.trial import Reply
from proctor.sessions import current as sessions

# Outputs of these types hold no messages.
_PLAIN = frozenset((int, float, bool, bytes, type(None)))
_JSON = ("[", "{")
# Libraries whose objects are read where they are: their attributes are plain data.
_LIBRARIES = frozenset(("anthropic", "langchain_core", "openai"))
_MOST_READ_AT_ONCE = 100_000
NO_ANSWER = (
    "the target returned messages that do not end with an answer of the assistant: the output is "
    "None and evaluators of the output skip the sample. The messages are in raw_output and in the "
    "session"
)


class KeptReply(Reply, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A reply as the cache keeps it.

    `unread` is True where the output is what the target returned and may hold messages: `session`
    is then what was recorded during the call, and `read_reply` still has to look at the output.
    `is_own` is True where the target itself gave the session or the raw output.
    """

    unread: bool = False
    is_own: bool = False


def may_hold_messages(returned: Any) -> bool:
    """False for what certainly holds no messages: numbers, and texts that are not JSON.

    >>> may_hold_messages("Paris"), may_hold_messages(3), may_hold_messages([])
    (False, False, True)
    """
    kind = type(returned)
    # Not isinstance, which asks the object itself for its class.
    if kind is not str and issubclass(kind, Reply):
        if issubclass(kind, KeptReply):
            return bool(returned.unread)
        if returned.session is not None:
            return False
        returned = returned.output
        kind = type(returned)
    # Of texts, only the JSON that LangChain writes is looked at.
    return kind not in _PLAIN and (kind is not str or returned[:1] in _JSON)


def is_data(returned: Any) -> bool:
    """True for plain data and objects of known libraries, which nothing of the user's reads.

    >>> is_data({"messages": [{"role": "user"}]}), is_data({"messages": [object()]})
    (True, False)
    """
    waiting = [returned.output if issubclass(type(returned), Reply) else returned]
    for _ in range(_MOST_READ_AT_ONCE):
        if not waiting:
            return True
        item = waiting.pop()
        kind = type(item)
        if kind is dict:
            waiting.extend(item.values())
        elif kind is list or kind is tuple:
            waiting.extend(item)
        elif kind is not str and kind not in _PLAIN and not _is_of_library(kind):
            return False
    return False


def _is_of_library(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] in _LIBRARIES


def read_reply(returned: Any, sample: Sample[Any, Any]) -> Any:
    """What a target returned; where it is a conversation, with its session and its last answer.

    The output is None if the conversation does not end with an answer: the words of the user and
    of tools must not be judged as the agent's. It stays as it is if the sample expects a
    conversation: then the messages are what is to be judged. So does a state, a mapping with more
    than messages, if the sample expects a mapping. A `Reply` that has a session is left alone.

    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
    >>> reply = read_reply({"messages": chat}, Sample("1", "Hi"))
    >>> reply.output, len(reply.session), reply.raw_output == {"messages": chat}
    ('Hello!', 2, True)
    """
    if not may_hold_messages(returned):
        return returned
    output = returned.output if issubclass(type(returned), Reply) else returned
    live = sessions.current_session()
    if issubclass(type(returned), KeptReply):
        live = returned.session
        returned = msgspec.structs.replace(returned, unread=False)
    try:
        return _with_conversation(returned, output, sample, live)
    except Exception as error:  # objects of other libraries may raise anything
        sessions.warn(
            "the messages in an output could not be read, so there is no session: "
            f"{type(error).__name__}: {error}"
        )
        return returned


def _choices_of(output: Any) -> Any:
    """The choices of a response, as OpenAI calls several answers to one question."""
    if isinstance(output, Mapping):
        return output.get("choices")
    return getattr(output, "choices", None)


def _with_conversation(returned: Any, output: Any, sample: Sample[Any, Any], live: Session | None) -> Any:
    from proctor.sessions.importers.conversation import add_missing, holds_messages, read_conversation

    found = read_conversation(output, sample.input)
    if found is None:
        return returned
    is_recorded = live is not None and len(live) > 0
    session = add_missing(live, found.session) if is_recorded and live else found.session
    reply = returned if isinstance(returned, Reply) else Reply(output)
    usage = reply.usage
    if usage is None and (live is None or live.known_usage() is None):
        usage = session.known_usage()
    # A lone answer says nothing of what came before it: which tools were called is not known.
    is_known = is_recorded or not _is_lone_answer(session)
    if not is_known and reply.session is None:
        # The trial has no session then, so this is where the end of the answer is known.
        sessions.note_cut_off(session)
    if isinstance(choices := _choices_of(output), list) and len(choices) > 1:
        sessions.warn(
            "outputs have several choices, and only the first is judged. Fix: ask for one (n=1), "
            "or return the choice that is meant"
        )
    reply = msgspec.structs.replace(reply, session=session if is_known else None, usage=usage)
    if holds_messages(sample.expected):
        return reply
    if _is_state_expected(sample.expected, output, found.answer):
        return reply
    if not found.has_answer:
        sessions.warn(NO_ANSWER)
    return msgspec.structs.replace(reply, output=found.answer, raw_output=output)


def _is_lone_answer(session: Session) -> bool:
    """True if a session holds nothing but what the assistant said in the end."""
    for event in session:
        if isinstance(event, ToolCall):
            return False
        if isinstance(event, Message) and event.role != "assistant":
            return False
    return True


def _is_state_expected(expected: Any, output: Any, answer: Any) -> bool:
    """True if a state is to be judged rather than the answer in it; else warns of its other keys.

    An answer that may be JSON is what a mapping is compared with, unless the state has its keys.
    """
    from proctor.sessions.importers.conversation import names_in, names_to_look_up

    names = names_in(output)
    if not names:
        return False
    others = names_to_look_up(names, output)
    if isinstance(expected, Mapping):
        may_be_json = isinstance(answer, str) and "{" in answer
        if any(name in expected for name in names) or (others and not may_be_json):
            return True
    if others:
        paths = ", ".join(f"output.{name}" for name in others)
        sessions.warn(
            "the target returns messages and other keys: the output is the last message. The "
            f"other keys are at the paths {paths}, and everything is in raw_output"
        )
    return False


K = TypeVar("K", bound=KeptReply)

# A call of the target: sample, options and epoch.
Call = Callable[[Sample[Any, Any], Mapping[str, Any], int], Awaitable[Any]]


class CachedReply(KeptReply, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A reply from the cache, with the usage, session and latency of the first time."""


class OutputCache:
    """Finds and keeps the replies of one target.

    The key is made of the target's identity, the configuration's options, the input and the epoch:
    repeats stay distinct, and a changed target or option never meets an old output. Errors are
    never kept, nor are objects that JSON cannot hold. Recordings are no calls and not kept either.

    What is kept is what the target returned. `read_reply` looks for messages in it afterwards, for
    that depends on what the sample expects, which is no part of the key.
    """

    def __init__(
        self, target: TargetSpec, find: Callable[[str], bytes | None], keep: Callable[[str, str, bytes], None]
    ) -> None:
        self._target = [target.kind, target.name, target.identity]
        self._find = find
        self._keep = keep

    def around(self, call: Call, clock: Clock) -> Call:
        """The same call, answered from what was kept where it can be."""

        async def cached(sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int) -> Any:
            # Tagged, for the input 1 is not "1", and NaN is not null.
            asked = codec.canonical([self._target, tagged(dict(options)), tagged(sample.input), epoch])
            if b'"$repr"' in asked:
                return await call(sample, options, epoch)
            key = hashlib.sha256(asked).hexdigest()
            found = self._find(key)
            if found is not None:
                cached_reply = _read(found, CachedReply)
                if not _was_read(cached_reply):
                    return cached_reply
                # Take it away: an entry is not replaced by a newer one.
                self._keep(key, clock.now().isoformat(), b"")
            began = clock.monotonic()
            returned = await call(sample, options, epoch)
            latency = (clock.monotonic() - began) * 1000.0
            with contextlib.suppress(*codec.UNWRITABLE):
                data = _written(_as_reply(returned, latency))
                if b'"$repr"' not in data:
                    # The first time as every other time: what JSON gives back is what is scored.
                    reply = _read(data, KeptReply)
                    if _tells_the_same(returned, reply):
                        self._keep(key, clock.now().isoformat(), data)
                        return reply
            return returned

        return cached


def _written(reply: Reply) -> bytes:
    session = None if reply.session is None else tagged_session(reply.session)
    stored = msgspec.structs.replace(reply, output=tagged(reply.output), session=session)
    return codec.encode(stored)


def _was_read(reply: KeptReply) -> bool:
    """True for a conversation that an earlier version kept as it read it for some `expected`."""
    if reply.unread or reply.is_own:
        return False
    if reply.raw_output is not None:
        return True
    return reply.session is not None and may_hold_messages(Reply(reply.output))


def _tells_the_same(returned: Any, reply: KeptReply) -> bool:
    """True if the messages of an object are also in what JSON gives back of it."""
    from proctor.sessions.importers.conversation import is_told_as_data

    if not reply.unread:
        return True
    output = returned.output if isinstance(returned, Reply) else returned
    return is_told_as_data(output, reply.output)


def _read(data: bytes, kind: type[K]) -> K:
    reply = msgspec.json.decode(data, type=kind)
    if MARK not in data:
        return reply
    session = None if reply.session is None else restored_session(reply.session)
    return msgspec.structs.replace(reply, output=restored(reply.output), session=session)


def _as_reply(returned: Any, latency_ms: float) -> KeptReply:
    """What a target returned, with what is known of how it came about."""
    session = sessions.current_session()
    known = session if session is not None and len(session) else None
    reply = returned if isinstance(returned, Reply) else Reply(returned)
    return KeptReply(
        reply.output,
        reply.usage or (None if known is None else known.known_usage()),
        reply.session or known or reply.session,
        latency_ms if reply.latency_ms is None else reply.latency_ms,
        reply.raw_output,
        unread=may_hold_messages(returned),
        is_own=reply.session is not None or reply.raw_output is not None,
    )


class KeptAnswers:
    """Answers that judges were given, kept in the history beside the outputs.

    With `fresh` none is found: all are asked for, and take the place of older ones.
    """

    def __init__(
        self,
        find: Callable[[str], bytes | None],
        keep: Callable[[str, str, bytes], None],
        clock: Clock,
        *,
        fresh: bool = False,
    ) -> None:
        self._find = find
        self._fresh = fresh
        self._keep = keep
        self._clock = clock

    def find(self, key: str) -> bytes | None:
        """The answer that is kept under a key, or None."""
        return None if self._fresh else self._find(key)

    def keep(self, key: str, data: bytes) -> None:
        """Keep an answer under its key."""
        now = self._clock.now().isoformat()
        if self._fresh:
            # First, for this one may hold what must not be kept: then there is none.
            self._keep(key, now, b"")
        self._keep(key, now, data)
