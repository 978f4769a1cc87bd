"""The page that whoever starts the services is shown."""


def pages() -> tuple[str, ...]:
    return ("{gen_url}/playground  shows how a text is marked while it is written",)
