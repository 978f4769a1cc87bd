"""Files of keys: for a second implementation, and of the library."""

from collections.abc import Mapping
from typing import Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.keys.key_records import KeyInfo
from ttmark.shared.schemas.profile import Fingerprint, Profile

EXPORT_FORMAT = "ttmark keys 1"


def export_file(info: KeyInfo, key: UnlockedKey) -> bytes:
    """A key as a file of JSON (`docs/spec.md`, section "Exported keys").

    Versions that are no longer detected are named without PRF keys.
    """
    prf_keys = {version.version: version.prf_keys for version in key.detectable}
    versions = []
    for version in info.versions:
        shown = version.model_dump(mode="json", exclude={"revealed_at"})
        if version.version in prf_keys:
            shown["prf_keys"] = [prf_key.hex() for prf_key in prf_keys[version.version]]
        versions.append(shown)
    document = {
        "format": EXPORT_FORMAT,
        "key_id": info.key_id,
        "tenant": info.tenant,
        "profile": info.profile.stored(),
        "versions": versions,
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


LIBRARY_FORMAT: Final = "ttmark library key 1"
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

    format: Literal["ttmark library key 1"] = LIBRARY_FORMAT
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
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise NotAKeyFile(f"not the file of a library key: {where}") from None

    def written(self) -> bytes:
        return orjson.dumps(
            self.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        )

    def profile_for(self, fingerprint: str) -> Profile:
        return Profile.model_validate({**self.profile, "tokenizer_fingerprint": fingerprint})
