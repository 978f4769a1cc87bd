"""Golden vectors of whole answers; `python -m tests.harness.golden_detection` writes them anew."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tests.harness.golden import GOLDEN
from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.options import DetectionOptions
from ttmark.detect_service.question import Question
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.keys.key_codec import derive_prf_keys
from ttmark.shared.keys.key_files import export_file
from ttmark.shared.keys.key_records import KeyInfo, VersionInfo
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.watermark.prf import ContextTracker, key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark

FPR = 1e-3
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
CALLER = Principal("golden", "golden", frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE}))
STATES = {"pairs": (KeyState.RETIRED, KeyState.ACTIVE, KeyState.PRIMARY, KeyState.PENDING)}
PROFILES: dict[str, dict[str, Any]] = {
    "channels": {"scheme": "mcmark", "block_size": 2, "parameters": {"layers": 4}},
    "fair-channels": {"scheme": "mcmark", "block_size": 3, "parameters": {"layers": 3, "channels": 2}},
    "fair-table": {"scheme": "mcmark", "block_size": 2, "parameters": {"channels": 2}},
    "pairs": {"scheme": "synthid", "block_size": 2},
    "pool": {"scheme": "gumbel", "block_size": 1, "pool": 16},
    "triples": {"scheme": "dipmark", "block_size": 3},
}


def golden_keys() -> list[UnlockedKey]:
    """The keys of the vectors, in the order of their ids; secrets from a formula."""
    keys = []
    for number, (key_id, given) in enumerate(PROFILES.items()):
        profile = Profile.model_validate({"tokenizer_fingerprint": "0f" * 32, **given})
        versions = [
            UnlockedVersion(version, state, *derive_prf_keys(bytes([number, version] * 16), profile))
            for version, state in enumerate(STATES.get(key_id, (KeyState.PRIMARY,)), 1)
        ]
        keys.append(UnlockedKey(key_id, CALLER.tenant, profile, 1, tuple(versions)))
    return keys


def documents(keys: Sequence[UnlockedKey]) -> dict[str, list[int]]:
    """Token ids by name: marked, edited, stitched, repeated, unmarked, short."""
    by_id = {key.key_id: key for key in keys}

    def write(key_id: str, tokens: int, *, version: int = 1, number: int = 0) -> list[int]:
        key = by_id[key_id]
        prf_key = key.versions[version - 1].prf_keys[number]
        return marked(key.profile.watermark(), prf_key, tokens)

    pairs = write("pairs", 140, version=3)
    unmarked = np.random.default_rng(5).integers(0, 50_000, 60).tolist()
    return {
        "channels": write("channels", 90),
        "fair-channels": write("fair-channels", 120),
        "fair-table": write("fair-table", 120),
        "triples": write("triples", 120),
        "old": write("pairs", 100, version=2),
        "edited": [*pairs[:41], *pairs[42:83], 7, *pairs[83:]],
        "repeated": pairs[:40] * 3,
        "passage": [*unmarked, *pairs[:60], *unmarked[::-1]],
        "pool": write("pool", 60, number=11),
        "stitched": [*write("pool", 60, number=3), *write("pool", 60, number=9)],
        "unmarked": unmarked,
        "short": pairs[:9],
    }


CASES: list[tuple[str, dict[str, Any], list[str] | None]] = [
    *[
        (name, {"mode": mode}, [key_id])
        for name, key_id in (
            ("channels", "channels"),
            ("fair-channels", "fair-channels"),
            ("fair-table", "fair-table"),
            ("triples", "triples"),
            ("edited", "pairs"),
            ("repeated", "pairs"),
            ("passage", "pairs"),
            ("stitched", "pool"),
        )
        for mode in ("direct", "aligned", "localized")
    ],
    *[(name, {"mode": "direct", "phase": 0}, None) for name in ("old", "pool", "unmarked", "short")],
    ("short", {"mode": "direct", "phase": 0}, ["fair-channels"]),
    *[("unmarked", {"mode": mode}, None) for mode in ("aligned", "localized")],
    ("passage", {"mode": "localized", "method": "waterseeker"}, ["pairs"]),
    ("stitched", {"mode": "direct", "phase": "any"}, ["pairs", "pool"]),
]


def marked(watermark: Watermark, prf_key: bytes, tokens: int) -> list[int]:
    """Text of whole blocks whose every block is drawn from twelve reweighted ones."""
    generator = np.random.default_rng(tokens)
    tracker = ContextTracker(watermark.block_size, watermark.context_width)
    written: list[int] = []
    while len(written) + watermark.block_size <= tokens:
        blocks = generator.integers(0, 50_000, (12, watermark.block_size))
        probs = np.full(12, 1 / 12)
        context = tracker.next_context(written)
        if context is not None:
            lanes = key_lanes(prf_key)[None]
            probs = watermark.reweight(lanes, np.array([context]), blocks, probs, np.array([0, 12]))
        written += blocks[generator.choice(12, p=probs)].tolist()
    return written


def exported(key: UnlockedKey) -> dict[str, Any]:
    """The key as `ttmark keys export` writes it."""
    versions = tuple(
        VersionInfo(version=one.version, state=one.state, created_at=MOMENT, changed_at=MOMENT)
        for one in key.versions
    )
    info = KeyInfo(
        key_id=key.key_id,
        tenant=key.tenant,
        profile=key.profile,
        created_at=MOMENT,
        epoch=1,
        versions=versions,
    )
    file: dict[str, Any] = json.loads(export_file(info, key))
    return file


def detection_vectors() -> dict[str, Any]:
    """Keys, documents, and for each case the answer of the production code."""
    keys = golden_keys()
    texts = documents(keys)
    backend = DetectionBackend(FixedKeys.of(keys), TokenizerSet([]), max_document_tokens=1_000)
    cases = []
    for name, options, wanted in CASES:
        chosen = DetectionOptions(keys=None if wanted is None else tuple(wanted), fpr=FPR, **options)
        request = chosen.request([Document(token_ids=texts[name])])
        (result,) = ask_here(Question(request, CALLER, "golden"), means_of(backend)).results
        shown = {"verdict", "log10_p", "z", "hypotheses", "scored_blocks", "pool_keys_found"}
        shown |= {"tokens_needed", "tokens_typical"}
        answer = result.model_dump(mode="json", include=shown, exclude_none=True)
        if result.key is not None:
            answer["key"] = [result.key.key_id, result.key.version, result.key.pool_key]
        if result.segments is not None:
            answer["segments"] = [
                [one.start_token, one.end_token, one.log10_e_value, one.key.version, one.key.pool_key]
                for one in result.segments
            ]
        cases.append({"document": name, "keys": wanted or "any", **options, "answer": answer})
    return {"fpr": FPR, "keys": list(map(exported, keys)), "documents": texts, "cases": cases}


def write_lines(name: str, content: dict[str, Any]) -> None:
    """Writes a file of vectors, one line for each entry of each list or record."""
    parts = []
    for field, value in content.items():
        lines = (
            [json.dumps(one) for one in value]
            if isinstance(value, list)
            else [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in value.items()]
            if isinstance(value, dict)
            else None
        )
        if lines is None:
            parts.append(f"{json.dumps(field)}: {json.dumps(value)}")
        else:
            begin, end = "[]" if isinstance(value, list) else "{}"
            parts.append(f"{json.dumps(field)}: {begin}\n " + ",\n ".join(lines) + f"\n{end}")
    (GOLDEN / f"{name}.json").write_text("{" + ",\n".join(parts) + "}\n")


if __name__ == "__main__":
    write_lines("detection", detection_vectors())
