"""The moderation page: static files, served with a strict content security policy."""

from ttmark.detect_service.console.router import console_router

__all__ = ["console_router"]
