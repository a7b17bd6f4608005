"""The runner spec: the evaluator protocol, the five built-in evaluators, custom evaluators."""

from __future__ import annotations

from typing import Any

import pytest

from proctor import (
    EvalRunner,
    ProctorError,
    Sample,
    attach,
    evaluate,
    exact_match,
    llm_judge,
    question_format,
    semantic_similarity,
    starter_phrase,
)
from tests.spec.clauses import clause
from tests.spec.runner_examples import FRANCE, GOOD, double

RUBRIC = """Rate the follow-up question on a scale of 1-5:
1 (Poor): generic, irrelevant, or without value
3 (Good): relevant and specific to the conversation
5 (Excellent): anticipates what the user needs
Consider relevance, specificity, actionability and added value."""


def judge_saying(number: int) -> Any:
    """A model that gives every output the same number, in the form that it is asked for."""

    def model(messages: Any) -> str:
        *_, line = messages[-1].content.splitlines()
        return f"It is relevant.\n{line.partition('<')[0]}{number}"

    return model


class Always:
    """An evaluator object: a name, and a method `evaluate`."""

    def __init__(self, value: Any, name: str = "always") -> None:
        self.value = value
        self.name = name
        self.seen: list[Any] = []

    def evaluate(self, output: Any, example: Sample[Any, Any], config: Any = None) -> Any:
        """The value that it was made with."""
        self.seen.append((output, example, config))
        return self.value


@clause("003.EVALUATOR.1", "3. Evaluators")
def test_an_object_with_name_and_evaluate_is_an_evaluator() -> None:
    """An object with `name` and `evaluate` needs no base class to be an evaluator."""
    report = EvalRunner(double, [Always(0.75)]).run([Sample("1", "a")], history=False)
    assert next(iter(report.results)).scores["always"].value == 0.75


@clause("003.EVALUATOR.2", "3. Evaluators")
def test_the_name_of_an_evaluator_is_unique_in_a_run() -> None:
    """Two evaluators of one name are refused before anything runs."""
    with pytest.raises(ProctorError, match="2 evaluators have this name"):
        evaluate(double, [Sample("1", "a")], [Always(1.0), Always(0.0)], history=False)


@clause("003.EVALUATOR.3", "3. Evaluators")
def test_an_evaluator_gets_the_output_and_the_sample() -> None:
    """`evaluate` is called with the output of the target and the sample it belongs to."""
    evaluator = Always(1.0)
    EvalRunner(GOOD, [evaluator]).run([FRANCE], history=False)
    ((output, example, _),) = evaluator.seen
    assert output == ["Interested in learning about Paris landmarks?"]
    assert (example.id, example.query) == ("ex-1", "What is the capital of France?")


@clause("003.EVALUATOR.4", "3. Evaluators", ruling="config is the trial's configuration")
def test_an_evaluator_gets_the_configuration_of_the_trial() -> None:
    """`config` is the options of the configuration that the trial was run with."""

    def answer(text: str, *, suffix: str = "") -> str:
        return text + suffix

    evaluator = Always(1.0)
    EvalRunner(answer, [evaluator], concurrency=1).run(
        [Sample("1", "a")], {"plain": {}, "loud": {"suffix": "!"}}, history=False
    )
    assert [(output, config) for output, _, config in evaluator.seen] == [
        ("a", {}), ("a!", {"suffix": "!"}),
    ]  # fmt: skip


@clause("003.EVALUATOR.5", "3. Evaluators", ruling="config is the trial's configuration")
def test_without_configurations_config_is_an_empty_mapping() -> None:
    """Where a run has no configurations, `config` is an empty mapping and never None."""
    evaluator = Always(1.0)
    EvalRunner(double, [evaluator]).run([Sample("1", "a")], history=False)
    assert [config for _, _, config in evaluator.seen] == [{}]


@clause("003.EVALUATOR.6", "3. Evaluators")
@pytest.mark.parametrize("number", [0.0, 0.5, 1.0])
def test_a_number_from_0_to_1_is_the_value_of_the_score(number: float) -> None:
    """The number that an evaluator returns is the value of its score."""
    assert attach(Always(number))("x").value == number


