"""Both services put together from settings, keys and features."""
