"""hallucination_detection: what stands in the context passes, what was made up is named."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.quality import grounding, grounding_sets

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.text.quality import hallucination_detection
from proctor.records.fields.context import FieldContext
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial
from proctor.wiring.evaluate import evaluate
from tests.evaluators.judging.rehearsed import Asked, Scripted
from tests.evaluators.test_recorded_judges import DATA, folder

CONTEXT = "Oslo is the capital of Norway. About 700,000 people live there."


def score(output: Any, metadata: dict[str, Any], question: Any = None, **options: Any) -> Score:
    options = {"embedder": "lexical"} | options
    trial = Trial(Sample("1", question, metadata=metadata), output)
    found: Score = asyncio.run(attach(hallucination_detection(**options)).score(trial))
    return found


def test_what_the_context_says_passes_in_other_words_too() -> None:
    found = score("Norway's capital is Oslo.", {"context": CONTEXT})
    assert found.passed
    assert found.reason == f"support {found.value:.2f}"
    (sentence,) = found.details["sentences"]
    assert sentence["passages"] == ["Oslo is the capital of Norway."]
    assert sentence["unsupported"] == []
    assert (found.details["method"], found.details["model"]) == ("overlap", "lexical")
    copied = score("Oslo is the capital of Norway.", {"context": CONTEXT})
    assert (copied.value or 0) > (found.value or 0), "the order of words counts"


def test_what_was_made_up_does_not_pass_and_is_named() -> None:
    made_up = "It was founded by Harald in 1048."
    found = score(f"Oslo is the capital of Norway. {made_up}", {"context": CONTEXT})
    assert not found.passed
    assert "not in the context: founded, Harald, 1048" in found.reason
    first, second = found.details["sentences"]
    assert first["support"] > 0.5 > second["support"]


def test_of_very_long_texts_the_weakest_sentences_are_listed() -> None:
    made_up = "It was founded by Harald in 1048. "
    text = "Oslo is the capital of Norway. " * 150 + made_up
    found = score(text, {"context": CONTEXT})
    assert len(found.details["sentences"]) == 100
    assert found.details["sentences"][0]["text"] == made_up.strip()
    found = score("Oslo is the capital of Norway. " * 2010, {"context": CONTEXT})
    assert found.details["sentences_left_out"] == 10
    assert found.reason.endswith("; 10 further sentences were not checked")


@pytest.mark.parametrize(
    "context",
    [
        [CONTEXT, "Bergen is wet."],
        {"title": "Oslo", "text": CONTEXT},
        [{"page_content": CONTEXT, "metadata": {"page": 3}}],
    ],
)
def test_a_context_may_be_documents(context: Any) -> None:
    assert score("About 700,000 people live in Oslo.", {"context": context}).passed


def test_the_context_may_stand_elsewhere_and_the_input_be_taken_as_given() -> None:
    documents = {"retrieved": {"documents": [CONTEXT]}}
    assert score("Oslo is in Norway.", documents, context="retrieved.documents").passed
    message, asked = "You asked about Bergen.", "You asked about Bergen, I know."
    assert not score(message, {"context": CONTEXT}, asked).passed
    assert score(message, {"context": CONTEXT}, asked, with_input=True).passed


@pytest.mark.parametrize(
    ("output", "metadata", "message"),
    [
        ("Oslo.", {}, "there is no 'context'"),
        ("Oslo.", {"context": []}, "there is no 'context'"),
        ("Oslo.", {"context": None}, "there is no 'context'"),
        ("  ", {"context": CONTEXT}, "no text to check"),
        ("Yes, it is.", {"context": CONTEXT}, "makes no statement to check"),
    ],
)
def test_what_cannot_be_judged_is_skipped(output: str, metadata: dict[str, Any], message: str) -> None:
    """Never 0, never a pass."""
    found = score(output, metadata)
    assert found.status == "skipped"
    assert message in found.reason


def test_called_without_a_context_it_is_skipped() -> None:
    check = hallucination_detection(embedder="lexical")
    assert check("Oslo.").status == "skipped"
    assert check("Oslo.", None, FieldContext("output", {})).status == "skipped"


def claims(asked: Asked) -> str:
    """A judge that finds two claims, and one of them in the context."""
    if asked.has("TEXT"):
        listed = [
            {"claim": "Oslo is the capital.", "quote": "Oslo is the capital"},
            {"claim": "Oslo is old.", "quote": "and old"},
        ]
        return json.dumps({"claims": listed})
    verdicts = [
        {"number": 1, "reason": "", "evidence": "Oslo is the capital", "verdict": "supported"},
        {"number": 2, "reason": "", "evidence": "", "verdict": "not_stated"},
    ]
    return json.dumps({"verdicts": verdicts})


def test_with_a_judge_claims_are_listed_and_checked() -> None:
    judge = Scripted(claims, schema=True)
    metadata = {"context": [CONTEXT, "Bergen is wet."]}
    found = score("Oslo is the capital and old.", metadata, judge=judge)
    assert (found.value, found.passed, found.details["method"]) == (0.5, False, "judge")
    assert "Bergen is wet." in judge.asked[1].part("CONTEXT")
    lenient = score("Oslo is the capital and old.", metadata, judge=judge, threshold=0.5)
    assert lenient.passed


def test_options_are_checked_on_creation_and_stored_as_data() -> None:
    with pytest.raises(EvaluatorError, match="threshold must be between 0 and 1"):
        hallucination_detection(threshold=75)
    with pytest.raises(EvaluatorError, match=r"context must be a path: 'a\.\.b' is not a path to a field"):
        hallucination_detection(context="a..b")
    spec = attach(hallucination_detection(model=Scripted(claims))).spec
    assert spec.parameters["model"] == "test:judge"
    assert spec.parameters["threshold"] == 1.0
    assert "embedder" not in spec.parameters


def test_it_runs_in_an_evaluation_with_the_samples_context() -> None:
    samples: list[Sample[str, str]] = [
        Sample("1", "Where?", metadata={"context": CONTEXT}),
        Sample("2", "Where?", metadata={"context": "Bergen is wet."}),
        Sample("3", "Where?"),
    ]
    check = hallucination_detection(embedder="lexical")
    report = evaluate(lambda _: "Oslo is in Norway.", samples, [check], history=False)
    found = [result.scores["hallucination_detection"] for result in report.results]
    assert [one.status for one in found] == ["ok", "ok", "skipped"]
    assert [one.passed for one in found] == [True, False, None]


def test_a_model_for_entailment_and_a_judge_are_two_methods() -> None:
    with pytest.raises(EvaluatorError, match="nli and model are two methods"):
        hallucination_detection(nli="hf:owner/name", model=Scripted(claims))


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Measure by words alone: the cross-encoder takes minutes for all replies."""
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))


