"""How the pages are read: blocks, commands, and what counts as the same output."""

from __future__ import annotations

import pytest

from tests.docs.blocks import blocks_of, commands_of, says

PAGE = """
# A page

```python title="app.py"
x = 1
```

```python
print("hello")
```

```text
hello
```

Some words.

```text
not an output
```
"""


def test_output_belongs_to_the_code_directly_above_it() -> None:
    """A text block below words is only text."""
    blocks = blocks_of(PAGE)
    assert [(block.language, block.title, block.shown) for block in blocks] == [
        ("python", "app.py", None),
        ("python", None, "hello\n"),
        ("text", None, None),
    ]


def test_a_block_knows_its_line() -> None:
    """An error can name the line of the page."""
    assert [block.line for block in blocks_of(PAGE)] == [4, 8, 18]


@pytest.mark.parametrize("page", ["  ```python\n  x\n  ```\n", "```python\nx\n"])
def test_a_fence_that_would_be_passed_over_is_refused(page: str) -> None:
    """Indented and open fences are not taken for prose in silence."""
    with pytest.raises(AssertionError, match="is one indented or open"):
        blocks_of(page)


def test_console_blocks_begin_with_a_command() -> None:
    """Output without a command is a mistake."""
    with pytest.raises(AssertionError, match="begins with a command"):
        commands_of("hello\n$ echo hello\n")


def test_an_ellipsis_stands_for_anything() -> None:
    """Inside a line it is the rest of the line, alone it is any number of lines."""
    assert says("took … s", "took 0.3 s")
    assert says("first\n…", "first")
    assert says("first\n…\nlast", "first\nsecond\nthird\nlast")
    assert not says("took … s", "took\n0.3 s")
    assert not says("first", "first\nsecond")


def test_spaces_at_the_ends_of_lines_do_not_matter() -> None:
    """Tables end in spaces that nobody sees."""
    assert says("a\n\nb", "a   \n \nb\n\n")


def test_columns_may_be_wider_or_narrower() -> None:
    """Their width depends on measured times."""
    assert says("p50    3 ms\n───────────", "p50  3 ms\n────────────")
    assert not says("p50    3 ms", "p50 3 ms")
    assert not says("p50 3 ms", "p50   3 ms")
