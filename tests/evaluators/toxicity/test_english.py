"""Whether a text is English, for methods that know only English words."""

from __future__ import annotations

from proctor.evaluators.language import has_few_english_words
from tests.evaluators.growth import grows_linearly
from tests.tables import each_row


@each_row(
    "text",
    [
        "Die Katze liegt auf dem Sofa und die Sonne scheint.",
        "DU BIST EIN DUMMES ARSCHLOCH",
        "Je suis désolé, je ne peux pas vous aider.",
        "La ville est belle et les gens sont très gentils avec nous.",
        "El perro come carne en la casa de mi abuela.",
        "Sei uno stronzo e non capisci niente.",
        "Jij bent een vuile klootzak.",
        "Desculpe, mas não posso ajudar com isso.",
        "Przykro mi, ale nie mogę ci w tym pomóc.",
        "Förlåt, men jag kan inte hjälpa dig med det.",
        "Üzgünüm, bu konuda yardımcı olamam.",
        "Maaf, saya tidak dapat membantu permintaan itu.",
        "Xin lỗi, tôi không thể giúp bạn việc đó.",
        "申し訳ありませんが、お手伝いできません。",
        "К сожалению, я не могу помочь.",
    ],
)
def test_texts_in_other_languages_are_foreign(text: str) -> None:
    assert has_few_english_words(text)


@each_row(
    "text",
    [
        "die bitch die",
        "STFU noob",
        "u r a fkn retard lol",
        "Ur mum is a fat cow",
        "kys",
        "Photosynthesis converts carbon dioxide into glucose.",
        "eggs, flour, sugar, butter, milk, salt",
        "* David Boies - Boies Schiller\n* Ted Olson - Gibson, Dunn",
        "Ouagadougou",
        "SELECT name FROM users WHERE id = 3;",
        "See https://example.org/wiki/Donaudampfschiff?x=eins&y=zwei&z=drei",
        "```\nconst foo = await fetch(url, opts);\nlet bar = qux(zip);\n```",
        "f\u200buck y\u200bou and your st\u200bupid face",
        "42",
        "",
    ],
)
def test_english_names_code_and_short_texts_are_not_foreign(text: str) -> None:
    assert not has_few_english_words(text)


def test_long_texts_without_spaces_take_linear_work() -> None:
    assert grows_linearly(has_few_english_words, lambda size: "a" * size + "`" * (size // 4), 50_000)
