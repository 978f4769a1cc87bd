"""The project's own generation service as the endpoint of edits."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from ttmark.evaluation import endpoint
from ttmark.evaluation.endpoint import Endpoint, EndpointClient, EndpointError, Usage
from ttmark.evaluation.text_edits import EndpointEdit
from ttmark.gen_service.api import GenerationBackend, RequestLimits, ServedModel, create_generation_app
from ttmark.gen_service.engine import Engine, EngineSettings
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http import AppOptions
from ttmark.shared.keys.records import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.key_store_errors import InvalidToken

TEXT = "The quick brown fox. It jumps over a lazy dog. The owners sigh. Nobody knows why."
ENDPOINT = Endpoint("http://service/v1", "tiny", "open sesame", chat=False, completion_price=1.0)


@dataclass
class OneKey:
    """The only key there is."""

    key: UnlockedKey
    ready: bool = True

    def get(self, key_id: str) -> UnlockedKey | None:
        return self.key if key_id == self.key.key_id else None

    def for_tenant(self, tenant: str) -> list[UnlockedKey]:
        return [self.key]


async def authenticate(token: str) -> Principal:
    if token != "open sesame":
        raise InvalidToken("unknown")
    return Principal("id", "local", frozenset({Scope.GENERATE}))


@pytest.fixture
def transport(model: Path) -> Iterator[httpx.ASGITransport]:
    engine = Engine.load(str(model), EngineSettings(model_id="tiny", threads=1, device="cpu"))
    engine.start()
    profile = Profile(scheme="synthid", block_size=2, tokenizer_fingerprint=engine.tokenizer.fingerprint)
    version = UnlockedVersion(1, KeyState.PRIMARY, bytes(16))
    keys = OneKey(UnlockedKey("main", "local", profile, 1, (version,)))
    backend = GenerationBackend(
        {"tiny": ServedModel(engine)}, keys, default_keys=["main"], limits=RequestLimits(max_completions=1)
    )
    app = create_generation_app(backend, AppOptions(authenticate=authenticate))
    yield httpx.ASGITransport(app)
    engine.stop(drain_seconds=0)


def test_texts_are_edited_through_the_generation_service(
    transport: httpx.ASGITransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "MAX_TOKENS", 40)  # a random model seldom ends by itself
    usage = Usage()
    client = EndpointClient(ENDPOINT, tmp_path, usage, transport)
    edited = EndpointEdit("paraphrase", 0.5, 0, client)("cell", [TEXT])[0]
    assert edited != TEXT
    assert usage.requests == 2
    assert usage.completion_tokens > 0
    assert usage.cost(ENDPOINT) == usage.completion_tokens / 1e6


def test_a_refused_token_ends_the_edit_with_the_services_words(
    transport: httpx.ASGITransport, tmp_path: Path
) -> None:
    stranger = Endpoint("http://service/v1", "tiny", "wrong", chat=False)
    client = EndpointClient(stranger, tmp_path, Usage(), transport)
    with pytest.raises(EndpointError, match="401"):
        EndpointEdit("paraphrase", 0.5, 0, client)("cell", [TEXT])
