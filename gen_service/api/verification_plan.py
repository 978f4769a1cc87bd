"""A verification made ready: keys, token ids, what the engine reads, checked against the limits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from ttmark.gen_service.api.backend import GenerationBackend, ServedModel
from ttmark.gen_service.api.prompts import chat_prompt, check_text, context_limit, plain_prompt
from ttmark.gen_service.decoding.support import FilterParams
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import (
    BadRequest,
    ContextLengthExceeded,
    KeyNotFound,
    NotReady,
    TooMuchWork,
)
from ttmark.shared.keys.records import UnlockedKey, foreign_keys, own_keys
from ttmark.shared.labels import Label
from ttmark.shared.languages.words import counted
from ttmark.shared.manifests.wrapper import without_wrappers
from ttmark.shared.schemas.verification import VerificationRequest


@dataclass(frozen=True, slots=True)
class VerificationPlan:
    """What is about to be verified.

    Attributes:
        keys: each with a version whose texts are looked for.
        prompt_ids: what the text continues; may be empty.
    """

    model: ServedModel
    keys: Sequence[UnlockedKey]
    prompt_ids: tuple[int, ...]
    text_ids: tuple[int, ...]
    filters: FilterParams
    repetition_penalty: float
    fpr: float

    @property
    def versions(self) -> int:
        """Key versions that are tried."""
        return sum(len(key.detectable) for key in self.keys)

    @property
    def hashed_blocks(self) -> int:
        """Blocks that are scored under all keys."""
        return len(self.text_ids) * sum(key.profile.pool * len(key.detectable) for key in self.keys)

    @property
    def tokens_needed(self) -> int:
        """Tokens that could be enough for the rate: with fewer the best score of all keys is not."""
        needed = []
        for key in self.keys:
            watermark, tries = key.profile.watermark(), self.versions * key.profile.pool
            blocks = watermark.blocks_needed(math.log10(self.fpr) - math.log10(tries))
            needed.append(watermark.context_width + blocks * watermark.block_size)
        return min(needed)


async def plan_verification(
    body: VerificationRequest, caller: Principal, backend: GenerationBackend
) -> VerificationPlan:
    """The plan of a verification.

    Raises:
        ServiceError: the request cannot be served; the message says why.
    """
    model = backend.model(body.model)
    if not model.generator.ready:
        raise NotReady("The model is not ready.", retry_after=1)
    if not backend.keys.ready:
        raise NotReady("No watermark key is in hand at the moment.", retry_after=1)
    keys = _keys(body, caller, backend, model)
    sampling = model.sampling.under(body)
    plan = VerificationPlan(
        model=model,
        keys=keys,
        prompt_ids=await _prompt(body, model, backend.labels.label),
        text_ids=await _text(body, model, backend.labels.label),
        repetition_penalty=sampling.pop("repetition_penalty"),
        filters=FilterParams(**sampling),
        fpr=body.fpr,
    )
    _check(plan, "text" if body.text is not None else "token_ids", backend.limits.max_verified_blocks)
    return plan


def _check(plan: VerificationPlan, field: str, most_blocks: int) -> None:
    tokens, limit = len(plan.text_ids), plan.model.generator.context_length
    over = len(plan.prompt_ids) + tokens - limit
    if over > 0:
        raise ContextLengthExceeded(
            f"{context_limit(limit)} The text has {tokens} and what it "
            f"continues {len(plan.prompt_ids)}, together {counted(over, 'token')} over.",
            param=field,
        )
    if tokens < plan.tokens_needed:
        raise BadRequest(
            f"{field}: holds {counted(tokens, 'token')}; with fewer than {plan.tokens_needed} no score under "
            f"these keys reaches an fpr of {plan.fpr:g}.",
            param=field,
        )
    if plan.hashed_blocks > most_blocks:
        raise TooMuchWork(
            f"This request comes to {plan.hashed_blocks} hashed blocks; the limit is {most_blocks}. Name "
            "fewer keys, or send a shorter text.",
            param="keys",
        )


def _keys(
    body: VerificationRequest, caller: Principal, backend: GenerationBackend, model: ServedModel
) -> list[UnlockedKey]:
    fingerprint = model.generator.tokenizer.fingerprint
    held = backend.keys.for_tenant(caller.tenant)
    foreign = {key.key_id for key in foreign_keys(held)}
    mine = {key.key_id: key for key in own_keys(held) if key.detectable}
    wanted = list(mine) if body.keys is None else list(dict.fromkeys(body.keys))
    for index, key_id in enumerate(wanted):
        if key_id in foreign:
            raise BadRequest(
                "keys: a key of another system is for the detection service.", param=f"keys[{index}]"
            )
        if key_id not in mine:
            raise KeyNotFound("There is no such watermark key.", param=f"keys[{index}]")
    usable = [mine[key_id] for key_id in wanted if mine[key_id].profile.tokenizer_fingerprint == fingerprint]
    if body.keys is not None and len(usable) < len(wanted):
        raise BadRequest("keys: a key's profile is for another tokenizer than the model's.", param="keys")
    if not usable:
        raise KeyNotFound("Your tenant has no key for this model's tokenizer.", param="keys")
    return usable


async def _prompt(body: VerificationRequest, model: ServedModel, label: Label | None) -> tuple[int, ...]:
    if body.messages is not None:
        variables = body.chat_template_kwargs or {}
        prompt = await chat_prompt(body.messages, model, field="messages", label=label, variables=variables)
        return prompt.token_ids
    if body.prompt is not None:
        return (await plain_prompt(body.prompt, model)).token_ids
    return ()


async def _text(body: VerificationRequest, model: ServedModel, label: Label | None) -> tuple[int, ...]:
    """The text's tokens as a detector reads them."""
    if body.text is None:
        ids = body.token_ids or []
        check_text(ids, model, "token_ids")
        return tuple(ids)
    text = without_wrappers(body.text)
    text = text if label is None else label.removed(text)
    check_text(text, model, "text")
    return tuple(await run_in_threadpool(model.generator.tokenizer.encode, text))
