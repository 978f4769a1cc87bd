"""The detection service as an experiment asks it, and the language models that read along for it."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from ttmark.evaluation.engine_source import CausalModel, log_likelihood
from ttmark.gen_service.api.plan.prompts import text_ids
from ttmark.shared.byte_reading import ByteReading, byte_ends
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.schemes.watermark import Watermark

Reader = Callable[[str], ByteReading]
"""What a language model says of a text."""
Pool = Sequence[bytes]
"""The PRF keys of one key."""


def reader_of(folder: Path) -> Reader:
    """The causal language model in a folder, with its own tokenizer, which need not be the writer's.

    It is loaded when it first reads.
    """

    @lru_cache(maxsize=1)
    def loaded() -> tuple[CausalModel, TextTokenizer, list[int]]:
        tokenizer = TextTokenizer.load(folder)
        return CausalModel(str(folder)), tokenizer, text_ids("", tokenizer)

    @lru_cache(maxsize=4096)
    def read(text: str) -> ByteReading:
        model, tokenizer, before = loaded()
        found = tokenizer.encode_with_offsets(text)
        first = before or found.ids[:1]  # nothing is said of a token that nothing stands before
        rest = found.ids[0 if before else 1 :]
        said = np.zeros(len(found.ids))
        if rest:
            said[-len(rest) :] = log_likelihood(model, first, rest)
        return ByteReading.of_tokens(byte_ends(text, found.offsets), said)

    return read


class FindsTogether(Protocol):
    """What asks the detection service."""

    def finds(
        self, texts: Sequence[str], pools: Sequence[Pool], fpr: float, read: Reader | None = None
    ) -> bool:
        """Whether it says *watermarked* of texts, of several as of the messages of one conversation.

        Args:
            pools: of the keys that are tried.
        """
        ...


MakeService = Callable[[Watermark, TextTokenizer], FindsTogether]
"""For keys with a mark and a tokenizer."""
