"""Golden vectors of the default question; `python -m tests.harness.golden_likelihood` writes them anew."""

import hashlib
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from tests.harness.golden_detection import CALLER, exported, write_lines
from tests.harness.golden_texts import texts_of, tokenizer_file
from tests.harness.said_by import SaidBy, SilentReader
from ttmark.detect_service.ask import ask_here
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, FixedKeys, TokenizerSet
from ttmark.detect_service.question import Question
from ttmark.detect_service.stage import Reader, VerdictStage
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.keys.held_keys import KeyState, UnlockedKey, UnlockedVersion
from ttmark.shared.keys.key_codec import derive_prf_keys
from ttmark.shared.schemas.detection.detect import CombinedRequest, Document
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.prf import ContextTracker, key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark

FPR = 1e-5
SECRET = b"golden draws"
TOKENIZER = TextTokenizer(Tokenizer.from_str(tokenizer_file()))

PROFILES: dict[str, dict[str, Any]] = {
    "channels": {"scheme": "mcmark", "block_size": 2},
    "notes": {"scheme": "gumbel", "block_size": 2, "context_width": 2, "pool": 4, "payloads": True},
    "orders": {"scheme": "dipmark", "block_size": 3, "parameters": {"alpha": 0.4, "blend": 0.9}},
    "pairs": {"scheme": "gumbel", "block_size": 2, "context_width": 2},
    "pool": {"scheme": "gumbel", "block_size": 2, "context_width": 2, "pool": 16},
    "tournament": {"scheme": "synthid", "block_size": 1},
}
LETTERS = "abcdefgijklmnopqrsuvwxyz"  # no merge of the tokenizer holds one
State = Literal["none", "down", "up"]
Parts = list[list[float]]


def reading_keys(profiles: Mapping[str, Mapping[str, Any]] = PROFILES) -> list[UnlockedKey]:
    """Keys with two versions each, for texts of `TOKENIZER`; secrets from a formula."""
    keys = []
    for number, (key_id, given) in enumerate(sorted(profiles.items())):
        profile = Profile.model_validate({"tokenizer_fingerprint": TOKENIZER.fingerprint, **given})
        versions = [
            UnlockedVersion(version, state, *derive_prf_keys(bytes([number, 64 + version] * 16), profile))
            for version, state in enumerate((KeyState.ACTIVE, KeyState.PRIMARY), 1)
        ]
        keys.append(UnlockedKey(key_id, CALLER.tenant, profile, 1, tuple(versions)))
    return keys


def written(
    generator: np.random.Generator,
    watermark: Watermark,
    prf_key: bytes | None,
    tokens: int,
    *,
    others: Sequence[str] = (),
    sharpness: float = 0.5,
) -> str:
    """Text of whole blocks that the tokenizer reads as they were made, unmarked without a key.

    A word out of pairs of `others` is a block now and then; the sharper the weights, the less choice they
    leave.
    """
    size = watermark.block_size
    tracker = ContextTracker(size, watermark.context_width)
    text, ids = "", list[int]()
    while len(ids) + size <= tokens:
        blocks = ["".join(generator.choice(list(LETTERS), size)) for _ in range(12)]
        if size > 1:
            blocks[:2] = [" " + block[1:] for block in blocks[:2]]
        if size == 2:
            blocks[2 : 2 + len(others)] = others
        probs = generator.dirichlet(np.full(12, 1 / sharpness))
        context = tracker.next_context(ids)
        rows: NDArray[np.int64] = np.array([TOKENIZER.encode(block) for block in blocks])
        if context is not None and prf_key is not None:
            lanes = key_lanes(prf_key)[None]
            probs = watermark.reweight(lanes, np.array([context]), rows, probs, np.array([0, 12]))
        chosen = int(generator.choice(12, p=probs / probs.sum()))
        text, ids = text + blocks[chosen], [*ids, *rows[chosen].tolist()]
    return text


def said_of(text: str) -> Parts:
    """What a made-up reader says: [end in bytes, ln p] of parts that may be pieces of a character."""
    data = text.encode()
    generator = np.random.default_rng(zlib.crc32(data))
    parts, end = Parts(), 0
    while end < len(data):
        end = min(len(data), end + int(generator.integers(1, 4)))
        nats = generator.exponential(30.0 if generator.random() < 0.15 else 1.5)
        parts.append([end, round(-float(nats), 2)])
    return parts


