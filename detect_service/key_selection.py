"""Which keys a request is tried with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ttmark.detect_service.tokenizers import TokenizerSet
from ttmark.shared.http.service_errors import KeyNotFound, Unprocessable
from ttmark.shared.keys.unlocked import ForeignKey, HeldKey, UnlockedKey, foreign_keys, own_keys
from ttmark.shared.schemas.detection import DetectionRequest


class TenantKeys(Protocol):
    """Where keys come from: a `KeyCache`, or keys that were read once."""

    def for_tenant(self, tenant: str) -> Sequence[HeldKey]:
        """The tenant's keys, ordered by id."""


@dataclass(frozen=True, slots=True)
class KeySelection:
    """Keys to try, and keys that were left out because their tokenizer is not installed."""

    keys: Sequence[HeldKey]
    skipped: Sequence[str]

    @property
    def own(self) -> list[UnlockedKey]:
        """Those of this system."""
        return own_keys(self.keys)

    @property
    def foreign(self) -> list[ForeignKey]:
        """Those of other systems."""
        return foreign_keys(self.keys)

    @property
    def versions(self) -> int:
        """Key versions that are tried on each document."""
        return sum(len(key.detectable) for key in self.keys)


def select_keys(
    request: DetectionRequest, tenant: str, source: TenantKeys, tokenizers: TokenizerSet
) -> KeySelection:
    """The tenant's keys that the request names, or all of them.

    Raises:
        KeyNotFound: a named key does not exist or is another tenant's, or the tenant has none.
        Unprocessable: a named key cannot read text because its tokenizer is not installed here.
    """
    mine = {key.key_id: key for key in source.for_tenant(tenant)}
    needs_tokenizer = any(document.text is not None for document in request.inputs)
    if request.keys is None:
        if not mine:
            raise KeyNotFound(
                "This token's tenant has no key to detect with; make one with `ttmark keys create`."
            )
        skipped = [
            key.key_id
            for key in mine.values()
            if needs_tokenizer and key.profile.tokenizer_fingerprint not in tokenizers
        ]
        if len(skipped) == len(mine):
            raise Unprocessable(
                "No key's tokenizer is installed in this service; send token_ids.", param="inputs"
            )
        return KeySelection([key for key in mine.values() if key.key_id not in skipped], skipped)
    wanted = list(dict.fromkeys(request.keys))
    for index, key_id in enumerate(wanted):
        if key_id not in mine:
            raise KeyNotFound("There is no such key.", param=f"keys[{index}]")
        fingerprint = mine[key_id].profile.tokenizer_fingerprint
        if needs_tokenizer and fingerprint not in tokenizers:
            raise Unprocessable(
                f"The tokenizer of key {key_id} (fingerprint {fingerprint[:12]}...) is not installed in this "
                "service: add its folder to TTMARK_TOKENIZERS, or send token_ids.",
                param=f"keys[{index}]",
            )
    return KeySelection([mine[key_id] for key_id in wanted], [])
