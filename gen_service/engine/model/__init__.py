"""Models on this machine: how they are loaded, and what a batch of rows costs and gives."""
