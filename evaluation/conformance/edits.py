"""What happens to answers between the service and a detector: edits by name, and how strong each is."""

from collections.abc import Mapping

from ttmark.evaluation.adversaries.catalogue import first_part, sentences_deleted
from ttmark.evaluation.adversaries.characters import INVISIBLE
from ttmark.evaluation.adversaries.copying import retyped, without_markup
from ttmark.evaluation.text_edits import EDITS, Edit

CONFORMANCE_EDITS: Mapping[str, tuple[Edit, float]] = {
    "none": (lambda text, *_: text, 0.0),
    "10 % of the words edited": (EDITS["mix"], 0.10),
    "20 % of the words edited": (EDITS["mix"], 0.20),
    "10 % of the words deleted": (EDITS["delete"], 0.10),
    "a third of the sentences deleted": (sentences_deleted, 1 / 3),
    "first half alone": (first_part, 0.5),
    "half of the text by people, around it": (EDITS["dilute"], 0.5),
    "four fifths by people, around it": (EDITS["dilute"], 0.8),
    "30 % rewritten in runs": (EDITS["rewrite"], 0.3),
    "quotes, dashes and spaces retyped": (retyped, 1.0),
    "markup and line breaks removed": (without_markup, 1.0),
    "zero-width spaces in every word": (INVISIBLE["zero-width spaces"], 1.0),
    "look-alike letters throughout": (INVISIBLE["look-alike letters"], 1.0),
}
"""Of words: one third each replaced, deleted, followed by a new one. None rephrases or translates."""
