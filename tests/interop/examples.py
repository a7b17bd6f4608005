"""Small files in the shapes of other tools, written by hand for the tests and the docs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

PROMPTFOO_CONFIG = """\
description: Greetings
prompts: ['Say {{word}} in {{language}}']
providers: [openai:chat:gpt-4.1-mini, {id: 'anthropic:messages:claude-x', label: claude}]
assertionTemplates:
  polite: {type: icontains, value: please}
defaultTest:
  assert: [{$ref: '#/assertionTemplates/polite'}]
tests:
  - description: matrix
    vars: {word: [hello, bye], language: French}
    threshold: 0.5
    assert:
      - {type: contains, value: '{{word}}', weight: 3, metric: Echo}
      - {type: not-regex, value: 'as an AI'}
  - vars: {word: two, language: '2'}
    assert: [{type: equals, value: deux}, {type: javascript, value: 'output.length < 9'}]
"""


def promptfoo_row(test: int, column: int, **fields: Any) -> dict[str, Any]:
    """Return a row of promptfoo's results that passed, with changes."""
    row = {
        "testIdx": test,
        "promptIdx": column,
        "success": True,
        "score": 1,
        "failureReason": 0,
        "namedScores": {},
        "vars": {"q": f"question {test}"},
        "testCase": {"vars": {"q": f"question {test}"}, "assert": []},
        "provider": {"id": "echo", "label": f"model {column}"},
        "prompt": {"raw": f"Answer question {test}", "label": "Answer {{q}}"},
        "response": {"output": f"answer {test}", "tokenUsage": {"total": 7, "prompt": 5, "completion": 2}},
        "gradingResult": {"pass": True, "score": 1, "reason": "No assertions"},
        "latencyMs": 12,
        "cost": 0.5,
    }
    return row | fields


def promptfoo_results() -> dict[str, Any]:
    """Return results of two tests in two columns: two pass, one fails, one is an error."""
    failed = {
        "success": False,
        "score": 0.5,
        "failureReason": 1,
        "error": "Expected output to contain x",
        "namedScores": {"Topic": 0.5},
        "gradingResult": {
            "pass": False,
            "score": 0.5,
            "reason": "Expected output to contain x",
            "componentResults": [
                {"pass": True, "score": 1, "reason": "ok", "assertion": {"type": "is-json"}},
                {"pass": False, "score": 0, "reason": "no x", "assertion": {"type": "contains", "value": "x"}},
            ],
        },
    }
    error = {"success": False, "score": 0, "failureReason": 2, "error": "Error: boom\n at x", "gradingResult": None}
    rows = [
        promptfoo_row(1, 1, **error, response={}, cost=0),
        promptfoo_row(0, 0),
        promptfoo_row(1, 0, **failed),
        promptfoo_row(0, 1),
    ]
    stats = {"successes": 2, "failures": 1, "errors": 1, "tokenUsage": {"total": 21}}
    return {
        "evalId": "eval-1",
        "results": {"version": 3, "timestamp": "2026-01-02T03:04:05.000Z", "results": rows, "stats": stats},
        "config": {"description": "two columns"},
        "metadata": {"promptfooVersion": "0.121.20"},
    }


