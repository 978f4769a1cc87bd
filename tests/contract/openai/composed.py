"""The generation service as the contract tests compose it: its keys, its tokens, and clients for it."""

import json
import ssl
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import openai
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from tests.contract.openai.fake_generator import MODEL, FakeGenerator
from tests.harness.likelihood import detect_likelihood
from ttmark.gen_service.api.app import create_generation_app
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.api.plan.backend import GenerationBackend, RequestLimits
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.services.composition.served_models import open_features
from ttmark.services.settings.generation import GenerationSettings
from ttmark.shared.access.scopes import Principal, Scope, TokenUse
from ttmark.shared.events import Event
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.generation.sampling import SamplingDefaults
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.stores.key_store_errors import InvalidToken
from ttmark.shared.watermark.likelihood.reading import Reading

TEMPLATE = (
    "{% for message in messages %}"
    "{% if loop.index0 and message.role == 'system' %}{{ raise_exception('system comes first') }}{% endif %}"
    "<{{ message.role }}>{{ message.content }}\n"
    "{% endfor %}{% if mood %}<mood>{{ mood }}{% endif %}<assistant>"
)
TEMPERED = SamplingDefaults(
    temperature=0.6, top_p=0.8, top_k=20, min_p=0.1, repetition_penalty=1.2, max_new_tokens=9
)
# The services speak plain HTTP, and to read the certificates of the world takes longer than a small test.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PRINCIPALS = {
    "author": Principal("tok-author", "acme", frozenset({Scope.GENERATE})),
    "operator": Principal("tok-operator", "acme", frozenset({Scope.GENERATE, Scope.GENERATE_UNWATERMARKED})),
    "messenger": Principal("tok-messenger", "acme", frozenset({Scope.GENERATE, Scope.GENERATE_PAYLOAD})),
    "anything": Principal("tok-anything", "acme", frozenset(Scope)),
    "auditor": Principal(
        "tok-auditor",
        "acme",
        frozenset({Scope.GENERATE, Scope.GENERATE_UNWATERMARKED, Scope.DETECT_EVIDENCE}),
    ),
    "reader": Principal("tok-reader", "acme", frozenset({Scope.READ})),
    "detector": Principal("tok-detector", "acme", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE})),
    "machine": Principal(
        "tok-machine", "acme", frozenset({Scope.GENERATE}), uses=frozenset({TokenUse.MACHINE})
    ),
    "editor": Principal("tok-editor", "acme", frozenset({Scope.GENERATE}), uses=frozenset({TokenUse.CODE})),
    "keyless": Principal("tok-keyless", "initech", frozenset({Scope.GENERATE})),
    "undecided": Principal("tok-undecided", "umbrella", frozenset({Scope.GENERATE})),
}


# A short request to each route that writes, and what limits it.
BODIES: dict[str, dict[str, Any]] = {
    "completions": {"prompt": "Once", "max_tokens": 16},
    "chat/completions": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 16},
    "responses": {"input": "Hi", "max_output_tokens": 16},
}
LIMITS = {route: next(name for name in body if name.startswith("max")) for route, body in BODIES.items()}


@dataclass
class Keys:
    """Keys of several tenants, as a cache holds them."""

    keys: dict[str, UnlockedKey]
    ready: bool = True

    def get(self, key_id: str) -> UnlockedKey | None:
        return self.keys.get(key_id)

    def for_tenant(self, tenant: str) -> list[UnlockedKey]:
        return [key for key in self.keys.values() if key.tenant == tenant]


def _keys(fingerprint: str) -> dict[str, UnlockedKey]:
    def key(
        key_id: str, tenant: str, state: KeyState = KeyState.PRIMARY, tokenizer: str = fingerprint
    ) -> None:
        profile = Profile(scheme="synthid", block_size=2, tokenizer_fingerprint=tokenizer)
        version = UnlockedVersion(3, state, key_id.encode().ljust(16)[:16])
        keys[key_id] = UnlockedKey(key_id, tenant, profile, 1, (version,))

    keys: dict[str, UnlockedKey] = {}
    key("acme-main", "acme")
    key("acme-spare", "acme")
    key("acme-disabled", "acme", KeyState.DISABLED)
    key("acme-other", "acme", tokenizer="0" * 64)
    key("globex-main", "globex")
    key("umbrella-1", "umbrella")
    key("umbrella-2", "umbrella")
    return keys


async def authenticate(token: str) -> Principal:
    if token not in PRINCIPALS:
        raise InvalidToken("unknown")
    return PRINCIPALS[token]


