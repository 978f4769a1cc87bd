"""The setting of signed cases (`TTMARK_CASE_KEY_FILE`)."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from ttmark.services.runtime import StartupError
from ttmark.shared.cases.case_key import CaseKey, NotACaseKey


class CaseSettings(BaseSettings):
    """Whether and with what the detection service signs cases."""

    model_config = SettingsConfigDict(env_prefix="TTMARK_", extra="ignore", frozen=True)

    case_key_file: Path | None = Field(
        default=None,
        description="File with the secret key that cases are signed with, from `ttmark case new-key`; left "
        "out: none are signed.",
    )

    def load_case_key(self) -> CaseKey | None:
        """The key, if there is to be one.

        Raises:
            StartupError: the file cannot be read or holds no such key.
        """
        path = self.case_key_file
        if path is None:
            return None
        try:
            return CaseKey.from_pem(path.read_text())
        except (OSError, UnicodeDecodeError, NotACaseKey) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StartupError(f"cannot read the key for cases from {path} ({reason})") from error
