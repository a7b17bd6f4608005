"""The session of the current trial is available anywhere inside it."""

from __future__ import annotations

import asyncio

from proctor.records.session import CustomEvent, Session, ToolCall
from proctor.sessions.current import current, current_session, record


def test_recording_outside_a_trial_does_nothing() -> None:
    """So a target that records also works in production."""
    assert current_session() is None
    record(ToolCall("search"))


def test_events_are_added_inside_a_trial() -> None:
    """Other objects are stored with the name of their type."""
    session = Session()
    token = current.set(session)
    try:
        assert current_session() is session
        record(ToolCall("search"))
        record({"found": 3})
    finally:
        current.reset(token)
    assert session.events == (ToolCall("search"), CustomEvent("dict", {"found": 3}))


def test_concurrent_trials_have_their_own_sessions() -> None:

    async def trial(name: str) -> list[str]:
        session = Session()
        current.set(session)
        for _ in range(3):
            record(ToolCall(name))
            await asyncio.sleep(0)
        return [call.name for call in session[ToolCall]]

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(trial("a"), trial("b")))

    assert asyncio.run(both()) == [["a"] * 3, ["b"] * 3]
