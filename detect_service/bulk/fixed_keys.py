"""Keys that were read once, for a run that must not see them change."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from ttmark.shared.keys.records import HeldKey


@dataclass(frozen=True, slots=True)
class FixedKeys:
    """A `TenantKeys` over the keys of one moment."""

    keys: Sequence[HeldKey]

    @classmethod
    def of(cls, keys: Iterable[HeldKey]) -> "FixedKeys":
        """The keys in order of their ids."""
        return cls(sorted(keys, key=lambda key: key.key_id))

    def for_tenant(self, tenant: str) -> list[HeldKey]:
        """The tenant's keys, ordered by id."""
        return [key for key in self.keys if key.tenant == tenant]

    def fingerprint(self, tenant: str) -> str:
        """Names the tenant's detectable versions, without their secrets."""
        named = [
            [key.key_id, key.profile.profile_id, [version.version for version in key.detectable]]
            for key in self.for_tenant(tenant)
        ]
        return hashlib.sha256(orjson.dumps(named)).hexdigest()
