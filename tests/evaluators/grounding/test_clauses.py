"""hallucination_detection judges each clause, reads number words, and leaves open what it cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from proctor.evaluators.grounding.clauses import remove_silence
from tests.evaluators.test_changed_facts import score
from tests.tables import each_row

MILL = "The Lindqvist paper mill in Borås was sold to Hexa in March 2021. All 230 workers kept their jobs."
STUDY = "In the study, 8% of adults and 9% of children had side effects."
SITES = "412 patients took part in Lund and 408 patients took part in Oslo."
FIRM = "Velm Ltd was founded in 1994 in Turku by Eero Salo. It makes paper cups. Exports grew 7% to 30 million euros."
FERRY = (
    "The ferry holds 400 people and 90 cars. It leaves Tallinn at 7 and reaches Turku at 9. A ticket costs 35 euros."
)
BAKERY = "The bakery in Pell makes bread and cakes. It is open on Sundays."

# A context, an output, and whether it passes; None means skipped.
VERDICTS = [
    (MILL, "All 230 workers kept their jobs, and Hexa has promised to build a second factory in Poland.", False),
    (MILL, "All 230 workers kept their jobs because the union of Sweden threatened to strike.", False),
    (MILL, "The mill in Borås was sold in March 2021, and all 230 workers kept their jobs.", True),
    (MILL, "Two hundred and thirty workers kept their jobs.", True),
    (MILL, "Two hundred and forty workers kept their jobs.", False),
    (MILL, "The text does not say how much was paid. It only mentions that the mill was sold to Hexa.", True),
    (MILL, "The text does not say how much was paid. It only mentions that the mill was sold to Volvo.", False),
    (MILL, "The provided documents do not specify the price.", None),
    (MILL, "The price is not mentioned in the text.", None),
    (STUDY, "8% of adults and 9% of children had side effects.", True),
    (STUDY, "Side effects: adults 8%, children 9%.", True),
    (STUDY, "9% of adults and 8% of children had side effects.", False),
    (SITES, "820 patients took part in total.", None),
    (SITES, "821 patients took part in total.", False),
    (SITES, "820 patients took part in Rome.", False),
    (FIRM, "Velm Ltd was founded in Turku in 1994.", True),
    (FIRM, "Velm Ltd was founded in 1994 by Eero Salo.", True),
    (FIRM, "Velm Ltd makes paper cups.", True),
    (FIRM, "Velm Ltd makes garden chairs.", None),
    (FIRM, "It is a firm that makes chairs.", False),
    (FIRM, "Exports grew 30%.", False),
    (FIRM, "Exports grew 7%.", True),
    (FIRM, "Exports reached 30 million euros.", True),
    (FIRM, "Exports reached 30 billion euros.", False),
    (FIRM, "Velm Ltd makes paper cups, which won four awards.", False),
    (FIRM, "Velm Ltd, which won four awards, makes paper cups.", False),
    (FIRM, "Velm Ltd makes paper cups and sold two competitors.", False),
    (FIRM, "Velm Ltd makes paper cups, impressing tourists.", None),
    (FIRM, "Velm Ltd makes paper cups and a cheap garden chair.", None),
    (FERRY, "The ferry holds 90 cars.", True),
    (FERRY, "The ferry holds 400 cars.", None),
    (FERRY, "A ticket costs 35 euros.", True),
    (FERRY, "A ticket costs 90 euros.", None),
    (FERRY, "It leaves Tallinn at 7 and reaches Turku at 9.", True),
    (FERRY, "It leaves Turku at 7.", None),
    ("A sack weighs 12 kg and costs 8 euros.", "A sack costs 12 euros.", False),
    ("Rain fell on 12 days in May. June had 20 rainy days.", "Rain fell on 20 days in June.", True),
    ("50 visitors came on Monday and 80 guests came on Friday.", "80 visitors came on Friday.", True),
    (
        "40 patients took part in the first trial and 60 participants in the second trial.",
        "The second trial had 60 patients.",
        True,
    ),
    (
        "12 employees left the firm in May and 30 workers joined the firm in June.",
        "30 employees joined the firm in June.",
        True,
    ),
    ("The firm sold 20 cars in May and 35 vehicles in June.", "The firm sold 35 cars in June.", True),
    ("The company has 300 people in Rome and 200 staff in Milan.", "The company has 200 people in Milan.", True),
    ("The zoo keeps 12 lions and 7 young lions.", "The zoo keeps 7 lion cubs.", True),
    ("In the poll 60% of voters chose Lee, and 40 out of 100 chose Kim.", "Kim got 40 percent.", True),
    (BAKERY, "The bakery makes bread and cakes, according to the text.", True),
    (BAKERY, "The bakery makes bread and cakes, including on Sundays.", True),
    (BAKERY, "The bakery makes bread and cakes, making it a typical local shop.", None),
    ("The bridge was opened in 1950.", "The bridge was opened in 1950, allowing people to cross the river.", None),
]


@each_row("context, output, is_passed", VERDICTS)
def test_the_weakest_clause_decides_and_open_questions_are_skipped(
    context: str, output: str, is_passed: bool | None
) -> None:
    assert score(output, context).passed is is_passed


class Wares:
    """An embedder to which footwear is a little like shoes, and every other word is like no other."""

    name, method = "wares", "embeddings"

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> list[float]:
        signs = "".join(f"{byte:08b}" for byte in sha256(text.encode()).digest())
        own = {"shoes": [1.0, 0.0], "footwear": [0.48, 0.877]}.get(text)
        return [*own, *[0.0] * len(signs)] if own else [0.0, 0.0, *(1.0 if sign == "1" else -1.0 for sign in signs)]


def test_an_embedder_tells_a_more_general_object_from_another() -> None:
    context = "The firm makes shoes."
    assert score("The firm makes footwear.", context).passed is None
    assert score("The firm makes footwear.", context, embedder=Wares()).passed
    assert score("The firm makes soap.", context, embedder=Wares()).passed is None


def test_the_reason_for_a_computed_number_names_the_two_numbers() -> None:
    assert "820 from 412 and 408" in score("820 patients took part in total.", SITES).reason


def test_a_claim_after_a_silent_clause_is_kept() -> None:
    text = remove_silence("The context does not mention the price, only that the mill was sold.")
    assert text == "the mill was sold."
