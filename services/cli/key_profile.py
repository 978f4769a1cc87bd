"""The profile that the options of `ttmark keys create` describe."""

from pathlib import Path

import typer
from pydantic import ValidationError

from ttmark.shared.schemas.profile import Profile, Purpose, profile_fields
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing


def profile_from(
    purpose: Purpose | None,
    scheme: str | None,
    block_size: int | None,
    context_width: int | None,
    tokenizer: Path,
    parameters: list[str],
    pool: int | None,
    *,
    payloads: bool,
) -> Profile:
    """The profile, with the fingerprint of the tokenizer in the folder `tokenizer`.

    Raises:
        typer.BadParameter: naming the option that is at fault.
    """
    try:
        fingerprint = TextTokenizer.load(tokenizer).fingerprint
        return Profile.model_validate(
            profile_fields(
                purpose,
                scheme=scheme,
                block_size=block_size,
                context_width=context_width,
                parameters=dict(map(parameter, parameters)),
                tokenizer_fingerprint=fingerprint,
                pool=pool,
                payloads=payloads,
            )
        )
    except TokenizerMissing as error:
        raise typer.BadParameter(str(error), param_hint="--tokenizer") from error
    except ValidationError as error:
        raise typer.BadParameter(
            "; ".join(detail["msg"].removeprefix("Value error, ") for detail in error.errors())
        ) from error
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--for") from error


def parameter(text: str) -> tuple[str, int | float | bool]:
    """Name and value of an option NAME=VALUE.

    Raises:
        typer.BadParameter: it is not one.
    """
    name, separator, value = text.partition("=")
    if separator and value in ("true", "false"):
        return name, value == "true"
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    raise typer.BadParameter(f"{text!r} is not NAME=NUMBER or NAME=true|false", param_hint="--param")
