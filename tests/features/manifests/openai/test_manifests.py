"""Texts that end in a signed manifest: on request, always, in streams; and what cannot be."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.openai.composed import BODIES, build_service, texts
from tests.contract.openai.fake_generator import FakeGenerator
from tests.features.manifests.openai.signed_texts import NOT_ASKED, assert_signed, post, streamed
from tests.harness.certificates import Credential, credential
from ttmark.detect_service.features.manifests.manifest_examiner import signed_span
from ttmark.gen_service.features.manifests.provenance import Manifests
from ttmark.shared.manifests.report import manifest_report
from ttmark.shared.manifests.signer import ManifestSigner, UnusableCredential
from ttmark.shared.manifests.wrapper import without_wrappers, wrappers


@pytest.fixture(scope="module")
def authority() -> Credential:
    return credential()


@pytest.fixture(scope="module")
def signer(authority: Credential) -> ManifestSigner:
    return ManifestSigner(authority.chain, authority.key)


@pytest.fixture(scope="module")
def signing(serve: Callable[..., Any], signer: ManifestSigner) -> Any:
    return serve(build_service(FakeGenerator(), hooks=[Manifests(signer)]))


@pytest.mark.parametrize("route", BODIES)
def test_a_text_ends_in_a_manifest_where_one_is_asked_for(signing, authority, route):
    answer = post(signing, route).json()
    [text] = texts(answer)
    assert_signed(text, authority)
    assert answer["watermark"]["manifest"] == "embedded"
    plain = post(signing, route, **NOT_ASKED).json()
    assert texts(plain) == [without_wrappers(text)]
    assert "manifest" not in plain["watermark"]


@pytest.mark.parametrize("route", BODIES)
def test_in_a_stream_it_is_the_end_of_the_last_piece(signing: Any, authority: Credential, route: str) -> None:
    pieces, block = streamed(signing, route)
    assert_signed("".join(pieces), authority)
    assert block["manifest"] == "embedded"
    with_text = [piece for piece in pieces if piece]
    assert [bool(wrappers(piece)) for piece in with_text] == [False] * (len(with_text) - 1) + [True]


def test_each_choice_has_its_own(signing: Any, authority: Credential) -> None:
    found = texts(post(signing, "completions", n=3, seed=None).json())
    assert len(set(found)) == 3
    for text in found:
        assert_signed(text, authority)


def test_with_echo_the_completion_alone_is_signed(signing: Any, authority: Credential) -> None:
    [text] = texts(post(signing, "completions", echo=True).json())
    assert text.startswith("Once")
    assert_signed(text, authority)
    [wrapper] = wrappers(text)
    report = manifest_report(wrapper.manifest(), None)
    assert report.binding is not None
    span = signed_span(text[: wrapper.start], "", wrapper.utf8_bytes, report.binding)
    assert span is not None
    assert (span.whole, span.start) == (False, len("Once"))


def test_without_a_certificate_the_request_is_refused(fake: Any) -> None:
    refused = post(fake, "completions")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "watermark.manifest")


def test_manifests_of_earlier_answers_are_no_part_of_a_prompt(signing: Any) -> None:
    first = texts(post(signing, "chat/completions").json())[0]
    for content in (first, without_wrappers(first), [{"type": "text", "text": first}]):
        messages = [
            {"role": "user", "content": "Once"},
            {"role": "assistant", "content": content},
            {"role": "user", "content": "Go on"},
        ]
        assert post(signing, "chat/completions", messages=messages).status_code == 200
        assert post(signing, "completions", prompt=content if isinstance(content, str) else first).is_success
    prompts = [request.prompt_ids for request in signing.generator.requests]
    assert len(set(prompts[1::2])) == 1
    assert len(set(prompts[2::2])) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_that_cannot_be_signed_is_not_sent_without(signing, monkeypatch, stream):
    def expired(*_: Any, **__: Any) -> str:
        raise UnusableCredential("expired")

    monkeypatch.setattr(ManifestSigner, "wrapper", expired)
    response = post(signing, "completions", stream=stream)
    if stream:
        assert response.text.count("[DONE]") == 0
        assert "The manifest cannot be signed." in response.text
    else:
        assert (response.status_code, response.headers["Retry-After"]) == (503, "60")
