"""A model as a target: the prompt of each sample, and the output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import Message, ModelCall, Sample, evaluate, exact_match
from proctor.errors import ConfigError, TargetError
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Usage
from proctor.targets.model import ModelTarget
from proctor.targets.resolve import as_target


class Parrot:
    """A model that says what it was asked last, and remembers every request."""

    supports_json_schema = False

    def __init__(self, model: str = "test:parrot", refusal: str | None = None) -> None:
        self.model = model
        self.refusal = refusal
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        self.asked.append(request)
        said = str(request.messages[-1].content)
        usage = Usage(input_tokens=len(said), output_tokens=1, cost=0.5)
        return ModelResponse(said, self.model, usage=usage, refusal=self.refusal)


def run(target: Any, given: Any, **options: Any) -> Any:
    """The output for one input."""
    report = evaluate(target, [Sample("s", given)], lambda output: True, history=False, **options)
    (result,) = report.results
    assert result.error is None, result.error
    return result.output


def test_a_text_is_sent_unchanged() -> None:
    """Without a prompt the input is the user's message."""
    parrot = Parrot()
    assert run(ModelTarget(parrot), "What is 2 + 2?") == "What is 2 + 2?"
    assert parrot.asked[0].messages == (Message("user", "What is 2 + 2?"),)


def test_the_input_replaces_its_placeholder() -> None:
    """`$input` is replaced once: dollar signs in the input stay."""
    target = ModelTarget(Parrot(), prompt="Answer briefly: $input")
    assert run(target, "What does $input cost?") == "Answer briefly: What does $input cost?"


def test_the_keys_of_a_mapping_fill_placeholders() -> None:
    """Each placeholder takes the key of its name; keys that are not asked for are left out."""
    target = ModelTarget(Parrot(), prompt="$question Context: $context")
    given = {"question": "Where?", "context": "Paris", "other": 1}
    assert run(target, given) == "Where? Context: Paris"


def test_a_mapping_without_a_prompt_is_asked_as_json() -> None:
    """A model reads text; data is written as JSON."""
    assert run(ModelTarget(Parrot()), {"a": [1, 2]}) == '{\n  "a": [\n    1,\n    2\n  ]\n}'


def test_a_list_of_turns_is_a_conversation() -> None:
    """The roles stay, the system message comes first."""
    parrot = Parrot()
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    run(ModelTarget(parrot, system="Be kind."), [*turns, {"role": "user", "content": "Bye"}])
    assert [message.role for message in parrot.asked[0].messages] == ["system", "user", "assistant", "user"]


def test_an_invalid_turn_fails_its_sample() -> None:
    """The error says what a turn is."""
    report = evaluate(ModelTarget(Parrot()), [Sample("s", [{"who": "me"}])], exact_match, history=False)
    assert "a turn of a conversation must be {role, content}" in (report.results[0].error or "")


def test_a_prompt_may_be_a_file(tmp_path: Path) -> None:
    """A Markdown file with a front matter; it may have a system section."""
    file = tmp_path / "answer.md"
    file.write_text(
        "---\nkey: answer\nparameters: {input: str}\n---\n"
        "<!-- system -->\nYou answer in one word.\n<!-- user -->\n$input\n"
    )
    parrot = Parrot()
    run(ModelTarget(parrot, prompt=str(file)), "Where is Paris?")
    assert parrot.asked[0].messages == (
        Message("system", "You answer in one word."),
        Message("user", "Where is Paris?"),
    )


def test_configurations_override_settings() -> None:
    """Each configuration may have its own temperature, prompt or model."""
    one, other = Parrot("test:one"), Parrot("test:other")
    evaluate(
        ModelTarget(one, temperature=0.0, max_tokens=5),
        [Sample("s", "x")],
        lambda output: True,
        configurations={"warm": {"temperature": 0.7, "seed": 3}, "other": {"model": other, "prompt": "Say $input"}},
        history=False,
    )
    assert (one.asked[0].temperature, one.asked[0].max_tokens, one.asked[0].seed) == (0.7, 5, 3)
    assert other.asked[0].messages == (Message("user", "Say x"),)
    assert other.asked[0].temperature == 0.0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"temprature": 1}, "did you mean 'temperature'?"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"prompt": "cost: $ 5"}, "a $ is not followed by a parameter's name"),
        ({"prompt": "no_such_file.md"}, "file not found: no_such_file.md"),
        ({"model": "opnai:gpt"}, "did you mean 'openai'?"),
    ],
)
def test_a_wrong_option_is_reported_before_the_run(options: dict[str, Any], expected: str) -> None:
    """Misspelt settings, prompts and models are found when the run is prepared."""
    parrot = Parrot()
    with pytest.raises(ConfigError) as caught:
        run(ModelTarget(parrot), "x", configurations={"c": options})
    assert expected in str(caught.value)
    assert parrot.asked == []


