"""Golden vectors from text to token ids; `python -m tests.harness.golden_texts` writes them anew."""

import json
import textwrap
from typing import Any

from tokenizers import Tokenizer, pre_tokenizers

from tests.harness.golden_detection import write_lines
from ttmark.detect_service.normalization.normalizer import TextNormalizer, look_alike_letters
from ttmark.shared.tokenization import TextTokenizer

TEXTS = (
    "A plain text, read once.",
    "Tabs\tand  two  spaces \nat the end",
    "zero\u200bwidth, p\u0430ypal, \uff26\uff55\uff4c\uff4c, no\u00a0break\r\n",
    "caf\u00e9 na\u00efve stays, a\u0323 dot b\u0323elow goe\u0323s, \u0131dle",
    "> Paragraphs of a mail\n> are broken by lines,\n> quoted in answers\n> altogether.\n> 1. An item.",
    "\u0130stanbul \u0131l\u0131k \u00e7ay \u015feker g\u00fcl \u011f\u00f6\u011fe",
)

WORDS = (
    "Words that a program has broken at the width of its page, and that somebody copied as they stood there."
)
# What version 4 of the specification reads otherwise than version 3, or not at all.
LATER_TEXTS = (
    "\u201cCurly\u201d \u2018quotes\u2019\u2026 a \u2013 dash\u2014long, non\u2011breaking \ufb01ne \ufb03",
    textwrap.indent(textwrap.fill(WORDS, 28), "  "),
    textwrap.fill(WORDS, 31, initial_indent="1.  ", subsequent_indent="    "),
    "def f(x):\n    if x:\n        return x\n    return 0",
    "A hard break  \nand one  blank too   \nmany\u00a0there",
)
NORMALIZER = TextNormalizer()


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


def texts_of(text: str) -> list[str]:
    return list(dict.fromkeys(one.text for one in NORMALIZER.readings(text).values()))


def reading_vectors() -> dict[str, Any]:
    found = [
        {name: one.text for name, one in NORMALIZER.readings(text).items()} for text in (*TEXTS, *LATER_TEXTS)
    ]
    return {"texts": found}


def text_vectors() -> dict[str, Any]:
    """Look-alikes, each followed by its ASCII letter; a tokenizer; texts with the ids of their readings.

    Of version 3, in which a text was read as sent and `unwrapped`.
    """
    file = tokenizer_file()
    tokenizer = TextTokenizer(Tokenizer.from_str(file))
    texts = []
    for text in TEXTS:
        unwrapped = NORMALIZER.readings(text)["unwrapped"].text
        readings = [tokenizer.encode(one) for one in dict.fromkeys([text, unwrapped])]
        texts.append({"text": text, "normalized": unwrapped, "readings": readings})
    return {
        "look_alikes": "".join(letter + plain for letter, plain in sorted(look_alike_letters().items())),
        "tokenizer": file,
        "canonical": tokenizer.canonical().decode(),
        "fingerprint": tokenizer.fingerprint,
        "texts": texts,
    }


if __name__ == "__main__":
    write_lines("texts", text_vectors())
    write_lines("readings", reading_vectors())
