"""`ttmark.detect` reads a text in the ways in which the service does, and finds the same evidence."""

import textwrap
from collections.abc import Callable

import pytest

import ttmark
from tests.unit.detect_service.served import served
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.services.cli.demonstration import human_text
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.keys.key_files import LibraryKeyFile
from ttmark.shared.schemas.detection.detect import CombinedResult
from ttmark.shared.schemas.profile import profile_fields

CALLER = Principal("token", "tenant", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))


def lines(text: str) -> list[str]:
    return textwrap.wrap(text, 50, break_on_hyphens=False)


MAILED: dict[str, Callable[[str], str]] = {
    "as it was written": lambda text: text,
    "flowed": lambda text: " \n".join(lines(text)),
    "quoted": lambda text: "\n".join(f"> {line}" for line in lines(text)),
    "with signs that nobody sees": lambda text: text.replace("e", "e\u200b"),
}


async def told(text: str, model: ttmark.Model, key: ttmark.Key) -> CombinedResult:
    """What the service says of the text under the same key."""
    ((profile, pool),) = key.variants(model.tokenizer.fingerprint)
    version = UnlockedVersion(1, KeyState.PRIMARY, *pool)
    held = UnlockedKey("key", CALLER.tenant, profile, 1, (version,))
    backend = DetectionBackend(FixedKeys([held]), TokenizerSet([model.tokenizer]), 10_000)

    async def authenticate(_: str) -> Principal:
        return CALLER

    async with served(backend, authenticate, headers={"Authorization": "Bearer x"}) as client:
        answer = await client.post("/v1/detect", json={"inputs": [{"text": text}]})
    return CombinedResult.model_validate(answer.json()["results"][0])


@pytest.fixture(scope="module")
def written(model: ttmark.Model) -> tuple[ttmark.Key, str]:
    key = ttmark.Key(LibraryKeyFile(secret="07" * 32, profile=profile_fields(pool=1)))
    options = {"temperature": 1.2, "top_k": 50, "max_new_tokens": 160}
    text = model.generate("The old lighthouse stood", key=key, seed=1, **options)
    return key, " ".join(text.split())


@pytest.mark.parametrize("name", MAILED)
async def test_a_mail_holds_the_same_evidence_for_the_library_and_the_service(
    model: ttmark.Model, written: tuple[ttmark.Key, str], name: str
) -> None:
    key, text = written
    mailed = MAILED[name](text)
    found, service = ttmark.detect(mailed, key), await told(mailed, model, key)
    assert (found.verdict, found.tokens) == (service.verdict, service.tokens)
    assert found.log10_e == pytest.approx(service.log10_e, rel=1e-9)
    assert found.log10_p == pytest.approx(service.log10_p, rel=1e-9)
    assert found.share == service.marked_share.estimate
    assert found.log10_e > 0.9 * ttmark.detect(text, key).log10_e


async def test_where_the_service_shows_no_passage_of_its_own_the_library_shows_the_whole_text(
    model: ttmark.Model, written: tuple[ttmark.Key, str]
) -> None:
    key, text = written
    service = await told(text, model, key)
    (passage,) = ttmark.detect(text, key).passages
    assert service.segments == []
    assert (passage.start_token, passage.end_token) == (0, service.tokens)
    assert (passage.start_char, passage.end_char) == (0, len(text))


async def test_passages_are_those_of_the_service_in_the_text_as_it_was_sent(
    model: ttmark.Model, written: tuple[ttmark.Key, str]
) -> None:
    key, text = written
    words = human_text().split()
    mailed = MAILED["quoted"](" ".join([*words[:150], text, *words[150:]]))
    service = await told(mailed, model, key)
    shown = [(one.start_char, one.end_char) for one in ttmark.detect(mailed, key).passages]
    assert shown == [(one.start_char, one.end_char) for one in service.segments]
    assert 0 < shown[0][0] < mailed.index(text[20:40]) < shown[0][1]


def test_a_reader_is_asked_about_each_way_of_reading_and_has_the_whole_rate(
    model: ttmark.Model, written: tuple[ttmark.Key, str]
) -> None:
    key, text = written
    mailed, asked = MAILED["quoted"](text), []

    def read(tokens):
        asked.append(list(tokens))
        return model.log_probs(tokens)

    found, alone = ttmark.detect(mailed, key, reader=read), ttmark.detect(mailed, key)
    assert asked == [model.tokenizer.encode(mailed), model.tokenizer.encode(text)]
    assert found.read
    assert found.log10_e > alone.log10_e
