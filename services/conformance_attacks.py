"""Composition root of attack reports: texts, a detector, and what attacks and measures of quality need."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ttmark.detect_service.extraction.readers_by_format import extract_text
from ttmark.detect_service.normalization.normalizer import TextNormalizer
from ttmark.evaluation.adversaries.catalogue import attacks
from ttmark.evaluation.adversaries.removal_and_forgery import Verdict
from ttmark.evaluation.command_line import command_line
from ttmark.evaluation.conformance.attacks import AttackRun, collected, shipped_prompts
from ttmark.evaluation.conformance.attacks_page import attacks_page
from ttmark.evaluation.conformance.attacks_report import Attacked, attacks_report
from ttmark.evaluation.conformance.detectors import (
    by_command,
    by_service,
    told_by_command,
    told_by_service,
    told_once,
    translated_by,
)
from ttmark.evaluation.conformance.kept_answers import Ask, Questions, check_identity
from ttmark.evaluation.conformance.plan import FOUND_RATES
from ttmark.evaluation.conformance.quality_after_attacks import quality
from ttmark.evaluation.conformance.report import write_report
from ttmark.evaluation.conformance.unmarked_texts import TextSet, human_documents, own_set, passages_of
from ttmark.evaluation.endpoint import Endpoint, EndpointClient, EndpointError, Usage
from ttmark.evaluation.experiment_cells import sampling_seed
from ttmark.evaluation.run_manifest import folder_hash
from ttmark.evaluation.synonyms import Synonyms
from ttmark.evaluation.text_edits import Material
from ttmark.services.startup import no_start_after
from ttmark.shared.cases.signed_file import CaseKey
from ttmark.shared.client import Client, ClientError
from ttmark.shared.tokenization import TokenizerMissing


def text_readings() -> Callable[[str], Sequence[str]]:
    """The text as it was sent, and without tricks where that is another text (docs/adr/0057)."""
    normalizer = TextNormalizer()

    def readings(text: str) -> Sequence[str]:
        without_tricks = normalizer.normalize(text).text
        return (text,) if without_tricks == text else (text, without_tricks)

    return readings


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackOptions:
    """What `ttmark conformance attacks` was told.

    Attributes:
        subject: the mark, for readers.
        texts: marked ones; None: they are collected from `endpoint`.
        endpoint: answers with marked texts.
        prompts: that answers are collected to; None: those that ship.
        detector: a command; None: the service at `url`.
        plain_token: of an ordinary caller; None: nobody asks again and again, unless `detector` is one.
        translator: a command that translates a text there and back; None: the rewriter does.
        rewriter: writes without a mark; None: no model rewrites.
        wordnet, encoder, judge: folders; None: what needs them is left out.
        encoder_texts, judge_texts: whose similarity and perplexity are measured, at most.
    """

    subject: str
    texts: Sequence[str] | None
    endpoint: Endpoint | None
    prompts: Sequence[str] | None
    count: int
    detector: str | None
    url: str
    token: str
    plain_token: str | None
    keys: Sequence[str]
    translator: str | None
    rewriter: Endpoint | None
    model_texts: int
    wordnet: Path | None
    encoder: Path | None
    judge: Path | None
    encoder_texts: int
    judge_texts: int
    seed: int


def run(options: AttackOptions, out: Path, signer: CaseKey, started: float) -> None:
    """Attacks, asks, and writes the signed report into `out`; goes on with what lies in `out/work`.

    Args:
        started: `time.monotonic` at the start of the command.

    Raises:
        StartupError: texts, detector, endpoint or folders are not usable.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    work, seed = out / "work", options.seed
    with (
        no_start_after(ValueError, OSError, EndpointError, ClientError, TokenizerMissing),
        _detector(options) as (ask, detector),
        _told(options) as told,
        Progress(*columns, transient=True) as progress,
    ):
        texts = _texts(options, work, progress)
        check_identity(work, {"texts": texts.sha256, "detector": detector, "seed": seed})
        documents, readings = human_documents(), text_readings()
        drawn = np.random.default_rng(sampling_seed(seed, "attacks", "people"))
        passages = passages_of(documents, len(texts.texts), drawn)
        synonyms = None if options.wordnet is None else Synonyms.read(options.wordnet)
        measures = quality(
            work,
            lambda text: readings(text)[-1],
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
                    lambda name, content: extract_text(name, content).text,
                    synonyms,
                    None if options.translator is None else translated_by(options.translator),
                    _client(options.rewriter, work),
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
def _detector(options: AttackOptions) -> Iterator[tuple[Ask[None], dict[str, Any]]]:
    """What gives p-values, and how the report names it."""
    if options.detector is not None:
        yield by_command(options.detector), {"command": options.detector}
        return
    with Client(options.url, options.token) as client:
        ask = by_service(client, options.keys, FOUND_RATES)
        keys = [
            f"{one.key_id} ({one.profile}, pool {one.pool})"
            for one in client.keys().keys
            if not options.keys or one.key_id in options.keys
        ]
        yield ask, {"route": "/v1/detect", "keys": " ".join(keys)}


@contextmanager
def _told(options: AttackOptions) -> Iterator[Verdict | None]:
    """What an ordinary caller is told, at the smallest rate."""
    rate = min(FOUND_RATES)
    if options.detector is not None:
        yield told_by_command(options.detector, rate)
    elif options.plain_token is None:
        yield None
    else:
        with Client(options.url, options.plain_token) as client:
            yield told_by_service(client, options.keys, rate)


def _texts(options: AttackOptions, work: Path, progress: Progress) -> TextSet:
    """Those that were given, or collected answers."""
    if options.texts is not None:
        return own_set(options.texts, options.count, options.seed)
    client = _client(options.endpoint, work)
    if client is None:
        raise ValueError("give --texts, or --endpoint and --model to collect answers from")
    asked = options.prompts or shipped_prompts()
    answers = own_set(collected(client, asked, options.count, progress), options.count, options.seed)
    return replace(answers, origin=f"answers of {client.endpoint.model}, of up to 256 tokens")


def _client(endpoint: Endpoint | None, work: Path) -> EndpointClient | None:
    return None if endpoint is None else EndpointClient(endpoint, work / "endpoint", Usage())


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
        named["Rewriting by"] = options.rewriter.model
    return named


def _left_out(options: AttackOptions) -> list[str]:
    missing = {
        "Not run: synonyms (--wordnet was not given).": options.wordnet,
        "Not run: rewriting by a model (--rewriter was not given).": options.rewriter,
        "Not run: translation (neither --translator nor --rewriter was given).": (
            options.translator or options.rewriter
        ),
        "Not run: removal by asking the detector again (--plain-token-file was not given).": (
            options.plain_token or options.detector
        ),
        "Not measured: whether texts mean the same (--encoder was not given).": options.encoder,
        "Not measured: perplexity (--judge was not given).": options.judge,
    }
    return [words for words, given in missing.items() if given is None]
