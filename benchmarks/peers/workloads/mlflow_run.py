"""MLflow: `mlflow.genai.evaluate` with two scorers and a SQLite tracking store."""

import asyncio
import logging
import os

from measure import CONCURRENCY, ROWS, N, answer, imported, measure, started

os.environ |= {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_TRACKING_URI": "sqlite:///mlflow.db",
    "MLFLOW_GENAI_EVAL_MAX_WORKERS": str(CONCURRENCY),
    "TQDM_DISABLE": "1",
}
started()
import mlflow  # noqa: E402
from mlflow.genai.scorers import scorer  # noqa: E402

imported()
logging.getLogger("mlflow").setLevel(logging.ERROR)


@scorer
def exact_match(outputs, expectations):
    return outputs == expectations["expected"]


@scorer
def contains(outputs, expectations):
    return expectations["expected"] in outputs


def predict(question):
    return asyncio.run(answer(question))


def run():
    rows = [{"inputs": {"question": row["input"]}, "expectations": {"expected": row["expected"]}} for row in ROWS]
    return mlflow.genai.evaluate(data=rows, predict_fn=predict, scorers=[exact_match, contains])


measure(run, lambda result: round(min(result.metrics.values()) * N))
