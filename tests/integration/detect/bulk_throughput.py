"""Throughput of bulk detection, beside the bare tokenizer and transformers' SynthID detector.

    python tests/integration/detect/bulk_throughput.py [--documents 512] [--tokens 400]

All on the same texts in the same run, in turns, the best of three each.
"""

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable

import torch
from transformers import SynthIDTextWatermarkLogitsProcessor

from detect_service.backend import DetectionBackend
from detect_service.bulk import BulkOptions, Examiner
from detect_service.bulk.fixed_keys import FixedKeys
from detect_service.bulk.rows import InputRow
from detect_service.tokenizers import TokenizerSet
from gen_service.demo_model import DEMO_MODEL_PATH, HUMAN_TEXTS_PATH
from shared.keys import KeyState, UnlockedKey, UnlockedVersion
from shared.schemas.profile import Profile
from shared.tokenization import TextTokenizer


def texts(tokenizer: TextTokenizer, documents: int, tokens: int) -> list[str]:
    """Slices of held-out texts that are `tokens` long."""
    found: list[str] = []
    with gzip.open(HUMAN_TEXTS_PATH, "rt", encoding="utf-8") as file:
        for line in file:
            text = json.loads(line)["text"]
            offsets = tokenizer.encode_with_offsets(text).offsets
            for start in range(0, len(offsets) - tokens, tokens):
                found.append(text[offsets[start][0] : offsets[start + tokens - 1][1]])
                if len(found) == documents:
                    return found
    return found


def examiner(tokenizer: TextTokenizer, options: BulkOptions) -> Examiner:
    """One key of the default profile."""
    profile = Profile.model_validate({"scheme": "synthid", "tokenizer_fingerprint": tokenizer.fingerprint})
    version = UnlockedVersion(1, KeyState.PRIMARY, bytes(range(16)))
    key = UnlockedKey(key_id="k", tenant="a", profile=profile, epoch=1, versions=(version,))
    return Examiner(DetectionBackend(FixedKeys.of([key]), TokenizerSet([tokenizer]), 100_000), "a", options)


def transformers_detector(tokenizer: TextTokenizer, documents: list[str]) -> Callable[[], object]:
    """transformers' way from texts to mean scores, in batches of 128."""
    processor = SynthIDTextWatermarkLogitsProcessor(
        ngram_len=5,
        keys=list(range(1, 31)),
        sampling_table_size=2**16,
        sampling_table_seed=0,
        context_history_size=1024,
        device=torch.device("cpu"),
    )

    def detect() -> None:
        for start in range(0, len(documents), 128):
            batch = tokenizer.backend.encode_batch(documents[start : start + 128], add_special_tokens=False)
            length = min(len(encoding.ids) for encoding in batch)
            ids = torch.tensor([encoding.ids[:length] for encoding in batch])
            values = processor.compute_g_values(ids)
            mask = processor.compute_context_repetition_mask(ids)
            (values.float().mean(-1) * mask).sum(-1) / mask.sum(-1)

    return detect


def main() -> None:
    """Prints tokens per second of each, and the ratios."""
    parser = argparse.ArgumentParser(description="Throughput of bulk detection beside its peers.")
    parser.add_argument("--documents", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=400)
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
    documents = texts(tokenizer, options.documents, options.tokens)
    rows = [InputRow(n, json.dumps({"id": n, "text": text}).encode()) for n, text in enumerate(documents)]

    def bulk(mode: BulkOptions) -> Callable[[], object]:
        one = examiner(tokenizer, mode)
        return lambda: [one.examine(rows[start : start + 128]) for start in range(0, len(rows), 128)]

    peers: dict[str, Callable[[], object]] = {
        "tokenizer": lambda: [
            [encoding.ids for encoding in tokenizer.backend.encode_batch(documents, add_special_tokens=False)]
        ],
        "direct": bulk(BulkOptions(mode="direct")),
        "aligned": bulk(BulkOptions(mode="aligned")),
        "localized": bulk(BulkOptions(mode="localized")),
        "transformers SynthID": transformers_detector(tokenizer, documents),
    }
    total = sum(len(tokenizer.encode(text)) for text in documents)
    best = dict.fromkeys(peers, float("inf"))
    for _ in range(3):
        for name, work in peers.items():
            started = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - started)
    for name, seconds in best.items():
        share = best["tokenizer"] / seconds
        print(f"{name:>22}: {total / seconds:10.0f} tokens/s of CPU time, {share:.2f} of the bare tokenizer")


if __name__ == "__main__":
    main()
