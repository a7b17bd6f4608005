"""Texts of one to three words: those that cannot be read get no verdict, answers do."""

from __future__ import annotations

import pytest

from proctor.evaluators.language import explain_unreadable
from proctor.evaluators.safety.detection import bias_detection, toxicity_detection
from proctor.evaluators.text.quality import coherence, hallucination_detection, relevance, semantic_similarity
from tests.evaluators.test_unreadable_texts import READER, score_with
from tests.tables import each_row

FOREIGN = [
    "Guten Tag",
    "guten tag",
    "GUTEN TAG",
    "Guten Abend!",
    "Danke",
    "Vielen Dank",
    "Auf Wiedersehen",
    "du Arschloch",
    "Du Hurensohn!",
    "Halt die Fresse",
    "merci beaucoup",
    "Merci",
    "Bonjour",
    "très bien",
    "ferme ta gueule",
    "fils de pute",
    "Buenos días",
    "muchas gracias",
    "hijo de puta",
    "buongiorno signora",
    "vaffanculo",
    "obrigado",
    "dziękuję bardzo",
    "spierdalaj kurwa",
    "terima kasih",
    "Ovi on auki.",
    "Ikkuna on rikki",
    "teşekkür ederim",
    "köszönöm szépen",
    "Привет",
    "спасибо большое",
    "你好",
    "ありがとう",
    "감사합니다",
    "สวัสดี",
    "مرحبا",
    "नमस्ते",
]

ENGLISH = [
    "Paris",
    "paris",
    "42",
    "42 km",
    "Yes.",
    "no",
    "N/A",
    "OK",
    "Blue whale",
    "Cat on mat.",
    "No.",
    "blue whale",
    "Giraffe",
    "giraffe",
    "sodium chloride",
    "photosynthesis",
    "Oslo",
    "Buenos Aires",
    "Rio de Janeiro",
    "São Paulo",
    "Leonardo da Vinci",
    "Vincent van Gogh",
    "Ludwig van Beethoven",
    "Angela Merkel",
    "Nguyen Van Thieu",
    "Łódź",
    "El Paso",
    "Los Angeles",
    "Le Monde",
    "Die Zeit",
    "Das Boot",
    "SKU-4411-B",
    "gpt-4o-mini",
    "iPhone 15",
    "macOS",
    "user_id",
    "NASA",
    "BMW",
    "shipped",
    "Refunded.",
    "Thank you!",
    "you idiot",
    "shut up",
    "Tag",
    "pain",
    "gift",
    "chat",
    "boa",
    "café",
    "crème brûlée",
    "naïve",
    "Kubernetes",
    "quicksort",
    "sir",
    "thx",
    "lol",
]


@each_row("text", FOREIGN)
def test_a_short_text_in_another_language_gets_no_verdict(text: str) -> None:
    english = "The bridge was built in spring and is still in use."
    for score in (
        score_with(toxicity_detection(), text),
        score_with(bias_detection(), text),
        score_with(semantic_similarity(READER), text, english),
        score_with(semantic_similarity(READER), english, text),
        score_with(coherence(embedder="lexical"), text),
        score_with(relevance(embedder="lexical"), text, input=english),
        score_with(hallucination_detection(embedder="lexical"), text, context=english),
    ):
        assert (score.status, score.value) == ("skipped", None), score
        assert score.reason


@each_row("text", ENGLISH)
def test_a_short_english_answer_a_name_or_a_code_is_read(text: str) -> None:
    assert explain_unreadable(text) == ""


# One- and two-word answers: the language that the local methods report, or "" if they judge the text.
# An unknown word may be a rare English word, and with a capital letter a name, so it is judged.
SHORT_ANSWERS = [
    ("zwölf", "German"),
    ("blau", "German"),
    ("gelbe Rose", "German"),
    ("nächste Woche", "German"),
    ("Montag", "German"),
    ("Schmetterling", ""),
    ("jaune", "French"),
    ("pomme", "French"),
    ("chien noir", "French"),
    ("demain matin", "French"),
    ("deux fois", "French"),
    ("château fort", "a language other than English"),
    ("нет", "Cyrillic letters"),
    ("собака", "Cyrillic letters"),
    ("завтра", "Cyrillic letters"),
    ("Москва", "Cyrillic letters"),
    ("двенадцать", "Cyrillic letters"),
    ("красный мост", "Cyrillic letters"),
    ("水", "Chinese or Japanese characters"),
    ("北京", "Chinese or Japanese characters"),
    ("不是", "Chinese or Japanese characters"),
    ("红色", "Chinese or Japanese characters"),
    ("十二", "Chinese or Japanese characters"),
    ("谢谢", "Chinese or Japanese characters"),
    ("twelve", ""),
    ("tomorrow", ""),
    ("blue whale", ""),
    ("basalt", ""),
    ("jalapeño", ""),
    ("Göteborg", ""),
]


@each_row(("text", "language"), SHORT_ANSWERS)
def test_one_or_two_words_are_skipped_with_their_language_or_judged(text: str, language: str) -> None:
    assert explain_unreadable(text) == (f"it is written in {language}" if language else "")
    status = "skipped" if language else "ok"
    for evaluator in (toxicity_detection(), bias_detection()):
        assert score_with(evaluator, text).status == status
    assert score_with(semantic_similarity(READER), text, "The bridge was built.").status == status
    grounded = score_with(hallucination_detection(embedder="lexical"), text, context="The bridge was built.")
    assert grounded.status == status


def test_the_reason_names_the_language_or_says_that_no_word_is_known() -> None:
    assert explain_unreadable("Guten Tag") == "it is written in German"
    assert (
        explain_unreadable("qualcosa bellissima davvero") == "it is written in words that are not known to be English"
    )


@pytest.mark.parametrize("text", ["you idiot", "fuuuuck youuu", "stupid asshole", "b1tch"])
def test_short_english_abuse_is_still_found(text: str) -> None:
    assert score_with(toxicity_detection(), text).passed is False


SENTENCES = [
    "Die Katze sitzt auf der Matte. Der Mond ist rund. Das Bier kostet 3 Euro.",
    "Klicken Sie auf Passwort vergessen und folgen Sie dem Link.",
    "Das Auto ist rot.",
    "Het is goed.",
    "Kot jest czarny",
    "La France est une République.",
]


@pytest.mark.parametrize("text", SENTENCES)
def test_short_sentences_of_other_languages_are_not_taken_for_names(text: str) -> None:
    assert explain_unreadable(text)
    assert coherence(embedder="lexical")(text).status == "skipped"


@each_row(
    "text",
    [
        "Don Quixote de la Mancha",
        "Cirque du Soleil Las Vegas",
        "Smith et al. Nature 2020",
        "A deerstalker hat.",
        "40,000 km (24,901 mi).",
        "en route",
        "per se",
        "Hans und Sophie Scholl",
        "Go (film)/GO Magazine/Go (song)/Go",
    ],
)
def test_names_and_english_words_that_other_languages_have_are_readable(text: str) -> None:
    assert explain_unreadable(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Der Hund ist ein Arschloch.",
        "Fick dich ins Knie, OK?",
        "Stirb, du Hund.",
        "You are a Hurensohn.",
        "Thanks a lot, you puta.",
    ],
)
def test_abuse_in_another_language_is_never_called_harmless(text: str) -> None:
    score = toxicity_detection()(text)
    assert score.passed is not True
    assert score.reason


@pytest.mark.parametrize("word", ["basalt", "neap", "ammonia", "walnut", "sevenfold", "coma"])
def test_a_rare_english_word_is_readable(word: str) -> None:
    assert explain_unreadable(word) == ""