def inspect_log(**changes: Any) -> dict[str, Any]:
    """Return a log with four samples: correct with a tool call, partly correct, not scored, and an error."""
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    call = {"id": "c1", "function": "lookup", "arguments": {"key": "a"}, "type": "function"}
    messages = [
        {"id": "m1", "role": "user", "content": "What is a?"},
        {"id": "m2", "role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "1", "tool_call_id": "c1", "function": "lookup"},
        {"id": "m3", "role": "assistant", "content": "attachment://abc"},
    ]
    base = {"epoch": 1, "input": "What is a?", "target": "1", "model_usage": {"mock/model": usage}, "total_time": 0.5}
    output = {"model": "mock/model", "completion": "It is 1"}
    samples = [
        {**base, "id": 1, "messages": messages, "output": output, "attachments": {"abc": "It is 1"},
         "scores": {"match": {"value": "C", "explanation": "same"}}},
        {**base, "id": 2, "messages": [], "output": output, "scores": {"match": {"value": "P"}}},
        {**base, "id": 3, "messages": [], "output": output, "scores": {"match": {"value": float("nan")}}},
        {**base, "id": 4, "messages": [], "output": {}, "scores": {},
         "error": {"message": "ValueError('no')", "traceback": "Traceback …"}},
    ]  # fmt: skip
    accuracy = {"name": "match", "scorer": "match", "metrics": {"accuracy": {"name": "accuracy", "value": 0.75}}}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "sums",
            "model": "mock/model",
            "created": "2026-01-02T03:04:05+00:00",
            "dataset": {"name": "letters"},
            "scorers": [{"name": "match"}, {"name": "includes"}],
            "packages": {"inspect_ai": "0.3.1"},
        },
        "results": {"total_samples": 4, "completed_samples": 3, "scores": [accuracy]},
        "stats": {"model_usage": {"mock/model": {"input_tokens": 40, "output_tokens": 12, "total_tokens": 52}}},
        "samples": samples,
        **changes,
    }


def write_eval(path: Path, log: dict[str, Any], compression: int = zipfile.ZIP_DEFLATED) -> None:
    """Write a log as an `.eval` archive."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for sample in log["samples"]:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps({key: log[key] for key in log if key != "samples"}))


def deepeval_run() -> dict[str, Any]:
    """Return a test run of three cases: one passes, one fails, and in one a metric raised."""

    def metric(name: str, **fields: Any) -> dict[str, Any]:
        return {"name": name, "threshold": 0.5, "success": True, "score": 1.0, "reason": "fine", **fields}

    raised = metric("Faithfulness", success=False, score=None, error="ValueError: exploded")
    tool = {"name": "search", "inputParameters": {"q": "x"}, "output": "Paris"}
    return {
        "testCases": [
            {"name": "a", "order": 0, "input": "Capital?", "actualOutput": "Paris", "expectedOutput": "Paris",
             "toolsCalled": [tool], "completionTime": 1.5, "tokenCost": 0.25,
             "metricsData": [metric("Exact Match"), metric("Faithfulness", evaluationModel="m", evaluationCost=0.5)]},
            {"name": "b", "order": 1, "input": "Capital?", "actualOutput": "Rome",
             "metricsData": [metric("Exact Match", success=False, score=0.0), metric("Faithfulness")]},
            {"name": "c", "order": 2, "input": "Capital?", "actualOutput": "Paris",
             "metricsData": [metric("Exact Match"), raised]},
        ],
        "conversationalTestCases": [],
        "metricsScores": [{"metric": "Exact Match", "scores": [1.0, 0.0, 1.0]}],
        "testPassed": 1,
        "testFailed": 2,
        "evaluationCost": 0.5,
    }  # fmt: skip


def openai_log() -> list[dict[str, Any]]:
    """Return a model-graded log of two samples, the second graded with no valid choice, and the report first."""
    spec = {"cls": "evals.elsuite.modelgraded.classify:ModelBasedClassify", "args": {"modelgraded_spec": "fact"}}
    lines: list[dict[str, Any]] = [
        {"spec": {"eval_name": "geo.dev.v0", "base_eval": "geo", "completion_fns": ["m"],
                  "run_config": {"eval_spec": spec}, "created_at": "2026-01-02 03:04:05+00:00"}},
        {"final_report": {"score": 0.5, "usage_total_tokens": 60}},
    ]  # fmt: skip
    for number, choice in ((1, "__invalid__"), (0, "Yes")):
        for text in ("Paris", choice):
            usage = {"prompt_tokens": 10, "completion_tokens": 5}
            data = {"prompt": "Capital?", "sampled": [text], "model": "m", "usage": usage}
            lines.append({"sample_id": f"geo.dev.{number}", "type": "sampling", "data": data})
        grade = {"choice": choice, "score": 1.0 if choice == "Yes" else 0.0}
        lines.append({"sample_id": f"geo.dev.{number}", "type": "metrics", "data": grade})
    return lines
