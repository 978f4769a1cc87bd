"""The catalogue of attacks: what may be done to a text, how strongly, and what it costs who does it.

An attack more is one function `Edit` and one line here.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ttmark.evaluation.adversaries.characters import INVISIBLE, VISIBLE, in_words
from ttmark.evaluation.endpoint import EndpointClient
from ttmark.evaluation.synonyms import Synonyms
from ttmark.evaluation.text_edits import (
    EDITS,
    PROMPTS,
    Edit,
    Material,
    sentences_of,
    through_endpoint,
    words_of,
)

Verdict = Callable[[str], bool | None]
"""Whether a text is found, as an ordinary caller is told; None: no verdict, a limit is reached."""

STEP = 0.02
"""Of the words, replaced before the first question; each further question is about twice as many."""


def removed_by_questions(verdict: Verdict) -> Edit:
    """An edit whose strength is the number of questions that may be asked about a text.

    Words are replaced, twice as many each time, until the text is no longer found. With the questions that
    are left, words are put back, half of them at a time, as long as it is not found. Without a verdict the
    attacker has what the last answers said, and if there were none, the text with the words replaced.
    """

    def edit(text: str, questions: float, material: Material, generator: np.random.Generator) -> str:
        words, left = words_of(text), round(questions)
        order = generator.permutation(len(words)).tolist()
        others = [material.run(1, generator)[0] for _ in words]

        def with_replaced(places: Sequence[int]) -> str:
            chosen = set(places)
            return "".join(others[at] if at in chosen else word for at, word in enumerate(words))

        replaced = max(1, round(STEP * len(words)))
        while left:
            left -= 1
            found = verdict(with_replaced(order[:replaced]))
            if not found:
                break
            replaced = min(2 * replaced, len(words))
        else:
            return with_replaced(order[:replaced])
        if found is None:
            return with_replaced(order[:replaced])
        least, most = replaced // 2, replaced
        while left and most - least > 1:
            left -= 1
            middle = (least + most) // 2
            found = verdict(with_replaced(order[:middle]))
            if found is None:
                break
            least, most = (middle, most) if found else (least, middle)
        return with_replaced(order[:most])

    return edit


def stitched(stolen: Sequence[str]) -> Edit:
    """An edit whose strength is the number of stolen answers.

    The forged text is as long as the one it stands for, and made of sentences of those answers, in no order.
    """

    def edit(text: str, answers: float, _: Material, generator: np.random.Generator) -> str:
        chosen = generator.permutation(len(stolen))[: round(answers)].tolist()
        sentences = [one.strip() for at in chosen for one in sentences_of(stolen[at]) if one.strip()]
        made, length = list[str](), 0
        for at in generator.permutation(len(sentences)).tolist():
            if length >= len(words_of(text)):
                break
            made.append(sentences[at])
            length += len(words_of(sentences[at]))
        return " ".join(made)

    return edit


_QUOTES = str.maketrans({"'": "’", '"': "”", "-": "–"})
_ASCII = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})
_MARKUP = str.maketrans("", "", "*#`_|")
_MAIL_LINE = 72


def retyped(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    """As mail programs leave it: other quotes and dashes, two spaces after a sentence."""
    other = text.translate(_ASCII)
    other = text.translate(_QUOTES) if other == text else other
    return other.replace(". ", ".  ")


def without_markup(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    """Markdown's signs and line breaks are gone, as after a copy through a plain field."""
    return " ".join(text.translate(_MARKUP).split())


