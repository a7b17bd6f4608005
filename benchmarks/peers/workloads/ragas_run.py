"""ragas: it scores outputs that exist, so the target runs first, at the same concurrency."""

import asyncio
import os

from measure import CONCURRENCY, ROWS, answer_all, imported, measure, started

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
started()
from ragas import EvaluationDataset, RunConfig, evaluate  # noqa: E402
from ragas.metrics import ExactMatch, StringPresence  # noqa: E402

imported()


def run():
    outputs = asyncio.run(answer_all())
    rows = [
        {"user_input": row["input"], "response": output, "reference": row["expected"]}
        for row, output in zip(ROWS, outputs, strict=True)
    ]
    return evaluate(
        EvaluationDataset.from_list(rows),
        [ExactMatch(), StringPresence()],
        run_config=RunConfig(max_workers=CONCURRENCY),
        show_progress=False,
        raise_exceptions=True,
    )


measure(run, lambda result: sum(all(value == 1.0 for value in scores.values()) for scores in result.scores))
