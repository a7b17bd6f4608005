"""Evaluators by name: what is installed, what is registered, what an eval file asks for."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import BoundEvaluator, attach
from proctor.evaluators.combination import all_of
from proctor.evaluators.decorator import evaluator
from proctor.evaluators.matching import contains, exact_match
from proctor.records import codec
from proctor.records.run import EvaluatorSpec
from proctor.wiring.registry import Registry
from tests.tables import each_row

HERE = "tests.test_registry"


@pytest.fixture(scope="module")
def registry() -> Registry:
    """What is installed."""
    return Registry.standard()


def shouts(output: str) -> bool:
    """Passes if the output is in capitals."""
    return output.isupper()


def share(output: float) -> float:
    """Gives back a number."""
    return output


class Relevance:
    """Passes if a keyword is in the output."""

    name = "relevance"

    def __init__(self, keywords: list[str], strict: bool = False) -> None:
        self.keywords, self.strict = keywords, strict

    def evaluate(self, output: str, sample: Any, config: Any = None) -> bool:
        """True if a keyword is in the output."""
        return any(word in output for word in self.keywords)


class Ready:
    """A class that needs no arguments."""

    def __call__(self, output: str) -> bool:
        """Says yes."""
        return True


class Speechless:
    """A class that evaluates nothing."""


@evaluator(name="bounded", category="mine", factory=True)
def _bounded(limit: int, unit: str = "word") -> Callable[[str], bool]:
    """Passes if the output is short."""
    return lambda output: len(output) <= limit


THREE = 3


def test_a_name_is_enough(registry: Registry) -> None:
    """Without parameters."""
    attached = registry.build("exact_match")
    assert attached("a", "a").passed
    assert attached.spec == attach(exact_match).spec


@each_row(
    ("spec", "output", "expected"),
    [
        ({"contains": {"case_sensitive": False}}, "PARIS", "paris"),
        ({"contains": None}, "paris", "paris"),
        ({"within_tolerance": 0.5}, 1.5, 1),
        ({"within_tolerance": {"tolerance": 1, "relative": True}}, 1.5, 1),
        ({"starter_phrase": ["How"]}, "How so?", None),
        ({"uses": "contains", "case_sensitive": False}, "PARIS", "paris"),
        ({"uses": "contains", "parameters": {"case_sensitive": False}}, "PARIS", "paris"),
        ("not-contains", "paris", "rome"),
        ({"not-contains": {"case_sensitive": False}}, "paris", "ROME"),
        ({"not-within_tolerance": 0.5}, 2, 1),
        ("not-not-contains", "paris", "paris"),
        (f"{HERE}:shouts", "HELLO", None),
        (f"not-{HERE}:shouts", "hello", None),
        ({f"{HERE}:Relevance": {"keywords": ["loan"]}}, "a loan", None),
        ({"uses": f"{HERE}:Relevance", "keywords": ["loan"]}, "a loan", None),
        (f"{HERE}:Ready", "x", None),
        ({f"{HERE}:_bounded": 3}, "abc", None),
        (shouts, "HELLO", None),
        (Relevance(["loan"]), "a loan", None),
        (attach(shouts), "HELLO", None),
        ({"all_of": ["contains", {"regex_match": {"pattern": "^p"}}]}, "paris", "ari"),
        ({"all_of": {"evaluators": ["contains", "not-exact_match"]}}, "paris", "ari"),
        ({"any_of": ["exact_match", {"all_of": ["contains"]}]}, "paris", "ari"),
        ({"all_of": "contains"}, "paris", "ari"),
        ({"negate": "contains"}, "paris", "rome"),
        ({"negate": {"evaluator": {"contains": {"case_sensitive": False}}}}, "paris", "ROME"),
        ({"threshold": {"evaluator": "contains", "at_least": 0.5}}, "red", ["red", "blue"]),
        (
            {
                "weighted": {
                    "evaluators": [
                        {"evaluator": "exact_match", "weight": 1},
                        {"evaluator": {"contains": {"case_sensitive": False}}, "weight": 3},
                    ],
                    "threshold": 0.75,
                }
            },
            "PARIS, France",
            "paris",
        ),
    ],
)
def test_every_way_to_write_an_evaluator(registry: Registry, spec: Any, output: Any, expected: Any) -> None:
    """Each is built and passes what it should."""
    assert registry.build(spec)(output, expected).passed is True


def test_an_entry_can_have_a_name(registry: Registry) -> None:
    """Even if a parameter is called `name` too, under `parameters`."""
    attached = registry.build({"uses": "not-contains", "name": "clean", "case_sensitive": False})
    assert attached.spec.name == "clean"

    def called(name: str) -> Callable[[str], bool]:
        return lambda output: output == name

    mine = Registry()
    mine.register(evaluator(factory=True)(called))
    spec = {"uses": "called", "name": "called_search", "parameters": {"name": "search"}}
    assert mine.build(spec).spec == EvaluatorSpec(
        "called_search", "called", {"name": "search"}, mine.build(spec).spec.identity
    )


def test_a_threshold_sets_the_pass_mark(registry: Registry) -> None:
    """For evaluators that return numbers and have no such parameter."""
    attached = registry.build({"uses": f"{HERE}:share", "threshold": 0.9})
    assert attached(0.8).passed is False
    assert registry.build(f"{HERE}:share")(0.8).passed is True


@pytest.mark.parametrize(
    "spec",
    [
        "exact_match",
        "not-contains",
        {"uses": "contains", "name": "has", "case_sensitive": False},
        {"all_of": ["contains", {"uses": "contains", "name": "x"}, {"within_tolerance": 1}]},
        {"weighted": [{"evaluator": "contains", "weight": 2}]},
        {"threshold": {"evaluator": "contains", "at_least": 0.5}},
        {"uses": f"{HERE}:share", "threshold": 0.9},
        {f"{HERE}:Relevance": {"keywords": ["loan"]}},
    ],
)
def test_a_stored_spec_builds_the_same_evaluator(registry: Registry, spec: Any) -> None:
    """Property: every spec survives JSON."""
    built = registry.build(spec).spec
    stored = codec.decode(codec.encode(built), EvaluatorSpec)
    assert registry.build(stored).spec == built
    assert registry.build(codec.to_plain(built)).spec == built


def test_faults_have_suggestions(registry: Registry) -> None:
    """For unknown names and parameters; wrong types and missing values are named."""
    faults: list[Any] = [
        "exact_macth",
        "not-exact_macth",
        {"contains": {"case_sensitve": False}},
        {"contains": {"case_sensitive": "no"}},
        {"within_tolerance": {}},
        {"within_tolerance": "0.1"},
        {"regex_match": "^a"},
        {"regex_match": {"pattern": "*a"}},
        {"regex_match": {"mode": "find"}},
        {"contains": {}, "exact_match": {}},
        {"uses": "contains", "parameters": 3},
        {"uses": "contains", "name": 3},
        {"all_of": []},
        {"all_of": ["contians", {"json_subset": {"fold": 1}}]},
        "no.such.module:thing",
        f"{HERE}:shout",
        f"{HERE}:THREE",
        3,
    ]
    told = []
    for fault in faults:
        with pytest.raises(EvaluatorError) as caught:
            registry.build(fault)
        told.append(str(caught.value).splitlines()[: 1 + len(caught.value.problems)])
    assert told == snapshot(
        [
            ["unknown evaluator 'exact_macth'"],
            ["unknown evaluator 'exact_macth'"],
            [
                "contains: its parameters are invalid",
                "  - unknown parameter 'case_sensitve'; did you mean 'case_sensitive'?",
            ],
            ["contains: its parameters are invalid", "  - case_sensitive must be of type bool, got 'no'"],
            ["within_tolerance: its parameters are invalid", "  - tolerance is missing (float)"],
            ["within_tolerance: its parameters are invalid", "  - tolerance must be of type float, got '0.1'"],
            ["regex_match: the value '^a' has no parameter name"],
            ["regex_match: '*a' is not a regular expression: nothing to repeat at position 0"],
            [
                "regex_match: its parameters are invalid",
                "  - mode must be 'search', 'match' or 'fullmatch', got 'find'",
            ],
            ["the keys 'contains', 'exact_match' do not name one evaluator"],
            ["contains: parameters must be a mapping, got 3"],
            ["an evaluator's name must be a non-empty string, got 3"],
            ["all_of: no evaluator is given"],
            [
                "all_of: its evaluators cannot be built",
                "  - evaluators[0]: unknown evaluator 'contians' (did you mean 'contains'?)",
                "  - evaluators[1] (json_subset): unknown parameter 'fold'; choose one of: allow_fences",
            ],
            ["no.such.module:thing: no module is named 'no'"],
            ["tests.test_registry:shout: 'tests.test_registry' has no attribute 'shout'"],
            ["int: 3 is not callable and has no `evaluate` method"],
            ["int: 3 is not callable and has no `evaluate` method"],
        ]
    )


def test_evaluators_are_built_in_order(registry: Registry) -> None:
    """From a list, by name, or one alone."""
    both = registry.build_all(["contains", {"exact_match": None}])
    assert _names(both) == ["contains", "exact_match"]
    assert _names(registry.build_all({"a": "contains", "b": "contains"})) == ["a", "b"]
    assert _names(registry.build_all("contains")) == ["contains"]
    assert _names(registry.build_all(contains)) == ["contains"]


def _names(attached: tuple[BoundEvaluator, ...]) -> list[str]:
    return [one.spec.name for one in attached]


def test_all_problems_are_reported_at_once(registry: Registry) -> None:
    """Each with its place, including clashing names."""
    with pytest.raises(EvaluatorError) as caught:
        registry.build_all(
            [
                "contians",
                "contains",
                "contains",
                {"contains": {"case_sensitive": 1, "fold": True}},
                {"all_of": ["exact_match", "exact"]},
            ]
        )
    assert [str(problem) for problem in caught.value.problems] == snapshot(
        [
            "evaluators[0]: unknown evaluator 'contians' (did you mean 'contains'?)",
            ("evaluators[3] (contains): unknown parameter 'fold'; choose one of: case_sensitive, match"),
            "evaluators[3] (contains), case_sensitive must be of type bool, got 1",
            ("evaluators[4] (all_of), evaluators[1]: unknown evaluator 'exact' (did you mean 'exact_match'?)"),
            "contains: 2 evaluators have this name",
        ]
    )


def test_a_shared_name_has_one_fix_with_what_to_write(registry: Registry) -> None:
    """The fix is an entry that can be copied, with `uses` and `name`, and is shown once."""
    with pytest.raises(EvaluatorError) as caught:
        registry.build_all(["contains", "contains", "exact_match"])
    shown = str(caught.value)
    assert shown.count("Fix:") == 1
    assert "give each evaluator a unique name: write {uses: contains, name: …} in an eval file" in shown


def test_an_empty_list_of_evaluators_is_refused(registry: Registry) -> None:
    """A run without evaluators has no result."""
    with pytest.raises(EvaluatorError, match="the list is empty"):
        registry.build_all([])


def test_all_kinds_of_evaluators_can_be_registered() -> None:
    """Functions, factories, objects, classes and combinations, with their own or other names."""
    mine = Registry()
    assert mine.register(shouts) == ("shouts",)
    assert mine.register(shouts) == ("shouts",)
    assert mine.register(shouts, name="loud") == ("loud",)
    assert mine.register(_bounded) == ("bounded",)
    assert mine.register(Relevance) == ("relevance",)
    assert mine.register(Ready()) == ("Ready",)
    assert mine.register(all_of(contains, exact_match), name="both") == ("both",)
    assert [info.name for info in mine.evaluators()] == ["Ready", "both", "loud", "relevance", "shouts", "bounded"]
    assert (mine.build("loud").spec.name, mine.build("loud").spec.uses) == ("loud", "loud")
    assert mine.build({"relevance": {"keywords": ["a"]}}).spec.name == "relevance"
    assert mine.build({"bounded": 3})("abc").passed is True
    assert mine.build("both")("a", "a").passed is True


@pytest.mark.parametrize("name", ["a:b", "not-this", " "])
def test_reserved_names_are_refused(name: str) -> None:
    """A colon is an address, `not-` a negation."""
    with pytest.raises(EvaluatorError, match="cannot be the name of an evaluator"):
        Registry().register(shouts, name=name)


def test_names_are_unique() -> None:
    """Another evaluator with the same name is refused."""
    mine = Registry()
    mine.register(shouts)
    with pytest.raises(EvaluatorError, match="an evaluator is already named 'shouts'"):
        mine.register(share, name="shouts")


@pytest.mark.parametrize("thing", [Speechless, Speechless(), 3])
def test_an_object_that_is_not_an_evaluator_is_refused(thing: Any) -> None:
    """When it is registered."""
    with pytest.raises(EvaluatorError, match="callable and ha"):
        Registry().register(thing)


def test_plugins_are_loaded_by_import_path() -> None:
    """A function, a class, or all marked functions of a module."""
    mine = Registry()
    assert mine.load_plugin(f"{HERE}:shouts") == ("shouts",)
    assert mine.load_plugin(f"{HERE}:Relevance") == ("relevance",)
    assert mine.load_plugin(HERE) == ("bounded",)
    assert mine.build({"relevance": {"keywords": ["loan"]}})("a loan").passed is True


def test_plugins_that_cannot_be_loaded_are_errors(tmp_path: Path) -> None:
    """Every failure is an error about this plugin."""
    broken = tmp_path / "broken_plugin.py"
    broken.write_text("raise RuntimeError('half written')")
    empty = types.ModuleType("plugin_without_evaluators")
    sys.modules[empty.__name__] = empty
    try:
        mine = Registry()
        with pytest.raises(EvaluatorError, match="cannot be imported: RuntimeError: half written"):
            mine.load_plugin(f"{broken}:thing")
        with pytest.raises(EvaluatorError, match="no module is named 'no_such_plugin'"):
            mine.load_plugin("no_such_plugin")
        with pytest.raises(EvaluatorError, match="the module has no evaluators"):
            mine.load_plugin(empty.__name__)
    finally:
        del sys.modules[empty.__name__]
        sys.modules.pop("broken_plugin", None)
        sys.path[:] = [place for place in sys.path if place != str(tmp_path)]


def test_a_failing_entry_point_is_a_warning() -> None:
    """The others are loaded; unmarked objects get the name of their entry point."""
    group = "proctor.evaluators"
    found = Registry.from_entry_points(
        [
            EntryPoint("broken", "no_such_package.evals", group),
            EntryPoint("loud", f"{HERE}:shouts", group),
            EntryPoint("mine", f"{HERE}:_bounded", group),
            EntryPoint("exact_match", f"{HERE}:shouts", group),
            EntryPoint("matching", "proctor.evaluators.matching", group),
        ]
    )
    assert [info.name for info in found.evaluators()] == [
        "loud",
        "contains",
        "exact_match",
        "json_subset",
        "regex_match",
        "within_tolerance",
        "bounded",
    ]
    assert found.warnings == [
        (
            "the plugin 'broken' (no_such_package.evals) cannot be loaded: "
            "ModuleNotFoundError: No module named 'no_such_package'"
        ),
        (
            "the plugin 'exact_match' (tests.test_registry:shouts) cannot be loaded: "
            "EvaluatorError: an evaluator is already named 'exact_match'"
        ),
    ]
    assert found.build("exact_match")("a", "a").passed is True


def test_a_list_may_name_an_evaluator_object(registry: Registry) -> None:
    """{name: object} is a label and an evaluator, unless the name is an evaluator that takes the object."""
    built = registry.build_all([contains, {"loose": contains}, {"exact_match": contains}, {"all_of": [contains]}])
    assert [each.spec.name for each in built] == ["contains", "loose", "exact_match", "all_of"]
    assert [each.spec.uses for each in built] == ["contains", "contains", "contains", "all_of"]
