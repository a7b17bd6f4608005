"""Keys in the shapes of known providers, with their own checks where they have some."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from proctor.redaction.finding import Finding, finding
from proctor.redaction.values import LEAST_BITS, entropy, is_placeholder

_FIRST, _LAST = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_])"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Shape(NamedTuple):
    """The keys of a provider: what they begin with, what follows, and whether they end in a CRC."""

    kind: str
    begins: str
    follows: str
    crc: bool = False


SHAPES = (
    Shape("aws_access_key", "AKIA ASIA", r"[A-Z2-7]{16}"),
    Shape("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36}", crc=True),
    Shape("github_token", "github_pat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    Shape("gitlab_token", "glpat- glrt- gldt- glcbt-", r"[A-Za-z0-9_-]{20,64}"),
    Shape(
        "slack_token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-",
        r"(?:\d{1,14}-){0,3}[A-Za-z0-9-]{16,160}",
    ),
    Shape("slack_token", "xapp-", r"\d-[A-Z0-9]{8,12}-\d{8,14}-[a-f0-9]{32,80}"),
    Shape("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,247}"),
    Shape("stripe_key", "whsec_", r"[A-Za-z0-9+/=]{24,80}"),
    Shape("google_key", "AIza", r"[A-Za-z0-9_-]{35}"),
    Shape("google_key", "GOCSPX-", r"[A-Za-z0-9_-]{28}"),
    Shape("google_token", "ya29.", r"[A-Za-z0-9_-]{30,400}"),
    Shape("anthropic_key", "sk-ant-", r"[a-z0-9]{3,8}-[A-Za-z0-9_-]{24,160}"),
    Shape("openrouter_key", "sk-or-", r"(?:v1-)?[A-Za-z0-9]{32,100}"),
    Shape("langfuse_key", "sk-lf-", r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),
    Shape("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{32,200}"),
    Shape("openai_key", "sk-", r"[A-Za-z0-9]{32,64}"),
    Shape("huggingface_token", "hf_", r"[A-Za-z0-9]{30,40}"),
    Shape("npm_token", "npm_", r"[A-Za-z0-9]{36}", crc=True),
    Shape("pypi_token", "pypi-", r"AgE[A-Za-z0-9_-]{40,300}"),
    Shape("sendgrid_key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    Shape("twilio_key", "SK", r"[0-9a-f]{32}"),
    Shape("digitalocean_token", "doo_v1_ dop_v1_ dor_v1_", r"[a-f0-9]{64}"),
    Shape("groq_key", "gsk_", r"[A-Za-z0-9]{40,60}"),
    Shape("xai_key", "xai-", r"[A-Za-z0-9]{40,120}"),
    Shape("perplexity_key", "pplx-", r"[A-Za-z0-9]{32,80}"),
    Shape("replicate_token", "r8_", r"[A-Za-z0-9]{30,50}"),
    Shape("together_key", "tgp_v1_", r"[A-Za-z0-9_-]{30,80}"),
    Shape("fireworks_key", "fw_", r"(?=[A-Za-z]*(?:\d|[A-Z]{3}))[A-Za-z0-9]{20,60}"),
    Shape("langsmith_key", "lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),
    Shape("databricks_token", "dapi", r"[a-f0-9]{32}(?:-\d)?"),
    Shape("nvidia_key", "nvapi-", r"[A-Za-z0-9_-]{40,90}"),
)
# A text is looked at only where a key may begin, which is found quickly.
_PATTERNS = tuple(
    (shape, mark, re.compile(f"{_FIRST}{re.escape(mark)}(?P<follows>{shape.follows}){_LAST}"))
    for shape in SHAPES
    for mark in shape.begins.split()
)
# In an address of its interface it stands after "bot".
_TELEGRAM = re.compile(
    rf"(?:(?<=/bot)|{_FIRST})\d{{8,10}}:(?P<follows>A[A-Za-z0-9_-]{{34}}){_LAST}"
)


def has_crc(token: str) -> bool:
    """True if the last six characters are the CRC-32 of those after the prefix, in base 62.

    GitHub's and npm's tokens are so made; one whose check fails was made up or misread.

    >>> has_crc("ghp_" + "0" * 36)
    False
    """
    body, check = token.partition("_")[2][:-6], token[-6:]
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0") == check


def places(text: str, mark: str) -> Iterator[int]:
    """Where a mark stands in a text.

    >>> list(places("a-b-c", "-"))
    [1, 3]
    """
    place = text.find(mark)
    while place >= 0:
        yield place
        place = text.find(mark, place + 1)


def find_keys(text: str) -> Iterator[Finding]:
    """Keys that are known by their shape.

    >>> [one.kind for one in find_keys("/AKIA" + "Z7QW2MKX5RTB6PLN/")]
    ['aws_access_key']
    """
    for shape, mark, pattern in _PATTERNS:
        for place in places(text, mark):
            match = pattern.match(text, place)
            if match and _is_random(match["follows"]):
                sure = not shape.crc or has_crc(match[0])
                yield finding(shape.kind, text, place, match.end(), keep=len(mark), sure=sure)
    for place in places(text, ":A"):
        match = _TELEGRAM.search(text, max(0, place - 10), place + 37)
        if match and _is_random(match["follows"]):
            yield finding("telegram_token", text, *match.span(), keep=place - match.start() + 1)


def _is_random(value: str) -> bool:
    return entropy(value) >= LEAST_BITS and not is_placeholder(value)
