"""A number in another language is read correctly, or the score is skipped: never a confident guess."""

from __future__ import annotations

from proctor.evaluators.numeric.numbers import numeric_answer
from tests.evaluators.growth import grows_linearly
from tests.tables import each_row

# Per language: a statement, its denial, and a correction of 41 to 42.
STATEMENTS = {
    "English": ("It is 42.", "It is not 42.", "It is not 41, but 42."),
    "French": ("C'est 42.", "Ce n'est pas 42.", "Ce n'est pas 41 mais 42."),
    "Spanish": ("Son 42.", "No es 42.", "No es 41 sino 42."),
    "German": ("Das sind 42.", "Das ist nicht 42.", "Es sind nicht 41, sondern 42."),
    "Italian": ("Sono 42.", "Non è 42.", "Non è 41 ma 42."),
    "Portuguese": ("São 42.", "Não é 42.", "Não é 41, mas 42."),
    "Catalan": ("És 42.", "No és 42.", "No és 41, és 42."),
    "Dutch": ("Het is 42.", "Het is niet 42.", "Het is niet 41 maar 42."),
    "Swedish": ("Det är 42.", "Det är inte 42.", "Det är inte 41 utan 42."),
    "Norwegian": ("Det er 42.", "Det er ikke 42.", "Det er ikke 41, men 42."),
    "Finnish": ("Se on 42.", "Se ei ole 42.", "Se ei ole 41 vaan 42."),
    "Polish": ("To jest 42.", "To nie jest 42.", "To nie 41, ale 42."),
    "Czech": ("Je to 42.", "Není to 42.", "Není to 41, ale 42."),
    "Hungarian": ("Ez 42.", "Ez nem 42.", "Nem 41, hanem 42."),
    "Romanian": ("Este 42.", "Nu este 42.", "Nu este 41, ci 42."),
    "Croatian": ("To je 42.", "To nije 42.", "Nije 41, nego 42."),
    "Russian": ("Это 42.", "Это не 42.", "Это не 41, а 42."),
    "Ukrainian": ("Це 42.", "Це не 42.", "Це не 41, а 42."),
    "Greek": ("Είναι 42.", "Δεν είναι 42.", "Δεν είναι 41, είναι 42."),
    "Turkish": ("Cevap 42.", "Cevap 42 değil.", "Cevap 41 değil 42."),
    "Indonesian": ("Jawabannya 42.", "Jawabannya bukan 42.", "Bukan 41 melainkan 42."),
    "Vietnamese": ("Đáp án là 42.", "Đáp án không phải là 42.", "Không phải 41, là 42."),
    "Tagalog": ("Ito ay 42.", "Hindi ito 42.", "Hindi ito 41, 42 ito."),
    "Arabic": ("الجواب 42.", "الجواب ليس 42.", "ليس 41 بل 42."),
    "Hebrew": ("זה 42.", "זה לא 42.", "זה לא 41 אלא 42."),
    "Persian": ("پاسخ 42 است.", "پاسخ 42 نیست.", "پاسخ 41 نیست، 42 است."),
    "Hindi": ("यह 42 है।", "यह 42 नहीं है।", "यह 41 नहीं, 42 है।"),
    "Bengali": ("এটা 42।", "এটা 42 নয়।", "এটা 41 নয়, 42।"),
    "Tamil": ("இது 42.", "இது 42 அல்ல.", "இது 41 அல்ல, 42."),
    "Thai": ("คำตอบคือ 42", "คำตอบไม่ใช่ 42", "ไม่ใช่ 41 แต่เป็น 42"),
    "Chinese": ("答案是42。", "答案不是42。", "不是41，而是42。"),
    "Japanese": ("答えは42です。", "答えは42ではありません。", "答えは41ではなく42です。"),
    "Korean": ("정답은 42입니다.", "정답은 42가 아닙니다.", "정답은 41이 아니라 42입니다."),
}
# Further denials of 42.
DENIALS = [
    "42 n'est pas la réponse.", "42 ist falsch.", "42 stimmt nicht", "42, mais ce n'est pas la bonne réponse",
    "42 es incorrecto", "42不对", "42は間違いです", "Ответ: не 42", "La réponse ne peut pas être 42", "C'est faux : 42",
]  # fmt: skip
# Statements of 42 with a word that denies something else.
STATED = [
    "C'est 42, pas 41", "42, nicht 41.", "42 und nicht 41", "Non, c'est 42.", "No, es 42", "Нет, 42",
    "いいえ、42です。",
    "42個買わなければなりません", "There are 42 men.", "The non-linear system gives 42.",
]  # fmt: skip
SCALED = {
    "42万": 420_000, "1億": 10**8, "1億2000万円": 120_000_000, "人口は1億2,000万人": 120_000_000, "3万5千": 35_000,
    "5千万": 5 * 10**7, "1.5亿": 150_000_000, "3천만 원": 3 * 10**7, "1억 2000만": 120_000_000,
    "1,5 Millionen": 1_500_000, "3,2 Mrd. Euro": 3_200_000_000, "3 Tausend": 3000, "2 mil millones": 2 * 10**9,
    "-3 millones": -3_000_000, "5 millions": 5 * 10**6, "5 milliards": 5 * 10**9, "2 milhões": 2 * 10**6,
    "3 milioni": 3 * 10**6, "42mila": 42_000, "3 miljoen": 3 * 10**6, "2 miljarder": 2 * 10**9, "5 tysięcy": 5000,
    "3 миллиона": 3 * 10**6, "2,5 млн": 2_500_000, "2 миллиона 300 тысяч": 2_300_000, "1.5 εκατομμύρια": 1_500_000,
    "5 milyon": 5 * 10**6, "5 juta": 5 * 10**6, "5 triệu": 5 * 10**6, "5 مليون": 5 * 10**6, "5 מיליון": 5 * 10**6,
    "3 लाख": 300_000, "3 करोड़": 3 * 10**7, "10 lakh": 10**6, "10 crore": 10**8, "5 lakh 20 thousand": 520_000,
    "5 ล้านบาท": 5 * 10**6, "3 hundred thousand": 300_000, "3 million 500 thousand people": 3_500_000,
}  # fmt: skip
# The number that each text has, and a value that it may also mean.
AMBIGUOUS_SCALES = {"42万": 42, "1 Billion": 10**12, "5兆": 5 * 10**6, "5 mil": 5, "1,5 Millionen": 1.5}
# Forty-two in words.
SPELLED = [
    "zweiundvierzig", "Zweiundvierzig.", "cuarenta y dos", "quarante-deux", "quarantadue", "quarenta e dois",
    "tweeënveertig", "fyrtiotvå", "førtito", "neljäkymmentäkaksi", "czterdzieści dwa", "čtyřicet dva", "negyvenkettő",
    "patruzeci și doi", "kırk iki", "empat puluh dua", "bốn mươi hai", "сорок два", "σαράντα δύο", "اثنان وأربعون",
    "ארבעים ושתיים", "बयालीस", "สี่สิบสอง", "四十二", "마흔둘", "La respuesta: cuarenta y dos",
]  # fmt: skip
RANGES = [
    "between 3 and 5", "It takes 3 to 5 days.", "3-5", "zwischen 3 und 5", "entre 3 y 5", "3 bis 5", "3〜5",
    "от 3 до 5",
    "3から5", "3 ile 5 arasında",
]  # fmt: skip


