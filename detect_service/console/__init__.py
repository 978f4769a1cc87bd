"""The moderation page: static files, served with a strict content security policy."""

from ttmark.detect_service.console.router import SignIn, console_router

__all__ = ["SignIn", "console_router"]
