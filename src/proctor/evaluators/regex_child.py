"""The child process of `bounded_regex`: a script that may import only the standard library."""

from __future__ import annotations

import re
import signal
import sys


def serve() -> None:
    """Answer requests until the parent closes the pipe."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while header := requests.readline().split():
        mode, flags, seconds = header[0].decode(), int(header[1]), float(header[2])
        pattern, text = (requests.read(int(size)).decode("utf-8", "surrogatepass") for size in header[3:])
        spans = find(re.compile(pattern, flags), text, mode, seconds)
        answers.write(" ".join(f"{start} {end}" for start, end in spans).encode() + b"\n")
        answers.flush()


def find(pattern: re.Pattern[str], text: str, mode: str, seconds: float) -> list[tuple[int, int]]:
    """Find matches; after `seconds` of CPU time the kernel ends this process."""
    has_timer = hasattr(signal, "setitimer")
    if has_timer:
        signal.setitimer(signal.ITIMER_PROF, seconds)
    if mode == "finditer":
        spans = [match.span() for match in pattern.finditer(text)]
    else:
        first = getattr(pattern, mode)(text)
        spans = [] if first is None else [first.span()]
    if has_timer:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return spans


if __name__ == "__main__":
    serve()
