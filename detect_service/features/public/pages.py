"""The page that whoever starts the services is shown, where it is on."""

from ttmark.detect_service.features.public.settings import PublicSettings


def pages() -> tuple[str, ...]:
    return ("{detect_url}/check  is the public page",) if PublicSettings().public else ()
