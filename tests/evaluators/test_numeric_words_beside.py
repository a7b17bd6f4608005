"""Words and signs beside a number that change it: the right verdict, or no verdict."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.numeric.numbers import numeric_answer
from tests.evaluators.growth import grows_linearly
from tests.tables import each_row

# Each text means this number: it passes, and every other number of the row fails.
READ: list[tuple[str, float, float]] = [
    # A minus in other languages.
    ("moins 5", -5, 5), ("menos 5", -5, 5), ("meno 5", -5, 5), ("минус 5", -5, 5), ("мінус 5", -5, 5),
    ("minus 5", -5, 5), ("マイナス5", -5, 5), ("负5", -5, 5), ("負5", -5, 5), ("零下5度", -5, 5), ("마이너스 5", -5, 5),
    ("영하 5도", -5, 5), ("eksi 5", -5, 5), ("miinus 5", -5, 5), ("mínusz 5", -5, 5), ("μείον 5", -5, 5),
    ("מינוס 5", -5, 5), ("منفی 5", -5, 5), ("سالب 5", -5, 5), ("माइनस 5", -5, 5), ("ลบ 5", -5, 5),
    ("âm 5", -5, 5),
    ("La réponse est moins 5.", -5, 5), ("La respuesta es menos 5.", -5, 5), ("A resposta é menos 5.", -5, 5),
    ("La risposta è meno 5.", -5, 5), ("Die Antwort ist minus 5.", -5, 5), ("Ответ: минус 5.", -5, 5),
    ("Het antwoord is minus 5.", -5, 5), ("Svaret är minus 5.", -5, 5), ("答案是负5。", -5, 5),
    ("Answer: moins 5", -5, 5), ("答えはマイナス5です。", -5, 5), ("\\boxed{\\text{minus } 5}", -5, 5),
    # Scales and percentages.
    ("42 Tsd.", 42_000, 42), ("3 mlrd", 3 * 10**9, 3), ("3 Mrd. Euro", 3 * 10**9, 3),
    ("3 milliards", 3 * 10**9, 3),
    ("Cela fait 3 billions d'euros, et c'est beaucoup d'argent.", 3 * 10**12, 3 * 10**9),
    ("Das sind ungefähr 3 Billionen Euro.", 3 * 10**12, 3 * 10**9),
    ("Das sind etwa 1 Billion Euro, und das ist sehr viel Geld.", 10**12, 10**9),
    ("It is 3 billion.", 3 * 10**9, 3),
    ("42 tis.", 42_000, 42), ("5 jt", 5_000_000, 5), ("42 rb", 42_000, 42), ("12 Prozent", 0.12, 1.2),
    ("12 Prozent", 12, 13), ("12 pour cent", 0.12, 1.2), ("12 por ciento", 0.12, 1.2),
    ("12 por cento", 0.12, 1.2),
    ("12 per cento", 0.12, 1.2), ("12 procent", 0.12, 1.2), ("12 процентов", 0.12, 1.2),
    ("12 відсотків", 0.12, 1.2),
    ("yüzde 12", 0.12, 1.2), ("百分之12", 0.12, 1.2), ("12パーセント", 0.12, 1.2), ("12퍼센트", 0.12, 1.2),
    ("12 phần trăm", 0.12, 1.2), ("12 persen", 0.12, 1.2), ("12 प्रतिशत", 0.12, 1.2),
    ("12 prosent", 0.12, 1.2),
    ("12 אחוז", 0.12, 1.2), ("12 درصد", 0.12, 1.2), ("42 kilo", 42, 43),
    # Numbers that are stated, beside a rejected one or with words that change nothing.
    ("41 ❌ 42 ✅", 42, 43), ("❌ 41\n✅ 42", 42, 43), ("~~41~~ 42", 42, 41), ("<s>41</s> 42", 42, 41),
    ("<del>41</del> 42", 42, 41), ("\\cancel{41} 42", 42, 41), ("4̶1̶ 42", 42, 41), ("✅ 42", 42, 41),
    ("42 ✓", 42, 41),
    ("42 👍", 42, 41), ("Is it 41? No. It is 42.", 42, 41),
    ("If he has 50 and gives away 8, he has 42.", 42, 8),
    ("42 apples", 42, 41), ("42 cupcakes", 42, 41), ("42 Äpfel", 42, 41), ("42 pommes", 42, 41),
    ("Das sind genau 42.", 42, 41), ("Hay 42 manzanas.", 42, 41), ("Il y en a environ 42.", 42, 41),
    ("一共有42个。", 42, 41), ("全部で42個です", 42, 41), ("Всего 42 яблока.", 42, 41), ("42 ist die Antwort.", 42, 41),
    ("42 es la respuesta", 42, 41), ("**42**", 42, 41), ("42 €", 42, 41), ("Total: 42", 42, 41),
    ("Therefore Weng earned 42 dollars.", 42, 41), ("In total, Aleena spent $42 on snacks.", 42, 41),
    ("Le total est de 42 euros.", 42, 41), ("La respuesta correcta es 42.", 42, 41),
    ("Die Antwort ist 42 Euro.", 42, 41),
    ("총 42원입니다", 42, 41), ("Toplam 42 elma.", 42, 41), ("Hence, 42 is correct.", 42, 41),
    ("There are 42 false positives.", 42, 41),
]  # fmt: skip

# Each text mentions this number and does not state it: neither it nor another number gets a verdict.
NOT_STATED = [
    # Rejected.
    "wrong: 42", "Wrong answer: 42", "incorrect - 42", "False: 42", "42 (incorrect)", "42 (wrong)", "42 apples (wrong)",
    "42 - wrong", "42: incorrect", "42, no.", "42? No.", "42 — nope", "~~42~~", "<s>42</s>", "<del>42</del>",
    "\\cancel{42}", "4̶2̶", "42 ✗", "42 ✘", "42 ❌", "❌ 42", "✗ 42", "🚫 42", "👎 42", "42 👎", "❌ The answer is 42.",
    "The answer is 42 ❌", "The answer is 42. Wrong.", "The answer is 42. ❌", "\\boxed{42} ❌", "#### 42 ❌",
    "Answer: 42 (incorrect)", "hardly 42", "Anything but 42", "not even 42", "far from 42", "Everything except 42",
    "nowhere near 42", "x ≠ 42", "x != 42", "other than 42", "without 42", "None of the 42 answers apply",
    "It is no longer 42.", "Neither 42", "He wrongly says 42.", "We can rule out 42.", "42 is too small.",
    "It differs from 42.", "falsch: 42", "42 (falsch)", "faux : 42", "42 (faux)", "42 – nein.", "42? Нет.", "42? Nein.",
    "неверно: 42", "错误：42", "42（错误）", "Hardly forty-two.",
    # Asked.
    "Is it 42?", "42?", "Maybe 42?", "Question 42?", "Answer: 42?", "The answer is 42, right?", "Is it forty-two?",
    "¿Es 42?", "C'est 42 ?", "Ist es 42?", "是42吗？", "42ですか？", "42ですか。", "Это 42?", "هل هو 42؟",
    "\\boxed{42}?", "#### 42?",
    # Assumed.
    "if x were 42", "If x is 42", "unless it is 42", "Suppose x = 42.", "Assuming 42", "whether it is 42",
    "wenn x 42 ist", "si x vaut 42", "если x равно 42", "如果是42", "もし42なら", "jika x adalah 42", "jeśli x to 42",
    # Bounds.
    "at least 42", "more than 42", "42+", "42 or more", "42 euros or more", "at least forty-two", "a minimum of 42",
    "max. 42", "up to 42", "just under 42", "42 at most", "mindestens 42", "mehr als 42", "bis zu 42", "höchstens 42",
    "weniger als 42", "fast 42", "über 42", "42 oder mehr", "Das sind mindestens 42 Euro.", "al menos 42", "más de 42",
    "no más de 42", "como máximo 42", "42 o más", "casi 42", "au moins 42", "plus de 42", "42 ou plus", "jusqu'à 42",
    "moins de 42", "presque 42", "meno di 42", "più di 42", "almeno 42", "mais de 42", "pelo menos 42", "até 42",
    "meer dan 42", "minstens 42", "minder dan 42", "mer än 42", "högst 42", "mere end 42", "ponad 42", "co najmniej 42",
    "více než 42", "legalább 42", "cel puțin 42", "najmanje 42", "vähintään 42", "yli 42", "более 42", "не менее 42",
    "не более 42", "свыше 42", "понад 42", "τουλάχιστον 42", "en az 42", "42'den fazla", "lebih dari 42", "ít nhất 42",
    "hơn 42", "أكثر من 42", "على الأقل 42", "לפחות 42", "حداقل 42", "कम से कम 42", "42 से अधिक", "มากกว่า 42", "超过42",
    "42以上", "至少42", "不到42", "42以下", "42個以上", "少なくとも42", "42未満", "최소 42", "42 이상", "42개 이상",
    "La réponse est au moins 42.", "Ответ: более 42.",
    "mindestens etwa 42", "at least about 42", "más de unos 42",
    # Referred to, not stated: found by trying further phrasings.
    "The opposite of 42", "My friend claims 42, which I dispute.", "42 is off by one", "Under no circumstances 42",
    "It used to be 42", "42 was my first guess, but that fails the check.", "Let's pretend it's 42", "Double 42",
    "half of 42", "the value 42 fails", "42 squared", "I doubt 42", "42 minus one", "42 seems implausible.",
    "Nobody gets 42", "Never mind 42", "42 would contradict the premise", "42 Grad minus", "aucun des 42", "kaum 42",
    "alles außer 42", "doppelt so viel wie 42", "à peine 42", "tout sauf 42", "cualquier cosa menos 42", "lejos de 42",
    "la mitad de 42", "ni siquiera 42", "едва 42", "половина от 42", "кроме 42", "42の半分", "42以外", "42とは限らない",
    "42的一半", "除了42", "42倍", "mal chega a 42", "longe de 42", "połowa z 42", "wszystko oprócz 42", "42'nin yarısı",
    "42 hariç", "42의 절반", "42 제외", "de helft van 42", "amper 42", "42 graden onder nul", "نصف 42", "ما عدا 42",
    "The key says 42; I disagree.", "It can be anything from 42 upward", "42 is merely the lower limit",
    "42 is half the answer", "I would never choose 42", "One could naively say 42", "42 or more apples",
    "hälften av 42", "puolet 42:sta", "vše kromě 42", "εκτός από 42", "42 के अलावा", "setengah dari 42",
    "ngoại trừ 42", "חוץ מ-42", "крім 42", "42 fele",
    # Attitudes and statements about a number.
    "I disagree with 42", "I object to 42", "I am against 42", "I dispute 42", "The answer is unrelated to 42",
    "The answer is irrelevant to 42", "The answer is independent of 42", "The answer depends on 42",
    "The answer is based on 42", "The answer is related to 42", "It has nothing to do with 42", "42 is dubious",
    # Arguments, indices, ordinals and references.
    "the answer is log 42", "the answer is cos 42", "sin(42)", "The answer is f(42).", "log_2(42)", "max(42, 7)",
    "the sine of 42", "\\log 42", "the answer is the 42nd prime", "It was the 42nd time.",
    "the forty-second prime",
    # Signs beside the number.
    "±42", "x = ±42", "The answer is ±42.", "± 42", "+/- 42", "plus or minus 42", "\\boxed{\\pm 42}", "42‰", "42 ‰",
    "the answer is 42₁₆", "42ⁿ", "∛42", "∑42", "⌊42⌋", "42 ×", "the answer is – 42", "Answer: – 42", "x = - 42",
    # Dates.
    "42.05.2024", "2024-05-06", "The date is 2024-05-06.", "05/06/2024", "2024-05-06T10:00",
    # Words that are not known, and that may change the number.
    "42 tr", "plus ou moins 42 mille-pattes", "gutxienez 42", "o kere ju 42", "angalau 42", "5 Grad unter null",
    "5 grados bajo cero", "3 billions",
]  # fmt: skip

REJECTIONS = [
    "wrong: {}", "{} (incorrect)", "{} (wrong)", "~~{}~~", "<del>{}</del>", "{} ✗", "{} ❌", "❌ {}", "👎 {}", "🚫 {}",
    "hardly {}", "anything but {}", "not even {}", "far from {}", "x ≠ {}", "{}?", "{}? No.", "if it were {}",
    "none of the {}", "falsch: {}", "{} (faux)", "{} - nein.",
]  # fmt: skip
MINUS_WORDS = [
    "moins", "menos", "meno", "minus", "минус", "мінус", "マイナス", "负", "負", "零下", "마이너스", "eksi", "miinus",
    "mínus", "mínusz", "μείον", "מינוס", "منفی", "سالب", "माइनस", "ลบ", "âm", "min", "negativo", "négatif",
]  # fmt: skip
FRAMES = [
    "{}",
    "{}.",
    "**{}**",
    "Answer: {}",
    "The answer is {}",
    "La réponse est {}.",
    "Das Ergebnis ist {}.",
    "答案：{}",
    "\\boxed{{{}}}",
]


@each_row(("text", "number", "other"), READ)
def test_a_number_is_read_with_the_words_beside_it(text: str, number: float, other: float) -> None:
    score = numeric_answer(text, number)
    assert score.passed is True, score.reason
    assert numeric_answer(text, other).passed is not True
    assert numeric_answer(text, 1234567).passed is False


@each_row("text", NOT_STATED)
def test_a_number_that_is_not_stated_gets_no_verdict(text: str) -> None:
    for expected in (42, 43, 3 * 10**9, 5, -5):
        score = numeric_answer(text, expected)
        assert (score.status, bool(score.reason)) == ("skipped", True), (expected, score.reason)


def test_a_restated_number_that_differs_gets_no_verdict() -> None:
    for expected in (42, 43):
        assert numeric_answer("forty-two, i.e. 43", expected).status == "skipped"
        assert numeric_answer("So there are forty-two, i.e. 43", expected).status == "skipped"


def test_a_kilo_may_be_a_thousand() -> None:
    assert numeric_answer("42 kilo", 42_000).status == "skipped"


def test_a_number_that_is_only_a_label_gets_no_verdict() -> None:
    assert numeric_answer("Step 42", 42).status == "skipped"
    assert numeric_answer("Step 42", 41).passed is False
    assert numeric_answer("Step 42", 42).reason.startswith("the only 42 in the output numbers a step, a reference or")


# Each text mentions the number and does not state it as its answer, for this reason.
NOT_ANSWERED: list[tuple[str, int, str]] = [
    ("I'm guessing 42, but I really don't know.", 42, "refuses"),
    ("The answer is 42, but I really don't know.", 42, "does not say that 42 is right"),
    ("The answer is 42. Actually, ignore that, I miscounted.", 42, "takes its answer back"),
    ("The total is 42. Never mind, I miscounted.", 42, "takes its answer back"),
    ("I used to think it was 42.", 42, "does not say that 42 is right"),
    ("I thought it was 42.", 42, "does not say that 42 is right"),
    ("I had assumed it was 42.", 42, "does not say that 42 is right"),
    ("It was 42 last year; I don't have this year's number.", 42, "refuses"),
    ("It was not until after 1989 that it was founded.", 1989, "a bound"),
    ("It was founded after 1989.", 1989, "a bound"), ("It was before 1990.", 1990, "a bound"),
    ("It opened no later than 1990.", 1990, "a bound"), ("By 1990 it had already closed.", 1990, "a bound"),
    ("after 42", 42, "a bound"), ("It was in the 1980s.", 1980, "a decade: 1980s"),
    ("You should ask in Room 42.", 42, "Room 42 is a name"), ("Take bus 42 to the museum.", 42, "bus 42 is a name"),
    ("Take the train 42.", 42, "train 42 is a name"), ("The flight leaves at 6.", 6, "6 is a time"),
    ("The match starts at 6 pm.", 6, "6 is a time"), ("The class starts at 8 o'clock.", 8, "8 is a time"),
]  # fmt: skip
ANSWERED: list[tuple[str, Any]] = [
    ("I thought it was 41, but it is 42.", 42), ("I used to think it was 41, but it's 42.", 42),
    ("I thought it was 42, and it is.", 42), ("I thought about it: the answer is 42.", 42),
    ("I thought about 42 cases.", 42), ("The answer is 42, but I don't know why.", 42),
    ("The answer is 42. Please ignore the earlier draft.", 42), ("It was 42 last year.", 42),
    ("It takes effect after 3 days.", 3), ("It stops after 1500 steps.", 1500), ("It took 1800s.", 1800),
    ("It was founded in 1980, before the war.", 1980), ("It grew by 1990.", 1990), ("It lasted until 1990.", 1990),
    ("In the 1980s there were 42 members.", 42), ("By 1990, it had 42 members.", 42),
    ("We had 42 rooms.", 42), ("42 buses", 42), ("On the bus 42 people sat.", 42), ("The sequence starts at 6.", 6),
    ("We arrive at 12.", 12), ("The stock closed at 12.", 12), ("That leaves 6.", 6), ("The radius is 42 pm.", 42),
    ("The match starts at 6 pm.", "6 pm"), ("Go to room 42.", "Room 42"), ("It was in the 1980s.", "the 1980s"),
]  # fmt: skip


@each_row(("text", "number", "reason"), NOT_ANSWERED)
def test_an_old_belief_a_bound_of_time_and_a_name_get_no_verdict(text: str, number: int, reason: str) -> None:
    score = numeric_answer(text, number)
    assert score.status == "skipped"
    assert reason in score.reason
    assert numeric_answer(text, number + 1).status == "skipped"


@each_row(("text", "expected"), ANSWERED)
def test_similar_words_leave_a_number_the_answer(text: str, expected: Any) -> None:
    score = numeric_answer(text, expected)
    assert score.passed is True, score.reason
    assert numeric_answer(text, 1234567).passed is not True


@given(st.integers(1, 10**6), st.sampled_from(REJECTIONS), st.sampled_from(FRAMES))
def test_a_rejected_number_never_passes(number: int, rejection: str, frame: str) -> None:
    assert numeric_answer(frame.format(rejection.format(number)), number).passed is not True


@given(st.integers(1, 10**6), st.sampled_from(MINUS_WORDS), st.sampled_from(FRAMES))
def test_a_number_after_a_minus_never_passes_without_it(number: int, word: str, frame: str) -> None:
    assert numeric_answer(frame.format(f"{word} {number}"), number).passed is not True


@each_row(
    "unit",
    [
        "❌ 42 ",
        "if 42 ",
        "mindestens 42 ",
        "moins 5 ",
        "~~42 ",
        "42? ",
        "4̶2̶ ",
        "not the the the ",
        "si si si 42 ",
        "<s>42",
    ],
)
def test_long_texts_with_words_beside_numbers_take_linear_time(unit: str) -> None:
    assert grows_linearly(lambda text: numeric_answer(text, 7), lambda size: unit * (size // len(unit)), 1_500)


def test_the_reason_names_what_the_text_does() -> None:
    reasons: dict[str, Any] = {
        "Is it 42?": "the output only asks about 42",
        "if x were 42": "the output only assumes 42",
        "wrong: 42": "the output denies 42",
        "~~42~~": "the output crosses out its number",
        "mindestens 42": "the answer is a bound",
        "gutxienez 42": "the text is not clearly English, and 'gutxienez' may change 42",
        "42 squared": "42 is only a part of the answer: '42 squared'",
        "sin(42)": "42 is only a part of the answer: 'sin(42'",
        "\\boxed{\\pm 42}": "the sign ± before 42 may change it",
        "42‰": "the sign ‰ after 42 may change it",
        "2024-05-06": "the answer is a date: 2024-05-06",
        "the answer is |-42|": "the answer is an absolute value: |-42|",
    }
    for text, reason in reasons.items():
        assert numeric_answer(text, 42).reason.startswith(reason), text
