"""`ttmark eval pairs`: ROUGE, BLEU and BERTScore of texts that the user brings."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from evaluation.cli.lab import command_line
from evaluation.cli.options import DEFAULT_OUT, Out
from evaluation.quality.pairs import bert_scorer, pairs_table, read_pairs, score_pairs
from evaluation.report.result import Result


def pairs(
    file: Annotated[Path, typer.Argument(help="JSONL with `candidate`, `reference` and maybe `system`.")],
    bert_model: Annotated[str | None, typer.Option(help="Model for BERTScore (needs bert-score).")] = None,
    out: Out = DEFAULT_OUT,
) -> None:
    """ROUGE, BLEU and BERTScore against references (the paper's Table 6), for tasks of your own."""
    try:
        scores = score_pairs(read_pairs(file), bert_scorer(bert_model) if bert_model else None)
    except (ValueError, OSError) as error:
        typer.echo(f"ttmark: {error}", err=True)
        raise typer.Exit(1) from error
    table = pairs_table(scores)
    Console().print(table.rich())
    Result("pairs", command_line(), (table,), (), tuple(asdict(score) for score in scores)).save(out)
