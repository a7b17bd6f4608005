"""Human labels and judge cards, from the command line to the gate."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Sample, Score, attach, evaluate
from proctor.errors import ConfigError, InvalidRecord, UsageError
from proctor.history.sqlite import SQLiteHistory
from proctor.records.gate import GateResult
from proctor.records.label import HumanLabel, LabelledItem, current_labels
from proctor.validity.cards import (
    LabelledOutput,
    _measure_agreement,
    build_card,
    correct_rate,
    count_labelled,
    weigh_labels,
)
from proctor.validity.describe_card import _describe_rates, describe_card, list_cards, require_cards
from proctor.validity.drawing import (
    JudgedOutput,
    allocate,
    digest_evaluator,
    digest_output,
    draw,
    list_judged_outputs,
    stratify,
)
from proctor.validity.items import collect_verdicts
from proctor.validity.panels import build_panel
from tests.support import run_command
from tests.tables import each_row

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def is_good(number: int) -> bool:
    """The verdict of people: two in three outputs are good."""
    return number % 3 != 0


def judge(output: str) -> Score:
    """A recorded judge that is wrong on every tenth output."""
    number = int(output)
    passed = is_good(number) != (number % 10 == 0)
    return Score(float(passed), passed)


def rule(output: str) -> Score:
    """A second opinion that passes everything."""
    return Score(1.0, bool(output))


@pytest.fixture
def history(tmp_path: Path) -> SQLiteHistory:
    """A run of 120 outputs with two evaluators."""
    store = SQLiteHistory(tmp_path / ".proctor" / "history.db")
    samples: list[Sample[str, str]] = [
        Sample(f"s{i:03}", str(i), metadata={"half": "first" if i < 60 else "second"}) for i in range(120)
    ]
    evaluate(lambda text: text, samples, [judge, rule], history=store)
    return store


def label(store: SQLiteHistory, sample: str, passed: bool | None, **fields: object) -> HumanLabel:
    """A label of the judge's question."""
    run = store.find("latest")
    values = {"evaluator": "judge", "annotator": "ann", "labelled_at": NOW, **fields}
    return HumanLabel(f"id-{sample}-{values}", run.run_id, sample, passed=passed, **values)  # type: ignore[arg-type]


def import_drawn(folder: Path, size: int, strategy: str = "random") -> None:
    """Label what a session would ask, with people's verdicts, by way of a file."""
    arguments = ("label", "latest", "--evaluator", "judge", "--strategy", strategy)
    drawn = json.loads(run_command(*arguments, "--sample-size", str(size), "--json", cwd=folder).stdout)["drawn"]
    rows = [{"sample": item["sample_id"], "passed": is_good(int(item["sample_id"][1:]))} for item in drawn]
    path = folder / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run_command(*arguments, "--import", path, "--annotator", "ann", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_a_label_has_exactly_one_verdict() -> None:
    """Neither, or both, of a verdict and a skip are refused; so is a time without a zone."""
    with pytest.raises(InvalidRecord, match="exactly one"):
        HumanLabel("1", "r", "s", NOW)
    with pytest.raises(InvalidRecord, match="exactly one"):
        HumanLabel("1", "r", "s", NOW, passed=True, skipped=True)
    with pytest.raises(InvalidRecord, match="time zone"):
        HumanLabel("1", "r", "s", NOW.replace(tzinfo=None), passed=True)


def test_the_latest_label_of_an_annotator_counts(history: SQLiteHistory) -> None:
    """A second label replaces the first, a withdrawn one removes it, and another annotator's stays."""
    first, second = label(history, "s001", True), label(history, "s001", False, labelled_at=NOW + timedelta(1))
    other = label(history, "s001", True, annotator="bob")
    assert history.add_labels([first, other, second]) == 3
    assert history.add_labels([first]) == 0
    assert {(each.annotator, each.passed) for each in history.labels()} == {("ann", False), ("bob", True)}
    gone = label(history, "s001", None, withdrawn=True, labelled_at=NOW + timedelta(2))
    assert current_labels([first, second, gone]) == []


def test_labels_travel_with_their_run_and_are_deleted_with_it(history: SQLiteHistory, tmp_path: Path) -> None:
    """An export holds the labels, an import restores them, and deleting the run deletes them."""
    history.add_labels([label(history, "s001", True)])
    run_command("history", "export", "runs.jsonl", cwd=tmp_path)
    done = run_command("history", "import", "runs.jsonl", "--history", "copy.db", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    copy = SQLiteHistory(tmp_path / "copy.db")
    assert copy.labels() == history.labels()
    copy.delete(copy.find("latest").run_id)
    assert copy.labels() == []


def test_a_draw_is_repeatable_and_extends(history: SQLiteHistory) -> None:
    """The same seed gives the same outputs, a larger draw begins with the smaller one, strata have their share."""
    run = history.find("latest")
    outputs = list(list_judged_outputs(run.run_id, history.results(run.run_id), "judge"))
    small, large = draw(outputs, "random", 10), draw(outputs, "random", 30)
    assert [each.output for each in large[:10]] == [each.output for each in small]
    assert {each.probability for each in large} == {0.25}
    assert draw(outputs, "random", 10, seed=1) != small
    stratified = draw(outputs, "stratified", 20)
    assert len(stratified) == 20
    assert sum(not each.output.passed for each in stratified) >= 5
    disputed = draw(outputs, "disagreement", 10)
    assert all(each.output.disagreements and each.probability is None for each in disputed)


def make_outputs(*groups: tuple[int, bool, float | None]) -> list[JudgedOutput]:
    """Outputs of groups: how many, the verdict and the score."""
    outputs = []
    for group, (count, passed, score) in enumerate(groups):
        items = (LabelledItem("r", f"{group}-{i}", "default", 0, "judge") for i in range(count))
        outputs += [JudgedOutput(item, passed, (), str(item.sample_id), 1, "", score) for item in items]
    return outputs


def test_labels_go_where_the_verdict_is_uncertain() -> None:
    """Of 20 labels, 80 outputs of score 1 and 20 of score .5 get 20 × 17.4 / 27.4 = 13 and 7 (Neyman).

    Sure scores count as 95%: 80 √(.95 × .05) = 17.4 and 20 × √(.5 × .5) = 10. Without scores it is 16 and 4.
    """
    assert allocate(20, stratify(make_outputs((80, True, 1.0), (20, True, 0.5)))) == {(True, 4): 13, (True, 2): 7}
    assert allocate(20, stratify(make_outputs((80, True, None), (20, False, None)))) == {(True, -1): 15, (False, -1): 5}
    drawn = draw(make_outputs((80, True, 1.0), (20, True, 0.5)), "stratified", 20)
    assert {(each.output.score, each.probability) for each in drawn} == {(1.0, 13 / 80), (0.5, 7 / 20)}


@given(
    st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.sampled_from([None, 0.0, 0.5, 1.0])), min_size=1),
    st.integers(1, 120),
)
def test_a_stratified_draw_has_its_size_and_probabilities(
    groups: list[tuple[int, bool, float | None]], size: int
) -> None:
    """As many outputs as asked for, two or more of each stratum if possible, and 1 / probability sums to all."""
    outputs = make_outputs(*groups)
    drawn, strata = draw(outputs, "stratified", size), stratify(outputs)
    assert len(drawn) == min(size, len(outputs)) == len({each.output.item for each in drawn})
    if size >= 4 * len(strata):
        assert sum(1 / (each.probability or 1) for each in drawn) == pytest.approx(len(outputs))
        sizes = {key: sum(each.output in group for each in drawn) for key, group in strata.items()}
        assert all(count >= min(2, len(strata[key])) for key, count in sizes.items())
    weighted = weigh_labels(
        outputs, {each.output.item: True for each in drawn}, {each.output.item: each.probability for each in drawn}
    )
    assert sum(item.weight for item in weighted) == pytest.approx(len(drawn))


