"""The newest record of each chain, kept in the key store: what an end that was cut off is noticed by.

Beside it lies the newest record that was removed on purpose, by which a missing beginning is told from one
that was cut off.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ttmark.shared.audit.record import Anchor, Head
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.key_store_errors import KeyStoreError
from ttmark.shared.vault.store import RecordStore
from ttmark.shared.vault.vault import Vault

KIND = "audit"
_Body = Mapping[str, Any]


class Heads:
    """Anchors in authenticated records, one for each chain: who has no key-encryption key can make none."""

    def __init__(self, store: RecordStore, kek: KeyWrapper) -> None:
        self._vault = Vault(store, kek)

    async def get(self, chain: str) -> Head | None:
        """The head that is known of a chain.

        Raises:
            KeyStoreError: the store is away, or the record was altered.
        """
        envelope = await self._vault.read(KIND, chain)
        return None if envelope is None else _anchor(chain, envelope.body).head

    async def read_all(self) -> tuple[dict[str, Anchor], dict[str, KeyStoreError]]:
        """What is known by chain, and what is wrong with records that cannot be opened.

        Raises:
            StoreUnavailable: the store is away.
        """
        envelopes, problems = await self._vault.read_all(KIND)
        return {chain: _anchor(chain, envelope.body) for chain, envelope in envelopes.items()}, problems

    async def put(self, head: Head) -> None:
        """Writes the head of a chain that only the caller continues.

        Raises:
            KeyStoreError: it did not get through, or the record was altered.
        """
        await self._change(head.chain, lambda known: {**known, **_body(head)})

    async def put_removed(self, removed: Head) -> None:
        """Says that a chain's records up to this one may be missing. Its writer may go on meanwhile.

        Raises:
            KeyStoreError: it did not get through, or the record was altered.
        """

        def new_body(known: _Body) -> _Body | None:
            if known and known.get("removed", {"sequence": 0})["sequence"] >= removed.sequence:
                return None
            return {**(known or _body(removed)), "removed": _body(removed)}

        await self._change(removed.chain, new_body)

    async def rewrap(self) -> int:
        """Wraps the heads' data keys under the current key-encryption key; how many were changed."""
        return await self._vault.rewrap(KIND)

    async def _change(self, chain: str, new_body: Callable[[_Body], _Body | None]) -> None:
        """`new_body` gets an empty body where the store has none."""
        envelope, _ = await self._vault.change(KIND, chain, lambda known: new_body(known.body))
        first = None if envelope else new_body({})
        if first is not None:
            await self._vault.write(KIND, chain, first, previous=None)


def _body(head: Head) -> dict[str, Any]:
    return {"sequence": head.sequence, "hash": head.hash}


def _anchor(chain: str, body: object) -> Anchor:
    match body:
        case {"sequence": int(sequence), "hash": str(digest), **more}:
            head = Head(chain, sequence, digest)
            match more.get("removed"):
                case None:
                    return Anchor(head)
                case {"sequence": int(through), "hash": str(of_through)}:
                    return Anchor(head, Head(chain, through, of_through))
    raise KeyStoreError(f"{KIND} {chain}: the stored record has another format than this program writes")
