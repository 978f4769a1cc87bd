"""The thread that computes one step after the other, and what goes in and out of it."""
