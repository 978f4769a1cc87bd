"""How settings are read from the environment, and one clear line where a value is none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from ttmark.services.runtime import StartupError

PREFIX = "TTMARK_"
_MOST_PROBLEMS = 5


class WrongSettings(StartupError):
    """Values of settings are none.

    Attributes:
        problems: what is wrong, by variable.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        said = [f"{name}: {reason}" for name, reason in problems.items()]
        super().__init__("; ".join(said[:_MOST_PROBLEMS]))
        self.problems = problems


class Settings(BaseSettings):
    """Fields from variables `TTMARK_*`; a variable that is empty is one that is left out.

    Raises:
        WrongSettings: values are none; the line names their variables and repeats no value, which may be a
            secret.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        validate_default=False,  # a file that is there by default may be missing where another says the same
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise WrongSettings(_problems(error)) from None
        except SettingsError as error:
            raise StartupError(f"{PREFIX}*: {error}") from None

    def text_of(self, field: str, *, advice: str = "") -> str:
        """The text of the file that a field names, without blanks around it.

        Args:
            advice: what to do where the file is missing that is read by default.

        Raises:
            StartupError: it cannot be read. The line names the file only where it is the default: elsewhere
                somebody may have put the secret itself in its place.
        """
        path: Path = getattr(self, field)
        what = variable(field) if field in self.model_fields_set else f"{variable(field)} ({path} by default)"
        try:
            return path.read_text().strip()
        except UnicodeDecodeError:
            raise StartupError(f"{what}: the file holds no text") from None
        except OSError as error:
            then = f"; {advice}" if advice and field not in self.model_fields_set else ""
            raise StartupError(f"{what}: cannot be read: {error.strerror}{then}") from None


def variable(field: str) -> str:
    """The variable of a field."""
    return PREFIX + field.upper()


def _problems(error: ValidationError) -> dict[str, str]:
    said: dict[str, str] = {}
    for one in error.errors(include_input=False, include_url=False):
        name = ", ".join(variable(str(part)) for part in one["loc"][:1])
        reason = one["msg"].removeprefix("Value error, ")
        said.setdefault(name, reason)
    return said
