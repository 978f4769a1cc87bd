"""Tokens of an OpenID provider: which open something, and which do not."""

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from tests.harness.waiting import until
from ttmark.detect_service.features.oidc import oidc
from ttmark.detect_service.features.oidc.oidc import (
    KEYS_FRESH_SECONDS,
    KEYS_LAST_SECONDS,
    RETRY_SECONDS,
    OidcRules,
    OidcTokens,
)
from ttmark.detect_service.features.oidc.settings import OidcSettings
from ttmark.services.startup import StartupError
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.vault.stores.key_store_errors import ExpiredToken, InvalidToken, StoreUnavailable

ISSUER, AUDIENCE, NOW = "https://login.example.org", "https://detect.example.org", 1_800_000_000
RULES = OidcRules(ISSUER, AUDIENCE, "acme", frozenset({Scope.DETECT}), "moderators")
KEY, OTHER = (RSAKey.generate_key(2048, {"kid": name}) for name in ("one", "two"))
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": NOW + 600, "iat": NOW}


class Provider:
    """Publishes keys and counts who asks."""

    def __init__(self) -> None:
        self.keys: list[Any] = [KEY]
        self.asked: list[str] = []
        self.away = False
        self.beside: list[Any] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.seconds = 0.0
        self.tokens = OidcTokens(
            RULES,
            oidc.provider_client(httpx.MockTransport(self.answer)),
            now=lambda: NOW + self.seconds,
            monotonic=lambda: self.seconds,
        )

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        await self.answers.wait()
        if self.away:
            raise httpx.ConnectError("away")
        if request.url.path == "/.well-known/openid-configuration":
            return httpx.Response(200, json={"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"})
        published = [key.as_dict(private=False) for key in self.keys]
        return httpx.Response(200, json={"keys": [*self.beside, *published]})

    async def is_asked(self, times: int) -> None:
        await until(lambda: len(self.asked) >= times)


@pytest.fixture
def provider() -> Provider:
    return Provider()


