"""Key material and access tokens in nothing that running services write, answer, trace, or could pickle."""

import base64
import gc
import io
import pickle
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
import torch
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tokenizers import Tokenizer

from tests.unit.shared.keys.test_secrets_stay_inside import disguises
from ttmark.services.settings.base import ServiceSettings
from ttmark.shared.access.scopes import Scope, TokenLimits
from ttmark.shared.keys.key_codec import KIND, _secret_name, load_record
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.vault.vault import Vault

OURS = ("ttmark", "shared", "services", "gen_service", "detect_service")
FEW = TokenLimits(requests_per_minute=2)


def forms(secret: bytes) -> list[bytes]:
    """The forms in which a secret could show up."""
    texts = [*disguises(secret), secret.hex(":"), f"{int.from_bytes(secret, 'little'):x}"]
    # PRF keys are used as two 64-bit words.
    words = [secret[start : start + 8] for start in range(0, len(secret), 8)]
    texts += [str(int.from_bytes(word, order)) for word in words for order in ("little", "big")]
    return [secret, *(text.encode() for text in texts)]


def hits(secrets: dict[str, bytes], written: bytes) -> list[str]:
    """Names of the secrets that occur in some form, whatever the case of letters."""
    lowered = written.lower()
    return [
        name for name, secret in secrets.items() if any(form.lower() in lowered for form in forms(secret))
    ]


