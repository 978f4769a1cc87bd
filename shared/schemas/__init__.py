"""The pydantic models of every request, response, profile and error."""
