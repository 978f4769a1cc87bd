"""Which prompts a tenant may take from vLLM's prefix cache: its own, since its last failure."""

import hashlib
from collections import Counter


class Salts:
    """What vLLM mixes into the names of cached blocks, by tenant."""

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()

    def of(self, tenant: str) -> str:
        """The tenant's salt; nobody else's is the same."""
        return hashlib.sha256(f"{self._failures[tenant]} {tenant}".encode()).hexdigest()

    def renew(self, tenant: str) -> None:
        """After a failure: what was cached for the tenant is not used again."""
        self._failures[tenant] += 1
