"""Settings of signed cases."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from ttmark.services.runtime import StartupError
from ttmark.shared.cases.case_key import CaseKey, NotACaseKey


class CaseSettings(BaseSettings):
    """Whether and with what the detection service signs cases, and whether it keeps some."""

    model_config = SettingsConfigDict(env_prefix="TTMARK_", extra="ignore", frozen=True)

    case_key_file: Path | None = Field(
        default=None,
        description="File with the secret key that cases are signed with, from `ttmark case new-key`; left "
        "out: none are signed.",
    )
    cases_keep_days: float = Field(
        default=0.0,
        ge=0,
        le=3_650,
        description="Days for which the service keeps signed cases that are stored there; 0: it keeps none.",
    )
    case_bytes: int = Field(default=256 * 2**10, ge=1, le=2**20, description="Largest case that is kept.")
    cases_tenant_bytes: int = Field(
        default=8 * 2**20,
        ge=0,
        description="What a tenant's cases may take in the store, over all replicas; a case takes some 3 kB.",
    )
    cases_bytes: int = Field(
        default=32 * 2**20,
        ge=0,
        description="What the cases of all tenants may take in the store, over all replicas.",
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
