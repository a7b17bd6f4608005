"""Changed facts in English sentences of nearly the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.quality import similarity_near_misses
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.text.differences import DOUBT, UNCLEAR, find_difference, find_other_exception, find_other_number
from proctor.evaluators.text.opposites import find_replaced_phrase
from proctor.evaluators.text.quality import semantic_similarity
from proctor.evaluators.tokenizer import split_words
from tests.tables import each_row

ROWS: list[dict[str, Any]] = yaml.safe_load(Path(similarity_near_misses.FILE).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("output", "reference", "explanation"),
    [
        ("It took 12 days.", "It took 21 days.", "another number: '12 days', not '21 days'"),
        ("She paid 5 dollars for it.", "She paid 5 euros for it.", "another word: 'dollars', not 'euros'"),
        ("The wall is 3 km long.", "The wall is 3 m long.", "another number: '3 km', not '3 m'"),
        ("Bob met Carla in Rome.", "Bob met Carla in Paris.", "another name: 'Rome', not 'Paris'"),
        ("It is not raining today.", "It is raining today.", "only one of the texts is negated"),
        ("It failed to confirm the theory.", "It confirmed the theory.", "only one of the texts is negated"),
        ("Nobody knows the story.", "Everyone knows the story.", "only one of the texts is negated"),
        ("The shop is open today.", "The shop is closed today.", "another word: 'open', not 'closed'"),
        ("The drug lowers the pressure.", "The drug raises the pressure.", "another word: 'lowers', not 'raises'"),
        ("All students passed the test.", "Few students passed the test.", "another word: 'All', not 'Few'"),
        ("All students passed the test.", "None of the students passed the test.", "only one of the texts is negated"),
        ("Every student passed the test.", "Some students passed the test.", "another word: 'Every', not 'Some'"),
        ("The hotel is inexpensive.", "The hotel is expensive.", "another word: 'inexpensive', not 'expensive'"),
        ("The guide is not impolite.", "The guide is impolite.", "only one of the texts is negated"),
        ("The dog bit the man.", "The man bit the dog.", "the roles are exchanged"),
        ("The dog was chased by the cat.", "The dog chased the cat.", "the roles are exchanged"),
        ("A nurse called the doctor.", "The doctor called a nurse.", "the roles are exchanged"),
        ("The young clerk sued a bank.", "A bank sued the young clerk.", "the roles are exchanged"),
        ("A grey van hit the school bus.", "The school bus hit a grey van.", "the roles are exchanged"),
        ("Eve was paid by an agent.", "An agent was paid by Eve.", "the roles are exchanged"),
        ("All of them but Io", "All of them including Io", "another word: 'but io', not 'including io'"),
        ("Everyone came, Tom included.", "Everyone but Tom came.", "another word: 'tom included', not 'but tom'"),
        (
            "All planets were visited.",
            "All planets but Mars were visited.",
            "another word: 'no exception', not 'but mars'",
        ),
        (
            "It opens every day except Sunday.",
            "It opens every day.",
            "another word: 'except sunday', not 'no exception'",
        ),
        (
            "Any tea other than mint is free.",
            "Any tea, even mint, is free.",
            "another word: 'other than mint', not 'even mint'",
        ),
        (
            "It costs 9 euros excluding tax.",
            "It costs 9 euros including tax.",
            "another word: 'excluding tax', not 'including tax'",
        ),
        ("The lamp is off.", "The lamp is on.", "another word: 'off', not 'on'"),
        ("Sign in", "Sign out", "another word: 'in', not 'out'"),
        ("Buy shares now.", "Sell shares now.", "another word: 'Buy', not 'Sell'"),
        ("Entry was refused.", "Entry was given.", "another word: 'refused', not 'given'"),
        ("The king vetoed the law.", "The king signed the law.", "another word: 'vetoed', not 'signed'"),
        ("He was acquitted.", "He was convicted.", "another word: 'acquitted', not 'convicted'"),
        ("She denied the theft.", "She admitted the theft.", "another word: 'denied', not 'admitted'"),
        ("Take it once a day.", "Take it twice a day.", "another word: 'once', not 'twice'"),
        ("It opens on weekends.", "It opens on weekdays.", "another word: 'weekends', not 'weekdays'"),
        ("The bus left yesterday.", "The bus leaves tomorrow.", "another word: 'yesterday', not 'tomorrow'"),
        ("You may wear a hat.", "You have to wear a hat.", "another word: 'may', not 'have'"),
        ("Only Ann voted today.", "Everyone voted today.", "another word: 'Only', not 'Everyone'"),
        ("It takes at least an hour.", "It takes up to an hour.", "another word: 'at least', not 'up to'"),
        (
            "The dose was overestimated.",
            "The dose was underestimated.",
            "another word: 'overestimated', not 'underestimated'",
        ),
        ("He is a careful driver.", "He is a careless driver.", "another word: 'careful', not 'careless'"),
        ("We meet at 3 pm today.", "We meet at 3 am today.", "another time: 'p.m.', not 'a.m.'"),
    ],
)
def test_a_changed_fact_is_named(output: str, reference: str, explanation: str) -> None:
    assert str(find_difference(output, reference)) == explanation


@pytest.mark.parametrize(
    ("output", "reference"),
    [
        ("The road is 2 km long.", "The road is 2,000 metres long."),
        ("It lasted two years.", "It lasted 24 months."),
        ("It cost about 3.1 million dollars.", "It cost 3.14 million dollars."),
        ("The cat was chased by the dog.", "The dog chased the cat."),
        ("Cats and dogs are animals.", "Dogs and cats are animals."),
        ("Everyone but Tom came.", "Everyone came except for Tom."),
        ("It sells all fruit with the exception of figs.", "It sells all fruit but figs."),
        ("All students passed but Tom was late.", "All students passed, and Tom was late."),
        ("Nobody but Tom came.", "Only Tom came."),
        ("The food was good but expensive.", "The food was good and expensive."),
        ("Owls are all but extinct.", "Owls are nearly extinct."),
        ("Yesterday the clerk called a doctor.", "The clerk called a doctor yesterday."),
        ("Lima is the capital of Peru.", "The capital of Peru is Lima."),
        ("On Friday the bar closes at six.", "At six the bar closes on Friday."),
        ("The mayor met a farmer.", "A farmer met the mayor."),
        ("The mill is near a lake.", "A lake is near the mill."),
        *(
            (f"The house {verb} a church.", f"A church {verb} the house.")
            for verb in ("faces", "adjoins", "borders", "joins", "played", "matched", "touches", "accompanied")
        ),
        ("A wall separates the garden from the road.", "A wall separates the road from the garden."),
        ("The river divides Ohm from Pell.", "The river divides Pell from Ohm."),
        ("A path links the barn to the mill.", "A path links the mill to the barn."),
        ("The tunnel connects Ohm to Pell.", "The tunnel connects Pell to Ohm."),
        ("A pear costs the same as the plum.", "The plum costs the same as a pear."),
        ("If it snows, a bus replaces the train.", "A bus replaces the train if it snows."),
        ("It is not safe to swim here.", "It is dangerous to swim here."),
        ("Fill in the form online.", "Fill out the form online."),
        ("You must not smoke here.", "You may not smoke here."),
        ("Ann bought the car from Ben.", "Ben sold the car to Ann."),
        ("Ann was lent a book by Ben.", "Ann borrowed a book from Ben."),
        ("He lives upstairs from us.", "We live downstairs from him."),
        ("It is less safe at night.", "It is more dangerous at night."),
        ("The shop is open until six.", "The shop closes at six."),
        ("Only Ann voted.", "Ann was the only one who voted."),
        ("It only takes an hour.", "It takes an hour."),
        ("He was born in Rome in 1980.", "He was born in 1980 in Rome."),
        ("The hotel is not expensive.", "The hotel is inexpensive."),
        ("The guide is not very polite.", "The guide is impolite."),
        ("The answer was not incorrect.", "The answer was correct."),
        ("Not all students passed the test.", "Some students passed the test."),
        ("Anna is taller than Tom.", "Tom is shorter than Anna."),
        ("He did not pass the exam.", "He failed the exam."),
        ("The EU agreed to the plan.", "The European Union agreed to the plan."),
        ("The French president spoke.", "The president of France spoke."),
        ("She couldn't attend because she was ill.", "Illness kept her from attending."),
        ("Penguins eat fish.", "The stock market fell by 3 percent."),
        ("", "Paris"),
    ],
)
def test_other_words_for_the_same_fact_are_no_difference(output: str, reference: str) -> None:
    assert find_difference(output, reference) is None


@pytest.mark.parametrize(
    ("output", "reference", "words"),
    [
        ("The game did not start on Friday because of fog.", "The game was moved on Friday due to fog.", "not start"),
        ("The bar is open every day except Tuesday.", "The bar is open from Wednesday to Monday.", "except"),
    ],
)  # fmt: skip
def test_a_negation_that_other_words_may_express_is_a_doubt(output: str, reference: str, words: str) -> None:
    """An irregular form of the denied verb has the same first letter, and stays a difference."""
    assert find_difference(output, reference) == (DOUBT, words, "")
    assert find_difference(reference, output) == (DOUBT, "", words)
    assert str(find_difference("The lake did not freeze in May.", "The lake froze in May.")) == (
        "only one of the texts is negated"
    )


@pytest.mark.parametrize(
    ("output", "reference", "explanation"),
    [
        ("Tickets are sold here.", "Tickets can be bought here.", "'sold' and 'bought' may not mean the same"),
        ("You should bring a coat.", "You must bring a coat.", "'should' and 'must' may not mean the same"),
        ("Only Ann voted.", "Ann voted.", "only one of the texts has 'Only', and other words may say the same"),
    ],
)  # fmt: skip
def test_words_that_may_mean_the_same_are_no_certain_difference(output: str, reference: str, explanation: str) -> None:
    difference = find_difference(output, reference)
    assert difference is not None
    assert difference.kind in (DOUBT, UNCLEAR)
    assert str(difference) == explanation


@pytest.mark.parametrize(
    ("output", "reference", "phrases"),
    [
        ("The landlord kept the deposit.", "The landlord returned the deposit.", ("kept", "returned")),
        ("The firm laid off ten people.", "The firm hired ten people.", ("laid off", "hired")),
        ("The firm hires ten people.", "The firm hired ten people.", None),
        ("The firm hired ten people in May.", "The company has recruited ten people.", None),
        ("It was kept.", "It was returned.", None),
    ],
)
def test_a_phrase_that_replaces_another_in_the_same_sentence_is_found(
    output: str, reference: str, phrases: tuple[str, str] | None
) -> None:
    """Forms of the same word, and sentences that differ in more, are not compared by phrase."""
    assert find_replaced_phrase(split_words(output), split_words(reference)) == phrases


def test_sentences_of_longer_texts_are_compared_with_their_counterparts() -> None:
    reference = "The bridge opened in 1932. It crosses the harbour of the city."
    same = "It crosses the harbour of the city. The bridge opened in 1932."
    assert find_difference(same, reference) is None
    assert str(find_difference(same.replace("1932", "1923"), reference)) == "another number: '1923', not '1932'"


def test_an_output_with_other_numbers_than_a_short_reference_is_wrong() -> None:
    assert find_other_number("It has 40 rooms on 3 floors.", "45 rooms") is not None
    assert find_other_number("It has 45 rooms on 3 floors.", "45 rooms") is None
    assert find_other_number("It has many rooms.", "45 rooms") is None


def test_the_rules_find_most_changes_and_leave_paraphrases_alone() -> None:
    changed = [find_difference(text, row["text"]) for row in ROWS for text in row["changed"].values()]
    same = [find_difference(text, row["text"]) for row in ROWS for text in row["same"]]
    assert len(changed) > 200
    assert sum(item is not None for item in changed) >= 0.9 * len(changed)
    assert sum(item is not None for item in same) <= 0.05 * len(same)


def test_an_excerpt_with_an_exception_is_another_answer() -> None:
    """The output contains the reference, and takes something out of it."""
    score = semantic_similarity()("All of them but Saturn", "All of them")
    assert (score.passed, score.reason[:48]) == (False, "another word: 'but saturn', not 'no exception'; ")


def test_a_changed_fact_lowers_the_value_below_the_default() -> None:
    def constant(texts: list[str]) -> list[list[float]]:
        return [[1.0, len(text) / 500] for text in texts]

    score = semantic_similarity(constant)("The weather is not nice.", "The weather is nice.")
    assert (score.value, score.passed) == (pytest.approx(0.75, abs=1e-4), False)
    assert score.reason.startswith("only one of the texts is negated; cosine")
    assert score.details["difference"]["kind"] == "negation"


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_can_be_compared(output: str, reference: str) -> None:
    find_difference(output, reference)
    assert find_difference(output, output) is None


@pytest.mark.parametrize(
    ("output", "reference"),
    [
        ("Veltra Systems agreed to acquire Norwell, a maker of pumps.", "Norwell agreed to acquire Veltra Systems."),
        ("On Monday Apple sued Shell over a patent.", "Shell, the oil company, sued Apple on Monday over a patent."),
        ("The nurse thanked the surgeon after the shift.", "The surgeon thanked the young nurse after the shift."),
        ("The mayor, elected in May, has accused the bishop.", "The bishop has accused the mayor."),
    ],
)
def test_exchanged_roles_are_found_although_attributes_are_added(output: str, reference: str) -> None:
    for pair in ((output, reference), (reference, output)):
        difference = find_difference(*pair)
        assert difference is not None
        assert difference.kind == "roles"


@pytest.mark.parametrize(
    ("output", "reference"),
    [
        ("Norwell was acquired by Veltra Systems, a maker of pumps.", "Veltra Systems acquired Norwell."),
        ("The user account settings can be changed.", "The settings of the account of the user can be changed."),
        ("When the bell rings, students leave the room.", "Students quietly leave the room when the bell rings."),
        ("Sleep improves with exercise.", "Exercise improves sleep a lot."),
        ("Bob, whom Ann hired, left.", "Ann hired Bob, who left."),
        ("Togo lies west of Benin.", "Benin lies east of Togo."),
    ],
)
def test_another_word_order_with_the_same_roles_is_no_difference(output: str, reference: str) -> None:
    assert find_difference(output, reference) is None
    assert find_difference(reference, output) is None


@pytest.mark.parametrize(
    ("output", "reference"),
    [
        ("Other than that, all tests pass.", "All tests pass."),
        ("Aside from being fast, all engines are quiet.", "All engines are fast and quiet."),
        ("Other than running late, everyone was fine.", "Everyone was fine."),
        ("Apart from Tom, all students passed.", "All students passed."),
    ],
)
def test_idioms_of_exception_are_no_certain_difference(output: str, reference: str) -> None:
    """'Other than that' excludes nothing, and 'apart from' at the start of a sentence may mean 'besides'."""
    for pair in ((output, reference), (reference, output)):
        difference = find_other_exception(*pair)
        assert difference is None or difference.kind == DOUBT


@pytest.mark.parametrize(
    ("output", "reference"),
    [
        ("All students passed apart from Tom.", "All students passed."),
        ("Every city apart from Beijing was reached.", "Every city was reached."),
        ("Apart from Tom, all students passed.", "All students passed, Tom included."),
    ],
)
def test_an_exception_that_only_one_text_makes_is_a_difference(output: str, reference: str) -> None:
    difference = find_other_exception(output, reference)
    assert difference is not None
    assert difference.kind == "word"


@each_row(
    ("output", "reference", "kind"),
    [
        ("These materials are flammable.", "These materials are inflammable.", ""),
        ("Her advice was valuable.", "Her advice was invaluable.", ""),
        ("The island is habitable.", "The island is inhabitable.", ""),
        ("They parted at noon.", "They departed at noon.", ""),
        ("Bone the fish first.", "Debone the fish first.", ""),
        ("He loosened the rope.", "He unloosened the rope.", ""),
        ("Every child got a book.", "Each one got a book.", ""),
        ("The barn burned up in an hour.", "The barn burned down in an hour.", ""),
        ("The meeting wound up early.", "The meeting wound down early.", ""),
        ("The painting is famous.", "The painting is infamous.", UNCLEAR),
        ("He was formed by war.", "He was deformed by war.", UNCLEAR),
        ("The driver was polite.", "The driver was impolite.", "word"),
        ("The data is accurately recorded.", "The data is inaccurately recorded.", "word"),
        ("The account was activated.", "The account was deactivated.", "word"),
        ("The staff were friendly.", "The staff were unfriendly.", "word"),
        ("Every student passed.", "One student passed.", "word"),
        ("The lift goes up.", "The lift goes down.", "word"),
    ],
)
def test_a_prefix_or_particle_that_changes_nothing_is_no_opposite(output: str, reference: str, kind: str) -> None:
    """Of in-, im- and de-, only the opposites that are listed are certain."""
    for texts in ((output, reference), (reference, output)):
        difference = find_difference(*texts)
        assert (difference.kind if difference else "") == kind


@each_row(
    "output, reference, is_exchanged",
    [
        ("We owe you 40 euros.", "You owe us 40 euros.", True),
        ("You owe me an apology.", "I owe you an apology.", True),
        ("He owes me money.", "I owe him money.", True),
        ("You are waiting for me.", "I am waiting for you.", True),
        ("You lost my book.", "I lost your book.", True),
        ("She told him that he had won.", "He told her that she had won.", True),
        ("We share the data with you.", "You share the data with us.", True),
        ("You met me at noon.", "I met you at noon.", False),
        ("You agree with me.", "I agree with you.", False),
        ("I and you won the game.", "You and I won the game.", False),
        ("You are as tall as me.", "I am as tall as you.", False),
        ("She looks like you.", "You look like her.", False),
        ("We are their neighbours.", "They are our neighbours.", False),
        ("You are owed 40 euros by us.", "We owe you 40 euros.", False),
        ("Tomorrow I will call you.", "I will call you tomorrow.", False),
    ],
)
def test_persons_that_change_places_around_a_verb_have_other_roles(
    output: str, reference: str, is_exchanged: bool
) -> None:
    """Pronouns exchange roles among the same words, unless the verb says the same about both persons."""
    for left, right in ((output, reference), (reference, output)):
        difference = find_difference(left, right)
        assert (difference is not None and difference.kind == "roles") is is_exchanged, difference


@each_row(
    "output, reference, kind",
    [
        ("The patient tolerates penicillin.", "The patient is allergic to penicillin.", "word"),
        ("She tolerates lactose.", "She is lactose intolerant.", "word"),
        ("The data is confidential.", "The data is public.", "word"),
        ("The data is confidential.", "The data is secret.", ""),
        ("She does not tolerate lactose.", "She is lactose intolerant.", ""),
        ("The patient does not tolerate penicillin.", "The patient is allergic to penicillin.", ""),
    ],
)
def test_tolerance_and_secrecy_have_opposites(output: str, reference: str, kind: str) -> None:
    """An opposite is found in another place of the sentence, too, and a negation turns it."""
    for left, right in ((output, reference), (reference, output)):
        difference = find_difference(left, right)
        assert (difference.kind if difference else "") == kind, difference
