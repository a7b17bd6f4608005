"""Personal data and secrets: what is found, what is not, and in linear time."""

from __future__ import annotations

import base64
import random
import string
import zlib
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.redaction import pii, secrets
from proctor.core.redaction.findings import (
    Finding,
    drop_overlaps,
    is_descriptive_name,
    is_password_name,
    is_secret_name,
    make_finding,
)
from proctor.core.redaction.pii import FINDERS, find_pii
from proctor.core.redaction.redact import may_hold_secret, may_hold_secrets
from proctor.core.redaction.secrets import find_secrets, has_crc
from tests.evaluators.growth import grows_linearly
from tests.redaction.lines import PII, SECRETS, rows
from tests.tables import each_row

Finder = Callable[[str], list[Finding]]
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


@each_row(("kinds", "text"), rows(PII))
def test_personal_data_is_found_without_false_alarms(kinds: list[str], text: str) -> None:
    assert [item.kind for item in find_pii(text)] == kinds


@each_row(("kinds", "text"), rows(SECRETS))
def test_secrets_are_found_without_false_alarms(kinds: list[str], text: str) -> None:
    assert [item.kind for item in find_secrets(text)] == kinds


def test_the_corpus_is_large_and_half_of_it_is_negative() -> None:
    for lines, least in ((PII, 150), (SECRETS, 100)):
        empty = [text for kinds, text in rows(lines) if not kinds]
        assert len(lines) >= least
        assert len(empty) >= len(lines) * 0.4


def crc_of(body: str) -> str:
    """Return the check digits of a token: CRC-32 in base 62, six characters."""
    number = zlib.crc32(body.encode())
    return "".join(BASE62[number // 62**position % 62] for position in range(5, -1, -1))


def test_a_token_with_a_wrong_checksum_is_found_but_not_sure() -> None:
    body = "q7Xp2LmZ9vRt4KbNc8WyHd3FsJ6gTa"
    real, other = f"ghp_{body}{crc_of(body)}", f"ghp_{body}000000"
    assert has_crc(real)
    assert not has_crc(other)
    assert [item.sure for item in find_secrets(f"{real} {other}")] == [True, False]


def test_a_truncated_private_key_is_found_and_a_placeholder_is_not() -> None:
    """A public key and an empty block are not found either."""
    begin, end = "-----BEGIN RSA PRIV" + "ATE KEY-----", "-----END RSA PRIV" + "ATE KEY-----"
    body = "MIIEowIBAAKCAQEA7bq98Yz" * 4
    whole = f"{begin}\n{body}\n{end}"
    assert [item.kind for item in find_secrets(f"key:\n{whole}\n")] == ["private_key"]
    assert [item.kind for item in find_secrets(f"{begin}\n{body}")] == ["private_key"]
    assert find_secrets(f"{begin}\n...\n{end}") == []
    assert find_secrets(whole.replace("PRIVATE", "PUBLIC")) == []


def test_placeholder_words_inside_random_keys_do_not_hide_them() -> None:
    """Some of many keys contain "xxx", "fake" or "todo" by chance."""
    rng = random.Random(6)
    begin = "-----BEGIN PRIV" + "ATE KEY-----"
    missed = words = 0
    for _ in range(300):
        body = base64.b64encode(rng.randbytes(1_218)).decode()
        words += any(word in body.lower() for word in ("xxx", "fake", "todo", "your"))
        missed += not find_secrets(f"{begin}\n{body}\n")
    assert words > 5
    for begins, length in (("sk-proj-", 156), ("AIza", 35), ("ghp_", 36), ("api_key=", 64)):
        for _ in range(300):
            key = "".join(rng.choices(BASE62, k=length))
            missed += not find_secrets(f"it is {begins}{key}.")
    assert missed == 0
    stand_ins = ("xxx", "fake", "todo", "your")
    for word in stand_ins:
        assert find_secrets(f"sk-{word}" + "q7Xp2LmZ9vRt4KbNc8WyHd3FsJ6gTa1B"[len(word) :]) == []


def test_a_letter_that_becomes_two_in_lower_case_shifts_no_position() -> None:
    text = "İİİİ DB_PASSWORD='hunter2!'"
    (result,) = find_secrets(text)
    assert text[result.start : result.end] == "hunter2!"


def test_findings_have_exact_positions_and_masked_excerpts() -> None:
    """An excerpt shows at most a fifth."""
    for lines, finder in ((PII, find_pii), (SECRETS, find_secrets)):
        for _, text in rows(lines):
            for item in finder(f"See: {text}"):
                matched = f"See: {text}"[item.start : item.end]
                assert matched
                assert matched == matched.strip()
                shown = item.excerpt.partition("…")[0]
                assert matched.startswith(shown)
                assert len(shown) <= len(matched) / 5


def test_no_character_of_a_password_is_shown() -> None:
    (result,) = find_secrets('password = "hunter2hunter2hunter2"')
    assert result.excerpt == "… (21 characters)"


def test_kinds_limits_the_search() -> None:
    text = "ann@example.com, +44 20 7946 0958"
    assert [item.kind for item in find_pii(text, ["phone"])] == ["phone"]
    assert set(FINDERS) == {"email", "phone", "card", "iban", "national_id", "ip_address"}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("Write to john dot doe at mail dot com.", "john dot doe at mail dot com"),
        ("ann[at]firma[dot]de", "ann[at]firma[dot]de"),
        ("It is ｊｏｈｎ＠ｍａｉｌ．ｃｏｍ now", "ｊｏｈｎ＠ｍａｉｌ．ｃｏｍ"),
        ("look at shop dot com", ""),
        ("We bought it at amazon.com", ""),
    ],
)
def test_spelled_out_and_full_width_addresses_are_found(text: str, address: str) -> None:
    assert [text[item.start : item.end] for item in find_pii(text)] == [address] * bool(address)


