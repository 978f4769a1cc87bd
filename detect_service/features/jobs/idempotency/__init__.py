"""What a request asks for is done once, however often it is sent with one idempotency key."""
