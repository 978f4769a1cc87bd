"""What is read out of a file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extraction:
    """The text of a file.

    Attributes:
        encoding: of the file's characters, where the file is a text or a web page (`utf-8`, `windows-1252`).
    """

    text: str
    encoding: str | None = None
