"""What commands on portable marks share: reading the files, finding the tokenizer, showing answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
import typer

from ttmark.services.cli.input_text import STANDARD_INPUT, shown
from ttmark.services.cli.named_table import print_named
from ttmark.services.runtime import StartupError, no_start_after
from ttmark.services.state_folder import STATE_FOLDER, known_tokenizers
from ttmark.shared.keys.portable_mark import MOST_BYTES, MarkFile, MarkRefused, PortableMark
from ttmark.shared.tokenization import TOKENIZER_FILE, TextTokenizer, TokenizerMissing

if TYPE_CHECKING:
    from ttmark.detect_service.portable_mark import MarkAnswer

File = TypeVar("File", bound=MarkFile)
_COLUMNS = ("verdict", "p-value", "tokens", "scored", "scheme")


def read_file(kind: type[File], path: Path) -> File:
    """What a file of marks holds.

    Raises:
        StartupError: it cannot be read, or holds something else.
    """
    try:
        return kind.read(bytes_at(path))
    except MarkRefused as error:
        raise StartupError(f"{shown(str(path))}: {error}") from None


def bytes_at(path: Path) -> bytes:
    """What a small file holds.

    Raises:
        StartupError: it cannot be read, or is large.
    """
    try:
        with path.open("rb") as handle:
            content = handle.read(MOST_BYTES + 1)
    except OSError as error:
        raise StartupError(f"cannot read {shown(str(path))}: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise StartupError(f"{shown(str(path))} has more than {MOST_BYTES} bytes")
    return content


def tokenizer_of(mark: PortableMark, given: Path | None) -> TextTokenizer:
    """The tokenizer of a mark's texts: the one that is given, or one that is known here by its fingerprint.

    Raises:
        StartupError: that one is another, or none is known.
    """
    if given is not None:
        folder = given.parent if given.name == TOKENIZER_FILE else given
        with no_start_after(TokenizerMissing):
            tokenizer = TextTokenizer.load(folder)
        if tokenizer.fingerprint != mark.tokenizer_fingerprint:
            raise StartupError(
                f"the mark is of texts of another tokenizer: that has the fingerprint "
                f"{mark.tokenizer_fingerprint}, and that of {given} is {tokenizer.fingerprint}"
            )
        return tokenizer
    for place in known_tokenizers(STATE_FOLDER):
        try:
            tokenizer = TextTokenizer.load(place)
        except TokenizerMissing:
            continue
        if tokenizer.fingerprint == mark.tokenizer_fingerprint:
            return tokenizer
    of = f" of {mark.model}" if mark.model else ""
    raise StartupError(
        f"the tokenizer{of} (fingerprint {mark.tokenizer_fingerprint[:8]}...) is not known here: "
        f"name the folder of its {TOKENIZER_FILE} with --tokenizer"
    )


def show_answers(named: Sequence[tuple[str, "MarkAnswer"]], *, as_json: bool) -> None:
    """Prints answers as a table, or as one JSON object in each line."""
    if as_json:
        for name, answer in named:
            typer.echo(orjson.dumps({"id": name, **answer.stored()}).decode())
        return
    rows = [
        [one.verdict, f"{one.p_value:.2g}", str(one.tokens), str(one.scored_tokens), one.scheme]
        for _, one in named
    ]
    names = ["standard input" if name == STANDARD_INPUT else name for name, _ in named]
    print_named("file", names, _COLUMNS, rows)
