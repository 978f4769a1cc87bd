"""All experiments, in the order of the commands and of the document of a run, and `all` of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from ttmark.evaluation.cells import Setting
from ttmark.evaluation.experiments.averaging import Averaging
from ttmark.evaluation.experiments.combined import Combined
from ttmark.evaluation.experiments.cost import Cost
from ttmark.evaluation.experiments.direct import Blocks, Direct
from ttmark.evaluation.experiments.edits import Beta, Edits
from ttmark.evaluation.experiments.frontier import Frontier
from ttmark.evaluation.experiments.gains import Gains
from ttmark.evaluation.experiments.localized import Localized
from ttmark.evaluation.experiments.oracle import Oracle
from ttmark.evaluation.experiments.quality import Quality
from ttmark.evaluation.experiments.repeated import Repeated, Widths
from ttmark.evaluation.experiments.retokenisation import Retokenisation
from ttmark.evaluation.experiments.runtime import Runtime
from ttmark.evaluation.experiments.scrubbing import Scrubbing
from ttmark.evaluation.experiments.stealing import Stealing
from ttmark.evaluation.experiments.strict import Strict
from ttmark.evaluation.experiments.topp import TopP
from ttmark.evaluation.experiments.verification import Verification
from ttmark.evaluation.lab import CALIBRATION_TEXTS, Experiment, Lab
from ttmark.evaluation.options import PAPER_SCHEMES, SCHEMES, Human, OneSetting

EXPERIMENTS: tuple[type[Experiment], ...] = (
    Blocks,
    Gains,
    Direct,
    Strict,
    TopP,
    Runtime,
    Edits,
    Beta,
    Localized,
    Combined,
    Quality,
    Repeated,
    Widths,
    Retokenisation,
    Verification,
    Cost,
    Frontier,
    Stealing,
    Scrubbing,
    Oracle,
    Averaging,
)
QUICK_CALIBRATION_TEXTS = 40


@dataclass(frozen=True, slots=True)
class Everything:
    """Every experiment; `ttmark eval report` makes one document of the results."""

    quick: Annotated[bool, typer.Option("--quick", help="Small samples: under 15 minutes on two cores.")] = (
        False
    )
    setting: OneSetting = Setting.ISO_FRESH
    human: Human = None

    def measure(self, lab: Lab) -> None:
        lab.setting(self.setting, QUICK_CALIBRATION_TEXTS if self.quick else CALIBRATION_TEXTS)
        for experiment in self.experiments():
            experiment.measure(lab)

    def experiments(self) -> Iterator[Experiment]:
        """Each once, as large as asked for."""
        return self._quick() if self.quick else self._full()

    def _quick(self) -> Iterator[Experiment]:
        """Few texts, of one scheme where the paper's three are not the point."""
        setting, human, one, lengths = self.setting, self.human, ("synthid",), (100, 200)
        paper = PAPER_SCHEMES
        yield Blocks(settings=(setting,), schemes=paper, block_sizes=(1, 2), lengths=lengths, texts=(16,))
        yield Gains(setting=setting, schemes=paper, block_sizes=(1, 2), lengths=lengths, texts=(16,))
        yield Strict(schemes=paper, texts=16)
        yield Direct(texts=(8,))
        yield TopP(setting, one, length=100, texts=8, top_p=(0.5, 0.8, 1.0))
        yield Edits(setting=setting, schemes=paper, lengths=lengths, texts=16, human=human)
        yield Beta(setting=setting, schemes=one, lengths=lengths, texts=8, human=human)
        yield Localized((2_000,), setting=setting, schemes=one, documents=16, human=human)
        yield Combined(setting=setting, length=100, texts=8, human=human)
        yield Quality(setting, paper, length=200, texts=16)
        yield Repeated(setting, one, completions=16)
        yield Widths(setting, one, completions=8, context_widths=(2, 4))
        yield Retokenisation(length=100, texts=8)
        yield Verification(schemes=one, length=100, texts=8, alone=2, null_keys=200)
        yield Runtime(one, repeats=1, candidates=(1, 8, 50))
        yield Cost((setting,), texts=(8,), schemes=one)
        yield Frontier(
            settings=(setting,),
            texts=(8,),
            profiles=("synthid, r 2, H 4",),
            same_key=(4,),
            unmarked=(4,),
            prompt_count=4,
            human=human,
        )
        yield Stealing(schemes=one, control=False, quick=True)
        yield Scrubbing(setting=setting, length=100, texts=4, reworded=2, defaults_only=True, human=human)
        yield Oracle(setting=setting, length=100, texts=3, budgets=(0, 10), defaults_only=True, human=human)
        yield Averaging(setting=setting, length=100, prompt_count=2, answers=2)

    def _full(self) -> Iterator[Experiment]:
        """As each has it by default, with more texts, settings and documents for the tables of results."""
        setting, human = self.setting, self.human
        yield Blocks(settings=(setting,))
        yield Gains(setting=setting)
        yield Strict((Setting.STRICT, Setting.QWEN3, Setting.LLAMA3), texts=500)
        yield Direct(schemes=SCHEMES, texts=(200,))
        yield TopP(setting, texts=200)
        yield Edits(setting=setting, texts=500, human=human)
        yield Beta(setting=setting, human=human)
        yield Localized((500, 2_000, 5_000, 10_000), (1, 3), setting, documents=300, human=human)
        yield Combined(human=human)
        yield Quality(setting)
        yield Repeated(setting)
        yield Widths(setting, SCHEMES, completions=200)
        yield Retokenisation()
        yield Verification(texts=500)
        yield Runtime(repeats=5)
        yield Cost((setting, Setting.DEFAULT))
        yield Frontier(human=human)
        yield Stealing()
        yield Scrubbing(human=human)
        yield Oracle(human=human)
        yield Averaging()
