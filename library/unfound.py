"""A warning where a text that was to be marked may not be found."""

import warnings
from collections.abc import Iterator, Sequence

from ttmark.gen_service.api.watermark_report import ReceiptRule, scored
from ttmark.gen_service.decoding.request import Delta, GenerationRequest
from ttmark.shared.tokenization import TextTokenizer


def watched(
    requests: Sequence[GenerationRequest], pieces: Iterator[tuple[int, Delta]], tokenizer: TextTokenizer
) -> Iterator[tuple[int, Delta]]:
    """The pieces as they come; of a text whose `detectability` a service would call `none` it warns."""
    texts = [""] * len(requests)
    for number, delta in pieces:
        texts[number] += delta.text
        if delta.finish_reason and requests[number].marking:
            log10_p = scored(requests[number], texts[number], tokenizer)
            if ReceiptRule().word(log10_p) == "none":
                warnings.warn(
                    "a text may not be found at a false positive rate of 1e-5: it is short, the model "
                    "was sure of it, or it reads back as other tokens",
                    stacklevel=3,
                )
        yield number, delta
