"""As many things of one tenant are done beside each other as may be, and no more."""

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from ttmark.detect_service.features.jobs.background import TenantTurns


@pytest.mark.parametrize("of_each", [1, 2, 3])
async def test_no_tenant_has_more_under_way_than_it_may(of_each: int) -> None:
    left = {name: [SimpleNamespace(job=SimpleNamespace(tenant=name))] * 5 for name in ("acme", "other")}
    begun: list[str] = []

    async def take(but: Collection[str]) -> Any:
        await asyncio.sleep(0)
        return next((left[name].pop() for name in left if name not in but and left[name]), None)

    async def do(one: Any) -> None:
        begun.append(one.job.tenant)
        await asyncio.Event().wait()

    turns = asyncio.create_task(TenantTurns("tests", take, do, of_each=of_each).run())
    await asyncio.sleep(0.1)
    turns.cancel()
    await asyncio.gather(turns, return_exceptions=True)
    assert begun == ["acme"] * of_each + ["other"] * of_each
