"""Chat sessions, rubrics and judges for the tests of the rubric spec.

The chats say what score each rubric deserves, as in `Clear Communication deserves 5.`, and
`read_score` is a judge that answers with that number. So every expected result can be worked out
from the chats.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor import Message, ModelRequest, ModelResponse, Rubric, Session, SessionDataset
from proctor.cli.main import run_cli

EFFICIENCY = Rubric("rubric_001", "Task Completion Efficiency", "Is the task completed in few turns?", "1: no 5: yes")
CLARITY = Rubric("rubric_002", "Clear Communication", "Are instructions clear?", "1: no 5: yes")
CHAT = Session([Message("user", "Count the files."), Message("assistant", "Two files.")])
TEMPLATE = """You are an expert evaluator assessing AI agent interaction quality.

## Rubric: {rubric_name}

### Description
{rubric_description}

### Scoring Criteria
{scoring_criteria}

## Chat Session to Evaluate
{chat_session}

## Instructions
Evaluate the chat session above based ONLY on the rubric described.
Consider the user's efficiency in communicating with and directing the AI agent.

Provide your evaluation in the following format:
SCORE: [1-5]
REASONING: [2-3 sentences explaining your score]

Be objective and consistent. Focus on specific evidence from the chat session.
"""
JUDGE = "tests.spec.chats:read_score"
# Every prompt that `read_score` was given.
prompts: list[str] = []


def read_score(prompt: str) -> str:
    """A judge: the number that the chat names for the rubric, or an answer without a verdict."""
    prompts.append(prompt)
    rubric = prompt.partition("## Rubric: ")[2].partition("\n")[0]
    deserved = re.search(rf"{re.escape(rubric)} deserves ([\d.]+)\b", prompt)
    if deserved is None:
        return "I cannot say."
    verdict_line = prompt.rpartition("\n")[2].partition("<")[0]
    return f"{verdict_line}{deserved[1].rstrip('.')}\nREASONING: Turn 1 shows it."


def rubric_file(path: Path, *rubrics: Rubric, **more: Any) -> Path:
    """A rubric file with version 1.0."""
    listed = [
        {
            "id": rubric.id,
            "name": rubric.name,
            "description": rubric.description,
            "scoring_criteria": rubric.scoring_criteria,
            "weight": rubric.weight,
        }
        for rubric in rubrics
    ]
    path.write_text(json.dumps({"version": "1.0", "rubrics": listed, **more}))
    return path


def chat_text(*scores: float | None, rubrics: Sequence[Rubric] = (EFFICIENCY, CLARITY)) -> str:
    """An OpenAI-style chat that deserves these scores; None is for no verdict."""
    deserved = [
        f"{rubric.name} deserves {score}." for rubric, score in zip(rubrics, scores, strict=True) if score is not None
    ]
    texts = [("user", "Count the files."), ("assistant", " ".join(["Done.", *deserved]))]
    return json.dumps([{"role": role, "content": content} for role, content in texts])


class Chats:
    """A folder with rubrics, a judge template and chats, in which commands are run."""

    def __init__(self, folder: Path, *rubrics: Rubric, **more: Any) -> None:
        self.folder, self.rubrics = folder, rubrics or (EFFICIENCY, CLARITY)
        (folder / "sessions").mkdir()
        (folder / "judge_template.txt").write_text(TEMPLATE)
        rubric_file(folder / "rubrics.json", *self.rubrics, **more)

    def add(self, name: str, *scores: float | None) -> None:
        """Write a chat that deserves these scores."""
        text = chat_text(*scores, rubrics=self.rubrics)
        (self.folder / "sessions" / f"{name}.json").write_text(text)

    def evaluate(self, name: str, *options: str) -> dict[str, Any]:
        """The result file of one session."""
        path = self.folder / "result.json"
        files = ("--session", f"{self.folder}/sessions/{name}.json", "--output", str(path))
        assert self.run("evaluate", *files, *options) in (0, 3)
        return dict(json.loads(path.read_text()))

    def evaluate_batch(self, *options: str) -> dict[str, Any]:
        """The summary file of all sessions."""
        folders = ("--sessions-dir", f"{self.folder}/sessions/", "--output-dir", str(self.results))
        assert self.run("evaluate-batch", *folders, *options) == 0
        return self.read("summary.json")

    def run(self, command: str, *options: str) -> int:
        """The exit code of a command with the rubrics, the template and the judge."""
        inputs = ("--rubrics", f"{self.folder}/rubrics.json")
        template = ("--template", f"{self.folder}/judge_template.txt")
        common = ("--judge", JUDGE, "--history", f"{self.folder}/history.db", "--quiet")
        return run_cli(["sessions", command, *inputs, *template, *common, *options])

    @property
    def results(self) -> Path:
        """The folder of the results."""
        return self.folder / "results"

    def read(self, name: str) -> dict[str, Any]:
        """A file of the results."""
        return dict(json.loads((self.results / name).read_text()))


def read_log(path: Path, log: Any) -> SessionDataset:
    """A log on disk as a dataset: a list becomes JSON lines, everything else one document."""
    lines = [json.dumps(line) for line in log] if isinstance(log, list) else [json.dumps(log)]
    path.write_text("\n".join(lines) + "\n")
    return SessionDataset(path)


def session_in(path: Path, log: Any) -> tuple[Mapping[str, Any], Session]:
    """The metadata and the session of a log with one session."""
    (sample,) = read_log(path, log)
    return sample.metadata, sample.metadata["session"]


def tell_settings(request: ModelRequest) -> str:
    """A judge that gives a 4; its reason contains the settings of the request."""
    text = str(request.messages[-1].content)
    verdict_line = text.rpartition("\n")[2].partition("<")[0]
    return f"temperature {request.temperature}, {request.max_tokens} tokens\n{verdict_line}4"


async def never(prompt: str) -> str:
    """A judge that never answers."""
    await asyncio.Event().wait()
    return prompt


class Crowd:
    """A judge that answers when `expected` requests are in flight at the same time."""

    model, supports_json_schema = "test:crowd", True

    def __init__(self) -> None:
        self.expect(1)

    def expect(self, expected: int) -> None:
        """Start anew: nothing is in flight."""
        self._expected, self._together = expected, asyncio.Event()
        self.in_flight = self.most = 0

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """The score 3, once enough requests are in flight."""
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        if self.in_flight == self._expected:
            self._together.set()
        await self._together.wait()
        # Give requests beyond the limit the chance to start.
        for _ in range(20):
            await asyncio.sleep(0)
        self.in_flight -= 1
        return ModelResponse(json.dumps({"reason": "so", "score": 3}))


crowd = Crowd()
