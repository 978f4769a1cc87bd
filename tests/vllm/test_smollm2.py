"""A real language model: tokens are those of the embedded engine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.vllm.conftest import complete_all, embedded_engine
from tests.vllm.every_kind import Maker

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

PROMPT = "A walk by the sea, on a windy morning in March. The first thing that we saw was"


def test_tokens_are_those_of_the_embedded_engine(smollm2_folder: Path, started: Callable[..., Any]) -> None:
    running = started(smollm2_folder, {"num_gpu_blocks_override": 96})
    for embedded in embedded_engine(smollm2_folder):
        maker = Maker(embedded.tokenizer, tuple(embedded.eos_token_ids))
        words = tuple(embedded.tokenizer.encode(PROMPT))
        made = [maker.request(number, tokens=20) for number in range(16)]  # r = 0 to 3, under each scheme
        free = [replace(each.sampling, stop=(), ignore_eos=True) for each in made]
        asked = [
            replace(each, prompt_ids=words[: 4 + n], sampling=free[n], grammar=None)
            for n, each in enumerate(made)
        ]
        ours, theirs = complete_all(embedded, asked), complete_all(running, asked)
    assert [n for n, each in enumerate(theirs) if each.said != ours[n].said] == []
    assert {each.report.watermarked_blocks > 0 for n, each in enumerate(theirs) if n % 4} == {True}
