"""The caches of outputs and judge responses, and the messages in returned outputs."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from proctor.core.clock import Clock
from proctor.engine.timeouts import current_scope
from proctor.records import codec
from proctor.records.lossless import TAG_START, restore_session, restore_value, tag_session, tag_value
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.session import Message, Session, ToolCall
from proctor.records.trial import Reply
from proctor.sessions import current as sessions

# Outputs of these types contain no messages.
_PLAIN = frozenset((int, float, bool, bytes, type(None)))
# Libraries whose objects are safe to read: their attributes are plain data.
_LIBRARIES = frozenset(("anthropic", "langchain_core", "openai"))
_MAX_ITEMS = 100_000
OPEN_CALL = (
    "the target returned a response with tool calls that have no result: it is no final answer, and the text beside "
    "the calls is judged as the output. Fix: run the tools and return the whole conversation"
)
NO_ANSWER = (
    "the target returned messages that do not end with an answer from the assistant: the output is None, and "
    "evaluators of the output skip the sample. The messages are in raw_output and in the session"
)


class StoredReply(Reply, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A reply in the cache.

    `unread` is True if the output may contain messages that `read_reply` has not read yet; `session` then contains the
    events recorded during the call. `is_own` is True if the target itself returned the session or the raw output.
    """

    unread: bool = False
    is_own: bool = False


# A string may be the JSON that LangChain writes.
JSON_STARTS = ("[", "{")


def may_hold_messages(returned: Any) -> bool:
    """False for values that contain no messages: numbers, and strings that are not JSON.

    >>> may_hold_messages("Paris"), may_hold_messages(3), may_hold_messages([])
    (False, False, True)
    """
    value_type = type(returned)
    if value_type is str:
        return bool(returned.startswith(JSON_STARTS))
    # isinstance would read __class__ of the user's object.
    if issubclass(value_type, Reply):
        if issubclass(value_type, StoredReply):
            return bool(returned.unread)
        if returned.session is not None:
            return False
        returned = returned.output
        value_type = type(returned)
    return value_type not in _PLAIN and (value_type is not str or returned[:1] in JSON_STARTS)


def is_data(returned: Any) -> bool:
    """True for plain data and objects of known libraries: reading them runs no user code.

    >>> is_data({"messages": [{"role": "user"}]}), is_data({"messages": [object()]})
    (True, False)
    """
    pending = [returned.output if issubclass(type(returned), Reply) else returned]
    for _ in range(_MAX_ITEMS):
        if not pending:
            return True
        item = pending.pop()
        item_type = type(item)
        if item_type is dict:
            pending.extend(item.values())
        elif item_type is list or item_type is tuple:
            pending.extend(item)
        elif (
            item_type is not str
            and item_type not in _PLAIN
            and str(item_type.__module__).partition(".")[0] not in _LIBRARIES
        ):
            return False
    return False


def read_reply(returned: Any, sample: Sample[Any, Any], live: Session | None = None) -> Any:
    """Replace a returned conversation with its last answer, with the conversation as the session.

    The output is None if the conversation does not end with an answer, so that messages of the
    user or of tools are not judged as the agent's. It is unchanged if the sample expects a
    conversation, or if it is a state (a mapping with more than messages) and the sample expects a
    mapping. A `Reply` with a session is unchanged. `live` is the session recorded during the call.

    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
    >>> reply = read_reply({"messages": chat}, Sample("1", "Hi"))
    >>> reply.output, len(reply.session), reply.raw_output == {"messages": chat}
    ('Hello!', 2, True)
    """
    if not may_hold_messages(returned):
        return returned
    output = returned.output if issubclass(type(returned), Reply) else returned
    if issubclass(type(returned), StoredReply):
        live = returned.session
        returned = msgspec.structs.replace(returned, unread=False)
    try:
        return _with_conversation(returned, output, sample, live)
    except Exception as error:  # User objects may raise anything.
        sessions.warn(
            f"the messages in an output could not be read, so there is no session: {type(error).__name__}: {error}"
        )
        return returned


def _with_conversation(returned: Any, output: Any, sample: Sample[Any, Any], live: Session | None) -> Any:
    from proctor.sessions.importers.conversation import has_messages, merge_sessions, read_conversation

    conversation = read_conversation(output, sample.input)
    if conversation is None:
        return returned
    is_recorded = live is not None and len(live) > 0
    session = merge_sessions(live, conversation.session) if is_recorded and live else conversation.session
    reply = returned if isinstance(returned, Reply) else Reply(output)
    usage = reply.usage
    if usage is None and (live is None or live.known_usage() is None):
        usage = session.known_usage()
    # A single answer does not show which tools were called before it; without an answer, the agent did nothing yet.
    is_complete = is_recorded or (_has_answered(session) and not _is_single_answer(session))
    if not is_complete and reply.session is None:
        # The trial has no session, so only this session shows that the answer was truncated.
        sessions.note_cut_off(session)
    choices = output.get("choices") if isinstance(output, Mapping) else getattr(output, "choices", None)
    if isinstance(choices, list) and len(choices) > 1:
        sessions.warn(
            "outputs have several choices, and only the first is judged. Fix: ask for one (n=1), or return one choice"
        )
    reply = msgspec.structs.replace(reply, session=session if is_complete else None, usage=usage)
    if has_messages(sample.expected) or _is_state_expected(sample.expected, output, conversation.answer):
        return reply
    answer = conversation.answer
    if not conversation.has_answer:
        answer = _find_single_text(conversation.session)
        sessions.warn(NO_ANSWER if answer is None else OPEN_CALL)
    return msgspec.structs.replace(reply, output=answer, raw_output=output)


