"""Verification: the engine reads a text, and the likelihood ratio is taken under the caller's keys."""

import asyncio
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.backend import GenerationBackend, ServedModel
from ttmark.gen_service.api.generation_metrics import engine_errors_as_answers
from ttmark.gen_service.api.prompts import chat_prompt, check_text, context_limit, plain_prompts
from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.gen_service.engine import ReadingRequest
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.request_body import unless_disconnected
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
from ttmark.shared.observability.tracing import request_id
from ttmark.shared.schemas.detection import DetectedKey
from ttmark.shared.schemas.verification import VerificationRequest, VerificationResponse
from ttmark.shared.watermark import corrected
from ttmark.shared.watermark.interruption import interruptible
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood
from ttmark.shared.watermark.likelihood.forward_backward import log10_mean
from ttmark.shared.watermark.likelihood.reading import Reading


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
        (read,) = await plain_prompts([body.prompt], model)
        return read.token_ids
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


class Verifier:
    """Answers verifications; one at a time is scored, beside the engine."""

    def __init__(self, books: Accounting) -> None:
        self._books = books
        self._turn = asyncio.Semaphore(1)

    async def answer(
        self, body: VerificationRequest, caller: Principal, request: Request
    ) -> VerificationResponse:
        """The verdict and the evidence; all work ends when the client goes.

        Raises:
            ServiceError: the request cannot be served, or the engine refused or failed it.
            ClientDisconnect: the client has gone.
        """
        books = self._books
        books.metrics.check_queue(books.backend.model(body.model).generator, caller.tenant)
        plan = await plan_verification(body, caller, books.backend)
        tokens = len(plan.prompt_ids) + len(plan.text_ids)
        await books.grant(caller, tokens)
        books.metrics.tokens(prompt=tokens)
        identifier = request_id(request.scope)
        response = await unless_disconnected(request.receive, self._find(plan, caller, identifier))
        books.record(
            "key.detect",
            caller,
            request,
            tokens=len(plan.text_ids),
            keys=tuple(f"{key.key_id}/{version.version}" for key in plan.keys for version in key.detectable),
            verdicts={response.verdict: 1},
        )
        return response

    async def _find(self, plan: VerificationPlan, caller: Principal, identifier: str) -> VerificationResponse:
        wanted = ReadingRequest(
            identifier, plan.prompt_ids, plan.text_ids, plan.filters, caller.tenant, plan.repetition_penalty
        )
        with engine_errors_as_answers():
            reading = Reading(await plan.model.generator.read(wanted))
        nobody_waits = _NobodyWaits()

        def best() -> VerificationResponse:
            with interruptible(nobody_waits):
                return best_finding(
                    plan.keys,
                    plan.text_ids,
                    reading,
                    plan.fpr,
                    self._books.backend.draw_secret,
                    prompt_tokens=len(plan.prompt_ids),
                    request_id=identifier,
                )

        async with self._turn:
            try:
                return await asyncio.to_thread(best)
            finally:
                nobody_waits.raised = True


class _Abandoned(BaseException):
    """Nobody waits for the result."""


class _NobodyWaits:
    """Ends a computation at its next pause once `raised`."""

    def __init__(self) -> None:
        self.raised = False

    def pause(self) -> None:
        if self.raised:
            raise _Abandoned

    def aside(self) -> nullcontext[None]:
        return nullcontext()


def best_finding(
    keys: Sequence[UnlockedKey],
    text_ids: Sequence[int],
    reading: Reading,
    fpr: float,
    secret: bytes = b"",
    *,
    prompt_tokens: int = 0,
    request_id: str = "",
) -> VerificationResponse:
    """The smallest p-value over all detectable versions and their pools; for one key at least.

    It is corrected for all that were tried, and log10_e is of the mean of E over all of them.

    Args:
        secret: seeds the draws of p-values, see `LikelihoodTest`.
    """
    versions = [(key, version) for key in keys for version in key.detectable]
    found = [
        detect_likelihood(
            key.profile.watermark(),
            version.prf_keys,
            text_ids,
            rate=fpr / len(versions),
            reading=reading,
            secret=secret,
        )
        for key, version in versions
    ]
    evidence, (key, version) = min(zip(found, versions, strict=True), key=lambda each: each[0].log10_p)
    of_keys = np.concatenate([each.of_keys for each in found])
    log10_p, profile = corrected(evidence.log10_p, len(versions)), key.profile
    marked = log10_p <= math.log10(fpr)
    detected = DetectedKey(
        key_id=key.key_id,
        version=version.version,
        profile=profile.profile_id,
        pool_key=evidence.best if profile.pool > 1 else None,
    )
    return VerificationResponse(
        verdict="watermarked" if marked else "not_detected",
        tokens=len(text_ids),
        prompt_tokens=prompt_tokens,
        hypotheses=of_keys.size,
        p_value=10**log10_p,
        log10_p=log10_p,
        log10_e=float(log10_mean(of_keys)),
        scored_blocks=evidence.scored,
        key=detected if marked else None,
        request_id=request_id,
    )