@each_row("language", STATEMENTS)
def test_a_denial_is_skipped_in_every_language(language: str) -> None:
    """The statement passes, its denial is skipped, and a corrected number counts instead of the denied one."""
    stated, denied, corrected = STATEMENTS[language]
    assert numeric_answer(stated, 42).passed is True
    assert numeric_answer(denied, 42).status == "skipped"
    assert numeric_answer(denied, 41).status == "skipped"
    assert numeric_answer(corrected, 42).passed is True
    assert numeric_answer(corrected, 41).passed is False


@each_row("text", DENIALS)
def test_a_number_that_a_clause_rejects_is_no_answer(text: str) -> None:
    assert numeric_answer(text, 42).status == "skipped"


@each_row("text", STATED)
def test_a_denial_of_something_else_does_not_count(text: str) -> None:
    assert numeric_answer(text, 42).passed is True


@each_row("text", SCALED)
def test_scale_words_multiply_the_number(text: str) -> None:
    """The scaled value passes, the bare digits do not, and any other value fails."""
    expected = SCALED[text]
    assert numeric_answer(text, expected).passed is True
    assert numeric_answer(text, int("".join(filter(str.isdigit, text)))).passed is not True
    assert numeric_answer(text, 43).passed is False


@each_row("text", AMBIGUOUS_SCALES)
def test_a_scale_that_may_mean_something_else_is_skipped(text: str) -> None:
    assert numeric_answer(text, AMBIGUOUS_SCALES[text]).status == "skipped"


def test_a_unit_is_no_scale() -> None:
    """In Chinese 千克 is the kilogram."""
    assert numeric_answer("3千克", 3).passed is True


@each_row("text", SPELLED)
def test_spelled_out_numbers_of_other_languages_are_skipped(text: str) -> None:
    score = numeric_answer(text, 42)
    assert score.status == "skipped"
    assert "no digits" in score.reason


@each_row("text", ["Paris", "I like it.", "bananas", "The capital is Zagreb.", "no idea"])
def test_english_words_without_a_number_fail(text: str) -> None:
    assert numeric_answer(text, 42).passed is False


@each_row("text", RANGES)
def test_a_range_around_the_expected_number_is_skipped(text: str) -> None:
    """A number outside the range fails; a choice of two others fails as well."""
    assert numeric_answer(text, 4).status == "skipped"
    assert numeric_answer(text, 9).passed is False
    assert numeric_answer("3 or 5", 4).passed is False


@each_row("unit", ["Ce n'est pas 42 ", "不是42", "42 değil ", "1億2000万", "5 mil millones "])
def test_long_texts_in_other_languages_take_linear_time(unit: str) -> None:
    assert grows_linearly(lambda text: numeric_answer(text, 7), lambda size: unit * (size // len(unit)), 1_500)
