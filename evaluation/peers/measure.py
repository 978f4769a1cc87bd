"""What is measured of every system alike: power by length and after edits, distinct answers, loss."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.intervals import Interval, Sample, bootstrap, clopper_pearson, mean
from ttmark.evaluation.language_model import LanguageModel, log_likelihood
from ttmark.evaluation.peers.detectors import Detector, Document
from ttmark.evaluation.run_folder import Completion, Run, read_kept, write_kept
from ttmark.evaluation.text_edits import EDITS, WORD_EDITS, Material

FPRS = (1e-2, 1e-3, 1e-5)
LENGTHS = (25, 50, 100, 150, 200)
SHARES = (0.1, 0.25)
OPENING = 24
"""Tokens of answers to one prompt that are compared: the first line or two."""


@dataclass(frozen=True, slots=True)
class Power:
    """At one length, or after one share of edits.

    Attributes:
        tpr: at each of `FPRS`.
    """

    tpr: tuple[Interval, ...]
    median_log10_p: Interval


@dataclass(frozen=True, slots=True)
class PeerRow:
    """One system.

    Attributes:
        tokens: lengths of `power`.
        edits: for each of `SHARES`, of all kinds of edits together.
        distinct: number of different answers to one prompt under one key, by their first tokens, as a share
            of all.
        loss: mean negative log-likelihood without filters minus that of unmarked texts, nats a token.
    """

    system: str
    texts: int
    tokens: tuple[int, ...]
    power: tuple[Power, ...]
    edits: tuple[Power, ...]
    distinct: Interval
    loss: Interval


@dataclass(frozen=True, slots=True)
class Baseline:
    """Text without a watermark; `distinct` as of `PeerRow`."""

    system: str
    distinct: Interval


@dataclass(frozen=True, slots=True)
class Entrant:
    """A system, or text without a watermark.

    Attributes:
        run: with the texts of `cell`.
        here: whether they can be written in this process.
        detector: None for text without a watermark.
    """

    title: str
    run: Run
    cell: Cell
    here: bool = True
    detector: Detector | None = None

    def opening(self, prompts: int) -> Cell:
        """The first tokens of answers to few prompts, all under one key."""
        few = replace(self.cell, tokens=OPENING, prompts=prompts)
        return replace(few, pool=1) if self.cell.scheme else few


def measure_entrant(
    lab: Lab,
    entrant: Entrant,
    detector: Detector,
    texts: Sequence[Completion],
    material: Material,
    distinct: Interval,
    loss: Interval,
) -> PeerRow:
    """The row of a system."""
    cell = entrant.cell
    keys = [cell.key(lab.run.seed, text.index) for text in texts]
    lengths = tuple(length for length in LENGTHS if length <= cell.tokens)
    changed = [edited(lab, cell, texts, keys, share, material) for share in SHARES]
    return PeerRow(
        system=entrant.title,
        texts=len(texts),
        tokens=lengths,
        power=tuple(power_of(detector, cut(texts, keys, length), 1, edited=False) for length in lengths),
        edits=tuple(power_of(detector, of, len(WORD_EDITS), edited=True) for of in changed),
        distinct=distinct,
        loss=loss,
    )


def power_of(detector: Detector, documents: Sequence[Document], copies: int, *, edited: bool) -> Power:
    """Of documents [texts x copies], the copies of one text together; the intervals are over texts."""
    log10_p = detector.log10_p(documents, edited=edited)
    found = [(log10_p <= np.log10(fpr)).reshape(-1, copies).mean(axis=1) for fpr in FPRS]
    rates = [
        _rate(shares) if copies > 1 else clopper_pearson(int(shares.sum()), len(shares)) for shares in found
    ]
    return Power(tuple(rates), bootstrap(lambda values: np.median(values, axis=-1), log10_p))


def _rate(shares: Sample) -> Interval:
    """Mean share; where all texts are alike the interval is that of so many texts, not a point."""
    if shares.min() == shares.max() and shares[0] in (0.0, 1.0):
        return clopper_pearson(int(shares.sum()), len(shares))
    return mean(shares)


def cut(texts: Sequence[Completion], keys: Sequence[bytes], length: int) -> list[Document]:
    """The first tokens of each text."""
    return [(key, text.tokens(length)) for key, text in zip(keys, texts, strict=True)]


def edited(
    lab: Lab, cell: Cell, texts: Sequence[Completion], keys: Sequence[bytes], share: float, material: Material
) -> list[Document]:
    """Each text after each of `WORD_EDITS` of `share` of its words, read again as tokens."""
    tokenizer, documents = lab.source.tokenizer, []
    for key, text in zip(keys, texts, strict=True):
        whole = tokenizer.decode(text.token_ids)
        for name in WORD_EDITS:
            seed = sampling_seed(lab.run.seed, "peers", name, share, cell.name, text.index)
            changed = EDITS[name](whole, share, material, np.random.default_rng(seed))
            documents.append((key, np.array(tokenizer.encode(changed), dtype=np.int64)))
    return documents


def distinct_answers(run: Run, cell: Cell, completions: int) -> Interval:
    """Mean over the prompts of the share of distinct rows among `completions` of each."""
    prompts = cell.prompts or 1
    texts = run.texts(cell, prompts * completions)
    tokens: NDArray[np.int64] = np.stack([text.tokens() for text in texts])
    # Text i continues prompt i, counted round.
    of_prompt = tokens.reshape(completions, prompts, cell.tokens).transpose(1, 0, 2)
    return mean(np.array([len(np.unique(answers, axis=0)) / completions for answers in of_prompt]))


@dataclass(frozen=True, slots=True)
class Losses:
    """Mean negative log-likelihood of each text of a cell, in nats a token."""

    nats: tuple[float, ...]


def losses(lab: Lab, model: LanguageModel, cell: Cell, texts: Sequence[Completion]) -> Sample:
    """Of each text, kept in the run's folder."""
    path = lab.run.folder / "peers" / f"loss-{cell.name}-{len(texts)}.json"
    kept = read_kept(path, Losses)
    if kept is None:
        found = [-log_likelihood(model, lab.prompt(text.index), text.token_ids).mean() for text in texts]
        kept = Losses(tuple(map(float, found)))
        write_kept(path, kept)
    return np.array(kept.nats)
