"""Visible labels: at the start or end of every text, in streams, before manifests, and never in prompts."""

from typing import Any

import pytest

from tests.contract.openai.composed import BODIES, build_service, texts
from tests.contract.openai.fake_generator import FakeGenerator
from tests.features.manifests.openai.signed_texts import NOT_ASKED, assert_signed, post, streamed
from tests.harness.certificates import Credential, credential
from ttmark.gen_service.features.manifests.provenance import Labels, Manifests
from ttmark.shared.labels import Label
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.manifests.wrapper import without_wrappers

WORDS = "人工智能生成"
ADDED = {"start": (WORDS + "\n\n", ""), "end": ("", "\n\n" + WORDS)}


@pytest.fixture(scope="module")
def authority() -> Credential:
    return credential()


@pytest.fixture(scope="module")
def services(serve, authority) -> dict[str | None, Any]:
    """By the place of the label; None: without one."""
    signer = ManifestSigner(authority.chain, authority.key)
    labels = {
        None: Labels(None),
        "start": Labels(Label(WORDS, "start"), producer="Example 01"),
        "end": Labels(Label(WORDS, "end")),
    }
    return {
        place: serve(build_service(FakeGenerator(), hooks=[Manifests(signer), label]))
        for place, label in labels.items()
    }


@pytest.mark.parametrize("place", ADDED)
@pytest.mark.parametrize("route", BODIES)
def test_the_label_is_around_the_same_text(services: dict[str | None, Any], route: str, place: str) -> None:
    plain = post(services[None], route, **NOT_ASKED).json()
    labelled = post(services[place], route, **NOT_ASKED).json()
    before, after = ADDED[place]
    assert texts(labelled) == [before + text + after for text in texts(plain)]
    for usage in (labelled["usage"], plain["usage"]):  # what was reused depends on the questions before
        for details in ("prompt_tokens_details", "input_tokens_details"):
            usage.pop(details, None)
    assert labelled["usage"] == plain["usage"]
    assert labelled["watermark"].pop("label") == place
    labelled["watermark"].pop("aigc", None)
    assert labelled["watermark"] == plain["watermark"]


@pytest.mark.parametrize("place", ADDED)
@pytest.mark.parametrize("route", BODIES)
def test_a_stream_begins_or_ends_with_it_and_a_manifest_signs_it(services, authority, route, place):
    pieces, block = streamed(services[place], route)
    whole = "".join(pieces)
    assert_signed(whole, authority)
    [plain] = texts(post(services[None], route, **NOT_ASKED).json())
    before, after = ADDED[place]
    assert without_wrappers(whole) == before + plain + after
    with_text = [piece for piece in pieces if piece]
    assert [WORDS in piece for piece in with_text].index(True) == (
        0 if place == "start" else len(with_text) - 1
    )
    assert (block["label"], block["manifest"]) == (place, "embedded")


@pytest.mark.parametrize("place", ADDED)
def test_each_choice_has_it(services: dict[str | None, Any], place: str) -> None:
    found = texts(post(services[place], "completions", n=3, seed=None, **NOT_ASKED).json())
    before, after = ADDED[place]
    assert [text.startswith(before) and text.endswith(after) for text in found] == [True] * 3
    assert [text.count(WORDS) for text in found] == [1] * 3


@pytest.mark.parametrize("place", ADDED)
def test_a_text_for_programs_has_none(services: dict[str | None, Any], place: str) -> None:
    answer = post(
        services[place], "chat/completions", **NOT_ASKED, response_format={"type": "json_object"}
    ).json()
    assert WORDS not in texts(answer)[0]
    assert answer["watermark"]["label"] == "structured_output"


def test_offsets_of_tokens_count_it(services: dict[str | None, Any]) -> None:
    offsets = [
        post(services[place], "completions", **NOT_ASKED, logprobs=0).json()["choices"][0]["logprobs"][
            "text_offset"
        ]
        for place in (None, "start", "end")
    ]
    assert offsets[1] == [offset + len(WORDS) + 2 for offset in offsets[0]]
    assert offsets[2] == offsets[0]


def test_the_metadata_names_provider_and_answer(services: dict[str | None, Any]) -> None:
    answer = post(services["start"], "chat/completions", **NOT_ASKED).json()
    assert answer["watermark"]["aigc"] == {
        "Label": "1",
        "ContentProducer": "Example 01",
        "ProduceID": answer["id"],
    }
    assert "aigc" not in post(services["end"], "chat/completions", **NOT_ASKED).json()["watermark"]


@pytest.mark.parametrize("place", ADDED)
def test_the_model_does_not_read_the_labels_of_its_earlier_answers(services, place):
    before, after = ADDED[place]
    prompts = []
    for answer in ("Well.", f"{before}Well.{after}"):
        messages = [
            {"role": "user", "content": f"{before}Hi{after}"},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": "And?"},
        ]
        assert post(services[place], "chat/completions", **NOT_ASKED, messages=messages).status_code == 200
        prompts.append(services[place].generator.requests[-1].prompt_ids)
        asked = {"texts": ["a"], "messages": messages}
        assert services[place].post("readings", "reader", **asked).status_code == 200
        assert services[place].generator.readings[-1].prompt_ids == prompts[-1]
    assert prompts[0] == prompts[1]
    # What a user writes is the user's.
    [prompt] = {tuple(each) for each in prompts}
    assert WORDS in services[place].generator.tokenizer.decode(list(prompt))


@pytest.mark.parametrize("place", ADDED)
def test_with_echo_it_is_around_the_completion_alone(services: dict[str | None, Any], place: str) -> None:
    before, after = ADDED[place]
    [plain] = texts(post(services[None], "completions", **NOT_ASKED).json())
    whole = "Once" + before + plain + after
    assert texts(post(services[place], "completions", **NOT_ASKED, echo=True).json()) == [whole]
    pieces, _ = streamed(services[place], "completions", **NOT_ASKED, echo=True)
    assert "".join(pieces) == whole
