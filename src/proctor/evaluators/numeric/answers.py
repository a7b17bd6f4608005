r"""The number that an answer comes to, and what else it might be.

The strongest sign decides: \boxed{}, then ####, then an announcement ("Answer:", "the answer is",
"42 is the answer"), then a line of its own, then a sentence that concludes ("so", "in total"),
then the last sentence with a number. Step labels, list marks, questions and courtesies are no
answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from proctor.evaluators.numeric.doubts import (
    Answer,
    are_joined,
    assigned,
    behind_equals,
    blank_step_labels,
    calculation,
    combinations,
    countable,
    denied,
    denies_announcement,
    doubtful,
    is_denied,
    is_restated,
    last_correction,
    meant,
    replaces,
    rivals_of,
    share_in_words,
    without_dates,
)
from proctor.evaluators.numeric.marks import has_marks, holds_no_answer, marked_texts
from proctor.evaluators.numeric.parse import Decimal, Found, leading_word_number, plain_notation, word_numbers

_NOUN = r"(?:answers?|ans|result|solution)"
_NOUNS = re.compile(rf"\b{_NOUN}\b", re.IGNORECASE)
# A line that announces the answer, whatever follows.
_LABEL = re.compile(
    rf"^[ \t>*_#-]*(?:(?:so|therefore|thus|hence)[, ]+)?(?:the\s+|my\s+|our\s+)?"
    rf"(?:final\s+|correct\s+|numerical\s+)?(?:{_NOUN}|a)[*_ \t]*[:=]",
    re.IGNORECASE | re.MULTILINE,
)
_PHRASE = re.compile(
    rf"\b{_NOUN}\b(?:[^\n.;:=?!]{{0,60}}?\b(?:is|are|was|be|equals|would be)\b[*_ \t]*:?"
    r"|[*_ \t]*[:=])",
    re.IGNORECASE,
)
_AFTERWARDS = re.compile(
    r"(?:\b(?:is|are|was|as)\s+|,\s*|\s+)(?:the|my|our)\s+(?:final\s+|correct\s+|right\s+)?"
    r"(?:answer|result|solution)\b(?!\s*(?:to\s+\w+\s+)?(?:is|of|was)\b)",
    re.IGNORECASE,
)
# Who speaks of another's answer, or of a guess, announces none.
_NOT_MEANT = re.compile(
    r"\b(?:wrong|incorrect|common|first|initial(?:ly)?|previous(?:ly)?|original(?:ly)?|earlier|old|naive"
    r"|your|his|her|their|student'?s?|(?:text)?book'?s?|used to"
    r"|other|another|possible|this|that|think|thought|guess(?:ed)?|assumed?|seems?|tempt\w*|claims?"
    r"|claimed|said|says|if|whether|unless|not|isn't|check(?:ing|ed)?|verif\w+|hope)\b[^.;:\n]{0,25}$",
    re.IGNORECASE,
)
_FINAL = re.compile(rf"\bfinal\s+{_NOUN}\b", re.IGNORECASE)
# What somebody may believe, or believed at first, is no candidate for the answer.
_BELIEVED = re.compile(
    r"\b(?:(?:you|one|some|people|many|students?|they)\s+(?:(?:might|may|could|would|will|often)\s+)*"
    r"(?:think|say|guess|assume|believe|expect)|i\s+(?:\w+ly\s+|first\s+|had\s+)*"
    r"(?:thought|guessed|assumed|said|believed))\b",
    re.IGNORECASE,
)
# Of very many announcements the last ones are compared with each other.
_MOST_ANNOUNCEMENTS = 20
_ABBREVIATED = r"(?<!\bapprox)(?<!\bca)(?<!\be\.g)(?<!\bi\.e)(?<!\bno)(?<!\bvs)(?<!\betc)(?<!\bRs)(?<!\beq)"
_SENTENCE_END = re.compile(rf"{_ABBREVIATED}(?<=[.!?])[\"')*_\]]*\s+|[\n;]+", re.IGNORECASE)
_COURTESY = re.compile(
    r"\b(?:hope\b[^.]*\bhelp|hope\s+(?:this|that)|let me know|feel free|happy to help|glad to help"
    r"|any (?:other|more|further)? ?questions|need (?:anything|help)|good luck|you'?re welcome"
    r"|have a (?:nice|great|good)|(?:is|was|be) (?:helpful|clear|useful)|would you like"
    r"|if you (?:need|want|have))\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|finally|consequently|in (?:total|all|conclusion|summary|short)"
    r"|altogether|overall|(?:grand |sub)?total|sum|result|this means|that means|we get"
    r"|which gives)\b|∴",
    re.IGNORECASE,
)
# Reasons, checks and asides that follow an answer in its sentence.
_REASON = re.compile(
    r"\b(?:because|since|given that|as (?:she|he|it|they|we|there)|which|out of|instead of"
    r"|rather than|compared|than)\b|(?<=\d )of (?:the )?(?=\d)|\(|\s[-—]\s(?=[a-z])",
    re.IGNORECASE,
)
# These may also lead up to the answer: "if she has 50 and gives away 8, she has 42".
_CIRCUMSTANCE = re.compile(r"\b(?:after|when|where|if|for|at|per)\b", re.IGNORECASE)
_RESULT_VERB = re.compile(
    r"=|≈|:|->|→|⇒|\b(?:is|are|was|were|be|equals?|makes?|leaves?|gives?|gets?|yields?|has|have|had"
    r"|costs?|pays?|paid|needs?|takes?|took|earns?|earned|spends?|spent|saves?|saved|totals?|totalling"
    r"|comes? to|came to|amounts? to|adds? up to|results? in|find|found|reads?)\b",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*|__([^_\n]+)__")
_CLAUSE_END = re.compile(
    rf"{_ABBREVIATED}[.;!?](?=\s|$|[\"'*)])|,\s|[(}}]|\b(?:because|since)\b", re.IGNORECASE
)
_BETWEEN = re.compile(r"\b(?:between|from|either)\s*[*$€£]*\s*\Z", re.IGNORECASE)
# The notes of a calculator: "80+150 = <<80+150=230>>230".
_CALCULATION = re.compile(r"<<[^<>\n]*(?:>>|\Z)")
_BARE_LINE = re.compile(r"[^\w\n]*(?:[a-z]{1,12}[^\w\n]+){0,3}\Z", re.IGNORECASE)


def find_answer(text: str, decimal: Decimal = ".") -> Answer:
    r"""The number that a text gives as its answer, with whatever else it might be.

    A number behind a correction ("Wait, it should be 43") replaces the one before it; a number
    that its own clause denies ("42 is wrong") is no answer.

    >>> find_answer("The total is 42. I hope this answer is helpful!").number.written
    '42'
    >>> find_answer(r"Hence \boxed{\frac{3}{4}}, as 3 < 4.").number.value
    Fraction(3, 4)
    """
    text = plain_notation(text)
    if "<<" in text:
        text = _CALCULATION.sub("", text)
    answer = _corrected(text, _stated(text, decimal), decimal)
    if answer.number is None and not answer.withheld and (refused := denied(text, decimal)):
        return Answer(None, withheld=f"the output denies {refused[-1].written} and gives no other number")
    if (share := share_in_words(text)) is not None:
        return answer._replace(others=(*answer.others, share))
    return answer


def _corrected(text: str, answer: Answer, decimal: Decimal) -> Answer:
    """The answer behind the last correction, if the text corrects a number."""
    correction = last_correction(text)
    if correction is None or _stated(text[: correction.start()], decimal).number is None:
        return answer
    rest = text[correction.end() :]
    later = _stated(rest, decimal)
    if later.number is None:
        if correction["weak"]:
            return answer
        return Answer(None, withheld="the output takes its answer back and gives no other number")
    if answer.number is None:
        return later
    if answer.number.value == later.number.value:
        return min(answer, later, key=lambda one: len(one.rivals))
    first = next(iter(meant(rest, decimal)), None)
    is_clear = first is None or (first.value == later.number.value and replaces(rest[: first.start]))
    if is_clear or _last_announcement(rest, decimal) is not None:
        return later
    return later._replace(rivals=(*later.rivals, answer.number))


def _stated(text: str, decimal: Decimal) -> Answer:
    """The answer of a text that corrects nothing."""
    if has_marks(text):
        return _marked(text, decimal)
    announced = _last_announcement(text, decimal)
    if announced is not None:
        return announced
    answer = _concluded(text, decimal)
    if answer.number is not None and (reason := holds_no_answer(text)):
        return Answer(None, withheld=reason)
    return answer


def _marked(text: str, decimal: Decimal) -> Answer:
    """The last answer that a text marks; other marked values are as good as it."""
    marks = marked_texts(text)
    if not marks:
        return Answer(None, withheld="the output marks only answers that it does not give itself")
    found = [_announced(mark.inside, decimal) for mark in marks]
    last = found[-1]
    if last is None:
        return Answer(None)
    earlier = [one.number for one in found[:-1] if one is not None and one.number is not None]
    return last._replace(rivals=(*last.rivals, *earlier))


def _first_line(text: str) -> str:
    return text.lstrip().partition("\n")[0]


def _last_announcement(text: str, decimal: Decimal) -> Answer | None:
    """The last announcement that has a number; a label without one is an answer without one."""
    labels = {match.end(): match for match in _LABEL.finditer(text)}
    places = [(end, match.start(), "label") for end, match in labels.items()]
    if _NOUNS.search(text):
        phrases = (match for match in _PHRASE.finditer(text) if match.end() not in labels)
        places += [(match.end(), match.start(), "phrase") for match in phrases]
        places += [(m.end(), m.start(), "afterwards") for m in _AFTERWARDS.finditer(text)]
    answer, is_label = None, False
    for end, start, kind in sorted(places, reverse=True)[:_MOST_ANNOUNCEMENTS]:
        found = _announcement(text, start, end, kind, decimal)
        if answer is None:
            if kind == "label" and found is None:
                return Answer(None)
            answer, is_label = found, kind == "label"
            if answer is not None and _FINAL.search(text, max(0, start - 10), end):
                return answer
        elif found is not None and found.number is not None and (kind == "label" or not is_label):
            # Two announcements that may differ, and neither is taken back. A last line "A: 42"
            # counts more than words in the working before it.
            answer = answer._replace(rivals=(*answer.rivals, found.number))
    return answer


def _announcement(text: str, start: int, end: int, kind: str, decimal: Decimal) -> Answer | None:
    """The answer of one announcement; None if it has no number, or is not the text's own."""
    if kind == "label":
        line = text[end:].partition("\n")[0]
        return _announced(line if line.strip(" *_\t") else text[end:], decimal)
    sentence = text[_sentence_start(text, start) : start]
    if kind == "phrase" and denies_announcement(text[start:end]):
        return None
    if _NOT_MEANT.search(sentence) or _is_question(text, end):
        return None
    if kind == "afterwards":
        return _before_announcement(sentence, decimal)
    return _announced(_to_sentence_end(text[end:]), decimal)


