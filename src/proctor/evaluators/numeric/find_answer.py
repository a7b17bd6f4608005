r"""Find the number that a text states as its answer.

The strongest cue decides: \boxed{}, ####, an announcement ("the answer is"), a number on its own line, a sentence that
concludes ("so", "in total"), the last sentence with a number.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from proctor.evaluators.data_files import load_patterns
from proctor.evaluators.numeric import ambiguity
from proctor.evaluators.numeric.ambiguity import Answer, find_assigned_numbers, find_candidates, pick_after_equals
from proctor.evaluators.numeric.context import check_context
from proctor.evaluators.numeric.marks import find_marked_answers, has_marks
from proctor.evaluators.numeric.other_languages import is_range
from proctor.evaluators.numeric.parse import (
    Decimal,
    ParsedNumber,
    may_have_number,
    parse_leading_word_number,
    parse_numbers,
    parse_word_numbers,
    remove_struck_text,
    simplify_notation,
)
from proctor.evaluators.numeric.statements import (
    Choice,
    blank_beliefs,
    choose_number,
    drop_details,
    find_chosen_label,
    find_failed_checks,
    find_option_values,
    find_options,
    find_subject,
    is_computed,
    is_conclusion,
    is_made_of,
    split_checks,
)
from proctor.evaluators.score_conversion import preview

_PHRASES = load_patterns("numeric", "phrases.yaml")
_SENTENCE_END = _PHRASES["sentence_end"]
# A text may have thousands of announcements; only the last ones are compared.
_MAX_ANNOUNCEMENTS = 20
# A longer text is not one answer; reading it would take seconds.
MAX_CHARACTERS = 100_000
_MAX_LAST_LINE = 2_000
# After an announcement, this many sentences of this length may state another number.
_MAX_LATER_SENTENCES, _MAX_LATER_LENGTH = 50, 200
_DIGITS = re.compile(r"\d[\d.,]*(?<=\d)")


def find_answer(text: str, decimal: Decimal = ".") -> Answer:
    r"""Return the number that a text states as its answer, with other possible readings.

    A number after a correction ("Wait, it should be 43") replaces the earlier number; a number that its clause denies
    ("42 is wrong") is not an answer. Of a text that is too long, only a last line that marks the answer is read.
    """
    thinking_end = max(_PHRASES["thinking_end"].finditer(text), key=lambda match: match.start(), default=None)
    if thinking_end and re.search(r"\w", text[thinking_end.end() :]):
        text = text[thinking_end.end() :]
    if len(text) > MAX_CHARACTERS:
        return _find_in_last_line(text, decimal)
    original, text = text, simplify_notation(remove_struck_text(text), decimal)
    if "<<" in text:
        text = _PHRASES["calculator_note"].sub("", text)
    answer = _apply_correction(text, _find_stated_answer(text, decimal), decimal)
    if answer.number is None:
        return answer if answer.missing_reason else _explain_no_answer(original, text, answer, decimal)
    if answer.number.is_assumed:
        return Answer(None, missing_reason=f"the output only assumes {answer.number.text} and gives no answer")
    stated_rivals = (
        *(rival for rival in answer.rivals if not rival.is_assumed),
        *_find_conditional_results(text, answer.number, decimal),
    )
    answer = answer._replace(number=check_context(answer.number, text), rivals=stated_rivals)
    ratio = ambiguity.parse_word_ratio(text)
    others = (*answer.others, *([] if ratio is None else [ratio]), *ambiguity.find_grouped_digits(text))
    return answer._replace(others=others)


def _find_in_last_line(text: str, decimal: Decimal) -> Answer:
    """Return the answer that the last line of a text marks or labels."""
    _, line_end, line = text[-_MAX_LAST_LINE:].rstrip().rpartition("\n")
    if line_end and (has_marks(line) or _PHRASES["label"].match(line)):
        answer = find_answer(line, decimal)
        if answer.number or answer.missing_reason:
            return answer
    limit = f"more than the {MAX_CHARACTERS:,} in which numeric_answer looks for an answer"
    return Answer(None, missing_reason=f"the output has {len(text):,} characters, {limit}")


def _find_conditional_results(text: str, number: ParsedNumber, decimal: Decimal) -> Iterator[ParsedNumber]:
    """Yield the results that a text gives under another condition than that of its answer."""
    for match in _PHRASES["conditional_results"].finditer(text.lower()):
        first, second = (parse_numbers(part, decimal) for part in [part for part in match.groups() if part])
        if first and second and first[0].value == number.value != second[0].value:
            yield second[0]


def _explain_no_answer(original: str, text: str, answer: Answer, decimal: Decimal) -> Answer:
    """Add why a text that has numbers gives no answer."""
    if may_have_number(text) and (reason := ambiguity.explain_denied_number(text, decimal)):
        return answer._replace(missing_reason=reason)
    if not re.search(r"\d", text) and re.search(r"\d", original):
        return answer._replace(missing_reason="the output crosses out its number and gives no other")
    if _PHRASES["chosen_option"].search(text):
        return answer._replace(missing_reason="the output chooses an option and gives no number")
    return answer


def _apply_correction(text: str, answer: Answer, decimal: Decimal) -> Answer:
    """Return the answer after the last correction, if the text corrects a number."""
    correction = ambiguity.find_last_correction(text) if may_have_number(text) else None
    if correction is None or (earlier := _find_stated_answer(text[: correction.start()], decimal)).number is None:
        return answer
    rest = text[correction.end() :]
    later = _find_stated_answer(rest, decimal)
    if later.number is None:
        if correction["weak"] or correction["recount"]:
            return answer
        return Answer(None, missing_reason="the output takes its answer back and gives no other number")
    if correction["recount"]:
        is_announced = _is_announced(text[: correction.start()], decimal)
        return _apply_recount(rest, earlier, later, decimal, is_announced=is_announced)
    if answer.number is None:
        return later
    if answer.number.value == later.number.value:
        return min(answer, later, key=lambda candidate: len(candidate.rivals))
    first = next(iter(ambiguity.find_undenied_numbers(rest, decimal)), None)
    is_clear = first is None or (
        first.value == later.number.value and ambiguity.introduces_replacement(rest[: first.start])
    )
    if is_clear or _find_announced_answer(rest, decimal) is not None:
        return later
    return later._replace(rivals=(*later.rivals, answer.number))


def _apply_recount(rest: str, earlier: Answer, later: Answer, decimal: Decimal, *, is_announced: bool) -> Answer:
    """Return the answer of a text that counts again: the later number only if the text states it as the result."""
    if earlier.number is None or later.number is None:
        return earlier
    if earlier.number.value == later.number.value or _PHRASES["confirmed"].search(rest):
        return earlier
    numbers, is_stated = ambiguity.find_undenied_numbers(rest, decimal), _is_announced(rest, decimal)
    if ambiguity.are_incidental(rest, numbers) and not is_stated:
        return earlier if is_announced else earlier._replace(rivals=(*earlier.rivals, later.number))
    # After an announced answer, an equation may only check a part of it.
    sentences = _SENTENCE_END.split(rest.replace("=", " ") if is_announced else rest)
    results = [number for text in filter(is_conclusion, sentences) for number in find_candidates(text, decimal)]
    results += [number for number in numbers[:1] if _is_recounted(rest, number, earlier.number, is_announced)]
    if is_stated or any(number.value == later.number.value for number in results):
        return later
    return earlier._replace(rivals=(*earlier.rivals, later.number))


def _is_recounted(rest: str, number: ParsedNumber, earlier: ParsedNumber, is_announced: bool) -> bool:
    """Return whether a number replaces an earlier count: "it is 13", "there are 13 birds", but not "3 of them"."""
    if _PHRASES["part_after"].match(number.after):
        return False
    if ambiguity.introduces_replacement(rest[: number.start]):
        return True
    things, earlier_things = (_PHRASES["counted_things"].match(other.after) for other in (number, earlier))
    if things is None or not _PHRASES["count_before"].fullmatch(rest[: number.start]):
        return False
    if earlier_things is None:
        return not things[1] or re.match(rf"\W*{things[1]}\b", earlier.after) is not None
    # Of things that the first count does not name, a similar number is a correction, and another one a detail.
    is_similar = abs(number.value - earlier.value) * 2 <= abs(earlier.value)
    return things[1] in (None, earlier_things[1]) or (not earlier_things[1] and is_similar and not is_announced)


def _is_announced(text: str, decimal: Decimal) -> bool:
    announced = _find_announced_answer(text, decimal)
    return has_marks(text) or (announced is not None and announced.number is not None)


def _find_stated_answer(text: str, decimal: Decimal) -> Answer:
    """Return the answer of a text without corrections."""
    options = find_options(text)
    chosen = _read_chosen_option(text, options, decimal)
    if has_marks(text):
        marked = _read_marks(text, decimal)
        return chosen if chosen and marked.number is None else marked
    if not may_have_number(text):
        return chosen or Answer(None)
    text = blank_beliefs(text)
    # In "A: 10, B: 20", A does not announce the answer.
    is_option = (chosen or options) and _PHRASES["second_letter"].search(text)
    announced = _find_announced_answer(_PHRASES["letter_label"].sub(" ", text) if is_option else text, decimal)
    if chosen and announced and announced.number:
        return announced._replace(rivals=(*announced.rivals, *([chosen.number] if chosen.number else [])))
    if chosen or announced:
        return chosen or announced or Answer(None)
    answer = _find_conclusion(text, decimal)
    if options and answer.number is not None:
        answer = answer._replace(rivals=(*answer.rivals, *_find_unchosen(text, options, answer.number, decimal)))
    if answer.number is not None and (reason := explain_missing_answer(text)):
        return Answer(None, missing_reason=reason)
    return answer


def _read_chosen_option(text: str, options: dict[str, str], decimal: Decimal) -> Answer | None:
    """Return the number of the option that a text chooses from its list; None if it does not choose."""
    is_listed, is_named = bool(options), True
    if not is_listed:
        options, text, is_named = find_option_values(text)
    label = find_chosen_label(text, list(options), is_named=is_named) if options else ""
    if not label:
        return None
    answer = _read_clause(options.get(label, ""), decimal)
    if answer and answer.number and not is_listed:
        # The sentences after the options may state another number.
        stated = _find_conclusion(" ".join(_SENTENCE_END.split(text)[1:]), decimal).number
        if stated and stated.value != answer.number.value:
            return answer._replace(rivals=(*answer.rivals, stated))
    return answer or Answer(None, missing_reason=f"the output chooses {label}, and the number of {label} is unclear")


def _find_unchosen(
    text: str, options: dict[str, str], number: ParsedNumber, decimal: Decimal
) -> Sequence[ParsedNumber]:
    """Return the numbers of all options if a number is only the number of one of them."""
    numbers = [number for option in options.values() for number in find_candidates(option, decimal)]
    same = [other for other in find_candidates(text, decimal) if other.value == number.value]
    return numbers if 0 < len(same) <= sum(other.value == number.value for other in numbers) else ()


def _read_marks(text: str, decimal: Decimal) -> Answer:
    """Return the last marked answer; the other marked values are its rivals."""
    marked = find_marked_answers(text)
    if not marked:
        return Answer(None, missing_reason="the output marks only answers that it does not give itself")
    *earlier, last = (_read_clause(content, decimal) for content in marked)
    if last is None:
        has_digits = re.search(r"\d", text) and not re.search(r"\d", marked[-1])
        reason = f"the output marks {preview(marked[-1].strip())} as its answer, and its numbers are elsewhere"
        return Answer(None, missing_reason=reason if has_digits else "")
    rivals = [answer.number for answer in earlier if answer is not None and answer.number is not None]
    return last._replace(rivals=(*last.rivals, *rivals))


def _find_announced_answer(text: str, decimal: Decimal) -> Answer | None:
    """Return the last announcement that has a number; a label without a number is an empty answer."""
    spans = [(match.end(), match.start(), "label") for match in _PHRASES["label"].finditer(text)]
    if _PHRASES["answer_noun"].search(text):
        label_ends = {end for end, _, _ in spans}
        matches = _PHRASES["announcement"].finditer(text)
        spans += [(m.end(), m.start(), "before") for m in matches if m.end() not in label_ends]
        spans += [(m.end(), m.start(), "after") for m in _PHRASES["announcement_after"].finditer(text)]
    answer, is_label = None, False
    for end, start, position in sorted(spans, reverse=True)[:_MAX_ANNOUNCEMENTS]:
        announced = _read_announcement(text, start, end, position, decimal)
        if answer is None:
            if position == "label" and announced is None:
                return _explain_label(text, start, end, decimal)
            answer, is_label = announced, position == "label"
            if answer is not None and _PHRASES["final_answer"].search(text, max(0, start - 10), end):
                return answer
            if answer is not None and not is_label:
                answer = _add_later_statements(answer, text[end:], decimal)
        elif announced is not None and announced.number is not None and (position == "label" or not is_label):
            # Two announcements may differ. A last line "A: 42" outweighs words in the working before it.
            answer = answer._replace(rivals=(*answer.rivals, announced.number))
    if answer is None or answer.number is None or is_label:
        return answer
    checks = split_checks(_SENTENCE_END.split(text))[1]
    return answer._replace(rivals=(*answer.rivals, *find_failed_checks(checks, answer.number, decimal)))


def _add_later_statements(answer: Answer, rest: str, decimal: Decimal) -> Answer:
    """Add the other numbers that the sentences after an announcement state of the same ("It is 40.", "Hmm, 40.")."""
    if answer.number is None:
        return answer
    rivals, others = [*answer.rivals], [*answer.others]
    for sentence in _SENTENCE_END.split(ambiguity.blank_step_labels(rest))[1 : _MAX_LATER_SENTENCES + 1]:
        number = next(iter(find_candidates(sentence[:_MAX_LATER_LENGTH], decimal)), None)
        statement = number and _PHRASES["later_statement"].fullmatch(sentence[: number.start])
        if not number or not statement or _PHRASES["other_amount"].search(statement[0]):
            continue
        units = [re.sub(r"[\s*_)\"'”.!,;…]+", " ", other.after).strip().lower() for other in (number, answer.number)]
        if units[0] in ("", units[1]):
            (others if _is_rounded(number, answer.number) else rivals).append(number)
    return answer._replace(rivals=tuple(rivals), others=tuple(others))


def _is_rounded(number: ParsedNumber, exact: ParsedNumber) -> bool:
    """Return whether one number may only be another form of the other: 3.14 and 22/7, 0.5 of 50%."""
    if exact.is_percent and not number.is_percent:
        return number.value * 100 == exact.value
    has_fraction = "/" in exact.text or "/" in number.text
    return has_fraction and abs(number.value - exact.value) * 100 <= max(abs(number.value), abs(exact.value))


def _explain_label(text: str, start: int, end: int, decimal: Decimal) -> Answer:
    """Return an answer without a number for a label such as "Answer: Table 3" or "Answer: B"."""
    line, _, rest = text[end:].partition("\n")
    if others := find_candidates(line, decimal):
        return Answer(None, others=tuple(others))
    if re.search(r"\d", f"{text[:start]}{rest}"):
        label = preview(f"{text[start:end]}{line}".strip(" *_#>\n"))
        return Answer(None, missing_reason=f"{label} has no number, and the output has numbers elsewhere")
    return Answer(None)


def _read_announcement(text: str, start: int, end: int, position: str, decimal: Decimal) -> Answer | None:
    """Return the answer of one announcement; None if it has no number or quotes another person."""
    if position == "label":
        line = text[end:].partition("\n")[0]
        return _read_clause(line if line.strip(" *_\t") else text[end:], decimal)
    sentence_starts = [match.end() for match in _SENTENCE_END.finditer(text, max(0, start - 300), start)]
    sentence = text[sentence_starts[-1] if sentence_starts else max(0, start - 300) : start]
    if position == "before" and _PHRASES["denied_announcement"].search(text[start:end]):
        return None
    if _PHRASES["modal_before"].search(text, start, end) and _PHRASES["condition_after"].match(text, end):
        return None
    is_rejected = any(_PHRASES[name].search(sentence) for name in ("rejection_before", "declined_before"))
    if is_rejected or _PHRASES["reported"].search(sentence) or _is_question(text, end):
        return None
    if position == "after":
        return _read_before_announcement(sentence, decimal)
    # The answer may be on the next line.
    return _read_clause(_SENTENCE_END.split(text[end:].lstrip(), maxsplit=1)[0], decimal)


def _is_question(text: str, position: int) -> bool:
    # Does not copy the rest of the text, because there may be thousands of announcements.
    start = position + len(text[position : position + 300]) - len(text[position : position + 300].lstrip())
    end = _SENTENCE_END.search(text, start)
    return text[start : end.start() if end else len(text)].rstrip("\"')*_ ").endswith("?")


def _read_before_announcement(sentence: str, decimal: Decimal) -> Answer | None:
    """Return the answer of "42 is the answer": the last number before it."""
    numbers = find_candidates(sentence, decimal)
    if not numbers:
        return None
    rivals = [number for number in numbers[:-1] if ambiguity.are_joined(sentence, number, numbers[-1])]
    if re.search(r"\w", sentence[numbers[-1].end :]):
        rivals = numbers[:-1]
    return _add_combinations(Answer(numbers[-1], tuple(rivals)), sentence, numbers)


def _read_clause(text: str, decimal: Decimal) -> Answer | None:
    """Return the number of an announced clause: the number after the last = that precedes a single number."""
    line = text.strip()
    clause = _PHRASES["clause_end"].split(line, maxsplit=1)[0]
    # "Answer: 42. I checked it." does not start a list.
    is_list = text.lstrip(" \t*_").startswith("\n")
    all_numbers = ambiguity.find_undenied_numbers(ambiguity.blank_step_labels(line, is_list=is_list), decimal)
    for passage in (clause, line.lstrip().partition("\n")[0], line):
        numbers = ambiguity.prefer_non_dates([number for number in all_numbers if number.end <= len(passage)])
        if numbers:
            if unknowns := find_assigned_numbers(line, all_numbers):
                return Answer(unknowns[-1], tuple(unknowns[:-1]))
            if subject := find_subject(passage, numbers):
                return Answer(subject, (), tuple(number for number in all_numbers if number is not subject))
            best = pick_after_equals(passage, numbers)
            is_refusal = best.start >= len(clause) and _PHRASES["refusal"].search(clause)
            if is_refusal or _PHRASES["no_answer"].match(line):
                return Answer(best._replace(category="unclear", doubt="the output refuses to answer"))
            rivals = [*ambiguity.find_joined_numbers(line, best, all_numbers)]
            rivals += [n for n in all_numbers if n is not best and ambiguity.is_restated(line, n)]
            if not re.search(r"[=≈]", passage):
                rivals += [number for number in numbers if number is not best]
            answer = Answer(best, tuple(rivals), tuple(ambiguity.find_doubtful_numbers(passage, decimal)))
            return _add_combinations(answer, line, all_numbers)
    word = parse_leading_word_number(line) or next(iter(_find_undenied_words(clause)), None)
    return None if word is None else _add_combinations(Answer(word), line, _find_undenied_words(line))


def _add_combinations(answer: Answer, text: str, numbers: Sequence[ParsedNumber]) -> Answer:
    """Add the values that result from combining the answer with the number before or after it."""
    number = answer.number
    if number is None:
        return answer
    answer = answer._replace(rivals=(*answer.rivals, *ambiguity.find_bracketed_words(text, number)))
    if terms := ambiguity.evaluate_calculation(text, number, numbers):
        return answer._replace(number=terms[0], rivals=(*answer.rivals, *terms[1:]))
    index = ambiguity.find_index(numbers, number)
    if index is None:
        return answer
    neighbors = numbers[max(0, index - 1) : index + 2]
    pairs = list(ambiguity.combine_neighbors(text, neighbors))
    equal_amounts = ambiguity.find_equal_amounts(text, numbers, index)
    ranges = [(a, b) for a, b in pairwise(neighbors) if is_range(text, (a.start, a.end), (b.start, b.end))]
    return answer._replace(
        ranges=tuple(ranges),
        rivals=(*answer.rivals, *equal_amounts, *(pair.result for pair in pairs if pair.is_rival)),
        others=(*answer.others, *(pair.result for pair in pairs if not pair.is_rival)),
    )


def _find_undenied_words(text: str) -> list[ParsedNumber]:
    return ambiguity.drop_denied_numbers(text, parse_word_numbers(text))


def _find_conclusion(text: str, decimal: Decimal) -> Answer:
    """Return the answer of a text without announcements."""
    unlabelled = ambiguity.blank_step_labels(text)
    statements, questions = _split_questions(unlabelled)
    statements, checks = split_checks(statements)
    sentences = _Sentences(statements, decimal)
    last = sentences.find_last()
    if last is None:
        return _find_unclear_answer(text, "\n".join(statements) if questions else unlabelled, decimal)
    conclusion = sentences.find_last(concluding=True)
    if conclusion is not None and (total := sentences.find_total(conclusion)):
        return total
    if (standalone_number := _find_on_own_line(sentences, last, has_conclusion=conclusion is not None)) is not None:
        return standalone_number
    index = last if conclusion is None else conclusion
    sentence, numbers = sentences.texts[index], sentences[index]
    choice = choose_number(sentence, numbers, decimal)
    if conclusion is None:
        if (
            questions
            and text.rstrip().endswith(questions[-1].strip())
            and _PHRASES["open_question"].match(questions[-1])
        ):
            return Answer(None, missing_reason="the output ends with a question and does not answer it")
        choice = sentences.compare(index, choice)
    else:
        later = [number for i in range(index + 1, len(sentences.texts)) for number in sentences[i]]
        explained = sentences.find_explained_numbers(index, choice)
        choice = choice._replace(rivals=[*choice.rivals, *later, *sentences.find_checked_numbers(index), *explained])
    best, rivals, details, is_result = choice
    if not is_result and ambiguity.is_restated(sentence, best):
        rivals = [*rivals, *(word for word in _find_undenied_words(sentence) if word.end <= best.start)]
    competing = {id(n): n for n in (*rivals, *find_failed_checks(checks, best, decimal)) if n is not best}
    doubtful = ambiguity.find_doubtful_numbers(unlabelled, decimal)
    answer = Answer(best, tuple(competing.values()), (*doubtful, *details))
    return _add_combinations(answer, sentence, numbers)


def _split_questions(text: str) -> tuple[list[str], list[str]]:
    """Return the sentences of a text that are not questions, and the questions."""
    statements, questions = list[str](), list[str]()
    for sentence in filter(str.strip, _SENTENCE_END.split(text)):
        is_question = sentence.rstrip("\"'’”»)]*_ ").endswith(("?", "？", "؟"))
        (questions if is_question else statements).append(sentence)
    return statements, questions


def _find_unclear_answer(text: str, statements: str, decimal: Decimal) -> Answer:
    """Return the answer of a text whose numbers are words, labels, or parts of questions and courtesies."""
    if numbers := find_candidates(statements, decimal):
        return _add_combinations(Answer(numbers[-1], tuple(numbers[:-1])), statements, numbers)
    if (answer := _find_in_words(statements)).number is not None:
        return answer
    question = " ".join(_split_questions(text)[1])
    if numbers := [*parse_numbers(question, decimal), *parse_word_numbers(question)]:
        reason = f"the output only asks about {numbers[-1].text} and gives no answer"
        return Answer(None, missing_reason=reason)
    return answer._replace(others=tuple(find_candidates(text, decimal)))


class _Sentences:
    """The sentences of a text and their numbers, which are parsed on first use."""

    def __init__(self, texts: Sequence[str], decimal: Decimal) -> None:
        self.texts, self._decimal = texts, decimal
        self._numbers: dict[int, list[ParsedNumber]] = {}

    def __getitem__(self, index: int) -> list[ParsedNumber]:
        if index not in self._numbers:
            sentence = self.texts[index]
            # A single sentence may state a number even if it is a courtesy.
            is_courtesy = len(self.texts) > 1 and _PHRASES["courtesy"].search(sentence) is not None
            self._numbers[index] = [] if is_courtesy else find_candidates(sentence, self._decimal)
        return self._numbers[index]

    def find_all_candidates(self, index: int) -> list[ParsedNumber]:
        """Return the numbers of a sentence in digits and words."""
        numbers = self[index]
        starts = [number.start for number in numbers]
        ends = list(accumulate((number.end for number in numbers), max))

        def overlaps(word: ParsedNumber) -> bool:
            before = bisect_left(starts, word.end)
            return before > 0 and ends[before - 1] > word.start

        return [*numbers, *(word for word in _find_undenied_words(self.texts[index]) if not overlaps(word))]

    def compare(self, index: int, choice: Choice) -> Choice:
        """Add the numbers of all sentences to the choice of one, as rivals or details, unless it results from them."""
        numbers = [self.find_all_candidates(i) for i in range(len(self.texts))]
        others = [number for row in numbers for number in row if number is not choice.number]
        if is_computed(self.texts[index], choice.number, others):
            return choice._replace(rivals=(), details=others)
        stated = {id(n) for text, row in zip(self.texts, numbers, strict=True) if row for n in drop_details(text, row)}
        stated -= {id(number) for number in choice.details}
        rivals = [*choice.rivals, *(number for number in others if id(number) in stated)]
        details = [*choice.details, *(number for number in others if id(number) not in stated)]
        return choice._replace(rivals=rivals, details=details)

    def find_checked_numbers(self, index: int) -> list[ParsedNumber]:
        """Return the values that an equation without a variable may check: "x = 7", then "3(7) + 4 = 25"."""
        left, sign, _ = self.texts[index].rpartition("=")
        if not sign or re.search(r"[a-zA-Z]\s*=|[a-zA-Z]{2}", left):
            return []
        digits = set(_DIGITS.findall(left))
        lines = range(max(0, index - _MAX_ANNOUNCEMENTS), index)
        assigned = [self[i] for i in lines if _PHRASES["bare_assignment"].fullmatch(self.texts[i])]
        return [row[0] for row in assigned if row and digits.intersection(_DIGITS.findall(row[0].text))]

    def find_explained_numbers(self, index: int, choice: Choice) -> Sequence[ParsedNumber]:
        """Return the numbers that a sentence may only explain: "It costs $30. That is $10 per person."

        There are none if the sentence computes its number from them: "12 in each of 4 boxes. That's 48."
        """
        if not _PHRASES["follow_up"].match(self.texts[index]):
            return []
        earlier = [number for i in range(index) for number in self.find_all_candidates(i)]
        if is_computed(self.texts[index], choice.number, earlier):
            return []
        previous = next((i for i in range(index - 1, -1, -1) if self.find_all_candidates(i)), None)
        if previous is None:
            return []
        explained = drop_details(self.texts[previous], self.find_all_candidates(previous))
        return [] if any(number.value == choice.number.value for number in explained) else explained

    def find_total(self, index: int) -> Answer | None:
        """Return the only number of a sentence if the numbers of the sentences after it add up to it."""
        later = [number for i in range(index + 1, len(self.texts)) for number in self[i]]
        if len(self[index]) != 1 or "=" in self.texts[index] or not is_made_of(self[index][0], later):
            return None
        return Answer(self[index][0], others=tuple(later))

    def find_last(self, *, concluding: bool = False) -> int | None:
        """Return the index of the last sentence with a number; with `concluding`, it must also state a conclusion."""
        for index in range(len(self.texts) - 1, -1, -1):
            sentence = self.texts[index]
            if concluding and not is_conclusion(sentence):
                continue
            if self[index]:
                return index
        return None


def _find_in_words(text: str) -> Answer:
    words = _find_undenied_words(text)
    leading = parse_leading_word_number(text)
    if leading is not None:
        leading = leading._replace(
            before=text[: leading.start], after=text[leading.end : leading.end + ambiguity.CONTEXT_LENGTH]
        )
    if leading is not None and (leading.end == len(text) or not words):
        return Answer(leading if leading.end == len(text) or len(text.split()) <= 2 else None)
    if not words:
        return Answer(None)
    return _add_combinations(Answer(words[-1], tuple(words[:-1])), text, words)


def _find_on_own_line(sentences: _Sentences, last: int, *, has_conclusion: bool) -> Answer | None:
    """Return a number that is alone on the last line or, without a conclusion, on the first."""
    if _fills_line(sentences.texts[last], sentences[last]):
        return _compare_lines(sentences, last)
    if has_conclusion or not last or not _fills_line(sentences.texts[0], sentences[0]):
        return None
    # Later sentences may state another number.
    rivals = [number for index in range(1, last + 1) for number in sentences[index]]
    return Answer(sentences[0][0], tuple(rivals))


def _compare_lines(sentences: _Sentences, last: int) -> Answer:
    """Return the number of the last line; if words follow it, the lines before it may be items of the same list."""
    number = sentences[last][0]
    lines = [sentences[index] for index in range(last) if _fills_line(sentences.texts[index], sentences[index])]
    items = [line[0] for line in lines]
    if not items or is_conclusion(sentences.texts[last]) or not re.search(r"\w", sentences.texts[last][number.end :]):
        return Answer(number)
    if is_made_of(items[0], [*items[1:], number]):
        return Answer(items[0], others=(*items[1:], number))
    return Answer(number, () if is_computed(sentences.texts[last], number, items) else tuple(items))


def _fills_line(sentence: str, numbers: Sequence[ParsedNumber]) -> bool:
    if len(numbers) != 1 or numbers[0].category != "number":
        return False
    before, after = sentence[: numbers[0].start], sentence[numbers[0].end :]
    return not re.search(r"\w", before) and _PHRASES["line_rest"].match(after.strip(" .") + " ") is not None


def explain_missing_answer(text: str) -> str:
    """Explain why a text without marks has no answer: a refusal or a failed request; "" otherwise."""
    if _PHRASES["refusal"].search(text):
        return "the output refuses to answer"
    if _PHRASES["no_idea"].search(text):
        return "the output only guesses"
    if _PHRASES["request_error"].search(text) or _PHRASES["not_found"].search(text):
        return "the output is the message of a failed request"
    return ""
