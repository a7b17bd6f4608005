"""What the workers run: numbers are squared, a few ms each; some numbers end the process instead.

Every call is written into a log first, with one write at the end of the file, so that it is known
how often each number was really run and by which process.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

DEADLY = "deadly"
LOG = "PROCTOR_CHAOS_LOG"
LINE = "{number:07d} {pid:010d}\n"
LINE_BYTES = len(LINE.format(number=0, pid=0))


async def square(text: str) -> str:
    """The square of "17"; "17 deadly" takes the whole worker along."""
    number, _, fate = text.partition(" ")
    write_down(int(number))
    if fate == DEADLY:
        os._exit(70)
    await asyncio.sleep(0.002 * (1 + int(number) % 5))
    return str(int(number) ** 2)


def write_down(number: int) -> None:
    """Append one line atomically; other processes may append at the same time."""
    log = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(log, LINE.format(number=number, pid=os.getpid()).encode())
    finally:
        os.close(log)


class CallLog:
    """The log, as the test reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __len__(self) -> int:
        """How many calls there were."""
        return self.path.stat().st_size // LINE_BYTES if self.path.exists() else 0

    def calls(self) -> list[tuple[int, int]]:
        """Number and process of each call."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [(int(line[:7]), int(line[8:])) for line in lines]
