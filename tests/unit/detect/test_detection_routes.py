"""`POST /v1/detect/direct` through the whole service."""

import random
from string import ascii_letters

HUMAN = "it was a cold clear day, and nobody had thought of bringing a second coat for the walk down. " * 4


async def test_a_marked_text_is_attributed_to_its_key_among_all_keys_and_to_no_other(service) -> None:
    text = service.marked("a-two")
    result = await service.one("direct", text, keys=["a-one", "a-two"], normalize=False)
    assert (result.verdict, result.key.key_id, result.key.version) == ("watermarked", "a-two", 1)
    assert result.p_value <= 1e-5
    assert result.hypotheses == 4  # two keys, two phases of blocks of two
    other = await service.one("direct", text, keys=["a-one"], normalize=False)
    assert (other.verdict, other.key) == ("not_detected", None)


async def test_documents_come_back_in_order_with_their_ids(service) -> None:
    marked = service.marked("a-one")
    inputs = [{"id": "x", "text": HUMAN}, {"text": marked}, {"id": "y", "token_ids": [1, 2, 3]}]
    answers = await service.results("direct", {"inputs": inputs, "keys": ["a-one"]})
    found = [(answer.id, answer.verdict) for answer in answers]
    assert found == [("x", "not_detected"), ("1", "watermarked"), ("y", "too_short")]


async def test_token_ids_give_the_same_answer_as_their_text(service) -> None:
    text = service.marked("a-one")
    both = [{"id": "d", "text": text}, {"id": "d", "token_ids": service.tokenizer.encode(text)}]
    from_text, from_ids = await service.results("direct", {"inputs": both, "keys": ["a-one"], "phase": 0})
    assert from_text.normalization is not None
    assert from_ids == from_text.model_copy(update={"normalization": None})


async def test_without_a_phase_text_is_read_with_any_and_token_ids_with_0(service) -> None:
    text = service.marked("a-one", tokens=400)[1:]
    inputs = [{"text": text}, {"token_ids": service.tokenizer.encode(text)}]
    found, missed = ("watermarked", 2), ("not_detected", 1)
    for options, expected in (
        ({}, [found, missed]),
        ({"phase": None}, [found, missed]),
        ({"phase": 0}, [missed, missed]),
        ({"phase": "any"}, [found, found]),
    ):
        answers = await service.results("direct", {"inputs": inputs, "keys": ["a-one"], **options})
        assert [(answer.verdict, answer.hypotheses) for answer in answers] == expected


async def test_a_text_is_long_enough_when_one_phase_is_whichever_scores_best(service) -> None:
    options = {"keys": ["a-one"], "fpr": 1e-30}
    short = await service.one("direct", HUMAN[:8], **options)
    letters = random.Random(4)
    texts = ["".join(letters.choices(ascii_letters, k=short.tokens_typical)) for _ in range(60)]
    answers = await service.results("direct", {"inputs": [{"text": text} for text in texts], **options})
    assert {answer.verdict for answer in answers} == {"not_detected"}


async def test_documents_in_which_nothing_is_found_feed_the_null_statistic_by_default(service) -> None:
    await service.one("direct", HUMAN, keys=["a-one"])
    metrics = (await service.client.get("/metrics")).text
    assert 'ttmark_detect_not_detected_p_value_count{mode="direct"} 1.0' in metrics


async def test_block_evidence_names_the_characters_of_each_block(service) -> None:
    text = service.marked("a-one", tokens=60)
    result = await service.one("direct", text, keys=["a-one"], evidence="blocks")
    assert len(result.evidence) == result.scored_blocks
    first = result.evidence[0]
    assert (first.start_token, first.end_token) == (4, 6)
    assert text[first.start_char : first.end_char] == text[4:6]


async def test_without_keys_all_of_the_tenants_are_tried_and_unreadable_ones_named(service) -> None:
    response = await service.direct({"inputs": [{"text": service.marked("a-two")}]})
    body = response.json()
    assert body["results"][0]["key"]["key_id"] == "a-two"
    assert body["skipped_keys"] == ["a-foreign"]


async def test_keys_are_listed_without_secrets_and_for_their_tenant_only(service) -> None:
    response = await service.client.get("/v1/keys", headers=service.headers())
    listed = {key["key_id"]: key["tokenizer_available"] for key in response.json()["keys"]}
    assert listed == {"a-foreign": False, "a-one": True, "a-two": True}
    for key in service.keys.values():
        assert key.primary.prf_key.hex() not in response.text
