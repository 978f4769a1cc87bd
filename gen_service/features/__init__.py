"""Features of the generation service, each a folder: nothing outside imports them."""