def test_weights_are_inverse_inclusion_probabilities() -> None:
    """80 sure outputs with 8 labels and 20 unsure ones with 10 weigh 10 to 2, scaled to 18 labels."""
    outputs = make_outputs((80, True, 1.0), (20, True, 0.5))
    chosen = {output.item: 0.1 for output in outputs[:8]} | {output.item: 0.5 for output in outputs[80:90]}
    weighted = weigh_labels(outputs, dict.fromkeys(chosen, True), chosen)
    assert {round(item.weight, 9) for item in weighted} == {1.8, 0.36}
    # A file may tell other probabilities within a stratum.
    other = {item: (0.1 if index < 4 else 0.2) for index, item in enumerate(chosen)}
    first, last = (weigh_labels(outputs, dict.fromkeys(other, True), other)[index].weight for index in (0, 7))
    assert first == pytest.approx(2 * last)


def test_a_session_is_blind_and_can_be_resumed(history: SQLiteHistory, tmp_path: Path) -> None:
    """Keys label, undo, skip and comment; the verdict is not shown; the next session continues."""
    arguments = ("label", "latest", "--evaluator", "judge", "--sample-size", "4", "--annotator", "ann")
    with mock.patch("sys.stdin", io.StringIO("p\nu\nf\nc\nunclear\ns\nq\n")):
        shown = run_command(*arguments, cwd=tmp_path).stdout
    assert "1 of 4 drawn outputs labelled, 1 skipped by ann" in shown
    assert "score" not in shown
    assert "judge" not in shown.replace("judge card", "")
    assert [(each.passed, each.skipped, each.comment) for each in history.labels()] == [
        (False, False, ""),
        (None, True, "unclear"),
    ]
    with mock.patch("sys.stdin", io.StringIO("p\np\n")):
        shown = run_command(*arguments, cwd=tmp_path).stdout
    assert "1 of 4" not in shown
    assert "3 of 4 drawn outputs labelled, 1 skipped" in shown


def test_an_import_reports_all_mistakes_at_once(history: SQLiteHistory, tmp_path: Path) -> None:
    """Unknown samples, unreadable verdicts and unknown columns are listed together, and nothing is stored."""
    path = tmp_path / "labels.csv"
    path.write_text("sample_id,passed,mood\nnobody,true,\ns001,maybe,\ns002,true,good\n")
    done = run_command(
        "label", "latest", "--evaluator", "judge", "--import", path, "--strategy", "random", cwd=tmp_path
    )
    assert done.returncode == 2
    for text in ("no verdict on sample 'nobody'", "got 'maybe'", "unknown column 'mood'", "labels.csv:3"):
        assert text in done.stderr
    path.write_text("sample_id,passed\ns001,true\n")
    done = run_command("label", "latest", "--evaluator", "judge", "--import", path, cwd=tmp_path)
    assert "strategy is missing" in done.stderr
    assert history.labels() == []


