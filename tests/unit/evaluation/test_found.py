"""Marked answers as documents, read by a model, and what is found of them."""

import math
from pathlib import Path

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from ttmark.detect_service import cascade
from ttmark.evaluation import likelihood_power as found
from ttmark.evaluation.changed_answers import (
    AS_WRITTEN,
    Document,
    as_they_are,
    conversations,
    documents_of,
    read_documents,
    write_documents,
)
from ttmark.evaluation.cli.app import eval_app
from ttmark.evaluation.language_model import CausalModel, log_likelihood
from ttmark.evaluation.model_readings import KnownReadings, write_readings
from ttmark.evaluation.report.result import Result
from ttmark.evaluation.synonyms import Synonyms
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import key_lanes
from ttmark.shared.watermark.likelihood.conversation import detect_conversation
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest, detect_likelihood

pytestmark = pytest.mark.long

PEOPLE = ["The sea was calm that morning, and nobody spoke of the night before. " * 4] * 3


def marked(tokenizer: TextTokenizer, key: bytes, count: int, seed: int) -> list[int]:
    """Tokens of words, pairs of which are the best of 16 for the key."""
    words = [
        tokenizer.encode(" " + word)[0] for word in ("sea", "night", "boat", "wind", "light", "stone", "road")
    ]
    draws, watermark = np.random.default_rng(seed), found.WATERMARK
    ids = draws.choice(words, 2).tolist()
    while len(ids) < count:
        blocks = draws.choice(words, (16, 2))
        contexts = np.repeat([ids[-watermark.context_width :]], len(blocks), axis=0)
        ids += blocks[np.argmax(watermark.score(key_lanes(key), contexts, blocks))].tolist()
    return ids[:count]


def write_answers(file: Path, tokenizer: TextTokenizer, count: int, tokens: int) -> None:
    keys = [bytes([number]) * 16 for number in range(count)]
    lines = [
        {"index": number, "prf_key": key.hex(), "ids": marked(tokenizer, key, tokens, number)}
        for number, key in enumerate(keys)
    ]
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in reversed(lines)))


def test_answers_become_documents_in_order_and_short_ones_are_left_out(
    tmp_path: Path, tokenizer: TextTokenizer
) -> None:
    write_answers(tmp_path / "answers.jsonl", tokenizer, 4, 40)
    with (tmp_path / "answers.jsonl").open("ab") as lines:
        short = {"index": -1, "prf_key": "aa" * 16, "ids": [5] * 20}
        lines.write(orjson.dumps(short) + b'\n{"index": -2, "prf')
    make = (tmp_path / "answers.jsonl", tokenizer, PEOPLE, (20, 40))
    documents = list(documents_of(*make, 3, Synonyms({"stone": ["rock"]})))
    whole = [one for one in documents if (one.change, one.tokens) == (AS_WRITTEN, 40)]
    assert [one.key for one in whole] == [(bytes([number]) * 16).hex() for number in range(3)]
    assert len(documents) == 3 * 6
    cut = [one.text for one in documents if (one.change, one.tokens) == (AS_WRITTEN, 20)]
    assert all(longer.text.startswith(text) for longer, text in zip(whole, cut, strict=True))
    inside = [one.text for one in documents if one.change.startswith("among")]
    assert all(one.text.strip() in text for one, text in zip(whole, inside, strict=True))
    with pytest.raises(ValueError, match="4 answers of 40 tokens, not 5"):
        list(documents_of(*make, 5, None))


