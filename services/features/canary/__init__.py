"""The live check: a process that generates and detects, and says how that went."""
