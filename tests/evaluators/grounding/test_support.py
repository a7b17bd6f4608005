"""Support: what of a sentence stands in a context, worked out by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.embeddings import UNRELATED_WORDS, TextEmbedder
from proctor.evaluators.grounding.features import compute_logit, to_value
from proctor.evaluators.grounding.support import (
    CHANGED_FACTOR,
    COMMON_WORD_PASSAGES,
    DEFAULT_THRESHOLD,
    MAX_EVIDENCE_WORDS,
    MAX_PASSAGES,
    MAX_SCORED_SENTENCES,
    MAX_SENTENCES,
    ContextIndex,
    Grounding,
    check_grounding,
)
from proctor.evaluators.tokenizer import split_words
from tests.tables import each_row

CONTEXT = "The ferry to Bergen leaves at 7 in the morning. It does not carry cars."


class Synonyms:
    """An embedder that knows one pair of words and holds all others for unrelated."""

    name, method = "synonyms", "embeddings"
    SAME = frozenset({"boat", "ferry"})

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.asked += texts
        places = sorted({*UNRELATED_WORDS, *self.asked})
        width = 200
        return [
            [float(place == (0 if text in self.SAME else 1 + places.index(text))) for place in range(width)]
            for text in texts
        ]


def grounded(text: str, *context: str, embedder: Any = "lexical") -> Grounding:
    found = asyncio.run(check_grounding(text, context or (CONTEXT,), TextEmbedder(embedder, "test")))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "coverage", "unsupported"),
    [
        # the ferry leaves: 0.5 + 1 + 1
        ("The ferry leaves.", 1.0, ()),
        # another form of a word is the word
        ("The ferries are leaving.", 2.5 / 3, ()),
        # at 0.5, 9: 2, and the 0.5 for "the", 1 each for ferry and leaves
        ("The ferry leaves at 9.", 3 / 5, ("9",)),
        # a name that is not there weighs 2
        ("The ferry to Oslo leaves.", 3 / 5, ("Oslo",)),
        # the speaker is not in the context
        ("Surely I leave.", 1 / 4, ("Surely", "I")),
        # a number as a word, and an ordinal
        ("It leaves at seven.", 1.0, ()),
        ("It leaves on the 7th.", 1.0 - 0.5 / 4.5, ()),
    ],
)
def test_the_coverage_of_a_sentence_is_the_weight_of_what_stands_in_the_context(
    text: str, coverage: float, unsupported: tuple[str, ...]
) -> None:
    """Function words weigh 0.5, content words 1, numbers, names and speakers 2."""
    (sentence,) = grounded(text).sentences
    assert sentence.features.coverage == pytest.approx(coverage)
    assert sentence.unsupported == unsupported


def test_a_negation_that_is_added_or_left_out_is_a_changed_fact() -> None:
    result = grounded("The ferry never leaves.", "The ferry leaves.")
    assert result.weakest.changes == ("never leaves",)
    assert result.value < CHANGED_FACTOR < DEFAULT_THRESHOLD
    (sentence,) = grounded("It does carry cars.").sentences
    assert sentence.changes == ("(not) carry", "(not) cars")
    assert grounded("It does not carry cars.").weakest.changes == ()


def test_a_negation_elsewhere_in_the_context_supports_nothing() -> None:
    context = ("Oslo is the capital of Norway.", "It was not destroyed in the war.")
    (denied,) = grounded("Oslo is not the capital of Norway.", *context).sentences
    assert denied.changes == ("not capital",)
    (message,) = grounded("It was not destroyed.", *context).sentences
    assert (message.changes, message.features.coverage) == ((), 1.0)


@each_row(
    ("context", "text", "changes"),
    [
        ("The museum opened in 1998.", "The museum opened in Prague in 1998.", ("Prague",)),
        ("The firm opened a new office.", "The firm opened a new office in Prague.", ("Prague",)),
        ("The bridge was built in 1902.", "The bridge was built by Dahl in 1902.", ("Dahl",)),
        ("The museum in Prague opened in 1998.", "The museum opened in Prague in 1998.", ()),
        ("They met in the United States.", "They met in the US.", ()),
    ],
)
def test_a_place_or_person_that_the_context_never_names_is_added(context: str, text: str, changes: Any) -> None:
    (sentence,) = grounded(text, context).sentences
    assert sentence.changes == changes


def test_a_name_for_a_place_that_the_context_describes_is_a_doubt() -> None:
    (sentence,) = grounded("The museum opened in Prague in 1998.", "The museum opened in the city in 1998.").sentences
    assert (sentence.changes, sentence.doubts) == ((), ("the context does not mention Prague",))


@each_row(
    ("context", "text", "is_exchanged"),
    [
        ("We sell a lamp for 25 and a chair for 40.", "The lamp costs 40, the chair 25.", True),
        ("We sell a lamp for 25 and a chair for 40.", "The lamp costs 25, the chair 40.", False),
        ("lamp 25, chair 40", "The lamp costs $40, the chair $25.", True),
        ("lamp 25, chair 40", "The lamp costs $25, the chair $40.", False),
        ("The lamp is 25 dollars, the chair sells for 40 dollars.", "A chair is 25 dollars, a lamp is 40.", True),
        ("The blue team scored 5 goals; the red team got 3.", "The red team scored 5 goals and the blue team 3.", True),
        (
            "The blue team scored 5 goals; the red team got 3.",
            "The red team scored 3 goals and the blue team 5.",
            False,
        ),
        ("Room B holds 50 people, room A 30.", "Room A holds 30 people and room B 50.", False),
        ("Tickets: 12 for adults, 6 for children.", "Adults pay 6, children pay 12.", True),
        ("Tickets: 12 for adults, 6 for children.", "12 is the price for adults; children pay 6.", False),
        ("Bob, aged 40, is married to Ann, who is 30.", "Ann is 30 and Bob is 40.", False),
    ],
)
def test_numbers_that_belong_to_each_other_are_exchanged(context: str, text: str, is_exchanged: bool) -> None:
    """The words between a thing and its number may be other ones."""
    (sentence,) = grounded(text, context).sentences
    assert any("(exchanged)" in change for change in sentence.changes) is is_exchanged


@pytest.mark.parametrize(
    ("context", "text"),
    [
        ("The team won two cups in 2004.", "In 2004, the team won two cups."),
        ("The firm hired 60 workers in May 2021.", "In May 2021 the firm hired 60 workers."),
        ("The club bought three boats and a jetty in 1975.", "In 1975 the club bought a jetty and three boats."),
    ],
)
def test_a_year_may_move_to_the_start_of_its_sentence(context: str, text: str) -> None:
    (sentence,) = grounded(text, context).sentences
    assert sentence.changes == ()


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("Anna bought a red car from Bob in 2018.", ("2018",)),
        ("Anna bought a red car from Carl in 2019.", ("Carl",)),
        ("Bob bought a red car from Anna in 2019.", ("Bob and Anna (exchanged)",)),
        ("Anna bought a blue car from Bob in 2019.", ()),
    ],
)
def test_one_changed_fact_is_enough(text: str, changes: tuple[str, ...]) -> None:
    context = "It is true that Anna bought a red car from Bob in 2019. She drove it to the sea and sold it there."
    result = grounded(f"She drove it to the sea and sold it there. It is true that {text}", context)
    assert result.sentences[1].changes == changes
    assert (result.value < DEFAULT_THRESHOLD) is bool(changes)


FILLER = [f"Nothing of importance happened on day {number}." for number in range(20, 40)]


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("The old bridge at Tay fell in December 1897.", "1897"),
        ("The old bridge at Tay fell in May 1879.", "May (not December)"),
        ("The old bridge at Leith fell in December 1879.", "Leith"),
        ("It was 3 miles long.", "miles (not km)"),
        ("The old bridge at Tay did not fall in December 1879.", "not"),
        ("The old bridge at Tay was 3 km long and fell in December 1897.", "1897"),
    ],
)
def test_a_changed_fact_fails_in_a_long_context_too(claim: str, change: str) -> None:
    """The fact is compared with the passage that matches the claim and with its neighbors."""
    passages = ["The old bridge at Tay fell in December 1879.", "It was 3 km long."]
    for context in (passages, [*FILLER[:10], *passages, *FILLER[10:]]):
        result = grounded(claim, *context)
        assert change in result.weakest.changes
        assert result.value < DEFAULT_THRESHOLD


def test_a_number_that_another_passage_states_is_not_changed() -> None:
    passages = ["The bridge fell in 1879.", *FILLER, "Work on the bridge began in 1871."]
    assert grounded("The bridge fell in 1871.", *passages[:-1]).weakest.changes == ("1871",)
    assert grounded("Work on the bridge began in 1871.", *passages).weakest.changes == ()


def test_a_changed_fact_counts_although_another_sentence_is_weaker() -> None:
    result = grounded("The ferry leaves at 9 in the morning. Wonderful elephants yawn loudly.")
    assert (result.weakest.changes, result.sentences[0].changes) == ((), ("9",))
    assert result.value < CHANGED_FACTOR
    assert result.sentences[0].describe()["unsupported"] == ["9"]


def test_acronyms_and_names_of_peoples_match_their_long_forms() -> None:
    (league,) = grounded("He was in the National Football League.", "He was in the NFL.").sentences
    assert (league.changes, league.features.coverage) == ((), 1.0)
    (people,) = grounded("He met a Norwegian king.", "He met a king of Norway.").sentences
    assert (people.changes, people.features.coverage) == ((), 1.0)


def test_courtesies_and_citation_marks_state_nothing() -> None:
    text = "Sure! Here is what I found:\n\n1. The ferry leaves [4, 5].\n\nI hope this helps!"
    found = grounded(text)
    assert [one.text for one in found.sentences] == ["1. The ferry leaves [4, 5]."]
    assert found.value == grounded("The ferry leaves.").value


def test_only_the_start_of_a_very_long_text_is_checked() -> None:
    found = grounded("The ferry leaves. " * (MAX_SENTENCES + 5))
    assert (len(found.sentences), found.left_out) == (MAX_SENTENCES, 5)


def test_the_shortest_passage_with_the_same_words_is_chosen() -> None:
    message = "Cars without a ticket are left behind."
    longer = "Cars with a ticket come; those without are left behind, or stay."
    (sentence,) = grounded(message, longer, message).sentences
    assert (sentence.passages, sentence.features.coverage, sentence.changes) == ((message,), 1.0, ())


def test_words_in_every_passage_do_not_select_one() -> None:
    filler = [f"The ferry leaves pier {number}." for number in range(COMMON_WORD_PASSAGES + 5)]
    (one,) = grounded("The ferry leaves the lighthouse.", *filler, "The old lighthouse.").sentences
    assert one.passages[0] == "The old lighthouse."
    (common,) = grounded("The ferry leaves.", *filler).sentences
    assert (common.passages, common.features.coverage) == (("The ferry leaves pier 0.",), 1.0)


def test_an_acronym_stands_for_the_words_it_is_made_of() -> None:
    context = "It was made in the United States."
    assert grounded("It was made in the US.", context).sentences[0].features.coverage == 1.0
    assert grounded("It was made by us.", context).sentences[0].unsupported == ("us",)


def test_a_word_near_in_meaning_supports_and_is_not_listed() -> None:
    assert grounded("The boat leaves.").sentences[0].unsupported == ("boat",)
    (near,) = grounded("The boat leaves.", embedder=Synonyms()).sentences
    assert (near.features.coverage, near.unsupported) == (1.0, ())
    (name,) = grounded("The Boat leaves.", embedder=Synonyms()).sentences
    assert name.unsupported == ("Boat",)


def test_no_word_is_embedded_if_all_are_in_the_context() -> None:
    embedder = Synonyms()
    grounded("The ferry leaves.", embedder=embedder)
    grounded("Zebras yawn.", embedder=embedder)
    assert embedder.asked == []


def test_the_value_is_the_mean_of_the_weakest_sentence_and_of_the_text() -> None:
    """The text counts each sentence by its number of words: 3 and 1."""
    result = grounded("The ferry leaves. Wonderful!")
    first, second = result.sentences
    logits = [compute_logit(sentence.features) for sentence in (first, second)]
    overall = to_value((3 * logits[0] + 1 * logits[1]) / 4)
    assert result.weakest.text == "Wonderful!"
    assert result.overall == pytest.approx(overall)
    assert result.value == pytest.approx((to_value(logits[1]) + overall) / 2)


def test_a_text_of_function_words_is_not_judged() -> None:
    assert asyncio.run(check_grounding("Yes, it is.", [CONTEXT], TextEmbedder("lexical", "test"))) is None
    assert asyncio.run(check_grounding("...", [CONTEXT], TextEmbedder("lexical", "test"))) is None


def test_a_sentence_is_compared_with_at_most_three_passages() -> None:
    documents = [f"Only {name} is here." for name in ("Anna", "Bodil", "Cato", "Dag")]
    (sentence,) = grounded("We saw Anna, Bodil, Cato and Dag.", *documents).sentences
    assert len(sentence.passages) == MAX_PASSAGES
    assert sentence.unsupported == ("We", "saw", "Dag")


def test_passages_are_found_in_long_documents() -> None:
    filler = "Nothing of importance happened on day {}. "
    document = "".join(filler.format(number) for number in range(300)) + "The bridge fell in 1879."
    (sentence,) = grounded("The bridge fell in 1879.", document).sentences
    assert sentence.passages == ("The bridge fell in 1879.",)
    assert sentence.features.coverage == 1.0


def test_the_index_finds_the_passages_of_a_word() -> None:
    assert ContextIndex(["One. Two."]).find_passages(split_words("Two")[0]) == {1}


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_value_is_sound_and_a_text_supports_itself(text: str, context: str) -> None:
    """From 0 to 1, whatever the texts."""
    found = asyncio.run(check_grounding(text, [context], TextEmbedder("lexical", "test")))
    if found is not None:
        assert 0.0 <= found.value <= 1.0
        assert all(0.0 <= one.support <= 1.0 for one in found.sentences)


@given(st.lists(st.sampled_from(["ferry", "Bergen", "7", "leaves", "carry", "cars"]), min_size=1))
def test_a_copied_sentence_is_supported(chosen: list[str]) -> None:
    text = " ".join(chosen)
    assert grounded(text, text).value > DEFAULT_THRESHOLD


class RecordedEncoder:
    """A cross-encoder that returns one logit and records the pairs."""

    name = "recorded"

    def __init__(self, logit: float) -> None:
        self.logit, self.pairs = logit, list[tuple[str, str]]()

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.pairs += pairs
        return [self.logit] * len(pairs)


def test_a_cross_encoder_scores_the_weakest_sentences_with_their_best_passages() -> None:
    passages = ("Ann rowed the red boat to Oslo.", "Ben sold two old clocks.", *FILLER[:10])
    text = "Ann rowed the red boat to Oslo. Elephants yawn near old clocks. Green tigers sold boats. No day happened."
    encoder: Any = RecordedEncoder(10.0)
    high = asyncio.run(check_grounding(text, passages, encoder=encoder))
    low = asyncio.run(check_grounding(text, passages, encoder=RecordedEncoder(-8.0)))  # type: ignore[arg-type]
    assert high is not None
    assert low is not None
    assert len(encoder.pairs) == MAX_SCORED_SENTENCES
    assert all(claim not in passages for claim, _ in encoder.pairs)
    assert all(len(evidence.split()) <= MAX_EVIDENCE_WORDS for _, evidence in encoder.pairs)
    assert high.value > low.value
    assert high.sentences[0].features.related is None


def test_a_sentence_without_a_passage_is_not_scored_by_a_cross_encoder() -> None:
    encoder: Any = RecordedEncoder(10.0)
    result = asyncio.run(check_grounding("Wonderful elephants yawn loudly.", FILLER, encoder=encoder))
    assert result is not None
    assert (encoder.pairs, result.weakest.features.related) == ([], 0.0)
