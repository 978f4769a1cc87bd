"""Where in a document that was found the signal is: its passages, their share, and scores block by block."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.verdict import DocumentFinding, FoundSegment, Tokens
from ttmark.shared.keys.held_keys import UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection.detect import MarkedShare
from ttmark.shared.watermark.detectors.alignment import alignment_path
from ttmark.shared.watermark.detectors.block_scores import DirectEvidence, position_scores
from ttmark.shared.watermark.likelihood.evidence import LikelihoodEvidence
from ttmark.shared.watermark.likelihood.marked_passages import POSSIBLY, find_carried, share_of
from ttmark.shared.watermark.likelihood.reading import Reading

Core = tuple[int, int]


def marked_passages(
    finding: DocumentFinding,
    token_ids: Callable[[UnlockedKey], Tokens],
    reading: Callable[[UnlockedKey], Reading | None],
) -> tuple[tuple[FoundSegment, ...], MarkedShare]:
    """The passages of all keys that were found, in order and disjoint, and the share of the tokens in them.

    Passages of two keys meet half-way between what surely belongs to each; where that overlaps, the one whose
    evidence is stronger stays. The E-value of a passage is at most that of its evidence, times all passages
    that the document could have and all keys tried, over the weight of its reading; those above 1 are left
    out. The share is also of the finding's other keys of the pool, as far as they are there.

    Args:
        token_ids, reading: of the way of reading that the finding is of.
    """
    found: list[tuple[FoundSegment, Core]] = []  # with what surely belongs to it
    unmarked: dict[str, NDArray[np.float64]] = {}  # by tokenizer: chance of each token, whatever the key
    makers = max(1, len(finding.fired))
    for key, version, pool_key, presence in _present(finding):
        tokens = token_ids(key)
        carried = find_carried(
            key.profile.watermark(), version.prf_keys[pool_key], tokens, reading=reading(key)
        )
        step = math.log10(max(1, tokens.size * (tokens.size + 1) // 2) * finding.hypotheses / finding.weight)
        for one in carried.passages if presence == 1.0 else ():
            if (log10_e := step - one.log10_gain) <= 0.0:
                segment = FoundSegment(one.start, one.end, log10_e, key, version, pool_key)
                found.append((segment, one.core))
        tokenizer = key.profile.tokenizer_fingerprint
        unmarked[tokenizer] = unmarked.get(tokenizer, 1.0) * (1.0 - presence * carried.carried)
    shares = np.sum([share_of(1.0 - chances, makers) for chances in unmarked.values()], axis=0)
    estimate, low, high = np.minimum(shares, 1.0).tolist()
    kept: list[tuple[FoundSegment, Core]] = []
    for passage, (start, end) in sorted(found, key=lambda one: one[0].log10_e):
        if all(end <= other_start or other_end <= start for _, (other_start, other_end) in kept):
            kept.append((passage, (start, end)))
    share = MarkedShare(estimate=estimate, low=min(low, estimate), high=max(high, estimate))
    return tuple(_meeting(sorted(kept, key=lambda one: one[1]))), share


def _present(finding: DocumentFinding) -> Iterator[tuple[UnlockedKey, UnlockedVersion, int, float]]:
    """Keys with the chance that they marked some of the text: 1 of those found, of others by their E.

    Before E is seen, one other key of the pool is there on average.
    """
    makers = [(one.key, one.version, one.pool_key) for one in finding.fired]
    makers = makers or [(finding.key, finding.version, finding.pool_key)]
    yield from ((*one, 1.0) for one in makers)
    if isinstance(finding.evidence, LikelihoodEvidence):
        odds = 10.0 ** np.minimum(finding.evidence.of_keys, 12.0) / finding.evidence.of_keys.size
        for number in np.flatnonzero(odds >= POSSIBLY / len(makers)).tolist():
            one = finding.key, finding.version, number
            if one not in makers:
                yield *one, odds[number] / (1.0 + odds[number])


def _meeting(found: Sequence[tuple[FoundSegment, Core]]) -> list[FoundSegment]:
    """The passages of disjoint cores in order, none beyond where it meets the next."""
    passages = [passage for passage, _ in found]
    for number, ((_, core), (passage, after)) in enumerate(itertools.pairwise(found)):
        before = passages[number]
        if before.end > passage.start:
            meet = max(core[1], min(after[0], (before.end + passage.start) // 2))
            passages[number : number + 2] = replace(before, end=meet), replace(passage, start=meet)
    return passages


@dataclass(frozen=True, slots=True, eq=False)
class BlockScores:
    """Disjoint blocks in order.

    Attributes:
        starts: [blocks] first token of each.
        scores: [blocks] standardised; mean 0 and variance 1 without a watermark.
        size: tokens in a block.
    """

    starts: NDArray[np.int64]
    scores: NDArray[np.float64]
    size: int


def block_scores(
    finding: DocumentFinding, token_ids: Callable[[UnlockedKey], Tokens], beta: float
) -> list[BlockScores]:
    """The blocks that a finding rests on: one run of blocks, or one for each segment and the rest.

    Direct detection shows the blocks that it sums. Everything else, the one question included,
    shows the blocks of the best alignment: read at one boundary alone, what follows an inserted word would
    look like text without a watermark. Outside of segments the blocks are those of the finding's own key.

    Args:
        beta: what the alignment pays for a skipped token.
    """
    evidence = finding.evidence
    size = finding.key.profile.block_size
    if isinstance(evidence, DirectEvidence):
        return [BlockScores(evidence.starts, evidence.scores, size)]

    known: dict[tuple[str, int, int], BlockScores] = {}

    def aligned(made_with: DocumentFinding | FoundSegment) -> BlockScores:
        key, version = made_with.key, made_with.version
        name = key.key_id, version.version, made_with.pool_key
        if name not in known:
            watermark, tokens = key.profile.watermark(), token_ids(key)
            scores = position_scores(watermark, version.prf_keys[made_with.pool_key], tokens)
            path = alignment_path(scores, watermark.block_size, beta)
            known[name] = BlockScores(path + watermark.context_width, scores[path], watermark.block_size)
        return known[name]

    runs = []
    rest = aligned(finding)
    for segment in finding.segments or ():
        run = aligned(segment)
        runs.append(_where(run, (run.starts >= segment.start) & (run.starts + run.size <= segment.end)))
        rest = _where(rest, (rest.starts + size <= segment.start) | (rest.starts >= segment.end))
    return sorted([rest, *runs], key=lambda run: int(run.starts[0]) if run.starts.size else 0)


def _where(run: BlockScores, mask: NDArray[np.bool_]) -> BlockScores:
    return BlockScores(run.starts[mask], run.scores[mask], run.size)
