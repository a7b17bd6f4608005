"""Personal data and secrets: what is found, what is not, and that neither takes long."""

from __future__ import annotations

import base64
import random
import string
import time
import zlib
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.redaction.findings import Finding, finding, without_overlaps
from proctor.core.redaction.pii import FINDERS, find_pii
from proctor.core.redaction.secrets import find_secrets, has_crc
from tests.redaction.lines import PII, SECRETS, rows

Finder = Callable[[str], list[Finding]]
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


@pytest.mark.parametrize(("kinds", "text"), rows(PII), ids=lambda value: str(value)[:40])
def test_personal_data_is_found_and_what_looks_like_it_is_not(kinds: list[str], text: str) -> None:
    """Each line gives exactly what it holds, in order."""
    assert [one.kind for one in find_pii(text)] == kinds


@pytest.mark.parametrize(("kinds", "text"), rows(SECRETS), ids=lambda value: str(value)[:40])
def test_secrets_are_found_and_what_looks_like_one_is_not(kinds: list[str], text: str) -> None:
    """Each line gives exactly what it holds, in order."""
    assert [one.kind for one in find_secrets(text)] == kinds


def test_the_lines_are_many_and_half_of_them_hold_nothing() -> None:
    """There are more than 150 lines, with every kind of finder and many hard negatives."""
    for lines, least in ((PII, 150), (SECRETS, 100)):
        empty = [text for kinds, text in rows(lines) if not kinds]
        assert len(lines) >= least
        assert len(empty) >= len(lines) * 0.4


