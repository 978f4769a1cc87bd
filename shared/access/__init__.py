"""Access tokens: who may call, and what for."""
