"""`load(...).generate` and `detect`: one and many, streams, options, chats, readers."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

import ttmark
from ttmark.library.finding import FoundPassage
from ttmark.library.generation_requests import generation_request, sampling_params
from ttmark.shared.tokenization import TextTokenizer

LIGHTHOUSE = "The old lighthouse stood"
OPTIONS: dict[str, Any] = {"temperature": 0.9, "top_k": 50, "top_p": 0.95}


def test_a_text_is_found_under_its_key_and_no_other(model: ttmark.Model, key: ttmark.Key) -> None:
    text = model.generate(LIGHTHOUSE, key=key, max_new_tokens=160, seed=1, **OPTIONS)
    found, other = ttmark.detect(text, key), ttmark.detect(text, ttmark.Key.new(), model="demo")
    assert found
    assert found.p < 1e-5
    assert repr(found).startswith("Watermarked: about ")
    assert found.passages[0].start_char is not None
    assert "<mark" in found._repr_html_()
    assert other.verdict == "not_detected"
    assert repr(other).startswith("Not detected: no mark of this key in ")


def test_text_without_a_key_is_not_found(model: ttmark.Model, key: ttmark.Key) -> None:
    text = model.generate(LIGHTHOUSE, key=None, max_new_tokens=120, seed=1, **OPTIONS)
    assert not ttmark.detect(text, key, model=model)


def test_many_prompts_stream_the_texts_that_they_return(model: ttmark.Model, key: ttmark.Key) -> None:
    prompts = [LIGHTHOUSE, "It was raining"]
    options = {"max_new_tokens": 20, "seed": 5, **OPTIONS}
    texts = model.generate(prompts, key=key, **options)
    streamed = ["", ""]
    for number, piece in model.generate(prompts, key=key, stream=True, **options):
        streamed[number] += piece
    assert streamed == texts
    assert "".join(model.generate(prompts[0], key=key, stream=True, **options)) == texts[0]
    assert ttmark.detect(texts, key) == [ttmark.detect(text, key) for text in texts]


def test_a_list_may_be_longer_than_the_engine_takes_at_once(model: ttmark.Model, key: ttmark.Key) -> None:
    texts = model.generate([LIGHTHOUSE] * 300, key=key, max_new_tokens=1, seed=1)
    assert len(texts) == 300
    assert all(texts)


_OPEN = """
import os, signal, ttmark
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have its jobs ignore it
model = ttmark.load("demo")
for piece in model.generate(["The old"] * 32, key=None, max_new_tokens=400, stream=True):
    {}
"""


@pytest.mark.parametrize(
    ("within", "ended", "said"),
    [
        ("raise KeyError('mine')", 1, "KeyError: 'mine'"),
        ("os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT, "KeyboardInterrupt"),
    ],
)
def test_a_program_ends_as_python_does_while_a_stream_is_open(
    within: str, ended: int, said: str, folder_of_choices: Path
) -> None:
    command = [sys.executable, "-c", _OPEN.format(within)]
    program = subprocess.run(
        command, cwd=folder_of_choices, capture_output=True, text=True, timeout=300, check=False
    )
    assert (program.returncode, program.stderr.splitlines()[-1]) == (ended, said)


def test_token_ids_are_read_as_they_are_with_the_tokenizers_that_have_them(
    model: ttmark.Model, key: ttmark.Key
) -> None:
    key.remember(TextTokenizer(Tokenizer(WordLevel({"a": 0, "b": 1}, unk_token="a"))), "small")
    text = model.generate(LIGHTHOUSE, key=key, max_new_tokens=60, seed=2, **OPTIONS)
    ids = model.tokenizer.encode(text)
    of_ids = ttmark.detect(ids, key)
    assert of_ids
    assert of_ids.log10_p == ttmark.detect(text, key, model=model).log10_p
    assert of_ids.passages[0].start_char is None
    assert ttmark.detect(np.array(ids), key) == ttmark.detect(torch.tensor(ids), key) == of_ids
    assert ttmark.detect(torch.tensor([ids, ids]), key) == [of_ids, of_ids]


def test_what_is_no_text_of_the_model_is_refused(model: ttmark.Model, key: ttmark.Key) -> None:
    with pytest.raises(TypeError, match="decode bytes"):
        ttmark.detect(b"A file that was opened for its bytes.", key, model=model)
    with pytest.raises(ValueError, match="token ids are from 0 to"):
        ttmark.detect([model.tokenizer.vocab_size] * 40, key, model=model)


def test_a_reader_that_knows_the_text_makes_the_evidence_stronger(
    model: ttmark.Model, key: ttmark.Key
) -> None:
    text = model.generate(LIGHTHOUSE, key=key, max_new_tokens=60, seed=3, temperature=0.7, top_k=50)
    alone, read = ttmark.detect(text, key), ttmark.detect(text, key, reader=model)
    assert read.read
    assert read.log10_e > alone.log10_e
    with pytest.raises(ValueError, match="reading of 1 tokens"):
        ttmark.detect(text, key, reader=lambda _: np.zeros(1))


def test_an_unknown_option_is_named_with_the_nearest(model: ttmark.Model, key: ttmark.Key) -> None:
    with pytest.raises(ValueError, match="'max_tokens'; did you mean 'max_new_tokens'"):
        model.generate(LIGHTHOUSE, key=key, max_tokens=5)


def test_greedy_text_carries_no_mark(model: ttmark.Model, key: ttmark.Key) -> None:
    first, second = (
        model.generate(LIGHTHOUSE, key=k, max_new_tokens=30, do_sample=False) for k in (key, None)
    )
    assert first == second


def test_a_chat_needs_a_template(model: ttmark.Model, key: ttmark.Key) -> None:
    bare = ttmark.Model(model._writer, model.tokenizer, "bare")
    with pytest.raises(ValueError, match="no chat template"):
        bare.generate([{"role": "user", "content": "Hello"}], key=key, max_new_tokens=1)


def test_a_mark_is_html_that_escapes_the_text() -> None:
    finding = ttmark.Finding("not_detected", -1.0, 0.0, 1e-5, 100, text="<b>")
    assert "<b>" not in finding._repr_html_().split("<div")[1]


@pytest.mark.parametrize(
    ("log10_e", "where"),
    [((None,), ", in 1 passage."), ((-9.0, -5.0, -4.9), ", in 2 passages."), ((-4.9,), ".")],
)
def test_a_finding_counts_the_passages_that_are_by_themselves_within_the_rate(
    log10_e: tuple[float | None, ...], where: str
) -> None:
    passages = tuple(FoundPassage(0, 9, log10_e=one) for one in log10_e)
    finding = ttmark.Finding("watermarked", -9.0, 9.0, 1e-5, 100, passages, 0.5)
    assert repr(finding).startswith(f"Watermarked: about 50% of 100 tokens{where} By chance")


def test_the_sampling_of_a_row_is_seeded_by_its_number(model: ttmark.Model, key: ttmark.Key) -> None:
    both = model.generate([LIGHTHOUSE, LIGHTHOUSE], key=key, max_new_tokens=20, seed=7, **OPTIONS)
    alone = model.generate(LIGHTHOUSE, key=key, max_new_tokens=20, seed=8, **OPTIONS)
    assert both[1] == alone != both[0]


def test_the_opening_is_that_of_the_services(model: ttmark.Model, key: ttmark.Key) -> None:
    sampling = sampling_params({"max_new_tokens": 200}, {}, 0)
    request = generation_request(0, (1, 2), sampling, key, model.tokenizer, "demo")
    assert request.marking is not None
    assert request.marking.opening_bits == 8.0