def crc_of(body: str) -> str:
    """The check digits of a token, six in base 62, by hand."""
    number = zlib.crc32(body.encode())
    return "".join(BASE62[number // 62**place % 62] for place in range(5, -1, -1))


def test_a_token_whose_check_holds_is_sure_and_another_is_found_but_not_sure() -> None:
    """GitHub's tokens end in a CRC; a made-up one is reported with less certainty."""
    body = "q7Xp2LmZ9vRt4KbNc8WyHd3FsJ6gTa"
    real, other = f"ghp_{body}{crc_of(body)}", f"ghp_{body}000000"
    assert has_crc(real)
    assert not has_crc(other)
    assert [one.sure for one in find_secrets(f"{real} {other}")] == [True, False]


def test_a_private_key_is_found_also_when_it_is_cut_off_and_a_placeholder_is_not() -> None:
    """Its first line and enough of a body make it; a public key or an empty block is none."""
    begin, end = "-----BEGIN RSA PRIV" + "ATE KEY-----", "-----END RSA PRIV" + "ATE KEY-----"
    body = "MIIEowIBAAKCAQEA7bq98Yz" * 4
    whole = f"{begin}\n{body}\n{end}"
    assert [one.kind for one in find_secrets(f"key:\n{whole}\n")] == ["private_key"]
    assert [one.kind for one in find_secrets(f"{begin}\n{body}")] == ["private_key"]
    assert find_secrets(f"{begin}\n...\n{end}") == []
    assert find_secrets(whole.replace("PRIVATE", "PUBLIC")) == []


def test_words_that_come_by_chance_hide_no_random_value() -> None:
    """Of thousands of keys some hold "xxx", "fake" or "todo"; every one of them is found."""
    chance = random.Random(6)
    begin = "-----BEGIN PRIV" + "ATE KEY-----"
    missed = words = 0
    for _ in range(1_000):
        body = base64.b64encode(chance.randbytes(1_218)).decode()
        words += any(word in body.lower() for word in ("xxx", "fake", "todo", "your"))
        missed += not find_secrets(f"{begin}\n{body}\n")
    assert words > 20
    for begins, length in (("sk-proj-", 156), ("AIza", 35), ("ghp_", 36), ("api_key=", 64)):
        for _ in range(1_000):
            key = "".join(chance.choices(BASE62, k=length))
            missed += not find_secrets(f"it is {begins}{key}.")
    assert missed == 0
    stand_ins = ("xxx", "fake", "todo", "your")
    for word in stand_ins:
        assert find_secrets(f"sk-{word}" + "q7Xp2LmZ9vRt4KbNc8WyHd3FsJ6gTa1B"[len(word) :]) == []


def test_a_letter_that_grows_when_it_is_made_small_moves_nothing() -> None:
    """Names are looked for in small letters, and values taken from the text itself."""
    text = "İİİİ DB_PASSWORD='hunter2!'"
    (found,) = find_secrets(text)
    assert text[found.start : found.end] == "hunter2!"


def test_what_is_found_stands_where_it_is_said_to_and_is_not_told() -> None:
    """The place gives the very thing back, and its excerpt hides all but a fifth."""
    for lines, finder in ((PII, find_pii), (SECRETS, find_secrets)):
        for _, text in rows(lines):
            for one in finder(f"See: {text}"):
                thing = f"See: {text}"[one.start : one.end]
                assert thing
                assert thing == thing.strip()
                shown = one.excerpt.partition("…")[0]
                assert thing.startswith(shown)
                assert len(shown) <= len(thing) / 5


def test_a_password_is_not_shown_at_all() -> None:
    """Of a password not even the first letter is told."""
    (found,) = find_secrets('password = "hunter2hunter2hunter2"')
    assert found.excerpt == "… (21 characters)"


def test_only_the_kinds_that_are_wanted_are_looked_for() -> None:
    """`kinds` names finders."""
    text = "ann@example.com, +44 20 7946 0958"
    assert [one.kind for one in find_pii(text, ["phone"])] == ["phone"]
    assert set(FINDERS) == {"email", "phone", "card", "iban", "national_id", "ip_address"}


def test_of_findings_that_overlap_the_longest_stays() -> None:
    """One place of a text is reported once."""
    found = [Finding("a", 0, 4), Finding("b", 2, 9), Finding("c", 3, 5), Finding("d", 9, 11)]
    assert [one.kind for one in without_overlaps(found)] == ["b", "d"]
    assert finding("x", "abcdefghij", 0, 10, keep=9).excerpt == "ab… (10 characters)"


@given(st.text(max_size=300))
def test_any_text_can_be_looked_through(text: str) -> None:
    """Findings are in order, apart, and inside the text, whatever it is."""
    for finder in (find_pii, find_secrets):
        found = finder(text)
        places = [place for one in found for place in (one.start, one.end)]
        assert places == sorted(places)
        assert all(0 <= one.start < one.end <= len(text) for one in found)


@given(st.integers(0, 10**15 - 1), st.sampled_from([" ", "-", ""]))
def test_a_card_with_a_wrong_digit_is_none(number: int, between: str) -> None:
    """Of the ten last digits that a Visa number could have, exactly one makes it a card."""
    bodies = [f"4{number:015d}"[:15] + digit for digit in string.digits]
    texts = [between.join(body[at : at + 4] for at in (0, 4, 8, 12)) for body in bodies]
    cards = Counter(len(find_pii(f"[{text}]", ["card"])) for text in texts)
    assert cards == {1: 1, 0: 9}


ADVERSARIAL = (
    *("a", "1", "1 ", "1.", "a.", "a@", "a@a.", "1:", "+1 ", "a_", "api_", "password = ", "tel 1"),
    *("token-", "eyJhbGciOi.", "a://b:", "GB82 ", "-----BEGIN RSA PRIV" + "ATE KEY-----\n", "ffff:"),
    *('"', "secret_", "sk-", "Bearer ", "L898902C36UTO"),
    *("cookie: a=", "cookie:", "curl -u a:", "&sig=", '"token": "a', "Authorization: Basic "),
)


def took(text: str) -> float:
    """Seconds of work for one text."""
    begun = time.process_time()
    for look in (find_pii, find_secrets):
        look(text)
    return time.process_time() - begun


@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_a_text_made_to_be_slow_takes_no_longer_than_its_length(unit: str) -> None:
    """Four times the text takes about four times as long, not sixteen."""
    small, large = (took((unit * size)[:size]) for size in (20_000, 80_000))
    assert large < 0.2 or large < small * 8


def test_a_megabyte_made_to_be_slow_takes_seconds() -> None:
    """All of it together, in stretches of 45 kB, is looked through in one go."""
    text = "".join((unit * 45_000)[:45_000] for unit in ADVERSARIAL)
    assert len(text) > 1_000_000
    assert took(text) < 10
