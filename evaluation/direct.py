"""Direct detection by block size: what pairs gain over single tokens (paper Tables 1, 2, 7)."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from evaluation.intervals import Interval, clopper_pearson, ratio_of_means
from evaluation.settings import SamplingSetting
from evaluation.texts import generate_texts
from gen_service.engine import Engine, Marking
from shared.watermark import Watermark, detect_direct

FPRS = (1e-3, 1e-4, 1e-5)
PRF_KEY_BYTES = 16


@dataclass(frozen=True)
class Cell:
    """One scheme and block size: what the detector says of `texts` watermarked texts.

    Attributes:
        tpr: rate of texts with p <= FPR, for each of FPRS.
        z: mean z-score.
        z_scores: z of each text, for gains.
    """

    scheme: str
    block_size: int
    setting: SamplingSetting
    tokens: int
    texts: int
    tpr: tuple[Interval, ...]
    median_log10_p: float
    z: float
    z_scores: NDArray[np.float64]

    def as_json(self) -> dict[str, Any]:
        """Plain values for the results file."""
        return {name: value for name, value in asdict(self).items() if name != "z_scores"}


def measure_cell(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    watermark: Watermark,
    setting: SamplingSetting,
    tokens: int,
    progress: Progress,
) -> Cell:
    """Generates one text per prompt under one random key and detects each."""
    prf_key = secrets.token_bytes(PRF_KEY_BYTES)
    marking = Marking("evaluation", 1, "evaluation", watermark, prf_key)
    title = f"{watermark.scheme} r={watermark.block_size}"
    texts = generate_texts(engine, prompts, setting, tokens, marking, title=title, progress=progress)
    evidence = [detect_direct(watermark, prf_key, text.token_ids) for text in texts]
    log10_p = np.array([item.log10_p for item in evidence])
    z_scores = np.array([item.z for item in evidence])
    return Cell(
        scheme=watermark.scheme,
        block_size=watermark.block_size,
        setting=setting,
        tokens=tokens,
        texts=len(texts),
        tpr=tuple(clopper_pearson(int((log10_p <= np.log10(fpr)).sum()), len(texts)) for fpr in FPRS),
        median_log10_p=float(np.median(log10_p)),
        z=float(z_scores.mean()),
        z_scores=z_scores,
    )


def gain(cell: Cell, single: Cell) -> Interval:
    """Mean z of `cell` over mean z of the single-token watermark at equal length."""
    return ratio_of_means(cell.z_scores, single.z_scores)
