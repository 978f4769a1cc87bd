"""Options that the experiments share, and what they name."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, PROMPTS_PATH
from ttmark.gen_service.smollm2 import SMOLLM2

DEMO = "demo"
SMOLLM2_FOLDER = Path(".ttmark/models") / SMOLLM2
RUNS = Path(".ttmark/evaluation")

Model = Annotated[
    str | None,
    typer.Option(
        help=f"`smollm2`, `demo`, a hub id, or a folder with a causal language model;"
        f" default: smollm2 where it lies in {SMOLLM2_FOLDER.parent}, else demo."
    ),
]
Prompts = Annotated[
    Path | None,
    typer.Option(
        help="JSONL with the field `prompt`; default: those that ship for smollm2 or the demo model."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help=f"Folder of texts and results; a run resumes where it stopped. Default: the model's in {RUNS}."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of every key, text and resampling.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; default: torch's choice.")]
Batch = Annotated[int, typer.Option(min=1, help="Texts that are generated at the same time.")]

Texts = Annotated[int, typer.Option(min=2, help="Texts per cell.")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")]


def chosen_model(model: str | None) -> str:
    return model or (SMOLLM2 if SMOLLM2_FOLDER.is_dir() else DEMO)


def chosen_prompts(prompts: Path | None, model: str, chats: Path) -> Path:
    """The given file, or that of the demo model, or `chats`, which are in SmolLM2's template."""
    return prompts or (chats if model == SMOLLM2 else PROMPTS_PATH)


def run_folder(model: str | None) -> Path:
    """That of the chosen model: runs of different models do not mix."""
    return RUNS / re.sub(r"[^\w.-]+", "-", chosen_model(model)).strip("-.")


def model_path(model: str) -> str:
    """Folder or hub id of what the user calls a model.

    Raises:
        ValueError: smollm2 is not there.
    """
    if model == SMOLLM2 and not SMOLLM2_FOLDER.is_dir():
        raise ValueError(f"{SMOLLM2_FOLDER} is not there; `ttmark models get {SMOLLM2}` makes it")
    return {DEMO: str(DEMO_MODEL_PATH), SMOLLM2: str(SMOLLM2_FOLDER)}.get(model, model)
