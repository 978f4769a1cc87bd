"""1,000 documents of a model, half of them watermarked by one of 20 key versions: who made what?

    python tests/integration/detect/attribution.py --state FOLDER [--documents 1000] [--tokens 200]

Generates the documents in FOLDER under 5 keys of 4 versions (once; the file is used again), has detection
examine their texts and prints, for every mode, wrong and missing attributions and false alarms; and how
often a text is read as other tokens than it was generated as, and what that costs.
"""

import argparse
import asyncio
import json
from pathlib import Path
from statistics import median
from typing import Any

from ttmark.detect_service.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.detection_request import detect
from ttmark.detect_service.options import DetectionOptions
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, PROMPTS_PATH
from ttmark.gen_service.engine import Engine, EngineSettings, GenerationRequest, Marking, SamplingParams
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.keys.pool import derive_prf_keys
from ttmark.shared.keys.records import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.observability.logging import configure_logging
from ttmark.shared.schemas.detection import DetectionResult, Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

CALLER = Principal("t", "a", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))
KEYS, VERSIONS = 5, 4
FPR = 1e-5
MODES = {
    "direct": DetectionOptions("direct", fpr=FPR, phase=0),
    "direct, any phase": DetectionOptions("direct", fpr=FPR, phase="any"),
    "aligned": DetectionOptions("aligned", fpr=FPR),
    "localized": DetectionOptions("localized", fpr=FPR),
}


def made_keys(fingerprint: str) -> list[UnlockedKey]:
    """Keys whose secrets follow from their numbers."""
    profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": fingerprint})
    versions = [
        [
            UnlockedVersion(version, KeyState.ACTIVE, *derive_prf_keys(bytes([key, version] * 16), profile))
            for version in range(1, VERSIONS + 1)
        ]
        for key in range(KEYS)
    ]
    return [
        UnlockedKey(f"key-{number}", CALLER.tenant, profile, 1, tuple(of_key))
        for number, of_key in enumerate(versions)
    ]


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


def examine(
    keys: list[UnlockedKey], tokenizer: TextTokenizer, documents: list[Document], mode: str
) -> list[DetectionResult]:
    """What is said of the documents."""
    backend = DetectionBackend(FixedKeys.of(keys), TokenizerSet([tokenizer]), 100_000)
    parts = (documents[first : first + 100] for first in range(0, len(documents), 100))
    answers = (detect(MODES[mode].request(part), CALLER, backend, "attribution") for part in parts)
    return [result for answer in answers for result in answer.results]


def attribution(documents: list[dict[str, Any]], results: list[DetectionResult]) -> dict[str, Any]:
    """Counts of right and wrong answers."""
    pairs = list(zip(documents, results, strict=True))
    marked = [(d, r) for d, r in pairs if d["key"]]
    found = [(d, r.key) for d, r in marked if r.key]
    right = [d for d, key in found if (key.key_id, key.version) == (d["key"], d["version"])]
    return {
        "marked": len(marked),
        "found": len(found),
        "attributed right": len(right),
        "attributed wrong": len(found) - len(right),
        "unmarked": len(documents) - len(marked),
        "false alarms": sum(bool(r.key) for d, r in pairs if not d["key"]),
        "median log10 p of marked": round(median(r.log10_p for _, r in marked), 2),
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


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Generates where needed, examines, reports."""
    options.state.mkdir(parents=True, exist_ok=True)
    configure_logging("warning")
    tokenizer = TextTokenizer.load(options.model)
    keys = made_keys(tokenizer.fingerprint)
    corpus = options.state / "answers.jsonl"
    if not corpus.exists():
        unfinished = corpus.with_suffix(".unfinished")
        asyncio.run(generate(str(options.model), keys, options.documents, options.tokens, unfinished))
        unfinished.rename(corpus)
    documents = [json.loads(line) for line in corpus.read_text().splitlines()]
    report: dict[str, Any] = {"retokenisation": retokenisation(documents, tokenizer)}
    texts = [Document(id=d["id"], text=d["text"]) for d in documents]
    ids = [Document(id=d["id"], token_ids=d["token_ids"]) for d in documents]
    changed = {d["id"] for d in documents if d["token_ids"] != tokenizer.encode(d["text"])}
    answers = {"direct, from the generated tokens": examine(keys, tokenizer, ids, "direct")}
    answers |= {mode: examine(keys, tokenizer, texts, mode) for mode in MODES}
    for name, results in answers.items():
        report[name] = attribution(documents, results)
        pairs = [(d, r) for d, r in zip(documents, results, strict=True) if d["id"] in changed]
        report[name]["of those read as other tokens"] = attribution(*map(list, zip(*pairs, strict=True)))
    report["fpr promised"] = FPR
    report["hypotheses"] = KEYS * VERSIONS
    return report


def main() -> None:
    """Reads the options and prints the report."""
    parser = argparse.ArgumentParser(description="Attribution of a model's documents to key versions.")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=DEMO_MODEL_PATH)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=200)
    print(json.dumps(run(parser.parse_args()), indent=2))


if __name__ == "__main__":
    main()
