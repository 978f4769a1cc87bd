"""Golden vectors of schemes, block sizes, detectors and PRF keys; `python -m tests.harness.golden` writes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ttmark.shared.keys.key_codec import derive_prf_keys
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.watermark.detectors.alignment import BETA, aligned_score
from ttmark.shared.watermark.detectors.block_scores import detect_direct, position_scores
from ttmark.shared.watermark.detectors.localized import METHODS, find_peaks
from ttmark.shared.watermark.prf import ContextTracker, absorb_context, key_lanes, prf_words
from ttmark.shared.watermark.schemes.watermark import Watermark

GOLDEN = Path(__file__).parents[1] / "golden"
KEY = bytes(range(16))
SECRET = bytes(range(100, 132))
PROFILES: list[dict[str, Any]] = [
    *[{"scheme": "synthid", "block_size": 2, "pool": pool} for pool in (1, 2, 16, 4096)],
    {"scheme": "dipmark", "block_size": 1, "context_width": 5, "parameters": {"alpha": 0.25}},
    {"scheme": "mcmark", "block_size": 3, "parameters": {"blend": 0.00002}, "pool": 64},
    {"scheme": "gumbel", "block_size": 2, "parameters": {"blend": 1}, "pool": 256},
    {"scheme": "synthid", "block_size": 2, "pool": 16, "payloads": True},
]
CANDIDATES = 6
PROBS = [0.4, 0.25, 0.2, 0.1, 0.05, 0.0]
TEXT_TOKENS = 120
WATERMARKS: list[tuple[str, int, Mapping[str, int | float | bool]]] = [
    *[(scheme, r, {}) for scheme in ("synthid", "dipmark", "mcmark", "gumbel") for r in (1, 2, 3)],
    ("synthid", 2, {"depth": 20, "weighted": True}),
    ("dipmark", 2, {"layers": 8, "alpha": 0.5, "blend": 0.5}),
    ("mcmark", 2, {"layers": 10, "channels": 20}),
]


def golden_vectors() -> list[dict[str, Any]]:
    """One record per watermark of `WATERMARKS`."""
    return [_record(Watermark(scheme, r, parameters=parameters)) for scheme, r, parameters in WATERMARKS]


def approximately(value: Any) -> Any:
    """The same record, to be compared: numbers to nine digits."""
    if isinstance(value, dict):
        return {key: approximately(one) for key, one in value.items()}
    if isinstance(value, list):
        return [approximately(one) for one in value]
    return pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value


def write_golden() -> None:
    _write_file("watermark", {"key": KEY.hex(), "watermarks": golden_vectors()})
    _write_file("keys", {"secret": SECRET.hex(), "profiles": key_vectors()})


def key_vectors() -> list[dict[str, Any]]:
    """One record per profile: its canonical form, and PRF keys of its pool by their numbers."""
    records = []
    for given in PROFILES:
        profile = Profile.model_validate({"tokenizer_fingerprint": "0f" * 32, **given})
        keys = derive_prf_keys(SECRET, profile)
        numbers = sorted({0, len(keys) // 2, len(keys) - 1})
        records.append(
            {
                "profile": profile.stored(),
                "canonical": profile.canonical().decode(),
                "prf_keys": {str(number): keys[number].hex() for number in numbers},
            }
        )
    return records


def _write_file(name: str, content: dict[str, Any]) -> None:
    (GOLDEN / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def _record(watermark: Watermark) -> dict[str, Any]:
    context, blocks = _candidates(watermark, 0)
    state = absorb_context(key_lanes(KEY), np.repeat(context, CANDIDATES, axis=0))
    text = _write(watermark)
    # A passage comes again, so that repeated blocks are scored too.
    document = np.concatenate([text, text[:30], np.arange(500, 540)])
    scores = position_scores(watermark, KEY, document)
    direct = detect_direct(watermark, KEY, text)
    return {
        "scheme": watermark.scheme,
        "block_size": watermark.block_size,
        "context_width": watermark.context_width,
        "parameters": dict(watermark.parameters),
        "context": context[0].tolist(),
        "blocks": blocks.tolist(),
        "context_words": _hex(prf_words(absorb_context(key_lanes(KEY), context)))[0],
        "block_words": _hex(prf_words(state, blocks)),
        "scores": watermark.score(key_lanes(KEY), np.repeat(context, CANDIDATES, axis=0), blocks).tolist(),
        "probs": PROBS,
        "reweighted": _reweighted(watermark, context, blocks).tolist(),
        "text": text.tolist(),
        "direct": {"scored_blocks": direct.scored_blocks, "log10_p": direct.log10_p, "z": direct.z},
        "document": document.tolist(),
        "position_scores": scores.tolist(),
        "aligned": aligned_score(scores, watermark.block_size, BETA),
        **{method: _best(watermark, method, scores) for method in METHODS},
    }


def _best(watermark: Watermark, method: Any, scores: NDArray[np.float64]) -> dict[str, float] | None:
    peaks = find_peaks(watermark, method, scores, lambda _: False)
    return {"start": peaks[0].start, "end": peaks[0].end, "score": peaks[0].score} if peaks else None


def _candidates(watermark: Watermark, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A context [1, H] and candidate blocks [CANDIDATES, r] from a fixed formula."""
    context = 1000 + 7 * np.arange(watermark.context_width)[None, :]
    rows, columns = np.mgrid[0:CANDIDATES, 0 : watermark.block_size]
    return context, (50_021 * (step + 1) + 127 * rows + 31 * columns) % 60_000


def _write(watermark: Watermark) -> NDArray[np.int64]:
    """Text whose every block is the likeliest candidate after reweighting."""
    tracker = ContextTracker(watermark.block_size, watermark.context_width)
    tokens: list[int] = []
    while len(tokens) + watermark.block_size <= TEXT_TOKENS:
        _, blocks = _candidates(watermark, len(tokens))
        context = tracker.next_context(tokens)
        probs = PROBS if context is None else _reweighted(watermark, np.array([context]), blocks)
        tokens += blocks[int(np.argmax(probs))].tolist()
    return np.array(tokens)


def _reweighted(
    watermark: Watermark, context: NDArray[np.int64], blocks: NDArray[np.int64]
) -> NDArray[np.float64]:
    offsets = np.array([0, CANDIDATES])
    probs: NDArray[np.float64] = watermark.reweight(
        key_lanes(KEY)[None], context, blocks, np.array(PROBS), offsets
    )
    return probs


def _hex(words: NDArray[np.int64]) -> list[str]:
    return [row.astype("<i8").tobytes().hex() for row in words]


if __name__ == "__main__":
    write_golden()