@clause("003.EVALUATOR.7", "3. Evaluators", ruling="one score")
@pytest.mark.parametrize("number", [1.5, -0.1, float("nan"), float("inf")])
def test_a_number_outside_0_to_1_is_an_error(number: float) -> None:
    """A number outside 0 to 1 becomes an error score without a value."""
    score = attach(Always(number))("x")
    assert (score.status, score.value) == ("error", None)


@clause("003.BUILTIN.1", "3. Evaluators", ruling="exact_match")
def test_exact_match_passes_equal_outputs() -> None:
    """`exact_match` gives 1 if the output equals the expected value, lists included, else 0."""
    assert attach(exact_match)(["A?"], ["A?"]).value == 1.0
    assert attach(exact_match)(["A?"], ["B?"]).value == 0.0


@clause("003.BUILTIN.2", "3. Evaluators", ruling="exact_match")
def test_exact_match_can_pass_any_generated_question() -> None:
    """With `match="any"` one generated question that equals one of the expected ones is enough."""
    any_question = attach(exact_match, parameters={"match": "any"})
    assert any_question(["A?", "B?"], ["B?", "C?"]).value == 1.0
    assert any_question(["A?", "B?"], ["C?"]).value == 0.0


@clause("003.BUILTIN.3", "3. Evaluators", ruling="runner: exact has a case option")
def test_exact_match_can_ignore_case() -> None:
    """`case_sensitive=False` compares texts without regard to capitals."""
    assert attach(exact_match)("PARIS", "Paris").value == 0.0
    assert attach(exact_match, parameters={"case_sensitive": False})("PARIS", "Paris").value == 1.0


@clause("003.BUILTIN.4", "3. Evaluators", ruling="runner: no expected value is skipped")
def test_exact_match_skips_a_sample_without_expected_value() -> None:
    """Without an expected value the score is skipped, not 0."""
    score = attach(exact_match)("x", None)
    assert (score.status, score.value) == ("skipped", None)


@clause("003.BUILTIN.5", "3. Evaluators")
def test_semantic_similarity_takes_embeddings_of_the_users_own() -> None:
    """`semantic_similarity` is the cosine of two embeddings: (3, 4) and (4, 3) give 24/25."""
    vectors = {"a": [3.0, 4.0], "b": [4.0, 3.0]}

    def embed(texts: list[str]) -> list[list[float]]:
        return [vectors[text] for text in texts]

    report = evaluate(lambda text: text, [Sample("1", "a", "b")], semantic_similarity(embed), history=False)
    score = next(iter(report.results)).scores["semantic_similarity"]
    assert score.value == pytest.approx(0.96)
    assert score.passed is True


@clause("003.BUILTIN.6", "3. Evaluators")
def test_semantic_similarity_has_a_threshold_of_0_8() -> None:
    """A similarity passes from 0.8 up, unless another threshold is set."""

    def embed(texts: list[str]) -> list[list[float]]:
        return [{"a": [1.0, 0.0], "b": [0.75, 0.6614378277661477]}[text] for text in texts]

    def passed(**options: Any) -> bool | None:
        report = evaluate(
            lambda text: text, [Sample("1", "a", "b")], semantic_similarity(embed, **options),
            history=False,
        )  # fmt: skip
        return next(iter(report.results)).scores["semantic_similarity"].passed

    assert passed() is False
    assert passed(threshold=0.7) is True


@clause("003.BUILTIN.7", "3. Evaluators")
def test_a_judge_rates_by_a_rubric() -> None:
    """`llm_judge` with a rubric gives a number on the scale: 4 of 1 to 5 is 0.75."""
    report = EvalRunner(GOOD, llm_judge(judge_saying(4), rubric=RUBRIC)).run([FRANCE], history=False)
    assert next(iter(report.results)).scores["llm_judge"].value == 0.75


