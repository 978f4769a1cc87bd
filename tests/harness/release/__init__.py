"""What `make release` does, step by step."""
