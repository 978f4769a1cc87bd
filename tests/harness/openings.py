"""How many answers to a question differ: by the bits of their openings and by the keys of the pool.

    python -m tests.harness.openings FOLDER answers.jsonl --json docs/results/openings.json

FOLDER is SmolLM2's. Answers are drawn without a mark; the file keeps them, and the run goes on where it
stopped. Two answers are counted as different if their openings differ, or the keys that they draw. For one
key that is a lower bound, and so for any pool; for several keys it is too much: two keys may go on alike.
"""

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ttmark.evaluation.experiment_cells import sampling_seed
from ttmark.gen_service.engine import Engine, EngineSettings, GenerationRequest, SamplingParams, TokenLogprob

CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)
QUESTIONS = ("What is photosynthesis?", "What is inflation?", "Who wrote Romeo and Juliet and when?")
PROMPTS = Path("evaluation/prompts.jsonl")
OFTEN, SELDOM = 80, 16
TOKENS, BLOCK, TOP_K, TOP_P, TEMPERATURE = 32, 2, 50, 0.9, 0.7
BITS, POOLS = (0, 4, 6, 8, 10, 12, 14), (1, 4, 16)
REPEATS = 20


def main(
    folder: Path,
    answers: Path,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    """Draws what is missing of the answers, and prints the shares that differ."""
    every_fifth = [json.loads(line)["prompt"] for line in PROMPTS.read_text().splitlines()][5::5]
    asked = [(CHAT.format(question), OFTEN) for question in QUESTIONS]
    asked += [(prompt, SELDOM) for prompt in every_fifth]
    have = _read(answers)
    missing = [
        (number, prompt, count) for number, (prompt, count) in enumerate(asked) if len(have[number]) < count
    ]
    if missing:
        asyncio.run(_draw(folder, missing, answers))
        have = _read(answers)
    rows = [
        row
        for name, numbers in (
            ("three questions", range(len(QUESTIONS))),
            ("prompts", range(len(QUESTIONS), len(asked))),
        )
        for row in figures(name, [have[number] for number in numbers])
    ]
    for row in rows:
        print(json.dumps(row))
    if json_file is not None:
        command = f"python -m tests.harness.openings SMOLLM2 answers.jsonl --json {json_file}"
        json_file.write_text(json.dumps({"command": command, "data": rows}, indent=1) + "\n")


def figures(name: str, questions: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """For each number of bits and keys the different answers, and their share of those without a mark."""
    drawn, rows = np.random.default_rng(0), []
    unmarked = [len({tuple(answer["tokens"]) for answer in each}) for each in questions]
    for bits in BITS:
        openings = [[opening(answer, bits) for answer in each] for each in questions]
        for pool in POOLS:
            different = [
                np.mean(
                    [
                        len(set(zip(each, drawn.integers(pool, size=len(each)).tolist(), strict=True)))
                        for _ in range(REPEATS)
                    ]
                )
                for each in openings
            ]
            rows.append(
                {
                    "of": name,
                    "questions": len(questions),
                    "answers": len(questions[0]),
                    "bits": bits,
                    "pool": pool,
                    "unmarked": int(sum(unmarked)),
                    "different": round(float(sum(different)), 1),
                    "share": round(float(sum(different) / sum(unmarked)), 4),
                    "opening_tokens": round(float(np.mean([len(o) for each in openings for o in each])), 1),
                }
            )
    return rows


def opening(answer: dict[str, Any], bits: float) -> tuple[int, ...]:
    """The tokens of an answer before its first mark, the warm-up of a block among them."""
    spent, length = 0.0, 0
    while length < len(answer["tokens"]) and (spent < bits or not length):
        spent -= sum(map(math.log2, answer["probabilities"][length : length + BLOCK]))
        length += BLOCK
    return tuple(answer["tokens"][:length])


def probability(drawn: TokenLogprob) -> float:
    """With which a token was drawn, after temperature, top-k and top-p."""
    weights = np.exp(np.array([logprob for _, logprob in drawn.top]) / TEMPERATURE)
    mass = weights / weights.sum()
    kept = np.where(np.cumsum(mass) - mass < TOP_P, mass, 0.0)
    ids = [token for token, _ in drawn.top]
    return float(kept[ids.index(drawn.token_id)] / kept.sum())


async def _draw(folder: Path, missing: Sequence[tuple[int, str, int]], answers: Path) -> None:
    settings = EngineSettings(device="cpu", threads=1, context_length=512, max_sequences=OFTEN)
    engine = Engine.load(str(folder), settings)
    engine.start()

    async def one(number: int, prompt: str, index: int) -> dict[str, Any]:
        seed = sampling_seed(0, "openings", number, index)
        params = SamplingParams(TOKENS, TEMPERATURE, TOP_K, TOP_P, seed=seed, logprobs=TOP_K)
        tokens, logprobs = tuple(engine.tokenizer.encode(prompt)), list[TokenLogprob]()
        async for delta in engine.generate(GenerationRequest(f"{number}-{index}", tokens, params, None)):
            logprobs += delta.logprobs or ()
        return {
            "question": number,
            "tokens": [each.token_id for each in logprobs],
            "probabilities": [probability(each) for each in logprobs],
        }

    for number, prompt, count in missing:
        made = await asyncio.gather(*(one(number, prompt, index) for index in range(count)))
        with answers.open("a") as file:
            file.writelines(json.dumps(each) + "\n" for each in made)
    engine.stop(0)


def _read(answers: Path) -> dict[int, list[dict[str, Any]]]:
    have: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in answers.read_text().splitlines() if answers.exists() else ():
        answer = json.loads(line)
        have[answer["question"]].append(answer)
    return have


if __name__ == "__main__":
    typer.run(main)
