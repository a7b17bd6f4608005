"""The usage examples of the loop spec run; the distributed ones use processes.

Differences from the spec: the names of packages; `EventBus` instead of `ControlDispatcher`; a session needs no bus; the
model is a local server.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from proctor import (
    Dataset,
    EvalLoop,
    EvalRequest,
    EvalResult,
    EventBus,
    InMemoryMailbox,
    Mailbox,
    MainLoop,
    MarkdownSection,
    OpenAIAdapter,
    Prompt,
    PromptTemplate,
    RedisMailbox,
    Sample,
    Session,
    all_of,
    collect_results,
    contains,
    exact_match,
    llm_judge,
    submit_dataset,
)
from proctor.testing import ModelServer, RecordedRequest
from tests.servers import RedisServer

ANSWERS = {
    "What is the capital of France?": "Paris",
    "What is 1 + 1?": "2",
    "What is 2 + 3?": "5",
    "What is 10 + 20?": "31",
}
LONG = 60.0


def answer(asked: RecordedRequest) -> str:
    """A model that knows some answers, one of them wrong, and judges what contains `Paris`."""
    if asked.schema is not None:
        good = "Paris" in asked.text
        return f'{{"rating": "{"excellent" if good else "poor"}", "reason": "so it is"}}'
    question = asked.text.partition("Answer concisely: ")[2].strip()
    return ANSWERS.get(question, "I do not know")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(answer=answer) as server:
        yield server


@dataclass(slots=True, frozen=True)
class QAParams:
    """Parameters for the QA prompt."""

    question: str


class QALoop(MainLoop[str, str]):
    """The loop of the spec's example."""

    def __init__(self, *, adapter: OpenAIAdapter, bus: EventBus) -> None:
        super().__init__(adapter=adapter, bus=bus)
        self._template = PromptTemplate[str](
            ns="qa",
            key="answer",
            name="qa",
            sections=[MarkdownSection[QAParams](title="Question", template="Answer concisely: $question", key="q")],
        )

    def initialize(self, question: str) -> tuple[Prompt[str], Session]:
        prompt = Prompt(self._template).bind(QAParams(question=question))
        return prompt, Session()


def adapter_for(model: ModelServer, name: str = "gpt-4o") -> OpenAIAdapter:
    return OpenAIAdapter(model=name, base_url=f"{model.url}/v1", api_key="key")


@pytest.fixture
def main_loop(model: ModelServer) -> QALoop:
    return QALoop(adapter=adapter_for(model), bus=EventBus())


def qa_file(folder: Path) -> Path:
    path = folder / "qa.jsonl"
    path.write_text(
        '{"id": "1", "input": "What is the capital of France?", "expected": "Paris"}\n'
        '{"id": "2", "input": "What is 10 + 20?", "expected": "30"}\n'
    )
    return path


