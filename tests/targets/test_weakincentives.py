"""A loop of the weakincentives package is a target without changes: its answer, tools and tokens."""

# Types are checked as Python 3.11 sees them, for which the package does not exist.
# mypy: ignore-errors

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

if sys.version_info < (3, 12):
    pytest.skip("weakincentives needs Python 3.12", allow_module_level=True)

from weakincentives.adapters import PromptResponse, ProviderAdapter
from weakincentives.budget import TokenUsage
from weakincentives.prompt import MarkdownSection, Prompt, PromptTemplate, Tool, ToolContext, ToolResult
from weakincentives.runtime import AgentLoop, InMemoryMailbox, Session
from weakincentives.runtime.events import PromptExecuted, PromptRendered, ToolInvoked

from proctor import (
    Message,
    ModelCall,
    Sample,
    ToolCall,
    Usage,
    all_of,
    all_tools_succeeded,
    evaluate,
    exact_match,
    slice_contains,
    token_usage_under,
    tool_called,
)
from proctor.targets.replies import convert_execute_result
from proctor.targets.resolve import as_target


@dataclass(slots=True, frozen=True)
class Question:
    text: str


@dataclass(slots=True, frozen=True)
class City:
    name: str

    def render(self) -> str:
        return self.name


def look_up(params: Question, *, context: ToolContext) -> ToolResult[City]:
    if "Atlantis" in params.text:
        return ToolResult(message="no such city", value=None, success=False)
    return ToolResult.ok(City("Rome" if "Italy" in params.text else "Paris"))


LOOK_UP = Tool[Question, City](name="look_up", description="Look it up.", handler=look_up)


class Adapter(ProviderAdapter[Any]):
    """A model without a network: calls the tool with what it is asked, answers with the result.

    It tells the session what it does as the package's own adapters do. The text of the prompt is
    put together here, for the package cannot render one under the first releases of Python 3.12.
    """

    def evaluate(self, prompt: Any, *, session: Any, **_: Any) -> PromptResponse[Any]:
        (asked,) = prompt.params
        about = {"adapter": "offline", "session_id": session.session_id}
        session.dispatcher.dispatch(
            PromptRendered(
                prompt_ns=prompt.ns,
                prompt_key=prompt.key,
                prompt_name=prompt.name,
                render_inputs=(),
                rendered_prompt=f"# Question\n\n{asked.text}",
                created_at=datetime.now(UTC),
                **about,
            )
        )
        with prompt.resources:
            context = ToolContext(prompt=prompt, rendered_prompt=None, adapter=self, session=session)
            result = LOOK_UP.handler(asked, context=context)
        session.dispatcher.dispatch(
            ToolInvoked(
                prompt_name=prompt.name or "",
                name=LOOK_UP.name,
                params=asked,
                result=result,
                created_at=datetime.now(UTC),
                call_id="c1",
                **about,
            )
        )
        text = result.value.name if result.success else "unknown"
        response = PromptResponse(prompt_name=prompt.name or "", text=text, output=text)
        session.dispatcher.dispatch(
            PromptExecuted(
                prompt_name=prompt.name or "",
                result=response,
                created_at=datetime.now(UTC),
                usage=TokenUsage(input_tokens=20, output_tokens=3),
                **about,
            )
        )
        return response


class CapitalLoop(AgentLoop[str, str]):
    """Written as the package's guide says, without a thought of us."""

    def __init__(self, *, adapter: Any, requests: Any) -> None:
        super().__init__(adapter=adapter, requests=requests)
        self._template = PromptTemplate(
            ns="qa",
            key="capital",
            name="capital",
            sections=[MarkdownSection[Question](title="Question", template="${text}", key="q", tools=[LOOK_UP])],
        )

    def prepare(self, request: str, *, experiment: Any = None) -> Any:
        return Prompt(self._template).bind(Question(request)), Session()


def loop() -> CapitalLoop:
    return CapitalLoop(adapter=Adapter(), requests=InMemoryMailbox(name="requests"))


