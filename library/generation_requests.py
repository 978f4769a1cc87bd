"""From a key and a prompt to what an engine is asked for."""

import hashlib
import secrets

from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.library.key import Key
from ttmark.shared.tokenization import TextTokenizer

OPENING_BITS = 8.0
"""As the services' default (docs/adr/0099)."""


def generation_request(
    number: int,
    prompt_ids: tuple[int, ...],
    sampling: SamplingParams,
    key: Key | None,
    tokenizer: TextTokenizer,
    name: str,
) -> GenerationRequest:
    """A completion with the key's mark, or without one; with a seed the pool's key is the same again."""
    if key is None:
        return GenerationRequest(f"library-{number}", prompt_ids, sampling, None)
    profile, pool = key.marking(tokenizer, name)
    if sampling.seed is None:
        chosen = secrets.randbelow(len(pool))
    else:
        digest = hashlib.blake2b(
            sampling.seed.to_bytes(16, "little", signed=True), key=pool[0], digest_size=8
        )
        digest.update(repr(prompt_ids).encode())
        chosen = int.from_bytes(digest.digest(), "little") % len(pool)
    marking = Marking("library", 1, profile.profile_id, profile.watermark(), pool[chosen], OPENING_BITS)
    return GenerationRequest(f"library-{number}", prompt_ids, sampling, marking)
