"""The newest record of each chain, kept in the key store: what an end that was cut off is noticed by."""

from ttmark.shared.audit.record import Head
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.key_store_errors import KeyStoreError
from ttmark.shared.vault.store import RecordStore
from ttmark.shared.vault.vault import Vault

KIND = "audit"


class Heads:
    """Heads in authenticated records, one for each chain: who has no key-encryption key can make none."""

    def __init__(self, store: RecordStore, kek: KeyWrapper) -> None:
        self._vault = Vault(store, kek)

    async def get(self, chain: str) -> Head | None:
        """What is known of a chain.

        Raises:
            KeyStoreError: the store is away, or the record was altered.
        """
        envelope = await self._vault.read(KIND, chain)
        return None if envelope is None else _head(chain, envelope.body)

    async def read_all(self) -> tuple[dict[str, Head], dict[str, KeyStoreError]]:
        """The heads by chain, and what is wrong with records that cannot be opened.

        Raises:
            StoreUnavailable: the store is away.
        """
        envelopes, problems = await self._vault.read_all(KIND)
        return {chain: _head(chain, envelope.body) for chain, envelope in envelopes.items()}, problems

    async def put(self, head: Head) -> None:
        """Writes the head of a chain that only the caller continues.

        Raises:
            KeyStoreError: it did not get through, or the record was altered.
        """
        before = await self._vault.read(KIND, head.chain)
        body = {"sequence": head.sequence, "hash": head.hash}
        await self._vault.write(KIND, head.chain, body, previous=before)

    async def rewrap(self) -> int:
        """Wraps the heads' data keys under the current key-encryption key; how many were changed."""
        return await self._vault.rewrap(KIND)


def _head(chain: str, body: object) -> Head:
    match body:
        case {"sequence": int(sequence), "hash": str(digest)}:
            return Head(chain, sequence, digest)
    raise KeyStoreError(f"{KIND} {chain}: the stored record has another format than this program writes")
