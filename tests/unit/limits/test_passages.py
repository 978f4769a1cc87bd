"""Names of passages, against the plainest way to make them."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ttmark.detect_service.letters import letters_of
from ttmark.detect_service.normalization import TextNormalizer
from ttmark.shared.limits.passages import _least_of_runs, _shingles, mixed, passages_of_ids, passages_of_text

SEED = 7
WORD = 2**64


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, WORD - 1), min_size=1, max_size=60), st.integers(1, 30))
def test_the_least_of_each_run_is_found(values: list[int], width: int) -> None:
    width = min(width, len(values))
    least = _least_of_runs(np.array(values, dtype=np.uint64), width)
    assert least.tolist() == [min(values[at : at + width]) for at in range(len(values) - width + 1)]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 5), min_size=3, max_size=60))
def test_a_shingle_s_hash_depends_on_its_items_and_their_order(items: list[int]) -> None:
    hashes = _shingles(np.array(items, dtype=np.uint64), 3, SEED).tolist()
    shingles = [tuple(items[at : at + 3]) for at in range(len(items) - 2)]
    assert len(set(zip(hashes, shingles, strict=True))) == len(set(hashes)) == len(set(shingles))


def test_the_passages_inside_a_text_stay_the_same_whatever_stands_around_it() -> None:
    chance = random.Random(1)
    inner = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=400))
    around = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=300)) for _ in range(2)]
    alone = passages_of_text(inner, SEED).tolist()
    within = passages_of_text(inner.join(around), SEED).tolist()
    # At each end a run may choose a hash from outside.
    assert set(alone[2:-2]) <= set(within)
    assert len(alone) > 15


def test_the_number_of_passages_is_a_small_part_of_the_length() -> None:
    letters = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=200_000))
    assert 200_000 / 16 < len(passages_of_text(letters, SEED)) < 200_000 / 10


@pytest.mark.parametrize("count", range(4))
def test_a_document_of_hardly_anything_has_at_most_a_passage(count: int) -> None:
    assert len(passages_of_text("a" * count, SEED)) == min(count, 1)
    assert len(passages_of_ids(np.arange(count), SEED)) <= max(count - 1, min(count, 1))


def test_other_seeds_choose_other_passages() -> None:
    letters = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=2_000))
    assert not set(passages_of_text(letters, 1).tolist()) & set(passages_of_text(letters, 2).tolist())


def test_the_mixture_is_a_permutation() -> None:
    assert len(set(mixed(np.arange(100_000, dtype=np.uint64)).tolist())) == 100_000


@pytest.mark.parametrize(
    "disguised",
    [
        "Тhe fіrst раѕѕаge, оf many",  # Cyrillic letters
        "THE  FIRST\u00a0PASSAGE... of-many",
        "t\u200bhe fi\u2060rst pass\u00adage of m\ufe0fany",
        "𝐭𝐡𝐞 ｆｉｒｓｔ passage of ⅿany",
        "the fırst pässage of mány",
        "the f1rst passage 0f many",
        "the\u2800first\u3164passage of many",
    ],
)
def test_what_a_reader_does_not_notice_is_folded(disguised: str) -> None:
    normalizer = TextNormalizer()
    folded = letters_of(disguised, lambda text: normalizer.normalize(text).text)
    assert folded == letters_of("the first passage of many", str)


def test_texts_of_signs_are_told_apart() -> None:
    assert letters_of("!!! ??? !!!", str) != letters_of("??? !!! ???", str) != ""
