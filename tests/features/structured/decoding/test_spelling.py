"""Which tokens may follow each other, beside encoding the text of each pair anew."""

import json

import numpy as np
import pytest
from tokenizers import Regex, Tokenizer, models
from tokenizers.decoders import Fuse
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

from tests.harness.byte_tokenizers import trained
from tests.harness.trained_tokenizers import bpe_with_byte_fallback
from ttmark.evaluation.bench.workload import _TEXT
from ttmark.gen_service.features.structured.grammars.pieces import Place
from ttmark.gen_service.features.structured.grammars.spelling import Spelling


def reads_back(backend: Tokenizer, *tokens: int) -> bool:
    return bool(backend.encode(backend.decode(tokens)).ids == list(tokens))


def after(spelling: Spelling, token: int | None, vocab: int) -> np.ndarray:
    return behind(spelling, Place(token), vocab)


def behind(spelling: Spelling, place: Place, vocab: int) -> np.ndarray:
    return np.unpackbits(spelling.after(place), bitorder="little", count=vocab).astype(bool)


@pytest.fixture(scope="module")
def backend() -> Tokenizer:
    return trained([_TEXT, 'aaaa aaa aa banana papapa {"a": ["b", "c"]}' * 9], 450)


@pytest.fixture(scope="module")
def spelling(backend: Tokenizer) -> Spelling:
    found = Spelling.of(backend)
    assert found is not None
    return found


def readable(backend: Tokenizer) -> list[int]:
    return [i for i in range(1, backend.get_vocab_size()) if "\ufffd" not in backend.decode([i])]


def test_a_token_may_follow_another_where_the_tokenizer_reads_both_back(
    backend: Tokenizer, spelling: Spelling
) -> None:
    tokens = readable(backend)
    for first in tokens[::3]:
        allowed = after(spelling, first, backend.get_vocab_size())
        for second in tokens:
            assert allowed[second] == reads_back(backend, first, second), backend.decode([first, second])


def test_what_is_spelled_pair_by_pair_is_read_back_whole(backend: Tokenizer, spelling: Spelling) -> None:
    tokens = np.array(readable(backend))
    random = np.random.default_rng(0)
    for _ in range(200):
        text = [int(random.choice(tokens))]
        for _ in range(12):
            allowed = after(spelling, text[-1], backend.get_vocab_size())[tokens]
            text.append(int(random.choice(tokens[allowed])))
        assert reads_back(backend, *text)


def test_of_several_merges_that_make_a_token_the_one_counts_that_happens(backend: Tokenizer) -> None:
    model = json.loads(backend.to_str())["model"]
    known = model["vocab"].keys()
    # As converters of rank tables write it: every way to make a token, in the order of the tokens.
    merges = [
        [token[:cut], token[cut:]]
        for token in sorted(known, key=model["vocab"].get)
        for cut in range(1, len(token))
        if token[:cut] in known and token[cut:] in known
    ]
    model["merges"] = merges
    backend = Tokenizer.from_str(json.dumps(json.loads(backend.to_str()) | {"model": model}))
    spelling = Spelling.of(backend)
    assert spelling is not None
    tokens = [token for token in readable(backend) if reads_back(backend, token)]
    for first in tokens[::5]:
        allowed = after(spelling, first, backend.get_vocab_size())
        for second in tokens:
            assert allowed[second] == reads_back(backend, first, second)


def test_a_token_that_no_merge_leads_to_is_never_spelled(backend: Tokenizer) -> None:
    description = json.loads(backend.to_str())
    description["model"]["vocab"]["zqzq"] = 450
    spelling = Spelling.of(Tokenizer.from_str(json.dumps(description)))
    assert spelling is not None
    assert not after(spelling, None, 451)[450]
    assert after(spelling, None, 451)[1:450].all()


def test_longer_tokens_begin_with_the_text_of_a_shorter_one(backend: Tokenizer, spelling: Spelling) -> None:
    letter = backend.token_to_id("a")
    texts = [backend.id_to_token(int(token)) for token in spelling.longer(letter)]
    expected = [text for text in backend.get_vocab() if text.startswith("a") and text != "a"]
    assert sorted(texts) == sorted(expected)