def test_answers_are_taken_as_they_are_or_as_conversations(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    write_answers(tmp_path / "answers.jsonl", tokenizer, 11, 40)
    whole = list(as_they_are(tmp_path / "answers.jsonl", tokenizer, "code", 11))
    assert {(one.change, one.tokens, one.later) for one in whole} == {("code", 0, ())}
    asked = list(conversations(tmp_path / "answers.jsonl", tokenizer, 20, 2))
    said = [message for one in asked for message in one.messages]
    assert [key for _, key in said] == [one.key for one in whole][:10]
    assert all(one.text.startswith(text) for one, (text, _) in zip(whole, said, strict=False))
    write_documents([*whole, *asked], tmp_path / "documents.jsonl")
    assert read_documents(tmp_path / "documents.jsonl") == [*whole, *asked]
    with pytest.raises(ValueError, match="11 answers of 20 tokens, not 15"):
        list(conversations(tmp_path / "answers.jsonl", tokenizer, 20, 3))


@pytest.mark.parametrize("reader", [False, True])
def test_a_conversation_is_found_by_what_its_messages_say_together(
    tokenizer: TextTokenizer, *, reader: bool
) -> None:
    keys = [bytes([number]) * 16 for number in range(4)]
    ids = [np.array(marked(tokenizer, keys[number % 3], 14, number)) for number in range(5)]
    readings = [found.Reading(np.full(14, -2.0)) if reader else None for _ in ids]
    plain = detect_conversation(found.WATERMARK, keys, ids).grown.max()
    read = detect_conversation(found.WATERMARK, keys, ids, readings=readings).grown.max()
    for rate in np.logspace(-12, -1, 45):
        least = -math.log10(rate)
        possible = found.conversation_is_found(keys, ids, readings, rate)
        if possible:  # of two steps either alone, or both together, are enough
            assert max(plain, read) >= least
        elif reader:
            assert plain + math.log10(cascade.FIRST_SHARE) < least
            assert read + math.log10(cascade.SECOND_SHARE) < least
        else:
            assert plain < least
    others = [bytes([9, number]) * 8 for number in range(5)]
    assert not found.conversation_is_found(others, ids, readings, 1e-3)


def test_synonyms_keep_blanks_and_signs_and_are_as_many_as_asked(tmp_path: Path) -> None:
    licence = "  1 a licence \n"
    for part in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"data.{part}").write_text(licence)
        (tmp_path / f"index.{part}").write_text(licence)
    (tmp_path / "data.noun").write_text(
        licence + "00000009 06 n 03 boat 0 ship 0 Ark 0 000 | a gloss\n00000010 06 n 02 boat 0 dish 0 000 |\n"
        "00000011 06 n 02 boat 0 third 0 000 | a sense that is met seldom\n"
    )
    (tmp_path / "index.noun").write_text(licence + "boat n 3 1 @ 3 2 00000009 00000010 00000011\n")
    known = Synonyms.read(tmp_path)
    assert known.of == {"boat": ["ship", "dish"]}
    text = "A boat,\n boat and boat! boat"
    for share, changed in ((0.0, 0), (0.34, 2), (1.0, 4)):
        put = known.put_into(text, share, np.random.default_rng(1))
        assert put.count("ship") + put.count("dish") == changed
        assert put.replace("ship", "boat").replace("dish", "boat") == text


def test_a_reading_goes_on_where_it_stopped_and_serves_what_a_text_begins_with(
    tmp_path: Path, tokenizer: TextTokenizer
) -> None:
    file, whole = tmp_path / "readings.jsonl", "The old lighthouse stood on a rock above the sea."
    cut, other = whole[: whole.index(" above")], "Nobody spoke."
    assert list(write_readings([cut, whole], str(DEMO_MODEL_PATH), file)) == [1, 0]
    file.write_bytes(file.read_bytes() + b'{"text": "cut o')
    first = file.read_bytes()
    assert list(write_readings([cut, whole, other], str(DEMO_MODEL_PATH), file)) == [1, 0]
    assert file.read_bytes().startswith(first[: first.rindex(b"\n") + 1])
    known = KnownReadings.read(file)
    assert sorted([whole, other]) == list(known.texts)

    start = tokenizer.backend.token_to_id("<|endoftext|>")
    ids = tokenizer.encode(whole)
    model = CausalModel(str(DEMO_MODEL_PATH))
    starts = model._model.config.bos_token_id if start is None else start
    slow = log_likelihood(model, [starts], ids)
    reading, begun = known.of(whole, tokenizer), known.of(cut, tokenizer)
    assert reading is not None
    assert begun is not None
    assert reading.log_probs == pytest.approx(slow, abs=1e-6)
    assert begun.log_probs == pytest.approx(slow[: len(tokenizer.encode(cut))], abs=1e-6)
    assert known.of(whole + " It", tokenizer) is None


