"""Prompts of a file, as the service asks the model for them."""

import json
from pathlib import Path

import pytest
from tokenizers.processors import TemplateProcessing

from tests.harness.random_model import byte_tokenizer
from ttmark.evaluation.text_files import read_prompts
from ttmark.shared.tokenization import TextTokenizer

BOS = 0


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("prompt", "most"), [("abc", 4), ("abc", 3), ("abc", 64), ("abcdef", 1)])
def test_prompts_have_what_the_tokenizer_puts_before_every_text(
    tmp_path: Path, prompt: str, most: int, adds: bool
) -> None:
    backend = byte_tokenizer()
    tokenizer = TextTokenizer(backend)
    front = (BOS,) if adds else ()
    assert BOS in tokenizer.special_ids
    if adds:
        name = backend.id_to_token(BOS)
        backend.post_processor = TemplateProcessing(f"{name} $A", special_tokens=[(name, BOS)])
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": text}) for text in ("", prompt)))
    letters = tokenizer.encode(prompt)
    kept = most - len(front)
    expected = (*front, *(letters[-kept:] if kept else ()))
    assert read_prompts(file, tokenizer, most) == [expected]
