"""The file of a key version that was made public: its PRF keys, and the record that committed to them."""

from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from ttmark.shared.audit.record import Damaged, Record, read_record
from ttmark.shared.keys.portable_mark import MarkFile, MarkRefused, MarkSecret, PortableMark
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.names import Name

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
        try:
            dated = date.fromisoformat(dated) if len(dated) <= _DAY else datetime.fromisoformat(dated)
        except ValueError:
            raise ProvesNothing(f"{dated[:40]!r} is no date such as 2026-11-26 or 2026-11-26T15:00") from None
    if isinstance(dated, datetime):
        return dated if dated.tzinfo else dated.replace(tzinfo=UTC)
    return datetime(dated.year, dated.month, dated.day, tzinfo=UTC) + timedelta(days=1)


_DAY = len("2026-11-26")
