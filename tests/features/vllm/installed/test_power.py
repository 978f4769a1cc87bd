"""Texts of both engines are found alike, and not found under other keys alike (demo model)."""

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.features.vllm.installed.conftest import Answer, complete_all, load_vllm
from ttmark.evaluation.intervals import Interval, clopper_pearson
from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.detectors.block_scores import detect_direct
from ttmark.shared.watermark.schemes.watermark import Watermark

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")
pytest.importorskip("scipy", reason="needs .venv-vllm/bin/pip install -e '.[eval]'")

TEXTS = 120
TOKENS = 100
SHORT = 24
"""Tokens of a text that is too short to be found always."""
OTHER_KEYS = 20
MARK = Watermark("gumbel", 2, 2)  # the default profile's

Found = NDArray[np.float64]


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def requests() -> list[GenerationRequest]:
    """A prompt and a key for each text."""
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    with (DEMO_MODEL_PATH.parent / "prompts.jsonl").open() as lines:
        prompts = [json.loads(line)["prompt"] for line in islice(lines, TEXTS)]
    assert len(prompts) == TEXTS
    return [
        GenerationRequest(
            f"r{number}",
            tuple(tokenizer.encode(prompt)),
            SamplingParams(TOKENS, temperature=1.0, top_k=50, top_p=0.95, seed=number, ignore_eos=True),
            Marking("k", 1, "p", MARK, key(number)),
        )
        for number, prompt in enumerate(prompts)
    ]


def by_embedded(dtype: str, asked: Sequence[GenerationRequest]) -> list[Answer]:
    settings = EngineSettings(device="cpu", threads=1, dtype=dtype, max_branches=8, max_waiting=512)
    engine = Engine.load(str(DEMO_MODEL_PATH), settings)
    engine.start()
    said = complete_all(engine, asked)
    engine.stop(0)
    return said


def by_vllm(dtype: str, asked: Sequence[GenerationRequest]) -> list[Answer]:
    engine: Any = load_vllm(DEMO_MODEL_PATH, {"max_model_len": 1024}, dtype=dtype, max_sequences=32)
    said = complete_all(engine, asked)
    engine.stop(0)
    return said


def log10_p(said: Sequence[Answer], shift: int, tokens: int) -> Found:
    """Of each text's first `tokens`, under the key `shift` places on."""
    return np.array(
        [
            detect_direct(MARK, key(number + shift), each.tokens[:tokens]).log10_p
            for number, each in enumerate(said)
        ]
    )


def rate(found: Found, log10_level: float) -> Interval:
    return clopper_pearson(int((found < log10_level).sum()), found.size)


def figures(said: Sequence[Answer]) -> tuple[Interval, Interval, Interval, Found]:
    """Short texts found at 1e-3, whole ones at 1e-5, false alarms at 1e-2; log10 p of the short ones."""
    short, whole = log10_p(said, 0, SHORT), log10_p(said, 0, TOKENS)
    others = np.concatenate([log10_p(said, 1_000 * n, TOKENS) for n in range(1, OTHER_KEYS + 1)])
    return rate(short, -3), rate(whole, -5), rate(others, -2), short


def words(short: Interval, whole: Interval, false: Interval) -> str:
    return (
        f"{SHORT} tokens at 1e-3 {short.percent()}, {TOKENS} tokens at 1e-5 {whole.percent()}, "
        f"other keys at 1e-2 {false.percent()}"
    )


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_texts_of_both_engines_are_found_alike(dtype: str, record_result: Any) -> None:
    asked = requests()
    ours, theirs = by_embedded(dtype, asked), by_vllm(dtype, asked)
    same = sum(one.tokens == other.tokens for one, other in zip(ours, theirs, strict=True))
    (*own, own_short), (*vllm, vllm_short) = figures(ours), figures(theirs)
    # Of the same prompt, key and seed, so that the difference of the two says most.
    apart = vllm_short - own_short
    error = 1.96 * float(apart.std(ddof=1)) / np.sqrt(TEXTS)
    record_result(
        f"{TEXTS} texts of each engine, demo model, {dtype}, default profile, each with a key of its own",
        "found alike, and under other keys alike",
        f"{same} of {TEXTS} texts the same token for token; embedded: {words(*own)}; vLLM: {words(*vllm)}; "
        f"mean log10 p of {SHORT} tokens {own_short.mean():.2f} and {vllm_short.mean():.2f}, "
        f"difference {apart.mean():+.2f} ± {error:.2f}",
    )
    if dtype == "float32":
        assert same == TEXTS
    assert abs(apart.mean()) <= max(2 * error, 1e-9)
    for one, other in zip(own, vllm, strict=True):
        assert one.low <= other.high
        assert other.low <= one.high
    for *_, false in (own, vllm):
        assert false.low <= 0.01