def _sentence_start(text: str, place: int) -> int:
    ends = [match.end() for match in _SENTENCE_END.finditer(text, max(0, place - 300), place)]
    return ends[-1] if ends else max(0, place - 300)


def _to_sentence_end(text: str) -> str:
    """The rest of a sentence; of a line that has nothing else, the next line."""
    line = text.lstrip()
    end = _SENTENCE_END.search(line)
    return line[: end.start()] if end else line


def _is_question(text: str, place: int) -> bool:
    # Without a copy of the rest: a text may have thousands of announcements.
    start = place + len(text[place : place + 300]) - len(text[place : place + 300].lstrip())
    end = _SENTENCE_END.search(text, start)
    return text[start : end.start() if end else len(text)].rstrip("\"')*_ ").endswith("?")


def _before_announcement(sentence: str, decimal: Decimal) -> Answer | None:
    """The answer of "42 is the answer": the last number before it."""
    numbers = countable(sentence, decimal)
    if not numbers:
        return None
    rivals = [one for one in numbers[:-1] if are_joined(sentence, one, numbers[-1])]
    if re.search(r"\w", sentence[numbers[-1].end :]):
        rivals = numbers[:-1]
    return _with_combinations(Answer(numbers[-1], tuple(rivals)), sentence, numbers)