@pytest.mark.parametrize(("name", "text"), [("a.csv", ""), ("a.csv", "sample_id,passed\n"), ("a.jsonl", "\n")])
def test_a_file_without_labels_is_refused(history: SQLiteHistory, tmp_path: Path, name: str, text: str) -> None:
    """An empty file, or one with a header only, is a mistake: exit code 2."""
    assert history.find("latest")
    (tmp_path / name).write_text(text)
    done = run_command("label", "latest", "--evaluator", "judge", "--import", name, cwd=tmp_path)
    assert done.returncode == 2
    assert f"{name}: the file has no labels" in done.stderr


def test_labels_are_imported_for_the_same_question_only(tmp_path: Path) -> None:
    """Another model with the same criterion gets the labels; another criterion needs --same-question."""
    store = SQLiteHistory(tmp_path / ".proctor" / "history.db")
    samples: list[Sample[str, str]] = [Sample("s1", "1"), Sample("s2", "2")]

    def run_judge(model: str, criterion: str) -> None:
        def grade(output: str, *, model: str = model, criterion: str = criterion) -> Score:
            return Score(1.0, bool(output and model and criterion))

        evaluator = attach(grade, name="judge", parameters={"model": model, "criterion": criterion})
        evaluate(lambda text: text, samples, [evaluator], history=store)

    arguments = ("label", "latest", "--evaluator", "judge")
    run_judge("a", "Is it right?")
    store.add_labels([label(store, "s1", True, evaluator_digest=digest_evaluator(store.find("latest"), "judge"))])
    for name in ("labels.csv", "labels.jsonl"):
        run_command(*arguments, "--export", name, cwd=tmp_path)
    run_judge("b", "Is it right?")
    assert run_command(*arguments, "--import", "labels.csv", cwd=tmp_path).stdout == "imported 1 label\n"
    run_judge("b", "Is it rude?")
    for name in ("labels.csv", "labels.jsonl"):
        refused = run_command(*arguments, "--import", name, cwd=tmp_path)
        assert refused.returncode == 2
        assert "asks another question" in refused.stderr
        assert "--same-question" in refused.stderr.partition("Fix:")[2]
    done = run_command(*arguments, "--import", "labels.csv", "--same-question", cwd=tmp_path)
    assert done.stdout == "imported 1 label\n"


def test_a_session_counts_skipped_outputs_apart(history: SQLiteHistory, tmp_path: Path) -> None:
    """Three labels and a skip are not four labels."""
    assert history.find("latest")
    with mock.patch("sys.stdin", io.StringIO("p\nf\ns\np\n")):
        arguments = ("label", "latest", "--evaluator", "judge", "--sample-size", "4", "--annotator", "bob")
        shown = run_command(*arguments, cwd=tmp_path).stdout
    assert "3 of 4 drawn outputs labelled, 1 skipped by bob" in shown


