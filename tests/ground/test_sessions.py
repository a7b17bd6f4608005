"""The session of the running trial is found from anywhere inside it."""

from __future__ import annotations

import asyncio

from proctor.records.session import CustomEvent, Session, ToolCall
from proctor.sessions.current import current, current_session, record


def test_outside_of_a_trial_nothing_happens() -> None:
    """A target that records works in production too, where no trial is."""
    assert current_session() is None
    record(ToolCall("search"))


def test_inside_of_a_trial_events_are_added() -> None:
    """Our own events are kept as they are, others with the name of their type."""
    session = Session()
    token = current.set(session)
    try:
        assert current_session() is session
        record(ToolCall("search"))
        record({"found": 3})
    finally:
        current.reset(token)
    assert session.events == (ToolCall("search"), CustomEvent("dict", {"found": 3}))


def test_trials_side_by_side_have_their_own() -> None:
    """Tasks that take turns never write into each other's session."""

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