def shown(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    """As a web page shows it: headings, emphasis, code and items of lists without Markdown's signs."""
    return "\n\n".join(filter(None, map(_block, re.split(r"\n\s*\n", text))))


def mailed(text: str, times: float, _: Material, __: np.random.Generator) -> str:
    """Sent as a mail whose lines are broken, and answered so many times, each with `> ` before the lines."""
    return textwrap.indent("\n".join(_lines(text, _MAIL_LINE)), "> " * round(times), lambda _: True)


def printed(text: str, width: float, _: Material, __: np.random.Generator) -> str:
    """Printed with lines of so many characters in a font of Western Europe, and copied line by line."""
    lines = "\n".join(_lines(text, round(width)))
    signs = "".join(sign for sign in lines if sign.isprintable() or sign == "\n")
    return signs.encode("cp1252", "replace").decode("cp1252")


def _block(text: str) -> str:
    plain = re.sub(r"\*\*(.+?)\*\*|\*(\S.*?)\*|`(.+?)`", lambda found: found[found.lastindex or 0], text)
    lines = re.split(r"(?m)^\s*(?:[-*]|#+) +(.*)$", plain)  # these have lines of their own
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


def _lines(text: str, width: int) -> list[str]:
    return [line for part in text.split("\n") for line in textwrap.wrap(part, width) or [""]]


WORDS, CHARACTERS, PASSAGES = "words", "letters and signs", "sentences and passages"
COPIES, MODELS = "copies through other programs", "rewriting by a model"
QUESTIONS, FORGING = "removal by asking the detector", "forging from stolen answers"
KINDS = (WORDS, CHARACTERS, PASSAGES, COPIES, MODELS, QUESTIONS)
"""Of attacks that remove; `FORGING` makes a mark where there was none."""

PROGRAM, ANY_WORDS, DICTIONARY, PEOPLE, BY_HAND, TRANSLATION, MODEL = (
    "nothing: a program of a few lines",
    "nothing: a program and a list of words; the text stops making sense",
    "nothing: a program and a dictionary of synonyms (WordNet)",
    "a text by people to put around it",
    "nothing: it happens by copying",
    "nothing: a program that translates",
    "a model without a mark, asked once or twice for each sentence",
)
TOKEN, STOLEN = "an access token that does not see evidence, and so many questions", "so many marked answers"
DEAR = (MODEL, TOKEN)
"""Costs that are paid for each text, so a run pays them for some texts only."""
TRANSLATED = "translated there and back"
ASKED = "until {:.0f} questions are asked about a text"
OF_WORDS, OF_SENTENCES, THROUGHOUT = "{:.0%} of the words", "{:.0%} of the sentences", ""


@dataclass(frozen=True, slots=True)
class Attack:
    """One thing that may be done to a text.

    Attributes:
        kind: one of `KINDS`, or `FORGING`.
        cost: to the attacker, in words.
        edit: takes a strength as the share to edit.
        dial: says in words how strong it is; formatted with a strength.
        strengths: the weakest first.
    """

    kind: str
    name: str
    cost: str
    edit: Edit
    dial: str = THROUGHOUT
    strengths: tuple[float, ...] = (1.0,)

    def title(self, strength: float) -> str:
        return ", ".join(filter(None, (self.name, self.dial.format(strength))))


def first_part(text: str, share: float, _: Material, __: np.random.Generator) -> str:
    """The end is cut off: `share` of the words."""
    words = words_of(text)
    return "".join(words[: len(words) - round(share * len(words))])


def sentences_deleted(text: str, share: float, _: Material, generator: np.random.Generator) -> str:
    """Of the sentences `share` are gone on average."""
    return "".join(one for one in sentences_of(text) if generator.random() >= share)


_SINGLE = (0.1, 0.25, 0.5)

ATTACKS: tuple[Attack, ...] = (
    Attack(WORDS, "words replaced by others", ANY_WORDS, EDITS["substitute"], OF_WORDS, _SINGLE),
    Attack(WORDS, "words deleted", PROGRAM, EDITS["delete"], OF_WORDS, _SINGLE),
    Attack(WORDS, "words inserted", ANY_WORDS, EDITS["insert"], OF_WORDS, _SINGLE),
    Attack(WORDS, "runs of words replaced", ANY_WORDS, EDITS["rewrite"], OF_WORDS, (0.3, 0.6)),
    Attack(CHARACTERS, "typing errors", PROGRAM, VISIBLE["typing errors"], OF_WORDS, (0.1, 0.3)),
    Attack(
        CHARACTERS,
        "capitals turned round",
        PROGRAM,
        VISIBLE["case of the first letter"],
        OF_WORDS,
        (0.1, 0.3),
    ),
    Attack(CHARACTERS, "small letters", PROGRAM, in_words(str.lower), OF_WORDS, (1.0,)),
    *(Attack(CHARACTERS, name, PROGRAM, edit, OF_WORDS, (0.2, 1.0)) for name, edit in INVISIBLE.items()),
    Attack(PASSAGES, "sentences in another order", PROGRAM, EDITS["swap"], OF_SENTENCES, (0.3, 1.0)),
    Attack(PASSAGES, "sentences deleted", PROGRAM, sentences_deleted, OF_SENTENCES, (1 / 3, 2 / 3)),
    Attack(PASSAGES, "end cut off", PROGRAM, first_part, OF_WORDS, (0.25, 0.5, 0.75)),
    Attack(
        PASSAGES,
        "put into a text by people",
        PEOPLE,
        EDITS["dilute"],
        "{:.0%} of the whole is theirs",
        (0.5, 0.8),
    ),
    Attack(COPIES, "quotes, dashes and spaces retyped", BY_HAND, retyped),
    Attack(COPIES, "Markdown's signs and line breaks removed", BY_HAND, without_markup),
)
"""Those that need nothing but the text."""


def attacks(
    synonyms: Synonyms | None = None,
    translated: Callable[[str], str] | None = None,
    rewriter: EndpointClient | None = None,
    verdict: Verdict | None = None,
    stolen: Sequence[str] = (),
) -> Iterator[Attack]:
    """The whole catalogue, as far as there is what it needs.

    Args:
        translated: a text, translated into another language and back.
        rewriter: a model that says sentences in other words, and translates them where nobody else does.
        verdict: what an ordinary caller is told of a text.
    """
    yield from ATTACKS
    if synonyms is not None:
        exchanged = synonyms.put_into
        yield Attack(WORDS, "words exchanged for synonyms", DICTIONARY, exchanged, OF_WORDS, _SINGLE)
    yield Attack(COPIES, "shown as a web page and copied", BY_HAND, shown)
    yield Attack(COPIES, "sent by mail", BY_HAND, mailed, "quoted {:.0f} times", (0.0, 1.0, 2.0))
    yield Attack(
        COPIES, "printed to PDF and copied", BY_HAND, printed, "lines of {:.0f} letters", (90.0, 40.0)
    )
    if translated is not None:
        yield Attack(MODELS, TRANSLATED, TRANSLATION, lambda text, _, __, ___: translated(text))
    if rewriter is not None:
        titles = {"paraphrase": "said in other words"}
        if translated is None:
            titles["back-translation"] = TRANSLATED
        for name, title in titles.items():
            yield Attack(MODELS, title, MODEL, _rewritten(name, rewriter), OF_SENTENCES, (0.3, 1.0))
        yield Attack(MODELS, "said in other words as a whole", MODEL, _retold(rewriter))
    if verdict is not None:
        removed = removed_by_questions(verdict)
        yield Attack(QUESTIONS, "words replaced", TOKEN, removed, ASKED, (40.0,))
    if stolen:
        some = tuple(sorted({min(10.0, len(stolen)), float(len(stolen))}))
        yield Attack(FORGING, "stitched from sentences", STOLEN, stitched(stolen), "of {:.0f} answers", some)


def _rewritten(name: str, client: EndpointClient) -> Edit:
    def edit(text: str, share: float, _: Material, generator: np.random.Generator) -> str:
        seed = int(generator.integers(2**31))
        return through_endpoint(name, text, share, seed, client) if text.strip() else text

    return edit


def _retold(client: EndpointClient) -> Edit:
    (template,) = PROMPTS["paraphrase"]
    return lambda text, _, __, ___: client.ask_all([template.format(text=text)])[0]
