"""All experiments, in the order of the commands and of the document of a run, and `all` of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.experiment import CALIBRATION_TEXTS, Experiment, Lab
from ttmark.evaluation.experiment_cells import Setting
from ttmark.evaluation.experiments.direct import Blocks, Direct
from ttmark.evaluation.experiments.edits import Beta, Edits
from ttmark.evaluation.experiments.localized import Localized
from ttmark.evaluation.experiments.quality import Quality
from ttmark.evaluation.experiments.runtime import Runtime
from ttmark.evaluation.experiments.strict import Strict
from ttmark.evaluation.experiments.topp import TopP
from ttmark.evaluation.options import PAPER_SCHEMES, SCHEMES, Human, OneSetting

EXPERIMENTS: tuple[type[Experiment], ...] = (
    Blocks,
    Direct,
    Strict,
    TopP,
    Runtime,
    Edits,
    Beta,
    Localized,
    Quality,
)
QUICK_CALIBRATION_TEXTS = 40


@dataclass(frozen=True, slots=True)
class Everything:
    """Every experiment that this run has not measured yet; `ttmark eval report` makes pages of them."""

    name: ClassVar[str] = "all"
    title: ClassVar[str] = "Everything"

    quick: Annotated[bool, typer.Option("--quick", help="Small samples: under 15 minutes on two cores.")] = (
        False
    )
    setting: OneSetting = Setting.ISO
    human: Human = None

    def measure(self, lab: Lab) -> None:
        lab.setting(self.setting, QUICK_CALIBRATION_TEXTS if self.quick else CALIBRATION_TEXTS)
        for experiment, label in self.experiments():
            one = lab.labelled(label)
            if found := one.measured(experiment):
                lab.console.print(f"{found}: is there; delete it to measure it again")
            else:
                one.measure(experiment)

    def experiments(self) -> Iterator[tuple[Experiment, str | None]]:
        """Each with the label of its result, as large as asked for."""
        return ((one, None) for one in self._quick()) if self.quick else self._full()

    def _quick(self) -> Iterator[Experiment]:
        """Few texts, of one scheme where the paper's three are not the point."""
        setting, human, one, lengths = self.setting, self.human, ("synthid",), (100, 200)
        paper = PAPER_SCHEMES
        yield Blocks(settings=(setting,), schemes=paper, block_sizes=(1, 2), lengths=lengths, texts=(16,))
        yield Strict(schemes=paper, texts=16)
        yield Direct(texts=(8,))
        yield TopP(setting, one, length=100, texts=8, top_p=(0.5, 0.8, 1.0))
        yield Edits(setting=setting, schemes=paper, lengths=lengths, texts=16, human=human)
        yield Beta(setting=setting, schemes=one, lengths=lengths, texts=8, human=human)
        yield Localized((2_000,), setting=setting, schemes=one, documents=16, human=human)
        yield Quality(setting, paper, length=200, texts=16)
        yield Runtime(one, repeats=1, candidates=(1, 8, 50))

    def _full(self) -> Iterator[tuple[Experiment, str | None]]:
        """What the documents have of SmolLM2: 200 texts in the main cells, fewer in others."""
        setting, chat, human, two = self.setting, Setting.CHAT, self.human, ("synthid", "gumbel")
        yield Blocks(settings=(chat,), lengths=(200,), texts=(200, 200, 64)), "chat"
        yield Blocks(settings=(setting,), block_sizes=(1, 2), texts=(100,)), None
        yield Blocks(settings=(setting,), lengths=(200,), texts=(100, 100, 48)), "three"
        yield Strict(texts=100), None
        yield Direct((Setting.DEFAULT,), two, texts=(50,)), None
        yield TopP(setting, two, length=100, texts=50, top_p=(0.5, 0.7, 0.9, 1.0)), None
        words = ("rewrite", "substitute", "delete", "insert")
        yield Edits(edits=words, setting=setting, texts=100, human=human), None
        yield Beta(edits=words[:1], schemes=("synthid",), setting=setting, texts=100, human=human), None
        yield Localized((2_000, 10_000), setting=setting, schemes=SCHEMES, human=human), None
        yield Quality(chat, length=200, texts=64), None
        yield Runtime(two, length=8, texts=16, candidates=(1, 4, 16, 50)), None
