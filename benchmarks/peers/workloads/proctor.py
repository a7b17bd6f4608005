"""Proctor: results durable in the history, the default way."""

import sys
from pathlib import Path

# This file is called proctor, and Python puts its folder first.
sys.path[:] = [folder for folder in sys.path if folder != str(Path(__file__).parent)]
sys.path.append(str(Path(__file__).parent))

from measure import CONCURRENCY, ROWS, answer, imported, measure, started  # noqa: E402

started()
from proctor import Dataset, contains, evaluate, exact_match  # noqa: E402

imported()


def run():
    return evaluate(
        answer, Dataset.of(ROWS), [exact_match, contains], history="history.db", concurrency=CONCURRENCY, progress=False
    )


measure(run, lambda report: report.counts.passed)
