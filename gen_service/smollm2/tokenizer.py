"""The tokenizer that a GGUF file describes: byte-level BPE as SmolLM was trained with."""

from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

from ttmark.gen_service.smollm2.gguf_file import GGUFFile

_CONTROL = 3  # GGUF's token type of special tokens


def smollm_tokenizer(file: GGUFFile) -> Tokenizer:
    """Vocabulary and merges of the file, with the pre-tokenizer that it names.

    Each digit is a piece of its own. The tokenizer that transformers 5 makes of the same file leaves that
    out, and reads two spaces before a number otherwise than the model has seen them in training.

    Raises:
        ValueError: the file names another tokenizer.
    """
    kind = (file["tokenizer.ggml.model"], file["tokenizer.ggml.pre"])
    if kind != ("gpt2", "smollm"):
        raise ValueError(f"the file's tokenizer is {'/'.join(kind)}, not gpt2/smollm")
    tokens = file["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in file["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE({token: number for number, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = ByteLevelDecoder()
    types = file["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, type_ in zip(tokens, types, strict=True)
            if type_ == _CONTROL
        ]
    )
    return tokenizer
