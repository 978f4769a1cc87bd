"""Opens the feature: tokens of an OpenID provider are taken beside ours."""

from ttmark.detect_service.api.features import DetectionFeature
from ttmark.detect_service.features.oidc.oidc import OidcTokens, provider_client
from ttmark.detect_service.features.oidc.settings import OidcSettings
from ttmark.services.composition.opening import Opening
from ttmark.shared.pages import SignIn


def opened(_: Opening) -> DetectionFeature | None:
    settings = OidcSettings()
    rules = settings.oidc_rules()
    if rules is None:
        return None
    provider = provider_client()
    people, client = OidcTokens(rules, provider), settings.oidc_client_id
    return DetectionFeature(
        running=[provider, people.kept_fresh()],
        authenticate=people.beside,
        provides=[] if client is None else [SignIn(rules.issuer, client, rules.audience)],
    )