def test_merges_of_long_runs_may_stand_before_those_of_the_short_ones_that_they_are_made_of() -> None:
    runs = ["-" * size for size in range(1, 9)]
    merges = [(run[:cut], run[cut:]) for run in reversed(runs) for cut in range(len(run) - 1, 0, -1)]
    backend = Tokenizer(models.BPE({text: number for number, text in enumerate([*runs, "a"])}, merges))
    backend.decoder = Fuse()
    spelling = Spelling.of(backend)
    assert spelling is not None
    for first in range(9):
        allowed = after(spelling, first, 9).tolist()
        assert allowed == [reads_back(backend, first, second) for second in range(9)], first


@pytest.mark.parametrize(
    ("text", "allowed"),
    [("é", False), ("è", True), ("人", False), ("入", True), (" ", False), ("a", False), ("\x01", True)],
)
def test_bytes_spell_no_character_that_has_a_token(text: str, allowed: bool) -> None:
    backend = bpe_with_byte_fallback(["a café, 人人 a"] * 9, 300).backend
    spelling = Spelling.of(backend)
    assert spelling is not None
    place, steps = Place(backend.token_to_id("a")), []
    for byte in text.encode():
        token = backend.token_to_id(f"<0x{byte:02X}>")
        steps.append(bool(behind(spelling, place, backend.get_vocab_size())[token]))
        place = spelling.along(place, [token])
    assert all(steps) == allowed
    assert place.part == b""


def test_a_tokenizer_that_merges_nothing_has_no_spelling_to_keep_to() -> None:
    assert Spelling.of(Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))) is None


# As Qwen 3, GPT-4o, DeepSeek 3 and SmolLM cut texts.
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CONTRACTED = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_WORD = r"[^\r\n\p{L}\p{N}]?"
_PATTERNS = {
    "qwen": [_CONTRACTED + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _REST],
    "gpt-4o": [
        f"{_WORD}{_UPPER}*{_LOWER}+{_CONTRACTED}?|{_WORD}{_UPPER}+{_LOWER}*{_CONTRACTED}?|\\p{{N}}{{1,3}}{_REST}"
    ],
    "deepseek": [
        r"\p{N}{1,3}",
        "[一-龥぀-ゟ゠-ヿ]+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    "smollm": [],
}
_WRITTEN = [
    "def first(values):\n    for value in values:\n        if value:\n            return HTML(v)[12345]\n",
    "# Plan\n\n- one\n  - two, don't\n  - THEY'LL, we'reach\n\n| a | b |\n|---|---|\n",
    "मानव परिवार के सभी सदस्यों के जन्मजात गौरव और समान अधिकार की स्वीकृति",
    "ปฏิญญาสากลว่าด้วยสิทธิมนุษยชน",
    "人人生而自由，在尊严和权利上一律平等。カタカナ it’s 🦊🎉 “naïve” x²",
]


@pytest.mark.parametrize("name", _PATTERNS)
def test_a_spelling_allows_what_the_tokenizer_writes_and_nothing_that_it_reads_otherwise(name: str) -> None:
    parts = [Split(Regex(pattern), "isolated") for pattern in _PATTERNS[name]] or [Digits(True)]
    backend = trained(
        _WRITTEN * 3, 600, pre_tokenizer=Sequence([*parts, ByteLevel(False, use_regex=name == "smollm")])
    )
    spelling, vocab = Spelling.of(backend), backend.get_vocab_size()
    assert spelling is not None
    for text in _WRITTEN:
        written = backend.encode(json.dumps(text, ensure_ascii=False)).ids
        place = Place()
        for token in written:
            assert behind(spelling, place, vocab)[token], (
                backend.decode(written),
                place,
                backend.decode([token]),
            )
            place = spelling.along(place, [token])
    random = np.random.default_rng(0)
    for _ in range(20):
        place, text = Place(), [0][:0]
        while len(text) < 12 and (allowed := np.flatnonzero(behind(spelling, place, vocab)[1:]) + 1).size:
            text.append(int(random.choice(allowed)))
            place = spelling.along(place, text[-1:])
        spelled = backend.decode(text)
        # What follows may be what the last tokens wait for.
        read = [backend.encode(spelled + after).ids[: len(text)] for after in ("", "a", " ", "年", ".")]
        assert text in read or "\ufffd" in spelled, [backend.decode([token]) for token in text]
