"""Everything that waits for a GPU, in parts: `make gpu`."""
