"""API keys: where they come from, and that they are never shown."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.identity import compute_digest
from proctor.errors import ModelError
from proctor.models.http import access as keys
from proctor.models.http.access import ApiKey
from proctor.models.openai import OpenAIAdapter

SECRET = "sk-test-0123456789abcdef"


def test_the_callers_key_comes_before_the_environments() -> None:
    """`api_key`, then the named variable, then the provider's variables in order."""
    environ = {"A": "from-a", "B": "from-b", "C": "from-c"}
    result = keys.find_key(["A", "B"], api_key="mine", where="x", environ=environ)
    assert (result.source, result.format_header("{}")) == ("api_key", "mine")
    assert keys.find_key(["A"], api_key_env="C", where="x", environ=environ).format_header("{}") == "from-c"
    assert keys.find_key(["Z", "B"], where="x", environ=environ).source == "B"


def test_a_missing_key_names_all_variables() -> None:
    """The error says how to set one."""
    with pytest.raises(ModelError, match="GEMINI_API_KEY or GOOGLE_API_KEY is not set") as caught:
        keys.find_key(["GEMINI_API_KEY", "GOOGLE_API_KEY"], where="gemini:x", environ={})
    assert caught.value.where == "gemini:x"
    assert "export GEMINI_API_KEY=" in caught.value.fix


def test_a_named_variable_must_be_set() -> None:
    """Also where a key is optional."""
    with pytest.raises(ModelError, match="MY_KEY is not set"):
        keys.find_key(["A"], api_key_env="MY_KEY", is_required=False, where="x", environ={"A": "a"})


def test_a_key_may_be_optional() -> None:
    """Private servers are called without a key."""
    result = keys.find_key(["PROCTOR_API_KEY"], is_required=False, where="x", environ={})
    assert not result


@pytest.mark.parametrize("bad", ["", "  ", "two words", "line\nend", "schlüssel", 7])
def test_an_invalid_key_is_refused_without_quoting_it(bad: object) -> None:
    """The error names the source, never the value."""
    with pytest.raises(ModelError, match="the key in api_key is empty or contains invalid characters") as caught:
        keys.find_key(["A"], api_key=bad, where="x", environ={})
    message = str(bad).strip()
    assert not message or message not in str(caught.value)


def test_whitespace_around_a_key_is_removed() -> None:
    """A file read into a variable ends with a line break."""
    assert keys.find_key(["A"], where="x", environ={"A": "abc\n"}).format_header("{}") == "abc"


def test_a_key_is_not_shown_copied_or_pickled() -> None:
    """Neither the representations nor a copy contain the secret."""
    adapter = OpenAIAdapter("gpt-4o-mini", api_key=SECRET, base_url="https://example.com/v1")
    for shown in (repr(ApiKey(SECRET)), repr(adapter), str(vars(adapter)), adapter.model):
        assert SECRET not in shown
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            take(ApiKey(SECRET))
    with pytest.raises(TypeError):
        pickle.dumps(adapter)


def test_the_identity_does_not_depend_on_the_key() -> None:
    """Two keys are one model."""
    first, other = (OpenAIAdapter("gpt-4o-mini", api_key=key) for key in ("sk-first", "sk-second"))
    assert compute_digest(first) == compute_digest(other)


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4, max_size=20),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_a_hidden_key_is_not_in_the_text(secret: str, before: str, after: str) -> None:
    """Whatever the text around it."""
    shown = ApiKey(secret).redact(before + secret + after)
    assert secret not in shown or secret in "[hidden]"


def test_a_url_encoded_key_is_hidden() -> None:
    """Servers quote URLs, in which the key is percent-encoded."""
    assert ApiKey("a/b+c=d").redact("see ?key=a%2Fb%2Bc%3Dd") == "see ?key=[hidden]"


def test_a_short_key_is_not_hidden() -> None:
    """A key such as `abc` would make messages unreadable."""
    assert ApiKey("abc").redact("abc is not a key") == "abc is not a key"
    assert ApiKey("sk-short-key").redact_response(b"sk-short-key") == b"sk-short-key"


def test_the_digest_identifies_an_endpoint() -> None:
    """By origin, key and headers, without containing the secret."""
    headers = {"Authorization": f"Bearer {SECRET}"}
    result = {
        keys.endpoint_digest("https://a", headers),
        keys.endpoint_digest("https://b", headers),
        keys.endpoint_digest("https://a", {}),
        keys.endpoint_digest("https://a", {"Authorization": "", "X": f"Bearer {SECRET}"}),
    }
    assert len(result) == 4
    assert not any(SECRET in each for each in result)
