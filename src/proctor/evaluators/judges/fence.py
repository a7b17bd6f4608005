"""What is judged is data: it stands behind a mark that it cannot contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from proctor.evaluators.judges.echoes import echoes
from proctor.models.answer_forms import JsonForm
from proctor.records import codec

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


_BLOCK = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL | re.IGNORECASE)


class MarkedForm:
    """JSON of one type, told from JSON that is quoted from what is judged.

    A model that is held to a schema answers in JSON alone. Any other puts a line `ANSWER mark:`
    before it; the JSON after the last of these counts, on the line or below it, and nothing may
    follow it. `check` looks at the answer and raises a ValueError if something is missing in it.
    `wish` does so for what can be done without: the judge is reminded of it once, then the better
    answer is taken.

    >>> fence = Fence({"text": "[1]"})
    >>> MarkedForm(list[int], fence).read(f"So:\\nANSWER {fence.mark}:\\n[2]", structured=False)
    [2]
    """

    def __init__(
        self,
        output_type: Any,
        fence: Fence,
        check: Callable[[Any], object] | None = None,
        wish: Callable[[Any], object] | None = None,
    ) -> None:
        self._json = JsonForm(output_type)
        self._fence, self._check, self._wish = fence, check, wish
        self._reminded = False
        self._kept: Any = None
        self._shape = f"ANSWER {fence.mark}:"
        # With whatever Markdown a model puts around it, up to where JSON or a block may begin.
        self._line = re.compile(
            rf"^[^\w\n]*ANSWER[^\w\n]+{fence.mark}(?!\w)"
            r"""(?:(?!```)[^\w\n{\["-])*(?:"[ \t]*$)?""",
            re.IGNORECASE | re.MULTILINE,
        )

    @property
    def schema(self) -> dict[str, Any]:
        """The type as JSON Schema."""
        return self._json.schema

    @property
    def instructions(self) -> str:
        """How to answer without a schema."""
        schema = codec.encode(self.schema).decode()
        return (
            "End with this line, exactly as it stands here:\n"
            f"{self._shape}\n"
            "After it give JSON, and nothing else, that fits this JSON Schema:\n"
            f"{schema}"
        )

    def read(self, text: str, *, structured: bool) -> Any:
        """The answer in its type, or a ValueError that says why there is none."""
        reminded, self._reminded = self._reminded, True
        try:
            found = self._read(text, structured)
        except ValueError:
            if self._kept is None:
                raise
            return self._kept
        if self._wish is not None and not reminded:
            self._kept = found
            self._wish(found)
        return found

    def _read(self, text: str, structured: bool) -> Any:
        if structured and self._fence.holds(text):
            raise ValueError("it is a copy of something in the texts, not an answer")
        said = text if structured else self._marked(text)
        found = self._json.read(said, structured=True)
        if self._check is not None:
            self._check(found)
        return found

    def _marked(self, text: str) -> str:
        lines = list(self._line.finditer(text))
        if not lines:
            raise ValueError(f"it has no line {self._shape}")
        said = text[lines[-1].end() :].strip()
        block = _BLOCK.fullmatch(said)
        return said if block is None else block[1]
