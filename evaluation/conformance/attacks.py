"""What attacks leave of a mark, and of the texts: the measurement behind an attack report."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.progress import Progress

from ttmark.evaluation.adversaries.catalogue import DEAR, FORGING, MODELS, Attack
from ttmark.evaluation.conformance.figures import Figure, figures_of
from ttmark.evaluation.conformance.plan import FOUND_RATES, prompts
from ttmark.evaluation.conformance.quality_after_attacks import QualityChange, QualityLeft
from ttmark.evaluation.endpoint import IN_FLIGHT, EndpointClient
from ttmark.evaluation.experiment_cells import sampling_seed
from ttmark.evaluation.run_folder import Questions
from ttmark.evaluation.text_edits import Material
from ttmark.evaluation.unmarked_texts import TextSet

UNTOUCHED, AS_WRITTEN = "no attack", "as written"
UNMARKED, BY_PEOPLE = "no mark", "texts by people"
AT_ONCE = 4
"""Texts that a model is asked about at the same time."""


@dataclass(frozen=True, slots=True)
class Row:
    """One attack at one strength.

    Attributes:
        kind: one of `KINDS` of the catalogue, `FORGING`, `UNTOUCHED` or `UNMARKED`.
        figures: how many are found, one for each rate.
        kept: None for texts that are not attacked, and for forged ones.
    """

    kind: str
    attack: str
    name: str
    cost: str
    figures: tuple[Figure, ...]
    kept: QualityLeft | None

    def stored(self) -> dict[str, Any]:
        """For a report; its figures stand apart, so that reports can be compared."""
        kept = None if self.kept is None else asdict(self.kept)
        return {"kind": self.kind, "attack": self.attack, "name": self.name, "cost": self.cost, "kept": kept}


@dataclass(frozen=True, slots=True)
class AttackRun:
    """Attacks marked texts and asks a detector.

    Attributes:
        people: texts without a mark, from which attacks also take their words.
        questions: log10 p of a text.
        model_texts: how many texts a model rewrites, or questions are asked about, at most.
    """

    texts: TextSet
    people: TextSet
    attacks: Sequence[Attack]
    questions: Questions[None]
    quality: QualityChange
    material: Material
    seed: int
    model_texts: int
    progress: Progress

    def measure(self) -> Iterator[Row]:
        """First the texts as they are and texts by people; then every attack, the weakest strength first."""
        texts = self.texts.texts
        yield self._row(UNTOUCHED, AS_WRITTEN, AS_WRITTEN, "", texts, texts)
        figures = self._figures(UNMARKED, BY_PEOPLE, self.people.texts)
        yield Row(UNMARKED, BY_PEOPLE, BY_PEOPLE, "", figures, None)
        every = sum(len(attack.strengths) for attack in self.attacks)
        task = self.progress.add_task("attacks", total=every)
        for attack in self.attacks:
            before = texts[: self.model_texts] if attack.cost in DEAR else texts
            for strength in attack.strengths:
                after = self._attacked(attack, strength, before)
                yield self._row(attack.kind, attack.name, attack.title(strength), attack.cost, before, after)
                self.progress.advance(task)

    def _attacked(self, attack: Attack, strength: float, texts: Sequence[str]) -> list[str]:
        """Each text with randomness of its own, so that it does not depend on the others."""
        task = self.progress.add_task(attack.title(strength), total=len(texts))

        def one(number: int) -> str:
            generator = np.random.default_rng(sampling_seed(self.seed, "attack", attack.name, number))
            after = attack.edit(texts[number], strength, self.material, generator)
            self.progress.advance(task)
            return after

        with ThreadPoolExecutor(AT_ONCE if attack.kind == MODELS else 1) as pool:
            attacked = list(pool.map(one, range(len(texts))))
        self.progress.remove_task(task)
        return attacked

    def _row(
        self, kind: str, attack: str, name: str, cost: str, before: Sequence[str], after: Sequence[str]
    ) -> Row:
        figures = self._figures(kind, name, after)
        kept = None if kind == FORGING else self.quality.kept(name, before, after)
        return Row(kind, attack, name, cost, figures, kept)

    def _figures(self, kind: str, name: str, texts: Sequence[str]) -> tuple[Figure, ...]:
        log10_p = self.questions.answers(name, [("p", None, text) for text in texts])
        return tuple(figures_of(kind, name, log10_p, FOUND_RATES))


def collected(client: EndpointClient, asked: Sequence[str], count: int, progress: Progress) -> list[str]:
    """So many answers of an endpoint to the prompts in turn; those that came before are not asked again."""
    task, texts = progress.add_task("answers collected", total=count), list[str]()
    for start in range(0, count, IN_FLIGHT):
        numbers = range(start, min(count, start + IN_FLIGHT))
        texts += client.ask_all([asked[number % len(asked)] for number in numbers], list(numbers))
        progress.advance(task, len(numbers))
    progress.remove_task(task)
    return texts


def shipped_prompts() -> list[str]:
    """The English ones of conformance runs: prose, dialogue, code, lists, JSON."""
    return [one.prompt for one in prompts() if one.language == "en"]
