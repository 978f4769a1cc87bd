"""The scaffolding of both services: errors, authentication, limits, health, application."""

from ttmark.shared.http.app import AppOptions, create_app
from ttmark.shared.http.auth import Authenticate, check_scope, require
from ttmark.shared.http.error_format import openai_envelope, problem_document
from ttmark.shared.http.health import Readiness
from ttmark.shared.http.limits import HttpLimits

__all__ = [
    "AppOptions",
    "Authenticate",
    "HttpLimits",
    "Readiness",
    "check_scope",
    "create_app",
    "openai_envelope",
    "problem_document",
    "require",
]