def test_an_agent_loop_is_evaluated_unchanged() -> None:
    """Answer, tool calls, tokens and the user's own slices all reach the evaluators."""
    samples = [
        Sample("fr", "capital of France?", "Paris"),
        Sample("it", "capital of Italy?", "Rome"),
        Sample("at", "capital of Atlantis?", "unknown"),
    ]
    checks = {
        "right": exact_match,
        "looked": tool_called("look_up"),
        "well": all_of(exact_match, all_tools_succeeded()),
        "thrifty": token_usage_under(23),
        "city": slice_contains(City, lambda city: city.name in ("Paris", "Rome")),
    }
    report = evaluate(loop(), samples, checks)
    passed = {each.sample_id: [name for name, score in each.scores.items() if score.passed] for each in report.results}
    assert passed == {"fr": list(checks), "it": list(checks), "at": ["right", "looked", "thrifty"]}
    assert [each.trial.usage for each in report.results] == [Usage(20, 3)] * 3


def test_its_session_is_told_in_our_events() -> None:
    """What was asked, called and answered, in order; then what tools left in its slices."""
    target = as_target(loop())
    assert target.blocking
    session = target.call(Sample("it", "capital of Italy?"), {}).session
    asked, called, message, model, city = session
    assert isinstance(asked, Message)
    assert asked.content.endswith("capital of Italy?")
    assert called == ToolCall("look_up", {"text": "capital of Italy?"}, {"name": "Rome"}, call_id="c1")
    assert message == Message("assistant", "Rome")
    assert model == ModelCall("offline", Usage(20, 3))
    assert city.data == City("Rome")


def test_a_tool_that_failed_says_why() -> None:
    """`success=False` is an error with its message."""
    reply = as_target(loop()).call(Sample("at", "capital of Atlantis?"), {})
    (called,) = reply.session[ToolCall]
    assert (called.error, called.result) == ("no such city", None)


def test_results_of_other_shapes_are_taken_as_they_are() -> None:
    """Native tools of its providers give plain mappings, and none may have parameters."""
    session = Session()
    about = {"prompt_name": "", "adapter": "x", "session_id": None}
    for params, result in [(None, {"is_error": True}), ("ls", "a.txt")]:
        session.dispatcher.dispatch(
            ToolInvoked(name="shell", params=params, result=result, created_at=datetime.now(UTC), **about)
        )
    response = PromptResponse(prompt_name="", text=None, output=[1])
    session.dispatcher.dispatch(PromptExecuted(result=response, created_at=datetime.now(UTC), **about))
    reply = convert_execute_result((response, session))
    assert reply.output == [1]
    assert reply.usage is None
    assert reply.session is not None
    assert list(reply.session) == [
        ToolCall("shell", {}, {"is_error": True}),
        ToolCall("shell", {"params": "ls"}, "a.txt"),
        ModelCall("x"),
    ]


@dataclass
class Unfinished:
    name: str


def test_slices_that_cannot_be_written_down_are_left_out() -> None:
    """The package itself refuses to take a snapshot of them; the log is still told."""
    session = Session()
    session[Unfinished].seed(Unfinished.__new__(Unfinished))
    reply = convert_execute_result((PromptResponse(prompt_name="", text="x", output="x"), session))
    assert reply.output == "x"
    assert reply.session is not None
    assert not len(reply.session)


def test_the_same_loop_is_the_same_target_in_another_process() -> None:
    """Host, process and heartbeat are not what it answers, so a run can be resumed."""
    look = (
        "from tests.targets.test_weakincentives import loop\n"
        "from proctor.targets.resolve import as_target\n"
        "print(as_target(loop()).spec.identity)"
    )
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == as_target(loop()).spec.identity


def test_another_prepare_is_another_target() -> None:
    """What is asked stands in `prepare`, and not in the inherited `execute`."""

    class Other(CapitalLoop):
        def prepare(self, request: str, *, experiment: Any = None) -> Any:
            return Prompt(self._template).bind(Question(request.upper())), Session()

    other = Other(adapter=Adapter(), requests=InMemoryMailbox(name="requests"))
    assert as_target(other).spec.identity != as_target(loop()).spec.identity