def test_exported_labels_import_again_without_change(history: SQLiteHistory, tmp_path: Path) -> None:
    """A CSV export has every field and adds nothing when it is imported again."""
    import_drawn(tmp_path, 5)
    run_command("label", "latest", "--evaluator", "judge", "--export", "out.csv", cwd=tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert len(rows) == 5
    assert rows[0]["probability"] == str(5 / 120)
    before = history.labels()
    done = run_command("label", "latest", "--evaluator", "judge", "--import", "out.csv", cwd=tmp_path)
    assert done.stdout == "imported 0 labels; 5 were already stored\n"
    assert history.labels() == before


def test_people_count_epochs_from_one(tmp_path: Path) -> None:
    """`judge next`, a label session, JSON and both kinds of files say epoch 1 and 2; stored labels keep 0 and 1."""
    store = SQLiteHistory(tmp_path / ".proctor" / "history.db")
    evaluate(lambda text: text, [Sample("s1", "1"), Sample("s3", "3")], [judge, rule], history=store, epochs=2)
    shown = run_command("judge", "next", "latest", "--evaluator", "judge", cwd=tmp_path).stdout
    assert "s1 (default, epoch 1)" in shown
    assert "s1 (default, epoch 2)" in shown
    assert "epoch 0" not in shown
    path = tmp_path / "labels.csv"
    path.write_text("sample_id,epoch,passed,strategy\ns1,1,true,random\ns1,2,false,random\n")
    arguments = ("label", "latest", "--evaluator", "judge")
    assert run_command(*arguments, "--import", path, cwd=tmp_path).returncode == 0
    assert {(each.epoch, each.passed) for each in store.labels()} == {(0, True), (1, False)}
    run_command(*arguments, "--export", "out.csv", cwd=tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert {row["epoch"] for row in rows} == {"1", "2"}
    run_command(*arguments, "--export", "out.jsonl", cwd=tmp_path)
    assert {json.loads(line)["epoch"] for line in (tmp_path / "out.jsonl").read_text().splitlines()} == {1, 2}
    for name in ("out.csv", "out.jsonl"):
        assert "imported 0 labels; 2 were" in run_command(*arguments, "--import", name, cwd=tmp_path).stdout
    for command in ((*arguments, "--json"), ("judge", "next", "latest", "--evaluator", "judge", "--json")):
        shown = json.loads(run_command(*command, cwd=tmp_path).stdout)
        assert {item["epoch"] for item in (shown.get("drawn") or shown["random"])} == {1, 2}
    reasons = {"0": "epoch 0 does not exist: epochs are counted from 1", "3": "the last is 2", "": "epoch is missing"}
    for epoch, what in reasons.items():
        path.write_text(f"sample_id,epoch,passed,strategy\ns1,{epoch},true,random\n")
        refused = run_command(*arguments, "--import", path, cwd=tmp_path)
        assert refused.returncode == 2
        assert what in refused.stderr
        assert "Fix: count epochs from 1" in refused.stderr
    with mock.patch("sys.stdin", io.StringIO("q\n")):
        asked = run_command(*arguments, "--sample-size", "4", "--annotator", "bob", cwd=tmp_path).stdout
    assert re.search(r"sample s\d, epoch [12] of 2", asked)


def test_a_card_measures_the_judge(history: SQLiteHistory, tmp_path: Path) -> None:
    """With all 120 outputs labelled: 108 equal verdicts, 12 wrong ones, and the rate of the labels, 80 of 120."""
    import_drawn(tmp_path, 120)
    card = build_card(history, history.find("latest"), "judge", by="half")
    assert (card.state, card.n) == ("ok", 120)
    # Of the multiples of ten, 0, 30, 60 and 90 are multiples of three too.
    assert card.confusion == {"both_passed": 72, "only_people": 8, "only_judge": 4, "both_failed": 36}
    assert card.agreement
    assert card.agreement.share
    assert card.agreement.share.value == pytest.approx(0.9)
    assert card.sensitivity
    assert card.sensitivity.value == pytest.approx(72 / 80)
    assert card.specificity
    assert card.specificity.value == pytest.approx(36 / 40)
    assert card.rate
    assert card.rate.value == pytest.approx(80 / 120)
    assert [(part.name, part.n) for part in card.slices] == [("first", 60), ("second", 60)]


def test_disagreements_do_not_enter_the_figures(history: SQLiteHistory, tmp_path: Path) -> None:
    """Labels of disagreements alone make no card; with random labels they change no figure."""
    import_drawn(tmp_path, 20, "disagreement")
    assert build_card(history, history.find("latest"), "judge").state == "none"
    import_drawn(tmp_path, 40)
    card = build_card(history, history.find("latest"), "judge")
    assert card.labels["disagreement"] >= 1
    assert card.n <= 40


def test_stratified_labels_are_weighted(history: SQLiteHistory, tmp_path: Path) -> None:
    """A stratified draw of 60 covers the true rate of 2 in 3, and counts verdicts as they occur."""
    import_drawn(tmp_path, 60, "stratified")
    card = build_card(history, history.find("latest"), "judge")
    assert card.rate is not None
    low, high = card.rate.interval
    assert low < 2 / 3 < high
    shares = (card.sensitivity, card.specificity)
    assert all(share is not None and share.effective_n <= share.n for share in shares)
    assert "weighted by inclusion probability; n and the counts above are not" in "\n".join(describe_card(card))


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0.1, 10)), min_size=1, max_size=30))
def test_weighted_labels_are_never_worth_more_than_their_number(rows: list[tuple[bool, bool, float]]) -> None:
    """A share of labels with any weights is worth at most as many independent labels as there are."""
    outputs = make_outputs(*((1, passed, None) for _, passed, _ in rows))
    items = [LabelledOutput(output, row[0], row[2]) for output, row in zip(outputs, rows, strict=True)]
    measured = _measure_agreement(items)
    for share in (measured["agreement"].share, measured["sensitivity"], measured["specificity"]):
        assert share is None or (share.effective_n <= share.n + 1e-9 and 0 <= share.value <= 1)


def test_a_judge_that_adds_nothing_has_no_corrected_row() -> None:
    """The judge passes one output in two whatever people say, so the row is that of the labels alone."""
    outputs = make_outputs((40, True, None), (40, False, None))
    items = [LabelledOutput(output, i % 4 < 2, 1.0) for i, output in enumerate(outputs[20:60])]
    rate = correct_rate(outputs, items, stratified=False)
    assert rate is not None
    assert not rate.helps
    rows = [row.split("  ")[1].strip() for row in _describe_rates(rate)]
    assert rows == ["raw pass rate", "labels alone"]


@each_row(
    ("people", "unlabelled", "reason"),
    [
        ("PPpfF" * 8, 0, "all 40 outputs with a verdict are labelled, so no verdict without a label is left"),
        ("PPPFFFFF" * 5, 1, "only 1 verdict without a label is left"),
        (
            "PPPP" * 10,
            40,
            "the labelled outputs are all alike: people passed all 40 of them and the judge passed all 40",
        ),
        ("PPPp" * 10, 40, "the labelled outputs are all alike: the judge passed all 40 of them"),
        ("PfPf" * 10, 40, "the labelled outputs are all alike: people passed all 40 of them"),
        ("PpFf" * 10, 40, "the interval of kappa on its labels, -0.31 to 0.32, includes 0"),
        (
            "ffpp" * 10,
            40,
            "the interval of kappa on its labels, -1.00 to -0.69, is below 0: it agrees with people less",
        ),
        ("PPPFFFFF" * 5, 40, ""),
    ],
)
def test_a_card_gives_the_reason_why_its_judge_adds_nothing(people: str, unlabelled: int, reason: str) -> None:
    """Capitals are labels that agree with the judge: P and f are passed by people, P and p by the judge."""
    outputs = make_outputs(*((1, letter in "Pp", None) for letter in people), (unlabelled, True, None))
    labelled = zip(outputs, people, strict=False)
    items = [LabelledOutput(output, letter in "Pf", 1.0) for output, letter in labelled]
    rate = correct_rate(outputs, items, stratified=False)
    assert rate is not None
    assert rate.reason.startswith(reason)
    assert rate.helps is not bool(reason)


