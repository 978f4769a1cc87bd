"""What a language model says of texts that it did not write, kept in a file."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from transformers import AutoConfig

from ttmark.evaluation.json_files import append_lines, read_lines
from ttmark.evaluation.language_model import CausalModel, log_likelihood
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.tokenization import TextTokenizer, byte_ends, byte_spans
from ttmark.shared.watermark.likelihood.reading import Reading


class ReadingModel:
    """A causal model that reads texts, each in one pass, without a prompt, after the token that begins texts.

    Args:
        model: folder or hub id.
    """

    def __init__(self, model: str) -> None:
        self._reads, self._tokenizer = CausalModel(model), TextTokenizer.load(model)
        self._start = AutoConfig.from_pretrained(model).get_text_config().bos_token_id

    def read(self, text: str) -> ByteReading:
        """What it says of the text, by bytes."""
        encoded = self._tokenizer.encode_with_offsets(text)
        nats = np.minimum(log_likelihood(self._reads, [self._start], encoded.ids), 0.0)
        return ByteReading.of_tokens(byte_ends(text, encoded.offsets), nats)


def write_readings(texts: Iterable[str], model: str, file: Path) -> Iterator[int]:
    """Reads the texts that the file lacks, and that begin no other one; yields how many are left."""
    known = set(KnownReadings.read(file).texts)
    asked = list(dict.fromkeys(texts))
    begins = {text for text, after in pairwise(sorted(asked)) if after.startswith(text)}
    missing = [text for text in asked if text not in begins | known]
    yield len(missing)
    reader = ReadingModel(model)
    for left, text in zip(reversed(range(len(missing))), missing, strict=True):
        found = reader.read(text)
        line = {"text": text, "ends": found.ends.tolist(), "logprobs": found.logprobs.tolist()}
        append_lines(file, [line])
        yield left


@dataclass(frozen=True, slots=True)
class KnownReadings:
    """Texts in order, and what a model says of each."""

    texts: Sequence[str]
    readings: Sequence[ByteReading]

    @classmethod
    def read(cls, file: Path) -> "KnownReadings":
        """Those of a file of `write_readings`."""
        lines = sorted(read_lines(file), key=lambda line: line["text"])
        readings = [
            ByteReading(np.array(line["ends"], dtype=np.int64), np.array(line["logprobs"], dtype=np.float64))
            for line in lines
        ]
        return cls([line["text"] for line in lines], readings)

    def of(self, text: str, tokenizer: TextTokenizer) -> Reading | None:
        """By tokens of the text, or of the one that begins with it; None if neither was read.

        A causal model says the same of what a text begins with, but for a token that the cut divides.
        """
        place = bisect_left(self.texts, text)
        if place == len(self.texts) or not self.texts[place].startswith(text):
            return None
        spans = byte_spans(text, tokenizer.encode_with_offsets(text).offsets)
        return Reading(self.readings[place].log_probs(spans))
