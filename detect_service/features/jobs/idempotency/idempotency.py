"""Makes one job of all requests that a token sends with one `Idempotency-Key`.

A key's entry is begun, then charged, then done; the id of what is made stands in it from the start. Making
under that id again changes nothing, so who finds an entry that nobody works on any more goes on with it.
"""

import hashlib
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict

from ttmark.detect_service.features.jobs.idempotency.idempotency_store import RequestKeys
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import AlreadyGone, BadRequest, IdempotencyKeyReused, RequestInProgress
from ttmark.shared.schemas.jobs import JobStatus
from ttmark.shared.vault.envelope import open_record, seal_record
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.key_store_errors import KeyStoreError

HEADER = "Idempotency-Key"
_LONGEST = 255
_PATTERN = rf"[!-~]{{1,{_LONGEST}}}"
IDEMPOTENCY_PARAMETER: dict[str, Any] = {
    "parameters": [
        {
            "name": HEADER,
            "in": "header",
            "required": False,
            "schema": {"type": "string", "pattern": f"^{_PATTERN}$"},
            "description": "A text of yours for each new request: for 24 hours the same request with "
            "it gets the first answer again. Another body is a 422.",
        }
    ]
}
"""For a route's `openapi_extra`."""


def idempotency_key(request: Request) -> str | None:
    """The request's key, if it has one.

    Raises:
        BadRequest: it is empty, too long, or not in printable ASCII; or there are two.
    """
    given = request.headers.getlist(HEADER)
    if not given:
        return None
    if len(given) > 1 or re.fullmatch(_PATTERN, given[0]) is None:
        raise BadRequest(
            f"{HEADER}: send one key of 1 to {_LONGEST} printable ASCII characters without spaces.",
            param=HEADER,
        )
    return given[0]


KEEP_SECONDS = 86_400.0
# Longer than nearly all requests take. One that takes longer is not done twice either: its last step fails.
BUSY_SECONDS = 10.0

Stage = Literal["begun", "charged", "done"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a job to be made.

    Attributes:
        fingerprint: of the body.
        fresh: the answer if nothing is made so far.
        charge: takes from allowances what the request costs, or refuses it.
        make: makes what the answer says. Repeating it for an id changes nothing.
        is_there: whether what an answer says is still there.
    """

    fingerprint: str
    fresh: JobStatus
    charge: Callable[[], Awaitable[None]]
    make: Callable[[JobStatus], Awaitable[None]]
    is_there: Callable[[str], Awaitable[bool]]


class _Entry(BaseModel):
    """What is sealed: a store that saw fingerprints could try texts. Times are Unix times."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    stage: Stage
    busy_until: float
    kept_until: float
    answer: str


@dataclass(frozen=True, slots=True)
class Once:
    """Keys of one kind of thing, in the store where the things are."""

    keys: RequestKeys
    kek: KeyWrapper
    now: Callable[[], float] = time.time

    async def answer(self, key: str, caller: Principal, asked: Asked) -> JobStatus:
        """The answer to the first request of the token with this key; charges and makes for the first alone.

        Raises:
            IdempotencyKeyReused: the first had another body.
            RequestInProgress: it is being answered.
            AlreadyGone: what it made was deleted or has expired.
            ServiceError: what `charge` and `make` raise. After a refusal by `charge` the key is as new.
            KeyStoreError: the store is away, or the entry does not open.
        """
        name = hashlib.sha256(f"{caller.token_id} {key}".encode()).hexdigest()
        held = await self._held(caller.tenant, name, asked)
        answer = JobStatus.model_validate_json(held.entry.answer)
        if held.entry.stage == "done":
            if await asked.is_there(answer.id):
                return answer
            raise AlreadyGone("A request with this idempotency key was answered; what it made is gone since.")
        if held.entry.stage == "begun":
            try:
                await asked.charge()
            except BaseException:
                with suppress(KeyStoreError):
                    await self.keys.remove(held.tenant, held.name, was=held.sealed)
                raise
            held = await self._advanced(held, "charged", busy_seconds=BUSY_SECONDS)
        try:
            await asked.make(answer)
        except BaseException:
            # Perhaps it was made: the next request finds out, and is not charged.
            with suppress(KeyStoreError, RequestInProgress):
                await self._advanced(held, "charged")
            raise
        await self._advanced(held, "done")
        return answer

    async def _held(self, tenant: str, name: str, asked: Asked) -> "_Held":
        """The key's entry, this request's to work on unless it is done."""
        while True:
            sealed = await self.keys.get(tenant, name)
            now, answer = self.now(), asked.fresh
            stage: Stage = "begun"
            entry = None if sealed is None else await self._opened(tenant, name, sealed)
            if sealed is not None and entry is not None and entry.kept_until > now:
                if entry.fingerprint != asked.fingerprint:
                    raise IdempotencyKeyReused(
                        "This idempotency key was used for a request with another body. Make a new key for "
                        "each new request.",
                        param="Idempotency-Key",
                    )
                if entry.stage == "done":
                    return _Held(tenant, name, sealed, entry)
                if entry.busy_until > now:
                    raise _in_progress(entry.busy_until - now)
                first = type(answer).model_validate_json(entry.answer)
                answer, stage = answer.model_copy(update={"id": first.id}), entry.stage
            entry = _Entry(
                fingerprint=asked.fingerprint,
                stage=stage,
                busy_until=now + BUSY_SECONDS,
                kept_until=now + KEEP_SECONDS,
                answer=answer.model_dump_json(),
            )
            changed = await self._put(tenant, name, entry, was=sealed)
            if changed is not None:
                return _Held(tenant, name, changed, entry)

    async def _advanced(self, held: "_Held", stage: Stage, *, busy_seconds: float = 0.0) -> "_Held":
        until = self.now() + busy_seconds
        entry = held.entry.model_copy(update={"stage": stage, "busy_until": until})
        changed = await self._put(held.tenant, held.name, entry, was=held.sealed)
        if changed is None:  # another request has gone on with it
            raise _in_progress(BUSY_SECONDS)
        return _Held(held.tenant, held.name, changed, entry)

    async def _put(self, tenant: str, name: str, entry: _Entry, *, was: bytes | None) -> bytes | None:
        sealed, _ = await seal_record(self.kek, _bound_to(tenant, name), entry.model_dump_json().encode())
        kept = await self.keys.put(tenant, name, sealed, was=was, until=entry.kept_until)
        return sealed if kept else None

    async def _opened(self, tenant: str, name: str, sealed: bytes) -> _Entry:
        plain, _ = await open_record(self.kek, _bound_to(tenant, name), sealed)
        return _Entry.model_validate_json(plain)


@dataclass(frozen=True, slots=True)
class _Held:
    tenant: str
    name: str
    sealed: bytes
    entry: _Entry


def _in_progress(seconds: float) -> RequestInProgress:
    return RequestInProgress(
        "A request with this idempotency key is being answered. Send it again to read that answer.",
        retry_after=seconds,
    )


def _bound_to(tenant: str, name: str) -> bytes:
    return b"ttmark request %b %b" % (tenant.encode(), name.encode())
