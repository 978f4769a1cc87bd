"""1,000 documents of a model, half of them watermarked by one of 20 key versions: who made what?

    python tests/integration/detect/attribution.py --state FOLDER [--documents 1000] [--tokens 200]

Makes 5 keys of 4 versions in FOLDER, generates the documents (once; the file is used again), asks the
detection service about their texts and prints, for every mode, wrong and missing attributions and false
alarms; and how often a text is read as other tokens than it was generated as, and what that costs.
"""

import argparse
import asyncio
import json
import math
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, PROMPTS_PATH
from ttmark.gen_service.engine import Engine, EngineSettings, GenerationRequest, Marking, SamplingParams
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.health import Readiness
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.records import UnlockedKey
from ttmark.shared.observability.logging import configure_logging
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.store import open_store

TENANT = "a"
KEYS, VERSIONS = 5, 4
FPR = 1e-5
MODES: dict[str, dict[str, Any]] = {
    "direct": {"phase": 0},
    "direct, any phase": {"phase": "any"},
    "aligned": {},
    "localized": {},
}


async def open_keys(state: Path, fingerprint: str) -> list[UnlockedKey]:
    """The keys of the folder, made when they are missing."""
    store = open_store(f"sqlite:///{state / 'keys.db'}")
    ring = KeyRing(store, KeyEncryptionKey(bytes(32)))
    if not await ring.list():
        profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": fingerprint})
        for number in range(KEYS):
            await ring.create(f"key-{number}", tenant=TENANT, profile=profile)
            for version in range(2, VERSIONS + 1):
                await ring.rotate(f"key-{number}")
                await ring.promote(f"key-{number}", version, force=True)
    keys = [await ring.open(f"key-{number}") for number in range(KEYS)]
    await store.close()
    return keys


async def generate(model: str, keys: list[UnlockedKey], documents: int, tokens: int, out: Path) -> None:
    """Appends the documents that are missing; every second one is marked, by the versions in turn."""
    engine = Engine.load(model, EngineSettings())
    prompts = [json.loads(line)["prompt"] for line in PROMPTS_PATH.read_text().splitlines()]
    versions = [(key, version) for key in keys for version in key.versions]
    no_end = dict.fromkeys(engine.eos_token_ids, -100.0)  # every document has its full length
    engine.start()

    async def one(number: int) -> dict[str, Any]:
        marking = None
        if number % 2:
            key, version = versions[number // 2 % len(versions)]
            watermark = key.profile.watermark()
            marking = Marking(key.key_id, version.version, key.profile.profile_id, watermark, version.prf_key)
        sampling = SamplingParams(max_tokens=tokens, top_p=0.95, top_k=50, seed=number, logit_bias=no_end)
        prompt = tuple(engine.tokenizer.encode(prompts[number % len(prompts)]))
        request = GenerationRequest(
            str(number), prompt, sampling, marking, None if marking else "not asked for"
        )
        ids: list[int] = []
        async for delta in engine.generate(request):
            ids += delta.token_ids
        return {
            "id": str(number),
            "key": marking.key_id if marking else None,
            "version": marking.key_version if marking else None,
            "token_ids": ids,
            "text": engine.tokenizer.decode(ids),
        }

    with out.open("a+") as file:
        file.seek(0)
        for first in range(len(file.readlines()), documents, 32):
            batch = await asyncio.gather(*(one(n) for n in range(first, min(first + 32, documents))))
            file.writelines(json.dumps(document) + "\n" for document in batch)
            file.flush()
    engine.stop(1.0)


async def examine(
    keys: list[UnlockedKey], tokenizer: TextTokenizer, inputs: list[dict[str, Any]], mode: str
) -> list[dict[str, Any]]:
    """The service's results for the documents, through its routes."""

    async def authenticate(_: str) -> Principal:
        return Principal("t", TENANT, frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))

    app = create_detection_app(
        DetectionBackend(FixedKeys.of(keys), TokenizerSet([tokenizer]), 100_000),
        AppOptions(authenticate=authenticate),
        readiness=lambda: Readiness({"keys": True}),
    )
    results: list[dict[str, Any]] = []
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://detect") as client:
        for first in range(0, len(inputs), 100):
            response = await client.post(
                f"/v1/detect/{mode.split(',')[0]}",
                json={"inputs": inputs[first : first + 100], "fpr": FPR, **MODES[mode]},
                headers={"Authorization": "Bearer t"},
            )
            response.raise_for_status()
            results += response.json()["results"]
    return results


