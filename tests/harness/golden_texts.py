"""Golden vectors from text to token ids: a tokenizer's fingerprint, and texts in their readings.

`python -m tests.harness.golden_texts` writes them anew.
"""

import json
from typing import Any

from tokenizers import Tokenizer, pre_tokenizers

from tests.harness.golden_detection import write_lines
from ttmark.detect_service.backend import TokenizerSet
from ttmark.detect_service.document_reader import DocumentReader
from ttmark.detect_service.normalization.normalizer import TextNormalizer, look_alike_letters
from ttmark.shared.keys.records import UnlockedKey
from ttmark.shared.schemas.detection import Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

TEXTS = (
    "A plain text, read once.",
    "Tabs\tand  two  spaces \nat the end",
    "zero\u200bwidth, p\u0430ypal, \uff26\uff55\uff4c\uff4c, no\u00a0break\r\n",
    "caf\u00e9 na\u00efve stays, a\u0323 dot b\u0323elow goe\u0323s, \u0131dle",
    "> Paragraphs of a mail\n> are broken by lines,\n> quoted in answers\n> altogether.\n> 1. An item.",
    "\u0130stanbul \u0131l\u0131k \u00e7ay \u015feker g\u00fcl \u011f\u00f6\u011fe",
)


def tokenizer_file() -> str:
    """A `tokenizer.json` as older files are: merges as pairs in one string, truncation and padding set."""
    merges = ["t h", "Ġ t", "Ġt h"]
    symbols = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in merges)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
            "padding": None,
            "added_tokens": [],
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": byte_level,
            "post_processor": None,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "vocab": {symbol: number for number, symbol in enumerate(symbols)},
                "merges": merges,
            },
        },
        ensure_ascii=False,
    )


def text_vectors() -> dict[str, Any]:
    """Look-alikes, each followed by its ASCII letter; a tokenizer; texts with the ids of their readings."""
    file = tokenizer_file()
    tokenizer = TextTokenizer(Tokenizer.from_str(file))
    profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": tokenizer.fingerprint})
    key = UnlockedKey("golden", "golden", profile, 1, ())
    tokenizers, normalizer = TokenizerSet([tokenizer]), TextNormalizer()
    texts = []
    for text in TEXTS:
        readers = DocumentReader.readings(Document(text=text), tokenizers, normalizer, normalize=True)
        readings = [reader.token_ids(key).tolist() for reader in readers]
        texts.append({"text": text, "normalized": normalizer.normalize(text).text, "readings": readings})
    return {
        "look_alikes": "".join(letter + plain for letter, plain in sorted(look_alike_letters().items())),
        "tokenizer": file,
        "canonical": tokenizer.canonical().decode(),
        "fingerprint": tokenizer.fingerprint,
        "texts": texts,
    }


if __name__ == "__main__":
    write_lines("texts", text_vectors())
