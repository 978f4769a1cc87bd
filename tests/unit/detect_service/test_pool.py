"""A text made with one key of a pool is found in every mode; the answer names the key, and its payload."""

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.detect_service.conftest import Service
from tests.unit.detect_service.held_keys import under
from ttmark.detect_service.detectors import likelihood
from ttmark.detect_service.features.bulk.examiner import Examiner
from ttmark.detect_service.features.bulk.row_format import InputRow
from ttmark.detect_service.features.paper.detectors import aligned, direct, localized
from ttmark.detect_service.options import DetectionOptions
from ttmark.detect_service.verdict import Detector
from ttmark.shared.watermark.watermark import Watermark

POOL = 16
MODES = [
    ("direct", {}),
    ("direct", {"phase": 0}),
    ("aligned", {}),
    ("localized", {}),
    ("localized", {"method": "waterseeker"}),
    ("combined", {}),
]


def marked(service: Service, number: int, tokens: int = 300, key_id: str = "d-pool") -> str:
    return service.marked(key_id, tokens, number=number)


@pytest.mark.parametrize(("mode", "options"), MODES)
async def test_a_genuine_text_is_found_in_every_mode_on_its_own_key_alone(service, mode, options):
    """Its payload is read; a number that was drawn is none."""
    for token, key_id, number, payload in (
        ("pool", "d-pool", 0, None),
        ("pool", "d-pool", 11, None),
        ("payload", "e-payload", 0, 0),
        ("payload", "e-payload", 11, 11),
        ("payload", "e-pool", 6, None),
    ):
        text = marked(service, number, key_id=key_id)
        result = await service.one(mode, text, token, evidence="blocks", **options)
        assert (result.verdict, result.key.key_id, result.pool_keys_found) == ("watermarked", key_id, 1)
        assert (result.key.pool_key, result.key.payload) == (number, payload)
        if token == "pool":
            assert result.hypotheses == 3 * POOL * (2 if (mode, options) == ("direct", {}) else 1)
        passages = {(segment.key.pool_key, segment.key.payload) for segment in result.segments or ()}
        assert passages <= {(number, payload)}
        assert np.mean([block.score for block in result.evidence]) > 1.0


async def test_a_text_woven_from_answers_under_two_keys_has_less_than_half_of_the_evidence(service):
    """Whoever mixes two answers leaves each key a fraction of the text: the price of a pool."""
    one, other = marked(service, 2), marked(service, 9)
    woven = "".join(one[at : at + 60] + other[at + 60 : at + 120] for at in range(0, len(one), 120))
    body = {"inputs": [{"text": one}, {"text": woven}]}
    whole, mixed = await service.results("combined", body, "pool")
    assert whole.verdict == "watermarked"
    assert mixed.log10_e < whole.log10_e / 2


async def test_a_text_of_several_keys_fires_on_each_and_its_passages_alone_have_payloads(service):
    for key_id, token, numbers in (("d-pool", "pool", (2, 9, 14)), ("e-payload", "payload", (2, 9))):
        text = "".join(marked(service, number, 260, key_id) for number in numbers)
        payloads = numbers if token == "payload" else [None] * 3
        for mode, options in MODES[1:]:
            result = await service.one(mode, text, token, **options)
            found = (result.verdict, result.pool_keys_found, result.key.payload)
            assert found == ("watermarked", len(numbers), None), mode
            if result.segments is not None:
                passages = [(segment.key.pool_key, segment.key.payload) for segment in result.segments]
                assert passages == list(zip(numbers, payloads, strict=True))


async def test_a_caller_without_the_scope_learns_no_pool_key_and_no_payload(service):
    inputs = [{"text": marked(service, 5)}, {"text": marked(service, 6) + marked(service, 7)}]
    response = await service.direct({"inputs": inputs, "normalize": False}, "d")
    results = response.json()["results"]
    assert [result["verdict"] for result in results] == ["watermarked"] * 2
    assert all(result["key"] is None and result["pool_keys_found"] is None for result in results)
    assert len({result["hypotheses"] for result in results}) == 1
    inputs = [{"id": "d", "text": marked(service, number, key_id="e-payload")} for number in range(4)]
    response = await service.direct({"inputs": inputs, "normalize": False}, "e")
    first, *others = response.json()["results"]
    for result in (first, *others):
        del result["normalization"]  # it counts the text's doubled spaces
    assert (first["verdict"], first["key"]) == ("watermarked", None)
    assert others == [first] * 3


async def test_keys_are_listed_with_what_they_take_and_bulk_rows_name_pool_key_and_payload(service):
    keys = [
        key
        for token in ("pool", "payload")
        for key in (await service.client.get("/v1/keys", headers=service.headers(token))).json()["keys"]
    ]
    listed = {key["key_id"]: (key["pool"], key["payloads"]) for key in keys}
    assert listed == {"d-pool": (POOL, False), "e-payload": (POOL, True), "e-pool": (POOL, False)}
    for key_id, payload in (("d-pool", None), ("e-payload", 8), ("e-pool", None)):
        examiner = Examiner(service.backend, key_id[0], DetectionOptions(mode="localized"))
        row = InputRow(1, json.dumps({"text": marked(service, 8, key_id=key_id)}).encode())
        (output,) = examiner.output_rows([row])
        found = (output["key_id"], output["pool_key"], output["pool_keys_found"], output["payload"])
        assert found == (key_id, 8, 1, payload)
        passages = [(segment["pool_key"], segment["payload"]) for segment in output["segments"]]
        assert passages == [(8, payload)]


DETECTORS: dict[str, Callable[[float], Detector]] = {
    "direct": lambda limit: direct(0, limit),
    "direct, any": lambda limit: direct("any", limit),
    "aligned": lambda limit: aligned(5.0, limit),
    "scan": lambda limit: localized("scan", limit),
    "waterseeker": lambda limit: localized("waterseeker", limit),
    "likelihood": lambda limit: likelihood(limit, b"", lambda _: None),
}


@pytest.mark.long
@pytest.mark.parametrize("mode", DETECTORS)
@pytest.mark.parametrize(
    ("keys", "texts", "tokens", "rate"),
    [
        (16, 200, 60, 0.1),
        *(pytest.param(keys, 4_000, 150, 0.01, marks=pytest.mark.slow) for keys in (16, 256)),
    ],
)
def test_false_positives_keep_to_their_rate_under_a_pool(mode, keys, texts, tokens, rate):
    """Texts of random tokens; without the correction four in five would be found."""
    generator, limit = np.random.default_rng(keys), math.log10(rate)
    if mode == "waterseeker":
        texts //= 10
    pool = [generator.bytes(16) for _ in range(keys)]
    documents = list(generator.integers(0, 5_000, (texts, tokens)))
    tried = [under(DETECTORS[mode](limit), Watermark("gumbel", 2), pool, tokens) for tokens in documents]
    reached = [one.evidence.log10_p <= limit for one in tried]
    assert [bool(one.fired) for one in tried] == reached
    print(mode, keys, sum(reached), texts)
    assert sum(reached) <= rate * texts + 4 * np.sqrt(rate * texts)
