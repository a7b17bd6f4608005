"""Outputs kept by content, so that what was paid for once can be scored again."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from proctor import codec, sessions
from proctor.clock import Clock
from proctor.engine.replies import KeptReply, may_hold_messages
from proctor.records.lossless import MARK, restored, restored_session, tagged, tagged_session
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.trial import Reply

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
        self,
        target: TargetSpec,
        find: Callable[[str], bytes | None],
        keep: Callable[[str, str, bytes], None],
    ) -> None:
        self._target = [target.kind, target.name, target.identity]
        self._find = find
        self._keep = keep

    def around(self, call: Call, clock: Clock) -> Call:
        """The same call, answered from what was kept where it can be."""

        async def cached(sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int) -> Any:
            # Tagged, for the input 1 is not "1", and NaN is not null.
            asked = codec.canonical(
                [self._target, tagged(dict(options)), tagged(sample.input), epoch]
            )
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
    from proctor.importers.conversation import is_told_as_data

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
