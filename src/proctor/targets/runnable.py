"""LangChain runnables, and whatever else is called by `ainvoke` or `invoke`."""

from __future__ import annotations

from typing import Any

from proctor import extras
from proctor.identity import Identity, examine
from proctor.records.run import TargetSpec
from proctor.records.trial import Reply
from proctor.targets.parameters import parameters_of
from proctor.targets.python import PythonTarget, is_async, reading


def from_runnable(runnable: Any, name: str) -> PythonTarget:
    """A runnable as a target: `ainvoke` if it has one, else `invoke`; options go by keyword.

    The answer of a chat model is read where all outputs are: its text is the output, its tool
    calls and its usage are in the session. Any other chat message gives its content; every other
    result stays as it is.

    >>> from proctor.records.sample import Sample
    >>> class Echo:
    ...     def invoke(self, input, config=None):
    ...         return input
    >>> from_runnable(Echo(), "echo").call(Sample("1", "hello"), {})
    'hello'
    """
    method = "ainvoke" if hasattr(runnable, "ainvoke") else "invoke"
    invoke = getattr(runnable, method)
    waits = method == "ainvoke" or is_async(invoke)
    return PythonTarget(
        TargetSpec(name, "runnable", *_identity(runnable)),
        reading(invoke, reply_of, waits=waits),
        parameters_of(invoke, f"{name}.{method}"),
        blocking=not waits,
    )


def reply_of(result: Any) -> Any:
    """The content of a chat message that is no answer of a model; anything else as it is.

    >>> reply_of({"answer": 4})
    {'answer': 4}
    """
    messages = extras.loaded("langchain_core.messages")
    if messages is None or not isinstance(result, messages.BaseMessage):
        return result
    return result if isinstance(result, messages.AIMessage) else Reply(result.content)


def _identity(runnable: Any) -> Identity:
    """What tells one runnable from another: its code and, of a chain, every step and prompt."""
    steps = getattr(runnable, "steps", ())
    parts = list(steps) if isinstance(steps, list | tuple) else []
    return examine([runnable, parts, _without_repr(_description(runnable))])


def _description(runnable: Any) -> Any:
    """LangChain's own description, which names secrets but does not hold them; None without one."""
    load = extras.loaded("langchain_core.load")
    try:
        return None if load is None else load.dumpd(runnable)
    except (TypeError, ValueError):
        return None


def _without_repr(described: Any) -> Any:
    """The description without `repr` texts, which may hold addresses in memory."""
    if isinstance(described, dict):
        return {key: _without_repr(part) for key, part in described.items() if key != "repr"}
    return [_without_repr(part) for part in described] if isinstance(described, list) else described
