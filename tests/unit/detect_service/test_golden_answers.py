"""Texts, fingerprints and profiles: golden vectors, and what `docs/spec.md` says of them alone."""

import hashlib
import json
import random

import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.harness.golden import GOLDEN
from tests.harness.golden_texts import NORMALIZER, reading_vectors, text_vectors
from tests.harness.spec_detector.normalisation import unwrapped, without_typography
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.tokenization import TextTokenizer

TEXTS = json.loads((GOLDEN / "texts.json").read_text())
READINGS = json.loads((GOLDEN / "readings.json").read_text())


def pairs(table):
    """Letters and what they look like, from a string of both in turn."""
    return dict(zip(table[::2], table[1::2], strict=True))


LOOK_ALIKES = pairs(TEXTS["look_alikes"])
# Characters that some rule names, and neighbours that it looks at.
TRICKS = [
    *"\t\r\x00\x07\x0b\x0c\x1f\x7f\x85\x9f\xa0\xad",
    *"\u0131\u0237\u0130\u00e7\u015f\u0301\u0303\u0323\u0324\u0331\u1ea1\u1e05\u1edb\u00e9\u0439",
    *"\u115f\u1160\uac00\u180b\u180e\u1820\u200b\u200c\u200d\u2010\u2028\u202e\u20e3\u2800\u2801",
    *"\u3000\u3164\uffa0\ufe0f\ufff9\ufeff\u4e00\U000e0100\U0001f3f4\U000e0067\U000e007f",
]
STYLED = ["\uff21", "\u2163", "\ufb01", "\u212a", "\u00b2", "\u2460", "\U0001d400", "\U0001d6a4", "\u01c6"]


def test_golden_texts_are_reproduced_and_follow_from_the_specification_alone():
    found = text_vectors()
    # Later versions of Unicode may add letters.
    assert LOOK_ALIKES.items() <= pairs(found.pop("look_alikes")).items()
    assert found == {name: value for name, value in TEXTS.items() if name != "look_alikes"}
    for text in TEXTS["texts"]:
        assert unwrapped(text["text"], LOOK_ALIKES) == text["normalized"]
    assert {len(text["readings"]) for text in TEXTS["texts"]} == {1, 2}
    for text in TEXTS["texts"]:
        assert len(text["readings"]) == 1 + (text["normalized"] != text["text"])
    assert reading_vectors() == READINGS
    for text in READINGS["texts"]:
        assert unwrapped(text["as_sent"], LOOK_ALIKES) == text["unwrapped"]
        assert without_typography(text["unwrapped"]) == text["typography"]


@pytest.mark.parametrize("seed", range(8))
def test_any_text_is_normalised_as_specified(seed):
    generator = random.Random(seed)
    tricks = [*TRICKS, *generator.sample(sorted(LOOK_ALIKES), 6), *generator.sample(STYLED, 6)]
    for _ in range(400):
        few = generator.sample(tricks, 8) + list("aeZ1_ \n")
        text = "".join(generator.choices(few, k=generator.randint(1, 14)))
        found = {name: one.text for name, one in NORMALIZER.readings(text).items()}
        plain = unwrapped(text, LOOK_ALIKES)
        assert list(found.values()) == [text, plain, without_typography(plain)], ascii(text)


def test_a_fingerprint_is_the_digest_of_the_canonical_form():
    canonical = TEXTS["canonical"]
    assert hashlib.sha256(canonical.encode()).hexdigest() == TEXTS["fingerprint"]
    # Members sorted, no white space, nothing but quotes, backslashes and control characters escaped.
    description = json.loads(canonical)
    assert canonical == json.dumps(
        description, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    assert not {"truncation", "padding"} & description.keys()


def test_a_fingerprint_does_not_depend_on_how_the_file_is_written():
    file = json.loads(TEXTS["tokenizer"])
    file["model"]["merges"] = [merge.split() for merge in file["model"]["merges"]]
    file["truncation"] = None
    again = TextTokenizer(Tokenizer.from_str(json.dumps(dict(reversed(file.items())), indent=3)))
    assert again.fingerprint == TEXTS["fingerprint"]


def written(value):
    """A double between 0 and 1 in the words of the specification, from the digits that `repr` finds."""
    shortest = next(f"{value:.{places}e}" for places in range(17) if float(f"{value:.{places}e}") == value)
    digits, _, exponent = shortest.partition("e")
    figures, shift = digits.replace(".", ""), -int(exponent)
    if shift <= 0:
        return f"{figures[0]}.{figures[1:] or '0'}"
    if shift <= 5:
        return "0." + "0" * (shift - 1) + figures
    return f"{figures[0]}{'.' + figures[1:] if figures[1:] else ''}e-{shift}"


def test_numbers_of_a_canonical_profile_are_written_as_specified():
    generator = np.random.default_rng(1)
    values = [1.0, 0.3, 0.1, 0.00002, 1e-5, 1.5e-5, 9.99e-6, 1e-6, 1.5e-6, 1e-12, 0.1 + 0.2]
    values += (10.0 ** -generator.uniform(0, 9, 500)).tolist()
    for value in values:
        profile = Profile.model_validate(
            {"scheme": "gumbel", "tokenizer_fingerprint": "0f" * 32, "parameters": {"blend": value}}
        )
        assert f'"blend":{written(value)}}}'.encode() in profile.canonical()
