"""The public tier in process, as people with and without tokens see it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from tests.unit.detect_service.served import detection_app
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.public.public_allowance import PublicAllowance, PublicBudget
from ttmark.detect_service.features.public.tier import PUBLIC_PATH, PublicTier
from ttmark.shared.access.scopes import Scope, TokenLimits
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.events import Event
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.auth import Guests
from ttmark.shared.limits.counters import Counters, LocalCounters
from ttmark.shared.limits.rate_limits import DocumentAllowance, LimitMetrics

DAY = 86_400.0
BUDGET = PublicBudget.of(100_000, 0.1)  # the settings' defaults
UNCOUNTED = replace(BUDGET, address_words=0, token_words=0, tenant_words=0, address_requests=0)


@dataclass
class PublicService:
    """The application, a token with `detect:public` alone, and what was audited."""

    app: Any
    registry: TokenRegistry
    token: str
    audited: list[Event] = field(default_factory=list)

    async def ask(
        self, text: str, *, token: str | None = "", address: str = "192.0.2.1", **headers: str
    ) -> httpx.Response:
        """One question from an address; `token` "": the public one, None: no header."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.token}"
        return await self.send("POST", PUBLIC_PATH, address, json={"text": text}, headers=headers)

    async def send(self, method: str, path: str, address: str = "192.0.2.1", **rest: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://detect") as client:
            return await client.request(method, path, **rest)

    async def new_token(self, *scopes: Scope, tenant: str = "a") -> str:
        return (await self.registry.create(tenant=tenant, scopes=scopes or {Scope.DETECT_PUBLIC}))[0]


@asynccontextmanager
async def public_service(
    service: Any,
    budget: PublicBudget | None = BUDGET,
    *,
    guests: bool = False,
    guest_scopes: Sequence[Scope] = (Scope.DETECT_PUBLIC,),
    tenant: str = "a",
    rate: float = 1e-5,
    counters: Counters | None = None,
    backend: Any = None,
    examiner: ManifestExaminer | None = None,
) -> AsyncIterator[PublicService]:
    """The tier over the service's keys; `guests`: people without a token are answered."""
    registry: TokenRegistry = service.authenticate.__self__
    token, _ = await registry.create(tenant=tenant, scopes=guest_scopes)
    metrics, audited = CollectorRegistry(), list[Event]()
    limits = LimitMetrics(metrics)
    tokens = DocumentAllowance("detect", LocalCounters(), TokenLimits(), limits, audited.append)
    allowance = budget and PublicAllowance(
        counters or LocalCounters(), budget, limits, tokens.refused, key=bytes(32), now=lambda: DAY * 1_000
    )
    tier = PublicTier(rate, None, BUDGET, guests, allowance)
    admit = allowance.admit_guest if allowance else None
    door = Guests(PUBLIC_PATH, token, bytes(16), admit) if guests and admit else None
    app = detection_app(
        backend or service.backend,
        AppOptions(authenticate=service.authenticate, registry=metrics, audit=audited.append, guests=door),
        public=tier,
        examiner=examiner,
    )
    yield PublicService(app, registry, token, audited)
