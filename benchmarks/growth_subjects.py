"""The subjects of benchmarks/growth.py, which read a text, and the shapes of hostile texts."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proctor.core.redaction.known_secrets import KnownSecrets
from proctor.core.redaction.pii import find_pii
from proctor.core.redaction.redact import Redaction, may_hold_secrets
from proctor.core.redaction.secrets import find_secrets
from proctor.datasets.jsonl import JSONLDataset
from proctor.datasets.table import CSVDataset
from proctor.errors import ProctorError
from proctor.evaluators import matching, questions, rubric_files, rules, structural
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.formats.catalogue import FORMATS
from proctor.evaluators.judges.fence import Fence, MarkedForm
from proctor.evaluators.judges.quoted_json import repeats_object
from proctor.evaluators.judges.verdict_form import VerdictForm
from proctor.evaluators.numeric import numbers
from proctor.evaluators.safety import detection as safety
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.text import quality
from proctor.records import codec
from proctor.records.sample import Sample
from proctor.records.trial import Trial
from proctor.reports.format import excerpt, single_line
from proctor.sessions.importers.session_files import SessionFiles
from proctor.wiring import config


class Refused(Exception):
    """The subject rejected the text with an error message."""


def _repeat(piece: str) -> Callable[[int], str]:
    return lambda size: (piece * (size // len(piece) + 1))[:size]


def _json_of(piece: str) -> Callable[[int], str]:
    return lambda size: codec.encode([piece] * (size // (len(piece) + 3) + 1)).decode()


# Pieces that are repeated to the length wanted: each is the bad case of some pattern or scanner.
SHAPES: dict[str, Callable[[int], str]] = {
    "prose": _repeat("The museum in Oslo opened in 1963. It has 42 rooms, and Mrs. Dahl likes it. "),
    "one letter": _repeat("a"),
    "one word": _repeat("word "),
    "blanks": _repeat(" "),
    "line ends": _repeat("\n"),
    "full stops": _repeat("."),
    "short sentences": _repeat("No. "),
    "abbreviations": _repeat("Mr. "),
    "lower sentences": _repeat("it is so. and then "),
    "digits": _repeat("7"),
    "digit groups": _repeat("1,"),
    "digits and dashes": _repeat("4-"),
    "numbers": _repeat("12 "),
    "signs": _repeat("-"),
    "stars": _repeat("*"),
    "underscores": _repeat("_a"),
    "open brackets": _repeat("["),
    "open braces": _repeat("{"),
    "nested objects": _repeat('{"a":'),
    "open parentheses": _repeat("("),
    "angle brackets": _repeat("<a "),
    "nested tags": _repeat("<a>"),
    "many tags": _repeat("<a></a>"),
    "quotes": _repeat('"'),
    "backslashes": _repeat("\\"),
    "backticks": _repeat("`"),
    "fences": _repeat("```\n"),
    "commas": _repeat(","),
    "colons": _repeat("a:"),
    "keys": _repeat("key:"),
    "api keys": _repeat("api_key="),
    "passwords": _repeat("password is "),
    "tokens": _repeat("token:'"),
    "bearers": _repeat("Bearer "),
    "jwt": _repeat("eyJ"),
    "addresses": _repeat("a@a."),
    "urls": _repeat("http://a:b"),
    "signed urls": _repeat("https://h/?sig="),
    "cookies": _repeat("cookie: a=b;"),
    "base64": _repeat("QWxhZGRpbjpvcGVu"),
    "verdicts": _repeat("SCORE: 4\n"),
    "html entities": _repeat("&amp"),
    "list items": _repeat("- a\n"),
    "headings": _repeat("# a\n"),
    "combining marks": _repeat("e\u0301"),
    "joiners": _repeat("\u200d"),
    "emoji": _repeat("😀"),
    "chinese": _repeat("今天天气很好。"),
    "full width": _repeat("Ａ＠ｂ．"),
    "capitals": _repeat("YOU "),
    "insults": _repeat("you idiot "),
    "json strings": _json_of("short"),
    # Beginnings of personal data and secrets that never end.
    **{
        unit: _repeat(unit)
        for unit in (
            *("1 ", "1.", "a.", "1:", "+1 ", "api_", "tel 1", "token-", "eyJhbGciOi.", "a://b:", "GB82 ", "ffff:"),
            *("-----BEGIN RSA PRIV" + "ATE KEY-----\n", "secret_", "sk-", "L898902C36UTO", "curl -u a:", "&sig="),
            *('"token": "a', "Authorization: Basic ", "%2", "&#", "i not ", "i can't ", "<think>", "women are "),
        )
    },
}

SENTENCE = "The museum in Oslo has 42 rooms."
_SCHEMA = {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}}


def _of(evaluate: Any, *others: Any, **options: Any) -> Callable[[str], object]:
    return lambda text: evaluate(text, *others, **options)


def _both_ways(evaluate: Any, **options: Any) -> Callable[[str], object]:
    """Use the text as the output and as the expected value: the longest possible comparison."""
    return lambda text: evaluate(text, text[::-1], **options)


def _attached(evaluate: Any, *, with_context: bool = False, **options: Any) -> Callable[[str], object]:
    """Attach an evaluator with its options as a run does; a context is as long as the output."""
    # On the first call: attaching all of them takes longer than most programs that import this list.
    attached = functools.cache(lambda: attach(evaluate, parameters=options))

    def call(text: str) -> object:
        metadata = {"context": text[::-1]} if with_context else {}
        return attached().score(Trial(Sample("a", SENTENCE, SENTENCE, metadata), text))

    return call


@contextmanager
def _file(name: str, text: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        yield path


def _reads(name: str, read: Callable[[Path], object]) -> Callable[[str], object]:
    def call(text: str) -> object:
        with _file(name, text) as path:
            try:
                return read(path)
            except ProctorError as error:
                str(error)
                raise Refused from error

    return call


def _answers(read: Callable[[str], object]) -> Callable[[str], object]:
    """Read a judge's answer; one without a verdict raises a ValueError."""

    def call(text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise Refused from error

    return call


def _read_verdict(text: str) -> object:
    return VerdictForm("score", scale=(1, 5)).read(text, structured=False)


def _read_marked(text: str) -> object:
    return MarkedForm(list[int], Fence({"text": SENTENCE})).read(text, structured=False)


_LEXICAL: dict[str, Any] = {"embedder": "lexical"}

SUBJECTS: dict[str, Callable[[str], object]] = {
    "exact_match": _both_ways(matching.exact_match),
    "exact_match case": _both_ways(matching.exact_match, case_sensitive=False),
    "contains": _both_ways(matching.contains),
    "contains case": _both_ways(matching.contains, case_sensitive=False),
    "json_subset": _both_ways(matching.json_subset),
    "regex_match simple": _of(matching.regex_match, pattern="[0-9]+x"),
    "regex_match two": _of(matching.regex_match, pattern=r"\w+\s*=\s*\w+;"),
    "regex_match nested": _of(matching.regex_match, pattern="^(a+)+$"),
    "regex_match branches": _of(matching.regex_match, pattern="(a|a)*b"),
    "regex_match blanks": _of(matching.regex_match, pattern=r"\s+$"),
    "numeric_answer": _of(numbers.numeric_answer, 42),
    "numeric_answer text": _both_ways(numbers.numeric_answer),
    "question_format": _of(questions.question_format),
    "starter_phrase": _attached(questions.starter_phrase, starters=["Would you"]),
    "keywords": _of(rules.keywords, include=["rain"], exclude=["sun"]),
    "occurrences": _of(rules.occurrences, text="word", at_least=1),
    "occurrences pattern": _of(rules.occurrences, pattern="(a+)+b", at_least=1),
    "starts_with": _attached(rules.starts_with, phrases=["The"]),
    "ends_with": _attached(rules.ends_with, phrases=["it."]),
    "letter_case": _of(rules.letter_case),
    "output_language": _attached(rules.output_language, language="en"),
    **{
        f"text_count {piece}": _of(rules.text_count, of=piece, at_least=1)
        for piece in (
            *("characters", "words", "capital_words", "sentences", "lines", "paragraphs"),
            *("bullets", "numbered_items", "headings", "highlights", "placeholders"),
            *("code_blocks", "links"),
        )
    },
    "json_validity": _of(structural.json_validity),
    "json_validity fences": _of(structural.json_validity, allow_fences=True),
    "schema_match": _attached(structural.schema_match, schema=_SCHEMA),
    **{f"format {name}": _attached(structural.format_compliance, format=name) for name in FORMATS if name != "regex"},
    "format regex": _attached(structural.format_compliance, format="regex", pattern="(a+)+b"),
    "semantic_similarity": _attached(quality.semantic_similarity, **_LEXICAL),
    "relevance": _attached(quality.relevance, **_LEXICAL),
    "coherence": _attached(quality.coherence, **_LEXICAL),
    "hallucination_detection": _attached(quality.hallucination_detection, **_LEXICAL, with_context=True),
    "toxicity_detection": _attached(safety.toxicity_detection),
    "bias_detection": _attached(safety.bias_detection),
    "compliance": _attached(safety.compliance),
    "compliance refusal": _attached(safety.compliance, policies=[], refusal="forbidden"),
    "compliance claims": _attached(safety.compliance, policies=[], claims=["It cures the flu"], **_LEXICAL),
    "redaction secrets": find_secrets,
    "redaction personal": find_pii,
    "redaction of known secrets": KnownSecrets(["token-0123456789"]).redact,
    "redaction text": lambda text: Redaction(personal=True).text(text),
    "redaction stored": lambda text: may_hold_secrets(codec.encode([text]).decode()),
    "judge verdict": _answers(_read_verdict),
    "judge marked": _answers(_read_marked),
    "judge repeats_object": lambda text: repeats_object('{"rating": "good"}', text),
    "report excerpt": lambda text: excerpt(text, 80),
    "report line": lambda text: single_line(text, 80),
    "reason": preview,
    "reason of list": lambda text: preview([text]),
    "dataset jsonl": _reads("data.jsonl", lambda path: sum(1 for _ in JSONLDataset(path))),
    "dataset csv": _reads("data.csv", lambda path: sum(1 for _ in CSVDataset(path))),
    "sessions": _reads("log.jsonl", lambda path: sum(1 for _ in SessionFiles(path))),
    "eval file": _reads("eval.yaml", config.load_eval_file),
    "rubric file": _reads("rubrics.yaml", rubric_files.load_rubrics),
}

# These may run until their limit on CPU time: tests/hostile_inputs/test_regex.py proves that it holds.
LIMITED = {name for name in SUBJECTS if name.startswith("regex_match")} | {"occurrences pattern"}