def test_a_refusal_is_the_output() -> None:
    """Evaluators score the text of the refusal."""
    assert run(ModelTarget(Parrot(refusal="I will not.")), "x") == "I will not."


def test_the_session_holds_the_exchange_and_the_usage() -> None:
    """Messages and the model call are recorded, and the trial's usage comes from them."""
    report = evaluate(ModelTarget(Parrot()), [Sample("s", "word")], exact_match, history=False)
    trial = report.results[0].trial
    assert trial.session is not None
    assert [message.role for message in trial.session[Message]] == ["user", "assistant"]
    assert trial.session[ModelCall][0].model == "test:parrot"
    assert trial.usage == Usage(input_tokens=4, output_tokens=1, cost=0.5)
    assert report.metrics["cost.total"].value == 0.5


def test_the_identity_changes_with_the_prompt_and_the_settings() -> None:
    """A resumed run is refused when the prompt has changed, and not when nothing has."""
    identities = {
        ModelTarget(Parrot(), **settings).spec.identity
        for settings in ({}, {"prompt": "a $input"}, {"prompt": "b $input"}, {"temperature": 1.0})
    }
    assert len(identities) == 4
    assert ModelTarget(Parrot()).spec == ModelTarget(Parrot()).spec


def test_an_eval_file_writes_it_as_a_mapping() -> None:
    """{model: …, prompt: …} is a target, and so is the bare address of a model."""
    target = as_target({"model": Parrot(), "prompt": "Say $input", "name": "sayer"})
    assert (target.spec.name, target.spec.kind) == ("sayer", "model")
    with pytest.raises(TargetError, match="some keys are unknown"):
        as_target({"model": Parrot(), "promt": "x"})


def test_an_address_with_a_model_after_the_hash_is_a_model() -> None:
    """http://host/v1#name is asked as a model, not posted to as an endpoint."""
    assert as_target("http://127.0.0.1:9/v1#small").spec.kind == "model"
    assert as_target("http://127.0.0.1:9/answer").spec.kind == "http"


def test_provider_options_may_accompany_the_settings(tmp_path: Path) -> None:
    """A wrapper in an eval file: the model, its `of`, and the prompt in one mapping."""
    parrot = Parrot()
    written = {"model": f"record:{tmp_path / 'calls.jsonl'}", "of": parrot, "prompt": "Say $input"}
    assert run(as_target(written), "x") == "Say x"
    assert (tmp_path / "calls.jsonl").read_text().count("\n") == 2


@pytest.mark.parametrize("prompt", ["no placeholder", "answer.txt"])
def test_a_prompt_without_a_placeholder_is_refused(prompt: str) -> None:
    """It would be the same for all samples."""
    with pytest.raises(TargetError, match="no placeholder for the input"):
        ModelTarget(Parrot(), prompt=prompt)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("Where?", "the input is not a mapping"), ({"question": "Where?"}, "did you mean 'question'?")],
)
def test_an_unfilled_placeholder_is_named(given: Any, expected: str) -> None:
    """The error lists the keys of the input."""
    report = evaluate(ModelTarget(Parrot(), prompt="Q: $qestion"), [Sample("s", given)], exact_match, history=False)
    assert expected in (report.results[0].error or "")


def test_a_key_in_a_configuration_is_refused() -> None:
    """Configurations are stored with the run."""
    keyed = {"model": "openai:gpt-4o-mini", "api_key": "sk-secret"}
    with pytest.raises(ConfigError, match="api_key_env") as caught:
        run(ModelTarget(Parrot()), "x", configurations={"c": {"model": keyed}})
    assert "sk-secret" not in str(caught.value)


def test_two_functions_of_one_name_are_two_targets() -> None:
    """A changed function with the same name is another target, also for the cache."""

    def make(answer: str) -> Any:
        def model(prompt: str) -> str:
            return answer

        return model

    assert ModelTarget(make("a")).spec != ModelTarget(make("b")).spec
    assert ModelTarget(make("a")).spec == ModelTarget(make("a")).spec


def test_a_misspelt_provider_is_suggested() -> None:
    """The address is taken for a model, not for a Python module."""
    with pytest.raises(TargetError, match="did you mean 'openai'"):
        as_target("opnai:gpt-4o-mini")
