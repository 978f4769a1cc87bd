"""What runs inside vLLM's own processes, and the messages to them."""
