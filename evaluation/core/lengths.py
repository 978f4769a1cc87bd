"""Documents of any length: rates of false positives, marked ones found, and time."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.core.false_positives import LANES, aligned_p, least_score, local_p, with_tables
from ttmark.evaluation.intervals import clopper_pearson
from ttmark.evaluation.null_tables.sampling import sample_best, sample_scan
from ttmark.evaluation.null_tables.tilting import null_chunks
from ttmark.evaluation.report.result import Table, table_of
from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized, key_lanes
from ttmark.shared.watermark.detectors.aligned import BETA
from ttmark.shared.watermark.detectors.alignment import aligned_scores
from ttmark.shared.watermark.detectors.scan import best_scores
from ttmark.shared.watermark.null_tables import NullTable

SHORT = (12, 16, 20, 30, 40, 50, 70, 99, 120, 150, 200, 250)
LONG = (10_300, 30_000, 100_000)
LEVELS = (1e-2, 1e-3, 1e-4)
SCAN_FACTOR = 8
"""Documents of the other modes for each of WaterSeeker, which takes longer."""
KEY = bytes(range(16))
VOCABULARY = 1 << 15
PASSAGE = 600
"""Tokens; whole blocks of every size."""
TIMED, FOUND_AT = 5, 1e-5

Scores = NDArray[np.float64]
LogP = Callable[[float], float]


def short_table(schemes: Sequence[str], block_sizes: Sequence[int], trials: int, seed: int) -> Table:
    """False positives of localized detection in documents of SHORT tokens, the first context included."""
    rows = []
    for watermark, null in with_tables(schemes, block_sizes):
        scored = {length: length - watermark.context_width for length in SHORT}
        scanned = sample_scan(watermark, list(scored.values()), trials, seed + 1000)
        for length, n in scored.items():
            windows = sample_best(watermark, "waterseeker", n, -(-trials // SCAN_FACTOR), seed + 1000)
            rates = [
                *_rates(scanned[n].astype(np.float64), partial(local_p, null.scan, n)),
                *_rates(windows, partial(local_p, null.waterseeker, n)),
            ]
            rows.append([watermark.scheme, watermark.block_size, length, *rates])
    columns = [f"{method} at {level:g}" for method in ("scan", "waterseeker") for level in LEVELS]
    return table_of("False positives in short documents", ["scheme", "r", "tokens", *columns], rows)


def long_rates_table(schemes: Sequence[str], block_sizes: Sequence[int], trials: int, seed: int) -> Table:
    """False positives in documents of LONG tokens, in every mode."""
    rows = []
    for watermark, null in with_tables(schemes, block_sizes):
        for length in LONG:
            for mode, scores, log10_p in _null_scores(watermark, null, length, trials, seed + 1000):
                cells = [watermark.scheme, watermark.block_size, mode, length, f"{scores.size:,}"]
                rows.append([*cells, *_rates(scores, log10_p)])
    columns = ["scheme", "r", "mode", "tokens", "documents", *[f"at {level:g}" for level in LEVELS]]
    return table_of("False positives in long documents", columns, rows)


def long_found_table(schemes: Sequence[str], block_sizes: Sequence[int], documents: int, seed: int) -> Table:
    """Marked documents of LONG tokens found at 1e-5 in every mode, and the time of an unmarked one.

    The exponent is that of the growth from the length before.
    """
    rows = []
    for watermark, _ in with_tables(schemes, block_sizes):
        before: dict[str, tuple[int, float]] = {}
        for length in LONG:
            marked = marked_documents(watermark, KEY, documents, length, seed)
            unmarked = np.random.default_rng(seed).integers(0, VOCABULARY, (TIMED, length))
            for mode, detect in detectors(watermark).items():
                log10_ps = [detect(text) for text in marked]
                share = clopper_pearson(sum(p <= math.log10(FOUND_AT) for p in log10_ps), documents)
                seconds = min(_seconds(detect, text) for text in unmarked)
                shorter, less = before.get(mode, (length, seconds))
                growth = math.log(seconds / less) / math.log(length / shorter) if length > shorter else None
                before[mode] = length, seconds
                cells = [watermark.scheme, watermark.block_size, mode, length, share.percent()]
                weakest = f"{max(log10_ps):.0f}"
                time_cells = [f"{1000.0 * seconds:.1f} ms", "" if growth is None else f"{growth:.2f}"]
                rows.append([*cells, weakest, *time_cells])
    columns = [
        "scheme",
        "r",
        "mode",
        "tokens",
        "found at 1e-5",
        "largest log10 p",
        "processor time",
        "exponent",
    ]
    return table_of("Marked long documents", columns, rows)


def marked_documents(
    watermark: Watermark, key: bytes, documents: int, tokens: int, seed: int
) -> NDArray[np.int64]:
    """Texts [documents, tokens] of marked passages end to end.

    Each block of a passage after its warm-up is the better of two random ones. Its mean score is about 0.56,
    that of a pair of the default profile on the simulated model (0.58).
    """
    rng, size, width = np.random.default_rng(seed), watermark.block_size, watermark.context_width
    passages = -(-tokens // PASSAGE)
    texts = rng.integers(0, VOCABULARY, (documents * passages, PASSAGE))
    lanes, numbers = key_lanes(key), np.arange(len(texts))
    for start in range(watermark.warmup_blocks * size, PASSAGE, size):
        other = rng.integers(0, VOCABULARY, (len(texts), size))
        blocks = np.concatenate([texts[:, start : start + size], other])
        contexts = np.tile(texts[:, start - width : start], (2, 1))
        better = np.argmax(watermark.score(lanes, contexts, blocks).reshape(2, -1), axis=0)
        texts[:, start : start + size] = blocks[better * len(texts) + numbers]
    return texts.reshape(documents, -1)[:, :tokens]


def _null_scores(
    watermark: Watermark, null: NullTable, length: int, trials: int, seed: int
) -> Iterator[tuple[str, Scores, LogP]]:
    """Scores of unwatermarked documents and their p-value, for each mode."""
    n, size = length - watermark.context_width, watermark.block_size
    rng = np.random.default_rng(seed)

    def sample(positions: int, search: Callable[..., Scores]) -> Scores:
        runs = -(-trials // LANES)
        return np.concatenate(
            [search(null_chunks(watermark.null, positions, LANES, rng)) for _ in range(runs)]
        )

    blocks = n // size
    sums = sample(blocks, lambda chunks: np.sum([chunk.sum(axis=0) for chunk in chunks], axis=0))
    yield "direct", sums, lambda z_sum: watermark.log10_p_of_z_sum(z_sum, blocks)
    aligned = partial(aligned_scores, block_size=size, beta=BETA, count=LANES)
    yield "aligned", sample(n - size + 1, aligned), partial(aligned_p, watermark, null, n)
    scan = partial(best_scores, block_size=size, count=LANES)
    yield "scan", sample(n - size + 1, scan), partial(local_p, null.scan, n)
    windows = sample_best(watermark, "waterseeker", n, -(-trials // SCAN_FACTOR), seed)
    yield "waterseeker", windows, partial(local_p, null.waterseeker, n)


def _rates(scores: Scores, log10_p: LogP) -> list[str]:
    """The share of scores with a p-value of at most each level, with 95 % intervals."""
    cells = []
    for level in LEVELS:
        limit = least_score(log10_p, math.log10(level)) - 1e-5  # single precision of `sample_scan`
        interval = clopper_pearson(int(np.count_nonzero(scores >= limit)), scores.size)
        cells.append(f"{interval.estimate:.2e} [{interval.low:.2e}, {interval.high:.2e}]")
    return cells


def detectors(watermark: Watermark) -> Mapping[str, Callable[[NDArray[np.int64]], float]]:
    """log10 p-value of a text, for each mode."""
    return {
        "direct": lambda text: detect_direct(watermark, KEY, text).log10_p,
        "aligned": lambda text: detect_aligned(watermark, KEY, text).log10_p,
        "scan": lambda text: detect_localized(watermark, KEY, text).log10_p,
        "waterseeker": lambda text: detect_localized(watermark, KEY, text, method="waterseeker").log10_p,
    }


def _seconds(detect: Callable[[NDArray[np.int64]], float], text: NDArray[np.int64]) -> float:
    started = time.process_time()
    detect(text)
    return time.process_time() - started
