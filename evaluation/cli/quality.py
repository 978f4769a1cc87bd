"""`ttmark eval quality`: are marked answers as good, as long and as varied as unmarked ones?"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import typer

from ttmark.evaluation.cli.measured_run import as_served, measured_run
from ttmark.evaluation.conformance.quality_after_attacks import nats_of
from ttmark.evaluation.experiment_cells import SETTINGS, Setting
from ttmark.evaluation.options import (
    DEMO,
    Batch,
    Model,
    Out,
    Prompts,
    Seed,
    Threads,
    chosen_model,
    chosen_prompts,
    model_path,
    run_folder,
)
from ttmark.evaluation.quality import measures
from ttmark.evaluation.quality.arms import EACH, KINDS, ONE_KEY, OURS, UNMARKED, AnswerSource, Arm
from ttmark.evaluation.quality.equivalence import LEAST_CLUSTERS
from ttmark.evaluation.report import Result
from ttmark.evaluation.run_folder import Questions, Run
from ttmark.evaluation.run_manifest import command_line, machine, versions
from ttmark.evaluation.text_files import read_field

PROMPTS_PATH = Path(measures.__file__).with_name("prompts.jsonl")
"""Two questions, then one of fact, and so on, in SmolLM2's chat template."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Marked answers beside unmarked ones: equivalent within stated margins, changed, or undecided yet.

    Each prompt has eight answers of each arm, four by one key and four by keys of their own. A run that is
    stopped goes on where it was; more --answers add to those that there are.
    """

    name: ClassVar[str] = "quality"

    answers: Annotated[
        int,
        typer.Option(min=LEAST_CLUSTERS * EACH, help="Of each arm; rounded up to eights."),
    ] = 4000
    tokens: Annotated[int, typer.Option(min=8, help="Most tokens of an answer.")] = 128
    arms: Annotated[
        tuple[str, ...],
        typer.Option(
            "--arm",
            help=f"{', '.join(KINDS)}; may be repeated. gumbel:800 has 800 answers.",
            show_default="all",
        ),
    ] = tuple(KINDS)
    setting: Annotated[Setting, typer.Option(help="Sampling.")] = Setting.SMOLLM2
    judge: Annotated[
        str | None,
        typer.Option(
            help="Model of the perplexity: another one than writes, as --model; default: demo beside others."
        ),
    ] = None
    judged: Annotated[int, typer.Option(min=1, help="Answers of an arm whose perplexity is measured.")] = 2400
    dictionary: Annotated[
        str, typer.Option(help="hunspell's: a language that comes with it, or a path without .dic.")
    ] = "en_US"
    model: Model = None
    prompts: Prompts = None
    out: Out = None
    seed: Seed = 0
    threads: Threads = None
    batch: Batch = 32

    def run(self) -> None:
        name = chosen_model(self.model)
        prompts = chosen_prompts(self.prompts, name, PROMPTS_PATH)
        folder = self.out or run_folder(self.model) / self.name
        settings = as_served(folder, self.threads, self.batch)

        def source(path: str) -> AnswerSource:
            self._counts()
            if self.judge is not None and model_path(self.judge) == path:
                raise ValueError(f"--judge {name}: the writer does not judge itself")
            return AnswerSource(path, prompts, settings)

        measured_run(name, prompts, folder, self.seed, settings, source, partial(self._measured, prompts))

    def _measured(self, prompts: Path, run: Run, source: AnswerSource) -> Result:
        """Writes the answers that are missing and compares each arm with the unmarked one."""
        counts = self._counts()
        count = max(counts.values())
        numbers = [place // EACH % len(source.prompts) for place in range(count)]
        lines = zip(read_field(prompts, "prompt"), read_field(prompts, "answer", ""), strict=True)
        facts = [answer or None for prompt, answer in lines if prompt]
        listed, judge, setting = measures.word_list(self.dictionary), self._judge(), SETTINGS[self.setting]
        questions = None
        if judge is not None:
            questions = Questions(
                run.folder, nats_of(Path(model_path(judge))), run.progress, "perplexity.jsonl"
            )

        def of_arm(kind: str, count: int) -> measures.Measured:
            answers = run.texts(Arm(None, 1, setting, self.tokens, kind=kind), count)
            texts = [source.tokenizer.decode(one.token_ids).strip() for one in answers]
            found = measures.measured(answers, self.tokens)
            found[measures.DISTINCT] = measures.distinct(texts, EACH, ONE_KEY)
            if questions is not None:
                asked = [(f"nats of {judge}", None, text) for text in texts[: self.judged]]
                nats = questions.answers(f"perplexity, {kind}", asked)
                found[measures.PERPLEXITY] = measures.per_token(nats, found[measures.LENGTH])
            if listed is not None:
                found[measures.UNLISTED] = measures.unlisted(texts, listed)
            found[measures.MATCH] = measures.matches(texts, [facts[number] for number in numbers[:count]])
            return found

        unmarked = of_arm(UNMARKED, count)
        verdicts = {
            kind: measures.compare(of_arm(kind, some), of_arm(UNMARKED, some), numbers[:some])
            for kind, some in counts.items()
        }
        notes = [
            f"Answers of up to {self.tokens} tokens, {setting}, to {len(set(numbers))}"
            f" prompts; of each {EACH} {ONE_KEY} are by one key, each other by its own. Prompts, and so keys,"
            " are clusters. p-values are Holm's, over the measures of the arm.",
            "Equivalent: two one-sided tests at 5 %. Changed: not equivalent, and different at 5 %. Answers"
            " for 90 % power: where the truth is that nothing changes; to an undecided one at least as many"
            " again as there are.",
        ]
        if questions is not None:
            notes.append(f"Perplexity: of {judge}, of the first {self.judged:,} answers of an arm at most.")
        missing = {
            "perplexity under a third model (give --judge)": questions,
            "words that a list lacks (pip install chunspell)": listed,
            "exact match (no prompt has an `answer`)": next(filter(None, facts), None),
        }
        notes += [f"Not measured: {what}." for what, there in missing.items() if there is None]
        judged = {one.difference.margin for of in verdicts.values() for one in of}
        few = [margin.measure for margin, values in unmarked.items() if not np.isnan(values).all()]
        few = [name for name in few if name not in {margin.measure for margin in judged}]
        notes += [
            f"Not judged: {name}, which answers to fewer than {LEAST_CLUSTERS} prompts have." for name in few
        ]
        tables = [measures.margins_table([margin for margin in measures.ABOUT if margin in unmarked])]
        tables += [measures.verdicts_table(KINDS[kind].title, of, notes) for kind, of in verdicts.items()]
        data = [
            {"arm": kind, "answers": counts[kind], **one.stored()}
            for kind, of in verdicts.items()
            for one in of
        ]
        return Result(
            self.name, command_line(without="--out"), tuple(tables), tuple(data), machine(), versions()
        )

    def _counts(self) -> dict[str, int]:
        """Answers by arm, in eights."""
        found = {}
        for arm in self.arms:
            kind, _, count = arm.partition(":")
            if kind not in KINDS or not (count or "1").isdecimal():
                raise ValueError(f"--arm {arm}: there are {', '.join(KINDS)}; more answers: {OURS}:6400")
            found[kind] = -(-int(count or self.answers) // EACH) * EACH
        return found

    def _judge(self) -> str | None:
        """The given model, or the demo's, where that does not write itself."""
        return self.judge or (DEMO if chosen_model(self.model) != DEMO else None)
