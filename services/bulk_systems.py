"""The detection modes of a bulk run as `ttmark bench detect` measures them."""

import json
import os
from collections.abc import Callable, Mapping, Sequence

from ttmark.detect_service.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.bulk import Examiner
from ttmark.detect_service.bulk.fixed_keys import FixedKeys
from ttmark.detect_service.bulk.rows import InputRow
from ttmark.detect_service.options import DetectionOptions, Mode
from ttmark.shared.keys.records import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

BATCH = 128
MAX_TOKENS = 100_000


def bulk_systems(
    tokenizer: TextTokenizer, scheme: str, block_size: int
) -> Mapping[str, Callable[[Sequence[str]], object]]:
    """Direct, aligned and localized detection under one key, in batches of 128 rows."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core for every system
    profile = Profile.model_validate(
        {"scheme": scheme, "block_size": block_size, "tokenizer_fingerprint": tokenizer.fingerprint}
    )
    version = UnlockedVersion(1, KeyState.PRIMARY, bytes(range(16)))
    key = UnlockedKey(key_id="bench", tenant="bench", profile=profile, epoch=1, versions=(version,))
    backend = DetectionBackend(FixedKeys.of([key]), TokenizerSet([tokenizer]), MAX_TOKENS)
    modes: tuple[Mode, ...] = ("direct", "aligned", "localized")
    return {
        f"ours, {mode}": _detector(Examiner(backend, "bench", DetectionOptions(mode=mode))) for mode in modes
    }


def _detector(examiner: Examiner) -> Callable[[Sequence[str]], object]:
    def detect(texts: Sequence[str]) -> object:
        rows = [
            InputRow(number, json.dumps({"id": number, "text": text}).encode())
            for number, text in enumerate(texts)
        ]
        return [examiner.examine(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]

    return detect
