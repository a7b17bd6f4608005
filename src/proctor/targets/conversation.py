"""Conversations as targets: a script of user messages, or a simulated user with a persona and a goal."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from proctor.core import resources
from proctor.errors import CallFailed, Problem, TargetError
from proctor.models.connect import provider
from proctor.models.model_calls import aask
from proctor.models.prompts import Prompt, PromptTemplate
from proctor.ports import ProviderAdapter, Target
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample, type_name
from proctor.records.session import CustomEvent, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Reply
from proctor.sessions import current as sessions
from proctor.sessions.importers.conversation import read_conversation
from proctor.targets.resolve import as_target

Output = Literal["last", "transcript"]
Status = Literal["continue", "goal_reached", "gave_up"]
# The kind of the event that says how a conversation ended.
CONVERSATION = "conversation"
PERSONA_KEYS = ("persona", "goal", "facts", "opening")
START = "(The chat is open. Write your first message.)"


class SimulatedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a simulated user writes, and whether they go on."""

    message: str
    status: Status


class Persona(NamedTuple):
    """Who a simulated user is, what they want, and what they know; `opening` is their first message, if it is fixed."""

    persona: str
    goal: str
    facts: str = ""
    opening: str = ""


class SimulatedUser:
    """A model that plays a persona: each call returns the next message of the user.

    The model sees the conversation from the other side: the target's answers are its user messages.
    """

    def __init__(self, model: Any) -> None:
        self.adapter: ProviderAdapter = provider(model)
        self.template = _load_template()

    async def write_turn(self, persona: Persona, history: Sequence[Message]) -> tuple[SimulatedTurn, Usage]:
        """Return the next message, and the usage of the model."""
        facts = persona.facts or "nothing besides this"
        prompt = Prompt(self.template).bind(persona=persona.persona, goal=persona.goal, facts=facts)
        roles: dict[str, Literal["user", "assistant"]] = {"user": "assistant", "assistant": "user"}
        seen = [Message(roles[message.role], message.content) for message in history]
        start = [] if seen and seen[0].role == "user" else [Message("user", START)]
        # The calls of the simulated user are not part of the session, whose usage is the target's.
        token = sessions.current.set(Session())
        try:
            response = await aask(self.adapter, [*prompt.messages(), *start, *seen], SimulatedTurn)
        finally:
            sessions.current.reset(token)
        turn: SimulatedTurn = response.output
        if turn.status == "continue" and not turn.message.strip():
            raise CallFailed(f"the simulated user ({self.adapter.model}) wrote an empty message")
        return turn, response.usage


class ConversationTarget:
    """A conversation with a target for several turns; the session holds all of it.

    `target` is any target. It receives the messages so far, `[{"role", "content"}, …]`, the last one from the user, or
    with `history=False` only the text of that message, for a target that remembers. Without `user`, the input of a
    sample is a list of user messages. With `user`, a model that plays the user, it is
    `{"persona", "goal"}` with optional `"facts"` and `"opening"`; the conversation ends when the goal is reached, when
    the user gives up, or after `max_turns` messages of the user. The output is the last answer, or the transcript.

    >>> echo = ConversationTarget(lambda messages: f"{len(messages)}: {messages[-1]['content']}")
    >>> asyncio.run(echo.call(Sample("1", ["Hi", "Bye"]), {})).output
    '3: Bye'
    """

    blocking = False

    def __init__(
        self,
        target: Any,
        *,
        user: Any = None,
        max_turns: int = 10,
        output: Output = "last",
        history: bool = True,
        name: str | None = None,
    ) -> None:
        problems = list(_find_problems(max_turns, output, history))
        if problems:
            raise TargetError("the conversation is invalid", problems=problems, fix="; ".join(p.fix for p in problems))
        self._target: Target = as_target(target)
        self._user = None if user is None else SimulatedUser(user)
        self._max_turns, self._output, self._history = max_turns, output, history
        inner = self._target.spec
        identity = [inner.identity, max_turns, output, history]
        if self._user is not None:
            adapter = self._user.adapter
            identity += [adapter.model, str(getattr(adapter, "identity", "")), self._user.template.version]
        self.spec = TargetSpec(name or inner.name, CONVERSATION, codec.digest(identity)[:16], inner.uncovered)

    def __repr__(self) -> str:
        return f"ConversationTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """Return the problems of the target with a configuration's options."""
        return self._target.check_options(options)

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int = 0) -> Reply:
        """Hold one conversation."""
        session = sessions.current_session()
        session = Session() if session is None else session
        messages: list[Message] = []
        ask = functools.partial(self._ask_target, sample, options, epoch, session, messages)
        if self._user is None:
            facts = await self._follow_script(_read_script(sample), ask)
        else:
            facts = await self._simulate(self._user, _read_persona(sample), messages, session, ask)
        session.append(CustomEvent(CONVERSATION, facts))
        answers = [message.content for message in messages if message.role == "assistant"]
        if self._output == "last":
            return Reply(answers[-1], session=session)
        return Reply("\n\n".join(f"{message.role}: {message.content}" for message in messages), session=session)

    async def close(self) -> None:
        """Close the connections of the target."""
        await self._target.close()

    async def _follow_script(self, turns: Sequence[str], ask: Any) -> dict[str, Any]:
        for turn in turns:
            await ask(turn)
        return {"end": "script", "turns": len(turns)}

    async def _simulate(
        self, user: SimulatedUser, persona: Persona, messages: list[Message], session: Session, ask: Any
    ) -> dict[str, Any]:
        end, usage = "max_turns", Usage()
        turns = 0
        while turns < self._max_turns:
            if not messages and persona.opening:
                turn = SimulatedTurn(persona.opening, "continue")
            else:
                turn, turn_usage = await user.write_turn(persona, messages)
                usage += turn_usage
            # Nothing can be reached before the target has answered.
            if turn.status != "continue" and messages:
                end = turn.status
                if turn.message.strip():
                    messages.append(Message("user", turn.message))
                    session.append(messages[-1])
                break
            if not turn.message.strip():
                raise CallFailed(f"the simulated user ({user.adapter.model}) ended before its first message")
            turns += 1
            await ask(turn.message)
        counts = {name: value for name, value in msgspec.structs.asdict(usage).items() if value is not None}
        return {"end": end, "turns": turns, "user": {"model": user.adapter.model, "usage": counts}}

    async def _ask_target(
        self,
        sample: Sample[Any, Any],
        options: Mapping[str, Any],
        epoch: int,
        session: Session,
        messages: list[Message],
        text: str,
    ) -> None:
        """Send one message of the user, and add the answer to the messages and the session."""
        messages.append(Message("user", text))
        session.append(messages[-1])
        history = [{"role": message.role, "content": message.content} for message in messages]
        turn = msgspec.structs.replace(sample, input=history if self._history else text)
        recorded = Session()
        token = sessions.current.set(recorded)
        try:
            if self._target.blocking:
                result = await asyncio.to_thread(self._target.call, turn, options, epoch)
            else:
                result = self._target.call(turn, options, epoch)
            result = await result if inspect.isawaitable(result) else result
        finally:
            sessions.current.reset(token)
            # The messages of the whole conversation are recorded here; a model records its prompt again in each turn.
            for event in recorded:
                if not isinstance(event, Message):
                    session.append(event)
        answer, events = self._read_result(result, history, recorded)
        messages.append(Message("assistant", answer))
        for event in (*events, messages[-1]):
            session.append(event)

    def _read_result(self, result: Any, history: list[Any], recorded: Session) -> tuple[Any, list[Any]]:
        """Return the answer in the result of the target, and its tool and model calls that were not recorded."""
        reply = result if isinstance(result, Reply) else Reply(result)
        conversation = None if reply.session is not None else read_conversation(reply.output, history)
        answer = reply.output if conversation is None else conversation.answer
        if answer is None or answer == "":
            raise CallFailed(f"{self.spec.name} sent no answer to message {len(history) // 2 + 1} of the user")
        returned = conversation.session if conversation is not None else reply.session or Session()
        events: list[Any] = [] if recorded[ToolCall] else list(returned[ToolCall])
        if recorded.known_usage() is None:
            reported = [] if reply.usage is None else [ModelCall(self.spec.name, reply.usage)]
            events += reported or returned[ModelCall]
        return answer, events


