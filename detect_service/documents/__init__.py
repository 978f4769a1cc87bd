"""Documents as they are sent: read, held to limits, and those that get no verdict."""
