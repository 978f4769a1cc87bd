"""English paragraphs of documentation files: whole sentences, tidied, nothing else."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from gen_service.demo_model.training.formats.man import from_man
from gen_service.demo_model.training.formats.page import from_html
from gen_service.demo_model.training.formats.plain import from_python, from_text
from gen_service.demo_model.training.formats.pod import from_pod

STOPWORDS = frozenset(
    """
    a about all also an and any are as at be been but by can do does each for from has have if in
    into is it its may more must no not of on one only or other out should so some such than that
    the their them then there these they this to use used was we were what when where which while
    will with you your
    """.split()  # noqa: SIM905
)
PLAIN = str.maketrans(
    {
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "–": "-",
        "—": " - ",
        "…": "...",
        "\u00a0": " ",
        "‹": "<",
        "›": ">",
        "¶": None,
    }
)
_SENTENCE_END = re.compile(r"[.!?][\"')]?$")
_WORD = re.compile(r"[A-Za-z]+")


def tidy(text: str) -> str:
    """`text` on one line, with typewriter quotes and dashes."""
    return " ".join(text.translate(PLAIN).split())


def is_english_prose(paragraph: str) -> bool:
    """Whether a tidied paragraph consists of whole English sentences, not of code, a table or a title."""
    words = _WORD.findall(paragraph)
    if len(words) < 10 or len(paragraph) > 4000:
        return False
    if not (paragraph[0].isupper() or paragraph[0] in "\"'(") or not _SENTENCE_END.search(paragraph):
        return False
    letters = sum(map(len, words))
    capitals = sum(map(str.isupper, paragraph))
    blanks = paragraph.count(" ")
    stopwords = sum(word.lower() in STOPWORDS for word in words)
    return (
        letters + blanks >= 0.9 * len(paragraph)
        and capitals <= 0.2 * letters
        and letters <= 7.5 * len(words)
        and stopwords >= 0.25 * len(words)
    )


_MAN_SUFFIX = re.compile(r"\.[1-8](?:ssl|posix|perl|pm)?")
CONVERTERS: dict[str, Callable[[str], list[str]]] = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), from_html),
    **dict.fromkeys((".pod", ".pm"), from_pod),
    **dict.fromkeys((".txt", ".rst", ".md", ".info"), from_text),
    ".py": from_python,
}


def converter(name: str) -> Callable[[str], list[str]] | None:
    """The converter for a file by its suffix, a final `.gz` aside."""
    suffix = PurePosixPath(name.removesuffix(".gz")).suffix.lower()
    return from_man if _MAN_SUFFIX.fullmatch(suffix) else CONVERTERS.get(suffix)


def prose(name: str, text: str) -> list[str]:
    """The English paragraphs of a documentation file; none for a file of another kind."""
    convert = converter(name)
    if convert is None:
        return []
    tidied = (tidy(paragraph) for paragraph in convert(text))
    return [paragraph for paragraph in tidied if paragraph and is_english_prose(paragraph)]
