"""Features of the detection service, each a folder: nothing outside imports them."""