def attribution(documents: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of right and wrong answers."""
    marked = [(d, r) for d, r in zip(documents, results, strict=True) if d["key"]]
    found = [(d, r) for d, r in marked if r["key"]]
    right = [d for d, r in found if (r["key"]["key_id"], r["key"]["version"]) == (d["key"], d["version"])]
    return {
        "marked": len(marked),
        "found": len(found),
        "attributed right": len(right),
        "attributed wrong": len(found) - len(right),
        "unmarked": len(documents) - len(marked),
        "false alarms": sum(bool(r["key"]) for d, r in zip(documents, results, strict=True) if not d["key"]),
        "median log10 p of marked": round(median(r["log10_p"] for _, r in marked), 2),
    }


def retokenisation(documents: list[dict[str, Any]], tokenizer: TextTokenizer) -> dict[str, Any]:
    """How often a text is read as other tokens than it was generated as."""
    changed = shifted = moved = total = 0
    for document in documents:
        generated, read = document["token_ids"], tokenizer.encode(document["text"])
        changed += generated != read
        shifted += len(generated) % 2 != len(read) % 2
        same = sum(a == b for a, b in zip(generated, read, strict=False))
        moved += len(generated) - same
        total += len(generated)
    return {
        "documents": len(documents),
        "read as other tokens": round(changed / len(documents), 4),
        "odd change of length": round(shifted / len(documents), 4),
        "tokens not at their place": round(moved / total, 4),
    }


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Generates where needed, examines, reports."""
    options.state.mkdir(parents=True, exist_ok=True)
    configure_logging("warning")
    tokenizer = TextTokenizer.load(options.model)
    keys = await open_keys(options.state, tokenizer.fingerprint)
    corpus = options.state / "documents.jsonl"
    if not corpus.exists():
        unfinished = corpus.with_suffix(".unfinished")
        await generate(str(options.model), keys, options.documents, options.tokens, unfinished)
        unfinished.rename(corpus)
    documents = [json.loads(line) for line in corpus.read_text().splitlines()]
    report: dict[str, Any] = {"retokenisation": retokenisation(documents, tokenizer)}
    texts = [{"id": d["id"], "text": d["text"]} for d in documents]
    ids = [{"id": d["id"], "token_ids": d["token_ids"]} for d in documents]
    changed = {d["id"] for d in documents if d["token_ids"] != tokenizer.encode(d["text"])}
    answers = {"direct, from the generated tokens": await examine(keys, tokenizer, ids, "direct")}
    for mode in MODES:
        answers[mode] = await examine(keys, tokenizer, texts, mode)
    for name, results in answers.items():
        report[name] = attribution(documents, results)
        pairs = [(d, r) for d, r in zip(documents, results, strict=True) if d["id"] in changed]
        report[name]["of those read as other tokens"] = attribution(*map(list, zip(*pairs, strict=True)))
    report["fpr promised"] = FPR
    report["hypotheses"] = math.prod((KEYS, VERSIONS))
    return report


def main() -> None:
    """Reads the options and prints the report."""
    parser = argparse.ArgumentParser(description="Attribution of a model's documents to key versions.")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=DEMO_MODEL_PATH)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=200)
    print(json.dumps(asyncio.run(run(parser.parse_args())), indent=2))


if __name__ == "__main__":
    main()
