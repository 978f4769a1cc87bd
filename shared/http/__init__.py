"""The scaffolding of both services: errors, authentication, limits, health, application."""

from ttmark.shared.http.app import AppOptions, create_app
from ttmark.shared.http.auth import Authenticate, check_scope, require
from ttmark.shared.http.health import Readiness
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.http.service_errors import openai_envelope, problem_document

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
