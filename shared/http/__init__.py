"""The scaffolding of both services: errors, authentication, limits, health, application."""