@given(st.text("PpFf", min_size=2, max_size=40), st.integers(0, 4), st.integers(1, 5), st.booleans())
def test_the_reason_of_a_card_is_true(people: str, unlabelled: int, cluster: int, stratified: bool) -> None:
    """Each reason is given only if it holds, and a judge that helps has none."""
    outputs = make_outputs(*((1, letter in "Pp", None) for letter in people), (unlabelled, True, None))
    outputs = [output._replace(cluster=str(i // cluster)) for i, output in enumerate(outputs)]
    items = [LabelledOutput(output, letter in "Pf", 1.0) for output, letter in zip(outputs, people, strict=False)]
    rate = correct_rate(outputs, items, stratified)
    assert rate is not None
    assert bool(rate.reason) is not rate.helps
    assert ("are labelled, so" in rate.reason) <= (not unlabelled)
    is_constant = not set("Pf") & set(people) or not set("Fp") & set(people)
    is_constant = is_constant or not set("Pp") & set(people) or not set("Ff") & set(people)
    assert ("all alike" in rate.reason) <= is_constant
    if "includes 0" in rate.reason:
        low, high = (float(end) for end in re.findall(r"-?\d\.\d\d", rate.reason))
        assert low <= 0 <= high
    if "is below 0" in rate.reason:
        assert max(float(end) for end in re.findall(r"-?\d\.\d\d", rate.reason)) <= 0
    assert (" left" in rate.reason and "only" in rate.reason) <= (unlabelled > 0)


def test_the_raw_rate_has_the_interval_of_the_report() -> None:
    """With epochs too: 12 samples with 3 epochs each, of which 30 pass."""

    def verdict(output: str) -> bool:
        return output != "b"

    calls = iter("aaabaabaaaaaabbabaaaaaaaaaaaaaaaaaab")
    data = [{"id": str(n), "input": ""} for n in range(12)]
    report = evaluate(lambda _: next(calls), data, verdict, epochs=3, concurrency=1, history=False)
    outputs = list(list_judged_outputs("r", report.results, "verdict"))
    items = [LabelledOutput(output, output.passed, 1.0) for output in outputs[:20]]
    rate = correct_rate(outputs, items, stratified=False)
    assert rate is not None
    metric = report.metrics["verdict.pass_rate"]
    assert (rate.raw.value, rate.raw.n) == (metric.value, 36)
    assert rate.raw.interval == metric.interval


def test_a_changed_judge_has_a_stale_card(history: SQLiteHistory, tmp_path: Path) -> None:
    """Another version of the judge does not inherit the card."""
    import_drawn(tmp_path, 40)
    samples: list[Sample[str, str]] = [Sample(f"s{i:03}", str(i)) for i in range(120)]

    def changed(output: str) -> Score:
        return Score(1.0, bool(output))

    changed.__name__ = "judge"
    evaluate(lambda text: text, samples, {"judge": changed}, history=history)
    card = build_card(history, history.find("latest"), "judge")
    assert (card.state, card.n, card.rate) == ("stale", 0, None)


def test_a_gate_requires_a_card(history: SQLiteHistory, tmp_path: Path) -> None:
    """Without labels, or below the kappa asked for, the gate is inconclusive; a good card lets it pass."""
    arguments = ("gate", "latest", "--fail-under", "judge.pass_rate=0.5", "--require-card")
    refused = run_command(*arguments, cwd=tmp_path)
    assert refused.returncode == 2
    assert "no evaluator that asks a model" in refused.stderr
    import_drawn(tmp_path, 20)
    few = run_command(*arguments, cwd=tmp_path)
    assert few.returncode == 4
    assert "a card needs 30" in " ".join(few.stdout.split())
    import_drawn(tmp_path, 60)
    assert run_command(*arguments, cwd=tmp_path).returncode == 0
    strict = run_command(*arguments, "0.99", cwd=tmp_path)
    assert strict.returncode == 4
    fix, *_ = re.findall(r"Fix: improve the judge: proctor (.*?) lists the labelled", " ".join(strict.stdout.split()))
    assert "People and the judge differ on " in run_command(*fix.split(), cwd=tmp_path).stdout
    assert "card ok" in run_command("show", "latest", cwd=tmp_path).stdout


def test_a_gate_asks_for_the_cards_of_its_own_judges(history: SQLiteHistory) -> None:
    """Both evaluators have labels; a check of one asks for its card, a check of all or of none for all or none."""
    run, digest = history.find("latest"), "d"
    for name in ("judge", "rule"):
        history.add_labels([label(history, "s001", True, evaluator=name, evaluator_digest=digest)])
    passed = GateResult(run.run_id, "", "pass", "", (), ())

    def list_cards(*metrics: str) -> list[str]:
        return [check.name for check in require_cards(passed, history, run, 0.4, metrics).checks]

    assert list_cards("judge.pass_rate") == list_cards("judge") == list_cards("judge.p50") == ["card.judge"]
    assert list_cards("rule.mean", "latency_ms.mean") == ["card.rule"]
    assert list_cards("mean_score") == list_cards("own_metric") == ["card.judge", "card.rule"]
    with pytest.raises(ConfigError, match="no check of the gate depends on a judge; the judges of the run are"):
        list_cards("latency_ms.mean", "success_rate")


def test_a_label_of_another_evaluation_makes_no_card(history: SQLiteHistory) -> None:
    """One label of `rule` in a run of another name is nothing to this run; in a run of its name it is, and says so."""
    data: list[Sample[str, None]] = [Sample("x", "1")]
    other, earlier, run = (
        evaluate(lambda text: text, data, [judge, rule], name=name, history=history, progress=False).metadata
        for name in ("other", "same", "same")
    )
    assert other is not None
    assert earlier is not None
    assert run is not None
    digest = digest_evaluator(run, "rule")
    cards = []
    for labelled in (other, earlier, run):
        item = HumanLabel(
            f"1-{labelled.run_id}", labelled.run_id, "x", NOW, passed=True, evaluator="rule", evaluator_digest=digest
        )
        history.add_labels([item])
        cards.append({card["evaluator"]: card["labels"] for card in list_cards(history, run)})
    assert cards == [
        {},
        {"rule": "2 outputs of 2 other runs (2 random)"},
        {"rule": "3 outputs of 3 runs, 1 of them of this run (3 random)"},
    ]


@pytest.mark.parametrize("people", [True, False])
def test_a_panel_is_not_measured_by_labels_that_are_all_alike(history: SQLiteHistory, people: bool) -> None:
    """40 equal labels raise an error with the number and a command, not a table of numbers."""
    history.add_labels([label(history, f"s{i:03}", people) for i in range(40)])
    with pytest.raises(
        UsageError, match=f"people {'passed' if people else 'failed'} all 40 labelled outputs"
    ) as caught:
        build_panel(history, history.find("latest"), "judge", ["judge", "rule"])
    assert "--strategy stratified" in (caught.value.fix or "")


@pytest.mark.parametrize(
    ("evaluator", "people", "reason", "fix"),
    [
        ("judge", True, "people passed all 40 labelled outputs", "--strategy stratified --sample-size 80"),
        ("judge", False, "people failed all 40 labelled outputs", "--strategy stratified --sample-size 80"),
        ("rule", None, "the judge passed all 40 labelled outputs", "add samples whose outputs deserve the other"),
        ("rule", True, "people passed all 40 labelled outputs and the judge passed all 40", "add samples"),
    ],
)
def test_verdicts_that_are_all_alike_cannot_tell(
    history: SQLiteHistory, tmp_path: Path, evaluator: str, people: bool | None, reason: str, fix: str
) -> None:
    """Kappa is undefined if people or the judge give one verdict only; the gate is inconclusive and says why."""
    path = tmp_path / "labels.csv"
    rows = [f"s{i:03},{is_good(i) if people is None else people}" for i in range(40)]
    path.write_text("\n".join(["sample_id,passed", *rows]))
    arguments = ("label", "latest", "--evaluator", evaluator, "--strategy", "random", "--import", path)
    assert run_command(*arguments, cwd=tmp_path).returncode == 0
    card = build_card(history, history.find("latest"), evaluator)
    assert (card.state, card.n) == ("cannot tell", 40)
    assert card.agreement is not None
    assert (card.agreement.kappa, card.agreement.kappa_interval) == (None, None)
    shown = run_command("judge", "card", evaluator, cwd=tmp_path).stdout
    assert f"kappa          cannot tell: {reason}" in shown
    assert f"Cannot tell how far this judge agrees with people: {reason}" in shown
    assert fix in shown
    if people is not None:
        name, verb = ("specificity", "fail") if people else ("sensitivity", "pass")
        assert f"{name}    cannot tell: people {verb} none of the 40 labelled outputs" in shown
    gate = run_command("gate", "latest", "--fail-under", "pass_rate=0.1", "--require-card", cwd=tmp_path)
    assert gate.returncode == 4
    assert f"card cannot tell: {reason}" in " ".join(gate.stdout.split())


def test_next_lists_are_for_the_number_and_for_mistakes(history: SQLiteHistory, tmp_path: Path) -> None:
    """One list is random, the other holds outputs on which the evaluators disagree."""
    shown = json.loads(
        run_command("judge", "next", "latest", "--evaluator", "judge", "--limit", "5", "--json", cwd=tmp_path).stdout
    )
    assert len(shown["random"]) == 5
    # The rule passes everything, so a disagreement is an output that the judge fails.
    assert all(judge(str(int(item["sample_id"][1:]))).passed is False for item in shown["disagreement"])


def test_a_card_lists_the_mistakes_of_the_judge(history: SQLiteHistory, tmp_path: Path) -> None:
    """The judge is wrong on every tenth output; labels of disagreements count here, disputes and skips do not."""
    right = [label(history, f"s{i:03}", is_good(i)) for i in (1, 2, 3, 10)]
    wrong = label(history, "s030", is_good(30), strategy="disagreement")
    disputed = [label(history, "s020", passed, annotator=name) for name, passed in (("a", True), ("b", False))]
    skipped = label(history, "s040", None, skipped=True)
    digest = digest_evaluator(history.find("latest"), "judge")
    labels = [*right, wrong, *disputed, skipped]
    unlabelled = run_command("judge", "card", "judge", "--mistakes", cwd=tmp_path).stdout
    assert re.search(r"Fix: proctor label .*\n\nIts mistakes are unknown: no output has a label for this", unlabelled)
    history.add_labels([msgspec.structs.replace(each, evaluator_digest=digest) for each in labels])
    shown = run_command("judge", "card", "judge", "--mistakes", cwd=tmp_path).stdout
    run_id = history.find("latest").run_id
    assert shown.endswith(
        "\nPeople and the judge differ on 2 of 5 labelled outputs:\n"
        f"  people pass, the judge fails: s010 (default, epoch 1): proctor show {run_id} --sample s010\n"
        f"  people fail, the judge passes: s030 (default, epoch 1): proctor show {run_id} --sample s030\n"
    )
    listed = json.loads(run_command("judge", "card", "judge", run_id, "--mistakes", "--json", cwd=tmp_path).stdout)
    assert [(item["sample_id"], item["people"], item["judge"]) for item in listed["mistakes"]] == [
        ("s010", True, False),
        ("s030", False, True),
    ]
    assert listed["labelled"] == 5


def test_a_card_is_of_the_newest_run_that_has_the_judge(history: SQLiteHistory, tmp_path: Path) -> None:
    """A newer run without the judge is passed over, and the run is named; RUN may be an argument or an option."""
    run_id = history.find("latest").run_id
    evaluate(lambda text: text, [Sample("x", "1")], [rule], history=history)
    done = run_command("judge", "card", "judge", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, f"run {run_id} is the newest with judge\n")
    assert run_command("judge", "card", "judge", run_id, cwd=tmp_path).stdout == done.stdout
    assert run_command("judge", "card", "judge", "--run", run_id, cwd=tmp_path).stdout == done.stdout
    assert run_command("judge", "card", "judge", "latest", cwd=tmp_path).returncode == 2
    both = run_command("judge", "card", "judge", run_id, "--run", "latest", cwd=tmp_path)
    assert both.returncode == 2
    assert "Fix: leave out --run" in both.stderr
    assert run_command("judge", "card", "rule", cwd=tmp_path).stderr == ""


def test_two_annotators_have_their_own_agreement(history: SQLiteHistory) -> None:
    """Equal votes decide an output, opposite votes leave it disputed."""
    history.add_labels([label(history, f"s{i:03}", is_good(i)) for i in range(8)])
    history.add_labels([label(history, f"s{i:03}", is_good(i) != (i == 0), annotator="bob") for i in range(8)])
    run = history.find("latest")
    digest = digest_evaluator(run, "judge")
    history.add_labels(
        [label(history, f"s{i:03}", is_good(i), evaluator_digest=digest, labelled_at=NOW) for i in range(8)]
        + [
            label(history, f"s{i:03}", is_good(i) != (i == 0), annotator="bob", evaluator_digest=digest)
            for i in range(8)
        ]
    )
    card = build_card(history, run, "judge")
    assert (card.n, card.disputed) == (7, 1)
    [pair] = card.annotators
    assert (pair.name, pair.n) == ("ann and bob", 8)


@pytest.mark.parametrize(("disputed", "state"), [(0, "ok"), (4, "ok"), (5, "weak")])
def test_a_card_is_weak_if_people_dispute_more_than_a_tenth(history: SQLiteHistory, disputed: int, state: str) -> None:
    """Of 40 outputs, two people may disagree on 4; the card shows every pair, and what was left out."""
    run = history.find("latest")
    digest = digest_evaluator(run, "judge")
    for name, errors in (("ann", 0), ("bob", disputed)):
        votes = [is_good(i) != (i < errors) for i in range(40)]
        history.add_labels(
            [label(history, f"s{i:03}", v, annotator=name, evaluator_digest=digest) for i, v in enumerate(votes)]
        )
    history.add_labels(
        [label(history, "s050", True, annotator="cyd", strategy="disagreement", evaluator_digest=digest)]
    )
    card = build_card(history, run, "judge")
    assert (card.state, card.disputed, card.n, len(card.annotators)) == (state, disputed, 40 - disputed, 1)
    shown = "\n".join(describe_card(card))
    assert "ann and bob: agreement" in shown
    assert ("left out" in shown) == bool(disputed)
    if state == "weak":
        assert "people disagree on 5 of 40 labelled outputs, more than a tenth" in card.reason


def test_a_card_is_weak_if_a_pair_of_annotators_agrees_too_little(history: SQLiteHistory) -> None:
    """With three people no output is disputed, yet the third one answers at random."""
    run = history.find("latest")
    digest = digest_evaluator(run, "judge")
    for name in ("ann", "bob", "cyd"):
        votes = [i % 2 == 0 if name == "cyd" else is_good(i) for i in range(60)]
        history.add_labels(
            [label(history, f"s{i:03}", v, annotator=name, evaluator_digest=digest) for i, v in enumerate(votes)]
        )
    card = build_card(history, run, "judge")
    assert [pair.name for pair in card.annotators] == ["ann and bob", "ann and cyd", "bob and cyd"]
    assert (card.state, card.disputed) == ("weak", 0)
    assert card.reason.startswith("the annotators ann and cyd agree too little (kappa 0.")


@pytest.mark.parametrize(("shared", "left"), [(40, 20), (16, 8)])
def test_disputes_that_leave_too_few_labels_are_for_a_third_person(
    history: SQLiteHistory, shared: int, left: int
) -> None:
    """Two annotators at chance agree on half: more labels of theirs would not help, a third person's do."""
    run = history.find("latest")
    digest = digest_evaluator(run, "judge")
    votes: dict[str, Callable[[int], bool]] = {"ann": lambda i: i % 2 == 0, "bob": lambda i: i % 4 < 2}
    for name, vote in votes.items():
        history.add_labels(
            [label(history, f"s{i:03}", vote(i), annotator=name, evaluator_digest=digest) for i in range(shared)]
        )
    card = build_card(history, run, "judge")
    assert (card.state, card.n, card.disputed) == ("weak", left, left)
    assert card.reason.startswith(f"people disagree on {left} of {shared} labelled outputs; {left} labels without")
    assert card.fix.endswith(f"--sample-size {max(shared, 30)} --annotator NAME")
    assert "a third person label the same outputs" in card.fix


def test_kappa_of_a_few_labels_is_not_shown(history: SQLiteHistory) -> None:
    """Two labels that both differ have kappa -1; below 10 labels the card says that they are too few."""
    run = history.find("latest")
    digest = digest_evaluator(run, "judge")
    history.add_labels(
        [label(history, f"s{i:03}", not judge(str(i)).passed, evaluator_digest=digest) for i in range(9)]
    )
    card = build_card(history, run, "judge")
    assert card.agreement is not None
    assert (card.agreement.kappa, card.agreement.kappa_interval) == (None, None)
    assert any("too few labels (n = 9; kappa needs 10)" in line for line in describe_card(card))
    history.add_labels([label(history, "s009", not judge("9").passed, evaluator_digest=digest)])
    agreement = build_card(history, run, "judge").agreement
    assert agreement is not None
    assert agreement.kappa is not None
    assert agreement.kappa < 0


def test_labels_of_a_rescored_run_count_once(history: SQLiteHistory) -> None:
    """The same 8 labels in a run and in its rescored copy are 8 labels of another version."""
    labels = [label(history, f"s{i:03}", True, output_digest=f"{i}") for i in range(8)]
    assert count_labelled([*labels, *(msgspec.structs.replace(each, run_id="copy") for each in labels)]) == 8


def test_a_panel_needs_labels_and_counts_errors(history: SQLiteHistory, tmp_path: Path) -> None:
    """Without labels the command says what to type; with 120 it counts 12 errors of the judge, 40 of the rule."""
    arguments = ("judge", "panel", "latest", "--evaluator", "judge")
    refused = run_command(*arguments, cwd=tmp_path)
    assert refused.returncode == 2
    assert "proctor label" in refused.stderr
    import_drawn(tmp_path, 120)
    shown = run_command(*arguments, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "wrong on 12: 10.0%" in shown.stdout
    assert "wrong on 40: 33.3%" in shown.stdout
    refused = run_command("judge", "panel", "latest", cwd=tmp_path)
    assert refused.returncode == 2
    assert "Fix: add --evaluator judge, which has 120 labels" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("label", "latest@defalt"), "the run has no configuration 'defalt'"),
        (("judge", "next", "latest@defalt"), "the run has no configuration 'defalt'"),
        (("items", "latest", "--evaluator", "juge"), "no run has an evaluator 'juge'"),
        (("label", "latest", "--evaluator", "juge"), "has no evaluator 'juge'"),
        (("mutate", "latest", "-e", "juge"), "has no evaluator 'juge'"),
    ],
)
def test_an_unknown_name_is_refused_with_what_exists(
    history: SQLiteHistory, tmp_path: Path, arguments: tuple[str, ...], what: str
) -> None:
    """One error with one fix: the nearest name, and all names; the exit code is 2."""
    assert history.find("latest")
    done = run_command(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert what in done.stderr
    assert done.stderr.count("Fix:") == 1
    assert "did you mean" in done.stderr
    assert "Choose one of: " in done.stderr


def test_rescored_runs_are_not_runs_of_their_own(history: SQLiteHistory, tmp_path: Path) -> None:
    """A trend has one point for the run and none for its rescored copy, and so has the item analysis."""
    run = history.find("latest")
    copy = msgspec.structs.replace(run, run_id="copy", rescored_from=run.run_id)
    pairs = [(each, history.results(run.run_id)) for each in (copy, run)]
    verdicts = collect_verdicts(pairs)
    assert verdicts.runs == 1
    assert verdicts.left_out == [f"copy: rescored from run {run.run_id}, which counts already"]
    (tmp_path / "again.py").write_text("def judge(output):\n    return True\n")
    done = run_command("rescore", "latest", "-e", "again.py:judge", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = json.loads(run_command("history", "trend", "pass_rate", "--json", cwd=tmp_path).stdout)
    assert [point["run_id"] for point in shown["points"]] == [run.run_id]


def test_an_output_with_half_a_surrogate_pair_can_be_drawn() -> None:
    """A truncated emoji is part of the digest, and other outputs keep theirs."""
    assert digest_output("ok \ud83d") != digest_output("ok ")
    assert digest_output({"a": 1}) == blake2b(b'{"a":1}', digest_size=8).hexdigest()


def test_commands_quote_names_for_the_shell() -> None:
    """A judge called `tone 2` is one word of the command."""
    from proctor.validity.cards import JudgeCard, _judge_state

    card = _judge_state(JudgeCard("tone 2", "d", "r1", "none"), 0, 0.6)
    assert card.fix.startswith("proctor label r1 --evaluator 'tone 2' --sample-size")
