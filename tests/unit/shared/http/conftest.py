"""A small application on the shared scaffolding, in both error styles, with a route that is broken."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from prometheus_client import CollectorRegistry
from pydantic import BaseModel, ConfigDict, Field

from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.app import AppOptions, create_app
from ttmark.shared.http.auth import require
from ttmark.shared.http.health import Readiness
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.http.service_errors import KeyNotFound, TooManyRequests
from ttmark.shared.vault.stores.key_store_errors import ExpiredToken, InvalidToken, StoreUnavailable

TOKENS = {
    "generator": Principal("tok-1", "acme", frozenset({Scope.GENERATE})),
    "detector": Principal("tok-2", "acme", frozenset({Scope.DETECT})),
}
SECRET_IN_A_BUG = "the-secret-that-must-not-leave"


class Greeting(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=1)
    numbers: list[int] = []


class Panic(BaseException):
    """As pyo3 raises where a library in Rust panics."""


class Settable:
    """What a test may change while the application runs."""

    ready = True
    wait: float | None = None

    def __init__(self) -> None:
        self.admitted: list[str] = []

    async def admit(self, caller: Principal) -> float | None:
        self.admitted.append(caller.token_id)
        return self.wait


async def authenticate(token: str) -> Principal:
    if token == "expired":
        raise ExpiredToken("expired")
    if token == "store-down":
        raise StoreUnavailable("down")
    if token not in TOKENS:
        raise InvalidToken("unknown")
    return TOKENS[token]


def build_app(
    style: str, settable: Settable, registry: CollectorRegistry, cors_origins: tuple[str, ...]
) -> FastAPI:
    options = AppOptions(
        authenticate=authenticate,
        limits=HttpLimits(max_body_bytes=2000, body_seconds=0.2, max_json_depth=8, max_json_containers=50),
        registry=registry,
        admit=settable.admit,
        cors_origins=cors_origins,
    )
    app = create_app(
        options,
        title="Greetings",
        error_style=style,
        readiness=lambda: Readiness({"keys": settable.ready, "model": True}),
    )

    @app.post("/v1/greet")
    async def greet(
        body: Greeting, caller: Annotated[Principal, Depends(require(Scope.GENERATE))]
    ) -> dict[str, Any]:
        return {"hello": body.name, "tenant": caller.tenant, "numbers": body.numbers}

    @app.get("/v1/broken")
    async def broken() -> None:
        raise RuntimeError(SECRET_IN_A_BUG)

    @app.get("/v1/limited")
    async def limited() -> None:
        raise TooManyRequests("Slow down.", retry_after=2.2)

    @app.get("/v1/away")
    async def away() -> None:
        raise StoreUnavailable("redis 10.1.2.3 did not answer")

    @app.get("/v1/quoting")
    async def quoting() -> None:
        raise TooManyRequests("There is no \ud800 here.")

    @app.get("/v1/broken-by-a-stranger")
    async def broken_by_a_stranger() -> None:
        raise RuntimeError("\udfff")

    @app.get("/v1/panicking")
    async def panicking() -> None:
        raise Panic("a library in Rust")

    @app.get("/v1/keys/{key_id}")
    async def key(key_id: str) -> None:
        raise KeyNotFound("There is no such key.", param="key_id")

    return app


@pytest.fixture
def settable() -> Settable:
    return Settable()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def cors_origins() -> tuple[str, ...]:
    """Web pages that may call: none, unless a module says otherwise."""
    return ()


@pytest.fixture(params=["openai", "problem"])
def style(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def client(style, settable, registry, cors_origins) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=build_app(style, settable, registry, cors_origins))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers={"Authorization": "Bearer generator"}
    ) as http:
        yield http


@pytest.fixture
def code_of(style: str) -> Callable[[httpx.Response], str]:
    """Checks that a response is an error of the style, and gives its code."""

    def code(response: httpx.Response) -> str:
        document = response.json()
        if style == "openai":
            assert response.headers["content-type"] == "application/json"
            assert set(document) == {"error"}
            assert set(document["error"]) == {"message", "type", "param", "code"}
            return str(document["error"]["code"])
        assert response.headers["content-type"] == "application/problem+json"
        assert document["status"] == response.status_code
        assert document["instance"].endswith(response.headers["x-request-id"])
        return str(document["code"])

    return code
