"""What a token without evidence may ask, what its answers hold, and what attacks on them reach."""

import itertools
import math
import random
import statistics
from typing import Any

import pytest

from tests.features.spent.detect.oracle import (
    FINEST,
    KEY,
    RULE,
    forge,
    log10_p,
    marked,
    oracle,
    replaceable,
    scrub,
    substituted,
)
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.schemas.detection.detect import DetectionResult

pytestmark = pytest.mark.usefixtures("answers_at_once")

MODES = ("direct", "aligned", "localized")
SHOWN = {"basis", "message", "id", "verdict", "tokens", "hypotheses", "tokens_needed", "normalization"}


async def test_a_rate_that_is_not_the_token_s_is_refused_with_those_that_are(service: Any) -> None:
    """By bisecting the rate 14 questions gave away the logarithm of the p-value."""
    for mode, fpr in itertools.product(MODES, (0.05, 1e-4, 2e-5, 1e-6, 1e-100)):
        body = {"inputs": [{"text": service.marked("a-one")}], "fpr": fpr}
        response = await service.post(f"/v1/detect/{mode}", body, "verdict")
        assert (response.status_code, response.json()["param"]) == (422, "fpr")
        assert "0.01 or 0.001 or 1e-05" in response.json()["detail"]
        assert (await service.post(f"/v1/detect/{mode}", body)).status_code == 200


async def test_answers_without_evidence_hold_nothing_finer_than_the_decision(service: Any) -> None:
    """Every field but the verdict is the same for a text and for its letters in another order, read once."""
    text = service.marked("a-one")
    other = "".join(random.Random(1).sample(text, len(text)))
    assert len(service.tokenizer.encode(other)) == len(service.tokenizer.encode(text))
    for mode, fpr in itertools.product(MODES, (1e-2, 1e-5)):
        bodies = []
        for words in (text, other):
            body = {"inputs": [{"text": words}], "keys": ["a-one", "a-two"], "fpr": fpr, "normalize": False}
            response = await service.post(f"/v1/detect/{mode}", body, "verdict")
            (result,) = response.json()["results"]
            assert {name for name, value in result.items() if value is not None} <= SHOWN
            assert "a-one" not in str(result.pop("message"))  # its words follow from the other fields
            del result["normalization"]  # of the letters alone; another order has other doubled spaces
            bodies.append((result.pop("verdict"), result, sorted(response.headers.keys())))
        (found, *first), (missed, *second) = bodies
        assert (found, missed) == ("watermarked", "not_detected")
        assert first == second


async def test_a_token_is_told_its_rates_and_asks_at_them(service: Any) -> None:
    answer = await service.client.get("/v1/keys", headers=service.headers("verdict"))
    assert answer.json()["rates"] == [1e-2, 1e-3, 1e-5]
    answer = await service.client.get("/v1/keys", headers=service.headers("full"))
    assert answer.json()["rates"] is None


def options() -> list[tuple[str, dict[str, object]]]:
    """Requests about one text that differ in their options alone."""
    keys = [["a-one"], ["a-two"], ["a-one", "a-two"], ["a-two", "a-one", "a-one"]]
    common = itertools.product(keys, (1e-2, 1e-3, 1e-5), (False, True))
    return [
        (mode, {"keys": chosen, "fpr": rate, "normalize": normalize})
        for chosen, rate, normalize in common
        for mode in MODES
    ]


async def test_other_modes_rates_keys_and_readings_are_variants(service: Any) -> None:
    text = service.marked("a-one")
    async with oracle(service) as attacker:
        answers = [
            await attacker.post({"inputs": [{"text": text}], **chosen}, mode) for mode, chosen in options()
        ]
        results = [answer.json()["results"][0] for answer in answers]
        assert [result["verdict"] for result in results[: RULE.limit]].count("no_verdict") == 0
        assert {result["verdict"] for result in results[RULE.limit :]} == {"no_verdict"}
        error = results[-1]["error"]
        assert error["code"] == "evidence_spent"
        assert "detect:evidence" in error["message"]
        assert "hours" in error["message"]
        assert RULE.window_seconds / 2 < error["retry_after"] <= RULE.window_seconds
        beside = {"inputs": [{"text": text}, {"text": "another text entirely " * 9}], "keys": ["a-one"]}
        results = (await attacker.post(beside, "aligned")).json()["results"]
        assert [result["verdict"] for result in results] == ["no_verdict", "not_detected"]


