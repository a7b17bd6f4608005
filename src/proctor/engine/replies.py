"""The messages that a target returns become its session, whatever kind of target it is."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor import sessions
from proctor.records.sample import Sample
from proctor.records.trial import Reply

# Outputs of these types hold no messages.
_PLAIN = frozenset((int, float, bool, bytes, type(None)))
_JSON = ("[", "{")


def may_hold_messages(returned: Any) -> bool:
    """False for what certainly holds no messages: numbers, and texts that are not JSON.

    >>> may_hold_messages("Paris"), may_hold_messages(3), may_hold_messages([])
    (False, False, True)
    """
    kind = type(returned)
    # Not isinstance, which asks the object itself for its class.
    if kind is not str and issubclass(kind, Reply):
        if returned.session is not None:
            return False
        returned = returned.output
        kind = type(returned)
    # Of texts, only the JSON that LangChain writes is looked at.
    return kind not in _PLAIN and (kind is not str or returned[:1] in _JSON)


def read_reply(returned: Any, sample: Sample[Any, Any]) -> Any:
    """What a target returned; where it is a conversation, with its session and its last answer.

    The output stays as it is if the conversation does not end with an answer, or if the sample
    expects a conversation: then the messages are what is to be judged. A `Reply` that has a
    session is left alone.

    >>> chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]
    >>> reply = read_reply({"messages": chat}, Sample("1", "Hi"))
    >>> reply.output, len(reply.session), reply.raw_output == {"messages": chat}
    ('Hello!', 2, True)
    """
    if not may_hold_messages(returned):
        return returned
    output = returned.output if issubclass(type(returned), Reply) else returned
    try:
        return _with_conversation(returned, output, sample)
    except Exception as error:  # objects of other libraries may raise anything
        sessions.warn(
            "the messages in an output could not be read, so there is no session: "
            f"{type(error).__name__}: {error}"
        )
        return returned


def _with_conversation(returned: Any, output: Any, sample: Sample[Any, Any]) -> Any:
    from proctor.importers.conversation import add_missing, holds_messages, read_conversation

    found = read_conversation(output, sample.input)
    if found is None:
        return returned
    live = sessions.current_session()
    is_recorded = live is not None and len(live) > 0
    session = add_missing(live, found.session) if is_recorded and live else found.session
    reply = returned if isinstance(returned, Reply) else Reply(output)
    usage = reply.usage
    if usage is None and (live is None or live.known_usage() is None):
        usage = session.known_usage()
    reply = msgspec.structs.replace(reply, session=session, usage=usage)
    if not found.has_answer or holds_messages(sample.expected):
        return reply
    return msgspec.structs.replace(reply, output=found.answer, raw_output=output)
