"""How much a caller may use: every limit on access tokens is counted here."""