def _announced(text: str, decimal: Decimal) -> Answer | None:
    """The number of an announced clause: behind its last = that stands before a single one."""
    line = text.strip()
    clause = _CLAUSE_END.split(line, maxsplit=1)[0]
    # "Answer: 42. I checked it." begins no list.
    is_list = text.lstrip(" \t*_").startswith("\n")
    every = meant(blank_step_labels(line, is_list=is_list), decimal)
    for part in (clause, _first_line(line), line):
        numbers = without_dates([one for one in every if one.end <= len(part)])
        if numbers:
            if unknowns := assigned(line, every):
                return Answer(unknowns[-1], tuple(unknowns[:-1]))
            chosen = behind_equals(part, numbers)
            restated = [one for one in every if one is not chosen and is_restated(line, one)]
            rivals = [*rivals_of(line, chosen, every), *restated]
            rivals += _on_the_way(part, numbers, chosen)
            answer = Answer(chosen, tuple(rivals), tuple(doubtful(part, decimal)))
            return _with_combinations(answer, line, every)
    word = leading_word_number(line) or next(_words(clause), None)
    return None if word is None else _with_combinations(Answer(word), line, list(_words(line)))


def _with_combinations(answer: Answer, text: str, numbers: Sequence[Found]) -> Answer:
    """An answer with the values that its number has together with a neighbour."""
    if answer.number is None:
        return answer
    if terms := calculation(text, answer.number, numbers):
        return answer._replace(number=terms[0], rivals=(*answer.rivals, *terms[1:]))
    found = combinations(text, answer.number, numbers)
    rivals = [one.number for one in found if one.is_rival]
    others = [one.number for one in found if not one.is_rival]
    return answer._replace(rivals=(*answer.rivals, *rivals), others=(*answer.others, *others))


