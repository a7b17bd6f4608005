"""The advice in every error about definitions, fields and spans works."""

# ruff: noqa: E501 - a case is one line: the advice, the mistake, and the advice followed

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import proctor
from proctor import FieldContext, attach
from proctor.errors import UsageError
from proctor.evaluators.fields import field
from tests.tables import each_row

# Untyped, for the mistakes are often of a kind that a type checker finds, too.
define: Any = proctor.define
configuration: Any = proctor.configuration
register_evaluator: Any = proctor.register_evaluator

SPAN = {"output": "x", "usage": {"total_tokens": 3}, "items": [{"name": "a"}, {"name": "b"}]}
RESULTS = {"low": {**SPAN}, "high": {**SPAN}}
LATE, EARLY = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is the point


def passes(output: Any) -> bool:
    return True


def short(output: Any, *, limit: int = 20) -> bool:
    return len(str(output)) <= limit


def echo(text: str, *, temperature: float = 0.0) -> str:
    return text


async def later(event: Any) -> None: ...


def output() -> Any:
    return define().evaluate_field("output")


def checks() -> Any:
    return output().evaluate_with(passes)


def run(**how: Any) -> Any:
    return checks().evaluate(how.pop("span", SPAN), **how)


def compared() -> Any:
    return define().select("usage.total_tokens", as_="tokens").evaluate_field("output", passes)


class Case(NamedTuple):
    """A mistake, words of the advice in its error, and the same call with the advice followed."""

    advice: str
    wrong: Callable[[], Any]
    right: Callable[[], Any]


