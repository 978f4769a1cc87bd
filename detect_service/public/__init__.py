"""The public tier: one answer at one rate, its page, and the document that says how to ask."""
