"""Manifests in texts: valid, changed, of strangers, hostile; our watermark beside them; both services."""

import dataclasses
import io
import random
import re
import unicodedata
from collections.abc import AsyncIterator
from itertools import islice

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from docx import Document as WordDocument

from tests.contract.openai.composed import build_service
from tests.contract.openai.fake_generator import FakeGenerator
from tests.harness.certificates import Credential, credential
from tests.unit.detect_service.conftest import Service
from tests.unit.detect_service.served import workers_here
from ttmark.detect_service.features.files.text.extraction import ExtractionLimits
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.manifests.manifest_examiner import (
    MOST_OF_A_DOCUMENT,
    MOST_OF_A_REQUEST,
    ManifestExaminer,
)
from ttmark.detect_service.features.manifests.manifest_stripping import parted
from ttmark.gen_service.features.manifests.provenance import Manifests
from ttmark.shared.manifests.report import manifest_report
from ttmark.shared.manifests.signer import ManifestSigner
from ttmark.shared.manifests.wrapper import wrapped, wrapper_size, wrappers
from ttmark.shared.schemas.detection.detect import CombinedRequest, Document
from ttmark.shared.schemas.manifests import AI_SOURCE_TYPE, FoundManifest

TEXT = "The harbour was quiet. Two boats came in before dawn — nobody saw the third. Café, naïve, 東京."


@pytest.fixture(scope="module")
def ours() -> Credential:
    return credential()


@pytest.fixture(scope="module")
def signer(ours: Credential) -> ManifestSigner:
    return ManifestSigner(ours.chain, ours.key)


@pytest.fixture(scope="module")
def examiner(ours: Credential) -> ManifestExaminer:
    return ManifestExaminer(workers_here(), ours.root.decode())


async def found(examiner: ManifestExaminer, text: str) -> list[FoundManifest]:
    parts = parted(CombinedRequest(inputs=[Document(text=text)]), None)
    return (await examiner.examine(parts.texts, "tenant")).get(0, [])


async def test_a_manifest_verifies_and_says_what_made_the_text(examiner, signer):
    [one] = await found(examiner, TEXT + signer.wrapper(TEXT, model="smollm2"))
    assert (one.status, one.covers, one.reason) == ("valid", "whole", None)
    assert one.claims.digital_source_type == AI_SOURCE_TYPE
    assert (one.claims.software, one.claims.claim_generator) == ("smollm2", "TTMark")
    assert (one.claims.signer, one.claims.organization) == ("Test Service", "Test Organisation")
    assert one.claims.time is not None
    assert one.claims.signpost is None


async def test_a_manifest_says_whom_to_ask(examiner: ManifestExaminer, ours: Credential) -> None:
    signer = ManifestSigner(ours.chain, ours.key, "https://detect.example.org")
    [one] = await found(examiner, TEXT + signer.wrapper(TEXT, model="smollm2"))
    assert (one.status, one.covers, one.reason) == ("valid", "whole", None)
    assert one.claims is not None
    assert one.claims.signpost == "https://detect.example.org/.well-known/text-provenance.json"


COPIED = [
    ("whole", lambda text, mark: text + mark + "\n"),
    ("whole", lambda text, mark: "\n  " + text + mark + " \r\n"),
    ("whole", lambda text, mark: unicodedata.normalize("NFD", text) + mark),
    ("whole", lambda text, mark: (text + mark).replace("\n", "\r\n")),
    ("passage", lambda text, mark: "He wrote: " + text + mark + " and left."),
    ("passage", lambda text, mark: "É" * 9 + text + mark),
]


async def test_what_copying_does_to_a_text_is_borne(examiner, signer):
    text = TEXT + "\n\nA second paragraph."
    mark = signer.wrapper(text, model="m")
    for covers, change in COPIED:
        whole = change(text, mark)
        [one] = await found(examiner, whole)
        assert (one.status, one.covers) == ("valid", covers)
        if covers == "passage":
            assert whole[one.start_char : one.end_char] == text


