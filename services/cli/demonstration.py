"""What `ttmark up` shows: one text goes round, through HTTP, as a client would do it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from services.local.processes import LocalServices
from services.runtime import StartupError
from shared.client import ClientError, TTMarkClient
from shared.schemas.detection import DetectionResult, DirectRequest, Document

PROMPT = "The command reads the file and"
TOKENS = 200
HUMAN_TEXT = (
    "We had meant to leave the house by six, before the heat came up the valley, but the dog had other "
    "plans. She had found the one gap in the fence that my brother swore he had mended, and by the time "
    "we had coaxed her back from the neighbour's hens with half of our breakfast, the sun stood well over"
    " the ridge. Nobody spoke much on the first climb. My aunt, who is seventy and walks like a clock, "
    "was soon a small red hat far ahead of us. At the spring we found her sitting on the wall with her "
    "boots off, eating plums out of a paper bag, and she asked whether we had stopped to build something "
    "on the way. The water there tastes of iron and is so cold that it hurts your teeth. We filled every "
    "bottle, lay in the grass for a while and argued about which of the peaks had been the one in "
    "grandfather's photograph, and none of us won. In the afternoon the clouds that had looked so "
    "harmless all morning came down over the pass, and we turned back at the hut."
)


@dataclass(frozen=True)
class Outcome:
    """The three verdicts of the demonstration."""

    marked: DetectionResult
    other_key: DetectionResult
    human: DetectionResult


def demonstrate(services: LocalServices, console: Console) -> Outcome:
    """Generates a text, detects it under its key, under another key, and tries a human text.

    Raises:
        StartupError: a service refused a request.
    """
    setup = services.setup
    try:
        with (
            TTMarkClient(services.gen_url, setup.token) as generation,
            TTMarkClient(services.detect_url, setup.token) as detection,
        ):
            completion = generation.complete(
                {
                    "model": setup.model_id,
                    "prompt": PROMPT,
                    "max_tokens": TOKENS,
                    "temperature": 1.0,
                    "top_p": 0.95,
                    "top_k": 50,
                    "ignore_eos": True,
                }
            )
            text = completion["choices"][0]["text"]

            def detect(document: str, key_id: str) -> DetectionResult:
                request = DirectRequest(inputs=[Document(text=document)], keys=[key_id], phase="any")
                return detection.detect_direct(request).results[0]

            outcome = Outcome(
                detect(text, setup.key_id), detect(text, setup.other_key_id), detect(HUMAN_TEXT, setup.key_id)
            )
    except ClientError as error:
        raise StartupError(f"the demonstration failed: {error}") from error
    console.print(Panel(PROMPT + "[bold]" + escape(text) + "[/]", title=f"{TOKENS} tokens, watermarked"))
    console.print(_table(outcome, setup.key_id, setup.other_key_id))
    console.print(_commands(services), soft_wrap=True, highlight=False, markup=False)
    return outcome


def _table(outcome: Outcome, key_id: str, other_key_id: str) -> Table:
    table = Table("text", "key", "verdict", "p-value")
    for name, key, result in (
        ("the generated text", key_id, outcome.marked),
        ("the same text", other_key_id, outcome.other_key),
        ("a human's paragraph", key_id, outcome.human),
    ):
        style = "green" if result.verdict == "watermarked" else "yellow"
        p_value = "" if result.p_value is None else f"{result.p_value:.2g}"
        table.add_row(name, key, f"[{style}]{result.verdict}[/]", p_value)
    return table


def _commands(services: LocalServices) -> str:
    """Addresses and commands to copy."""
    setup = services.setup
    token = f'-H "Authorization: Bearer $(cat {setup.token_file})"'

    def post(url: str, body: Mapping[str, object]) -> str:
        return f"  curl -s {url} {token} -H 'Content-Type: application/json' \\\n    -d '{json.dumps(body)}'"

    completion = {"model": setup.model_id, "prompt": PROMPT, "max_tokens": TOKENS, "top_p": 0.95}
    detection = {"inputs": [{"text": "paste a text here"}], "phase": "any"}
    lines = [
        "\nConsole",
        f"  {services.detect_url}/  (its access token is in {setup.token_file})",
        "Generate",
        post(f"{services.gen_url}/v1/completions", completion),
        "Detect",
        post(f"{services.detect_url}/v1/detect/direct", detection),
        "Keys",
        f"  curl -s {services.detect_url}/v1/keys {token}\n",
    ]
    return "\n".join(lines)
