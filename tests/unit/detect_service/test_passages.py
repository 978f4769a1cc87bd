"""Passages and shares of a text that was found: of all keys, repeats as where they stand first."""

import itertools
import math

import numpy as np
import pytest

from tests.harness.joined_answers import KINDS, Answers
from tests.unit.detect_service.held_keys import held
from tests.unit.detect_service.simulated_texts import written
from ttmark.detect_service.detectors import likelihood
from ttmark.detect_service.key_selection import KeySelection
from ttmark.detect_service.passages import marked_passages
from ttmark.detect_service.verdict import DocumentFinding, best_finding
from ttmark.shared.schemas.detection.detect import MarkedShare
from ttmark.shared.watermark.schemes.watermark import Watermark

WATERMARK = Watermark("gumbel", 2)
POOL = [bytes([number] * 16) for number in range(1, 5)]
OTHER = [bytes([number] * 16) for number in range(11, 13)]
KEYS = [held(WATERMARK, POOL), held(WATERMARK, OTHER, key_id="other")]


def answer(key: bytes, blocks: int = 60, shift: int = 0) -> np.ndarray:
    """A marked text; with another shift it has other words."""
    return written(WATERMARK, [key] * (1 + shift), blocks, 8)[shift]


def human(tokens: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(50_000, size=tokens)


def find(tokens: np.ndarray, rate: float = 1e-5) -> tuple[DocumentFinding, list[tuple], MarkedShare]:
    """The finding; its passages as (start, end, key, pool key); the share."""
    detector = likelihood(math.log10(rate / 2), b"", lambda _: None)
    finding = best_finding(lambda _: tokens, KeySelection.of(KEYS).tries, detector)
    passages, share = marked_passages(finding, lambda _: tokens, lambda _: None)
    return finding, [(one.start, one.end, one.key.key_id, one.pool_key) for one in passages], share


def test_passages_of_several_keys_are_each_named_and_add_up() -> None:
    parts = [answer(POOL[0]), human(150), answer(POOL[3], shift=1), human(150, 2), answer(OTHER[1], shift=2)]
    tokens = np.concatenate(parts)
    finding, passages, share = find(tokens)
    assert len(finding.fired) == 3
    assert [(key_id, number) for _, _, key_id, number in passages] == [("key", 0), ("key", 3), ("other", 1)]
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(passages))
    marked = sum(part.size for part in parts[::2])
    assert share.estimate == pytest.approx(marked / tokens.size, abs=0.1)
    assert share.low <= share.estimate <= share.high


def test_where_no_key_was_found_by_itself_the_passages_are_those_of_the_best() -> None:
    finding, passages, _ = find(np.concatenate([human(60), answer(POOL[0], 30), human(60, 2)]), rate=1e-40)
    assert finding.fired == ()
    assert {(key_id, number) for _, _, key_id, number in passages} == {("key", 0)}


QUICKLY = ("300 of others, then one answer", "answers of two keys", "40 of an answer, 40 of others, in turn")
JOINED = [
    *((kind, 30) for kind in QUICKLY),
    *(pytest.param(kind, 100, marks=pytest.mark.slow) for kind in KINDS),
]


@pytest.mark.parametrize(("kind", "texts"), JOINED)
def test_the_share_s_interval_holds_and_passages_hold_marked_tokens_where_answers_are_joined(
    kind: str, texts: int
) -> None:
    found = list(Answers(2).found(kind, texts))
    assert len(found) > 0.6 * texts
    assert sum(one.holds for one in found) >= (0.8 if "changed" in kind else 0.9) * len(found)
    listed = [one.marked[at.start : at.end] for one in found for at in one.passages]
    assert sum(not marked.any() for marked in listed) <= 0.01 * len(listed)