async def test_a_text_and_its_token_ids_are_one_passage(service: Any) -> None:
    text = service.marked("a-one")
    ids = service.tokenizer.encode(text)
    async with oracle(service) as attacker:
        for number in range(40):
            prefix = service.tokenizer.encode(f"number {number} is the one before: ")
            content = {"token_ids": prefix + ids} if number % 2 else {"text": f"number {number}. {text}"}
            await attacker.post({"inputs": [content], "keys": [KEY]})
        assert attacker.answered <= RULE.limit + 2


async def forged(service: Any, budget: int, seed: int, *, limited: bool) -> float:
    async with oracle(service, rule=RULE if limited else None) as attacker:
        return await log10_p(service, await forge(attacker, budget, seed))


@pytest.mark.long
async def test_a_few_hundred_questions_forge_nothing(service: Any) -> None:
    assert min([await forged(service, 400, seed, limited=True) for seed in (1, 2)]) > -3
    assert await forged(service, 400, 1, limited=False) < -3  # the attack works where nothing stops it


@pytest.mark.slow
async def test_ten_thousand_questions_forge_nothing(service: Any) -> None:
    best = [await forged(service, 10_000, seed, limited=True) for seed in range(3)]
    print("log10 p after 10,000 questions:", best)
    assert min(best) > -3


async def words_changed(service: Any, seed: int, budget: int) -> tuple[int, int]:
    """Words that an attacker changed with the oracle's help, and words that must be changed at random."""
    text = await marked(service, seed, words=160)
    async with oracle(service) as attacker:
        attacker.mode = "aligned"
        words, helped = await scrub(attacker, text, budget, seed)
    if await log10_p(service, words, "aligned") <= math.log10(FINEST):
        helped = len(replaceable(text))  # the mark is still there: spent rows misled the attacker
    chance = random.Random(seed)
    for count in range(1, len(replaceable(text))):
        trials = [substituted(text, chance.sample(replaceable(text), count), chance) for _ in range(11)]
        body = {"inputs": [{"text": " ".join(trial)} for trial in trials], "keys": [KEY]}
        found = [one.log10_p for one in await service.results("aligned", body)]
        if statistics.median(found) > math.log10(FINEST):
            return helped, count
    return helped, len(replaceable(text))


async def test_removal_takes_about_as_many_words_as_changes_at_random(service: Any) -> None:
    """A dozen answers find out how many words are enough, and spare a few of them; then the answers end."""
    helped, at_random = await words_changed(service, 0, 100)
    assert helped >= 0.6 * at_random


@pytest.mark.slow
async def test_ten_thousand_questions_spare_few_words_of_a_removal(service: Any) -> None:
    changed = [await words_changed(service, seed, 10_000) for seed in range(6)]
    print("words changed with the oracle's help, at random:", changed)
    helped, at_random = map(sum, zip(*changed, strict=True))
    assert helped >= 0.6 * at_random


async def test_a_token_s_rates_are_chosen_when_it_is_made(service: Any) -> None:
    registry: TokenRegistry = service.authenticate.__self__
    token, info = await registry.create(tenant="a", scopes={Scope.DETECT}, rates=[1e-2, 1e-3, 1e-3])
    assert info.rates == (1e-2, 1e-3)
    service.tokens["two rates"] = token
    unnamed = await service.one("direct", "abc", "two rates", keys=[KEY])
    strict = await service.one("direct", "abc", "two rates", keys=[KEY], fpr=1e-3)
    assert isinstance(unnamed, DetectionResult)
    assert unnamed == strict  # the smallest of its own where the default is not one of them
    refused = await service.direct({"inputs": [{"text": "abc"}], "fpr": 1e-5}, "two rates")
    assert refused.status_code == 422
    assert "0.01 or 0.001" in refused.json()["detail"]
