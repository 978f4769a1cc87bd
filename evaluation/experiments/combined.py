"""`combined`: the likelihood ratio that answers one question, beside the paper's detectors."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, Setting, sampling_seed
from ttmark.evaluation.edits import EDITS, Material
from ttmark.evaluation.experiments.frontier import BEFORE, LOWER_DEPTH, NOW
from ttmark.evaluation.intervals import Interval, mean
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import Human, Length, OneSetting, Texts
from ttmark.evaluation.profiles import DOCUMENT, Profile
from ttmark.evaluation.report.result import Table, rate_name, table_by, table_of
from ttmark.evaluation.run import Completion
from ttmark.evaluation.spans import plant
from ttmark.evaluation.word_edits import WORD_EDITS
from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized
from ttmark.shared.watermark.likelihood.evidence import detect_likelihood

PROFILES = (NOW, BEFORE, LOWER_DEPTH)
EDITED = (0.05, 0.1, 0.2)
FPR = 1e-5
MODES = ("direct", "aligned", "localized", "likelihood")
STEP = 2
"""Tokens between two lengths at which a text is tried."""

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """Power of one question on whole, edited and mixed texts, beside the paper's detectors."""

    name: ClassVar[str] = "combined"
    title: ClassVar[str] = "One question"

    setting: OneSetting = Setting.CHAT
    texts: Texts = 64
    length: Length = 200
    human: Human = None

    def measure(self, lab: Lab) -> None:
        setting, human = lab.setting(self.setting), lab.human_texts(self.human)
        rows, lengths = [], []
        for profile in PROFILES:
            cell = profile.cell(setting, self.length)
            texts = lab.run.texts(cell, self.texts)
            rows += measure_power(lab, profile, cell, texts, human)
            lengths.append(measure_lengths(lab, profile, cell, texts))
        lab.finish(self.name, [power_table(rows, self), length_table(lengths, self)], [*rows, *lengths])


@dataclass(frozen=True, slots=True)
class PowerRow:
    """One profile and kind of text.

    Attributes:
        log10_p: means by mode, each corrected for what it tries alone; of direct detection two phases.
        best: the mode with the smallest of the first three.
        gain: mean of the best one minus that of `likelihood`, in decades.
        found: share found at `FPR`, by mode.
    """

    profile: Profile
    kind: str
    texts: int
    log10_p: dict[str, float]
    best: str
    gain: Interval
    found: dict[str, float]


