"""Trains the tokenizer: byte-level BPE that round-trips any text, digits one by one."""

import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from gen_service.demo_model.training import corpus

VOCABULARY = 8192
END_OF_TEXT = "<|endoftext|>"
END_OF_TEXT_ID = 0
TRAINING_CHARACTERS = 30_000_000

# A word with its leading space, one digit, a run of signs, or white space but for the next word's space.
_PIECES = Regex(r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

# A base model has learned no roles, so a conversation is rendered as plain paragraphs that it can continue.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['content'] | trim }}\n\n{% endfor %}"
    "{% if not add_generation_prompt %}{{ eos_token }}{% endif %}"
)


def train(folder: Path) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` into `folder`, learned from its `train.jsonl`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(_PIECES, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(_sample(folder / "train.jsonl"), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "pad_token": END_OF_TEXT,
        "padding_side": "left",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 2048,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def load(folder: Path) -> Tokenizer:
    """The trained tokenizer of `folder`."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def _sample(path: Path) -> Iterator[str]:
    characters = 0
    for document in corpus.read(path):
        yield document["text"]
        characters += len(document["text"])
        if characters > TRAINING_CHARACTERS:
            return
