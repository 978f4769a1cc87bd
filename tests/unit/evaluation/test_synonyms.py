"""Words that WordNet holds for the same."""

from pathlib import Path

import numpy as np
import pytest

from ttmark.evaluation.synonyms import Synonyms
from ttmark.evaluation.text_edits import Material

pytestmark = pytest.mark.long


def test_synonyms_keep_blanks_and_signs_and_are_as_many_as_asked(tmp_path: Path) -> None:
    licence = "  1 a licence \n"
    for part in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"data.{part}").write_text(licence)
        (tmp_path / f"index.{part}").write_text(licence)
    (tmp_path / "data.noun").write_text(
        licence + "00000009 06 n 03 boat 0 ship 0 Ark 0 000 | a gloss\n00000010 06 n 02 boat 0 dish 0 000 |\n"
        "00000011 06 n 02 boat 0 third 0 000 | a sense that is met seldom\n"
    )
    (tmp_path / "index.noun").write_text(licence + "boat n 3 1 @ 3 2 00000009 00000010 00000011\n")
    known = Synonyms.read(tmp_path)
    assert known.of == {"boat": ["ship", "dish"]}
    text = "A boat,\n boat and boat! boat"
    for share, changed in ((0.0, 0), (0.34, 2), (1.0, 4)):
        put = known.put_into(text, share, Material.of([]), np.random.default_rng(1))
        assert put.count("ship") + put.count("dish") == changed
        assert put.replace("ship", "boat").replace("dish", "boat") == text