def _words(text: str) -> Iterator[Found]:
    """The numbers in words that are not denied."""
    return (one for one in word_numbers(text) if not is_denied(text, one))


def _on_the_way(text: str, numbers: Iterable[Found], chosen: Found) -> Iterable[Found]:
    """Other numbers of an announced clause, unless they are worked out on the way to it."""
    if re.search(r"[=≈]", text):
        return []
    return [one for one in numbers if one is not chosen]


def _concluded(text: str, decimal: Decimal) -> Answer:
    """The answer of a text that announces none."""
    bare = blank_step_labels(text)
    sentences = [
        part
        for part in _SENTENCE_END.split(bare)
        if part.strip() and not part.rstrip("\"')*_ ").endswith("?")
    ]
    stated = _Statements(sentences, decimal)
    last = stated.last()
    if last is None:
        return _in_words(text) if not countable(bare, decimal) else _only(bare, decimal)
    place = stated.last(concluding=True)
    if (alone := _on_its_own(stated, last, concludes=place is not None)) is not None:
        return alone
    sentence, numbers = sentences[last if place is None else place], stated[last]
    if place is None:
        elsewhere = [one for at in range(len(sentences)) for one in stated.candidates(at)]
    else:
        numbers = stated[place]
        elsewhere = [one for at in range(place + 1, len(sentences)) for one in stated[at]]
    chosen, rivals = _chosen(sentence, numbers, decimal)
    competing = (*rivals, *(one for one in elsewhere if one is not chosen))
    answer = Answer(chosen, competing, tuple(doubtful(bare, decimal)))
    return _with_combinations(answer, sentence, numbers)


