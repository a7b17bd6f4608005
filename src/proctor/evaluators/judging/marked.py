"""How more than one word is answered: as JSON, after a line that bears the mark of the call."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from proctor import codec
from proctor.asking.forms import JsonForm
from proctor.evaluators.judging.fence import Fence

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
