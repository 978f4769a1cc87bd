"""Which key, if any, a request's completions are watermarked with, and which of its pool each."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.served_model import Generator
from ttmark.gen_service.api.plan.stages import MarkingChoice
from ttmark.gen_service.decoding.request import Marking
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.service_errors import BadRequest, KeyNotFound, NotReady, NoUsableKey
from ttmark.shared.keys.held_keys import ForeignKey, UnlockedKey, own_keys
from ttmark.shared.schemas.generation.watermark_block import WatermarkOptions
from ttmark.shared.schemas.profile import Profile

GREEDY = "greedy"
DISABLED = "disabled"
_KEY_FIELD = "watermark.key_id"
_PAYLOAD_FIELD = "watermark.payload"


def choose_marking(
    options: WatermarkOptions | None,
    temperature: float,
    caller: Principal,
    backend: GenerationBackend,
    generator: Generator,
) -> MarkingChoice:
    """The caller's key for this request.

    No failure ends in text without a watermark: that takes the scope for it, or greedy decoding, which
    leaves no randomness to carry one and still needs a usable key.

    Raises:
        Forbidden: the request turns the watermark off, or has a payload, without the scope for it.
        KeyNotFound: no such key, or another tenant's (the answer does not tell which).
        BadRequest: the key is for another tokenizer, or there are several and the request names none; the
            key takes no payloads, not this one, or needs one; a payload has no watermark to carry it.
        NoUsableKey, NotReady: there is no key to watermark with now.
    """
    options = options or WatermarkOptions()
    if options.payload is not None:
        check_scope(caller, Scope.GENERATE_PAYLOAD)
    if options.enabled is False:
        check_scope(caller, Scope.GENERATE_UNWATERMARKED)
        return _unmarked(DISABLED, options)
    if not backend.keys.ready:
        raise NotReady("No watermark key is in hand at the moment.", retry_after=1)
    if options.key_id is not None:
        key = _named(options.key_id, caller, backend, generator)
    else:
        key = _implied(options.payload is not None, caller, backend, generator)
    version = key.primary
    if version is None:
        raise NoUsableKey("The watermark key has no version in use.")
    profile = key.profile
    if temperature == 0:
        return _unmarked(GREEDY, options, profile.block_size)
    _check_payload(options.payload, profile)
    pool = version.prf_keys if options.payload is None else (version.prf_keys[options.payload],)
    marking = Marking(
        key.key_id, version.version, profile.profile_id, profile.watermark(), pool[0], backend.opening_bits
    )
    return MarkingChoice(marking, block_size=profile.block_size, pool=pool)


def _unmarked(reason: str, options: WatermarkOptions, block_size: int = 1) -> MarkingChoice:
    if options.payload is not None:
        raise BadRequest(
            f"The text would carry no watermark ({reason}), so no payload either.", param=_PAYLOAD_FIELD
        )
    return MarkingChoice(None, reason, block_size)


def usable_keys(tenant: str, backend: GenerationBackend, generator: Generator) -> list[UnlockedKey]:
    """The tenant's keys that new text of this model can be watermarked with."""
    fingerprint = generator.tokenizer.fingerprint
    return [key for key in own_keys(backend.keys.for_tenant(tenant)) if _is_usable(key, fingerprint)]


def _is_usable(key: UnlockedKey, fingerprint: str) -> bool:
    return key.primary is not None and key.profile.tokenizer_fingerprint == fingerprint


def _named(key_id: str, caller: Principal, backend: GenerationBackend, generator: Generator) -> UnlockedKey:
    key = backend.keys.get(key_id)
    if key is None or key.tenant != caller.tenant:
        raise KeyNotFound("There is no such watermark key.", param=_KEY_FIELD)
    if isinstance(key, ForeignKey):
        raise BadRequest(
            f"This key is another system's ({key.profile.scheme}): it is for detection, and no text is made "
            "with it.",
            param=_KEY_FIELD,
        )
    if key.profile.tokenizer_fingerprint != generator.tokenizer.fingerprint:
        raise BadRequest(
            "The watermark key's profile is for another tokenizer than the model's.", param=_KEY_FIELD
        )
    return key


def _implied(
    with_payload: bool, caller: Principal, backend: GenerationBackend, generator: Generator
) -> UnlockedKey:
    """The key of a request that names none: with a payload one that takes payloads, without it another."""
    fingerprint = generator.tokenizer.fingerprint
    for key_id in backend.default_keys:  # most requests need no look at the others
        key = backend.keys.get(key_id)
        if (
            isinstance(key, UnlockedKey)
            and key.tenant == caller.tenant
            and _is_usable(key, fingerprint)
            and key.profile.payloads == with_payload
        ):
            return key
    usable = usable_keys(caller.tenant, backend, generator)
    usable = [key for key in usable if key.profile.payloads == with_payload] or usable
    by_id = {key.key_id: key for key in usable}
    for key_id in backend.default_keys:
        if key_id in by_id:
            return by_id[key_id]
    if not usable:
        raise NoUsableKey("Your tenant has no key in use for this model's tokenizer.")
    if len(usable) > 1:
        raise BadRequest("Your tenant has several watermark keys for this model: name one.", param=_KEY_FIELD)
    return usable[0]


def _check_payload(payload: int | None, profile: Profile) -> None:
    """So that the number of a key that takes payloads is always a request's, and that of others never is.

    Raises:
        BadRequest: the payload does not go with the key.
    """
    if not profile.payloads:
        if payload is not None:
            raise BadRequest("The watermark key takes no payloads.", param=_PAYLOAD_FIELD)
    elif payload is None or payload >= profile.pool:
        raise BadRequest(
            f"The watermark key takes a payload from 0 to {profile.pool - 1} with each request.",
            param=_PAYLOAD_FIELD,
        )


_PERSON = b"ttmark.pool.v1"


def markings(
    choice: MarkingChoice, seed: int | None, prompt_ids: Sequence[int], choices: int
) -> list[Marking | None]:
    """The marking of each of a prompt's completions, with different keys as long as the pool has so many.

    Args:
        seed: of the request; with one, the same prompt gets the same keys again.
    """
    if choice.marking is None:
        return [None] * choices
    first = _first(choice.pool, seed, prompt_ids)
    return [
        replace(choice.marking, prf_key=choice.pool[(first + index) % len(choice.pool)])
        for index in range(choices)
    ]


def _first(pool: Sequence[bytes], seed: int | None, prompt_ids: Sequence[int]) -> int:
    """The number of the first completion's key, uniform over the pool.

    A seed is the caller's. Hashed with a secret and the prompt it names no key: who sends one seed with every
    prompt does not get all answers under one key.
    """
    if seed is None or len(pool) == 1:
        return secrets.randbelow(len(pool))
    digest = hashlib.blake2b(key=pool[0], person=_PERSON, digest_size=16)
    digest.update(seed.to_bytes(8, "little"))
    digest.update(np.array(prompt_ids, dtype="<i8").tobytes())
    return int.from_bytes(digest.digest(), "little") % len(pool)
