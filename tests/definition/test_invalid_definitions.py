"""Faults of a definition are reported when it is defined, with suggestions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor import define
from proctor.errors import UsageError


def short(output: Any, *, limit: int = 20) -> bool:
    return len(output) < limit


def fault(wrong: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as caught:
        wrong()
    return str(caught.value)


def output() -> Any:
    return define().evaluate_field("output")


def test_a_misspelled_evaluator() -> None:
    """The error suggests the most similar name."""
    assert fault(lambda: output().evaluate_with("semantic_similarty")) == snapshot("""\
unknown evaluator 'semantic_similarty'
Fix: did you mean 'semantic_similarity'?\
""")


def test_a_misspelled_parameter() -> None:
    """The error suggests the most similar one, or lists all."""
    assert fault(lambda: output().evaluate_with("contains", case_sensitiv=False)) == snapshot("""\
contains: its parameters are invalid
  - unknown parameter 'case_sensitiv'; did you mean 'case_sensitive'?
Fix: its parameters are case_sensitive: bool = True, match: 'any' | 'all' | None = None\
""")


def test_a_parameter_of_the_wrong_type() -> None:
    """The error names the expected type and the value."""
    assert fault(lambda: output().evaluate_with(short, limit="long")) == snapshot("""\
short: its parameters are invalid
  - limit must be of type int, got 'long'
Fix: its parameters are limit: int = 20\
""")


def test_a_misspelled_alias() -> None:
    """A name similar to a selected one is a typo."""
    checks = define().select("usage.total_tokens", as_="tokens")
    assert fault(lambda: checks.evaluate_field("tokns")) == snapshot("""\
no field 'tokns' was selected
Fix: did you mean 'tokens'? If not, select it first: .select('tokns')\
""")


def test_an_invalid_path() -> None:
    """In `select` and in `evaluate_field`."""
    assert fault(lambda: define().select("usage..total_tokens")) == snapshot("""\
'usage..total_tokens' is not a path to a field: it has an extra dot; write usage.total_tokens
Fix: write keys with dots between them, such as usage.total_tokens or items.*.name\
""")
    assert fault(lambda: define().evaluate_field("items[0]")) == snapshot("""\
'items[0]' is not a path to a field: write items.0 for a list index
Fix: write keys with dots between them, such as usage.total_tokens or items.*.name\
""")


def test_an_invalid_alias() -> None:
    """A name has no dots and is not empty."""
    assert fault(lambda: define().select("usage", as_="us.age")) == snapshot("""\
'us.age' cannot be the name of a field
Fix: use a word without dots and spaces around it\
""")


def test_an_alias_in_use() -> None:
    """By another selected or evaluated field."""
    checks = define().select("usage.total_tokens", as_="tokens")
    assert fault(lambda: checks.select("usage.input_tokens", as_="tokens")) == snapshot(
        """\
usage.input_tokens: the field 'usage.total_tokens' already has the name 'tokens'
Fix: choose another name, or write this select before evaluate_field\
"""
    )
    late = define().evaluate_field("tokens", short)
    assert fault(lambda: late.select("usage.total_tokens", as_="tokens")) == snapshot(
        """\
usage.total_tokens: the field 'tokens' already has the name 'tokens'
Fix: choose another name, or write this select before evaluate_field\
"""
    )


def test_two_combinations_of_one_field() -> None:
    """They contradict each other."""
    checks = output().evaluate_with(short).combine_with("and")
    assert fault(lambda: checks.combine_with("or")) == snapshot("""\
output: the field is already combined by 'and', and now by 'or'
Fix: keep one of the two combine_with calls\
""")
    assert fault(lambda: checks.combine_with(short)) == snapshot("""\
output: the field is already combined by 'and', and now by short
Fix: keep one of the two combine_with calls\
""")


def test_a_misspelled_combination() -> None:
    """The error suggests the most similar one."""
    assert fault(lambda: output().combine_with("adn")) == snapshot("""\
output: evaluators cannot be combined with 'adn'
Fix: choose "and" (all pass), "or" (one passes), or a function of the scores\
""")


def test_evaluators_before_a_field() -> None:
    """They belong to no field."""
    assert fault(lambda: define().evaluate_with("contains")) == snapshot("""\