# fmt: off
CASES: dict[str, Case] = {
    "path with brackets": Case("items.0", lambda: define().select("items[0]"), lambda: define().select("items.0")),
    "path with a quoted key": Case("items.key", lambda: define().select("items['a']"), lambda: define().select("items.a")),
    "path with two dots": Case("usage.total_tokens", lambda: define().select("usage..n"), lambda: define().select("usage.total_tokens")),
    "path that is a number": Case("usage.total_tokens", lambda: define().select(3), lambda: define().select("3")),
    "alias with a dot": Case("without dots", lambda: define().select("usage", as_="a.b"), lambda: define().select("usage", as_="b")),
    "alias of every result": Case("another name", lambda: define().select("usage.n", as_="usage"), lambda: define().select("usage.n", as_="n")),
    "alias taken": Case("another name", lambda: define().select("a", as_="x").select("b", as_="x"), lambda: define().select("a", as_="x").select("b", as_="y")),
    "alias after its field": Case("before evaluate_field", lambda: define().evaluate_field("x", short).select("b", as_="x"), lambda: define().select("b", as_="x").evaluate_field("x", short)),
    "misspelt alias": Case("did you mean 'tokens'", lambda: compared().evaluate_field("tokns"), lambda: compared().evaluate_field("tokens")),
    "a name of its own": Case(".select('tokns')", lambda: compared().evaluate_field("tokns"), lambda: compared().select("tokns").evaluate_field("tokns")),
    "evaluator before a field": Case('.evaluate_field("output")', lambda: define().evaluate_with(short), lambda: define().evaluate_field("output").evaluate_with(short)),
    "combination before a field": Case('.evaluate_field("output")', lambda: define().combine_with("and"), lambda: output().combine_with("and")),
    "half an evaluator's name": Case("'semantic_similarity'", lambda: output().evaluate_with("semantic"), lambda: output().evaluate_with("semantic_similarity")),
    "misspelt evaluator": Case("'coherence'", lambda: output().evaluate_with("coherenc"), lambda: output().evaluate_with("coherence")),
    "half a parameter's name": Case("'threshold'", lambda: output().evaluate_with("coherence", thresh=0.8), lambda: output().evaluate_with("coherence", threshold=0.8)),
    "parameter of another type": Case("limit: int", lambda: output().evaluate_with(short, limit="x"), lambda: output().evaluate_with(short, limit=3)),
    "parameter that is missing": Case("schema: …", lambda: output().evaluate_with("schema_match"), lambda: output().evaluate_with("schema_match", schema={"type": "object"})),
    "misspelt setting": Case("'threshold'", lambda: output().evaluate_with("coherence", lambda c: setattr(c, "treshold", 1)), lambda: output().evaluate_with("coherence", lambda c: setattr(c, "threshold", 1))),
    "parameter without a name": Case("parameter=value", lambda: output().evaluate_with("coherence", 0.8), lambda: output().evaluate_with("coherence", min_score=0.8)),
    "parameters twice": Case("evaluate_with(name, parameter=value)", lambda: output().evaluate_with({"contains": {}}, case_sensitive=False), lambda: output().evaluate_with("contains", case_sensitive=False)),
    "list of evaluators": Case("one by one", lambda: define().evaluate_field("output", [short, passes]), lambda: define().evaluate_field("output", short, passes)),
    "mapping of two evaluators": Case("{name: {parameters}}", lambda: output().evaluate_with({"contains": {}, "exact_match": {}}), lambda: output().evaluate_with({"contains": {}})),
    "unknown combination": Case('"and" (all pass), "or" (one passes)', lambda: output().combine_with("xor"), lambda: output().combine_with("or")),
    "combination in capitals": Case('"and" (all pass)', lambda: output().combine_with("AND"), lambda: output().combine_with("and")),
    "two combinations": Case("keep one", lambda: output().combine_with("and").combine_with("or"), lambda: output().combine_with("or")),
    "evaluator with a colon": Case("no colon", lambda: define().register_evaluator(short, "a:b"), lambda: define().register_evaluator(short, "a_b")),
    "evaluator with a taken name": Case("another name", lambda: define().register_evaluator(short, "contains"), lambda: define().register_evaluator(short, "my_contains")),
    "global evaluator with a taken name": Case("another name", lambda: register_evaluator(short, "contains"), lambda: register_evaluator(short, "advice_contains")),
    "async callback": Case("not async def", lambda: define().on_progress(later), lambda: define().on_progress(print)),
    "no callback": Case("a function of one event", lambda: define().on_progress(None), lambda: define().on_progress(print)),
    "kind as a text": Case("kinds=['start']", lambda: define().on_progress(print, kinds="start"), lambda: define().on_progress(print, kinds=["start"])),
    "misspelt status": Case("completed", lambda: define().on_progress(print, statuses=["done"]), lambda: define().on_progress(print, statuses=["completed"])),
    "two configurations": Case("rename one of them", lambda: define().configuration("a").configuration("a"), lambda: define().configuration("a").configuration("b")),
    "configuration without a name": Case('configuration("low_temp", temperature=0.3)', lambda: configuration(""), lambda: configuration("low_temp", temperature=0.3)),
    "configurations as a text": Case("['low']", lambda: run(target=echo, configurations="low"), lambda: run(target=echo, configurations=["low"])),
    "options that are none": Case("{'low': {option: value}}", lambda: run(target=echo, configurations={"low": 3}), lambda: run(target=echo, configurations={"low": {"temperature": 3}})),
    "configuration of another type": Case("configuration(name, option=value)", lambda: run(target=echo, configurations=[3]), lambda: run(target=echo, configurations=[configuration("low", temperature=3)])),
    "option the target lacks": Case("'temperature'", lambda: run(target=echo, configurations={"low": {"temp": 1}}), lambda: run(target=echo, configurations={"low": {"temperature": 1}})),
    "unknown baseline": Case("'low'", lambda: checks().baseline("lwo").configuration("low").evaluate(SPAN), lambda: checks().baseline("low").configuration("low").evaluate(SPAN)),
    "baseline without configurations": Case("add the configuration 'low'", lambda: checks().baseline("low").evaluate(SPAN, target=echo), lambda: checks().baseline("low").evaluate(SPAN, target=echo, configurations=["low", "high"])),
    "no field": Case('.evaluate_field("output")', lambda: define().evaluate(SPAN), lambda: define().evaluate_field("output", passes).evaluate(SPAN)),
    "no evaluator": Case(".evaluate_with(…)", lambda: output().evaluate(SPAN), lambda: output().evaluate_with(passes).evaluate(SPAN)),
    "option misspelt": Case("'concurrency'", lambda: run(concurency=2), lambda: run(concurrency=2)),
    "evaluate with tags": Case(".history(tags={…})", lambda: run(tags={"a": "b"}), lambda: define("t").history(False, tags={"a": "b"}).evaluate_field("output", passes).evaluate(SPAN)),
    "evaluate with a name": Case('define("…")', lambda: run(name="x"), lambda: define("x").evaluate_field("output", passes).evaluate(SPAN)),
    "evaluate with fields": Case(".select(", lambda: run(fields={"tokens": "usage.total_tokens"}), lambda: checks().select("usage.total_tokens", as_="tokens").evaluate(SPAN)),
    "evaluate with evaluators": Case(".evaluate_field(", lambda: run(evaluators=[passes]), lambda: checks().evaluate(SPAN)),
    "evaluate with a callback": Case(".on_progress(…)", lambda: run(on_progress=print), lambda: checks().on_progress(lambda event: None).evaluate(SPAN)),
    "evaluate with a history": Case(".history(…)", lambda: run(history=False), lambda: checks().history(False).evaluate(SPAN)),
    "evaluate with a baseline": Case(".baseline(…)", lambda: run(baseline="a", recorded={"a": SPAN}), lambda: checks().baseline("a").evaluate({}, recorded={"a": SPAN})),
    "resume without a history": Case('define("name").history()', lambda: run(resume=True), lambda: define("name").history().evaluate_field("output", passes).evaluate(SPAN)),
    "target and recorded": Case("leave out recorded", lambda: run(target=echo, recorded=RESULTS), lambda: run(target=echo)),
    "span without an output": Case('add "output"', lambda: run(span={"input": "x"}), lambda: run(span={"input": "x", "output": None})),
    "span without an output, run": Case("target=…", lambda: run(span={"input": "x"}), lambda: run(span={"input": "x"}, target=echo)),
    "span that is a number": Case('{"input": …, "output": …', lambda: run(span=3), lambda: run(span={"input": "x", "output": 3})),
    "recorded for a dataset": Case("{'recorded': {configuration: result}}", lambda: run(span=[SPAN], recorded=RESULTS), lambda: run(span=[{"recorded": RESULTS}])),
    "nothing recorded": Case("recorded={configuration: result}", lambda: run(configurations=["low", "high"]), lambda: run(configurations=["low", "high"], recorded=RESULTS)),
    "nothing recorded, run": Case("target=…", lambda: run(configurations=["low", "high"]), lambda: run(configurations=["low", "high"], target=echo)),
    "nothing recorded in a dataset": Case("{recorded: {configuration: result}}", lambda: run(span=[SPAN], configurations=["low", "high"]), lambda: run(span=[{"recorded": RESULTS}], configurations=["low", "high"])),
    "recorded result as a text": Case("{'a': {\"output\": 'text'}}", lambda: run(span={}, recorded={"a": "text"}), lambda: run(span={}, recorded={"a": {"output": "text"}})),
    "recorded nothing": Case('{"low_temp": {"output": …}', lambda: run(span={}, recorded={}), lambda: run(span={}, recorded={"low_temp": {"output": 1}})),
    "misspelt key": Case("'total_tokens'", lambda: define().evaluate_field("usage.totl_tokens", passes).evaluate(SPAN), lambda: define().evaluate_field("usage.total_tokens", passes).evaluate(SPAN)),
    "index out of range": Case("from 0 to 1, or *", lambda: define().evaluate_field("items.5.name", passes).evaluate(SPAN), lambda: define().evaluate_field("items.1.name", passes).evaluate(SPAN)),
    "key of a list": Case("or *", lambda: define().evaluate_field("items.name", passes).evaluate(SPAN), lambda: define().evaluate_field("items.*.name", passes).evaluate(SPAN)),
    "key with a dot": Case(r"write a\.b", lambda: define().evaluate_field("a.b", passes).evaluate({**SPAN, "a.b": 1}), lambda: define().evaluate_field(r"a\.b", passes).evaluate({**SPAN, "a.b": 1})),
    "context without the field": Case("total_tokens", lambda: FieldContext("usage", SPAN)["usage.tokens"], lambda: FieldContext("usage", SPAN)["usage.total_tokens"]),
    "compare a misspelt name": Case("'low'", lambda: run(span={}, recorded=RESULTS).compare("lwo", "high"), lambda: run(span={}, recorded=RESULTS).compare("low", "high")),
    "rank by a misspelt field": Case("'tokens'", lambda: compared().evaluate({}, recorded=RESULTS).rank_by("tokns"), lambda: compared().evaluate({}, recorded=RESULTS).rank_by("tokens")),
    "rank in no order": Case('choose "asc" for the lowest first', lambda: compared().evaluate({}, recorded=RESULTS).rank_by("tokens", "up"), lambda: compared().evaluate({}, recorded=RESULTS).rank_by("tokens", "desc")),
    "rank by texts": Case("output.score", lambda: run(span={}, recorded=RESULTS).rank_by("output"), lambda: run(span={}, recorded=RESULTS).rank_by("output.score")),
    "one side of several": Case("low, high", lambda: run(span={}, recorded=RESULTS).side(), lambda: run(span={}, recorded=RESULTS).side("low")),
    "an unknown configuration of a field": Case("'low'", lambda: run(span={}, recorded=RESULTS).field_results["output"].for_configuration("lwo"), lambda: run(span={}, recorded=RESULTS).field_results["output"].for_configuration("low")),
    "an evaluator called score": Case("attach(…, name=…)", lambda: output().evaluate_with(attach(passes, name="score")).evaluate(SPAN), lambda: output().evaluate_with(attach(passes, name="own")).evaluate(SPAN)),
    "a field of no evaluators": Case("at least one", lambda: field("output", []), lambda: field("output", [passes])),
    "history without a name": Case('define("name")', lambda: define().history.last(), lambda: define("name").history.last()),
    "last of none": Case("last(10)", lambda: define("x").history.last(0), lambda: define("x").history.last(10)),
    "date without a zone": Case("tzinfo=UTC", lambda: define("x").history.query(date_range=(NAIVE, None)), lambda: define("x").history.query(date_range=(EARLY, None))),
    "date as a text": Case("datetime(2026, 1, 31, tzinfo=UTC)", lambda: define("x").history.query(date_range=("2026-01-01", None)), lambda: define("x").history.query(date_range=(EARLY, None))),
    "range of one date": Case("(since, until)", lambda: define("x").history.query(date_range=EARLY), lambda: define("x").history.query(date_range=(EARLY, LATE))),
    "range that ends first": Case("the earlier date first", lambda: define("x").history.query(date_range=(LATE, EARLY)), lambda: define("x").history.query(date_range=(EARLY, LATE))),
    "tags that are no texts": Case('tags={"environment": "production"}', lambda: define("x").history.query(tags={"a": 1}), lambda: define("x").history.query(tags={"environment": "production"})),
}
# fmt: on


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("proctor.wiring.registry._process_evaluators", {})


@each_row("case", CASES.values(), ids=CASES)
def test_advice_can_be_followed(case: Case) -> None:
    """The mistake is refused with this advice, and the corrected call works."""
    with pytest.raises(UsageError) as caught:
        case.wrong()
    assert case.advice in str(caught.value)
    case.right()


def test_an_unknown_field_result_has_a_suggestion() -> None:
    """Reading `field_results` with a misspelled name."""
    found = run().field_results
    with pytest.raises(KeyError, match="did you mean 'output'"):
        found["outptu"]
    assert found.get("outptu") is None
    assert found["output"].passed
