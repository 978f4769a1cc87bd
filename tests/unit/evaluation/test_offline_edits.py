"""Edits that need no model."""

from itertools import pairwise

import numpy as np
import pytest

from ttmark.evaluation.text_edits import (
    EDITS,
    Material,
    delete,
    dilute,
    insert,
    mix,
    rewrite,
    substitute,
    swap_sentences,
)

TEXT = " ".join(f"w{i}" for i in range(100))
MATERIAL = Material(tuple(f" other{i}" for i in range(500)))


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


def test_edits_change_the_number_of_words_by_their_share() -> None:
    words = substitute(TEXT, 0.3, MATERIAL, generator()).split()
    assert len(words) == 100
    assert sum(word.startswith("other") for word in words) == 30
    assert len(delete(TEXT, 0.3, MATERIAL, generator()).split()) == 70
    inserted = insert(TEXT, 0.3, MATERIAL, generator()).split()
    assert len(inserted) == 130
    assert [word for word in inserted if word.startswith("w")] == TEXT.split()


def test_rewriting_replaces_whole_runs() -> None:
    words = rewrite(TEXT, 0.3, MATERIAL, generator()).split()
    changed = [not word.startswith("w") for word in words]
    assert len(words) == 100
    assert 20 <= sum(changed) <= 40
    assert sum(a != b for a, b in pairwise(changed)) <= 6


def test_mixed_edits_replace_delete_and_insert_in_the_same_text() -> None:
    words = mix(TEXT, 0.6, MATERIAL, generator()).split()
    old = [word for word in words if word.startswith("w")]
    assert old == [word for word in TEXT.split() if word in old]
    new = len(words) - len(old)
    substituted_or_deleted = 100 - len(old)
    assert 30 < substituted_or_deleted < 60  # of 60 edits the others insert
    assert 60 - substituted_or_deleted < new < 60


def test_sentences_change_places_and_none_is_lost() -> None:
    text = "".join(f" Sentence {i} ends." for i in range(10))
    swapped = swap_sentences(text, 0.5, MATERIAL, generator())
    assert swapped != text
    assert sorted(swapped.split(".")) == sorted(text.split("."))


def test_dilution_leaves_the_text_whole_inside_other_text() -> None:
    diluted = dilute(TEXT, 0.3, MATERIAL, generator())
    assert TEXT in diluted
    added = sum(word.startswith("other") for word in diluted.split())
    assert added / len(diluted.split()) == pytest.approx(0.3, abs=0.01)
    with pytest.raises(ValueError, match="needs 43 words"):
        dilute(TEXT, 0.3, Material((" one",)), generator())


@pytest.mark.parametrize("name", EDITS)
def test_a_share_of_nothing_changes_nothing(name: str) -> None:
    assert EDITS[name]("A b.  C d!\nE f?", 0.0, MATERIAL, generator()) == "A b.  C d!\nE f?"
