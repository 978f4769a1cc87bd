"""`bench schemas`: what filters take of a step where JSON schemas leave few tokens, beside plain text."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.bench.figures import show
from ttmark.evaluation.bench.generation import EngineOptions
from ttmark.evaluation.bench.small_schemas import SMALL_SCHEMAS
from ttmark.evaluation.bench.workload import CHAT, Measurement, Workload
from ttmark.evaluation.options import Json
from ttmark.evaluation.report.result import table_by
from ttmark.gen_service.decoding.json_grammar import JsonGrammars

_BRANCHES = 8
_TOP_K = (int(CHAT["top_k"]), 0)


@dataclass(frozen=True, slots=True)
class SchemaSpeed:
    """One kind of text under one top-k, the medians of the rounds.

    Attributes:
        per_cpu_second: tokens.
        share_of_filters: what penalties, grammars and filters take of the time of the steps.
    """

    text: str
    top_k: int
    per_cpu_second: float
    share_of_filters: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemas(EngineOptions):
    """What filters take of a step under 25 JSON schemas and of plain text, with top-k and without."""

    name: ClassVar[str] = "schemas"

    tokens: Annotated[int, typer.Option(min=4, help="Most tokens of each completion.")] = 48
    rounds: Annotated[int, typer.Option(min=1, help="In each, every kind of text has its turn.")] = 3
    json: Json = None

    def run(self) -> None:
        measured = list(self._medians())
        shares = {(each.text, each.top_k): each.share_of_filters for each in measured}
        table = table_by(
            f"{len(SMALL_SCHEMAS)} completions at once, pairs, b = {_BRANCHES}",
            measured,
            {
                "text": lambda row: row.text,
                "top-k": lambda row: str(row.top_k),
                "tokens per CPU second": lambda row: f"{row.per_cpu_second:.1f}",
                "share of filters": lambda row: f"{row.share_of_filters:.3f}",
                f"over that of top-k {_TOP_K[0]}": lambda row: (
                    f"{row.share_of_filters / shares[row.text, _TOP_K[0]]:.2f}"
                ),
            },
            ("Temperature {temperature:g}, top-p {top_p:g}; the medians of the rounds.".format(**CHAT),),
        )
        show([table], measured, self.json, [f"{each.text}, top-k {each.top_k}" for each in measured])

    def _medians(self) -> Iterator[SchemaSpeed]:
        taken: dict[tuple[str, int], list[Measurement]] = defaultdict(list)
        with self.folder() as folder:
            embedded = self.embedded(folder, len(SMALL_SCHEMAS))
            grammars = JsonGrammars(embedded.tokenizer, embedded.eos_token_ids)
            texts = {"schemas": [grammars.compile(schema) for schema in SMALL_SCHEMAS], "plain": []}
            with self.started(embedded) as ours:
                ours.measure(Workload(len(SMALL_SCHEMAS), 4), 2, max_branches=_BRANCHES)
                for number in range(self.rounds):
                    for text, own in texts.items():
                        for top_k in _TOP_K if number % 2 else reversed(_TOP_K):
                            workload = Workload(
                                len(SMALL_SCHEMAS), self.tokens, filters=CHAT | {"top_k": top_k}
                            )
                            found = ours.measure(workload, 2, max_branches=_BRANCHES, grammars=own)
                            taken[text, top_k].append(found)
                    typer.echo(f"measured round {number + 1}", err=True)
        for (text, top_k), rounds in sorted(taken.items(), reverse=True):
            rates = [each.rates.per_cpu_second for each in rounds if each.rates is not None]
            shares = [each.details["share_of_filters"] for each in rounds]
            yield SchemaSpeed(text, top_k, median(rates), median(shares))