def byte_reading(parts: Parts) -> ByteReading:
    """The same as the service gets it."""
    ends = [int(end) for end, _ in parts]
    said = [value for _, value in parts]
    return ByteReading.checked([0, *ends][: len(ends)], ends, said, ends[-1])


def asked_about(
    keys: Sequence[UnlockedKey],
    documents: Sequence[Document],
    *,
    reader: State = "none",
    wanted: Literal["auto", "always", "never"] = "auto",
    names: Sequence[str] | None = None,
    fails: bool = False,
    fpr: float = FPR,
    secret: bytes = SECRET,
) -> Any:
    """What the service answers about a document, or several as a conversation; `fails`: the reader does."""
    backend = DetectionBackend(
        FixedKeys.of(keys), TokenizerSet([TOKENIZER]), max_document_tokens=10_000, draw_secret=secret
    )
    asked = CombinedRequest(
        inputs=list(documents),
        keys=None if names is None else list(names),
        fpr=fpr,
        reader=wanted,
        conversation=len(documents) > 1,
    )
    made_up = (SilentReader if fails else SaidBy)(lambda text: byte_reading(said_of(text)), reader)
    means = means_of(backend).with_stages([VerdictStage("reader", reader=cast(Reader, made_up))])
    (result,) = ask_here(Question(asked, CALLER, "golden"), means).results
    return result


def documents(keys: Sequence[UnlockedKey]) -> dict[str, str]:
    by_id = {key.key_id: key for key in keys}
    generator = np.random.default_rng(34)

    def write(key_id: str, tokens: int, *, version: int = 2, number: int = 0, **options: Any) -> str:
        key = by_id[key_id]
        prf_key = key.versions[version - 1].prf_keys[number]
        return written(generator, key.profile.watermark(), prf_key, tokens, **options)

    def plain(tokens: int) -> str:
        return written(generator, by_id["pairs"].profile.watermark(), None, tokens)

    pairs = write("pairs", 80)
    return {
        "whole": pairs,
        "choiceless": write("pairs", 80, sharpness=8.0),
        "old": write("pairs", 80, version=1),
        "hidden": write("pairs", 80).replace("a", "\N{CYRILLIC SMALL LETTER A}"),
        "accents": write("pairs", 80, others="éü").replace("é", "e\N{COMBINING ACUTE ACCENT}"),
        "edited": pairs[:30] + "ZZZ" + pairs[37:61] + pairs[62:],
        "short": write("pairs", 20),
        "passage": f"{plain(140)} \N{OWL}\N{OWL}\n{write('pairs', 90)}.{plain(140)}",
        "looped": pairs[:40] * 4,
        "long": plain(500) + write("pairs", 120) + plain(300),
        "channels": write("channels", 120),
        "orders": write("orders", 150),
        "tournament": write("tournament", 120),
        "pool": write("pool", 60, number=11),
        "stitched": f"{write('notes', 80, number=3)} {plain(60)} {write('notes', 80, number=1)}",
        "note": write("notes", 60, number=2),
        "unmarked": plain(100),
        "joined": write("notes", 80, number=0) + write("notes", 80, number=2),
        "typeset": typeset(write("pairs", 80, others=QUOTING)),
        "printed": printed(typeset(write("pairs", 160, others=QUOTING))),
    }


QUOTING = "'s", '."'


def typeset(text: str) -> str:
    """As programs for typography make it."""
    return text.replace("'", "\u2019").replace('"', "\u201d")


def printed(text: str) -> str:
    """As a console shows it."""
    return textwrap.indent(textwrap.fill(text, 60), "  ")


