"""Keys as a detector is given them, from a watermark and PRF keys."""

from collections.abc import Sequence

import numpy as np

from ttmark.detect_service.verdict import Detector, DocumentFinding
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.null_replacement import Redrawn
from ttmark.shared.watermark.schemes.watermark import Watermark


def held(watermark: Watermark, *pools: Sequence[bytes], key_id: str = "key") -> UnlockedKey:
    """A key of tenant a with a version for each pool of PRF keys; the last one is the newest."""
    profile = Profile(
        scheme=watermark.scheme,
        block_size=watermark.block_size,
        context_width=watermark.context_width,
        parameters=watermark.parameters,
        tokenizer_fingerprint="0" * 64,
    )
    versions = tuple(
        UnlockedVersion(number, KeyState.ACTIVE, *pool) for number, pool in enumerate(pools, start=1)
    )
    return UnlockedKey(key_id, "a", profile, 1, versions)


def key_of(
    tokenizer: TextTokenizer, prf_key: bytes = bytes(16), key_id: str = "k", **fields: object
) -> UnlockedKey:
    """A key of tenant a for texts of the tokenizer, with one PRF key; `fields` of its profile."""
    given = {"scheme": "synthid", "tokenizer_fingerprint": tokenizer.fingerprint, **fields}
    version = UnlockedVersion(1, KeyState.PRIMARY, prf_key)
    return UnlockedKey(key_id, "a", Profile.model_validate(given), 1, (version,))


def under(
    detector: Detector,
    watermark: Watermark,
    pool: Sequence[bytes],
    tokens: np.ndarray,
    redrawn: Redrawn | None = None,
) -> DocumentFinding:
    """What a detector finds in a document under one pool."""
    key = held(watermark, pool)
    return detector([(key, key.versions[0])], tokens, redrawn)[0]
