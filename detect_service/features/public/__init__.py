"""The public tier: everybody may ask about a text, at one rate."""

NEEDS = ("cases", "files", "manifests", "spent")
