"""`ttmark verify --revealed`: what a key version that was made public says of a text from before."""

from pathlib import Path

import typer

from ttmark.detect_service.portable_mark import look_for
from ttmark.services.cli.input_files import read_text
from ttmark.services.cli.portable import read_file, show_answers, tokenizer_of
from ttmark.services.runtime import no_start_after, one_clear_line
from ttmark.shared.keys.key_files import ProvesNothing, RevealedKey
from ttmark.shared.keys.portable_mark import MarkRefused


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
        answer = look_for(key.mark, key.secret, read_text(file), tokenizer_of(key.mark, tokenizer), fpr)
    show_answers([(file, answer)], as_json=as_json)
    if not as_json:
        typer.echo(
            f"version {key.version} of {key.key_id}, which record {key.published.sequence} of the "
            f"audit chain {key.published.chain} committed to at {key.published.time}; it is public since "
            f"{key.revealed_at}"
        )
