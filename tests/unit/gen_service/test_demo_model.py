"""The demo model as it ships: files, tokenizer, and the quality that its card claims."""

import gzip
import json
import math
import re
from pathlib import Path

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast

from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH, PROMPTS_PATH

FILES = {"README.md", "model.safetensors", "tokenizer.json"}
FILES |= {f"{name}config.json" for name in ("", "generation_", "tokenizer_")}
HELD_OUT_SAMPLE = Path(__file__).parent / "held_out.jsonl"
CONTINUATION_TOKENS = 60


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    return AutoModelForCausalLM.from_pretrained(DEMO_MODEL_PATH, local_files_only=True).eval()


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(DEMO_MODEL_PATH, local_files_only=True)


def human_texts() -> list[str]:
    with gzip.open(HUMAN_TEXTS_PATH, "rt") as lines:
        return [json.loads(line)["text"] for line in lines]


def test_what_ships_is_complete_and_small() -> None:
    files = {path.name: path.stat().st_size for path in DEMO_MODEL_PATH.iterdir()}
    assert set(files) == FILES
    assert sum(files.values()) <= 20e6
    prompts = [json.loads(line)["prompt"] for line in PROMPTS_PATH.read_text().splitlines()]
    assert len(prompts) >= 2000
    assert {len(prompt.split()) for prompt in prompts} == {25}
    assert sum(map(len, human_texts())) > 1_200_000


def test_the_model_is_a_bf16_llama_with_the_tokenizers_vocabulary(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast
) -> None:
    assert isinstance(model, LlamaForCausalLM)
    assert model.dtype == torch.bfloat16
    assert model.config.vocab_size == len(tokenizer) == 8192
    assert model.config.eos_token_id == tokenizer.eos_token_id


@given(text=st.text())
@example(text="emoji 👩‍👩‍👧‍👦 and 🇺🇦, CRLF\r\n\r\n\ttabs  two spaces \x00 中文 e\u0301 \ufeff")
@example(text=" leading and trailing ")
def test_any_text_survives_the_tokenizer_unchanged(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_digits_are_tokenized_one_by_one(tokenizer: PreTrainedTokenizerFast) -> None:
    assert tokenizer.tokenize("20260") == list("20260")


def test_a_conversation_becomes_paragraphs(tokenizer: PreTrainedTokenizerFast) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " What is a file? "}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert text == "Be brief.\n\nWhat is a file?\n\n"


def test_a_continuation_is_made_of_printable_english_words(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast
) -> None:
    known = {word.lower() for text in human_texts() for word in re.findall(r"[A-Za-z']+", text)}
    ids = tokenizer(
        ["The server reads its configuration", "This function returns the"], return_tensors="pt", padding=True
    )
    torch.manual_seed(0)
    output = model.generate(
        **ids, do_sample=True, temperature=0.7, top_k=20, max_new_tokens=CONTINUATION_TOKENS
    )
    for text in tokenizer.batch_decode(output, skip_special_tokens=True):
        words = re.findall(r"[A-Za-z']+", text)
        assert all(character.isprintable() or character.isspace() for character in text)
        assert len(words) >= 30
        assert sum(word.lower() in known for word in words) >= 0.9 * len(words)


def test_held_out_bits_per_byte_agree_with_the_card(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast
) -> None:
    claim = re.search(r"\*\*([\d.]+) bits per byte\*\*", (DEMO_MODEL_PATH / "README.md").read_text())
    assert claim is not None
    nats = 0.0
    size = 0
    for line in HELD_OUT_SAMPLE.read_text().splitlines():
        text = json.loads(line)["text"]
        ids = tokenizer(tokenizer.eos_token + text, return_tensors="pt").input_ids
        with torch.inference_mode():
            logits = model(ids).logits[0, :-1].float()
        nats += torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
        size += len(text.encode())
    # The sample is 1 % of what the card measures, so its documents need not be of mean difficulty.
    assert nats / math.log(2) / size == pytest.approx(float(claim[1]), rel=0.15)
