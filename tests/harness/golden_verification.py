"""Golden set of questions about texts that a model reads as it wrote them: after a prompt, at its sampling.

Each has what the model said of the tokens, so that no engine is needed to answer it. The set was made by
`POST /v1/watermark/verify`, up to commit 6ce5d6c6; `python -m tests.harness.golden_verification` writes one
anew by what took its place: the demo model writes the texts and reads them.
"""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from ttmark.detect_service.ask import ask
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.features.reader.dialect import ttmark_dialect
from ttmark.detect_service.question import Gate, Question
from ttmark.detect_service.stage import Reader, VerdictStage
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.api.app import create_generation_app
from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.served_model import ServedModel
from ttmark.gen_service.decoding.request import ReadingRequest
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.services.composition.served_models import open_features
from ttmark.services.model_folder import read_chat_template
from ttmark.services.settings.generation import GenerationSettings
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.byte_reading import ByteReading, Content
from ttmark.shared.http.app import AppOptions
from ttmark.shared.keys.held_keys import HeldKey, KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.keys.key_codec import derive_prf_keys
from ttmark.shared.schemas.detection.detect import CombinedRequest
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

PATH = Path(__file__).parents[1] / "golden" / "verification.json"
SECRET = b"golden draws"
MODEL = "demo"
CALLER = Principal("tok", "golden", frozenset({Scope.GENERATE, Scope.READ, Scope.DETECT_EVIDENCE}))
POOLS = {"one": 1, "pool": 4}
ANSWERED = ("verdict", "log10_e", "log10_p", "tokens", "prompt_tokens", "scored_blocks")
"""What is kept of an answer; `prompt_tokens` are counted where the model is."""

_TALK = [
    {"role": "system", "content": "You explain how to use a program."},
    {"role": "user", "content": "How are the options of this command given?"},
]
_LONG = "The command reads its options from a file. Each line of the file holds the name of an option and its"
_SHORT = "This function returns"
# How each text is written: what stands before it, sampling, and the key that marks it.
_WRITTEN: dict[str, dict[str, Any]] = {
    "plain": {"prompt": _LONG, "temperature": 1.0, "key": "one"},
    "filtered": {"prompt": _LONG, "temperature": 0.8, "top_k": 50, "top_p": 0.9, "key": "pool"},
    "answer": {"messages": _TALK, "temperature": 0.9, "min_p": 0.02, "key": "one"},
    "penalised": {
        "prompt": _SHORT, "temperature": 0.9, "top_k": 40, "repetition_penalty": 1.2, "key": "pool",
    },
    "unmarked": {"prompt": _LONG, "temperature": 1.0, "top_p": 0.95, "key": None},
}  # fmt: skip
_TOKENS = 90
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
_BEGIN = [0]  # what the model reads before a text without a prompt


def golden_keys(fingerprint: str) -> list[UnlockedKey]:
    """A key without a pool and one with, of two versions each; secrets from a formula."""
    keys = []
    for number, (key_id, pool) in enumerate(sorted(POOLS.items())):
        given = {"scheme": "gumbel", "block_size": 2, "context_width": 2, "pool": pool}
        profile = Profile.model_validate({**given, "tokenizer_fingerprint": fingerprint})
        versions = [
            UnlockedVersion(version, state, *derive_prf_keys(bytes([number, 64 + version] * 16), profile))
            for version, state in enumerate((KeyState.ACTIVE, KeyState.PRIMARY), 1)
        ]
        keys.append(UnlockedKey(key_id, CALLER.tenant, profile, 1, tuple(versions)))
    return keys


class KeysInHand(FixedKeys):
    """The golden keys, as a cache holds them."""

    ready = True

    def get(self, key_id: str) -> HeldKey | None:
        return next((key for key in self.for_tenant(CALLER.tenant) if key.key_id == key_id), None)


