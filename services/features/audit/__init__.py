"""The audit trail on disk: records linked by hash, and heads of their chains in the key store."""

NEEDS = ("cases",)