evaluate_with('contains') has no field
Fix: call .evaluate_field("output") first\
""")
    assert fault(lambda: define().evaluate_with(short)) == snapshot("""\
evaluate_with(short) has no field
Fix: call .evaluate_field("output") first\
""")
    assert fault(lambda: define().combine_with("and")) == snapshot("""\
combine_with('and') has no field
Fix: call .evaluate_field("output") first\
""")


def test_an_empty_definition() -> None:
    """It evaluates nothing."""
    assert fault(lambda: define().evaluate({"output": "x"})) == snapshot("""\
the definition is not complete
  - add a field to evaluate: .evaluate_field("output")\
""")


def test_a_field_without_evaluators() -> None:
    """It is only selected."""
    assert fault(lambda: output().evaluate({"output": "x"})) == snapshot("""\
the definition is not complete
  - output: add an evaluator: .evaluate_with(…)\
""")


def test_a_history_without_a_name() -> None:
    """Runs are stored under the name."""
    checks = output().evaluate_with(short).history()
    assert fault(lambda: checks.evaluate({"output": "x"})) == snapshot("""\
the definition is not complete
  - history: a definition needs a name to store runs: define("name")\
""")
    assert fault(lambda: define().history.last()) == snapshot("""\
a definition without a name has no history
Fix: write define("name")\
""")


def test_limits_and_tags_of_a_history() -> None:
    """All faults at once."""
    wrong: Any = {"retention_days": -1, "retention_count": True, "tags": {"n": 3}}
    assert fault(lambda: define("x").history(**wrong)) == snapshot("""\
the history settings are invalid
  - retention_days must be a number greater than 0, got -1
  - retention_count must be a number greater than 0, got True
  - tags.n must be a string, got 3\
""")


def test_a_date_without_a_zone() -> None:
    """It is ambiguous."""
    checks = define("x")
    ranged = (datetime(2026, 1, 1), None)  # noqa: DTZ001 - that is the point
    assert fault(lambda: checks.history.query(date_range=ranged)) == snapshot("""\
date_range: the date 2026-01-01T00:00:00 has no time zone
Fix: add the zone: datetime(…, tzinfo=UTC)\
""")


def test_an_unknown_baseline() -> None:
    """The error suggests the most similar configuration."""
    checks = output().evaluate_with(short).configuration("low").configuration("high").baseline("lwo")
    assert fault(lambda: checks.evaluate({"input": "x"}, target=len)) == snapshot("""\
the definition is not complete
  - baseline: unknown configuration 'lwo'; did you mean 'low'?\
""")


def test_two_configurations_of_one_name() -> None:
    """Names must be unique."""
    assert fault(lambda: define().configuration("low").configuration("low")) == snapshot(
        """\
two configurations are named 'low'
Fix: rename one of them\
"""
    )


def test_several_configurations_with_neither_target_nor_recordings() -> None:
    """There is nothing to compare."""
    checks = output().evaluate_with(short)
    both: Any = {"low": {}, "high": {}}
    assert fault(lambda: checks.evaluate({"output": "x"}, configurations=both)) == snapshot("""\
the configurations low, high have no recorded results, and no target is set
Fix: pass target=…, or recorded={configuration: result}\
""")
    assert fault(lambda: checks.evaluate([], recorded={"low": {}})) == snapshot("""\
recorded: recorded= works only for a single span
Fix: in a dataset, add results to every span: {'recorded': {configuration: result}}\
""")


def test_invalid_names() -> None:
    """Of a definition and of registered evaluators."""
    assert fault(lambda: define(" ")) == snapshot("""\
a definition's name must be a non-empty string, got ' '
Fix: write define("name")\
""")
    assert fault(lambda: define().register_evaluator(short, "a:b")) == snapshot("""\
'a:b' cannot be the name of an evaluator
Fix: choose a name with no colon that does not start with 'not-'\
""")


def test_an_evaluator_name_that_clashes_with_a_metric() -> None:
    """It is refused before the run."""

    def score(output: Any) -> bool:
        return True

    checks = output().evaluate_with(score)
    assert fault(lambda: checks.evaluate({"output": "x"})) == snapshot("""\
