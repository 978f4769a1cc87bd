"""The default question: golden vectors, and the second detector written from `docs/spec.md` alone."""

import json
import math

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.harness.golden import GOLDEN, approximately
from tests.harness.golden_detection import exported
from tests.harness.golden_likelihood import (
    LETTERS,
    QUOTING,
    SECRET,
    asked_about,
    likelihood_vectors,
    printed,
    reading_keys,
    said_of,
    shown,
    typeset,
    written,
)
from tests.harness.spec_detector import Reading, detect_combined, detect_conversation
from tests.harness.spec_detector.normalisation import unwrapped, without_typography
from tests.harness.spec_detector.reader_classes import token_ends
from tests.unit.detect_service.test_golden_answers import LOOK_ALIKES, TEXTS
from ttmark.shared.schemas.detection.detect import Document

VECTORS = {
    version: json.loads((GOLDEN / name).read_text())
    for version, name in ((3, "likelihood.json"), (4, "likelihood-4.json"))
}
CASES = [(version, case) for version, vectors in VECTORS.items() for case in vectors["cases"]]


@pytest.fixture(scope="module")
def tokenizer():
    found = Tokenizer.from_str(TEXTS["tokenizer"])
    found.no_truncation()
    return found


def weighted(text, version=4):
    """The texts of the readings, each with its names and their weights."""
    plain = unwrapped(text, LOOK_ALIKES)
    if version == 3:
        return {one: [1 / len({text, plain})] for one in (text, plain)}
    texts = {}
    for one, weight in ((text, 0.5), (plain, 0.25), (without_typography(plain), 0.25)):
        texts.setdefault(one, []).append(weight)
    return texts


def readings_of(tokenizer, text, read_as=None, version=4):
    """The readings of a text, by the second implementation; `read_as` is what a reader said of each."""
    texts = weighted(text, version)
    encoded = [tokenizer.encode(one, add_special_tokens=False) for one in texts]
    parts = [None] * len(texts) if read_as is None else read_as
    return [
        Reading(ids, token_ends(of, offsets), said, sum(weights), len(weights))
        for (of, weights), one, said in zip(texts.items(), encoded, parts, strict=True)
        for ids, offsets in [with_unknown(of, one)]
    ]


def with_unknown(text, encoding):
    """Ids and places in which each character of a token that holds U+FFFD is a token by itself."""
    tokens = [(place, token) for token, place in zip(encoding.ids, encoding.offsets, strict=True)]
    lost = {at for place, _ in tokens if "\ufffd" in text[slice(*place)] for at in range(*place)}
    left = [one for one in tokens if lost.isdisjoint(range(*one[0]))]
    tokens = sorted([*left, *(((at, at + 1), 2**32 - 2) for at in lost)], key=lambda one: one[0][0])
    return [token for _, token in tokens], [place for place, _ in tokens]


def assert_same(found, expected):
    """An answer of the second implementation, and `shown` of the service's."""
    assert (found.verdict, found.reader) == (expected["verdict"], expected["reader"])
    assert found.log10_p == pytest.approx(expected["log10_p"], abs=1e-6)
    assert found.log10_e == pytest.approx(expected["log10_e"], abs=1e-9)
    assert (found.hypotheses, found.scored_blocks) == (expected["hypotheses"], expected["scored_blocks"])
    assert found.scope == expected.get("scope")
    if found.verdict == "watermarked":
        *key, _ = expected["key"]
        assert found.key == (*key[:2], key[2] or 0)
        assert found.fired == expected.get("pool_keys_found", found.fired)
        share = expected["marked_share"]
        assert found.share == pytest.approx((share["estimate"], share["low"], share["high"]), abs=1e-9)
        spans = [(*one[:2], pytest.approx(one[2], abs=1e-9), one[4] or 0) for one in expected["segments"]]
        assert list(found.segments) == spans
    else:
        assert found.weak == expected["weak"]
        assert found.tokens_needed == expected.get("tokens_needed")
        assert found.tokens_typical == expected.get("tokens_typical")


def named(case):
    if not isinstance(case, dict):
        return str(case)
    keys = case["keys"] if case["keys"] == "any" else "+".join(case["keys"])
    what = case.get("document") or "+".join(case["messages"])
    return f"{what}-{keys}-{case['reader']}-{case['wanted']}{case.get('draw_secret', '-secret')}"


def test_golden_answers_of_the_default_question_are_reproduced():
    found = json.loads(json.dumps(likelihood_vectors()))
    expected = {name: value for name, value in VECTORS[4].items() if name != "conversations"}
    assert approximately(expected) == found


@pytest.mark.long
@pytest.mark.parametrize(("version", "case"), CASES, ids=named)
def test_answers_to_the_default_question_follow_from_the_specification_alone(tokenizer, version, case):
    vectors, name = VECTORS[version], case["document"]
    keys = [key for key in vectors["keys"] if case["keys"] == "any" or key["key_id"] in case["keys"]]
    said = vectors["read_as"][name] if case["reader"] == "up" else None
    readings = readings_of(tokenizer, vectors["documents"][name], said, version)
    secret = bytes.fromhex(case.get("draw_secret", vectors["draw_secret"]))
    options = {"secret": secret, "reader": case["reader"], "wanted": case["wanted"]}
    assert_same(detect_combined(keys, readings, vectors["fpr"], **options), case["answer"])


