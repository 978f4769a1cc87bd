"""`GET /`: the moderation console."""

from fastapi import APIRouter

from ttmark.shared.pages.page_router import page_router


def console_router() -> APIRouter:
    """The page and its files."""
    return page_router("/", "console", "ttmark.detect_service.console")
