"""`ttmark eval all`: every experiment, in one run that resumes."""

from dataclasses import dataclass
from typing import Annotated

import typer

from evaluation.cli import direct, robustness, side_effects
from evaluation.cli.lab import CALIBRATION_TEXTS, Lab
from evaluation.cli.options import HUMAN, PAPER_SCHEMES, SCHEMES, Human, OneSetting
from evaluation.experiments.runtime import CANDIDATES
from evaluation.experiments.topp import TOP_P
from evaluation.settings import Setting


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of everything.

    Attributes:
        texts: of a main cell; side experiments take `few`.
        lengths: in tokens; edits and spans use texts of the greatest.
        top_p, candidates: values of the ablation of top-p and of the timing.
        schemes: of the main tables; side experiments take `side_schemes`.
        documents: with a span, per scheme, block size and document length.
    """

    texts: int
    few: int
    lengths: list[int]
    block_sizes: list[int]
    schemes: list[str]
    side_schemes: list[str]
    settings: list[Setting]
    documents: int
    document_tokens: list[int]
    spans: list[int]
    completions: int
    context_widths: list[int]
    top_p: list[float]
    candidates: list[int]
    calibration_texts: int


QUICK = Scale(
    texts=16,
    few=8,
    lengths=[100, 200],
    block_sizes=[1, 2],
    schemes=list(PAPER_SCHEMES),
    side_schemes=["synthid"],
    settings=[Setting.STRICT],
    documents=16,
    document_tokens=[2_000],
    spans=[1],
    completions=16,
    context_widths=[2, 4],
    top_p=[0.5, 0.8, 1.0],
    candidates=[1, 8, 50],
    calibration_texts=40,
)
FULL = Scale(
    texts=500,
    few=200,
    lengths=[200, 400],
    block_sizes=[1, 2, 3],
    schemes=list(SCHEMES),
    side_schemes=list(SCHEMES),
    settings=[Setting.STRICT, Setting.QWEN3, Setting.LLAMA3],
    documents=300,
    document_tokens=[500, 2_000, 5_000, 10_000],
    spans=[1, 3],
    completions=1_000,
    context_widths=[2, 4, 8],
    top_p=list(TOP_P),
    candidates=list(CANDIDATES),
    calibration_texts=CALIBRATION_TEXTS,
)


def everything(
    lab: Lab,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small samples: under 15 minutes on two cores.")
    ] = False,
    setting: OneSetting = Setting.ISO_FRESH,
    human: Human = HUMAN,
) -> None:
    """Every experiment; `ttmark eval report` makes one document of the results."""
    scale = QUICK if quick else FULL
    shortest = min(scale.lengths)
    main, side = scale.schemes, scale.side_schemes
    lab.setting(setting, scale.calibration_texts)
    direct.blocks(lab, [setting], main, scale.block_sizes, scale.lengths, [scale.texts])
    direct.gains(lab, setting, main, scale.block_sizes, scale.lengths, [scale.texts])
    direct.strict(lab, scale.settings, main, texts=scale.texts)
    direct.direct(lab, scheme=side, texts=[scale.few])
    direct.topp(lab, setting, side[:3], length=shortest, texts=scale.few, top_p=scale.top_p)
    robustness.edits(lab, setting=setting, scheme=main, length=scale.lengths, texts=scale.texts, human=human)
    robustness.beta(lab, setting=setting, scheme=side[:3], length=scale.lengths, texts=scale.few, human=human)
    robustness.localized(
        lab, scale.document_tokens, scale.spans, setting, side[:3], documents=scale.documents, human=human
    )
    side_effects.quality(lab, setting, main, length=max(scale.lengths), texts=scale.texts)
    side_effects.repeated(lab, setting, side, completions=scale.completions)
    side_effects.widths(lab, setting, side, completions=scale.few, context_width=scale.context_widths)
    side_effects.runtime(lab, scheme=side[:3], repeats=1 if quick else 5, candidates=scale.candidates)
    side_effects.cost(lab, [setting] if quick else [setting, Setting.DEFAULT], [100, 200], [scale.few], side)