@pytest.mark.parametrize(
    ("version", "case"),
    [(version, case) for version, vectors in VECTORS.items() for case in vectors["conversations"]],
    ids=named,
)
def test_conversations_follow_from_the_specification_alone(tokenizer, version, case):
    vectors, messages = VECTORS[version], []
    keys = [key for key in vectors["keys"] if case["keys"] == "any" or key["key_id"] in case["keys"]]
    for name in case["messages"]:
        said = vectors["read_as"][name] if case["reader"] == "up" else None
        of_texts = readings_of(tokenizer, vectors["documents"][name], said, version)
        messages.append([one for one in of_texts for _ in range(one.count)])
    weights = (0.5, 0.25, 0.25) if version == 4 else [1 / max(map(len, messages))] * max(map(len, messages))
    ways = [
        ([readings[min(way, len(readings) - 1)] for readings in messages], weight)
        for way, weight in enumerate(weights)
    ]
    options = {"reader": case["reader"], "wanted": case["wanted"]}
    grown, log10_p, state = detect_conversation(keys, ways, vectors["fpr"], **options)
    answer = case["answer"]
    assert grown == pytest.approx(answer["grown"], abs=1e-9)
    assert log10_p == pytest.approx(answer["log10_p"], abs=1e-9)
    assert state == answer["reader"]
    assert (log10_p <= math.log10(vectors["fpr"])) == (answer["verdict"] == "watermarked")


PROFILES = {
    "a-pairs": {"scheme": "gumbel", "block_size": 2, "context_width": 2, "pool": 3},
    "b-single": {"scheme": "synthid", "block_size": 1, "context_width": 3},
    "c-orders": {"scheme": "dipmark", "block_size": 2, "parameters": {"alpha": 0.45}},
    "d-channels": {"scheme": "mcmark", "block_size": 3, "parameters": {"channels": 8, "layers": 7}},
    "d-weights": {"scheme": "synthid", "block_size": 2, "parameters": {"weighted": True, "depth": 20}},
    "e-race": {"scheme": "gumbel", "block_size": 1, "parameters": {"blend": 0.8}},
}
TEXT_COUNT = 24


def made_up(seed, keys):
    """A text, keys to ask about, and how: marked or not, and what people do to texts."""
    generator = np.random.default_rng([34, seed])
    key = keys[int(generator.integers(len(keys)))]
    version = key.versions[int(generator.integers(2))]
    prf_key = version.prf_keys[int(generator.integers(len(version.prf_keys)))]
    watermark, tokens = key.profile.watermark(), int(generator.integers(3, 150))
    sharpness, others = float(generator.choice([0.3, 2.0, 8.0])), "éü" if generator.integers(2) else QUOTING
    prf_key = None if generator.random() < 0.25 else prf_key
    text = written(generator, watermark, prf_key, tokens, sharpness=sharpness, others=others)
    kind = generator.choice(["whole", "edited", "passage", "looped", "hidden", "letters", "printed", "lost"])
    if kind == "edited":
        text = "".join(generator.choice(list(LETTERS)) if generator.random() < 0.06 else c for c in text)
    elif kind == "passage":
        around = [written(generator, watermark, None, int(generator.integers(10, 120))) for _ in range(2)]
        text = f"{around[0]} {text} {around[1]}"
    elif kind == "looped":
        text = text[: len(text) // 2] * 3
    elif kind == "hidden":
        text = text.replace("a", "\N{CYRILLIC SMALL LETTER A}").replace(" ", "\N{NO-BREAK SPACE}", 2)
    elif kind == "letters":
        text = text.replace("é", "e\N{COMBINING ACUTE ACCENT}").replace("q", "\N{OWL}")
    elif kind == "printed":
        text = printed(typeset(text)) if generator.integers(2) else typeset(text)
    elif kind == "lost":
        text = "".join(
            "\ufffd" * int(generator.integers(4)) if generator.random() < 0.05 else c for c in text
        )
    names = None if generator.random() < 0.3 else [key.key_id]
    fpr = float(generator.choice([1e-2, 1e-3, 1e-5, 1e-9]))
    how = {
        "reader": str(generator.choice(["none", "up", "up", "up", "down"])),
        "wanted": str(generator.choice(["auto", "always", "never"], p=[0.5, 0.4, 0.1])),
    }
    fails = generator.random() < 0.1
    return text, names, fpr, how, fails


def assert_agreement(tokenizer, seed, keys):
    text, names, fpr, how, fails = made_up(seed, keys)
    result = asked_about(keys, [Document(text=text)], names=names, fpr=fpr, fails=fails, **how)
    said = None
    if how["reader"] == "up" and not fails:
        said = [said_of(one) for one in weighted(text)]
    exports = [exported(key) for key in keys if names is None or key.key_id in names]
    found = detect_combined(exports, readings_of(tokenizer, text, said), fpr, secret=SECRET, **how)
    assert_same(found, shown(result))
    return result.verdict


@pytest.fixture(scope="module")
def keys():
    return reading_keys(PROFILES)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(TEXT_COUNT))
def test_the_second_detector_answers_as_the_service_does(tokenizer, keys, seed):
    assert_agreement(tokenizer, seed, keys)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(TEXT_COUNT, TEXT_COUNT + 300, 30))
def test_the_second_detector_answers_as_the_service_does_on_300_texts(tokenizer, keys, first):
    verdicts = [assert_agreement(tokenizer, seed, keys) for seed in range(first, first + 30)]
    assert 5 <= verdicts.count("watermarked") <= 25