async def test_a_strangers_manifest_is_not_trusted(examiner: ManifestExaminer, ours: Credential) -> None:
    # Same names, another key.
    stranger = credential()
    mark = ManifestSigner(stranger.chain, stranger.key).wrapper(TEXT, model="m")
    [one] = await found(examiner, TEXT + mark)
    assert (one.status, one.reason) == ("not_trusted", "signingCredential.untrusted")
    nobody = dataclasses.replace(examiner, anchors=None)
    own = ManifestSigner(ours.chain, ours.key).wrapper(TEXT, model="m")
    assert [each.status for each in await found(nobody, TEXT + own)] == ["not_trusted"]


def altered(text: str, mark: str, generator: random.Random) -> str:
    """The text with one letter changed, lost, added, or swapped with its neighbour."""
    while True:
        place, letters = generator.randrange(len(text) - 1), list(text)
        match generator.randrange(4):
            case 0:
                letters[place] = generator.choice("abcdefgh")
            case 1:
                del letters[place]
            case 2:
                letters.insert(place, generator.choice("abc d"))
            case _:
                letters[place : place + 2] = letters[place + 1], letters[place]
        changed = "".join(letters)
        if text.strip() not in changed:  # else a letter was added in front of the signed passage
            return changed + mark


@pytest.mark.parametrize("count", [25, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_altered_and_other_texts_are_refused(examiner, signer, count):
    generator = random.Random(5)
    mark, other = signer.wrapper(TEXT, model="m"), "A text of another hand, with another length altogether."
    texts = [altered(TEXT, mark, generator) for _ in range(count)]
    for changed in (other + mark, other.ljust(len(TEXT), "x")[: len(TEXT)] + mark, *texts):
        [one] = await found(examiner, changed)
        assert (one.status, one.claims) == ("does_not_verify", None), changed
        assert one.reason == "assertion.dataHash.mismatch"


@pytest.mark.parametrize("count", [25, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_a_changed_manifest_never_says_anything_else(examiner, signer, count):
    generator = random.Random(6)
    [wrapper] = wrappers(TEXT + signer.wrapper(TEXT, model="smollm2"))
    manifest = wrapper.manifest()
    [genuine] = await found(examiner, TEXT + wrapped(manifest))
    # Padding says nothing and is not signed.
    padding = {place for run in re.finditer(rb"\0{32,}", manifest) for place in range(*run.span())}
    places = [place for place in range(len(manifest)) if place not in padding]
    refused = 0
    for _ in range(count):
        data = bytearray(manifest)
        data[generator.choice(places)] ^= generator.randrange(1, 256)
        [one] = await found(examiner, TEXT + wrapped(bytes(data)))
        if one.status != "does_not_verify":
            assert one.claims == genuine.claims
        refused += one.status == "does_not_verify"
    assert refused > 0.85 * count


KEYS = {
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "RSA": lambda: rsa.generate_private_key(public_exponent=65_537, key_size=2_048),
}


@pytest.mark.parametrize("kind", KEYS)
def test_every_kind_of_key_signs_what_verifies(kind: str) -> None:
    ours = credential(key=KEYS[kind]())
    [wrapper] = wrappers(ManifestSigner(ours.chain, ours.key).wrapper(TEXT, model="m"))
    report = manifest_report(wrapper.manifest(), ours.root.decode())
    assert (report.fault, report.trusted) == (None, True)


HOSTILE = [
    b"",
    bytes(1_000),
    b"\xff" * 100_000,
    b"\x9f" * 200_000,  # arrays inside of arrays, if it is read as CBOR
    b"\0\0\0\x10jumb" * 10_000,
    bytes.fromhex("00000000") + b"jumb" + bytes(10_000),
    bytes.fromhex("00000001") + b"jumb" + b"\xff" * 8 + bytes(1_000),
]


async def test_processes_verify_manifests_and_refuse_hostile_ones(ours: Credential, signer) -> None:
    async with ExtractionWorkers(ExtractionLimits(workers=1)) as workers:
        examiner = ManifestExaminer(workers, ours.root.decode())
        for manifest in HOSTILE:
            [one] = await found(examiner, TEXT + wrapped(manifest))
            assert one.status == "does_not_verify"
        [one] = await found(examiner, TEXT + signer.wrapper(TEXT, model="m"))
        assert one.status == "valid"


async def test_damaged_wrappers_are_said(examiner: ManifestExaminer, signer: ManifestSigner) -> None:
    mark = signer.wrapper(TEXT, model="m")
    for damaged in (mark[:9], mark[:13], mark[:500], mark[1:], mark[:9] + "\ufe02" + mark[10:]):
        [one] = await found(examiner, TEXT + damaged)
        assert one.status == "does_not_verify", len(damaged)


async def test_what_is_looked_at_is_bounded(examiner: ManifestExaminer) -> None:
    broken = wrapped(b"x")[:9]
    many = await found(examiner, TEXT + broken * 10_000)
    assert [one.status for one in many] == ["does_not_verify"] * MOST_OF_A_DOCUMENT + ["not_examined"]
    documents = [Document(text=TEXT + broken) for _ in range(2 * MOST_OF_A_REQUEST)]
    parts = parted(CombinedRequest(inputs=documents), None)
    answers = await examiner.examine(parts.texts, "tenant")
    statuses = [one.status for each in answers.values() for one in each]
    assert statuses.count("not_examined") == MOST_OF_A_REQUEST
    [one] = await found(examiner, TEXT + broken + "\ufe00" * 2_000_000)
    assert one.status == "does_not_verify"


async def test_without_the_library_a_manifest_is_found_and_said(signer: ManifestSigner) -> None:
    [one] = await found(ManifestExaminer(None), TEXT + signer.wrapper(TEXT, model="m"))
    assert one.status == "not_examined"
    assert "provenance" in one.reason


async def test_our_watermark_is_found_beside_a_manifest(service: Service, signer: ManifestSigner) -> None:
    text = service.marked("a-one", 400)
    mark = signer.wrapper(text, model="m")
    body = {"keys": ["a-one"], "evidence": "blocks"}
    for mode in ("combined", "direct", "aligned", "localized"):
        documents = [{"text": text}, {"text": text + mark}, {"text": text[:100] + mark + text[100:]}]
        alone, beside, inside = await service.results(mode, body | {"inputs": documents})
        assert beside == alone.model_copy(
            update={"metadata": beside.metadata, "message": beside.message, "id": "1"}
        )
        assert (beside.verdict, beside.basis) == ("watermarked", "watermark")
        assert beside.metadata is not None
        assert "manifest" in beside.message.explanation
        assert (inside.p_value, inside.tokens) == (alone.p_value, alone.tokens)
        whole = documents[2]["text"]
        for first, second in zip(alone.evidence, inside.evidence, strict=True):
            there = whole[second.start_char : second.end_char].replace(mark, "")
            assert there == text[first.start_char : first.end_char]


def test_wrappers_are_those_of_the_reference_implementation() -> None:
    c2pa_text = pytest.importorskip("c2pa_text")
    generator = random.Random(2)
    for length in (1, 20, 500):
        manifest = generator.randbytes(length)
        theirs = TEXT + c2pa_text.encode_wrapper(manifest)
        [one] = wrappers(theirs)
        assert (one.manifest(), theirs[: one.start], one.end) == (manifest, TEXT, len(theirs))
        ours = TEXT + wrapped(manifest)
        read, start, size = c2pa_text.find_wrapper_info(ours)
        assert (read, start, size) == (manifest, len(TEXT.encode()), wrapper_size(length))
        assert wrapper_size(length) == c2pa_text.worst_case_wrapper_byte_length(length)


async def test_the_answer_names_its_basis(service: Service) -> None:
    signer = ManifestSigner(service.authority.chain, service.authority.key)
    text = "Nothing here was made with one of our keys, as anybody can see. " * 20
    signed = {"text": text + signer.wrapper(text, model="smollm2")}
    changed = {"text": signed["text"].replace("anybody", "nobody", 1)}
    plain = {"text": text}
    for token in ("full", "verdict"):
        alone, broken, none = await service.results("combined", {"inputs": [signed, changed, plain]}, token)
        assert (alone.verdict, alone.basis) == ("not_detected", "metadata")
        assert alone.message.headline == "A signed manifest says that a model wrote this text"
        assert "smollm2" in alone.message.explanation
        assert (broken.verdict, broken.basis) == ("not_detected", "watermark")
        assert "does not verify" in broken.message.explanation
        assert (none.basis, none.metadata) == ("watermark", None)
        assert alone.tokens == none.tokens


async def test_a_manifest_without_a_text_is_a_document(service: Service) -> None:
    signer = ManifestSigner(service.authority.chain, service.authority.key)
    documents = [{"text": signer.wrapper(TEXT, model="m")}, {"text": ""}]
    for mode in ("combined", "direct", "aligned", "localized"):
        alone, empty = await service.results(mode, {"inputs": documents})
        assert (alone.verdict, alone.tokens, alone.basis) == (empty.verdict, 0, "watermark")
        assert alone.metadata[0].status == "does_not_verify"


async def test_a_file_keeps_its_manifest(service: Service) -> None:
    signer = ManifestSigner(service.authority.chain, service.authority.key)
    text = "First paragraph — with a dash.\n\nSecond paragraph, and its end."
    whole = text + signer.wrapper(text, model="m")
    for name, content in as_files(whole).items():
        extracted = (await service.send("/v1/extract", name, content)).json()["text"]
        [result] = await service.results("combined", {"inputs": [{"text": extracted}]})
        assert result.metadata is not None, name
        assert [(one.status, one.covers) for one in result.metadata] == [("valid", "whole")], name


def as_files(text: str) -> dict[str, bytes]:
    """The text in the formats that are read, as people save it."""
    document, paragraphs = WordDocument(), text.split("\n")
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    word = io.BytesIO()
    document.save(word)
    blocks = "".join(f"<p>{block}</p>\n" for block in text.split("\n\n"))
    page = f"<html><head><meta charset=utf-8><title>T</title></head><body>{blocks}</body></html>"
    return {
        "a.txt": text.encode(),
        "windows.txt": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n",
        "wide.txt": text.encode("utf-16"),
        "a.md": text.encode() + b"\n",
        "a.html": page.encode(),
        "a.docx": word.getvalue(),
    }


CHOICES = 8


async def generated(service: Service) -> AsyncIterator[str]:
    """Signed texts without end."""
    signer = ManifestSigner(service.authority.chain, service.authority.key)
    generation = build_service(FakeGenerator(), hooks=[Manifests(signer)])
    body = {"model": "tiny", "prompt": "Once", "n": CHOICES, "watermark": {"manifest": True}}
    transport = httpx.ASGITransport(generation.app)
    headers = {"Authorization": "Bearer author"}
    async with httpx.AsyncClient(transport=transport, base_url="http://gen", headers=headers) as client:
        for length in range(20, 10**6):
            response = await client.post("/v1/completions", json=body | {"max_tokens": length % 200 + 20})
            assert response.status_code == 200, response.text
            for choice in response.json()["choices"]:
                yield choice["text"]


async def asked(service: Service, texts: list[str]) -> list[FoundManifest]:
    """The one manifest of each text."""
    manifests = []
    remaining = iter(texts)
    while some := list(islice(remaining, MOST_OF_A_REQUEST)):
        body = {"inputs": [{"text": text} for text in some], "keys": ["a-one"]}
        for result in await service.results("direct", body):
            [one] = result.metadata
            manifests.append(one)
    return manifests


@pytest.mark.parametrize("count", [24, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_texts_go_round_and_altered_ones_are_refused(service: Service, count: int) -> None:
    chance = random.Random(9)
    texts = []
    async for text in generated(service):
        texts.append(text)
        if len(texts) == count:
            break
    found = await asked(service, texts)
    assert [(one.status, one.covers) for one in found] == [("valid", "whole")] * count
    changed = []
    for text in texts:
        [wrapper] = wrappers(text)
        changed.append(altered(text[: wrapper.start], wrapper.characters, chance))
    found = await asked(service, changed)
    assert [one.status for one in found] == ["does_not_verify"] * count
