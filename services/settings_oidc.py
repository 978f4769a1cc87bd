"""Settings of sign-in by a company's OpenID provider."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from ttmark.services.runtime import StartupError
from ttmark.services.settings_reading import Settings
from ttmark.services.settings_values import Separated, WebAddress
from ttmark.shared.access.oidc import OidcRules
from ttmark.shared.access.scopes import Scope
from ttmark.shared.vault.names import Name

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class OidcSettings(Settings):
    """Whether tokens of an OpenID provider are taken beside ours, and what they open."""

    oidc_issuer: WebAddress | None = Field(
        default=None,
        description="OpenID provider whose JWT access tokens are taken beside ours, exactly as `iss` in "
        "them. Left out: none are.",
    )
    oidc_audience: str | None = Field(
        default=None,
        max_length=500,
        description="What `aud` in such a token must be or hold: this service, as the provider knows it. "
        "Whom the provider gives it may ask.",
    )
    oidc_client_id: str | None = Field(
        default=None,
        max_length=500,
        description="Public client (authorization code with PKCE) that the console signs people in with. "
        "Left out: the console takes tokens alone.",
    )
    oidc_tenant: Name = Field(default="local", description="Tenant whose keys such tokens look for.")
    oidc_scopes: Annotated[tuple[Scope, ...], *Separated] = Field(
        default=(Scope.DETECT,),
        description="What such tokens open, separated by commas: `detect`, `detect:evidence` or "
        "`detect:public`.",
    )
    oidc_evidence_group: str | None = Field(
        default=None,
        max_length=500,
        description="Group, by the token's claim `groups`, whose members also have `detect:evidence`.",
    )

    def oidc_rules(self) -> OidcRules | None:
        """Whose tokens are taken, if any are.

        Raises:
            StartupError: no audience, the client's own as audience, or a scope of generation.
        """
        if self.oidc_issuer is None:
            return None
        if self.oidc_audience is None:
            raise StartupError(
                "TTMARK_OIDC_ISSUER needs TTMARK_OIDC_AUDIENCE: else tokens for others open this"
            )
        address = urlsplit(self.oidc_issuer)
        if address.scheme != "https" and address.hostname not in _LOOPBACK:
            raise StartupError("TTMARK_OIDC_ISSUER: https, or whoever is on the way can sign people in")
        if self.oidc_audience == self.oidc_client_id:
            raise StartupError(
                "TTMARK_OIDC_AUDIENCE is the client's id: that is the audience of ID tokens, which open "
                "nothing. Register this service as an API (a resource) at the provider"
            )
        others = set(self.oidc_scopes) - {Scope.DETECT, Scope.DETECT_EVIDENCE, Scope.DETECT_PUBLIC}
        if others or not self.oidc_scopes:
            raise StartupError("TTMARK_OIDC_SCOPES: of detect, detect:evidence, detect:public at least one")
        return OidcRules(
            self.oidc_issuer,
            self.oidc_audience,
            self.oidc_tenant,
            frozenset(self.oidc_scopes),
            self.oidc_evidence_group,
        )