class Replayed:
    """In the place of an engine: says of a text what the golden set says that the model said."""

    ready = alive = True
    eos_token_ids = (0,)
    start_token_id = 0
    context_length = 2048

    def __init__(self, cases: Sequence[Mapping[str, Any]]) -> None:
        self.tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
        self.vocab_size = self.tokenizer.vocab_size
        self._said = {_name(case["asked"]): case["logprobs"] for case in cases}

    def check_queue(self, tenant: str) -> None:
        """There is always a place."""

    async def read(self, request: ReadingRequest) -> NDArray[np.float64]:
        """KeyError: the model is asked for what it was not asked for when the set was made."""
        said = self._said[_name(asked_of(request))]
        return np.array([-math.inf if one is None else one for one in said])


def asked_of(request: ReadingRequest) -> dict[str, Any]:
    """What an engine is asked about a text."""
    filters = request.filters
    names = ("temperature", "top_k", "top_p", "min_p")
    return {
        "prompt_ids": list(request.prompt_ids),
        "text_ids": list(request.text_ids),
        "filters": {name: getattr(filters, name) for name in names},
        "repetition_penalty": request.repetition_penalty,
    }


def _name(asked: Mapping[str, Any]) -> str:
    return json.dumps(asked, sort_keys=True)


def reading_app(generator: Any, template: ChatTemplate | None) -> Any:
    """The generation service over an engine, for `CALLER` alone."""
    keys: Any = KeysInHand.of(golden_keys(generator.tokenizer.fingerprint))
    backend = GenerationBackend({MODEL: ServedModel(generator, template)}, keys)

    async def authenticate(_: str) -> Principal:
        return CALLER

    options = AppOptions(authenticate=authenticate, registry=CollectorRegistry())
    return create_generation_app(backend, options, features=open_features(GenerationSettings()))


async def posted(app: Any, route: str, body: Mapping[str, Any]) -> dict[str, Any]:
    transport, headers = httpx.ASGITransport(app), {"Authorization": "Bearer any"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://golden", headers=headers, timeout=300
    ) as client:
        answer = await client.post(route, json=dict(body))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def origin_of(question: Mapping[str, Any]) -> dict[str, Any]:
    """What a question says of the text's making; nothing stands before a text where it begins one."""
    names = ("prompt", "messages", *_SAMPLING)
    return {name: question[name] for name in names if question.get(name, _BEGIN) != _BEGIN}


class ReadThere:
    """In place of a `ReadsAlong`: asks the generation service in this process."""

    state = "up"

    def __init__(self, app: Any) -> None:
        self._app = app
        self.tokens = 0

    async def read_as(
        self, texts: Sequence[Content], _: str, origin: Mapping[str, Any]
    ) -> dict[Content, ByteReading]:
        asked = ttmark_dialect(MODEL)(texts, origin)
        answer = await posted(self._app, f"/{asked.path}", asked.body)
        self.tokens = answer["tokens"]
        return dict(zip(texts, asked.readings(answer), strict=True))


