"""Finds marks of `vllm-gumbel` as docs/portable-marks.md says, with nothing of this project.

`python portable_reader.py MARK SECRET TOKENIZER.JSON < text`
"""

import hashlib
import json
import math
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

M = 0xFFFFFFFF


class Refused(ValueError):
    """The mark is not looked for: nothing can be said of a text."""


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def opened(mark: dict[str, Any], secret: dict[str, Any]) -> tuple[int, int]:
    """The key and the context width."""
    if (mark.get("format"), mark.get("scheme")) != ("ttmark portable mark 1", "vllm-gumbel"):
        raise Refused(f"{mark.get('format')}, {mark.get('scheme')}: not read here")
    said = {name: mark[name] for name in mark if name not in ("model", "commitment")}
    digest = hashlib.sha256(b"ttmark portable mark 1\0" + bytes.fromhex(secret["salt"]))
    digest.update(canonical({**said, "secrets": secret["secrets"]}))
    if digest.hexdigest() != mark["commitment"]:
        raise Refused("the mark does not commit to this secret")
    width = mark["parameters"]["context_width"]
    if mark["context"] != {"tokens": width, "first": "filled up with -1", "once": "context"}:
        raise Refused("other context rules")
    return secret["secrets"]["key"], width


def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    (a, b, c, d), (low, high) = counter, key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (right >> 32) ^ b ^ low, right & M, (left >> 32) ^ d ^ high, left & M
        low, high = (low + 0x9E3779B9) & M, (high + 0xBB67AE85) & M
    return a, b, c, d


def draw(key: int, context: Sequence[int], token: int) -> int:
    low, high = key & M, key >> 32
    state = (0x574D4358, len(context), 0, 0)
    for start in range(0, len(context), 4):
        four = [word & M for word in context[start : start + 4]]
        four += [M - place for place in range(len(four), 4)]
        state = philox([s ^ w for s, w in zip(state, four, strict=True)], (low ^ start, high))
    words = philox((token >> 2, *state[:3]), (low ^ state[3], high ^ 0x574D544B))
    return words[token & 3] >> 8


def log10_tail(total: float, count: int) -> float:
    if total <= 0:
        return 0.0
    terms = [k * math.log(total) - math.lgamma(k + 1) for k in range(count)]
    most = max(terms)
    return min(0.0, (most - total + math.log(math.fsum(math.exp(t - most) for t in terms))) / math.log(10))


def detect(key: int, width: int, tokens: list[int], fpr: float) -> dict[str, Any]:
    scores: list[float] = []
    seen: set[tuple[int, ...]] = set()
    for place, token in enumerate(tokens):
        context = tuple(([-1] * width + tokens)[place : place + width])
        if context not in seen:
            seen.add(context)
            (u,) = struct.unpack("f", struct.pack("f", (draw(key, context, token) + 1) / (2**24 + 1)))
            scores.append(-math.log1p(-u))
    total, needed = math.fsum(scores), 1
    log10_p = log10_tail(total - len(scores) * math.log1p(2**-24), len(scores)) if scores else 0.0
    while log10_tail(needed * 24 * math.log(2), needed) > math.log10(fpr):
        needed += 1
    verdict = "not_detected" if len(tokens) >= needed else "too_short"
    verdict = "watermarked" if log10_p <= math.log10(fpr) else verdict
    return {"verdict": verdict, "log10_p": log10_p, "score": total, "scored_tokens": len(scores)}


def read_tokenizer(path: str, fingerprint: str) -> Tokenizer:
    tokenizer = Tokenizer.from_file(path)
    said = json.loads(tokenizer.to_str())
    said = {name: said[name] for name in said if name not in ("truncation", "padding")}
    if hashlib.sha256(canonical(said)).hexdigest() != fingerprint:
        raise Refused("another tokenizer")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


if __name__ == "__main__":
    mark, secret = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    key, width = opened(mark, secret)
    tokenizer = read_tokenizer(sys.argv[3], mark["tokenizer_fingerprint"])
    tokens = tokenizer.encode(sys.stdin.read(), add_special_tokens=False).ids
    print(json.dumps(detect(key, width, tokens, 1e-5)))