def _find_problems(max_turns: Any, output: Any, history: Any) -> Sequence[Problem]:
    problems = []
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
        problems.append(
            Problem("max_turns", f"must be an integer, 1 or more, got {max_turns!r}", "write max_turns: 10")
        )
    if output not in get_args(Output):
        problems.append(Problem("output", f"must be last or transcript, got {output!r}", "write output: last"))
    if not isinstance(history, bool):
        problems.append(Problem("history", f"must be true or false, got {history!r}", "write history: true"))
    return problems


def _read_script(sample: Sample[Any, Any]) -> list[str]:
    """Return the user messages of a sample: a list of strings or of `{"role": "user", "content": …}`."""
    turns = sample.input
    if isinstance(turns, Mapping) and "turns" in turns:
        turns = turns["turns"]
    if isinstance(turns, str):
        return [turns]
    items = list(turns) if isinstance(turns, list | tuple) else []
    problem = f"got {type_name(sample.input)}" if not isinstance(turns, list | tuple) else "the list is empty"
    if items:
        problem = next(filter(None, map(_find_turn_problem, range(1, len(items) + 1), items)), "")
    if problem:
        is_persona = isinstance(turns, Mapping) and "goal" in turns
        hint = "; for a persona, set user to a model" if is_persona else ""
        raise TargetError(
            f"the input of {sample.id!r} must be a list of user messages, {problem}",
            fix=f'write ["Hello", "And tomorrow?"]{hint}',
        )
    return [item["content"] if isinstance(item, Mapping) else item for item in items]


def _find_turn_problem(number: int, turn: Any) -> str:
    """Return why a turn is no user message; empty if it is one."""
    if isinstance(turn, Mapping) and (role := turn.get("role", "user")) != "user":
        return f"turn {number} has the role {role!r}"
    text = turn.get("content") if isinstance(turn, Mapping) else turn
    if not isinstance(text, str):
        part = "the content of turn" if isinstance(turn, Mapping) else "turn"
        return f"{part} {number} is {'missing' if text is None else type_name(text)}"
    return "" if text.strip() else f"turn {number} is empty"


def _read_persona(sample: Sample[Any, Any]) -> Persona:
    fields = sample.input if isinstance(sample.input, Mapping) else {}
    problems = [Problem(name, "is missing") for name in ("persona", "goal") if not fields.get(name)]
    problems += [Problem(str(name), "is unknown") for name in fields if name not in PERSONA_KEYS]
    problems += [
        Problem(name, f"must be a string, got {type_name(value)}")
        for name, value in fields.items()
        if name in PERSONA_KEYS and name != "facts" and value and not isinstance(value, str)
    ]
    if problems:
        raise TargetError(
            f"the input of {sample.id!r} is not a persona",
            problems=problems,
            fix='write {"persona": "a busy parent", "goal": "book a table for four", "facts": "Friday, 19:00"}',
        )
    texts = {name: value if isinstance(value, str) else codec.to_text(value) for name, value in fields.items() if value}
    return Persona(**texts)


@functools.cache
def _load_template() -> PromptTemplate[Any]:
    return PromptTemplate.load(resources.path("targets", "prompts", "simulated-user.md"))
