"""coherence: each sign of a text that does not hang together is found, and named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.text.coherence import MAX_COMPARED_SENTENCES, CoherenceSigns, is_out_of_order
from proctor.evaluators.text.quality import coherence
from proctor.records.score import Score
from tests.evaluators.judging.rehearsed import scores
from tests.tables import each_row

TEXT = (
    "The bridge was built in the spring of 1880. A storm took it away in the same year. "
    "The engineers had not thought of the wind. They built a stronger one after that."
)


class Ships:
    """Ships are one subject; every other text is one of its own."""

    name, method = "ships", "embeddings"

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [[1.0, 0.0, 0.0] if "ship" in text else [0.0, 1.0, float(sum(map(ord, text)) % 7 - 3)] for text in texts]


class Blind:
    """An embedder to which all texts are the same."""

    name, method = "blind", "embeddings"

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [[1.0] for _ in texts]


def score(text: Any, **options: Any) -> Score:
    options = {"embedder": "lexical"} | options
    found: Score = attach(coherence(**options))(text)
    return found


def test_a_text_that_hangs_together_passes() -> None:
    found = score(TEXT)
    assert (found.value, found.passed) == (1.0, True)
    message = "freshness 1.00, order 1.00, sequence 1.00, completeness 1.00"
    assert found.reason == f"no sign of a problem: {message}; logic and the order of events are not checked"
    signs = {"freshness": 1.0, "order": 1.0, "sequence": 1.0, "completeness": 1.0}
    assert found.details == {"method": "lexical", "embedder": "lexical", "signs": signs}


@each_row(
    ("sign", "text"),
    [
        ("freshness", "I do not know what to say to you. " * 6),
        ("freshness", "So it goes on and on. " * 3 + TEXT),
        ("order", "Built the of in bridge a the was spring. The and storm an took the it away."),
        ("sequence", "2. Stir the flour in well.\n1. Heat the milk first.\n\n" + TEXT),
        ("sequence", "1. Heat the milk in a pan.\n3. Pour the milk into a cup.\n2. Stir the flour into the milk."),
        ("sequence", "1. Heat the milk in a pan. 3. Pour the milk into a cup. 2. Stir the flour into the milk."),
        ("sequence", f"However, that was not the last word on it. {TEXT}"),
        ("sequence", f"In summary, they had learned their lesson. {TEXT}"),
        ("completeness", f"{TEXT} Nobody was surprised that the"),
        ("completeness", "Steps to take:\n- Heat the milk gently.\n- Stir in the flour and"),
    ],
)
def test_what_is_wrong_with_a_text_is_named(sign: str, text: str) -> None:
    found = score(text)
    assert not found.passed
    assert min(found.details["signs"], key=found.details["signs"].get) == sign
    assert sign in found.reason


@each_row(
    "text",
    [
        "The capital of France is Paris",
        "1. Heat the milk\n2. Stir it\n3. Add the salt",
        "1. Heat the milk.\n2. Stir it.\n\nThen the sauce:\n1. Melt the butter.\n2. Add salt.",
        f"{TEXT} Read more! #bridges",
        f"{TEXT}\n\n```\nprint(1)\n```",
        f"This is about a bridge in the north. {TEXT}",
        f"He was born beside a bridge in the north. {TEXT}",
        f"They are both bridges in the north. {TEXT}",
    ],
)
def test_short_texts_lists_and_mark_up_pass(text: str) -> None:
    assert score(text).passed


@pytest.mark.parametrize(
    "output", ["asdf qwer zxcv poiu lkjh.", 42, True, "Paris.", "1. Milk\n2. Eggs", "!?", [1, 2.5]]
)
def test_texts_that_are_not_prose_are_skipped(output: Any) -> None:
    found = score(output)
    assert (found.status, found.value) == ("skipped", None)
    assert found.reason.startswith(("it is not prose", "it is written in"))


@each_row(
    ("text", "reason"),
    [
        (
            "#include <stdlib.h>\n/* Free the list of it. */\nvoid release(node *first) {\n  free(first);\n}",
            "it is program code",
        ),
        (
            '#!/bin/sh\n# Copy the logs.\nfor f in logs/*; do\n  cp -v "$f" /srv/copy\ndone\necho "It is the end."',
            "it is program code",
        ),
        ('FROM node:20\nWORKDIR /srv\nCOPY . .\nRUN npm install\nCMD ["npm", "start"]', "it is program code"),
        (
            "<html>\n<body>\n<h1>The lake</h1>\n<p>It is deep, and the water is cold.</p>\n</body>\n</html>",
            "it is HTML or XML",
        ),
        (
            '{"title": "The lake in the north", "text": "It is deep, and the water is cold.", "pages": [1, 2]}',
            "it is JSON",
        ),
        ("service:\n  name: the mail of the town\n  ports:\n    - 25\n    - 587\nrestart: always", "it is YAML"),
        (
            "\\section{The lake}\nIt is deep.\nIt has fish.\n\\begin{itemize}\n\\item It is old.\n\\end{itemize}",
            "it is TeX",
        ),
        (
            "SELECT name, COUNT(*)\nFROM visits\nWHERE year > 2020 AND town = 'Oslo'\nGROUP BY name;",
            "it is program code",
        ),
        *(
            (line, "it is program code")
            for line in (
                "for (let i = 0; i < n; i++) { total += xs[i]; }",
                "const total = xs.reduce((a, b) => a + b, 0);",
                "for (const x of xs) sum += x;",
                "if (a === b) return true;",
                "function add(a, b) { return a + b; }",
                "xs.sort((a, b) => a - b);",
                "let sum = 0; for (const x of xs) { sum += x; } return sum;",
                "class A extends B {}",
                "fn add(a: i32, b: i32) -> i32 { a + b }",
                "int add(int a, int b) { return a + b; }",
                "x = [i for i in range(10)]",
                "return a if a > b else b",
                "return self.name if self.name is not None else 'unknown'",
                "new Builder(a).add(b).build();",
                "for (;;) {",
            )
        ),
        ('package main\n\nfunc main() {\n\tfmt.Println("This is the end of the list")\n}', "it is program code"),
        ("all: build\n\tcp the.bin /srv\n\nbuild:\n\tcc -o the.bin the.c", "it is program code"),
        (
            "--- a/town.py\n+++ b/town.py\n@@ -1 +1 @@\n-print('the old name of it')\n+print('the new name of it')",
            "it is program code",
        ),
    ],
)
def test_code_markup_and_data_are_skipped(text: str, reason: str) -> None:
    found = score(text)
    assert found.status == "skipped"
    assert found.reason.startswith(reason)


@each_row(
    "text",
    [
        "A while loop runs until its condition fails. The for loop counts. Both of them end at a break statement.",
        "The SELECT command reads rows, and the WHERE part filters them. Most people learn it in the first week.",
        "Write <b> before a word and </b> after it. The browser then shows the word in bold type.",
        "To install the tool, run `pip install demo` in a shell. It prints the version if it was successful.",
        "Opening hours: the shop is open from nine to six.\nParking: there is a car park behind the house.",
        "We import fruit from Spain; the class of the fruit is printed on the box. It is checked in the port.",
        "<p>The lake is deep, and the water of the lake is cold. It lies in the north of the country.</p>",
        "<b>Note</b> The lake is deep, and the water of the lake is cold. It lies in the north.<br>",
        "breakfast:\n- We had eggs and a lot of bread with them.\n- They had the soup of the day.\n- It was good.",
        "We sold bread to the people of the town &\nthe tea that we drank with them was hot &\nit was good to us.",
        "ingredients:\n\tTwo eggs of the farm\n\tA cup of the milk\n\tSome flour from the mill",
        "return the book if you have read it, or else keep it",
        "for (at first; then; later) nothing happened",
        "Let me explain it; the loop runs for each item (in turn), and it adds the value to the total.",
        "Let x be the price of a book. Then x = 5 because the total is 10 and there are two of them.",
        "For each item (let us call it i), we add its value to the total. If i < n, we do it again.",
        "FROM Berlin\nTake the train to Rome in the morning.\nADD a coat to your bag, because it is cold.",
    ],
)
def test_prose_about_code_is_not_code(text: str) -> None:
    assert score(text).passed


@pytest.mark.parametrize(
    "text",
    [
        "El puente fue construido en la primavera.",
        "Most został zbudowany wiosną i nadal jest używany.",
        "橋は春に建てられた。",
        "Мост был построен весной.",
    ],
)
def test_other_languages_are_skipped_with_every_embedder(text: str) -> None:
    """The signs are those of English, whatever the embedder reads."""
    for found in (score(text), score(text, embedder=lambda texts: [[1.0, 0.0] for _ in texts])):
        assert found.status == "skipped"
        assert "the local method reads only English" in found.reason


def test_the_reason_of_a_pass_lists_all_signs() -> None:
    found = score("The ship left at dawn. " * 2 + TEXT, min_score=0.3)
    assert (found.passed, found.reason.startswith("no sign of a problem: freshness 0.")) == (True, True)


def test_of_a_very_long_text_the_start_is_compared() -> None:
    text = " ".join(f"The ship number {n} left harbour {n * 7}." for n in range(MAX_COMPARED_SENTENCES + 40))
    found = score(text, embedder=Ships())
    assert found.details["sentences_left_out"] == 40
    assert found.reason.endswith("the last 40 sentences were not compared")
    assert len(found.details["neighbours"]) == MAX_COMPARED_SENTENCES - 1


def test_sentences_that_have_nothing_to_do_with_each_other_do_not_pass() -> None:
    mixed = (
        "The ship left the harbour at dawn. My aunt bakes bread on Sundays. "
        "A ship must be painted often. Her kitchen smells of yeast."
    )
    found = score(mixed, embedder=Ships())
    assert (found.value, found.passed) == (0.0, False)
    assert found.details["neighbours"] == [0.0, 0.0, 0.0]
    assert found.reason.startswith("connection 0.00: its sentences have little to do")
    together = "The ship left at dawn today. The ship came back at night."
    assert score(together, embedder=Ships()).details["signs"]["connection"] == 1.0


def test_sentences_without_any_neighbour_are_listed() -> None:
    text = "The ship left at dawn today. The ship came back at night. My aunt bakes bread often."
    assert score(text, embedder=Ships()).details["strangers"] == ["My aunt bakes bread often."]


def test_an_embedder_to_which_all_is_alike_shows_no_connection() -> None:
    assert score(TEXT, embedder=Blind()).details["signs"]["connection"] == 0.0


def test_an_empty_text_scores_0() -> None:
    """An empty output is 0; a list of texts is one text."""
    nothing: list[Any] = ["", "  ", [], None]
    for empty in nothing:
        found = score(empty)
        assert (found.value, found.passed, found.reason) == (0.0, False, "the output is empty")
    assert score(["The bridge fell.", "It was rebuilt."]).passed


def test_a_judge_scores_coherence_out_of_ten() -> None:
    judge = scores(7)
    found = score(TEXT, judge=judge, embedder=None)
    assert (found.value, found.passed) == (0.7, False)
    assert found.details["method"] == "judge"
    assert found.details["judge"]["prompt"].startswith("proctor.judges/coherence@")
    assert judge.asked[0].part("OUTPUT") == TEXT
    assert not judge.asked[0].has("INPUT")


def test_a_pass_mark_that_is_none_is_refused() -> None:
    with pytest.raises(EvaluatorError, match="threshold must be between 0 and 1"):
        coherence(threshold=8)


def test_without_weights_the_score_says_that_letters_were_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    found = score(TEXT, embedder=None)
    assert found.details["method"] == "lexical"
    assert "connection" not in found.details["signs"]


@given(st.text(max_size=200))
def test_the_value_is_sound_whatever_the_text(text: str) -> None:
    """From 0 to 1, and the score knows a reason."""
    found = score(text)
    assert found.status == "skipped" or 0.0 <= (found.value or 0.0) <= 1.0
    assert found.reason


@each_row(
    "text",
    [
        "The bridge was built in the",
        "The bridge was built in spring and",
        "She wanted to leave because",
        "The main cause of the war was a",
        "He walked along the river, past the mill,",
        "The recipe needs two cups of",
        "The bridge is old. It was the",
        "The bridge is old. It stands **between",
        "There are three reasons:\n1. It is cheap.\n2. It is made of",
    ],
)
def test_a_text_that_is_cut_off_in_a_clause_fails(text: str) -> None:
    score = coherence(embedder="lexical")(text)
    assert (score.passed, score.value) == (False, 0.75), score
    assert "it breaks off in the last sentence" in score.reason


@each_row(
    "text",
    [
        "The bridge was built in the spring",
        "This is what it is made of",
        "Nobody knows where she is from",
        "The answer is a",
        "The right option is a",
        "# The history of the",
        "The Old Man and the Sea",
        "How to get there from here",
        "We need:\n- milk for the tea,\n- sugar for the cake,",
        "It works as it should. Thank you and best wishes,",
        "I would like to leave in the morning\n\nWith kind regards,",
        "The lights are on",
        "It is neither here nor there...",
    ],
)
def test_a_text_without_an_end_mark_is_not_cut_off(text: str) -> None:
    score = coherence(embedder="lexical")(text)
    assert score.status == "skipped" or score.details["signs"]["completeness"] == 1.0, score


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Harvest the of slowly although. Wheat was is between barn because.", "ok"),
        ("The the slip may happen to anybody who writes in the night.", "skipped"),
    ],
)
def test_a_short_text_with_words_out_of_order_never_passes(text: str, status: str) -> None:
    """Two impossible pairs of words fail; one may be a slip or all that shows shuffled words."""
    result = score(text)
    assert (result.status, result.passed or False) == (status, False)


def test_a_weak_connection_of_a_few_sentences_is_skipped() -> None:
    """Pronouns and causes connect sentences too, and embeddings hardly show it."""
    signs = CoherenceSigns(0.7, 1.0, 1.0, 1.0, 1.0, (0.15, 0.15))
    assert signs.explain_doubt(TEXT, 0.8).startswith("3 sentences are too few")
    assert signs._replace(connection=0.1).explain_doubt(TEXT, 0.8) == ""
    assert signs._replace(adjacent_similarities=(0.15,) * 7).explain_doubt(TEXT, 0.8) == ""
    assert signs._replace(completeness=0.75).explain_doubt(TEXT, 0.8) == ""


def test_a_repeated_sentence_is_read_once_to_identify_its_language() -> None:
    """The word "met" is also Dutch, but one of many in the sentence."""
    result = score("The board met on Friday. " * 6, embedder="lexical")
    assert result.passed is False
    assert "it repeats itself" in result.reason


@each_row(
    ("numbers", "is_wrong"),
    [
        ([1, 2, 3], False),
        ([1, 3, 2], True),
        ([3, 2, 1], True),
        ([1, 2, 4], False),
        ([1, 2, 1, 2], False),
        ([1, 1, 2, 2], False),
        ([1, 2, 1, 3, 2], True),
        ([], False),
    ],
)
def test_lists_after_and_inside_a_list_count_from_one(numbers: list[int], is_wrong: bool) -> None:
    assert is_out_of_order(numbers) is is_wrong


@each_row(
    ("text", "is_wrong"),
    [
        ("1. Mix it.\n2. Bake it.\n\nNotes:\n2. Use the butter.\n3. Use the salt.", False),
        ("1. Mix it.\n2. Bake it.\nNotes:\n2. Use the butter.\n3. Use the salt.", False),
        ("1. Mix it.\n2. Bake it.\n\n## Notes\n\n2. Use the butter.\n3. Use the salt.", False),
        ("1. Mix it.\n2. Bake it.\n\nThese are notes.\n2. Use the butter.\n3. Use the salt.", False),
        ("1. Heat it.\nUse whole milk.\n3. Pour it.\nBe careful.\n2. Stir it.", True),
        ("1. Heat it.\n\nUse whole milk.\n\n3. Pour it.\n\n2. Stir it.", True),
        ("1. Heat it.\n   until it boils\n3. Pour it.\n2. Stir it.", True),
        ("Steps:\n2. Mix it.\nThen:\n1. Bake it.\n3. Cool it.", True),
    ],
)
def test_a_list_goes_on_after_a_line_that_introduces_it(text: str, is_wrong: bool) -> None:
    """Text that belongs to a point does not start another list."""
    result = score(text, embedder="lexical")
    assert (result.details["signs"]["sequence"] < 1) is is_wrong
