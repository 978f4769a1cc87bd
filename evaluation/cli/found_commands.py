"""`ttmark eval changes`, `readings`, `found`: marked answers, a model that reads, what is found."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import torch
import typer

from ttmark.evaluation.changed_answers import (
    as_they_are,
    conversations,
    documents_of,
    read_documents,
    write_documents,
)
from ttmark.evaluation.cli.app_and_errors import one_clear_line
from ttmark.evaluation.command_line import command_words
from ttmark.evaluation.likelihood_power import measure_found, tables
from ttmark.evaluation.model_readings import KnownReadings, write_readings
from ttmark.evaluation.options import Human, Label, Lengths, Out, Texts, run_folder
from ttmark.evaluation.report.result import Result
from ttmark.evaluation.synonyms import Synonyms
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH
from ttmark.shared.tokenization import TextTokenizer

Documents = Annotated[Path, typer.Argument(help="JSONL that `ttmark eval changes` wrote.")]
Tokenizer = Annotated[Path, typer.Option(help="Folder with the tokenizer of the model that wrote.")]
File = Annotated[Path, typer.Option("--file", help="Written, as JSON lines.")]


@dataclass(frozen=True, slots=True)
class Changes:
    """Marked answers cut, edited, and put among texts by people: what `readings` and `found` are about.

    Or as they are, by a name (`--name`), or several as a conversation (`--conversations`).
    """

    name: ClassVar[str] = "changes"

    answers: Annotated[Path, typer.Argument(help="JSONL with `index`, `prf_key` (hex) and token `ids`.")]
    tokenizer: Tokenizer
    file: File
    texts: Texts = 200
    lengths: Lengths = (50, 100, 150)
    human: Human = None
    wordnet: Annotated[Path | None, typer.Option(help="Folder of WordNet's files, for synonyms.")] = None
    as_they_are: Annotated[
        str | None,
        typer.Option("--name", help="Takes answers as they are, whatever length; `found` names them so."),
    ] = None
    conversations: Annotated[
        bool, typer.Option("--conversations", help="Of five answers each, cut to the first length.")
    ] = False

    def run(self) -> None:
        with one_clear_line():
            tokenizer = TextTokenizer.load(self.tokenizer)
            if self.as_they_are:
                documents = as_they_are(self.answers, tokenizer, self.as_they_are, self.texts)
            elif self.conversations:
                documents = conversations(self.answers, tokenizer, self.lengths[0], self.texts)
            else:
                human = read_human_texts(self.human or HUMAN_TEXTS_PATH)
                synonyms = Synonyms.read(self.wordnet) if self.wordnet else None
                documents = documents_of(self.answers, tokenizer, human, self.lengths, self.texts, synonyms)
            write_documents(list(documents), self.file)


@dataclass(frozen=True, slots=True)
class ReadingsBy:
    """What a causal language model says of texts, on one core; goes on where it stopped."""

    name: ClassVar[str] = "readings"

    documents: Documents
    model: Annotated[str, typer.Option(help="Folder or hub id of the model that reads.")]
    file: File
    changes: Annotated[
        tuple[str, ...], typer.Option("--change", help="Reads these alone; may be repeated; default: all.")
    ] = ()

    def run(self) -> None:
        torch.set_num_threads(1)
        with one_clear_line():
            documents = read_documents(self.documents)
            chosen = [one for one in documents if not self.changes or one.change in self.changes]
            texts = [text for one in chosen for text, _ in one.messages]
            for left in write_readings(texts, self.model, self.file):
                if left % 20 == 0:
                    typer.echo(f"{left} texts left", err=True)


@dataclass(frozen=True, slots=True)
class Found:
    """What the likelihood ratio finds of marked answers, without a reader and with each of some."""

    name: ClassVar[str] = "found"

    documents: Documents
    tokenizer: Tokenizer
    readings: Annotated[
        tuple[str, ...], typer.Option("--readings", metavar="NAME=FILE", help="Of a reader; may be repeated.")
    ] = ()
    wrong_keys: Annotated[int, typer.Option(min=0, help="Tried on each text: false positives.")] = 0
    wrong_texts: Annotated[int, typer.Option(min=1, help="Texts that they are tried on.")] = 200
    label: Label = None
    out: Out = None

    def run(self) -> None:
        with one_clear_line():
            pairs = (text.partition("=") for text in self.readings)
            readers = {name: KnownReadings.read(Path(file)) for name, _, file in pairs}
            rows, nulls = measure_found(
                read_documents(self.documents),
                TextTokenizer.load(self.tokenizer),
                readers,
                self.wrong_keys,
                self.wrong_texts,
            )
        made = tables(rows, nulls)
        for table in made:
            typer.echo(table.markdown())
        data = (*(row.plain() for row in rows), *map(asdict, nulls))
        result = Result(self.name, command_words(self.name, self), made, data)
        result.labelled(self.label).made_here().save(run_folder(self.out))
