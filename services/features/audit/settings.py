"""Whether an audit trail is kept on disk, where and for how long."""

from datetime import timedelta

from pydantic import Field

from ttmark.services.features.audit.chain import Chain
from ttmark.services.features.audit.trail import AuditTrail, Heads
from ttmark.services.settings.base import Settings
from ttmark.services.settings.values import Days, Folder
from ttmark.services.startup import StartupError
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.stores.store import RecordStore


class AuditSettings(Settings):
    """The audit trail of both services and of commands."""

    audit_folder: Folder | None = Field(
        default=None,
        description="Lasting folder of the audit trail. Left out: services write it to their logs "
        "alone, commands not at all.",
    )
    audit_keep_days: Days = Field(
        default=365.0, description="Days after which a part of the audit trail is removed; 0: never."
    )

    def open_trail(self, writer: str, store: RecordStore, kek: KeyWrapper) -> AuditTrail | None:
        """The trail in its folder as continued by `writer`, if there is to be one. Raises StartupError."""
        if self.audit_folder is None:
            return None
        try:
            chain = Chain(self.audit_folder, writer)
        except OSError as error:
            reason = f"{self.audit_folder} ({error.strerror})"
            raise StartupError(f"cannot write the audit trail to {reason}") from error
        keep = timedelta(days=self.audit_keep_days) if self.audit_keep_days else None
        return AuditTrail(chain, Heads(store, kek), keep=keep)
