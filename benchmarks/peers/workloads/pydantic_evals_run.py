"""pydantic-evals: the report stays in memory."""

from measure import CONCURRENCY, ROWS, answer, imported, measure, started

started()
from pydantic_evals import Case, Dataset  # noqa: E402
from pydantic_evals.evaluators import Evaluator, EvaluatorContext  # noqa: E402

imported()


class ExactMatch(Evaluator[str, str]):
    def evaluate(self, ctx: EvaluatorContext[str, str]) -> bool:
        return ctx.output == ctx.expected_output


class Contains(Evaluator[str, str]):
    def evaluate(self, ctx: EvaluatorContext[str, str]) -> bool:
        return ctx.expected_output in ctx.output


def run():
    cases = [Case(name=row["id"], inputs=row["input"], expected_output=row["expected"]) for row in ROWS]
    dataset = Dataset(name="peers", cases=cases, evaluators=[ExactMatch(), Contains()])
    return dataset.evaluate_sync(answer, max_concurrency=CONCURRENCY, progress=False)


measure(run, lambda report: sum(all(a.value for a in case.assertions.values()) for case in report.cases))