field.output.score: the evaluator 'score' of the field 'output' has the name of a metric of the field
Fix: choose another name: attach(…, name=…), or `name:` in an eval file\
""")


def test_parameters_given_twice() -> None:
    """In a mapping and as keyword arguments."""
    assert fault(lambda: output().evaluate_with({"contains": {}}, case_sensitive=False)) == snapshot("""\
parameters are both in {'contains': {}} and in keyword arguments
Fix: write evaluate_with(name, parameter=value)\
""")


def test_an_invalid_progress_callback() -> None:
    """Filters that match nothing, and values that are not functions."""
    wrong: Any = {"kinds": ["evaluater_end"], "statuses": ["done"]}
    assert fault(lambda: define().on_progress(print, **wrong)) == snapshot("""\
the callback selects events that do not exist
  - on_progress: unknown events 'evaluater_end'; did you mean 'evaluator_end'?
  - on_progress: unknown events 'done'; choose one of: completed, evaluating, failed, pending, running
Fix: correct these names, or leave out kinds and statuses\
""")
    nothing: Any = None
    assert fault(lambda: define().on_progress(nothing)) == snapshot(
        """\
on_progress: a progress callback must be a plain function, got None
Fix: pass a function of one event, such as print\
"""
    )


def test_a_block_reports_all_faults_at_its_end() -> None:
    """The valid parts stay."""

    def write() -> None:
        with define("many") as checks:
            checks.select("usage.total_tokens", as_="tokens").select("a..b")
            checks.evaluate_with("contains")
            checks.evaluate_field("tokns")
            checks.evaluate_field("output").evaluate_with("containz")
            checks.evaluate_with("contains", case_sensitiv=True).evaluate_with(short, limit="x")
            checks.combine_with("and").combine_with("or").combine_with("xor")
            checks.history(retention_days=0)
            checks.configuration("low").configuration("low")
            checks.register_evaluator(short, "not-short")
            checks.on_progress(print, statuses=["done"])  # type: ignore[list-item]

    assert fault(write) == snapshot("""\
many: the definition has 12 problems
  - 'a..b' is not a path to a field: it has an extra dot; write a.b
    Fix: write keys with dots between them, such as usage.total_tokens or items.*.name
  - evaluate_with('contains') has no field
    Fix: call .evaluate_field("output") first
  - no field 'tokns' was selected
    Fix: did you mean 'tokens'? If not, select it first: .select('tokns')
  - unknown evaluator 'containz'
    Fix: did you mean 'contains'?
  - contains: its parameters are invalid
      - unknown parameter 'case_sensitiv'; did you mean 'case_sensitive'?
    Fix: its parameters are case_sensitive: bool = True, match: 'any' | 'all' | None = None
  - short: its parameters are invalid
      - limit must be of type int, got 'x'
    Fix: its parameters are limit: int = 20
  - output: the field is already combined by 'and', and now by 'or'
    Fix: keep one of the two combine_with calls
  - output: the field is already combined by 'and', and now by 'xor'
    Fix: keep one of the two combine_with calls
  - the history settings are invalid
      - retention_days must be a number greater than 0, got 0
  - two configurations are named 'low'
    Fix: rename one of them
  - 'not-short' cannot be the name of an evaluator
    Fix: choose a name with no colon that does not start with 'not-'
  - the callback selects events that do not exist
      - on_progress: unknown events 'done'; choose one of: completed, evaluating, failed, pending, \
running
    Fix: correct these names, or leave out kinds and statuses\
""")


def test_a_block_with_one_fault() -> None:
    """The error is that fault; other exceptions are not replaced."""

    def one() -> None:
        with define() as checks:
            checks.evaluate_field("output").evaluate_with("containz")

    assert fault(one).startswith("unknown evaluator 'containz'")

    def otherwise() -> None:
        with define() as checks:
            checks.evaluate_with("contains")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        otherwise()


def test_an_incomplete_block_is_an_error_at_its_end() -> None:
    """Not only when it is used."""

    def unfinished() -> None:
        with define() as checks:
            checks.evaluate_field("output").history()

    assert fault(unfinished) == snapshot("""\
the definition is not complete
  - output: add an evaluator: .evaluate_with(…)
  - history: a definition needs a name to store runs: define("name")\
""")
