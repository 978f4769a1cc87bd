"""Settings of signed cases."""

from pydantic import Field

from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import ReadableFile
from ttmark.services.startup import StartupError
from ttmark.shared.signed_files.signed_file import CaseKey, NotACaseKey


class CaseSettings(Settings):
    """Whether and with what the detection service signs cases."""

    case_key_file: ReadableFile | None = Field(
        default=None,
        description="Secret key from `ttmark case new-key`, which signs cases; left out: none are signed.",
    )

    def load_case_key(self) -> CaseKey | None:
        """The key, if there is to be one. Raises StartupError: the file cannot be read or holds none."""
        if self.case_key_file is None:
            return None
        try:
            return CaseKey.from_pem(self.text_of("case_key_file"))
        except NotACaseKey as error:
            raise StartupError(f"TTMARK_CASE_KEY_FILE: {error}") from error
