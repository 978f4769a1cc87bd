"""`ttmark detect --mark`: looks for the one mark that a file describes, here and without a service."""

from pathlib import Path

import typer

from ttmark.detect_service.portable_mark import look_for
from ttmark.services.cli.input_files import NotExamined, named_files, read_texts
from ttmark.services.cli.portable import read_file, show_answers, tokenizer_of
from ttmark.services.runtime import no_start_after, one_clear_line
from ttmark.shared.keys.portable_mark import MarkRefused, MarkSecret, PortableMark


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
            (str(name), look_for(mark, secret, text, reads, fpr))
            for name, text in zip(files, texts, strict=True)
            if isinstance(text, str)
        ]
    show_answers(answers, as_json=as_json)
    failed = [text for text in texts if isinstance(text, NotExamined)]
    for one in failed:
        typer.echo(f"ttmark: {one.name}: {one.reason}", err=True)
    return any(answer.verdict == "watermarked" for _, answer in answers), bool(failed)
