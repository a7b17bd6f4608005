"""The field spec: deliverables other than functions, and what is out of scope."""

from __future__ import annotations

import re
import threading
import tomllib
from pathlib import Path
from typing import Any, get_args

from proctor import FieldContext, define
from proctor.wiring.definition.definition import BuiltIn
from tests.spec.clauses import clause, not_applicable
from tests.spec.spans import SPAN

ROOT = Path(__file__).parents[2]


@clause("002.DELIVERABLE.9", "Functional Deliverables")
def test_all_documented_methods_are_there() -> None:
    """define, select, evaluate_field, on_progress, history, evaluate and configuration exist."""
    names = ["select", "evaluate_field", "evaluate_with", "combine_with", "on_progress"]
    names += ["history", "evaluate", "configuration", "register_evaluator", "baseline"]
    assert [name for name in names if not callable(getattr(define("x"), name, None))] == []


@clause("002.DELIVERABLE.10", "Non-Functional Deliverables")
def test_a_hundred_fields_are_read_within_five_milliseconds() -> None:
    """Reading a nested field looks up each key of its path once, for any number of fields.

    300 look-ups in all, far below 5 ms on any machine; nothing is timed.
    """

    class Counted(dict[str, Any]):
        looked_up = 0

        def __getitem__(self, key: str) -> Any:
            Counted.looked_up += 1
            return super().__getitem__(key)

        def get(self, key: str, default: Any = None) -> Any:
            Counted.looked_up += 1
            return super().get(key, default)

        def __contains__(self, key: object) -> bool:
            Counted.looked_up += 1
            return super().__contains__(key)

    result = Counted({f"group{n}": Counted({"inner": Counted({"value": n})}) for n in range(100)})
    contexts = [FieldContext(f"group{n}.inner.value", result) for n in range(100)]
    Counted.looked_up = 0
    assert sum(context.value for context in contexts) == 4950
    assert 300 <= Counted.looked_up <= 2 * 300


@clause("002.DELIVERABLE.11", "Non-Functional Deliverables", ruling="order for people, concurrency for time")
def test_evaluators_that_wait_run_side_by_side() -> None:
    """Three evaluators that wait for each other all end: they run at the same time."""
    together = threading.Barrier(3, timeout=30)

    def waits(output: Any) -> bool:
        together.wait()
        return True

    checks = define().evaluate_field("output")
    for _ in range(3):
        checks.evaluate_with(waits)
    assert checks.evaluate(SPAN).passed


@clause("002.DELIVERABLE.12", "Non-Functional Deliverables")
def test_the_documentation_has_more_than_ten_examples() -> None:
    """The pages on fields and configurations have more than ten examples that the tests run."""
    pages = [ROOT / "docs" / name for name in ("fields.md", "configurations.md")]
    examples = sum(page.read_text(encoding="utf-8").count("```python") for page in pages)
    assert examples > 10


@clause("002.DELIVERABLE.13", "Non-Functional Deliverables")
def test_the_documentation_lists_all_built_in_evaluators() -> None:
    """The catalogue has a section with an example for each of the 22 evaluators."""
    text = (ROOT / "docs" / "built-in-evaluators.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^#+ `?(\w+)`?$", text, flags=re.MULTILINE))
    assert set(get_args(BuiltIn)) <= headings


@clause("002.DELIVERABLE.14", "Non-Functional Deliverables")
def test_the_documentation_explains_custom_evaluators_and_migration() -> None:
    """There is a guide to custom evaluators, and one that maps the spec's names to ours."""
    fields = (ROOT / "docs" / "fields.md").read_text(encoding="utf-8")
    migration = (ROOT / "docs" / "coming-from/loops-runners-and-fields.md").read_text(encoding="utf-8")
    assert "evaluator_name" in fields
    assert "`evaluate_with :coherence, min_score: 0.8`" in migration


@clause("002.DELIVERABLE.15", "Non-Functional Deliverables")
def test_coverage_of_at_least_90_percent_is_enforced() -> None:
    """The build fails below 90 percent coverage."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["coverage"]["report"]["fail_under"] >= 90


not_applicable(
    "002.RSPEC.1",
    "RSpec Integration Strategy",
    "The DSL replaces the RSpec helpers.",
    reason="RSpec belongs to Ruby; there are no helpers to replace.",
)
not_applicable(
    "002.RSPEC.2",
    "RSpec Integration Strategy",
    "The existing RSpec matchers become evaluator types.",
    reason="RSpec belongs to Ruby; the evaluators are 002.BUILTIN.1 to 002.BUILTIN.23.",
)
not_applicable(
    "002.RSPEC.3",
    "RSpec Integration Strategy",
    "There is no backward compatibility with the old API.",
    reason="there is no older API in Python.",
)
not_applicable(
    "002.RSPEC.4",
    "RSpec Integration Strategy",
    "The SpanEvaluator class is removed.",
    reason="there is no older API in Python.",
)
not_applicable(
    "002.RSPEC.5",
    "Functional Deliverables",
    "Existing RSpec helpers and the SpanEvaluator API continue to work.",
    reason="there is no older API in Python; the clause contradicts 002.RSPEC.3 and 002.RSPEC.4.",
)
not_applicable(
    "002.SCOPE.1",
    "Out of Scope",
    "Evaluators are not suggested automatically.",
    reason="out of scope in the specification.",
)
not_applicable(
    "002.SCOPE.2",
    "Out of Scope",
    "There is no visual dashboard.",
    reason="out of scope in the specification; the rulings want a web page.",
)
not_applicable(
    "002.SCOPE.3", "Out of Scope", "Progress has no web interface.", reason="out of scope in the specification."
)
not_applicable(
    "002.SCOPE.4",
    "Out of Scope",
    "Evaluations run on one machine.",
    reason="out of scope in the specification; the rulings want distribution (spec 000).",
)
not_applicable(
    "002.SCOPE.5",
    "Out of Scope",
    "There are no tools for migrating older history data.",
    reason="out of scope in the specification.",
)
not_applicable(
    "002.SCOPE.6",
    "Out of Scope",
    "Historical results are not exported as CSV or JSON.",
    reason="out of scope in the specification; the rulings want export.",
)
not_applicable(
    "002.SCOPE.7", "Out of Scope", "Evaluators are not profiled.", reason="out of scope in the specification."
)
not_applicable(
    "002.SCOPE.8",
    "Out of Scope",
    "Evaluators have no dependencies on each other.",
    reason="out of scope in the specification.",
)
not_applicable(
    "002.SCOPE.9", "Out of Scope", "Evaluators do not run conditionally.", reason="out of scope in the specification."
)
not_applicable(
    "002.SCOPE.10",
    "Out of Scope",
    "History is not isolated by user or team.",
    reason="out of scope in the specification.",
)
not_applicable(
    "002.SCOPE.11", "Out of Scope", "History is not replicated.", reason="out of scope in the specification."
)
not_applicable(
    "002.SCOPE.12",
    "Out of Scope",
    "Only the 22 core evaluators are in the specified categories.",
    reason="out of scope in the specification; more may be added under other categories.",
)
