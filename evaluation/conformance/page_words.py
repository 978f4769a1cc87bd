"""What the page of a conformance report says in words."""

from collections.abc import Mapping, Sequence

from ttmark.evaluation.conformance.measure import (
    DEPLOYED_SECTION,
    EDIT,
    FRESH_SECTION,
    KIND,
    LANGUAGE,
    LENGTH,
    SAMPLING,
)

ABOUT: Mapping[str, tuple[str, str]] = {
    FRESH_SECTION: (
        "False positives under fresh keys",
        "The promise is about keys: a text without a mark is found with at most this probability under a key"
        " that had no part in it. Each question is one text under a key of its own with the deployed profile."
        " The questions are independent, so the interval means what it says. The stroke is what is promised.",
    ),
    DEPLOYED_SECTION: (
        "False positives under the deployed key",
        "The same texts under the one key in use. Texts that share phrases share their luck with this key,"
        " so the figures are about texts like these and spread more than the intervals say.",
    ),
    SAMPLING: (
        "Found: unedited answers, by sampling",
        "Answers in all languages and kinds as the service gives them, ended by the model or at the most"
        " tokens of this size.",
    ),
    LENGTH: (
        "Found: by length",
        "Beginnings of the same answers, of those that are so long, read again as text.",
    ),
    KIND: ("Found: by kind of text", "Whole answers to English prompts at the chat sampling."),
    LANGUAGE: ("Found: by language", "Whole prose answers at the chat sampling, by the language asked in."),
    EDIT: (
        "Found: after edits",
        "All answers at the chat sampling in languages that are written with spaces, edited by a program.",
    ),
}

METHODS: Sequence[str] = (
    "The answers were made by the engine of the generation service with its settings, the model's"
    " chat template, the primary version of the deployed key and its pool. An end of text ends them.",
    "Every question went through the code of POST /v1/detect, naming one key, without a reader: the"
    " text as it is and normalised, all versions and keys of the pool corrected for. A text is found at"
    " a rate where its p-value is at most the rate.",
    "Brackets are exact 95 % intervals (Clopper-Pearson) over texts. One in twenty does not hold the"
    " true rate.",
    "Tables share texts: a text of one row is, cut or edited, in others. Rows are not independent of"
    " each other.",
    "Edits of words: one third each are replaced, deleted, or followed by a new word. Other words are"
    " from the English articles by people. Look-alikes, zero-width spaces and retyping change the"
    " whole text.",
    "Seeds: prompts and sampling are fixed by the seed, the key and the engine's numbers. Another"
    " seed gives other answers, other passages and other fresh keys.",
)

LIMITS: Sequence[str] = (
    "No figure is about paraphrase, translation or rewriting by another model, or by people. Such"
    " edits remove more than those measured here.",
    "The prompts are the project's own: ten for each kind and language, and repeated. They are not"
    " your traffic.",
    "A language that the model hardly speaks is measured on the text that it then writes, often in"
    " another language or in circles. See the count of answers below the table.",
    "Detection depends on how much choice the model has. Low temperatures, short answers, tables and"
    " code carry less of a mark. Greedy answers carry none and are not in these figures.",
    "People's texts that ship are English prose, documentation and code. False positives on other"
    " texts are in this report where the operator gave such texts.",
    "The promise is over keys. A deployed key can be unlucky with a phrase that occurs in many texts;"
    " then they are found together.",
    "A question that names no key tries all keys of its tenant and corrects for them; that finds a"
    " little less.",
    "The signature says who vouches for the report. It does not say that the command ran on the"
    " deployed service: compare key, profile and hashes of the model.",
)
