"""Which key, if any, a request's completions are watermarked with."""

from dataclasses import dataclass, field

from ttmark.gen_service.api.backend import GenerationBackend
from ttmark.gen_service.api.generator import Generator
from ttmark.gen_service.engine import Marking
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.service_errors import BadRequest, KeyNotFound, NotReady, NoUsableKey
from ttmark.shared.keys.unlocked import UnlockedKey
from ttmark.shared.schemas.watermark_block import WatermarkOptions

GREEDY = "greedy"
DISABLED = "disabled"
_KEY_FIELD = "watermark.key_id"


@dataclass(frozen=True, slots=True)
class MarkingChoice:
    """The marking, or why there is none.

    Attributes:
        marking: with the first key of the version's pool.
        block_size: tokens of a block: those of the key, even where it is not used, else one.
        pool: the keys of the version's pool, one of which each completion is marked with.
    """

    marking: Marking | None
    unmarked_reason: str | None = None
    block_size: int = 1
    pool: tuple[bytes, ...] = field(default=(), repr=False)


def choose_marking(
    options: WatermarkOptions | None,
    temperature: float | None,
    caller: Principal,
    backend: GenerationBackend,
    generator: Generator,
) -> MarkingChoice:
    """The caller's key for this request.

    No failure ends in text without a watermark: that takes the scope for it, or greedy decoding, which
    leaves no randomness to carry one and still needs a usable key.

    Raises:
        Forbidden: the request turns the watermark off without the scope for it.
        KeyNotFound: no such key, or another tenant's (the answer does not tell which).
        BadRequest: the key is for another tokenizer, or there are several and the request names none.
        NoUsableKey, NotReady: there is no key to watermark with now.
    """
    options = options or WatermarkOptions()
    if options.enabled is False:
        check_scope(caller, Scope.GENERATE_UNWATERMARKED)
        return MarkingChoice(None, DISABLED)
    if not backend.keys.ready:
        raise NotReady("No watermark key is in hand at the moment.", retry_after=1)
    if options.key_id is not None:
        key = _named(options.key_id, caller, backend, generator)
    else:
        key = _implied(caller, backend, generator)
    version = key.primary
    if version is None:
        raise NoUsableKey("The watermark key has no version in use.")
    profile = key.profile
    if temperature == 0:
        return MarkingChoice(None, GREEDY, profile.block_size)
    marking = Marking(key.key_id, version.version, profile.profile_id, profile.watermark(), version.prf_key)
    return MarkingChoice(marking, block_size=profile.block_size, pool=version.prf_keys)


def usable_keys(tenant: str, backend: GenerationBackend, generator: Generator) -> list[UnlockedKey]:
    """The tenant's keys that new text of this model can be watermarked with."""
    fingerprint = generator.tokenizer.fingerprint
    return [
        key
        for key in backend.keys.for_tenant(tenant)
        if key.primary is not None and key.profile.tokenizer_fingerprint == fingerprint
    ]


def _named(key_id: str, caller: Principal, backend: GenerationBackend, generator: Generator) -> UnlockedKey:
    key = backend.keys.get(key_id)
    if key is None or key.tenant != caller.tenant:
        raise KeyNotFound("There is no such watermark key.", param=_KEY_FIELD)
    if key.profile.tokenizer_fingerprint != generator.tokenizer.fingerprint:
        raise BadRequest(
            "The watermark key's profile is for another tokenizer than the model's.", param=_KEY_FIELD
        )
    return key


def _implied(caller: Principal, backend: GenerationBackend, generator: Generator) -> UnlockedKey:
    usable = usable_keys(caller.tenant, backend, generator)
    by_id = {key.key_id: key for key in usable}
    for key_id in backend.default_keys:
        if key_id in by_id:
            return by_id[key_id]
    if not usable:
        raise NoUsableKey("Your tenant has no key in use for this model's tokenizer.")
    if len(usable) > 1:
        raise BadRequest("Your tenant has several watermark keys for this model: name one.", param=_KEY_FIELD)
    return usable[0]
