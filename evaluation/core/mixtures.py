"""Mixtures of p for the likelihood ratio, fitted to marked texts that another model has read."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.report.result import Table, table_of
from ttmark.shared.watermark import Watermark, key_lanes
from ttmark.shared.watermark.contexts import scored_positions
from ttmark.shared.watermark.detectors.tokens import context_and_block
from ttmark.shared.watermark.likelihood.laws import Floats
from ttmark.shared.watermark.likelihood.mixtures import POINTS, VERSION, Mixtures, fit
from ttmark.shared.watermark.likelihood.reading import Reading

CLASSES = 8
_DIGITS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Marked blocks of a text.

    Attributes:
        ratios: of their scores at each of `POINTS` [blocks, points].
        log_probs: nats, as the reader finds them [blocks].
    """

    ratios: Floats
    log_probs: Floats

    @classmethod
    def of(cls, line: dict[str, Any]) -> "Blocks":
        """Of a line of the file: see `mixtures_table`.

        Words are not always read as the tokens that were written: it ends with the first that differs.
        """
        watermark = Watermark(line["scheme"], line["block_size"], line["context_width"])
        width, size = watermark.context_width, watermark.block_size
        pairs = zip(line["written"], line["ids"], strict=False)
        same = next((at for at, (own, read) in enumerate(pairs) if own != read), len(line["ids"]))
        tokens = np.array(line["ids"][:same], dtype=np.int64)
        starts = scored_positions(tokens, size, width)
        scores = watermark.score(
            key_lanes(bytes.fromhex(line["key"])), *context_and_block(watermark, tokens, starts)
        )
        laws = watermark.law(np.array(POINTS))
        ratios = laws[:, watermark.cells.of(scores)] / laws[-1, watermark.cells.of(scores)]
        reading = Reading(np.array(line["log_probs"][:same]))
        return cls(ratios.T, reading.of_blocks(width, size)[starts - width])

    @classmethod
    def together(cls, parts: Sequence["Blocks"]) -> "Blocks":
        """Of several texts."""
        return cls(
            np.concatenate([part.ratios for part in parts]),
            np.concatenate([part.log_probs for part in parts]),
        )

    def fitted(self) -> Mixtures:
        """One mixture for all of them, and one for each of `CLASSES` as large as another."""
        limits = np.quantile(self.log_probs, np.arange(1, CLASSES) / CLASSES)
        classes = np.searchsorted(limits, self.log_probs)
        read = [fit(self.ratios[classes == number]) for number in range(CLASSES)]
        return Mixtures(fit(self.ratios), limits, np.stack(read))

    def nats(self, mixtures: Mixtures) -> tuple[float, float]:
        """Evidence of a block on average, without the reader and with it."""
        read = mixtures.read[mixtures.classes(self.log_probs)]
        plain, with_reader = self.ratios @ mixtures.plain, np.sum(self.ratios * read, axis=1)
        return float(np.log(plain).mean()), float(np.log(with_reader).mean())


def mixtures_table(readings: Path, tables: Path | None) -> Table:
    """Fits the mixtures of each block size, and writes them as the package has them.

    Args:
        readings: JSON lines, one a text: `scheme`, `block_size`, `context_width`, `key` (hex), the tokens
            `written`, the `ids` that its words are read as, and `log_probs`, what the reader says of those.
        tables: folder of the files; None writes none.
    """
    lines = [json.loads(line) for line in readings.read_text(encoding="utf-8").splitlines()]
    rows = []
    for size in sorted({int(line["block_size"]) for line in lines}):
        texts = [Blocks.of(line) for line in lines if line["block_size"] == size]
        together = Blocks.together(texts)
        if tables is not None:
            content = json.dumps(dict(_content(together.fitted())), separators=(", ", ": "))
            (tables / f"mixtures-r{size}.json").write_text(content + "\n", encoding="utf-8")
        plain, read = np.mean(list(_apart(texts)), axis=0)
        rows.append([size, len(texts), f"{len(together.log_probs):,}", f"{plain:.3f}", f"{read:.3f}"])
    columns = ["r", "texts", "blocks", "nats a block, no reader", "with the reader"]
    return table_of("Mixtures of p, fitted to one half of the texts, on the other", columns, rows)


def _apart(texts: Sequence[Blocks]) -> Iterator[tuple[float, float]]:
    """`Blocks.nats` of each half, by the mixtures of the other."""
    halves = [Blocks.together(texts[first::2]) for first in (0, 1)]
    for own, other in (halves, halves[::-1]):
        yield own.nats(other.fitted())


def _content(mixtures: Mixtures) -> Iterator[tuple[str, Any]]:
    yield "version", VERSION
    yield "plain", _rounded(mixtures.plain)
    yield "limits", np.round(mixtures.limits, 3).tolist()
    yield "read", [_rounded(weights) for weights in mixtures.read]


def _rounded(weights: NDArray[np.float64]) -> list[float]:
    """A few digits, and 1 together."""
    shares = [round(float(weight), _DIGITS) for weight in weights]
    largest = int(np.argmax(shares))
    shares[largest] = round(shares[largest] + 1.0 - sum(shares), _DIGITS)
    return shares