@clause("003.BUILTIN.8", "3. Evaluators")
def test_a_judge_rates_by_criteria() -> None:
    """`llm_judge` with a list of criteria shows all of them to the model."""
    prompts: list[str] = []

    def model(messages: Any) -> str:
        prompts.append("\n".join(message.content for message in messages))
        *_, line = messages[-1].content.splitlines()
        return f"Fine.\n{line.partition('<')[0]}5"

    criteria = ["relevance to the query", "specificity"]
    report = EvalRunner(GOOD, llm_judge(model, criteria=criteria)).run([FRANCE], history=False)
    assert next(iter(report.results)).scores["llm_judge"].value == 1.0
    assert all(criterion in prompts[0] for criterion in criteria)


@clause("003.BUILTIN.9", "3. Evaluators")
def test_a_judge_without_rubric_scores_overall_quality() -> None:
    """Neither a rubric nor criteria are required."""
    report = EvalRunner(GOOD, llm_judge(judge_saying(3))).run([FRANCE], history=False)
    assert next(iter(report.results)).scores["llm_judge"].value == 0.5


@clause("003.BUILTIN.10", "3. Evaluators", ruling="one score")
def test_a_judge_without_a_verdict_has_no_number() -> None:
    """An answer without a verdict is an error score, never a number in the middle."""
    report = EvalRunner(GOOD, llm_judge(lambda prompt: "Hmm.")).run([FRANCE], history=False)
    score = next(iter(report.results)).scores["llm_judge"]
    assert (score.status, score.value) == ("error", None)


@clause("003.BUILTIN.11", "3. Evaluators")
def test_a_judge_can_be_named_by_the_address_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge takes the address of a model, which is kept with the run."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    judge = attach(llm_judge("openai:gpt-4o-mini"))
    assert judge.spec.parameters["model"] == "openai:gpt-4o-mini"


@clause("003.BUILTIN.12", "3. Evaluators")
def test_starter_phrase_checks_how_questions_begin() -> None:
    """`starter_phrase` gives the share of questions that begin with an approved phrase."""
    check = attach(starter_phrase(["Would you", "Interested in"]))
    assert check(["Would you like more?", "Interested in maps?"]).value == 1.0
    assert check(["Would you like more?", "Why?"]).value == 0.5


@clause("003.BUILTIN.13", "3. Evaluators")
def test_question_format_checks_that_outputs_are_questions() -> None:
    """`question_format` gives the share of outputs that are well-formed questions."""
    assert attach(question_format)(["Is it far?", "Tell me more."]).value == 0.5


@clause("003.BUILTIN.14", "3. Evaluators")
def test_the_built_in_evaluators_have_the_names_of_the_spec() -> None:
    """The five built-in evaluators are registered under the names of the spec."""
    from proctor.wiring.registry import Registry

    known = {info.name for info in Registry.standard().evaluators()}
    assert known >= {
        "exact_match", "semantic_similarity", "llm_judge", "starter_phrase", "question_format",
    }  # fmt: skip


class DomainRelevance:
    """The spec's custom evaluator: a third for each keyword in a question, at most 1."""

    name = "domain_relevance"

    def __init__(self, domain_keywords: list[str]) -> None:
        self.keywords = {word.lower() for word in domain_keywords}

    def evaluate(self, output: list[str], example: Sample[Any, Any], config: Any = None) -> float:
        """The mean over all questions; 0 if there is none."""
        if not output:
            return 0.0
        shares = [len(set(text.lower().split()) & self.keywords) / 3 for text in output]
        return sum(min(share, 1.0) for share in shares) / len(shares)


@clause("003.EXTENSION.3", "Custom Evaluator")
def test_the_custom_evaluator_of_the_spec_runs() -> None:
    """A custom evaluator scores outputs under its own name: two of three keywords are 2/3."""
    evaluator = DomainRelevance(["Paris", "landmarks?", "bank"])
    report = EvalRunner(GOOD, [evaluator]).run([FRANCE], history=False)
    assert next(iter(report.results)).scores["domain_relevance"].value == pytest.approx(2 / 3)


@clause("003.EXTENSION.4", "Custom Evaluator")
def test_a_custom_evaluator_class_takes_parameters_by_name() -> None:
    """A class is made with its parameters, so that a file or a command can name it."""
    evaluator = attach(DomainRelevance, parameters={"domain_keywords": ["loan"]})
    assert evaluator(["a loan"]).value == pytest.approx(1 / 3)
