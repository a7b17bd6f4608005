"""Inspect: a solver that sets the output, two scorers, the log in its own format."""

from measure import CONCURRENCY, ROWS, answer, imported, measure, started

started()
from inspect_ai import Task, eval  # noqa: A004, E402
from inspect_ai.dataset import MemoryDataset, Sample  # noqa: E402
from inspect_ai.model import ModelOutput  # noqa: E402
from inspect_ai.scorer import exact, includes  # noqa: E402
from inspect_ai.solver import solver  # noqa: E402

imported()


@solver
def answering():
    async def solve(state, generate):  # noqa: ARG001
        state.output = ModelOutput.from_content("peers", await answer(state.input_text))
        return state

    return solve


def run():
    samples = [Sample(id=row["id"], input=row["input"], target=row["expected"]) for row in ROWS]
    task = Task(dataset=MemoryDataset(samples), solver=answering(), scorer=[exact(), includes()])
    return eval(task, model="mockllm/model", display="none", max_samples=CONCURRENCY, log_dir="logs", log_samples=True)


def passed(logs):
    accuracies = [
        score.metrics["accuracy"].value if "accuracy" in score.metrics else score.metrics["mean"].value
        for score in logs[0].results.scores
    ]
    return round(min(accuracies) * logs[0].results.completed_samples)


measure(run, passed)
