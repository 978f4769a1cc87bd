"""Composition root of attack reports: texts, a detector, and what attacks and measures of quality need."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from ttmark.detect_service.normalization.normalizer import TextNormalizer
from ttmark.evaluation.adversaries.catalogue import Verdict, attacks
from ttmark.evaluation.conformance.attacks import AttackRun, Row, collected, shipped_prompts
from ttmark.evaluation.conformance.detectors import (
    by_command,
    by_service,
    told_by_command,
    told_by_service,
    told_once,
    translated_by,
)
from ttmark.evaluation.conformance.page import attacks_page
from ttmark.evaluation.conformance.plan import FOUND_RATES
from ttmark.evaluation.conformance.quality_after_attacks import quality
from ttmark.evaluation.conformance.report import as_read, made_by, write_report
from ttmark.evaluation.endpoint import Endpoint, EndpointClient, EndpointError
from ttmark.evaluation.experiment_cells import sampling_seed
from ttmark.evaluation.run_folder import Ask, Questions, progress_bars
from ttmark.evaluation.run_manifest import check_identity, command_line, folder_hash
from ttmark.evaluation.synonyms import Synonyms
from ttmark.evaluation.text_edits import Material
from ttmark.evaluation.text_files import read_field
from ttmark.evaluation.unmarked_texts import TextSet, human_documents, own_set, passages_of
from ttmark.services.features.conformance.conformance_options import AttackOptions
from ttmark.services.startup import no_start_after
from ttmark.shared.client import Client, ClientError
from ttmark.shared.signed_files.signed_file import ATTACKS_FORMAT, CaseKey
from ttmark.shared.tokenization import TokenizerMissing


def run(
    options: AttackOptions, own: Sequence[str] | None, token: str, signer: CaseKey, started: float
) -> None:
    """Attacks, asks, and writes the signed report into `options.out`; goes on with what lies in `work` there.

    Args:
        own: marked texts, of `options.texts`; None: they are collected from `options.endpoint`.
        token: for the service; not used where `options.detector` is a command.
        started: `time.monotonic` at the start of the command.

    Raises:
        StartupError: texts, detector, endpoint or folders are not usable.
    """
    out, work, seed = options.out, options.out / "work", options.seed
    with (
        no_start_after(ValueError, OSError, EndpointError, ClientError, TokenizerMissing),
        _detector(options, token) as (ask, detector),
        _told(options) as told,
        progress_bars() as progress,
    ):
        source = _client(options, options.endpoint, options.model, options.endpoint_key)
        rewriter = _client(
            options, options.rewriter, options.rewriter_model, options.rewriter_key, options.rewriter_body
        )
        texts = _texts(options, own, source, progress)
        check_identity(work, {"texts": texts.sha256, "detector": detector, "seed": seed})
        documents, normalizer = human_documents(), TextNormalizer()
        drawn = np.random.default_rng(sampling_seed(seed, "attacks", "people"))
        passages = passages_of(documents, len(texts.texts), drawn)
        synonyms = None if options.wordnet is None else Synonyms.read(options.wordnet)
        measures = quality(
            work,
            lambda text: normalizer.readings(text)["typography"].text,
            options.encoder,
            options.judge,
            options.encoder_texts,
            options.judge_texts,
            progress,
        )
        rows = AttackRun(
            texts=texts,
            people=TextSet("people", "English articles by people", passages),
            attacks=tuple(
                attacks(
                    synonyms,
                    None if options.translator is None else translated_by(options.translator),
                    rewriter,
                    None if told is None else told_once(told, work),
                    texts.texts,
                )
            ),
            questions=Questions(work, ask, progress),
            quality=measures,
            material=Material.of(documents),
            seed=seed,
            model_texts=options.model_texts,
            progress=progress,
        ).measure()
        report = attacks_report(
            Attacked(options.subject, texts, detector, _tools(options), _left_out(options)),
            list(rows),
            seed=seed,
            command=command_line(without="--token"),
            seconds=time.monotonic() - started,
            signing_key=signer.public.name,
        )
        write_report(out, report, signer, attacks_page)


@contextmanager
def _detector(options: AttackOptions, token: str) -> Iterator[tuple[Ask[None], dict[str, Any]]]:
    """What gives p-values, and how the report names it."""
    if options.detector is not None:
        yield by_command(options.detector), {"command": options.detector}
        return
    keys = options.key or ()
    with Client(options.url, token, plain_http=options.plain_http) as client:
        ask = by_service(client, keys, FOUND_RATES)
        named = [
            f"{one.key_id} ({one.profile}, pool {one.pool})"
            for one in client.keys().keys
            if not keys or one.key_id in keys
        ]
        yield ask, {"route": "/v1/detect", "keys": " ".join(named)}


@contextmanager
def _told(options: AttackOptions) -> Iterator[Verdict | None]:
    """What an ordinary caller is told, at the smallest rate."""
    rate = min(FOUND_RATES)
    if options.detector is not None:
        yield told_by_command(options.detector, rate)
    elif options.plain_token_file is None:
        yield None
    else:
        token = options.plain_token_file.read_text().strip()
        with Client(options.url, token, plain_http=options.plain_http) as client:
            yield told_by_service(client, options.key or (), rate)


def _texts(
    options: AttackOptions, own: Sequence[str] | None, source: EndpointClient | None, progress: Progress
) -> TextSet:
    if own is not None:
        return own_set(own, options.count, options.seed)
    if source is None:
        raise ValueError("give --texts, or --endpoint and --model to collect answers from")
    asked = list(read_field(options.prompts, "prompt")) if options.prompts else shipped_prompts()
    answers = own_set(collected(source, asked, options.count, progress), options.count, options.seed)
    return replace(answers, origin=f"answers of {source.endpoint.model}, of up to 256 tokens")


def _client(
    options: AttackOptions, address: str | None, model: str, secret: Path | None, body: str = "{}"
) -> EndpointClient | None:
    if address is None:
        return None
    api_key = secret.read_text().strip() if secret else ""
    endpoint = Endpoint(address.rstrip("/"), model, api_key, body=json.loads(body))
    return EndpointClient(endpoint, options.out / "work/endpoint", options.plain_http)


def _tools(options: AttackOptions) -> dict[str, str]:
    folders = {"Synonyms": options.wordnet, "Encoder": options.encoder, "Perplexity by": options.judge}
    named = {
        name: f"{folder.name} {folder_hash(folder)}".strip()
        for name, folder in folders.items()
        if folder is not None
    }
    if options.translator is not None:
        named["Translation by"] = options.translator
    if options.rewriter is not None:
        named["Rewriting by"] = options.rewriter_model
    return named


def _left_out(options: AttackOptions) -> list[str]:
    missing = {
        "Not run: synonyms (--wordnet was not given).": options.wordnet,
        "Not run: rewriting by a model (--rewriter was not given).": options.rewriter,
        "Not run: translation (neither --translator nor --rewriter was given).": (
            options.translator or options.rewriter
        ),
        "Not run: removal by asking the detector again (--plain-token-file was not given).": (
            options.plain_token_file or options.detector
        ),
        "Not measured: whether texts mean the same (--encoder was not given).": options.encoder,
        "Not measured: perplexity (--judge was not given).": options.judge,
    }
    return [words for words, given in missing.items() if given is None]


@dataclass(frozen=True, slots=True)
class Attacked:
    """What was attacked and with what.

    Attributes:
        subject: the mark, for readers.
        detector: what was asked.
        tools: models and lists that attacks and measures used.
        left_out: attacks that were not run, and why.
    """

    subject: str
    texts: TextSet
    detector: Mapping[str, Any]
    tools: Mapping[str, str]
    left_out: Sequence[str]


def attacks_report(
    attacked: Attacked, rows: Sequence[Row], *, seed: int, command: str, seconds: float, signing_key: str
) -> dict[str, Any]:
    texts = attacked.texts
    report = {
        "format": ATTACKS_FORMAT,
        **made_by(command, seconds, signing_key),
        "seed": seed,
        "subject": attacked.subject,
        "texts": {"texts": len(texts.texts), "origin": texts.origin, "sha256": texts.sha256},
        "detector": dict(attacked.detector),
        "tools": dict(attacked.tools),
        "left_out": list(attacked.left_out),
        "attacks": [row.stored() for row in rows],
        "figures": [one.stored() for row in rows for one in row.figures],
    }
    return as_read(report)