CASES: list[tuple[str, list[str] | None, State, Literal["auto", "always", "never"]]] = [
    *[(name, ["pairs"], "none", "auto") for name in ("whole", "hidden", "accents", "edited", "short")],
    *[(name, ["pairs"], "none", "auto") for name in ("choiceless", "passage", "looped", "long", "unmarked")],
    *[(name, ["pairs"], "up", "always") for name in ("whole", "hidden", "accents", "edited", "short")],
    *[(name, ["pairs"], "up", "auto") for name in ("choiceless", "passage", "looped", "long", "unmarked")],
    *[(name, [name], "none", "auto") for name in ("channels", "orders", "tournament", "pool")],
    *[(name, [name], "up", "always") for name in ("channels", "orders", "tournament", "pool")],
    *[(name, ["notes"], "none", "auto") for name in ("stitched", "note", "joined")],
    *[(name, None, "up", "auto") for name in ("old", "note", "hidden", "short")],
    *[(name, ["pairs"], "none", "auto") for name in ("typeset", "printed")],
    *[(name, ["pairs"], "up", "always") for name in ("typeset", "printed")],
    ("whole", ["pairs"], "up", "never"),
    ("edited", ["pairs"], "down", "auto"),
]
WITHOUT_SECRET = [("edited", ["pairs"]), ("pool", ["pool"]), ("old", None)]
CONVERSATIONS: list[tuple[list[str] | None, list[str], State]] = [
    (["pairs"], ["whole", "unmarked", "edited"], "none"),
    (["pairs"], ["short", "old", "choiceless"], "up"),
    (["pairs"], ["unmarked", "short", "unmarked"], "up"),
    (["pool"], ["unmarked", "pool", "short"], "none"),
    (None, ["hidden", "note"], "up"),
    (["pairs"], ["typeset", "hidden", "printed"], "up"),
]


def shown(result: Any) -> dict[str, Any]:
    """What the vectors hold of an answer."""
    fields = {"verdict", "tokens", "reading", "log10_p", "log10_e", "hypotheses", "scored_blocks", "reader"}
    fields |= {"pool_keys_found", "scope", "marked_share", "weak", "tokens_needed", "tokens_typical"}
    answer: dict[str, Any] = result.model_dump(mode="json", include=fields, exclude_none=True)
    if result.key is not None:
        answer["key"] = [result.key.key_id, result.key.version, result.key.pool_key, result.key.payload]
    answer["segments"] = [
        [one.start_token, one.end_token, one.log10_e_value, one.key.version, one.key.pool_key]
        for one in result.segments
    ]
    return answer


def likelihood_vectors() -> dict[str, Any]:
    """Keys, documents, what was said of them, and answers of the production code."""
    keys = reading_keys()
    texts = documents(keys)
    cases: list[dict[str, Any]] = []
    for name, names, reader, wanted in CASES:
        found = asked_about(keys, [Document(text=texts[name])], reader=reader, wanted=wanted, names=names)
        asked = {"document": name, "keys": names or "any", "reader": reader, "wanted": wanted}
        cases.append({**asked, "answer": shown(found)})
    for name, names in WITHOUT_SECRET:
        found = asked_about(keys, [Document(text=texts[name])], names=names, secret=b"")
        asked = {"document": name, "keys": names or "any", "reader": "none", "wanted": "auto"}
        cases.append({**asked, "draw_secret": "", "answer": shown(found)})
    read = {name for name, _, reader, _ in CASES if reader == "up"}
    read |= {name for _, names, reader in CONVERSATIONS if reader == "up" for name in names}
    return {
        "mixtures": mixture_digests(),
        "fpr": FPR,
        "draw_secret": SECRET.hex(),
        "keys": list(map(exported, keys)),
        "documents": texts,
        "read_as": {
            name: [said_of(one) for one in texts_of(text)] for name, text in texts.items() if name in read
        },
        "cases": cases,
    }


def conversation_vectors() -> list[dict[str, Any]]:
    """Conversations of the same documents."""
    keys = reading_keys()
    texts = documents(keys)
    return [conversation(keys, texts, *one) for one in CONVERSATIONS]


def conversation(
    keys: Sequence[UnlockedKey],
    texts: Mapping[str, str],
    names: Sequence[str] | None,
    messages: Sequence[str],
    reader: State,
) -> dict[str, Any]:
    """Messages as one question, which a reader is asked about always where there is one."""
    documents = [Document(text=texts[name]) for name in messages]
    wanted: Literal["auto", "always"] = "always" if reader == "up" and names else "auto"
    found = asked_about(keys, documents, reader=reader, wanted=wanted, names=names)
    answer = {
        "verdict": found.verdict,
        "reader": found.reader,
        "log10_p": found.log10_p,
        "grown": [one.log10_e for one in found.messages],
    }
    asked = {"keys": names or "any", "messages": list(messages), "reader": reader, "wanted": wanted}
    return {**asked, "answer": answer}


def mixture_digests() -> dict[str, str]:
    folder = resources.files("ttmark.shared.watermark") / "tables"
    names = [f"mixtures-r{size}.json" for size in (1, 2, 3)]
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


if __name__ == "__main__":
    write_lines("likelihood-4", {**likelihood_vectors(), "conversations": conversation_vectors()})
