"""`peers`: our watermarks beside those of transformers and vLLM, on the same prompts and model."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.cells import Cell, Setting
from ttmark.evaluation.crowds import OPENING
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import BlockSizes, Human, Length, OneSetting, Schemes, Texts
from ttmark.evaluation.peers.source import PeerSource
from ttmark.evaluation.peers.systems import SYSTEMS, System
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
    prompt_count: Annotated[int, typer.Option(min=1, help="Prompts that are asked again and again.")] = 10
    completions: Annotated[int, typer.Option(min=2, help="Of each of these under one key.")] = 16
    texts_only: Annotated[
        bool,
        typer.Option(help="Only write the texts of the systems; vLLM's are written where vLLM is installed."),
    ] = False
    human: Human = None

    def measure(self, lab: Lab) -> None:
        peers = peer_run(lab)
        if self.texts_only:
            for system in map(SYSTEMS.__getitem__, self.systems):
                peers.texts(self.opening(system.name, lab), self.prompt_count * self.completions)
                peers.texts(self.cell(system, lab), self.texts + self.trained(system))
            return

    def cell(self, system: System, lab: Lab) -> Cell:
        return system.cell(lab.setting(self.setting), self.length)

    def trained(self, system: System) -> int:
        return self.training if system.name == "peer-synthid" else 0

    def opening(self, scheme: str | None, lab: Lab, block_size: int = 1) -> Cell:
        """Answers to few prompts under one key."""
        cell = Cell(scheme, block_size, lab.setting(self.setting), OPENING, prompts=self.prompt_count)
        return replace(cell, pool=1) if scheme else cell


def peer_run(lab: Lab) -> Run:
    """The run as the other systems write it; ValueError where there is no model that transformers loads."""
    if not isinstance(lab.source, EngineSource):
        raise ValueError("other systems need a model that transformers can load")
    return Run(lab.run.folder, PeerSource(lab.source), lab.run.seed, lab.run.progress)
