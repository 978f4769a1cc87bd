"""The page that whoever starts the services is shown."""


def pages() -> tuple[str, ...]:
    return ("{detect_url}/  (the access token that it asks for is in {token_file})",)
