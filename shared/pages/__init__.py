"""Pages that the services serve to people: static files under a strict content security policy."""
