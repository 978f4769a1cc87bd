"""What is read out of a file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One of several texts of a file: a mail of a mailbox, a row of a table.

    Attributes:
        problem: why it has no text, where it has none.
    """

    name: str
    text: str = ""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """The text of a file.

    Attributes:
        encoding: of the file's characters, where the file is a text or a web page (`utf-8`, `windows-1252`).
        parts: of a file that holds several texts, each; `text` is empty then.
    """

    text: str
    encoding: str | None = None
    parts: tuple[Part, ...] = ()
