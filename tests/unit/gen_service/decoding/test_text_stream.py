"""Incremental detokenisation and stop strings against decoding at once."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken

from tests.harness.random_model import byte_tokenizer
from tests.harness.trained_tokenizers import bpe_with_byte_fallback, unigram
from ttmark.gen_service.decoding.text_stream import TextStream
from ttmark.shared.tokenization import TextTokenizer

TOKENIZER = TextTokenizer(byte_tokenizer())
WORDS = ["one two three, naïve café"] * 20
FALLBACK = [bpe_with_byte_fallback(WORDS, 300), unigram(WORDS, 60)]
for each in FALLBACK:
    each.backend.add_special_tokens(["<|call|>"])
    each.backend.add_tokens([AddedToken(text, normalized=False) for text in ("\ufffd", "é")])


def stream(
    ids: list[int], stop: tuple[str, ...] = (), tokenizer: TextTokenizer = TOKENIZER
) -> tuple[list[str], bool]:
    """Pieces of text until a stop string, the held back rest last."""
    texts = TextStream(tokenizer, stop)
    pieces = []
    for token in ids:
        pieces.append(texts.push(token))
        if texts.stopped:
            break
    return [*pieces, texts.finish()], texts.stopped


ANY = st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=40)
PARTS = [*TOKENIZER.encode("€🦊 a"), *TOKENIZER.encode("€")[:1], TOKENIZER.vocab_size - 1]
LONG_AND_BROKEN = st.lists(st.sampled_from(PARTS), min_size=60, max_size=150)


@given(ids=ANY | LONG_AND_BROKEN)
@settings(max_examples=400)
def test_the_pieces_of_any_tokens_add_up_to_the_whole_text(ids: list[int]) -> None:
    assert "".join(stream(ids)[0]) == TOKENIZER.decode(ids) == TOKENIZER.backend.decode(ids)


@given(tokenizer=st.sampled_from(FALLBACK), data=st.data())
@settings(max_examples=400)
def test_the_pieces_of_bytes_beside_words_do_so_too(tokenizer: TextTokenizer, data: st.DataObject) -> None:
    some = tokenizer.encode("€🦊 one two") + [tokenizer.vocab_size - number for number in range(3)]
    token = st.sampled_from(some) | st.integers(0, tokenizer.vocab_size)
    ids = data.draw(st.lists(token, max_size=40))
    text, of_library = "".join(stream(ids, tokenizer=tokenizer)[0]), tokenizer.backend.decode(ids)
    assert text == tokenizer.decode(ids)
    assert "\ufffd" in of_library or text == of_library


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["▁one", "<|call|>", "▁two"], "one two"),
        (["<|call|>", "▁one", "▁two"], "one two"),
        (["▁one", 9999, "▁two"], "one two"),
        (["▁one", "€", "<0xA9>", "€", "▁two"], "one€\ufffd€ two"),
        (["€", "<0xE2>", "<0x82>", "€"], "€\ufffd€"),
        (["<0xE2>", "<0x41>", "<0xC3>", "<|call|>", "<0xA9>"], "\ufffdAé"),
        (["<0xE2>", "\ufffd", "<0xFF>", "é", "<0xC3>"], "\ufffd\ufffd\ufffdé\ufffd"),
    ],
)
def test_what_a_token_adds_is_its_own(tokens: list[str | int], text: str) -> None:
    """No blank is lost behind a special token, and no whole character beside bytes of none."""
    tokenizer, ids = FALLBACK[0], []
    for token in tokens:
        known = tokenizer.backend.token_to_id(token) if isinstance(token, str) else token
        ids += tokenizer.encode(str(token))[1:] if known is None else [known]
    pieces, _ = stream(ids, tokenizer=tokenizer)
    assert "".join(pieces) == tokenizer.decode(ids) == text


def test_a_mark_that_shows_takes_nothing_from_what_follows() -> None:
    one, call, two = map(FALLBACK[0].backend.token_to_id, ["▁one", "<|call|>", "▁two"])
    texts = TextStream(FALLBACK[0], (), {call: "\udc80"})
    pieces = [texts.push(token) for token in (one, call, two)]
    assert "".join([*pieces, texts.finish()]) == "one\udc80 two"


@pytest.mark.parametrize("part", [1, 2, 3])
def test_an_incomplete_character_repeated_20_000_times_takes_linear_time(part: int) -> None:
    """Each quarter of the stream takes as long as the first, with a wide margin; it took 17 s for 8,000."""
    tokens = TOKENIZER.encode("🦊")[:part]
    texts = TextStream(TOKENIZER, ())
    pieces, quarters = [], []
    for _ in range(4):
        started = time.thread_time()
        pieces += [texts.push(token) for _ in range(5000 // part) for token in tokens]
        quarters.append(time.thread_time() - started)
    pieces.append(texts.finish())
    assert "".join(pieces) == TOKENIZER.decode(tokens * (5000 // part) * 4)
    assert max(len(piece) for piece in pieces) <= 4
    assert quarters[-1] <= 2 * quarters[0] + 0.1
    assert sum(quarters) <= 5.0


@given(text=st.text(max_size=25))
@settings(max_examples=200)
def test_no_piece_breaks_a_character(text: str) -> None:
    ids = TOKENIZER.encode(text)
    pieces, _ = stream(ids)
    assert "".join(pieces) == TOKENIZER.decode(ids)
    if "\ufffd" not in text:
        assert not any("\ufffd" in piece for piece in pieces)


@given(
    text=st.text(alphabet="abcd é🦊", max_size=30),
    stop=st.lists(st.text(alphabet="abcd é🦊", min_size=1, max_size=4), min_size=1, max_size=3),
)
@settings(max_examples=300)
def test_text_is_cut_before_the_stop_string_that_is_complete_first(text: str, stop: list[str]) -> None:
    pieces, stopped = stream(TOKENIZER.encode(text), tuple(stop))
    found = "".join(pieces)
    assert stopped == any(each in text for each in stop)
    assert text.startswith(found)
    assert not any(each in found for each in stop)
    if stopped:
        assert any(text[len(found) :].startswith(each) for each in stop)
    else:
        assert found == text


def test_text_that_may_become_a_stop_string_is_held_back_and_released() -> None:
    texts = TextStream(TOKENIZER, ("STOP",))
    assert "".join(texts.push(token) for token in TOKENIZER.encode("so ST")) == "so "
    assert "".join(texts.push(token) for token in TOKENIZER.encode("AR")) == "STAR"


@pytest.mark.parametrize(
    ("deaf", "left"), [(0, "one "), (8, "one STOP two "), (15, "one STOP two "), (16, None)]
)
def test_a_stop_string_counts_if_the_token_that_completes_it_may_stop(deaf: int, left: str | None) -> None:
    text = "one STOP two STOP three"
    texts, pieces = TextStream(TOKENIZER, ("STOP",)), []
    for number, token in enumerate(TOKENIZER.encode(text), 1):
        pieces.append(texts.push(token, stops=number > deaf))
        if texts.stopped:
            break
    pieces.append(texts.finish())
    assert "".join(pieces) == (left or text)
