"""The file of a library key: its secret, the form of its marks, and the tokenizers that it was used with."""

from collections.abc import Mapping
from typing import Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ttmark.shared.schemas.profile import Fingerprint, Profile

FORMAT: Final = "ttmark library key 1"
SECRET_BYTES = 32


class NotAKeyFile(ValueError):
    """A file is not that of a key; the message does not repeat what it holds."""


class LibraryKeyFile(BaseModel):
    """A key that marks, with a profile for any tokenizer.

    Attributes:
        secret: 64 hexadecimal digits.
        profile: the fields of a profile but for the tokenizer's fingerprint.
        models: names of models, as they were loaded, by the fingerprints of their tokenizers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    format: Literal["ttmark library key 1"] = FORMAT
    secret: str = Field(repr=False, pattern=r"^[0-9a-f]{64}$")
    profile: Mapping[str, object]
    models: Mapping[Fingerprint, str] = {}

    @field_validator("profile")
    @classmethod
    def _is_one(cls, fields: Mapping[str, object]) -> Mapping[str, object]:
        Profile.model_validate({**fields, "tokenizer_fingerprint": "0" * 64})
        return fields

    @classmethod
    def read(cls, content: bytes) -> "LibraryKeyFile":
        """The key in a file.

        Raises:
            NotAKeyFile: it holds none.
        """
        try:
            return cls.of(orjson.loads(content))
        except orjson.JSONDecodeError:
            raise NotAKeyFile("not the file of a library key: no JSON") from None

    @classmethod
    def of(cls, document: object) -> "LibraryKeyFile":
        """The same from the JSON that it holds."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise NotAKeyFile(f"not the file of a library key: {where}") from None

    def written(self) -> bytes:
        """The file's content."""
        return orjson.dumps(
            self.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        )

    def profile_for(self, fingerprint: str) -> Profile:
        """The profile of its texts with a tokenizer."""
        return Profile.model_validate({**self.profile, "tokenizer_fingerprint": fingerprint})
