"""Verification: the engine reads a text, its blocks are weighted and scored under the caller's keys."""

import asyncio
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request

from ttmark.gen_service.api.backend import GenerationBackend
from ttmark.gen_service.api.failures import engine_errors_as_answers
from ttmark.gen_service.api.generation_metrics import GenerationMetrics
from ttmark.gen_service.api.observer import Observer
from ttmark.gen_service.api.verification_plan import VerificationPlan, plan_verification
from ttmark.gen_service.engine import ReadingRequest
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.disconnect import unless_disconnected
from ttmark.shared.http.request_id import request_id
from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.limits.allowances import TokenAllowance
from ttmark.shared.schemas.detected import DetectedKey
from ttmark.shared.schemas.verification import PlainSum, VerificationRequest, VerificationResponse
from ttmark.shared.vault.audit import AuditEvent, AuditSink
from ttmark.shared.watermark import corrected
from ttmark.shared.watermark.detectors.weighted import WeightedEvidence, detect_weighted
from ttmark.shared.watermark.pauses import interruptible

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Finding:
    """The best of all versions; p-values of `evidence` are corrected for its own hypotheses only."""

    key: UnlockedKey
    version: UnlockedVersion
    evidence: WeightedEvidence
    hypotheses: int
    versions: int

    def log10_p(self, alone: float) -> float:
        """A p-value of the evidence, corrected for the versions that were tried."""
        return corrected(alone, self.versions)


class Verifier:
    """Answers verifications; one at a time is scored, beside the engine."""

    def __init__(
        self,
        backend: GenerationBackend,
        observer: Observer,
        metrics: GenerationMetrics,
        audit: AuditSink,
        allowance: TokenAllowance | None,
    ) -> None:
        self._backend = backend
        self._observer = observer
        self._metrics = metrics
        self._audit = audit
        self._allowance = allowance
        self._turn = asyncio.Semaphore(1)

    async def answer(
        self, body: VerificationRequest, caller: Principal, request: Request
    ) -> VerificationResponse:
        """The verdict and the evidence; all work ends when the client goes.

        Raises:
            ServiceError: the request cannot be served, or the engine refused or failed it.
            ClientDisconnect: the client has gone.
        """
        self._observer.check_queue(self._backend.model(body.model).generator, caller.tenant)
        plan = await plan_verification(body, caller, self._backend)
        tokens = len(plan.prompt_ids) + len(plan.text_ids)
        if self._allowance is not None:
            await self._allowance.take(caller, tokens)
        self._metrics.tokens(prompt=tokens)
        identifier = request_id(request.scope)
        finding = await unless_disconnected(request.receive, self._find(plan, caller, identifier))
        response = _response(plan, finding, identifier)
        self._audit(
            AuditEvent(
                "key.detect",
                token_id=caller.token_id,
                tenant=caller.tenant,
                request_id=identifier,
                route=request.scope["route"].path,
                tokens=len(plan.text_ids),
                keys=tuple(f"{k.key_id}/{version.version}" for k in plan.keys for version in k.detectable),
                verdicts={response.verdict: 1},
            )
        )
        return response

    async def _find(self, plan: VerificationPlan, caller: Principal, identifier: str) -> Finding:
        reading = ReadingRequest(
            identifier, plan.prompt_ids, plan.text_ids, plan.filters, caller.tenant, plan.repetition_penalty
        )
        with engine_errors_as_answers():
            probabilities = np.exp(await plan.model.generator.read(reading))
        async with self._turn:
            nobody_waits = _NobodyWaits()
            try:
                return await asyncio.to_thread(_best, plan, probabilities, nobody_waits)
            finally:
                nobody_waits.raised = True


class _Abandoned(Exception):
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


def _best(plan: VerificationPlan, probabilities: Floats, nobody_waits: _NobodyWaits) -> Finding:
    with interruptible(nobody_waits):
        return best_finding(plan.keys, plan.text_ids, probabilities, any_phase=plan.any_phase)


def best_finding(
    keys: Sequence[UnlockedKey], text_ids: Sequence[int], probabilities: Floats, *, any_phase: bool
) -> Finding:
    """The smallest p-value over all detectable versions, their pools and the phases; for one key at least."""
    tried = [
        (
            key,
            version,
            detect_weighted(
                key.profile.watermark(),
                version.prf_keys,
                text_ids,
                probabilities,
                range(key.profile.block_size if any_phase else 1),
            ),
        )
        for key in keys
        for version in key.detectable
    ]
    key, version, evidence = min(tried, key=lambda each: each[2].weighted.log10_p)
    hypotheses = sum(each.hypotheses for _, _, each in tried)
    return Finding(key, version, evidence, hypotheses, len(tried))


def _response(plan: VerificationPlan, finding: Finding, identifier: str) -> VerificationResponse:
    evidence, profile = finding.evidence, finding.key.profile
    log10_p = finding.log10_p(evidence.weighted.log10_p)
    found = log10_p <= math.log10(plan.fpr)
    key = DetectedKey(
        key_id=finding.key.key_id,
        version=finding.version.version,
        profile=profile.profile_id,
        pool_key=evidence.pool_key if profile.pool > 1 else None,
    )
    return VerificationResponse(
        verdict="watermarked" if found else "not_detected",
        tokens=len(plan.text_ids),
        prompt_tokens=len(plan.prompt_ids),
        hypotheses=finding.hypotheses,
        p_value=10**log10_p,
        log10_p=log10_p,
        z=evidence.weighted.z,
        unweighted=PlainSum(log10_p=finding.log10_p(evidence.unweighted.log10_p), z=evidence.unweighted.z),
        scored_blocks=evidence.scored_blocks,
        weighted_blocks=evidence.weighted_blocks,
        key=key if found else None,
        request_id=identifier,
    )
