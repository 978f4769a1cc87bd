"""`python -m gen_service.demo_model.training`: the stages that make the demo model, in order."""

from pathlib import Path
from typing import Annotated

import typer

from gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH, PROMPTS_PATH
from gen_service.demo_model.training import card as model_card
from gen_service.demo_model.training import corpus as text_corpus
from gen_service.demo_model.training import export as model_export
from gen_service.demo_model.training import held_out
from gen_service.demo_model.training import tokenizer as bpe
from gen_service.demo_model.training import train as trainer

app = typer.Typer(help="Makes the demo model: corpus, tokenizer, train, export, card.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option("--out", help="Working folder of all stages.")]
ModelFolder = Annotated[Path, typer.Option("--model", help="Folder of the exported model.")]


@app.command()
def corpus(
    out: Folder = Path("demo-training"),
    workers: Annotated[int, typer.Option(help="Converting processes.")] = 2,
) -> None:
    """Collect English prose from documentation here and in Debian packages (fetched with apt-get)."""
    text_corpus.build(out, workers)


@app.command()
def tokenizer(out: Folder = Path("demo-training")) -> None:
    """Train the byte-level BPE tokenizer on the corpus."""
    bpe.train(out)


@app.command()
def train(
    out: Folder = Path("demo-training"),
    minutes: Annotated[float, typer.Option(help="Training time in all; the schedule ends with it.")] = 60,
    threads: Annotated[int, typer.Option(help="Threads of the matrix products.")] = 2,
) -> None:
    """Train the model for a given time; run again to continue an interrupted run."""
    trainer.train(out, minutes, threads)


@app.command()
def export(
    out: Folder = Path("demo-training"),
    model: ModelFolder = DEMO_MODEL_PATH,
    prompts: Annotated[Path, typer.Option(help="Held-out prompts to write.")] = PROMPTS_PATH,
    human: Annotated[Path, typer.Option(help="Held-out documents to write.")] = HUMAN_TEXTS_PATH,
) -> None:
    """Write the trained model as a folder that transformers loads, and held-out texts to ship with it."""
    model_export.export(out, model)
    held_out.write(out, prompts, human)


@app.command()
def card(out: Folder = Path("demo-training"), model: ModelFolder = DEMO_MODEL_PATH) -> None:
    """Measure the exported model and write its model card."""
    model_card.write(out, model)


if __name__ == "__main__":
    app()
