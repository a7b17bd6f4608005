"""LangChain runnables as targets, with the real package."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.load import Serializable
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from proctor.records.sample import Sample
from proctor.records.session import Usage
from proctor.records.trial import Reply
from proctor.targets.resolve import from_runnable
from proctor.wiring.evaluate import evaluate

SAMPLE: Sample[str, str] = Sample("1", "hello")


def shout(text: str) -> str:
    return text.upper()


def chain(prompt: str) -> Runnable[Any, Any]:
    model = FakeListChatModel(responses=["Paris"])
    return ChatPromptTemplate.from_messages([("user", prompt)]) | model | StrOutputParser()


def test_a_runnable_is_awaited_by_ainvoke() -> None:
    """`ainvoke` is preferred, so nothing blocks."""
    target = from_runnable(RunnableLambda(shout), "shout")
    assert not target.blocking
    assert target.spec.kind == "runnable"
    assert asyncio.run(target.call(SAMPLE, {})) == "HELLO"


def test_a_chat_model_gives_content_and_usage() -> None:
    """A message gives its text as the output, its token counts as usage, and a session."""
    error: Any = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15, "input_token_details": {"cache_read": 4}}
    model = GenericFakeChatModel(messages=iter([AIMessage("Paris", usage_metadata=error)]))
    (result,) = evaluate(model, [SAMPLE], lambda output: True, history=None).results
    assert (result.output, result.trial.usage) == ("Paris", Usage(12, 3, 4))
    assert result.trial.session is None  # one answer does not tell what was called before


def test_a_message_without_usage_leaves_it_unknown() -> None:
    """Usage that was not told is None and not zero."""
    model = FakeListChatModel(responses=["Paris"])
    (result,) = evaluate(model, [SAMPLE], lambda output: True, history=None).results
    assert (result.output, result.trial.usage) == ("Paris", None)


def test_a_message_that_is_no_answer_of_a_model_gives_its_content() -> None:
    """A chain may end with a message of the user's, or of a tool's."""
    target = from_runnable(RunnableLambda(lambda text: HumanMessage(text)), "it")
    assert asyncio.run(target.call(SAMPLE, {})) == Reply("hello")


def test_a_chain_runs_from_prompt_to_text() -> None:
    """A prompt, a model and a parser in a row are one target."""
    target = from_runnable(chain("{text}"), "chain")
    assert asyncio.run(target.call(Sample("1", {"text": "hello"}), {})) == "Paris"


def test_structured_results_stay_as_they_are() -> None:
    """Only messages are taken apart."""
    target = from_runnable(RunnableLambda(lambda text: {"answer": text}), "it")
    assert asyncio.run(target.call(SAMPLE, {})) == {"answer": "hello"}


def test_options_are_keyword_arguments() -> None:
    """Options reach the runnable's function, and `config` its configuration."""

    def mark(text: str, mark: str = "!") -> str:
        return text + mark

    target = from_runnable(RunnableLambda(mark), "it")
    options = {"mark": "?", "config": {"tags": ["eval"]}}
    assert target.check_options(options) == []
    assert target.check_options({"input": "x"}) != []
    assert asyncio.run(target.call(SAMPLE, options)) == "hello?"


def test_invoke_alone_blocks_unless_it_is_async() -> None:
    """An object with only `invoke` runs in a thread if it is sync."""

    class Sync:
        def invoke(self, text: str) -> str:
            return text

    class Async:
        async def invoke(self, text: str) -> str:
            return text

    assert from_runnable(Sync(), "it").blocking
    assert from_runnable(Sync(), "it").call(SAMPLE, {}) == "hello"
    assert not from_runnable(Async(), "it").blocking
    assert asyncio.run(from_runnable(Async(), "it").call(SAMPLE, {})) == "hello"


def test_the_identity_sees_prompts_and_functions_inside_a_chain() -> None:
    """A chain with another prompt, or another function as a step, is another target."""
    same = [from_runnable(chain("{text}"), "it").spec.identity for _ in range(2)]
    other = from_runnable(chain("Say: {text}"), "it").spec.identity
    ends: list[Runnable[Any, Any]] = [chain("{text}") | RunnableLambda(step) for step in (shout, str.lower)]
    identities = [from_runnable(each, "it").spec.identity for each in ends]
    assert same[0] == same[1]
    assert len({same[0], other, *identities}) == 4


def test_the_identity_holds_no_address_in_memory() -> None:
    """What cannot be described is left out, so that the next process finds the same identity."""
    models = [GenericFakeChatModel(messages=iter([AIMessage("x")])) for _ in range(2)]
    first, second = (from_runnable(model, "it").spec.identity for model in models)
    assert first == second


def test_a_runnable_that_cannot_be_described_still_has_an_identity() -> None:
    """Where LangChain cannot write a runnable down, its code alone tells it apart."""

    class Odd(Serializable):
        @classmethod
        def is_lc_serializable(cls) -> bool:
            return True

        def to_json(self) -> Any:
            raise TypeError("cannot be written down")

        def invoke(self, text: str) -> str:
            return text

    assert len(from_runnable(Odd(), "it").spec.identity) == 18
