"""Routes that there were: whoever still calls one is told by the 404 what took its place."""

DROPPED_ROUTES = {
    "/v1/cases": "The service keeps no cases: keep the signed file that `case` adds to an answer.",
    "/v1/watermark/verify": "Ask POST /v1/detect of the detection service, with a prompt and sampling.",
    "/v1/queue": "The service has no queue: attach signed cases to tickets of a system for them.",
}
"""By what a path begins with, of either service. What is still there below it is not asked for here."""


def instead_of(path: str) -> str | None:
    """What took the place of the route that this path named."""
    return next(
        (instead for route, instead in DROPPED_ROUTES.items() if f"{path}/".startswith(f"{route}/")), None
    )
