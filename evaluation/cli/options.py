"""Options that the experiments share."""

from pathlib import Path
from typing import Annotated

import typer

from evaluation.settings import Setting
from gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH, PROMPTS_PATH

DEMO = "demo"
DEFAULT_OUT = Path(".ttmark/evaluation")
PAPER_SCHEMES = ("dipmark", "synthid", "mcmark")
SCHEMES = (*PAPER_SCHEMES, "gumbel")

Model = Annotated[str, typer.Option(help="`demo`, a hub id, or a folder with a causal language model.")]
Prompts = Annotated[
    Path | None, typer.Option(help="JSONL with the field `prompt`; default: the demo model's prompts.")
]
Out = Annotated[Path, typer.Option(help="Folder of texts and results; a run resumes where it stopped.")]
Label = Annotated[
    str | None,
    typer.Option(help="Added to the results' names: they lie beside those of other options."),
]
Seed = Annotated[int, typer.Option(help="Seed of every key, text and resampling.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; default: torch's choice.")]
Batch = Annotated[int, typer.Option(min=1, help="Texts that are generated at the same time.")]

Texts = Annotated[int, typer.Option(min=2, help="Texts per cell.")]
TextsBySetting = Annotated[
    list[int] | None,
    typer.Option("--texts", min=2, help="Texts per cell; repeated: of the first setting, the second, ..."),
]
TextsBySize = Annotated[
    list[int] | None,
    typer.Option("--texts", min=2, help="Texts per cell; repeated: of the first block size, the second, ..."),
]
Schemes = Annotated[list[str] | None, typer.Option("--scheme", help="May be repeated.")]
BlockSizes = Annotated[
    list[int] | None, typer.Option("--block-size", help="Tokens per block; may be repeated.")
]
Settings = Annotated[list[Setting] | None, typer.Option("--setting", help="Sampling; may be repeated.")]
OneSetting = Annotated[Setting, typer.Option("--setting", help="Sampling.")]
Length = Annotated[int, typer.Option(min=1, help="Length of the texts in tokens.")]
Lengths = Annotated[list[int] | None, typer.Option("--length", help="In tokens; may be repeated.")]
Human = Annotated[Path, typer.Option(help="JSONL, plain or .gz, with the field `text`: documents by people.")]

HUMAN = HUMAN_TEXTS_PATH


def model_path(model: str) -> str:
    """Folder or hub id of what the user calls a model."""
    return str(DEMO_MODEL_PATH) if model == DEMO else model


def prompts_path(prompts: Path | None) -> Path:
    """The given prompt file, or the demo model's."""
    return prompts or PROMPTS_PATH