def _is_single_answer(session: Session) -> bool:
    """True for one answer without tool calls; a response that calls tools shows which ones."""
    return not any(
        isinstance(event, ToolCall) or (isinstance(event, Message) and (event.role != "assistant" or event.tool_calls))
        for event in session
    )


def _has_answered(session: Session) -> bool:
    return any(
        isinstance(event, ToolCall) or (isinstance(event, Message) and event.role != "user") for event in session
    )


def _find_single_text(session: Session) -> str | None:
    """Return the text next to the tool calls of a single response; None for a conversation or without text."""
    messages = [event for event in session if isinstance(event, Message)]
    if len(messages) != 1 or messages[0].role != "assistant":
        return None
    content = messages[0].content
    return content if isinstance(content, str) and content.strip() else None


def _is_state_expected(expected: Any, output: Any, answer: Any) -> bool:
    """True if the sample expects the state rather than its last answer; else warn about other keys.

    An expected mapping is compared with an answer that may be JSON, unless the state has its keys.
    """
    from proctor.sessions.importers.conversation import list_state_names, select_state_names

    names = list_state_names(output)
    if not names:
        return False
    others = select_state_names(names, output)
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


ReplyT = TypeVar("ReplyT", bound=StoredReply)

# A call of the target: sample, options and epoch.
Call = Callable[[Sample[Any, Any], Mapping[str, Any], int], Awaitable[Any]]


class CachedReply(StoredReply, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A reply from the cache, with the usage, session and latency of the original call."""


class OutputCache:
    """Caches the replies of one target.

    The key contains the target's identity, the configuration's options, the input and the epoch, so that epochs stay
    distinct, and a changed target or option never gets an old output. Errors, recordings and objects that JSON cannot
    represent are not cached.

    The cache stores the target's return value. `read_reply` reads its messages afterwards, because
    the result depends on the expected value, which is not part of the key.
    """

    def __init__(
        self, target: TargetSpec, find: Callable[[str], bytes | None], keep: Callable[[str, str, bytes], None]
    ) -> None:
        self._target = [target.kind, target.name, target.identity]
        self._find = find
        self._keep = keep

    def wrap(self, call: Call, clock: Clock) -> Call:
        """Return a call that uses the cache."""

        async def cached(sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int) -> Any:
            # Encoded with tags, because the input 1 is not "1", and NaN is not null.
            value = tag_value(sample.input)
            request = codec.encode_canonical([self._target, tag_value(dict(options)), value, epoch])
            if type(sample.input) is not str and codec.encode(value) != codec.encode_canonical(value):
                # A target may read a mapping in its order.
                request += codec.encode(value)
            if b'"$repr"' in request:
                return await call(sample, options, epoch)
            key = hashlib.sha256(request).hexdigest()
            stored = self._find(key)
            if stored is not None:
                cached_reply = _decode(stored, CachedReply)
                if not _was_read(cached_reply):
                    return cached_reply
                # Remove the entry first: a newer entry does not replace an older one.
                self._keep(key, clock.now().isoformat(), b"")
            started = clock.monotonic()
            returned = await call(sample, options, epoch)
            scope = current_scope()
            seconds = None if scope is None else scope.seconds_in_thread
            latency = (clock.monotonic() - started if seconds is None else seconds) * 1000.0
            with contextlib.suppress(*codec.ENCODE_ERRORS):
                data = _encode(_to_reply(returned, latency))
                if b'"$repr"' not in data:
                    # Score the decoded reply, so that the first run gives the same scores as every later one.
                    reply = _decode(data, StoredReply)
                    if _has_same_messages(returned, reply):
                        self._keep(key, clock.now().isoformat(), data)
                        return reply
            return returned

        return cached


def _encode(reply: Reply) -> bytes:
    session = None if reply.session is None else tag_session(reply.session)
    return codec.encode(msgspec.structs.replace(reply, output=tag_value(reply.output), session=session))


def _was_read(reply: StoredReply) -> bool:
    """True for a conversation that an earlier version of Proctor cached after reading it for one `expected` value."""
    if reply.unread or reply.is_own:
        return False
    if reply.raw_output is not None:
        return True
    return reply.session is not None and may_hold_messages(Reply(reply.output))


def _has_same_messages(returned: Any, reply: StoredReply) -> bool:
    """True if the decoded JSON contains all messages of the returned object."""
    from proctor.sessions.importers.conversation import is_fully_encoded

    if not reply.unread:
        return True
    output = returned.output if isinstance(returned, Reply) else returned
    return is_fully_encoded(output, reply.output)


def _decode(data: bytes, reply_type: type[ReplyT]) -> ReplyT:
    reply = msgspec.json.decode(data, type=reply_type)
    if TAG_START not in data:
        return reply
    session = None if reply.session is None else restore_session(reply.session)
    return msgspec.structs.replace(reply, output=restore_value(reply.output), session=session)


def _to_reply(returned: Any, latency_ms: float) -> StoredReply:
    session = sessions.current_session()
    recorded = session if session is not None and len(session) else None
    reply = returned if isinstance(returned, Reply) else Reply(returned)
    return StoredReply(
        reply.output,
        reply.usage or (None if recorded is None else recorded.known_usage()),
        reply.session or recorded or reply.session,
        latency_ms if reply.latency_ms is None else reply.latency_ms,
        reply.raw_output,
        unread=may_hold_messages(returned),
        is_own=reply.session is not None or reply.raw_output is not None,
    )


class ResponseCache:
    """Caches the responses to judges in the history.

    With `fresh`, all requests are sent, and the new responses replace the cached ones.
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
        return None if self._fresh else self._find(key)

    def put(self, key: str, data: bytes) -> None:
        now = self._clock.now().isoformat()
        if self._fresh:
            # Remove the old response first: the new one may contain a secret, which is not stored.
            self._keep(key, now, b"")
        self._keep(key, now, data)
