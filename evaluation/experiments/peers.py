"""`peers`: our watermarks beside those of transformers and vLLM, on the same prompts and model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Cell, SamplingSetting, Setting
from ttmark.evaluation.intervals import Interval, Sample, mean
from ttmark.evaluation.language_model import CausalModel
from ttmark.evaluation.options import BlockSizes, Human, Length, OneSetting, Schemes, Texts
from ttmark.evaluation.peers.detectors import Exact, Ours
from ttmark.evaluation.peers.measure import (
    OPENING,
    Baseline,
    Entrant,
    PeerRow,
    distinct_answers,
    losses,
    measure_entrant,
)
from ttmark.evaluation.peers.report import main_table, peers_figures, power_table
from ttmark.evaluation.peers.source import PeerSource
from ttmark.evaluation.peers.systems import SYSTEMS
from ttmark.evaluation.run_folder import Run
from ttmark.evaluation.text_edits import Material
from ttmark.evaluation.text_sources import EngineSource
from ttmark.shared.watermark.schemes.registry import scheme_title


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Power, edits, diversity and loss of our watermarks beside those of transformers and vLLM."""

    name: ClassVar[str] = "peers"
    title: ClassVar[str] = "Beside other systems"

    setting: OneSetting = Setting.CHAT
    texts: Texts = 100
    length: Length = 200
    schemes: Schemes = ("gumbel", "synthid")
    block_sizes: BlockSizes = (1, 2, 3)
    systems: Annotated[
        tuple[str, ...], typer.Option("--system", help=f"{', '.join(SYSTEMS)}; may be repeated.")
    ] = tuple(SYSTEMS)
    prompt_count: Annotated[int, typer.Option(min=1, help="Prompts that are asked again and again.")] = 10
    completions: Annotated[int, typer.Option(min=2, help="Of each of these under one key.")] = 16
    loss_texts: Annotated[int, typer.Option(min=2, help="Texts whose loss is computed.")] = 50
    texts_only: Annotated[
        bool,
        typer.Option(
            help="Only write the texts of the systems: vLLM's are written where vLLM is installed, and read"
            " by a further run elsewhere."
        ),
    ] = False
    human: Human = None

    def measure(self, lab: Lab) -> None:
        if not isinstance(lab.source, EngineSource):
            lab.console.print("peers are left out: other systems need a model that transformers can load")
            return
        if unknown := set(self.systems) - SYSTEMS.keys():
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(SYSTEMS)}")
        comparison = _Comparison(self, lab, lab.source, PeerSource(lab.source), lab.setting(self.setting))
        peers = [entrant for entrant in comparison.peers() if comparison.written(entrant)]
        if self.texts_only:
            return
        unmarked, ours = comparison.unmarked(), comparison.ours()
        rows = list(comparison.rows([*peers, *ours], unmarked))
        baseline = Baseline(unmarked.title, comparison.distinct(unmarked))
        tables = [main_table(rows, baseline, self._notes(comparison)), power_table(rows)]
        lab.finish(self.name, tables, [*rows, baseline], peers_figures(rows))

    def _notes(self, comparison: "_Comparison") -> tuple[str, ...]:
        return (
            f"{self.length} tokens, {comparison.setting}; prompts in turn, a key for each text. Brackets are"
            " 95 % intervals.",
            "Other systems write inside transformers' `generate`, each text with a processor or sampler of"
            " its own. The rows of vLLM are of its own classes; only its sampler for unmarked tokens, a GPU"
            " kernel, is replaced.",
            "P-values are exact, by the arithmetic of each scheme.",
            "Edits: substitute, delete, insert of single words, each of all texts, read again as tokens; ours"
            " by the question of the detection service, others by the same detector as whole texts.",
            f"Distinct: different ones among {self.completions} answers to a prompt under one key, first"
            f" {OPENING} tokens, mean over {self.prompt_count} prompts.",
            f"Loss: nats a token without filters, minus that of the unmarked text with the same prompt;"
            f" {self.loss_texts} prompts, and the same unmarked texts for all rows.",
        )


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What the systems have in common."""

    plan: Peers
    lab: Lab
    source: EngineSource
    theirs: PeerSource
    setting: SamplingSetting

    def peers(self) -> Iterator[Entrant]:
        lab = self.lab
        run = Run(lab.run.folder, self.theirs, lab.run.seed, lab.run.progress)
        for name in self.plan.systems:
            system, cell = SYSTEMS[name], Cell(name, 1, self.setting, self.plan.length)
            exact = Exact(system, self.theirs.vocabulary)
            yield Entrant(system.title, run, cell, system.runs_here(), exact)

    def ours(self) -> Iterator[Entrant]:
        for scheme, size in product(self.plan.schemes, self.plan.block_sizes):
            cell = Cell(scheme, size, self.setting, self.plan.length)
            title = f"ours: {scheme_title(scheme)} r={size}"
            yield Entrant(title, self.lab.run, cell, detector=Ours(cell))

    def unmarked(self) -> Entrant:
        """Our engine's texts, by which losses are judged."""
        plain = Cell(None, 1, self.setting, self.plan.length)
        return Entrant("our engine, no watermark", self.lab.run, plain)

    def written(self, entrant: Entrant) -> bool:
        """Whether the texts of a system are there; those that can be written here are written now."""
        plan = self.plan
        wanted = {
            entrant.opening(plan.prompt_count): plan.prompt_count * plan.completions,
            entrant.cell: plan.texts,
        }
        for cell, count in wanted.items():
            if entrant.here:
                entrant.run.texts(cell, count)
            elif len(entrant.run.stored(cell)) < count:
                self.lab.console.print(f"{entrant.title} is left out: see --texts-only")
                return False
        return True

    def rows(self, entrants: Sequence[Entrant], unmarked: Entrant) -> Iterator[PeerRow]:
        """Of every system."""
        model = CausalModel(self.source.model, self.source.settings.dtype)
        material = Material.of(self.lab.human_texts(self.plan.human))
        plain = self._losses(model, unmarked)
        for entrant in entrants:
            if entrant.detector is not None:
                yield measure_entrant(
                    self.lab,
                    entrant,
                    entrant.detector,
                    entrant.run.texts(entrant.cell, self.plan.texts),
                    material,
                    self.distinct(entrant),
                    mean(self._losses(model, entrant) - plain),  # a text and its partner have one prompt
                )

    def _losses(self, model: CausalModel, entrant: Entrant) -> Sample:
        return losses(self.lab, model, entrant.cell, entrant.run.texts(entrant.cell, self.plan.loss_texts))

    def distinct(self, entrant: Entrant) -> Interval:
        """Different answers to one prompt under one key."""
        return distinct_answers(entrant.run, entrant.opening(self.plan.prompt_count), self.plan.completions)
