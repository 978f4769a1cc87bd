"""The attackers: edits of every kind, and texts that are put together."""

from difflib import SequenceMatcher

import numpy as np
import pytest

from ttmark.evaluation.adversaries.characters import INVISIBLE, VISIBLE
from ttmark.evaluation.adversaries.falsified import falsified
from ttmark.evaluation.adversaries.meaning import chrf, words_kept
from ttmark.evaluation.adversaries.word_classes import WORDS, WordClass, exchanged, word_class
from ttmark.evaluation.edits import Edit, Material
from ttmark.services.text_readings import text_readings

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
    assert text_readings()(edited) == (edited, TEXT)


def test_a_text_without_tricks_is_read_once() -> None:
    assert text_readings()(TEXT) == (TEXT,)


@pytest.mark.parametrize(("name", "edit"), [*INVISIBLE.items(), *VISIBLE.items(), *WORDS.items()])
def test_an_edit_touches_no_more_words_than_its_share_and_nothing_at_none(name: str, edit: Edit) -> None:
    assert edit(TEXT, 0.0, MATERIAL, generator()) == TEXT
    before, after = TEXT.split(" "), edit(TEXT, 0.2, MATERIAL, generator()).split(" ")
    opcodes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changed = sum(stop - start for kind, start, stop, _, _ in opcodes if kind != "equal")
    at_most = round(0.2 * len(before))
    if name == "no-break spaces":  # two words become one
        at_most *= 2
    assert 0 < changed <= at_most


def test_visible_edits_do_what_they_are_called() -> None:
    def all_of(name: str, text: str) -> str:
        return VISIBLE[name](text, 1.0, MATERIAL, generator())

    assert all_of("case of the first letter", "One two") == "one Two"
    assert all_of("quotation marks", "One two") == '"One" "two"'
    assert all_of("typing errors", "Garden is") == "Graden iss"
    assert all_of("punctuation", "One, two ...") == "One two, ...,"


def test_words_have_classes_by_list_and_ending() -> None:
    kinds = {
        word: word_class(word) for word in (" The", "quietly,", " famous", "walking", " Garden.", "12", "--")
    }
    assert list(kinds.values()) == [
        WordClass.FUNCTION,
        WordClass.DESCRIBING,
        WordClass.DESCRIBING,
        WordClass.VERB,
        WordClass.NOUN,
        WordClass.OTHER,
        WordClass.OTHER,
    ]


def test_a_word_is_exchanged_with_its_signs_and_capital() -> None:
    assert exchanged("\nGarden,", " river.") == "\nRiver,"
    verbs = WORDS["verbs"](TEXT, 1.0, MATERIAL, generator())
    assert "walking" not in verbs
    assert "watched" not in verbs
    assert {word_class(word) for word in set(verbs.split()) - set(TEXT.split())} == {WordClass.VERB}


def test_lies_are_negations_numbers_and_names() -> None:
    text, made = falsified(TEXT, 99, generator())
    assert made == 7
    assert "in London" not in text
    assert "has not quietly" in text
    assert "was walking" in text
    assert "12" not in text
    assert "It is not possible" in text
    assert "Paris" not in text
    assert "The quick" in text
    one, made = falsified(TEXT, 1, generator())
    assert made == 1
    assert words_kept(TEXT, one) < 1.0 or " not " in one


def test_what_is_left_of_a_text() -> None:
    assert words_kept("a b c d", "a x c d e") == 0.75
    assert words_kept("", "a") == 1.0
    assert chrf(TEXT, TEXT) == pytest.approx(100.0)
    assert chrf(TEXT, TEXT.upper()) < 50 < chrf(TEXT, TEXT.replace("rabbit", "hare"))
