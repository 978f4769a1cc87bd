"""The scaffolding of both services: errors, authentication, limits, health, application."""

from shared.http.app import create_app
from shared.http.auth import Authenticate, check_scope, require
from shared.http.error_format import openai_envelope, problem_document
from shared.http.health import Readiness
from shared.http.json_route import JsonRoute
from shared.http.limits import HttpLimits

__all__ = [
    "Authenticate",
    "HttpLimits",
    "JsonRoute",
    "Readiness",
    "check_scope",
    "create_app",
    "openai_envelope",
    "problem_document",
    "require",
]
