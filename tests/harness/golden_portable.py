"""Vectors of portable marks: files, secrets, and of token ids each draw, the score and the p-value.

`python -m tests.harness.golden_portable` writes `docs/portable-marks-vectors.json` anew.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers

from ttmark.detect_service.portable_detection import answer_for
from ttmark.shared.keys.portable_mark import MarkSecret, PortableMark
from ttmark.shared.schemas.profile import ForeignProfile, Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.detectors.block_scores import check_tokens
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES
from ttmark.shared.watermark.foreign.vllm_gumbel import VllmGumbel, philox

VECTORS = Path(__file__).parents[2] / "docs" / "portable-marks-vectors.json"
FPR = 1e-5
TEXT = "the quick brown fox jumps over the lazy dog"
GIVEN: dict[str, dict[str, Any]] = {
    "vllm-gumbel": {"key": 1311768467463790320, "context_width": 4},
    "vllm-dual-gumbel": {"key": 42, "alpha": 0.25},
    "sglang-gumbel": {"key": "0123456789abcdef", "key_b": "0xfedcba9876543210"},
    "kgw": {"hashing_key": 15485863, "vocab_size": 49152, "seeding_scheme": "selfhash", "context_width": 4},
    "synthid-text": {"keys": [654, 400, 836], "ngram_len": 5},
}
OWN = {"scheme": "gumbel", "context_width": 2, "pool": 2}
# Counters, keys and outputs of Philox4x32-10 in Random123's `kat_vectors`.
PHILOX = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0"),
]


def small_tokenizer() -> Tokenizer:
    """Words by number; its texts are easily checked by hand."""
    words = ["[UNK]", *dict.fromkeys(TEXT.split())]
    tokenizer = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def described(scheme: str, given: dict[str, Any], fingerprint: str) -> tuple[PortableMark, MarkSecret]:
    """A mark of another system, with a salt that follows from its name."""
    parameters, secrets = FOREIGN_SCHEMES[scheme].split(given)
    profile = ForeignProfile(scheme=scheme, parameters=parameters, tokenizer_fingerprint=fingerprint)
    return sealed(profile, scheme, secrets)


def sealed(
    profile: Profile | ForeignProfile, name: str, secrets: Any, model: str | None = "a model"
) -> tuple[PortableMark, MarkSecret]:
    salt = random.Random(f"{name} {sorted(secrets)}").randbytes(32).hex()
    secret = MarkSecret(salt=salt, secrets=secrets)
    return PortableMark.of(profile, secret, model), secret


def texts(mark: VllmGumbel) -> list[list[int]]:
    """Marked, plain, with repeated contexts, of ids beyond 16 bits, too short, and empty."""
    source = random.Random(mark.context_width)
    marked: list[int] = []
    while len(marked) < 30:
        several = [source.randrange(50_000) for _ in range(16)]
        marked.append(max(several, key=lambda token: last_score(mark, [*marked, token])))
    plain = [source.randrange(50_000) for _ in range(20)]
    return [marked, plain, [7, 8, 9] * 6, [4_294_967_294, 200_000, 0, 151_643, 1, 65_536] * 2, marked[:3], []]


def last_score(mark: VllmGumbel, tokens: Sequence[int]) -> float:
    text = mark.read(check_tokens(tokens))
    return float(text.keys[0].scores[-1]) if text.positions[-1] == len(tokens) - 1 else 0.0


def answered(mark: PortableMark, secret: MarkSecret, tokens: Sequence[int]) -> dict[str, Any]:
    """A text with each scored place, the 24 bits of its draw, and its score."""
    foreign = mark.foreign(secret)
    assert isinstance(foreign, VllmGumbel)
    text = foreign.read(check_tokens(tokens))
    scores = text.keys[0].scores
    bits = np.rint(-np.expm1(-scores) * (2**24 + 1) - 1).astype(int)
    rows = zip(text.positions.tolist(), bits.tolist(), scores.tolist(), strict=True)
    answer = answer_for(mark, secret, tokens, FPR)
    return {
        "token_ids": list(tokens),
        "draws": [list(row) for row in rows],
        **{name: getattr(answer, name) for name in ("score", "scored_tokens", "log10_p", "verdict")},
    }


def refused(mark: dict[str, Any], secret: dict[str, Any]) -> list[dict[str, Any]]:
    """Files that were changed, and secrets that are others."""
    changed: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("another context width", {"parameters": {"context_width": 5}}, {}),
        ("another context", {"context": {**mark["context"], "tokens": 5}}, {}),
        ("another tokenizer", {"tokenizer_fingerprint": "0" * 64}, {}),
        ("a member more", {"note": "trust me"}, {}),
        ("another format", {"format": "ttmark portable mark 2"}, {}),
        ("another commitment", {"commitment": "0" * 64}, {}),
        ("another key", {}, {"secrets": {"key": secret["secrets"]["key"] + 1}}),
        ("another salt", {}, {"salt": "0" * 64}),
    ]
    return [{"why": why, "mark": {**mark, **a}, "secret": {**secret, **b}} for why, a, b in changed]


def vectors() -> dict[str, Any]:
    """All that the file holds."""
    backend = small_tokenizer()
    tokenizer = TextTokenizer(backend)
    fingerprint = tokenizer.fingerprint
    of_vllm = list[dict[str, Any]]()
    for width in (4, 1, 6):
        mark, secret = described("vllm-gumbel", {**GIVEN["vllm-gumbel"], "context_width": width}, fingerprint)
        foreign = mark.foreign(secret)
        assert isinstance(foreign, VllmGumbel)
        answers = [answered(mark, secret, tokens) for tokens in texts(foreign)]
        of_vllm.append({"mark": mark.stored(), "secret": secret.stored(), "fpr": FPR, "texts": answers})
    own = Profile.model_validate({**OWN, "tokenizer_fingerprint": fingerprint})
    pairs = [described(scheme, given, fingerprint) for scheme, given in GIVEN.items()]
    pairs.append(sealed(own, "ttmark", {"prf_keys": [bytes([n] * 16).hex() for n in (1, 2)]}, None))
    first = of_vllm[0]
    return {
        "philox": [
            {"counter": counter, "key": key, "output": encrypted(counter, key)} for counter, key in PHILOX
        ],
        "tokenizer": {
            "file": json.loads(backend.to_str()),
            "fingerprint": fingerprint,
            "text": TEXT,
            "token_ids": tokenizer.encode(TEXT),
        },
        "vllm-gumbel": of_vllm,
        "refused": refused(first["mark"], first["secret"]),
        "commitments": [{"mark": mark.stored(), "secret": secret.stored()} for mark, secret in pairs],
    }


def encrypted(counter: str, key: str) -> str:
    """Philox of words in hexadecimal digits."""
    a, b, c, d, low, high = (
        np.array([int(word, 16)], dtype=np.uint64) for word in f"{counter} {key}".split()
    )
    return " ".join(f"{int(word[0]):08x}" for word in philox((a, b, c, d), (low, high)))


def written() -> str:
    """The file's content: a line for each thing that is compared."""
    parts = []
    for name, value in vectors().items():
        rows = value if isinstance(value, list) else [value]
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        parts.append(f' "{name}": [\n{lines}\n ]' if isinstance(value, list) else f' "{name}":\n{lines}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    VECTORS.write_text(written())
