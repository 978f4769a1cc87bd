"""Settings of signed cases."""

from pydantic import Field

from ttmark.services.runtime import StartupError
from ttmark.services.settings_reading import Settings
from ttmark.services.settings_values import Amount, ReadableFile
from ttmark.shared.cases.case_key import CaseKey, NotACaseKey


class CaseSettings(Settings):
    """Whether and with what the detection service signs cases, and whether it keeps some."""

    case_key_file: ReadableFile | None = Field(
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
    cases_tenant_bytes: Amount = Field(
        default=8 * 2**20,
        description="What a tenant's cases may take in the store, over all replicas; a case takes some 3 kB.",
    )
    cases_bytes: Amount = Field(
        default=32 * 2**20,
        description="What the cases of all tenants may take in the store, over all replicas.",
    )

    def load_case_key(self) -> CaseKey | None:
        """The key, if there is to be one.

        Raises:
            StartupError: the file cannot be read or holds no such key.
        """
        if self.case_key_file is None:
            return None
        try:
            return CaseKey.from_pem(self.text_of("case_key_file"))
        except NotACaseKey as error:
            raise StartupError(f"TTMARK_CASE_KEY_FILE: {error}") from error
