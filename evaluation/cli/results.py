"""`ttmark eval results`: our mark and those of others beside each other, by today's detectors, in one run."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.cli.measured_run import as_served, measured_run
from ttmark.evaluation.experiment_cells import SETTINGS, Setting
from ttmark.evaluation.intervals import clopper_pearson
from ttmark.evaluation.options import (
    Batch,
    Model,
    Out,
    Prompts,
    Seed,
    Texts,
    Threads,
    chosen_model,
    chosen_prompts,
    model_path,
    run_folder,
)
from ttmark.evaluation.quality.arms import OURS
from ttmark.evaluation.report.result import Result, Table, table_by
from ttmark.evaluation.results import experiment
from ttmark.evaluation.results.detectors import reader_of
from ttmark.evaluation.results.experiment import (
    ACCOUNT,
    ANSWER_TOKENS,
    EDITS,
    OF_ACCOUNT,
    PROSE,
    TRIED,
    Detectors,
    Found,
    Marked,
    MarkedSource,
    Together,
    titles,
    watermark_of,
)
from ttmark.evaluation.run_folder import Run
from ttmark.evaluation.run_manifest import command_line, machine, versions

PROMPTS_PATH = Path(experiment.__file__).with_name("prompts.jsonl")
_IN_KINDS = (OURS, "vllm")
"""Marks of which texts of other kinds are written, too."""
_ALARMS = (1e-1, 1e-2)


@dataclass(frozen=True, slots=True)
class Results:
    """What is found of marked texts, ours and those of other systems, as words, by today's detectors.

    Each mark writes by the same prompts; every text has a key of its own. A run that is stopped goes on with
    the texts that it has.
    """

    name: ClassVar[str] = "results"

    texts: Texts = 200
    lengths: Annotated[
        tuple[int, ...], typer.Option("--length", min=8, help="In tokens; may be repeated.")
    ] = (50, 100, 200, 400)
    of_kinds: Annotated[int, typer.Option(min=8, help="Tokens of texts of other kinds than prose.")] = 200
    arms: Annotated[
        tuple[str, ...],
        typer.Option(
            "--arm",
            help=f"{', '.join(titles())}, or a scheme and the tokens of its blocks as in dipmark:2; may be"
            " repeated.",
            show_default="all",
        ),
    ] = tuple(titles())
    readers: Annotated[
        tuple[str, ...],
        typer.Option(
            "--reader",
            metavar="NAME=MODEL",
            help="A language model that reads along; may be repeated. Default: the one that writes.",
        ),
    ] = ()
    accounts: Annotated[int, typer.Option(min=1, help="Made-up accounts that write with our mark.")] = 20
    peoples: Annotated[int, typer.Option(min=1, help="Made-up accounts of texts by people.")] = 2000
    setting: Annotated[Setting, typer.Option(help="Sampling.")] = Setting.SMOLLM2
    model: Model = None
    prompts: Prompts = None
    out: Out = None
    seed: Seed = 0
    threads: Threads = None
    batch: Batch = 32

    def run(self) -> None:
        name = chosen_model(self.model)
        prompts = chosen_prompts(self.prompts, name, PROMPTS_PATH)
        folder = self.out or run_folder(None, self.model) / self.name
        settings = as_served(folder, self.threads, self.batch)

        def source(path: str) -> MarkedSource:
            for arm in self.arms:
                watermark_of(arm, 2)
            if wrong := [one for one in self.readers if not one.partition("=")[2]]:
                raise ValueError(f"--reader {wrong[0]}: give a name and a model, as in gemma=FOLDER")
            return MarkedSource(path, prompts, settings)

        measured_run(name, prompts, folder, self.seed, settings, source, partial(self._measured, name))

    def _measured(self, name: str, run: Run, source: MarkedSource) -> Result:
        """Writes the texts that are missing and asks every detector about all of them."""
        given = (one.partition("=")[::2] for one in self.readers or (f"the writer={name}",))
        readers = {of: reader_of(Path(model_path(model))) for of, model in given}
        detectors = Detectors(source.tokenizer, self.seed, readers)
        rows: list[Found] = []
        setting, longest = SETTINGS[self.setting], max(self.lengths)
        kinds = [kind for kind in source.of_kind if kind != PROSE]
        cells = [Marked(None, 1, setting, longest, arm=arm) for arm in self.arms]
        cells += [
            Marked(None, 1, setting, self.of_kinds, arm=arm, kind=kind)
            for kind in kinds
            for arm in self.arms
            if arm in _IN_KINDS
        ]
        account = Marked(None, 1, setting, ANSWER_TOKENS, of_key=OF_ACCOUNT)
        for cell in cells:  # the engine writes all of them first
            run.texts(cell, self.texts)
        if OURS in self.arms:
            run.texts(account, self.accounts * OF_ACCOUNT)
        source.close()
        for cell in cells:
            written = run.texts(cell, self.texts)
            lengths = self.lengths if cell.kind == PROSE else (self.of_kinds,)
            texts = {
                tokens: [source.tokenizer.decode(one.token_ids[:tokens]) for one in written]
                for tokens in lengths
            }
            edits = EDITS if cell.kind == PROSE else EDITS[:1]
            task = run.progress.add_task(f"{cell.title}, asked", total=None)
            rows += experiment.found_rows(
                detectors, cell, texts, edits, self.seed, partial(run.progress.advance, task)
            )
            run.progress.remove_task(task)
        notes = (
            f"{self.texts} texts a row, {setting}, each with a key of its own, all with their full length"
            " (an end of text may not come before); asked about as words, cut and decoded. Edited: words are"
            " substituted, deleted and inserted, a third each. Brackets are 95 % intervals.",
            f"Keys: that are tried. One of ours is a pool of 4, so {TRIED} are 16; our likelihood ratio is"
            " asked about the one that wrote.",
        )
        shown, data = experiment.tables(rows, notes), [*map(asdict, rows)]
        if OURS in self.arms:
            together = self._together(run, source, detectors, account)
            of_people = self._of_people(run, detectors, account)
            shown += [_together_table(together), _people_table(of_people)]
            data += [*map(asdict, together), *of_people]
        command = command_line(without="--out")
        return Result(self.name, command, tuple(shown), tuple(data), machine(), versions())

    def _together(
        self, run: Run, source: MarkedSource, detectors: Detectors, account: Marked
    ) -> list[Together]:
        """Answers of one account to different questions, as one question."""
        answers = run.texts(account, self.accounts * OF_ACCOUNT)
        texts = [source.tokenizer.decode(one.token_ids) for one in answers]
        task = run.progress.add_task("accounts", total=2 * len(experiment.ANSWERS))
        advance = partial(run.progress.advance, task)
        found = experiment.account_rows(detectors.account(account), texts, self.texts, self.seed, advance)
        run.progress.remove_task(task)
        return found

    def _of_people(self, run: Run, detectors: Detectors, account: Marked) -> list[dict[str, object]]:
        """How many accounts of people are found, which no key wrote."""
        finds = detectors.account(account)
        counts = dict.fromkeys(_ALARMS, 0)
        task = run.progress.add_task("accounts of people", total=self.peoples)
        for number, texts in enumerate(experiment.peoples_accounts(self.peoples, self.seed)):
            for fpr in _ALARMS:
                counts[fpr] += finds(texts, (self.accounts + number) * OF_ACCOUNT, fpr)
            run.progress.advance(task)
        run.progress.remove_task(task)
        return [
            {ACCOUNT: "people", "fpr": fpr, "alarms": count, "share": clopper_pearson(count, self.peoples)}
            for fpr, count in counts.items()
        ]


def _together_table(rows: Sequence[Together]) -> Table:
    return table_by(
        f"Answers of {ANSWER_TOKENS} tokens of one account, found together at 1e-5",
        [row for row in rows if not row.edited],
        {
            "answers": lambda row: row.answers,
            "whole": lambda row: row.share.percent(),
            "10% of the words edited": lambda row: next(
                one.share.percent() for one in rows if one.edited and one.answers == row.answers
            ),
        },
        (
            f"{rows[0].trials} trials a row: answers to different questions drawn from one account's"
            f" {OF_ACCOUNT}, asked about as messages of one conversation with {TRIED} keys of 4.",
        ),
    )


def _people_table(rows: Sequence[dict[str, object]]) -> Table:
    return table_by(
        "Accounts of texts by people that are called watermarked",
        rows,
        {
            "promised": lambda row: row["fpr"],
            "alarms": lambda row: row["alarms"],
            "share": lambda row: row["share"],
        },
        (
            "5 to 20 texts of 30 to 80 words each, a third of them quotations that many accounts share;"
            f" {TRIED} keys of 4.",
        ),
    )
