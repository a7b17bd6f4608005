"""The pytest plugin: inert unless used; evals as items, k of n, thresholds, one run for each test, xdist."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor import SQLiteHistory, evaluate, exact_match
from proctor.testing import assert_passes

pytest_plugins = ["pytester"]

EVALS = """
import pytest
from proctor.testing import assert_passes

DATA = [{"id": "a", "input": "x", "expected": "X"}, {"id": "b", "input": "y", "expected": "Z"}]

@pytest.mark.proctor(dataset=DATA, evaluators=["exact_match"])
def test_items(sample):
    return sample.input.upper()

@pytest.mark.proctor(dataset=DATA)
async def test_async(sample, tmp_path):
    assert sample.input.upper() == sample.expected

NUMBERS = iter(range(100))

@pytest.mark.proctor(epochs=10, min_passes=8)
def test_repeated():
    number = next(NUMBERS)
    assert number % 3, f"{number} is a multiple of 3"

@pytest.mark.proctor(target=str.upper, dataset=DATA, evaluators=["exact_match"], min_pass_rate="90%")
def test_target():
    pass

@pytest.mark.proctor(target=str.upper, dataset=DATA, evaluators=["exact_match"])
def test_report(report):
    assert_passes(report, min_pass_rate=0.5)

def test_plain():
    pass
"""
OPTIONS = ("-q", "-p", "no:langsmith_plugin", "-p", "no:cacheprovider", "-p", "no:inline_snapshot")


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_evals=EVALS)
    return pytester.runpytest_inprocess(*OPTIONS, *arguments)


def failure_of(result: pytest.RunResult, test: str) -> str:
    """The failure that pytest prints for a test, without run ids."""
    text = result.stdout.str()
    body = re.search(rf"^_+ {re.escape(test)} _+\n(.*?)^(?:[_=]{{3}}|the evals)", text, re.MULTILINE | re.DOTALL)
    assert body is not None, text
    return re.sub(r"\d{8}-\d{6}-\w{6}", "RUN", body[1])


def test_evals_are_deselected_unless_asked_for(pytester: pytest.Pytester) -> None:
    """Only the plain test runs, and a line says how to run the others."""
    result = run_pytest(pytester)
    result.assert_outcomes(passed=1, deselected=5)
    result.stdout.fnmatch_lines(["5 evals deselected; run them with --proctor"])
    assert not (pytester.path / ".proctor").exists()


@pytest.mark.parametrize("arguments", [("-m", "proctor"), ("test_evals.py::test_items",)])
def test_a_marker_expression_or_a_node_id_asks_for_them(pytester: pytest.Pytester, arguments: tuple[str, ...]) -> None:
    """`-m proctor` runs all evals, a node id the named one."""
    outcomes = run_pytest(pytester, *arguments, "-k", "items").parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (1, 1)


def test_failures_show_input_output_expected_and_reason(pytester: pytest.Pytester) -> None:
    """Each kind of eval says what did not pass; a failed assertion is shown as pytest shows it."""
    result = run_pytest(pytester, "--proctor")
    result.assert_outcomes(passed=4, failed=4)
    assert failure_of(result, "test_items[b]") == snapshot("""\
0 of 1 passed (0.0%, 95% interval 0.0–79.3%)
  b  score 0.00
    input     y
    output    Y
    expected  Z
    reason    expected 'Z', got 'Y' (exact_match)
Look at it: proctor show test_evals.py::test_items
""")
    assert failure_of(result, "test_target") == snapshot("""\
1 of 2 passed (50.0%, 95% interval 9.5–90.5%)
strict_pass_rate is 0.5, below 0.9 (n = 2, 95% interval 0.0945 to 0.905)
  b  score 0.00
    input     y
    output    Y
    expected  Z
    reason    expected 'Z', got 'Y' (exact_match)
