"""Characters of tokens under byte-level and SentencePiece tokenizers, in texts that are awkward for them."""

import unicodedata

import pytest

from tests.harness.golden_texts import LATER_TEXTS
from tests.harness.trained_tokenizers import KINDS
from tests.unit.detect_service.held_keys import key_of
from ttmark.detect_service.documents.backend import TokenizerSet
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.documents.text_reader import text_readers
from ttmark.detect_service.normalization.normalizer import TextNormalizer
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.tokenization import TextTokenizer

TRAINING = ["the cat sat on the mat and the dog sat on the log", "a fine café in the town"] * 4
WORDS = {
    "multi-byte": "日本語 the",
    "emoji": "the 👩\u200d👩\u200d👧 sat 😀",
    "combining marks": "cafe\u0301 the e\u0301\u0323 sat",
    "line ends": "the\r\ncat\r\n\r\nsat\n",
    "ligature": "a ﬁne ﬁne café",
    "spaces": "  the   cat ",
}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request) -> TextTokenizer:
    return KINDS[request.param](TRAINING, 400)


def reader_of(tokenizer: TextTokenizer, text: str) -> tuple[DocumentReader, UnlockedKey]:
    document, tokenizers = Document(text=text), TokenizerSet([tokenizer])
    return text_readers(document, tokenizers, TextNormalizer(), normalize=False)[0], key_of(tokenizer)


def readable(text: str) -> str:
    """What a tokenizer may change about a text: compatible letters, composed accents, white space."""
    return "".join(unicodedata.normalize("NFKC", text).split())


@pytest.mark.parametrize("text", [*WORDS.values(), *LATER_TEXTS])
def test_in_every_reading_places_lie_in_the_text_as_sent_and_in_its_order(tokenizer, text: str) -> None:
    key = key_of(tokenizer)
    for reader in text_readers(
        Document(text=text), TokenizerSet([tokenizer]), TextNormalizer(), normalize=True
    ):
        count = reader.token_ids(key).size
        spans = [reader.characters(key, place, place + 1) for place in range(count)]
        assert all(0 <= first <= last <= len(text) for first, last in spans)
        assert [first for first, _ in spans] == sorted(first for first, _ in spans)
        assert [last for _, last in spans] == sorted(last for _, last in spans)


@pytest.mark.parametrize("text", WORDS.values(), ids=WORDS)
def test_every_character_belongs_to_a_token_and_a_passage_says_what_its_tokens_say(
    tokenizer: TextTokenizer, text: str
) -> None:
    before, after = "the cat sat on the mat ", " the dog sat on the log"
    for whole in (text, before + text + after):
        reader, key = reader_of(tokenizer, whole)
        ids = reader.token_ids(key)
        spans = [reader.characters(key, place, place + 1) for place in range(len(ids))]
        assert None not in spans
        assert spans == sorted(spans)
        covered = {place for first, last in spans for place in range(first, last)}
        assert "".join(one for place, one in enumerate(whole) if place not in covered).strip() == ""
    start = next(i for i, (_, last) in enumerate(spans) if last > len(before))
    end = max(i for i, (first, _) in enumerate(spans) if first < len(before) + len(text)) + 1
    first, last = reader.characters(key, start, end)
    assert readable(tokenizer.decode(ids[start:end].tolist())) == readable(whole[first:last])
    assert readable(text) in readable(whole[first:last])
