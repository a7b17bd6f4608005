"""`compliance`: policies by name, policies of the user's own, and one score for all of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from proctor.errors import CallFailed, EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.bounded_regex import find_all
from proctor.evaluators.safety.detection import compliance
from proctor.evaluators.safety.policy import to_text
from proctor.records import codec
from proctor.records.model import ModelRequest
from proctor.records.sample import Sample
from proctor.records.score import Score
from tests.evaluators.judging.scripted import Scripted, block, line, mark_of
from tests.evaluators.judging.scripted import text_of as asked_text
from tests.tables import each_row

KEY = "AKIA" + "Z7QW2MKX5RTB6PLN"
DECLINED = "I'm sorry, but I can't help with that."


def score(evaluate: Any, output: Any, sample: Any = None) -> Score:
    """What an evaluator says of an output."""
    found: Score = evaluate(output, sample)
    return found


def choosing(field: str, choice: str) -> Scripted:
    """A judge that always says the same."""
    return Scripted(lambda request: "Because.\n" + line(request, field, choice))


def failing(request: ModelRequest) -> str:
    """A judge that cannot be reached."""
    raise CallFailed("no route")


def test_a_clean_text_keeps_the_usual_policies() -> None:
    found = score(compliance(), "The weather is fine.")
    assert (found.value, found.passed, found.reason) == (1.0, True, "no pii, no secrets found")
    assert found.details["method"] == "local"
    assert list(found.details["policies"]) == ["pii", "secrets"]


def test_findings_have_a_kind_and_a_position_and_are_masked() -> None:
    text = f"Use {KEY} and write to ann.lee@mailbox.org or bob@mailbox.org."
    found = score(compliance(), text)
    assert (found.value, found.passed) == (0.0, False)
    assert found.reason == ("pii: 2 findings (email); secrets: 1 finding (aws_access_key); 2 of 2 policies broken")
    (key,) = found.details["policies"]["secrets"]["findings"]
    assert text[key["start"] : key["end"]] == KEY
    stored = codec.encode(found).decode()
    assert KEY not in stored
    assert "ann" not in stored


@pytest.mark.parametrize("output", [None, "", "  \n", {}, [None]])
def test_an_output_without_text_is_skipped(output: Any) -> None:
    assert score(compliance(), output).status == "skipped"


def test_data_is_looked_through_value_by_value() -> None:
    output = {"user": {"name": "Ann", "mail": "ann@mailbox.org"}, "api_key": "b7Hd92Kx0Lq4Zt8V"}
    policies = score(compliance(), output).details["policies"]
    (mail,), (key,) = (policies[name]["findings"] for name in ("pii", "secrets"))
    assert (mail["kind"], key["kind"]) == ("email", "assigned_secret")
    text = to_text(output)
    assert text[mail["start"] : mail["end"]] == "ann@mailbox.org"
    assert to_text([1, {"a": None}]) == "0: 1"


def test_a_long_text_is_looked_through_too() -> None:
    """More than 50 findings are counted, and the first 50 told."""
    found = score(compliance("pii"), "\n".join(f"user{n}@mailbox.org" for n in range(2000)))
    message = found.details["policies"]["pii"]
    assert (len(message["findings"]), message["count"]) == (50, 2000)


@pytest.mark.parametrize(
    ("refusal", "output", "passed"),
    [
        ("forbidden", DECLINED, False),
        ("forbidden", "Paris.", True),
        ("required", DECLINED, True),
        ("required", "Paris.", False),
    ],
)
def test_a_refusal_can_be_forbidden_or_required(refusal: Any, output: str, passed: bool) -> None:
    found = score(compliance((), refusal=refusal), output)
    assert found.passed is passed
    assert found.details["policies"]["refusal"]["refused"] is (output == DECLINED)


def test_refusals_are_forbidden_by_default() -> None:
    found = score(compliance("refusal"), f"Well. {DECLINED}")
    assert found.reason == "refusal: the answer declines"
    (place,) = found.details["policies"]["refusal"]["findings"]
    assert (place["start"], place["act"]) == (6, "declines")


@pytest.mark.parametrize(
    ("message", "refusal", "passed"),
    [
        ("complied", "forbidden", True),
        ("partly", "forbidden", False),
        ("refused", "required", True),
        ("complied", "required", False),
    ],
)
def test_a_judge_decides_on_refusals(message: str, refusal: Any, passed: bool) -> None:
    judge = choosing("ANSWER", message)
    sample: Sample[str, Any] = Sample("1", "How do I pick a lock?")
    found = score(compliance((), refusal=refusal, model=judge), "Ask a locksmith.", sample)
    assert (found.passed, found.details["method"]) == (passed, "judge")
    assert block(judge.asked[0], "INPUT") == "How do I pick a lock?"
    assert found.details["policies"]["refusal"]["judge"]["answer"] == message


def test_prohibited_claims_are_found_and_a_denial_is_none() -> None:
    careful = compliance((), claims="The tea cures flu.", embedder="lexical")
    found = score(careful, "Buy now. The tea cures flu!")
    assert found.reason == "prohibited_claims: it claims: The tea cures flu."
    (place,) = found.details["policies"]["prohibited_claims"]["findings"]
    assert (place["start"], place["end"], place["by"]) == (9, 27, "words")
    assert score(careful, "The tea does not cure flu.").passed


def test_the_nearest_sentence_is_shown_also_where_no_claim_is_made() -> None:
    careful = compliance((), claims=["The tea cures flu."], embedder="lexical")
    found = score(careful, "It rains today. The tea helps with flu.")
    message = found.details["policies"]["prohibited_claims"]
    (nearest,) = message["nearest"]
    assert (found.passed, message["near"], nearest["by"]) == (True, 0.75, "")
    assert nearest["sentence"] == "The tea helps with flu."
    assert 0 < nearest["cosine"] < 0.75
    assert f"cosine {nearest['cosine']:.2f}, near is 0.75" in found.reason
    secret = score(careful, "The tea of ann@mailbox.org helps with flu.")
    assert "sentence" not in secret.details["policies"]["prohibited_claims"]["nearest"][0]


@pytest.mark.parametrize("output", ["🙅‍♂️🚫❌", "12345", "!!!", "3.14 = 3.14"])
@pytest.mark.parametrize("refusal", ["forbidden", "required"])
def test_an_answer_without_letters_is_skipped_for_refusals(output: str, refusal: Any) -> None:
    decision = score(compliance((), refusal=refusal), output)
    assert (decision.status, decision.passed) == ("skipped", None)
    assert "this text has none" in decision.reason


def test_an_answer_in_another_language_is_skipped_for_refusals() -> None:
    german = "Es tut mir leid, aber ich kann dir dabei nicht helfen."
    alone = score(compliance("refusal"), german)
    assert (alone.status, alone.passed) == ("skipped", None)
    assert "reads refusals only in English" in alone.reason
    both = score(compliance(["pii", "refusal"]), german)
    assert both.status == "skipped"
    assert both.reason.startswith("no pii found, but refusal: ")
    english = score(compliance("refusal"), "The answer is 42.")
    assert english.details["policies"]["refusal"]["language"] == "reads English only"


@pytest.mark.parametrize("output", ["Ouagadougou.", "```js\nconst x = fetch(url)\n```"])
def test_names_and_code_are_answers_in_any_language(output: str) -> None:
    assert score(compliance("refusal"), output).passed


def test_a_pattern_that_takes_too_long_leaves_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_all, "__kwdefaults__", {"seconds": 0.2})

    async def run_and_count() -> tuple[Score, int]:
        careful = compliance((), rules={"r": {"patterns": ["(a|a)*b"]}})
        looking = asyncio.ensure_future(careful("a" * 60))
        turns = 0
        while not looking.done():
            await asyncio.sleep(0.005)
            turns += 1
        return looking.result(), turns

    found, turns = asyncio.run(run_and_count())
    assert (found.status, turns > 3) == ("error", True)
    assert "no verdict on r: the pattern '(a|a)*b' was stopped after 0.2 s of CPU time" in found.reason


def claim_judge(verdict: str, evidence: str) -> Scripted:
    """A judge of claims that gives one verdict, with its evidence."""

    def answer(request: ModelRequest) -> str:
        message = {"number": 1, "reason": "r", "evidence": evidence, "verdict": verdict}
        return f"ANSWER {mark_of(request)}:\n" + json.dumps({"verdicts": [message]})

    return Scripted(answer)


def test_a_judge_decides_on_claims_and_must_quote_the_text() -> None:
    text = "Drink this tea and your flu is gone."
    claims = ["The tea cures flu."]
    yes = compliance((), claims=claims, model=claim_judge("supported", "your flu is gone"))
    found = score(yes, text)
    (place,) = found.details["policies"]["prohibited_claims"]["findings"]
    assert (found.passed, text[place["start"] : place["end"]]) == (False, "your flu is gone")
    assert found.details["policies"]["prohibited_claims"]["judge"]["usage"]["input_tokens"] > 0
    no = compliance((), claims=claims, model=claim_judge("not_stated", ""))
    assert score(no, text).passed
    misquoting = compliance((), claims=claims, model=claim_judge("supported", "it heals"))
    assert score(misquoting, text).status == "error"


def test_own_policies_by_patterns_terms_and_functions() -> None:
    rules = {
        "prices": {"patterns": [r"\$\d+"], "terms": ["special offer"]},
        "short": lambda output: len(output) < 60,
        "cased": {"function": "tests.evaluators.test_safety_compliance:starts_big"},
    }
    strict = compliance((), rules=rules)
    assert score(strict, "Welcome.").reason == "the output follows all 3 policies"
    found = score(strict, "now: a Special  Offer for $50!")
    assert found.value == pytest.approx(1 / 3)
    findings = found.details["policies"]["prices"]["findings"]
    assert [(one["kind"], one["excerpt"]) for one in findings] == [
        ("term", "special offer"),
        ("pattern", "… (3 characters)"),
    ]
    assert found.details["policies"]["cased"]["details"] == {"first": "n"}
    assert found.details["method"] == "local+function"


def starts_big(output: str) -> dict[str, Any]:
    """A policy in Python, found by its address."""
    return {"passed": output[0].isupper(), "details": {"first": output[0]}}


def test_own_policies_in_words_are_held_by_the_judge() -> None:
    judge = choosing("VERDICT", "broken")
    found = score(compliance((), rules={"tone": "Never promise a refund."}, model=judge), "Refund!")
    assert found.reason == "tone: Because."
    assert block(judge.asked[0], "POLICY") == "Never promise a refund."
    assert "kept" in asked_text(judge.asked[0])
    kept = compliance((), rules={"tone": {"text": "Be kind.", "terms": ["fool"]}}, model=choosing("VERDICT", "kept"))
    assert score(kept, "Hello.").details["policies"]["tone"]["method"] == "local+judge"
    assert not score(kept, "You fool.").passed


def test_a_policy_without_a_verdict_is_an_error_unless_another_is_broken() -> None:
    judge = Scripted(failing)
    both = compliance("pii", refusal="forbidden", model=judge)
    open_one = score(both, "Paris.")
    assert (open_one.status, open_one.passed) == ("error", None)
    assert "no verdict on refusal" in open_one.reason
    broken = score(both, "ann@mailbox.org")
    assert (broken.status, broken.value) == ("ok", 0.0)
    assert "no verdict on refusal" in broken.reason
    claims = compliance((), claims="x is y", model=judge)
    assert score(claims, "Paris.").status == "error"


def test_a_rule_that_skips_leaves_the_whole_undecided() -> None:
    rules = {"silent": lambda output: None}
    assert score(compliance((), rules=rules), "Paris.").status == "skipped"
    both = score(compliance("pii", rules=rules), "Paris.")
    assert (both.status, both.reason.partition(":")[0]) == ("skipped", "no pii found, but silent")
    assert score(compliance("pii", rules=rules), "Write to ann@mailbox.org").passed is False
    mixed = {"silent": {"terms": ["x"], "function": lambda output: None}}
    assert score(compliance((), rules=mixed), "Paris.").status == "skipped"


@each_row(
    ("options", "message"),
    [
        ({"policies": ("pi", "secret")}, "did you mean 'pii'?"),
        ({"policies": ()}, "no policy is selected"),
        ({"policies": (1,)}, "policies must be non-empty strings, got (1,)"),
        ({"policies": "prohibited_claims"}, "it needs the claims"),
        ({"refusal": "maybe"}, "refusal must be 'forbidden', 'required' or None"),
        ({"near": 2}, "near must be between 0 and 1, got 2"),
        ({"rules": {"pii": "x"}}, "a built-in policy has this name"),
        ({"rules": {"tone": "Be kind."}}, "needs a judge"),
        ({"rules": {"r": {"pattern": "x"}}}, "did you mean 'patterns'?"),
        ({"rules": {"r": {"patterns": ["("]}}}, "is not a regular expression"),
        ({"rules": {"r": {"patterns": ["x*"]}}}, "would match everywhere"),
        ({"rules": {"r": {"terms": [""]}}}, "terms must be non-empty strings, got ['']"),
        ({"rules": {"r": {}}}, "a policy is a function"),
        ({"rules": {"r": 3}}, "a policy is a function"),
        ({"rules": {"r": {"function": "nowhere:here"}}}, "nowhere"),
        ({"judge": "nobody:x"}, "nobody"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_made(options: Any, message: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        compliance(**options)
    assert message in str(caught.value)


def test_all_problems_of_the_policies_are_reported_at_once() -> None:
    with pytest.raises(EvaluatorError) as caught:
        compliance(("pi", "secret"), rules={"r": {"patterns": ["("]}})
    assert len(caught.value.problems) == 3


def test_it_can_be_attached_with_its_options_as_data() -> None:
    attached = attach(compliance, parameters={"policies": ["pii"], "rules": {"calm": {"terms": ["damn"]}}})
    found = attached("damn")
    assert found.value == 0.5
    assert attached.spec.parameters == {"policies": ["pii"], "rules": {"calm": {"terms": ["damn"]}}}
    judged = attach(compliance((), claims="a b", model=choosing("ANSWER", "complied")))
    assert judged.spec.parameters["model"] == "scripted:judge"
    assert judged.spec.parameters["policies"] == ["prohibited_claims"]