@dataclass
class Service:
    """A generation service and what a test may look at behind its back."""

    generator: Any
    app: FastAPI
    keys: Keys
    own_keys: dict[str, UnlockedKey]
    registry: CollectorRegistry
    audit: list[Event]
    url: str = ""
    clients: list[Any] = field(default_factory=list)

    def reset(self) -> None:
        """Makes it as new, and closes its clients."""
        if isinstance(self.generator, FakeGenerator):
            self.generator.reset()
        self.keys.keys, self.keys.ready = dict(self.own_keys), True
        self.audit.clear()
        while self.clients:
            self.clients.pop().close()

    @property
    def running(self) -> int:
        """Completions that are being generated."""
        return int(self.generator.running)

    def tokens(self, text: str) -> int:
        """The length of a text to the model."""
        return len(self.generator.tokenizer.encode(text))

    def http(self, token: str = "author") -> httpx.Client:
        return self._kept(
            httpx.Client(
                base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=30, verify=NO_TLS
            )
        )

    def client(self, token: str = "author") -> openai.OpenAI:
        """The official client, without retries."""
        own = openai.DefaultHttpxClient(verify=NO_TLS)
        return self._kept(
            openai.OpenAI(base_url=self.url + "/v1", api_key=token, max_retries=0, http_client=own)
        )

    def async_client(self, token: str = "author") -> openai.AsyncOpenAI:
        """The official asynchronous client; to be closed by the test."""
        return openai.AsyncOpenAI(base_url=self.url + "/v1", api_key=token, max_retries=0)

    def post(
        self, route: str, token: str = "author", *, tokens: int | None = None, **change: Any
    ) -> httpx.Response:
        """A short request for text, with changes; `tokens` is its limit on every route."""
        body = {"model": MODEL} | BODIES.get(route, {}) | change
        if tokens is not None:
            body[LIMITS[route]] = tokens
        response: httpx.Response = self.http(token).post(f"/v1/{route}", json=body)
        return response

    def answer(self, route: str, token: str = "author", **change: Any) -> dict[str, Any]:
        response = self.post(route, token, **change)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def log10_p(self, token_ids: list[int], **origin: Any) -> float:
        """Of a text under the key `acme-main`, as the model reads it with this origin."""
        (said,) = self.answer("readings", "reader", texts=[token_ids], **origin)["readings"]
        key, reading = self.own_keys["acme-main"], Reading(np.array(said["logprobs"]))
        options = {"reading": reading, "rate": 1e-5}
        return detect_likelihood(key.profile.watermark(), key.primary.prf_keys, token_ids, **options).log10_p

    def block(self, route: str, token: str = "author", **change: Any) -> dict[str, Any]:
        """What the answer says of its watermark."""
        block: dict[str, Any] = self.answer(route, token, **change)["watermark"]
        return block

    def events(self, route: str, token: str = "author", **change: Any) -> list[dict[str, Any]]:
        """The events of the streamed answer; the last one has the watermark block."""
        response = self.post(route, token, stream=True, **change)
        assert response.status_code == 200, response.text
        lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
        *events, last = [json.loads(line) for line in lines]
        return [*events, last.get("response", last)]

    def _kept(self, client: Any) -> Any:
        self.clients.append(client)
        return client


def build_service(
    generator: Any,
    *,
    tracer_provider: Any = None,
    template: ChatTemplate | None = None,
    allowance: Any = None,
    **given: Any,
) -> Service:
    """A service over a generator, not listening yet; `given` are rules of the backend, hooks in place
    of those of their kind, and limits."""
    rules = {name: given.pop(name) for name in ("ignore_unknown_fields", "opening_bits") if name in given}
    features = open_features(GenerationSettings())
    hooks = [*(hook for feature in features for hook in feature.hooks), *given.pop("hooks", ())]
    registry = CollectorRegistry()
    audit: list[Event] = []
    own_keys = _keys(generator.tokenizer.fingerprint)
    keys = Keys(dict(own_keys))
    backend = GenerationBackend(
        {
            MODEL: ServedModel(generator, ChatTemplate(TEMPLATE)),
            "own-template": ServedModel(generator, template),
            "untold": ServedModel(generator),
            "tempered": ServedModel(generator, ChatTemplate(TEMPLATE), sampling=TEMPERED),
        },
        keys,
        default_keys=given.pop("default_keys", ["acme-main"]),
        limits=RequestLimits(max_completions=8, **given),
        hooks=list({type(hook): hook for hook in hooks}.values()),
        **rules,
    )
    app = create_generation_app(
        backend,
        AppOptions(
            authenticate=authenticate,
            limits=HttpLimits(max_body_bytes=100_000),
            registry=registry,
            tracer_provider=tracer_provider,
            audit=audit.append,
        ),
        allowance,
        features,
    )
    return Service(generator, app, keys, own_keys, registry, audit)


def texts(answer: dict[str, Any]) -> list[str]:
    """Of the completions of an answer, of any route."""
    if "output" in answer:
        return ["".join(part["text"] for part in item["content"]) for item in answer["output"]]
    return [
        choice["message"]["content"] if "message" in choice else choice["text"]
        for choice in answer["choices"]
    ]
