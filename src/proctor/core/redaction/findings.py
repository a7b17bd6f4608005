"""Names that say that their value is a secret: api_key, DB_PASS, authToken."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import msgspec


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was found, where it stands in the text, and a masked excerpt of it.

    It is not `sure` if it has the shape of something whose check digits do not hold.
    """

    kind: str
    start: int
    end: int
    excerpt: str = ""
    sure: bool = True


def finding(kind: str, text: str, start: int, end: int, *, keep: int = 1, sure: bool = True) -> Finding:
    """A finding at a place of a text; the first `keep` characters are shown, no more than a fifth.

    >>> finding("email", "Ann: ann@example.com", 5, 20).excerpt
    'a… (15 characters)'
    """
    shown = text[start : start + min(keep, (end - start) // 5)]
    return Finding(kind, start, end, f"{shown}… ({end - start} characters)", sure)


def apart(found: Iterable[Finding]) -> list[Finding]:
    """Findings in the order of the text; of those that overlap the longest stays.

    >>> [one.kind for one in apart([Finding("a", 0, 3), Finding("b", 2, 9), Finding("c", 9, 10)])]
    ['b', 'c']
    """
    taken: list[Finding] = []
    for one in sorted(found, key=lambda one: (one.start, one.start - one.end)):
        if not taken or one.start >= taken[-1].end:
            taken.append(one)
        elif one.end - one.start > taken[-1].end - taken[-1].start:
            taken[-1] = one
    return taken


# What a key is of that must not be told; keys of tables, maps and boards are of something else.
KEYS_OF = (
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
_KEYS_OF = re.compile(KEYS_OF)
# Tokens of a vocabulary, and numbers of them.
_OTHER_TOKENS = re.compile(
    r"[be]os|eot|pad|unk|sep|cls|mask|stop|special|end|start|next|max|min|first|last|per"
)
# Passes of a program over something.
_OTHER_PASSES = re.compile(
    r"first|second|third|last|next|one|two|single|multi|per|max|min|num|by|forward|backward|full"
)
# Below a secret name, what only tells of the secret.
_ABOUT = re.compile(
    r"id|name|type|kind|path|url|uri|version|at|on|in|expiry|expires|algorithm|alg|description"
    r"|format|label|scope|scopes|issuer|user|username|email|created|updated|title|hint|ref"
)


def _words(name: str) -> tuple[str, str]:
    """The last word of a name, and the one before."""
    words = ["", "", *(word.lower() for word in _PARTS.findall(name))]
    return words[-1], words[-2]


# Names come again and again, with every result of a run.
@functools.lru_cache(maxsize=4096)
def says_secret(name: str) -> bool:
    """True if the name of an option says that its value is a secret.

    >>> [says_secret(name) for name in ("api_key", "OPENAI_API_KEY", "authToken", "max_tokens")]
    [True, True, True, False]
    >>> [says_secret(name) for name in ("DB_PASS", "OPENAI_KEY", "first_pass", "sort_key")]
    [True, True, False, False]
    """
    last, before = _words(name)
    if last in ("key", "keys"):
        return _KEYS_OF.fullmatch(before) is not None
    if last == "token":
        return _OTHER_TOKENS.fullmatch(before) is None
    if last == "pass":
        return _OTHER_PASSES.fullmatch(before) is None
    return (_PASSWORD.fullmatch(last) or _SECRET_NAME.fullmatch(last)) is not None


def says_password(name: str) -> bool:
    """True if the name says password, so that a number under it is one.

    >>> says_password("db_password"), says_password("pass"), says_password("token")
    (True, False, False)
    """
    return _PASSWORD.fullmatch(_words(name)[0]) is not None


def tells_about(name: str) -> bool:
    """True if a part of a secret only tells something of it, such as its name or age.

    >>> tells_about("name"), tells_about("created_at"), tells_about("value")
    (True, True, False)
    """
    return _ABOUT.fullmatch(_words(name)[0]) is not None
