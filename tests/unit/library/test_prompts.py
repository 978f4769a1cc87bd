"""The library asks a model, a folder or objects of transformers, in the tokens in which the service does."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForCausalLM, AutoTokenizer

import ttmark
from tests.harness.random_model import END_OF_TEXT, byte_tokenizer, save_random_model, small_llama
from ttmark.gen_service.api.plan.prompts import chat_prompt, plain_prompts
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.library.model import EngineWriter
from ttmark.services.model_folder import read_chat_template
from ttmark.shared.manifests.wrapper import wrapped
from ttmark.shared.schemas.generation.chat import ChatMessage

ASKS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}"
CALLS = "{{ tools | tojson }}" + ASKS.replace(
    "{{ eos", "{% for c in m.tool_calls or () %}<c>{{ c.function | tojson }}</c>{% endfor %}{{ eos"
)
TEMPLATES: dict[str, Any] = {
    "none": None,
    "one": ASKS,
    "named": [{"name": "default", "template": ASKS}, {"name": "rag", "template": "none of ours"}],
    "tool_use": [{"name": "default", "template": ASKS}, {"name": "tool_use", "template": CALLS}],
}


@pytest.fixture
def folder(tmp_path: Path, template: str) -> Path:
    save_random_model(tmp_path, small_llama())
    tokenizer = byte_tokenizer()
    tokenizer.post_processor = TemplateProcessing(single="! $A", special_tokens=[("!", 1)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END_OF_TEXT}
    written = {**config, "chat_template": TEMPLATES[template]} if TEMPLATES[template] else config
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(written))
    return tmp_path


@pytest.mark.parametrize("template", TEMPLATES)
async def test_a_prompt_has_the_tokens_that_the_service_asks_with(folder: Path, template: str) -> None:
    objects = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with ttmark.load(folder) as loaded:
        assert isinstance(loaded._writer, EngineWriter)
        served = ServedModel(loaded._writer._engine, read_chat_template(folder))
        pair = ttmark.load(objects)
        for text in ("Hi", f"Say {END_OF_TEXT} twice", "Hi" + wrapped(b"manifest")):
            (expected,) = await plain_prompts([text], served)
            assert expected.token_ids[0] == 1  # as with <bos>
            assert loaded._prompt_ids(text, False) == pair._prompt_ids(text, False) == expected.token_ids
            if template == "none":
                assert loaded._prompt_ids(text, None) == pair._prompt_ids(text, None) == expected.token_ids
                with pytest.raises(ValueError, match="no chat template"):
                    pair.generate(text, key=None, chat=True)
                continue
            asked = [ChatMessage(role="user", content=text)]
            expected = await chat_prompt(asked, served, field="messages")
            for model in (loaded, pair):
                assert model._prompt_ids(text, None) == model._prompt_ids(text, True) == expected.token_ids


@pytest.mark.parametrize("template", ["tool_use"])
@pytest.mark.parametrize("written_anew", [False, True], ids=["in the configuration", "in files"])
def test_of_named_templates_that_for_tools_is_taken_as_transformers_does(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, written_anew: bool
) -> None:
    theirs = AutoTokenizer.from_pretrained(folder)
    if written_anew:
        folder = tmp_path_factory.mktemp("anew")
        theirs.save_pretrained(folder)
    ours = read_chat_template(folder)
    assert ours is not None
    told = [{"role": "user", "content": "Hi"}]
    tools = [{"type": "function", "function": {"name": "now", "description": "Time.", "parameters": {}}}]
    for shown in (None, tools):
        expected = theirs.apply_chat_template(told, tools=shown, tokenize=False, add_generation_prompt=True)
        assert ours.render([ChatMessage(role="user", content="Hi")], tools=shown or ()) == expected
        assert ("now" in expected) == bool(shown)
