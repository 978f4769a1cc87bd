"""The audit trail: who did what with which key or token. No text, no secret."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Literal

import structlog

Action = Literal[
    "key.create",
    "key.import",
    "key.rotate",
    "key.limit",
    "key.promote",
    "key.retire",
    "key.disable",
    "key.export",
    "key.rewrap",
    "key.generate",
    "key.generated",
    "key.detect",
    "policy.deny",
    "text.read",
    "job.create",
    "job.delete",
    "token.create",
    "token.revoke",
    "token.refuse",
    "token.throttle",
    "store.refuse",
    "store.backup",
    "store.restore",
    "audit.prune",
    "audit.remove",
]


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One decision.

    Attributes:
        action: what was done, or refused.
        key_id: the key it was done to or with; `version` is its version.
        token_id: the token it was done to, or whose bearer did it.
        tenant: whose key or token.
        actor: who did it, where that was not the bearer of a token.
        request_id: the request, or the job, that led to it.
        job_id: the detection job that it was done to.
        reason: why it was refused, or why a text carries no watermark.
        route: the route that was asked.
        tokens: of `key.limit` tokens after which a version is due for rotation, of `key.generate` tokens of
            the prompts, of `key.generated` tokens that were written until it ended or was cancelled, of
            `key.detect` and `text.read` tokens that were read.
        keys: `key id/version` of all that a detection tried, or whose PRF keys were exported.
        verdicts: how many documents got each.
        rule: of the marking policy, that decided.
        before: of `audit.prune` the time from which on records stay, whatever they are.
        removed: of `audit.remove` the chain that lost records, their numbers, times and last hash.
    """

    action: Action
    key_id: str | None = None
    version: int | None = None
    token_id: str | None = None
    tenant: str | None = None
    actor: str | None = None
    request_id: str | None = None
    reason: str | None = None
    route: str | None = None
    tokens: int | None = None
    keys: tuple[str, ...] | None = None
    verdicts: Mapping[str, int] | None = None
    job_id: str | None = None
    rule: str | None = None
    before: str | None = None
    removed: Mapping[str, str | int] | None = None


AuditSink = Callable[[AuditEvent], None]


def log_audit(event: AuditEvent) -> None:
    """Writes the event to the structured log, under the logger `ttmark.audit`."""
    said = {field.name: getattr(event, field.name) for field in fields(event)}
    structlog.stdlib.get_logger("ttmark.audit").info(
        "audit", **{name: value for name, value in said.items() if value is not None}
    )


def no_audit(event: AuditEvent) -> None:
    """Drops the event."""
