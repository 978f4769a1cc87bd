"""A text is read as it was sent and as a reader sees it, and the better reading is corrected for the two."""

import random

import pytest

from tests.harness.trained_tokenizers import byte_level
from tests.unit.detect_service.callers import CALLERS
from tests.unit.detect_service.held_keys import key_of
from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.documents.text_reader import text_readers
from ttmark.detect_service.normalization.normalizer import TextNormalizer
from ttmark.detect_service.options import DetectionOptions
from ttmark.detect_service.question import Question
from ttmark.shared.schemas.detection.detect import Document

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("def f(x):\n    return x\n", {"as_sent": 1.0}),
        ("Ein schöner Satz — mit Zeichen.", {"as_sent": 1.0}),
        ("two  spaces\u200b", {"as_sent": 0.5, "unwrapped": 0.5}),
        ("“Zeichen”", {"as_sent": 0.75, "typography": 0.25}),
        ("“two”  spaces", {"as_sent": 0.5, "unwrapped": 0.25, "typography": 0.25}),
    ],
)
def test_texts_that_are_the_same_in_several_readings_are_read_once_and_have_all_their_weight(text, weights):
    for normalize in (True, False):
        readers = text_readers(Document(text=text), TokenizerSet([]), TextNormalizer(), normalize=normalize)
        expected = weights if normalize else {"as_sent": 1.0}
        assert {one.names[0]: one.weight for one in readers} == expected
        assert sum(len(one.names) for one in readers) == (3 if normalize else 1)


def test_without_evidence_the_number_of_tokens_does_not_tell_which_key_came_closest(tokenizer, mode):
    generator = random.Random(3)
    texts = ["".join(generator.choices(LETTERS + " ", k=120)) for _ in range(12)]
    pairs = byte_level(texts, 400)
    keys = [key_of(tokenizer, b"first".ljust(16), "first"), key_of(pairs, b"second".ljust(16), "second")]
    backend = DetectionBackend(FixedKeys.of(keys), TokenizerSet([tokenizer, pairs]), 5_000)
    request = DetectionOptions(mode=mode).request([Document(text=text) for text in texts])
    found = ask_here(Question(request, CALLERS["verdict"], "r"), means_of(backend)).results
    assert [one.tokens for one in found] == [len(tokenizer.encode(text)) for text in texts]