@pytest.mark.parametrize("reader", [False, True])
def test_what_is_found_is_what_the_drawn_p_values_say(tokenizer: TextTokenizer, *, reader: bool) -> None:
    key, rates = bytes(16), (1e-5, 1e-4, 1e-3, 1e-2)
    for tokens in (14, 18, 24, 30, 40):
        ids = np.array(marked(tokenizer, key, tokens, tokens))
        reading = found.Reading(np.full(tokens, -2.0)) if reader else None
        for rate in rates:
            tests = [(None, rate)]
            if reading is not None:
                tests = [(None, rate * cascade.FIRST_SHARE), (reading, rate * cascade.SECOND_SHARE)]
            p = [
                detect_likelihood(
                    found.WATERMARK, [key], ids, rate=r, reading=by, secret=found.SECRET
                ).log10_p
                for by, r in tests
            ]
            due = any(one <= math.log10(r) for one, (_, r) in zip(p, tests, strict=True))
            assert found.is_found(key, ids, reading, rate) == due


def test_wrong_keys_are_counted_as_all_their_p_values_say(tokenizer: TextTokenizer) -> None:
    documents = [
        Document(AS_WRITTEN, 40, tokenizer.decode(marked(tokenizer, bytes(16), 40, seed)), "00" * 16)
        for seed in range(3)
    ]
    rows, (null,) = found.measure_found(documents, tokenizer, {}, 500, 2)
    assert [(row.texts, row.rates[0][2].estimate) for row in rows] == [(3, 1.0)]
    hits = np.zeros(len(found.LEVELS), dtype=int)
    for number, document in enumerate((documents[0], documents[2])):
        keys = [found.prf_key(0, "wrong", number, count) for count in range(500)]
        ids = np.array(tokenizer.encode(document.text))
        for place, level in enumerate(found.LEVELS):
            test = LikelihoodTest(found.WATERMARK, ids, rate=level, secret=found.SECRET)
            hits[place] += np.count_nonzero(test.under(keys).p_of_keys <= math.log10(level))
    assert null.hits == tuple(hits)
    assert null.of_promise[0].estimate == pytest.approx(hits[0] / 1000 / 1e-2)
    assert null.of_promise[0].low < 1.0 < null.of_promise[0].high * 2


def test_the_commands_follow_each_other(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    write_answers(tmp_path / "answers.jsonl", tokenizer, 2, 40)
    (tmp_path / "people.jsonl").write_bytes(b"".join(orjson.dumps({"text": one}) + b"\n" for one in PEOPLE))
    documents, readings = str(tmp_path / "documents.jsonl"), str(tmp_path / "readings.jsonl")
    model = str(DEMO_MODEL_PATH)

    def run(*words: str) -> None:
        outcome = CliRunner().invoke(eval_app(), words)
        assert outcome.exit_code == 0, outcome.output

    sizes = ("--length", "20", "--length", "40", "--texts", "2", "--human", str(tmp_path / "people.jsonl"))
    run("changes", str(tmp_path / "answers.jsonl"), "--tokenizer", model, "--file", documents, *sizes)
    assert write_documents(read_documents(Path(documents)), Path(documents)) is None
    run("readings", documents, "--model", model, "--file", readings, "--change", AS_WRITTEN)
    reader = ("--readings", f"demo={readings}", "--wrong-keys", "50", "--wrong-texts", "2")
    run("found", documents, "--tokenizer", model, *reader, "--out", str(tmp_path))
    result = Result.load(tmp_path / "found.json")
    kinds = [(row["reader"], row["change"], row["tokens"]) for row in result.data if "change" in row]
    assert {one for one in kinds if one[0] == "demo"} == {("demo", AS_WRITTEN, 20), ("demo", AS_WRITTEN, 40)}
    assert sum(name == found.NOBODY for name, _, _ in kinds) == 5
    assert sum("hits" in row for row in result.data) == 2
    assert (found.FIRST, found.SECOND) == (cascade.FIRST_SHARE, cascade.SECOND_SHARE)
