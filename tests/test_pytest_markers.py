"""The marker `proctor`: every condition counts, and wrong arguments are refused when tests are collected."""

from __future__ import annotations

import re

import pytest

from proctor import SQLiteHistory
from tests.test_pytest_plugin import OPTIONS

pytest_plugins = ["pytester"]

HEADER = """
import pytest

DATA = [{"id": "a", "input": "x", "expected": "X"}, {"id": "b", "input": "y", "expected": "Z"}]
CHECKS = {"dataset": DATA, "evaluators": ["exact_match"]}
"""
# Arguments of the marker, the arguments of the test, and the message.
MISTAKES = [
    ("epochs=2, min_passes=3", "", "min_passes is 3, but the test has only 2 results"),
    ("**CHECKS, target=str.upper, min_passes=3", "", "min_passes is 3, but the test has only 2 results"),
    ("**CHECKS, min_passes=2", "sample", "min_passes is 2, but the test has only 1 result"),
    ("min_passes=0", "", "min_passes must be an integer, 1 or more, got 0"),
    ('min_passes="80%"', "", "min_passes must be an integer, 1 or more, got '80%'"),
    ('epochs=3, min_passes="80%"', "", "got '80%'\nFix: write min_passes=3, or min_pass_rate=0.8 for a share"),
    ('epochs=10, min_passes="50%"', "", "got '50%'\nFix: write min_passes=5, or min_pass_rate=0.5 for a share"),
    ('epochs=10, min_passes="8"', "", "got '8'\nFix: write min_passes=8, or min_pass_rate=0.8 for a share"),
    ('**CHECKS, samples_as="runs"', "sample", "samples_as must be 'items' or 'run', got 'runs'"),
    ("str.upper, DATA", "", "the marker has positional arguments"),
    ("min_pass_rate=90", "", "min_pass_rate must be from 0 to 1, or a percentage, got 90"),
    ('**CHECKS, thresholds={"exact_mach.mean": 1}', "sample", "thresholds: unknown metric 'exact_mach.mean'"),
    ("dataset=[]", "sample", "the dataset has no samples"),
    ("**CHECKS, target=str.upper", "sample", "has a target, so it cannot have the argument `sample`"),
    ('dataset=DATA, evaluator="exact_match"', "sample", "unknown argument 'evaluator'"),
    ('dataset=DATA, evaluators={"assertions": len}', "sample", "the name 'assertions' is taken"),
]


def test_mistakes_are_refused_before_anything_runs(pytester: pytest.Pytester) -> None:
    """Each mistake of a module or a class is one error of the collection that names the test, without a traceback."""
    tests = [
        f"@pytest.mark.proctor({marker})\ndef test_{number}({arguments}): 1 / 0\n"
        for number, (marker, arguments, _) in enumerate(MISTAKES)
    ]
    pytester.makepyfile(test_all=HEADER + "\n".join(tests) + CLASS)
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor")
    text = result.stdout.str()
    result.assert_outcomes(errors=len(MISTAKES) + 1)
    for number, (_, _, message) in enumerate(MISTAKES):
        assert text.count(f"test_all.py::test_{number}: ") == 1
        assert re.search(rf"test_all\.py::test_{number}: .*{re.escape(message)}", text), message
    assert "fail_under" not in text
    assert "Traceback" not in text
    assert "ZeroDivisionError" not in text
    assert re.search(r"Fix: did you mean .*'evaluators'\? choose one of: .*dataset.*thresholds", text)


CLASS = """
class TestAll:
    @pytest.mark.proctor(epoch=2, min_passes=0, min_pass_rate=90)
    def test_it(self): 1 / 0
"""


def test_all_mistakes_of_a_marker_are_reported(pytester: pytest.Pytester) -> None:
    """Each has its own fix; tests without a mistake in the same file are still found by their node id."""
    pytester.makepyfile(test_all=HEADER + CLASS + "\ndef test_valid(): pass\n")
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "test_all.py::TestAll::test_it: the marker has 3 problems",
            "  - unknown argument 'epoch'",
            "    Fix: did you mean 'epochs'?*",
            "  - min_passes must be an integer, 1 or more, got 0",
            "    Fix: write min_passes=1, or min_pass_rate=0.8 for a share",
            "  - min_pass_rate must be from 0 to 1, or a percentage, got 90",
            '    Fix: write "90%" or 0.9',
        ]
    )
    pytester.runpytest_inprocess(*OPTIONS, "--proctor", "test_all.py::test_valid").assert_outcomes(passed=1)


def test_mistakes_of_the_evaluation_are_reported_with_those_of_the_marker(pytester: pytest.Pytester) -> None:
    """Whether the test has a target or not."""
    marker = 'epoch=2, dataset="missing.jsonl", evaluators=["contans"]'
    body = f"@pytest.mark.proctor({marker})\ndef test_body(sample): 1 / 0\n"
    target = f"@pytest.mark.proctor({marker}, target=str.upper)\ndef test_target(): 1 / 0\n"
    pytester.makepyfile(test_all=HEADER + body + target)
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor")
    result.assert_outcomes(errors=2)
    for name in ("test_body", "test_target"):
        result.stdout.fnmatch_lines(
            [
                f"test_all.py::{name}: the marker has 2 problems",
                "  - unknown argument 'epoch'",
                "      - file not found: missing.jsonl",
                "      - evaluators?0?: unknown evaluator 'contans'",
            ]
        )


