"""The runner spec, "Custom Evaluator": an object with a name and `evaluate` is an evaluator."""

from __future__ import annotations

from typing import Any

from proctor.evaluators.bound_evaluator import attach
from proctor.records.sample import Sample
from proctor.records.trial import Trial


class DomainRelevance:
    """Checks whether follow-up questions are about our domain."""

    name = "domain_relevance"

    def __init__(self, domain_keywords: list[str]) -> None:
        self.keywords = {word.lower() for word in domain_keywords}

    def evaluate(self, output: list[str], example: Sample[Any, Any], config: Any = None) -> float:
        """The mean over the questions of a third for every keyword, at most 1."""
        assert config == {}
        if not output:
            return 0.0
        shares = [len(set(text.lower().split()) & self.keywords) / 3 for text in output]
        return sum(min(share, 1.0) for share in shares) / len(shares)


def test_an_object_with_evaluate_gets_output_and_sample() -> None:
    """Its number becomes a score under its own name; two of three keywords are two thirds."""
    attached = attach(DomainRelevance(["loan", "bank", "rate"]))
    sample: Sample[Any, Any] = Sample("1", "What is a loan?")
    score = attached.score(Trial(sample, ["Which bank has the best rate ?"]))
    assert attached.spec.name == "domain_relevance"
    assert (score.value, score.passed) == (2 / 3, True)


def test_the_class_with_its_parameters_is_as_good() -> None:
    """A class is made with the parameters, so that an eval file can name it."""
    attached = attach(DomainRelevance, parameters={"domain_keywords": ["loan"]})
    assert attached.spec.parameters == {"domain_keywords": ["loan"]}
    assert attached.spec.uses == "tests.evaluators.test_spec_003:DomainRelevance"
    assert attached(["a loan"]).value == 1 / 3
