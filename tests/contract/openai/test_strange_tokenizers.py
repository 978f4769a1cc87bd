"""Tokenizers of no family that we know, under a tiny random model: served right, or refused in words."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import LlamaForCausalLM

import ttmark
from tests.contract.openai.composed import TEMPLATE, build_service
from tests.harness.measured_here import measured_here
from tests.harness.random_model import small_llama
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings

_SPECIAL = ["<stop>", "<start>", "<none>"]
_WORDS = (
    "the of and a to in is you that it he was for on are as with his they at be this have from or one had by"
)
_SIGNS = [chr(point) for point in range(33, 127)] + [*"éèñß€—“”年月日本語"]


def unigram_with_bytes() -> Tokenizer:
    """Words with a mark behind them, odd normalisation, and bytes for what it does not know."""
    pieces = [(name, 0.0) for name in _SPECIAL]
    pieces += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    pieces += [(word + end, -3.0 - len(word) / 9) for word in _WORDS.split() for end in ("", "\u2423")]
    pieces += [("\u2423", -4.0), *((sign, -6.0) for sign in _SIGNS)]
    pieces += [(f"{{{chr(34)}", -4.0), (f"{chr(34)}:\u2423", -4.0), (f"{chr(34)},", -4.0)]
    pieces = [*dict(reversed(pieces)).items()][::-1]  # each once: ids have no gaps
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex("[\u2018\u2019]"), "'"),
            normalizers.Replace(" ", "\u2423"),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2423", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.post_processor = processors.TemplateProcessing("<start> $A", special_tokens=[("<start>", 1)])
    tokenizer.add_special_tokens(_SPECIAL)
    return tokenizer


def characters() -> Tokenizer:
    """A token for each character that it knows, and one for all others."""
    names = [*_SPECIAL, " ", "\n", *_SIGNS]
    tokenizer = Tokenizer(
        models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="<none>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(_SPECIAL)
    return tokenizer


KINDS = {"unigram with bytes": unigram_with_bytes, "characters": characters}


@pytest.fixture(scope="module", params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("strange")
    tokenizer = KINDS[request.param]()
    tokenizer.save(str(made / "tokenizer.json"))
    torch.manual_seed(0)
    config = small_llama(
        vocab_size=max(tokenizer.get_vocab().values()) + 1,
        eos_token_id=0,
        bos_token_id=1,
        max_position_embeddings=512,
    )
    model = LlamaForCausalLM(config)
    vocabulary = tokenizer.get_vocab()
    with torch.no_grad():  # a model would not write bytes for what has a token; texts go on
        model.lm_head.weight[[id_ for name, id_ in vocabulary.items() if name[:3] in ("<0x", "<st")]] = 0.0
    model.save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def strange(folder: Path, serve: Any) -> Iterator[Any]:
    engine = Engine.load(str(folder), EngineSettings(model_id="tiny", threads=1, device="cpu"))
    engine.start()
    yield serve(build_service(engine, template=ChatTemplate(TEMPLATE)))
    engine.stop(0)


CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Who’s there? 🦊 é"}], "seed": 3}


@pytest.mark.parametrize("seed", range(2))
def test_a_streamed_chat_adds_up_to_the_whole_one(strange: Any, seed: int) -> None:
    asked = CHAT | {"seed": seed, "max_tokens": 60}
    whole = strange.answer("chat/completions", **asked)["choices"][0]["message"]["content"]
    events = strange.events("chat/completions", **asked)
    pieces = [event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"]]
    assert "".join(pieces) == whole != ""


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "maximum": 99, "minimum": 0},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("seed", range(2))
def test_json_is_valid_or_refused_in_words(strange: Any, seed: int) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    asked = CHAT | {"seed": seed, "max_tokens": 200, "response_format": form}
    if isinstance(strange.generator.tokenizer.backend.model, models.WordLevel):
        refused = strange.post("chat/completions", **asked)
        assert refused.status_code == 400
        assert "does not say which bytes its tokens are" in refused.text
        return
    choice = strange.answer("chat/completions", **asked)["choices"][0]
    assert choice["finish_reason"] == "stop", choice
    assert set(json.loads(choice["message"]["content"])) == {"name", "age"}


def test_a_text_of_120_tokens_is_found(folder: Path, tmp_path: Path) -> None:
    with measured_here(tmp_path):
        key, model = ttmark.Key.new(), ttmark.load(folder)
    options = {"max_new_tokens": 120, "top_k": 50, "key": key}
    texts = [model.generate(f"the {number}", seed=number, **options) for number in range(4)]
    found = [ttmark.detect(text, key).p for text in texts]
    assert max(found) < 1e-5, found