def test_a_node_id_with_parameters_shows_the_mistake(pytester: pytest.Pytester) -> None:
    """pytest alone would only say that it does not find the item."""
    wrong = "@pytest.mark.parametrize('x', [1, 2])\n{0}@pytest.mark.proctor(epoch=2)\n{0}def test_it({1}x): 1 / 0\n"
    in_class = f"class TestAll:\n    {wrong.format('    ', 'self, ')}"
    pytester.makepyfile(test_all=HEADER + wrong.format("", "") + in_class)
    for test in ("test_it", "TestAll::test_it"):
        result = pytester.runpytest_inprocess(*OPTIONS, "--proctor", f"test_all.py::{test}[1]")
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([f"test_all.py::{test}: unknown argument 'epoch'"])


def test_every_condition_counts(pytester: pytest.Pytester) -> None:
    """`min_passes` switches no other condition off, and counts the results of a target; `limit` selects items."""
    pytester.makepyfile(
        HEADER
        + """
NUMBERS = iter(range(100))

@pytest.mark.proctor(epochs=4, min_passes=1, min_pass_rate=0.9)
def test_rate():
    assert next(NUMBERS) % 2

@pytest.mark.proctor(**CHECKS, samples_as="run", min_passes=1, thresholds={"exact_match.mean": 0.6})
def test_threshold(sample):
    return sample.input.upper()

@pytest.mark.proctor(**CHECKS, target=str.upper, min_passes=2)
def test_target():
    pass

@pytest.mark.proctor(**CHECKS, target=str.upper, min_passes=1)
def test_enough():
    pass

@pytest.mark.proctor(**CHECKS, limit=1)
def test_limit(sample):
    return sample.input.upper()

@pytest.mark.proctor(epochs=3)
def test_errors():
    raise ConnectionError

@pytest.mark.proctor(dataset=[{"id": "a", "input": "x"}], evaluators=["exact_match"])
def test_skipped(sample):
    return "x"
"""
    )
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor", "--proctor-history", "none")
    result.assert_outcomes(passed=2, failed=5)
    result.stdout.fnmatch_lines(
        [
            "strict_pass_rate is 0.5, below 0.9*",
            "exact_match.mean is 0.5, below 0.6*",
            "2 of 2 must pass",
            "No result has a verdict, 3 errors",
            "No result has a verdict, 1 skipped",
            "*reason*expected*",
        ]
    )


STORED = """
import pytest, unittest

DATA = [{"id": "price", "input": "x", "expected": "X"}, {"id": "name", "input": "y", "expected": "Z"}]
ATTEMPTS = iter(range(100))

@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.proctor(dataset=DATA, evaluators=["exact_match"])
def test_parameters(sample, language):
    return sample.input.upper()

@pytest.mark.proctor(epochs=2)
def test_flaky():
    assert next(ATTEMPTS) > 1

@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.proctor(target=str.upper, dataset=DATA[:1], evaluators=["exact_match"])
def test_target(language): pass

class TestCase(unittest.TestCase):
    @pytest.mark.proctor
    def test_method(self): pass

def test_unmarked(sample): pass
"""


def test_stored_runs_tell_parameters_and_attempts_apart(pytester: pytest.Pytester) -> None:
    """Parameters are in sample ids or run names, reruns replace attempts, and hints name the history."""
    pytester.makepyfile(test_stored=STORED)
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor", "--proctor-history", "my runs.db", "--reruns", "1")
    text = result.stdout.str()
    history = SQLiteHistory(pytester.path / "my runs.db")
    reports = {run.name.rpartition("::")[2]: history.report(run.run_id) for run in history.runs()}
    assert set(reports) == {"test_parameters", "test_flaky", "test_target[en]", "test_target[de]"}
    results = {each.sample_id: each for each in reports["test_parameters"].results}
    assert set(results) == {"price[en]", "price[de]", "name[en]", "name[de]"}
    assert results["price[en]"].trial.sample.cluster == "price"
    assert results["name[de]"].score.value == 0.0
    assert set(results["name[de]"].scores) == {"exact_match"}
    assert (reports["test_flaky"].counts.passed, reports["test_flaky"].counts.total) == (2, 2)
    assert {report.metadata.status for report in reports.values() if report.metadata} == {"completed"}
    assert "Look at it: proctor show test_stored.py::test_parameters --history 'my runs.db'" in text
    assert "proctor view --history 'my runs.db'" in text
    assert "test_method is a method of a unittest.TestCase, but the marker needs a function or a plain class" in text
    assert "test_unmarked uses `sample` and needs @pytest.mark.proctor" in text


def test_a_partial_run_is_stored_as_interrupted(pytester: pytest.Pytester) -> None:
    """A run of one item says how many results were planned."""
    pytester.makepyfile(test_stored=STORED)
    pytester.runpytest_inprocess(*OPTIONS, "test_stored.py::test_parameters[price-en]")
    history = SQLiteHistory(pytester.path / ".proctor" / "history.db")
    (run,) = history.runs()
    assert (run.status, run.total) == ("interrupted", 4)
    assert run.warnings == ("only 1 of the 4 items of this test ran",)


NAMED = """
import pytest

DATA = [{"id": "a", "input": "x", "expected": "X"}, {"id": "b", "input": "y", "expected": "Z"}]
CHECKS = {"correct": lambda output, expected: output == expected, "short": lambda output: len(output) < 9}

@pytest.mark.proctor(dataset=DATA, evaluators=CHECKS)
def test_items(sample):
    return sample.input.upper()

CHECK = {"dataset": DATA, "evaluators": CHECKS}

@pytest.mark.proctor(**CHECK, samples_as="run", min_pass_rate=0.5, thresholds={"short.pass_rate": 1})
def test_run(sample):
    assert sample.id
    return sample.input.upper()
"""


def test_evaluators_of_a_body_may_have_names(pytester: pytest.Pytester) -> None:
    """A mapping of names to evaluators works without a target too."""
    pytester.makepyfile(test_named=NAMED)
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.re_match_lines([".*correct.*"])
