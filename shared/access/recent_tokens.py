"""Tokens seen lately, so that a request costs no store round trip and an outage locks nobody out."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ttmark.shared.access.token_records import KIND, TokenRecord, load_token
from ttmark.shared.vault.key_store_errors import RecordRolledBack, RecordTampered, StoreUnavailable
from ttmark.shared.vault.vault import Vault


@dataclass(frozen=True, slots=True)
class _Known:
    record: TokenRecord
    checked_at: float


class RecentTokens:
    """Token records, each read from the store at most every `fresh_seconds`.

    While the store is away, records seen within `outage_seconds` are used and the store is tried at
    most every `fresh_seconds`. So is a record that went back in time in the store: what was seen is the later
    one. Of requests with one token at the same time, one reads for all.
    """

    def __init__(
        self, vault: Vault, *, fresh_seconds: float, outage_seconds: float, monotonic: Callable[[], float]
    ) -> None:
        self._vault = vault
        self._fresh_seconds = fresh_seconds
        self._outage_seconds = outage_seconds
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        self._retry_at = 0.0

    async def get(self, token_id: str) -> TokenRecord | None:
        """The record, or None where there is no such token.

        Raises:
            StoreUnavailable: the store is away and the token was not seen lately; or it is empty.
            RecordRolledBack: there is no such token, nor a record that the store had before.
            RecordTampered: the record was altered.
        """
        known = self._usable(token_id)
        if known is not None:
            return known.record
        lock = self._reading.setdefault(token_id, asyncio.Lock())
        try:
            async with lock:
                known = self._usable(token_id)
                return known.record if known else await self._read(token_id)
        finally:
            if not lock.locked():
                self._reading.pop(token_id, None)

    def forget(self, token_id: str) -> None:
        """Reads the token again before it is used the next time."""
        self._known.pop(token_id, None)

    def _usable(self, token_id: str) -> _Known | None:
        known = self._known.get(token_id)
        if known is None:
            return None
        age = self._monotonic() - known.checked_at
        store_is_away = self._monotonic() < self._retry_at
        return known if age <= (self._outage_seconds if store_is_away else self._fresh_seconds) else None

    async def _read(self, token_id: str) -> TokenRecord | None:
        if self._monotonic() < self._retry_at:
            raise StoreUnavailable("the key store did not answer a moment ago")
        try:
            envelope = await self._vault.read(KIND, token_id)
        except StoreUnavailable:
            self._retry_at = self._monotonic() + self._fresh_seconds
            known = self._usable(token_id)
            if known is None:
                raise
            return known.record
        except RecordRolledBack:
            known = self._known.get(token_id)
            if known is None or self._monotonic() - known.checked_at > self._outage_seconds:
                raise
            return known.record
        except RecordTampered:
            self.forget(token_id)
            raise
        if envelope is None:
            await self._vault.check_kept()
            return None
        record = load_token(envelope)
        self._known[token_id] = _Known(record, self._monotonic())
        return record
