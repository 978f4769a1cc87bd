"""The attackers: edits of every kind, and texts that are put together."""

from difflib import SequenceMatcher

import numpy as np
import pytest

from ttmark.detect_service.normalization.normalizer import TextNormalizer
from ttmark.evaluation.adversaries.characters import INVISIBLE, VISIBLE
from ttmark.evaluation.conformance.quality_after_attacks import words_kept
from ttmark.evaluation.text_edits import Edit, Material

pytestmark = pytest.mark.long

TEXT = (
    "The quick rabbit in London has quietly watched 12 famous gardens, and the old man was not walking there."
    ' People say: "It is possible to finish the work before Tuesday in Paris."'
)
MATERIAL = Material.of(
    ["A gentle river often slowly moved under 7 useful bridges while the moon was rising."]
)


def generator() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("name", INVISIBLE)
def test_what_a_reader_does_not_see_is_undone_by_the_second_reading(name: str) -> None:
    edited = INVISIBLE[name](TEXT, 0.5, MATERIAL, generator())
    assert edited != TEXT
    assert TextNormalizer().readings(edited)["unwrapped"].text == TEXT


@pytest.mark.parametrize(("name", "edit"), [*INVISIBLE.items(), *VISIBLE.items()])
def test_an_edit_touches_no_more_words_than_its_share_and_nothing_at_none(name: str, edit: Edit) -> None:
    assert edit(TEXT, 0.0, MATERIAL, generator()) == TEXT
    before, after = TEXT.split(" "), edit(TEXT, 0.2, MATERIAL, generator()).split(" ")
    opcodes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changed = sum(stop - start for kind, start, stop, _, _ in opcodes if kind != "equal")
    at_most = round(0.2 * len(before))
    if name == "no-break spaces":  # two words become one
        at_most *= 2
    assert 0 < changed <= at_most


def test_visible_edits_do_what_they_are_called_and_what_is_left_of_a_text() -> None:
    def all_of(name: str, text: str) -> str:
        return VISIBLE[name](text, 1.0, MATERIAL, generator())

    assert all_of("case of the first letter", "One two") == "one Two"
    assert all_of("typing errors", "Garden is") == "Graden iss"
    assert words_kept("a b c d", "a x c d e") == 0.75
    assert words_kept("", "a") == 1.0