def signed(key: Any = KEY, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
    given = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    said = {
        name: value
        for name, value in ({"alg": "RS256", "kid": key.kid} | dict(header or {})).items()
        if value
    }
    return jwt.encode(said, given, key, registry=oidc._algorithms())


async def test_a_good_token_opens_what_the_operator_says(provider: Provider) -> None:
    person = await provider.tokens.authenticate(signed())
    assert (person.tenant, person.scopes) == ("acme", frozenset({Scope.DETECT}))
    assert person == await provider.tokens.authenticate(signed(exp=NOW + 60, aud=["other", AUDIENCE]))
    moderator = await provider.tokens.authenticate(signed(groups=["staff", "moderators"]))
    assert moderator.scopes == {Scope.DETECT, Scope.DETECT_EVIDENCE}
    assert moderator.token_id == person.token_id, "limits and cases are a person's, not a sign-in's"
    assert (await provider.tokens.authenticate(signed(sub="bob"))).token_id != person.token_id
    assert len(provider.asked) == 2, "the keys are read once"


@pytest.mark.parametrize("kind", [None, "JWT", "at+jwt", "application/at+jwt", "AT+JWT"])
async def test_access_tokens_may_say_their_kind(provider: Provider, kind: str | None) -> None:
    assert await provider.tokens.authenticate(signed(header={"typ": kind} if kind else {}))


async def test_an_old_name_of_an_algorithm_opens_without_a_warning(provider: Provider) -> None:
    provider.keys = [OKPKey.generate_key("Ed25519", {"kid": "ed"})]
    assert await provider.tokens.authenticate(signed(provider.keys[0], {"alg": "EdDSA"}))


async def test_a_single_group_may_be_written_without_a_list(provider: Provider) -> None:
    assert (await provider.tokens.authenticate(signed(groups="moderators"))).sees_evidence
    assert not (await provider.tokens.authenticate(signed(groups="moderators too"))).sees_evidence


def spelt(header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    parts = (json.dumps(part).encode() for part in (header, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def public_as_secret() -> str:
    """Signed by HMAC with the public key as its secret, which a careless verifier takes."""
    whole = spelt({"alg": "HS256", "kid": "one"}, CLAIMS)
    mac = hmac.digest(KEY.as_pem(private=False), whole.encode(), "sha256")
    return f"{whole}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def unsigned() -> str:
    return spelt({"alg": "none", "kid": "one"}, CLAIMS) + "."


def changed() -> str:
    head, _, signature = signed().split(".")
    return ".".join((head, signed(OTHER, sub="root").split(".")[1], signature))


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda: signed(RSAKey.generate_key(2048, {"kid": "one"})), id="forged"),
        pytest.param(public_as_secret, id="the public key as a secret"),
        pytest.param(unsigned, id="unsigned"),
        pytest.param(changed, id="other claims under the signature"),
        pytest.param(lambda: signed(iss="https://login.example.com"), id="another provider's"),
        pytest.param(lambda: signed(iss=f"{ISSUER}/"), id="nearly the provider"),
        pytest.param(lambda: signed(aud="https://mail.example.org"), id="for another service"),
        pytest.param(lambda: signed(aud=["a", "b"]), id="for two others"),
        pytest.param(lambda: signed(aud=None), id="for nobody"),
        pytest.param(lambda: signed(exp=None), id="for ever"),
        pytest.param(lambda: signed(exp="tomorrow"), id="until a word"),
        pytest.param(lambda: signed(nbf=NOW + 600), id="not yet"),
        pytest.param(lambda: signed(sub=None), id="nobody's"),
        pytest.param(lambda: signed(sub=["ada"]), id="a list's"),
        pytest.param(lambda: signed(OTHER), id="by a key that is not published"),
        pytest.param(lambda: signed(header={"typ": "id_token+jwt"}), id="to know somebody by"),
        pytest.param(lambda: signed(header={"typ": "logout+jwt"}), id="to sign somebody out"),
        pytest.param(lambda: signed(cnf={"jkt": "x" * 43}), id="bound to a key"),
        pytest.param(lambda: "a.b.c", id="no token"),
        pytest.param(lambda: "..", id="nothing"),
        pytest.param(lambda: f"{signed()[:-8]}{'é' * 8}", id="letters"),
    ],
)
async def test_other_tokens_open_nothing(provider: Provider, token: Callable[[], str]) -> None:
    with pytest.raises(InvalidToken):
        await provider.tokens.authenticate(token())


async def test_an_expired_token_opens_nothing(provider: Provider) -> None:
    token = signed(exp=NOW + 10)
    assert await provider.tokens.authenticate(token)
    provider.seconds = 50.0
    with pytest.raises(ExpiredToken):
        await provider.tokens.authenticate(token)


async def test_a_new_key_is_read_at_once_and_strangers_do_not_make_us_ask(provider: Provider) -> None:
    await provider.tokens.authenticate(signed())
    provider.seconds, provider.keys = 60.0, [KEY, OTHER]
    assert await provider.tokens.authenticate(signed(OTHER))
    before = len(provider.asked)
    for number in range(5):
        with pytest.raises(InvalidToken):
            await provider.tokens.authenticate(signed(RSAKey.generate_key(2048, {"kid": f"made {number}"})))
    assert len(provider.asked) == before


@pytest.mark.parametrize(
    "odd",
    [
        {"kty": "EC", "crv": "brainpoolP256r1", "kid": "b", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "P-256", "kid": "b", "x": "AA"},
        {"kty": "AKP", "alg": "ML-DSA-44", "kid": "b", "pub": "AA"},
        {"kid": "b"},
        "no key",
    ],
    ids=["of an unknown curve", "damaged", "of an unknown kind", "of no kind", "of no form"],
)
async def test_a_key_that_is_not_known_costs_the_others_nothing(provider: Provider, odd: Any) -> None:
    provider.beside = [odd]
    assert await provider.tokens.authenticate(signed())


async def test_a_token_that_names_no_key_is_tried_with_all(provider: Provider) -> None:
    provider.keys = [OTHER, KEY]
    assert await provider.tokens.authenticate(signed(header={"kid": None}))
    with pytest.raises(InvalidToken):
        await provider.tokens.authenticate(signed(RSAKey.generate_key(2048, {"kid": "x"}), {"kid": None}))


async def test_who_has_a_good_key_waits_for_nobody_while_the_provider_hangs(provider: Provider) -> None:
    await provider.tokens.authenticate(signed())
    provider.answers.clear()
    provider.seconds = KEYS_FRESH_SECONDS / 2
    stranger = asyncio.create_task(provider.tokens.authenticate(signed(OTHER)))
    await provider.is_asked(3)  # the stranger's reading is under way
    assert await asyncio.wait_for(provider.tokens.authenticate(signed()), 1.0)
    provider.answers.set()
    with pytest.raises(InvalidToken):
        await stranger


async def test_once_the_provider_was_asked_in_vain_nobody_waits_for_it_again(provider: Provider) -> None:
    token = signed(exp=NOW + 9_000)
    await provider.tokens.authenticate(token)
    provider.away, provider.seconds = True, KEYS_FRESH_SECONDS
    assert await provider.tokens.authenticate(token), "asked in vain"
    provider.answers.clear()
    provider.seconds += RETRY_SECONDS
    assert await asyncio.wait_for(provider.tokens.authenticate(token), 1.0)
    provider.answers.set()


async def test_a_reading_ends_however_slowly_the_provider_drips(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "READ_SECONDS", 0.2)

    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=drip()))
    tokens = OidcTokens(RULES, oidc.provider_client(transport), now=lambda: NOW)
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(tokens.authenticate(signed()), 5.0)


