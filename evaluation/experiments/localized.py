"""`localized`: watermarked spans inside documents by people (paper, Table 4)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Cell, SamplingSetting, Setting, prf_key, sampling_seed
from ttmark.evaluation.intervals import Interval, bootstrap, clopper_pearson, mean
from ttmark.evaluation.options import PAPER_SCHEMES, BlockSizes, Human, OneSetting, Schemes
from ttmark.evaluation.paper import LOCALIZED, row_name
from ttmark.evaluation.planted_spans import Document, Span, best_overlap, plant
from ttmark.evaluation.report.result import Table, table_by
from ttmark.evaluation.run_folder import Run
from ttmark.shared.watermark import detect_localized
from ttmark.shared.watermark.detectors.localized import METHODS, Method

SPAN_TOKENS = (100, 400)


@dataclass(frozen=True, slots=True)
class Localized:
    """Spans inside documents by people (the paper's Table 4), `scan` beside `waterseeker`."""

    name: ClassVar[str] = "localized"
    title: ClassVar[str] = "Spans in documents"

    document_tokens: Annotated[
        tuple[int, ...], typer.Option(min=1, help="Length of the documents; may be repeated.")
    ] = (10_000,)
    spans: Annotated[tuple[int, ...], typer.Option(min=1, help="Spans per document; may be repeated.")] = (1,)
    setting: OneSetting = Setting.ISO
    schemes: Schemes = PAPER_SCHEMES
    block_sizes: BlockSizes = (1, 2)
    documents: Annotated[int, typer.Option(min=2, help="With a span, and as many without.")] = 100
    human: Human = None

    def measure(self, lab: Lab) -> None:
        encoded = map(lab.source.tokenizer.encode, lab.human_texts(self.human))
        texts = [np.array(tokens, dtype=np.int64) for tokens in encoded if tokens]
        setting = lab.setting(self.setting)
        tables, data = [], []
        for spans in self.spans:
            for length in self.document_tokens:
                rows = measure_localized(lab.run, self, setting, length, spans, texts)
                tables.append(localized_table(rows, setting))
                data += rows
        *shorter, printed = tables
        lab.finish(self.name, [*(replace(table, aside=True) for table in shorter), printed], data)


@dataclass(frozen=True, slots=True)
class LocalizedRow:
    """One method, scheme and block size.

    Attributes:
        fpr: share of documents without a span in which one was reported.
        fnr: share of spans that no reported segment overlaps.
        iou: mean over spans, 0 for a span that was missed.
    """

    method: str
    scheme: str
    block_size: int
    document_tokens: int
    spans: int
    documents: int
    fpr: Interval
    fnr: Interval
    f1: Interval
    iou: Interval


def measure_localized(
    run: Run,
    plan: Localized,
    setting: SamplingSetting,
    document_tokens: int,
    spans: int,
    human: Sequence[NDArray[np.int64]],
    methods: Sequence[Method] = METHODS,
) -> list[LocalizedRow]:
    """One row per method, scheme and block size; the spans of a document are prefixes of one text."""

    def generator(name: str, index: int) -> np.random.Generator:
        seed = sampling_seed(run.seed, "document", document_tokens, spans, name, index)
        return np.random.default_rng(seed)

    rows = []
    clean = [plant(human, [], document_tokens, generator("clean", index)) for index in range(plan.documents)]
    for scheme, block_size in product(plan.schemes, plan.block_sizes):
        cell = Cell(scheme, block_size, setting, SPAN_TOKENS[1])
        marked = []
        for text in run.texts(cell, plan.documents):
            draws = generator(cell.name, text.index)
            lengths = draws.integers(SPAN_TOKENS[0], SPAN_TOKENS[1] + 1, size=spans)
            whole = text.tokens()
            cuts = [whole[: lengths[0]]] if spans == 1 else np.array_split(whole, spans)
            document = plant(human, cuts, document_tokens, draws)
            marked.append((cell.key(run.seed, text.index), document))
        rows += [_row(run, cell, method, spans, marked, clean) for method in methods]
    return rows


def _row(
    run: Run,
    cell: Cell,
    method: Method,
    spans: int,
    marked: list[tuple[bytes, Document]],
    clean: list[Document],
) -> LocalizedRow:
    task = run.progress.add_task(f"{method}, {cell.title}", total=len(marked) + len(clean))
    watermark = cell.watermark()

    def segments(key: bytes, document: Document) -> list[Span]:
        evidence = detect_localized(watermark, key, document.tokens, method=method)
        run.progress.advance(task)
        return [Span(segment.start, segment.end) for segment in evidence.segments]

    overlaps: list[float] = []
    for key, document in marked:
        found = segments(key, document)
        overlaps += [best_overlap(span, found) for span in document.spans]
    alarms = np.array(
        [bool(segments(prf_key(run.seed, "clean", index), document)) for index, document in enumerate(clean)],
        dtype=np.float64,
    )
    run.progress.remove_task(task)
    # The spans of a document share its key and text: documents are resampled, not spans.
    iou = np.array(overlaps).reshape(len(marked), spans)
    hits = (iou > 0).mean(axis=1)
    return LocalizedRow(
        method=method,
        scheme=str(cell.scheme),
        block_size=cell.block_size,
        document_tokens=marked[0][1].tokens.size,
        spans=spans,
        documents=len(marked),
        fpr=clopper_pearson(int(alarms.sum()), len(alarms)),
        fnr=clopper_pearson(int((1 - hits).sum()), len(hits)) if spans == 1 else mean(1 - hits),
        f1=bootstrap(_f1, hits, alarms),
        iou=mean(iou.mean(axis=1)),
    )


def _f1(hits: NDArray[np.float64], alarms: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 of as many spans as documents without one, [...] from [..., documents] and [..., documents]."""
    recall = hits.mean(axis=-1)
    score: NDArray[np.float64] = 2 * recall / (1 + recall + alarms.mean(axis=-1))
    return score


def localized_table(rows: Sequence[LocalizedRow], setting: SamplingSetting) -> Table:
    """All rows of one document length, beside the paper's."""
    first = rows[0]
    span_text = "one span" if first.spans == 1 else f"{first.spans} spans"
    return table_by(
        f"Localized detection: {span_text} in documents of {first.document_tokens} tokens, {setting}",
        rows,
        {
            "": lambda row: row_name(row.scheme, row.block_size),
            "method": lambda row: row.method,
            "FPR": lambda row: row.fpr.percent(),
            "FNR": lambda row: row.fnr.percent(),
            "F1": lambda row: row.f1,
            "IoU": lambda row: row.iou,
            "paper: FPR, FNR, F1, IoU": _paper_text,
        },
        (
            f"{first.documents} documents with marked spans of {SPAN_TOKENS[0]} to {SPAN_TOKENS[1]} tokens"
            f" among text by people, and {first.documents} without. FPR: share of these in which a span is"
            " reported. A span is found when a reported one overlaps it; IoU counts a missed span as 0.",
        ),
    )


def _paper_text(row: LocalizedRow) -> str | None:
    figures = LOCALIZED.get((row.scheme, row.block_size)) if row.spans == 1 else None
    return ", ".join(f"{figure:.3f}" for figure in figures) if figures else None
