"""Find attacks on the reader that need no offensive word, and strong words that offend nobody.

The patterns of attacks.yaml describe classes of sentences: urging the reader to harm himself, a threat that names what
the speaker knows, and belittling by a comparison.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from proctor.evaluators.data_files import load_data

# The probability of toxicity of a text with an attack.
PROBABILITY = 0.85
_QUOTES = str.maketrans("’‘“”", "''\"\"")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*\s*|[.!?\n]+")
_QUOTED = re.compile(r'"[^"\n]{1,400}"')


class Attack(NamedTuple):
    """The kind of an attack, its position, and why its meaning is open ("" if it is clear)."""

    kind: str
    start: int
    end: int
    doubt: str = ""


class _Patterns(NamedTuple):
    attacks: tuple[tuple[str, bool, re.Pattern[str]], ...]
    exempt: re.Pattern[str]
    care: re.Pattern[str]
    harmless: tuple[tuple[frozenset[str], re.Pattern[str]], ...]
    aimed: re.Pattern[str]


@functools.cache
def _load_patterns() -> _Patterns:
    content = load_data("safety", "toxicity", "attacks.yaml")
    parts = {"near": r"[\s\S]{0,200}?"}
    for name, texts in content["parts"].items():
        parts[name] = f"(?:{'|'.join(_fill(text, parts) for text in texts)})"
    attacks = [
        (kind, is_clear, re.compile(rf"(?<![\w'])(?:{_fill(text, parts)})", re.MULTILINE))
        for section, is_clear in (("attacks", True), ("doubtful", False))
        for kind, texts in content[section].items()
        for text in texts
    ]
    return _Patterns(
        tuple(attacks),
        re.compile(content["exempt"]),
        re.compile(content["care"]),
        tuple((frozenset(use["words"].split()), re.compile(use["context"])) for use in content["harmless"]),
        re.compile(content["aimed"]),
    )


def _fill(text: str, parts: Mapping[str, str]) -> str:
    filled_text = re.sub(r"\{([a-z]+)\}", lambda match: parts[match[1]], text)
    return filled_text.replace(" ?", r"\s*").replace(" ", r"\s+")


def find_attack(text: str) -> Attack | None:
    """Return the clearest attack on the reader, or None."""
    plain = _fold(text)
    patterns = _load_patterns()
    has_care = patterns.care.search(plain) is not None
    for kind, is_clear, pattern in patterns.attacks:
        for match in pattern.finditer(plain):
            start = max(plain.rfind(mark, 0, match.start()) for mark in ".!?\n") + 1
            is_quoted = any(quote.start() <= match.start() < quote.end() for quote in _QUOTED.finditer(plain))
            if not is_quoted and patterns.exempt.search(plain, start, match.start()):
                continue
            doubt = "" if is_clear else "but the same words are also said without contempt"
            if is_quoted or has_care:
                doubt = "but in a quotation" if is_quoted else "but the text also offers help or advice"
            return Attack(kind, match.start(), match.end(), doubt)
    return None


def find_harmless_words(text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of strong words in sentences that are technical or praise."""
    plain, patterns = _fold(text), _load_patterns()
    words = [(match[0], *match.span()) for match in re.finditer(r"[a-z]+", plain)]
    uses = [use for use in patterns.harmless if any(word in use[0] for word, _, _ in words)]
    if not uses or patterns.aimed.search(plain):
        return
    sentences = [match.span() for match in _SENTENCE.finditer(plain)]
    for strong_words, pattern in uses:
        contexts = [pattern.search(plain, *span) is not None for span in sentences]
        # "Damn! That is awesome.": the context may be in the next sentence or in the previous one.
        spans = [span for index, span in enumerate(sentences) if any(contexts[max(0, index - 1) : index + 2])]
        for word, start, end in words:
            if word in strong_words and any(first <= start < last for first, last in spans):
                yield start, end


def _fold(text: str) -> str:
    """Return the text in lower case with plain quotation marks, at unchanged positions."""
    folded = text.translate(_QUOTES)
    return folded.lower() if folded.isascii() else "".join(letter.lower()[:1] or " " for letter in folded)
