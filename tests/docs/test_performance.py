"""How the pages are performed: what is written, what is run, and what counts as a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks_of
from tests.docs.performance import Performance


@pytest.fixture
def performance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Performance:
    return Performance("page.md", tmp_path, monkeypatch)


def test_a_titled_block_is_a_file(performance: Performance, tmp_path: Path) -> None:
    """It is written, into a folder if need be, and not run."""
    performance.perform(Block("python", "deep/app.py", "raise SystemExit\n", 1))
    assert (tmp_path / "deep" / "app.py").read_text() == "raise SystemExit\n"


def test_blocks_share_their_names_and_the_folder(performance: Performance, tmp_path: Path) -> None:
    """What one block defines the next can use, and `cd` holds for both languages."""
    (tmp_path / "inside").mkdir()
    page = """
```python
word = "hello"
```

```console
$ cd inside
$ echo hello > word.txt
$ cat word.txt
hello
```

```python
from pathlib import Path

print(word == Path("word.txt").read_text().strip())
```

```text
True
```
"""
    for block in blocks_of(page):
        performance.perform(block)


@pytest.mark.parametrize(
    "block",
    [
        Block("python", None, "print(1)\n", 7, "2\n"),
        Block("python", None, "print('nobody shows this')\n", 7),
        Block("console", None, "$ echo 1\n2\n", 7),
    ],
)
def test_output_that_the_page_does_not_show_is_a_failure(performance: Performance, block: Block) -> None:
    """Other output than shown, and output where none is shown, names the place."""
    with pytest.raises(pytest.fail.Exception, match=r"page\.md:7 shows"):
        performance.perform(block)


def test_a_failing_block_names_the_line_of_the_page(performance: Performance) -> None:
    """A traceback leads to the page, not to a place inside the block."""
    with pytest.raises(ZeroDivisionError) as caught:
        performance.perform(Block("python", None, "x = 1\n1 / 0\n", 7))
    last = caught.traceback[-1]
    assert (str(last.path).rpartition("/")[2], last.lineno + 1) == ("page.md", 9)
