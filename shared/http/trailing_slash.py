"""A slash too many at the end of a path, as some clients join a base URL and a route."""

from starlette.types import ASGIApp, Receive, Scope, Send


class TrailingSlashMiddleware:
    """Takes a slash from the end of a path before anything looks at it: no route but `/` ends in one.

    After a redirection some clients repeat neither their body nor their token.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/":
            scope["path"] = scope["path"].removesuffix(
                "/"
            )  # in place: what is around us reads the scope, too
        await self.app(scope, receive, send)
