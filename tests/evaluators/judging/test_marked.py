"""JSON behind the mark of a call, in whatever dress a model puts it."""

from __future__ import annotations

import pytest

from proctor.evaluators.judges.fence import Fence, MarkedForm

FENCE = Fence({"text": "[1]"})
FORM = MarkedForm(dict[str, int], FENCE)


@pytest.mark.parametrize(
    "said",
    [
        'So.\nANSWER {}:\n{{"a": 2}}',
        'So.\nANSWER {}: {{"a": 2}}',
        'ANSWER {}: {{\n  "a": 2\n}}',
        '**ANSWER {}:** {{"a": 2}}',
        '**ANSWER {}:**\n\n{{"a": 2}}',
        '`ANSWER {}:`\n```json\n{{"a": 2}}\n```',
        'ANSWER {}: ```json\n{{"a": 2}}\n```',
        '"ANSWER {}:"\n{{"a": 2}}',
        'answer {0}\n{{"a": 1}}\nNo:\nANSWER {0}: {{"a": 2}}',
    ],
)
def test_the_json_stands_on_the_line_of_the_mark_or_below_it(said: str) -> None:
    """As a verdict stands behind its mark; the last counts."""
    assert FORM.read(said.format(FENCE.mark), structured=False) == {"a": 2}


@pytest.mark.parametrize("said", ["{{}}", "ANSWER: {{}}", "ANSWER {}0: {{}}", "An ANSWER {}: {{}}"])
def test_without_the_mark_there_is_no_answer(said: str) -> None:
    """Nor where it is part of another word, or in the middle of a line."""
    with pytest.raises(ValueError, match="it has no line ANSWER"):
        FORM.read(said.format(FENCE.mark), structured=False)
