"""What an engine is asked for: options by the names that transformers gives them, a key, a prompt."""

import hashlib
import secrets
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.library.key import Key
from ttmark.shared.tokenization import TextTokenizer

OPENING_BITS = 8.0
"""As the services' default (docs/adr/0099)."""
MAX_NEW_TOKENS = 256
NAMES = (
    "max_new_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "do_sample",
    "seed",
    "stop_strings",
)


def sampling_params(options: Mapping[str, Any], defaults: Mapping[str, Any], number: int) -> SamplingParams:
    """Of prompt `number`, whose seed is the given one plus it.

    Args:
        defaults: the model's own; an option that is None or left out has that.

    Raises:
        ValueError: an unknown name, or a value out of range.
    """
    for name in options:
        if name not in NAMES:
            near = get_close_matches(name, NAMES, n=1, cutoff=0)[0]
            raise ValueError(f"generate has no option {name!r}; did you mean {near!r}?")
    chosen = {**defaults, **{name: value for name, value in options.items() if value is not None}}
    stop, seed = chosen.get("stop_strings", ()), chosen.get("seed")
    return SamplingParams(
        max_tokens=chosen.get("max_new_tokens", MAX_NEW_TOKENS),
        temperature=float(chosen.get("temperature", 1.0)) if chosen.get("do_sample", True) else 0.0,
        top_k=chosen.get("top_k", 0),
        top_p=float(chosen.get("top_p", 1.0)),
        min_p=float(chosen.get("min_p", 0.0)),
        repetition_penalty=float(chosen.get("repetition_penalty", 1.0)),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=None if seed is None else seed + number,
    )


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
