"""What is judged is data: it stands behind a mark that it cannot contain."""

from __future__ import annotations

from collections.abc import Mapping

from proctor import codec
from proctor.evaluators.judging.echoes import echoes

MARK_LENGTH = 16


class Fence:
    """The mark of one call, and the texts of that call between two lines that bear it.

    The mark is a digest of all the texts together, so that none of them can have been written to
    contain it, and the same call always bears the same mark: it can be found in a cache or a
    cassette. Should a text contain it all the same, another mark is taken.

    >>> fence = Fence({"output": "Paris"})
    >>> print(fence.block("output").replace(fence.mark, "…"))
    <<<OUTPUT …
    Paris
    … OUTPUT>>>
    """

    def __init__(self, texts: Mapping[str, str], length: int = MARK_LENGTH) -> None:
        self._texts = {name: sendable(text) for name, text in texts.items()}
        folded = [text.casefold() for text in self._texts.values()]
        turn = 0
        while True:
            self.mark = codec.digest("fence", turn, self._texts)[:length]
            if not any(self.mark in text for text in folded):
                break
            turn += 1

    def block(self, name: str) -> str:
        """A text between its two lines."""
        label = name.upper().replace("_", " ")
        return f"<<<{label} {self.mark}\n{self._texts[name]}\n{self.mark} {label}>>>"

    def blocks(self) -> dict[str, str]:
        """Every text between its two lines, by name."""
        return {name: self.block(name) for name in self._texts}

    @property
    def texts(self) -> tuple[str, ...]:
        """What is judged, and what it is judged by."""
        return tuple(self._texts.values())

    def holds(self, text: str) -> bool:
        """True if a text stands in one of those behind the fence, white space aside.

        JSON is looked for by what it says, in whatever way it is written there.

        >>> Fence({"output": "I say: {'rating':  'good'}"}).holds("{'rating': 'good'}")
        True
        >>> Fence({"output": '{"reason": "", "rating": "good"}'}).holds('{"rating": "Good"}')
        True
        """
        wanted = _closed_up(text)
        if not wanted:
            return False
        texts = self._texts.values()
        return any(wanted in _closed_up(one) or echoes(text, one) for one in texts)


def sendable(text: str) -> str:
    """A text as it can be sent: halves of characters, which no encoding knows, are replaced.

    >>> sendable("half of an emoji: \\ud83d")
    'half of an emoji: ?'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def _closed_up(text: str) -> str:
    return "".join(text.split())
