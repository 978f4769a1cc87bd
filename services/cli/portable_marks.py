"""`ttmark detect --mark` and `ttmark verify --revealed`: a mark from files, looked for without a service."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
import typer

from ttmark.detect_service.portable_detection import answer_for
from ttmark.services.cli.files import STANDARD_INPUT, shown
from ttmark.services.cli.input_files import NotExamined, named_files, read_text, read_texts
from ttmark.services.cli.terminal import print_named
from ttmark.services.startup import StartupError, no_start_after, one_clear_line
from ttmark.services.state_folder import STATE_FOLDER, known_tokenizers
from ttmark.shared.keys.key_files import ProvesNothing, RevealedKey
from ttmark.shared.keys.portable_mark import MOST_BYTES, MarkFile, MarkRefused, MarkSecret, PortableMark
from ttmark.shared.tokenization import TOKENIZER_FILE, TextTokenizer, TokenizerMissing

if TYPE_CHECKING:
    from ttmark.detect_service.portable_detection import MarkAnswer


File = TypeVar("File", bound=MarkFile)
_COLUMNS = ("verdict", "p-value", "tokens", "scored", "scheme")


def read_file(kind: type[File], path: Path) -> File:
    """What a file of marks holds.

    Raises:
        StartupError: it cannot be read, is large, or holds something else.
    """
    try:
        with path.open("rb") as handle:
            content = handle.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise StartupError(f"{shown(str(path))} has more than {MOST_BYTES} bytes")
        return kind.read(content)
    except OSError as error:
        raise StartupError(f"cannot read {shown(str(path))}: {error.strerror}") from error
    except MarkRefused as error:
        raise StartupError(f"{shown(str(path))}: {error}") from None


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
            typer.echo(orjson.dumps({"id": name, **asdict(answer)}).decode())
        return
    rows = [
        [one.verdict, f"{one.p_value:.2g}", str(one.tokens), str(one.scored_tokens), one.scheme]
        for _, one in named
    ]
    names = ["standard input" if name == STANDARD_INPUT else name for name, _ in named]
    print_named("file", names, _COLUMNS, rows)


def detect_mark(
    names: list[str], mark_file: Path, secret_file: Path, tokenizer: Path | None, fpr: float, *, as_json: bool
) -> tuple[bool, bool]:
    """Whether the mark was found in one of the files, and whether one was not examined.

    Raises:
        StartupError: a file is not what it should be, the mark does not commit to the secret, or the
            tokenizer is another.
    """
    with one_clear_line(), no_start_after(MarkRefused):
        mark, secret = read_file(PortableMark, mark_file), read_file(MarkSecret, secret_file)
        mark.check(secret)
        reads = tokenizer_of(mark, tokenizer)
        files, _ = named_files(names)
        texts = read_texts(files)
        answers = [
            (str(name), answer_for(mark, secret, reads.encode(text), fpr))
            for name, text in zip(files, texts, strict=True)
            if isinstance(text, str)
        ]
    show_answers(answers, as_json=as_json)
    failed = [text for text in texts if isinstance(text, NotExamined)]
    for one in failed:
        typer.echo(f"ttmark: {one.name}: {one.reason}", err=True)
    return any(answer.verdict == "watermarked" for _, answer in answers), bool(failed)


def verify_revealed(
    file: str, revealed: Path, dated: str | None, tokenizer: Path | None, fpr: float, *, as_json: bool
) -> None:
    """Prints the verdict about one text.

    Raises:
        typer.BadParameter: the rate is out of range.
        StartupError: a file is not what it should be, or the text is no evidence.
    """
    if not 0.0 < fpr <= 0.1:
        raise typer.BadParameter("is above 0 and at most 0.1", param_hint="--fpr")
    with one_clear_line(), no_start_after(MarkRefused), no_start_after(ProvesNothing):
        key = read_file(RevealedKey, revealed)
        key.prf_keys()
        key.check_date(dated)
        text = read_text(file)
        answer = answer_for(key.mark, key.secret, tokenizer_of(key.mark, tokenizer).encode(text), fpr)
    show_answers([(file, answer)], as_json=as_json)
    if not as_json:
        typer.echo(
            f"version {key.version} of {key.key_id}, which record {key.published.sequence} of the "
            f"audit chain {key.published.chain} committed to at {key.published.time}; it is public since "
            f"{key.revealed_at}"
        )
