"""`ttmark bench`: measurements beside peers."""

from dataclasses import dataclass
from typing import Annotated

import torch
import typer

from ttmark.evaluation.bench.detect import OurDetectors, measure_detectors, timing_table
from ttmark.evaluation.bench.generation import Generate
from ttmark.evaluation.bench.in_vllm import InVllm
from ttmark.evaluation.bench.output import show
from ttmark.evaluation.cli.app_and_errors import new_app, one_clear_line
from ttmark.evaluation.options import Human, Json, chosen_model, model_path
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH
from ttmark.shared.commands_of_dataclasses import command_of
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing
from ttmark.shared.watermark import scheme_names


@dataclass(frozen=True, slots=True)
class Detect:
    """Our bulk detection beside the bare tokenizer and transformers' SynthID detector, one core."""

    tokenizer: Annotated[
        str | None,
        typer.Option(help="`smollm2`, `demo`, or a folder with a tokenizer; default: as of `ttmark eval`."),
    ] = None
    scheme: Annotated[str, typer.Option(help=f"One of {', '.join(scheme_names())}.")] = "synthid"
    block_size: Annotated[int, typer.Option(min=1, max=3, help="Tokens per block.")] = 2
    documents: Annotated[int, typer.Option(min=1)] = 256
    tokens: Annotated[int, typer.Option(min=10, help="Of each document.")] = 400
    human: Human = None
    json: Json = None

    def run(self, ours: OurDetectors) -> None:
        """`ours` makes the detection modes that are compared with their peers."""
        torch.set_num_threads(1)
        with one_clear_line((TokenizerMissing, OSError, ValueError)):
            tokenizer = TextTokenizer.load(model_path(chosen_model(self.tokenizer)))
            detectors = ours(tokenizer, self.scheme, self.block_size)
            human = self.human or HUMAN_TEXTS_PATH
            timings = measure_detectors(tokenizer, detectors, human, self.documents, self.tokens)
        title = (
            f"Detection of {self.documents} documents of {self.tokens} tokens, {self.scheme},"
            f" r = {self.block_size}"
        )
        notes = ("From text to verdict, tokenization included; the best of three turns.",)
        show([timing_table(title, "tokens", timings, notes)], timings, self.json)


def bench_app(ours: OurDetectors) -> typer.Typer:
    """The command line; `ours` makes the detection modes that `detect` compares with their peers."""
    app = new_app("Benchmarks side by side with their peers.")
    app.command("detect")(command_of(lambda options: options.run(ours), Detect))
    for kind in (Generate, InVllm):
        app.command(kind.name)(command_of(kind.run, kind))
    return app
