"""`ttmark eval results`: our mark and those of others beside each other, by today's detectors, in one run."""

import os
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ttmark.evaluation.cli.measured_run import as_served, measured_run
from ttmark.evaluation.experiment_cells import SETTINGS, Setting
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
from ttmark.evaluation.report import Result, Table, table_by
from ttmark.evaluation.results import experiment
from ttmark.evaluation.results.detectors import MakeService
from ttmark.evaluation.results.experiment import (
    ANSWER_TOKENS,
    EDITS,
    OF_ACCOUNT,
    PROSE,
    TRIED,
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

    def run(self, service: MakeService) -> None:
        """`service`: what asks the detection service."""
        name = chosen_model(self.model)
        prompts = chosen_prompts(self.prompts, name, PROMPTS_PATH)
        folder = self.out or run_folder(self.model) / self.name
        settings = as_served(folder, self.threads, self.batch)

        def source(path: str) -> MarkedSource:
            for arm in self.arms:
                watermark_of(arm, 2)
            if wrong := [one for one in self.readers if not one.partition("=")[2]]:
                raise ValueError(f"--reader {wrong[0]}: give a name and a model, as in gemma=FOLDER")
            return MarkedSource(path, prompts, settings)

        measured_run(
            name, prompts, folder, self.seed, settings, source, partial(self._measured, name, service)
        )

    def _measured(self, name: str, service: MakeService, run: Run, source: MarkedSource) -> Result:
        """Writes the texts that are missing and asks every detector about all of them."""
        given = (one.partition("=")[::2] for one in self.readers or (f"the writer={name}",))
        readers = {of: model_path(model) for of, model in given}
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
        prepared = model_path(name), self.seed, readers, service
        experiment.prepare(*prepared)
        workers = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), experiment.prepare, prepared)
        with workers as pool:
            rows, together, of_people = self._asked(run, source, pool, cells, account)
        notes = (
            f"{self.texts} texts a row, {setting}, each with a key of its own, all with their full length"
            " (an end of text may not come before); asked about as words, cut and decoded. Edited: words are"
            " substituted, deleted and inserted, a third each. Brackets are 95 % intervals.",
            f"Keys: that are tried. One of ours is a pool of 4, so {TRIED} are 16; our likelihood ratio is"
            " asked about the one that wrote.",
        )
        shown, data = experiment.tables(rows, notes), [*map(asdict, rows)]
        if OURS in self.arms:
            shown += [_together_table(together), _people_table(of_people)]
            data += [*map(asdict, together), *of_people]
        command = command_line(without="--out")
        return Result(self.name, command, tuple(shown), tuple(data), machine(), versions())

    def _asked(
        self,
        run: Run,
        source: MarkedSource,
        pool: ProcessPoolExecutor,
        cells: Sequence[Marked],
        account: Marked,
    ) -> tuple[list[Found], list[Together], list[dict[str, object]]]:
        """What every detector finds, asked in as many processes as there are cores."""

        def decoded(cell: Marked, count: int, tokens: int) -> list[str]:
            return [source.tokenizer.decode(one.token_ids[:tokens]) for one in run.texts(cell, count)]

        of_cells, of_accounts, of_people = [], [], []
        if OURS in self.arms:  # they take longest
            answers = decoded(account, self.accounts * OF_ACCOUNT, ANSWER_TOKENS)
            for fpr in _ALARMS:
                given = account, self.peoples, fpr, self.seed
                of_people.append(pool.submit(experiment.asked_of_people, *given))
            for share, number in product(EDITS[:2], experiment.ANSWERS):
                asked = account, answers, number, share, self.texts, self.seed
                of_accounts.append(pool.submit(experiment.asked_together, *asked))
        for cell in cells:
            lengths = self.lengths if cell.kind == PROSE else (self.of_kinds,)
            texts = {tokens: decoded(cell, self.texts, tokens) for tokens in lengths}
            edits = EDITS if cell.kind == PROSE else EDITS[:1]
            of_cells += [
                pool.submit(experiment.asked_rows, cell, which, texts, edits, self.seed)
                for which in experiment.detectors_of(cell)
            ]
        futures: list[Future[Any]] = [*of_people, *of_accounts, *of_cells]
        task = run.progress.add_task("asking", total=len(futures))
        for future in futures:
            future.add_done_callback(lambda _: run.progress.advance(task))
        rows = [row for future in of_cells for row in future.result()]
        together = [future.result() for future in of_accounts]
        return rows, together, [future.result() for future in of_people]


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
