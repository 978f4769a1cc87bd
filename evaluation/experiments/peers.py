"""`peers`: our watermarks beside those of transformers and vLLM, on the same prompts and model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.cells import Cell, SamplingSetting, Setting
from ttmark.evaluation.edits import Material
from ttmark.evaluation.intervals import Interval, Sample, mean
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.language_model import CausalModel
from ttmark.evaluation.options import BlockSizes, Human, Length, OneSetting, Schemes, Texts
from ttmark.evaluation.peers.detectors import Detector
from ttmark.evaluation.peers.entrants import (
    Entrant,
    measure_entrant,
    our_entrant,
    their_entrant,
    trained_detectors,
)
from ttmark.evaluation.peers.measure import OPENING, Baseline, PeerRow, distinct_answers, losses
from ttmark.evaluation.peers.report import main_table, peers_figures, power_table
from ttmark.evaluation.peers.source import PeerSource
from ttmark.evaluation.peers.speed import TEXTS, seconds_per_thousand, shipped_synthid, without_prefix_cache
from ttmark.evaluation.peers.systems import SYNTHID, SYSTEMS
from ttmark.evaluation.run import Run
from ttmark.evaluation.sources import EngineSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Power, edits, diversity, loss and speed of our watermarks beside those of transformers and vLLM."""

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
    training: Annotated[
        int, typer.Option(min=4, help="Further texts, for SynthID-Text's Bayesian detector to learn from.")
    ] = 40
    null_scores: Annotated[
        int, typer.Option(min=10, help="Scores under other keys, where a detector has no exact p-value.")
    ] = 10_000
    prompt_count: Annotated[int, typer.Option(min=1, help="Prompts that are asked again and again.")] = 10
    completions: Annotated[int, typer.Option(min=2, help="Of each of these under one key.")] = 16
    loss_texts: Annotated[int, typer.Option(min=2, help="Texts whose loss is computed.")] = 50
    speed_tokens: Annotated[int, typer.Option(min=2, help="Of each text whose time is taken.")] = 64
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
        seconds = comparison.seconds([*unmarked, *peers, *ours])
        rows = list(comparison.rows([*peers, *ours], unmarked[0], seconds))
        baselines = comparison.baselines(unmarked, seconds)
        tables = [main_table(rows, baselines, self._notes(comparison)), power_table(rows)]
        lab.finish(self.name, tables, [*rows, *baselines], peers_figures(rows))

    def _notes(self, comparison: "_Comparison") -> tuple[str, ...]:
        return (
            f"{self.length} tokens, {comparison.setting}; prompts in turn, a key for each text. Brackets are"
            " 95 % intervals.",
            "Other systems write inside transformers' `generate`, each text with a processor or sampler of"
            " its own. The rows of vLLM are of its own classes; only its sampler for unmarked tokens, a GPU"
            " kernel, is replaced.",
            "Exact: p-value by the arithmetic of the scheme. Others: against scores of the same texts under"
            f" other keys, {self.null_scores:,} at each length; rates that fewer than ten of these scores"
            f" would decide are not given. The Bayesian detector learned from {self.training} further marked"
            " texts and as many by people.",
            "Edits: substitute, delete, insert of single words, each of all texts, read again as tokens; ours"
            " by the question of the detection service, others by the same detector as whole texts.",
            f"Distinct: different ones among {self.completions} answers to a prompt under one key, first"
            f" {OPENING} tokens, mean over {self.prompt_count} prompts.",
            f"Loss: nats a token without filters, minus that of the unmarked text with the same prompt;"
            f" {self.loss_texts} prompts, and the same unmarked texts for all rows.",
            f"Seconds: of the processor for 1,000 tokens, {TEXTS} texts of {self.speed_tokens} tokens at a"
            " time with their prompts, no prefix cache; not given for vLLM, whose classes run here in another"
            " engine than its own. transformers SynthID-Text is shown only the tokens that the filters kept:"
            " the same choices, sooner than as it ships, where it works on the whole vocabulary.",
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
            cell = Cell(name, 1, self.setting, self.plan.length)
            yield their_entrant(SYSTEMS[name], run, self.theirs, cell, self.theirs.vocabulary)

    def ours(self) -> list[Entrant]:
        plan = self.plan
        return [
            our_entrant(self.lab, scheme, size, self.setting, plan.length)
            for scheme, size in product(plan.schemes, plan.block_sizes)
        ]

    def unmarked(self) -> list[Entrant]:
        """Our engine's texts, by which losses are judged, and the same model in transformers."""
        plain, run = Cell(None, 1, self.setting, self.plan.length), self.lab.run
        return [
            Entrant("our engine, no watermark", run, self.source, plain),
            Entrant("transformers generate, no watermark", run, self.theirs, plain),
        ]

    def written(self, entrant: Entrant) -> bool:
        """Whether the texts of a system are there; those that can be written here are written now."""
        plan = self.plan
        wanted = {
            entrant.opening(plan.prompt_count): plan.prompt_count * plan.completions,
            entrant.cell: plan.texts + (plan.training if entrant.cell.scheme == SYNTHID else 0),
        }
        for cell, count in wanted.items():
            if entrant.here:
                entrant.run.texts(cell, count)
            elif len(entrant.run.stored(cell)) < count:
                self.lab.console.print(f"{entrant.title} is left out: see --texts-only")

                return False
        return True

    def seconds(self, entrants: Sequence[Entrant]) -> dict[str, float | None]:
        """Of those that run in this process, by title."""
        engine = without_prefix_cache(self.source)
        found: dict[str, float | None] = {}
        try:
            for entrant in entrants:
                source = engine if entrant.source is self.source else entrant.source
                cell = replace(entrant.cell, tokens=self.plan.speed_tokens)
                seconds = seconds_per_thousand(source, cell, self.lab.run.seed) if entrant.here else None
                found[entrant.title] = seconds
        finally:
            engine.close()
        return found

    def rows(
        self, entrants: Sequence[Entrant], unmarked: Entrant, seconds: Mapping[str, float | None]
    ) -> Iterator[PeerRow]:
        """Of every system and detector."""
        model = CausalModel(self.source.model, self.source.settings.dtype)
        human = self.lab.human_texts(self.plan.human)
        material = Material.of(human)
        plain = self._losses(model, unmarked)
        for entrant in entrants:
            texts = entrant.run.texts(entrant.cell, self.plan.texts)
            more = self._trained(entrant, human) if entrant.cell.scheme == SYNTHID else ()
            yield from measure_entrant(
                self.lab,
                replace(entrant, detectors=(*entrant.detectors, *more)),
                texts,
                material,
                self._distinct(entrant),
                mean(self._losses(model, entrant) - plain),  # a text and its partner have one prompt
                seconds[entrant.title],
            )

    def baselines(self, unmarked: Sequence[Entrant], seconds: Mapping[str, float | None]) -> list[Baseline]:
        """Text without a watermark, and SynthID-Text at the speed that its users have."""
        of_model = Baseline(unmarked[0].title, self._distinct(unmarked[0]), seconds[unmarked[0].title])
        others = [Baseline(each.title, None, seconds[each.title]) for each in unmarked[1:]]
        shipped = shipped_synthid(self.source, self.setting)
        return [of_model, *others, Baseline("transformers SynthID-Text as it ships", None, shipped)]

    def _trained(self, entrant: Entrant, human: Sequence[str]) -> tuple[Detector, ...]:
        plan = self.plan
        further = entrant.run.texts(entrant.cell, plan.texts + plan.training)[plan.texts :]
        return trained_detectors(self.lab, entrant.cell, further, human, plan.null_scores)

    def _losses(self, model: CausalModel, entrant: Entrant) -> Sample:
        return losses(self.lab, model, entrant.cell, entrant.run.texts(entrant.cell, self.plan.loss_texts))

    def _distinct(self, entrant: Entrant) -> Interval:
        return distinct_answers(entrant.run, entrant.opening(self.plan.prompt_count), self.plan.completions)
