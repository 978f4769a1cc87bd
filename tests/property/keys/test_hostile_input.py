"""Whatever is read from outside ends in a value or in the documented error."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ttmark.services.settings.store import open_store
from ttmark.shared.access.tokens import parse_token
from ttmark.shared.vault.envelope import open_envelope
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.ledger import LedgerFile
from ttmark.shared.vault.names import check_name
from ttmark.shared.vault.stores.key_store_errors import (
    InvalidName,
    InvalidToken,
    KeyStoreError,
    RecordTampered,
    UnknownKek,
)
from ttmark.shared.vault.stores.redis_connections import RedisAddress

KEK = KeyEncryptionKey(bytes(32))
few = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)
documents = st.fixed_dictionaries(
    {
        "format": st.just(1) | json_values,
        "epoch": st.integers(0, 9) | json_values,
        "trail": st.lists(st.text()) | json_values,
        "kek": st.just(KEK.kek_id) | json_values,
        "data_key": st.just("AAAA") | json_values,
        "body": st.dictionaries(st.text(), json_values) | json_values,
        "mac": st.text() | json_values,
    }
)


def refusal(error: type[Exception], call: Callable[[], object]) -> str | None:
    """The message of the documented error, or None when there is a value."""
    try:
        call()
    except error as caught:
        return str(caught)
    return None


def dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # lone surrogates
        return b"null"


@few
@given(payload=st.binary() | json_values.map(dumps) | documents.map(dumps))
def test_no_payload_but_our_own_opens_and_none_breaks_the_reader(payload: bytes) -> None:
    with pytest.raises((RecordTampered, UnknownKek)):
        asyncio.run(open_envelope(KEK, "key", "k", payload, 1))


schemes = st.sampled_from(
    ["redis://", "rediss://", "redis+sentinel://", "redis+cluster://", "sqlite:///", "sqlite://", ""]
)
pieces = st.lists(
    st.sampled_from(["u:p@", "h", ":1", ",", "/", "0", "?", "a=b", "&", "[::1]", "%", "#", "@"])
)


@few
@given(url=st.text() | st.builds(lambda scheme, rest: scheme + "".join(rest), schemes, pieces))
def test_a_url_opens_a_store_or_is_a_value_error_of_one_line(url: str) -> None:
    message = refusal(ValueError, lambda: open_store(url))
    assert message is None or "\n" not in message


@few
@given(password=st.text(min_size=6), rest=st.text())
def test_no_refused_url_is_repeated_with_its_password(password: str, rest: str) -> None:
    message, another = (
        refusal(ValueError, lambda: RedisAddress.parse(f"redis://user:{one}@host:port{rest}"))  # noqa: B023
        for one in (password, "another")
    )
    # The hint has words of its own, and a password may be one of them.
    assert message is None or password not in message or password in str(another)


@few
@given(text=st.text() | st.from_regex(r"\s?ttm_[0-9a-f]{16}_[0-9a-f]{63,64}[0-9\s]?", fullmatch=True))
def test_a_token_is_parsed_or_refused(text: str) -> None:
    try:
        token_id, secret = parse_token(text)
    except InvalidToken:
        return
    assert f"ttm_{token_id}_{secret}" == text
    assert (len(token_id), len(secret)) == (16, 64)


@few
@given(text=st.text() | st.from_regex(r"([0-9a-f]{64}\s?){1,3}"))
def test_a_key_file_is_read_or_is_a_value_error(text: str) -> None:
    message = refusal(ValueError, lambda: KeyEncryptionKey.from_text(text))
    assert message is None or "hexadecimal" in message


@few
@given(name=st.text())
def test_a_name_is_safe_everywhere_or_refused(name: str) -> None:
    try:
        check_name("key id", name)
    except InvalidName:
        return
    assert name.isascii()
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789._-")


@few
@given(content=st.binary() | json_values.map(dumps) | st.lists(st.lists(json_values)).map(dumps))
def test_a_ledger_file_is_read_or_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger").write_bytes(content)
    message = refusal(KeyStoreError, lambda: LedgerFile(tmp_path / "ledger"))
    assert message is None or "restore or remove it" in message
