"""Makes one job of all requests that a token sends with one `Idempotency-Key`.

A key's entry is begun, then charged, then done; the id of what is made stands in it from the start. Making
under that id again changes nothing, so who finds an entry that nobody works on any more goes on with it.
"""

import hashlib
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict

from ttmark.detect_service.features.jobs.idempotency.idempotency_store import RequestKeys
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import AlreadyGone, BadRequest, IdempotencyKeyReused, RequestInProgress
from ttmark.shared.schemas.detection.jobs import JobStatus
from ttmark.shared.vault.envelope import open_record, seal_record
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError

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
    """The request's key, if it has one. Raises BadRequest: empty, too long, not printable ASCII, or two."""
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


class _Entry(BaseModel):
    """What is sealed: a store that saw fingerprints could try texts. Times are Unix times."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    stage: Stage
    busy_until: float
    kept_until: float
    answer: str


class Once:
    """An idempotency key of a token, in the store where jobs are; for one request."""

    def __init__(
        self,
        keys: RequestKeys,
        kek: KeyWrapper,
        caller: Principal,
        key: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._keys, self._kek, self._now = keys, kek, now
        self._tenant = caller.tenant
        self._name = hashlib.sha256(f"{caller.token_id} {key}".encode()).hexdigest()
        self._bound_to = b"ttmark request %b %b" % (self._tenant.encode(), self._name.encode())

    async def answer(
        self,
        fingerprint: str,
        fresh: JobStatus,
        charge: Callable[[], Awaitable[None]],
        make: Callable[[JobStatus], Awaitable[None]],
        is_there: Callable[[str], Awaitable[bool]],
    ) -> JobStatus:
        """The answer to the first request of the token with this key; charges and makes for the first alone.

        Args:
            fingerprint: of the body.
            fresh: the answer if nothing is made so far.
            charge: takes from allowances what the request costs, or refuses it.
            make: makes what the answer says. Repeating it for an id changes nothing.
            is_there: whether what an answer says is still there.

        Raises:
            IdempotencyKeyReused: the first had another body.
            RequestInProgress: it is being answered.
            AlreadyGone: what it made was deleted or has expired.
            ServiceError: what `charge` and `make` raise. After a refusal by `charge` the key is as new.
            KeyStoreError: the store is away, or the entry does not open.
        """
        sealed, entry = await self._held(fingerprint, fresh)
        answer = JobStatus.model_validate_json(entry.answer)
        if entry.stage == "done":
            if await is_there(answer.id):
                return answer
            raise AlreadyGone("A request with this idempotency key was answered; what it made is gone since.")
        if entry.stage == "begun":
            try:
                await charge()
            except BaseException:
                with suppress(KeyStoreError):
                    await self._keys.remove(self._tenant, self._name, was=sealed)
                raise
            sealed = await self._advanced(entry, sealed, "charged", busy_seconds=BUSY_SECONDS)
        try:
            await make(answer)
        except BaseException:
            # Perhaps it was made: the next request finds out, and is not charged.
            with suppress(KeyStoreError, RequestInProgress):
                await self._advanced(entry, sealed, "charged")
            raise
        await self._advanced(entry, sealed, "done")
        return answer

    async def _held(self, fingerprint: str, fresh: JobStatus) -> tuple[bytes, _Entry]:
        """The key's entry, sealed and open, this request's to work on unless it is done."""
        while True:
            sealed = await self._keys.get(self._tenant, self._name)
            now, answer = self._now(), fresh
            stage: Stage = "begun"
            if sealed is not None:
                plain, _ = await open_record(self._kek, self._bound_to, sealed)
                entry = _Entry.model_validate_json(plain)
                if entry.kept_until > now:
                    if entry.fingerprint != fingerprint:
                        raise IdempotencyKeyReused(
                            "This idempotency key was used for a request with another body. Make a new key "
                            "for each new request.",
                            param=HEADER,
                        )
                    if entry.stage == "done":
                        return sealed, entry
                    if entry.busy_until > now:
                        raise _in_progress(entry.busy_until - now)
                    first = JobStatus.model_validate_json(entry.answer)
                    answer, stage = answer.model_copy(update={"id": first.id}), entry.stage
            entry = _Entry(
                fingerprint=fingerprint,
                stage=stage,
                busy_until=now + BUSY_SECONDS,
                kept_until=now + KEEP_SECONDS,
                answer=answer.model_dump_json(),
            )
            changed = await self._put(entry, was=sealed)
            if changed is not None:
                return changed, entry

    async def _advanced(
        self, entry: _Entry, sealed: bytes, stage: Stage, *, busy_seconds: float = 0.0
    ) -> bytes:
        entry = entry.model_copy(update={"stage": stage, "busy_until": self._now() + busy_seconds})
        changed = await self._put(entry, was=sealed)
        if changed is None:  # another request has gone on with it
            raise _in_progress(BUSY_SECONDS)
        return changed

    async def _put(self, entry: _Entry, *, was: bytes | None) -> bytes | None:
        sealed, _ = await seal_record(self._kek, self._bound_to, entry.model_dump_json().encode())
        kept = await self._keys.put(self._tenant, self._name, sealed, was=was, until=entry.kept_until)
        return sealed if kept else None


def _in_progress(seconds: float) -> RequestInProgress:
    return RequestInProgress(
        "A request with this idempotency key is being answered. Send it again to read that answer.",
        retry_after=seconds,
    )
