"""The language of an output is told correctly, or the score is skipped: never a confident guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from proctor.errors import EvaluatorError
from proctor.evaluators.identify_language import check_language
from proctor.evaluators.rules import output_language
from tests.evaluators.foreign_texts import FOREIGN
from tests.evaluators.language_sentences import SENTENCES
from tests.tables import each_row

py3langid = pytest.importorskip("py3langid")

SHORT = {
    "fr": ["Oui", "ok merci", "Paris"],
    "en": [
        "OK",
        "Yes",
        "42",
        "",
        "...",
        "Barack Obama, Angela Merkel, Emmanuel Macron",
        "see https://example.com/a/b/c",
    ],
    "it": ["Sì, certo."],
    "ja": ["東京"],
    "da": ["Dette er et godt svar på spørgsmålet, og jeg er glad for det."],
    "de": ["x = [1, 2, 3]\nprint(x)\nreturn x"],
    "ko": ["이 API는 REST를 사용합니다"],
}
# A text and whether it is in the language, by its script alone.
BY_SCRIPT = [
    ("ko", "네", True), ("en", "네", False), ("ja", "はい", True), ("zh", "はい", False), ("el", "Ναι", True),
    ("en", "Ναι", False), ("th", "ใช่", True), ("he", "כן", True), ("de", "да", False), ("ar", "да", False),
    ("fr", "是的", False), ("hi", "ஆம்", False), ("ta", "ஆம்", True), ("ka", "დიახ", True),
]  # fmt: skip


def _list_lengths() -> Iterator[tuple[str, str, str]]:
    """Yield each language with its sentences at several lengths."""
    for code, sentences in SENTENCES.items():
        for index, sentence in enumerate(sentences):
            words = sentence.split()
            yield code, "sentence", sentence
            yield code, "two sentences", f"{sentence} {sentences[(index + 1) % len(sentences)]}"
            if len(words) > 3:
                yield code, "half", " ".join(words[: len(words) // 2 + 1])
                yield code, "two words", " ".join(words[:2])


def test_no_sentence_fails_for_its_own_language_at_any_length() -> None:
    """The classifier alone errs in 18.8 % of two words, 6.1 % of half sentences and 5 % of sentences."""
    verdicts: dict[str, Counter[bool | None]] = {}
    for code, length, text in _list_lengths():
        verdict = check_language(text, code, py3langid.rank)
        verdicts.setdefault(length, Counter())[verdict.is_match] += 1
        assert verdict.is_match is not False, (code, text, verdict.reason)
    passed = {length: counts[True] / counts.total() for length, counts in verdicts.items()}
    assert passed["two sentences"] > 0.9
    assert passed["sentence"] > 0.75


def test_no_sentence_passes_for_another_language() -> None:
    """Most of them fail; the others are too short, or the languages are too close."""
    verdicts: Counter[bool | None] = Counter()
    for code, sentences in SENTENCES.items():
        for text in sentences:
            ranked = py3langid.rank(text)
            for other in SENTENCES.keys() - {code}:
                verdict = check_language(text, other, {text: ranked}.__getitem__)
                verdicts[verdict.is_match] += 1
                assert not verdict.is_match, (code, other, text)
    assert verdicts[False] / verdicts.total() > 0.75


def test_parts_of_other_texts_do_not_fail_for_their_own_language() -> None:
    """The limits were chosen with these texts too, so this guards them and measures no error rate."""
    codes = {"German": "de", "French": "fr", "Spanish": "es", "Italian": "it", "Polish": "pl", "Swedish": "sv"}
    for name, code in codes.items():
        for text in FOREIGN[name]:
            words = text.split()
            for count in (2, 3, 5, len(words)):
                part = " ".join(words[:count])
                assert check_language(part, code, py3langid.rank).is_match is not False, part


@each_row("code", SHORT)
def test_outputs_that_do_not_show_their_language_are_skipped(code: str) -> None:
    for text in SHORT[code]:
        score = output_language(code)(text)
        assert score.status == "skipped", text
        assert score.reason


@each_row("code, text, expected", BY_SCRIPT)
def test_a_script_of_its_own_decides_at_any_length(code: str, text: str, expected: bool) -> None:
    score = output_language(code)(text)
    assert (score.passed, score.details["method"]) == (expected, "script")


@each_row("language, code", [("german", "de"), ("jp", "ja"), ("jp-JP", "ja"), ("Englisch", "en")])
def test_a_wrong_code_gets_one_suggestion(language: str, code: str) -> None:
    with pytest.raises(EvaluatorError, match=f"did you mean '{code}'"):
        output_language(language)


def test_an_unknown_code_gets_examples() -> None:
    with pytest.raises(EvaluatorError, match='such as "en"'):
        output_language("xx")


@each_row(
    "language, text, reason",
    [
        ("en-US", "This is quite an ordinary English sentence.", "the region US is not checked"),
        ("en_GB", "This is quite an ordinary English sentence.", "the region GB is not checked"),
        ("pt-BR", "Esta é uma frase muito comum em português, não é?", "the region BR is not checked"),
        ("zh-CN", "我喜欢在北京吃饭，因为这里的饭很好吃。", "the region CN is not checked"),
        ("es-419", "Los niños jugaban en el jardín mientras llovía mucho.", "the region 419 is not checked"),
        ("cmn", "我喜欢在北京吃饭，因为这里的饭很好吃。", ""),
        ("eng", "This is quite an ordinary English sentence.", ""),
        ("iw", "שלום, אני גר בתל אביב ואוהב לאכול פלאפל", ""),
    ],
)
def test_other_codes_and_regions_are_accepted(language: str, text: str, reason: str) -> None:
    score = output_language(language)(text)
    assert (score.passed, score.reason) == (True, reason)


def test_the_codes_of_norwegian_are_accepted() -> None:
    """English is none of them; Danish is too close to tell."""
    for code in ("no", "nb", "nn", "nb-NO", "nob"):
        rule = output_language(code)
        assert rule("This is quite an ordinary English sentence.").passed is False
        assert rule(
            "Barna lekte i hagen mens det regnet, og jeg visste ikke hva jeg skulle si."
        ).passed is not False or (code == "nn")


@each_row("language", ["zh-Hant", "sr-Latn", "sr-Latn-RS", "en-US-oxendict", "zxx"])
def test_what_cannot_be_checked_is_refused(language: str) -> None:
    with pytest.raises(EvaluatorError, match="output_language: "):
        output_language(language)


# A code, a text, and the verdict; None where it is skipped.
RELATED = [
    ("zh", "東京都知事選挙実施決定", False), ("ja", "東京都知事選挙実施決定", True),
    ("zh", "日本国憲法第九条", None), ("ja", "日本国憲法第九条", None), ("zh", "東京大学教授会", None),
    ("zh", "世界的有名企業", None), ("ja", "世界的有名企業", None),
    ("zh", "我喜歡在北京吃飯，因為這裡的飯很好吃。", True), ("ja", "我喜歡在北京吃飯，因為這裡的飯很好吃。", False),
    ("zh", "我喜欢在北京吃饭", True), ("ja", "我喜欢在北京吃饭", False), ("zh", "谢谢", True),
    ("he", "דער טאָג איז שיין און די זון שײַנט אויף אלע מענטשן", False),
    ("he", "איך הייס משה און איך וואוין אין ניו יארק מיט מיין משפחה", False),
    ("he", "שלום, אני גר בתל אביב ואוהב לאכול פלאפל", True), ("he", "גוט מארגן", False), ("he", "תל אביב", None),
    ("am", "ኣነ ኣብ ኣስመራ እየ ዝነብር", False), ("am", "ይህ ጥሩ ነው", True),
    ("dz", "བོད་ཡིག་ནི་ཡག་པོ་རེད།", None), ("el", "μῆνιν ἄειδε θεὰ Πηληϊάδεω Ἀχιλῆος", None),
    ("hi", "mera naam rahul hai aur main dilli mein rehta hoon", None),
    ("ru", "menya zovut ivan i ya zhivu v moskve uzhe desyat let", None),
    ("uk", "mene zvaty ivan i ya zhyvu v kyievi", None), ("ar", "ana esmi ahmed wa ana saken fi el qahira", None),
    ("el", "kalimera ti kaneis simera einai mia oraia mera", None),
    ("ja", "watashi no namae wa tanaka desu. tokyo ni sunde imasu.", None),
    ("zh", "wo de mingzi shi Li Ming, wo zhu zai Beijing, hen gaoxing renshi ni", None),
    ("ko", "annyeonghaseyo jeoneun hangugeseo wassseumnida", None),
    ("fa", "man ahmad hastam va dar tehran zendegi mikonam", None),
    ("ru", "This is an English text for all of us to read today.", False),
    ("hi", "Die Kinder spielten im Garten, während es regnete.", False),
    ("ja", "Les enfants jouaient dans le jardin et il ne pleuvait pas.", False),
]  # fmt: skip


@each_row("code, text, expected", RELATED)
def test_languages_of_one_script_and_transcriptions_are_not_confused(
    code: str, text: str, expected: bool | None
) -> None:
    score = output_language(code)(text)
    assert score.passed is expected, score.reason
    assert score.reason or expected