async def test_keys_are_read_anew_although_nobody_asks(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "RETRY_SECONDS", 0.01)
    async with provider.tokens.kept_fresh():
        await provider.is_asked(2)
        await asyncio.sleep(0.05)
        assert len(provider.asked) == 2, "fresh keys are not read again"
        provider.seconds, provider.keys = KEYS_FRESH_SECONDS / 2, [OTHER]
        await provider.is_asked(4)
        await asyncio.sleep(0.05)
    provider.answers.clear()  # so that no other reading helps
    assert await provider.tokens.authenticate(signed(OTHER))


async def test_a_withdrawn_key_opens_nothing_ten_minutes_later(provider: Provider) -> None:
    await provider.tokens.authenticate(signed())
    provider.keys = [ECKey.generate_key("P-256", {"kid": "new"})]
    provider.seconds = KEYS_FRESH_SECONDS
    with pytest.raises(InvalidToken):
        await provider.tokens.authenticate(signed(exp=NOW + 9_000))
    token = signed(provider.keys[0], {"alg": "ES256"}, exp=NOW + 9_000)
    assert await provider.tokens.authenticate(token)


async def test_while_the_provider_is_away_known_keys_last_for_an_hour(provider: Provider) -> None:
    provider.away = True
    with pytest.raises(StoreUnavailable):
        await provider.tokens.authenticate(signed())
    provider.away, provider.seconds = False, 60.0
    token = signed(exp=NOW + 90_000)
    await provider.tokens.authenticate(token)
    provider.away, provider.seconds = True, KEYS_LAST_SECONDS
    assert await provider.tokens.authenticate(token)
    provider.seconds += 60.0
    with pytest.raises(StoreUnavailable):
        await provider.tokens.authenticate(token)


@pytest.mark.parametrize(
    ("about", "keys"),
    [
        ({"issuer": "https://evil.example.org"}, {}),
        ({"padding": "x" * (1 << 21)}, {}),
        ({}, {"padding": "x" * (1 << 21)}),
        ({}, {"keys": [{**KEY.as_dict(private=False), "use": "enc"}]}),
        ({"jwks_uri": f"{ISSUER}/moved"}, {}),
        ({"jwks_uri": f"{ISSUER}/deep"}, {}),
        ({"jwks_uri": f"{ISSUER.replace('https', 'http')}/keys"}, {}),
    ],
    ids=[
        "another issuer",
        "a long description",
        "many keys",
        "a key to encrypt with",
        "moved",
        "nested without end",
        "in the clear",
    ],
)
async def test_a_provider_that_says_something_else_is_not_believed(about: Any, keys: Any) -> None:
    said = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"} | about
    published = KeySet([KEY]).as_dict(private=False) | keys

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/deep":
            return httpx.Response(200, content=b"[" * 100_000)
        if request.url.path == "/moved":
            return httpx.Response(302, headers={"Location": f"{ISSUER}/keys"})
        return httpx.Response(200, json=published if request.url.path == "/keys" else said)

    tokens = OidcTokens(RULES, oidc.provider_client(httpx.MockTransport(answer)), now=lambda: NOW)
    with pytest.raises((StoreUnavailable, InvalidToken)):
        await tokens.authenticate(signed())


async def test_where_no_group_sees_evidence_a_group_without_a_name_does_not(provider: Provider) -> None:
    rules = replace(RULES, evidence_group=None)
    client = oidc.provider_client(httpx.MockTransport(provider.answer))
    person = await OidcTokens(rules, client, now=lambda: NOW).authenticate(signed(groups=[None]))
    assert not person.sees_evidence


async def test_tokens_of_ours_never_go_to_the_provider(provider: Provider) -> None:
    ours = Principal("abc", "local", frozenset({Scope.DETECT}))

    async def registry(token: str) -> Principal:
        assert token == "ttm_abc_def"
        return ours

    either = provider.tokens.beside(registry)
    assert await either("ttm_abc_def") == ours
    assert not provider.asked
    assert (await either(signed())).tenant == "acme"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"oidc_issuer": ISSUER}, "needs TTMARK_OIDC_AUDIENCE"),
        ({"oidc_issuer": ISSUER.replace("https", "http"), "oidc_audience": AUDIENCE}, "on the way"),
        ({"oidc_issuer": ISSUER, "oidc_audience": "console", "oidc_client_id": "console"}, "ID tokens"),
        (
            {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE, "oidc_scopes": ("detect", "generate")},
            "at least one",
        ),
    ],
)
def test_settings_that_open_too_much_stop_the_start(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(StartupError, match=said):
        OidcSettings(**settings).oidc_rules()


def test_settings_become_rules() -> None:
    assert OidcSettings().oidc_rules() is None
    settings = OidcSettings(oidc_issuer=ISSUER, oidc_audience=AUDIENCE, oidc_tenant="acme")
    assert settings.oidc_rules() == OidcRules(ISSUER, AUDIENCE, "acme", frozenset({Scope.DETECT}))
