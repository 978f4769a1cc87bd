"""The embedded engine: `Engine.load(...)`, `start`, `generate`, `stop`."""
