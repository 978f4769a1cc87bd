"""Features that both services, or commands, have."""
