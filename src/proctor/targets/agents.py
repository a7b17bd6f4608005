"""Agents of frameworks as targets: LangGraph, the OpenAI Agents SDK, Pydantic AI and smolagents.

The results of these frameworks, of CrewAI and of the Claude Agent SDK become replies with sessions.

An agent is recognized by its classes; no framework is imported before the program does. If an agent raises, what it did
until then is in the session.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.core import optional as extras
from proctor.errors import TargetError
from proctor.records.session import ModelCall, Session
from proctor.records.trial import Reply
from proctor.sessions import current as sessions

# Fields of a smolagents agent that change while it runs.
_SMOLAGENTS_STATE = frozenset((
    "memory", "logger", "monitor", "step_number", "task", "state", "step_callbacks", "python_executor",
    "input_messages", "interrupt_switch",
))  # fmt: skip


class Agent(NamedTuple):
    """A function that runs an agent, whether it is async, and the contents that identify the agent."""

    run: Callable[..., Any]
    is_async: bool
    contents: Any
    name: str | None = None


def find_agent(target: Any) -> Agent | None:
    """Return how to run an agent of a known framework; None for any other object."""
    for base in type(target).__mro__:
        make = _AGENTS.get((base.__module__.partition(".")[0], base.__name__))
        if make is not None:
            return make(target)
    return None


def convert_agent_result(result: Any) -> Any:
    """Convert the result of an agent framework to a reply with its session; return other results unchanged."""
    kind = type(result)
    if kind is not list and kind.__module__.partition(".")[0] not in _RESULT_MODULES:
        return result
    from proctor.sessions.importers.agent_results import read_agent_result

    agent_result = read_agent_result(result)
    if agent_result is None:
        return result
    if agent_result.error is not None:
        _record(agent_result.session)
        raise TargetError(f"the agent ended with an error: {agent_result.error}")
    return Reply(agent_result.output, agent_result.usage, agent_result.session)


def _record(session: Session | None) -> None:
    for event in session or ():
        sessions.record(event)


def has_frameworks() -> bool:
    """Return True if the program has imported a framework whose results are converted."""
    return any(extras.loaded_module(name) is not None for name in _RESULT_MODULES)


def wrap_graph_input(target: Any) -> Callable[[Any], Any] | None:
    """Return a function that turns a question into the input of a LangGraph agent; None for other runnables."""
    channels = getattr(target, "channels", None)
    is_graph = any(base.__module__.startswith("langgraph.") for base in type(target).__mro__)
    if not is_graph or not isinstance(channels, Mapping) or "messages" not in channels:
        return None

    def wrap(value: Any) -> Any:
        if isinstance(value, str):
            return {"messages": [{"role": "user", "content": value}]}
        return {"messages": value} if isinstance(value, list) else value

    return wrap


def _from_openai_agent(target: Any) -> Agent | None:
    runner = extras.loaded_module("agents")
    # The user's own package may be called `agents` too.
    if not hasattr(runner, "Runner") or not hasattr(target, "handoffs"):
        return None

    async def run(question: Any, **options: Any) -> Any:
        try:
            return convert_agent_result(await runner.Runner.run(target, question, **options))  # type: ignore[union-attr]
        except Exception as error:
            if (run_data := getattr(error, "run_data", None)) is not None:
                from proctor.sessions.importers.agent_results import read_openai_items

                _record(read_openai_items(run_data))
            raise

    return Agent(run, True, vars(target), target.name)


def _from_pydantic_ai_agent(target: Any) -> Agent:
    package = extras.loaded_module("pydantic_ai")

    async def run(question: Any, **options: Any) -> Any:
        with package.capture_run_messages() as messages:  # type: ignore[union-attr]
            try:
                # Otherwise the agent names itself after a variable of the caller.
                return convert_agent_result(await target.run(question, **{"infer_name": False, **options}))
            except Exception:
                from proctor.sessions.importers.agent_results import read_pydantic_ai_messages

                adapter = package.messages.ModelMessagesTypeAdapter  # type: ignore[union-attr]
                if messages:
                    _record(read_pydantic_ai_messages(msgspec.json.decode(adapter.dump_json(messages))))
                raise

    contents = {**vars(target), "_model": _describe_object(getattr(target, "_model", None))}
    return Agent(run, True, contents, target.name)


def _from_smolagents_agent(target: Any) -> Agent:
    # An agent stores the steps of its run in itself, so it runs one task at a time.
    lock = threading.Lock()
    model = getattr(target.model, "model_id", None)

    def run(question: Any, **options: Any) -> Any:
        with lock:
            try:
                reply = convert_agent_result(target.run(question, return_full_result=True, **options))
            except Exception:
                from proctor.sessions.importers.agent_results import read_smolagents_steps

                _record(_name_model(read_smolagents_steps(target.memory.get_succinct_steps()), model))
                raise
        return msgspec.structs.replace(reply, session=_name_model(reply.session, model))

    state = {name: value for name, value in vars(target).items() if name not in _SMOLAGENTS_STATE}
    state["tools"] = {name: _describe_object(item) for name, item in target.tools.items()}
    state["model"] = _describe_object(target.model)
    return Agent(run, False, [type(target).__name__, state], target.name)


def _describe_object(value: Any) -> Any:
    """Return the class and the fields of an object without those that it sets when it is first used."""
    if not hasattr(value, "__dict__") or isinstance(value, type):
        return value
    cached = {
        name
        for base in type(value).__mro__
        for name, item in vars(base).items()
        if isinstance(item, functools.cached_property)
    }
    fields = {name: item for name, item in vars(value).items() if name not in cached and name != "is_initialized"}
    return [type(value), fields]


def _name_model(session: Session, model: Any) -> Session:
    """Name the model of the calls; the steps of smolagents do not."""
    if not isinstance(model, str):
        return session
    return Session(
        [msgspec.structs.replace(event, model=model) if isinstance(event, ModelCall) else event for event in session]
    )


_AGENTS: Mapping[tuple[str, str], Callable[[Any], Agent | None]] = {
    ("agents", "Agent"): _from_openai_agent,
    ("pydantic_ai", "AbstractAgent"): _from_pydantic_ai_agent,
    ("smolagents", "MultiStepAgent"): _from_smolagents_agent,
}
_RESULT_MODULES = ("agents", "pydantic_ai", "smolagents", "crewai", "claude_agent_sdk")