class _Statements:
    """The sentences of a text with their numbers, which are read when they are asked for."""

    def __init__(self, sentences: Sequence[str], decimal: Decimal) -> None:
        self.sentences, self._decimal = sentences, decimal
        self._numbers: dict[int, list[Found]] = {}
        # A text that is nothing but a courtesy may still give a number.
        self._courteous = len(sentences) > 1

    def __getitem__(self, place: int) -> list[Found]:
        if place not in self._numbers:
            sentence = self.sentences[place]
            skipped = self._courteous and _COURTESY.search(sentence) is not None
            self._numbers[place] = [] if skipped else countable(sentence, self._decimal)
        return self._numbers[place]

    def candidates(self, place: int) -> list[Found]:
        """The numbers of a sentence in digits and words, but for what somebody only believes."""
        if _BELIEVED.search(self.sentences[place]):
            return []
        words = (
            word
            for word in _words(self.sentences[place])
            if not any(word.start < one.end and one.start < word.end for one in self[place])
        )
        return [*self[place], *words]

    def last(self, *, concluding: bool = False) -> int | None:
        """The place of the last sentence with a number; of those that conclude or calculate."""
        for place in range(len(self.sentences) - 1, -1, -1):
            sentence = self.sentences[place]
            if concluding and not ("=" in sentence or _CONCLUDES.search(sentence)):
                continue
            if self[place]:
                return place
        return None


def _only(text: str, decimal: Decimal) -> Answer:
    numbers = countable(text, decimal)
    return _with_combinations(Answer(numbers[-1], tuple(numbers[:-1])), text, numbers)


def _in_words(text: str) -> Answer:
    words = list(_words(text))
    lone = leading_word_number(text)
    if lone is not None and (lone.end == len(text) or not words):
        return Answer(lone if lone.end == len(text) or len(text.split()) <= 2 else None)
    if not words:
        return Answer(None)
    return _with_combinations(Answer(words[-1], tuple(words[:-1])), text, words)


def _on_its_own(stated: _Statements, last: int, *, concludes: bool) -> Answer | None:
    """A number that is all its line says, at the end or, without a conclusion, at the beginning."""
    if _is_bare(stated.sentences[last], stated[last]):
        return Answer(stated[last][0])
    if concludes or not last or not _is_bare(stated.sentences[0], stated[0]):
        return None
    # Begun with, but the end may say something else.
    number = stated[0][0]
    rest = [one for place in range(1, last + 1) for one in stated[place]]
    return Answer(number, tuple(rest))


def _is_bare(sentence: str, numbers: Sequence[Found]) -> bool:
    if len(numbers) != 1 or numbers[0].kind != "number":
        return False
    before, after = sentence[: numbers[0].start], sentence[numbers[0].end :]
    return not re.search(r"\w", before) and _BARE_LINE.match(after.strip(" .") + " ") is not None


def _chosen(sentence: str, numbers: Sequence[Found], decimal: Decimal) -> tuple[Found, tuple[Found, ...]]:
    """The number that a sentence comes to: the bold one, what follows = or a verb, the only one."""
    bold = [m for m in _BOLD.finditer(sentence) if countable(m[1] or m[2], decimal)]
    if bold:
        inside = [one for one in numbers if bold[-1].start() <= one.start < bold[-1].end()]
        if inside:
            first = behind_equals(sentence, inside)
            return first, rivals_of(sentence, first, inside)
    if "=" in sentence and not assigned(sentence, numbers):
        return behind_equals(sentence, numbers), ()
    told = _before_reason(sentence, numbers)
    if len({one.value for one in told}) == 1:
        return told[-1], ()
    if unknowns := assigned(sentence, told):
        return unknowns[-1], tuple(unknowns[:-1])
    limit = told[-1].start
    verbs = [m for m in _RESULT_VERB.finditer(sentence, 0, limit) if m.end() <= limit]
    for verb in reversed(verbs):
        behind = [one for one in told if one.start >= verb.end()]
        if len(behind) == 1 or verb[0] in "=≈":
            return (behind[0] if len(behind) == 1 else behind_equals(sentence, told)), ()
        rivals = rivals_of(sentence, behind[0], behind)
        return behind[0], rivals or tuple(behind[1:])
    return told[-1], tuple(told[:-1])


def _before_reason(sentence: str, numbers: Sequence[Found]) -> Sequence[Found]:
    """The numbers before a reason or a circumstance that follows the answer."""
    first = numbers[0].end
    reason = _REASON.search(sentence, first)
    end = reason.start() if reason else len(sentence)
    around = _CIRCUMSTANCE.search(sentence, first, end)
    if around and not _RESULT_VERB.search(sentence, around.end(), end):
        end = around.start()
    return [one for one in numbers if one.start < end] or numbers
