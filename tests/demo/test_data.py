"""The demonstration's passages and questions keep their promises."""

from __future__ import annotations

from collections import Counter

from inline_snapshot import snapshot

from proctor.core import resources
from proctor.demo.answerer import UNKNOWN, Passage, knowledge
from proctor.records import codec
from proctor.records.sample import Sample


def questions() -> list[Sample[str, str]]:
    """The shipped questions."""
    lines = resources.text("demo", "questions.jsonl").splitlines()
    return [codec.decode(line, Sample[str, str]) for line in lines]


def passages() -> dict[str, Passage]:
    """The shipped passages by id."""
    return {passage.id: passage for passage in knowledge()}


def answerable() -> list[Sample[str, str]]:
    """The questions that a passage answers."""
    return [sample for sample in questions() if "unanswerable" not in sample.tags]


def test_every_id_is_unique() -> None:
    """65 passages and 120 questions, each with an id of its own."""
    assert len(passages()) == len(knowledge()) == 65
    assert len({sample.id for sample in questions()}) == len(questions()) == 120


def test_no_question_occurs_twice() -> None:
    """A repeated question would count twice."""
    assert len({sample.input for sample in questions()}) == 120


def test_the_questions_are_of_four_kinds() -> None:
    """Each question has exactly one tag, its kind."""
    assert Counter(tag for sample in questions() for tag in sample.tags) == snapshot(
        {"direct": 77, "paraphrase": 13, "trap": 22, "unanswerable": 8}
    )
    assert all(len(sample.tags) == 1 for sample in questions())


def test_every_expected_answer_stands_in_one_sentence_of_its_passage() -> None:
    """So a perfect answerer could pass every question by quoting."""
    for sample in answerable():
        assert sample.expected is not None
        sentences = passages()[sample.context].sentences
        assert any(sample.expected.lower() in s.lower() for s in sentences), sample.id


def test_no_citation_gives_an_answer_away() -> None:
    """The id of a passage never holds an expected answer, which would pass by the citation."""
    for sample in answerable():
        assert sample.expected is not None
        assert not any(sample.expected.lower() in name for name in passages()), sample.id


def test_every_cluster_is_a_passage() -> None:
    """Questions on one passage belong together; the answer's passage is the cluster."""
    for sample in questions():
        assert sample.cluster is None or sample.cluster in passages()
    assert all(sample.cluster == sample.context for sample in answerable())


def test_what_cannot_be_answered_has_no_source() -> None:
    """The right thing to say there is that one does not know."""
    unanswerable = [sample for sample in questions() if "unanswerable" in sample.tags]
    assert {sample.expected for sample in unanswerable} == {UNKNOWN}
    assert {sample.context for sample in unanswerable} == {None}


def test_passages_are_short() -> None:
    """Two to four sentences, none so long that an answer would not be brief."""
    for passage in knowledge():
        assert 2 <= len(passage.sentences) <= 4, passage.id
        assert all(len(sentence.split()) <= 30 for sentence in passage.sentences), passage.id
