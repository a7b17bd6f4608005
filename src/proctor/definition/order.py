"""Events of configurations that run side by side, told one configuration after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from proctor.records.progress import ProgressEvent

Callback = Callable[[ProgressEvent], object]


def in_turn(callback: Callback, configurations: Sequence[str]) -> Callback:
    """A callback that hears of one configuration to its end, and only then of the next.

    What is told of the others meanwhile is held back; the percentage still never falls.

    >>> from datetime import UTC, datetime
    >>> moment = datetime(2026, 1, 1, tzinfo=UTC)
    >>> heard = []
    >>> tell = in_turn(lambda event: heard.append((event.kind, event.configuration)), ["a", "b"])
    >>> for kind, name in [("config_start", "b"), ("config_start", "a"), ("config_end", "a")]:
    ...     tell(ProgressEvent(kind, "running", 0.0, moment, "r", name))
    >>> heard
    [('config_start', 'a'), ('config_end', 'a'), ('config_start', 'b')]
    """
    return _InTurn(callback, configurations)


class _InTurn:
    def __init__(self, callback: Callback, configurations: Sequence[str]) -> None:
        self._callback = callback
        self._waiting: dict[str, list[ProgressEvent]] = {name: [] for name in configurations}
        self._highest = 0.0
        self._failure: Exception | None = None

    def __call__(self, event: ProgressEvent) -> None:
        self._take(event)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _take(self, event: ProgressEvent) -> None:
        turn = next(iter(self._waiting), None)
        name = event.configuration
        if event.kind == "end":
            # Whatever was not ended properly, as in a run that was stopped, is told before it.
            for held in self._waiting.values():
                self._tell(held)
            self._waiting.clear()
            self._tell([event])
        elif name is None or name == turn or name not in self._waiting:
            self._tell([event])
            if event.kind == "config_end" and name == turn:
                self._next()
        else:
            self._waiting[name].append(event)

    def _next(self) -> None:
        """The turn passes on, over all that have ended meanwhile."""
        del self._waiting[next(iter(self._waiting))]
        while self._waiting:
            name, held = next(iter(self._waiting.items()))
            self._waiting[name] = []
            self._tell(held)
            if not held or held[-1].kind != "config_end":
                return
            del self._waiting[name]

    def _tell(self, events: Sequence[ProgressEvent]) -> None:
        for event in events:
            self._highest = max(self._highest, event.progress)
            try:
                self._callback(msgspec.structs.replace(event, progress=self._highest))
            except Exception as error:
                # It is told of the rest too; that it failed is said at the end of this call.
                self._failure = self._failure or error
