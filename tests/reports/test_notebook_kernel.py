"""The example notebook runs in a real kernel: live progress, tables, and no change to the notebook's event loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_example_notebook_runs(tmp_path: Path) -> None:
    """Every cell runs; progress ends with all samples; reports and comparisons are HTML; the loop is asyncio's."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("import asyncio; type(asyncio.get_running_loop()).__module__"))
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    outputs = [list_outputs(cell) for cell in notebook.cells if cell.cell_type == "code"]
    _, before, after, comparison, rows, loop = outputs
    assert before[0].startswith("4/4 (100%), 1 passed, 3 failed, 0 errors")
    assert "<strong>1 of 4 passed (25.0%, 95% interval 4.6–69.9%)</strong>" in before[1]
    assert "<strong>4 of 4 passed" in after[-1]
    assert "<table>" in comparison[0]
    assert "'Spain'" in rows[0]
    assert loop == ["'asyncio.unix_events'"]


def list_outputs(cell: Any) -> list[str]:
    """The outputs of a cell: HTML if there is any, else text."""
    data = [output["data"] for output in cell.outputs if "data" in output]
    return [item.get("text/html") or item.get("text/plain", "") for item in data]
