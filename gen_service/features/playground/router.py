"""The playground: a page on which an answer is written before one's eyes, with its watermark."""

from fastapi import APIRouter

from ttmark.shared.pages import page_router


def playground_router(console_url: str) -> APIRouter:
    """The page and its files; `console_url` is where it hands texts over to."""
    router = APIRouter(include_in_schema=False)

    @router.get("/playground/settings.json")
    async def settings() -> dict[str, str]:
        return {"console_url": console_url}

    # Behind the route above: it answers for any other name.
    router.include_router(page_router("/playground", "playground", "ttmark.gen_service.features.playground"))
    return router