def test_basic_evaluation(main_loop: QALoop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Load, submit, poll once, collect and print, as in the spec."""
    # Load dataset
    dataset = Dataset.load(qa_file(tmp_path), str, str)

    # Create mailboxes
    requests: Mailbox[EvalRequest[str, str]] = InMemoryMailbox(name="eval-requests")
    results: Mailbox[EvalResult] = InMemoryMailbox(name="eval-results")

    # Create EvalLoop
    eval_loop = EvalLoop(loop=main_loop, evaluator=exact_match, requests=requests, results=results)

    # Submit samples and run worker
    submit_dataset(dataset, requests)
    eval_loop.run(max_iterations=1)

    # Collect results
    report = collect_results(results, expected_count=len(dataset))

    # Inspect results
    print(f"Pass rate: {report.pass_rate:.1%}")
    print(f"Mean score: {report.mean_score:.2f}")
    print(f"Mean latency: {report.mean_latency_ms:.0f}ms")

    # Review failures
    for result in report.failed_samples():
        print(f"Failed: {result.sample_id} - {result.score.reason}")

    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Pass rate: 50.0%", "Mean score: 0.50"]
    assert lines[2].startswith("Mean latency: ")
    assert lines[3].startswith("Failed: 2 - ")
    assert len(lines) == 4
    assert report.results[0].trial.session is not None
    assert report.results[0].trial.usage is not None


def test_multi_criteria_evaluation(main_loop: QALoop, model: ModelServer, tmp_path: Path) -> None:
    """Judges and plain evaluators in one: all must pass, and the value is their mean."""
    dataset = Dataset.load(qa_file(tmp_path), str, str)
    requests: Mailbox[EvalRequest[str, str]] = InMemoryMailbox(name="eval-requests")
    results: Mailbox[EvalResult] = InMemoryMailbox(name="eval-results")

    # Create judge adapter
    judge_adapter = adapter_for(model, "gpt-4o-mini")

    # Compose multiple criteria
    evaluator = all_of(
        contains,  # Must contain expected substring
        llm_judge(judge_adapter, "Factually accurate"),
        llm_judge(judge_adapter, "Well-structured response"),
    )

    # Create EvalLoop with composite evaluator
    eval_loop = EvalLoop(loop=main_loop, evaluator=evaluator, requests=requests, results=results)

    submit_dataset(dataset, requests)
    eval_loop.run(max_iterations=1)
    report = collect_results(results, expected_count=len(dataset))

    by_id = {result.sample_id: result.score for result in report.results}
    assert (by_id["1"].passed, by_id["1"].value) == (True, 1.0)
    # Not contained (0), and twice `poor` (0.25): a sixth.
    assert by_id["2"].passed is False
    assert by_id["2"].value == pytest.approx(0.5 / 3)


def test_programmatic_dataset(main_loop: QALoop) -> None:
    """A dataset built in code, through the same mailboxes and loop."""
    requests: Mailbox[EvalRequest[str, str]] = InMemoryMailbox(name="eval-requests")
    results: Mailbox[EvalResult] = InMemoryMailbox(name="eval-results")
    eval_loop = EvalLoop(loop=main_loop, evaluator=exact_match, requests=requests, results=results)

    # Build dataset in code
    samples = tuple(
        Sample(id=str(i), input=f"What is {a} + {b}?", expected=str(a + b))
        for i, (a, b) in enumerate([(1, 1), (2, 3), (10, 20)])
    )
    dataset = Dataset(samples=samples)

    # Submit and evaluate
    submit_dataset(dataset, requests)
    eval_loop.run(max_iterations=1)
    report = collect_results(results, expected_count=len(dataset))

    assert {result.sample_id: result.passed for result in report.results} == {
        "0": True, "1": True, "2": False,
    }  # fmt: skip


COMMON = """
import os
import sys
from pathlib import Path
from redis import Redis
from proctor import (
    Dataset, EvalLoop, EvalRequest, EvalResult, EventBus, Mailbox, OpenAIAdapter, RedisMailbox,
    collect_results, exact_match, submit_dataset,
)

# Redis-backed mailboxes for cross-process durability
redis_client = Redis(host="localhost", port=int(os.environ["REDIS_PORT"]))
requests: Mailbox[EvalRequest[str, str]] = RedisMailbox(
    name="eval-requests",
    client=redis_client,
)
results: Mailbox[EvalResult] = RedisMailbox(
    name="eval-results",
    client=redis_client,
)
"""

WORKER = """
from qa import QALoop

# Create MainLoop (same as basic example)
adapter = OpenAIAdapter(model="gpt-4o", base_url=os.environ["MODEL_URL"], api_key="key")
bus = EventBus()
main_loop = QALoop(adapter=adapter, bus=bus)

# Create and run worker (runs forever)
eval_loop = EvalLoop(
    loop=main_loop,
    evaluator=exact_match,
    requests=requests,
    results=results,
)
print("ready", flush=True)
eval_loop.run()  # Blocks, processing requests
"""

CLIENT = """
# Submit dataset
dataset = Dataset.load(Path(sys.argv[1]), str, str)
submit_dataset(dataset, requests)

# Wait for results (workers process in background)
report = collect_results(
    results,
    expected_count=len(dataset),
    timeout_seconds=50,
)

print(f"Completed {report.total} evaluations")
print(f"Pass rate: {report.pass_rate:.1%}")
print(*sorted({result.delivery.worker for result in report.results}))
"""

QA = '''
import os
import time
from dataclasses import dataclass
from pathlib import Path
from proctor import MainLoop, MarkdownSection, Prompt, PromptTemplate, Session


@dataclass(slots=True, frozen=True)
class QAParams:
    """Parameters for the QA prompt."""
    question: str


class QALoop(MainLoop[str, str]):
    def __init__(self, *, adapter, bus) -> None:
        super().__init__(adapter=adapter, bus=bus)
        self._template = PromptTemplate[str](
            ns="qa",
            key="answer",
            name="qa",
            sections=[
                MarkdownSection[QAParams](
                    title="Question",
                    template="Answer concisely: $question",
                    key="q",
                ),
            ],
        )

    def initialize(self, question: str) -> tuple[Prompt[str], Session]:
        wait_for_the_others()
        prompt = Prompt(self._template).bind(QAParams(question=question))
        return prompt, Session()


def wait_for_the_others():
    """For the test: no worker goes on before each of them has something to do."""
    Path(f"began-{os.getpid()}").touch()
    until = time.monotonic() + 120
    while len(list(Path().glob("began-*"))) < int(os.environ["BEGUN"]):
        assert time.monotonic() < until
        time.sleep(0.01)
'''


@contextlib.contextmanager
def processes(count: int, folder: Path, environment: dict[str, str]) -> Iterator[list[subprocess.Popen[str]]]:
    """So many worker processes, ready to work; they run for ever, so they are ended."""
    (folder / "qa.py").write_text(QA)
    (folder / "worker.py").write_text(COMMON + WORKER)
    (folder / "client.py").write_text(COMMON + CLIENT)
    started = [
        subprocess.Popen([sys.executable, "worker.py"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate(timeout=LONG)


def run_client(folder: Path, file: str, environment: dict[str, str]) -> list[str]:
    process = subprocess.run(
        [sys.executable, "client.py", file], cwd=folder, env=environment, capture_output=True, text=True, timeout=LONG
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def test_distributed_deployment(model: ModelServer, tmp_path: Path) -> None:
    """A worker process and a client process, as in the spec, over a Redis; then three workers."""
    qa_file(tmp_path)
    rows = [f'{{"id": "{n}", "input": "What is 2 + 3?", "expected": "{5 if n % 4 else 6}"}}' for n in range(80)]
    (tmp_path / "many.jsonl").write_text("\n".join(rows))
    with RedisServer() as redis:
        environment = os.environ | {"REDIS_PORT": str(redis.port), "MODEL_URL": f"{model.url}/v1", "BEGUN": "1"}
        with processes(1, tmp_path, environment):
            completed, rate, _ = run_client(tmp_path, "qa.jsonl", environment)
        assert completed == "Completed 2 evaluations"
        assert rate == "Pass rate: 50.0%"
        environment["BEGUN"] = "4"  # the one from before, and three
        with processes(3, tmp_path, environment):
            completed, rate, workers = run_client(tmp_path, "many.jsonl", environment)
        assert completed == "Completed 80 evaluations"
        assert rate == "Pass rate: 75.0%"
        assert len(workers.split()) == 3
        assert RedisMailbox("eval-results", redis.client()).approximate_count() == 0
