"""DeepEval: it scores outputs that exist, so the target runs first, at the same concurrency."""

import asyncio
import os

from measure import CONCURRENCY, ROWS, answer_all, imported, measure, started

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_DISABLE_DOTENV": "1"}
started()
from deepeval import evaluate  # noqa: E402
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig  # noqa: E402
from deepeval.metrics import BaseMetric  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402

imported()


class Check(BaseMetric):
    def __init__(self, name, check):
        self.name, self.check, self.threshold, self.async_mode = name, check, 0.5, True

    def measure(self, test_case, *_args, **_options):
        self.score = float(self.check(test_case.actual_output, test_case.expected_output))
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case, *_args, **_options):
        return self.measure(test_case)

    def is_successful(self):
        return self.success

    @property
    def __name__(self):
        return self.name


def run():
    outputs = asyncio.run(answer_all())
    cases = [
        LLMTestCase(input=row["input"], actual_output=output, expected_output=row["expected"])
        for row, output in zip(ROWS, outputs, strict=True)
    ]
    metrics = [Check("exact_match", lambda a, b: a == b), Check("contains", lambda a, b: b in a)]
    return evaluate(
        cases,
        metrics,
        async_config=AsyncConfig(run_async=True, max_concurrent=CONCURRENCY, throttle_value=0),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
    )


measure(run, lambda report: sum(result.success for result in report.test_results))
