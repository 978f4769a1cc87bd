"""Work that does not fit on the event loop: what it costs, and whose turn it is."""