def measure_power(
    lab: Lab, profile: Profile, cell: Cell, texts: Sequence[Completion], human: Sequence[str]
) -> list[PowerRow]:
    """One row for each kind of text; texts are read again as tokens."""
    watermark, tokenizer = cell.watermark(), lab.source.tokenizer
    material = Material.of(human)
    around = [np.array(tokens) for tokens in map(tokenizer.encode, human) if tokens]
    documents: dict[str, list[tuple[bytes, Tokens]]] = {}
    for text in texts:
        key, whole = cell.key(lab.run.seed, text.index), tokenizer.decode(text.token_ids)
        generator = np.random.default_rng(sampling_seed(lab.run.seed, "combined", cell.name, text.index))

        def add(kind: str, tokens: Sequence[int] | Tokens, key: bytes = key) -> None:
            documents.setdefault(kind, []).append((key, np.array(tokens, dtype=np.int64)))

        add("whole", tokenizer.encode(whole))
        for part in (2, 4):
            beginning = tokenizer.decode(text.token_ids[: cell.tokens // part])
            add(f"first {cell.tokens // part} tokens", tokenizer.encode(beginning))
        for share in EDITED:
            for name in WORD_EDITS:
                edited = EDITS[name](whole, share, material, generator)
                add(f"{share:.0%} of the words edited", tokenizer.encode(edited))
        half = text.tokens(cell.tokens // 2)
        add("half by people", plant(around, [half], cell.tokens, generator).tokens)
        inside = plant(around, [text.tokens()], DOCUMENT + cell.tokens, generator).tokens
        add(f"inside {DOCUMENT} tokens by people", inside)
    return [_row(profile, kind, watermark, found) for kind, found in documents.items()]


def log10_p_of_each(watermark: Watermark, key: bytes, tokens: Tokens) -> list[float]:
    """log10 p by mode, in the order of `MODES`."""
    return [
        detect_direct(watermark, key, tokens, phase="any").log10_p,
        detect_aligned(watermark, key, tokens).log10_p,
        detect_localized(watermark, key, tokens).log10_p,
        detect_likelihood(watermark, [key], tokens, rate=FPR).log10_p,
    ]


def _row(
    profile: Profile, kind: str, watermark: Watermark, documents: Sequence[tuple[bytes, Tokens]]
) -> PowerRow:
    values = np.array([log10_p_of_each(watermark, key, tokens) for key, tokens in documents])
    means = values.mean(axis=0)
    best = int(means[:3].argmin())
    shares = (values <= math.log10(FPR)).mean(axis=0)
    return PowerRow(
        profile=profile,
        kind=kind,
        texts=len(documents),
        log10_p=dict(zip(MODES, means.tolist(), strict=True)),
        best=MODES[best],
        gain=mean(values[:, best] - values[:, -1]),
        found=dict(zip(MODES, shares.tolist(), strict=True)),
    )


@dataclass(frozen=True, slots=True)
class LengthRow:
    """Tokens at which half of the texts of a profile have log10 p of -1, -2, ... in direct detection."""

    profile: Profile
    texts: int
    medians: tuple[int, ...]


def measure_lengths(lab: Lab, profile: Profile, cell: Cell, texts: Sequence[Completion]) -> LengthRow:
    """As many decades as half of the texts reach."""
    watermark, reached = cell.watermark(), []
    for text in texts:
        key, tokens = cell.key(lab.run.seed, text.index), text.tokens()
        lengths = range(STEP, tokens.size + 1, STEP)
        log10_p = [detect_direct(watermark, key, tokens[:length]).log10_p for length in lengths]
        reached.append(np.append(np.minimum.accumulate(log10_p), -math.inf))
    medians: list[int] = []
    while True:
        needed = [STEP * (1 + int(np.argmax(of_text <= -1 - len(medians)))) for of_text in reached]
        median = math.ceil(float(np.median(needed)))
        if median > cell.tokens:
            return LengthRow(profile, len(texts), tuple(medians))
        medians.append(median)


def power_table(rows: Sequence[PowerRow], plan: Combined) -> Table:
    """What each of the modes finds, by profile and kind of text."""

    def of(mode: str) -> Callable[[PowerRow], str]:
        return lambda row: f"{row.log10_p[mode]:.2f}, {row.found[mode]:.0%}"

    return table_by(
        f"One question, texts of {plan.length} tokens",
        rows,
        {
            "profile": lambda row: str(row.profile),
            "text": lambda row: row.kind,
            "texts": lambda row: row.texts,
            **{f"{mode}: mean log10 p, found": of(mode) for mode in MODES},
            "best of the first three minus likelihood, decades": lambda row: row.gain,
        },
        (
            f"Setting {plan.setting}. Each text has a prompt and a key of its own."
            f" Found: p <= {rate_name(FPR)}.",
            "Edits: substitute, delete, insert of single words, each of all texts. Direct: both boundaries.",
            "Brackets are 95 % intervals of the mean difference, text by text.",
        ),
    )


def length_table(rows: Sequence[LengthRow], plan: Combined) -> Table:
    """The table behind what the detection service calls a typical length."""
    decades = max(len(row.medians) for row in rows)
    columns = ["profile", "texts", *(f"1e-{decade}" for decade in range(1, decades + 1))]
    cells = [[row.profile, row.texts, *row.medians, *[""] * (decades - len(row.medians))] for row in rows]
    title = f"Tokens at which half of the texts have this p-value, setting {plan.setting}"
    return table_of(title, columns, cells)
