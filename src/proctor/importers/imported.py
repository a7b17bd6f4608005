"""A session as it was found in a log or a trace, with everything else that stood there."""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.records.session import CustomEvent, Session


class Imported(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One recorded session: what happened in order, what was asked first and answered last.

    `id` is the session's own, as it was recorded; `source` the file, or file:line. `recorded` is
    what else stood there: scores, model, title, times, tags. `passed_over` counts, by kind, the
    parts that are not understood: each is kept in the session as a `CustomEvent`. `is_named` if the
    log names it as a session of its own, which it then is, be there nothing said in it.

    >>> Imported("s1", Session(), "openai", "chats.jsonl:1", input="Hello", output="Hi").output
    'Hi'
    """

    id: str
    session: Session
    format: str
    source: str
    input: Any = None
    output: Any = None
    recorded: dict[str, Any] = {}
    passed_over: dict[str, int] = {}
    is_named: bool = False


def found_in(kind: str, data: Any) -> CustomEvent:
    """What was found and is no call; under a name, so that nobody takes it for one.

    >>> found_in("observation: span", {"name": "plan", "input": "Go"}).data
    {'found': {'name': 'plan', 'input': 'Go'}}
    """
    return CustomEvent(kind, {"found": data})
