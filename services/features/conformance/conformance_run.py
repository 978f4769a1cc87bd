"""Composition root of conformance runs: a deployed key, its model as served, detection as asked."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from pydantic import SecretStr

from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.features.bulk.in_detect.bulk_detection import read_keys
from ttmark.detect_service.options import DetectionOptions
from ttmark.detect_service.question import Question
from ttmark.evaluation.conformance.detectors import log10_p_of
from ttmark.evaluation.conformance.measure import Conformance
from ttmark.evaluation.conformance.plan import FALSE_RATES, FOUND_RATES, PLANS, Size, prompt_of
from ttmark.evaluation.conformance.report import Deployment, make_report, prompts_sha256, write_report
from ttmark.evaluation.engine_source import complete, completion_request
from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.run_folder import Detect, OnText, OnTokens, Questions, Run, progress_bars
from ttmark.evaluation.run_manifest import check_identity, command_line
from ttmark.evaluation.unmarked_texts import own_set, shipped_sets
from ttmark.gen_service.api.plan.key_selection import markings
from ttmark.gen_service.api.plan.prompts import chat_prompt, plain_prompts
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.api.plan.stages import MarkingChoice
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SequenceFailed
from ttmark.gen_service.engine.errors import EngineError
from ttmark.gen_service.engine.loop.engine_metrics import EngineMetrics
from ttmark.services.composition.served_models import Models
from ttmark.services.features.conformance.conformance_options import ConformanceOptions
from ttmark.services.model_folder import model_id, resolve_model
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.smollm2 import sha256
from ttmark.services.startup import StartupError, no_start_after
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.service_errors import ServiceError
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.schemas.detection.detect import DetectionResult, Document
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.signed_files.signed_file import CaseKey
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing

_REQUEST = "conformance"


def deployed_key(key_id: str, store_url: str | None = None) -> UnlockedKey:
    """A key of the configured store or that at `store_url`. Raises StartupError: there is none that marks."""
    settings = KeyStoreSettings()
    if store_url is not None:
        settings = settings.model_copy(update={"store_url": SecretStr(store_url), "store_url_file": None})
    found = next((key for key in read_keys(settings).keys if key.key_id == key_id), None)
    if found is None:
        raise StartupError(f"there is no key {key_id}; `ttmark keys list` shows those that there are")
    if not isinstance(found, UnlockedKey) or found.primary is None:
        raise StartupError(
            f"key {key_id} marks no text here: it is another system's, or has no primary version"
        )
    return found


@contextmanager
def served_model(name: str, settings: GenerationSettings, key: UnlockedKey) -> Iterator[ServedModel]:
    """The model as the generation service serves it, until the end of the block. Raises StartupError."""
    models = Models.load(settings.model_copy(update={"model": (name,)}), EngineMetrics(CollectorRegistry()))
    served = models.served[model_id(name)]
    if served.generator.tokenizer.fingerprint != key.profile.tokenizer_fingerprint:
        raise StartupError(f"key {key.key_id} is for another tokenizer than that of the model {name}")
    models.start()
    try:
        yield served
    finally:
        for engine in models.engines:
            engine.stop(0)


RATES = tuple(sorted({*FALSE_RATES, *FOUND_RATES}, reverse=True))


def detection(tokenizer: TextTokenizer, rates: Sequence[float] = RATES) -> Detect:
    """Log10 p of texts, as `POST /v1/detect` tells a caller with `detect:evidence` who names one key.

    Held to any of the rates they find what the service finds.
    """
    settings = DetectionSettings()
    tokenizers = TokenizerSet([tokenizer])

    def log10_p(key: UnlockedKey, texts: Sequence[str]) -> list[float]:
        backend = DetectionBackend(FixedKeys([key]), tokenizers, settings.max_document_tokens)
        caller = Principal(_REQUEST, key.tenant, frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))

        def judge(texts: Sequence[str], rate: float) -> Sequence[DetectionResult]:
            request = DetectionOptions(keys=(key.key_id,), fpr=rate).request(
                [Document(text=text) for text in texts]
            )
            return ask_here(Question(request, caller, _REQUEST), means_of(backend)).results

        return log10_p_of(judge, texts, rates)

    return log10_p


# Settings of the generation service that a text depends on.
_HOW_SERVED = ("engine", "dtype", "max_branches", "reproducible", "control_tokens")


def run(options: ConformanceOptions, own: Sequence[str] | None, signer: CaseKey, started: float) -> None:
    """Measures, and writes the signed report into `options.out`; goes on with what lies in its folder `work`.

    Args:
        own: the operator's texts without a mark, of `options.texts`.
        started: `time.monotonic` at the start of the command.

    Raises:
        StartupError: key, model, settings or folder are not usable, or the engine fails.
    """
    settings, out, seed, size = GenerationSettings(), options.out, options.seed, Size(options.size)
    plan = PLANS[size]
    key = deployed_key(options.key, options.store_url)
    with no_start_after(TokenizerMissing):
        folder = resolve_model(options.model, settings.state)
        hashes = {path.name: sha256(path) for path in sorted(folder.iterdir()) if path.is_file()}
        tokenizer = TextTokenizer.load(folder)
    served_as = {name: getattr(settings, name) for name in _HOW_SERVED}
    deployment = Deployment(key, model_id(options.model), hashes, tokenizer.fingerprint, served_as)
    with no_start_after(ValueError, OSError, EngineError, SequenceFailed, ServiceError):
        sets = shipped_sets(plan.passages, seed)
        if own is not None:
            sets.append(own_set(own, plan.own, seed))
        identity = {
            **deployment.described(),
            "seed": seed,
            "size": size,
            "prompts": prompts_sha256(),
            "texts without a mark": [one.sha256 for one in sets],
        }
        check_identity(out / "work", identity)
        with (
            served_model(options.model, settings, key) as served,
            progress_bars() as progress,
        ):
            measured = Conformance(
                run=Run(out / "work", DeployedSource(served, key), seed, progress),
                questions=Questions(out / "work", detection(tokenizer), progress),
                tokenizer=tokenizer,
                key=key,
                plan=plan,
                sets=sets,
            ).measure()
        report = make_report(
            deployment,
            measured,
            size=size,
            plan=plan,
            seed=seed,
            command=command_line(),
            seconds=time.monotonic() - started,
            signing_key=signer.public.name,
        )
        write_report(out, report, signer)


AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class DeployedSource:
    """A `TextSource` that writes what the service would: chat template, pool, branch budget, ends of text.

    Attributes:
        key: its primary version marks.
    """

    model: ServedModel
    key: UnlockedKey

    def generate(
        self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText, on_tokens: OnTokens
    ) -> None:
        """See `TextSource`; an answer ends where the model ends it, and at `cell.tokens` at the latest."""
        asyncio.run(self._generate(cell, indices, seed, on_text, on_tokens))

    async def _generate(
        self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText, on_tokens: OnTokens
    ) -> None:
        async def request(index: int) -> GenerationRequest:
            prompt_ids = await self._prompt(prompt_of(index).prompt)
            text_seed = sampling_seed(seed, cell.name, index)
            marking = self._marking(text_seed, prompt_ids) if cell.scheme else None
            return completion_request(cell, index, prompt_ids, text_seed, marking, ignore_eos=False)

        slots = asyncio.Semaphore(AT_ONCE)
        await complete(self.model.generator.generate, request, indices, slots, on_text, on_tokens)

    async def _prompt(self, message: str) -> tuple[int, ...]:
        if self.model.conversations is None:
            (read,) = await plain_prompts([f"Question: {message}\nAnswer:"], self.model)
            return read.token_ids
        asked = [ChatMessage(role="user", content=message)]
        return (await chat_prompt(asked, self.model, field="messages")).token_ids

    def _marking(self, seed: int, prompt_ids: Sequence[int]) -> Marking | None:
        """The primary version's, with a key of its pool as the service draws it; of payloads any."""
        key, version = self.key, self.key.primary
        if version is None:
            raise ValueError(f"key {key.key_id} has no primary version, so that nothing is marked with it")
        profile = key.profile
        first = Marking(key.key_id, version.version, profile.profile_id, profile.watermark(), version.prf_key)
        (marking,) = markings(MarkingChoice(first, pool=version.prf_keys), seed, prompt_ids, 1)
        return marking
