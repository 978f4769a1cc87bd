"""Access tokens as they are stored and as they are shown."""

import hashlib
import re
import secrets
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ttmark.shared.access.scopes import Scope, TokenUse
from ttmark.shared.access.token_limits import DEFAULT_RATES, TokenLimits, checked_rates
from ttmark.shared.vault.envelope import Envelope
from ttmark.shared.vault.key_store_errors import InvalidToken, RecordTampered
from ttmark.shared.vault.names import Name

KIND = "token"

_WITHDRAWN = frozenset({"generate:bias"})  # records of earlier releases have it
_TOKEN = re.compile(r"ttm_([0-9a-f]{16})_([0-9a-f]{64})")


class TokenInfo(BaseModel):
    """What is shown of a token: everything but its hash."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_id: str
    tenant: Name
    scopes: Annotated[frozenset[Scope], BeforeValidator(lambda scopes: frozenset(scopes) - _WITHDRAWN)]
    label: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None = None
    limits: TokenLimits = Field(default_factory=TokenLimits)
    rates: Annotated[tuple[float, ...], AfterValidator(checked_rates)] = DEFAULT_RATES
    uses: frozenset[TokenUse] = frozenset()


class TokenRecord(TokenInfo):
    """The body of a token's record; the secret has 256 random bits, so a plain hash of it tells nothing."""

    secret_sha256: str

    def shown(self) -> TokenInfo:
        """Without the hash."""
        return TokenInfo.model_validate(self.model_dump(exclude={"secret_sha256"}))


def load_token(envelope: Envelope) -> TokenRecord:
    """The token's record in an opened envelope.

    Raises:
        RecordTampered: the body, although authentic, is not one that this version of the program writes.
    """
    try:
        return TokenRecord.model_validate(envelope.body)
    except ValidationError as error:
        raise RecordTampered("the record of a token has another format than this program writes") from error


def dump_token(record: TokenRecord) -> dict[str, object]:
    """The body of the envelope."""
    body = {
        **record.model_dump(mode="json"),
        "scopes": sorted(record.scopes),
        "uses": sorted(record.uses),
    }
    if record.rates == DEFAULT_RATES:
        del body["rates"]  # a replica of the version before, which knows no rates, reads such a token too
    if not record.uses:
        del body["uses"]  # likewise
    return body


def new_token() -> tuple[str, str]:
    """A random token id and secret, in hex."""
    return secrets.token_hex(8), secrets.token_hex(32)


def plain_text(token_id: str, secret: str) -> str:
    """What the bearer sends."""
    return f"ttm_{token_id}_{secret}"


def parse_token(plain: str) -> tuple[str, str]:
    """Token id and secret.

    Raises:
        InvalidToken: it has not the form of a token; the message does not repeat it.
    """
    match = _TOKEN.fullmatch(plain)
    if match is None:
        raise InvalidToken("not an access token")
    return match[1], match[2]


def hash_secret(secret: str) -> str:
    """SHA-256 of the secret, in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()