Look at them: proctor show RUN, or proctor view
""")
    assert failure_of(result, "test_repeated").splitlines()[:4] == snapshot(
        [
            "6 of 10 passed (60.0%), clustered, with fewer than 5 clusters: no interval",
            "8 of 10 must pass",
            "  test_repeated, epoch 1  score 0.00",
            "    reason    0 is a multiple of 3 ⏎ assert (0 % 3) (assertions)",
        ]
    )
    assert "assert 'Y' == 'Z'" in failure_of(result, "test_async[b]")
    assert stored_runs(pytester) == RUNS


def stored_runs(pytester: pytest.Pytester) -> dict[str, tuple[int, int]]:
    """The runs of the history by name: results, and results that passed."""
    history = SQLiteHistory(pytester.path / ".proctor" / "history.db")
    runs = {run.name: history.report(run.run_id) for run in history.runs()}
    return {name.rpartition("::")[2]: (len(report.results), report.counts.passed) for name, report in runs.items()}


RUNS = {
    "test_items": (2, 1),
    "test_async": (2, 1),
    "test_repeated": (10, 6),
    "test_target": (2, 1),
    "test_report": (2, 1),
}


@pytest.mark.slow
def test_workers_of_xdist_share_a_history(pytester: pytest.Pytester) -> None:
    """With two workers the outcomes and the runs are the same: one run for each test, in one SQLite file."""
    pytester.makepyfile(test_evals=EVALS)
    result = pytester.runpytest_subprocess(*OPTIONS, "--proctor", "-n", "2")
    result.assert_outcomes(passed=4, failed=4)
    assert stored_runs(pytester) == RUNS


@pytest.mark.slow
def test_workers_of_xdist_report_deselected_evals(pytester: pytest.Pytester) -> None:
    """Every worker deselects the evals; they are counted once."""
    pytester.makepyfile(test_evals=EVALS)
    result = pytester.runpytest_subprocess(*OPTIONS, "-n", "2")
    result.stdout.fnmatch_lines(["5 evals deselected; run them with --proctor"])


def test_no_history(pytester: pytest.Pytester) -> None:
    """`--proctor-history none` stores nothing and mentions no run."""
    result = run_pytest(pytester, "--proctor", "--proctor-history", "none")
    assert not (pytester.path / ".proctor").exists()
    assert "proctor show" not in result.stdout.str()


def test_skips_errors_and_own_evaluators(pytester: pytest.Pytester) -> None:
    """A skipped body is skipped, an exception is shown with its traceback, a sample has its own checks."""
    pytester.makepyfile(
        test_more="""
        import pytest

        @pytest.mark.proctor
        def test_skip():
            pytest.skip("no key")

        @pytest.mark.proctor
        def test_error():
            raise ConnectionError("down")

        @pytest.mark.proctor(dataset="qa.jsonl", samples_as="run", min_pass_rate=0.5)
        def test_run(sample):
            return sample.input

        @pytest.mark.proctor(dataset="missing.jsonl")
        def test_missing(sample):
            pass
        """
    )
    lines = ['{"id": "1", "input": "a", "expected": "a", "evaluators": ["exact_match"]}', '{"id": "2", "input": "b"}']
    (pytester.path / "qa.jsonl").write_text("\n".join(lines))
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor")
    assert "test_more.py::test_missing: file not found: missing.jsonl" in result.stdout.str()
    source = (pytester.path / "test_more.py").read_text().partition('@pytest.mark.proctor(dataset="missing')[0]
    (pytester.path / "test_more.py").write_text(source)
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor")
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    assert "ConnectionError: down" in result.stdout.str()


def test_assert_passes_shows_what_failed() -> None:
    """The message has n, the interval and every reason; thresholds of other metrics count too."""
    samples: list[dict[str, Any]] = [{"id": str(n), "input": "a", "expected": "A" if n else "B"} for n in range(4)]
    report = evaluate(str.upper, samples, exact_match, history=False)
    assert_passes(report, min_pass_rate="75%", thresholds={"exact_match.pass_rate": 0.7})
    with pytest.raises(AssertionError) as caught:
        assert_passes(report, thresholds={"exact_match.pass_rate": 0.8})
    assert str(caught.value) == snapshot("""\
