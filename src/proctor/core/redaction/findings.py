"""Findings in a text, and option names whose values are secrets: api_key, DB_PASS, authToken."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import msgspec


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A match in a text: its kind, position and masked excerpt.

    `sure` is False if the check digits are wrong.
    """

    kind: str
    start: int
    end: int
    excerpt: str = ""
    sure: bool = True


def make_finding(kind: str, text: str, start: int, end: int, *, keep: int = 1, sure: bool = True) -> Finding:
    """Make a finding whose excerpt shows the first `keep` characters, at most a fifth of the match."""
    visible_part = text[start : start + min(keep, (end - start) // 5)]
    return Finding(kind, start, end, f"{visible_part}… ({end - start} characters)", sure)


def drop_overlaps(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by position; keep the longest of overlapping findings."""
    separate: list[Finding] = []
    for item in sorted(findings, key=lambda item: (item.start, item.start - item.end)):
        if not separate or item.start >= separate[-1].end:
            separate.append(item)
        elif item.end - item.start > separate[-1].end - separate[-1].start:
            separate[-1] = item
    return separate


# Words before "key" that make it a secret, unlike a sort key or a map key.
SECRET_KEY_PREFIXES = (
    r"api|access|secret|auth|private|signing|encryption|master|shared|account|storage|client"
    r"|subscription|bearer|deploy|license"
    r"|openai|anthropic|claude|azure|aws|google|gemini|vertex|mistral|cohere|groq|openrouter|xai"
    r"|grok|perplexity|replicate|together|fireworks|deepseek|huggingface|langsmith|langfuse"
    r"|databricks|pinecone|weaviate|qdrant|tavily|serper|serpapi|stripe|twilio|sendgrid|github"
    r"|gitlab|slack|nvidia|cerebras|voyage|jina|exa|elevenlabs|assemblyai|deepgram|wandb"
)
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_PASSWORD = re.compile(r"pass(?:word|wd|phrase|code)|pwd|pw")
_SECRET_NAME = re.compile(r"secrets?|credentials?|authorization|auth|bearer|cookies?|apikeys?")
_KEYS_OF = re.compile(SECRET_KEY_PREFIXES)
# Words before "token" that mean a token of a vocabulary or a count.
_OTHER_TOKENS = re.compile(r"[be]os|eot|pad|unk|sep|cls|mask|stop|special|end|start|next|max|min|first|last|per")
# Words before "pass" that mean a pass of a program.
_OTHER_PASSES = re.compile(
    r"first|second|third|last|next|one|two|single|multi|per|max|min|num|by|forward|backward|full"
)
# Names inside a secret's mapping that only describe the secret.
_ABOUT = re.compile(
    r"id|name|type|kind|path|url|uri|version|at|on|in|expiry|expires|algorithm|alg|description"
    r"|format|label|scope|scopes|issuer|user|username|email|created|updated|title|hint|ref"
)


def _last_words(name: str) -> tuple[str, str]:
    words = ["", "", *(word.lower() for word in _PARTS.findall(name))]
    return words[-1], words[-2]


# Cached: every result of a run repeats the same names.
@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """True for the name of an option that contains a secret, such as api_key."""
    last, previous = _last_words(name)
    if last in ("key", "keys"):
        return _KEYS_OF.fullmatch(previous) is not None
    if last == "token":
        return _OTHER_TOKENS.fullmatch(previous) is None
    if last == "pass":
        return _OTHER_PASSES.fullmatch(previous) is None
    return (_PASSWORD.fullmatch(last) or _SECRET_NAME.fullmatch(last)) is not None


def is_password_name(name: str) -> bool:
    """True for the name of a password; only for passwords does a number count as a secret."""
    return _PASSWORD.fullmatch(_last_words(name)[0]) is not None


def is_descriptive_name(name: str) -> bool:
    """True for the name of a field that only describes a secret, such as its name or age."""
    return _ABOUT.fullmatch(_last_words(name)[0]) is not None
