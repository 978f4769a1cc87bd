"""Manifests in prompts, which are thousands of tokens that say nothing."""

from ttmark.shared.manifests.wrapper import without_wrappers


def cleaned(text: str) -> str:
    """The text without them."""
    return without_wrappers(text)
