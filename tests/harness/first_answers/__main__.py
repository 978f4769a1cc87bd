"""What a stranger gets: everyday requests to a running service, with nothing set but the message.

    python -m tests.harness.first_answers --token-file .ttmark/token --json answers.json
    python -m tests.harness.first_answers --sampling '{"temperature": 0.7, "top_p": 0.9, "top_k": 50}'

Counts answers that are marked, that loop and that the detection service finds, read from their words. Whether
an answer makes sense is for a reader: `--json` keeps every answer.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from openai import APIError, AsyncOpenAI
from rich.console import Console
from rich.table import Table

from ttmark import AsyncClient
from ttmark.evaluation.text_quality import has_loop

REQUESTS = Path(__file__).with_name("requests.txt")
AT_ONCE = 8
MOST_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, and what the detection service says of its words.

    Attributes:
        loops: eight words in a row occur three times.
    """

    request: str
    text: str
    status: str
    tokens: int
    finish_reason: str
    loops: bool
    verdict: str
    log10_p: float


def main(
    token_file: Annotated[Path, typer.Option(help="Access token of both services.")] = Path(".ttmark/token"),
    generation: Annotated[
        str, typer.Option(help="Address of the generation service.")
    ] = "http://127.0.0.1:8000",
    detection: Annotated[
        str, typer.Option(help="Address of the detection service.")
    ] = "http://127.0.0.1:8001",
    sampling: Annotated[
        list[str] | None, typer.Option(help="JSON fields to send beside the message; once for each round.")
    ] = None,
    requests: Annotated[Path, typer.Option(help="Requests, one a line.")] = REQUESTS,
    json_file: Annotated[Path | None, typer.Option("--json", help="Keep every answer here.")] = None,
    show: Annotated[int, typer.Option(help="Print so many answers in full.")] = 0,
) -> None:
    """Ask everyday requests and count what is marked, loops and is found."""
    asked, token = requests.read_text().splitlines(), token_file.read_text().strip()
    rounds = {
        fields: asyncio.run(_round(asked, json.loads(fields), token, generation, detection))
        for fields in sampling or ["{}"]
    }
    console = Console()
    for answers in rounds.values():
        for answer in answers[:show]:
            console.rule(answer.request)
            console.print(answer.text, markup=False, highlight=False)
    console.print(_table(rounds))
    if json_file:
        kept = {fields: [asdict(answer) for answer in answers] for fields, answers in rounds.items()}
        json_file.write_text(json.dumps(kept, indent=1, ensure_ascii=False))


async def _round(
    asked: Sequence[str], fields: dict[str, Any], token: str, generation: str, detection: str
) -> list[Answer]:
    slots = asyncio.Semaphore(AT_ONCE)
    async with (
        AsyncOpenAI(base_url=f"{generation}/v1", api_key=token, timeout=MOST_SECONDS, max_retries=0) as app,
        AsyncClient(detection, token) as moderator,
    ):
        model = (await app.models.list()).data[0].id

        async def ask(request: str) -> Answer:
            async with slots:
                try:
                    said = await app.chat.completions.create(
                        model=model, messages=[{"role": "user", "content": request}], extra_body=fields
                    )
                except APIError as error:
                    return Answer(request, str(error), "failed", 0, "", loops=False, verdict="", log10_p=0.0)
            choice = said.choices[0]
            text = choice.message.content or ""
            found = (await moderator.detect(text)).results[0]
            return Answer(
                request,
                text,
                said.model_extra["watermark"]["status"] if said.model_extra else "none",
                said.usage.completion_tokens if said.usage else 0,
                choice.finish_reason,
                _loops(text),
                found.verdict,
                0.0 if found.log10_p is None else found.log10_p,
            )

        return list(await asyncio.gather(*map(ask, asked)))


def _loops(text: str) -> bool:
    numbers: dict[str, int] = {}
    return has_loop([numbers.setdefault(word, len(numbers)) for word in text.lower().split()])


def _table(rounds: dict[str, list[Answer]]) -> Table:
    table = Table("sent", "answers", "marked", "loop", "found", "tokens, median", "cut at the length")
    for fields, answers in rounds.items():
        lengths = sorted(answer.tokens for answer in answers)
        counts = (
            len(answers),
            sum(answer.status in ("watermarked", "partial") for answer in answers),
            sum(answer.loops for answer in answers),
            sum(answer.verdict == "watermarked" for answer in answers),
            lengths[len(lengths) // 2],
            sum(answer.finish_reason == "length" for answer in answers),
        )
        table.add_row(fields, *map(str, counts))
    return table


if __name__ == "__main__":
    typer.run(main)
