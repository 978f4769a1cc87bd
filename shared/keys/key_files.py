"""Files of keys: for a second implementation, of the library, and of a version that was made public."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import ClassVar, Final, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ttmark.shared.audit.record import Damaged, Record, read_record
from ttmark.shared.keys.portable_mark import MarkFile, MarkRefused, MarkSecret, PortableMark
from ttmark.shared.keys.records import KeyInfo, UnlockedKey
from ttmark.shared.schemas.profile import Fingerprint, Profile
from ttmark.shared.vault.names import Name

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
        """The same from the JSON that it holds."""
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
        """The profile of its texts with a tokenizer."""
        return Profile.model_validate({**self.profile, "tokenizer_fingerprint": fingerprint})


Dated = date | datetime | str


class ProvesNothing(ValueError):
    """The mark in a text of such a date is evidence of nothing."""


class RevealedKey(MarkFile):
    """A version of a key of ours whose PRF keys anybody may have.

    Attributes:
        record: the line of the audit trail that published the commitment, as it was written.
        revealed_at: ISO 8601 in UTC.
    """

    WHAT: ClassVar[str] = "the file of a revealed key"

    format: Literal["ttmark revealed key 1"] = "ttmark revealed key 1"
    key_id: Name
    version: int = Field(ge=1)
    mark: PortableMark
    secret: MarkSecret
    record: str
    revealed_at: str

    @model_validator(mode="after")
    def _is_ours(self) -> Self:
        if not isinstance(self.mark.profile, Profile):
            raise ValueError("the key is another system's")
        if datetime.fromisoformat(self.revealed_at).tzinfo is None:
            raise ValueError("revealed_at has no time zone")
        return self

    @property
    def profile(self) -> Profile:
        """The profile of its texts."""
        return Profile.model_validate(self.mark.profile)

    @cached_property
    def published(self) -> Record:
        """The record of the audit trail.

        Raises:
            MarkRefused: it was changed, or commits to something else.
        """
        try:
            record = read_record(self.record.encode())
        except Damaged as error:
            raise MarkRefused(f"the record of the audit trail was changed: {error}") from None
        said = (self.key_id, self.version, self.mark.commitment)
        if tuple(record.event.get(name) for name in ("key_id", "version", "commitment")) != said:
            raise MarkRefused("the record of the audit trail commits to other PRF keys")
        return record

    def prf_keys(self) -> tuple[bytes, ...]:
        """The PRF keys that the record committed to.

        Raises:
            MarkRefused: it did not commit to these.
        """
        _ = self.published
        return self.mark.prf_keys(self.secret)

    def check_date(self, dated: Dated | None) -> None:
        """Whether a text of this date could be evidence; a day counts to its end.

        Args:
            dated: when somebody else had the text, by what does not depend on the text itself.

        Raises:
            ProvesNothing: there is no date, it is not before the revelation, or the key was made later.
            MarkRefused: as `published`.
        """
        if dated is None:
            raise ProvesNothing(f"the text has no date. {_ANYBODY}")
        latest = _latest(dated)
        if latest > datetime.fromisoformat(self.revealed_at):
            raise ProvesNothing(f"the text is not older than the revelation ({self.revealed_at}). {_ANYBODY}")
        if latest < datetime.fromisoformat(self.published.time):
            raise ProvesNothing(
                f"the key was made later than the text ({self.published.time}): one of the two dates is wrong"
            )


_ANYBODY = "This proves nothing: whoever holds the revealed key can write such a text"


def _latest(dated: Dated) -> datetime:
    """The latest moment that a date means; without a time zone in UTC.

    Raises:
        ProvesNothing: it is no date.
    """
    if isinstance(dated, str):
        said = dated
        try:
            dated = date.fromisoformat(said) if len(said) <= _DAY else datetime.fromisoformat(said)
        except ValueError:
            raise ProvesNothing(f"{said[:40]!r} is no date such as 2026-11-26 or 2026-11-26T15:00") from None
    if isinstance(dated, datetime):
        return dated if dated.tzinfo else dated.replace(tzinfo=UTC)
    return datetime(dated.year, dated.month, dated.day, tzinfo=UTC) + timedelta(days=1)


_DAY = len("2026-11-26")
