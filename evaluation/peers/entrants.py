"""Who is compared: a system, who writes its texts, and the detectors that read them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, SamplingSetting, prf_key
from ttmark.evaluation.edits import WORD_EDITS, Material
from ttmark.evaluation.intervals import Interval
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.peers.bayesian import train
from ttmark.evaluation.peers.detectors import Detector, Exact, Measured, Ours, synthid, weighted_mean
from ttmark.evaluation.peers.measure import LENGTHS, OPENING, SHARES, PeerRow, cut, edited, power_of
from ttmark.evaluation.peers.systems import SYNTHID, System
from ttmark.evaluation.run import Completion, Run, TextSource
from ttmark.shared.watermark.schemes.registry import scheme_title


@dataclass(frozen=True, slots=True)
class Entrant:
    """A system, or text without a watermark.

    Attributes:
        run: with the texts of `cell`, which `source` writes.
        here: whether `source` can write them in this process.
        detectors: none for text without a watermark.
    """

    title: str
    run: Run
    source: TextSource
    cell: Cell
    here: bool = True
    detectors: tuple[Detector, ...] = ()

    def opening(self, prompts: int) -> Cell:
        """The first tokens of answers to few prompts, all under one key."""
        few = replace(self.cell, tokens=OPENING, prompts=prompts)
        return replace(few, pool=1) if self.cell.scheme else few


def our_entrant(lab: Lab, scheme: str, block_size: int, setting: SamplingSetting, tokens: int) -> Entrant:
    """One of our watermarks with its defaults."""
    cell = Cell(scheme, block_size, setting, tokens)
    title = f"ours: {scheme_title(scheme)} r={block_size}"
    return Entrant(title, lab.run, lab.source, cell, detectors=(Ours(cell),))


def their_entrant(system: System, run: Run, source: TextSource, cell: Cell, vocabulary: int) -> Entrant:
    """One of the others, with the exact reader alone."""
    exact = Exact(system, vocabulary, "exact, its mean score" if system.name == SYNTHID else "exact")
    return Entrant(system.title, run, source, cell, system.runs_here(), (exact,))


def trained_detectors(
    lab: Lab, cell: Cell, marked: Sequence[Completion], human: Sequence[str], null_scores: int
) -> tuple[Detector, ...]:
    """SynthID-Text's further detectors; the Bayesian one learns from `marked` and as many texts by people."""
    seed = lab.run.seed
    keys = [cell.key(seed, text.index) for text in marked]
    bits = [synthid(key).read(text.tokens()).bits for key, text in zip(keys, marked, strict=True)]
    passages = list(islice(_passages(lab, human, cell.tokens), len(marked)))
    others = [prf_key(seed, "peers", "training", number) for number in range(len(passages))]
    unmarked = [synthid(key).read(tokens).bits for key, tokens in zip(others, passages, strict=True)]
    learned = train(bits, unmarked)
    return (
        Measured("weighted mean", weighted_mean, null_scores, seed),
        Measured("Bayesian, trained", learned.log_odds, null_scores, seed),
    )


def _passages(lab: Lab, human: Sequence[str], length: int) -> Iterator[NDArray[np.int64]]:
    """Texts by people of so many tokens, one from each document that is long enough."""
    for tokens in map(lab.source.tokenizer.encode, human):
        if len(tokens) >= length:
            yield np.array(tokens[:length], dtype=np.int64)


def measure_entrant(
    lab: Lab,
    entrant: Entrant,
    texts: Sequence[Completion],
    material: Material,
    distinct: Interval,
    loss: Interval,
    seconds: float | None,
) -> Iterator[PeerRow]:
    """One row for each detector."""
    cell = entrant.cell
    keys = [cell.key(lab.run.seed, text.index) for text in texts]
    lengths = tuple(length for length in LENGTHS if length <= cell.tokens)
    changed = [edited(lab, cell, texts, keys, share, material) for share in SHARES]
    for detector in entrant.detectors:
        yield PeerRow(
            system=entrant.title,
            detector=detector.title,
            texts=len(texts),
            tokens=lengths,
            power=tuple(power_of(detector, cut(texts, keys, length), 1, edited=False) for length in lengths),
            edits=tuple(power_of(detector, of, len(WORD_EDITS), edited=True) for of in changed),
            distinct=distinct,
            loss=loss,
            seconds=seconds,
        )