@pytest.fixture(scope="module")
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture(scope="module")
def traced(cluster: Any, spans: InMemorySpanExporter) -> Iterator[Any]:
    """One more replica of each service, traced, with every log level on."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServiceSettings, "open_tracing", lambda *_: provider)
        for service in ("gen", "detect"):
            cluster.start(f"{service}-7")
        yield cluster
    for service in ("gen", "detect"):
        cluster.stop(f"{service}-7")


@pytest.fixture(scope="module")
def tokens(traced: Any) -> dict[str, str]:
    operator = traced.operator
    made = {
        "good": operator.token(),
        "narrow": operator.token(Scope.DETECT, limits=FEW),
        "revoked": operator.token(),
    }
    operator.revoke(made["revoked"])
    return made | {"wrong": made["good"][:-64] + made["narrow"][-64:]}


@pytest.fixture(scope="module")
def secrets(traced: Any, tokens: dict[str, str], kek: KeyEncryptionKey) -> dict[str, bytes]:
    """Everything that must stay inside."""

    async def of_keys(store: RecordStore) -> dict[str, bytes]:
        found = {}
        envelopes, _ = await Vault(store, kek).read_all(KIND)
        for key_id, envelope in envelopes.items():
            found[f"data key of {key_id}"] = envelope.data_key.exposed()
            record = load_record(envelope)
            for version in record.versions:
                name = _secret_name(key_id, version.version, record.profile, version.epoch)
                sealed = base64.b64decode(version.sealed_secret)
                found[f"secret of {key_id}/{version.version}"] = envelope.data_key.open(sealed, name)
        return found

    keys = traced.operator.do(lambda ring, _: ring.open_all())[0]
    return {
        "kek": next(iter(kek._keys.values())),
        "key of answers": kek.derive(b"ttmark answers"),
        **traced.operator.on_store(of_keys),
        **{
            f"prf key of {key.key_id}/{version.version}": version.prf_key
            for key in keys.values()
            for version in key.versions
        },
        **{f"token {name}": bytes.fromhex(token[-64:]) for name, token in tokens.items()},
    }


def everybody(traced: Any, tokens: dict[str, str]) -> bytes:
    """All answers, heads and bodies, to good requests, bad ones and such as break a service."""
    good = tokens["good"]
    changes = ({}, {"evidence": "blocks"}, {"inputs": 1, "prompt": {"a": 1}}, {"keys": ["none"]})
    paths = (
        "/v1/models", "/v1/keys", "/metrics", "/readyz", "/openapi.json", "/v1/x",
        f"/v1/keys?token={good}",
    )  # fmt: skip
    answers = []
    for replica in (traced.replicas["gen-7"], traced.replicas["detect-7"]):
        senders = (*tokens.values(), "ttm_nonsense")
        answers += [replica.ask(token, **change) for token in senders for change in changes]
        answers += [replica.request("GET", path, good) for path in paths]
    return b"\n".join(repr(answer.headers).encode() + answer.content for answer in answers)


def break_services(traced: Any, tokens: dict[str, str], secrets: dict[str, bytes]) -> bytes:
    """Answers to requests that end in a bug whose message tells all it can get hold of."""
    loose = next(value for name, value in secrets.items() if name.startswith("prf key"))

    def fails(*arguments: Any, **_: Any) -> None:
        raise RuntimeError(f"{arguments!r} {loose.hex()} Authorization: Bearer {tokens['good']}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ttmark.gen_service.api.routes.plan_completion", fails)
        patch.setattr("ttmark.detect_service.examination.Examination.look", fails)
        answers = [traced.replicas[name].ask(tokens["good"]) for name in ("gen-7", "detect-7")]
    assert [answer.status_code for answer in answers] == [500, 500]
    return b"\n".join(answer.content for answer in answers)


class PublicPartsLeftOut(pickle.Pickler):
    """Weights and vocabularies are public, and every pickle that refers to one would hold all of it."""

    def persistent_id(self, obj: object) -> str | None:
        return type(obj).__name__ if isinstance(obj, torch.Tensor | Tokenizer) else None


def objects() -> tuple[int, bytes]:
    """How many objects of ours live and can be pickled, and representations and pickles of all, each once."""
    gc.unfreeze()  # what was imported counts too
    gc.collect()  # settings of services that have ended wait to be collected
    things = gc.get_objects()
    gc.freeze()
    shown, pickled, count = set(), io.BytesIO(), 0
    pickler = PublicPartsLeftOut(pickled)
    for thing in things:
        if str(type(thing).__module__).split(".")[0] not in OURS:
            continue
        with suppress(Exception):
            shown.add(repr(thing).encode())
        try:
            pickler.dump(thing)
            count += 1
        except Exception:
            pickler.clear_memo()  # of what it began with nothing may be written
    return count, b"\n".join([*shown, pickled.getvalue()])


def test_the_search_finds_what_is_there(secrets: dict[str, bytes]) -> None:
    for name, secret in secrets.items():
        for form in forms(secret):
            assert name in hits({name: secret}, b"before " + form + b" after")
    assert len(secrets) >= 12


def test_no_secret_is_answered_logged_measured_or_traced(traced, tokens, secrets, spans, record_result):
    before = traced.log.getvalue().count("unhandled_error")
    answered = everybody(traced, tokens) + break_services(traced, tokens, secrets)
    assert hits(secrets, answered) == []
    logged = traced.log.getvalue()
    for action in ("key.detect", "key.generate", "key.generated", "token.refuse", "token.throttle"):
        assert f'"action":"{action}"' in logged
    assert logged.count("unhandled_error") - before == 2
    assert hits(secrets, logged.encode()) == []
    recorded = "\n".join(span.to_json() for span in spans.get_finished_spans())
    assert "gen_ai.request.model" in recorded
    assert hits(secrets, recorded.encode()) == []
    count = sum(len(forms(secret)) for secret in secrets.values())
    record_result(
        "secrets of both running services (key-encryption, data, version and PRF keys, access tokens) "
        "looked for in answers, metrics, logs and traces",
        "no hit",
        f"{len(secrets)} secrets in {count} forms, in {len(answered):,} bytes of answers and metrics, "
        f"{len(logged):,} of logs and {len(recorded):,} of traces: no hit",
    )


def test_no_living_object_shows_or_pickles_a_secret(traced, tokens, secrets, record_result):
    replica = traced.replicas["gen-7"]
    body = {"model": "tiny-model", "prompt": "a", "max_tokens": 240, "ignore_eos": True, "stream": True}
    headers = {"Authorization": f"Bearer {tokens['good']}"}
    with httpx.stream("POST", replica.url + "/v1/completions", json=body, headers=headers) as response:
        next(response.iter_lines())
        traced.replicas["detect-7"].ask(tokens["good"])
        count, looked_at = objects()
    assert count > 200
    assert hits(secrets, looked_at) == []
    record_result(
        "the same secrets looked for in representations and pickles of living objects",
        "no hit",
        f"{count:,} objects: no hit",
    )
