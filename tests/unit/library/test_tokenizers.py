"""A tokenizer is its file, in whatever form transformers holds it."""

import json
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from transformers import AutoTokenizer, LlamaForCausalLM

import ttmark
from tests.harness.byte_tokenizers import trained
from tests.harness.random_model import small_llama
from ttmark.library.generation_requests import generation_request, sampling_params
from ttmark.library.in_transformers import InTransformers
from ttmark.library.tokenizer import text_tokenizer
from ttmark.shared.tokenization import TOKENIZER_FILE, TextTokenizer

QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
MAIN = "b" * 40


def qwen(texts: list[str]) -> Tokenizer:
    parts = {
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }  # as Qwen's own file has them
    cut = Sequence([Split(Regex(QWEN), "isolated"), ByteLevel(**parts)])
    return trained(texts, 300, pre_tokenizer=cut)


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The main revision of owner/small in a hub's cache; an older one has other tokens."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    model = tmp_path / "models--owner--small"
    for revision, text in (("a" * 40, "one two three"), (MAIN, "The old lighthouse stood there")):
        folder = model / "snapshots" / revision
        folder.mkdir(parents=True)
        qwen([text] * 5).save(str(folder / TOKENIZER_FILE))
        config = {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "</s>"}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(MAIN)
    return model / "snapshots"


def by_hub_name(folder: Path) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.name_or_path = "owner/small"
    return tokenizer


def held(tokenizer: Any) -> TextTokenizer:
    return TextTokenizer(Tokenizer.from_str(tokenizer.backend_tokenizer.to_str()))


@pytest.mark.parametrize("revision", [MAIN, "a" * 40])
def test_a_tokenizer_that_came_by_its_hub_name_is_the_file_of_its_revision(
    cached: Path, revision: str
) -> None:
    file, own = TextTokenizer.load(cached / revision), by_hub_name(cached / revision)
    assert held(own).fingerprint != file.fingerprint == text_tokenizer(own).fingerprint


def test_what_reads_texts_otherwise_than_its_file_is_another_tokenizer(cached: Path) -> None:
    own = AutoTokenizer.from_pretrained(cached / MAIN)
    own.name_or_path = str(cached / ("a" * 40))
    with pytest.warns(UserWarning, match="they are two tokenizers"):
        assert text_tokenizer(own).fingerprint == held(own).fingerprint


def test_texts_of_the_form_that_transformers_holds_are_still_found(cached: Path, key: ttmark.Key) -> None:
    own = by_hub_name(cached / MAIN)
    earlier = held(own)
    model = LlamaForCausalLM(small_llama(vocab_size=earlier.vocab_size)).eval()
    sampling = sampling_params({"top_k": 50, "max_new_tokens": 200, "seed": 1}, {}, 0)
    asked = generation_request(0, (1, 2), sampling, key, earlier, "owner/small")
    pieces = InTransformers(model, earlier, [0]).generate([asked])
    added = earlier.vocab_size - 1  # transformers has one more than the file
    ids = [*(token for _, piece in pieces for token in piece.token_ids), added]
    assert added >= TextTokenizer.load(cached / MAIN).id_bound
    assert ttmark.detect(ids, key, model=own)  # the key remembers it
    key.models.clear()
    assert ttmark.detect(ids, key, model=own)
    assert not ttmark.detect(ids, ttmark.Key.new(), model=own)


def test_a_model_without_a_folder_needs_its_tokenizer(key: ttmark.Key) -> None:
    model = LlamaForCausalLM(small_llama()).eval()
    with pytest.raises(ValueError, match="tokenizer="):
        model.generate(do_sample=True, max_new_tokens=2, custom_generate=ttmark.tandem(key), bos_token_id=1)
