"""Work on a thread of its own that does not end unseen."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Aside:
    """A thread; what ends it against all expectation is told at once, and kept in `failure`."""

    def __init__(
        self, work: Callable[[], object], name: str, failed: Callable[[Exception], object]
    ) -> None:
        self._work = work
        self._failed = failed
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.failure: Exception | None = None
        self.start = self._thread.start
        self.join = self._thread.join
        self.is_alive = self._thread.is_alive

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self.failure = error
            self._failed(error)