@pytest.mark.usefixtures("no_models")
def test_it_ranks_replies_as_people_do() -> None:
    """The share of words that are in the context has 0.947."""
    folder(grounding_sets.BEGIN)
    area, supported, _ = grounding.measure_set("BEGIN dev", list(grounding_sets.begin_replies(DATA)))
    assert area.value > 0.947
    assert supported.value >= 0.8


@pytest.mark.usefixtures("no_models")
@pytest.mark.parametrize("others", [0, 7])
def test_a_changed_fact_in_a_supported_claim_is_found(others: int) -> None:
    """Claims and paraphrases pass, and with one changed fact they fail, alone and among other contexts."""
    passing, failing, *kinds = grounding.measure_near_misses(others)
    assert passing.value >= 0.9
    assert failing.value >= 0.85
    assert failing.interval is not None
    assert failing.interval.n >= 200
    assert len(kinds) >= 6


def test_the_benchmark_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(grounding.measure(tmp_path))


@pytest.mark.parametrize(
    ("context", "output", "name"),
    [
        ("Paris is in France.", "Lyon is in France.", "Lyon"),
        ("Paris is in France.", "London is in France.", "London"),
        ("Einstein wrote it in Bern.", "Newton wrote it in Bern.", "Newton"),
        ("The Alps are high. Oslo is a port.", "The Alps are high. Bergen is a port.", "Bergen"),
        ("French is spoken in Quebec.", "German is spoken in Quebec.", "German"),
    ],
)
def test_a_name_that_begins_a_sentence_is_a_name(context: str, output: str, name: str) -> None:
    assert score(context, {"context": context}).passed is True
    found = score(output, {"context": context})
    assert found.passed is False
    assert found.details["sentences"][-1]["wrong"] is True
    assert name in found.details["sentences"][-1]["unsupported"]


@pytest.mark.parametrize(
    "output",
    ["Felines eat fish.", "Overall, cats eat fish.", "Apparently cats eat fish.", "Munching fish, cats sit there."],
)
def test_an_ordinary_word_at_the_start_of_a_sentence_is_not_a_name(output: str) -> None:
    found = score(output, {"context": "Cats eat fish. Cats sit there."})
    assert found.details["sentences"][0]["wrong"] is False


@pytest.mark.parametrize(
    ("context", "output"),
    [
        ("Mara is taller than Finn. They run together.", "Finn is shorter than Mara."),
        ("The north tower is higher than the south tower.", "The south tower is lower than the north tower."),
        ("The organ was built between 1720 and 1724 by the master Karl Voss. It has 40 stops.",
         "The organ, built by Karl Voss, has 40 stops."),
    ],
)  # fmt: skip
def test_exchanged_places_with_the_opposite_word_or_in_the_passive_say_the_same(context: str, output: str) -> None:
    assert score(output, {"context": context}).details["sentences"][0]["wrong"] is False


@pytest.mark.parametrize(
    ("context", "output"),
    [
        ("Mara is taller than Finn. They run together.", "Mara is shorter than Finn."),
        ("Mara is taller than Finn. They run together.", "Finn is taller than Mara."),
        ("The north tower is higher than the south tower.", "The south tower is higher than the north tower."),
        ("Ilse joined the choir in 2012.", "Ilse left the choir in 2012."),
    ],
)
def test_an_opposite_or_an_exchange_alone_is_wrong(context: str, output: str) -> None:
    assert score(output, {"context": context}).passed is False


@pytest.mark.parametrize(
    ("context", "output", "doubt"),
    [
        ("Adults pay 30 euros a year. Pupils pay half.", "Pupils pay 15 euros a year.", "(15 from 30 and half)"),
        ("The hall was built from 1950 to 1957.", "The hall was built in 7 years.", "computed (7 from 1950 and 1957)"),
        ("Exports of wool grew in Chile. Peru reported nothing new.", "Exports of wool grew in Peru.",
         "the context mentions Peru only in passages about something else"),
    ],
)  # fmt: skip
def test_numbers_that_may_be_computed_and_names_from_elsewhere_are_skipped(
    context: str, output: str, doubt: str
) -> None:
    result = score(output, {"context": context})
    assert result.status == "skipped"
    assert doubt in result.reason