3 of 4 passed (75.0%, 95% interval 30.1–95.4%)
strict_pass_rate is 0.75, below 1 (n = 4, 95% interval 0.301 to 0.954)
exact_match.pass_rate is 0.75, below 0.8 (n = 4, 95% interval 0.301 to 0.954)
  0  score 0.00
    input     a
    output    A
    expected  B
    reason    expected 'B', got 'A' (exact_match)\
""")


def test_importing_the_plugin_imports_nothing_of_proctor() -> None:
    """Besides the package itself, its table of lazy names and its version."""
    code = "import pytest, sys, proctor.pytest_plugin; print(sorted(m for m in sys.modules if 'proctor' in m))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == str(
        ["proctor", "proctor.core", "proctor.core.lazy", "proctor.pytest_plugin", "proctor.version"]
    )


def test_a_skip_leaves_out_its_own_sample_or_repetition_only(pytester: pytest.Pytester) -> None:
    """Failures before and after a skip count; only if nothing else ran, the item is skipped."""
    pytester.makepyfile(
        test_skips="""
import itertools
import pytest

CALLS = itertools.count(1)
DATA = [{"id": str(n), "input": str(n), "expected": "1"} for n in (1, 2, 3)]

@pytest.mark.proctor(dataset=DATA, evaluators=["exact_match"], samples_as="run")
def test_wrong_answer(sample):
    if sample.id == "2":
        pytest.skip("no key")
    return sample.input

@pytest.mark.proctor(epochs=3, min_passes=2)
def test_failed_repetition():
    if next(CALLS) == 3:
        pytest.skip("no key")
    assert False

@pytest.mark.proctor(epochs=2, min_passes=1)
def test_only_skips():
    pytest.skip("no key")
"""
    )
    result = pytester.runpytest_inprocess(*OPTIONS, "--proctor", "--proctor-history", "none")
    result.assert_outcomes(failed=2, skipped=1)
    assert "1 of 2 passed" in result.stdout.str()


def test_a_failed_assertion_leaves_no_output_to_judge(pytester: pytest.Pytester) -> None:
    """Evaluators of the output are skipped with the reason and not called; a passed item is judged as before."""
    pytester.makepyfile(
        test_outputs="""
import pytest

DATA = [{"id": n, "input": n, "expected": n, "evaluators": ["contains"]} for n in "ab"]

def brief(output):
    assert output is not None
    return True

@pytest.mark.proctor(dataset=DATA, evaluators=["exact_match", brief])
def test_items(sample):
    assert sample.id == "a", "not a"
    return sample.input
"""
    )
    pytester.runpytest_inprocess(*OPTIONS, "--proctor").assert_outcomes(failed=1, passed=1)
    history = SQLiteHistory(pytester.path / ".proctor" / "history.db")
    report = history.report(history.runs()[0].run_id)
    passed, failed = sorted(report.results, key=lambda result: result.sample_id)
    assert {score.passed for score in passed.scores.values()} == {True}
    assert (failed.outcome, failed.trial.output, failed.trial.raw_output) == ("failed", None, None)
    assert failed.scores.pop("assertions").passed is False
    reasons = {score.reason for score in failed.scores.values() if score.status == "skipped"}
    assert reasons == {"the test failed an assertion, so it returned no output"}
    assert sorted(failed.scores) == ["brief", "contains", "exact_match"]
    rate = report.metrics["exact_match.pass_rate"]
    assert (rate.value, rate.n) == (1.0, 1)
    assert report.metadata is not None
    assert not any("gave no verdict on any result" in warning for warning in report.metadata.warnings)