async def answered(app: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of the answer to a question, and of its reading by the generation service."""
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    keys = FixedKeys.of(golden_keys(tokenizer.fingerprint))
    backend = DetectionBackend(
        keys, TokenizerSet([tokenizer]), max_document_tokens=10_000, draw_secret=SECRET
    )
    document = {name: question[name] for name in ("text", "token_ids") if name in question}
    asked = {name: question[name] for name in ("keys", "fpr") if name in question}
    origin = origin_of(question)
    request = CombinedRequest.model_validate({"inputs": [document], **asked, **origin})
    reader = ReadThere(app)
    means = means_of(backend).with_stages([VerdictStage("reader", reader=cast(Reader, reader))])
    response = await ask(Question(request, CALLER, "golden"), means, Gate(), lambda made: made)
    (result,) = response.results
    found = {name: getattr(result, name) for name in ANSWERED if name != "prompt_tokens"}
    # The token that begins a text stands before one without a prompt, and counts for nothing.
    before = reader.tokens - result.tokens if {"prompt", "messages"} & origin.keys() else len(_BEGIN)
    return found | {"prompt_tokens": before}


class _Heard:
    """An engine, and what it was asked and said last about a text."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.last: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def read(self, request: ReadingRequest) -> NDArray[np.float64]:
        found = await self._engine.read(request)
        said = [None if value == -math.inf else round(value, 9) for value in found.tolist()]
        self.last = {"asked": asked_of(request), "logprobs": said}
        return found


async def _written(app: Any, seed: int, given: dict[str, Any]) -> dict[str, Any]:
    """A text of ASCII with its token ids, marked with a key, or by a person."""
    if given["key"] is None:
        human = read_human_texts(HUMAN_TEXTS_PATH)[0].encode("ascii", "ignore")[:400].decode()
        return {"text": human, "token_ids": TextTokenizer.load(DEMO_MODEL_PATH).encode(human)}
    body = {name: value for name, value in given.items() if name != "key"}
    body["watermark"] = {"key_id": given["key"]}
    route = "/v1/chat/completions" if "messages" in given else "/v1/completions"
    body |= {"model": MODEL, "max_tokens": _TOKENS, "ignore_eos": True, "return_token_ids": True}
    while True:
        (choice,) = (await posted(app, route, {**body, "seed": seed}))["choices"]
        text = choice["text"] if "text" in choice else choice["message"]["content"]
        if text.isascii():
            return {"text": text, "token_ids": choice["token_ids"]}
        seed += 100


def _edited(text: str) -> str:
    """Without every eleventh word."""
    return " ".join(word for number, word in enumerate(text.split(" "), 1) if number % 11)


def _questions(name: str, given: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    sampling = {one: given[one] for one in _SAMPLING if one in given}
    before = {one: given[one] for one in ("prompt", "messages") if one in given}
    text, ids = {"text": written["text"]}, {"token_ids": written["token_ids"]}
    asked = {
        "ids": {**ids, **before, **sampling},
        "text": {**text, **before, **sampling},
        "alone": {**text, "prompt": _BEGIN, **sampling},
        "edited": {"text": _edited(written["text"]), **before, **sampling},
    }
    if name == "plain":
        asked["wrong sampling"] = {**text, **before, "temperature": 0.5, "top_k": 20}
        asked["the model's own sampling"] = {**text, **before}
        asked["key by name"] = {**text, **before, **sampling, "keys": ["one"]}
        asked["short"] = {"token_ids": written["token_ids"][:30], **before, **sampling, "fpr": 1e-3}
    if name == "filtered":
        asked["prompt of ids"] = {**ids, "prompt": [5, 99, 1023], **sampling}
        asked["another key"] = {**text, **before, **sampling, "keys": ["one"], "fpr": 1e-2}
    return {f"{name}, {kind}": question for kind, question in asked.items()}


async def _cases() -> list[dict[str, Any]]:
    engine = Engine.load(str(DEMO_MODEL_PATH), EngineSettings(model_id=MODEL, threads=1, device="cpu"))
    engine.start()
    heard, cases = _Heard(engine), []
    app = reading_app(heard, read_chat_template(DEMO_MODEL_PATH))
    for seed, (name, given) in enumerate(_WRITTEN.items()):
        written = await _written(app, seed, given)
        for kind, question in _questions(name, given, written).items():
            answer = await answered(app, question)
            cases.append({"name": kind, "question": question, **heard.last, "answer": answer})
    engine.stop(0)
    return cases


async def main() -> None:
    """Writes the set, once its answers are the same with what it holds of the model."""
    cases = await _cases()
    app = reading_app(Replayed(cases), read_chat_template(DEMO_MODEL_PATH))
    for case in cases:
        again = await answered(app, case["question"])
        assert again == case["answer"], case["name"]
    lines = ",\n".join(json.dumps(case) for case in cases)
    PATH.write_text(f'{{"draw_secret": "{SECRET.hex()}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    asyncio.run(main())