@pytest.mark.parametrize("text", ["a@example.com", "a@mail.example", "a at example dot org", "a@host.test"])
def test_reserved_domains_can_be_left_out(text: str) -> None:
    assert [item.kind for item in find_pii(text)] == ["email"]
    assert find_pii(text, reserved_domains=False) == []


def test_a_number_after_the_word_card_needs_only_its_check_digit() -> None:
    assert [item.kind for item in find_pii("my card # 630427373398")] == ["card"]
    assert find_pii("it has 630427373398 atoms") == []


def test_the_longest_of_overlapping_findings_is_reported() -> None:
    result = [Finding("a", 0, 4), Finding("b", 2, 9), Finding("c", 3, 5), Finding("d", 9, 11)]
    assert [item.kind for item in drop_overlaps(result)] == ["b", "d"]
    assert make_finding("x", "abcdefghij", 0, 10, keep=9).excerpt == "ab… (10 characters)"


@given(st.text(max_size=300))
def test_findings_of_any_text_are_ordered_and_separate(text: str) -> None:
    for finder in (find_pii, find_secrets):
        result = finder(text)
        places = [position for item in result for position in (item.start, item.end)]
        assert places == sorted(places)
        assert all(0 <= item.start < item.end <= len(text) for item in result)


@given(st.integers(0, 10**15 - 1), st.sampled_from([" ", "-", ""]))
def test_a_card_number_with_a_wrong_digit_is_not_found(number: int, between: str) -> None:
    """Exactly one of the ten possible last digits is valid."""
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


@each_row("unit", ADVERSARIAL)
def test_an_adversarial_text_takes_linear_time(unit: str) -> None:
    def find_all(text: str) -> None:
        find_pii(text)
        find_secrets(text)

    assert grows_linearly(find_all, lambda size: (unit * size)[:size], 8_000)


@each_row(
    ("check", "valid", "invalid"),
    [
        (pii.luhn, "4111111111111111", "4111111111111112"),
        (pii.mod_97, "GB82WEST12345698765432", "GB82WEST12345698765431"),
        (pii.verhoeff, "2363", "2364"),
        (pii.cpf, "52998224725", "11111111111"),
        (pii.dni, "X1234567L", "12345678A"),
        (pii.nir, "255081416802538", "255081416802539"),
        (pii.codice_fiscale, "RSSMRA85T10A562S", "RSSMRA85T10A562T"),
        (lambda field: pii.mrz(field[:-1], field[-1]), "L898902C36", "L898902C37"),
    ],
)
def test_check_digits(check: Callable[[str], bool], valid: str, invalid: str) -> None:
    assert (check(valid), check(invalid)) == (True, False)


@pytest.mark.parametrize(
    ("check", "names", "expected"),
    [
        (is_secret_name, "api_key OPENAI_API_KEY authToken DB_PASS OPENAI_KEY", True),
        (is_secret_name, "max_tokens first_pass sort_key", False),
        (is_password_name, "db_password", True),
        (is_password_name, "pass token", False),
        (is_descriptive_name, "name created_at", True),
        (is_descriptive_name, "value", False),
    ],
)
def test_names_that_mean_a_secret(check: Callable[[str], bool], names: str, expected: bool) -> None:
    assert [check(name) for name in names.split()] == [expected] * len(names.split())


@pytest.mark.parametrize(
    ("check", "true", "false"),
    [
        (secrets.is_placeholder, "sk-xxxxxxxxxxxx", "q9fakeZr4"),
        (secrets.is_weak, "<password>", "hunter2"),
        (secrets.is_short_key, "short1", "config.key1"),
        (secrets.is_key, "nxDZiweJLraSzvuXZJxJCLOa", "aLongNameOfSomeFunction"),
        (may_hold_secret, "my password is x", "What is the capital of France?"),
        (may_hold_secrets, '{"password":"x"}', '{"max_tokens":9,"text":"hello"}'),
    ],
)
def test_values_that_may_be_secrets(check: Callable[[str], bool], true: str, false: str) -> None:
    assert (check(true), check(false)) == (True, False)
