"""The built-in evaluators of the field spec: exactly 22, in 7 categories, with their parameters."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import proctor
from proctor import define, evaluators, judges
from proctor.core.aliases import COMMON_NAMES
from proctor.wiring.definition.definition import BuiltIn
from proctor.wiring.registry import Registry
from tests.tables import each_row

# Categories, names, and the parameters with their defaults that the spec names.
TWENTY_TWO: dict[str, dict[str, dict[str, Any]]] = {
    "quality": {
        "semantic_similarity": {"threshold": 0.8},
        "coherence": {"min_score": 0.8},
        "hallucination_detection": {},
        "relevance": {"threshold": 0.7},
    },
    "performance": {
        "token_efficiency": {"max_increase_pct": 10},
        "latency": {"max_ms": 2000},
        "throughput": {"min_tps": 10},
    },
    "regression": {"no_regression": {}, "token_regression": {"max_pct": 10}, "latency_regression": {"max_ms": 200}},
    "safety": {"bias_detection": {}, "toxicity_detection": {}, "compliance": {}},
    "statistical": {
        "consistency": {"std_dev": 0.1},
        "statistical_significance": {"p_value": 0.05},
        "effect_size": {"cohen_d": 0.5},
    },
    "structural": {"json_validity": {}, "schema_match": {}, "format_compliance": {}},
    "llm": {"llm_judge": {}, "quality_score": {"min_score": 0.7}, "rubric_evaluation": {}},
}
NAMES = [name for names in TWENTY_TWO.values() for name in names]


def test_they_are_exactly_these_in_their_categories() -> None:
    """Seven categories with 4, 3, 3, 3, 3, 3, 3; everything else stands in other categories."""
    found: dict[str, set[str]] = {}
    registry = Registry.standard()
    for info in registry.evaluators():
        if info.category in TWENTY_TWO:
            found.setdefault(info.category, set()).add(info.name)
    assert found == {category: set(names) for category, names in TWENTY_TWO.items()}
    assert [len(names) for names in TWENTY_TWO.values()] == [4, 3, 3, 3, 3, 3, 3]
    assert len(NAMES) == len(set(NAMES)) == 22
    assert registry.warnings == []


@each_row(("name", "parameters"), [pair for names in TWENTY_TWO.values() for pair in names.items()])
def test_parameters_and_defaults_are_those_of_the_spec(name: str, parameters: dict[str, Any]) -> None:
    """What the spec names is there with its default; each says in a sentence what it does."""
    info = Registry.standard().describe(name)
    known = {parameter.name: parameter for parameter in info.parameters}
    assert {key: known[COMMON_NAMES.get(key, key)].default for key in parameters} == parameters
    assert not any(known[COMMON_NAMES.get(key, key)].required for key in parameters)
    assert info.summary.endswith((".", ";"))


def test_editors_know_their_names() -> None:
    """The type that completes them in `evaluate_with` has the same names."""
    assert set(get_args(BuiltIn)) == set(NAMES)


@each_row("name", NAMES)
def test_each_is_a_public_name(name: str) -> None:
    """Each is listed in `proctor.evaluators` or `proctor.judges`, and importable from `proctor`."""
    namespace = judges if name in TWENTY_TWO["llm"] else evaluators
    assert name in namespace.__all__
    assert callable(getattr(proctor, name))
    assert getattr(proctor, name) is getattr(namespace, name)


NEEDED: dict[str, dict[str, Any]] = {
    "llm_judge": {"adapter": "openai:gpt-4o-mini", "criterion": "Is it polite?"},
    "quality_score": {"adapter": "openai:gpt-4o-mini"},
    "rubric_evaluation": {"adapter": "openai:gpt-4o-mini", "rubric": {"clear": "It is clear."}},
    "schema_match": {"schema": {"type": "object"}},
    "format_compliance": {"format": "email"},
}


@each_row("name", NAMES)
def test_each_can_be_attached_to_a_field(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, with what it cannot do without; a misspelt parameter is refused."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    define().evaluate_field("output").evaluate_with(name, **NEEDED.get(name, {}))
    with pytest.raises(proctor.ProctorError, match="unknown parameter 'no_such_parameter'"):
        define().evaluate_field("output").evaluate_with(name, no_such_parameter=1)
