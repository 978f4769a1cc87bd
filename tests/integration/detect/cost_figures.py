"""How well the estimated cost of a request follows the CPU time that it takes.

    python tests/integration/detect/cost_figures.py [SCHEME ...]

Each row is a request: mode, scheme, documents x tokens x key versions, its estimate in hashed blocks, its CPU
time in milliseconds (the least of three), and nanoseconds for each block over the median of all rows.
"""

import struct
import sys
import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from ttmark.detect_service.ask import Means, Question, ask_here
from ttmark.detect_service.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.cost import request_cost
from ttmark.detect_service.key_selection import KeySelection
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH
from ttmark.services.settings.detection import DetectionSettings
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.keys.records import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.detection import (
    AlignedRequest,
    CombinedRequest,
    DetectionRequest,
    DirectRequest,
    Document,
    LocalizedRequest,
)
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

SCHEMES: dict[str, dict[str, Any]] = {
    "synthid": {"scheme": "synthid"},
    "synthid, depth 7 (no table)": {"scheme": "synthid", "parameters": {"depth": 7}},
    "synthid, weighted": {"scheme": "synthid", "parameters": {"weighted": True}},
    "gumbel": {"scheme": "gumbel"},
    "mcmark": {"scheme": "mcmark"},
    "dipmark": {"scheme": "dipmark"},
    "synthid, pool of 16": {"scheme": "synthid", "pool": 16},
    "gumbel, pool of 256": {"scheme": "gumbel", "pool": 256},
}
MODES: dict[str, tuple[type[DetectionRequest], dict[str, Any]]] = {
    "combined": (CombinedRequest, {}),
    "direct, phase 0": (DirectRequest, {"phase": 0}),
    "direct, phase any": (DirectRequest, {"phase": "any"}),
    "aligned, beta 5": (AlignedRequest, {"beta": 5.0}),
    "aligned, beta 4": (AlignedRequest, {"beta": 4.0}),
    "localized, scan": (LocalizedRequest, {"method": "scan"}),
    "localized, waterseeker": (LocalizedRequest, {"method": "waterseeker"}),
}
# documents, tokens of each, key versions
SIZES = ((1, 400, 1), (1, 400, 10), (1, 2_000, 1), (1, 8_000, 1), (64, 200, 2))


def key_of(profile: dict[str, Any], fingerprint: str, versions: int) -> UnlockedKey:
    """A key with `versions` versions that were not stored."""
    pool = profile.get("pool", 1)
    made = tuple(
        UnlockedVersion(i, KeyState.ACTIVE, *(struct.pack("<QQ", i, number) for number in range(pool)))
        for i in range(versions)
    )
    parsed = Profile.model_validate({**profile, "tokenizer_fingerprint": fingerprint})
    return UnlockedKey("k", "a", parsed, 1, made)


def measured(backend: DetectionBackend, request: DetectionRequest) -> float:
    """CPU time of the request in seconds, the least of three unless it is long."""
    caller = Principal("t", "a", frozenset({Scope.DETECT}))
    least = float("inf")
    for _ in range(3):
        began = time.thread_time()
        ask_here(Question(request, caller, "r"), Means(backend))
        least = min(least, time.thread_time() - began)
        if least > 0.5:
            break
    return least


def figures(schemes: Sequence[str]) -> Iterator[tuple[str, int, float]]:
    """What was asked, the estimate in blocks, CPU time in seconds; of all schemes where none is named."""
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    text = "\n\n".join(read_human_texts(HUMAN_TEXTS_PATH))
    ids = tokenizer.encode(text[:1_000_000])
    for scheme, profile in SCHEMES.items():
        if schemes and scheme not in schemes:
            continue
        for mode, (kind, options) in MODES.items():
            for documents, tokens, versions in SIZES:
                key = key_of(profile, tokenizer.fingerprint, versions)
                keys = SimpleNamespace(for_tenant=lambda _, key=key: [key])
                backend = DetectionBackend(cast(Any, keys), TokenizerSet([tokenizer]), 100_000)
                starts = [i * tokens % (len(ids) - tokens) for i in range(documents)]
                if tokens == 2_000:
                    inputs = [Document(text=tokenizer.decode(ids[i : i + tokens])) for i in starts]
                else:
                    inputs = [Document(token_ids=ids[i : i + tokens]) for i in starts]
                request = kind.model_validate({"inputs": inputs, **options})
                lengths = [tokens] * documents
                estimate = request_cost(
                    request, inputs, KeySelection.of([key]), {tokenizer.fingerprint: lengths}
                )
                what = f"{mode} | {scheme} | {documents} x {tokens} x {versions}"
                if estimate <= DetectionSettings().max_request_blocks:  # more is refused
                    yield what, estimate, measured(backend, request)


def main() -> None:
    """Prints a row for each request, and the spread."""
    rows = []
    for row in figures(sys.argv[1:]):
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    rates = np.array([seconds / blocks * 1e9 for _, blocks, seconds in rows])
    middle = float(np.median(rates))
    print("| mode | scheme | documents x tokens x versions | blocks | CPU ms | of the median |")
    print("|---|---|---|---|---|---|")
    for (what, blocks, seconds), rate in zip(rows, rates, strict=True):
        print(f"| {what} | {blocks:,} | {seconds * 1e3:.2f} | {rate / middle:.2f} |")
    print(f"\nmedian {middle:.0f} ns a block; {np.min(rates) / middle:.2f} to {np.max(rates) / middle:.2f}")


if __name__ == "__main__":
    main()
